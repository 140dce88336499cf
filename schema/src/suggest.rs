//! Suggests the nearest known word, and formats lists of words for messages.

use std::fmt::Write;

/// The similarity (Jaro-Winkler, 0 to 1) from which a word counts as a typing error for another.
const CLOSE: f64 = 0.8;

/// The candidate nearest to `word`, if one is near enough for a typing error.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer input is not a typing error for a known word, and the comparison is quadratic.
    if word.len() > 100 {
        return None;
    }
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&word, &candidate.to_lowercase()), candidate))
        .filter(|(similarity, _)| *similarity >= CLOSE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// "; did you mean `a`?" of the candidate nearest to `word`, to end a message about it; nothing where none is near enough.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// `a, b, c`, each word in backquotes.
pub fn list<'a>(words: impl IntoIterator<Item = &'a &'a str>) -> String {
    let mut text = String::new();
    for word in words {
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(text, "{comma}`{word}`");
    }
    text
}

/// The first names, at most so many, and how many more there are: `a, b and 3 more`.
pub fn first(most: usize, names: impl IntoIterator<Item = String>) -> String {
    let mut names: Vec<String> = names.into_iter().collect();
    let more = names.len().saturating_sub(most);
    names.truncate(most);
    let shown = names.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// A value as a message quotes it: on one line, with control characters escaped, cut after 60 characters.
pub(super) fn shorten(text: &str) -> String {
    let plain = |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
    // One character more than is kept shows whether the text goes on.
    let line: String = text.replace(['\n', '\r'], " ").chars().take(61).map(plain).collect();
    match line.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Texts of kinds, each text once: alone where all kinds have the same, else after the kinds that have it.
pub fn by_kind<'k>(texts: impl Iterator<Item = (&'k str, String)>, separator: &str) -> String {
    let mut parts: Vec<(String, Vec<&str>)> = Vec::new();
    for (kind, text) in texts {
        match parts.iter_mut().find(|(other, _)| *other == text) {
            Some((_, kinds)) => kinds.push(kind),
            None => parts.push((text, vec![kind])),
        }
    }
    match &parts[..] {
        [(text, _)] => text.clone(),
        _ => parts.iter().map(|(text, kinds)| format!("{}: {text}", list(kinds))).collect::<Vec<_>>().join(separator),
    }
}
