//! The manifest of one generation: `round-<R>.json`, which identifies the run and lists the checkpoint's files.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{CheckpointError, digest};

/// Version of the layout of manifests and states. Any change to what a half saves requires a new version.
const FORMAT: u64 = 7;

/// The properties that a run must share with the run that wrote the checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The resolved config: `section.key` → value as TOML.
    pub config: BTreeMap<String, String>,
    /// sha256 of the keys that change the result.
    pub config_sha256: String,
    /// sha256 of all training and test rows.
    pub data: String,
    /// sha256 of the assignment of rows to clients.
    pub partition: String,
    /// The parameters of a model that the program brought, one text for each block; `None` with the model of the config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_model: Option<Vec<String>>,
    /// The name of a client selection that the program brought; `None` with the one of the config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_selection: Option<String>,
}

/// A file of a generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The name of the file in the checkpoint's directory.
    pub file: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The sha256 of the content.
    pub sha256: String,
}

/// One generation of checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub(super) format: u64,
    /// Version of the program that wrote the checkpoint.
    pub(super) program: String,
    /// The last round that the checkpoint contains.
    pub round: usize,
    /// The identity of the run.
    pub identity: Identity,
    /// Length in bytes, after this round, of the run's files to which every round appends.
    pub logs: BTreeMap<String, u64>,
    /// The file of each part.
    pub(super) files: BTreeMap<String, Entry>,
}

impl Manifest {
    /// A generation without files.
    pub(super) fn new(round: usize, identity: Identity, logs: BTreeMap<String, u64>) -> Self {
        let program = env!("CARGO_PKG_VERSION").to_owned();
        Self { format: FORMAT, program, round, identity, logs, files: BTreeMap::new() }
    }

    /// The name of the manifest of a round.
    pub(super) fn name(round: usize) -> String {
        format!("round-{round}.json")
    }

    /// The round in a manifest's name; `None` for other names.
    pub(super) fn round_of(name: &str) -> Option<usize> {
        name.strip_prefix("round-")?.strip_suffix(".json")?.parse().ok()
    }

    /// The manifest as text: the content and its sha256.
    ///
    /// # Errors
    /// Serialisation fails; no value of this type causes that.
    pub fn to_text(&self) -> Result<String, CheckpointError> {
        let wrong = |error: serde_json::Error| CheckpointError::Content(error.to_string());
        let content = serde_json::to_value(self).map_err(wrong)?;
        let sha256 = digest::of_bytes(content.to_string().as_bytes());
        let text = serde_json::to_string_pretty(&json!({ "sha256": sha256, "checkpoint": content })).map_err(wrong)?;
        Ok(text + "\n")
    }

    /// Parses the text of [`Self::to_text`]; `path` is the file that errors name.
    ///
    /// # Errors
    /// [`CheckpointError::Format`] for another version; else an error that describes the damage.
    pub fn from_text(path: &Path, text: &str) -> Result<Self, CheckpointError> {
        let wrong = |reason: String| CheckpointError::Content(format!("{}: {reason}", path.display()));
        let mut value: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let sha256 = value["sha256"].as_str().unwrap_or_default().to_owned();
        let content = value.get_mut("checkpoint").map(Value::take).unwrap_or_default();
        // The content has no fractions, so serialising the parsed value again yields the bytes that were hashed.
        if digest::of_bytes(content.to_string().as_bytes()) != sha256 {
            return Err(wrong("its content does not have the sha256 that it names".into()));
        }
        match content["format"].as_u64() {
            Some(FORMAT) => serde_json::from_value(content).map_err(|error| wrong(error.to_string())),
            found => Err(CheckpointError::Format {
                path: path.to_path_buf(),
                found: found.unwrap_or_default(),
                expected: FORMAT,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let entry = Entry { file: "server-3.safetensors".into(), bytes: 7, sha256: "ab".into() };
        let config = [("rounds".to_owned(), "10".to_owned())].into();
        let identity = Identity { config, ..Identity::default() };
        let files = [("server".to_owned(), entry)].into();
        Manifest { files, ..Manifest::new(3, identity, [("selection.jsonl".to_owned(), 12)].into()) }
    }

    #[test]
    fn a_manifest_is_read_back_unchanged() {
        let text = manifest().to_text().unwrap();
        assert_eq!(Manifest::from_text("m".as_ref(), &text).unwrap(), manifest());
        assert_eq!(Manifest::round_of(&Manifest::name(12)), Some(12));
        assert_eq!(Manifest::round_of("server-12.safetensors"), None);
    }

    #[test]
    fn a_manifest_of_which_one_byte_has_changed_is_damaged() {
        let text = manifest().to_text().unwrap();
        for (from, to) in [("\"round\": 3", "\"round\": 4"), ("ab", "ac"), ("}", "")] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text);
            let error = Manifest::from_text("m".as_ref(), &changed).unwrap_err();
            assert!(matches!(error, CheckpointError::Content(_)), "{error}");
        }
    }

    #[test]
    fn another_format_is_named_and_not_reported_as_damage() {
        let text = Manifest { format: FORMAT + 1, ..manifest() }.to_text().unwrap();
        let error = Manifest::from_text("m".as_ref(), &text).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(&format!("format {}", FORMAT + 1)), "{error}");
    }
}
