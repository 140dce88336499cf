//! `fedstein runs`, and what `provenance.json` says of a run.

use std::fs::File;
use std::path::Path;

use super::place::{Place, TINY, cells, pets, works};

fn two_runs() -> Place {
    let place = Place::new();
    place.write("pets.csv", pets(60));
    place.works(&format!("{TINY} --out runs/a --quiet"));
    let pets = "--set data.kind=csv --set data.path=pets.csv --set data.target=kind --set partition.clients=2";
    place.works(&format!("{TINY} {pets} --out runs/deep/b --quiet"));
    place
}

#[test]
fn every_run_below_a_directory_is_listed_with_its_state_and_metrics() {
    let place = two_runs();
    let printed = place.works("runs").stdout;
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 3, "{printed}");
    assert!(lines[0].starts_with("run          state     algorithm     data      rounds  accuracy"), "{printed}");
    assert!(lines[1].starts_with("runs/a       finished  newton-dsvgd  digits    2/2"), "{printed}");
    assert!(lines[2].starts_with("runs/deep/b  finished  newton-dsvgd  pets.csv  2/2"), "{printed}");

    let table = cells(&place.works("runs runs --csv").stdout);
    let column = |name: &str| table[0].iter().position(|head| head == name).unwrap();
    for (row, run) in table[1..].iter().zip(["runs/a", "runs/deep/b"]) {
        let evaluation = &place.json(&format!("{run}/summary.json"))["evaluation"];
        for name in ["accuracy", "nll", "ece"] {
            assert_eq!(row[column(name)].parse::<f64>().unwrap(), evaluation[name].as_f64().unwrap(), "{run} {name}");
        }
        let started =
            place.json(&format!("{run}/provenance.json"))["sessions"][0]["started"].as_str().unwrap().replace('T', " ");
        assert!(started.starts_with(&row[column("started")]) && row[column("started")].len() == 16, "{row:?}");
    }
    let listed: serde_json::Value = serde_json::from_str(&place.works("runs --json").stdout).unwrap();
    assert_eq!(listed[0]["run"], "runs/a");
    assert_eq!((&listed[1]["rounds_done"], &listed[1]["rounds"]), (&2.into(), &2.into()));
    assert_eq!(listed[0]["metrics"]["accuracy"], place.json("runs/a/summary.json")["evaluation"]["accuracy"]);
    // A run's own directory is a list of one.
    assert_eq!(place.works("runs runs/a").stdout.lines().count(), 2);
}

#[test]
fn stopped_running_and_broken_runs_are_told_apart() {
    let place = Place::new();
    place.works(&format!("{TINY} --out runs/a --quiet"));
    for name in ["stopped", "broken", "more"] {
        place.works(&format!("{TINY} --set checkpoint.every_seconds=0 --out runs/{name} --quiet"));
    }
    // What a killed process leaves.
    std::fs::remove_file(place.path("runs/stopped/summary.json")).unwrap();
    std::fs::remove_file(place.path("runs/broken/summary.json")).unwrap();
    std::fs::remove_dir_all(place.path("runs/broken/checkpoint")).unwrap();
    // A process that works on a run holds this lock.
    place.write("runs/a/run.lock", "process 7 on somewhere");
    let lock = File::options().write(true).open(place.path("runs/a/run.lock")).unwrap();
    lock.lock().unwrap();
    let printed = place.works("runs").stdout;
    for line in [
        "runs/a        running     ",
        "runs/broken   broken off  ",
        "runs/more     finished    ",
        "runs/stopped  stopped     ",
    ] {
        assert!(printed.lines().any(|found| found.starts_with(line)), "no {line:?} in\n{printed}");
    }
    assert!(printed.ends_with("stopped: fedstein train --resume runs/stopped\n"), "{printed}");
    let listed: serde_json::Value = serde_json::from_str(&place.works("runs --json").stdout).unwrap();
    assert_eq!(listed[0]["process"], "process 7 on somewhere");
    drop(lock);
    place.works("train --resume runs/stopped --quiet");
    let printed = place.works("runs").stdout;
    assert!(!printed.contains("stopped:"), "{printed}");
}

