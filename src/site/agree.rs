//! What follows from what all sites tell: the order of columns and classes and the means over all rows, or the reason
//! why the sites cannot train together.

use std::collections::{HashMap, HashSet};

use fedstein_schema::nearest;
use serde::{Deserialize, Serialize};

use super::describe::{Description, LISTED, TargetDescription, listed, these};
use super::disagreement::Disagreement;
use super::encode::{Tallies, encoding};
use crate::datasets::columns::{CellKind, Column, DIFFERENCE, Names, alike, note_on_alike};
use crate::datasets::moments::ColumnSum;
use crate::datasets::{Encoding, TargetScale};
use crate::report::quoted;

/// What K sites agree on before a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// The number of training rows of each client `[K]`.
    pub rows: Vec<usize>,
    /// The number of rows that each client holds out to choose settings with `[K]`.
    pub validation_rows: Vec<usize>,
    /// The number of rows that each client holds out for calibration `[K]`.
    pub calibration_rows: Vec<usize>,
    /// The number of test rows of each client `[K]`.
    pub test_rows: Vec<usize>,
    /// The number of features p.
    pub width: usize,
    /// The names of the features `[p]` in the order of client 0; `None` where no file has a header.
    pub features: Option<Vec<String>>,
    /// How these columns become features; `None` where they are the features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// The names of all clients' classes `[C]`, in order; `None` for a regression.
    pub classes: Option<Vec<String>>,
    /// The means over all training rows; `None` where a client tells no sums.
    pub means: Option<Means>,
    /// How messages call each site `[K]`.
    pub called: Vec<String>,
    /// The clients that tell no sums.
    pub silent: Vec<usize>,
    /// What does not hinder a run but should be known, one sentence each.
    pub notes: Vec<String>,
}

/// The means over the training rows of all clients, in the units of the files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Means {
    /// One for each feature, in the agreed order and encoding; empty where only that of the target is used.
    pub features: Vec<f64>,
    /// That of the target; `None` for a classification, or where the sum overflows.
    pub target: Option<f64>,
}

/// What sites agree on, given in any order.
///
/// # Arguments
/// - `sites`: descriptions that [`Description::check`] has accepted.
///
/// # Errors
/// The first [`Disagreement`]: of indices, names, files, tasks, columns, their content or classes, in this order.
pub fn agree(sites: &[Description]) -> Result<Agreement, Disagreement> {
    let mut sites: Vec<&Description> = sites.iter().collect();
    sites.sort_by_key(|site| site.index);
    check_indices(&sites)?;
    check_files(&sites)?;
    check_tasks(&sites)?;
    check_columns(&sites)?;
    let encoded = encoding(&sites)?;
    let mut notes = Vec::new();
    let classes = classes(&sites, &mut notes)?;
    notes.extend(encoded.as_ref().and_then(|(encoding, _)| {
        let texts = encoding.columns.iter().enumerate().filter(|(_, column)| column.kind == CellKind::Category);
        let called = |(at, column): (usize, &Column)| column.name.clone().unwrap_or_else(|| at.to_string());
        note_on_alike("the sites", texts.map(|(at, column)| (called((at, column)), &column.categories[..])))
    }));
    let targets = sites.iter().map(|site| site.sums.as_ref()?.target.as_ref()).collect::<Option<Vec<_>>>();
    notes.extend(targets.and_then(|targets| TargetScale::constant_note(&targets)));
    let silent: Vec<usize> = sites.iter().filter(|site| site.sums.is_none()).map(|site| site.index).collect();
    if !silent.is_empty() {
        notes.push(format!(
            "{} {} no sums: {} cannot be scaled by the mean of all rows",
            these(&sites, &silent),
            if silent.len() == 1 { "tells" } else { "tell" },
            if classes.is_some() { "features" } else { "the target of a regression, and features," }
        ));
    }
    Ok(Agreement {
        rows: sites.iter().map(|site| site.rows).collect(),
        validation_rows: sites.iter().map(|site| site.validation_rows).collect(),
        calibration_rows: sites.iter().map(|site| site.calibration_rows).collect(),
        test_rows: sites.iter().map(|site| site.test_rows).collect(),
        width: sites[0].width,
        features: sites[0].features.clone(),
        classes,
        means: means(&sites, encoded.as_ref()),
        encoding: encoded.map(|(encoding, _)| encoding),
        called: sites.iter().map(|site| site.called()).collect(),
        silent,
        notes,
    })
}

