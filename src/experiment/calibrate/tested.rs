//! What the map and the sets do on test rows.

use crate::error::RunError;
use crate::federation::labelled::{Labelled, SetResults, test_stream};
use crate::metrics::{ClientScores, Evaluation};
use crate::protocol::{ClientId, TestForm};
use crate::report::maps::ProbabilityMap;

/// What a client's test rows, or all of them, gave.
pub(super) struct Tested {
    pub client: Option<ClientId>,
    pub before: ClientScores,
    pub after: Option<ClientScores>,
    pub sets: Option<SetResults>,
}

impl Tested {
    pub fn of(
        labelled: &Labelled,
        (form, map): (&TestForm, Option<&ProbabilityMap>),
        bins: usize,
    ) -> Result<Self, RunError> {
        Ok(Self {
            client: None,
            before: labelled.sums(bins)?,
            after: map.map(|map| labelled.mapped(map)?.sums(bins)).transpose()?,
            sets: form.sets.as_ref().map(|sets| labelled.sets(sets, test_stream(None))).transpose()?,
        })
    }

    /// The scores of all test rows before and after the map, where they are known.
    pub fn of_all(tested: &[Self]) -> Option<(Evaluation, Evaluation)> {
        let all = tested.iter().find(|tested| tested.client.is_none())?;
        Some((Evaluation::of_sums_of_means(&all.before), Evaluation::of_sums_of_means(all.after.as_ref()?)))
    }

    /// All clients together; `None` where no client has test rows.
    pub fn pooled(clients: &[Self]) -> Option<Self> {
        let (first, others) = clients.split_first()?;
        let mut all =
            Self { client: None, before: first.before.clone(), after: first.after.clone(), sets: first.sets.clone() };
        for other in others {
            all.before.merge(&other.before).ok()?;
            if let (Some(all), Some(more)) = (&mut all.after, &other.after) {
                all.merge(more).ok()?;
            }
            if let (Some(all), Some(more)) = (&mut all.sets, &other.sets) {
                all.all.merge(&more.all);
                all.classes.iter_mut().zip(&more.classes).for_each(|(all, more)| all.merge(more));
            }
        }
        Some(all)
    }
}
