//! A user's own table: any delimiter, quotes, a header or none, gzipped or not. In: a file and which columns are
//! target and client. Out: features `[rows, p]`, targets, natural clients. Every complaint names line and column.

use super::header::Header;
use super::lines::Lines;
use crate::DataError;
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

/// What the target column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// A label, any text.
    Classification,
    /// A finite number.
    Regression,
}

/// Which columns of a file are what.
#[derive(Clone, Debug)]
pub struct CsvOptions<'a> {
    /// One ASCII character between the fields.
    pub delimiter: u8,
    /// Whether the first line names the columns.
    pub header: Header,
    /// Target column: its name, or its index from 0, negative from the end (`-1` is the last).
    pub target: &'a str,
    /// Column of the natural client, in the same way; empty where there is none.
    pub client: &'a str,
    /// What the target column holds.
    pub task: Task,
}

/// What a file held.
#[derive(Clone, Debug)]
pub struct CsvTable {
    /// `[rows, p]`, without target and client.
    pub features: Array2<f32>,
    /// Names of the feature columns, where there is a header.
    pub names: Option<Vec<String>>,
    /// Regression: the targets. Empty for classification.
    pub values: Vec<f64>,
    /// Classification: an index into the [`Names`] of the classes. Empty for regression.
    pub labels: Vec<usize>,
    /// An index into the [`Names`] of the clients. Empty where there is no client column.
    pub clients: Vec<usize>,
}

/// The distinct texts of a column in the order of their first appearance, over one file or several.
#[derive(Clone, Debug, Default)]
pub struct Names {
    ids: HashMap<String, usize>,
    texts: Vec<String>,
}

impl Names {
    fn id(&mut self, name: &str) -> usize {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = self.texts.len();
        self.ids.insert(name.to_owned(), id);
        self.texts.push(name.to_owned());
        id
    }

    /// The texts in their final order and, for each index handed out so far, its place in it. Sorted as numbers
    /// when all are numbers (`1` and `1.0` are then one, spelt as it came first), as text otherwise.
    pub fn sorted(&self) -> (Vec<String>, Vec<usize>) {
        let numbers: Option<Vec<f64>> =
            self.texts.iter().map(|t| t.parse().ok().filter(|v: &f64| v.is_finite())).collect();
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

/// Reads a table with a target.
///
/// # Arguments
/// - `classes`, `clients`: grow by the texts of this file; pass the same ones for every file of a data set, then
///   take the final order from [`Names::sorted`].
///
/// # Errors
/// No such column, no feature column, no data row, a line with another number of fields, a feature or a
/// regression target that is not a finite number, an empty label or client.
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

/// Reads features alone, e.g. the rows to predict.
///
/// # Arguments
/// - `width`: the number of features `p`.
/// - `names`: their names `[p]`, where the model knows them. A file with a header gives each by its name, in any
///   order, beside any other columns; a file without one gives them by position.
/// - `delimiter`: one ASCII character between the fields.
/// - `ignore`: columns that are not features, such as target and client. A name is left out wherever the header
///   has it; indices (from 0, negative from the end) are left out only when the file has that many columns too many.
///
/// # Returns
/// Raw values `[rows, p]`: apply the run's normalisation next.
///
/// # Errors
/// No such file, another number of columns, a field that is not a finite number, no data row; each names line and
/// column.
pub fn read_features(
    path: &Path,
    width: usize,
    names: Option<&[String]>,
    delimiter: u8,
    ignore: &[&str],
) -> Result<Array2<f32>, DataError> {
    let mut lines = Lines::open(path, delimiter)?;
    lines.header(Header::Auto, &[]);
    let columns = match names {
        Some(names) if lines.names.is_some() && distinct(names) => by_name(&lines, names)?,
        _ => by_position(&lines, width, ignore)?,
    };
    let mut features = Vec::new();
    while lines.next()? {
        for &column in &columns {
            features.push(lines.feature(column)?);
        }
    }
    lines.finish(features, width)
}

/// Whether each column can be told from the others by its name.
fn distinct(names: &[String]) -> bool {
    let different: std::collections::HashSet<&String> = names.iter().collect();
    different.len() == names.len()
}

fn by_name(lines: &Lines, names: &[String]) -> Result<Vec<usize>, DataError> {
    let header = lines.names.as_deref().unwrap_or_default();
    // `None` where a name stands twice, which `named` then says; asking `named` each time would be quadratic.
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

/// All columns but those to ignore.
fn by_position(lines: &Lines, width: usize, ignore: &[&str]) -> Result<Vec<usize>, DataError> {
    let ignore: Vec<&str> = ignore.iter().copied().filter(|key| !key.is_empty()).collect();
    let mut taken: Vec<usize> = match &lines.names {
        Some(names) => (0..names.len()).filter(|&c| ignore.contains(&names[c].as_str())).collect(),
        None => Vec::new(),
    };
    let indices: Vec<&str> = ignore.into_iter().filter(|key| key.parse::<i64>().is_ok()).collect();
    if taken.is_empty() && !indices.is_empty() && lines.width == width + indices.len() {
        taken = indices.iter().map(|key| lines.column(key)).collect::<Result<_, _>>()?;
    }
    if lines.width != width + taken.len() {
        let besides = if taken.is_empty() { String::new() } else { format!(" besides {} left out", taken.len()) };
        let found = lines.width - taken.len();
        return Err(lines.columns(format!("{found} feature columns{besides}, the model takes {width}")));
    }
    Ok((0..lines.width).filter(|column| !taken.contains(column)).collect())
}
