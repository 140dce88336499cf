//! `superclass-labels`: every client gets c distinct superclasses, drawn from shuffled lists of all superclasses, and
//! of each one class, drawn from shuffled lists of its classes; a class's rows, shuffled, are shared equally by its
//! holders. (The FedWBA paper's CIFAR-100, c = 10.)

use super::Partition;
use super::classes::Classes;
use super::holders::{self, Shares};
use super::kind::{CALIBRATION, CLIENTS, LABELS, Scheme, SchemeProperties, VALIDATION};
use super::test_rows::TestRows;
use crate::{DataError, Dataset};
use fedstein_schema::Kind;
use fedstein_schema::Literal::Int;
use rand::Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// Every client holds a few classes of CIFAR-100, no two of them of one superclass; a class's rows are shared equally
/// by its holders. The FedWBA paper's CIFAR-100: ten per client.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct SuperclassLabels {
    /// The number of clients K.
    pub clients: usize,
    /// The number of superclasses per client, with one class of each.
    pub labels: usize,
}

impl Scheme for SuperclassLabels {
    const KIND: Kind = Kind {
        name: "superclass-labels",
        about: "A few labels of `cifar100` per client, each of a different superclass ([W]: 10).",
        keys: &[CLIENTS, LABELS.default(Int(10)), VALIDATION, CALIBRATION],
    };
    const PROPERTIES: SchemeProperties = SchemeProperties { superclasses: true, ..SchemeProperties::BY_CLASS };
    const TEST_ROWS: TestRows = TestRows::OfHeldClasses;

    fn clients(&self) -> Option<usize> {
        Some(self.clients)
    }

    fn assign(&self, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError> {
        let classes = Classes::of(Self::KIND.name, &train.targets)?;
        let superclasses = train.superclasses().ok_or_else(|| DataError::Partition {
            kind: Self::KIND.name,
            problem: "these classes have no superclasses; cifar100 has, other data can use labels-per-client"
                .to_owned(),
        })?;
        // The classes with training rows of each superclass that has any.
        let mut members = vec![Vec::new(); superclasses.iter().max().map_or(0, |most| most + 1)];
        for (class, _) in classes.rows.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            members[superclasses[class]].push(class);
        }
        members.retain(|classes| !classes.is_empty());
        if self.labels == 0 || self.labels > members.len() {
            let problem = format!("must be from 1 to {}, the number of superclasses with training rows", members.len());
            return Err(DataError::config("partition.labels", self.labels, problem));
        }

        let all: Vec<usize> = (0..members.len()).collect();
        // The rest of each superclass's shuffled list.
        let mut left = vec![Vec::new(); members.len()];
        let mut held = Vec::with_capacity(self.clients);
        for superclasses in holders::draw(&all, self.clients, self.labels, rng) {
            let mut draw = |superclass: usize| {
                let classes = &mut left[superclass];
                if classes.is_empty() {
                    classes.clone_from(&members[superclass]);
                    classes.shuffle(rng);
                }
                classes.pop()
            };
            held.push(superclasses.into_iter().filter_map(&mut draw).collect());
        }
        holders::share(Self::KIND.name, classes, &held, Shares::Equal, rng)
    }
}
