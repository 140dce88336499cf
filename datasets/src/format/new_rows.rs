//! Rows without a target, such as those to predict: the columns of a model are found in a file by name or position.

use super::csv::Cells;
use super::header::Header;
use super::lines::Lines;
use crate::columns::{CellKind, Column, Encoding, MissingCells, Notation, Places, Purpose, Reading};
use crate::{DataError, ModelCard};
use ndarray::Array2;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

/// How a file of new rows is read.
#[derive(Clone, Debug)]
pub struct NewRowsOptions<'a> {
    /// One ASCII character between the fields.
    pub delimiter: u8,
    /// How the training rows were read.
    pub reading: &'a Reading,
    /// Columns that are not features besides those of `reading`, such as target and client; see [`read_features`].
    pub ignore: &'a [&'a str],
    /// Whether the training file was said to have a header.
    pub header: Header,
    /// Columns whose cells are given back as texts, each with the key that names it.
    pub beside: &'a [(&'a str, &'a str)],
    /// Columns that were asked for, such as that of known targets.
    pub asked: &'a [AskedColumn<'a>],
    /// The client whose rows all are, where the column of the clients is a feature.
    pub client: Option<RowsOfClient<'a>>,
}

/// That all rows are of one client, which a feature says of each row.
#[derive(Clone, Copy, Debug)]
pub struct RowsOfClient<'a> {
    /// What names the client, for messages: an option.
    pub key: &'a str,
    /// The column of the clients, by its name. A file with a header may lack it.
    pub column: &'a str,
    /// The client, as the training rows name it.
    pub name: &'a str,
}

/// A column that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct AskedColumn<'a> {
    /// What names it, for messages: an option, or a key of the config.
    pub key: &'a str,
    /// Its name, or its index from 0, negative from the end.
    pub column: &'a str,
    /// Its name where `column` is an index of another file: a file with a header has the column by this name.
    pub name: Option<&'a str>,
    /// What its cells are, for messages, such as `a label`.
    pub what: &'a str,
    /// What becomes of a missing cell.
    pub missing: MissingAnswer<'a>,
    /// Whether it may also be a feature.
    pub may_be_feature: bool,
    /// Whether a file without it is refused.
    pub required: bool,
}

/// What becomes of a missing cell of a column that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingAnswer<'a> {
    /// A blank cell is refused with this remedy; `NA` and the like are texts as any other.
    Refused(&'a str),
    /// It is refused with this remedy, however it is written.
    Needed(&'a str),
    /// Its row is left out, with a note of the number of these rows.
    LeftOut,
    /// It is this text.
    Text(&'a str),
}

/// New rows in the units of the data.
#[derive(Clone, Debug)]
pub struct NewRows {
    /// The features `[rows, p]`, to which the run's normalisation has to be applied.
    pub features: Array2<f32>,
    /// The columns that were asked for and are there, in their order.
    pub beside: Vec<Beside>,
    /// The columns of `asked`, in their order; `None` for one that the file lacks.
    pub asked: Vec<Option<Beside>>,
    /// The line of the file of each row, `[rows]`, from 1.
    pub lines: Vec<u64>,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
}

/// A column that is given back as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// Its number from 1, and its name, for messages.
    pub place: String,
    /// Its name, if the file has a header.
    pub name: Option<String>,
    /// Its cells `[rows]`.
    pub cells: Vec<String>,
}

/// Reads new rows for the model of a finished run, as its training rows were read and encoded.
///
/// # Errors
/// The file does not exist or lacks a column, a cell does not fit its column, or there is no data row.
pub fn read_new_rows(path: &Path, card: &ModelCard, options: &NewRowsOptions) -> Result<NewRows, DataError> {
    let reading = options.reading;
    let names = card.column_names();
    let client = options.client.zip(card.encoding.as_ref());
    let client = client.and_then(|(client, encoding)| ClientColumn::of(client, encoding));
    let mut wanted = match &card.encoding {
        Some(Encoding { columns }) => Wanted {
            names: names.as_deref(),
            kinds: columns.iter().map(|column| column.kind).collect(),
            missing: columns.iter().any(|column| column.fill.is_some()),
            defaults: columns.iter().map(|column| column.default.as_deref()).collect(),
        },
        None => Wanted::numbers(card.features, names.as_deref()),
    };
    if let Some(client) = &client {
        wanted.defaults[client.at] = Some(client.name);
    }
    let no_features = reading.no_features();
    let ignore = no_features.iter().flat_map(|(_, columns)| *columns).map(String::as_str);
    let ignore: Vec<&str> = options.ignore.iter().copied().chain(ignore).collect();
    let (header, asked) = (options.header, options.asked);
    let others = Others { header, ignore: &ignore, beside: options.beside, asked, client };
    let Read { cells, texts, beside, asked, lines, mut notes } =
        read_cells(path, &wanted, (options.delimiter, reading), &others)?;
    let Some(encoding) = &card.encoding else { return Ok(NewRows { features: cells, beside, asked, lines, notes }) };
    let encoded = encoding.apply(cells.view(), &texts);
    let encoded = encoded.map_err(|problem| DataError::Columns { path: path.to_path_buf(), problem })?;
    notes.extend(encoded.notes(encoding, &path.display().to_string()));
    Ok(NewRows { features: encoded.features, beside, asked, lines, notes })
}

/// Reads features alone, of a model whose columns are numbers.
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
    let others = Others { header: Header::Auto, ignore, beside: &[], asked: &[], client: None };
    let wanted = Wanted::numbers(width, names);
    read_cells(path, &wanted, (delimiter, &Reading::default()), &others).map(|read| read.cells)
}

