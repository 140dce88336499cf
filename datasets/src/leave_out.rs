//! Natural clients that take no part in the training: their rows are the test rows, so that the scores are those at a client
//! that the model has never seen.

use crate::columns::{Places, text};
use crate::units::Units;
use crate::{DataError, Dataset};
use fedstein_schema::Literal::Texts;
use fedstein_schema::{Accepts, Key, first, key};
use std::collections::BTreeSet;

/// The number of clients that an error or a note lists.
const LISTED: usize = 20;

/// The key `leave_out`.
pub(crate) const LEAVE_OUT: Key = key(
    "leave_out",
    Accepts::Clients,
    Texts(&[]),
    "Natural clients that take no part in the training: all of their rows are test rows, and no others; `test_fraction` and `split` are then not used. `[]`: none.",
);

/// The training and test rows where clients are left out.
#[derive(Debug)]
pub(crate) struct LeftOut {
    /// The rows of the other clients, in the order of the data.
    pub train: Dataset,
    /// All rows of the clients that are left out, in the order of the data.
    pub test: Dataset,
    /// Notes for the reader of results, one sentence each.
    pub notes: Vec<String>,
}

/// Splits off all rows of the clients with these names, of which there is at least one.
///
/// A row of another client is not trained on where its [group](Dataset::groups) has a row at a client that is left out.
///
/// # Errors
/// The data have no clients, or none of a name; no row is left to train on.
pub(crate) fn split(data: &Dataset, names: &[String]) -> Result<LeftOut, DataError> {
    let refuse = |problem: String| DataError::config("data.leave_out", format!("{names:?}"), problem);
    let of_row = data
        .clients
        .as_deref()
        .ok_or_else(|| refuse("needs the client of each row: `data.client_column` names its column".to_owned()))?;
    let present: BTreeSet<usize> = of_row.iter().copied().collect();
    let clients: Vec<usize> = present.into_iter().collect();
    let known: Vec<String> = clients.iter().map(|client| data.client_name(*client)).collect();
    let places = Places::of(&known);
    let mut left_out = BTreeSet::new();
    for name in names {
        // Cells have no blanks around them either.
        let place = places.find(name.trim()).ok_or_else(|| {
            refuse(format!("no row is of a client `{}`; there are {}", text(name.as_bytes()), listed(known.iter())))
        })?;
        left_out.insert(clients[place]);
    }
    let test: Vec<usize> = (0..data.rows()).filter(|row| left_out.contains(&of_row[*row])).collect();
    // The model would know a group of which it has seen rows at another client.
    let (mut train, mut shared) = (Vec::new(), 0);
    for unit in Units::of(data, 0..data.rows()).list() {
        let others: Vec<usize> = unit.iter().copied().filter(|row| !left_out.contains(&of_row[*row])).collect();
        match others.len() == unit.len() {
            true => train.extend(others),
            false => shared += others.len(),
        }
    }
    train.sort_unstable();
    if train.is_empty() {
        let problem = match shared {
            0 => "leaves no row to train on; leave fewer clients out",
            _ => {
                "leaves no row to train on: every group of rows (data.group_column) has some at a client that is left out; \
                 leave other clients out"
            }
        };
        return Err(refuse(problem.to_owned()));
    }
    let absent = clients.iter().zip(&known).filter(|(client, _)| left_out.contains(client)).map(|(_, name)| name);
    let mut notes = vec![format!(
        "the test rows are those of clients that take no part in the training (data.leave_out): {}",
        listed(absent)
    )];
    if shared > 0 {
        notes.push(format!(
            "{shared} row(s) of other clients are neither trained on nor tested: their groups (data.group_column) have rows \
             at a client of data.leave_out"
        ));
    }
    Ok(LeftOut { train: data.select(&train), test: data.select(&test), notes })
}

