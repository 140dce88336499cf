//! `[stop]`: a run that ends early has the results of the round that it says, to the bit, and can go on.

use super::place::{Place, assert_near, numbers};

/// Clients with three labels each in turn, so that a round may well be worse than the one before.
const SKEWED: &str = "train --set algorithm.kind=dsvgd --set algorithm.particles=4 --set algorithm.local_steps=20 --set algorithm.distill_steps=20 --set optimizer.lr=0.05 --set data.rotate=none --set partition.validation=0.2 --quiet";

/// A column of `rounds.csv`; blank cells are NaN.
fn column(place: &Place, run: &str, name: &str) -> Vec<f64> {
    let table = place.table(&format!("{run}/rounds.csv"));
    let at = table[0].iter().position(|head| head == name).unwrap_or_else(|| panic!("no {name} in {:?}", table[0]));
    table[1..].iter().map(|row| if row[at].is_empty() { f64::NAN } else { numbers(&row[at..=at])[0] }).collect()
}

#[track_caller]
fn assert_same_results(place: &Place, a: &str, b: &str) {
    for file in ["particles.safetensors", "predictions.csv", "uncertainty.csv"] {
        assert!(place.bytes(&format!("{a}/{file}")) == place.bytes(&format!("{b}/{file}")), "{file} differs");
    }
    let evaluation = |run: &str| place.json(&format!("{run}/summary.json"))["evaluation"].clone();
    assert_eq!(evaluation(a), evaluation(b));
}

fn fact(place: &Place, run: &str, name: &str) -> Option<String> {
    let facts = place.json(&format!("{run}/summary.json"))["facts"].as_array().unwrap().clone();
    let fact = facts.iter().find(|fact| fact[0] == name)?;
    Some(fact[1].as_str().unwrap().to_owned())
}

#[test]
fn in_fewer_rounds_than_clients_have_a_turn_no_round_is_the_best() {
    let place = Place::new();
    // Ten clients, one a round.
    let printed =
        place.works(&format!("{SKEWED} --set rounds=5 --set stop.patience=1 --out run").replace("--quiet", ""));
    assert!(printed.stderr.contains("stop.patience has no effect in 5 rounds"), "{}", printed.stderr);
    assert_eq!((column(&place, "run", "validation_nll").len(), fact(&place, "run", "best round")), (5, None));
    // It goes on as the run that had 40 rounds from the beginning.
    place.works("train --resume run --set rounds=40 --quiet");
    place.works(&format!("{SKEWED} --set rounds=40 --set stop.patience=1 --out whole"));
    assert_same_results(&place, "run", "whole");
}

#[test]
fn a_run_with_patience_ends_with_the_particles_of_its_best_round() {
    let place = Place::new();
    place.works(&format!("{SKEWED} --set rounds=40 --set stop.patience=3 --out early"));
    let nll = column(&place, "early", "validation_nll");
    // One of ten clients in each round: the best is looked for when each has had its turn.
    let best = (9..nll.len()).min_by(|a, b| nll[*a].total_cmp(&nll[*b])).unwrap() + 1;
    assert_eq!(nll.len(), best + 3, "{nll:?}");
    assert!(nll.len() < 40, "it must end early for this test");
    assert_eq!(fact(&place, "early", "best round"), Some(best.to_string()));
    let notes = place.json("early/summary.json")["notes"].to_string();
    for words in [
        format!(
            "the run ended after round {} of 40: no better nll of the validation rows since round {best}",
            nll.len()
        ),
        format!("the results are those of round {best} of {}", nll.len()),
    ] {
        assert!(notes.contains(&words), "no {words:?} in {notes}");
    }
    // A run that has only as many rounds, and knows nothing of patience.
    place.works(&format!("{SKEWED} --set rounds={best} --out plain"));
    assert_same_results(&place, "early", "plain");
    assert_eq!(fact(&place, "plain", "best round"), None);
    // What the report and the predictions are made of.
    let report = place.json("early/report/report.json");
    assert_eq!(report["overall"]["accuracy"], place.json("plain/report/report.json")["overall"]["accuracy"]);
    // Beside another run it is the same round, and not the last one.
    place.works("report plain --compare early --out both");
    let compared = &place.json("both/report.json")["run"]["compare"][0];
    assert_eq!(compared["evaluation"], place.json("early/summary.json")["evaluation"]);
    assert_eq!(compared["bins"], report["bins"]);
    let rounds = column(&place, "early", "nll");
    assert_near(compared["evaluation"]["nll"].as_f64().unwrap(), rounds[best - 1], 1e-9);
    assert!((rounds[best - 1] - rounds[rounds.len() - 1]).abs() > 1e-3, "{rounds:?}");
    // The same column, whether the metrics of the rounds are those of test or of validation rows.
    place.works(&format!(
        "{SKEWED} --set rounds=40 --set stop.patience=3 --set evaluation.rows=validation --out chosen"
    ));
    let same = column(&place, "chosen", "nll");
    assert!(nll.iter().zip(&same).all(|(a, b)| (a - b).abs() < 1e-9) && same.len() == nll.len(), "{nll:?} {same:?}");
}

