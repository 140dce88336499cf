//! A site's own file, `site.toml`: where its rows are, and what may be told about them. A server sets none of it.

use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use fedstein_schema::Accepts::{Bool, Choice, Name, Text};
use fedstein_schema::Literal::{Bool as B, Int as I, Text as T};
use fedstein_schema::{COUNT, ConfigError, Key, Overrides, Schema, Section, Source, key, required, whole};
use serde::Deserialize;

use crate::backend::KNOWN;
use crate::datasets::source::{Csv, SITE_KEYS, TestSplit};
use crate::datasets::{Header, Normalise, Reading, Task};
use crate::report::read_text;

/// A site: the content of its own file with all defaults written out.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SiteConfig {
    /// The site's name, which the server and the reports of a run show.
    pub name: String,
    /// The index k of the client that this site is, from 0.
    pub index: usize,
    /// The directory of the site's state.
    pub state: PathBuf,
    /// The backend, one of [`KNOWN`].
    pub backend: String,
    /// The number of CPU threads; 0 for all.
    pub threads: usize,
    /// The site's rows.
    pub data: SiteData,
    /// What the site may tell.
    pub tell: Tell,
    /// What a server may ask of it.
    pub limits: SiteLimits,
}

/// The keys of `[data]`: the fields of the same names of [`Csv`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SiteData {
    /// The file.
    pub path: PathBuf,
    /// A separate file of test rows; empty for none.
    pub test_path: String,
    /// A file of validation rows; empty for none.
    pub validation_path: String,
    /// A file of calibration rows; empty for none.
    pub calibration_path: String,
    /// The target column, by name or number.
    pub target: String,
    /// The type of the target.
    pub task: Task,
    /// Whether the first line holds the column names.
    pub header: Header,
    /// The character between the fields, or `tab`.
    pub delimiter: String,
    /// The name of a further column with the site's name in every row; empty for none.
    pub name_column: String,
    /// The other columns, and how cells are written.
    #[serde(flatten)]
    pub reading: Reading,
    /// The share of the rows for testing; not used with `test_path`.
    pub test_fraction: f64,
    /// How the test rows are drawn.
    pub split: TestSplit,
    /// The share of the training rows that is held out for validation; not used with `validation_path`.
    pub validation_fraction: f64,
    /// The share of the training rows that is held out for calibration; not used with `calibration_path`.
    pub calibration_fraction: f64,
}

/// The keys of `[tell]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Tell {
    /// Whether the texts of columns of categories are told.
    pub categories: bool,
    /// Whether the number of training rows of each class is told.
    pub class_counts: bool,
    /// The number of training rows below which no sums are told, of cells below which a column is missing in training, and of
    /// held-out rows below which they are not scored for a server; with a column of groups that of groups.
    pub min_rows: usize,
    /// Whether sums of products of two columns over the training rows are told too.
    pub products: bool,
    /// Whether sums over the training rows are told.
    pub statistics: bool,
}

/// The largest index of a client.
pub const MOST_INDEX: usize = 999_999;

/// The keys of `[limits]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct SiteLimits {
    /// The size of a message's arrays in MiB.
    pub megabytes: u64,
    /// The size of each thing that is computed with, in numbers: its key lists them.
    pub numbers: usize,
    /// The number of local steps of a visit; steps within a step multiply.
    pub steps: usize,
}

impl SiteLimits {
    /// The size of a message's arrays in bytes.
    pub fn bytes(&self) -> u64 {
        self.megabytes << 20
    }
}

const TOP: &[Key] = &[
    required("name", Name, "The site's name, which the server and the reports of a run show."),
    required(
        "index",
        whole(0, MOST_INDEX as i64),
        "The index k of the client that this site is, from 0; every site has its own.",
    ),
    key(
        "state",
        Text { may_be_empty: false },
        T("state"),
        "Directory of what the site keeps between visits, relative to the directory of this file.",
    ),
    key("backend", Choice(&KNOWN), T("flex"), "Device of this site's computation: `flex`, `ndarray`, `wgpu`, `cuda`."),
    key("threads", whole(0, 1024), I(0), "CPU threads of this site's computation; 0: all."),
];

