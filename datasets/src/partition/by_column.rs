//! `by-column`: the natural clients of the data, in their order. A client without training rows is left out.

use super::Partition;
use super::kind::{CALIBRATION, Scheme, SchemeProperties, VALIDATION};
use super::test_rows::TestRows;
use crate::columns::text;
use crate::{DataError, Dataset};
use fedstein_schema::Kind;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// The number of clients that a note names.
const LISTED: usize = 10;

/// The natural clients of the data.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ByColumn {}

impl Scheme for ByColumn {
    const KIND: Kind = Kind {
        name: "by-column",
        about: "The natural clients of the data: those of `vehicle`, or of `csv` with `data.client_column`.",
        keys: &[VALIDATION, CALIBRATION],
    };
    const PROPERTIES: SchemeProperties = SchemeProperties { natural_clients: true, ..SchemeProperties::PLAIN };
    const TEST_ROWS: TestRows = TestRows::OfNaturalClient;

    fn clients(&self) -> Option<usize> {
        None
    }

    fn assign(&self, train: &Dataset, _: &mut impl Rng) -> Result<Partition, DataError> {
        let refuse = |problem: String| DataError::Partition { kind: Self::KIND.name, problem };
        let of_row = train.clients.as_ref().ok_or_else(|| {
            let name = &train.name;
            refuse(format!(
                "`{name}` does not come with clients; vehicle does, for example, and a csv can, with data.client_column"
            ))
        })?;
        let Some(last) = of_row.iter().max() else {
            return Err(refuse("there are no training rows".to_owned()));
        };
        // A BTreeMap, because the numbers of the clients may have large gaps.
        let mut clients = std::collections::BTreeMap::<usize, Vec<usize>>::new();
        for (row, &client) in of_row.iter().enumerate() {
            clients.entry(client).or_default().push(row);
        }
        let mut notes = Vec::new();
        let known = train.client_names.as_ref().map_or(last.saturating_add(1), Vec::len);
        let absent = known - clients.len();
        if absent > 0 {
            let names =
                train.client_names.iter().flatten().enumerate().filter(|(client, _)| !clients.contains_key(client));
            let names: Vec<String> =
                names.take(LISTED).map(|(_, name)| format!("`{}`", text(name.as_bytes()))).collect();
            let more = if absent > LISTED { ", …" } else { "" };
            let listed = if names.is_empty() { String::new() } else { format!(" ({}{more})", names.join(", ")) };
            notes.push(format!("{absent} of the data's clients hold no training row and are left out{listed}"));
        }
        // Clients are numbered without gaps; where the data's numbers have some, they are names.
        let are_numbered = clients.keys().copied().eq(0..clients.len());
        let names = match train.client_names.is_none() && are_numbered {
            true => Vec::new(),
            false => clients.keys().map(|&client| train.client_name(client)).collect(),
        };
        Ok(Partition { names, ..Partition::new(clients.into_values().collect(), notes) })
    }
}
