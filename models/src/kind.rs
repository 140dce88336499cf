//! The interface of the models that a config can name, and the keys that several of them have.

use std::sync::Arc;

use fedstein_schema::Accepts::Choice;
use fedstein_schema::Literal::{Float as F, Text as T};
use fedstein_schema::{Accepts, Interval, Key, NumberOr, POSITIVE, UnusedKeys, key};

use crate::ModelError;
use crate::head::{Head, WeightPrecision};
use crate::init::WeightInit;
use crate::model::Model;

/// The properties of the data that a model is built for.
#[derive(Clone, Debug, PartialEq)]
pub struct DataShape {
    /// The data set's name, for messages.
    pub name: String,
    /// The shape of a row of features: `[H, W]` or `[C, H, W]` for an image, `[p]` otherwise.
    pub input: Vec<usize>,
    /// The kind of the targets.
    pub targets: TargetShape,
}

/// The kind of the targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetShape {
    /// Classes, with their number.
    Classes(usize),
    /// Real numbers.
    Real,
    /// There are no targets: the rows are terms of a density.
    None,
}

impl DataShape {
    /// The number of features p.
    pub fn features(&self) -> usize {
        self.input.iter().product()
    }

    /// The output head of a network for these targets.
    ///
    /// # Errors
    /// There are no targets.
    pub(crate) fn head(&self, kind: &'static str, gamma_shape: f64, gamma_rate: f64) -> Result<Head, ModelError> {
        match self.targets {
            TargetShape::Classes(classes) => Ok(Head::Classes(classes)),
            TargetShape::Real => Ok(Head::Real { gamma_shape, gamma_rate }),
            TargetShape::None => Err(ModelError::Targets {
                kind,
                needs: "learns labels or numbers",
                data: self.name.clone(),
                has: "neither".to_string(),
                remedy: "use model.kind = \"mixture\"",
            }),
        }
    }
}

/// The configuration of a model.
pub trait ModelKind {
    /// Builds the model for data of this shape.
    ///
    /// # Errors
    /// The model does not fit the data.
    fn build(&self, data: &DataShape) -> Result<Arc<dyn Model>, ModelError>;

    /// Checks the configuration as far as this is possible without the data.
    ///
    /// # Errors
    /// A key is invalid; the error names it and the reason.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// The targets that the model is for.
    fn targets(&self) -> ModelTargets {
        ModelTargets::ClassesOrNumbers
    }

    /// Whether the model computes the curvature of its likelihood.
    fn has_curvature(&self) -> bool {
        false
    }

    /// Whether the model needs the pixels of an image side by side.
    fn reads_images(&self) -> bool {
        false
    }

    /// Whether its prediction for a row of zeros can be any.
    fn has_constant(&self) -> bool {
        true
    }

    /// Whether it is a logistic regression, for which the step sizes of networks are small.
    fn is_logistic_regression(&self) -> bool {
        false
    }

    /// The keys that say the prior, and those that say the initial particles; a key may be one of both.
    fn prior_and_start_keys(&self) -> [&'static [&'static str]; 2] {
        [&[], &[]]
    }

    /// The keys that have no effect, in a classification or not, because of what others say.
    fn unused_keys(&self, _is_classification: bool) -> Vec<UnusedKeys> {
        Vec::new()
    }
}

/// The targets that a model is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelTargets {
    /// Two classes.
    TwoClasses,
    /// Any number of classes, or real numbers.
    ClassesOrNumbers,
    /// None: the rows are terms of a toy density.
    ToyDensity,
}

/// The keys that say a network's prior, and those that say its initial particles. A precision that is learned is one more
/// coordinate, which starts at a draw from its Gamma.
pub(crate) fn prior_and_start_keys(of: NumberOr<PrecisionRule>) -> [&'static [&'static str]; 2] {
    match of {
        NumberOr::Fixed(_) => [&["weight_precision", "gamma_shape", "gamma_rate"], &["init"]],
        NumberOr::Rule(PrecisionRule::Learned) => {
            [&["gamma_shape", "gamma_rate"], &["init", "gamma_shape", "gamma_rate"]]
        }
    }
}

/// The keys of the Gamma prior of a network, where no precision has one.
pub(crate) fn unused_gamma(of: NumberOr<PrecisionRule>, is_classification: bool) -> Vec<UnusedKeys> {
    let is_learned = matches!(of, NumberOr::Rule(PrecisionRule::Learned));
    let why = "a classification has no noise, and `model.weight_precision` is not \"learned\"";
    let unused = UnusedKeys { keys: &["gamma_shape", "gamma_rate"], why: why.into() };
    if is_classification && !is_learned { vec![unused] } else { Vec::new() }
}

fedstein_schema::words! {
    /// The rule for a network's prior precision, if it is not given as a number.
    pub enum PrecisionRule {
        /// The precision is a coordinate of every particle.
        Learned = "learned",
    }
}

pub(crate) const WEIGHT_PRECISION: Key = key(
    "weight_precision",
    Accepts::NumberOr(Interval::POSITIVE, PrecisionRule::WORDS),
    F(std::f64::consts::E),
    "Precision λ of the Gaussian prior of weights and biases (default e: [D], log λ = 1); `learned`: log λ is a coordinate of every particle, λ ~ Gamma(`gamma_shape`, `gamma_rate`) (Liu and Wang 2016); its first value is drawn with the rate as the scale, as in their code.",
);
pub(crate) const GAMMA_SHAPE: Key = key(
    "gamma_shape",
    POSITIVE,
    F(1.0),
    "Shape of the Gamma prior of a precision: the noise's (regression), and the weights' where it is learned.",
);
pub(crate) const GAMMA_RATE: Key = key("gamma_rate", POSITIVE, F(0.1), "Rate of the same prior.");
pub(crate) const INIT: Key = key(
    "init",
    Choice(WeightInit::WORDS),
    T(WeightInit::ScaledNormal.word()),
    "Initial weights: normal over √(fan-in + 1) ([D]), uniform within √(6/fan-in) ([W], dense networks) or within √(6/(fan-in + fan-out)) ([W], convolutional ones); biases 0.",
);

/// The configured prior precision; `shape` and `rate` are those of its Gamma prior if it is learned.
pub(crate) fn precision(of: NumberOr<PrecisionRule>, shape: f64, rate: f64) -> WeightPrecision {
    match of {
        NumberOr::Fixed(precision) => WeightPrecision::Fixed(precision),
        NumberOr::Rule(PrecisionRule::Learned) => WeightPrecision::Learned { shape, rate },
    }
}
