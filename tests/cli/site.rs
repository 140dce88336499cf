//! `fedstein site check`: what a site would tell a server, and what not.

use std::fs;
use std::path::Path;

use fedstein::checkpoint::digest;
use fedstein::site::schema;
use serde_json::{Value, json};

use super::place::Place;

/// The feature `ph` of row i: 300.125 + 17 i. The sum over rows 0 to n − 1 is 300.125 n + 17 n(n − 1)/2.
fn ph(row: usize) -> String {
    format!("{}.125", 300 + 17 * row)
}

/// The feature `flow` of row i: i² + 1.0625.
fn flow(row: usize) -> String {
    format!("{}.0625", row * row + 1)
}

/// A table with rows `first`, `first + 1`, …, each of one of the classes in turn.
fn table(header: &str, first: usize, rows: usize, classes: &[&str]) -> String {
    let line = |row: usize| format!("{},{},{}\n", ph(row), flow(row), classes[row % classes.len()]);
    format!("{header}\n{}", (first..first + rows).map(line).collect::<String>())
}

/// A place with the site `NAME.toml` in the directory `sites`, its rows in `sites/NAME-rows.csv` and its test rows in
/// `sites/NAME-test.csv`.
struct Sites(Place);

impl Sites {
    fn new() -> Self {
        Self(Place::new())
    }

    /// Writes a site. `more` goes below the keys of `[data]`.
    fn site(&self, name: &str, index: usize, rows: &str, more: &str) -> &Self {
        let text = format!(
            "name = \"{name}\"\nindex = {index}\n[data]\npath = \"{name}-rows.csv\"\ntest_path = \"{name}-test.csv\"\n\
             target = -1\n{more}\n"
        );
        let test: String = rows.lines().take(3).map(|line| format!("{line}\n")).collect();
        self.0.write(&format!("sites/{name}.toml"), text);
        self.0.write(&format!("sites/{name}-rows.csv"), rows).write(&format!("sites/{name}-test.csv"), test);
        self
    }

    fn prints(&self, line: &str) -> String {
        self.0.works(&format!("site check {line}")).stdout
    }

    fn refuses(&self, line: &str, words: &[&str]) -> String {
        self.0.refuses(&format!("site check {line}"), words)
    }
}

/// A table of a site that tells of two held-out rows.
const FEW: &str = "[tell]\nmin_rows = 2";

/// The classes of a table.
const TREES: &[&str] = &["alder", "oak"];

/// The part of a text between two headings.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    text.split_once(from).and_then(|(_, rest)| rest.split_once(to)).unwrap_or_else(|| panic!("{text}")).0
}

#[test]
fn a_site_reads_what_would_be_told_and_what_not() {
    let sites = Sites::new();
    sites.site("north", 0, &table("ph,flow,tree", 0, 12, TREES), FEW);
    // Rows that are not training rows too.
    sites.0.write("sites/north-test.csv", table("ph,flow,tree", 12, 2, TREES));
    let printed = sites.prints("sites/north.toml");
    let told = between(&printed, "told to the server:\n", "not told before the first round");
    for line in [
        "  - name `north`, client 0\n",
        "  - number of training rows: 12\n",
        "  - number of test rows: 2\n",
        "  - names of the 2 features: ph, flow\n",
        "  - names of the 2 classes: alder, oak\n",
        // 12 · 300.125 + 17 · 66, and Σ i² = 506 for i = 0 to 11, plus 12 · 1.0625
        "Column `ph`: 4723.5\n",
        "Column `flow`: 518.75\n",
        "  - sum of the squared deviations of each column from its mean over all sites, once",
        "  - fingerprint of the file of training rows, for the run with the number 0: ",
    ] {
        assert!(told.contains(line), "no {line:?} in {printed}");
    }
    assert!(!told.contains("csv") && !told.contains("number of training rows of each class"), "{printed}");
    let kept = printed.split_once("not told before the first round").unwrap().1;
    for word in [
        "sites/north-rows.csv",
        "sites/north-test.csv",
        "sites/state",
        "number of training rows of each class (tell.class_counts = false)",
        "flex, all",
    ] {
        assert!(kept.contains(word), "no {word:?} in {printed}");
    }
    assert!(!printed.contains("please note"), "{printed}");
}