/// Checks that the sites, sorted by index, are clients 0 to K − 1.
fn check_indices(sites: &[&Description]) -> Result<(), Disagreement> {
    if sites.is_empty() {
        return Err(Disagreement::NoSites);
    }
    if let Some([a, b]) = sites.array_windows().find(|[a, b]| a.index == b.index) {
        return Err(Disagreement::SameIndex { index: a.index, first: quoted(&a.name), second: quoted(&b.name) });
    }
    if let Some((missing, _)) = sites.iter().enumerate().find(|(expected, site)| site.index != *expected) {
        return Err(Disagreement::MissingIndex { missing, sites: sites.len() });
    }
    let mut named = HashMap::new();
    for site in sites {
        if let Some(first) = named.insert(site.name.as_str(), site.index) {
            return Err(Disagreement::SameName { first, second: site.index, name: quoted(&site.name) });
        }
    }
    Ok(())
}

fn check_files(sites: &[&Description]) -> Result<(), Disagreement> {
    let mut holders = HashMap::new();
    for site in sites {
        if let Some(first) = holders.insert(site.print.as_str(), site.called()) {
            return Err(Disagreement::SameFile { first, second: site.called() });
        }
    }
    Ok(())
}

fn check_tasks(sites: &[&Description]) -> Result<(), Disagreement> {
    if let Some(site) = sites.iter().find(|site| site.target == TargetDescription::Fractions) {
        return Err(Disagreement::Fractions { site: site.called() });
    }
    let task = |site: &Description| match site.target {
        TargetDescription::Real => "regression",
        _ => "classification",
    };
    let expected = task(sites[0]);
    match sites.iter().find(|site| task(site) != expected) {
        Some(site) => {
            let (found, first) = (task(site), sites[0].called());
            Err(Disagreement::Task { site: site.called(), found, first, expected })
        }
        None => Ok(()),
    }
}

/// Checks that every site has the columns of client 0, in any order where they have names.
fn check_columns(sites: &[&Description]) -> Result<(), Disagreement> {
    let with = sites.iter().find(|site| site.features.is_some());
    let without = sites.iter().find(|site| site.features.is_none());
    if let (Some(with), Some(without)) = (with, without) {
        return Err(Disagreement::NoHeader { without: without.called(), with: with.called() });
    }
    let expected = names(sites[0])?;
    for site in sites {
        let found = names(site)?;
        if site.width != sites[0].width || found != expected {
            return Err(Disagreement::Columns {
                site: site.called(),
                found: site.width,
                first: sites[0].called(),
                expected: sites[0].width,
                difference: difference(site, sites[0]),
            });
        }
    }
    Ok(())
}

/// The names of a site's columns; empty without a header.
fn names(site: &Description) -> Result<HashSet<&str>, Disagreement> {
    let mut names = HashSet::new();
    for name in site.features.iter().flatten() {
        if !names.insert(name.as_str()) {
            return Err(Disagreement::Twice { site: site.called(), column: quoted(name) });
        }
    }
    Ok(names)
}

/// The columns that only one of two sites has, to complete "has 23 features, client 0 has 24".
fn difference(site: &Description, first: &Description) -> String {
    let only = |a: &Description, b: &Description| -> Vec<String> {
        let others: HashSet<&String> = b.features.iter().flatten().collect();
        a.features.iter().flatten().filter(|name| !others.contains(name)).cloned().collect()
    };
    let (missing, extra) = (only(first, site), only(site, first));
    let mut text = String::new();
    for (site, columns) in [(first, &missing), (site, &extra)] {
        if !columns.is_empty() {
            let columns = listed(columns.iter().map(|name| format!("`{}`", quoted(name))));
            text += &format!("; only {} has {columns}", site.called());
        }
    }
    let alike = missing.iter().find_map(|name| Some((name, nearest(name, extra.iter().map(String::as_str))?)));
    if let Some((name, other)) = alike {
        text += &format!("; if `{}` is the column `{}`, give it that name", quoted(other), quoted(name));
    }
    let of_name =
        |(site, columns): (&Description, &[String])| columns.iter().find(|name| holds_own_name(site, name)).cloned();
    if let Some(name) = [(first, &missing[..]), (site, &extra[..])].into_iter().find_map(of_name) {
        text += &format!("; with `data.name_column = \"{}\"` all sites must have this key", quoted(&name));
    }
    text
}

