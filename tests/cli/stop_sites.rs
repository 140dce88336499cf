//! `[stop]` and a plateau of `[lr_schedule]` by validation rows that the sites of a federation hold: the end and the results
//! are those of a run in one process.

use super::place::{Place, command_in, numbers, prices};

/// Clients with three labels each, so that a round may well be worse than the one before.
const KEYS: &str = "--set algorithm.kind=dsvgd --set algorithm.particles=4 --set algorithm.local_steps=20 \
                    --set algorithm.distill_steps=20 --set optimizer.lr=0.05 --set data.rotate=none \
                    --set partition.clients=5 --set partition.validation=0.2";

/// A column of `rounds.csv`.
fn column(place: &Place, run: &str, name: &str) -> Vec<f64> {
    let table = place.table(&format!("{run}/rounds.csv"));
    let at = table[0].iter().position(|head| head == name).unwrap_or_else(|| panic!("no {name} in {:?}", table[0]));
    table[1..].iter().map(|row| numbers(&row[at..=at])[0]).collect()
}

#[track_caller]
fn assert_close(here: &[f64], sites: &[f64]) {
    assert_eq!(here.len(), sites.len(), "{here:?} {sites:?}");
    // The same predictions, made in other batches in f32.
    assert!(here.iter().zip(sites).all(|(a, b)| (a - b).abs() < 1e-5), "{here:?} {sites:?}");
}

fn best_round(place: &Place, run: &str) -> usize {
    let summary = place.json(&format!("{run}/summary.json"));
    let facts = summary["facts"].as_array().unwrap();
    let fact = facts.iter().find(|fact| fact[0] == "best round").unwrap_or_else(|| panic!("{facts:?}"));
    fact[1].as_str().unwrap().parse().unwrap()
}

/// Splits an experiment into the sites of a directory, and returns the command that trains with them, without `--out`.
fn split(place: &Place, keys: &str, dir: &str) -> String {
    let printed = place.works(&format!("site split {keys} --out {dir}"));
    assert!(printed.stderr.is_empty(), "{}", printed.stderr);
    format!("{} --quiet", command_in(&printed.stdout))
}

/// The results that a site keeps of its only run.
fn results(place: &Place, dir: &str, site: usize) -> String {
    let state = format!("{dir}/{site}/state");
    let runs: Vec<String> = place.names(&state).into_iter().filter(|name| name != "rows").collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    format!("{state}/{}/results", runs[0])
}

#[test]
fn a_federation_ends_in_the_round_and_with_the_particles_of_the_run_in_one_process() {
    let place = Place::new();
    let keys = "--set rounds=40 --set stop.patience=3";
    place.works(&format!("train --quiet {KEYS} {keys} --out here"));
    let command = split(&place, &format!("{KEYS} {keys}"), "rehearsal");
    assert_eq!(place.names("rehearsal/2"), ["site.toml", "test.csv", "train.csv", "validation.csv"]);
    place.works(&format!("{command} --out sites"));
    assert!(place.bytes("here/particles.safetensors") == place.bytes("sites/particles.safetensors"));
    let (nll, best) = (column(&place, "sites", "validation_nll"), best_round(&place, "sites"));
    assert!(best == best_round(&place, "here") && nll.len() == best + 3 && nll.len() < 40, "{best}: {nll:?}");
    for name in ["validation_nll", "validation_accuracy"] {
        assert_close(&column(&place, "here", name), &column(&place, "sites", name));
    }
    let summary = place.json("sites/summary.json");
    assert!(summary["notes"].to_string().contains(&format!("the results are those of round {best} of {}", nll.len())));
    // The scores of the results are those of the best round, and so are the results that the sites keep.
    let scored = column(&place, "sites", "nll")[best - 1];
    assert!((summary["evaluation"]["nll"].as_f64().unwrap() - scored).abs() < 1e-12);
    for site in 0..5 {
        let results = results(&place, "rehearsal", site);
        assert!(place.bytes(&format!("{results}/particles.safetensors")) == place.bytes("sites/particles.safetensors"));
        let config: toml::Table = place.text(&format!("{results}/config.toml")).parse().unwrap();
        assert_eq!(config["rounds"].as_integer(), Some(best as i64));
        let own = place.json(&format!("{results}/summary.json"))["evaluation"]["nll"].as_f64().unwrap();
        let told = summary["sites"][site]["evaluation"]["nll"].as_f64().unwrap();
        assert!((own - told).abs() < 1e-9, "site {site}: {own}, not {told}");
    }
    // More patience from the checkpoint is more patience from the beginning, and the sites then keep the other results.
    let sites = command.split_once("--sites ").unwrap().1.split_whitespace().next().unwrap();
    let sites = sites
        .split(',')
        .map(|site| if site.starts_with("rehearsal") { site.to_owned() } else { format!("rehearsal/{site}") });
    let sites = sites.collect::<Vec<_>>().join(",");
    place.works(&format!("train --quiet --resume sites --sites {sites} --set stop.patience=12"));
    place.works(&format!("train --quiet {KEYS} --set rounds=40 --set stop.patience=12 --out patient"));
    assert!(place.bytes("patient/particles.safetensors") == place.bytes("sites/particles.safetensors"));
    assert_close(&column(&place, "patient", "validation_nll"), &column(&place, "sites", "validation_nll"));
    let again = results(&place, "rehearsal", 4);
    assert!(place.bytes(&format!("{again}/particles.safetensors")) == place.bytes("sites/particles.safetensors"));
}