/// The first names of clients.
fn listed<'a>(names: impl Iterator<Item = &'a String>) -> String {
    first(LISTED, names.map(|name| format!("`{}`", text(name.as_bytes()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Targets;
    use ndarray::Array2;

    /// Rows 0, 1, 2, …, which are their only feature.
    fn numbered(clients: &[usize], names: Option<&[&str]>) -> Dataset {
        let features = Array2::from_shape_fn((clients.len(), 1), |(row, _)| row as f32);
        let targets = Targets::Real { values: vec![0.0; clients.len()] };
        let data = Dataset::new("numbered", features, targets).unwrap().with_clients(clients.to_vec()).unwrap();
        Dataset { client_names: names.map(|names| names.iter().map(|&name| name.to_owned()).collect()), ..data }
    }

    fn rows_of(data: &Dataset) -> Vec<usize> {
        data.features.iter().map(|&x| x as usize).collect()
    }

    fn out(data: &Dataset, names: &[&str]) -> Result<LeftOut, DataError> {
        split(data, &names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn all_rows_of_the_clients_are_test_rows_and_no_others() {
        let data = numbered(&[1, 0, 2, 1, 0], Some(&["east", "north", "south"]));
        let LeftOut { train, test, notes } = out(&data, &["north"]).unwrap();
        assert_eq!((rows_of(&train), rows_of(&test)), (vec![1, 2, 4], vec![0, 3]));
        assert_eq!(
            notes,
            ["the test rows are those of clients that take no part in the training (data.leave_out): `north`"]
        );
        let LeftOut { train, test, .. } = out(&data, &["south", "east", "south"]).unwrap();
        assert_eq!((rows_of(&train), rows_of(&test)), (vec![0, 3], vec![1, 2, 4]));
    }

    #[test]
    fn clients_without_names_are_numbers() {
        let LeftOut { train, test, .. } = out(&numbered(&[7, 3, 7], None), &["7"]).unwrap();
        assert_eq!((rows_of(&train), rows_of(&test)), (vec![1], vec![0, 2]));
    }

    #[test]
    fn a_number_may_be_spelled_in_another_way_where_all_clients_are_numbers() {
        let data = numbered(&[0, 1, 2], Some(&["1.0", "2", "900000000000003019"]));
        assert_eq!(rows_of(&out(&data, &["1", " 2.0 "]).unwrap().test), [0, 1]);
        // Neither codes nor numbers that differ beyond the digits of a float are another spelling.
        for other in ["02", "900000000000003029"] {
            assert!(out(&data, &[other]).is_err(), "{other}");
        }
        let codes = numbered(&[0, 1], Some(&["2", "02"]));
        assert_eq!(rows_of(&out(&codes, &["02"]).unwrap().test), [1]);
    }

    #[test]
    fn a_group_of_which_a_row_is_left_out_is_not_trained_on() {
        // Group 5 has rows 0 and 1 at both clients, group 6 rows 2 and 3 at client 1.
        let data = numbered(&[0, 1, 1, 1, 0], None).with_groups(vec![5, 5, 6, 6, 7]).unwrap();
        let LeftOut { train, test, notes } = out(&data, &["0"]).unwrap();
        assert_eq!((rows_of(&train), rows_of(&test)), (vec![2, 3], vec![0, 4]));
        assert!(notes[1].starts_with("1 row(s) of other clients are neither trained on nor tested"));
    }

    #[test]
    fn names_that_do_not_fit_are_refused() {
        let data = numbered(&[1, 0, 0], Some(&["east", "north"]));
        let message = out(&data, &["nort"]).unwrap_err().to_string();
        assert_eq!(message, "data.leave_out = [\"nort\"]: no row is of a client `nort`; there are `east`, `north`");
        let message = out(&data, &["east", "north"]).unwrap_err().to_string();
        assert!(message.contains("leaves no row to train on"), "{message}");
        // Both groups have a row at client 0.
        let groups = numbered(&[0, 1, 0, 1], None).with_groups(vec![5, 5, 6, 6]).unwrap();
        let message = out(&groups, &["0"]).unwrap_err().to_string();
        assert!(message.contains("leaves no row to train on: every group of rows (data.group_column)"), "{message}");
        let without = Dataset { clients: None, ..data };
        let message = out(&without, &["east"]).unwrap_err().to_string();
        assert!(message.contains("`data.client_column` names its column"), "{message}");
        // Of so many clients the error lists some.
        let message = out(&numbered(&(0..23).collect::<Vec<_>>(), None), &["23"]).unwrap_err().to_string();
        assert!(message.ends_with("`19` and 3 more"), "{message}");
    }
}