#[test]
fn a_run_that_a_killed_force_set_aside_is_listed_until_another_has_taken_its_place() {
    let place = Place::new();
    place.works(&format!("{TINY} --out runs/a --quiet"));
    let accuracy = place.json("runs/a/summary.json")["evaluation"]["accuracy"].as_f64().unwrap();
    std::fs::rename(place.path("runs/a"), place.path("runs/.a.former-4711")).unwrap();
    place.write("runs/a/run.lock", "process 4711 on somewhere");
    let printed = place.works("runs").stdout;
    assert!(printed.contains("runs/.a.former-4711  set aside  "), "{printed}");
    assert!(printed.contains(&format!("  {accuracy:.4}  ")), "{printed}");
    assert!(printed.contains("set aside: runs/.a.former-4711 is what `runs/a` held before a `--force`"), "{printed}");
    // A process that works in the place removes it once it has results.
    let lock = File::options().write(true).open(place.path("runs/a/run.lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(place.works("runs").stdout, "no runs in runs\n");
    drop(lock);
    place.works(&format!("{TINY} --out runs/a --force --quiet"));
    let printed = place.works("runs").stdout;
    assert!(printed.contains("runs/a  finished  ") && !printed.contains("former"), "{printed}");
}

#[test]
fn the_keys_in_which_configs_differ_are_shown_beside_each_other() {
    let place = Place::new();
    place.works(&format!("{TINY} --out a --quiet"));
    place.works(&format!("{TINY} --out b --quiet --seed 2 --set name=other --set algorithm.particles=3"));
    place.works(&format!("{TINY} --out c --quiet"));
    let printed = place.works("runs --diff a b").stdout;
    let keys: Vec<&str> = printed.lines().skip(1).filter_map(|line| line.split("  ").next()).collect();
    // Another seed splits the rows in another way.
    assert_eq!(keys, ["algorithm.particles", "name", "seed", "(rows, sha256)", "(clients' rows, sha256)"]);
    let table = cells(&place.works("runs --diff a b c --csv").stdout);
    assert_eq!(table[0], ["key", "a", "b", "c"]);
    assert_eq!(table[1], ["algorithm.particles", "4", "3", "4"]);
    let json: serde_json::Value = serde_json::from_str(&place.works("runs --diff a b --json").stdout).unwrap();
    assert_eq!((&json["seed"]["a"], &json["seed"]["b"]), (&"1".into(), &"2".into()));
    assert_eq!(place.works("runs --diff a c").stdout, "no key differs\n");
    place.refuses("runs --diff a", &["--diff"]);
    place.refuses("runs --diff a none", &["none/config.toml", "is this the directory of a run?"]);
}

#[test]
fn where_there_are_no_runs_it_is_said() {
    let place = Place::new();
    place.refuses("runs", &["`runs`", "name the directory of your runs"]);
    place.write("papers/config.toml", "not a run");
    assert_eq!(place.works("runs papers").stdout, "no runs in papers\n");
}

#[test]
#[cfg(unix)]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let place = two_runs();
    let pipe = |path: &str| {
        let path = place.path(path);
        let _ = std::fs::remove_file(&path);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    };
    pipe("runs/a/config.toml");
    pipe("runs/deep/b/summary.json");
    let listed = place.works("runs runs --csv").stdout;
    assert!(listed.contains("runs/deep/b") && !listed.contains("runs/a"), "{listed}");
    let output = place.command("report runs/deep/b --out other").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("summary.json: it is not a regular file"), "{stderr}");
}

