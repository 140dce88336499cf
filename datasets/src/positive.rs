//! The class of two whose probability reports are about.

use crate::DataError;
use crate::columns::{Places, text};
use fedstein_schema::Literal::Text;
use fedstein_schema::{Accepts, Key, key};

pub(crate) const POSITIVE: Key = key(
    "positive",
    Accepts::Class,
    Text(""),
    "Of two classes, the one whose probability the report is about (AUROC, calibration, thresholds); it has the index 1. \
     `\"\"`: the second of the classes in sorted order.",
);

/// Words of a class without the event that a prediction is about, in lower case.
const WITHOUT_EVENT: &[&str] = &[
    "no", "nein", "non", "n", "false", "falsch", "none", "never", "negative", "negativ", "neg", "-", "absent",
    "normal", "healthy", "gesund", "well", "control", "benign", "alive", "living", "lebend", "survived", "survivor",
    "good", "ok",
];

/// Whether the name of a class says that there was no event, as `nein` and `Survived` do.
pub fn is_without_event(class: &str) -> bool {
    WITHOUT_EVENT.contains(&class.to_lowercase().as_str())
}

/// That a report is about the class without the event, because it is the second in sorted order; `None` where that is not so,
/// or where the names do not say it.
pub fn note_on_event(classes: &[String]) -> Option<String> {
    let [event, second] = classes else { return None };
    (is_without_event(second) && !is_without_event(event)).then(|| {
        let [event, second] = [event, second].map(|class| text(class.as_bytes()));
        format!(
            "the report is about the class `{second}`, the second in sorted order; data.positive = \"{event}\" makes it about `{event}`"
        )
    })
}

/// Brings two classes into the order in which the second one is `positive`. An empty text keeps their order.
///
/// # Returns
/// Whether the classes changed places.
///
/// # Errors
/// `data.positive` is not one of these classes, or there are not two.
pub fn make_second(names: &mut [String], positive: &str) -> Result<bool, DataError> {
    if positive.is_empty() {
        return Ok(false);
    }
    let refuse = |problem: String| DataError::config("data.positive", format!("\"{positive}\""), problem);
    if names.len() != 2 {
        return Err(refuse(match names.len() {
            0 => "is for `data.task = \"classification\"`".to_owned(),
            classes => format!("is for a target with two classes, and this one has {classes}"),
        }));
    }
    let Some(place) = Places::of(names).find(positive) else {
        let [first, second] = [0, 1].map(|class: usize| text(names[class].as_bytes()));
        return Err(refuse(format!("is not a class of the target, which has `{first}` and `{second}`")));
    };
    if place == 0 {
        names.swap(0, 1);
    }
    Ok(place == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(names: &[&str], positive: &str) -> Result<(Vec<String>, bool), String> {
        let mut names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let moved = make_second(&mut names, positive).map_err(|error| error.to_string())?;
        Ok((names, moved))
    }

    #[test]
    fn the_positive_class_is_the_second() {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        assert_eq!(ordered(&["alive", "dead"], ""), Ok((names(["alive", "dead"]), false)));
        assert_eq!(ordered(&["alive", "dead"], "dead"), Ok((names(["alive", "dead"]), false)));
        assert_eq!(ordered(&["alive", "dead"], "alive"), Ok((names(["dead", "alive"]), true)));
        assert_eq!(ordered(&["0", "1"], "0.0"), Ok((names(["1", "0"]), true)));
    }

    #[test]
    fn a_report_about_the_class_without_the_event_has_a_note() {
        let note = |names: [&str; 2]| note_on_event(&names.map(str::to_owned));
        let of_sepsis = note(["ja", "nein"]).unwrap();
        assert!(of_sepsis.starts_with("the report is about the class `nein`") && of_sepsis.contains("= \"ja\""));
        assert!(note(["Died", "Survived"]).is_some());
        for names in [["nein", "ja"], ["no", "yes"], ["no", "none"], ["blue", "red"], ["alive", "dead"]] {
            assert_eq!(note(names), None, "{names:?}");
        }
        assert_eq!(note_on_event(&[]), None);
    }

    #[test]
    fn a_class_that_is_none_of_the_two_is_refused_with_their_names() {
        let message = |names: &[&str], positive: &str| ordered(names, positive).unwrap_err();
        assert!(
            message(&["alive", "dead"], "Dead").ends_with("not a class of the target, which has `alive` and `dead`")
        );
        assert!(message(&["a", "b", "c"], "a").ends_with("is for a target with two classes, and this one has 3"));
        assert!(message(&[], "a").ends_with("is for `data.task = \"classification\"`"));
    }
}
