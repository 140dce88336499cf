//! `fedstein predict`: the predictive of a finished run on rows of a CSV file.

use super::place::{Place, TINY, assert_near, cells, numbers, pets, prices};

const PETS: &str = "--set data.kind=csv --set data.path=pets.csv --set data.test_path=more.csv --set data.target=kind --set partition.clients=2 --quiet";
const PRICES: &str = "--set data.kind=csv --set data.path=prices.csv --set data.test_path=more.csv --set data.target=price --set data.task=regression --set partition.clients=2 --quiet";

/// A run on three kinds of pets, named in words.
fn classification() -> Place {
    let place = Place::new();
    place.write("pets.csv", pets(60)).write("more.csv", pets(17)).works(&format!("{TINY} {PETS} --out run"));
    place
}

fn regression() -> Place {
    let place = Place::new();
    place.write("prices.csv", prices(60)).write("more.csv", prices(17)).works(&format!("{TINY} {PRICES} --out run"));
    place
}

#[test]
fn predictions_of_the_test_rows_are_those_that_the_run_made() {
    let place = classification();
    let table = cells(&place.works("predict run --input more.csv").stdout);
    assert_eq!(table[0].join(","), "prediction,confidence,p_0,p_1,p_2");
    let of_run = place.table("run/predictions.csv");
    assert_eq!(table.len(), of_run.len());
    let classes = ["cat", "dog", "eel"];
    assert_eq!(place.json("run/model.json")["classes"], serde_json::json!(classes));
    for (row, run) in table[1..].iter().zip(&of_run[1..]) {
        let (got, want) = (numbers(&row[2..]), numbers(&run[1..]));
        got.iter().zip(&want).for_each(|(got, want)| assert_near(*got, *want, 1e-6)); // f32, batches of other sizes
        assert_near(got.iter().sum(), 1.0, 1e-6);
        let best = got.iter().copied().fold(0.0, f64::max);
        assert_eq!(numbers(&row[1..2]), [best]);
        assert_eq!(got[classes.iter().position(|class| *class == row[0]).unwrap()], best);
    }
}

#[test]
fn a_trained_model_separates_the_classes() {
    let place = Place::new();
    place.write("pets.csv", pets(60)).write("more.csv", pets(17));
    let train = format!("train {PETS} --set rounds=4 --set algorithm.particles=5 --set optimizer.lr=0.05 --out run");
    place.works(&train);
    let table = cells(&place.works("predict run --input more.csv").stdout);
    let kinds = place.table("more.csv");
    let right = table.iter().zip(&kinds).skip(1).filter(|(row, truth)| row[0] == truth[1]).count();
    assert_eq!(right, 17);
}

#[test]
fn predictions_go_to_a_file_and_on_another_backend() {
    let place = classification();
    let printed = place.works("predict run --input more.csv").stdout;
    assert_eq!(place.works("predict run --input more.csv --out p.csv").stdout, "");
    assert_eq!(place.text("p.csv"), printed);
    if cfg!(not(feature = "cuda")) {
        place.refuses("predict run --input more.csv --backend cuda", &["backend \"cuda\" is not compiled in"]);
    }
    let other = if cfg!(feature = "ndarray") { "ndarray" } else { "flex" };
    let other = cells(&place.works(&format!("predict run --input more.csv --backend {other}")).stdout);
    for (row, want) in other.iter().zip(cells(&printed)).skip(1) {
        numbers(&row[1..]).iter().zip(numbers(&want[1..])).for_each(|(got, want)| assert_near(*got, want, 1e-5)); // f32
    }
}

#[test]
fn columns_are_found_by_their_names_and_the_target_may_be_missing() {
    let place = classification();
    let want = place.write("new.csv", "width,height\n-2,0.5\n2,0.1\n").works("predict run --input new.csv").stdout;
    assert_eq!(want.lines().count(), 3);
    for text in [
        "height,width\n0.5,-2\n0.1,2\n",
        "id,height,kind,width\na,0.5,eel,-2\nb,0.1,,2\n",
        "-2,0.5\n2,0.1\n", // no header: by position
    ] {
        assert_eq!(place.write("new.csv", text).works("predict run --input new.csv").stdout, want, "{text}");
    }
    place.write("new.csv", "width,depth\n1,2\n");
    place.refuses("predict run --input new.csv", &["new.csv", "no column `height`", "`width`, `depth`"]);
}

