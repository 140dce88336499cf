//! `[optimizer]`: the step rule that moves a particle along its direction.

use fedstein_schema::Accepts::{Choice, Float};
use fedstein_schema::Literal::{Float as F, Text as T};
use fedstein_schema::{Interval, Key, Kind, POSITIVE, Section, key};
use serde::{Deserialize, Serialize};

use crate::stein::{AccumulatorStart, EpsilonPlace, Optimizer};

/// The keys of `[optimizer]`: ε is `lr`, ϵ is `epsilon`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OptimizerConfig {
    /// AdaGrad with a moving average of squared directions.
    Adagrad {
        /// Step size ε.
        lr: f64,
        /// Stabiliser ϵ of the division by the root of the squares.
        epsilon: f64,
        /// Decay of the moving average.
        momentum: f64,
        /// The average before the first step.
        init: AccumulatorStart,
        /// Whether ϵ stands outside or inside the root.
        epsilon_place: EpsilonPlace,
        /// When the average is reset.
        reset: Reset,
    },
    /// AdaGrad with the sum of squared directions.
    AdagradSum {
        /// Step size ε.
        lr: f64,
        /// Stabiliser ϵ of the division by the root of the squares.
        epsilon: f64,
        /// Whether ϵ stands outside or inside the root.
        epsilon_place: EpsilonPlace,
        /// When the sum is reset.
        reset: Reset,
    },
    /// RMSProp.
    Rmsprop {
        /// Step size ε.
        lr: f64,
        /// Stabiliser ϵ of the division by the root of the squares.
        epsilon: f64,
        /// Decay of the moving average.
        momentum: f64,
        /// When the average is reset.
        reset: Reset,
    },
    /// Adam.
    Adam {
        /// Step size ε.
        lr: f64,
        /// Stabiliser ϵ of the division by the root of the squares.
        epsilon: f64,
        /// Decay of the average of directions.
        beta1: f64,
        /// Decay of the average of squared directions.
        beta2: f64,
        /// When the averages are reset.
        reset: Reset,
    },
    /// Plain gradient ascent.
    Sgd {
        /// Step size ε.
        lr: f64,
        /// When the optimiser's state is reset.
        reset: Reset,
    },
}

fedstein_schema::words! {
    /// When a client resets its optimiser's averages.
    pub enum Reset {
        /// At the start of every loop of every visit.
        PerVisit = "per-visit",
        /// Never.
        Never = "never",
    }
}

const LR: Key = key("lr", POSITIVE, F(1e-3), "Step size ε ([D]: BNN 1e-3, BLR 0.05).");
const EPSILON: Key =
    key("epsilon", POSITIVE, F(1e-6), "Constant that is added to the root of the squares ([D]: BNN 1e-6, BLR 1e-9).");
const MOMENTUM: Key =
    key("momentum", Float(Interval::DECAY), F(0.9), "Decay of the moving average of squares ([D]: 0.9).");
const INIT: Key = key(
    "init",
    Choice(AccumulatorStart::WORDS),
    T(AccumulatorStart::G2.word()),
    "The average begins at the first square ([D]: the first step is ε·sign) or at 0 ([W]'s code).",
);
const EPSILON_PLACE: Key = key(
    "epsilon_place",
    Choice(EpsilonPlace::WORDS),
    T(EpsilonPlace::Outside.word()),
    "φ/(ϵ + √G) (all codes) or φ/√(G + ϵ) ([W]'s text).",
);
const RESET: Key = key(
    "reset",
    Choice(Reset::WORDS),
    T(Reset::PerVisit.word()),
    "Whether a client resets its averages at every visit (reference: it does).",
);

/// The schema of the section and its kinds.
pub(super) fn section() -> Section {
    const KINDS: &[Kind] = &[
        Kind {
            name: "adagrad",
            about: "AdaGrad with a moving average of squares ([D]).",
            keys: &[LR, EPSILON, MOMENTUM, INIT, EPSILON_PLACE, RESET],
        },
        Kind {
            name: "adagrad-sum",
            about: "AdaGrad with the sum of squares ([W] App. G.4).",
            keys: &[LR, EPSILON, EPSILON_PLACE, RESET],
        },
        Kind { name: "rmsprop", about: "RMSProp.", keys: &[LR, EPSILON, MOMENTUM, RESET] },
        Kind {
            name: "adam",
            about: "Adam.",
            keys: &[
                LR,
                EPSILON,
                key("beta1", Float(Interval::DECAY), F(0.9), "Decay of the average direction."),
                key("beta2", Float(Interval::DECAY), F(0.999), "Decay of the average of squares."),
                RESET,
            ],
        },
        Kind { name: "sgd", about: "Plain steps along the direction.", keys: &[LR, RESET] },
    ];
    Section::of_kinds(
        "optimizer",
        "How a particle moves along its direction (ascent).",
        "adagrad",
        KINDS.iter().copied(),
    )
}

impl OptimizerConfig {
    /// Builds the step rule.
    pub fn build(&self) -> Optimizer {
        match *self {
            Self::Adagrad { lr, epsilon, momentum, init, epsilon_place: place, .. } => {
                Optimizer::AdaGrad { lr, epsilon, momentum, init, place }
            }
            Self::AdagradSum { lr, epsilon, epsilon_place: place, .. } => Optimizer::AdaGradSum { lr, epsilon, place },
            // RMSProp is AdaGrad with momentum whose average starts at zero.
            Self::Rmsprop { lr, epsilon, momentum, .. } => {
                Optimizer::AdaGrad { lr, epsilon, momentum, init: AccumulatorStart::Zero, place: EpsilonPlace::Outside }
            }
            Self::Adam { lr, epsilon, beta1, beta2, .. } => Optimizer::Adam { lr, epsilon, beta1, beta2 },
            Self::Sgd { lr, .. } => Optimizer::Sgd { lr },
        }
    }

    /// Whether a step is ε times the direction, without averages of earlier ones.
    pub(super) fn is_plain(&self) -> bool {
        match self {
            Self::Adagrad { .. } | Self::AdagradSum { .. } | Self::Rmsprop { .. } | Self::Adam { .. } => false,
            Self::Sgd { .. } => true,
        }
    }

    /// The step size ε.
    pub fn lr(&self) -> f64 {
        match self {
            Self::Adagrad { lr, .. }
            | Self::AdagradSum { lr, .. }
            | Self::Rmsprop { lr, .. }
            | Self::Adam { lr, .. }
            | Self::Sgd { lr, .. } => *lr,
        }
    }

    /// When the averages are reset.
    pub fn reset(&self) -> Reset {
        match self {
            Self::Adagrad { reset, .. }
            | Self::AdagradSum { reset, .. }
            | Self::Rmsprop { reset, .. }
            | Self::Adam { reset, .. }
            | Self::Sgd { reset, .. } => *reset,
        }
    }
}
