//! What a site tells a server about its rows before a run.

use fedstein_schema::first;
use ndarray::Axis;
use serde::{Deserialize, Serialize};

use super::config::{SiteConfig, SiteData, Tell};
use super::rows::{SiteRows, column_called, with_values};
use crate::checkpoint::digest;
use crate::datasets::columns::{CellKind, Columns, Missing, Tally, tallies};
use crate::datasets::moments::ColumnSum;
use crate::datasets::{Dataset, Targets, unit_count};
use crate::report::quoted;

/// What a site tells about its rows in the first exchange. It has no row, no path and no file's name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The index k of the client, from 0.
    pub index: usize,
    /// The site's name.
    pub name: String,
    /// The number of training rows N_k.
    pub rows: usize,
    /// The number of rows held out to choose settings with.
    pub validation_rows: usize,
    /// The number of rows held out to calibrate probabilities on.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calibration_rows: usize,
    /// The number of test rows.
    pub test_rows: usize,
    /// The number of features p.
    pub width: usize,
    /// The names of the features `[p]`, if the file has a header.
    pub features: Option<Vec<String>>,
    /// What the columns of the features hold, where they are not numbers alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<ColumnsTold>,
    /// The target.
    pub target: TargetDescription,
    /// Sums over the training rows, where they may be told.
    pub sums: Option<Sums>,
    /// Whether sums of products over the training rows may be asked for, which `data.rotate` needs.
    pub products: bool,
    /// The [`print()`] of the file of the training rows.
    pub print: String,
}

/// What a site tells about columns that are not numbers alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnsTold {
    /// What each column holds `[p]`.
    pub kinds: Vec<CellKind>,
    /// What becomes of missing cells at this site.
    pub missing: Missing,
    /// The texts of the training rows in each column `[p]`, in order, where they may be told.
    pub texts: Option<Vec<Vec<String>>>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What a site tells about its target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TargetDescription {
    /// A classification.
    Classes {
        /// The names of the classes C, of training and test rows.
        names: Vec<String>,
        /// The number of training rows of each class `[C]`, where it may be told.
        counts: Option<Vec<usize>>,
        /// The classes that only files of held-out or test rows of this site have, and its file of training rows does not.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        untrained: Vec<String>,
    },
    /// Numbers with fractions in what is called a classification. None is told, for they may be measurements.
    Fractions,
    /// A regression.
    Real,
}

/// Sums over a site's training rows, in the units of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    /// One for each feature `[p]`; none with `tallies`.
    pub features: Vec<ColumnSum>,
    /// Where the columns are not numbers alone: counts and sums of each `[p]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tallies: Option<Vec<Tally>>,
    /// That of the target; `None` for a classification, or where the sum overflows.
    pub target: Option<ColumnSum>,
}

/// The print of a file in a run: equal for equal files, and not comparable with the prints of another run. It is the
/// sha256 of the run's number in 16 hexadecimal digits, followed by the 64 of the file's sha256. Both have a fixed
/// length, so that the construction of HMAC, which is for messages of any length, would add nothing.
///
/// Whoever knows the run's number, as the server does, and has the file finds its print.
pub fn print(run: u64, sha256: &str) -> String {
    digest::of_bytes(format!("{run:016x}{sha256}").as_bytes())
}

/// What a site tells a server about its rows, and no more than its file allows.
///
/// # Arguments
/// - `run`: the number of the run, the key of the file's print.
pub fn describe(site: &SiteConfig, rows: &SiteRows, run: u64) -> Description {
    let SiteRows { train, validation, calibration, test, columns, sha256, .. } = rows;
    let count_told = |held_out: &Dataset| if is_scored(site.tell, held_out) { held_out.rows() } else { 0 };
    Description {
        index: site.index,
        name: site.name.clone(),
        rows: train.rows(),
        validation_rows: count_told(validation),
        calibration_rows: count_told(calibration),
        test_rows: count_told(test),
        width: train.width(),
        features: train.feature_names.clone(),
        columns: (!columns.are_features()).then(|| columns_told(site, rows)),
        target: target(site, rows),
        sums: site.tell.sums_of(unit_count(train)).then(|| sums(train, columns, rows.may_tell_texts(site))),
        products: site.tell.products_of(unit_count(train)),
        print: print(run, sha256),
    }
}

/// Whether a server is told of these held-out rows of a site, and of sums of scores over them.
pub fn is_scored(tell: Tell, held_out: &Dataset) -> bool {
    tell.scores_of(unit_count(held_out))
}

