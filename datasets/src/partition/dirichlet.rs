//! `dirichlet`: the shares of each class over the clients are drawn from Dir(α, ..., α), class by class (Hsu, Qi and
//! Brown, *Measuring the effects of non-identical data distribution for federated visual classification*, 2019).
//!
//! The shares are drawn at most 100 times until every client holds a row. If no draw succeeds, the one with the fewest
//! empty clients is repaired by moving one row to each of them.

use super::Partition;
use super::classes::{Classes, boundaries, fill_empty, moved_notes};
use super::kind::{CALIBRATION, CLIENTS, Scheme, SchemeProperties, VALIDATION};
use super::test_rows::TestRows;
use crate::{DataError, Dataset};
use fedstein_schema::Literal::Float;
use fedstein_schema::{Key, Kind, POSITIVE, key};
use rand::Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, distr::Open01};
use rand_distr::{Distribution, Gamma};
use serde::{Deserialize, Serialize};

const DRAWS: usize = 100;

/// Each class is shared by the clients in proportions drawn from a symmetric Dirichlet distribution.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Dirichlet {
    /// The number of clients K.
    pub clients: usize,
    /// The concentration parameter: 0.1 gives very uneven shares, 100 nearly even ones.
    pub alpha: f64,
}

const ALPHA: Key = key(
    "alpha",
    POSITIVE,
    Float(0.5),
    "Concentration parameter: small values give skewed shares, large values even ones.",
);

impl Scheme for Dirichlet {
    const KIND: Kind = Kind {
        name: "dirichlet",
        about: "Each label's shares are drawn from Dirichlet(alpha).",
        keys: &[CLIENTS, ALPHA, VALIDATION, CALIBRATION],
    };
    const PROPERTIES: SchemeProperties = SchemeProperties::BY_CLASS;
    const TEST_ROWS: TestRows = TestRows::OfMix;

    fn clients(&self) -> Option<usize> {
        Some(self.clients)
    }

    fn assign(&self, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError> {
        let (alpha, clients) = (self.alpha, self.clients);
        let mut classes = Classes::of(Self::KIND.name, &train.targets)?;
        let refuse = || DataError::config("partition.alpha", alpha, "must be a finite number above 0, e.g. 0.5");
        if !(alpha > 0.0 && alpha.is_finite()) {
            return Err(refuse());
        }
        let gamma = Gamma::new(alpha + 1.0, 1.0).map_err(|_| refuse())?;
        for rows in &mut classes.rows {
            rows.shuffle(rng);
        }

        let mut best: Option<(usize, Vec<Vec<usize>>)> = None;
        for _ in 0..DRAWS {
            let cuts: Vec<Vec<usize>> =
                classes.rows.iter().map(|rows| boundaries(rows.len(), &shares(&gamma, alpha, clients, rng))).collect();
            let empty = (0..clients).filter(|&k| cuts.iter().all(|cut| cut[k] == cut[k + 1])).count();
            if best.as_ref().is_none_or(|(fewest, _)| empty < *fewest) {
                best = Some((empty, cuts));
            }
            if empty == 0 {
                break;
            }
        }
        let (_, cuts) = best.ok_or_else(refuse)?;

        let mut rows = vec![Vec::new(); clients];
        for (class, cuts) in classes.rows.iter().zip(&cuts) {
            for (client, cut) in cuts.windows(2).enumerate() {
                rows[client].extend_from_slice(&class[cut[0]..cut[1]]);
            }
        }
        let moved = fill_empty(&mut rows, rng);
        let why = format!("alpha = {alpha}, {clients} clients, the best of {DRAWS} draws");
        Ok(Partition::new(rows, moved_notes(&moved, &why)))
    }
}

/// One draw of Dir(α, ..., α) `[K]`, not normalised.
///
/// A Gamma(α) variate is Gamma(α + 1)·U^(1/α); in logarithms, because for small α it underflows (below α = 0.01 all K
/// of them often do).
fn shares(gamma: &Gamma<f64>, alpha: f64, clients: usize, rng: &mut impl Rng) -> Vec<f64> {
    let logs: Vec<f64> = (0..clients)
        .map(|_| {
            let uniform: f64 = rng.sample(Open01);
            gamma.sample(rng).ln() + uniform.ln() / alpha
        })
        .collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !most.is_finite() {
        // The limit α → 0: one client takes the class.
        let winner = rng.random_range(0..clients);
        return (0..clients).map(|k| if k == winner { 1.0 } else { 0.0 }).collect();
    }
    logs.iter().map(|log| (log - most).exp()).collect()
}
