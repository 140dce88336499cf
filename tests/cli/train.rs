//! `fedstein train`: its output, its files, and that the same arguments give the same run.

use std::io::pipe;
use std::path::Path;

use serde_json::Value;

use super::place::{Place, TINY, assert_near, numbers, pets, works};

/// All files of a run of a classification.
const FILES: [&str; 11] = [
    "checkpoint",
    "config.toml",
    "model.json",
    "particles.safetensors",
    "partition.txt",
    "predictions.csv",
    "provenance.json",
    "report",
    "rounds.csv",
    "summary.json",
    "uncertainty.csv",
];

/// `rounds.csv` without the columns of times.
fn rounds_but_seconds(place: &Place, run: &str) -> Vec<Vec<String>> {
    let mut table = place.table(&format!("{run}/rounds.csv"));
    let (seconds, evaluation) = (table[0].len() - 2, table[0].len() - 1);
    assert_eq!([&table[0][seconds], &table[0][evaluation]], ["seconds", "evaluation_seconds"]);
    let of = |row: &[String]| [seconds, evaluation].map(|at| row[at].parse::<f64>().unwrap());
    assert!(table[1..].iter().map(|row| of(row)).all(|[all, part]| (0.0..=all).contains(&part)), "{table:?}");
    table.iter_mut().for_each(|row| row.truncate(seconds));
    table
}

#[track_caller]
fn assert_same_run(place: &Place, a: &str, b: &str) {
    assert_eq!(rounds_but_seconds(place, a), rounds_but_seconds(place, b));
    for file in ["particles.safetensors", "predictions.csv", "uncertainty.csv", "model.json"] {
        assert!(place.bytes(&format!("{a}/{file}")) == place.bytes(&format!("{b}/{file}")), "{file} differs");
    }
}

