//! README and docs say what the table of keys says.

use std::collections::BTreeSet;
use std::fs;

use fedstein::algorithm::Replies;
use fedstein::experiment::config::schema;
use toml::{Table, Value};

use super::common::algorithms_that;
use super::{resolve, root};

/// The keys of the built-in experiment that differ from the defaults, as TOML with dotted keys.
fn overridden() -> String {
    let (built_in, defaults) = (resolve(&text_of("configs/digits/newton-bnn.toml")).table, resolve("").table);
    let mut lines = Vec::new();
    for (name, value) in &built_in {
        let default = defaults.get(name);
        match value {
            Value::Table(section) => {
                let of = |key: &String| default.and_then(|section| section.get(key));
                let changed = section.iter().filter(|(key, value)| of(key) != Some(*value));
                lines.extend(changed.map(|(key, value)| format!("{name}.{key} = {value}\n")));
            }
            value if default != Some(value) => lines.push(format!("{name} = {value}\n")),
            _ => {}
        }
    }
    lines.concat()
}

fn text_of(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

#[test]
fn the_readme_says_what_the_built_in_experiment_sets() {
    let block = format!("```toml\n{}```\n", overridden());
    assert!(text_of("README.md").contains(&block), "README.md should have:\n{block}");
}

#[test]
fn the_dependencies_of_a_program_outside_have_the_versions_of_this_one() {
    let workspace: Table = text_of("Cargo.toml").parse().unwrap();
    let ours = &workspace["workspace"]["dependencies"];
    let page = text_of("docs/adding-a-model.md");
    let lines = page.split_once("[dependencies]\n").unwrap().1.split_once("```").unwrap().0;
    let theirs: Table = lines.parse().unwrap();
    let version = |of: &Value| of.get("version").unwrap_or(of).as_str().unwrap().to_owned();
    for (name, dependency) in theirs.iter().filter(|(name, _)| *name != "fedstein") {
        assert_eq!(version(dependency), version(&ours[name]), "{name}");
    }
    assert_eq!(theirs.len(), 5);
}

#[test]
fn the_readme_names_every_data_set_partition_schedule_and_method() {
    let readme = text_of("README.md");
    for section in ["data", "partition", "schedule", "algorithm"] {
        let section = schema().sections.iter().find(|found| found.name == section).unwrap();
        let missing: Vec<&str> =
            section.kind_names().into_iter().filter(|kind| !readme.contains(&format!("`{kind}`"))).collect();
        assert!(missing.is_empty(), "README.md names no {} {missing:?}", section.name);
    }
}

/// The names in the cells of the rows of a page's tables that begin with one of `first`, in this column.
fn named_in(page: &str, first: Option<&str>, column: usize) -> BTreeSet<String> {
    let text = text_of(page);
    let rows = text.lines().filter(|line| line.starts_with("| ")).map(|line| line.split('|').collect::<Vec<_>>());
    let rows = rows.filter(|cells| first.is_none_or(|first| cells[1].trim() == first));
    rows.flat_map(|cells| cells[column].split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn the_tables_of_methods_in_the_docs_have_all_of_their_kind() {
    let (described, compared) = (named_in("docs/algorithms.md", None, 1), named_in("docs/choosing.md", None, 1));
    let missing = |named: &BTreeSet<String>, of: Vec<&'static str>| {
        of.into_iter().filter(|kind| !named.contains(*kind)).collect::<Vec<_>>()
    };
    assert_eq!(missing(&described, algorithms_that(|_| true)), [""; 0], "docs/algorithms.md");
    assert_eq!(
        missing(&compared, algorithms_that(|can| !can.centralised)),
        [""; 0],
        "docs/choosing.md, Bytes and memory"
    );
    let medians = named_in("docs/reliability.md", Some("`median`"), 3);
    let averages = algorithms_that(|can| !can.centralised && can.replies == Replies::Estimates);
    let averages = averages.into_iter().map(str::to_owned).collect();
    assert_eq!(medians, averages, "docs/reliability.md, `federation.robust = \"median\"`");
}

#[test]
fn the_reference_in_docs_is_that_of_the_table() {
    let path = root().join("docs/configuration.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, schema().reference()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let same = written == schema().reference();
    assert!(
        same,
        "docs/configuration.md is not that of the table; UPDATE_DOCS=1 cargo test --release --test config writes it"
    );
    for (path, key) in schema().keys() {
        assert!(written.contains(&format!("| `{}` | ", key.name)), "{path} is not in docs/configuration.md");
    }
}