#[test]
fn so_it_does_where_the_metrics_are_those_of_the_validation_rows_and_with_calibration_rows() {
    let place = Place::new();
    let keys = "--set rounds=12 --set stop.patience=3 --set partition.calibration=0.2";
    place.works(&format!("train --quiet {KEYS} {keys} --out here"));
    let command = split(&place, &format!("{KEYS} {keys}"), "rehearsal");
    assert!(place.names("rehearsal/0").contains(&"calibration.csv".to_owned()));
    for (name, more) in [("sites", ""), ("chosen", "--set evaluation.rows=validation")] {
        place.works(&format!("{command} {more} --out {name}"));
        assert!(place.bytes("here/particles.safetensors") == place.bytes(&format!("{name}/particles.safetensors")));
        assert_eq!(best_round(&place, "here"), best_round(&place, name), "{name}");
    }
    assert_close(&column(&place, "here", "validation_nll"), &column(&place, "chosen", "nll"));
    let temperature = |run: &str| place.json(&format!("{run}/model.json"))["calibration"]["temperature"].as_f64();
    let (here, sites) = (temperature("here").unwrap(), temperature("sites").unwrap());
    assert!((here - sites).abs() < 1e-4, "{here} {sites}");
}

#[test]
fn a_plateau_over_sites_is_found_where_it_is_found_in_one_process() {
    let place = Place::new();
    let keys = "--set rounds=14 --set lr_schedule.kind=plateau --set lr_schedule.rounds=2";
    place.works(&format!("train --quiet {KEYS} {keys} --out here"));
    let command = split(&place, &format!("{KEYS} {keys}"), "rehearsal");
    place.works(&format!("{command} --out sites"));
    let factors = column(&place, "sites", "lr_factor");
    assert!(factors == column(&place, "here", "lr_factor") && factors[13] < 1.0, "{factors:?}");
    assert!(place.bytes("here/particles.safetensors") == place.bytes("sites/particles.safetensors"));
}

