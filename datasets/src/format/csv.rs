//! A user's own table: any delimiter, quotes, with or without a header, gzipped or not. The input is a file with the
//! columns of target and client, the output are the cells of the features `[rows, p]`, targets and natural clients.
//! Every error names the line and the column.

pub use super::csv_table::{CsvOptions, CsvTable, Numbered, Task};
use super::lines::Lines;
use super::roles::{Role, by_content, roles};
use crate::DataError;
use crate::columns::{
    CellKind, MOST_CATEGORIES, Missing, MissingCells, MissingTarget, Names, Notation, Purpose, Reading, is_missing,
    text,
};
use std::collections::BTreeMap;
use std::path::Path;

/// What a cell of the clients' column is not.
const A_CLIENT: &str = "a client (data.client_column): write it there, or take the row out";
/// The same of the groups' column.
const A_GROUP: &str = "a group (data.group_column): write it there, or take the row out";

/// Reads a table with a target.
///
/// # Arguments
/// - `numbered`: grows by the texts of this file; pass the same one for every file of a data set, then take the final order
///   from [`Names::sorted`].
///
/// # Errors
/// A column does not exist, there is no feature column or no data row, a line has another number of fields, a cell does
/// not fit its column, or a label, client or group is missing.
pub fn read(path: &Path, options: &CsvOptions, numbered: &mut Numbered) -> Result<CsvTable, DataError> {
    let reading = options.reading;
    reading.check()?;
    let texts_of = by_content(path, options)?;
    let mut lines = Lines::open(path, options.delimiter)?;
    let notation = reading.notation();
    let roles = roles(&mut lines, options, &texts_of)?;
    let mut cells = Cells::new(&roles, &lines, options);
    if let Some(first) = options.first {
        same_width(first, &cells.columns, &lines)?;
    }
    let place = |wanted: Role| roles.iter().position(|role| *role == wanted);
    let target = place(Role::Target).ok_or_else(|| lines.no_column_of("data.target", options.target))?;
    let client = roles.iter().position(|role| matches!(role, Role::Client { .. }));
    let group = match reading.group_column.as_str() {
        "" => None,
        column => lines.find(column)?,
    };
    let missing = missing_cells(&lines, options, [Some(target), group]);
    if let Some(name) = twice(lines.names.as_deref().unwrap_or_default(), &cells.columns) {
        let name = text(name.as_bytes());
        return Err(lines.columns(format!("two columns are named `{name}`; give each feature a name of its own")));
    }

    let Numbered { classes, clients, groups } = numbered;
    let (mut values, mut labels, mut ids, mut of_groups) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut unlabelled, mut all_have_groups, mut numbers) = (0, true, Vec::new());
    while lines.next()? {
        let no_target = missing.hold(target, lines.field(target));
        if no_target && reading.missing_target == MissingTarget::Drop {
            unlabelled += 1;
            continue;
        }
        if !cells.read(&lines, no_target)? {
            continue;
        }
        let field = lines.field(target);
        let is_declared = missing.declare(target, field);
        if no_target {
            let what = if options.task == Task::Classification { "a label" } else { "a finite number" };
            let other = if is_declared { OTHER } else { "" };
            let drop = "data.missing_target = \"drop\" leaves out rows without a target";
            return Err(lines.bad(target, format!("{what}{other}; {drop}")));
        }
        match options.task {
            Task::Classification => labels.push(classes.id(&lines.name(target, &notation, "a label")?)),
            Task::Regression => match lines.number(target, &notation) {
                Ok(value) if (value as f32).is_finite() => values.push(value),
                Ok(_) => return Err(lines.bad(target, "a number below 3.4e38".into())),
                Err(_) => {
                    let classes = "; data.task = \"classification\" takes texts as classes";
                    return Err(lines.bad(target, lines.wanted("a finite number".into()) + classes));
                }
            },
        }
        if let Some(client) = client {
            if is_missing(lines.field(client)) {
                return Err(lines.bad(client, A_CLIENT.to_owned()));
            }
            ids.push(clients.id(&lines.name(client, &notation, A_CLIENT)?));
        }
        if let Some(group) = group {
            // Rows of which nobody knows the group are not one group.
            match missing.hold(group, lines.field(group)) {
                true if options.may_lack_groups => all_have_groups = false,
                true => return Err(lines.bad(group, A_GROUP.to_owned())),
                false => of_groups.push(groups.id(&lines.name(group, &notation, A_GROUP)?)),
            }
        }
        numbers.push(lines.cells().1);
    }
    let others = [Some(target), group].map(|column| Some(lines.names.as_ref()?[column?].clone()));
    let names = lines.names.as_ref().map(|names| cells.columns.iter().map(|&column| names[column].clone()).collect());
    let Cells { columns: places, kinds, texts, values: features, dropped, .. } = cells;
    if features.is_empty() && dropped + unlabelled > 0 {
        let of = |count: usize, what: &str, key: &str| {
            (count > 0).then(|| format!("{count} rows have {what}, and data.{key} = \"drop\" leaves them out"))
        };
        let parts = [of(unlabelled, "no target", "missing_target"), of(dropped, "a missing cell", "missing")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        return Err(lines.columns(format!("no row is left: {}", parts.join("; "))));
    }
    let features = lines.finish(features, kinds.len())?;
    let texts = texts.into_iter().map(|(at, names)| (at, names.into_texts())).collect();
    let groups = group.filter(|_| all_have_groups).map(|_| of_groups);
    Ok(CsvTable {
        features,
        names,
        others,
        kinds,
        places,
        texts,
        unlabelled,
        dropped,
        values,
        labels,
        clients: ids,
        groups,
        lines: numbers,
    })
}