#[test]
fn what_keeps_the_machine_from_training_is_a_note() {
    let sites = Sites::new();
    sites.0.write("sites/file", "");
    let keys = "threads = 1\nbackend = \"cuda\"\nstate = \"file/state\"\n";
    sites.site("north", 0, &table("ph,flow,tree", 0, 12, TREES), FEW);
    let text = sites.0.text("sites/north.toml");
    sites.0.write("sites/north.toml", format!("{keys}{text}"));
    let printed = sites.prints("sites/north.toml");
    let notes = printed.split_once("please note:\n").unwrap_or_else(|| panic!("{printed}")).1;
    assert!(notes.contains("backend \"cuda\" is not compiled in") || cfg!(feature = "cuda"), "{printed}");
    assert!(notes.contains("nothing can be written into `state`, sites/file/state: it is below a file"), "{printed}");
    sites.0.write("sites/north.toml", text);
    sites.site("south", 1, &table("ph,flow,tree", 12, 12, TREES), FEW);
    let printed = sites.prints("sites/north.toml sites/south.toml");
    assert!(printed.contains("note: these sites cannot train on one machine: sites/north.toml and"), "{printed}");
    assert!(!sites.0.path("sites/state").exists());
}

#[test]
fn the_json_has_no_value_of_a_row_no_path_and_no_count_of_a_class() {
    let sites = Sites::new();
    let rows = table("ph,flow,tree", 0, 12, TREES);
    let printed = sites.site("north", 0, &rows, FEW).prints("sites/north.toml --json");
    assert_eq!(printed.lines().count(), 1);
    let mut told: Value = serde_json::from_str(&printed).unwrap();
    let print = told.as_object_mut().unwrap().remove("print").unwrap();
    let file = digest::of_file(&sites.0.path("sites/north-rows.csv")).unwrap();
    assert_eq!(print, json!(digest::of_bytes(format!("0000000000000000{file}").as_bytes())));
    assert!(!printed.contains(&file), "{printed}");
    let expected = json!({
        "index": 0,
        "name": "north",
        "rows": 12,
        "validation_rows": 0,
        "test_rows": 2,
        "width": 2,
        "features": ["ph", "flow"],
        "target": { "kind": "classes", "names": ["alder", "oak"], "counts": null },
        "sums": {
            "features": [{ "sum": [4723.5], "constant": null }, { "sum": [518.75], "constant": null }],
            "target": null,
        },
        "products": false,
    });
    assert_eq!(told, expected);
    for row in 0..12 {
        assert!(!printed.contains(&ph(row)) && !printed.contains(&flow(row)), "row {row} in {printed}");
    }
    let here = sites.0.path("").display().to_string().replace('\\', "/");
    for word in ["csv", "sites", "state", here.trim_end_matches('/')] {
        assert!(!printed.contains(word), "{word} in {printed}");
    }
}

#[test]
fn a_regression_tells_no_target_but_its_sum() {
    let sites = Sites::new();
    let rows: String = (0..10).map(|row| format!("{},{}.03125\n", row, 40 + row)).collect();
    sites.site("north", 0, &format!("x,dose\n{rows}"), "task = \"regression\"");
    let printed = sites.prints("sites/north.toml --json");
    let told: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(told["target"], json!({ "kind": "real" }));
    // 10 · 40.03125 + 45
    assert_eq!(told["sums"]["target"]["sum"], json!([445.3125]));
    assert!(!printed.contains(".03125"), "{printed}");
}

#[test]
fn counts_are_told_where_the_file_allows_it_and_sums_are_not_where_it_forbids_them() {
    let sites = Sites::new();
    let rows = table("ph,flow,tree", 0, 12, &["oak", "oak", "alder"]);
    sites.site("north", 0, &rows, "[tell]\nclass_counts = true\nstatistics = false");
    let printed = sites.prints("sites/north.toml");
    assert!(printed.contains("number of training rows of each class: alder 4, oak 8\n"), "{printed}");
    assert!(printed.contains("sums of columns (tell.statistics = false)"), "{printed}");
    let told: Value = serde_json::from_str(&sites.prints("sites/north.toml --json")).unwrap();
    assert_eq!((&told["target"]["counts"], &told["sums"]), (&json!([4, 8]), &Value::Null));
}

