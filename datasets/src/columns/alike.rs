//! Texts that are different in training and probably meant to be one.

use std::collections::HashMap;

use super::cell::text;

/// How [`alike`] texts differ, to complete a sentence.
pub const DIFFERENCE: &str = "differ in upper and lower case or in blanks around them alone";

/// The number of columns that the note names.
const NAMED: usize = 3;

/// The texts that differ from an earlier one in upper and lower case or in blanks around them alone: the places of the earlier
/// one and of the text.
pub fn alike(texts: &[String]) -> Vec<(usize, usize)> {
    let mut seen = HashMap::new();
    let places = texts.iter().enumerate();
    places.filter_map(|(at, text)| Some((seen.insert(text.trim().to_lowercase(), at)?, at))).collect()
}

/// The note on the [`alike`] texts of some columns, of which the first two of each are named; `None` where there are none.
///
/// # Arguments
/// * `whose`: the file or the place, as the sentence has it
/// * `columns`: the name of each column, and its texts
pub fn note_on_alike<'a>(whose: &str, columns: impl Iterator<Item = (String, &'a [String])>) -> Option<String> {
    let of_column = |(name, texts): (String, &[String])| {
        let (first, second) = *alike(texts).first()?;
        let [first, second] = [first, second].map(|at| text(texts[at].as_bytes()));
        Some(format!("`{name}` (`{first}` and `{second}`)"))
    };
    let mut found: Vec<String> = columns.filter_map(of_column).collect();
    if found.len() > NAMED {
        found[NAMED] = format!("{} more columns", found.len() - NAMED);
        found.truncate(NAMED + 1);
    }
    found.first()?;
    Some(format!(
        "texts of {whose} that {DIFFERENCE}, and are different texts in training: {}; if they mean the same, write them alike",
        found.join(", ")
    ))
}

/// A note on groups of rows that differ in their spelling alone, without their names, which may be those of persons; `None`
/// without any.
///
/// # Arguments
/// - `column`: that of the groups.
/// - `names`: those of the groups.
pub fn note_on_alike_groups(file: &str, column: &str, names: &[String]) -> Option<String> {
    let count = alike(names).len();
    (count > 0).then(|| {
        format!(
            "groups of {file} (`{column}`) that {DIFFERENCE} from another one, and are groups of their own: {count}; if they mean \
             the same, write them alike"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_in_case_or_blanks_alone_are_found_with_both_places() {
        let texts = ["died", "alive", "Died", "dies", "\u{a0}alive", "DIED"].map(str::to_owned);
        assert_eq!(alike(&texts), [(0, 2), (1, 4), (2, 5)]);
        let note = note_on_alike("a.csv", [("y".to_owned(), &texts[..]), ("z".to_owned(), &texts[..2])].into_iter());
        assert!(
            note.unwrap().ends_with("in training: `y` (`died` and `Died`); if they mean the same, write them alike")
        );
        assert_eq!(note_on_alike("a.csv", [("z".to_owned(), &texts[..2])].into_iter()), None);
    }
}