/// The missing cells of the columns of a file, of which those of target and group matter.
fn missing_cells(lines: &Lines, options: &CsvOptions, columns: [Option<usize>; 2]) -> MissingCells {
    let Some(first) = options.first.filter(|_| lines.names.is_none()) else {
        return lines.missing_cells(options.reading);
    };
    // A second file without a header has the columns of the first.
    let mut names = vec![""; lines.width];
    for (column, name) in columns.into_iter().zip(&first.others) {
        if let (Some(column), Some(name)) = (column, name) {
            names[column] = name;
        }
    }
    options.reading.missing_cells(names.into_iter())
}

/// The cells of the feature columns, as they are read row by row.
pub(super) struct Cells {
    /// The feature columns of the file `[p]`.
    pub columns: Vec<usize>,
    /// What they hold `[p]`.
    pub kinds: Vec<CellKind>,
    /// The texts of each that is a category.
    pub texts: BTreeMap<usize, Names>,
    /// The cells of all rows that are kept.
    pub values: Vec<f32>,
    /// The number of rows that were left out because a cell is missing.
    pub dropped: usize,
    notation: Notation,
    /// The cells that are missing in the columns `[p]`.
    missing_cells: MissingCells,
    /// Whether a missing cell is NaN instead of an error.
    missing: bool,
    /// Whether a row with one is left out.
    drops: bool,
    purpose: Purpose,
    /// The feature that is the natural client, of which no cell may be missing.
    client: Option<usize>,
}

impl Cells {
    /// Cells of the features of a table with a target, whose header is known.
    fn new(roles: &[Role], lines: &Lines, options: &CsvOptions) -> Self {
        let features = roles.iter().enumerate().filter_map(|(column, role)| Some((column, role.feature()?)));
        let (columns, kinds): (Vec<usize>, Vec<CellKind>) = features.unzip();
        let reading = options.reading;
        let missing_cells = match (&lines.names, options.first.and_then(|first| first.names.as_ref())) {
            // A second file without a header has the columns of the first.
            (None, Some(names)) => reading.missing_cells(names.iter().map(String::as_str)),
            (None, None) => reading.missing_cells(std::iter::empty()),
            (Some(names), _) => reading.missing_cells(columns.iter().map(|&column| names[column].as_str())),
        };
        let missing = reading.missing != Missing::Error;
        let client = columns.iter().position(|column| matches!(roles[*column], Role::Client { .. }));
        Self { client, ..Self::of(columns, (kinds, missing_cells), reading, (missing, Purpose::Train)) }
    }