/// The JSON objects of `--json`.
fn json_rounds(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn the_built_in_experiment_reaches_the_accuracy_it_promises() {
    let place = Place::new();
    let printed = place.works("train");
    let summary = place.json("runs/digits-newton-bnn/summary.json");
    let accuracy = summary["evaluation"]["accuracy"].as_f64().unwrap();
    assert!(accuracy >= 0.95, "{accuracy}");
    assert!(printed.stdout.contains(&format!("{accuracy:.4}   of the ensemble")), "{}", printed.stdout);
    assert!(printed.stdout.ends_with("report  runs/digits-newton-bnn/report/report.html\n"), "{}", printed.stdout);
    assert_eq!(place.table("runs/digits-newton-bnn/rounds.csv").len(), 1 + 60);
}

#[test]
fn training_prints_progress_on_standard_error_and_the_table_on_standard_output() {
    let printed = Place::new().works(&format!("{TINY} --out run"));
    for word in ["accuracy", "nll", "ece", "brier", "test rows: 359", "report  run/report/report.html"] {
        assert!(printed.stdout.contains(word), "{}", printed.stdout);
    }
    for word in ["1438 rows of digits at 10 clients (iid)", "round 1/2  client 0", "round 2/2  client 1", "s left"] {
        assert!(printed.stderr.contains(word), "{}", printed.stderr);
    }
}

#[test]
fn training_says_where_the_model_is_no_better_than_one_prediction_for_all_rows() {
    let place = Place::new();
    // The feature says nothing of the label.
    let rows: String =
        (0..200).map(|i| format!("{},{}\n", (i * 37) % 101, ["no", "yes"][usize::from(i % 3 == 0)])).collect();
    place.write("t.csv", format!("x,label\n{rows}"));
    let printed =
        place.works("train --set data.kind=csv --set data.path=t.csv --set data.target=label --set rounds=2 --out run");
    let warning = "The model is no more often right than always naming the most frequent class";
    let text = place.json("run/report/report.json")["verdict"]["warning"].as_str().unwrap().to_owned();
    assert!(text.starts_with(warning), "{text}");
    assert!(printed.stdout.contains(&format!("\n{text}\n\nreport  run/")), "{}", printed.stdout);
    let printed = place.works("evaluate run --input t.csv");
    assert!(printed.stdout.contains("always naming the most frequent class"), "{}", printed.stdout);
    // A model with skill has no such line.
    assert!(!place.works(&format!("{TINY} --set rounds=20 --out run2")).stdout.contains("most frequent class"));
}

#[test]
fn json_prints_one_object_per_round_and_nothing_else_on_standard_output() {
    let place = Place::new();
    let rounds = json_rounds(&place.works(&format!("{TINY} --out run --json")).stdout);
    assert_eq!(rounds.len(), 2);
    let (table, summary) = (place.table("run/rounds.csv"), place.json("run/summary.json"));
    for (index, round) in rounds.iter().enumerate() {
        assert_eq!((&round["round"], &round["clients"]), (&Value::from(index + 1), &Value::from(vec![index])));
        for key in ["accuracy", "nll", "ece", "brier", "uplink_bytes", "downlink_bytes", "seconds"] {
            assert!(round[key].as_f64().is_some_and(f64::is_finite), "{key}: {round}");
        }
        // The same numbers as in the file.
        let accuracy = table[0].iter().position(|name| name == "accuracy").unwrap();
        assert_near(numbers(&table[index + 1][accuracy..=accuracy])[0], round["accuracy"].as_f64().unwrap(), 1e-15);
        // The headline metrics of the round stand in the summary too.
        let point = summary["rounds"][index].as_object().unwrap();
        assert!(point.keys().eq(["round", "accuracy", "nll", "ece", "rmse"]), "{point:?}");
        assert!(point.iter().all(|(key, value)| value == &round[key]), "{point:?}");
    }
}

#[test]
fn quiet_prints_nothing() {
    let printed = Place::new().works(&format!("{TINY} --quiet"));
    assert_eq!((printed.stdout.as_str(), printed.stderr.as_str()), ("", ""));
}

#[test]
fn a_run_leaves_its_files_and_no_other() {
    let place = Place::new();
    place.works(&format!("{TINY} --out runs/a --quiet"));
    assert_eq!(place.names("."), ["runs"]);
    assert_eq!(place.names("runs"), ["a"]);
    assert_eq!(place.names("runs/a"), FILES);
    let tables = ["MODEL_CARD.md", "bins.csv", "confusion.csv"];
    let pictures = ["confusion.svg", "curves.svg", "partition.svg", "reliability.svg"];
    let mut report = [&tables[..], &pictures, &["report.html", "report.json"]].concat();
    report.sort_unstable();
    assert_eq!(place.names("runs/a/report"), report);

    let config: toml::Table = place.text("runs/a/config.toml").parse().unwrap();
    assert_eq!(config["algorithm"]["particles"].as_integer(), Some(4));
    assert_eq!(config["algorithm"]["curvature"].as_str(), Some("auto"), "defaults are written out");

    let bytes = place.bytes("runs/a/particles.safetensors");
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let shapes: Vec<Vec<usize>> = tensors.iter().map(|(_, tensor)| tensor.shape().to_vec()).collect();
    // 64 -> 50 -> 10 with biases, 4 particles.
    assert_eq!(shapes.iter().map(|shape| shape.iter().product::<usize>()).sum::<usize>(), 4 * (50 * 65 + 10 * 51));
    assert!(shapes.iter().all(|shape| shape[0] == 4) && shapes.contains(&vec![4, 50, 64]), "{shapes:?}");

    let rounds = place.table("runs/a/rounds.csv");
    assert_eq!(rounds.len(), 3);
    assert!(rounds.iter().all(|row| row.len() == rounds[0].len()));
    let predictions = place.table("runs/a/predictions.csv");
    assert_eq!(predictions[0].join(","), "label,p_0,p_1,p_2,p_3,p_4,p_5,p_6,p_7,p_8,p_9");
    assert_eq!(predictions.len(), 1 + 359);
    for row in &predictions[1..] {
        assert_near(numbers(&row[1..]).iter().sum(), 1.0, 1e-6); // f32 arithmetic
    }
    assert_eq!(place.table("runs/a/uncertainty.csv").len(), 1 + 359);
    let summary = place.json("runs/a/summary.json");
    assert_eq!(summary["evaluation"]["rows"], 359);
}

#[test]
fn the_same_seed_gives_the_same_run_on_any_number_of_threads() {
    let place = Place::new();
    place.works(&format!("{TINY} --out a --quiet"));
    works(place.command(&format!("{TINY} --out b --quiet")).env("RAYON_NUM_THREADS", "1"));
    works(place.command(&format!("{TINY} --out c --quiet")).env("RAYON_NUM_THREADS", "3"));
    assert_same_run(&place, "a", "b");
    assert_same_run(&place, "a", "c");
}

#[test]
fn several_clients_per_round_give_the_same_run_on_any_number_of_threads() {
    let place = Place::new();
    let fedavg = "train --set algorithm.kind=fedavg --set algorithm.local_steps=5 --set rounds=2 --set schedule.kind=random --set schedule.clients=4 --quiet";
    works(place.command(&format!("{fedavg} --out a")).env("RAYON_NUM_THREADS", "1"));
    works(place.command(&format!("{fedavg} --out b")).env("RAYON_NUM_THREADS", "4"));
    assert_same_run(&place, "a", "b");
}

#[test]
fn a_run_can_be_repeated_from_its_own_config() {
    let place = Place::new();
    place.write("pets.csv", pets(60));
    let own = "--set data.kind=csv --set data.path=pets.csv --set data.target=kind --set partition.clients=2";
    for (name, set) in [("digits", ""), ("pets", own), ("skewed", "--set partition.kind=dirichlet --seed 7")] {
        place.works(&format!("{TINY} {set} --out {name} --quiet"));
        place.works(&format!("train {name}/config.toml --out {name}-again --quiet"));
        assert_same_run(&place, name, &format!("{name}-again"));
        assert_eq!(place.text(&format!("{name}/config.toml")), place.text(&format!("{name}-again/config.toml")));
    }
}

#[test]
fn another_seed_gives_another_run() {
    let place = Place::new();
    place.works(&format!("{TINY} --out a --quiet"));
    place.works(&format!("{TINY} --out b --quiet --seed 2"));
    assert!(place.bytes("a/particles.safetensors") != place.bytes("b/particles.safetensors"));
    assert!(place.bytes("a/predictions.csv") != place.bytes("b/predictions.csv"));
    assert!(place.text("b/config.toml").contains("\nseed = 2\n"));
}

#[cfg(feature = "ndarray")]
#[test]
fn flex_and_ndarray_agree_on_the_first_round() {
    let place = Place::new();
    let first = |backend: &str| {
        let line = format!("{TINY} --backend {backend} --out {backend} --json");
        json_rounds(&place.works(&line).stdout).swap_remove(0)
    };
    let (flex, ndarray) = (first("flex"), first("ndarray"));
    let number = |round: &Value, key: &str| round[key].as_f64().unwrap();
    // f32 sums in another order: a row or two of 359 near a tie may change sides.
    assert_near(number(&flex, "accuracy"), number(&ndarray, "accuracy"), 2.0 / 359.0);
    assert_near(number(&flex, "nll"), number(&ndarray, "nll"), 1e-3);
    assert!(place.json("ndarray/summary.json")["facts"].to_string().contains("ndarray on "));
}

#[test]
fn every_algorithm_and_model_trains_from_the_command_line() {
    let place = Place::new();
    let short = "--set rounds=2 --set algorithm.local_steps=5 --quiet";
    for (name, set) in [
        ("svgd", "--set algorithm.kind=svgd --set algorithm.particles=4"),
        ("fedavg", "--set algorithm.kind=fedavg"),
        ("blr", "--set data.kind=twonorm --set model.kind=blr --set data.rows=200 --set partition.kind=label-ratio"),
        ("deep", "--set model.hidden=[8,6] --set model.activation=tanh --set partition.kind=labels-per-client"),
        ("waveform", "--set data.kind=waveform --set data.rows=100 --set kernel.kind=imq --set optimizer.kind=adam"),
    ] {
        place.works(&format!("train {set} --set data.rotate=none {short} --out {name}"));
        assert_eq!(place.names(name), FILES);
    }
}

#[test]
fn a_toy_density_trains_and_has_nothing_to_report() {
    let place = Place::new();
    place.works("train --set data.kind=mixture-1d --set model.kind=mixture --set algorithm.kind=dsvgd --set partition.clients=2 --set rounds=2 --set algorithm.local_steps=5 --out toy --quiet");
    assert_eq!(
        place.names("toy"),
        [
            "checkpoint",
            "config.toml",
            "model.json",
            "particles.safetensors",
            "partition.txt",
            "provenance.json",
            "rounds.csv",
            "summary.json"
        ]
    );
    place.refuses("report toy", &["toy/predictions.csv", "toy density"]);
    place.works(&format!("{TINY} --out digits --quiet"));
    place.refuses("report digits --compare toy", &["--compare `toy` has no predictions to compare", "toy density"]);
}

#[test]
fn a_run_leaves_a_table_of_what_each_client_trains_validates_and_is_tested_on() {
    let place = Place::new();
    let clients = "--set partition.kind=labels-per-client --set partition.clients=4 --set partition.labels=5 --set partition.validation=0.25";
    place.works(&format!("{TINY} {clients} --set data.classes=[0,1,2,3,4] --out run --quiet"));
    let table = place.text("run/partition.txt");
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0].last_chunk::<3>(), Some(&["rows", "validation", "test"]), "{table}");
    let partition = &place.json("run/summary.json")["partition"];
    for client in 0..4 {
        let cells: [usize; 3] = lines[client + 1].last_chunk::<3>().unwrap().map(|cell| cell.parse().unwrap());
        let counts = partition["counts"][client].as_array().unwrap();
        assert_eq!(counts.iter().map(|count| count.as_u64().unwrap()).sum::<u64>(), cells[0] as u64);
        assert_eq!(partition["validation"][client], cells[1]);
        assert_eq!(partition["test"][client], cells[2]);
        // Of the 901 digits from 0 to 4, 180 are for the test, and every client has all five.
        assert!((cells[2] == 180) && (cells[1] as f64 - (cells[0] + cells[1]) as f64 / 4.0).abs() <= 0.5, "{table}");
    }
}

