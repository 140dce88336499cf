//! `by-column`: the clients that the data come with, in their order. A client without training rows is left out.

use super::Partition;
use crate::{DataError, Dataset};

pub(super) fn deal(train: &Dataset) -> Result<Partition, DataError> {
    let refuse = |problem: String| DataError::Partition { kind: "by-column", problem };
    let of_row = train.clients.as_ref().ok_or_else(|| {
        let name = &train.name;
        refuse(format!("`{name}` does not come with clients; vehicle does, and a csv can, with data.client_column"))
    })?;
    let Some(&last) = of_row.iter().max() else {
        return Err(refuse("there are no training rows".to_owned()));
    };
    // A BTreeMap and not a vector of `last` lists: the numbers need not be close together.
    let mut clients = std::collections::BTreeMap::<usize, Vec<usize>>::new();
    for (row, &client) in of_row.iter().enumerate() {
        clients.entry(client).or_default().push(row);
    }
    let mut notes = Vec::new();
    let absent = last + 1 - clients.len();
    if absent > 0 {
        notes.push(format!("{absent} of the data's clients hold no training row and are left out"));
    }
    Ok(Partition::new(clients.into_values().collect(), notes))
}