    /// Cells of some columns.
    ///
    /// # Arguments
    /// - `columns`: their places in the file `[p]`.
    /// - `missing_cells`: which of their cells are missing.
    /// - `missing`: whether a missing cell is NaN instead of an error.
    pub fn of(
        columns: Vec<usize>,
        (kinds, missing_cells): (Vec<CellKind>, MissingCells),
        reading: &Reading,
        (missing, purpose): (bool, Purpose),
    ) -> Self {
        let categories = kinds.iter().enumerate().filter(|(_, kind)| **kind == CellKind::Category);
        let texts = categories.map(|(at, _)| (at, Names::default())).collect();
        let (notation, drops) = (reading.notation(), purpose == Purpose::Train && reading.missing == Missing::Drop);
        Self {
            columns,
            kinds,
            texts,
            values: Vec::new(),
            dropped: 0,
            notation,
            missing_cells,
            missing,
            drops,
            purpose,
            client: None,
        }
    }

    /// Reads the cells of a row, which may have no target; `false` where `missing = "drop"` leaves it out.
    ///
    /// # Errors
    /// A cell does not fit its column, or a column has too many texts.
    pub fn read(&mut self, lines: &Lines, no_target: bool) -> Result<bool, DataError> {
        let start = self.values.len();
        for (at, (&column, &kind)) in self.columns.iter().zip(&self.kinds).enumerate() {
            let value = match kind {
                _ if self.missing_cells.hold(at, lines.field(column)) => self.missing(lines, at)?,
                CellKind::Category => {
                    category((lines, column), self.texts.entry(at).or_default(), &self.notation, self.purpose)?
                }
                _ => lines.feature(column, kind, &self.notation, self.purpose)?,
            };
            self.values.push(value);
        }
        if self.drops && (no_target || self.values[start..].iter().any(|value| value.is_nan())) {
            self.values.truncate(start);
            self.dropped += 1;
            return Ok(false);
        }
        Ok(true)
    }

    /// The value of a missing cell.
    ///
    /// # Errors
    /// Missing cells are refused.
    fn missing(&self, lines: &Lines, at: usize) -> Result<f32, DataError> {
        let (column, kind) = (self.columns[at], self.kinds[at]);
        if self.client == Some(at) {
            let wanted =
                "a client; as a feature (data.categorical) it needs a name that does not stand for a missing cell";
            return Err(lines.bad(column, wanted.to_owned()));
        }
        if self.missing {
            return Ok(f32::NAN);
        }
        let wanted = match kind {
            CellKind::Category => "a category".to_owned(),
            _ => lines.wanted(self.notation.wanted(kind)),
        };
        let other = if self.missing_cells.declare(at, lines.field(column)) { OTHER } else { "" };
        Err(lines.bad(column, wanted + other + Notation::remedy_of_missing(self.purpose)))
    }
}

/// The end of "a finite number", where a number is missing because the config says so.
const OTHER: &str = " other than those of data.missing_values";

/// The number of a cell's text.
fn category(
    (lines, column): (&Lines, usize),
    texts: &mut Names,
    notation: &Notation,
    purpose: Purpose,
) -> Result<f32, DataError> {
    let id = texts.id(&lines.name(column, notation, "a category")?);
    let (most, remedy) = match purpose {
        Purpose::Train => (MOST_CATEGORIES, "; name it in data.id or data.ignore"),
        // Single precision counts so far.
        Purpose::Predict => (1 << 24, ""),
    };
    if id >= most {
        let name = lines.called(column);
        return Err(lines.columns(format!(
            "column `{name}` holds more than {most} different texts, too many for categories{remedy}"
        )));
    }
    Ok(id as f32)
}

/// A second file has as many features as the first.
///
/// # Errors
/// It has not; the message names a column that is not in the first file, where both have headers.
fn same_width(first: &CsvTable, columns: &[usize], lines: &Lines) -> Result<(), DataError> {
    let (expected, found) = (first.kinds.len(), columns.len());
    if expected == found {
        return Ok(());
    }
    let stranger = match (&first.names, &lines.names) {
        (Some(first), Some(names)) => columns.iter().map(|column| &names[*column]).find(|name| !first.contains(name)),
        _ => None,
    };
    let counts = format!("{found} feature columns, the training file has {expected}");
    Err(lines.columns(match stranger {
        Some(name) => {
            let name = text(name.as_bytes());
            format!("{counts}; its column `{name}` is not in the training file: take it out of this one")
        }
        None => counts,
    }))
}

/// The first name of two features.
fn twice<'a>(names: &'a [String], features: &[usize]) -> Option<&'a str> {
    let mut seen = std::collections::HashSet::new();
    let mut features = features.iter().filter_map(|column| names.get(*column));
    features.find(|name| !seen.insert(name.as_str())).map(String::as_str)
}