#[test]
fn a_changed_kind_is_reported_with_the_keys_that_it_drops() {
    let printed = Place::new()
        .works("train --set algorithm.kind=fedavg --set rounds=1 --set algorithm.local_steps=2 --out run --json");
    let said = "algorithm.kind is now `fedavg`, which does not use the file's `algorithm.particles`";
    assert!(printed.stderr.contains(said), "{}", printed.stderr);
    assert_eq!(json_rounds(&printed.stdout).len(), 1);
}

#[test]
fn the_built_in_experiment_gives_way_to_the_defaults_where_other_data_are_named() {
    let place = Place::new();
    let short = "--set rounds=1 --set algorithm.local_steps=2 --set algorithm.particles=3";
    let printed = place.works(&format!("train --set data.kind=twonorm --set model.kind=blr {short} --out run"));
    assert!(printed.stderr.contains("the built-in experiment is on `digits`"), "{}", printed.stderr);
    let config: toml::Table = place.text("run/config.toml").parse().unwrap();
    assert_eq!(config["partition"]["kind"].as_str(), Some("iid"));
    assert_eq!(config["data"]["rotate"].as_str(), Some("none"));
    // Digits by name are the built-in experiment.
    let printed = place.works(&format!("train --set data.kind=digits {short} --out digits"));
    assert!(!printed.stderr.contains("the built-in experiment is on"), "{}", printed.stderr);
    let config: toml::Table = place.text("digits/config.toml").parse().unwrap();
    assert_eq!(config["partition"]["kind"].as_str(), Some("labels-per-client"));
}

