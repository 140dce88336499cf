//! Keys that several algorithms share, and the structs that they are read into.

use fedstein_schema::Accepts::{self, Choice, Float};
use fedstein_schema::Literal::{Float as F, Int as I, Text as T};
use fedstein_schema::{COUNT, COUNT_OR_ZERO, Interval, Key, NumberOr, POSITIVE, key, whole};
use serde::{Deserialize, Serialize};

use super::kind::{UnusedKeys, VisitCost};
use crate::density::{KdeBandwidth, KdeConfig, KdeMode, LikelihoodScale};
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::LocalData;
use crate::rows::Order;
use crate::stein::Score;

/// The steps of a client and the rows they see: `local_steps`, `local_epochs`, `batch`, `minibatch`, `likelihood_scale`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalConfig {
    /// The number of local steps L, unless there are `local_epochs`.
    pub local_steps: usize,
    /// How often a client reads its rows in a visit, 0 for `local_steps`; `None` for methods without the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_epochs: Option<usize>,
    /// The number of rows B of a minibatch.
    pub batch: usize,
    /// The order in which rows are read.
    pub minibatch: Order,
    /// The weight of a minibatch's likelihood.
    pub likelihood_scale: LikelihoodScale,
}

impl LocalConfig {
    /// The number of steps L of a visit to a client with N_k `rows`: `local_steps`, or the fewest minibatches that have as many
    /// rows as `local_epochs` times all.
    pub fn steps(&self, rows: usize) -> usize {
        match self.epochs() {
            None => self.local_steps,
            Some(epochs) => epochs.saturating_mul(rows).div_ceil(self.batch.min(rows).max(1)),
        }
    }

    fn epochs(&self) -> Option<usize> {
        self.local_epochs.filter(|epochs| *epochs > 0)
    }

    /// The cost of a visit that is these steps alone.
    pub fn cost(&self, rows: usize) -> VisitCost {
        VisitCost { steps: self.steps(rows), draws: 0 }
    }

    /// The keys without effect.
    pub fn unused_keys(&self) -> Vec<UnusedKeys> {
        let why = "`algorithm.local_epochs` says how many steps a visit has";
        self.epochs().iter().map(|_| UnusedKeys { keys: &["local_steps"], why: why.into() }).collect()
    }

    /// The rows and the likelihood scale behind the scores, at α = `temperature`.
    pub fn data(&self, temperature: f64) -> LocalData {
        LocalData { batch: self.batch, order: self.minibatch, scale: self.likelihood_scale, temperature }
    }
}

/// The kernel density estimate of a set of particles: `kde`, `kde_bandwidth`, `kde_damping`, `kde_clip`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DensityConfig {
    /// The form of the density.
    pub kde: KdeMode,
    /// The bandwidth λ.
    pub kde_bandwidth: NumberOr<KdeRule>,
    /// The factor ρ ∈ (0, 1] on the difference of two densities' scores.
    pub kde_damping: f64,
    /// The clipping bound c: the norm of every row of that difference is at most c·√d/λ. 0 means no clipping.
    pub kde_clip: f64,
}

impl DensityConfig {
    /// These keys, which say how densities are used, where there are none.
    pub fn unused_keys(&self, keys: &'static [&'static str]) -> Option<UnusedKeys> {
        let why = "`algorithm.kde` is \"off\", so that no density has a score";
        (self.kde == KdeMode::Off).then(|| UnusedKeys { keys, why: why.into() })
    }

    /// Checks, for a method whose factors hold a density or the prior by whether that density counts as 0, that this cannot
    /// change from one round to the next: a factor would lose its prior, or have it twice.
    ///
    /// # Errors
    /// It can: the public code's density with a bandwidth that follows the particles.
    pub fn check_for_factors(&self) -> Result<(), String> {
        match (self.kde, self.kde_bandwidth) {
            (KdeMode::Reference, NumberOr::Rule(rule)) => Err(format!(
                "`algorithm.kde` = \"reference\" with `algorithm.kde_bandwidth` = \"{}\": such a density counts as 0 in some \
                 rounds and not in others, and the factors would lose their prior; set `kde_bandwidth` to a number, such as 0.55, \
                 or `kde` to \"exact\"",
                rule.word()
            )),
            _ => Ok(()),
        }
    }

    /// The density estimate that these keys describe.
    pub fn kde(&self) -> KdeConfig {
        KdeConfig { mode: self.kde, bandwidth: bandwidth(self.kde_bandwidth) }
    }

    /// The score ρ·s of densities with kernels of the standard deviation λ, at particles `[N, d]`: the norm of every row is at
    /// most c·√d/λ.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn bounded(&self, score: Score, at: &Particles, lambda: f64) -> Result<Score, RunError> {
        let score = score.times(self.kde_damping);
        match self.kde_clip > 0.0 {
            true => Ok(score.clipped(at, self.kde_clip * (at.dim() as f64).sqrt() / lambda)?),
            false => Ok(score),
        }
    }
}

fedstein_schema::words! {
    /// The rule for the standard deviation of the density's kernel.
    pub enum KdeRule {
        /// The median heuristic on the centres.
        Median = "median",
        /// Scott's rule.
        Scott = "scott",
    }
}

/// The bandwidth λ of a config's value.
pub fn bandwidth(of: NumberOr<KdeRule>) -> KdeBandwidth {
    match of {
        NumberOr::Fixed(lambda) => KdeBandwidth::Fixed(lambda),
        NumberOr::Rule(KdeRule::Median) => KdeBandwidth::Median,
        NumberOr::Rule(KdeRule::Scott) => KdeBandwidth::Scott,
    }
}

