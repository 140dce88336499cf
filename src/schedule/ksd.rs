//! KSD selection: clients are drawn with probabilities proportional to the Stein discrepancy between the global
//! particles and their tilted density, which is the largest decrease of a client's free energy in a step. Source: Yang
//! et al. Algorithm 1, eq. (17).

use fedstein_schema::Kind;
use serde::{Deserialize, Serialize};

use super::informed::{BANDWIDTH, FLOOR, InformedConfig, KERNEL, ROWS};
use super::kind::{CLIENTS, ScheduleKind, ScheduleSetup};
use super::weigh::{Draw, Negative};
use super::{Indicators, Schedule, Selection};
use crate::error::RunError;
use crate::protocol::Question;
use crate::rows::Rows;
use crate::stein::Kernel;

/// `[schedule] kind = "ksd"`
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KsdConfig {
    /// The comparison and the draw of clients.
    #[serde(flatten)]
    pub informed: InformedConfig,
}

impl KsdConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "ksd",
        about: "Drawn with probabilities proportional to the Stein discrepancy between Θ and a client's tilted density ([C]; for methods whose clients have a tilted density, such as `newton-dsvgd` and `dsvgd`).",
        keys: &[CLIENTS, KERNEL, BANDWIDTH, ROWS, FLOOR],
    };
}

impl ScheduleKind for KsdConfig {
    fn clients(&self) -> usize {
        self.informed.clients
    }

    fn is_informed(&self) -> bool {
        true
    }

    fn build(&self, setup: ScheduleSetup) -> Box<dyn Schedule> {
        let Self { informed } = self;
        let (kernel, draw) = (informed.kernel(setup.svgd_bandwidth), informed.draw(setup.streams));
        Box::new(Ksd { kernel, rows: informed.rows, draw })
    }
}

/// KSD selection: P_k = S_k / Σ_m S_m.
#[derive(Clone, Copy, Debug)]
pub struct Ksd {
    /// The kernel of the discrepancy.
    pub kernel: Kernel,
    /// The rows from which a client computes its score.
    pub rows: Rows,
    /// The draw of the clients.
    pub draw: Draw,
}

impl Schedule for Ksd {
    fn question(&self) -> Option<Question> {
        Some(Question::Discrepancy { kernel: self.kernel, rows: self.rows })
    }

    fn select(&mut self, round: usize, indicators: Option<&Indicators>) -> Result<Selection, RunError> {
        // A V-statistic is never negative, so the treatment of negative values has no effect.
        let draw = |indicators| self.draw.select(round, indicators, Negative::Clip);
        Ok(indicators.map_or_else(|| Vec::new().into(), draw))
    }
}