#[test]
fn temperature_and_sets_are_those_of_the_best_round() {
    let place = Place::new();
    let held = format!("{SKEWED} --set partition.calibration=0.2");
    place.works(&format!("{held} --set rounds=40 --set stop.patience=3 --out early"));
    let best: usize = fact(&place, "early", "best round").unwrap().parse().unwrap();
    assert!(best < column(&place, "early", "nll").len(), "the best round is the last one, which tells nothing");
    place.works(&format!("{held} --set rounds={best} --out plain"));
    assert_same_results(&place, "early", "plain");
    let learned = |run: &str| {
        let of = |file: &str| place.json(&format!("{run}/{file}"))["calibration"].clone();
        (of("model.json"), of("summary.json"))
    };
    assert!(learned("early").0["temperature"].is_number());
    assert_eq!(learned("early"), learned("plain"));
}

#[test]
fn an_early_end_can_be_resumed_with_more_patience_and_is_then_that_of_an_uninterrupted_run() {
    let place = Place::new();
    let run = |patience: usize, out: &str| {
        place.works(&format!(
            "{SKEWED} --set rounds=14 --set stop.patience={patience} --set stop.metric=accuracy --out {out}"
        ));
    };
    run(1, "short");
    run(5, "long");
    assert!(column(&place, "short", "validation_accuracy").len() < column(&place, "long", "validation_accuracy").len());
    // Without another limit there is nothing to do, and the results stay.
    place.works("train --resume short --quiet");
    place.works("train --resume short --set stop.patience=5 --quiet");
    assert_same_results(&place, "short", "long");
    assert_eq!(column(&place, "short", "validation_accuracy"), column(&place, "long", "validation_accuracy"));
    place.refuses("train --resume short --set stop.patience=0", &["stop.patience: more than 0 → 0"]);
}

#[test]
fn a_budget_of_traffic_ends_a_run_after_the_round_that_uses_it_up() {
    let place = Place::new();
    place.works(&format!("{SKEWED} --set rounds=6 --out whole"));
    let sent = column(&place, "whole", "uplink_bytes");
    let of_three: f64 = sent[..3].iter().sum::<f64>() / f64::from(1u32 << 20);
    // Exactly what three rounds send is enough for three; a little more takes a fourth.
    for (budget, rounds) in [(of_three, 3), (of_three * 1.001, 4)] {
        let out = format!("of-{rounds}");
        place.works(&format!(
            "{SKEWED} --set rounds=6 --set evaluation.every=5 --set stop.uplink_mib={budget} --out {out}"
        ));
        assert_eq!(column(&place, &out, "uplink_bytes"), sent[..rounds]);
        place.works(&format!("{SKEWED} --set rounds={rounds} --out plain-{rounds}"));
        assert_same_results(&place, &out, &format!("plain-{rounds}"));
        let listed: serde_json::Value = serde_json::from_str(&place.works("runs . --json").stdout).unwrap();
        let entry = listed.as_array().unwrap().iter().find(|entry| entry["run"] == format!("./{out}")).unwrap().clone();
        assert_eq!((&entry["state"], &entry["rounds_done"]), (&"finished".into(), &rounds.into()));
    }
    place.works("train --resume of-3 --set stop.uplink_mib=0 --quiet");
    assert_same_results(&place, "of-3", "whole");
}