fn target(site: &SiteConfig, rows: &SiteRows) -> TargetDescription {
    let targets = &rows.train.targets;
    let Targets::Classes { names, .. } = targets else { return TargetDescription::Real };
    if has_fractions(names) {
        return TargetDescription::Fractions;
    }
    // Rows without a file of their own were drawn from that of the training rows.
    let SiteData { test_path, validation_path, calibration_path, .. } = &site.data;
    let drawn = [(test_path, &rows.test), (validation_path, &rows.validation), (calibration_path, &rows.calibration)];
    let drawn = drawn.into_iter().filter(|(path, _)| path.is_empty()).map(|(_, rows)| &rows.targets);
    let mut of_file = vec![false; names.len()];
    for targets in std::iter::once(targets).chain(drawn) {
        let counts = targets.counts(0..targets.len());
        of_file.iter_mut().zip(counts).for_each(|(has, count)| *has |= count > 0);
    }
    let untrained = names.iter().zip(of_file).filter(|(_, has)| !has).map(|(name, _)| name.clone()).collect();
    let counts = site.tell.class_counts.then(|| targets.counts(0..targets.len()));
    TargetDescription::Classes { names: names.clone(), counts, untrained }
}

/// Whether a name of a class is a number with a fraction, and perhaps a measurement.
pub(super) fn has_fractions(names: &[String]) -> bool {
    let is_fraction = |number: f64| number.is_finite() && number.fract() != 0.0;
    names.iter().any(|name| name.parse().is_ok_and(is_fraction))
}

/// What may be told of columns that are not numbers alone.
fn columns_told(site: &SiteConfig, rows: &SiteRows) -> ColumnsTold {
    let SiteRows { train, columns, .. } = rows;
    let texts = || {
        let texts = tallies(train, columns).into_iter().map(|tally| tally.texts.into_keys().collect());
        let mut texts: Vec<Vec<String>> = texts.collect();
        rows.few_texts(site).into_iter().for_each(|(at, _)| texts[at].clear());
        texts
    };
    ColumnsTold { kinds: columns.kinds.clone(), missing: columns.missing, texts: rows.may_tell_texts(site).then(texts) }
}

fn sums(train: &Dataset, columns: &Columns, categories: bool) -> Sums {
    let mut tallies = (!columns.are_features()).then(|| tallies(train, columns));
    if !categories {
        tallies.iter_mut().flatten().for_each(|tally| tally.texts.clear());
    }
    let features = match tallies {
        Some(_) => Vec::new(),
        None => {
            let columns = train.features.axis_iter(Axis(1));
            columns.map(|column| ColumnSum::of(column.iter().map(|&x| f64::from(x)))).collect()
        }
    };
    let target = match &train.targets {
        Targets::Real { values } => Some(ColumnSum::of(values.iter().copied())),
        _ => None,
    };
    Sums { features, tallies, target: target.filter(|column| column.sum.value().is_finite()) }
}