#[test]
fn a_round_without_an_evaluation_has_no_numbers_and_the_last_one_always_has() {
    let place = Place::new();
    let line = format!("{TINY} --set rounds=3 --set evaluation.every=2 --out run --json");
    let rounds = json_rounds(&place.works(&line).stdout);
    let evaluated: Vec<bool> = rounds.iter().map(|round| round["accuracy"].is_f64()).collect();
    assert_eq!(evaluated, [false, true, true]);
    let columns = place.table("run/rounds.csv").iter().map(Vec::len).collect::<Vec<_>>();
    assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "{columns:?}");
}

#[test]
fn force_replaces_a_run_and_nothing_else() {
    let place = Place::new();
    place.works(&format!("{TINY} --out run --quiet"));
    let former = place.bytes("run/particles.safetensors");
    let again = format!("{TINY} --out run --quiet --seed 2");
    place.refuses(&again, &["`run`", "exists and is not empty", "--out", "--force"]);
    place.works(&format!("{again} --force"));
    assert!(place.bytes("run/particles.safetensors") != former);
    assert_eq!(place.names("run"), FILES);
    assert_eq!(place.names("."), ["run"]);
    // A run that fails does not change the files of the earlier one.
    place.refuses(&format!("{again} --force --set partition.clients=5000"), &["5000", "1438"]);
    place.fails(&format!("{again} --force --set optimizer.lr=1e30"), &["round 1, client 0", "optimizer.lr"]);
    // Files that belong to no run are never removed.
    place.write("run/thesis.tex", "years");
    place.refuses(&format!("{again} --force"), &["--force replaces only the directory of a run", "`thesis.tex`"]);
}

