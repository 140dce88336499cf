//! What the program reads of its own and of others' making, damaged: the config, predictions, the directory of a run
//! with its checkpoint, the messages of sites.
//! Seeded mutations of good files must be read or refused with the place, without a panic and within bounded memory.
//! The formats of data sets are in `datasets/tests/hostile/`; docs/reliability.md has the bounds.
//!
//! The ignored tests do the same for a configured time, instead of a fuzzer, which would have to compile
//! Burn with its own flags:
//!
//!     FEDSTEIN_FUZZ_SECONDS=600 cargo test --release --test hostile -- --ignored --nocapture
#![allow(clippy::result_large_err)] // closures of the library's own loaders

#[path = "../../datasets/tests/mutation/mod.rs"]
mod mutation;
#[path = "../../datasets/tests/peak/mod.rs"]
mod peak;
mod sites;
mod wire;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use fedstein::backend::{Flex, Precision, Session};
use fedstein::checkpoint::{CheckpointError, Manifest, Store, codec};
use fedstein::experiment::Config;
use fedstein::experiment::finished::Finished;
use fedstein::experiment::schema::{ConfigError, Overrides, Source};
use fedstein::report::csv;
use mutation::mutated;
use peak::peak;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use tempfile::TempDir;

/// The bytes that a reader allocates for any file.
const ROOM: usize = 1 << 18;

/// The cases: a fixed number, or as many as the time allows.
enum Budget {
    Cases(usize),
    Until(Instant),
}

impl Budget {
    /// `FEDSTEIN_FUZZ_SECONDS` from now on, ten where it is not set.
    fn of_environment() -> Self {
        let seconds = std::env::var("FEDSTEIN_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
        Self::Until(Instant::now() + Duration::from_secs(seconds))
    }

    fn allows(&self, done: usize) -> bool {
        match self {
            Self::Cases(cases) => done < *cases,
            Self::Until(end) => Instant::now() < *end,
        }
    }
}

#[track_caller]
fn assert_plain(message: &str) {
    assert!(message.len() < 2_000, "{} bytes of message", message.len());
    assert!(!message.is_empty());
}

/// Damaged predictions of both kinds; how many were read and how many refused.
fn damage_predictions(budget: Budget) -> (usize, usize) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("bad.csv");
    let classes: &[&[u8]] = &[b"label,p_0,p_1\n1,0.25,0.75\n0,0.5,0.5\n", b"\"label\", p_1\r\n1,5e-1\r\n\r\n"];
    let real: &[&[u8]] = &[b"target,mean_0,precision_0,mean_1,precision_1\n1,1.5,0.25,2,1\n-3,1,2,3,4\n"];
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut read, mut refused) = (0, 0);
    while budget.allows(read + refused) {
        for good in classes.iter().chain(real) {
            let bytes = mutated(good, &mut rng);
            fs::write(&path, &bytes).unwrap();
            let (result, most) = peak(|| match real.contains(good) {
                true => csv::read_regression(&path).map(|_| ()),
                false => csv::read_predictions(&path).map(|_| ()),
            });
            fs::remove_file(&path).unwrap();
            assert!(most <= 64 * bytes.len() + ROOM, "{most} bytes held for {}", bytes.len());
            let Err(error) = result else {
                read += 1;
                continue;
            };
            refused += 1;
            let message = error.to_string();
            assert_plain(&message);
            assert!(message.contains("bad.csv, line ") && !message.chars().any(char::is_control), "{message:?}");
        }
    }
    (read, refused)
}

#[test]
fn damaged_predictions_are_read_or_refused_with_their_line() {
    let (read, refused) = damage_predictions(Budget::Cases(6_000));
    assert!(read > 300 && refused > 3_000, "{read} read, {refused} refused");
}

#[test]
#[ignore = "runs for FEDSTEIN_FUZZ_SECONDS"]
fn damaged_predictions_for_as_long_as_told() {
    println!("predictions, (read, refused): {:?}", damage_predictions(Budget::of_environment()));
}

