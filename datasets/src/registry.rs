//! The known data sets, and the state of their files in the data directory. Each set is described in its own file in
//! [`crate::source`].

use crate::DataError;
use crate::source::DATA_SETS;
pub use crate::source::{DataFile, DataSet, Origin};
use std::path::{Path, PathBuf};

/// The state of one file in the data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileStatus {
    /// The file is present, with the right size if that is known.
    Present,
    /// The file is missing, but this other form of it is present and can be used.
    Alternative(PathBuf),
    /// The file is missing, but this file with a part of the set's rows is present and can be used.
    Part(PathBuf),
    /// The file is missing.
    Missing,
    /// The file has another size: it is damaged, or not the publisher's. In a manually downloaded set it may be the
    /// user's own copy, which is read nevertheless.
    WrongSize {
        /// The size of the file in bytes.
        bytes: u64,
    },
}

/// All data sets, in the order of the kinds of `[data]`.
pub fn sets() -> &'static [DataSet] {
    DATA_SETS
}

/// The data set of this name.
///
/// # Errors
/// [`DataError::UnknownSet`] where there is none.
pub fn find(name: &str) -> Result<&'static DataSet, DataError> {
    DATA_SETS.iter().find(|set| set.name == name).ok_or_else(|| DataError::UnknownSet {
        name: name.to_owned(),
        known: DATA_SETS.iter().map(|set| set.name).collect::<Vec<_>>().join(", "),
    })
}

/// The state of each file of a set in `data_dir`. Only sizes are checked; `fetch` verifies checksums.
pub fn status(set: &DataSet, data_dir: &Path) -> Vec<(DataFile, FileStatus)> {
    let state = |file: &DataFile| match std::fs::metadata(data_dir.join(file.path)) {
        Ok(meta) if meta.is_file() && (meta.len() == file.bytes || !file.is_known()) => FileStatus::Present,
        Ok(meta) if meta.is_file() => FileStatus::WrongSize { bytes: meta.len() },
        _ => {
            let first = |paths: &[&str]| paths.iter().map(|path| data_dir.join(path)).find(|path| path.is_file());
            let other = first(file.alternatives).map(FileStatus::Alternative);
            other.or_else(|| first(file.part).map(FileStatus::Part)).unwrap_or(FileStatus::Missing)
        }
    };
    set.files.iter().map(|file| (*file, state(file))).collect()
}

/// Whether a file of a set in this state is read: a file of another size only where it may be the user's own copy.
pub fn is_usable(set: &DataSet, status: &FileStatus) -> bool {
    match status {
        FileStatus::Present | FileStatus::Alternative(_) | FileStatus::Part(_) => true,
        FileStatus::WrongSize { .. } => set.manual_download.is_some(),
        FileStatus::Missing => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_mirrors_a_checksum_and_a_place_below_its_set() {
        for set in sets() {
            assert_eq!(set.files.is_empty(), set.origin != Origin::Download, "{}", set.name);
            for file in set.files {
                assert!(file.path.starts_with(&format!("{}/", set.name)), "{}", file.path);
                match set.manual_download {
                    Some(how) => assert!(file.mirrors.is_empty() && how.contains(set.name), "{}", file.path),
                    None => {
                        assert!(file.mirrors.len() >= 2 && file.mirrors.iter().all(|m| m.starts_with("http")));
                        assert!(file.is_known(), "{}", file.path);
                    }
                }
                let hexadecimal = file.sha256.bytes().all(|b| b"0123456789abcdef".contains(&b));
                assert!(
                    !file.is_known() || (file.sha256.len() == 64 && hexadecimal && file.bytes > 0),
                    "{}",
                    file.path
                );
            }
        }
    }

    #[test]
    fn manually_downloaded_sets_are_reported_file_by_file() {
        let dir = tempfile::tempdir().unwrap();
        let states = |name| -> Vec<(DataFile, FileStatus)> { status(find(name).unwrap(), dir.path()) };
        assert_eq!((states("raetsch").len(), states("uci-regression").len(), states("vehicle").len()), (13, 18, 1));
        for set in ["raetsch", "year-prediction"] {
            std::fs::create_dir(dir.path().join(set)).unwrap();
        }
        std::fs::write(dir.path().join("raetsch/heart.csv"), "mine").unwrap();
        std::fs::write(dir.path().join("raetsch/image.csv.gz"), "mine").unwrap();
        for (file, state) in states("raetsch") {
            let expected = match file.path {
                "raetsch/heart.csv.gz" => FileStatus::Alternative(dir.path().join("raetsch/heart.csv")),
                "raetsch/image.csv.gz" => FileStatus::WrongSize { bytes: 4 },
                _ => FileStatus::Missing,
            };
            assert_eq!(state, expected, "{}", file.path);
        }
        // The size of this file is not known.
        std::fs::write(dir.path().join("year-prediction/YearPredictionMSD.txt"), "2001").unwrap();
        assert_eq!(states("year-prediction")[0].1, FileStatus::Present);
        assert!(!states("year-prediction")[0].0.is_known());
    }

    #[test]
    fn names_are_found_and_the_error_for_unknown_ones_lists_the_known() {
        assert_eq!(find("digits").unwrap().origin, Origin::Embedded);
        let message = find("minst").unwrap_err().to_string();
        assert!(message.contains("`minst`") && message.contains("mnist, fashion-mnist, cifar10"), "{message}");
    }

    #[test]
    fn a_status_is_present_alternative_missing_or_wrong_size() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: usize| std::fs::write(dir.path().join(name), vec![0; bytes]).unwrap();
        std::fs::create_dir(dir.path().join("mnist")).unwrap();
        write("mnist/train-labels-idx1-ubyte.gz", 28881);
        write("mnist/t10k-labels-idx1-ubyte.gz", 5);
        write("mnist/t10k-images-idx3-ubyte", 7);
        let states: Vec<FileStatus> =
            status(find("mnist").unwrap(), dir.path()).into_iter().map(|(_, state)| state).collect();
        assert_eq!(
            states,
            [
                FileStatus::Missing,
                FileStatus::Present,
                FileStatus::Alternative(dir.path().join("mnist/t10k-images-idx3-ubyte")),
                FileStatus::WrongSize { bytes: 5 },
            ]
        );
    }
}