#[test]
fn a_run_may_be_written_to_the_working_directory() {
    let place = Place::new();
    place.works(&format!("{TINY} --out . --quiet"));
    assert_eq!(place.names("."), FILES);
    let former = place.bytes("particles.safetensors");
    place.fails(&format!("{TINY} --out . --force --set optimizer.lr=1e30"), &["round 1"]);
    place.works(&format!("{TINY} --out . --force --quiet --seed 2"));
    assert_eq!(place.names("."), FILES);
    assert!(place.bytes("particles.safetensors") != former);
}

#[test]
fn particles_that_diverge_fail_the_run_with_the_step_and_leave_nothing() {
    let words = ["round 1, client 0", "step", "not finite", "optimizer.lr"];
    Place::new().fails(&format!("{TINY} --out run --set optimizer.lr=1e30"), &words);
}

#[test]
fn a_closed_standard_output_is_not_a_failure() {
    let place = Place::new();
    place.works(&format!("{TINY} --out run --quiet"));
    place.write("rows.csv", format!("{}\n", ["1"; 64].join(",")));
    for line in [
        "--help",
        "data list",
        "data info mnist",
        "backends",
        "report run",
        "predict run --input rows.csv",
        &format!("{TINY} --out table"),
        &format!("{TINY} --out json --json"),
    ] {
        // Closed before the first byte is written, so that no write can succeed.
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let output = place.command(line).stdout(writer).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {stderr}");
        assert!(!stderr.contains("panicked") && !stderr.contains("error:"), "{line}: {stderr}");
    }
    // The files are complete nevertheless.
    assert_same_run(&place, "run", "table");
    assert_same_run(&place, "run", "json");
    assert_eq!(place.names("json"), FILES);
}

#[test]
fn a_method_of_plain_steps_takes_the_place_of_the_built_in_one() {
    let place = Place::new();
    let line = "train --set algorithm.kind=scaffold --set rounds=2 --set algorithm.local_steps=3 --out run";
    let printed = place.works(line).stderr;
    assert!(
        printed.contains("algorithm kind `scaffold` is defined by plain gradient steps: optimizer.kind is `sgd`"),
        "{printed}"
    );
    let config = place.text("run/config.toml");
    assert!(config.contains("kind = \"sgd\"") && config.contains("kind = \"labels-per-client\""), "{config}");
    // An optimiser that the user names is not replaced.
    place
        .refuses(&format!("{line}-b --set optimizer.kind=adagrad"), &["`scaffold` is defined by plain gradient steps"]);
}

