//! Rows of a group, such as the visits of a patient, stay together in tables and partitions.

use super::partitions::{assigned, labelled, message};
use super::tables::{counts, loaded, table, texts};
use fedstein_datasets::partition::{ByColumn, Dirichlet, Iid};
use fedstein_datasets::source::{Csv, Sites};
use fedstein_datasets::{Dataset, Header, Normalise, PartitionConfig, PartitionScheme, Reading, Task, partition};
use rand::{SeedableRng, rngs::ChaCha8Rng};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn rows_of_a_group_stay_together_and_two_files_may_share_some() {
    // 12 patients with three visits each.
    let row = |i: usize| format!("{},P{},{},{}\n", i, i % 12, i * 7 % 5, if i.is_multiple_of(3) { "a" } else { "b" });
    let text = |rows: std::ops::Range<usize>| format!("visit,patient,x,y\n{}", rows.map(row).collect::<String>());
    let dir = tempfile::tempdir().unwrap();
    let [path, second, without] = ["t.csv", "second.csv", "without.csv"].map(|name| dir.path().join(name));
    std::fs::write(&path, text(0..36)).unwrap();
    std::fs::write(&second, text(9..14)).unwrap();
    std::fs::write(&without, "visit,x,y\n90,3,b\n91,4,a\n").unwrap();
    let reading = Reading { id: texts(&["visit", "patient"]), group_column: "patient".into(), ..Reading::default() };
    let csv = Csv { target: "y".into(), test_fraction: 0.25, ..table(&path, reading) };
    let data = loaded(csv.clone()).unwrap();
    assert_eq!(data.train.feature_names, Some(texts(&["x"])));
    let groups = |rows: &Dataset| counts(rows.groups.as_ref().unwrap());
    let (train, test) = (groups(&data.train), groups(&data.test));
    assert!(
        (0..12).all(|group| train.get(group).unwrap_or(&0) + test.get(group).unwrap_or(&0) == 3),
        "{train:?} {test:?}"
    );
    assert_eq!((data.train.rows(), data.test.rows()), (27, 9));
    assert_eq!(data.notes, ["groups of rows: 9 in training, 3 in test, none in both"]);
    // Rows that a limit leaves out are not counted.
    let few = loaded(Csv { train_limit: 2, test_limit: 1, ..csv.clone() }).unwrap();
    let groups = few.train.groups.as_ref().unwrap().iter().collect::<BTreeSet<_>>().len();
    assert_eq!(few.notes, [format!("groups of rows: {groups} in training, 1 in test, none in both")]);

    let with_test = |test: &Path| Csv { test_path: test.display().to_string(), ..csv.clone() };
    let notes = loaded(with_test(&second)).unwrap().notes;
    let shared = "12 in training, 5 in test, 5 in both: test scores are too good where rows of a group are alike";
    assert!(notes[0].ends_with(shared), "{notes:?}");
    let notes = loaded(with_test(&without)).unwrap().notes;
    assert!(notes[0].contains("12 in training; the test rows name none"), "{notes:?}");

    let of = |column: &str| Reading { group_column: column.into(), ..csv.reading.clone() };
    let message = |csv: Csv| loaded(csv).unwrap_err().to_string();
    assert!(message(Csv { reading: of("ward"), ..csv.clone() }).contains("data.group_column"));
    assert!(message(Csv { reading: of("y"), ..csv.clone() }).contains("by data.target and by data.group_column"));
    let both = Csv { client_column: "patient".into(), reading: Reading { id: vec![], ..of("patient") }, ..csv.clone() };
    assert!(message(both).contains("both client (data.client_column) and group (data.group_column)"));
    for cell in ["", "NA"] {
        std::fs::write(&path, text(0..36).replacen("P4", cell, 1)).unwrap();
        let missing = message(csv.clone());
        assert!(missing.contains("a group") && missing.contains("patient"), "{missing}");
    }
}

#[test]
fn the_column_of_groups_is_no_feature_of_a_servers_test_rows_and_may_be_blank() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.csv");
    std::fs::write(&path, "patient,x,y\nP1,1,a\n,2,b\n").unwrap();
    let sites = Sites {
        task: Task::Classification,
        positive: String::new(),
        normalise: Normalise::Auto,
        test_path: path.display().to_string(),
        target: "y".into(),
        header: Header::Auto,
        delimiter: ",".into(),
        reading: Reading { group_column: "patient".into(), ..Reading::default() },
        train_limit: 0,
        test_limit: 0,
    };
    let (rows, _) = sites.test_rows().unwrap().unwrap();
    assert_eq!((rows.feature_names, rows.groups, rows.lines), (Some(texts(&["x"])), None, Some(vec![2, 3])));
    // Where each row has one, the report counts them.
    std::fs::write(&path, "patient,x,y\nP1,1,a\nP1,2,b\nP2,3,b\n").unwrap();
    assert_eq!(sites.test_rows().unwrap().unwrap().0.groups, Some(vec![0, 0, 1]));
}