#[test]
fn the_greediest_predictions_stay_within_the_bound() {
    const SIZE: usize = 1 << 20;
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("bad.csv");
    let fill = |head: &str, piece: &str| [head, &piece.repeat(SIZE / piece.len())].concat();
    let mut worst: f64 = 0.0;
    for text in [
        fill("", ","),
        fill("", "\n") + "x",
        fill("label", ",p_0"),
        fill("label,p_1\n", "1,1\n"),
        fill("label,p_1\n", "\n") + "1,1",
        fill("target,mean_0,precision_0\n", "1,1,1\n"),
        fill("target,mean_0,precision_0\n", "\n"),
        fill("target", ",m,p"),
    ] {
        fs::write(&path, &text).unwrap();
        for most in [peak(|| csv::read_predictions(&path).err()).1, peak(|| csv::read_regression(&path).err()).1] {
            assert!(most <= 64 * text.len() + ROOM, "{most} bytes held for {:?}...", &text[..30]);
            worst = worst.max(most as f64 / text.len() as f64);
        }
    }
    println!("predictions: {worst:.1} times the file");
}

/// Every config of the repository.
fn configs() -> Vec<String> {
    fn below(directory: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { below(&path, files) } else { files.push(path) }
        }
    }
    let mut files = Vec::new();
    below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("configs"), &mut files);
    files.sort();
    let toml = files.iter().filter(|path| path.extension().is_some_and(|e| e == "toml"));
    toml.map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Damaged configs, and a damaged `--set`; how many were accepted and how many refused.
fn damage_configs(budget: Budget) -> (usize, usize) {
    let good = configs();
    assert!(good.len() > 3);
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let (mut accepted, mut refused) = (0, 0);
    while budget.allows(accepted + refused) {
        for text in &good {
            let bytes = mutated(text.as_bytes(), &mut rng);
            // Bytes that are no text are refused before they come here.
            let text = String::from_utf8_lossy(&bytes);
            let (result, most) = peak(|| Config::load(Source { name: "bad.toml", text: &text }, &Overrides::default()));
            assert!(most <= 256 * text.len() + (1 << 20), "{most} bytes held for {}", text.len());
            match result {
                Ok((config, resolved)) => {
                    accepted += 1;
                    let again = resolved.to_toml();
                    let source = Source { name: "again.toml", text: &again };
                    assert_eq!(Config::load(source, &Overrides::default()).unwrap().0, config, "{text}");
                }
                Err(error) => {
                    refused += 1;
                    assert!(!matches!(error, ConfigError::Internal(_)), "{error}, of\n{text}");
                    let message = error.to_string();
                    assert_plain(&message);
                    assert!(message.contains("bad.toml"), "{message}");
                }
            }
        }
        let set = mutated(b"model.hidden=[100, 50]", &mut rng);
        let overrides = Overrides { set: vec![String::from_utf8_lossy(&set).into_owned()], ..Overrides::default() };
        if let Err(error) = Config::load(Source { name: "none", text: "" }, &overrides) {
            assert!(!matches!(error, ConfigError::Internal(_)), "{error}");
            assert_plain(&error.to_string());
        }
    }
    (accepted, refused)
}

#[test]
fn damaged_configs_are_read_or_refused_with_their_line() {
    let (accepted, refused) = damage_configs(Budget::Cases(4_000));
    assert!(accepted > 200 && refused > 2_000, "{accepted} accepted, {refused} refused");
}

#[test]
#[ignore = "runs for FEDSTEIN_FUZZ_SECONDS"]
fn damaged_configs_for_as_long_as_told() {
    println!("configs, (accepted, refused): {:?}", damage_configs(Budget::of_environment()));
}

#[test]
fn nesting_without_end_is_refused() {
    for piece in ["[", "{a=", "a.", "[[", "\"", "'''", "a=[", "a={a="] {
        let text = format!("x = {}", piece.repeat(100_000));
        for text in [text.as_str(), &text[4..]] {
            let (result, most) = peak(|| Config::load(Source { name: "deep.toml", text }, &Overrides::default()));
            let message = result.unwrap_err().to_string();
            assert!(message.starts_with("deep.toml"), "{piece}: {message}");
            assert_plain(&message);
            assert!(most <= 256 * text.len() + (1 << 20), "{piece}: {most} bytes held for {}", text.len());
        }
    }
}