#[test]
fn a_stopped_run_is_named_by_the_commands_that_need_another() {
    let place = Place::new();
    // What a run that is stopped after its second round leaves: a checkpoint, and no summary.
    place.works(&format!("{TINY} --set checkpoint.keep=true --out run --quiet"));
    let summary = place.bytes("run/summary.json");
    std::fs::remove_file(place.path("run/summary.json")).unwrap();
    let words = ["`run` has a run that was stopped after round 2", "fedstein train --resume run"];
    place.refuses(&format!("{TINY} --out run"), &words);
    place.refuses("report run", &words);
    place.write("run/summary.json", summary);
    place.refuses(&format!("{TINY} --out run"), &["`run`", "exists and is not empty"]);
}

#[test]
fn clients_that_never_train_are_noted_at_the_start_at_the_end_and_in_the_files() {
    let place = Place::new();
    let printed = place.works(&format!("{TINY} --set partition.clients=4 --out run"));
    let planned = "2 rounds of 1 are 2 visits, so that at least 2 of 4 clients never train";
    let (before, after) = printed.stderr.split_once("round 1/2").unwrap();
    assert!(before.contains(planned), "{before}");
    let found = "2 of 4 clients never trained (2, 3)";
    assert!(after.contains(found) && after.contains("of 1438 training rows were not used"), "{after}");
    let notes = place.json("run/summary.json")["notes"].to_string();
    assert!(notes.contains(found), "{notes}");
    for file in ["report.html", "report.json"] {
        assert!(place.text(&format!("run/report/{file}")).contains(found), "{file}");
    }
    // With a visit for each there is nothing to note.
    let printed = place.works(&format!("{TINY} --set partition.clients=2 --out all"));
    assert!(!printed.stderr.contains("never train"), "{}", printed.stderr);
    assert!(!place.json("all/summary.json")["notes"].to_string().contains("never train"));
}

#[test]
fn factors_that_take_features_for_uncorrelated_are_noted_where_the_features_are_as_they_are() {
    let place = Place::new();
    let said = |keys: &str, out: &str| {
        let printed = place.works(&format!("{TINY} --set algorithm.kind=newton-dsvgd {keys} --out {out}"));
        printed.stderr.contains("`data.rotate` = \"principal\" makes them so")
    };
    assert!(said("--set data.rotate=none", "network"));
    assert!(said("--set data.rotate=none --set algorithm.curvature=diagonal", "diagonal"));
    assert!(!said("--set data.rotate=principal", "rotated"));
    // Features that are independent have nothing to be told of.
    assert!(!said("--set data.kind=twonorm --set data.rotate=none", "independent"));
    // A convolution has the whole second moment of its patches, and pixels that are not rotated.
    let layers = "layers = [\"conv 2 3x3\", \"relu\", \"global-avg-pool\"]";
    place.write("image.toml", format!("[data]\nkind = \"digits\"\n[model]\nkind = \"stack\"\n{layers}\n"));
    assert!(!said("image.toml", "image"));
    // The whole matrix of a logistic regression has the correlations in it.
    let logistic = "--set data.kind=twonorm --set model.kind=blr";
    assert!(!said(logistic, "logistic"));
    let printed = place.works(&format!("{TINY} --set algorithm.kind=dsvgd --out dsvgd"));
    assert!(!printed.stderr.contains("data.rotate"), "{}", printed.stderr);
}

/// A table of pets from wards with names; row i belongs to ward i mod 3.
fn wards(rows: usize) -> String {
    let line = |(place, line): (usize, &str)| {
        let ward = match place {
            0 => "ward",
            place => ["\"North, East\"", "St. Mary's", "south"][place % 3],
        };
        format!("{line},{ward}\n")
    };
    pets(rows).lines().enumerate().map(line).collect()
}

