//! The errors of a config. Each message says in one or two sentences where the mistake is and which values are allowed.

use std::path::PathBuf;

/// A config that cannot be used. No experiment has begun when it is returned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the file `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{at}, column {column}: not valid TOML: {message}")]
    Syntax {
        /// File and line.
        at: String,
        /// Column, from 1.
        column: usize,
        /// The parser's message.
        message: String,
    },
    /// `--set` without `=`.
    #[error("--set takes `key=value`, such as `algorithm.particles=50`; `{given}` has no `=`")]
    NotAnAssignment {
        /// The text that was typed.
        given: String,
    },
    /// A section that does not exist.
    #[error("{at}: unknown section [{section}]{hint}; the sections are {known}")]
    UnknownSection {
        /// File and line, or the option.
        at: String,
        /// The section.
        section: String,
        /// "; did you mean …?"
        hint: String,
        /// The sections that exist.
        known: String,
    },
    /// A key that does not exist.
    #[error("{at}: unknown key `{path}`{hint}; {known}")]
    UnknownKey {
        /// File and line, or the option.
        at: String,
        /// `section.key`.
        path: String,
        /// "; did you mean …?"
        hint: String,
        /// The keys that exist.
        known: String,
    },
    /// A section's name used as a key.
    #[error("{at}: `{section}` is a section, not a key; write its keys one by one, such as `{example}`")]
    SectionAsKey {
        /// File and line, or the option.
        at: String,
        /// The section.
        section: String,
        /// One of its keys.
        example: String,
    },
    /// A key that another kind uses.
    #[error("{at}: `{path}` is not used by {section} kind `{kind}`; it belongs to {kinds}")]
    NotUsed {
        /// File and line, or the option.
        at: String,
        /// `section.key`.
        path: String,
        /// The section.
        section: Box<str>,
        /// The chosen kind.
        kind: Box<str>,
        /// The kinds that use it.
        kinds: String,
    },
    /// A value of the wrong type or out of range.
    #[error("{at}: `{path}` cannot be {given}; it must be {allowed}")]
    Value {
        /// File and line, or the option.
        at: String,
        /// `section.key`.
        path: String,
        /// The value that was given.
        given: String,
        /// The allowed values.
        allowed: String,
    },
    /// A key without a default that was not given.
    #[error("{at}: `{path}` is missing{}. It must be {allowed}", needed_by(section, kind))]
    Missing {
        /// The file.
        at: String,
        /// `section.key`.
        path: String,
        /// The section.
        section: Box<str>,
        /// The chosen kind.
        kind: Box<str>,
        /// The allowed values.
        allowed: String,
    },
    /// Keys that are valid one by one but contradict each other.
    #[error("{}{problem}", before(at))]
    Conflict {
        /// File and line, or the option; empty where there is none.
        at: String,
        /// The keys, and a valid setting.
        problem: String,
    },
    /// The table of keys and the typed config disagree: a mistake in this program.
    #[error("the resolved config does not fit the program's own types (please report this): {0}")]
    Internal(String),
}

impl ConfigError {
    /// A conflict of keys whose place is not known.
    pub fn conflict(problem: impl Into<String>) -> Self {
        Self::Conflict { at: String::new(), problem: problem.into() }
    }

    /// The key that the error is about, `section.key`; `None` where it is not about one key.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::UnknownKey { path, .. }
            | Self::NotUsed { path, .. }
            | Self::Value { path, .. }
            | Self::Missing { path, .. } => Some(path),
            Self::SectionAsKey { section, .. } | Self::UnknownSection { section, .. } => Some(section),
            Self::Read { .. }
            | Self::Syntax { .. }
            | Self::NotAnAssignment { .. }
            | Self::Conflict { .. }
            | Self::Internal(_) => None,
        }
    }

    /// The same error with another place, for a key that was found elsewhere than in the text that was read.
    #[must_use]
    pub fn placed(mut self, place: &str) -> Self {
        match &mut self {
            Self::Syntax { at, .. }
            | Self::UnknownSection { at, .. }
            | Self::UnknownKey { at, .. }
            | Self::SectionAsKey { at, .. }
            | Self::NotUsed { at, .. }
            | Self::Value { at, .. }
            | Self::Missing { at, .. }
            | Self::Conflict { at, .. } => place.clone_into(at),
            Self::Read { .. } | Self::NotAnAssignment { .. } | Self::Internal(_) => {}
        }
        self
    }
}

/// A place before a message; nothing where there is none.
fn before(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("{at}: ") }
}

/// The kind that needs a key, to complete "is missing"; empty for a section without kinds.
fn needed_by(section: &str, kind: &str) -> String {
    if kind.is_empty() { String::new() } else { format!(": [{section}] kind `{kind}` needs it") }
}
