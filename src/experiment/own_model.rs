//! Whether a model that a program brings, with `Experiment::with_model`, fits the data and is what fedstein takes a model
//! for: a likelihood that is a sum over rows, and depends on a particle and a row alone. Two particles and two training
//! rows are tried.

use std::sync::Arc;

use burn::tensor::Tensor;

use crate::algorithm::Capabilities;
use crate::array::{Array, Values};
use crate::backend::Session;
use crate::datasets::{self, Targets, TrainTest};
use crate::error::{RunError, words_of_panic};
use crate::models::{Batch, LayerInputs, LayerRows, Model, RowCurvature, Task};
use crate::particles::Particles;
use crate::random::{Purpose, Streams};
use crate::rows::Table;

/// The number of particles, and of rows, that are tried.
const TRIED: usize = 2;
/// The largest difference between numbers that should be the same, relative to the largest of them: the order in which
/// products are summed depends on the number of rows.
const TOLERANCE: f64 = 1e-3;

/// The model, if it is one of the data's targets, or a density, and can be trained by the algorithm.
///
/// # Errors
/// It has parameters that cannot be trained so, predicts something else, fails on rows of the data, or is no function of a
/// particle and a row; or the algorithm needs a curvature that it does not compute.
pub(super) fn checked(
    model: &Arc<dyn Model>,
    data: &TrainTest,
    (algorithm, can): (&str, Capabilities),
    session: &Session,
) -> Result<Arc<dyn Model>, RunError> {
    let refuse = |problem: String| RunError::Config(format!("the model of Experiment::with_model: {problem}"));
    let outputs = outputs(&**model, &data.train.targets).map_err(refuse)?;
    let trial = Trial::new(&**model, data, session).map_err(refuse)?;
    trial.predicts(outputs).and_then(|()| trial.has_gradient()).map_err(refuse)?;
    if can.curvature {
        trial.has_curvature(algorithm).map_err(refuse)?;
    }
    Ok(model.clone())
}

/// The number of outputs of a row.
fn outputs(model: &dyn Model, targets: &Targets) -> Result<usize, String> {
    if let Some(obstacle) = model.obstacle() {
        return Err(obstacle);
    }
    if model.layout().dim() == 0 {
        return Err("it has no parameters, and particles are their values".into());
    }
    model.prior().check(model.layout()).map_err(|problem| format!("its prior: {problem}"))?;
    match (model.task(), targets) {
        (Task::Classification { classes }, Targets::Classes { names, .. }) if names.len() == classes => Ok(classes),
        (Task::Regression, Targets::Real { .. }) => Ok(2),
        // A density of rows does not read their targets.
        (Task::Density, _) => Ok(1),
        (task, targets) => {
            let has = match targets {
                Targets::Classes { names, .. } => format!("{} classes", names.len()),
                Targets::Real { .. } => "real targets".into(),
                Targets::None { .. } => "no targets".into(),
            };
            Err(format!("it is for {task:?}, and the data have {has}"))
        }
    }
}

/// Particles and rows on which a model is tried.
struct Trial<'a> {
    model: &'a dyn Model,
    /// `[2, d]`.
    particles: Particles,
    /// Two training rows, different ones where there are any.
    rows: Table,
    session: &'a Session,
}

impl<'a> Trial<'a> {
    fn new(model: &'a dyn Model, data: &TrainTest, session: &'a Session) -> Result<Self, String> {
        let particles = first_particles(model, session)?;
        let features = &data.train.features;
        let other = (1..features.nrows()).find(|row| features.row(*row) != features.row(0)).unwrap_or(0);
        let rows = Table::new(data.train.select(&[0, other]), &data.normalisation);
        Ok(Self { model, particles, rows, session })
    }

