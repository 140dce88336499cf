//! A site's rows as a table on its own disk, so that its file is parsed once and not by every process of the site.

use std::collections::BTreeMap;
use std::path::Path;

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::config::SiteConfig;
use super::rows::SiteRows;
use super::rows_key::{Key, key};
use crate::array::{Array, Values};
use crate::checkpoint::{CheckpointError, Identity, Position, State, Store};
use crate::datasets::columns::Columns;
use crate::datasets::{DataError, Dataset, Targets};
use crate::report::files::create_private;

/// The directory of the table, under the site's state.
const ROWS: &str = "rows";
/// The number and the part of its only generation.
const ROUND: usize = 1;
const TABLE: &str = "table";
/// The sets of rows.
const SETS: [&str; 4] = ["train", "validation", "calibration", "test"];

/// What a table says besides its numbers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct About {
    /// The sha256 of the files, and the keys by which they were read.
    key: String,
    name: String,
    feature_names: Option<Vec<String>>,
    classes: Option<Vec<String>>,
    columns: Columns,
}

impl SiteRows {
    /// The rows of [`Self::read`], from the table that an earlier process of this site has [kept](Self::keep), as long as the
    /// files and the keys of `[data]` are the same; else, and where the table is damaged, the files are read.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn open(site: &SiteConfig) -> Result<Self, DataError> {
        let key = key(site)?;
        match kept(&site.state.join(ROWS), &key) {
            Some(rows) => Ok(rows),
            None => Self::read_as(site, key),
        }
    }

    /// Keeps the rows as a table, unless they come from it. The key is that of the files before they were read.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn keep(&mut self, site: &SiteConfig) -> Result<(), CheckpointError> {
        if let Some(key) = &self.unkept {
            keep(&site.state.join(ROWS), key, self)?;
            self.unkept = None;
        }
        Ok(())
    }
}

/// The kept rows; `None` where there are none of this key, or where they cannot be read.
fn kept(dir: &Path, key: &Key) -> Option<SiteRows> {
    let state = Store::open_at(dir, ROUND).ok()??.read(TABLE).ok()?;
    let about: About = serde_json::from_str(state.words("about").ok()?).ok()?;
    if about.key != key.text {
        return None;
    }
    let [train, validation, calibration, test] = SETS.map(|set| dataset(&state, set, &about));
    let (sha256, fingerprint) = (key.sha256.clone(), key.fingerprint.clone());
    let (columns, validation, calibration) = (about.columns, validation?, calibration?);
    // The notes were for those who saw the files being read.
    let notes = Vec::new();
    let (train, test, unkept) = (train?, test?, None);
    Some(SiteRows { train, validation, calibration, test, columns, notes, sha256, fingerprint, unkept })
}

fn keep(dir: &Path, key: &str, rows: &SiteRows) -> Result<(), CheckpointError> {
    let train = &rows.train;
    let about = About {
        key: key.to_owned(),
        name: train.name.clone(),
        feature_names: train.feature_names.clone(),
        classes: match &train.targets {
            Targets::Classes { names, .. } => Some(names.clone()),
            _ => None,
        },
        columns: rows.columns.clone(),
    };
    let about = serde_json::to_string(&about).map_err(|error| CheckpointError::Content(error.to_string()))?;
    let sets = SETS.iter().zip([&rows.train, &rows.validation, &rows.calibration, &rows.test]);
    let state = sets.fold(State::default().with_words("about", about), |state, (set, rows)| with(state, set, rows));
    create_private(dir).map_err(CheckpointError::io("create", dir))?;
    let position = Position { round: ROUND, identity: Identity::default(), logs: BTreeMap::new() };
    let parts = [(TABLE.to_owned(), state)];
    Store::new(dir.to_path_buf()).write(position, parts.into_iter().map(Ok::<_, CheckpointError>))
}