#[test]
fn rows_of_a_group_are_at_one_client_and_held_out_together() {
    // 40 patients with one to four visits; the last visit of each has label 1.
    let of_row: Vec<usize> = (0..40).flat_map(|patient| vec![patient; 1 + patient % 4]).collect();
    let last = |row: usize| of_row.get(row + 1) != Some(&of_row[row]);
    let labels = (0..of_row.len()).map(|row| usize::from(last(row))).collect();
    let data = labelled(labels, 2).with_groups(of_row.clone()).unwrap();
    let groups = |rows: &[usize]| rows.iter().map(|&row| of_row[row]).collect::<BTreeSet<_>>();
    let config =
        PartitionConfig { validation: 0.25, calibration: 0.125, ..PartitionScheme::from(Iid { clients: 5 }).into() };
    for seed in 0..10 {
        let made = partition(&config, &data, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap();
        let mut rows: Vec<usize> = (0..5).flat_map(|client| assigned(&made, client)).collect();
        rows.sort_unstable();
        assert_eq!(rows, (0..data.rows()).collect::<Vec<_>>());
        for client in 0..5 {
            let parts = [&made.clients()[client], made.validation(client), made.calibration(client)].map(groups);
            assert_eq!(parts.each_ref().map(BTreeSet::len), [5, 2, 1]);
            assert_eq!(parts.iter().flatten().collect::<BTreeSet<_>>().len(), 8);
        }
        let all: Vec<usize> = (0..5).flat_map(|client| groups(&assigned(&made, client))).collect();
        assert_eq!((all.len(), all.into_iter().collect::<BTreeSet<_>>().len()), (40, 40));
        assert!(made.notes.is_empty(), "{:?}", made.notes);
    }
    let problem = message(Dirichlet { clients: 5, alpha: 1.0 }.into(), &data);
    assert!(problem.contains("would separate the rows of a group"), "{problem}");
    let problem = message(Iid { clients: 41 }.into(), &data);
    assert!(problem.contains("must be at most 40, the number of groups"), "{problem}");

    // Natural clients may share a patient: each holds out its own rows.
    let clients = (0..data.rows()).map(|row| row % 2).collect();
    let data = data.with_clients(clients).unwrap();
    let config = PartitionConfig { validation: 0.25, ..PartitionScheme::from(ByColumn {}).into() };
    let made = partition(&config, &data, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
    assert!(made.notes[0].starts_with("30 of 40 groups have rows at several clients"), "{:?}", made.notes);
    for client in 0..2 {
        let (kept, out) = (groups(&made.clients()[client]), groups(made.validation(client)));
        assert!(kept.is_disjoint(&out) && !out.is_empty());
    }
}

#[test]
fn spellings_of_one_number_are_one_group_in_one_file_and_in_two() {
    let dir = tempfile::tempdir().unwrap();
    let [path, second] = ["t.csv", "second.csv"].map(|name| dir.path().join(name));
    // As pandas writes whole numbers in a column that had a missing cell, and as it writes them else.
    let text = |spell: &dyn Fn(usize) -> String| {
        let row = |i: usize| format!("{},{},{}\n", spell(i), i * 7 % 5, if i.is_multiple_of(3) { "a" } else { "b" });
        format!("patient,x,y\n{}", (0..24).map(row).collect::<String>())
    };
    std::fs::write(&path, text(&|i| if i < 12 { format!("{i}") } else { format!("{}.0", i - 12) })).unwrap();
    std::fs::write(&second, text(&|i| format!("{}.0", i % 12))).unwrap();
    let reading = Reading { group_column: "patient".into(), ..Reading::default() };
    let csv = Csv { target: "y".into(), test_fraction: 0.25, ..table(&path, reading) };
    let notes = loaded(csv.clone()).unwrap().notes;
    assert_eq!(notes[0], "groups of rows: 9 in training, 3 in test, none in both");
    let both = loaded(Csv { test_path: second.display().to_string(), ..csv.clone() }).unwrap();
    assert!(both.notes[0].contains("12 in training, 12 in test, 12 in both"), "{:?}", both.notes);
    // Beside another text, spellings are texts too.
    std::fs::write(&path, text(&|i| ["7", "7.0", "x"][i % 3].to_owned())).unwrap();
    assert!(loaded(csv).unwrap().notes[0].contains("2 in training, 1 in test"));
}
