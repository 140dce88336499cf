//! The distinct texts of a column: numbered as they appear, in their final order, and the place of a text in it.

use super::spelling::spelt;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

/// The distinct texts of a column in the order of their first appearance, over one file or several.
#[derive(Clone, Debug, Default)]
pub struct Names {
    ids: HashMap<String, usize>,
    texts: Vec<String>,
}

impl Names {
    /// The index of a text, a new one where it has not appeared before.
    pub fn id(&mut self, name: &str) -> usize {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = self.texts.len();
        self.ids.insert(name.to_owned(), id);
        self.texts.push(name.to_owned());
        id
    }

    /// The texts by their index.
    pub fn into_texts(self) -> Vec<String> {
        self.texts
    }

    /// For each index assigned so far the index of its text where the spellings of one number are one, in the order of their
    /// first appearance.
    pub fn merged(&self) -> Vec<usize> {
        let mut of_place: HashMap<usize, usize> = HashMap::new();
        let places = self.sorted().1.into_iter();
        places
            .map(|place| {
                let next = of_place.len();
                *of_place.entry(place).or_insert(next)
            })
            .collect()
    }

    /// The texts in their final order and, for each index assigned so far, its position in that order. The texts are
    /// sorted as numbers if all are numbers (`1` and `1.0` are then one, in its first spelling; `1E1` and `10`, or `007`
    /// and `7`, are two), as text otherwise.
    pub fn sorted(&self) -> (Vec<String>, Vec<usize>) {
        let numbers = numbers(&self.texts);
        let are_numbers = numbers.is_some();
        let spelt: Vec<Cow<str>> = self.texts.iter().map(|text| one_spelling(text, are_numbers)).collect();
        let mut order: Vec<usize> = (0..self.texts.len()).collect();
        order.sort_by(|&a, &b| {
            let by_number = numbers.as_ref().map(|numbers| numbers[a].total_cmp(&numbers[b]));
            by_number.unwrap_or(Ordering::Equal).then_with(|| spelt[a].cmp(&spelt[b]))
        });
        let mut names: Vec<String> = Vec::new();
        let mut place = vec![0; order.len()];
        let mut previous: Option<usize> = None;
        for id in order {
            if previous.is_none_or(|previous| spelt[previous] != spelt[id]) {
                names.push(self.texts[id].clone());
            }
            place[id] = names.len() - 1;
            previous = Some(id);
        }
        (names, place)
    }
}

/// The number of each row's text, from 0 in the order of their first rows, and the texts; spellings of one number are one text
/// where all texts are numbers.
pub fn numbered<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> (Vec<usize>, Vec<String>) {
    let mut names = Names::default();
    let ids: Vec<usize> = texts.into_iter().map(|text| names.id(text.as_ref())).collect();
    let merged = names.merged();
    (ids.into_iter().map(|id| merged[id]).collect(), names.sorted().0)
}

/// The texts as numbers, if all of them are finite numbers. The sum is the same for both zeros.
fn numbers(texts: &[String]) -> Option<Vec<f64>> {
    let number = |text: &String| text.parse().ok().map(|value: f64| value + 0.0).filter(|value| value.is_finite());
    texts.iter().map(number).collect()
}

/// One text for all spellings of a name in a list, which may consist of numbers.
fn one_spelling(name: &str, are_numbers: bool) -> Cow<'_, str> {
    if are_numbers { spelt(name) } else { Cow::Borrowed(name) }
}

/// Distinct cells with their numbers of rows, where the spellings that [`Names::sorted`] takes for one are one.
pub(crate) fn merged(counts: BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    let mut names = Names::default();
    counts.keys().for_each(|name| {
        names.id(name);
    });
    let (texts, place) = names.sorted();
    let mut merged = BTreeMap::new();
    for (rows, place) in counts.into_values().zip(place) {
        *merged.entry(texts[place].clone()).or_default() += rows;
    }
    merged
}

/// The place of a name in a list that [`Names::sorted`] made. Like there, `1.0` has the place of `1` if the list
/// consists of numbers.
#[derive(Clone, Debug)]
pub struct Places {
    are_numbers: bool,
    of: HashMap<String, usize>,
}

impl Places {
    /// The places in a list.
    pub fn of(list: &[String]) -> Self {
        let are_numbers = numbers(list).is_some();
        let spelt = |name: &String| one_spelling(name, are_numbers).into_owned();
        let of = list.iter().zip(0..).map(|(name, place)| (spelt(name), place)).collect();
        Self { are_numbers, of }
    }

    /// The place of a name; `None` where it is not in the list.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.of.get(&*one_spelling(name, self.are_numbers)).copied()
    }
}

/// The place of each name in a list, as [`Places::find`] finds it.
///
/// # Errors
/// The first name that is not in the list.
pub fn places<'a>(names: &'a [String], list: &[String]) -> Result<Vec<usize>, &'a str> {
    let places = Places::of(list);
    names.iter().map(|name| places.find(name).ok_or(name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_have_the_places_that_the_list_of_all_gives_them() {
        for (all, own) in [
            (&["10", "2", "1.0", "-0"][..], &["1", "0", "2.00", "10"][..]),
            (&["oak", "1", "alder"], &["alder", "1", "oak"]),
            (&["7", "1E1", "10", "007", "1.0"], &["10.0", "1", "007", "1E1", "7.0"]),
        ] {
            let mut union = Names::default();
            let ids: Vec<usize> = all.iter().chain(own).map(|name| union.id(name)).collect();
            let (names, place) = union.sorted();
            let expected: Vec<usize> = ids[all.len()..].iter().map(|id| place[*id]).collect();
            assert_eq!(places(&list(own), &names), Ok(expected));
        }
        assert_eq!(places(&list(&["1", "1.0"]), &list(&["1", "oak"])), Err("1.0"));
        assert_eq!(places(&list(&["2", "oak"]), &list(&["1", "2"])), Err("oak"));
        assert_eq!(places(&list(&["1"]), &[]), Err("1"));
        for (name, other) in [("1E1", "10"), ("007", "7"), ("900000000000003019", "900000000000003029")] {
            assert_eq!(places(&list(&[name]), &list(&[other])), Err(name));
        }
    }

    #[test]
    fn numbers_are_sorted_as_numbers_and_their_plain_spellings_are_one() {
        let sorted = |all: &[&str]| {
            let mut names = Names::default();
            all.iter().for_each(|name| {
                names.id(name);
            });
            names.sorted()
        };
        assert_eq!(sorted(&["10", "2", "2.0", "-0", "0"]), (list(&["-0", "2", "10"]), vec![2, 1, 1, 0, 0]));
        let codes = ["10", "2", "1E1", "002", "9"];
        assert_eq!(sorted(&codes), (list(&["002", "2", "9", "10", "1E1"]), vec![3, 1, 4, 0, 2]));
        let ids = ["900000000000003029", "900000000000003019", "17"];
        assert_eq!(sorted(&ids), (list(&["17", "900000000000003019", "900000000000003029"]), vec![2, 1, 0]));
    }
}