/// The columns that a model takes.
struct Wanted<'a> {
    /// Their names `[p]`, if it has them.
    names: Option<&'a [String]>,
    /// What they hold `[p]`.
    kinds: Vec<CellKind>,
    /// Whether cells may be missing.
    missing: bool,
    /// The text of every row where a file with a header lacks the column `[p]`; `None` where it must have it.
    defaults: Vec<Option<&'a str>>,
}

impl<'a> Wanted<'a> {
    /// So many columns of numbers, of which none may be missing.
    fn numbers(width: usize, names: Option<&'a [String]>) -> Self {
        Self { names, kinds: vec![CellKind::Number; width], missing: false, defaults: vec![None; width] }
    }
}

/// Columns that are not features, and the one that says whose rows these are.
struct Others<'a> {
    header: Header,
    ignore: &'a [&'a str],
    beside: &'a [(&'a str, &'a str)],
    asked: &'a [AskedColumn<'a>],
    client: Option<ClientColumn<'a>>,
}

/// The column of the clients among those of a model.
struct ClientColumn<'a> {
    /// The client whose rows all are.
    name: &'a str,
    /// Its place among the clients that the column names in training rows.
    place: Option<usize>,
    /// These clients.
    known: Places,
    /// The place of the column among those of the model.
    at: usize,
    /// What a cell has to be, for messages.
    wanted: String,
}

impl<'a> ClientColumn<'a> {
    /// The column of this name; `None` where the model has none of texts.
    fn of(RowsOfClient { key, column, name }: RowsOfClient<'a>, encoding: &Encoding) -> Option<Self> {
        let is_it = |known: &Column| known.kind == CellKind::Category && known.name.as_deref() == Some(column);
        let at = encoding.columns.iter().position(is_it)?;
        let known = Places::of(&encoding.columns[at].categories);
        let wanted = format!("`{name}`, which {key} says of every row");
        Some(Self { name, place: known.find(name), known, at, wanted })
    }

    /// Checks that the cell of the current line names the client.
    ///
    /// # Errors
    /// It names another one, or none.
    fn check(&self, lines: &Lines, column: usize, notation: &Notation) -> Result<(), DataError> {
        let cell = lines.name(column, notation, &self.wanted)?;
        match self.place.is_some() && self.known.find(&cell) == self.place {
            true => Ok(()),
            false => Err(lines.bad(column, self.wanted.clone())),
        }
    }
}