#[test]
fn a_budget_of_time_ends_a_run_after_the_round_that_uses_it_up() {
    let place = Place::new();
    let printed =
        place.works(&format!("{} --set rounds=5 --set stop.seconds=1e-6 --out run", SKEWED.replace("--quiet", "")));
    assert_eq!(column(&place, "run", "seconds").len(), 1);
    assert!(
        printed.stderr.contains("the run ended after round 1 of 5") && printed.stderr.contains("stop.seconds"),
        "{}",
        printed.stderr
    );
    place.works("train --resume run --set stop.seconds=0 --quiet");
    place.works(&format!("{SKEWED} --set rounds=5 --out plain"));
    assert_same_results(&place, "run", "plain");
}

#[test]
fn validation_rows_have_scores_whatever_ends_the_run() {
    let place = Place::new();
    place.works(&format!("{SKEWED} --set rounds=4 --set evaluation.every=2 --out plain"));
    place.works(&format!("{SKEWED} --set rounds=4 --set evaluation.every=2 --set evaluation.rows=validation --out of"));
    for metric in ["nll", "accuracy"] {
        let (held, of) = (column(&place, "plain", &format!("validation_{metric}")), column(&place, "of", metric));
        assert!(held[0].is_nan() && held[2].is_nan(), "rounds that are not evaluated are blank: {held:?}");
        assert!((held[1] - of[1]).abs() < 1e-9 && (held[3] - of[3]).abs() < 1e-9, "{held:?} {of:?}");
    }
    let header = place.table("of/rounds.csv")[0].join(",");
    assert!(!header.contains("validation_"), "the metrics are those of the validation rows already: {header}");
}

#[test]
fn rounds_judged_by_rows_without_the_weights_of_the_training_have_a_note() {
    let place = Place::new();
    let notes = |out: &str, keys: &str| -> Vec<String> {
        place.works(&format!("{SKEWED} --set rounds=2 {keys} --out {out}"));
        let notes: Vec<String> =
            serde_json::from_value(place.json(&format!("{out}/summary.json"))["notes"].clone()).unwrap();
        notes.into_iter().filter(|note| note.contains("judges rounds by")).collect()
    };
    let weights = "--set data.class_weights=balanced";
    let (patience, plateau) = ("--set stop.patience=2", "--set lr_schedule.kind=plateau");
    for (out, judge, metric, key, consequence) in [
        ("nll", patience, "nll", "stop.patience", "with stop.patience = 0 the results are those of the last round"),
        ("brier", patience, "brier", "stop.patience", "the best round may find fewer rows of these classes"),
        ("plateau", plateau, "nll", "lr_schedule.kind = \"plateau\"", "the step size may become smaller"),
    ] {
        let found = notes(out, &format!("{weights} {judge} --set stop.metric={metric}"));
        let begins = format!("{key} judges rounds by the {metric} of validation rows that all count once");
        assert_eq!(found.len(), 1, "{out}: {found:?}");
        assert!(found[0].starts_with(&begins) && found[0].contains(consequence), "{found:?}");
    }
    assert!(notes("unwatched", weights).is_empty() && notes("unweighted", patience).is_empty());
}

#[test]
fn patience_without_rows_to_judge_by_is_refused() {
    let place = Place::new();
    let patience = "--set stop.patience=2";
    place.refuses(
        &format!("train {patience}"),
        &["`stop.patience` needs rows that clients hold out", "`partition.validation`"],
    );
    let held = format!("{patience} --set partition.validation=0.2");
    place.refuses(
        &format!("train {held} --set evaluation.personal=true"),
        &["`stop.patience`", "`evaluation.personal`"],
    );
    place
        .refuses(&format!("train {held} --set stop.metric=rmse"), &["`stop.metric` = \"rmse\" is one of a regression"]);
    place.refuses("train --set stop.patience=-1", &["stop.patience"]);
    place.refuses("train --set stop.seconds=-1", &["stop.seconds"]);
    place.refuses(
        &format!("train {patience} --set data.kind=mixture-1d --set model.kind=mixture --set algorithm.kind=dsvgd"),
        &["`stop.patience`", "toy density"],
    );
}