#[test]
fn too_few_rows_give_no_sums_and_a_column_of_constants_is_told_by_its_value() {
    let sites = Sites::new();
    let printed = sites.site("small", 0, &table("ph,flow,tree", 0, 9, TREES), "").prints("sites/small.toml");
    for words in
        ["sums of columns (9 rows, tell.min_rows = 10)", "There are 9 training rows, fewer than tell.min_rows = 10"]
    {
        assert!(printed.contains(words), "{printed}");
    }
    assert!(!printed.contains("Column `ph`"), "{printed}");
    let rows: String = (0..10).map(|row| format!("{},4.5,{}\n", ph(row), TREES[row % 2])).collect();
    let printed = sites.site("flat", 0, &format!("ph,flow,tree\n{rows}"), "").prints("sites/flat.toml");
    assert!(printed.contains("Column `flow`: 45, 4.5 in every row\n"), "{printed}");
    assert!(
        printed.contains("Column `flow` holds 4.5 in every training row that has a value; this value is told"),
        "{printed}"
    );
}

#[test]
fn two_sites_agree_on_columns_classes_and_means() {
    let sites = Sites::new();
    sites.site("north", 0, &table("ph,flow,tree", 0, 12, TREES), "");
    // The columns of the south are called the other way round, and it has a class of its own.
    sites.site("south", 1, &table("flow,ph,tree", 12, 12, &["oak", "beech"]), "");
    let printed = sites.prints("sites/south.toml sites/north.toml");
    for line in [
        "these 2 sites agree:\n",
        "training rows of clients 0 to 1: 12, 12\n",
        "features, in the order of client 0: ph, flow\n",
        "classes: alder, beech, oak\n",
        // The south's `ph` is i² + 1.0625 for i = 12 to 23, with Σ i² = 4324 − 506: (4723.5 + 3818 + 12.75) / 24. Its
        // `flow` is 300.125 + 17 i, with Σ i = 210: (518.75 + 12 · 300.125 + 17 · 210) / 24.
        "means of the features over all training rows: 356.4270833333333, 320.4270833333333\n",
        // From Python's math.fsum over the squared deviations of all 24 rows.
        "standard deviations, 1 for a constant and for what is 0 or 1: 102.27518165282356, 281.6686222888841\n",
        "note: class `alder` is not at site `south`\n",
        "note: class `beech` is not at site `north`\n",
    ] {
        assert!(printed.contains(line), "no {line:?} in {printed}");
    }
    let json = sites.prints("sites/north.toml sites/south.toml --json");
    assert_eq!(json.lines().count(), 2);
}

#[test]
fn a_site_may_hold_one_class_if_another_site_has_more() {
    let sites = Sites::new();
    sites.site("north", 0, &table("ph,flow,tree", 0, 12, TREES), "");
    let rows = table("ph,flow,tree", 12, 12, &["oak"]);
    let printed = sites.site("south", 1, &rows, "").prints("sites/north.toml sites/south.toml");
    assert!(printed.contains("All rows are of one class; another site must have another class"), "{printed}");
    assert!(printed.contains("note: class `alder` is not at site `south`\n"), "{printed}");
    sites.site("north", 0, &table("ph,flow,tree", 0, 12, &["oak"]), "");
    sites.refuses("sites/north.toml sites/south.toml", &["all clients hold one class only, `oak`"]);
}

#[test]
fn one_class_one_feature_and_one_row_are_told_in_the_singular() {
    let sites = Sites::new();
    // One row in twelve has a flow.
    let line = |row: usize| format!("{},oak\n", if row == 5 { flow(row) } else { String::new() });
    let rows = format!("flow,tree\n{}", (0..12).map(line).collect::<String>());
    let printed = sites.site("north", 0, &rows, "missing = \"mean\"\n[tell]\nmin_rows = 1").prints("sites/north.toml");
    for line in [
        "  - name of the feature: flow\n",
        "  - name of the class: oak\n",
        // 5² + 1.0625
        "Column `flow`: 26.0625 over 1 row; missing in 11\n",
    ] {
        assert!(printed.contains(line), "no {line:?} in {printed}");
    }
    sites.site("south", 1, "flow,tree\n1.5,oak\n", "");
    sites.0.write("sites/south-test.csv", "flow,tree\n2.5,oak\n");
    let printed = sites.prints("sites/south.toml");
    for words in
        ["sums of columns (1 row, tell.min_rows = 10)", "There is 1 training row, fewer than tell.min_rows = 10"]
    {
        assert!(printed.contains(words), "no {words:?} in {printed}");
    }
    sites.0.write("sites/south-test.csv", "flow,tree\n2.5,elm\n3.5,ash\n");
    let printed = sites.prints("sites/south.toml");
    assert!(printed.contains("There are 3 classes for 1 training row, and"), "{printed}");
    sites.site("west", 2, "plot,flow,tree\na,1.5,oak\n", "group_column = \"plot\"");
    sites.0.write("sites/west-test.csv", "plot,flow,tree\nb,2.5,oak\n");
    let printed = sites.prints("sites/west.toml");
    for words in ["sums of columns (1 row with too few groups,", "The 1 training row has fewer values of `plot` than"] {
        assert!(printed.contains(words), "no {words:?} in {printed}");
    }
}