/// Whether a column has the site's name in every row, as that of `data.name_column`.
fn holds_own_name(site: &Description, column: &str) -> bool {
    let texts = site.columns.as_ref().and_then(|columns| columns.texts.as_ref());
    let at = site.features.iter().flatten().position(|name| name == column);
    at.zip(texts).and_then(|(at, texts)| texts.get(at)).is_some_and(|texts| *texts == [site.name.clone()])
}

/// Checks that each class is in a site's file of training rows.
fn check_trained(sites: &[&Description], names: &[String]) -> Result<(), Disagreement> {
    let mut trained = HashSet::new();
    let mut without = Vec::new();
    for site in sites {
        let TargetDescription::Classes { names, untrained, .. } = &site.target else { continue };
        let own: HashSet<&String> = untrained.iter().collect();
        trained.extend(names.iter().filter(|name| !own.contains(name)));
        without.extend(untrained.iter().map(|name| (name, site)));
    }
    let Some(class) = names.iter().find(|name| !trained.contains(name)) else { return Ok(()) };
    let holders = without.iter().filter(|(name, _)| *name == class).map(|(_, site)| site.called());
    Err(Disagreement::Untrained { class: quoted(class), sites: listed(holders) })
}

/// The union of the sites' classes, in the order of the data reader; `None` for a regression. A class that a site lacks
/// is noted.
fn classes(sites: &[&Description], notes: &mut Vec<String>) -> Result<Option<Vec<String>>, Disagreement> {
    let mut union = Names::default();
    let mut held = Vec::new();
    for site in sites {
        let TargetDescription::Classes { names, .. } = &site.target else { return Ok(None) };
        held.push(names.iter().map(|name| union.id(name)).collect::<Vec<usize>>());
    }
    let (names, place) = union.sorted();
    if let [class] = &names[..] {
        return Err(Disagreement::OneClass { class: quoted(class) });
    }
    check_trained(sites, &names)?;
    let held: Vec<HashSet<usize>> = held.iter().map(|ids| ids.iter().map(|id| place[*id]).collect()).collect();
    for (class, name) in names.iter().enumerate() {
        let without: Vec<usize> = (0..sites.len()).filter(|site| !held[*site].contains(&class)).collect();
        if !without.is_empty() {
            notes.push(format!("class `{}` is not at {}", quoted(name), these(sites, &without)));
        }
    }
    for (first, second) in alike(&names).into_iter().take(LISTED) {
        let [first, second] = [first, second].map(|class| {
            let with: Vec<usize> = (0..sites.len()).filter(|site| held[*site].contains(&class)).collect();
            format!("class `{}` of {}", quoted(&names[class]), these(sites, &with))
        });
        notes.push(format!(
            "{first} and {second} {DIFFERENCE}, and are different classes in training; if they mean the same, write them alike \
             at all sites"
        ));
    }
    for (at, own) in held.iter().enumerate() {
        let shared = held.iter().enumerate().any(|(other, classes)| other != at && !own.is_disjoint(classes));
        if !shared && sites.len() > 1 {
            let own: Vec<String> = names
                .iter()
                .enumerate()
                .filter(|(class, _)| own.contains(class))
                .map(|(_, name)| format!("`{}`", quoted(name)))
                .collect();
            notes.push(format!(
                "{} has none of the classes of the others, but {}: are the classes spelt alike at all sites?",
                sites[at].called(),
                own.join(", ")
            ));
        }
    }
    Ok(Some(names))
}

/// The means over all sites' rows, of columns in the order of client 0; `None` where a site tells no sums.
fn means(sites: &[&Description], encoded: Option<&(Encoding, Tallies)>) -> Option<Means> {
    let rows = sites.iter().map(|site| site.rows).sum();
    let sums = sites.iter().map(|site| site.sums.as_ref()).collect::<Option<Vec<_>>>()?;
    let places: Vec<Option<HashMap<&str, usize>>> = sites.iter().map(|site| places(site)).collect();
    let feature = |feature: usize| {
        let columns = sums.iter().zip(&places).map(|(sums, places)| {
            let column = match (places, &sites[0].features) {
                (Some(places), Some(names)) => *places.get(names.get(feature)?.as_str())?,
                _ => feature,
            };
            sums.features.get(column)
        });
        Some(ColumnSum::mean(&columns.collect::<Option<Vec<_>>>()?, rows))
    };
    let features = match encoded {
        Some((encoding, tallies)) => encoding.means(&tallies.parts(), rows),
        None => (0..sites[0].width).map(feature).collect::<Option<Vec<_>>>()?,
    };
    let targets = sums.iter().map(|sums| sums.target.as_ref()).collect::<Option<Vec<_>>>();
    let target = targets.map(|targets| ColumnSum::mean(&targets, rows)).filter(|mean| mean.is_finite());
    Some(Means { features, target })
}

