//! The state of a half between rounds: named arrays, whole numbers and texts, in the one form in which every half's
//! state is saved.

use std::collections::BTreeMap;

use super::CheckpointError;
use crate::array::{Array, Values};

/// Named values, nested by prefix. Floats keep their type and their bits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub(super) arrays: BTreeMap<String, Array>,
    pub(super) counts: BTreeMap<String, Vec<u64>>,
    pub(super) words: BTreeMap<String, String>,
}

impl State {
    /// Whether the state has no values.
    pub fn is_empty(&self) -> bool {
        self.arrays.is_empty() && self.counts.is_empty() && self.words.is_empty()
    }

    /// Whether there is a value or a part of this name.
    pub fn has(&self, name: &str) -> bool {
        let part = format!("{name}/");
        let named = |key: &String| key == name || key.starts_with(&part);
        self.arrays.keys().any(named) || self.counts.keys().any(named) || self.words.keys().any(named)
    }

    /// Adds an array.
    pub fn with_array(mut self, name: &str, array: Array) -> Self {
        self.arrays.insert(name.to_owned(), array);
        self
    }

    /// Adds real numbers, kept to the bit.
    pub fn with_numbers(self, name: &str, numbers: impl IntoIterator<Item = f64>) -> Self {
        let numbers: Vec<f64> = numbers.into_iter().collect();
        self.with_array(name, Array { shape: vec![numbers.len()], values: Values::F64(numbers) })
    }

    /// Adds real numbers of which some may be undefined.
    pub fn with_optional(self, name: &str, numbers: &[Option<f64>]) -> Self {
        let is_defined = numbers.iter().map(|number| usize::from(number.is_some()));
        self.with_numbers(name, numbers.iter().map(|number| number.unwrap_or(0.0)))
            .with_counts(&format!("{name}_defined"), is_defined)
    }

    /// Adds whole numbers.
    pub fn with_counts(mut self, name: &str, counts: impl IntoIterator<Item = usize>) -> Self {
        self.counts.insert(name.to_owned(), counts.into_iter().map(|count| count as u64).collect());
        self
    }

    /// Adds one whole number.
    pub fn with_count(self, name: &str, count: usize) -> Self {
        self.with_counts(name, [count])
    }

    /// Adds a text.
    pub fn with_words(mut self, name: &str, words: String) -> Self {
        self.words.insert(name.to_owned(), words);
        self
    }

    /// Adds all values of another state under `name/`.
    pub fn with_part(mut self, name: &str, part: Self) -> Self {
        let under = |key: String| format!("{name}/{key}");
        self.arrays.extend(part.arrays.into_iter().map(|(key, array)| (under(key), array)));
        self.counts.extend(part.counts.into_iter().map(|(key, counts)| (under(key), counts)));
        self.words.extend(part.words.into_iter().map(|(key, words)| (under(key), words)));
        self
    }

    /// The values under `name/`, as a state; it is empty if there are none.
    pub fn part(&self, name: &str) -> Self {
        fn under<T: Clone>(map: &BTreeMap<String, T>, name: &str) -> BTreeMap<String, T> {
            let own = |(key, value): (&String, &T)| {
                let rest = key.strip_prefix(name)?.strip_prefix('/')?;
                Some((rest.to_owned(), value.clone()))
            };
            map.iter().filter_map(own).collect()
        }
        Self { arrays: under(&self.arrays, name), counts: under(&self.counts, name), words: under(&self.words, name) }
    }

    /// All arrays by name, including those of parts.
    pub(crate) fn arrays(&self) -> &BTreeMap<String, Array> {
        &self.arrays
    }

    /// The array of this name.
    ///
    /// # Errors
    /// There is no array of this name.
    pub fn array(&self, name: &str) -> Result<&Array, CheckpointError> {
        self.arrays.get(name).ok_or_else(|| missing("array", name))
    }

    /// The real numbers of this name, `[n]`.
    ///
    /// # Errors
    /// There are no numbers of this name, or they are not F64.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>, CheckpointError> {
        match &self.array(name)?.values {
            Values::F64(numbers) => Ok(numbers.clone()),
            Values::F32(_) => Err(CheckpointError::Content(format!("the state's \"{name}\" are not F64"))),
        }
    }

    /// The single real number of this name.
    ///
    /// # Errors
    /// There is no such number, or more than one.
    pub fn number(&self, name: &str) -> Result<f64, CheckpointError> {
        one(&self.numbers(name)?, name)
    }

    /// The numbers of this name that [`Self::with_optional`] stored, `[n]`.
    ///
    /// # Errors
    /// The numbers are missing or incomplete.
    pub fn optional(&self, name: &str) -> Result<Vec<Option<f64>>, CheckpointError> {
        let (numbers, is_defined) = (self.numbers(name)?, self.counts(&format!("{name}_defined"))?);
        if numbers.len() != is_defined.len() {
            return Err(CheckpointError::Content(format!("the state's \"{name}\" are not whole")));
        }
        Ok(numbers.into_iter().zip(is_defined).map(|(number, defined)| (defined != 0).then_some(number)).collect())
    }

    /// The whole numbers of this name, `[n]`.
    ///
    /// # Errors
    /// There are no numbers of this name, or one is too large for this machine's `usize`.
    pub fn counts(&self, name: &str) -> Result<Vec<usize>, CheckpointError> {
        let counts = self.counts.get(name).ok_or_else(|| missing("whole numbers", name))?;
        let fits = |count: &u64| {
            usize::try_from(*count).map_err(|_| CheckpointError::Content(format!("{count} in \"{name}\" is too large")))
        };
        counts.iter().map(fits).collect()
    }

    /// The single whole number of this name.
    ///
    /// # Errors
    /// There is no such number, or more than one.
    pub fn count(&self, name: &str) -> Result<usize, CheckpointError> {
        one(&self.counts(name)?, name)
    }

    /// The text of this name.
    ///
    /// # Errors
    /// There is no text of this name.
    pub fn words(&self, name: &str) -> Result<&str, CheckpointError> {
        self.words.get(name).map(String::as_str).ok_or_else(|| missing("text", name))
    }
}

fn one<T: Copy>(values: &[T], name: &str) -> Result<T, CheckpointError> {
    match values {
        [value] => Ok(*value),
        _ => Err(CheckpointError::Content(format!("the state's \"{name}\" is {} numbers, not one", values.len()))),
    }
}

fn missing(what: &str, name: &str) -> CheckpointError {
    CheckpointError::Content(format!("the state has no {what} \"{name}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_read_back_unchanged() {
        let part = State::default().with_counts("seen", [3, 1]).with_numbers("elbo", [-0.0]);
        let whole = State::default().with_part("server", part.clone()).with_count("round", 4);
        assert_eq!(whole.part("server"), part);
        assert!(whole.has("server") && whole.has("round") && !whole.has("serv") && !whole.has("client"));
        assert!(whole.part("client").is_empty());
    }

    #[test]
    fn undefined_values_are_distinct_from_nan() {
        let state = State::default().with_optional("metrics", &[Some(1.5), None, Some(f64::NAN)]);
        let back = state.optional("metrics").unwrap();
        assert_eq!(back[..2], [Some(1.5), None]);
        assert!(back[2].unwrap().is_nan());
    }

    #[test]
    fn a_missing_entry_is_named() {
        let state = State::default().with_counts("several", [1, 2]);
        for error in [state.count("position").unwrap_err(), state.count("several").unwrap_err()] {
            let message = error.to_string();
            assert!(message.contains("position") || message.contains("several"), "{message}");
        }
    }
}
