//! A user's own table, with or without natural clients and a second file of test rows.

use super::kind::{Rows, Source};
use super::{DataSet, Origin};
use crate::columns::codes::{self, Codes, FarValues, exact, shortest};
use crate::columns::{
    Categorical, CellKind, Columns, Names, READING, Reading, note_on_alike, note_on_alike_groups, text,
};
use crate::format::cells_at;
use crate::format::csv::{self, CsvOptions, CsvTable, Numbered, Task};
use crate::format::header::Header;
use crate::leave_out::{self, LEAVE_OUT, LeftOut};
use crate::positive::{self, POSITIVE};
use crate::prepare::{NORMALISE, TEST_FRACTION, TEST_LIMIT, TRAIN_LIMIT};
use crate::properties::TargetKind;
use crate::{
    DataError, DataProperties, Dataset, Encoding, Normalise, NumberedColumns, Targets, equal_rows, gives_away, split,
};
use fedstein_schema::Literal::Text;
use fedstein_schema::{Accepts, Key, Kind, joined, key, required};
use ndarray::Axis;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// A user's own table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Csv {
    /// The file, which may be compressed with gzip.
    pub path: PathBuf,
    /// A separate file of test rows with the same columns. If empty, the rows are split by `test_fraction`.
    pub test_path: String,
    /// The target column: its name, or its index from 0, negative from the end (`-1` is the last).
    pub target: String,
    /// Whether the first line holds the column names.
    pub header: Header,
    /// The type of the target column.
    pub task: Task,
    /// Of two classes, the one with the index 1, as the target column writes it; empty for the second in sorted order.
    pub positive: String,
    /// The character between the fields; `tab` is accepted.
    pub delimiter: String,
    /// The column of each row's natural client, given like `target`; empty for none. It is a feature only where `reading`
    /// names it as a category.
    pub client_column: String,
    /// The other columns, and how cells are written.
    #[serde(flatten)]
    pub reading: Reading,
    /// The scale of the features; `auto` is `standard`.
    pub normalise: Normalise,
    /// The share of the rows for testing; not used with `test_path` or `leave_out`.
    pub test_fraction: f64,
    /// How the test rows are drawn.
    pub split: TestSplit,
    /// The natural clients, by their names, whose rows are the test rows; empty for a split of all rows.
    pub leave_out: Vec<String>,
    /// The number of training rows to keep; 0 keeps all.
    pub train_limit: usize,
    /// The number of test rows to keep; 0 keeps all.
    pub test_limit: usize,
}

fedstein_schema::words! {
    /// How test rows are drawn.
    #[derive(Default)]
    pub enum TestSplit {
        /// From all rows.
        #[default]
        Random = "random",
        /// The same share of each class.
        ByClass = "by-class",
        /// The same share of each natural client.
        ByClient = "by-client",
    }
}

impl TestSplit {
    fn of(self, rows: &Dataset, share: f64, rng: &mut impl Rng) -> Result<(Dataset, Dataset), DataError> {
        match self {
            Self::Random => split::train_test(rows, share, rng),
            Self::ByClass => split::within_classes(rows, share, rng),
            Self::ByClient if rows.clients.is_none() => {
                let problem = "needs `data.client_column`, the column with the client of each row".to_owned();
                Err(DataError::config("data.split", "by-client", problem))
            }
            Self::ByClient => split::within_clients(rows, share, rng),
        }
    }
}

const SPLIT: Key = key(
    "split",
    Accepts::Choice(TestSplit::WORDS),
    Text(TestSplit::Random.word()),
    "How the test rows are drawn: from all rows, or the same share of each class (stratified), or of each client of `client_column`. Not used with `test_path` or `leave_out`.",
);

pub(super) const PATH: Key = required(
    "path",
    Accepts::Text { may_be_empty: false },
    "The CSV file, relative to the working directory; may be compressed with gzip. The run's `config.toml` has the whole path.",
);

pub(super) const TARGET: Key = required(
    "target",
    Accepts::Column { may_be_empty: false },
    "The column to predict, by name, by number from 0, or from the end: -1 is the last.",
);

pub(super) const TASK: Key = key(
    "task",
    Accepts::Choice(Task::WORDS),
    Text(Task::Classification.word()),
    "What the target is: a label or a number.",
);