/// The cells of a file.
struct Read {
    cells: Array2<f32>,
    texts: BTreeMap<usize, Vec<String>>,
    beside: Vec<Beside>,
    asked: Vec<Option<Beside>>,
    lines: Vec<u64>,
    notes: Vec<String>,
}

fn read_cells(
    path: &Path,
    wanted: &Wanted<'_>,
    (delimiter, reading): (u8, &Reading),
    others: &Others<'_>,
) -> Result<Read, DataError> {
    let mut lines = Lines::open(path, delimiter)?;
    // Each row to predict has its prediction; of those with an answer, one without any cell is none.
    if others.asked.is_empty() {
        lines.keep_blank_rows();
    }
    find_header(&mut lines, wanted, others, &reading.notation())?;
    let Found { features, there, columns, asked, beside, mut notes } = Found::of((&lines, path), wanted, others)?;
    let present: Vec<(&AskedColumn, usize)> =
        others.asked.iter().zip(&asked).filter_map(|(asked, place)| Some((asked, (*place)?))).collect();

    let (mut texts, mut answers) = (vec![Vec::new(); beside.len()], vec![Vec::new(); present.len()]);
    let (mut numbers, mut left_out) = (Vec::new(), vec![0_usize; present.len()]);
    let names = there.iter().filter_map(|at| Some(wanted.names?[*at].as_str()));
    let kinds = (there.iter().map(|at| wanted.kinds[*at]).collect(), reading.missing_cells(names));
    let mut cells = Cells::of(columns, kinds, reading, (wanted.missing, Purpose::Predict));
    let (missing, notation) = (lines.missing_cells(reading), reading.notation());
    let of_client = others.client.as_ref().and_then(|client| Some((client, features[client.at]?)));
    while lines.next()? {
        let is_left_out = |(asked, column): &(&AskedColumn, usize)| {
            asked.missing == MissingAnswer::LeftOut && missing.hold(*column, lines.field(*column))
        };
        if let Some(at) = present.iter().position(is_left_out) {
            left_out[at] += 1;
            continue;
        }
        if let Some((client, column)) = of_client {
            client.check(&lines, column, &notation)?;
        }
        cells.read(&lines, false)?;
        for (column, texts) in beside.iter().zip(&mut texts) {
            texts.push(lines.text(*column)?);
        }
        for ((asked, column), answers) in present.iter().zip(&mut answers) {
            answers.push(asked.answer(&lines, *column, &missing)?);
        }
        numbers.push(lines.cells().1);
    }

    let rows = numbers.len() + left_out.iter().sum::<usize>();
    for ((asked, column), count) in present.iter().zip(left_out).filter(|(_, count)| *count > 0) {
        let column = lines.place(*column);
        if numbers.is_empty() {
            return Err(lines.columns(format!("none of its {rows} rows has {} in column {column}", asked.what)));
        }
        let path = path.display();
        notes.push(format!(
            "{count} of the {rows} rows of {path} are left out: their cell of column {column} is missing"
        ));
    }
    let given = |(column, cells): (&usize, Vec<String>)| {
        let name = lines.names.as_ref().map(|names| names[*column].clone());
        Beside { place: lines.place(*column), name, cells }
    };
    let beside = beside.iter().zip(texts).map(given).collect();
    let mut answers = present.iter().map(|(_, column)| column).zip(answers).map(given);
    let asked = asked.iter().map(|place| place.and_then(|_| answers.next())).collect();
    let (values, width) = (cells.values, cells.kinds.len());
    let texts = cells.texts.into_iter().map(|(at, names)| (there[at], names.into_texts())).collect();
    let cells = lines.finish(values, width)?;
    let mut read = Read { cells, texts, beside, asked, lines: numbers, notes };
    if there.len() < features.len() {
        read.add_columns(wanted, &there, path);
    }
    Ok(read)
}

