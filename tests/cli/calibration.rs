//! Calibration rows from a training to predictions: the temperature, the sets and the intervals.

use super::place::{Place, TINY, assert_near, cells, numbers, prices};
use serde_json::Value;

/// The built-in digits at four clients of unlike classes, of which a fifth of the rows is held out.
const DIGITS: &str = "train --quiet --set rounds=2 --set algorithm.local_steps=20 --set algorithm.particles=4 --set data.rotate=none \
                      --set partition.kind=dirichlet --set partition.clients=4 --set partition.calibration=0.2";

const PRICES: &str = "--set data.kind=csv --set data.path=prices.csv --set data.test_path=more.csv --set data.target=price --set data.task=regression --set partition.clients=2 --set partition.calibration=0.3 --quiet";

/// The threshold of a level in a run's `model.json`.
fn threshold(model: &Value, level: f64) -> Option<f64> {
    let kept = model["calibration"]["conformal"]["thresholds"].as_array().unwrap();
    let of_level = kept.iter().find(|pair| pair[0] == level).unwrap();
    of_level[1].as_f64()
}

/// softmax(ln p / T).
fn scaled(probabilities: &[f64], temperature: f64) -> Vec<f64> {
    let powers: Vec<f64> = probabilities.iter().map(|p| p.max(1e-12).powf(1.0 / temperature)).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|power| power / sum).collect()
}

#[test]
fn digits_have_a_temperature_and_sets_that_predict_uses_and_the_report_shows() {
    let place = Place::new();
    place.works(&format!("{DIGITS} --set calibration.conformal=lac --out run"));
    let (model, summary) = (place.json("run/model.json"), place.json("run/summary.json"));
    let temperature = model["calibration"]["temperature"].as_f64().unwrap();
    let limit = threshold(&model, 0.9).unwrap();
    assert_eq!(threshold(&model, 0.99).is_some(), model["calibration"]["rows"].as_u64().unwrap() >= 99);
    // The sets of the test rows, from the run's own predictions.
    let table = place.table("run/predictions.csv");
    let (mut covered, mut size, mut nll) = (0, 0, [0.0, 0.0]);
    for row in &table[1..] {
        let (label, p) = (row[0].parse::<usize>().unwrap(), numbers(&row[1..]));
        let p_t = scaled(&p, temperature);
        covered += usize::from(1.0 - p_t[label] <= limit);
        size += p_t.iter().filter(|p| 1.0 - *p <= limit).count();
        nll[0] -= p[label].max(1e-12).ln();
        nll[1] -= p_t[label].max(1e-12).ln();
    }
    let rows = table.len() - 1;
    let (all, of_temperature) = (&summary["calibration"]["sets"]["all"], &summary["calibration"]["temperature"]);
    assert_eq!((all["rows"].as_u64(), all["covered"].as_u64()), (Some(rows as u64), Some(covered as u64)));
    assert_near(all["mean_size"].as_f64().unwrap(), size as f64 / rows as f64, 1e-12);
    for (at, nll) in nll.into_iter().enumerate() {
        assert_near(of_temperature["test"][at]["nll"].as_f64().unwrap(), nll / rows as f64, 1e-9);
        // The map is of the mean prediction: it says nothing of single particles.
        for of_particles in
            ["accuracy_mean_particle", "nll_mean_particle", "aleatoric", "mutual_information", "disagreement"]
        {
            assert!(of_temperature["test"][at][of_particles].is_null(), "{of_particles}");
            assert!(summary["evaluation"][of_particles].is_number(), "{of_particles}");
        }
    }
    // The coverage of so many test rows is near the level, whatever the model: 0.9 ± 0.1 is beyond five deviations.
    assert_near(covered as f64 / rows as f64, 0.9, 0.1);
    assert_eq!(summary["calibration"]["sets"]["clients"].as_array().unwrap().len(), 4);
    assert_eq!(summary["calibration"]["sets"]["classes"].as_array().unwrap().len(), 10);
    let page = place.text("run/report/report.html");
    assert!(page.contains("Calibration rows") && page.contains("Client, worst first") && page.contains("at T"));
    assert!(place.json("run/report/report.json")["run"]["calibration"] == summary["calibration"]);

    let pixels: Vec<String> = (0..64).map(|pixel| format!("row{}_col{}", pixel / 8, pixel % 8)).collect();
    let values: Vec<String> = (0..64).map(|pixel| (pixel * 5 % 17).to_string()).collect();
    place.write("new.csv", format!("{}\n{}\n{}\n", pixels.join(","), vec!["7"; 64].join(","), values.join(",")));
    let printed = place.works("predict run --input new.csv");
    assert!(printed.stderr.contains("T = ") && printed.stderr.contains("--raw"), "{}", printed.stderr);
    let (predicted, raw) = (cells(&printed.stdout), cells(&place.works("predict run --input new.csv --raw").stdout));
    assert_eq!(predicted[0].last().unwrap(), "set");
    for (row, raw) in predicted[1..].iter().zip(&raw[1..]) {
        let (p_t, p) = (numbers(&row[2..12]), numbers(&raw[2..12]));
        p_t.iter().zip(scaled(&p, temperature)).for_each(|(got, want)| assert_near(*got, want, 1e-12));
        let set: Vec<String> =
            (0..10).filter(|class| 1.0 - p_t[*class] <= limit).map(|class| class.to_string()).collect();
        assert_eq!((&row[12], &raw[12]), (&set.join("|"), &set.join("|")));
    }
    let sets = |level: &str| {
        let table = cells(&place.works(&format!("predict run --input new.csv --level {level}")).stdout);
        table[1..].iter().map(|row| row[12].split('|').filter(|name| !name.is_empty()).count()).sum::<usize>()
    };
    assert!(sets("0.5") <= sets("0.9") && sets("0.9") <= sets("0.98"));
    place.refuses("predict run --input new.csv --level 0.93", &["level 0.93: ", "0.5, 0.6", "calibration.level"]);
    place.refuses("predict run --input new.csv --level 1.5", &["between 0 and 1"]);
}