/// A directory with the runs `classes` and `real`, each with two rounds and three particles, and new rows for each.
fn runs() -> TempDir {
    let dir = TempDir::new().unwrap();
    let row = |i: usize| format!("{},{},{}\n", i % 7, (i * i) % 11, if i.is_multiple_of(3) { "cat" } else { "dog" });
    fs::write(dir.path().join("pets.csv"), format!("a,b,kind\n{}", (0..40).map(row).collect::<String>())).unwrap();
    let row = |i: usize| format!("{},{},{}.5\n", i % 7, (i * i) % 11, i);
    fs::write(dir.path().join("prices.csv"), format!("a,b,price\n{}", (0..40).map(row).collect::<String>())).unwrap();
    fs::write(dir.path().join("new.csv"), "a,b\n1,2\n3,4\n").unwrap();
    for (name, data) in [
        ("classes", "--set data.path=pets.csv --set data.target=kind"),
        ("real", "--set data.path=prices.csv --set data.target=price --set data.task=regression"),
    ] {
        let line = format!(
            "train --quiet --set rounds=2 --set algorithm.local_steps=2 --set \
             algorithm.particles=3 --set model.hidden=[4] --set partition.clients=2 --set data.kind=csv {data} --out {name}"
        );
        let output = fedstein(dir.path(), &line);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    dir
}

/// The binary in a directory, where the system can with 8 GiB of address space and no more.
fn fedstein(dir: &Path, line: &str) -> Output {
    let binary = env!("CARGO_BIN_EXE_fedstein");
    let mut command = if cfg!(target_os = "linux") {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -v 8388608; exec \"$0\" \"$@\"", binary]);
        shell
    } else {
        Command::new(binary)
    };
    command.args(line.split_whitespace()).current_dir(dir).env_remove("FEDSTEIN_DATA").output().unwrap()
}

/// Damaged files of a run, read as predictions read them; how many were read and how many refused.
fn damage_runs(budget: Budget) -> (usize, usize) {
    let dir = runs();
    let session = Session::open::<Flex>(Precision::F32).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let (mut read, mut refused) = (0, 0);
    while budget.allows(read + refused) {
        for run in ["classes", "real"].map(|name| dir.path().join(name)) {
            for name in ["particles.safetensors", "model.json", "summary.json"] {
                let path = run.join(name);
                let good = fs::read(&path).unwrap();
                let bytes = mutated(&good, &mut rng);
                fs::remove_file(&path).unwrap();
                fs::write(&path, &bytes).unwrap();
                let (result, most) = peak(|| {
                    let finished = Finished::open(&run)?;
                    let source = Source { name: "config.toml", text: &finished.config_toml };
                    let (config, _) = Config::load(source, &Overrides::default()).unwrap();
                    let model = config.model(&finished.shape())?;
                    finished.particles(&*model, &session).map(|particles| particles.count())
                });
                fs::remove_file(&path).unwrap();
                fs::write(&path, &good).unwrap();
                assert!(most <= 64 * bytes.len() + (1 << 21), "{name}: {most} bytes held for {}", bytes.len());
                match result {
                    Ok(count) => {
                        read += 1;
                        // A damaged N is a damaged shape, which the bytes do not fit.
                        assert_eq!(count, 3);
                    }
                    Err(error) => {
                        refused += 1;
                        assert_plain(&error.to_string());
                        // A card that is consistent in itself may still not match the particles.
                        let named = [name, "particles.safetensors"].iter().any(|name| error.to_string().contains(name));
                        assert!(named || name == "model.json", "{name}: {error}");
                        assert_eq!(error.exit_code(), 2, "{error}");
                    }
                }
            }
        }
    }
    (read, refused)
}

#[test]
fn damaged_files_of_a_run_are_read_or_refused() {
    let (read, refused) = damage_runs(Budget::Cases(3_000));
    assert!(read > 100 && refused > 1_500, "{read} read, {refused} refused");
}

#[test]
#[ignore = "runs for FEDSTEIN_FUZZ_SECONDS"]
fn damaged_files_of_a_run_for_as_long_as_told() {
    println!("files of a run, (read, refused): {:?}", damage_runs(Budget::of_environment()));
}

/// The names of the files of a run's checkpoint, below the run.
fn files_of_checkpoint(run: &Path) -> Vec<String> {
    let names = fs::read_dir(run.join("checkpoint")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| format!("checkpoint/{}", name.to_str().unwrap())).collect();
    names.sort();
    assert!(names.len() > 3 && names.iter().any(|name| name.ends_with("round-2.json")), "{names:?}");
    names
}