#[test]
fn sites_that_cannot_train_together_are_refused_by_name_and_column() {
    let sites = Sites::new();
    sites.site("north", 0, &table("ph,flow,tree", 0, 12, TREES), "");
    let other = table("ph,flow,tree", 12, 12, TREES);
    let refuses = |index: usize, rows: &str, more: &str, words: &str| {
        sites.site("south", index, rows, more);
        sites.refuses("sites/north.toml sites/south.toml", &[words]);
    };
    refuses(0, &other, "", "`index` 0 is claimed by two sites, `north` and `south`; give each its own");
    refuses(2, &other, "", "no site has the `index` 1: those of 2 sites must be 0 to 1");
    refuses(1, &table("ph,flow,tree", 0, 12, TREES), "", "site `north` and site `south` have the same file");
    let columns =
        "site `south` has 2 features, site `north` has 2; only site `north` has `flow`; only site `south` has `Flow`";
    refuses(1, &table("ph,Flow,tree", 12, 12, TREES), "", columns);
    let narrow: String = (0..12).map(|row| format!("{},{}\n", flow(row), TREES[row % 2])).collect();
    let narrow = format!("flow,tree\n{narrow}");
    refuses(1, &narrow, "", "site `south` has 1 feature, site `north` has 2; only site `north` has `ph`");
    let bare = other.split_once('\n').unwrap().1;
    refuses(1, bare, "", "site `south` has no header, site `north` has");
    let real: String = (0..12).map(|row| format!("{},{},{row}.75\n", ph(row), flow(row))).collect();
    let real = format!("ph,flow,tree\n{real}");
    refuses(1, &real, "task = \"regression\"", "site `south` holds a regression, site `north` a classification");
    sites.site("south", 1, &real, "");
    let words = ["site `south` calls its task a classification", "task = \"regression\""];
    let message = sites.refuses("sites/north.toml sites/south.toml", &words);
    assert!(!message.contains(".75"), "{message}");
}

#[test]
fn classes_and_categories_of_sites_that_differ_in_case_alone_have_a_note_with_the_sites() {
    let sites = Sites::new();
    let rows = |first: usize, [died, alive, ward]: [&str; 3]| {
        let line = |row: usize| format!("{},{ward},{}\n", ph(row), if row.is_multiple_of(2) { died } else { alive });
        format!("ph,ward,outcome\n{}", (first..first + 12).map(line).collect::<String>())
    };
    let keys = "categorical = [\"ward\"]\n[tell]\ncategories = true";
    sites.site("north", 0, &rows(0, ["died", "alive", "icu"]), keys);
    sites.site("south", 1, &rows(12, ["Died", "alive", "icu"]), keys);
    let printed = sites.prints("sites/north.toml sites/south.toml");
    let note = "note: class `Died` of site `south` and class `died` of site `north` differ in upper and lower case or in blanks \
                around them alone, and are different classes in training; if they mean the same, write them alike at all sites\n";
    assert!(printed.contains(note) && !printed.contains("texts of the sites"), "{printed}");
    sites.site("south", 1, &rows(12, ["died", "alive", "ICU"]), keys);
    let printed = sites.prints("sites/north.toml sites/south.toml");
    let of_ward = "note: texts of the sites that differ in upper and lower case or in blanks around them alone, and are \
                   different texts in training: `ward` (`ICU` and `icu`); if they mean the same, write them alike\n";
    assert!(printed.contains(of_ward) && !printed.contains("different classes"), "{printed}");
}

#[test]
fn a_target_that_is_one_number_at_all_sites_has_a_note() {
    let sites = Sites::new();
    let rows = |first: usize, dose: &str| {
        format!("x,dose\n{}", (first..first + 12).map(|row| format!("{row},{dose}\n")).collect::<String>())
    };
    sites.site("north", 0, &rows(0, "5.5"), "task = \"regression\"");
    sites.site("south", 1, &rows(12, "5.5"), "task = \"regression\"");
    let note = "note: the target is 5.5 in all training rows: there is nothing to learn but this number\n";
    let printed = sites.prints("sites/north.toml sites/south.toml");
    assert!(printed.contains(note), "{printed}");
    // One site with another number is enough.
    sites.site("south", 1, &rows(12, "6.5"), "task = \"regression\"");
    let printed = sites.prints("sites/north.toml sites/south.toml");
    assert!(!printed.contains("nothing to learn"), "{printed}");
}