#[test]
fn a_run_that_goes_on_ends_with_the_bytes_of_one_that_did_not_stop_and_rounds_know_nothing_of_the_keys() {
    let place = Place::new();
    place.works(&format!("{DIGITS} --out whole"));
    place.works(&format!("{DIGITS} --set rounds=1 --out stopped"));
    place.works("train --resume stopped --set rounds=2 --quiet");
    for name in ["model.json", "particles.safetensors", "predictions.csv"] {
        assert!(place.bytes(&format!("whole/{name}")) == place.bytes(&format!("stopped/{name}")), "{name}");
    }
    place.works(&format!("{DIGITS} --set calibration.temperature=false --set calibration.conformal=none --out none"));
    assert!(place.bytes("whole/particles.safetensors") == place.bytes("none/particles.safetensors"));
    assert!(place.json("none/model.json").get("calibration").is_none());
    // A finished run gets other sets without a further round.
    place.works("train --resume none --set calibration.conformal=raps --set calibration.randomised=true --quiet");
    let kept = &place.json("none/model.json")["calibration"];
    assert_eq!((&kept["conformal"]["score"], &kept["conformal"]["seed"]), (&"raps".into(), &1.into()));
    assert!(place.bytes("whole/particles.safetensors") == place.bytes("none/particles.safetensors"));
    place.write("new.csv", format!("{}\n", vec!["7"; 64].join(",")));
    let sets = || place.works("predict none --input new.csv").stdout;
    assert_eq!(sets(), sets());
}