pub(super) const HEADER: Key = key(
    "header",
    Accepts::Choice(Header::WORDS),
    Text(Header::Auto.word()),
    "Whether the first row holds the column names; `auto`: yes if the target is given by name or the row's features are not numbers, or if it is blank and then counts from 0, as pandas writes.",
);

pub(super) const DELIMITER: Key =
    key("delimiter", Accepts::Character, Text(","), "The separator of cells, such as `,` or `;` or `tab`.");

/// The keys that name files of the user.
pub const FILE_KEYS: [&str; 2] = ["path", "test_path"];

const CLIENT_COLUMN: Key = key(
    "client_column",
    Accepts::Column { may_be_empty: true },
    Text(""),
    "The column with the client of each row, for partition `by-column`; it is a feature only where `categorical` names it too. `\"\"`: none.",
);

pub(super) const TEST_PATH: Key = key(
    "test_path",
    Accepts::Text { may_be_empty: true },
    Text(""),
    "A second CSV file with the test rows; `test_fraction` is then ignored. `\"\"`: none.",
);

const KEYS: [Key; 25] = joined(&[
    &[PATH, TARGET, TASK, POSITIVE, HEADER, DELIMITER, CLIENT_COLUMN],
    &READING,
    &[TEST_PATH, NORMALISE, TEST_FRACTION, SPLIT, LEAVE_OUT, TRAIN_LIMIT, TEST_LIMIT],
]);

/// The training and test rows of a table, in the file's own units.
#[derive(Clone, Debug)]
pub struct Cells {
    /// The training rows; their features are cells.
    pub train: Dataset,
    /// The test rows.
    pub test: Dataset,
    /// The validation rows, where they have a file.
    pub validation: Option<Dataset>,
    /// The calibration rows, where they have a file.
    pub calibration: Option<Dataset>,
    /// What the cells are.
    pub columns: Columns,
    /// The names of target and group, where the configuration gives their numbers.
    pub numbered_columns: NumberedColumns,
    /// Notes for the reader of results, one sentence each.
    pub notes: Vec<String>,
}

/// The files of rows that a site holds out; empty for none.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeldOutFiles<'a> {
    /// `data.validation_path`.
    pub validation: &'a str,
    /// `data.calibration_path`.
    pub calibration: &'a str,
}

impl Csv {
    /// Whether the test rows follow from the natural clients of the rows, whatever the partition.
    pub fn splits_by_client(&self) -> bool {
        !self.leave_out.is_empty() || (self.split == TestSplit::ByClient && self.test_path.is_empty())
    }

    /// Whether the column of the natural clients is a feature too.
    pub fn client_is_feature(&self) -> bool {
        self.reading.categorical.named().contains(&self.client_column)
    }

    /// The rows as cells.
    pub(super) fn cells(
        &self,
        extent: Extent,
        held_out: HeldOutFiles<'_>,
        rng: &mut impl Rng,
    ) -> Result<Cells, DataError> {
        if !self.leave_out.is_empty() && !self.test_path.is_empty() {
            let problem = "the test rows are those of `data.test_path`; leave one of the two empty";
            return Err(DataError::config("data.leave_out", format!("{:?}", self.leave_out), problem));
        }
        let columns = CsvOptions {
            target: &self.target,
            header: self.header,
            task: self.task,
            delimiter: delimiter(&self.delimiter)?,
            client: &self.client_column,
            reading: &self.reading,
            first: None,
            may_lack_groups: false,
        };
        let beside = [
            ("data.test_path", self.test_path.as_str()),
            ("data.validation_path", held_out.validation),
            ("data.calibration_path", held_out.calibration),
        ];
        let Files { train, beside: [test, validation, calibration], columns, numbered_columns, mut notes } =
            read(("data.path", &self.path), beside, &columns, (extent, &self.positive))?;
        let (train, test) = match test {
            Some(test) => (train, test),
            None if !self.leave_out.is_empty() => {
                let LeftOut { train, test, notes: of_clients } = leave_out::split(&train, &self.leave_out)?;
                notes.extend(of_clients);
                (train, test)
            }
            None if extent == Extent::Part && self.test_fraction == 0.0 => {
                let none = train.select(&[]);
                (train, none)
            }
            None => self.split.of(&train, self.test_fraction, rng)?,
        };
        notes.extend(equal_rows::note(&train, &test));
        notes.extend(gives_away::note(&train));
        Ok(Cells { train, test, validation, calibration, columns, numbered_columns, notes })
    }