const TELL: &[Key] = &[
    key(
        "categories",
        Bool,
        B(false),
        "Whether the texts of the training rows in the columns of `data.categorical` are told, each once, which one-hot encoding over all sites needs.",
    ),
    key("class_counts", Bool, B(false), "Whether the number of training rows of each class is told."),
    key(
        "min_rows",
        COUNT,
        I(10),
        "With fewer training rows than this, no sums are told. A column of which fewer training rows have a value is missing in training, and nothing of these values is told. Of fewer validation, calibration or test rows a server is told that there are none, and no scores; the names of their classes are told. With `data.group_column` groups count, such as patients, not rows. A run is refused whose weights of classes make the training rows count as fewer equal ones.",
    ),
    key(
        "products",
        Bool,
        B(false),
        "Whether the sum of the products of each two columns over the training rows is told as well, which `data.rotate` needs.",
    ),
    key(
        "statistics",
        Bool,
        B(true),
        "Whether the sum of each column over the training rows is told, for a common scale of the features.",
    ),
];

const LIMITS: &[Key] = &[
    key(
        "megabytes",
        whole(1, 65_536),
        I(1024),
        "Largest arrays of one message that are read from a server, in MiB; its text may have 64.",
    ),
    key(
        "numbers",
        whole(1, i32::MAX as i64),
        I(1 << 28),
        "Largest size, in numbers, of each of these: the coordinates of all particles (N·d), all draws of a step (`algorithm.samples` times d), the matrices of pairs of particles (N²), the features of all rows, and the curvatures and moments that a client of `newton-dsvgd` holds during a visit.",
    ),
    key(
        "steps",
        COUNT,
        I(1_000_000),
        "Largest number of local steps that a server may ask for in one visit; steps within a step multiply (`inner_steps`, `inference_steps`).",
    ),
];

/// The keys of `site.toml`.
pub fn schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema {
        sections: vec![
            Section::plain("", "The site as a whole. These keys stand above the first section.", TOP),
            Section::plain("data", "The site's rows, a table of its own.", SITE_KEYS),
            Section::plain("tell", "What the site may tell a server about its rows.", TELL),
            Section::plain("limits", "What a server may ask of the site.", LIMITS),
        ],
    });
    &SCHEMA
}

/// Checks that these sites of one machine keep their states in different directories. Files that cannot be read, and a file
/// that is named twice, have errors of their own elsewhere.
///
/// # Errors
/// Two sites have the same directory.
pub(crate) fn states_are_apart(files: &[PathBuf]) -> Result<(), ConfigError> {
    let mut known: Vec<(PathBuf, &Path)> = Vec::new();
    for file in files {
        let Ok(SiteConfig { state, .. }) = SiteConfig::load(file) else { continue };
        let state = without_parents(&std::path::absolute(&state).unwrap_or(state));
        let same = known.iter().find(|(other, named)| *other == state && *named != file);
        if let Some((_, other)) = same {
            return Err(ConfigError::conflict(format!(
                "{} and {} keep their states in the same directory, {}; give each its own `state`",
                other.display(),
                file.display(),
                state.display()
            )));
        }
        known.push((state, file));
    }
    Ok(())
}

/// A path without `..`, each of which takes the directory before it away; links are not followed.
fn without_parents(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut so_far, part| {
        if part == Component::ParentDir {
            so_far.pop();
        } else {
            so_far.push(part);
        }
        so_far
    })
}

/// The error about a site's file, which says what is expected where a table was given in its place.
fn of_table(path: &Path, error: ConfigError) -> ConfigError {
    const TABLES: [&str; 4] = ["csv", "tsv", "gz", "parquet"];
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match TABLES.contains(&ending.to_ascii_lowercase().as_str()) {
        true => ConfigError::conflict(format!(
            "{}: it is a table, and a site's file in TOML is expected, which `fedstein site init {}` writes",
            path.display(),
            path.display()
        )),
        false => error,
    }
}

