//! Notes about classes of which hardly any row is evaluated, or none is trained on.

use std::collections::BTreeSet;

use super::config::Config;
use super::schema::{ConfigError, first};
use crate::datasets::source::TestSplit;
use crate::datasets::{DataConfig, Dataset, Targets};
use crate::report::quoted;

/// Below this number of rows the scores of a class say little.
const FEW: usize = 5;

/// The number of classes that the note lists.
const LISTED: usize = 5;

/// The note on the rows that are evaluated; `None` where every class has [`FEW`] of them, or there are no classes.
///
/// # Arguments
/// * `trained`: the targets of the training rows: a class without any is of no interest
/// * `evaluated`: the rows that are evaluated; where they have groups, groups count and not rows
///
/// # Errors
/// The configuration is invalid.
pub(super) fn note(config: &Config, trained: &Targets, evaluated: &Dataset) -> Result<Option<String>, ConfigError> {
    let (Targets::Classes { labels, names }, Targets::Classes { labels: all, .. }) = (&evaluated.targets, trained)
    else {
        return Ok(None);
    };
    let (counts, known) = (units_of_classes(labels, names.len(), evaluated), trained.counts(0..all.len()));
    let units = if evaluated.groups.is_some() { " groups" } else { "" };
    let classes = names.iter().zip(&counts).zip(known).filter(|(_, known)| *known > 0);
    let few: Vec<(&String, &usize)> = classes.map(|(class, _)| class).filter(|(_, count)| **count < FEW).collect();
    let remedy = match config.data()? {
        DataConfig::Csv(csv)
            if csv.test_path.is_empty() && csv.leave_out.is_empty() && csv.split == TestSplit::Random =>
        {
            "; data.split = \"by-class\" gives each class its share of the test rows"
        }
        _ => "",
    };
    Ok((!few.is_empty()).then(|| {
        format!(
            "of the {} rows that are evaluated, fewer than {FEW}{units} are of class {}: AUROC and calibration say little \
             about {}{remedy}",
            labels.len(),
            listed(&few),
            if few.len() == 1 { "it" } else { "them" }
        )
    }))
}

/// The number of rows of each class, or of groups with such a row, `[C]`.
fn units_of_classes(labels: &[usize], classes: usize, rows: &Dataset) -> Vec<usize> {
    let mut units = vec![BTreeSet::new(); classes];
    labels.iter().enumerate().for_each(|(row, &label)| {
        units[label].insert(rows.groups.as_ref().map_or(row, |groups| groups[row]));
    });
    units.iter().map(BTreeSet::len).collect()
}

/// The note on classes of the rows that are evaluated of which there is no training row; `None` where there are none.
pub(super) fn note_on_untrained(trained: &Targets, evaluated: &Targets) -> Option<String> {
    let (Targets::Classes { labels, names }, Targets::Classes { labels: all, .. }) = (evaluated, trained) else {
        return None;
    };
    let (counts, known) = (evaluated.counts(0..labels.len()), trained.counts(0..all.len()));
    let unknown = names.iter().zip(&counts).zip(known).filter(|((_, count), known)| **count > 0 && *known == 0);
    let unknown: Vec<(&String, &usize)> = unknown.map(|(class, _)| class).collect();
    (!unknown.is_empty()).then(|| {
        format!(
            "no training row is of class {}, as are rows that are evaluated: the model has not learned it",
            listed(&unknown)
        )
    })
}

/// Classes with their numbers of rows, of which the first are named.
fn listed(classes: &[(&String, &usize)]) -> String {
    let class = |(name, count): &(&String, &usize)| format!("`{}` ({count})", quoted(name));
    first(LISTED, classes.iter().map(class))
}