    /// The features of the rows that are kept, by what is learned from those to train on.
    fn encoded(&self, cells: Cells, rng: &mut impl Rng) -> Result<Rows, DataError> {
        let Cells { train, test, columns, numbered_columns, mut notes, .. } = cells;
        // As for all sources; the limits then keep all rows.
        let train = split::limit(train, self.train_limit, rng);
        let test = split::limit(test, self.test_limit, rng);
        let encoding = Encoding::of_rows(&train, &columns, &self.path)?;
        let refuse = |problem| DataError::Columns { path: self.path.clone(), problem };
        let (train, of_train) = encoding.encoded(train, &columns).map_err(refuse)?;
        let (test, of_test) = encoding.encoded(test, &columns).map_err(refuse)?;
        notes.extend(of_train.notes(&encoding, "the training rows"));
        notes.extend(of_test.notes(&encoding, "the test rows"));
        Ok(Rows { notes, encoding: Some(encoding), numbered_columns, ..(train, test).into() })
    }
}

impl Source for Csv {
    const KIND: Kind = Kind {
        name: "csv",
        about: "A table of your own: classification or regression, with or without natural clients. Scale `auto`: `standard`.",
        keys: &KEYS,
    };
    const SET: DataSet = DataSet {
        name: Self::KIND.name,
        summary: "your own table: classification or regression, with or without natural clients",
        source: "yours",
        licence: "yours",
        origin: Origin::Own,
        files: &[],
        manual_download: None,
    };

    fn properties(&self) -> DataProperties {
        let target = match self.task {
            Task::Classification => TargetKind::Classes(None),
            Task::Regression => TargetKind::Real,
        };
        DataProperties {
            target,
            natural_clients: !self.client_column.is_empty(),
            superclasses: false,
            groups: !self.reading.group_column.is_empty(),
            unseen_clients: !self.leave_out.is_empty(),
        }
    }

    fn auto_scale(&self) -> Normalise {
        Normalise::Standard
    }

    fn read(&self, _: &Path, rng: &mut impl Rng) -> Result<Rows, DataError> {
        let cells = self.cells(Extent::Whole, HeldOutFiles::default(), rng)?;
        match cells.columns.are_features() {
            true => {
                let Cells { train, test, numbered_columns, notes, .. } = cells;
                Ok(Rows { notes, numbered_columns, ..(train, test).into() })
            }
            false => self.encoded(cells, rng),
        }
    }
}

/// The byte of a delimiter, which may be written `tab`.
///
/// # Errors
/// More than one character, or one that occurs in numbers or quotes.
pub fn delimiter(text: &str) -> Result<u8, DataError> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ => match text.as_bytes() {
            &[byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\r\n.+-".contains(&byte) => Ok(byte),
            _ => {
                let problem =
                    "must be one character other than a letter, digit, quote or sign, e.g. \",\" or \";\" or \"tab\"";
                Err(DataError::config("data.delimiter", format!("{text:?}"), problem))
            }
        },
    }
}

/// The tables of a file and of up to M files beside it.
pub(super) struct Files<const M: usize> {
    /// The rows of the first file.
    pub train: Dataset,
    /// Those of the others, where there are any.
    pub beside: [Option<Dataset>; M],
    /// What their cells are.
    pub columns: Columns,
    /// The names of target and group, where the options give their numbers.
    pub numbered_columns: NumberedColumns,
    /// Notes for the reader of results, one sentence each.
    pub notes: Vec<String>,
}

/// Whether a table has all rows of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// It has them all: a classification has two classes or more, and rows to train on of each.
    Whole,
    /// It has those of one place of several: others may have classes that it lacks, and it need not hold out test rows.
    Part,
}