#[test]
fn a_run_without_calibration_rows_has_files_without_a_word_of_them() {
    let place = Place::new();
    place.works(&format!("{TINY} --quiet --set partition.clients=3 --out run"));
    for name in ["model.json", "summary.json", "report/report.json", "report/report.html", "partition.txt"] {
        let text = place.text(&format!("run/{name}"));
        // The resolved config in the report names the section.
        assert!(!text.contains("conformal\":") && !text.contains("<h2>Calibration rows</h2>"), "{name}");
    }
    assert!(place.json("run/model.json").get("calibration").is_none());
    assert!(place.json("run/summary.json").get("calibration").is_none());
    place.refuses("predict run --input run/rounds.csv --level 0.9", &["level 0.9: ", "partition.calibration"]);
}

#[test]
fn a_regression_has_intervals_at_the_level() {
    for score in ["normalised", "cqr"] {
        let place = Place::new();
        place.write("prices.csv", prices(200)).write("more.csv", prices(40));
        place.works(&format!("{TINY} {PRICES} --set calibration.conformal={score} --out run"));
        let table = cells(&place.works("predict run --input more.csv").stdout);
        assert_eq!(table[0].join(","), "mean,sd,lower,upper");
        let truth = place.table("more.csv");
        let (model, mut covered) = (place.json("run/model.json"), 0);
        let limit = threshold(&model, 0.9).unwrap();
        for (row, truth) in table[1..].iter().zip(&truth[1..]) {
            let [mean, sd, lower, upper] = numbers(row)[..] else { panic!("{row:?}") };
            if score == "normalised" {
                assert_near(upper - mean, limit * sd, 1e-9);
                assert_near(mean - lower, limit * sd, 1e-9);
            }
            covered += u64::from((lower..=upper).contains(&truth[2].parse::<f64>().unwrap()));
        }
        let all = &place.json("run/summary.json")["calibration"]["sets"]["all"];
        assert_eq!((all["covered"].as_u64(), all["rows"].as_u64()), (Some(covered), Some(40)), "{score}");
        // 60 calibration rows and 40 test rows: 0.9 ± 0.25 is beyond four deviations.
        assert_near(covered as f64 / 40.0, 0.9, 0.25);
    }
}

#[test]
fn too_few_calibration_rows_make_sets_of_everything_and_say_so() {
    let place = Place::new();
    let keys = "--set data.train_limit=60 --set partition.clients=2 --set partition.calibration=0.1 --quiet";
    place.works(&format!("{TINY} {keys} --out run"));
    let table = place.table("run/predictions.csv");
    assert!(table.len() > 1);
    assert_eq!(threshold(&place.json("run/model.json"), 0.9), None);
    assert!(place.text("run/report/report.html").contains("holds everything"));
    let pixels: Vec<String> = (0..64).map(|pixel| format!("row{}_col{}", pixel / 8, pixel % 8)).collect();
    place.write("new.csv", format!("{}\n{}\n", pixels.join(","), vec!["7"; 64].join(",")));
    let printed = place.works("predict run --input new.csv");
    assert!(
        printed.stdout.ends_with(",0|1|2|3|4|5|6|7|8|9\n") && printed.stderr.contains("too few"),
        "{}",
        printed.stderr
    );
}

#[test]
fn keys_that_do_not_fit_are_refused() {
    let place = Place::new();
    place.write("prices.csv", prices(60)).write("more.csv", prices(17));
    place.refuses(&format!("{TINY} {PRICES} --set calibration.conformal=lac"), &["calibration.conformal", "cqr"]);
    place.refuses(&format!("{TINY} --set calibration.conformal=lac"), &["partition.calibration", "0.2"]);
    place.refuses(
        &format!("{TINY} --set partition.calibration=0.2 --set calibration.conformal=cqr"),
        &["calibration.conformal", "lac"],
    );
    place.refuses(
        &format!("{TINY} --set partition.calibration=0.6 --set partition.validation=0.5"),
        &["partition.calibration", "less than 1 together with partition.validation"],
    );
    place.refuses(&format!("{TINY} --set calibration.level=1"), &["calibration.level", "less than 1"]);
}

