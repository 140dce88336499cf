//! A user's own table: any delimiter, quotes, with or without a header, gzipped or not. The input is a file with the
//! columns of target and client, the output are features `[rows, p]`, targets and natural clients. Every error names
//! the line and the column.

use super::header::Header;
use super::lines::Lines;
use crate::DataError;
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// The type of the target column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// A label, any text.
    Classification,
    /// A finite number.
    Regression,
}

/// The format of a file and the meaning of its columns.
#[derive(Clone, Debug)]
pub struct CsvOptions<'a> {
    /// The ASCII character between the fields.
    pub delimiter: u8,
    /// Whether the first line holds the column names.
    pub header: Header,
    /// The target column: its name, or its index from 0, negative from the end (`-1` is the last).
    pub target: &'a str,
    /// The column of the natural client, given in the same way; empty if there is none.
    pub client: &'a str,
    /// The type of the target column.
    pub task: Task,
}

/// The content of a file.
#[derive(Clone, Debug)]
pub struct CsvTable {
    /// `[rows, p]`, without target and client.
    pub features: Array2<f32>,
    /// The names of the feature columns, if there is a header.
    pub names: Option<Vec<String>>,
    /// Regression: the targets. Empty for classification.
    pub values: Vec<f64>,
    /// Classification: an index into the [`Names`] of the classes. Empty for regression.
    pub labels: Vec<usize>,
    /// An index into the [`Names`] of the clients. Empty if there is no client column.
    pub clients: Vec<usize>,
}

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

    /// The texts in their final order and, for each index assigned so far, its position in that order. The texts are
    /// sorted as numbers if all are numbers (`1` and `1.0` are then one, in its first spelling), as text otherwise.
    pub fn sorted(&self) -> (Vec<String>, Vec<usize>) {
        let numbers = numbers(&self.texts);
        let mut order: Vec<usize> = (0..self.texts.len()).collect();
        match &numbers {
            Some(numbers) => order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b])),
            None => order.sort_by(|&a, &b| self.texts[a].cmp(&self.texts[b])),
        }
        let mut names: Vec<String> = Vec::new();
        let mut place = vec![0; order.len()];
        let mut previous: Option<usize> = None;
        for id in order {
            let same = previous.is_some_and(|p| numbers.as_ref().is_some_and(|n| n[p] == n[id]));
            if !same {
                names.push(self.texts[id].clone());
            }
            place[id] = names.len() - 1;
            previous = Some(id);
        }
        (names, place)
    }
}

/// The texts as numbers, if all of them are finite numbers.
fn numbers(texts: &[String]) -> Option<Vec<f64>> {
    texts.iter().map(|text| text.parse().ok().filter(|value: &f64| value.is_finite())).collect()
}

/// The place of each name in the list that [`Names::sorted`] makes of these and others. Like there, `1.0` has the place
/// of `1` if the list consists of numbers.
///
/// # Errors
/// The first name that is not in the list.
pub fn places<'a>(names: &'a [String], list: &[String]) -> Result<Vec<usize>, &'a str> {
    let are_numbers = numbers(list).is_some();
    // One text for all spellings of a number. The sum is the same for both zeros.
    let spelt = |name: &str| match are_numbers {
        true => name.parse().ok().map(|number: f64| (number + 0.0).to_string()),
        false => Some(name.to_owned()),
    };
    let place: HashMap<Option<String>, usize> = list.iter().map(|name| spelt(name)).zip(0..).collect();
    let find = |name: &String| place.get(&Some(spelt(name)?)).copied();
    names.iter().map(|name| find(name).ok_or(name.as_str())).collect()
}

