//! What a user gives: a config file, and what the command line changes in it.

/// A config file: the name that messages give it, and its text.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// As messages name it.
    pub name: &'a str,
    /// TOML.
    pub text: &'a str,
}

/// What the command line changes in a config.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `key=value` of each `--set`, in order; the last of equal keys wins.
    pub set: Vec<String>,
    /// `--seed`
    pub seed: Option<u64>,
    /// `--backend`
    pub backend: Option<String>,
}