/// Finds whether the first line has the names of the columns.
///
/// # Errors
/// As [`Lines::header`].
fn find_header(
    lines: &mut Lines,
    wanted: &Wanted<'_>,
    Others { header, asked, .. }: &Others<'_>,
    notation: &Notation,
) -> Result<(), DataError> {
    let needed = wanted.names.into_iter().flatten().zip(&wanted.defaults).filter(|(_, default)| default.is_none());
    let needed: Vec<&str> = needed.map(|(name, _)| name.as_str()).collect();
    // What the content of a first line with the names looks like does not matter: names may be numbers. One of them is
    // enough where the training file was said to have a header.
    let has_names = match header {
        Header::Yes => needed.iter().any(|name| lines.first_line_has([*name])),
        Header::Auto | Header::No => !needed.is_empty() && lines.first_line_has(needed),
    };
    let header = if has_names { Header::Yes } else { Header::Auto };
    lines.header(header, &Vec::from_iter(asked.iter().map(|asked| asked.column)), notation)
}

/// The columns of a file, by their numbers from 0.
struct Found {
    /// The column of each feature `[p]`; `None` for one that the file lacks and that has a default.
    features: Vec<Option<usize>>,
    /// The features whose columns the file has.
    there: Vec<usize>,
    /// Their columns, in the same order.
    columns: Vec<usize>,
    /// The columns of `Others::asked`, in their order; `None` for one that the file lacks.
    asked: Vec<Option<usize>>,
    /// The columns of `Others::beside` that can be found.
    beside: Vec<usize>,
    /// Notes for the user, one sentence each.
    notes: Vec<String>,
}

impl Found {
    /// Those of a file whose header has been read.
    ///
    /// # Errors
    /// A column does not exist, or one that was asked for is a feature.
    fn of(
        (lines, path): (&Lines, &Path),
        wanted: &Wanted<'_>,
        Others { ignore, beside, asked: all_asked, .. }: &Others<'_>,
    ) -> Result<Self, DataError> {
        let place = |asked: &AskedColumn| match lines.find(asked.called(lines))? {
            None if asked.required => Err(lines.no_column_of(asked.key, asked.called(lines))),
            found => Ok(found),
        };
        let asked: Vec<Option<usize>> = all_asked.iter().map(place).collect::<Result<_, _>>()?;
        let present: Vec<(&AskedColumn, usize)> =
            all_asked.iter().zip(&asked).filter_map(|(asked, place)| Some((asked, (*place)?))).collect();
        let (features, indices) = match wanted.names {
            Some(names) if lines.names.is_some() && distinct(names) => (by_name(lines, names, &wanted.defaults)?, true),
            _ => {
                let (columns, indices) = by_position(lines, wanted.kinds.len(), ignore, &present)?;
                (columns.into_iter().map(Some).collect(), indices)
            }
        };
        let (there, columns): (Vec<usize>, Vec<usize>) =
            features.iter().enumerate().filter_map(|(at, column)| Some((at, (*column)?))).unzip();
        if there.is_empty() {
            return Err(lines.columns("it has none of the model's columns".to_owned()));
        }
        let is_feature = |(asked, place): &&(&AskedColumn, usize)| !asked.may_be_feature && columns.contains(place);
        if let Some((asked, _)) = present.iter().find(is_feature) {
            let (column, key) = (asked.called(lines), asked.key);
            return Err(
                lines.columns(format!("column `{column}` ({key}) is a feature of the model; name another column"))
            );
        }
        let (mut found, mut notes) = (Vec::new(), Vec::new());
        for (key, column) in *beside {
            match lines.find(column)? {
                Some(place) if lines.names.is_some() || indices => found.push(place),
                _ if lines.names.is_none() => notes.push(format!(
                    "{}: without a header, and with other columns than the training file, column `{column}` ({key}) cannot be found",
                    path.display()
                )),
                _ => return Err(lines.no_column_beside(key, column)),
            }
        }
        Ok(Self { features, there, columns, asked, beside: found, notes })
    }
}

