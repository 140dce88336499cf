//! The worked example of docs/example.md, as it stands there.
//!
//! It needs `covertype/covtype.binary.csv.gz` in the directory that `FEDSTEIN_DATA` names. Without the variable it passes, or
//! fails where `FEDSTEIN_REQUIRE_DATA=1`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::place::Place;

/// The fenced blocks of a page with this language, or with any other.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), None);
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(word)) => open = Some((word == language, String::new())),
            (Some(_), Some(_)) => found.extend(open.take().and_then(|(is_it, text)| is_it.then_some(text))),
            (Some((_, text)), None) => *text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    found
}

/// The file of Covertype; `None` without a directory of data.
fn covertype() -> Option<PathBuf> {
    let directory = std::env::var_os("FEDSTEIN_DATA");
    let is_required = std::env::var("FEDSTEIN_REQUIRE_DATA").is_ok_and(|value| value == "1");
    assert!(directory.is_some() || !is_required, "FEDSTEIN_REQUIRE_DATA=1, but FEDSTEIN_DATA is not set");
    Some(Path::new(&directory?).join("covertype/covtype.binary.csv.gz"))
}

#[test]
fn the_worked_example_runs_as_it_stands_and_prints_what_it_says() {
    let Some(file) = covertype() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/example.md")).unwrap();
    let place = Place::new();
    std::fs::create_dir_all(place.path("data/covertype")).unwrap();
    std::os::unix::fs::symlink(file, place.path("data/covertype/covtype.data.gz")).unwrap();
    std::os::unix::fs::symlink(root.join("scripts"), place.path("scripts")).unwrap();

    // The program under test, by its name.
    let program = Path::new(env!("CARGO_BIN_EXE_fedstein")).parent().unwrap();
    let search = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut printed = String::new();
    for block in blocks(&page, "sh") {
        // The file is here already, with the same columns and with two classes of the seven.
        let block = block.replace("fedstein data fetch covertype --data-dir data\n", "");
        let mut shell = Command::new("sh");
        let output =
            shell.args(["-e", "-c", &block]).current_dir(place.path(".")).env("PATH", &search).output().unwrap();
        let (out, notes) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{block}\n{out}\n{notes}");
        printed += &format!("{out}\n{notes}\n");
    }

    // Words and counts are those of the page, and so are numbers up to what processors may differ in.
    let table = place.text("forest.csv");
    for line in blocks(&page, "text").concat().lines().filter(|line| !line.is_empty() && *line != "...") {
        if table.contains(line) {
            continue;
        }
        let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty() && !is_fraction(word)).collect();
        let is_said = |of: &str| words.iter().all(|word| of.contains(word));
        assert!(printed.lines().any(is_said), "no line has the words of\n{line}\n{printed}");
    }
    let accuracy = |run: &str| place.json(&format!("{run}/report.json"))["overall"]["accuracy"].as_f64().unwrap();
    let (here, elsewhere) = (accuracy("runs/forest/report"), accuracy("runs/forest/evaluate/poudre/report"));
    assert!((here - 0.800).abs() < 0.02 && (elsewhere - 0.850).abs() < 0.05, "{here} {elsewhere}");
}

/// Whether a word is a number with a fraction, or a sign of one.
fn is_fraction(word: &str) -> bool {
    let digits = word.trim_start_matches(['+', '-', '±']);
    digits.contains('.') && digits.trim_end_matches('.').parse::<f64>().is_ok()
}