/// What the person who is responsible for the rows should know about their description, one sentence or two each.
pub fn problems(site: &SiteConfig, rows: &SiteRows, told: &Description) -> Vec<String> {
    let mut problems = Vec::new();
    if site.tell.statistics && told.sums.is_none() {
        let few = match site.data.reading.group_column.as_str() {
            "" if told.rows == 1 => "There is 1 training row, fewer".to_owned(),
            "" => format!("There are {} training rows, fewer", told.rows),
            column if told.rows == 1 => format!("The 1 training row has fewer values of `{}`", quoted(column)),
            column => format!("The {} training rows have fewer values of `{}`", told.rows, quoted(column)),
        };
        problems.push(format!(
            "{few} than tell.min_rows = {}: no sums are told, and the features cannot be scaled by the mean of all sites. \
             More rows, or a smaller tell.min_rows, would change that.",
            site.tell.min_rows
        ));
    }
    if told.sums.is_none() && told.target == TargetDescription::Real {
        problems.push("No regression can begin without the sums: its target is scaled by those of all sites.".into());
    }
    if let Some(ColumnsTold { kinds, texts: None, .. }) = &told.columns
        && kinds.contains(&CellKind::Category)
    {
        problems.push(
            "The texts of the columns of data.categorical are not told (tell.categories = false): no run can begin with \
             them. Set tell.categories = true, or leave the columns out with data.ignore at all sites."
                .into(),
        );
    }
    let few = if rows.may_tell_texts(site) { rows.few_texts(site) } else { Vec::new() };
    for (at, present) in few.into_iter().filter(|(_, present)| *present > 0) {
        problems.push(format!(
            "{}, fewer than tell.min_rows = {}: its texts are not told, and those that no other site tells are unknown in \
             training.",
            with_values(&rows.train, at, present),
            site.tell.min_rows
        ));
    }
    for (column, value, is_f32) in told.constants() {
        // From 2^24 on f32 does not have all whole numbers.
        let same = match is_f32 && value.abs() >= 16_777_216.0 {
            true => ", or values so near it that f32 has no other number for them",
            false => "",
        };
        problems.push(format!(
            "{column} holds {value} in every training row that has a value{same}; this value is told, as its constant."
        ));
    }
    match &told.target {
        TargetDescription::Fractions => problems.push(
            "The target holds numbers with fractions, and data.task is \"classification\". Nothing is told about them, and \
             no run can begin: set data.task = \"regression\" where the target is a measurement, and give classes names \
             that are no fractions where it is not."
                .into(),
        ),
        TargetDescription::Classes { names, .. } if names.len() == 1 => problems.push(
            "All rows are of one class; another site must have another class, or there is nothing to learn.".into(),
        ),
        TargetDescription::Classes { names, .. } if names.len() > 2 && 2 * names.len() > told.rows => {
            problems.push(format!(
                "There are {} classes for {} training row{}, and the name of each is told: is data.target the right column?",
                names.len(),
                told.rows,
                if told.rows == 1 { "" } else { "s" }
            ));
        }
        _ => {}
    }
    if let TargetDescription::Classes { untrained, .. } = &told.target
        && !untrained.is_empty()
    {
        let named = first(5, untrained.iter().map(|name| format!("`{}`", quoted(name))));
        problems.push(format!(
            "The file of the training rows does not have the class {}, which a file of held-out or test rows has. Is it spelt \
             alike in all files? No run can begin unless another site trains on it.",
            named
        ));
    }
    if told.features.is_none() {
        problems.push(
            "The file has no header: its columns are matched with those of other sites by their position alone.".into(),
        );
    }
    let held_out = [("validation", &rows.validation), ("calibration", &rows.calibration), ("test", &rows.test)];
    let few = held_out.iter().filter(|(_, rows)| rows.rows() > 0 && !is_scored(site.tell, rows));
    let few: Vec<String> = few.map(|(name, rows)| format!("{} for {name}", unit_count(rows))).collect();
    if !few.is_empty() {
        let units = if rows.train.groups.is_some() { "groups of rows" } else { "rows" };
        problems.push(format!(
            "Few {units} are held out ({}), fewer than tell.min_rows = {}: a server is told that there are none, and gets no scores \
             of them; the names of their classes are told. More of them, or a smaller tell.min_rows, would change that.",
            few.join(", "),
            site.tell.min_rows
        ));
    }
    problems
}

impl Description {
    /// The site for a message.
    pub fn called(&self) -> String {
        format!("site `{}`", quoted(&self.name))
    }

    /// The name of a feature for a message.
    pub fn column(&self, feature: usize) -> String {
        column_called(self.features.as_deref(), feature)
    }

    /// The columns whose value is told because all training rows have it, with that value, and whether it is kept in f32, as
    /// features are and the target is not.
    fn constants(&self) -> Vec<(String, f64, bool)> {
        let Some(sums) = &self.sums else { return Vec::new() };
        let numbers = sums.features.iter().chain(sums.tallies.iter().flatten().map(|tally| &tally.sum)).enumerate();
        let features = numbers.filter_map(|(at, column)| Some((self.column(at), column.constant?, true)));
        let target = sums.target.iter().filter_map(|column| Some(("The target".to_owned(), column.constant?, false)));
        features.chain(target).collect()
    }
}

/// The number of columns, or of sites, that a message lists.
pub(super) const LISTED: usize = 5;

/// As many of them as a message lists.
pub(super) fn listed(all: impl IntoIterator<Item = String>) -> String {
    first(LISTED, all)
}