#[test]
fn natural_clients_are_called_by_their_names_in_everything_that_is_shown() {
    let place = Place::new();
    place.write("rows.csv", wards(120));
    let data = "--set data.kind=csv --set data.path=rows.csv --set data.target=kind --set data.client_column=ward \
                --set partition.kind=by-column";
    let keys = format!("{data} --set evaluation.personal=true --set algorithm.kind=dsvgd");
    let train = TINY.replace("--set partition.kind=iid", "");
    let printed = place.works(&format!("{train} {keys} --out run"));
    // Names are sorted; there are two rounds and three clients.
    for words in ["round 1/2  client North, East  ", "round 2/2  client St. Mary's  ", "never trained (south)"] {
        assert!(printed.stderr.contains(words), "{words}: {}", printed.stderr);
    }
    let partition = place.text("run/partition.txt");
    for words in ["client", "name", "0  North, East", "1   St. Mary's", "2        south"] {
        assert!(partition.contains(words), "{words}: {partition}");
    }
    let clients = place.text("run/clients.csv");
    let lines: Vec<&str> = clients.lines().collect();
    assert!(lines[0].starts_with("client,name,rows,visits,accuracy,"), "{clients}");
    assert!(lines[1].starts_with("0,\"North, East\",") && lines[3].starts_with("2,south,"), "{clients}");
    // One client in each of two rounds.
    let visits = lines[1..].iter().map(|line| line.rsplit(',').nth(6).unwrap());
    assert_eq!(visits.collect::<Vec<_>>(), ["1", "1", "0"]);
    let summary = place.json("run/summary.json");
    assert_eq!(summary["partition"]["clients"][1], "St. Mary's");
    assert!(place.text("run/report/partition.svg").contains("St. Mary"));
    let far = format!("{train} {keys} --out far --set optimizer.lr=1e30");
    place.fails(&far, &["The first that failed: round 1, client 0: North, East: step ", "optimizer.lr"]);

    // Clients without names have numbers, and their files no column for names.
    place.works(&format!("{TINY} --set evaluation.personal=true --set algorithm.kind=dsvgd --out numbers"));
    assert!(place.text("numbers/clients.csv").starts_with("client,rows,visits,accuracy,"));
    assert!(place.json("numbers/summary.json")["partition"]["clients"].is_null());

    // The sites that the rows are split into have the names as far as a site can.
    let files = place.works(&format!("site split {data} --out sites"));
    assert!(files.stdout.starts_with("3 sites"), "{}", files.stdout);
    let names = ["North--East", "St.-Mary-s", "south"];
    for (index, name) in names.iter().enumerate() {
        assert!(place.text(&format!("sites/{index}/site.toml")).starts_with(&format!("name = \"{name}\"\n")));
    }
    let sites = "train --quiet sites/run.toml --sites sites/0/site.toml,sites/1/site.toml,sites/2/site.toml";
    let printed = place.works(&format!(
        "{} --out federation --set rounds=1 --set algorithm.local_steps=2",
        &sites.replace(" --quiet", "")
    ));
    assert!(printed.stderr.contains("round 1/1  client North--East  "), "{}", printed.stderr);
}

