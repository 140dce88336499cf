//! Whether what a server has agreed with all sites fits the rows of one of them.

use std::collections::HashMap;
use std::fmt;

use thiserror::Error;

use crate::datasets::Dataset;
use crate::report::quoted;

/// Why rows do not fit what has been agreed. A message names who has them, and quotes no value of a row.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{holder}: {problem}")]
pub struct Misfit {
    /// Who has the rows.
    pub holder: Holder,
    /// The problem, and a remedy.
    pub problem: String,
}

/// Who has rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// The client k.
    Client(usize),
    /// The server, of its own test rows.
    Server,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(client) => write!(f, "client {client}"),
            Self::Server => f.write_str("the file of data.test_path"),
        }
    }
}

impl Misfit {
    pub(super) fn new(holder: Holder, problem: impl Into<String>) -> Self {
        Self { holder, problem: problem.into() }
    }
}

/// The column of each agreed feature `[p]` in a site's own rows: by name, or by position where there are no names.
///
/// # Errors
/// Another number of features, other names, or names on one side alone.
pub(super) fn columns(
    holder: Holder,
    own: &Dataset,
    agreed: Option<&[String]>,
    width: usize,
) -> Result<Vec<usize>, Misfit> {
    let misfit = |problem: String| Err(Misfit::new(holder, problem));
    if own.width() != width {
        let counts = format!("it has {} features, all sites have agreed on {width}", own.width());
        let (Some(names), Some(agreed)) = (&own.feature_names, agreed) else { return misfit(counts) };
        let absent = agreed.iter().find(|name| !names.contains(name)).map(|name| ("it has no column", name));
        let stranger = || Some(("nobody agreed on its column", names.iter().find(|name| !agreed.contains(name))?));
        return misfit(match absent.or_else(stranger) {
            Some((problem, name)) => format!("{counts}; {problem} `{}`", quoted(name)),
            None => counts,
        });
    }
    let (own, agreed) = match (&own.feature_names, agreed) {
        (Some(own), Some(agreed)) => (own, agreed),
        (None, None) => return Ok((0..width).collect()),
        (Some(_), None) => return misfit("its file has a header, the agreed features have no names".into()),
        (None, Some(_)) => return misfit("its file has no header, the agreed features have names".into()),
    };
    let mut places: HashMap<&str, usize> = own.iter().map(String::as_str).zip(0..).collect();
    // A name that is agreed twice is not found the second time, so that each column is taken once.
    let place = |name: &String| match places.remove(name.as_str()) {
        Some(column) => Ok(column),
        None => Err(Misfit::new(holder, format!("it has no column `{}` for an agreed feature", quoted(name)))),
    };
    let columns: Vec<usize> = agreed.iter().map(place).collect::<Result<_, _>>()?;
    match columns.len() == width {
        true => Ok(columns),
        false => misfit(format!("{} names for {width} agreed features", columns.len())),
    }
}
