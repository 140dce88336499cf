//! How often a row of each class counts in the clients' likelihoods: `data.class_weights`.

use super::config::{ClassWeights, Config};
use crate::error::RunError;

/// The number of classes whose weights a note lists.
const LISTED: usize = 10;

/// The weights of the classes `[C]`, and notes about them.
pub(super) type Weights = (Vec<f64>, Vec<String>);

/// The weights that `data.class_weights` asks for; `None` where all rows count once.
///
/// # Arguments
/// * `counts`: the number of training rows of each client and class, `[K][C]`; an error where they are not known
/// * `names`: the names of the classes, `[C]`
///
/// # Errors
/// The counts are asked for, and not known.
pub(super) fn of(
    config: &Config,
    counts: impl FnOnce() -> Result<Vec<Vec<usize>>, RunError>,
    names: &[String],
) -> Result<Option<Weights>, RunError> {
    match config.class_weights()? {
        ClassWeights::None => Ok(None),
        ClassWeights::Balanced => {
            let weights = balanced(&counts()?);
            let notes = [note(&weights, names)].into_iter().chain(note_on_validation(config)).collect();
            Ok(Some((weights, notes)))
        }
    }
}

/// n/(C·n_c), with n_c of n rows in class c, and C the number of classes that have rows; 0 for a class without rows.
fn balanced(counts: &[Vec<usize>]) -> Vec<f64> {
    let classes = counts.iter().map(Vec::len).max().unwrap_or(0);
    let of_class = |class: usize| counts.iter().filter_map(|client| client.get(class)).sum::<usize>();
    let rows: Vec<usize> = (0..classes).map(of_class).collect();
    let all = rows.iter().sum::<usize>() as f64;
    let held = rows.iter().filter(|rows| **rows > 0).count() as f64;
    rows.into_iter().map(|rows| if rows == 0 { 0.0 } else { all / (held * rows as f64) }).collect()
}

fn note(weights: &[f64], names: &[String]) -> String {
    let class = |(name, weight): (&String, &f64)| format!("`{}` {weight:.3}", crate::report::quoted(name));
    let mut listed: Vec<String> = names.iter().zip(weights).take(LISTED).map(class).collect();
    if weights.len() > LISTED {
        listed.push(format!("{} more", weights.len() - LISTED));
    }
    format!(
        "data.class_weights = \"balanced\": how often a training row of each class counts: {}; predicted probabilities are those \
         of classes that are equally frequent",
        listed.join(", ")
    )
}

/// The note on a run with weights whose rounds are judged by validation rows, which have none: clients send sums over these rows
/// in which all count once. `None` where nothing looks at them.
fn note_on_validation(config: &Config) -> Option<String> {
    let (key, metric) = (config.validation_key()?, config.stop.metric.word());
    let consequence = match config.stop.patience {
        0 => {
            "the step size may become smaller while the training still gains; other kinds of lr_schedule do not look at these rows"
        }
        _ => {
            "the best round may find fewer rows of these classes than another one; with stop.patience = 0 the results are those of the \
             last round"
        }
    };
    Some(format!(
        "{key} judges rounds by the {metric} of validation rows that all count once, not as data.class_weights lets training \
         rows count: rounds with lower probabilities of rare classes look better, and {consequence}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sklearn.utils.class_weight.compute_class_weight("balanced", classes=[0, 1, 2], y=[0, 0, 0, 0, 1, 1, 2])` of
    /// scikit-learn 1.9.1.
    #[test]
    fn balanced_weights_are_those_of_scikit_learn() {
        let weights = balanced(&[vec![1, 2, 0], vec![3, 0, 1]]);
        let expected = [0.5833333333333334, 1.1666666666666667, 2.3333333333333335];
        for (weight, expected) in weights.iter().zip(expected) {
            assert!((weight - expected).abs() < 1e-15, "{weights:?}");
        }
        assert_eq!(balanced(&[vec![3, 0, 1]]), [4.0 / 6.0, 0.0, 2.0]);
    }
}