impl SiteConfig {
    /// Reads a site's file. Its paths become relative to the working directory instead of the file's own directory.
    ///
    /// # Errors
    /// The file cannot be read, or a key is unknown, missing or has an invalid value.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = read_text(path).map_err(|source| ConfigError::Read { path: path.to_path_buf(), source })?;
        let source = Source { name: &path.display().to_string(), text: &text };
        let table = schema().resolve(source, &Overrides::default()).map_err(|error| of_table(path, error))?.table;
        let mut site: Self =
            table.try_into().map_err(|error: toml::de::Error| ConfigError::Internal(error.to_string()))?;
        let SiteData { validation_path, validation_fraction, calibration_path, calibration_fraction, .. } = &site.data;
        let shares = [(validation_path, validation_fraction), (calibration_path, calibration_fraction)];
        let share: f64 = shares.iter().filter(|(path, _)| path.is_empty()).map(|(_, share)| **share).sum();
        if share >= 1.0 {
            return Err(ConfigError::conflict(format!(
                "{}: `data.validation_fraction` and `data.calibration_fraction` are {share} together, which leaves no training \
                 rows; they must be less than 1",
                path.display()
            )));
        }
        let SiteData { target, reading, name_column, .. } = &site.data;
        let named = reading.no_features().into_iter().chain([("data.target", std::slice::from_ref(target))]);
        if let Some((key, _)) =
            named.into_iter().find(|(_, columns)| !name_column.is_empty() && columns.contains(name_column))
        {
            return Err(ConfigError::conflict(format!(
                "{}: `data.name_column` is the name of a further column, but `{key}` names `{name_column}` too",
                path.display()
            )));
        }
        let directory = path.parent().unwrap_or(Path::new(""));
        site.state = directory.join(&site.state);
        site.data.path = directory.join(&site.data.path);
        let SiteData { test_path, validation_path, calibration_path, .. } = &mut site.data;
        for path in [test_path, validation_path, calibration_path].into_iter().filter(|path| !path.is_empty()) {
            *path = directory.join(&*path).display().to_string();
        }
        Ok(site)
    }
}

/// What a site does not tell, and the keys of its own file that decide it.
pub const NO_SUMS: &str = "tells no sums (tell.statistics, tell.min_rows)";
/// See [`NO_SUMS`].
pub const NO_PRODUCTS: &str = "tells no sums of products (tell.products, tell.statistics, tell.min_rows)";
/// See [`NO_SUMS`].
pub const NO_TEXTS: &str = "tells no texts of its columns of categories (tell.categories)";

impl Tell {
    /// Whether sums over this number of training rows, or groups, may be told.
    pub fn sums_of(&self, rows: usize) -> bool {
        self.statistics && rows >= self.min_rows
    }

    /// The number of values below which a column tells nothing of them: 0 where no sums are told at all.
    pub fn few(&self) -> usize {
        if self.statistics { self.min_rows } else { 0 }
    }

    /// Whether a server may be told of this number of held-out rows, or groups, and of sums of scores over them.
    pub fn scores_of(&self, rows: usize) -> bool {
        rows >= self.min_rows
    }

    /// Whether sums of products over this number of training rows, or groups, may be told.
    pub fn products_of(&self, rows: usize) -> bool {
        self.products && self.sums_of(rows)
    }
}

impl SiteConfig {
    /// A text for a server without the paths of this site: each is replaced by the key that names it.
    pub fn without_paths(&self, text: &str) -> String {
        let (state, data) = (self.state.display().to_string(), self.data.path.display().to_string());
        let above = |path: &str| {
            let above = Path::new(path).parent().filter(|above| above.is_absolute() && above.parent().is_some());
            above.map(|above| (above.display().to_string(), "\u{2026}"))
        };
        let mut named = vec![(state, "state"), (data, "data.path")];
        named.extend(self.data.held_out_files().map(|(key, path)| (path.to_owned(), key)));
        let mut paths: Vec<(String, &str)> = named.iter().filter_map(|(path, _)| above(path)).collect();
        paths.extend(named);
        // A path may begin with another one.
        paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        let kept = paths.iter().filter(|(path, _)| !path.is_empty());
        kept.fold(text.to_owned(), |text, (path, key)| text.replace(path.as_str(), key))
    }
}

