//! `[kernel]`: the kernel of SVGD.

use fedstein_schema::Accepts::{Choice, Float};
use fedstein_schema::Literal::{Float as F, Int as I, Text as T};
use fedstein_schema::{Accepts, Interval, Key, Kind, NumberOr, Section, key, whole};
use serde::{Deserialize, Serialize};

use crate::stein::{Bandwidth, Gradient, Kernel, MedianOfEven, Rule};

/// The keys of `[kernel]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum KernelConfig {
    /// exp(-r²/h)
    Rbf(RadialConfig),
    /// (1 + r²/h)^exponent
    Imq {
        /// The bandwidth h.
        #[serde(flatten)]
        radial: RadialConfig,
        /// The exponent, < 0.
        exponent: f64,
    },
    /// exp(-r/h)
    Laplacian(RadialConfig),
    /// (x·y + offset)^degree
    Polynomial {
        /// The degree.
        degree: u32,
        /// The constant term.
        offset: f64,
        /// Whether the gradient is the kernel's own or the erroneous one of \[W\]'s code.
        gradient: Gradient,
    },
    /// tanh(slope x·y + offset)
    Sigmoid {
        /// The factor of x·y.
        slope: f64,
        /// The constant term.
        offset: f64,
        /// Whether the gradient is the kernel's own or the erroneous one of \[W\]'s code.
        gradient: Gradient,
    },
    /// The mean of three RBF kernels.
    Mixture(RadialConfig),
}

/// The bandwidth of a kernel of the distance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RadialConfig {
    /// The bandwidth h, or the rule for it.
    pub bandwidth: NumberOr<BandwidthRule>,
    /// The definition of the median of an even number of values.
    pub median: MedianOfEven,
}

fedstein_schema::words! {
    /// Rule for the bandwidth h; r are the distances between N particles.
    pub enum BandwidthRule {
        /// median of all r² / log(N+1)
        Reference = "reference",
        /// (median of r over pairs)² / log N
        Paper = "paper",
        /// median of r² over pairs / log(N+1)
        Pyro = "pyro",
        /// (median of all r)² / log N
        FullMatrix = "full-matrix",
    }
}

const BANDWIDTH: Key = key(
    "bandwidth",
    Accepts::NumberOr(Interval::POSITIVE, BandwidthRule::WORDS),
    T(BandwidthRule::Reference.word()),
    "h, as a number or a rule on the distances r: `reference` median of all r² / log(N+1), `paper` (median of r, pairs)² / log N, `pyro` median of r², pairs / log(N+1), `full-matrix` (median of all r)² / log N; `laplacian` has r in the place of r².",
)
.paper(T(BandwidthRule::Paper.word()));
const MEDIAN: Key = key(
    "median",
    Choice(MedianOfEven::WORDS),
    T(MedianOfEven::Mean.word()),
    "Median of an even count: mean of the middle two (numpy) or the lower one (torch, [W]'s code).",
);
const OFFSET: Key = key("offset", Float(Interval::FINITE), F(1.0), "Constant term ([W]: not stated).");
const GRADIENT: Key = key(
    "gradient",
    Choice(Gradient::WORDS),
    T(Gradient::Correct.word()),
    "The kernel's gradient, or the incorrect one of [W]'s code.",
);

/// The schema of the section and its kinds.
pub(super) fn section() -> Section {
    const RADIAL: &[Key] = &[BANDWIDTH, MEDIAN];
    const KINDS: &[Kind] = &[
        Kind { name: "rbf", about: "exp(-r²/h).", keys: RADIAL },
        Kind {
            name: "imq",
            about: "(1 + r²/h)^exponent.",
            keys: &[
                BANDWIDTH,
                MEDIAN,
                key("exponent", Float(Interval::NEGATIVE), F(-0.5), "Exponent of the inverse multiquadric."),
            ],
        },
        Kind { name: "laplacian", about: "exp(-r/h).", keys: RADIAL },
        Kind {
            name: "polynomial",
            about: "(x·y + offset)^degree.",
            keys: &[key("degree", whole(1, 100), I(2), "Degree ([W]: 2)."), OFFSET, GRADIENT],
        },
        Kind {
            name: "sigmoid",
            about: "tanh(slope x·y + offset), not positive definite.",
            keys: &[
                key("slope", Float(Interval::FINITE), F(1.0), "Slope ([W]: 1)."),
                OFFSET.default(F(0.0)).doc("Constant term ([W]: 0)."),
                GRADIENT,
            ],
        },
        Kind { name: "mixture", about: "The mean of three RBF at h/4, h, 4h.", keys: RADIAL },
    ];
    Section::of_kinds(
        "kernel",
        "The kernel of Stein's method; methods without it ignore this section.",
        "rbf",
        KINDS.iter().copied(),
    )
}

impl From<RadialConfig> for Bandwidth {
    fn from(config: RadialConfig) -> Self {
        let rule = match config.bandwidth {
            NumberOr::Fixed(h) => Rule::Fixed(h),
            NumberOr::Rule(BandwidthRule::Reference) => Rule::Reference,
            NumberOr::Rule(BandwidthRule::Paper) => Rule::Paper,
            NumberOr::Rule(BandwidthRule::Pyro) => Rule::Pyro,
            NumberOr::Rule(BandwidthRule::FullMatrix) => Rule::FullMatrix,
        };
        Self { rule, median: config.median }
    }
}

impl KernelConfig {
    /// The rule by which the bandwidth follows from the distances; the default rule where the bandwidth is a number or
    /// absent.
    pub fn median_rule(&self) -> Bandwidth {
        match *self {
            Self::Rbf(radial) | Self::Imq { radial, .. } | Self::Laplacian(radial) | Self::Mixture(radial)
                if matches!(radial.bandwidth, NumberOr::Rule(_)) =>
            {
                radial.into()
            }
            _ => Bandwidth::default(),
        }
    }

    /// Builds the kernel.
    pub fn build(&self) -> Kernel {
        match *self {
            Self::Rbf(radial) => Kernel::Rbf(radial.into()),
            Self::Imq { radial, exponent } => Kernel::Imq { bandwidth: radial.into(), exponent },
            Self::Laplacian(radial) => Kernel::Laplacian(radial.into()),
            Self::Mixture(radial) => Kernel::Mixture(radial.into()),
            Self::Polynomial { degree, offset, gradient } => {
                Kernel::Polynomial { degree: degree.min(i32::MAX as u32) as i32, offset, gradient }
            }
            Self::Sigmoid { slope, offset, gradient } => Kernel::Sigmoid { slope, offset, gradient },
        }
    }
}
