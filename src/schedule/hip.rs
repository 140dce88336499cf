//! HIP selection: a client goes next with a probability in proportion to the inner product of its SVGD direction with
//! the mean direction of all, the decrease of the *global* free energy in its step. Source: Yang et al. Algorithm 2,
//! eq. (24). Where inner products are negative (24) is no distribution: see [`Negative`].

use super::weigh::{Draw, Negative};
use super::{Indicators, Schedule, Selection};
use crate::protocol::Question;
use crate::rows::Rows;
use crate::stein::Kernel;

/// P_k = HIP_k / Σ_m HIP_m.
#[derive(Clone, Copy, Debug)]
pub struct Hip {
    /// The kernel of the inner product.
    pub kernel: Kernel,
    /// The rows behind a client's score.
    pub rows: Rows,
    /// What becomes of negative values.
    pub negative: Negative,
    /// How probabilities become clients.
    pub draw: Draw,
}

impl Schedule for Hip {
    fn question(&self) -> Option<Question> {
        Some(Question::LikelihoodScore { kernel: self.kernel, rows: self.rows })
    }

    fn select(&mut self, round: usize, indicators: Option<&Indicators>) -> Selection {
        indicators.map_or_else(|| Vec::new().into(), |indicators| self.draw.select(round, indicators, self.negative))
    }
}