impl Read {
    /// Adds the columns that the file lacks, whose default is the text of every row, to those that are `there`, which are in
    /// ascending order.
    fn add_columns(&mut self, wanted: &Wanted<'_>, there: &[usize], path: &Path) {
        // A cell of such a column is its only text, whose number is 0.
        let mut all = Array2::zeros((self.cells.nrows(), wanted.kinds.len()));
        for (column, at) in self.cells.columns().into_iter().zip(there) {
            all.column_mut(*at).assign(&column);
        }
        for (at, text) in wanted.defaults.iter().enumerate().filter(|(at, _)| there.binary_search(at).is_err()) {
            let (Some(text), Some(names)) = (text, wanted.names) else { continue };
            let name = crate::columns::text(names[at].as_bytes());
            self.notes.push(format!("{} has no column `{name}`: all of its rows are of `{text}`", path.display()));
            self.texts.insert(at, vec![(*text).to_owned()]);
        }
        self.cells = all;
    }
}

impl AskedColumn<'_> {
    /// What it is found by in this file.
    fn called(&self, lines: &Lines) -> &str {
        self.name.filter(|_| lines.names.is_some()).unwrap_or(self.column)
    }

    /// The cell of the current line, in a file with these missing cells.
    fn answer(&self, lines: &Lines, column: usize, missing: &MissingCells) -> Result<String, DataError> {
        let field = lines.field(column);
        match self.missing {
            MissingAnswer::Text(text) if missing.hold(column, field) => Ok(text.to_owned()),
            MissingAnswer::Refused(remedy) if field.is_empty() || missing.declare(column, field) => {
                Err(lines.bad(column, format!("{}{remedy}", self.what)))
            }
            MissingAnswer::Needed(remedy) if missing.hold(column, field) => {
                Err(lines.bad(column, format!("{}{remedy}", self.what)))
            }
            _ => lines.filled(column, self.what).map(str::to_owned),
        }
    }
}

/// Whether all names are distinct.
fn distinct(names: &[String]) -> bool {
    let different: HashSet<&String> = names.iter().collect();
    different.len() == names.len()
}

/// The column of each name; `None` where the file lacks it and it has a default.
fn by_name(lines: &Lines, names: &[String], defaults: &[Option<&str>]) -> Result<Vec<Option<usize>>, DataError> {
    let header = lines.names.as_deref().unwrap_or_default();
    // `None` for a name that occurs twice, for which `named` then reports an error. Calling `named` for each name would
    // take quadratic time.
    let mut places: HashMap<&str, Option<usize>> = HashMap::with_capacity(header.len());
    for (column, name) in header.iter().enumerate() {
        places.entry(name).and_modify(|place| *place = None).or_insert(Some(column));
    }
    let column = |(name, default): (&String, &Option<&str>)| match places.get(name.as_str()) {
        Some(Some(column)) => Ok(Some(*column)),
        _ => match lines.named(name)? {
            None if default.is_none() => Err(lines.no_column(name)),
            found => Ok(found),
        },
    };
    names.iter().zip(defaults).map(column).collect()
}

/// All columns except those to ignore and those asked for, and whether indices count in this file as in the training
/// file. That, and whether a column that may be a feature is one, is told from the number of columns.
fn by_position(
    lines: &Lines,
    width: usize,
    ignore: &[&str],
    asked: &[(&AskedColumn, usize)],
) -> Result<(Vec<usize>, bool), DataError> {
    let ignore: Vec<&str> = ignore.iter().copied().filter(|key| !key.is_empty()).collect();
    let is_named = |column: &usize| lines.names.as_ref().is_some_and(|names| ignore.contains(&names[*column].as_str()));
    let mut taken: BTreeSet<usize> = (0..lines.width).filter(is_named).collect();
    let indices: Vec<&str> = match taken.is_empty() {
        true => ignore.into_iter().filter(|key| key.parse::<i64>().is_ok()).collect(),
        false => Vec::new(),
    };
    taken.extend(asked.iter().filter(|(asked, _)| !asked.may_be_feature).map(|(_, place)| *place));
    let others: BTreeSet<usize> = asked.iter().map(|(_, place)| *place).collect();
    let others = &taken | &others;
    let places: BTreeSet<usize> = indices.iter().filter_map(|key| lines.find(key).ok().flatten()).collect();
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
    let all_there = !places.is_empty() && places.is_subset(&taken);
    Ok(((0..lines.width).filter(|column| !taken.contains(column)).collect(), all_there))
}