    /// Checks that the predictions have their shape, and are a function of a particle and a row.
    fn predicts(&self, outputs: usize) -> Result<(), String> {
        let features = self.rows.width();
        let predicted = |particles: &Particles, rows: &[usize]| {
            let inputs = self.rows.batch(rows.iter().copied(), self.session).inputs;
            let predicted = quietly(|| {
                let predicted = self.model.predict(particles.blocks(), inputs);
                (predicted.dims(), predicted.try_into_vec_as::<f64>())
            });
            let (found, values) =
                predicted.map_err(|why| format!("it fails on a row of {features} features: {why}"))?;
            let (count, needed) = (rows.len(), [particles.count(), rows.len(), outputs]);
            match found == needed {
                true => values.map_err(|error| error.to_string()),
                false => Err(format!(
                    "for {} particles and {count} rows of {features} features it predicts an array of shape {found:?}, not \
                     {needed:?}",
                    particles.count()
                )),
            }
        };
        let both = [0, 1];
        let together = predicted(&self.particles, &both)?;
        if let Some(at) = together.iter().position(|value| value.is_nan()) {
            return Err(format!(
                "its first particle {} predicts NaN for training row {} of those that are tried",
                at / (TRIED * outputs),
                at / outputs % TRIED
            ));
        }
        let scale = largest(&together);
        if !agree(&together, &predicted(&self.particles, &both)?, scale) {
            return Err(
                "two predictions of the same rows differ: it draws random numbers that no seed governs, and a \
                        likelihood must be a function of a row and the parameters"
                    .into(),
            );
        }
        for (at, alone) in both.iter().enumerate() {
            let of_row: Vec<f64> = together.chunks_exact(outputs).skip(at).step_by(TRIED).flatten().copied().collect();
            if !agree(&of_row, &predicted(&self.particles, &[*alone])?, scale) {
                return Err("it predicts something else for a row alone than for the same row beside another: it reads the \
                            other rows, as BatchNorm does, and a likelihood must be a function of a row and the parameters"
                    .into());
            }
            let of_particle = &together[at * TRIED * outputs..(at + 1) * TRIED * outputs];
            if !agree(of_particle, &predicted(&self.particles.rows(&[at]), &both)?, scale) {
                return Err(
                    "it predicts something else for a particle alone than for the same particle beside another; \
                            particles are independent networks"
                        .into(),
                );
            }
        }
        Ok(())
    }

    /// Checks that the likelihood has a gradient in every parameter block, and that it is a sum over the rows.
    fn has_gradient(&self) -> Result<(), String> {
        let needed: Vec<[usize; 2]> = self.model.layout().blocks().iter().map(|block| [TRIED, block.size()]).collect();
        let gradient = |rows: &[usize]| {
            let batch = self.rows.batch(rows.iter().copied(), self.session);
            let gradient = quietly(|| {
                let gradient = self.model.likelihood_score(self.particles.blocks(), &batch, 1.0);
                let shapes: Vec<[usize; 2]> = gradient.iter().map(|block| block.dims()).collect();
                let values: Result<Vec<Vec<f64>>, _> =
                    gradient.into_iter().map(|block| block.try_into_vec_as::<f64>()).collect();
                (shapes, values)
            });
            let (found, values) = gradient.map_err(|why| {
                format!("its likelihood has no gradient in the parameters, on which it must depend undetached: {why}")
            })?;
            match found == needed {
                true => values.map(|blocks| blocks.concat()).map_err(|error| error.to_string()),
                false => Err(format!(
                    "the gradient of its likelihood has blocks of the shapes {found:?}, not those of its parameters, \
                     {needed:?}"
                )),
            }
        };
        let (together, first, second) = (gradient(&[0, 1])?, gradient(&[0])?, gradient(&[1])?);
        if together.iter().any(|value| !value.is_finite()) {
            return Err(
                "the gradient of its likelihood of two training rows, at its first particles, is not finite".into()
            );
        }
        let sum: Vec<f64> = first.iter().zip(&second).map(|(first, second)| first + second).collect();
        match agree(&together, &sum, largest(&together).max(largest(&first))) {
            true => Ok(()),
            false => {
                Err("the gradient of its likelihood of two rows is not the sum of those of each row: `log_likelihood` \
                          must be the sum over the rows, not their mean"
                    .into())
            }
        }
    }

    /// Checks that the likelihood has a curvature, in layers that are those of the blocks.
    fn has_curvature(&self, algorithm: &str) -> Result<(), String> {
        let one = self.rows.batch([0].into_iter(), self.session);
        let both = self.rows.batch([0, 1].into_iter(), self.session).inputs;
        let uniforms = |rows: usize| self.session.upload(vec![0.5; TRIED * rows], [TRIED, rows]);
        let blocks = self.particles.blocks();
        let found = quietly(|| {
            let curvature = self.model.row_curvature(blocks, both.clone(), uniforms(TRIED));
            let of_one = curvature.and_then(|_| self.model.row_curvature(blocks, one.inputs.clone(), uniforms(1)));
            match of_one {
                Some(of_one) => self.layers_are_those_of_the_blocks(of_one, &one),
                None => Err(self.model.curvature_misfit(blocks, both, uniforms(TRIED)).unwrap_or_else(|| {
                    format!(
                        "algorithm kind `{algorithm}` needs the curvature of its likelihood, which it does not compute; use \
                         `algorithm.kind` = \"dsvgd\", or implement `ParticleModel::drawn_gradient` or \
                         `Architecture::row_curvature`"
                    )
                })),
            }
        });
        found.map_err(|why| format!("its curvature cannot be computed: {why}"))?
    }

