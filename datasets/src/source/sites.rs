//! Rows that lie at the sites of a federation, and nowhere else.

use super::kind::{Rows, Source};
use super::{DataSet, Origin};
use crate::columns::{Columns, READING_AT_SERVER, Reading};
use crate::format::csv::{CsvOptions, Task};
use crate::format::header::Header;
use crate::positive::POSITIVE;
use crate::prepare::NORMALISE;
use crate::properties::TargetKind;
use crate::source::csv::{self, DELIMITER, Extent, HEADER, TASK, TEST_PATH};
use crate::{DataError, DataProperties, Dataset, Normalise};
use fedstein_schema::Literal::Text;
use fedstein_schema::{Accepts, Key, Kind, joined, key};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Rows at the sites of a federation: each site reads its own.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Sites {
    /// The type of the target.
    pub task: Task,
    /// Of two classes, the one with the index 1, as [`Csv::positive`](super::csv::Csv::positive).
    pub positive: String,
    /// The scale of the features; `auto` is `standard`, over the training rows of all sites.
    pub normalise: Normalise,
    /// A file of test rows at the server; empty where each site scores its own test rows.
    pub test_path: String,
    /// The target column of that file, as [`Csv::target`](super::csv::Csv::target).
    pub target: String,
    /// Whether its first line holds the column names.
    pub header: Header,
    /// The character between its fields.
    pub delimiter: String,
    /// Its other columns, and how its cells are written; also of new rows to predict.
    #[serde(flatten)]
    pub reading: Reading,
    /// Always 0: all rows of a site are kept.
    #[serde(skip, default)]
    pub train_limit: usize,
    /// Always 0: all rows of a site are kept.
    #[serde(skip, default)]
    pub test_limit: usize,
}

const KEYS: [Key; 18] = joined(&[&OF_TEST_ROWS, &READING_AT_SERVER]);

const OF_TEST_ROWS: [Key; 7] = [
    TASK,
    POSITIVE,
    NORMALISE,
    TEST_PATH.doc(
        "A CSV file of the server with test rows; its columns are matched by name with those of the sites. `\"\"`: each site \
         scores its own test rows.",
    ),
    key(
        "target",
        Accepts::Column { may_be_empty: true },
        Text(""),
        "The column to predict in `test_path`, by name, by number from 0, or from the end: -1 is the last.",
    ),
    HEADER,
    DELIMITER,
];

impl Sites {
    /// The server's own test rows as cells, and what they are; `None` where it has none.
    ///
    /// # Errors
    /// The file is missing or damaged, has no such column, or does not fit the task.
    pub fn test_rows(&self) -> Result<Option<(Dataset, Columns)>, DataError> {
        if self.test_path.is_empty() {
            return Ok(None);
        }
        if self.target.is_empty() {
            let problem = "must name the column to predict in `data.test_path`";
            return Err(DataError::config("data.target", "\"\"", problem));
        }
        let columns = CsvOptions {
            target: &self.target,
            header: self.header,
            task: self.task,
            delimiter: csv::delimiter(&self.delimiter)?,
            client: "",
            reading: &self.reading,
            first: None,
            may_lack_groups: true,
        };
        let files = csv::read(("data.test_path", Path::new(&self.test_path)), [], &columns, (Extent::Part, ""))?;
        Ok(Some((files.train, files.columns)))
    }
}

impl Source for Sites {
    const KIND: Kind = Kind {
        name: "sites",
        about: "Rows at the sites of a federation, each with a file of its own (docs/federation.md); `fedstein train --sites`. `[partition]` is not used. Scale `auto`: `standard` over all sites; `minmax`, `unit` and `published` are refused.",
        keys: &KEYS,
    };
    const SET: DataSet = DataSet {
        name: Self::KIND.name,
        summary: "rows at the sites of a federation, which never leave them",
        source: "each site's",
        licence: "each site's",
        origin: Origin::Own,
        files: &[],
        manual_download: None,
    };

    fn properties(&self) -> DataProperties {
        DataProperties::of_target(TargetKind::AtSites)
    }

    fn auto_scale(&self) -> Normalise {
        Normalise::Standard
    }

    fn read(&self, _: &Path, _: &mut impl Rng) -> Result<Rows, DataError> {
        let problem = "the rows are at sites: only `fedstein train CONFIG.toml --sites a.toml,b.toml`, with the sites' own files, \
                       trains on them";
        Err(DataError::config("data.kind", Self::KIND.name, problem))
    }
}
