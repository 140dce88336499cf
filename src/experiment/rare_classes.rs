//! A note about classes of which hardly any row is evaluated.

use super::config::Config;
use super::schema::ConfigError;
use crate::datasets::source::TestSplit;
use crate::datasets::{DataConfig, Targets};
use crate::report::quoted;

/// Below this number of rows the scores of a class say little.
const FEW: usize = 5;

/// The number of classes that the note lists.
const LISTED: usize = 5;

/// The note on the rows that are evaluated; `None` where every class has [`FEW`] of them, or there are no classes.
///
/// # Errors
/// The configuration is invalid.
pub(super) fn note(config: &Config, evaluated: &Targets) -> Result<Option<String>, ConfigError> {
    let Targets::Classes { labels, names } = evaluated else { return Ok(None) };
    let counts = evaluated.counts(0..labels.len());
    let few: Vec<(&String, &usize)> = names.iter().zip(&counts).filter(|(_, count)| **count < FEW).collect();
    let class = |(name, count): &(&String, &usize)| format!("`{}` ({count})", quoted(name));
    let listed: Vec<String> = few.iter().take(LISTED).map(class).collect();
    let more = if few.len() > LISTED { format!(" and {} more classes", few.len() - LISTED) } else { String::new() };
    let remedy = match config.data()? {
        DataConfig::Csv(csv) if csv.test_path.is_empty() && csv.split == TestSplit::Random => {
            "; data.split = \"by-class\" gives each class its share of the test rows"
        }
        _ => "",
    };
    Ok((!few.is_empty()).then(|| {
        format!(
            "of the {} rows that are evaluated, fewer than {FEW} are of class {}{more}: AUROC and calibration say little \
             about {}{remedy}",
            labels.len(),
            listed.join(", "),
            if few.len() == 1 { "it" } else { "them" }
        )
    }))
}
