//! Whether what a server has agreed with all sites fits the rows of one site.

use std::collections::HashMap;

use thiserror::Error;

use crate::datasets::Dataset;
use crate::report::quoted;

/// Why a site cannot do what a server asks. A message names the client, and quotes no value of a row.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("client {client}: {problem}")]
pub struct Misfit {
    /// The client.
    pub client: usize,
    /// The problem, and a remedy.
    pub problem: String,
}

impl Misfit {
    pub(super) fn new(client: usize, problem: impl Into<String>) -> Self {
        Self { client, problem: problem.into() }
    }
}

/// The column of each agreed feature `[p]` in a site's own rows: by name, or by position where there are no names.
///
/// # Errors
/// Another number of features, other names, or names on one side alone.
pub(super) fn columns(
    client: usize,
    own: &Dataset,
    agreed: Option<&[String]>,
    width: usize,
) -> Result<Vec<usize>, Misfit> {
    let misfit = |problem: String| Err(Misfit::new(client, problem));
    if own.width() != width {
        return misfit(format!("it has {} features, all sites have agreed on {width}", own.width()));
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
        None => Err(Misfit::new(client, format!("it has no column `{}` for an agreed feature", quoted(name)))),
    };
    let columns: Vec<usize> = agreed.iter().map(place).collect::<Result<_, _>>()?;
    match columns.len() == width {
        true => Ok(columns),
        false => misfit(format!("{} names for {width} agreed features", columns.len())),
    }
}
