//! `fedstein init` and `train` where several rows are of one person, or are one row twice: test scores would be too good.

use super::place::Place;

const SHORT: &str = "--set rounds=1 --set algorithm.local_steps=2 --set algorithm.particles=2";

/// Visits of patients at two wards, each three times, with a patient's name as `name` spells it.
fn visits(header: &str, name: impl Fn(usize) -> String) -> String {
    let row = |i: usize| {
        let (ward, outcome) = (["A", "B"][i / 3 % 2], ["no", "yes"][i / 6 % 2]);
        format!("{},{ward},{}.5,{}.25,{outcome}\n", name(i), i * 7 % 131, i * 11 % 127)
    };
    format!("{header},ward,lactate,pulse,outcome\n{}", (0..120).map(row).collect::<String>())
}

#[test]
fn names_of_numbered_patients_and_cases_keep_rows_together() {
    let place = Place::new();
    let written = |header: &str, name: &dyn Fn(usize) -> String| {
        place.write("visits.csv", visits(header, name)).works("init visits.csv --force");
        place.text("visits.toml")
    };
    let numbers = |i: usize| format!("{}", 7000 + i / 3);
    let texts = |i: usize| format!("P{:03}", i / 3);
    for header in
        ["PatNr", "PATIENT NO.", "Pat.-Nr.", "Patientennummer", "Fallnummer", "fallnr", "study_no", "Patient Number"]
    {
        for name in [&numbers as &dyn Fn(usize) -> String, &texts] {
            let text = written(header, name);
            assert!(text.contains(&format!("group_column = \"{header}\"\n")), "{header}:\n{text}");
        }
    }
    // Measured counts with such an end are features.
    for header in ["lymph_node_no", "platelet_number"] {
        let text = written(header, &numbers);
        assert!(!text.contains("group_column") && !text.contains("id = "), "{header}:\n{text}");
    }
}

#[test]
fn a_patient_that_is_missing_in_a_row_is_told_at_once() {
    let place = Place::new();
    let name = |i: usize| if i == 50 { String::new() } else { format!("P{:03}", i / 3) };
    let printed = place.write("visits.csv", visits("patient_id", name)).works("init visits.csv").stdout;
    let note = "note: rows with one `patient_id` would stay together (group_column), but one of its cells is missing, the first in \
                line 52: write it there";
    assert!(printed.contains(note), "{printed}");
    let whole =
        place.write("whole.csv", visits("patient_id", |i| format!("P{:03}", i / 3))).works("init whole.csv").stdout;
    assert!(!whole.contains("would stay together"), "{whole}");
}

#[test]
fn patients_that_are_spelt_in_two_ways_and_rows_that_stand_twice_are_noted() {
    let place = Place::new();
    let spelt = |i: usize| if i.is_multiple_of(3) { format!("p{:03}", i / 3) } else { format!("P{:03}", i / 3) };
    place.write("spelt.csv", visits("patient_id", spelt)).works("init spelt.csv");
    let told = place.works(&format!("train spelt.toml {SHORT}")).stderr;
    let note = "spelt.csv (`patient_id`) that differ in upper and lower case or in blanks around them alone from another \
                one, and are groups of their own: 40;";
    assert!(told.contains(note), "{told}");

    let table = visits("patient_id", |i| format!("P{:03}", i / 3));
    let (header, rows) = table.split_once('\n').unwrap();
    // Without the column of patients.
    let rows: String = rows.lines().map(|row| format!("{}\n", row.split_once(',').unwrap().1)).collect();
    let header = header.split_once(',').unwrap().1;
    place.write("once.csv", format!("{header}\n{rows}")).write("twice.csv", format!("{header}\n{rows}{rows}"));
    for (name, is_noted) in [("once", false), ("twice", true)] {
        place.works(&format!("init {name}.csv"));
        let told = place.works(&format!("train {name}.toml {SHORT}")).stderr;
        let note = "test rows have the features and the target of a training row";
        assert_eq!(told.contains(note), is_noted, "{name}: {told}");
    }
}

#[test]
fn dates_of_which_one_is_impossible_are_left_out_for_that_reason() {
    let place = Place::new();
    let day = |i: usize| match i {
        77 => "31.02.2021".to_owned(),
        _ => format!("{:02}.{:02}.2021", 1 + i % 28, 1 + i / 28),
    };
    let row = |i: usize| format!("{},{}.5,{}\n", day(i), i * 7 % 131, ["no", "yes"][i % 2]);
    place.write("stays.csv", format!("admitted,lactate,outcome\n{}", (0..120).map(row).collect::<String>()));
    place.works("init stays.csv");
    let text = place.text("stays.toml");
    let reason = "`admitted`: most of its cells are dates of one format, but not all (texts that stand for missing values can be \
                  declared with --missing-values), such as `31.02.2021` in line 79";
    assert!(text.replace("\n#   ", " ").replace("\n# ", " ").contains(reason), "{text}");
}

#[test]
fn persons_who_are_the_clients_and_texts_that_may_be_persons_are_told() {
    let place = Place::new();
    let rows = |header: &str, name: &dyn Fn(usize) -> String| {
        let row = |i: usize| format!("{},{}.5,{}\n", name(i), i * 7 % 131, ["no", "yes"][i / 3 % 2]);
        format!("{header},lactate,outcome\n{}", (0..120).map(row).collect::<String>())
    };
    let name = |i: usize| format!("P{:03}", i / 3);
    let printed = place.write("a.csv", rows("patient_id", &name)).works("init a.csv").stdout;
    let note = "note: each `patient_id` is a client with training and test rows, so that scores are of further rows of the same ones";
    assert!(printed.contains(note), "{printed}");
    let printed = place.write("b.csv", rows("schluessel", &name)).works("init b.csv").stdout;
    assert!(
        printed.contains("note: `schluessel` has 40 texts with digits, each in several rows on average"),
        "{printed}"
    );
    let towns = |i: usize| format!("town {}", ["a", "b", "c"][i % 3].repeat(1 + i % 13));
    let printed = place.write("c.csv", rows("town", &towns)).works("init c.csv").stdout;
    assert!(!printed.contains("with digits"), "{printed}");
}