/// The table of the training rows, whose key is given with its path, and those of the files beside it; a path that is empty
/// is no file. Classes, natural clients and texts are numbered over all of them. The last text is as [`Csv::positive`].
pub(super) fn read<const M: usize>(
    (key, path): (&str, &Path),
    beside: [(&str, &str); M],
    options: &CsvOptions,
    (extent, positive): (Extent, &str),
) -> Result<Files<M>, DataError> {
    let mut numbered = Numbered::default();
    let mut read_file = |key: &str, path: &Path, options: &CsvOptions| -> Result<CsvTable, DataError> {
        DataError::must_be_file(key, path)?;
        csv::read(path, options, &mut numbered)
    };
    let mut train = read_file(key, path, options)?;
    let mut tables = Vec::with_capacity(M);
    for (key, path) in beside {
        tables.push(match path {
            "" => None,
            _ => {
                let reading = as_found(&train, options.reading);
                let second = CsvOptions { reading: &reading, first: Some(&train), ..options.clone() };
                Some(read_file(key, Path::new(path), &second)?)
            }
        });
    }
    different_files((key, path), &beside)?;
    for (table, (_, path)) in tables.iter_mut().zip(beside) {
        *table = table.take().map(|table| in_order_of(&mut train, table, Path::new(path))).transpose()?;
    }

    let (mut names, mut class_of) = numbered.classes.sorted();
    if options.task == Task::Classification {
        check_classes(path, options.target, &names, extent)?;
        let checked = tables.iter().zip(beside).filter(|_| extent == Extent::Whole);
        for (table, (_, path)) in checked.filter_map(|(table, file)| Some((table.as_ref()?, file))) {
            check_test_classes(&train, table, &class_of, &names, (Path::new(path), options.target))?;
        }
    }
    if positive::make_second(&mut names, &options.reading.notation().name(positive))? {
        class_of.iter_mut().for_each(|class| *class = 1 - *class);
    }
    let (client_names, client_of) = numbered.clients.sorted();
    let group_of = numbered.groups.merged();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.split('.').next().unwrap_or("csv").to_owned();
    let columns = Columns {
        kinds: train.kinds.clone(),
        texts: std::mem::take(&mut train.texts),
        missing: options.reading.missing,
        automatic: options.reading.categorical.is_automatic(),
    };
    let others = beside.iter().zip(&tables).filter_map(|((_, path), table)| Some((Path::new(*path), table.as_ref()?)));
    let files = std::iter::once((path, &train)).chain(others);
    let dropped = files.flat_map(|(path, table)| notes_of_dropped(path, table));
    let spellings = {
        let texts = columns.texts.iter().map(|(at, texts)| (called(&train, *at), &texts[..]));
        let target = (options.task == Task::Classification).then(|| (options.target.to_owned(), &names[..]));
        let clients = (!options.client.is_empty()).then(|| (options.client.to_owned(), &client_names[..]));
        note_on_alike(&path.display().to_string(), target.into_iter().chain(clients).chain(texts))
    };
    let alike_groups = {
        let names = numbered.groups.sorted().0;
        note_on_alike_groups(&path.display().to_string(), &options.reading.group_column, &names)
            .map(|note| format!("{note}, or training and test rows are of one"))
    };
    let notes = dropped.chain(notes_of_codes(path, &train, options)).chain(spellings).chain(alike_groups).collect();
    let numbered_columns = train.numbered_columns(options);
    let assemble = |table: CsvTable| Dataset {
        name: name.clone(),
        feature_shape: vec![table.features.ncols()],
        feature_names: table.names,
        features: table.features,
        targets: match options.task {
            Task::Classification => Targets::Classes {
                labels: table.labels.into_iter().map(|label| class_of[label]).collect(),
                names: names.clone(),
            },
            Task::Regression => Targets::Real { values: table.values },
        },
        clients: (!options.client.is_empty())
            .then(|| table.clients.into_iter().map(|client| client_of[client]).collect()),
        client_names: (!options.client.is_empty()).then(|| client_names.clone()),
        groups: table.groups.map(|groups| groups.into_iter().map(|group| group_of[group]).collect()),
        lines: Some(table.lines),
    };
    let mut tables = tables.into_iter();
    let beside = std::array::from_fn(|_| tables.next().flatten().map(assemble));
    Ok(Files { train: assemble(train), beside, columns, numbered_columns, notes })
}

