//! What each column of a user's table is: target, client, a feature of some kind, or none of these.

use super::csv::CsvOptions;
use super::lines::Lines;
use crate::DataError;
use crate::columns::{CellKind, is_missing};
use std::collections::HashMap;
use std::path::Path;

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The target.
    Target,
    /// The natural client.
    Client,
    /// No feature.
    None,
    /// A feature.
    Feature(CellKind),
}

/// Finds the header, and the role of each column.
///
/// # Arguments
/// - `texts`: whether each column was found to hold texts; empty where none was looked at.
///
/// # Errors
/// A column that a key names does not exist or is named twice, or no column is left for the features.
pub(super) fn roles(lines: &mut Lines, options: &CsvOptions, texts: &[bool]) -> Result<Vec<Role>, DataError> {
    let reading = options.reading;
    let others = reading.no_features().into_iter().chain(reading.named_features());
    let keys: Vec<&str> = others.flat_map(|(_, columns)| columns).map(String::as_str).collect();
    lines.header(options.header, &[&[options.target, options.client], &keys[..]].concat(), &reading.notation());

    let mut named = Named { roles: vec![Role::Feature(CellKind::Number); lines.width], by: HashMap::new() };
    let target = lines.column(options.target)?;
    named.name(lines, target, "data.target", Role::Target)?;
    if !options.client.is_empty() {
        let client = lines.column(options.client)?;
        if client == target {
            return Err(lines.columns(format!("column `{}` cannot be both target and client", options.client)));
        }
        named.name(lines, client, "data.client_column", Role::Client)?;
    }
    for (key, columns) in reading.no_features() {
        for column in columns {
            match lines.find(column)? {
                Some(column) => named.name(lines, column, key, Role::None)?,
                None if options.is_second => {}
                None => return Err(lines.no_column_of(key, column)),
            }
        }
    }
    let kinds = [CellKind::Category, CellKind::Boolean, CellKind::Date];
    for ((key, columns), kind) in reading.named_features().into_iter().zip(kinds) {
        for column in columns {
            let found = lines.find(column)?.ok_or_else(|| lines.no_column_of(key, column))?;
            named.name(lines, found, key, Role::Feature(kind))?;
        }
    }
    let mut roles = named.roles;
    for (role, holds_texts) in roles.iter_mut().zip(texts) {
        if *holds_texts && *role == Role::Feature(CellKind::Number) {
            *role = Role::Feature(CellKind::Category);
        }
    }
    match roles.iter().any(|role| matches!(role, Role::Feature(_))) {
        true => Ok(roles),
        false => Err(lines.columns("no column is left for the features".to_owned())),
    }
}

/// The roles, and the key of each column that is named.
struct Named {
    roles: Vec<Role>,
    by: HashMap<usize, &'static str>,
}

impl Named {
    fn name(&mut self, lines: &Lines, column: usize, key: &'static str, role: Role) -> Result<(), DataError> {
        if let Some(before) = self.by.insert(column, key) {
            let keys = if before == key { format!("twice by {key}") } else { format!("by {before} and by {key}") };
            return Err(lines.columns(format!("column `{}` is named {keys}; name it once", lines.called(column))));
        }
        self.roles[column] = role;
        Ok(())
    }
}

/// The columns of a file that hold texts, for `categorical = "auto"`: those with a cell that is neither missing nor a
/// number. Empty where the config names the columns.
///
/// # Errors
/// The file cannot be read, or not twice.
pub(super) fn by_content(path: &Path, options: &CsvOptions) -> Result<Vec<bool>, DataError> {
    if !options.reading.categorical.is_automatic() {
        return Ok(Vec::new());
    }
    // A directory is refused like any other that is no table.
    if !path.is_file() && !path.is_dir() {
        let problem = "reads the file twice, which must be a regular file then; name the columns instead";
        return Err(DataError::config("data.categorical", "auto", problem));
    }
    let mut lines = Lines::open(path, options.delimiter)?;
    let roles = roles(&mut lines, options, &[])?;
    let notation = options.reading.notation();
    let mut texts = vec![false; lines.width];
    while lines.next()? {
        for (column, found) in texts.iter_mut().enumerate().filter(|(_, found)| !**found) {
            let field = lines.field(column);
            let is_number = std::str::from_utf8(field).is_ok_and(|cell| notation.number(cell).is_some());
            *found = roles[column] == Role::Feature(CellKind::Number) && !is_missing(field) && !is_number;
        }
    }
    Ok(texts)
}