    /// Checks that each dense layer is recorded with the inputs that its weights have: in one row their gradient is that in
    /// the biases times the inputs. Layers of one size in another order than their blocks would pass for each other.
    fn layers_are_those_of_the_blocks(&self, curvature: RowCurvature, row: &Batch) -> Result<(), String> {
        let gradient = self.model.likelihood_score(self.particles.blocks(), row, 1.0);
        for (index, layer) in curvature.layers.iter().enumerate() {
            let (Some(bias), LayerRows::Dense { inputs, .. }) = (layer.bias, &layer.rows) else { continue };
            let [outputs, _] = layer.sizes();
            let inputs = match inputs {
                LayerInputs::Shared(x) => x.clone().unsqueeze_dim::<3>(0), // [1, 1, in]
                LayerInputs::Own(x) => x.clone().swap_dims(1, 2),          // [N, 1, in]
            };
            let of_biases = gradient[bias].clone().reshape([TRIED, outputs, 1]);
            let values = |tensor: Tensor<3>| tensor.try_into_vec_as::<f64>().map_err(|error| error.to_string());
            let expected = values(of_biases * inputs)?;
            let found = values(gradient[layer.weight].clone().unsqueeze_dim(0))?;
            if !agree(&found, &expected, largest(&expected).max(largest(&found))) {
                let name = |block: usize| &self.model.layout().blocks()[block].name;
                return Err(format!(
                    "layer {index} (from 0) of its curvature is not that of its blocks: in a row the gradient in `{}` must be the \
                     gradient in `{}` times the inputs that are recorded for the layer; record dense layers z = W x + b in the \
                     order in which the module declares them, each with its own inputs",
                    name(layer.weight),
                    name(bias)
                ));
            }
        }
        Ok(())
    }
}

/// Two first particles of a model, `[2, d]`, always the same ones.
///
/// # Errors
/// It fails, or gives another number of coordinates than it has parameters.
fn first_particles(model: &dyn Model, session: &Session) -> Result<Particles, String> {
    let (mut rng, dim) = (Streams::new(0).rng(Purpose::InitialParticles, 0, 0), model.layout().dim());
    let mut values = Vec::with_capacity(TRIED * dim);
    for _ in 0..TRIED {
        let particle = quietly(|| model.initial(&mut rng)).map_err(|why| format!("it has no first particle: {why}"))?;
        if particle.len() != dim {
            let found = particle.len();
            return Err(format!("its first particle has {found} numbers, and its parameters are {dim}"));
        }
        values.extend(particle);
    }
    let drawn = Array { shape: vec![TRIED, dim], values: Values::F64(values) };
    Particles::from_array(&drawn, model.layout(), session).map_err(|error| error.to_string())
}

/// What two first particles of a model predict for two rows of made-up numbers `[2, p]`, one after another: by it a model is
/// known again. Empty where the model does not take such rows.
pub(super) fn fingerprint(model: &dyn Model, width: usize, session: &Session) -> Vec<f64> {
    let Ok(particles) = first_particles(model, session) else { return Vec::new() };
    let rows = session.upload((0..TRIED * width).map(|at| (1.0 + at as f32).sin()).collect(), [TRIED, width]);
    let predicted = quietly(|| model.predict(particles.blocks(), rows).try_into_vec_as::<f64>().ok());
    predicted.ok().flatten().filter(|values| values.iter().all(|value| value.is_finite())).unwrap_or_default()
}

/// Checks that a model is the one of a run, as far as its [`fingerprint`] was kept.
///
/// # Errors
/// It predicts something else.
pub(super) fn is_that_of(kept: &[f64], model: &dyn Model, width: usize, session: &Session) -> Result<(), String> {
    match kept.is_empty() || agree(kept, &fingerprint(model, width, session), largest(kept)) {
        true => Ok(()),
        false => {
            Err("the model predicts something else than the one with which the run began: its activations, the start of its \
                 particles or its other numbers have changed, although its parameters have the same names and shapes"
                .into())
        }
    }
}

/// The largest finite absolute value.
fn largest(values: &[f64]) -> f64 {
    values.iter().map(|value| value.abs()).filter(|value| value.is_finite()).fold(0.0, f64::max)
}

/// Whether numbers that come from numbers up to `scale` are the same but for rounding.
fn agree(some: &[f64], others: &[f64], scale: f64) -> bool {
    let bound = TOLERANCE * (1.0 + scale);
    let is_same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= bound;
    some.len() == others.len() && some.iter().zip(others).all(is_same)
}

/// The result of a computation, or the words of its panic, which are not printed.
fn quietly<T>(compute: impl FnOnce() -> T) -> Result<T, String> {
    datasets::quietly(compute).map_err(|panic| words_of_panic(&*panic).unwrap_or("it panics").to_owned())
}
