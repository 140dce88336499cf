//! The data sets that a figure needs, and whether they are on disk.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::datasets::registry::{find, is_usable, status};

/// A data set that a figure needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    /// The data set's kind, with the set within the kind where it has several.
    pub name: String,
    /// The data set's kind.
    pub kind: String,
    /// Whether this program supports the data set.
    pub known: bool,
    /// The files that are missing, or damaged; empty if the data set is complete.
    pub missing: Vec<PathBuf>,
    /// Whether `fedstein data fetch` can get it.
    pub fetchable: bool,
}

impl Needed {
    /// The data set that a `[data]` section needs.
    pub fn of(data: &Table, data_dir: &Path) -> Self {
        let word = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, set) = (word("kind"), word("set"));
        let registered = find(&kind).ok();
        let files = registered.map(|known| status(known, data_dir)).unwrap_or_default();
        // For a kind with several sets, the files are named after the set.
        let stem = format!("{set}.");
        let of_set = |path: &str| path.rsplit('/').next().is_some_and(|file| file.starts_with(&stem));
        let divided = files.iter().any(|(file, _)| of_set(file.path));
        let files = || files.iter().filter(|(file, _)| !divided || of_set(file.path));
        let missing = files().filter(|(_, status)| !registered.is_some_and(|known| is_usable(known, status)));
        Self {
            name: if divided { format!("{kind} {set}") } else { kind.clone() },
            known: registered.is_some(),
            missing: missing.map(|(file, _)| data_dir.join(file.path)).collect(),
            fetchable: files().any(|(file, _)| !file.mirrors.is_empty()),
            kind,
        }
    }

    /// Whether the data set is complete on disk.
    pub fn is_here(&self) -> bool {
        self.known && self.missing.is_empty()
    }

    /// A short description of the state.
    pub fn state(&self) -> &'static str {
        match (self.known, self.missing.is_empty()) {
            (false, _) => "unknown",
            (true, true) => "here",
            (true, false) => "missing",
        }
    }

    /// One line of advice on a missing data set; `""` if it is complete.
    pub fn advice(&self) -> String {
        let Some(first) = self.missing.first() else {
            return if self.known { String::new() } else { format!("{}: this program does not know it", self.name) };
        };
        let how = match self.fetchable {
            true => format!("run `fedstein data fetch {}`", self.kind),
            false => format!("`fedstein data info {}` says where it comes from", self.kind),
        };
        format!("{}: looked for {}; {how}", self.name, first.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(data: &str, dir: &Path) -> Needed {
        Needed::of(&data.parse().unwrap(), dir)
    }

    #[test]
    fn missing_data_are_named_with_the_first_file_and_how_to_get_it() {
        let dir = tempfile::tempdir().unwrap();
        let mnist = needed("kind = \"mnist\"", dir.path());
        assert_eq!((mnist.state(), mnist.missing.len()), ("missing", 4));
        let advice = mnist.advice();
        assert!(advice.contains("mnist/train-images-idx3-ubyte.gz") && advice.contains("fedstein data fetch mnist"));
        // A download that was cut is fetched again.
        std::fs::create_dir(dir.path().join("mnist")).unwrap();
        std::fs::write(dir.path().join("mnist/train-images-idx3-ubyte.gz"), "cut").unwrap();
        assert_eq!(needed("kind = \"mnist\"", dir.path()).missing.len(), 4);
        // The data set in another supported file layout.
        std::fs::create_dir(dir.path().join("covertype")).unwrap();
        std::fs::write(dir.path().join("covertype/covtype.binary.csv"), "").unwrap();
        assert!(needed("kind = \"covertype\"", dir.path()).is_here());
    }

    #[test]
    fn generated_and_embedded_data_are_present_and_unknown_data_are_not() {
        let nowhere = Path::new("nowhere");
        for kind in ["digits", "twonorm", "mixture-1d"] {
            assert_eq!(needed(&format!("kind = \"{kind}\""), nowhere).advice(), "");
        }
        let unknown = needed("kind = \"martian\"\nset = \"a\"", nowhere);
        assert_eq!((unknown.state(), unknown.is_here(), unknown.name.as_str()), ("unknown", false, "martian"));
    }
}