#[test]
fn two_regressions_agree_on_the_scale_of_the_target() {
    let sites = Sites::new();
    for (k, name) in ["north", "south"].iter().enumerate() {
        let rows: String = (10 * k..10 * k + 10).map(|row| format!("{row},{}.03125\n", 40 + row)).collect();
        sites.site(name, k, &format!("x,dose\n{rows}"), "task = \"regression\"");
    }
    let printed = sites.prints("sites/north.toml sites/south.toml");
    // 40.03125 + 0, 1, …, 19: the mean is 9.5 more, the variance (20² − 1) / 12 = 33.25.
    assert!(printed.contains("mean and standard deviation of the target: 49.53125, 5.766281297335398\n"), "{printed}");
}

#[test]
fn a_name_that_a_server_would_not_accept_is_refused_before_it_is_told() {
    let sites = Sites::new();
    sites.site("north", 0, &table(&format!("ph,{},tree", "f".repeat(201)), 0, 12, TREES), "");
    let words = "sites/north.toml: what it would tell: `features`: name 1, from 0, has more than 200 characters";
    sites.refuses("sites/north.toml", &[words]);
}

#[test]
fn fractions_in_a_classification_are_not_told_as_names_of_classes() {
    let sites = Sites::new();
    let rows: String = (0..12).map(|row| format!("{row},{row}.75\n")).collect();
    sites.site("north", 0, &format!("x,dose\n{rows}"), "");
    let printed = sites.prints("sites/north.toml");
    assert!(printed.contains("target: numbers with fractions (none is told)"), "{printed}");
    assert!(printed.contains("set data.task = \"regression\""), "{printed}");
    assert!(!sites.prints("sites/north.toml --json").contains(".75"));
}

#[test]
fn wrong_files_are_named_with_line_and_key() {
    let sites = Sites::new();
    let write = |text: &str| {
        sites.0.write("site.toml", text);
    };
    let refuses = |words: &[&str]| sites.refuses("site.toml", words);
    sites.refuses("site.toml", &["cannot read the file `site.toml`"]);
    write("name = \"a\"\nindex = 0\n[data]\npth = \"a.csv\"\ntarget = \"y\"\n");
    refuses(&["site.toml, line 4: unknown key `data.pth`; did you mean `data.path`?"]);
    write("name = \"a\"\nindex = 0\n[tel]\nstatistics = true\n");
    refuses(&["site.toml, line 3: unknown section [tel]; did you mean [tell]?"]);
    write("name = \"a\"\nindex = -1\n[data]\npath = \"a.csv\"\ntarget = \"y\"\n");
    refuses(&["site.toml, line 2: `index` cannot be -1; it must be a whole number from 0 to 999999"]);
    write("index = 0\n[data]\npath = \"a.csv\"\ntarget = \"y\"\n");
    refuses(&["site.toml: `name` is missing. It must be"]);
    write("name = \"a\"\nindex = 0\n[data]\npath = \"a.csv\"\ntarget = \"y\"\n");
    refuses(&["site.toml: no such file: a.csv (data.path)"]);
    sites.0.write("a.csv", "x,y\n1,a\ntwo,b\n3,a\n");
    refuses(&["site.toml: a.csv: line 3, column 1 (x): `two` is not a finite number"]);
    sites.0.refuses("site check", &["SITE.toml"]);
}

#[test]
fn the_page_on_sites_lists_every_key() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/federation.md")).unwrap();
    for (path, key) in schema().keys() {
        let name = path.rsplit('.').next().unwrap();
        let default = key.default.map_or_else(|| "required".to_owned(), |value| format!("`{}`", value.to_value()));
        let row = format!("| `{name}` | {default} |");
        assert!(page.contains(&row), "docs/federation.md has no row `{row}` for `{path}`");
    }
}

