//! The user's input: a config file, and the overrides of the command line.

/// A config file: its name in messages, and its text.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The name in messages.
    pub name: &'a str,
    /// The text, in TOML.
    pub text: &'a str,
}

/// The values of a config that the command line overrides.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `key=value` of each `--set`, in order; the last of equal keys wins.
    pub set: Vec<String>,
    /// `--seed`
    pub seed: Option<u64>,
    /// `--backend`
    pub backend: Option<String>,
}