#[test]
fn the_step_size_becomes_smaller_on_a_plateau_and_a_resumed_run_goes_on_with_it() {
    let place = Place::new();
    let keys = "--set lr_schedule.kind=plateau --set lr_schedule.rounds=2 --set lr_schedule.factor=0.5";
    place.works(&format!("{SKEWED} {keys} --set rounds=12 --out whole"));
    let (nll, factors) = (column(&place, "whole", "validation_nll"), column(&place, "whole", "lr_factor"));
    // The rule by the columns: the factor is halved after two rounds in a row that are not better than the best before.
    let (mut best, mut waited, mut factor) = (f64::INFINITY, 0, 1.0);
    for (nll, found) in nll.iter().zip(&factors) {
        assert_eq!(*found, factor, "{nll:?} {factors:?}");
        (best, waited) = if *nll < best { (*nll, 0) } else { (best, waited + 1) };
        if waited == 2 {
            (factor, waited) = (factor / 2.0, 0);
        }
    }
    assert!(factor < 1.0, "no plateau in {nll:?}");
    place.works(&format!("{SKEWED} {keys} --set rounds=7 --out parts"));
    place.works("train --resume parts --set rounds=12 --quiet");
    assert_same_results(&place, "parts", "whole");
    assert_eq!(column(&place, "parts", "lr_factor"), factors);
    place.refuses("train --resume parts --set lr_schedule.factor=0.1", &["lr_schedule.factor: 0.5 → 0.1"]);
}

#[test]
fn sites_follow_the_step_size_of_the_server_without_a_key_of_their_own() {
    let place = Place::new();
    let config = "rounds = 4\ndata = { kind = \"twonorm\", rows = 120 }\npartition = { clients = 2 }\n\
                  model = { hidden = [3] }\nalgorithm = { particles = 3, local_steps = 3 }\n";
    let schedule = "lr_schedule = { kind = \"cosine\", rounds = 4, end = 0.1 }\n";
    place.write("constant.toml", config).write("cosine.toml", format!("{config}{schedule}"));
    place.works("train constant.toml --out constant --quiet");
    place.works("train cosine.toml --out one --quiet");
    place.works("site split cosine.toml --out rehearsal");
    place.works("train rehearsal/run.toml --sites rehearsal/0/site.toml,rehearsal/1/site.toml --out sites --quiet");
    let particles = |run: &str| place.bytes(&format!("{run}/particles.safetensors"));
    assert!(particles("one") == particles("sites"), "the sites took other steps");
    assert!(particles("one") != particles("constant"), "the schedule changed nothing");
    assert!(!place.text("rehearsal/0/site.toml").contains("lr_schedule"));
    assert_eq!(column(&place, "one", "lr_factor"), column(&place, "sites", "lr_factor"));
}

#[test]
fn a_schedule_of_step_sizes_that_nothing_follows_is_refused() {
    let place = Place::new();
    place.refuses(
        "train --set algorithm.kind=sgld --set lr_schedule.kind=cosine",
        &["algorithm kind `sgld`", "`lr_schedule.kind` = \"constant\""],
    );
    place.refuses("train --set lr_schedule.kind=plateau", &["lr_schedule.kind", "`partition.validation`"]);
    place.refuses("train --set lr_schedule.kind=cosine --set lr_schedule.end=0", &["lr_schedule.end"]);
    place.refuses("train --set lr_schedule.kind=cos", &["lr_schedule.kind", "cosine"]);
}

/// The records of an event file: lengths and content, without the checksums.
fn records(mut file: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let Some((length, rest)) = file.split_first_chunk::<8>() {
        let length = u64::from_le_bytes(*length) as usize;
        records.push(rest[4..4 + length].to_vec());
        file = &rest[4 + length + 4..];
    }
    records
}

#[test]
fn event_files_of_tensorboard_have_every_round_and_change_nothing_that_exists() {
    let place = Place::new();
    place.works(&format!("{SKEWED} --set rounds=3 --out run --tensorboard tb/one"));
    let files = || -> Vec<std::path::PathBuf> {
        let all = std::fs::read_dir(place.path("tb/one")).unwrap();
        let mut all: Vec<_> = all.map(|file| file.unwrap().path()).collect();
        all.sort_by_key(|path| std::fs::metadata(path).unwrap().modified().unwrap());
        all
    };
    let first = files();
    assert_eq!(first.len(), 1);
    let name = first[0].file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.starts_with("events.out.tfevents."), "{name}");
    let bytes = std::fs::read(&first[0]).unwrap();
    let events = records(&bytes);
    let has = |event: &[u8], word: &str| event.windows(word.len()).any(|at| at == word.as_bytes());
    assert!(events.len() == 4 && has(&events[0], "brain.Event:2"));
    assert!(events[1..].iter().all(|event| ["nll", "accuracy", "uplink_bytes"].iter().all(|tag| has(event, tag))));
    // The run goes on in a file of its own.
    place.works("train --resume run --set rounds=4 --tensorboard tb/one --quiet");
    let both = files();
    assert_eq!((both.len(), std::fs::read(&both[0]).unwrap() == bytes), (2, true));
    assert_eq!(records(&std::fs::read(&both[1]).unwrap()).len(), 2);
    place.refuses("train --tensorboard run/rounds.csv --out other", &["--tensorboard", "is not a directory"]);
}