impl SiteData {
    /// The keys of the files of rows that are not trained on, with the files.
    pub fn held_out_files(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Self { test_path, validation_path, calibration_path, .. } = self;
        let files = [
            ("data.test_path", test_path),
            ("data.validation_path", validation_path),
            ("data.calibration_path", calibration_path),
        ];
        files.into_iter().map(|(key, path)| (key, path.as_str())).filter(|(_, path)| !path.is_empty())
    }

    /// The same table as a source of data, in its own units.
    pub fn table(&self) -> Csv {
        let Self { path, test_path, target, task, header, delimiter, reading, test_fraction, split, .. } = self.clone();
        Csv {
            path,
            test_path,
            target,
            header,
            task,
            positive: String::new(),
            delimiter,
            client_column: String::new(),
            reading,
            normalise: Normalise::None,
            test_fraction,
            split,
            leave_out: Vec::new(),
            train_limit: 0,
            test_limit: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_parents_is_the_same_place() {
        for (path, place) in [("/a/b/../c", "/a/c"), ("/a/./b", "/a/b"), ("/a/../../b", "/b"), ("/a/b", "/a/b")] {
            assert_eq!(without_parents(Path::new(path)), Path::new(place), "{path}");
        }
    }

    #[test]
    fn every_key_is_read_and_paths_are_relative_to_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("site.toml");
        let text = "name = \"north\"\nindex = 2\nthreads = 3\n[data]\npath = \"a.csv\"\ntest_path = \"b.csv\"\n\
                    validation_path = \"c.csv\"\ntarget = -1\n[tell]\nmin_rows = 4\n";
        std::fs::write(&file, text).unwrap();
        let site = SiteConfig::load(&file).unwrap();
        let expected = SiteConfig {
            name: "north".into(),
            index: 2,
            state: directory.path().join("state"),
            backend: "flex".into(),
            threads: 3,
            data: SiteData {
                path: directory.path().join("a.csv"),
                test_path: directory.path().join("b.csv").display().to_string(),
                validation_path: directory.path().join("c.csv").display().to_string(),
                calibration_path: String::new(),
                target: "-1".into(),
                task: Task::Classification,
                header: Header::Auto,
                delimiter: ",".into(),
                name_column: String::new(),
                reading: Reading::default(),
                test_fraction: 0.2,
                split: TestSplit::Random,
                validation_fraction: 0.0,
                calibration_fraction: 0.0,
            },
            tell: Tell { categories: false, class_counts: false, min_rows: 4, products: false, statistics: true },
            limits: SiteLimits { megabytes: 1024, numbers: 1 << 28, steps: 1_000_000 },
        };
        assert_eq!(site, expected);
    }

    #[test]
    fn a_text_for_a_server_has_keys_in_the_place_of_paths() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "name = \"x\"\nindex = 0\n[data]\npath = \"a.csv\"\ntarget = -1\n").unwrap();
        let mut site = SiteConfig::load(file.path()).unwrap();
        // A path that is not of this system has none above it.
        let root = if cfg!(windows) { "C:" } else { "" };
        (site.state, site.data.path) =
            (format!("{root}/srv/ward/dr-roe/st").into(), format!("{root}/srv/ward/rows/cases.csv").into());
        let told = |text: &str| site.without_paths(&text.replace("/srv", &format!("{root}/srv")));
        assert_eq!(
            told("cannot create /srv/ward/dr-roe/st/01/visits: denied"),
            "cannot create state/01/visits: denied"
        );
        assert_eq!(told("`/srv/ward/rows/cases.csv`, line 3"), "`data.path`, line 3");
        assert_eq!(told("/srv/ward/dr-roe/other"), "\u{2026}/other");
        site.state = "north/state".into();
        assert_eq!(site.without_paths("`north/state/01` has none"), "`state/01` has none");
    }

    #[test]
    fn a_missing_or_unknown_key_is_named_with_its_place() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let message = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            SiteConfig::load(file.path()).unwrap_err().to_string()
        };
        let missing = message("index = 0\n");
        assert!(missing.contains(": `name` is missing. It must be a name of"), "{missing}");
        let unknown = message("name = \"a\"\nindex = 0\n[tell]\nmin_row = 3\n");
        assert!(unknown.contains("line 4: unknown key `tell.min_row`; did you mean `tell.min_rows`?"), "{unknown}");
    }
}
