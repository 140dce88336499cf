//! `fedstein evaluate` on rows that the run was trained on.

use super::evaluate::{PETS, classification};
use super::place::{Place, TINY, pets};

/// The only note of an evaluation that `fedstein evaluate` has just made, and nothing where there is none.
fn note_of(place: &Place, line: &str, report: &str) -> Option<String> {
    let printed = place.works(line).stderr;
    let notes = place.json(report)["run"]["notes"].take();
    let notes: Vec<&str> = notes.as_array().into_iter().flatten().map(|note| note.as_str().unwrap()).collect();
    let said: String = notes.iter().map(|note| format!("note: {note}\n")).collect();
    // What is printed has `/` in the paths of Windows.
    assert_eq!(printed, said.replace('\\', "/"), "{line}");
    assert!(notes.len() < 2, "{notes:?}");
    notes.first().map(ToString::to_string)
}

/// How many rows `train_lines.csv` has of each use: training, validation, calibration.
fn uses(place: &Place, run: &str) -> [usize; 3] {
    let lines = place.table(&format!("{run}/train_lines.csv"));
    ["training", "validation", "calibration"].map(|word| lines[1..].iter().filter(|row| row[2] == word).count())
}

#[test]
fn rows_of_the_training_are_counted_in_a_note_and_those_of_the_test_have_none() {
    let place = Place::new();
    place.write("pets.csv", pets(60));
    let keys = PETS.replace("--set data.test_path=more.csv", "--set partition.validation=0.25");
    place.works(&format!("{TINY} {keys} --out run"));
    let note = |input: &str| {
        let line = format!("evaluate run --input {input}.csv --out judged --force");
        note_of(&place, &line, "judged/report/report.json")
    };
    let [training, validation, calibration] = uses(&place, "run");
    assert!(training > 0 && validation > 0 && calibration == 0);
    let expected = format!(
        "{} of the 60 rows are rows of the run's training, by their lines (train_lines.csv: {training} training, {validation} \
         validation), and such rows mostly have better scores than new ones; the run's own report has no training row, and \
         neither has a copy of the file with its header and the lines of the run's test_lines.csv alone",
        training + validation
    );
    assert_eq!(note("pets").as_ref(), Some(&expected));
    assert_eq!(note("./pets").as_ref(), Some(&expected), "another path to the file");
    // The content says it, and not the name: the second file has as many bytes.
    place.write("copy.csv", pets(60)).write("other.csv", pets(60).replacen("cat", "eel", 1));
    assert_eq!(note("copy").as_ref(), Some(&expected));
    assert_eq!(note("other"), None);

    // What the note says to do: the rows of the run's own report.
    let (table, tested) = (place.text("pets.csv"), place.table("run/test_lines.csv"));
    let lines: Vec<&str> = table.lines().collect();
    let of_test = tested[1..].iter().map(|row| lines[row[0].parse::<usize>().unwrap() - 1]);
    let of_test: String = std::iter::once(lines[0]).chain(of_test).map(|line| format!("{line}\n")).collect();
    place.write("tested.csv", of_test);
    assert_eq!(note("tested"), None);
    assert_eq!(place.text("judged/predictions.csv"), place.text("run/predictions.csv"));

    // A table that was written since the run began may have other rows in its lines.
    let table = std::fs::File::options().write(true).open(place.path("pets.csv")).unwrap();
    table.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(3600)).unwrap();
    let doubt = "; the table was written since the run has begun: this holds if these lines are the same rows still";
    assert_eq!(note("pets"), Some(format!("{expected}{doubt}")));
    table.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    drop(table);
    assert_eq!(note("copy"), Some(expected), "of the table and not of its copy");

    // Nothing is said where nobody can tell any more, and nothing fails.
    let (all, rest) = (place.text("run/train_lines.csv"), place.path("run/train_lines.csv"));
    for damaged in ["", "line,client,use\n", "line\n2\n", "line,client,use\n2,1,testing\nx,1,training\n"] {
        place.write("run/train_lines.csv", damaged);
        assert_eq!(note("pets"), None, "{damaged:?}");
    }
    place.write("run/train_lines.csv", "line,client,use\n2,\"a,\nb\",calibration\n");
    let of_one = note("pets").unwrap();
    assert!(
        of_one.starts_with("1 of the 60 rows is a row of the run's training, by their lines (train_lines.csv: 1 calib")
    );
    std::fs::remove_file(&rest).unwrap();
    assert_eq!(note("pets"), None);
    std::fs::write(&rest, all).unwrap();
    std::fs::remove_file(place.path("pets.csv")).unwrap();
    assert_eq!(note("copy"), None);
}

#[test]
fn rows_that_took_no_part_in_the_training_are_not_counted_with_those_that_did() {
    // With a file of test rows, all rows of the other one are in the training.
    let place = classification("");
    let note =
        |line: &str| note_of(&place, &format!("evaluate {line} --out judged --force"), "judged/report/report.json");
    let of_all = note("run --input pets.csv").unwrap();
    assert!(
        of_all.starts_with(
            "60 of the 60 rows are rows of the run's training, by their lines (train_lines.csv: 60 training),"
        ),
        "{of_all}"
    );
    assert!(of_all.contains("; the run's test rows are those of ") && of_all.ends_with("more.csv"), "{of_all}");
    assert_eq!(note("run --input more.csv"), None);

    // Six rows have no kind, and twenty of the others are trained on.
    let line = |(at, line): (usize, &str)| match at % 10 {
        9 => line.replace("cat", "").replace("dog", "").replace("eel", "") + "\n",
        _ => format!("{line}\n"),
    };
    place.write("few.csv", pets(60).lines().enumerate().map(line).collect::<String>());
    let keys = PETS.replace("pets.csv", "few.csv").replace("--set data.test_path=more.csv", "");
    place.works(&format!("{TINY} {keys} --set data.missing_target=drop --set data.train_limit=20 --out few"));
    assert_eq!(uses(&place, "few"), [20, 0, 0]);
    let printed = place.works("evaluate few --input few.csv").stderr;
    let counted =
        "note: 20 of the 54 rows are rows of the run's training, by their lines (train_lines.csv: 20 training),";
    assert!(printed.contains(counted), "{printed}");
}
