//! What server and clients of a Gaussian posterior share.

use std::sync::Arc;

use fedstein_models::{Layout, Prior};
use ndarray::Array2;

use super::expectation::Rule;
use super::family::Family;
use super::natural::{Gaussian, Natural, StepBound};
use crate::algorithm::keys::LocalConfig;
use crate::array::{Array, Values};
use crate::backend::Session;
use crate::error::RunError;
use crate::particles::Particles;
use crate::random::Streams;

/// The largest number of dimensions in which the d² numbers of a covariance are computed.
pub(super) const COVARIANCE: usize = 64;

/// The constants that server and clients share.
pub(super) struct Problem {
    /// The family of Gaussians.
    pub family: Family,
    /// The share ρ of the new natural parameters in a step.
    pub damping: f64,
    /// The keys that say how many steps L a visit has.
    pub local: LocalConfig,
    /// The prior's terms outside the family, and the share 1/K of them that a client's factor holds.
    pub shared: Prior,
    pub share: f64,
    /// The initial Gaussian q^(0).
    pub initial: Gaussian,
    pub bound: StepBound,
    pub rule: Rule,
    pub layout: Arc<Layout>,
    pub streams: Streams,
    pub session: Session,
}

impl Problem {
    /// The Gaussian q where q is proper; otherwise the last Gaussian on the way from q^(0) to q, in the mean field only in
    /// the coordinates that are improper. Factors that clients found at the same time may have an improper product.
    pub fn proper(&self, q: &Natural) -> Gaussian {
        if let Some(q) = q.clone().normalised().filter(|q| self.bound.holds(q)) {
            return q;
        }
        let near = self.initial.step(q, 1.0, &StepBound::new(&self.initial, false));
        self.bound.mixed(q, &near).unwrap_or(near)
    }

    /// The points z `[N, d]` of N(0, I) as particles of q.
    pub fn place(&self, q: &Gaussian, z: &Array2<f64>) -> Result<Particles, RunError> {
        let values = Values::F64(q.at(z).into_iter().collect());
        let array = Array { shape: z.shape().to_vec(), values };
        Particles::from_array(&array, &self.layout, &self.session).map_err(RunError::Array)
    }
}
