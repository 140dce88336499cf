//! Runs of the command that end early: killed, interrupted, on a full disk, beside another process; and how they go on.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
#[cfg(unix)]
use std::process::Output;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::common::place::{Place, pets};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

use crate::resume::csv;

/// A run with three clients whose checkpoints come after every round.
const SMALL: &str = "--quiet --set algorithm.local_steps=6 --set algorithm.particles=4 --set partition.kind=iid \
                     --set data.rotate=none --set partition.clients=3 --set model.hidden=[20] --set checkpoint.every_seconds=0";

/// The output of a finished run, without the time.
fn results(place: &Place, name: &str) -> (Vec<u8>, Vec<Vec<String>>) {
    (place.bytes(&format!("{name}/particles.safetensors")), csv(&place.path(name)))
}

fn has_checkpoint(path: &Path) -> bool {
    let names = fs::read_dir(path.join("checkpoint")).into_iter().flatten();
    names.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("round-"))
}

fn json_rounds(place: &Place, line: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = place.command(&line.replace("--quiet", "--json"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

/// Reads this many rounds; fewer where the run ends before.
fn read_rounds(lines: &mut impl BufRead, rounds: usize) -> usize {
    (0..rounds).take_while(|_| lines.read_line(&mut String::new()).unwrap() > 0).count()
}

#[test]
fn a_run_that_is_killed_twenty_times_ends_like_one_that_was_not() {
    const ALL: usize = 120;
    let place = Place::new();
    let started = Instant::now();
    place.works(&format!("train {SMALL} --set rounds={ALL} --out straight"));
    let round = started.elapsed() / u32::try_from(ALL).unwrap();

    let mut rng = ChaCha12Rng::seed_from_u64(20);
    let (path, mut half_written) = (place.path("killed"), 0);
    for _ in 0..20 {
        let line = match has_checkpoint(&path) {
            true => "train --quiet --resume killed".to_owned(),
            false => format!("train {SMALL} --set rounds={ALL} --out killed --force"),
        };
        let (mut child, mut lines) = json_rounds(&place, &line);
        // A round is reported before its checkpoint is written, so that many of these kills happen during a write.
        read_rounds(&mut lines, rng.random_range(0..4));
        std::thread::sleep(round.mul_f64(rng.random_range(0.0..1.5)));
        child.kill().unwrap();
        let ended = child.wait_with_output().unwrap();
        // Windows has no signals.
        assert!(ended.status.code().is_none() || cfg!(windows), "{}", String::from_utf8_lossy(&ended.stderr));
        let names = fs::read_dir(path.join("checkpoint")).into_iter().flatten().flatten();
        half_written +=
            usize::from(names.into_iter().any(|entry| entry.file_name().to_string_lossy().ends_with(".tmp")));
    }
    println!("a half-written file lay there after {half_written} of 20 kills");
    assert!(has_checkpoint(&path));
    place.works("train --quiet --resume killed");
    let (got, want) = (results(&place, "killed"), results(&place, "straight"));
    assert!(got.0 == want.0, "the particles differ");
    assert_eq!(got.1, want.1);
}

/// Sends a signal to a child process.
#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap().success());
}

#[cfg(unix)]
fn interrupted(place: &Place, every_seconds: &str, name: &str) -> Output {
    let line = format!("train {SMALL} --set checkpoint.every_seconds={every_seconds} --set rounds=100000 --out {name}");
    let (child, mut lines) = json_rounds(place, &line);
    assert_eq!(read_rounds(&mut lines, 3), 3);
    signal(&child, name);
    // A closed pipe would be another reason to end.
    std::thread::spawn(move || read_rounds(&mut lines, usize::MAX));
    child.wait_with_output().unwrap()
}

#[cfg(unix)]
#[test]
fn without_checkpoints_ctrl_c_reports_that_the_run_cannot_be_resumed() {
    let place = Place::new();
    let ended = interrupted(&place, "0 --set checkpoint.enabled=false", "INT");
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted after round") && stderr.contains("no checkpoint to resume from"), "{stderr}");
    assert!(!stderr.contains("--resume") && !place.path("INT/checkpoint").exists(), "{stderr}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_and_sigterm_leave_a_checkpoint_and_show_how_to_resume() {
    let place = Place::new();
    // With a checkpoint of the last round the current one is abandoned; otherwise it is finished and saved.
    for (name, every_seconds) in [("INT", "0"), ("TERM", "1e9")] {
        let ended = interrupted(&place, every_seconds, name);
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(130), "{stderr}");
        let last = stderr.trim_end().lines().last().unwrap().to_owned();
        assert!(last.ends_with(&format!("fedstein train --resume {name}")), "{stderr}");
        let round = last.strip_prefix("the checkpoint of round ").and_then(|rest| rest.split(' ').next());
        let rounds = round.unwrap().parse::<usize>().unwrap() + 2;
        place.works(&format!("train --quiet --resume {name} --set rounds={rounds}"));
        place.works(&format!("train {SMALL} --set rounds={rounds} --out straight-{name}"));
        assert!(results(&place, name) == results(&place, &format!("straight-{name}")), "{name}");
    }
}

#[test]
fn a_second_process_in_a_run_directory_is_refused_with_the_first_ones_name() {
    let place = Place::new();
    place.works(&format!("train {SMALL} --set rounds=2 --out straight"));
    let (mut child, mut lines) = json_rounds(&place, &format!("train {SMALL} --set rounds=100000 --out run"));
    assert_eq!(read_rounds(&mut lines, 2), 2);
    // The first process writes all the while, so that the files before and after are not the same.
    let is_refused = |line: &str, holder: &Child| {
        let output = place.command(line).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
        assert!(stderr.contains(&format!("`run` is in use by process {}", holder.id())), "{line}: {stderr}");
    };
    is_refused("train --resume run", &child);
    is_refused(&format!("train {SMALL} --set rounds=2 --out run --force"), &child);
    is_refused(&format!("train {SMALL} --set rounds=2 --out run"), &child);
    // The first one does not notice.
    assert_eq!(read_rounds(&mut lines, 2), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(place.path("run/run.lock").exists(), "a killed process leaves the file, and no lock");
    let (mut child, mut lines) = json_rounds(&place, "train --quiet --resume run");
    assert_eq!(read_rounds(&mut lines, 1), 1);
    is_refused("train --resume run", &child);
    child.kill().unwrap();
    child.wait().unwrap();
    place.works(&format!("train {SMALL} --set rounds=2 --out run --force"));
    assert!(results(&place, "run") == results(&place, "straight"));
    // A run that has ended leaves no lock.
    assert_eq!(place.names("run"), place.names("straight"));
    assert!(!place.path("run/run.lock").exists());
}

#[test]
fn keys_that_change_the_result_are_refused_with_the_list_of_differences() {
    let place = Place::new();
    place.works(&format!("train {SMALL} --set rounds=2 --out run"));
    let words = ["optimizer.lr: 0.001 → 0.1", "seed: 1 → 7", "algorithm.particles: 4 → 5"];
    let changed = "train --resume run --set optimizer.lr=0.1 --set algorithm.particles=5 --seed 7 --set rounds=3";
    place.refuses(changed, &words);
    place.refuses("train --resume run --set rounds=1", &["round 2", "rounds = 1"]);
    place.refuses("train --resume run --force", &["--resume", "--force"]);
    place.refuses("train --resume nowhere", &["nowhere"]);
    place.works("train --resume run --quiet --set rounds=3 --set name=other --set checkpoint.keep=false");
    assert!(!place.path("run/checkpoint").exists());
    place.refuses("train --resume run", &["no checkpoint", "--force"]);
}

#[test]
fn checkpoints_that_are_damaged_foreign_or_of_another_format_are_named() {
    let place = Place::new();
    place.works(&format!("train {SMALL} --set rounds=2 --out run"));
    let manifest = place.text("run/checkpoint/round-2.json");
    place.write("run/checkpoint/round-2.json", &manifest[..manifest.len() / 2]);
    place.fails("train --resume run", &["no checkpoint can be used", "round-2.json"]);
    place.write("run/checkpoint/round-2.json", "[1, 2]");
    place.fails("train --resume run", &["round-2.json", "sha256"]);
    place.write("run/checkpoint/round-2.json", &manifest);
    let server = place.bytes("run/checkpoint/server-2.safetensors");
    place.write("run/checkpoint/server-2.safetensors", place.bytes("run/particles.safetensors"));
    place.fails("train --resume run", &["server-2.safetensors", "bytes"]);
    place.write("run/checkpoint/server-2.safetensors", server);
    place.works("train --quiet --resume run --set rounds=3");
}

#[test]
fn other_data_is_refused_and_missing_data_named() {
    let place = Place::new();
    place.write("pets.csv", pets(90));
    let data = "--set data.kind=csv --set data.path=pets.csv --set data.target=kind";
    place.works(&format!("train {SMALL} {data} --set rounds=2 --out run"));
    fs::remove_file(place.path("pets.csv")).unwrap();
    place.refuses("train --resume run --set rounds=3", &["pets.csv"]);
    place.write("pets.csv", pets(90).replacen("-2.", "-2.1", 1));
    place.refuses("train --resume run --set rounds=3", &["training and test rows", "sha256"]);
    place.write("pets.csv", pets(90));
    place.works("train --quiet --resume run --set rounds=3");
}

/// A run of two rounds, and what it would be after four.
fn two_rounds(place: &Place) -> (Vec<u8>, Vec<Vec<String>>) {
    place.works(&format!("train {SMALL} --set rounds=4 --out straight"));
    place.works(&format!("train {SMALL} --set rounds=2 --out run"));
    results(place, "straight")
}

#[track_caller]
fn fails_and_goes_on(place: &Place, mut command: Command, words: &[&str], want: &(Vec<u8>, Vec<Vec<String>>)) {
    let ended = command.output().unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{stderr}");
    for word in words.iter().chain(&["round 2 is complete", "fedstein train --resume run"]) {
        assert!(stderr.contains(word), "no \"{word}\" in {stderr}");
    }
    let _ = fs::remove_dir(place.path("run/checkpoint/server-3.safetensors"));
    place.works("train --quiet --resume run --set rounds=4");
    assert!(results(place, "run") == *want);
}

#[cfg(unix)]
#[test]
fn a_full_disk_ends_the_run_and_leaves_the_checkpoint_before() {
    let place = Place::new();
    let want = two_rounds(&place);
    // No file beyond 16 blocks of 512 or 1024 bytes. A disk sends no signal with the error; the program takes none from this limit.
    let limited =
        format!("ulimit -f 16; exec {} train --quiet --resume run --set rounds=4", env!("CARGO_BIN_EXE_fedstein"));
    let mut command = Command::new("sh");
    command.args(["-c", &limited]).current_dir(place.path("."));
    fails_and_goes_on(&place, command, &["cannot write a checkpoint", "File too large"], &want);
}

#[test]
fn a_name_that_cannot_be_written_ends_the_run_and_leaves_the_checkpoint_before() {
    let place = Place::new();
    let want = two_rounds(&place);
    // This replaces a directory without write permission, because root may write anywhere.
    fs::create_dir(place.path("run/checkpoint/server-3.safetensors")).unwrap();
    let command = place.command("train --quiet --resume run --set rounds=4");
    fails_and_goes_on(&place, command, &["cannot write a checkpoint", "server-3.safetensors"], &want);
}

#[test]
fn a_run_without_checkpoints_leaves_none() {
    let place = Place::new();
    place.works(&format!("train {SMALL} --set rounds=2 --set checkpoint.enabled=false --out run"));
    assert!(!place.path("run/checkpoint").exists());
    place.refuses("train --resume run", &["no checkpoint"]);
}

// -------------------------------------------------------------------------------------------- ends before the last round