#[test]
fn a_personalised_method_prints_the_clients_own_predictors_first() {
    let place = Place::new();
    let own = "each client's personal predictor on its own test rows";
    let keys = "--set evaluation.personal=true --set partition.clients=2";
    let printed = place.works(&format!("{TINY} {keys} --set algorithm.kind=fedwba --out a")).stdout;
    let (first, second) = printed.split_once("the server's particles, test rows: 359").unwrap();
    assert!(first.contains(own) && !second.contains(own), "{printed}");
    let order = |run: &str| {
        let page = place.text(&format!("{run}/report/report.html"));
        let own = page.find("Personalised predictions").unwrap();
        (own < page.find("Reliability diagram of").unwrap(), page.contains("s particles</h2>"))
    };
    assert_eq!(order("a"), (true, true));
    let printed = place.works(&format!("{TINY} {keys} --set algorithm.kind=dsvgd --out b")).stdout;
    let (first, second) = printed.split_once("test rows: 359").unwrap();
    assert!(!first.contains(own) && second.contains(own), "{printed}");
    assert_eq!(order("b"), (false, false));
    // The server's particles of a client alone are not trained.
    let of_run = place.works(&format!("{TINY} {keys} --set algorithm.kind=local-svgd --out c"));
    assert!(
        of_run.stderr.contains("  personal accuracy ") && !of_run.stderr.contains("  global "),
        "{}",
        of_run.stderr
    );
    let printed = of_run.stdout;
    assert!(
        printed.contains(own) && !printed.contains("test rows: 359") && !printed.contains("often right"),
        "{printed}"
    );
    let card = place.text("c/report/MODEL_CARD.md");
    let last = &place.json("c/summary.json")["personal"]["last"]["numbers"];
    assert!(
        card.contains(&format!("value: {}", last["personal_accuracy"])) && !card.contains("most frequent"),
        "{card}"
    );
    let verdict = &place.json("c/report/report.json")["verdict"];
    assert_eq!((&verdict["kind"], verdict.get("warning")), (&"not judged".into(), None), "{verdict}");
    assert!(verdict["text"].as_str().unwrap().starts_with("Algorithm kind `local-svgd` publishes parameters of which"));
    // Where nobody scored the clients, nothing is said of the method.
    let alone = keys.replace("personal=true", "personal=false");
    let of_run = place.works(&format!("{TINY} {alone} --set algorithm.kind=local-svgd --out d"));
    assert!(of_run.stdout.starts_with("\nreport  ") && of_run.stdout.lines().count() == 2, "{}", of_run.stdout);
    assert!(of_run.stderr.contains("set `evaluation.personal` = true for the scores"), "{}", of_run.stderr);
    assert!(!of_run.stderr.contains("  accuracy ") && !of_run.stderr.contains("  NLL "), "{}", of_run.stderr);
    // Of other rows neither, unless a client's predictor predicts them.
    let pixels: String = (0..64).map(|pixel| format!("row{}_col{},", pixel / 8, pixel % 8)).collect();
    let row = |row: usize| (0..64).map(|pixel| format!("{},", (pixel * 5 + row) % 17)).collect::<String>();
    let rows: String = (0..30).map(|at| format!("{}{}\n", row(at), at % 10)).collect();
    place.write("rows.csv", format!("{pixels}label\n{rows}"));
    let judged = |options: &str, out: &str| {
        place.works(&format!("evaluate c --input rows.csv --target label {options} --out {out}"));
        place.json(&format!("{out}/report/report.json"))["verdict"]["kind"].clone()
    };
    assert_eq!(judged("", "e"), "not judged");
    assert_ne!(judged("--client 1", "f"), "not judged");
}

#[test]
fn the_files_of_a_run_are_listed_where_users_look_for_them() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let place = Place::new();
    place.works("train --quiet --set rounds=1 --set algorithm.local_steps=1 --set algorithm.particles=2");
    let readme = page("README.md");
    let (_, listed) = readme.split_once("`runs/digits-newton-bnn/` holds").unwrap();
    let (listed, _) = listed.split_once("\n\n").unwrap();
    let (pages, sentence) = (page("docs/introduction.md"), listed.to_owned());
    for name in place.names("runs/digits-newton-bnn") {
        for (page, text) in [("README.md", &sentence), ("docs/introduction.md", &pages)] {
            assert!(text.contains(&format!("`{name}")), "{page} does not list {name}");
        }
    }
}

#[test]
fn the_config_of_a_run_repeats_it_from_another_directory() {
    let place = Place::new();
    place.write("rows/mine.csv", pets(40)).write("rows/test.csv", pets(20)).write("elsewhere/empty", "");
    let keys =
        "--set data.kind=csv --set data.path=rows/mine.csv --set data.test_path=rows/test.csv --set data.target=kind";
    place.works(&format!("{TINY} {keys} --set partition.clients=2 --out run"));
    let config: toml::Table = place.text("run/config.toml").parse().unwrap();
    assert_eq!(config["data"]["path"].as_str().map(Path::new), Some(&*place.path("rows/mine.csv")));
    works(place.command("train ../run/config.toml --out ../again").current_dir(place.path("elsewhere")));
    assert_same_run(&place, "run", "again");
}