/// Damaged files of a checkpoint, read as `train --resume` reads them, and by their decoders alone, which the sha256 of
/// every file otherwise keeps from ever seeing damage; how many were read by a decoder and how many refused.
fn damage_checkpoints(budget: Budget) -> (usize, usize) {
    let dir = runs();
    let files = ["classes", "real"].map(|name| (dir.path().join(name), files_of_checkpoint(&dir.path().join(name))));
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (mut read, mut refused) = (0, 0);
    while budget.allows(read + refused) {
        for (run, name) in files.iter().flat_map(|(run, names)| names.iter().map(move |name| (run, name))) {
            let path = run.join(name);
            let good = fs::read(&path).unwrap();
            let bytes = mutated(&good, &mut rng);
            fs::write(&path, &bytes).unwrap();
            let size: usize = files_of_checkpoint(run).iter().map(|name| fs::read(run.join(name)).unwrap().len()).sum();
            let (opened, most) = peak(|| Store::open(&run.join("checkpoint")).map(drop));
            fs::write(&path, &good).unwrap();
            assert!(most <= 64 * size + ROOM, "{name}: {most} bytes held for {size}");
            // An additional space in a manifest does no harm.
            if bytes != good && !name.ends_with(".json") {
                let Err(CheckpointError::Damaged(problems)) = &opened else { panic!("{name}: {opened:?}") };
                let is_named = |problem: &String| problem.replace('\\', "/").contains(name.as_str());
                assert!(problems.len() == 1 && problems.iter().all(is_named), "{problems:?}");
            }
            opened.err().iter().for_each(|error| assert_plain(&error.to_string()));

            let (decoded, most) = peak(|| match std::str::from_utf8(&bytes) {
                Ok(text) if name.ends_with(".json") => {
                    Manifest::from_text(&path, text).map(drop).map_err(|error| error.to_string())
                }
                _ => codec::decode(&bytes).map(drop),
            });
            assert!(most <= 64 * bytes.len() + ROOM, "{name}: {most} bytes held for {}", bytes.len());
            match decoded {
                Ok(()) => read += 1,
                Err(message) => {
                    refused += 1;
                    assert_plain(&message);
                    assert!(!message.chars().any(char::is_control), "{message:?}");
                }
            }
        }
    }
    (read, refused)
}

#[test]
fn damaged_checkpoints_are_refused_and_their_decoders_do_not_panic() {
    let (read, refused) = damage_checkpoints(Budget::Cases(3_000));
    assert!(read > 100 && refused > 1_500, "{read} read, {refused} refused");
}

#[test]
#[ignore = "runs for FEDSTEIN_FUZZ_SECONDS"]
fn damaged_checkpoints_for_as_long_as_told() {
    println!("checkpoints, (read, refused): {:?}", damage_checkpoints(Budget::of_environment()));
}

/// Damaged files of a run through the binary's `report`, `predict` and `train --resume`; how many of each ended with 0,
/// and how many of all were refused.
fn damage_for_the_binary(budget: Budget) -> ([usize; 3], usize) {
    const FILES: [&str; 6] =
        ["particles.safetensors", "model.json", "summary.json", "config.toml", "predictions.csv", "uncertainty.csv"];
    let dir = runs();
    let files = ["classes", "real"].map(|run| {
        let own = FILES.map(str::to_owned).into_iter();
        (run, own.chain(files_of_checkpoint(&dir.path().join(run))).collect::<Vec<String>>())
    });
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let (mut fine, mut refused) = ([0; 3], 0);
    while budget.allows(fine.iter().sum::<usize>() + refused) {
        for (run, name) in files.iter().flat_map(|(run, names)| names.iter().map(move |name| (run, name))) {
            let path = dir.path().join(run).join(name);
            let of_checkpoint = name.starts_with("checkpoint");
            // A regression has no mutual information.
            let Ok(good) = fs::read(&path) else { continue };
            let bytes = mutated(&good, &mut rng);
            fs::write(&path, &bytes).unwrap();
            // Damage to `rounds` must not start a long run.
            let lines = [
                format!("report {run} --out out --force"),
                format!("predict {run} --input new.csv --out out.csv --force"),
                format!("train --quiet --resume {run} --set rounds=2"),
            ];
            // Neither a report nor a prediction looks at the checkpoint.
            for (command, line) in lines.iter().enumerate().skip(if of_checkpoint { 2 } else { 0 }) {
                let output = fedstein(dir.path(), line);
                let stderr = String::from_utf8(output.stderr).unwrap();
                let shown = String::from_utf8_lossy(&bytes);
                match output.status.code() {
                    Some(0) => fine[command] += 1,
                    Some(2) => refused += 1,
                    // The one generation that a finished run keeps is damaged, and there is none to go back to.
                    Some(1) if of_checkpoint && stderr.contains("no checkpoint can be used") => refused += 1,
                    code => panic!("{line} with {run}/{name} ended with {code:?}: {stderr}\n{shown}"),
                }
                assert!(!stderr.contains("panicked"), "{line} with {run}/{name}: {stderr}\n{shown}");
                assert!(!stderr.chars().any(|c| c.is_control() && c != '\n'), "{stderr:?}");
            }
            fs::write(&path, &good).unwrap();
        }
    }
    (fine, refused)
}