/// The predictions of a run's test rows: labels and probabilities.
fn test_rows(place: &Place, run: &str) -> (Vec<usize>, Vec<Vec<f64>>) {
    let table = place.table(&format!("{run}/predictions.csv"));
    table[1..].iter().map(|row| (row[0].parse::<usize>().unwrap(), numbers(&row[1..]))).unzip()
}

/// Checks that NLL and sets of a run's report are those of its test rows after a map.
fn check_report(place: &Place, run: &str, title: &str, map: impl Fn(&[f64]) -> Vec<f64>) {
    let (labels, given) = test_rows(place, run);
    let mapped: Vec<Vec<f64>> = given.iter().map(|p| map(p)).collect();
    let nll = |of: &[Vec<f64>]| {
        let sum: f64 = of.iter().zip(&labels).map(|(p, label)| -p[*label].max(1e-12).ln()).sum();
        sum / labels.len() as f64
    };
    let (summary, model) = (place.json(&format!("{run}/summary.json")), place.json(&format!("{run}/model.json")));
    let (results, limit) = (&summary["calibration"], threshold(&model, 0.9).unwrap());
    assert!(results["temperature"].is_null() && model["calibration"].get("temperature").is_none());
    let of_map = &results["map"];
    assert!(of_map["nll_after"].as_f64().unwrap() < of_map["nll_before"].as_f64().unwrap());
    assert_near(of_map["test"][0]["nll"].as_f64().unwrap(), nll(&given), 1e-9);
    assert_near(of_map["test"][1]["nll"].as_f64().unwrap(), nll(&mapped), 1e-9);
    assert!(of_map["test"][1]["ece"].is_number() && of_map["test"][1]["brier"].is_number());
    // Sets are made from the probabilities without the map.
    let covered = given.iter().zip(&labels).filter(|(p, label)| 1.0 - p[**label] <= limit).count();
    assert_eq!(results["sets"]["all"]["covered"].as_u64(), Some(covered as u64));
    let page = place.text(&format!("{run}/report/report.html"));
    assert!(page.contains(title) && page.contains("without the map") && page.contains("with the map"));
}

/// The notes of a run.
fn notes(place: &Place, run: &str) -> String {
    place.json(&format!("{run}/summary.json"))["notes"].to_string()
}

