//! `label-ratio`: two classes with different shares at each client. There are two forms, see [`LabelRatio`]: `[1, 9]`
//! (client-selection paper, BLR) and one percentage per client (DSVGD paper, Fig. 5).

use super::Partition;
use super::classes::{Classes, boundaries, fill_empty, moved_notes};
use super::kind::{CALIBRATION, CLIENTS, Scheme, SchemeProperties, VALIDATION};
use super::test_rows::TestRows;
use crate::{DataError, Dataset};
use fedstein_schema::Literal::Floats;
use fedstein_schema::{Accepts, Interval, Key, Kind, key};
use rand::Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// Two classes with different shares at each client.
///
/// Two numbers `[a, b]` are the ratio within a client: client k holds a : b, where b is the share of class 0 for even k
/// and of class 1 for odd k. `[1, 9]` is the client-selection paper's. The sizes of the clients are chosen so that the
/// ratio is exact (up to whole rows) and all rows are used. If the classes are too unbalanced for that, both classes
/// are shared with weights a and b instead, and a note reports the ratios.
///
/// K numbers (K > 2) are the clients' shares of class 0, in percent or any other unit, and in reverse order of class 1.
/// `[40, 40, 10, 10]` is Fig. 5 of the DSVGD paper.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct LabelRatio {
    /// The number of clients K.
    pub clients: usize,
    /// `[a, b]`, or one number per client.
    pub ratio: Vec<f64>,
}

const RATIO: Key = key(
    "ratio",
    Accepts::FloatList { each: Interval::NOT_NEGATIVE, length: 2 },
    Floats(&[1.0, 9.0]),
    "`[a, b]`: the ratio of the two classes within a client ([C]: 1:9). b is the part of the first class at the clients 0, 2, 4, … and of the second at the others; where the classes are too unequal for that, they are shared with these weights, and a note says so. One number for each of more than two clients: the clients' shares of the first class, and in reverse order of the second ([D] Fig. 5: `[40, 40, 10, 10]`).",
);

impl Scheme for LabelRatio {
    const KIND: Kind = Kind {
        name: "label-ratio",
        about: "Two classes in unequal shares.",
        keys: &[CLIENTS, RATIO, VALIDATION, CALIBRATION],
    };
    const PROPERTIES: SchemeProperties = SchemeProperties::BY_CLASS;
    const TEST_ROWS: TestRows = TestRows::OfMix;

    fn clients(&self) -> Option<usize> {
        Some(self.clients)
    }

    fn assign(&self, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError> {
        let (ratio, clients) = (&self.ratio, self.clients);
        let mut classes = Classes::of(Self::KIND.name, &train.targets)?;
        if classes.rows.len() != 2 {
            let problem = format!("it mixes two classes, these data have {}", classes.rows.len());
            return Err(DataError::Partition { kind: Self::KIND.name, problem });
        }
        let usable = ratio.iter().all(|share| *share >= 0.0 && share.is_finite()) && ratio.iter().sum::<f64>() > 0.0;
        if !usable || !(ratio.len() == 2 || ratio.len() == clients) {
            let problem =
                format!("must be two numbers, e.g. [1, 9], or one per client ({clients}); none negative, not all 0");
            return Err(DataError::config("partition.ratio", format!("{ratio:?}"), problem));
        }
        let counts = [classes.rows[0].len(), classes.rows[1].len()];
        let mut notes = Vec::new();
        let weights = match self.ratio.as_slice() {
            &[minority, majority] => mixed(counts, clients, minority, majority).unwrap_or_else(|| {
                notes.push(format!(
                    "{} rows of class {} and {} of class {} cannot be assigned so that all are used and every client \
                     holds {minority} : {majority}; the classes are shared with these weights instead",
                    counts[0], classes.names[0], counts[1], classes.names[1]
                ));
                let weight =
                    |class: usize| (0..clients).map(|k| if k % 2 == class { majority } else { minority }).collect();
                [weight(0), weight(1)]
            }),
            shares => [shares.to_vec(), shares.iter().rev().copied().collect()],
        };

        let mut rows = vec![Vec::new(); clients];
        for (class, weights) in weights.iter().enumerate() {
            // All weights of a class can be 0 only for [0, b] and one client, which then gets all rows.
            let weights = if weights.iter().sum::<f64>() > 0.0 { weights.clone() } else { vec![1.0; clients] };
            classes.rows[class].shuffle(rng);
            let cuts = boundaries(counts[class], &weights);
            for (client, cut) in cuts.windows(2).enumerate() {
                rows[client].extend_from_slice(&classes.rows[class][cut[0]..cut[1]]);
            }
        }
        let moved = fill_empty(&mut rows, rng);
        notes.extend(moved_notes(&moved, "its shares rounded to none"));
        Ok(Partition::new(rows, notes))
    }
}

/// The number of rows of each class for each client, so that client k holds `minority : majority` exactly, where class
/// k mod 2 is the majority, and all rows are used.
///
/// Even clients all have size s, odd ones size t, which the two class totals determine:
/// E·p·s + O·q·t = n₀ and E·q·s + O·p·t = n₁, with p, q the shares of majority and minority and E, O the numbers of
/// even and odd clients. `None` if a size would be less than a row.
fn mixed(counts: [usize; 2], clients: usize, minority: f64, majority: f64) -> Option<[Vec<f64>; 2]> {
    let (p, q) = (majority / (majority + minority), minority / (majority + minority));
    let (even, odd) = (clients.div_ceil(2) as f64, (clients / 2) as f64);
    let [zeros, ones] = counts.map(|count| count as f64);
    let determinant = even * odd * (p * p - q * q);
    if determinant.abs() < 1e-9 {
        return None;
    }
    let size_even = odd * (p * zeros - q * ones) / determinant;
    let size_odd = even * (p * ones - q * zeros) / determinant;
    if size_even < 1.0 || size_odd < 1.0 {
        return None;
    }
    let of_class = |class: usize| {
        let share = |k: usize| if k % 2 == class { p } else { q };
        (0..clients).map(|k| share(k) * if k % 2 == 0 { size_even } else { size_odd }).collect()
    };
    Some([of_class(0), of_class(1)])
}
