//! A model beside a prediction without skill, in sentences.

use crate::metrics::{NoSkill, NoSkillTargets};
use crate::text::{number, percent};

/// The smallest gain in accuracy that counts: half a point, or a quarter of what is to be gained where that is less.
const NOTABLE: f64 = 0.005;
const NOTABLE_PART: f64 = 0.25;

/// What a comparison with a prediction without skill says.
#[derive(Debug, Default)]
pub(super) struct Skill {
    /// In what the model is no better; `None` where it is better in all that is compared.
    pub warning: Option<String>,
    /// In what it is better.
    pub better: Option<String>,
}

impl Skill {
    /// Of a classification: the accuracy beside that of always naming the most frequent class, and the NLL beside that of
    /// the frequencies of the classes.
    pub fn of_classes(accuracy: f64, nll: f64, no_skill: &NoSkill) -> Self {
        let (difference, constant) = (accuracy - no_skill.accuracy, percent(no_skill.accuracy));
        let worse = |word: &str| {
            format!(
                "The model is {word} often right than always naming the most frequent class: {} against {constant}.",
                percent(accuracy)
            )
        };
        let (mut warnings, mut better) = (Vec::new(), None);
        let notable = NOTABLE.min(NOTABLE_PART * (1.0 - no_skill.accuracy));
        match difference {
            _ if difference <= -NOTABLE => warnings.push(worse("less")),
            // Rounding decides nothing where both are equally often right.
            _ if difference <= 1e-12 => warnings.push(worse("no more")),
            _ if difference < notable => warnings.push(worse("hardly more")),
            _ => {
                better = Some(format!(
                    "Always naming the most frequent class would be right on {constant}; the model is {:.1} points more often \
                     right.",
                    100.0 * difference
                ));
            }
        }
        let than = "that of predicting the frequencies of the classes for every row";
        warnings.extend(no_lower("The NLL", nll, than, no_skill.nll));
        Self { warning: together(warnings), better }
    }

    /// Of a regression: RMSE and NLL beside those of the normal distribution of the targets.
    pub fn of_targets(rmse: Option<f64>, nll: Option<f64>, no_skill: &NoSkillTargets) -> Self {
        let of_rmse = rmse.and_then(|rmse| {
            no_lower("The RMSE", rmse, "that of predicting the mean of the targets for every row", no_skill.rmse)
        });
        let than =
            "that of a normal distribution with the mean and the standard deviation of the targets for every row";
        let of_nll = nll.and_then(|nll| no_lower("The NLL", nll, than, no_skill.nll));
        Self { warning: together(of_rmse.into_iter().chain(of_nll)), better: None }
    }
}

/// That a score of which less is better is no lower than the one without skill.
fn no_lower(score: &str, value: f64, than: &str, without: f64) -> Option<String> {
    let sentence = || format!("{score} is no lower than {than}: {} against {}.", number(value), number(without));
    (value >= without).then(sentence)
}

fn together(sentences: impl IntoIterator<Item = String>) -> Option<String> {
    let sentences: Vec<String> = sentences.into_iter().collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}