#[test]
fn sites_keep_their_results_also_where_the_server_has_the_test_rows() {
    let place = Place::new();
    let command = split(&place, &format!("{KEYS} --set rounds=7 --set stop.patience=1"), "rehearsal");
    let test = "--set data.test_path=rehearsal/0/test.csv --set data.target=target";
    for (name, keys) in [("plain", "--set stop.patience=0"), ("stopped", "")] {
        for site in 0..5 {
            let _ = std::fs::remove_dir_all(place.path(&format!("rehearsal/{site}/state")));
        }
        place.works(&format!("{command} {test} {keys} --out {name}"));
        assert!(place.path(&format!("{name}/predictions.csv")).exists());
        for site in 0..5 {
            let kept = place.bytes(&format!("{}/particles.safetensors", results(&place, "rehearsal", site)));
            assert!(kept == place.bytes(&format!("{name}/particles.safetensors")), "{name}: site {site}");
        }
    }
    let rounds = column(&place, "stopped", "validation_nll").len();
    assert!((1..=rounds).contains(&best_round(&place, "stopped")));
}

#[test]
fn a_federation_with_weights_of_classes_has_the_note_on_validation_rows_of_the_run_in_one_process() {
    let place = Place::new();
    let keys = format!("{KEYS} --set rounds=2 --set stop.patience=2 --set data.class_weights=balanced");
    place.works(&format!("train --quiet {keys} --out here"));
    // It has notes too, beside the command.
    let command = command_in(&place.works(&format!("site split {keys} --out rehearsal")).stdout);
    place.works(&format!("{command} --quiet --out sites"));
    assert!(place.bytes("here/particles.safetensors") == place.bytes("sites/particles.safetensors"));
    let note = |run: &str| {
        let notes = place.json(&format!("{run}/summary.json"))["notes"].as_array().unwrap().clone();
        let about =
            |note: &&serde_json::Value| note.as_str().is_some_and(|note| note.starts_with("stop.patience judges"));
        notes.iter().filter(about).cloned().collect::<Vec<_>>()
    };
    let found = note("sites");
    assert!(found.len() == 1 && found == note("here"), "{found:?}");
    place.works(&format!("{command} --quiet --set stop.patience=0 --out plain"));
    assert!(note("plain").is_empty());
}

#[test]
fn the_metric_must_be_one_of_the_target_that_the_sites_hold() {
    let place = Place::new();
    place.write("prices.csv", prices(120));
    let keys = "--set data.kind=csv --set data.path=prices.csv --set data.target=price --set data.task=regression \
                --set partition.kind=iid --set partition.clients=2 --set partition.validation=0.2 --set rounds=4 \
                --set algorithm.particles=3 --set algorithm.local_steps=5 --set data.rotate=none";
    let command = split(&place, keys, "rehearsal");
    // The server's config need not say what the sites predict.
    let run = place.text("rehearsal/run.toml");
    assert!(run.contains("task = \"regression\"\n"));
    place.write("rehearsal/run.toml", run.replace("task = \"regression\"\n", ""));
    place.works(&format!("{command} --set stop.patience=2 --set stop.metric=rmse --out rmse"));
    assert_eq!(column(&place, "rmse", "validation_rmse").len(), place.table("rmse/rounds.csv").len() - 1);
    for keys in ["--set stop.patience=2", "--set lr_schedule.kind=plateau"] {
        place.refuses(
            &format!("{command} {keys} --set stop.metric=accuracy --out refused"),
            &["`stop.metric` = \"accuracy\" is one of a classification, but the data are a regression"],
        );
    }
    place.refuses(
        &format!("{command} --set model.kind=blr --out refused"),
        &["model kind `blr` tells two classes apart"],
    );
}

#[test]
fn a_federation_without_the_rows_for_it_is_refused_before_anything_is_written() {
    let place = Place::new();
    let command = split(&place, &format!("{KEYS} --set partition.validation=0"), "rehearsal");
    for (keys, words) in [
        ("--set stop.patience=3", ["stop.patience: no site tells of validation rows", "data.validation_path"]),
        ("--set lr_schedule.kind=plateau", ["lr_schedule.kind = \"plateau\"", "data.validation_fraction"]),
        ("--set stop.patience=3 --set stop.metric=rmse", ["`stop.metric` = \"rmse\"", "classification"]),
        ("--set stop.patience=3 --set evaluation.personal=true", ["evaluation.personal", "leave one of the two out"]),
    ] {
        place.refuses(&format!("{command} {keys} --out refused"), &words);
    }
}