/// Checks that no file is that of two keys: a file of rows to train on and to hold out would hold nothing out.
fn different_files((key, path): (&str, &Path), beside: &[(&str, &str)]) -> Result<(), DataError> {
    let found = |path: &Path| path.canonicalize().ok();
    let mut seen = vec![(key, found(path))];
    for (key, path) in beside.iter().filter(|(_, path)| !path.is_empty()) {
        let own = found(Path::new(path));
        if let Some((other, _)) = seen.iter().find(|(_, other)| own.is_some() && *other == own) {
            let fraction = key.replace("_path", "_fraction");
            let problem = match other.ends_with("_path") {
                false => format!(
                    "is the file of the training rows: nothing would be held out; name another, or leave it empty and {fraction} splits"
                ),
                true => format!("is the file of {other} too: name another, or leave it empty"),
            };
            return Err(DataError::config(key, path, &problem));
        }
        seen.push((key, own));
    }
    Ok(())
}

/// The keys for a second file, in which the columns of texts are those of the first.
fn as_found(first: &CsvTable, reading: &Reading) -> Reading {
    let texts = first.kinds.iter().enumerate().filter(|(_, kind)| **kind == CellKind::Category);
    let texts = texts.map(|(at, _)| called(first, at));
    Reading { categorical: Categorical::Columns(texts.collect()), ..reading.clone() }
}

/// A feature's column by its name, or by its place in the file.
fn called(table: &CsvTable, feature: usize) -> String {
    match &table.names {
        Some(names) => names[feature].clone(),
        None => table.places[feature].to_string(),
    }
}

/// What `missing_target` and `missing` have left out of a file.
fn notes_of_dropped(path: &Path, table: &CsvTable) -> impl Iterator<Item = String> {
    let CsvTable { unlabelled, dropped, .. } = *table;
    let (rows, path) = (unlabelled + dropped + table.features.nrows(), path.display().to_string());
    [("missing_target", unlabelled, "no target"), ("missing", dropped, "a missing cell")]
        .into_iter()
        .filter(|(_, count, _)| *count > 0)
        .map(move |(key, count, what)| {
            let have = if count == 1 { "has" } else { "have" };
            format!("data.{key} = \"drop\" leaves out {count} of the {rows} rows of {path}, which {have} {what}")
        })
}

/// So many digits of a decimal number are the same in single precision.
const EXACT_DIGITS: usize = 6;

/// The number of digits of a cell.
fn digits(cell: &str) -> usize {
    cell.bytes().filter(u8::is_ascii_digit).count()
}

/// What may stand for missing values in a file, where nobody has said so.
fn notes_of_codes(path: &Path, table: &CsvTable, options: &CsvOptions<'_>) -> impl Iterator<Item = String> {
    let numbers = table.kinds.iter().enumerate().filter(|(_, kind)| matches!(kind, CellKind::Number | CellKind::Date));
    let found = numbers.filter_map(|(at, kind)| {
        let cells = table.features.column(at);
        Some((at, *kind, FarValues::of(cells.iter().map(|cell| f64::from(*cell)))?))
    });
    let found: Vec<(usize, CellKind, FarValues<usize>)> = found.collect();
    // A feature is kept in single precision, and a date as a number: the file has the cells.
    let is_told = |kind: CellKind, value: f64| kind == CellKind::Number && digits(&shortest(value)) <= EXACT_DIGITS;
    let place = |at: usize, row: usize| (table.lines[row], table.places[at]);
    let wanted = found.iter().flat_map(|(at, kind, codes)| {
        let untold = codes.named().filter(|(value, _)| !is_told(*kind, *value));
        untold.map(|(_, row)| place(*at, *row))
    });
    let written = cells_at(path, options.delimiter, wanted.collect());
    let mut all: Vec<(String, Codes)> = Vec::new();
    let notation = options.reading.notation();
    for (at, kind, codes) in &found {
        let cell = |value, row: &usize| match (written.get(&place(*at, *row)), kind) {
            (Some(date), CellKind::Date) => date.clone(),
            (Some(cell), _) => exact(notation.number(cell).unwrap_or(value)),
            (None, _) => shortest(value),
        };
        all.push((called(table, *at), codes.written(cell)));
    }
    let of_features = all.len();
    let targets = FarValues::of(table.values.iter().copied());
    all.extend(targets.map(|codes| (options.target.to_owned(), codes.written(|value, _| exact(value)))));
    let cells: Vec<_> = all.iter().map(|(name, codes)| (name.clone(), codes.cells().to_vec())).collect();
    let declared = options.reading.missing_values.with(&cells, table.names.is_some());
    let note = |columns: &[(String, Codes)], key: &str| {
        let remedy = format!("declare them (data.missing_values = {declared}) and set {key}");
        codes::note(columns, &path.display().to_string(), &remedy)
    };
    let (features, targets) = all.split_at(of_features);
    [note(features, "data.missing"), note(targets, "data.missing_target = \"drop\"")].into_iter().flatten()
}