#[test]
fn a_regression_predicts_mean_and_deviation_on_the_scale_of_the_data() {
    let place = regression();
    let table = cells(&place.works("predict run --input more.csv").stdout);
    assert_eq!(table[0].join(","), "mean,sd");
    // The mixture's moments, from the run's own mean and precision of every particle.
    let of_run = place.table("run/predictions.csv");
    assert_eq!(table.len(), of_run.len());
    for (row, run) in table[1..].iter().zip(&of_run[1..]) {
        let particles: Vec<(f64, f64)> =
            numbers(&run[1..]).chunks_exact(2).map(|pair| (pair[0], 1.0 / pair[1])).collect();
        let average = |of: &dyn Fn(&(f64, f64)) -> f64| particles.iter().map(of).sum::<f64>() / particles.len() as f64;
        let mean = average(&|(mean, _)| *mean);
        let variance = average(&|(each, variance)| variance + (each - mean).powi(2));
        let got = numbers(row);
        assert_near(got[0], mean, 1e-4); // f32 of numbers around 100
        assert_near(got[1], variance.sqrt(), 1e-4);
        assert!((50.0..200.0).contains(&got[0]), "{got:?}");
    }
    let summary = place.json("run/summary.json");
    assert!(summary["evaluation"]["rmse"].as_f64().is_some_and(f64::is_finite), "{summary}");
    assert!(summary["evaluation"]["accuracy"].is_null());
}

#[test]
fn class_names_with_commas_and_quotes_survive() {
    let place = Place::new();
    let row = |i: usize| format!("{},{}\n", i % 2, ["\"red, \"\"dark\"\"\"", "blue"][i % 2]);
    place.write("c.csv", format!("x,colour\n{}", (0..20).map(row).collect::<String>()));
    place.works(&format!("{TINY} --set data.kind=csv --set data.path=c.csv --set data.target=colour --set partition.clients=2 --out run --quiet"));
    assert_eq!(place.json("run/model.json")["classes"], serde_json::json!(["blue", "red, \"dark\""]));
    let printed = place.works("predict run --input c.csv").stdout;
    for line in printed.lines().skip(1) {
        assert!(line.starts_with("blue,") || line.starts_with("\"red, \"\"dark\"\"\","), "{line}");
    }
}

#[test]
fn rows_that_do_not_fit_the_model_are_refused_with_line_and_column() {
    let place = classification();
    for (text, words) in [
        ("width,height\n1,2\n3,tall\n", ["line 3, column 2 (height)", "`tall` is not a finite number"]),
        ("width,height\n1,2\n3,nan\n", ["line 3, column 2 (height)", "`nan` is not a finite number"]),
        ("width,height\n1,2\n3\n", ["line 3", "1 columns, expected 2"]),
        ("1,2,3\n", ["3 feature columns", "the model takes 2"]),
        ("width,height\n", ["new.csv", "no data rows"]),
        ("", ["new.csv", "no data rows"]),
    ] {
        place.write("new.csv", text);
        place.refuses("predict run --input new.csv --out p.csv", &[&words[..], &["new.csv"]].concat());
    }
    place.refuses("predict run --input gone.csv", &["gone.csv", "(os error 2)"]);
    place.refuses("predict run --input run", &["run: is a directory"]);
}

#[test]
fn predictions_never_replace_their_input() {
    let place = classification();
    place.refuses("predict run --input more.csv --out ./run/../more.csv", &["--out", "--input"]);
    place.refuses(
        "predict run --input more.csv --out no/such/p.csv",
        &["--out `no/such/p.csv`", "no directory `no/such`"],
    );
    place.refuses("predict run --input more.csv --out run", &["--out `run` is a directory; name a file"]);
}

#[test]
fn a_directory_without_a_finished_run_is_refused_with_the_file() {
    let place = classification();
    place.refuses("predict gone --input more.csv", &["gone/summary.json", "finished run"]);
    place.refuses("predict pets.csv --input more.csv", &["pets.csv/summary.json", "finished run"]);
    place.works(&format!("{TINY} --out digits --quiet"));
    for (bytes, words) in [
        (b"x".to_vec(), ["run/particles.safetensors", "header"]),
        (place.bytes("digits/particles.safetensors"), ["run/particles.safetensors", "[4, 50, 64]"]),
    ] {
        place.write("run/particles.safetensors", bytes);
        place.refuses("predict run --input more.csv", &words);
    }
}