#[test]
fn rows_that_are_held_out_can_have_files_of_their_own() {
    let sites = Sites::new();
    let training = table("ph,flow,tree", 0, 12, TREES);
    let of_files = "validation_path = \"v.csv\"\ncalibration_path = \"c.csv\"\n";
    // A share is for a site without such a file.
    sites.site(
        "north",
        0,
        &training,
        &format!("{of_files}validation_fraction = 0.5\ncalibration_fraction = 0.25\n{FEW}"),
    );
    let validation = format!("flow,ph,tree\n{},{},oak\n{},{},alder\n1.5,2.5,yew\n", flow(3), ph(3), flow(4), ph(4));
    sites.0.write("sites/v.csv", validation).write("sites/c.csv", table("ph,flow,tree", 50, 2, TREES));
    let printed = sites.prints("sites/north.toml");
    for line in [
        "  - number of training rows: 12\n",
        "  - number of validation rows: 3, of calibration rows: 2, of test rows: 2\n",
        "  - names of the 3 classes: alder, oak, yew\n",
        "  - which of them are not in the file of the training rows: yew\n",
        "The file of the training rows does not have the class `yew`",
        "Column `ph`: 4723.5\n",
        "  - path and name of the file data.validation_path: sites/v.csv\n",
        "  - path and name of the file data.calibration_path: sites/c.csv\n",
    ] {
        assert!(printed.contains(line), "no {line:?} in\n{printed}");
    }
    // Another site may train on such a class; where none does, it is probably a misspelling.
    sites.site("south", 1, &table("ph,flow,tree", 20, 12, TREES), "");
    let words = ["no site has the class `yew` in its file of training rows", "site `north`", "spelt"];
    sites.refuses("sites/north.toml sites/south.toml", &words);
    sites.site("south", 1, &table("ph,flow,tree", 20, 12, &["alder", "oak", "yew"]), "");
    sites.prints("sites/north.toml sites/south.toml");
    let with = |files: &str| sites.site("north", 0, &training, files);
    sites.0.write("sites/copy.csv", &training);
    with("validation_path = \"copy.csv\"").refuses("sites/north.toml", &["data.validation_path", "has the content of"]);
    let shares = with("validation_fraction = 0.6\ncalibration_fraction = 0.5");
    shares.refuses("sites/north.toml", &["data.validation_fraction", "1.1 together"]);
    with("validation_path = \"none.csv\"").refuses("sites/north.toml", &["none.csv", "data.validation_path"]);
    let same = ["data.validation_path", "the file of the training rows", "nothing would be held out"];
    with("validation_path = \"./north-rows.csv\"").refuses("sites/north.toml", &same);
    let twice = ["data.calibration_path", "is the file of data.test_path too"];
    with("calibration_path = \"north-test.csv\"").refuses("sites/north.toml", &twice);
    sites.0.write("sites/v.csv", "ph,tree\n1,oak\n");
    with("validation_path = \"v.csv\"").refuses("sites/north.toml", &["v.csv", "`flow`"]);
}

#[test]
fn a_rare_class_may_be_drawn_for_the_test() {
    let sites = Sites::new();
    sites.0.write("sites/rows.csv", table("ph,flow,tree", 0, 20, TREES) + "1.5,2.5,yew\n");
    let told = |index: usize| {
        let text = format!(
            "name = \"north\"\nindex = {index}\n[data]\npath = \"rows.csv\"\ntarget = -1\ntest_fraction = 0.5\n"
        );
        sites.0.write("sites/one.toml", text + "[tell]\nclass_counts = true\n");
        let told: Value = serde_json::from_str(&sites.prints("sites/one.toml --json")).unwrap();
        assert!(told["target"].get("untrained").is_none(), "{told}");
        told["target"]["counts"][2].as_u64().unwrap()
    };
    let trained: u64 = (0..12).map(told).sum();
    assert!((1..12).contains(&trained), "at some sites the row is for the test: {trained}");
}

#[test]
fn groups_that_training_rows_share_with_rows_of_other_files_are_noted() {
    let sites = Sites::new();
    let rows = |patients: std::ops::Range<usize>| {
        let line = |i: usize| format!("{},p{i},{}\n", i * 7 % 13, TREES[i % 2]);
        format!("ph,patient,tree\n{}", patients.map(line).collect::<String>())
    };
    let keys = "group_column = \"patient\"\nvalidation_path = \"v.csv\"\ncalibration_path = \"c.csv\"";
    sites.site("north", 0, &rows(0..20), keys);
    sites.0.write("sites/v.csv", rows(18..24)).write("sites/c.csv", rows(30..34));
    let printed = sites.prints("sites/north.toml");
    assert!(printed.contains("2 have training rows and validation rows"), "{printed}");
    assert!(!printed.contains("calibration rows; these"), "{printed}");
}