fn with(state: State, set: &str, rows: &Dataset) -> State {
    let values = Values::F32(rows.features.iter().copied().collect());
    let state = state.with_array(set, Array { shape: rows.features.shape().to_vec(), values });
    let state = match &rows.groups {
        Some(groups) => state.with_counts(&format!("{set}_groups"), groups.iter().copied()),
        None => state,
    };
    let state = match &rows.lines {
        Some(lines) => state.with_counts(&format!("{set}_lines"), lines.iter().map(|line| *line as usize)),
        None => state,
    };
    let targets = format!("{set}_targets");
    match &rows.targets {
        Targets::Classes { labels, .. } => state.with_counts(&targets, labels.iter().copied()),
        Targets::Real { values } => state.with_numbers(&targets, values.iter().copied()),
        Targets::None { .. } => state,
    }
}

fn dataset(state: &State, set: &str, about: &About) -> Option<Dataset> {
    let Array { shape, values: Values::F32(values) } = state.arrays().get(set)? else { return None };
    let features = Array2::from_shape_vec((*shape.first()?, *shape.get(1)?), values.clone()).ok()?;
    let targets = format!("{set}_targets");
    let counts = |what: &str| {
        let name = format!("{set}_{what}");
        if state.has(&name) { state.counts(&name).ok().map(Some) } else { Some(None) }
    };
    Some(Dataset {
        name: about.name.clone(),
        feature_shape: vec![features.ncols()],
        feature_names: about.feature_names.clone(),
        targets: match &about.classes {
            Some(names) => Targets::Classes { labels: state.counts(&targets).ok()?, names: names.clone() },
            None => Targets::Real { values: state.numbers(&targets).ok()? },
        },
        features,
        clients: None,
        client_names: None,
        groups: counts("groups")?,
        lines: counts("lines")?.map(|lines| lines.into_iter().map(|line| line as u64).collect()),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use tempfile::TempDir;

    use super::super::describe::describe;
    use super::super::describe::tests::site;
    use super::*;
    use crate::datasets::{Header, Task};
    use crate::site::SiteData;

    const TREES: &str = "ph,tree,flow\n1,alder,0.1\n2,oak,0.25\n3,oak,-7\n4,alder,1e-9\n5,oak,3\n";

    fn place(text: &str, task: Task, target: &str) -> (TempDir, SiteConfig) {
        let dir = TempDir::new().unwrap();
        let mut site = SiteConfig { state: dir.path().join("state"), ..site(2) };
        site.data.path = dir.path().join("rows.csv");
        (site.data.target, site.data.task, site.data.header) = (target.into(), task, Header::Yes);
        (site.data.test_path, site.data.validation_fraction) = (String::new(), 0.25);
        fs::write(&site.data.path, text).unwrap();
        (dir, site)
    }

    /// The rows from the table of an earlier process; a file that is gone cannot have been read.
    fn from_table(site: &SiteConfig) -> Option<SiteRows> {
        kept(&site.state.join(ROWS), &key(site).unwrap())
    }

    fn assert_same(a: &SiteRows, b: &SiteRows) {
        assert_eq!((&a.sha256, &a.columns), (&b.sha256, &b.columns));
        for (a, b) in [(&a.train, &b.train), (&a.validation, &b.validation), (&a.test, &b.test)] {
            assert_eq!((&a.features, &a.targets, &a.feature_names), (&b.features, &b.targets, &b.feature_names));
            assert_eq!(
                (&a.name, &a.feature_shape, &a.groups, &a.lines),
                (&b.name, &b.feature_shape, &b.groups, &b.lines)
            );
        }
    }

    #[test]
    fn the_table_has_the_rows_of_the_file_to_the_bit() {
        for (task, target) in [(Task::Classification, "tree"), (Task::Regression, "flow")] {
            let text = TREES.replace("alder", if task == Task::Regression { "0" } else { "alder" });
            let text = text.replace("oak", if task == Task::Regression { "1" } else { "oak" });
            let (_dir, site) = place(&text, task, target);
            let mut read = SiteRows::read(&site).unwrap();
            assert_same(&SiteRows::open(&site).unwrap(), &read);
            assert!(from_table(&site).is_none() && !site.state.exists(), "reading writes nothing");
            read.keep(&site).unwrap();
            assert_same(&from_table(&site).unwrap(), &read);
            assert_same(&SiteRows::open(&site).unwrap(), &read);
        }
    }

    #[test]
    fn the_fingerprint_follows_the_rows_and_not_the_names_of_the_files() {
        let (dir, site) = place(TREES, Task::Classification, "tree");
        let of = |site: &SiteConfig| key(site).unwrap().fingerprint;
        let with = |change: &dyn Fn(&mut SiteConfig)| {
            let mut changed = site.clone();
            change(&mut changed);
            of(&changed)
        };
        let before = of(&site);
        let copy = dir.path().join("copy.csv");
        fs::copy(&site.data.path, &copy).unwrap();
        assert_eq!(with(&|site| site.data.path = copy.clone()), before);
        assert_ne!(with(&|site| site.data.validation_fraction = 0.5), before);
        let few = |rows: usize| with(&|site| (site.tell.statistics, site.tell.min_rows) = (true, rows));
        assert_ne!(few(3), few(7));
        let test = dir.path().join("test.csv");
        fs::write(&test, TREES.to_owned() + "6,oak,1\n").unwrap();
        let of_tests = || with(&|site| site.data.test_path = test.display().to_string());
        let first = of_tests();
        assert_ne!(first, before);
        fs::write(&test, TREES.to_owned() + "6,alder,1\n").unwrap();
        assert_ne!(of_tests(), first);
    }

    #[test]
    fn the_table_has_the_groups_of_the_rows_which_are_in_one_set_each() {
        // 20 patients with one to three visits.
        let visits = (0..20).flat_map(|patient| vec![patient; 1 + patient % 3]);
        let text: String =
            visits.enumerate().map(|(row, patient)| format!("P{patient},{row},{}\n", ["no", "yes"][row % 2])).collect();
        let (_dir, mut site) = place(&format!("patient,ph,sick\n{text}"), Task::Classification, "sick");
        site.data.reading.group_column = "patient".into();
        site.data.calibration_fraction = 0.125;
        let mut read = SiteRows::read(&site).unwrap();
        let groups = |rows: &Dataset| rows.groups.iter().flatten().copied().collect::<BTreeSet<usize>>();
        let sets = [&read.train, &read.validation, &read.calibration, &read.test].map(groups);
        // A fifth of 20 patients for the test, a quarter and an eighth of the other 16 for the others.
        assert_eq!(sets.each_ref().map(BTreeSet::len), [10, 4, 2, 4]);
        assert_eq!(sets.iter().flatten().collect::<BTreeSet<_>>().len(), 20);
        read.keep(&site).unwrap();
        assert_same(&from_table(&site).unwrap(), &read);

        // Ten patients, and more rows than these: sums are told of ten and not of eleven.
        assert!(read.train.rows() > 10);
        let told = |min_rows: usize| {
            site.tell.min_rows = min_rows;
            describe(&site, &read, 7).sums.is_some()
        };
        assert_eq!([10, 11].map(told), [true, false]);
    }

    #[test]
    fn another_file_or_key_or_a_damaged_table_is_read_anew() {
        let (_dir, mut site) = place(TREES, Task::Classification, "tree");
        SiteRows::open(&site).unwrap().keep(&site).unwrap();
        assert!(from_table(&site).is_some());
        site.data.validation_fraction = 0.5;
        assert!(from_table(&site).is_none());
        site.data.validation_fraction = 0.25;
        fs::write(&site.data.path, TREES.replace("-7", "-8")).unwrap();
        assert!(from_table(&site).is_none());
        // Rows that were read before a file changed are not kept for it, whichever of the two it is.
        let test = site.state.with_file_name("test.csv");
        fs::write(&test, TREES).unwrap();
        let with_test = SiteConfig {
            data: SiteData { test_path: test.display().to_string(), ..site.data.clone() },
            ..site.clone()
        };
        let mut early = SiteRows::read(&with_test).unwrap();
        fs::write(&test, TREES.replace("0.25", "0.5")).unwrap();
        early.keep(&with_test).unwrap();
        assert!(from_table(&with_test).is_none());
        let mut read = SiteRows::open(&site).unwrap();
        read.keep(&site).unwrap();
        assert_same(&from_table(&site).unwrap(), &read);
        let table = fs::read_dir(site.state.join(ROWS)).unwrap().map(|entry| entry.unwrap().path());
        let table = table.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
        let mut bytes = fs::read(&table).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&table, bytes).unwrap();
        assert!(from_table(&site).is_none());
        assert_same(&SiteRows::open(&site).unwrap(), &read);
    }
}