#[test]
fn the_binary_reports_on_predicts_with_and_resumes_damaged_runs_or_refuses_them() {
    let (fine, refused) = damage_for_the_binary(Budget::Cases(300));
    assert!(fine.iter().all(|&fine| fine > 10) && refused > 50, "{fine:?} fine, {refused} refused");
}

#[test]
#[ignore = "runs for FEDSTEIN_FUZZ_SECONDS"]
fn the_binary_with_damaged_runs_for_as_long_as_told() {
    println!("binary, (fine, refused): {:?}", damage_for_the_binary(Budget::of_environment()));
}

#[test]
fn absurd_sizes_are_refused_before_anything_is_allocated() {
    let dir = runs();
    for (change, words) in [
        ("model.hidden=[9000000000000000000]", "layer 1 `dense 9000000000000000000`"),
        ("model.hidden=[1000000,1000000]", "layer 2 `dense 1000000`: with it a particle has more than 2147483647"),
        ("model.hidden=[3000000000,3000000000]", "more than 2147483647 parameters"),
        ("algorithm.particles=1000000", "algorithm.particles = 1000000: with the model's 3760 parameters each"),
        (
            "algorithm.particles=1000000 --set data.kind=mixture-1d --set model.kind=mixture --set algorithm.kind=dsvgd --set partition.clients=2",
            "the kernel between all of them has more than 2147483647 numbers",
        ),
        ("model.kind=stack --set model.layers=[\"dense_1000000\"]", "model.layers"),
    ] {
        let output = fedstein(dir.path(), &format!("train --quiet --set rounds=1 --set {change} --out big"));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{change}: {stderr}");
        assert!(stderr.contains(words), "{change}: {stderr}");
        assert!(!dir.path().join("big").exists(), "{change}");
    }
    let card = dir.path().join("classes/model.json");
    let good = fs::read_to_string(&card).unwrap();
    for (change, words) in [
        (
            ("\"features\": 2", "\"features\": 18446744073709551615"),
            "`features` is 18446744073709551615; it must be from 1",
        ),
        (("\"features\": 2", "\"features\": 0"), "`features` is 0"),
        (("\"features\": 2", "\"features\": 3"), "`feature_names` has 2 names for 3 features"),
        (("\"schema_version\": 1", "\"schema_version\": 7"), "`schema_version` is 7; this program reads 1"),
        (("\"dog\"", "\"dog\", \"eel\""), "particles.safetensors"),
    ] {
        let text = good.replacen(change.0, change.1, 1);
        assert_ne!(text, good, "{change:?}");
        fs::write(&card, text).unwrap();
        let output = fedstein(dir.path(), "predict classes --input new.csv");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{change:?}: {stderr}");
        assert!(stderr.contains(words), "{change:?}: {stderr}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_without_end_is_refused_within_bounded_memory() {
    let dir = runs();
    // 2 GiB are read before it is believed that there is no end: within the 8 GiB of `fedstein`.
    let particles = dir.path().join("classes/particles.safetensors");
    fs::remove_file(&particles).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &particles).unwrap();
    let output = fedstein(dir.path(), "predict classes --input new.csv");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("particles.safetensors: more than 2147483648 bytes, and no end"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn a_link_in_a_run_does_not_lead_its_report_elsewhere() {
    let dir = runs();
    let (report, elsewhere) = (dir.path().join("classes/report"), dir.path().join("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    fs::remove_dir_all(&report).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &report).unwrap();
    let output = fedstein(dir.path(), "report classes");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("is a link; name where the report goes with --out"), "{stderr}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn a_message_has_no_control_characters() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("bad.toml"), "\"\\u001b[2J\" = 1\n").unwrap();
    let output = fedstein(dir.path(), "train bad.toml");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(r"\u{1b}[2J") && !stderr.contains('\u{1b}'), "{stderr:?}");
}