/// Reads a table with a target.
///
/// # Arguments
/// - `classes`, `clients`: grow by the texts of this file; pass the same ones for every file of a data set, then
///   take the final order from [`Names::sorted`].
///
/// # Errors
/// A column does not exist, there is no feature column or no data row, a line has another number of fields, a feature
/// or a regression target is not a finite number, or a label or client is empty.
pub fn read(
    path: &Path,
    options: &CsvOptions,
    classes: &mut Names,
    clients: &mut Names,
) -> Result<CsvTable, DataError> {
    let mut lines = Lines::open(path, options.delimiter)?;
    lines.header(options.header, &[options.target, options.client]);
    let target = lines.column(options.target)?;
    let client = if options.client.is_empty() { None } else { Some(lines.column(options.client)?) };
    if client == Some(target) {
        return Err(lines.columns(format!("column `{}` cannot be both target and client", options.client)));
    }
    let taken: Vec<usize> = std::iter::once(target).chain(client).collect();
    let width = lines.width - taken.len();
    if width == 0 {
        return Err(lines.columns("no column is left for the features".to_owned()));
    }
    if let Some(name) = twice(lines.names.as_deref().unwrap_or_default(), &taken) {
        let name = super::table::text(name.as_bytes());
        return Err(lines.columns(format!("two columns are named `{name}`; give each feature a name of its own")));
    }

    let mut features = Vec::new();
    let (mut values, mut labels, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    while lines.next()? {
        for column in 0..lines.width {
            if !taken.contains(&column) {
                features.push(lines.feature(column)?);
            }
        }
        match options.task {
            Task::Classification => labels.push(classes.id(&lines.name(target, "a label")?)),
            Task::Regression => values.push(lines.number(target)?),
        }
        if let Some(client) = client {
            ids.push(clients.id(&lines.name(client, "a client")?));
        }
    }
    let names = lines.names.as_ref().map(|names| {
        let kept = names.iter().enumerate().filter(|(column, _)| !taken.contains(column));
        kept.map(|(_, name)| name.clone()).collect()
    });
    Ok(CsvTable { features: lines.finish(features, width)?, names, values, labels, clients: ids })
}

/// A column to give back as it is, beside the features.
#[derive(Clone, Copy, Debug)]
pub struct BesideColumn<'a> {
    /// What names it, for messages: a key of the config, or an option.
    pub key: &'a str,
    /// Its name, or its index from 0, negative from the end.
    pub column: &'a str,
    /// What its cells are, for messages, such as `a label`. A blank cell is refused.
    pub what: &'a str,
    /// Whether it may also be a feature.
    pub may_be_feature: bool,
}

/// A column that is given back as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// Its number from 1 and its name, for messages.
    pub place: String,
    /// Its name, if the file has a header.
    pub name: Option<String>,
    /// Its cells `[rows]`.
    pub cells: Vec<String>,
}

/// New rows in the units of the data.
#[derive(Clone, Debug)]
pub struct NewRows {
    /// The features `[rows, p]`, to which the run's normalisation has to be applied.
    pub features: Array2<f32>,
    /// The columns that were asked for, in their order.
    pub beside: Vec<Beside>,
    /// The line of the file of each row, `[rows]`, from 1.
    pub lines: Vec<u64>,
}

/// Reads features alone, e.g. the rows to predict.
///
/// # Arguments
/// - `width`: the number of features `p`.
/// - `names`: their names `[p]`, if the model has them. In a file with a header, features are found by name, in any
///   order and among any other columns; in a file without one, by position.
/// - `delimiter`: one ASCII character between the fields.
/// - `ignore`: columns that are not features, such as target and client. Columns with these names are left out; indices
///   (from 0, negative from the end) are left out only if the file has that many additional columns.
///
/// # Returns
/// The raw values `[rows, p]`, to which the run's normalisation has to be applied.
///
/// # Errors
/// The file does not exist or has another number of columns, a field is not a finite number, or there is no data row.
pub fn read_features(
    path: &Path,
    width: usize,
    names: Option<&[String]>,
    delimiter: u8,
    ignore: &[&str],
) -> Result<Array2<f32>, DataError> {
    read_new_rows(path, (width, names), delimiter, ignore, &[]).map(|rows| rows.features)
}

/// Reads features as [`read_features`] does, and other columns as texts beside them.
///
/// # Errors
/// As [`read_features`]; or a column of `beside` is not there, is a feature and may not be one, or has a blank cell.
pub fn read_new_rows(
    path: &Path,
    (width, names): (usize, Option<&[String]>),
    delimiter: u8,
    ignore: &[&str],
    beside: &[BesideColumn],
) -> Result<NewRows, DataError> {
    let mut lines = Lines::open(path, delimiter)?;
    lines.header(Header::Auto, &Vec::from_iter(beside.iter().map(|wanted| wanted.column)));
    let places: Vec<usize> = beside.iter().map(|wanted| find(&lines, wanted)).collect::<Result<_, _>>()?;
    let columns = match names {
        Some(names) if lines.names.is_some() && distinct(names) => by_name(&lines, names)?,
        _ => by_position(&lines, width, ignore, &Vec::from_iter(beside.iter().zip(places.iter().copied())))?,
    };
    for (wanted, place) in beside.iter().zip(&places) {
        if !wanted.may_be_feature && columns.contains(place) {
            let BesideColumn { key, column, .. } = wanted;
            return Err(
                lines.columns(format!("column `{column}` ({key}) is a feature of the model; name another column"))
            );
        }
    }
    let (mut features, mut numbers) = (Vec::new(), Vec::new());
    let mut cells = vec![Vec::new(); beside.len()];
    while lines.next()? {
        for &column in &columns {
            features.push(lines.feature(column)?);
        }
        for ((wanted, place), cells) in beside.iter().zip(&places).zip(&mut cells) {
            cells.push(lines.name(*place, wanted.what)?);
        }
        numbers.push(lines.cells().1);
    }
    let given = |(place, cells): (&usize, Vec<String>)| {
        let name = lines.names.as_ref().map(|names| names[*place].clone());
        Beside { place: lines.place(*place), name, cells }
    };
    let beside = places.iter().zip(cells).map(given).collect();
    Ok(NewRows { features: lines.finish(features, width)?, beside, lines: numbers })
}