#[test]
fn a_rotated_run_predicts_from_rows_as_they_are() {
    for from in ["all-clients", "first-client"] {
        let place = Place::new();
        place.write("pets.csv", pets(60)).write("more.csv", pets(17));
        let keys = format!("--set data.rotate=principal --set data.rotate_from={from}");
        place.works(&format!("{TINY} {PETS} {keys} --out run"));
        let table = cells(&place.works("predict run --input more.csv").stdout);
        let of_run = place.table("run/predictions.csv");
        assert_eq!(table.len(), of_run.len());
        for (row, run) in table[1..].iter().zip(&of_run[1..]) {
            let (got, want) = (numbers(&row[2..]), numbers(&run[1..]));
            got.iter().zip(&want).for_each(|(got, want)| assert_near(*got, *want, 1e-5)); // f32, batches of other sizes
        }
        std::fs::remove_file(place.path("run/rotation.safetensors")).unwrap();
        place.refuses("predict run --input more.csv", &["rotation.safetensors"]);
    }
}

#[test]
fn a_rotation_that_is_no_rotation_is_refused() {
    let place = Place::new();
    place.write("pets.csv", pets(60)).write("more.csv", pets(17));
    place.works(&format!("{TINY} {PETS} --set data.rotate=principal --out run"));
    let path = place.path("run/rotation.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.len() - 4;
    bytes[end..].copy_from_slice(&7f32.to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    place.refuses("predict run --input more.csv", &["rotation.safetensors", "orthogonal"]);
}

#[test]
fn predictions_replace_nothing_that_the_user_did_not_name_as_such() {
    let place = classification();
    let printed = place.works("predict run --input more.csv").stdout;
    assert_eq!(place.works("predict run --input more.csv --out -").stdout, printed);
    place.write("mine.txt", "mine");
    place.refuses("predict run --input more.csv --out mine.txt", &["--out `mine.txt` exists", "--force"]);
    place.refuses("predict run --input more.csv --out run --force", &["--out `run` is a directory"]);
    place.works("predict run --input more.csv --out mine.txt --force");
    assert_eq!(place.text("mine.txt"), printed);
}

#[cfg(unix)]
#[test]
fn predictions_follow_no_link_and_are_streamed_into_pipes_and_devices() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let place = classification();
    let printed = place.works("predict run --input more.csv").stdout;
    place.write("elsewhere.txt", "mine");
    symlink(place.path("elsewhere.txt"), place.path("link.csv")).unwrap();
    for force in ["", " --force"] {
        place.refuses(&format!("predict run --input more.csv --out link.csv{force}"), &["--out `link.csv` is a link"]);
    }
    assert_eq!(place.text("elsewhere.txt"), "mine");
    place.works("predict run --input more.csv --out /dev/null");
    assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    #[cfg(target_os = "linux")]
    place.fails("predict run --input more.csv --out /dev/full", &["cannot write /dev/full"]);
    let pipe = place.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    place.works("predict run --input more.csv --out pipe");
    assert_eq!(reader.join().unwrap(), printed);
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn json_lines_hold_what_the_table_holds_with_classes_by_name() {
    let place = classification();
    let table = cells(&place.works("predict run --input more.csv").stdout);
    let lines = place.works("predict run --input more.csv --format jsonl").stdout;
    assert_eq!(lines.lines().count(), table.len() - 1);
    for (line, row) in lines.lines().zip(&table[1..]) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let keys: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["prediction", "confidence", "probabilities"]);
        assert_eq!(line["prediction"], row[0]);
        assert_eq!(line["confidence"].as_f64(), row[1].parse().ok());
        for (class, cell) in ["cat", "dog", "eel"].into_iter().zip(&row[2..]) {
            assert_eq!(line["probabilities"][class].as_f64(), cell.parse().ok());
        }
    }
    place.works("predict run --input more.csv --format jsonl --out p.jsonl");
    assert_eq!(place.text("p.jsonl"), lines);
}

