//! Notes on values that may stand for missing ones: numbers and dates far beyond all others of their column.

use super::place::{Place, TINY, in_shell};

#[test]
fn values_that_may_stand_for_missing_ones_are_noted_until_they_are_missing() {
    let place = Place::new();
    // Stays of 1 to 12 days, the first of them unknown; ages of 20 to 79 years, every twentieth unknown.
    let table = |[unknown_age, unknown_days]: [&str; 2]| {
        let row = |i: usize| {
            let age = if i % 20 == 7 { unknown_age.to_owned() } else { (20 + i * 7 % 60).to_string() };
            let days =
                if i == 0 { unknown_days.to_owned() } else { format!("{:.1}", 1.0 + (i * 13 % 111) as f64 / 10.0) };
            format!("{age},{days}\n")
        };
        format!("age,days\n{}", (0..120).map(row).collect::<String>())
    };
    let train = format!(
        "{TINY} --set data.kind=csv --set data.path=stays.csv --set data.target=days --set data.task=regression \
         --set partition.clients=2"
    );
    let noted = place.write("stays.csv", table(["999", "9999"])).works(&format!("{train} --out coded"));
    for words in [
        "stays.csv far beyond all others of their column: `age` (999 in 6 rows, all others 20 to 79)",
        "declare them (data.missing_values = { age = [999], days = [9999] }) and set data.missing\n",
        "`days` (9999 in 1 row, all others 1 to 12)",
        "declare them (data.missing_values = { age = [999], days = [9999] }) and set data.missing_target = \"drop\"\n",
    ] {
        assert!(noted.stderr.contains(words), "no {words:?} in {}", noted.stderr);
    }
    let keys = "--set data.missing=indicator --set data.missing_target=drop";
    // The first config of the table has the same, where the key is.
    let config = place.works("init stays.csv --target days --out -").stdout;
    assert!(config.contains("\nmissing_values = []\n"), "{config}");
    let comments: String = config.lines().map(|line| line.trim_start_matches("# ").to_owned() + " ").collect();
    assert!(comments.contains("`age` (999 in 6 rows, all others 20 to 79), `days` (9999 in 1 row"), "{config}");
    assert!(comments.contains("write { age = [999], days = [9999] } here"), "{config}");
    // It is said at once, with the option that declares them.
    let said = place.works("init stays.csv --target days --out stays.toml").stdout;
    let both = in_shell("{ age = [999], days = [9999] }");
    for words in ["note: cells that may stand for missing values: `age` (999", &format!("--missing-values {both}")] {
        assert!(said.contains(words), "no {words:?} in {said}");
    }

    // The note's remedy trains the model of the table with blank cells.
    let codes = "--set data.missing_values={age=[999],days=9999}";
    let declared = place.works(&format!("{train} {keys} {codes} --out declared"));
    assert!(!declared.stderr.contains("far beyond"), "{}", declared.stderr);
    let clean = place.write("stays.csv", table(["", ""])).works(&format!("{train} {keys} --out clean"));
    assert!(place.bytes("declared/particles.safetensors") == place.bytes("clean/particles.safetensors"));
    assert!(!clean.stderr.contains("far beyond"), "{}", clean.stderr);

    // A run that knows of no codes predicts new rows that have some, as that of a federation whose sites declared them.
    place.write("new.csv", "age\n20\n999\n").write("blank.csv", "age\n20\n\"\"\n");
    let coded = place.works("predict clean --input new.csv --missing-values 999").stdout;
    assert_eq!(coded, place.works("predict clean --input blank.csv").stdout);
    assert_ne!(coded, place.works("predict clean --input new.csv").stdout);
    let place_of = "predict clean --input new.csv --missing-values";
    place.refuses(&format!("{place_of} ,"), &["--missing-values `,`: it must be a cell or a list of them"]);
    assert_eq!(coded, place.works(&format!("{place_of} {{age=999}}")).stdout);
    place.refuses(
        &format!("{place_of} {{agee=999}}"),
        &["--missing-values: `agee` is no column of the run, `age`; did you mean `age`?"],
    );
    for broken in ["{age:999}", "{age=999", "[999,unknown]"] {
        place.refuses(
            &format!("{place_of} {broken}"),
            &["a list is written '[999, \"unknown\"]'", "'{ age = 999, ward"],
        );
    }
}

/// A feature is kept in single precision, which has no 99999999, and a date as a number.
#[test]
fn a_note_writes_dates_and_long_numbers_as_the_file_does() {
    let place = Place::new();
    let row = |i: usize| {
        let unknown = i % 20 == 7;
        let seen = if unknown { "9999-12-31".to_owned() } else { format!("2019-{:02}-{:02}", 1 + i % 12, 1 + i % 28) };
        let height = if unknown { "99999999".to_owned() } else { (150 + i * 7 % 40).to_string() };
        format!("{seen},{height},{}\n", ["a", "b"][i * i % 7 % 2])
    };
    place.write("visits.csv", format!("seen,height,kind\n{}", (0..120).map(row).collect::<String>()));
    let said = place.works("init visits.csv --out visits.toml").stdout;
    let found = [
        "`seen` (9999-12-31 in 6 rows, all others 2019-01-01 to 2019-12-28)",
        "`height` (99999999 in 6 rows, all others 150 to 189)",
    ];
    let noted = place.works("train visits.toml --set rounds=1 --set stop.patience=0 --out run").stderr;
    for words in found {
        assert!(said.contains(words), "no {words:?} in {said}");
        assert!(noted.contains(words), "no {words:?} in {noted}");
    }
    let codes = "{ height = [99999999], seen = [\"9999-12-31\"] }";
    assert!(noted.contains(&format!("data.missing_values = {codes}")), "{noted}");
    let declared = "--set data.missing=mean --set rounds=1 --set stop.patience=0 --out declared";
    let codes = "--set data.missing_values={height=99999999,seen=\"9999-12-31\"}";
    let noted = place.works(&format!("train visits.toml {declared} {codes}")).stderr;
    assert!(!noted.contains("far beyond"), "{noted}");
}
