//! What a message says about a cell or a column of a table that is refused.

use fedstein_datasets::Reading;
use fedstein_datasets::columns::{Categorical, DateFormat, Decimal};
use tempfile::TempDir;

use super::tables::{complaint, loaded, table, texts, two};

#[test]
fn a_refused_cell_names_the_key_that_would_accept_it() {
    let plain = |cell: &str| complaint(&format!("x,y\n1,0\n{cell},1\n"), Reading::default());
    for (cell, words) in [
        (
            "NA",
            "line 3, column 1 (x): `NA` is not a finite number; data.missing = \"mean\", \"indicator\" or \"drop\" accepts",
        ),
        ("\"1,5\"", "`1,5` is not a finite number; data.decimal = \",\" reads it"),
        ("yes", "`yes` is not a finite number; data.boolean = [\"x\"] reads it"),
        ("2024-05-01", "data.date = [\"x\"] reads it"),
        ("5/1/2024", "data.date = [\"x\"] reads dates, in the format of data.date_format"),
        (
            "\"1,500\"",
            "if its `,` stands between thousands, write the number without it; data.decimal = \",\" reads it",
        ),
        ("\"1,500.5\"", "`1,500.5` is not a finite number; write the number without marks between its thousands"),
        ("12 %", "`12 %` is not a finite number; write the number without `%`"),
        ("€3.50", "write the number without `€`"),
        ("west", "data.categorical = [\"x\"] takes texts as categories; data.ignore = [\"x\"] leaves the column out"),
    ] {
        assert!(plain(cell).contains(words), "{}", plain(cell));
    }
    let keyed = |cell: &str, reading: Reading| complaint(&format!("x,y\n{cell},0\n{cell},1\n"), reading);
    let boolean = keyed("maybe", Reading { boolean: texts(&["x"]), ..Reading::default() });
    assert!(
        boolean.contains("`maybe` is not true or false, yes or no, 1 or 0 (data.boolean); data.categorical"),
        "{boolean}"
    );
    let date = keyed("1.5.2024", Reading { date: texts(&["x"]), ..Reading::default() });
    assert!(date.contains("is not a date YYYY-MM-DD (data.date_format); data.date_format = \"DD.MM.YYYY\""), "{date}");
    let category = keyed("NA", Reading { categorical: Categorical::Columns(texts(&["x"])), ..Reading::default() });
    assert!(category.contains("`NA` is not a category; data.missing = \"mean\""), "{category}");
    for missing in ["NA", "n/a", "null", "NaN", "?", ""] {
        let label = complaint(&format!("x,y\n1,a\n2,b\n3,{missing}\n"), Reading::default());
        let words = "is not a label; data.missing_target = \"drop\" leaves out rows without a target";
        assert!(label.contains("line 4, column 2 (y)") && label.contains(words), "{label}");
    }
    let target = two("x,y\n1,1.5\n", "x,y\n1,2\n", |csv| {
        csv.task = fedstein_datasets::Task::Regression;
        csv.reading.decimal = Decimal::Comma;
    });
    assert!(target.unwrap_err().to_string().contains("column 2 (y): `1.5` is not a finite number"));
}

#[test]
fn features_of_one_name_are_refused() {
    let reading = || Reading { categorical: Categorical::Columns(texts(&["a=b", "a"])), ..Reading::default() };
    let table = |text: &str| "a=b,a,y\n".to_owned() + &format!("c,{text},0\nd,e,1\nc,e,1\nd,{text},0\n").repeat(5);
    let twice = complaint(&table("b=c"), reading());
    assert!(twice.contains("two features are called `a=b=c`"), "{twice}");
    let once = two(&table("x"), "", |csv| (csv.test_path, csv.reading) = (String::new(), reading()));
    assert!(once.is_ok());
}

#[test]
fn columns_that_keys_name_wrongly_are_refused() {
    let with = |change: fn(&mut Reading)| {
        let mut reading = Reading::default();
        change(&mut reading);
        complaint("a,b,y\n1,2,0\n3,4,1\n", reading)
    };
    let gone = with(|reading| reading.ignore = texts(&["c"]));
    assert!(gone.contains("no column `c` (data.ignore): the header has `a`, `b`, `y`"), "{gone}");
    let target = with(|reading| reading.id = texts(&["y"]));
    assert!(target.contains("column `y` is named by data.target and by data.id; name it once"), "{target}");
    let two = with(|reading| (reading.date, reading.ignore) = (texts(&["a"]), texts(&["0"])));
    assert!(two.contains("column `a` is named by data.ignore and by data.date; name it once"), "{two}");
    let twice = with(|reading| reading.boolean = texts(&["a", "a"]));
    assert!(twice.contains("column `a` is named twice by data.boolean"), "{twice}");
    let none = with(|reading| reading.ignore = texts(&["a", "b"]));
    assert!(none.contains("no column is left for the features"), "{none}");
    let mut reading = Reading { date_format: DateFormat::new("DD/MM"), ..Reading::default() };
    reading.date = texts(&["a"]);
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("t.csv"), "a,y\n1,0\n").unwrap();
    let message = loaded(table(&dir.path().join("t.csv"), reading)).unwrap_err().to_string();
    assert!(message.starts_with("data.date_format = DD/MM: must have each of YYYY, MM and DD once"), "{message}");
}