#[test]
fn sets_and_intervals_are_in_json_lines_as_lists_and_ends() {
    let place = Place::new();
    place.write("pets.csv", pets(60)).write("more.csv", pets(17)).write("prices.csv", prices(60));
    place.works(&format!("{TINY} {PETS} --set partition.calibration=0.3 --out run"));
    // 18 calibration rows are too few for the level 0.99: every set is everything.
    for (options, everything) in [("", false), (" --level 0.99", true)] {
        let table = cells(&place.works(&format!("predict run --input more.csv{options}")).stdout);
        let lines = place.works(&format!("predict run --input more.csv --format jsonl{options}")).stdout;
        for (line, row) in lines.lines().zip(&table[1..]) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let names: Vec<&str> = line["set"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
            assert_eq!(names.join("|"), row[5]);
            assert!(!everything || names.len() == 3);
        }
    }
    place.write("more.csv", prices(17));
    place.works(&format!("{TINY} {PRICES} --set partition.calibration=0.3 --out priced"));
    let table = cells(&place.works("predict priced --input more.csv").stdout);
    for (options, bounded) in [("", true), (" --level 0.99", false)] {
        let lines = place.works(&format!("predict priced --input more.csv --format jsonl{options}")).stdout;
        for (line, row) in lines.lines().zip(&table[1..]) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["mean"].as_f64(), row[0].parse().ok());
            let ends = [&line["interval"]["lower"], &line["interval"]["upper"]];
            match bounded {
                true => assert_eq!(ends.map(|end| end.as_f64().unwrap()).to_vec(), numbers(&row[2..])),
                false => assert!(ends.iter().all(|end| end.is_null()), "{line}"),
            }
        }
    }
}

#[test]
fn further_columns_come_after_the_others_which_do_not_change() {
    let place = classification();
    let plain = place.works("predict run --input more.csv").stdout;
    let more = place.works("predict run --input more.csv --columns mutual_information,entropy").stdout;
    let (plain, more) = (cells(&plain), cells(&more));
    assert_eq!(more[0].join(","), "prediction,confidence,p_0,p_1,p_2,mutual_information,entropy");
    let of_run = place.table("run/uncertainty.csv");
    for (row, with) in plain.iter().zip(&more).skip(1) {
        assert_eq!(row[..], with[..5]);
        let entropy: f64 = numbers(&row[2..]).iter().map(|p| -p * p.ln()).sum();
        assert_near(numbers(&with[6..])[0], entropy, 1e-12);
    }
    for (row, with) in of_run.iter().zip(&more).skip(1) {
        assert_near(numbers(&with[5..6])[0], numbers(row)[0], 1e-6); // f32, batches of other sizes
    }
    for (columns, words) in [
        ("aleatoric_sd", ["`aleatoric_sd` is of a regression", "entropy, mutual_information and outside"]),
        ("entropy,entropy", ["`entropy` twice", ""]),
        ("variance", ["invalid value 'variance'", "mutual_information"]),
    ] {
        place.refuses(&format!("predict run --input more.csv --columns {columns}"), &words);
    }
}

#[test]
fn the_parts_of_a_standard_deviation_add_up_as_variances() {
    let place = regression();
    let table = cells(&place.works("predict run --input more.csv --columns aleatoric_sd,epistemic_sd").stdout);
    assert_eq!(table[0].join(","), "mean,sd,aleatoric_sd,epistemic_sd");
    let of_run = place.table("run/predictions.csv");
    for (row, run) in table[1..].iter().zip(&of_run[1..]) {
        let [_, sd, aleatoric, epistemic] = numbers(row)[..] else { panic!("{row:?}") };
        assert_near(sd * sd, aleatoric * aleatoric + epistemic * epistemic, 1e-9 * sd * sd);
        let noise: Vec<f64> = numbers(&run[1..]).chunks_exact(2).map(|pair| 1.0 / pair[1]).collect();
        let mean = noise.iter().sum::<f64>() / noise.len() as f64;
        assert_near(aleatoric, mean.sqrt(), 1e-4); // f32 of numbers around 100
    }
    place.refuses(
        "predict run --input more.csv --columns entropy",
        &["`entropy` is of a classification", "epistemic_sd"],
    );
}

/// The mean of a column of [`pets`] and the sixfold of its standard deviation (divisor n).
fn usual(column: usize) -> (f64, f64) {
    let table = cells(&pets(60));
    let values: Vec<f64> = table[1..].iter().map(|row| row[column].parse().unwrap()).collect();
    let mean = values.iter().sum::<f64>() / 60.0;
    (mean, 6.0 * (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 60.0).sqrt())
}