/// The place of a column to give back.
fn find(lines: &Lines, BesideColumn { key, column, .. }: &BesideColumn) -> Result<usize, DataError> {
    let place = lines.named(column)?.or_else(|| super::lines::place(column, lines.width));
    place.ok_or_else(|| lines.no_column_of(column, key))
}

/// The first name of two features; `taken` are columns that are none.
fn twice<'a>(names: &'a [String], taken: &[usize]) -> Option<&'a str> {
    let mut seen = std::collections::HashSet::new();
    let mut features = names.iter().enumerate().filter(|(column, _)| !taken.contains(column));
    features.find(|(_, name)| !seen.insert(name.as_str())).map(|(_, name)| name.as_str())
}

/// Whether all names are distinct.
fn distinct(names: &[String]) -> bool {
    let different: std::collections::HashSet<&String> = names.iter().collect();
    different.len() == names.len()
}

fn by_name(lines: &Lines, names: &[String]) -> Result<Vec<usize>, DataError> {
    let header = lines.names.as_deref().unwrap_or_default();
    // `None` for a name that occurs twice, for which `named` then reports an error. Calling `named` for each name would
    // take quadratic time.
    let mut places: HashMap<&str, Option<usize>> = HashMap::with_capacity(header.len());
    for (column, name) in header.iter().enumerate() {
        places.entry(name).and_modify(|place| *place = None).or_insert(Some(column));
    }
    let column = |name: &String| match places.get(name.as_str()) {
        Some(Some(column)) => Ok(*column),
        _ => lines.named(name)?.ok_or_else(|| lines.no_column(name)),
    };
    names.iter().map(column).collect()
}

/// All columns except those to ignore and those beside them. Whether a column that may be a feature is one, and whether
/// indices to ignore count in this file, is told from the number of columns.
fn by_position(
    lines: &Lines,
    width: usize,
    ignore: &[&str],
    beside: &[(&BesideColumn, usize)],
) -> Result<Vec<usize>, DataError> {
    let ignore: Vec<&str> = ignore.iter().copied().filter(|key| !key.is_empty()).collect();
    let by_name = (0..lines.width).filter(|&c| lines.names.as_ref().is_some_and(|n| ignore.contains(&n[c].as_str())));
    let mut taken: BTreeSet<usize> = by_name.collect();
    let indices: Vec<&str> = match taken.is_empty() {
        true => ignore.into_iter().filter(|key| key.parse::<i64>().is_ok()).collect(),
        false => Vec::new(),
    };
    let sure = beside.iter().filter(|(wanted, _)| !wanted.may_be_feature).map(|(_, place)| *place);
    taken.extend(sure);
    let others: BTreeSet<usize> = beside.iter().map(|(_, place)| *place).collect();
    let others = &taken | &others;
    let places: BTreeSet<usize> = indices.iter().filter_map(|key| super::lines::place(key, lines.width)).collect();
    let choices = BTreeSet::from([&taken | &places, &others | &places, others, taken.clone()]);
    let mut fitting = choices.into_iter().filter(|left_out| lines.width == width + left_out.len());
    let taken = match (fitting.next(), fitting.next()) {
        (Some(only), None) => only,
        (Some(_), Some(_)) => {
            let problem = "which columns are features cannot be told from their number; give the file a header, or leave \
                           out columns that are neither features nor asked for";
            return Err(lines.columns(problem.to_owned()));
        }
        (None, _) => {
            let besides = if taken.is_empty() { String::new() } else { format!(" besides {} left out", taken.len()) };
            let found = lines.width - taken.len();
            return Err(lines.columns(format!("{found} feature columns{besides}, the model takes {width}")));
        }
    };
    Ok((0..lines.width).filter(|column| !taken.contains(column)).collect())
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
    }
}