/// The number of particles N.
pub const PARTICLE_COUNT: Key = key("particles", whole(1, 1_000_000), I(20), "Particles N.");
/// The number of local steps L.
pub const LOCAL_STEPS: Key =
    key("local_steps", COUNT, I(200), "Local steps L of a client per round ([D]: 200, [W]'s code on MNIST: 50).");
/// The number of local epochs.
pub const LOCAL_EPOCHS: Key = key(
    "local_epochs",
    COUNT_OR_ZERO,
    I(0),
    "Steps of a client in a round by passes over its N_k rows: ⌈epochs · N_k / min(batch, N_k)⌉, so that clients with more rows take more. 0: `local_steps`, the same for all clients.",
);
/// The batch size B.
pub const BATCH: Key = key("batch", COUNT, I(100), "Size of a minibatch; a client with fewer rows uses all of them.");
/// The key `batch` with ten rows as default, as in PFLlib.
pub const BATCH_OF_TEN: Key = BATCH.default(I(10));
/// The order of a client's rows.
pub const MINIBATCH: Key = key(
    "minibatch",
    Choice(Order::WORDS),
    T(Order::EpochPermutation.word()),
    "Order of the rows: a permutation per epoch, which continues over rounds; from the first row in every round (reference for BNNs); independent draws.",
)
.reference(T(Order::SequentialRestart.word()));
/// The weight of a minibatch.
pub const LIKELIHOOD_SCALE: Key = key(
    "likelihood_scale",
    Choice(LikelihoodScale::WORDS),
    T(LikelihoodScale::Full.word()),
    "Weight of a minibatch of B out of n rows: n/B (unbiased, [D]), 1 ([W]'s code), 1/B.",
);
/// The key `likelihood_scale` with a mean over the minibatch as default, as in PFLlib.
pub const MEAN_LOSS: Key = LIKELIHOOD_SCALE.default(T(LikelihoodScale::Mean.word()));
/// The temperature α.
pub const TEMPERATURE: Key = key(
    "temperature",
    POSITIVE,
    F(1.0),
    "α: the likelihood's score is divided by it; below 1, the posterior is more concentrated.",
);
/// The form of the density.
pub const KDE: Key = key(
    "kde",
    Choice(KdeMode::WORDS),
    T(KdeMode::Exact.word()),
    "Density of a set of particles: by log-sum-exp; as in the public code, which underflows to 0 beyond some 15 dimensions; or left out.",
)
.reference(T(KdeMode::Reference.word()));
/// The bandwidth λ.
pub const KDE_BANDWIDTH: Key = key(
    "kde_bandwidth",
    Accepts::NumberOr(Interval::POSITIVE, KdeRule::WORDS),
    F(0.55),
    "Standard deviation λ of the density's kernel ([D], [C], [W]: 0.55); or a rule that computes it from the particles.",
)
.paper(F(0.55))
.reference(F(0.55));
/// The factor ρ on the difference of the densities' scores.
pub const KDE_DAMPING: Key = key(
    "kde_damping",
    Float(Interval::FRACTION),
    F(1.0),
    "Factor on the difference of the two densities' scores; values below 1 reduce drift.",
);
/// The clipping bound c.
pub const KDE_CLIP: Key = key(
    "kde_clip",
    Float(Interval::NOT_NEGATIVE),
    F(0.0),
    "Largest norm of that difference, in units of √d/λ; 0: no bound.",
);
/// The number of layers that stay at the client.
pub const PERSONAL_LAYERS: Key =
    key("personal_layers", COUNT, I(1), "Layers, counted from the output, that stay at the client.");
/// The number of draws behind an expectation.
pub const SAMPLES: Key = key("samples", COUNT, I(10), "Number of draws per expectation.");
/// The weight μ or λ of a proximal term.
pub const PROXIMAL: Key = key("proximal", POSITIVE, F(0.01), "Weight of the distance from the shared parameters.");
/// The step size of a client's own parameters.
pub const INNER_LR: Key = key("inner_lr", POSITIVE, F(0.01), "");
/// The weight β of the clients' mean at the server.
pub const SERVER_MIX: Key =
    key("server_mix", Float(Interval::FRACTION), F(1.0), "β: weight of the clients' mean in the server's update.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_as_many_minibatches_as_have_all_rows_so_often() {
        let of = |epochs, batch| LocalConfig {
            local_steps: 7,
            local_epochs: Some(epochs),
            batch,
            minibatch: Order::EpochPermutation,
            likelihood_scale: LikelihoodScale::Full,
        };
        let steps = |epochs, batch, rows| of(epochs, batch).steps(rows);
        assert_eq!([1, 60_000].map(|rows| steps(0, 100, rows)), [7, 7]);
        // 250 rows in minibatches of 100: three are the fewest with 250 rows, five have 500.
        assert_eq!([1, 2].map(|epochs| steps(epochs, 100, 250)), [3, 5]);
        // A client with fewer rows than a minibatch uses all of them in each step.
        assert_eq!(steps(4, 100, 30), 4);
        assert_eq!(steps(usize::MAX, 1, 2), usize::MAX);
        assert_eq!(of(0, 9).unused_keys(), []);
        assert_eq!(of(1, 9).unused_keys()[0].keys, ["local_steps"]);
    }
}