#[test]
fn a_log_has_the_start_the_rounds_and_the_end_of_a_run() {
    let place = Place::new();
    let line = format!("{SKEWED} --set rounds=3 --set checkpoint.every_seconds=0");
    place.works(&format!("{line} --out run --log run.jsonl"));
    let events = |file: &str| -> Vec<serde_json::Value> {
        place.text(file).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = events("run.jsonl");
    let kinds = |events: &[serde_json::Value]| {
        let kinds = events.iter().map(|event| event["event"].as_str().unwrap().to_owned());
        kinds.filter(|kind| kind != "note").collect::<Vec<_>>()
    };
    assert_eq!(kinds(&all), ["start", "round", "round", "round", "end"]);
    let start = all.iter().find(|event| event["event"] == "start").unwrap();
    assert_eq!((&start["rounds"], &start["config"]["algorithm.kind"]), (&3.into(), &"dsvgd".into()));
    let rounds: Vec<f64> =
        all.iter().filter(|event| event["event"] == "round").map(|event| event["nll"].as_f64().unwrap()).collect();
    assert_eq!(rounds, column(&place, "run", "nll"));
    let end = all.last().unwrap();
    assert_eq!(
        (&end["state"], &end["metrics"]["nll"]),
        (&"finished".into(), &place.json("run/summary.json")["evaluation"]["nll"])
    );
    assert!(all.iter().all(|event| event["time"].as_str().is_some_and(|time| time.ends_with('Z'))), "{all:?}");
    // A log is never replaced; a resumed run adds to it; a run that is refused writes none.
    place.refuses(&format!("{line} --out other --log run.jsonl"), &["--log `run.jsonl` exists"]);
    place.refuses(&format!("{line} --set partition.clients=5000 --out other --log other.jsonl"), &["5000"]);
    place.works("train --resume run --set rounds=4 --quiet --log run.jsonl");
    assert_eq!(kinds(&events("run.jsonl")), ["start", "round", "round", "round", "end", "start", "round", "end"]);
    place.works(&format!("{line} --out run --force --log run.jsonl"));
    assert_eq!(kinds(&events("run.jsonl")), ["start", "round", "round", "round", "end"]);
    place.refuses(&format!("{line} --out other --log none/run.jsonl"), &["--log", "no directory `none`"]);
    // The run knows each file in its own directory.
    for option in ["--log inside/run.jsonl", "--log ./inside/rounds.csv", "--tensorboard inside/tb"] {
        place.refuses(&format!("{line} --out inside {option}"), &["is in the run's own directory `inside`"]);
    }
    // Nothing but a log is replaced or gets further lines.
    let table = "a,y\n1,0\n2,1\n";
    place.write("table.csv", table);
    place.refuses(&format!("{line} --out other --force --log table.csv"), &["--log `table.csv` is no log of fedstein"]);
    place.refuses("train --resume run --set rounds=9 --log table.csv", &["is no log of fedstein, and lines are added"]);
    assert_eq!(place.text("table.csv"), table);
    // What a killed process has left of a line does not spoil the next one.
    let whole = place.text("run.jsonl");
    place.write("run.jsonl", format!("{whole}{{\"event\":\"rou"));
    place.works("train --resume run --set rounds=5 --quiet --log run.jsonl");
    let text = place.text("run.jsonl");
    let added: Vec<&str> = text[whole.len()..].lines().collect();
    assert_eq!(added[0], "{\"event\":\"rou");
    assert!(added[1..].iter().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{added:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_log_that_cannot_be_written_is_a_failure_of_a_run_with_all_its_results() {
    let place = Place::new();
    let output = place.command(&format!("{SKEWED} --set rounds=2 --out run --log /dev/full")).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("error: --log `/dev/full` could not be written"), "{stderr}");
    assert!(place.json("run/summary.json")["evaluation"].is_object());
}