#[test]
fn features_far_outside_those_of_the_training_are_named() {
    let place = Place::new();
    place.write("pets.csv", pets(60)).write("more.csv", pets(17));
    place.works(&format!("{TINY} {PETS} --set data.normalise=standard --out run"));
    let ((width, w), (height, h)) = (usual(0), usual(2));
    let rows = [(width, height), (width + 1.001 * w, height), (width + 0.999 * w, height - 1.001 * h), (1e6, -1e6)];
    let text: String = rows.iter().map(|(width, height)| format!("{width},{height}\n")).collect();
    place.write("new.csv", format!("width,height\n{text}"));
    let printed = place.works("predict run --input new.csv --columns outside");
    let table = cells(&printed.stdout);
    let outside: Vec<&str> = table.iter().map(|row| row[5].as_str()).collect();
    assert_eq!(outside, ["outside", "", "width", "height", "width|height"]);
    assert!(
        printed.stderr.contains("3 of 4 rows have a feature more than 6 standard deviations"),
        "{}",
        printed.stderr
    );
    let lines = place.works("predict run --input new.csv --columns outside --format jsonl").stdout;
    assert!(lines.lines().last().unwrap().ends_with(r#""outside":["width","height"]}"#), "{lines}");
    // The note without the column.
    let printed = place.works("predict run --input new.csv");
    assert!(printed.stderr.contains("3 of 4 rows have a feature more than 6"), "{}", printed.stderr);
    assert!(printed.stdout.starts_with("prediction,confidence,p_0,p_1,p_2\n"), "{}", printed.stdout);
    assert!(!place.works("predict run --input more.csv").stderr.contains("have a feature"));

    // With smallest and largest values: further from them than they are from each other.
    place.works(&format!("{TINY} {PETS} --set data.normalise=minmax --out ranged"));
    let table = cells(&pets(60));
    let values = table[1..].iter().map(|row| row[0].parse::<f64>().unwrap());
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    let rows =
        [low - 0.99 * (high - low), low - 1.01 * (high - low), high + 0.99 * (high - low), high + 1.01 * (high - low)];
    place.write("new.csv", format!("width,height\n{}", rows.map(|width| format!("{width},0\n")).concat()));
    let table = cells(&place.works("predict ranged --input new.csv --columns outside").stdout);
    assert_eq!(table.iter().map(|row| row[5].as_str()).collect::<Vec<_>>(), ["outside", "", "width", "", "width"]);

    place.works(&format!("{TINY} {PETS} --set data.normalise=none --out plain"));
    place.refuses("predict plain --input new.csv --columns outside", &["plain/model.json", "data.normalise"]);
}

#[test]
fn a_run_whose_config_is_empty_predicts_nothing() {
    let place = classification();
    place.write("run/config.toml", "\n");
    for command in ["predict run --input more.csv", "evaluate run --input more.csv", "report run --out page"] {
        place.refuses(command, &["run/config.toml: it is empty; a run writes all of its keys there"]);
    }
}

#[test]
fn a_config_that_was_changed_after_the_run_is_noted() {
    let place = classification();
    let note = "run/config.toml was changed since the run has ended; new rows are read and predicted as it says now";
    let predicted = "predict run --input more.csv --force --out p.csv";
    assert!(!place.works(predicted).stderr.contains("was changed since"));
    let config = place.text("run/config.toml");
    assert!(config.contains("missing_values = "));
    let without: Vec<&str> = config.lines().filter(|line| !line.starts_with("missing_values")).collect();
    place.write("run/config.toml", without.join("\n"));
    for command in [predicted, "predict run --input more.csv --out -"] {
        let printed = place.works(command).stderr;
        assert!(printed.contains(note), "{printed}");
    }
}

#[test]
fn a_header_of_numbers_with_a_name_of_the_run_is_no_row() {
    let place = Place::new();
    let row = |i: usize| format!("{},{},{}\n", i, i * i % 17, ["a", "b"][i % 2]);
    place.write("years.csv", "2019,2020,y\n".to_owned() + &(0..40).map(row).collect::<String>());
    let keys = "--set data.kind=csv --set data.path=years.csv --set data.target=y --set data.header=yes --set rounds=1 \
                --set partition.clients=1 --set algorithm.local_steps=1 --set algorithm.particles=2";
    place.works(&format!("train --quiet {keys} --out run"));
    place.write("other.csv", "2021,2019\n5,1\n6,2\n");
    place.refuses("predict run --input other.csv", &["no column `2020`"]);
    // In any order, and without a header by position.
    place.write("turned.csv", "2020,2019\n1,5\n2,6\n").write("bare.csv", "5,1\n6,2\n");
    let [turned, bare] = ["turned", "bare"].map(|file| place.works(&format!("predict run --input {file}.csv")).stdout);
    assert_eq!((turned.lines().count(), &turned), (3, &bare));
}