/// The column of each name.
fn places(site: &Description) -> Option<HashMap<&str, usize>> {
    let names = site.features.as_ref()?;
    Some(names.iter().enumerate().map(|(column, name)| (name.as_str(), column)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::describe::describe;
    use super::super::describe::tests::{classes, rows, site};
    use super::*;
    use crate::datasets::{FeatureScale, TargetScale, Targets};
    use ndarray::{Array2, Axis, array};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Two rows of two features at client k, of the classes alder and oak.
    fn two(index: usize, names: &[&str]) -> Description {
        let values = array![[1., 10.], [2., 20.]] * (index + 1) as f32;
        describe(&site(index), &rows(&format!("print {index}"), values, names, classes(&[0, 1], &["alder", "oak"])), 7)
    }

    fn message(sites: &[Description]) -> String {
        agree(sites).unwrap_err().to_string()
    }

    #[test]
    fn columns_are_matched_by_name_and_means_are_over_all_rows() {
        // ph: 1, 2 at client 0, and 20, 40 in the second column of client 1.
        let agreed = agree(&[two(1, &["flow", "ph"]), two(0, &["ph", "flow"])]).unwrap();
        let expected = Agreement {
            rows: vec![2, 2],
            validation_rows: vec![0, 0],
            calibration_rows: vec![0, 0],
            test_rows: vec![2, 2],
            width: 2,
            features: Some(vec!["ph".into(), "flow".into()]),
            encoding: None,
            classes: Some(vec!["alder".into(), "oak".into()]),
            means: Some(Means { features: vec![63. / 4., 36. / 4.], target: None }),
            called: vec!["site `site-0`".into(), "site `site-1`".into()],
            silent: vec![],
            notes: vec![],
        };
        assert_eq!(agreed, expected);
        let by_position = agree(&[two(0, &[]), two(1, &[])]).unwrap();
        assert_eq!(by_position.means.unwrap().features, [9. / 4., 90. / 4.]);
    }

    #[test]
    fn classes_are_sorted_as_the_reader_sorts_them_and_an_absent_one_is_noted() {
        let of = |index, labels: &[usize], names: &[&str]| {
            let values = Array2::from_elem((labels.len(), 1), index as f32);
            describe(&site(index), &rows(&index.to_string(), values, &["x"], classes(labels, names)), 7)
        };
        let agreed = agree(&[of(0, &[0, 1], &["2", "10"]), of(1, &[0], &["2.0"]), of(2, &[0], &["1"])]).unwrap();
        assert_eq!(agreed.classes.unwrap(), ["1", "2", "10"]);
        let notes = [
            "class `1` is not at site `site-0`, site `site-1`",
            "class `2` is not at site `site-2`",
            "class `10` is not at site `site-1`, site `site-2`",
            "site `site-2` has none of the classes of the others, but `1`: are the classes spelt alike at all sites?",
        ];
        assert_eq!(agreed.notes, notes);
        assert_eq!(
            message(&[of(0, &[0], &["oak"]), of(1, &[0, 0], &["oak"])]),
            "all clients hold one class only, `oak`: there is nothing to learn"
        );
    }

    #[test]
    fn a_site_without_sums_leaves_no_means_and_a_note() {
        let silent = Description { sums: None, ..two(1, &["a", "b"]) };
        let agreed = agree(&[two(0, &["a", "b"]), silent]).unwrap();
        assert_eq!((agreed.means, agreed.silent), (None, vec![1]));
        assert_eq!(agreed.notes, ["site `site-1` tells no sums: features cannot be scaled by the mean of all rows"]);
    }

    #[test]
    fn indices_are_0_to_k_and_every_file_is_another() {
        assert_eq!(message(&[]), "there are no sites");
        let renamed = Description { name: "other".into(), print: "other".into(), ..two(0, &["a", "b"]) };
        assert_eq!(
            message(&[two(0, &["a", "b"]), renamed]),
            "`index` 0 is claimed by two sites, `site-0` and `other`; give each its own"
        );
        assert_eq!(
            message(&[two(0, &["a", "b"]), two(2, &["a", "b"])]),
            "no site has the `index` 1: those of 2 sites must be 0 to 1"
        );
        assert_eq!(message(&[two(2, &["a", "b"])]), "no site has the `index` 0: that of a single site must be 0");
        let named = Description { name: "site-0".into(), ..two(1, &["a", "b"]) };
        assert_eq!(
            message(&[two(0, &["a", "b"]), named]),
            "clients 0 and 1 are both named `site-0`; give each site its own `name`"
        );
        let same = Description { print: two(0, &["a", "b"]).print, ..two(1, &["a", "b"]) };
        assert_eq!(
            message(&[two(0, &["a", "b"]), same]),
            "site `site-0` and site `site-1` have the same file; its rows would count twice"
        );
    }

    #[test]
    fn other_columns_are_named_with_their_client() {
        let one = |index: usize| {
            let values = array![[1.], [index as f32]];
            describe(&site(index), &rows(&index.to_string(), values, &["flow"], classes(&[0, 1], &["a", "b"])), 7)
        };
        let message = |sites: &[Description]| agree(sites).unwrap_err().to_string();
        assert_eq!(
            message(&[two(0, &["ph", "flow"]), two(1, &["ph", "flow"]), one(2)]),
            "site `site-2` has 1 feature, site `site-0` has 2; only site `site-0` has `ph`"
        );
        assert_eq!(
            message(&[two(0, &["temp", "flow"]), two(1, &["Temp", "flow"])]),
            "site `site-1` has 2 features, site `site-0` has 2; only site `site-0` has `temp`; only site `site-1` has `Temp`; if `Temp` is the \
             column `temp`, give it that name"
        );
        let unnamed = |mut site: Description| {
            site.features = None;
            site
        };
        assert_eq!(message(&[two(0, &[]), unnamed(one(1))]), "site `site-1` has 1 feature, site `site-0` has 2");
        assert!(
            message(&[two(0, &["a", "b"]), two(1, &[])]).starts_with("site `site-1` has no header, site `site-0` has:")
        );
        assert!(message(&[two(0, &["a", "a"])]).starts_with("site `site-0` has two columns `a`"));
    }

    #[test]
    fn tasks_are_the_same_and_no_value_is_quoted() {
        let fractions = Description { target: TargetDescription::Fractions, ..two(1, &["a", "b"]) };
        assert!(
            message(&[two(0, &["a", "b"]), fractions])
                .starts_with("site `site-1` calls its task a classification, but its")
        );
        let real = Description { target: TargetDescription::Real, ..two(1, &["a", "b"]) };
        assert_eq!(
            message(&[two(0, &["a", "b"]), real]),
            "site `site-1` holds a regression, site `site-0` a classification; `data.task` must be the same at all sites"
        );
    }

    proptest! {
        #[test]
        fn the_means_of_three_sites_are_those_of_the_pooled_table_to_the_bit(
            table in vec((-1e6f32..1e6, -1f32..1.0, -1e9f64..1e9, 0usize..3), 3..60),
        ) {
            // A third column is the same everywhere. Each site has at least one row.
            let features = Array2::from_shape_fn((table.len(), 3), |(row, at)| [table[row].0, table[row].1, 0.1][at]);
            let values: Vec<f64> = table.iter().map(|row| row.2).collect();
            let descriptions: Vec<Description> = (0..3)
                .map(|k| {
                    let own: Vec<usize> =
                        (0..table.len()).filter(|&row| if row < 3 { row == k } else { table[row].3 == k }).collect();
                    let targets = Targets::Real { values: own.iter().map(|&row| values[row]).collect() };
                    let part = features.select(Axis(0), &own);
                    describe(&site(k), &rows(&k.to_string(), part, &["a", "b", "c"], targets), 7)
                })
                .collect();
            let means = agree(&descriptions).unwrap().means.unwrap();
            let FeatureScale::PerColumn { shift, .. } = FeatureScale::standard(&features) else { unreachable!() };
            prop_assert_eq!(means.features, shift);
            let target = TargetScale::of(&Targets::Real { values }).unwrap();
            prop_assert_eq!(means.target.map(f64::to_bits), Some(target.mean.to_bits()));
        }
    }
}