#[test]
fn vector_scaling_is_kept_and_applied_and_with_too_few_rows_a_temperature_and_a_note_are_in_its_place() {
    let place = Place::new();
    place.works(&format!("{DIGITS} --out tempered"));
    // 288 calibration rows: more than 20 a class, fewer than 100.
    place.works(&format!("{DIGITS} --set calibration.map=vector --out run"));
    let kept = &place.json("run/model.json")["calibration"]["vector"];
    let of = |name: &str| -> Vec<f64> {
        kept[name].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    };
    let (scale, bias) = (of("scale"), of("bias"));
    assert_eq!((scale.len(), bias.len()), (10, 10));
    let map = |p: &[f64]| {
        let powers: Vec<f64> =
            p.iter().zip(&scale).zip(&bias).map(|((p, a), b)| (a * p.max(1e-12).ln() + b).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers.iter().map(|power| power / sum).collect::<Vec<_>>()
    };
    check_report(&place, "run", "Vector scaling", map);
    assert!(place.bytes("run/particles.safetensors") == place.bytes("tempered/particles.safetensors"));
    assert!(!notes(&place, "run").contains("calibration.map"));

    let pixels: Vec<String> = (0..64).map(|pixel| format!("row{}_col{}", pixel / 8, pixel % 8)).collect();
    let values: Vec<String> = (0..64).map(|pixel| (pixel * 5 % 17).to_string()).collect();
    place.write("new.csv", format!("{}\n{}\n{}\n", pixels.join(","), vec!["7"; 64].join(","), values.join(",")));
    let printed = place.works("predict run --input new.csv");
    assert!(
        printed.stderr.contains("after vector scaling") && printed.stderr.contains("without the map to hold"),
        "{}",
        printed.stderr
    );
    let (predicted, raw) = (cells(&printed.stdout), cells(&place.works("predict run --input new.csv --raw").stdout));
    for (row, raw) in predicted[1..].iter().zip(&raw[1..]) {
        let (got, want) = (numbers(&row[2..12]), map(&numbers(&raw[2..12])));
        got.iter().zip(&want).for_each(|(got, want)| assert_near(*got, *want, 1e-12));
        let limit = threshold(&place.json("run/model.json"), 0.9).unwrap();
        let unmapped = numbers(&raw[2..12]);
        let set = unmapped.iter().enumerate().filter(|(_, p)| 1.0 - **p <= limit);
        let set: Vec<String> = set.map(|(class, _)| class.to_string()).collect();
        assert_eq!(row[12], set.join("|"));
        // The class is the most probable one of the probabilities that are given.
        let best = got.iter().copied().fold(0.0, f64::max);
        assert_eq!(got[row[0].parse::<usize>().unwrap()], best);
    }

    // A finished run learns another map without a further round.
    place.works("train --resume run --set calibration.map=isotonic --quiet");
    let note = "calibration.map = \\\"isotonic\\\": 288 calibration rows are fewer than the 1000 that 10 classes need; a temperature was fitted instead";
    assert!(notes(&place, "run").contains(note), "{}", notes(&place, "run"));
    assert!(place.bytes("run/model.json") == place.bytes("tempered/model.json"));
    let page = place.text("run/report/report.html");
    assert!(page.contains("a temperature was fitted instead") && page.contains("at T"));
}

/// Rows of two kinds of coins, of which the fifth part is hard to tell.
fn coins(rows: usize, phase: f64) -> String {
    let line = |row: usize| {
        let (x, y) = ((row as f64 * 0.7 + phase).sin() * 2.0, (row as f64 * 1.3 + phase).cos());
        let noise = ((row as f64 * 12.9898 + phase).sin() * 43_758.545_3).fract();
        format!("{x:.4},{y:.4},{}\n", if x + y + 2.0 * noise > 0.5 { "gold" } else { "tin" })
    };
    format!("weight,size,metal\n{}", (0..rows).map(line).collect::<String>())
}

const COINS: &str = "--set data.kind=csv --set data.path=coins.csv --set data.test_path=more.csv --set data.target=metal --set partition.clients=3 --quiet";

#[test]
fn isotonic_regression_is_kept_and_applied_and_evaluate_has_it_on_other_rows() {
    let place = Place::new();
    place.write("coins.csv", coins(900, 0.0)).write("more.csv", coins(200, 0.4));
    let keys = format!("{COINS} --set partition.calibration=0.4 --set calibration.map=isotonic");
    place.works(&format!("{TINY} {keys} --out run"));
    let model = place.json("run/model.json");
    let functions = model["calibration"]["isotonic"].as_array().unwrap();
    let corners: Vec<[f64; 2]> = serde_json::from_value(functions[0].clone()).unwrap();
    assert!(functions.len() == 1 && corners.len() > 2);
    let map = |p: &[f64]| {
        // The line between the corners around p.
        let after = corners.iter().position(|[x, _]| *x > p[1]).unwrap_or(corners.len());
        let value = match (corners[..after].last(), corners.get(after)) {
            (Some([x0, y0]), Some([x1, y1])) => y0 + (y1 - y0) * (p[1] - x0) / (x1 - x0),
            (Some([_, y]), None) | (None, Some([_, y])) => *y,
            (None, None) => unreachable!(),
        };
        vec![1.0 - value, value]
    };
    check_report(&place, "run", "Isotonic regression", map);
    let (printed, raw) =
        (place.works("predict run --input more.csv"), place.works("predict run --input more.csv --raw"));
    assert!(printed.stderr.contains("after isotonic regression"), "{}", printed.stderr);
    for (row, raw) in cells(&printed.stdout)[1..].iter().zip(&cells(&raw.stdout)[1..]) {
        assert_near(numbers(&row[2..4])[1], map(&numbers(&raw[2..4]))[1], 1e-12);
    }
    // On its own test rows `evaluate` has the numbers of the run.
    let told = place.works("evaluate run --input more.csv --backend flex").stdout;
    assert!(told.contains("Isotonic regression (a function"), "{told}");
    let report = place.json("run/evaluate/more/report/report.json");
    assert_eq!(report["run"]["calibration"]["map"], place.json("run/summary.json")["calibration"]["map"]);

    // What `model.json` has of it is checked.
    let damaged = |change: &dyn Fn(&mut Value)| {
        let mut model = model.clone();
        change(&mut model["calibration"]);
        place.write("run/model.json", model.to_string());
    };
    let refuses = |words: &[&str]| place.refuses("predict run --input more.csv", words);
    damaged(&|of| of["isotonic"] = serde_json::json!([[[0.2, 0.6], [0.4, 0.5]]]));
    refuses(&["model.json", "`calibration.isotonic`", "falls"]);
    damaged(&|of| of["temperature"] = 2.0.into());
    refuses(&["model.json", "the only one of"]);
    damaged(&|of| {
        of.as_object_mut().unwrap().remove("isotonic");
        of["vector"] = serde_json::json!({ "scale": [1.0], "bias": [0.0, 0.0] });
    });
    refuses(&["model.json", "`calibration.vector`", "expected 4"]);
}

#[test]
fn a_map_for_which_a_class_has_no_calibration_row_is_a_temperature_with_a_note() {
    let place = Place::new();
    // One row is of a third metal, too few to be held out at the client that has it.
    let table = coins(300, 0.0) + "9.0,9.0,lead\n";
    place.write("coins.csv", table).write("more.csv", coins(50, 0.4));
    let keys = format!("{COINS} --set partition.calibration=0.3 --set calibration.map=vector --set seed=4");
    place.works(&format!("{TINY} {keys} --out run"));
    let text = notes(&place, "run");
    assert!(text.contains("no calibration row is of the class lead; a temperature was fitted instead"), "{text}");
    assert!(place.json("run/model.json")["calibration"]["temperature"].is_number());
}

#[test]
fn a_map_for_which_one_class_has_too_few_calibration_rows_is_a_temperature_with_a_note() {
    let place = Place::new();
    let lead = |row: usize| format!("{:.2},{:.2},lead\n", 3.0 + (row % 5) as f64 * 0.1, 3.0 + (row % 7) as f64 * 0.1);
    let table = coins(1000, 0.0) + &(0..20).map(lead).collect::<String>();
    place.write("coins.csv", table).write("more.csv", coins(50, 0.4));
    let keys = COINS.replace("partition.clients=3", "partition.clients=1");
    for (map, fewest) in [("vector", 20), ("isotonic", 100)] {
        place.works(&format!("{TINY} {keys} --set partition.calibration=0.4 --set calibration.map={map} --out {map}"));
        let model = place.json(&format!("{map}/model.json"));
        // Of 1020 rows 408, more than three classes of 100, and of the 20 of lead 8.
        assert_eq!(model["calibration"]["rows"], 408);
        let words = format!(
            "8 calibration rows are of the class lead, and each class needs {fewest}; a temperature was fitted instead"
        );
        assert!(notes(&place, map).contains(&words), "{}", notes(&place, map));
        assert!(model["calibration"]["temperature"].is_number() && model["calibration"].get(map).is_none());
    }
    // Without the rare class the same rows give the map.
    place.write("coins.csv", coins(1000, 0.0));
    place.works(&format!("{TINY} {keys} --set partition.calibration=0.4 --set calibration.map=isotonic --out both"));
    assert!(place.json("both/model.json")["calibration"]["isotonic"].is_array(), "{}", notes(&place, "both"));
}

#[test]
fn calibration_rows_that_are_all_right_leave_the_probabilities_as_they_are() {
    let place = Place::new();
    let line = |row: usize| {
        let sign = if row.is_multiple_of(2) { 1.0 } else { -1.0 };
        format!("{:.2},{}\n", sign * (5.0 + (row % 7) as f64), if sign > 0.0 { "gold" } else { "tin" })
    };
    let table = |rows: usize| format!("weight,metal\n{}", (0..rows).map(line).collect::<String>());
    place.write("coins.csv", table(200)).write("more.csv", table(20));
    place.works(&format!("{TINY} {COINS} --set rounds=10 --set partition.calibration=0.3 --out run"));
    assert_eq!(place.json("run/summary.json")["evaluation"]["accuracy"], 1.0);
    assert_eq!(place.json("run/model.json")["calibration"]["temperature"], 1.0);
    let text = notes(&place, "run");
    assert!(
        text.contains("the search of a temperature ended at its lower limit, 0.05, as where all of the 60"),
        "{text}"
    );
    assert_eq!(place.works("predict run --input more.csv").stdout.lines().count(), 21);
}

/// Labels without a rule, which a network learns by heart: of new rows equal probabilities are right.
#[test]
fn a_temperature_at_its_upper_limit_is_used_and_said_to_be_one() {
    let place = Place::new();
    let noise = |row: usize, by: f64| (row as f64 * by).sin() * 43_758.5 % 1.0;
    let line = |row: usize| {
        let metal = if noise(row, 78.233) > 0.0 { "gold" } else { "tin" };
        format!("{:.4},{metal}\n", 3.0 * noise(row, 12.9898))
    };
    let table = |rows: std::ops::Range<usize>| format!("weight,metal\n{}", rows.map(line).collect::<String>());
    place.write("coins.csv", table(0..60)).write("more.csv", table(60..160));
    let keys = "--set model.hidden=[60] --set algorithm.kind=fedavg --set algorithm.local_steps=1500 --set optimizer.lr=0.1 \
                --set rounds=4 --set partition.calibration=0.5 --set algorithm.batch=10";
    place.works(&format!("train --set partition.kind=iid --set data.rotate=none {COINS} {keys} --out run"));
    let fit = place.json("run/summary.json")["calibration"]["temperature"].clone();
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert!((number(&fit["temperature"]) - 3f64.exp()).abs() < 1e-3 && fit["at_limit"] == true, "{fit}");
    // Near ln 2 on test rows, which were not looked at.
    let [before, after] = [0, 1].map(|at| number(&fit["test"][at]["nll"]));
    assert!(before > 1.0 && (after - 2f64.ln()).abs() < 0.05, "{before}, {after}");
    assert!(notes(&place, "run").contains("ended at its upper limit, 20.1: on the 30 calibration rows"));
}

#[test]
fn maps_that_do_not_fit_the_run_are_refused() {
    let place = Place::new();
    place.write("prices.csv", prices(60)).write("more.csv", prices(17));
    place.refuses(&format!("{TINY} {PRICES} --set calibration.map=vector"), &["calibration.map", "regression"]);
    place
        .refuses(&format!("{TINY} --set calibration.map=vector"), &["calibration.map", "partition.calibration", "0.2"]);
    place.refuses(
        &format!(
            "{TINY} --set partition.calibration=0.2 --set calibration.map=isotonic --set calibration.temperature=false"
        ),
        &["calibration.map", "calibration.temperature"],
    );
    place.refuses(&format!("{TINY} --set calibration.map=platt"), &["calibration.map", "isotonic"]);
    let line = |row: usize| format!("{}.0,c{}\n", row, row % 101);
    let many = format!("x,kind\n{}", (0..404).map(line).collect::<String>());
    place.write("coins.csv", &many).write("more.csv", &many);
    let keys = COINS.replace("metal", "kind");
    place.refuses(
        &format!("{TINY} {keys} --set partition.calibration=0.2 --set calibration.map=vector"),
        &["calibration.map", "at most 100 classes", "101"],
    );
}