#[test]
#[cfg(unix)]
fn a_run_whose_directory_was_moved_ends_and_goes_on_where_it_is() {
    let place = Place::new();
    let line = format!("{TINY} --set rounds=100000 --set checkpoint.every_seconds=0 --out runs/a --quiet");
    let mut run = place.command(&line).stderr(std::process::Stdio::piped()).spawn().unwrap();
    // A checkpoint is whole when its manifest is there, the last of its files.
    let is_manifest = |name: &str| name.starts_with("round-") && name.ends_with(".json");
    let has_manifest =
        |files: std::fs::ReadDir| files.flatten().any(|file| is_manifest(&file.file_name().to_string_lossy()));
    let saved = || std::fs::read_dir(place.path("runs/a/checkpoint")).is_ok_and(has_manifest);
    while !saved() {
        assert!(run.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::fs::rename(place.path("runs/a"), place.path("runs/b")).unwrap();
    let output = run.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("`runs/a` was moved, removed or replaced"), "{stderr}");
    assert!(!stderr.contains("resume with") && !place.path("runs/a").exists(), "{stderr}");
    let done = place.works("runs runs/b --csv").stdout;
    let done: usize = cells(&done)[1][4].split('/').next().unwrap().parse().unwrap();
    place.works(&format!("train --resume runs/b --set rounds={} --quiet", done + 1));
}

#[test]
fn files_that_cannot_be_read_leave_blanks() {
    let place = two_runs();
    for (file, text) in
        [("config.toml", "[["), ("summary.json", "{"), ("provenance.json", "[]"), ("rounds.csv", "round\n\"")]
    {
        place.write(&format!("runs/a/{file}"), text);
    }
    let printed = place.works("runs").stdout;
    assert_eq!(printed.lines().count(), 4, "{printed}");
    assert!(printed.contains("runs/deep/b  finished"), "{printed}");
}

#[test]
fn notes_on_a_config_are_those_of_the_run_after_a_resume_too() {
    let place = Place::new();
    // The config of the run has all keys, and no longer shows that nobody has said so.
    place.works("train --set algorithm.kind=fedavg --set rounds=1 --set algorithm.local_steps=2 --out run --quiet");
    place.works("train --resume run --set rounds=2 --quiet");
    let notes = place.json("run/summary.json")["notes"].as_array().unwrap().clone();
    let said = notes.iter().filter(|note| note.as_str().unwrap().contains("has nothing to average"));
    assert_eq!(said.count(), 1, "{notes:?}");
}

#[test]
fn a_run_says_where_its_results_come_from_and_has_the_same_files_as_before() {
    let place = two_runs();
    let of = place.json("runs/a/provenance.json");
    let session = &of["sessions"][0];
    assert_eq!(session["version"], env!("CARGO_PKG_VERSION"));
    let command: Vec<&str> = session["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert!(
        Path::new(command[0]).file_stem().unwrap() == "fedstein"
            && command[1..].join(" ") == format!("{TINY} --out runs/a --quiet"),
        "{command:?}"
    );
    assert_eq!(session["host"]["system"], std::env::consts::OS);
    assert!(session["host"]["threads"].as_u64() > Some(0));
    assert!(session["started"].as_str() <= session["ended"].as_str() && session["ended"].is_string(), "{session}");
    assert_eq!((&session["after_round"], &session["round"]), (&0.into(), &2.into()));
    // The rows are those of the run, whatever its seed of training; other rows have another hash.
    let hash = |run: &str| place.json(&format!("{run}/provenance.json"))["data_sha256"].as_str().unwrap().to_owned();
    assert_eq!(hash("runs/a").len(), 64);
    assert_ne!(hash("runs/a"), hash("runs/deep/b"));
    place.works(&format!("{TINY} --out again --quiet"));
    assert_eq!(hash("runs/a"), hash("again"));
    place.works("train --resume again --set rounds=3 --quiet");
    let sessions = place.json("again/provenance.json")["sessions"].as_array().unwrap().clone();
    assert_eq!(sessions.len(), 2);
    assert_eq!((&sessions[1]["after_round"], &sessions[1]["round"]), (&2.into(), &3.into()));
    // With one thread it says so, and nothing else but the time of the run differs.
    works(place.command(&format!("{TINY} --out one --quiet")).env("RAYON_NUM_THREADS", "1"));
    assert_eq!(place.json("one/provenance.json")["sessions"][0]["host"]["threads"], 1);
    assert!(place.bytes("one/particles.safetensors") == place.bytes("runs/a/particles.safetensors"));
    assert_eq!(hash("one"), hash("runs/a"));
}