/// The sites of these indices.
pub(super) fn these(sites: &[&Description], indices: &[usize]) -> String {
    listed(indices.iter().map(|index| sites[*index].called()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::datasets::columns::{Categorical, Rule};
    use crate::datasets::{Header, Reading, Task};
    use crate::site::config::SiteLimits;
    use ndarray::{Array2, array};

    /// Site k, with everything told that can be.
    pub(in crate::site) fn site(index: usize) -> SiteConfig {
        SiteConfig {
            name: format!("site-{index}"),
            index,
            state: "state".into(),
            backend: "flex".into(),
            threads: 0,
            data: SiteData {
                path: "a.csv".into(),
                test_path: String::new(),
                validation_path: String::new(),
                calibration_path: String::new(),
                target: "y".into(),
                task: Task::Classification,
                header: Header::Yes,
                delimiter: ",".into(),
                name_column: String::new(),
                reading: Reading::default(),
                test_fraction: 0.2,
                split: crate::datasets::source::TestSplit::Random,
                validation_fraction: 0.0,
                calibration_fraction: 0.0,
            },
            tell: Tell { categories: true, class_counts: true, min_rows: 1, products: true, statistics: true },
            limits: SiteLimits { megabytes: 64, numbers: 1 << 20, steps: 1000 },
        }
    }

    /// Rows with these columns; the test rows are the training rows.
    pub(in crate::site) fn rows(sha256: &str, features: Array2<f32>, names: &[&str], targets: Targets) -> SiteRows {
        // As the reader builds it: unlike `Dataset::new`, it takes rows of one class.
        let train = Dataset {
            name: "a".into(),
            feature_shape: vec![features.ncols()],
            features,
            feature_names: (!names.is_empty()).then(|| names.iter().map(ToString::to_string).collect()),
            targets,
            clients: None,
            client_names: None,
            groups: None,
            lines: None,
        };
        SiteRows {
            validation: train.select(&[]),
            calibration: train.select(&[]),
            test: train.clone(),
            columns: Columns::of_numbers(train.width()),
            train,
            notes: Vec::new(),
            sha256: sha256.into(),
            fingerprint: sha256.into(),
            unkept: None,
        }
    }

    pub(in crate::site) fn classes(labels: &[usize], names: &[&str]) -> Targets {
        Targets::Classes { labels: labels.to_vec(), names: names.iter().map(ToString::to_string).collect() }
    }

    fn three(targets: Targets) -> SiteRows {
        rows("print", array![[1.5, 7.], [2.25, 7.], [-4., 7.]], &["ph", "flow"], targets)
    }

    #[test]
    fn a_column_with_fewer_values_than_min_rows_is_missing_and_nothing_of_them_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        let row = |i: usize| {
            let rare = if i == 3 || i == 5 { format!("{i}.25") } else { String::new() };
            let often = if i < 10 { format!("{i}") } else { String::new() };
            format!("{i},{rare},{often},{}\n", ["no", "yes"][i % 2])
        };
        std::fs::write(&path, format!("x,rare,often,y\n{}", (0..20).map(row).collect::<String>())).unwrap();
        std::fs::write(directory.path().join("t.csv"), "x,rare,often,y\n1,2,3,no\n").unwrap();
        let mut site = site(0);
        (site.data.path, site.data.target) = (path, "y".into());
        site.data.test_path = directory.path().join("t.csv").display().to_string();
        site.data.reading.missing = Missing::Mean;
        let of = |min_rows: usize| {
            let site = SiteConfig { tell: Tell { min_rows, ..site.tell }, ..site.clone() };
            let rows = SiteRows::read(&site).unwrap();
            let tallies = describe(&site, &rows, 7).sums.unwrap().tallies.unwrap();
            let told: Vec<_> = tallies.iter().map(|tally| (tally.present, tally.sum.sum.value())).collect();
            (told, rows.notes)
        };
        assert_eq!(of(2), (vec![(20, 190.0), (2, 8.5), (10, 45.0)], Vec::new()));
        let (told, notes) = of(3);
        assert_eq!(told, [(20, 190.0), (0, 0.0), (10, 45.0)]);
        assert_eq!(
            notes,
            [
                "Column `rare`: 2 of 20 training rows have a value, fewer than tell.min_rows = 3; it is missing in training, \
                 and nothing of it is told."
            ]
        );
    }

    #[test]
    fn texts_of_a_column_with_fewer_values_than_min_rows_are_not_told_whatever_else_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        let row = |i: usize| {
            format!("{},{},{}\n", ["a", "b"][i % 2], if i < 5 { "rare" } else { "" }, ["no", "yes"][i / 3 % 2])
        };
        std::fs::write(&path, format!("ward,unit,y\n{}", (0..20).map(row).collect::<String>())).unwrap();
        std::fs::write(directory.path().join("t.csv"), "ward,unit,y\na,,no\n").unwrap();
        let mut site = site(0);
        (site.data.path, site.data.target) = (path, "y".into());
        site.data.test_path = directory.path().join("t.csv").display().to_string();
        (site.data.reading.missing, site.data.reading.categorical) = (Missing::Mean, Categorical::Rule(Rule::Auto));
        let of = |min_rows: usize, statistics: bool| {
            let site = SiteConfig { tell: Tell { min_rows, statistics, ..site.tell }, ..site.clone() };
            let rows = SiteRows::read(&site).unwrap();
            let told = describe(&site, &rows, 7);
            let problems =
                problems(&site, &rows, &told).into_iter().filter(|text| text.contains("its texts are not told"));
            (told.columns.unwrap().texts.unwrap(), problems.count())
        };
        let (wards, units) = (vec!["a".to_owned(), "b".to_owned()], vec!["rare".to_owned()]);
        for statistics in [true, false] {
            assert_eq!(of(5, statistics), (vec![wards.clone(), units.clone()], 0));
            // Its cells are missing where sums are told, which a note on the file says.
            assert_eq!(of(6, statistics), (vec![wards.clone(), Vec::new()], usize::from(!statistics)));
            assert_eq!(of(21, statistics), (vec![Vec::new(), Vec::new()], 2), "{statistics}");
        }
    }

    #[test]
    fn a_description_has_counts_names_exact_sums_and_constants() {
        let rows = three(classes(&[1, 0, 1], &["alder", "oak"]));
        let told = describe(&site(1), &rows, 7);
        assert_eq!((told.index, told.rows, told.test_rows, told.width), (1, 3, 3, 2));
        assert_eq!(told.features.as_deref(), Some(&["ph".to_owned(), "flow".to_owned()][..]));
        let names = vec!["alder".into(), "oak".into()];
        assert_eq!(told.target, TargetDescription::Classes { names, counts: Some(vec![1, 2]), untrained: Vec::new() });
        let sums = told.sums.as_ref().unwrap();
        let columns: Vec<_> = sums.features.iter().map(|column| (column.sum.value(), column.constant)).collect();
        assert_eq!(columns, [(-0.25, None), (21., Some(7.))]);
        assert!(sums.target.is_none());
        let problems = problems(&site(1), &rows, &told);
        assert_eq!(
            problems,
            ["Column `flow` holds 7 in every training row that has a value; this value is told, as its constant."]
        );
    }

    #[test]
    fn a_regression_tells_the_sum_of_its_target() {
        let told = describe(&site(0), &three(Targets::Real { values: vec![0.5, 1.5, 2.0] }), 7);
        assert_eq!(told.target, TargetDescription::Real);
        let target = told.sums.unwrap().target.unwrap();
        assert_eq!((target.sum.value(), target.constant), (4.0, None));
    }

    #[test]
    fn what_the_file_does_not_allow_is_not_told() {
        let rows = three(classes(&[1, 0, 1], &["alder", "oak"]));
        let told = |tell: Tell| describe(&SiteConfig { tell, ..site(0) }, &rows, 7);
        let all = Tell { categories: true, class_counts: true, min_rows: 3, products: true, statistics: true };
        assert!(told(all).sums.is_some());
        assert!(told(Tell { statistics: false, ..all }).sums.is_none());
        let few = Tell { min_rows: 4, ..all };
        assert!(told(few).sums.is_none());
        assert_eq!((told(all).test_rows, told(few).test_rows), (3, 0));
        let problems = problems(&SiteConfig { tell: few, ..site(0) }, &rows, &told(few));
        assert!(problems[0].contains("3 training rows, fewer than tell.min_rows = 4"), "{problems:?}");
        assert!(problems[1].contains("held out (3 for test), fewer than tell.min_rows = 4"), "{problems:?}");
        let without = told(Tell { class_counts: false, ..all });
        assert!(matches!(without.target, TargetDescription::Classes { counts: None, .. }));
    }

    #[test]
    fn a_print_is_that_of_sha256sum_and_another_in_each_run() {
        // FIPS 180-2, appendix B.1: the file `abc`.
        let file = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        // printf %s 00000000000000ff"$(printf abc | sha256sum | cut -c-64)" | sha256sum
        assert_eq!(print(255, file), "5ac891010ebff5dc983dbbbe95ec224e48f10eb024c6bc16f8b76730a7ab4770");
        assert_ne!(print(0, file), print(255, file));
    }

    #[test]
    fn a_target_that_names_almost_every_row_is_questioned() {
        let rows = three(classes(&[0, 1, 2], &["Ada", "Emmy", "Mary"]));
        let problems = problems(&site(0), &rows, &describe(&site(0), &rows, 7));
        assert!(problems.iter().any(|problem| problem.starts_with("There are 3 classes for 3 training rows")));
    }

    #[test]
    fn fractions_in_a_classification_are_not_told_as_classes() {
        let rows = three(classes(&[1, 0, 1], &["12.75", "13"]));
        let told = describe(&site(0), &rows, 7);
        assert_eq!(told.target, TargetDescription::Fractions);
        assert!(!serde_json::to_string(&told).unwrap().contains("12.75"));
        assert!(problems(&site(0), &rows, &told).iter().any(|problem| problem.contains("data.task = \"regression\"")));
    }
}