/// Test rows with the columns in the order of the training file, by name where both files have headers. The texts of both
/// become those of the training file.
fn in_order_of(train: &mut CsvTable, test: CsvTable, test_path: &Path) -> Result<CsvTable, DataError> {
    let refuse = |problem: String| Err(DataError::Columns { path: test_path.to_path_buf(), problem });
    let expected = train.features.ncols();
    let (Some(names), Some(own)) = (&train.names, &test.names) else {
        let columns = (0..expected).collect::<Vec<_>>();
        return Ok(with_texts_of(train, test, &columns));
    };
    let places: HashMap<&str, usize> = own.iter().map(String::as_str).zip(0..).collect();
    let mut columns = Vec::with_capacity(expected);
    for name in names {
        match places.get(name.as_str()) {
            Some(place) => columns.push(*place),
            None => return refuse(format!("it has no column `{}` of the training file", text(name.as_bytes()))),
        }
    }
    let test = CsvTable { features: test.features.select(Axis(1), &columns), names: train.names.clone(), ..test };
    Ok(with_texts_of(train, test, &columns))
}

/// Numbers the texts of both tables alike. Column j of the test rows was column `columns[j]` of their file.
fn with_texts_of(train: &mut CsvTable, mut test: CsvTable, columns: &[usize]) -> CsvTable {
    for (at, _) in train.kinds.iter().enumerate().filter(|(_, kind)| **kind == CellKind::Category) {
        let mut texts = Names::default();
        train.texts.get(&at).into_iter().flatten().for_each(|text| {
            texts.id(text);
        });
        let own = test.texts.get(&columns[at]).into_iter().flatten();
        let ids: Vec<f32> = own.map(|text| texts.id(text) as f32).collect();
        let known = test.features.column_mut(at).into_iter().filter(|cell| !cell.is_nan());
        known.for_each(|cell| *cell = ids[*cell as usize]);
        train.texts.insert(at, texts.into_texts());
    }
    test
}

/// Every class of the test rows has training rows.
fn check_test_classes(
    train: &CsvTable,
    test: &CsvTable,
    class_of: &[usize],
    names: &[String],
    (path, target): (&Path, &str),
) -> Result<(), DataError> {
    let trained: HashSet<usize> = train.labels.iter().map(|label| class_of[*label]).collect();
    let Some(unknown) = test.labels.iter().map(|label| class_of[*label]).find(|class| !trained.contains(class)) else {
        return Ok(());
    };
    let rows = test.labels.iter().filter(|label| class_of[**label] == unknown).count();
    let problem = format!(
        "the target column `{target}` holds the class `{}` in {rows} rows, and no row of the training file has it",
        text(names[unknown].as_bytes())
    );
    Err(DataError::Columns { path: path.to_path_buf(), problem })
}

/// All rows of a classification have two classes or more, and hundreds of fractions are not classes.
fn check_classes(path: &Path, target: &str, names: &[String], extent: Extent) -> Result<(), DataError> {
    let refuse = |problem: String| Err(DataError::Columns { path: path.to_path_buf(), problem });
    if let [only] = names
        && extent == Extent::Whole
    {
        let only = text(only.as_bytes());
        return refuse(format!("the target column `{target}` holds one class only, `{only}`"));
    }
    let fraction = |name: &String| name.parse::<f64>().is_ok_and(|value| value.fract() != 0.0);
    if names.len() > 100 && names.iter().any(fraction) {
        let count = names.len();
        return refuse(format!("the target column `{target}` holds {count} different numbers; task = \"regression\"?"));
    }
    Ok(())
}
