//! HIP selection: clients are drawn with probabilities proportional to the inner product of their SVGD direction with
//! the mean direction of all clients, which is the decrease of the *global* free energy in a client's step. Source:
//! Yang et al. Algorithm 2, eq. (24). With negative inner products (24) is not a distribution: see [`Negative`].

use fedstein_schema::Accepts::{self, Choice};
use fedstein_schema::Literal::Text as T;
use fedstein_schema::{Interval, Kind, NumberOr, UnusedKeys, key};
use serde::{Deserialize, Serialize};

use super::informed::{BANDWIDTH, FLOOR, InformedConfig, KERNEL, ROWS};
use super::kind::{CLIENTS, ScheduleKind, ScheduleSetup};
use super::weigh::{Draw, Negative};
use super::{Indicators, Schedule, Selection};
use crate::error::RunError;
use crate::protocol::Question;
use crate::rows::Rows;
use crate::stein::Kernel;

/// `[schedule] kind = "hip"`
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HipConfig {
    /// The comparison and the draw of clients.
    #[serde(flatten)]
    pub informed: InformedConfig,
    /// The treatment of negative inner products.
    pub negative: NegativePolicy,
    /// The temperature τ of the softmax.
    pub softmax_temperature: NumberOr<SoftmaxRule>,
}

fedstein_schema::words! {
    /// The treatment of negative inner products.
    pub enum NegativePolicy {
        /// They are cut to 0.
        Clip = "clip",
        /// The smallest is subtracted from all.
        Shift = "shift",
        /// A softmax of all.
        Softmax = "softmax",
    }
}

fedstein_schema::words! {
    /// A rule for the temperature of the softmax.
    pub enum SoftmaxRule {
        /// The standard deviation of the values.
        Sd = "sd",
    }
}

impl HipConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "hip",
        about: "Drawn with probabilities proportional to the inner product of a client's direction with the mean direction ([C]; for methods whose clients have a tilted density, such as `newton-dsvgd` and `dsvgd`).",
        keys: &[
            CLIENTS,
            KERNEL,
            BANDWIDTH,
            ROWS,
            FLOOR,
            key(
                "negative",
                Choice(NegativePolicy::WORDS),
                T(NegativePolicy::Clip.word()),
                "Treatment of negative inner products: cut to 0, all values shifted by the smallest (whose client is then not drawn, also where no value is negative), or a softmax.",
            ),
            key(
                "softmax_temperature",
                Accepts::NumberOr(Interval::POSITIVE, SoftmaxRule::WORDS),
                T(SoftmaxRule::Sd.word()),
                "Temperature of that softmax; `sd`: the standard deviation of the inner products.",
            ),
        ],
    };
}

impl ScheduleKind for HipConfig {
    fn clients(&self) -> usize {
        self.informed.clients
    }

    fn is_informed(&self) -> bool {
        true
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        let why = "`schedule.negative` is not \"softmax\"";
        let unused = UnusedKeys { keys: &["softmax_temperature"], why: why.into() };
        if self.negative == NegativePolicy::Softmax { Vec::new() } else { vec![unused] }
    }

    fn build(&self, setup: ScheduleSetup) -> Box<dyn Schedule> {
        let Self { informed, negative, softmax_temperature } = self;
        let negative = match (negative, softmax_temperature) {
            (NegativePolicy::Clip, _) => Negative::Clip,
            (NegativePolicy::Shift, _) => Negative::Shift,
            (NegativePolicy::Softmax, NumberOr::Fixed(tau)) => Negative::Softmax { temperature: Some(*tau) },
            (NegativePolicy::Softmax, NumberOr::Rule(SoftmaxRule::Sd)) => Negative::Softmax { temperature: None },
        };
        let (kernel, draw) = (informed.kernel(setup.svgd_bandwidth), informed.draw(setup.streams));
        Box::new(Hip { kernel, rows: informed.rows, negative, draw })
    }
}

/// HIP selection: P_k = HIP_k / Σ_m HIP_m.
#[derive(Clone, Copy, Debug)]
pub struct Hip {
    /// The kernel of the inner product.
    pub kernel: Kernel,
    /// The rows from which a client computes its score.
    pub rows: Rows,
    /// The treatment of negative values.
    pub negative: Negative,
    /// The draw of the clients.
    pub draw: Draw,
}

impl Schedule for Hip {
    fn question(&self) -> Option<Question> {
        Some(Question::LikelihoodScore { kernel: self.kernel, rows: self.rows })
    }

    fn select(&mut self, round: usize, indicators: Option<&Indicators>) -> Result<Selection, RunError> {
        let draw = |indicators| self.draw.select(round, indicators, self.negative);
        Ok(indicators.map_or_else(|| Vec::new().into(), draw))
    }
}
