//! Whether a model that a program brings, with `Experiment::with_model`, fits the data.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::assemble::drawn_particles;
use crate::backend::{Backend, Session};
use crate::datasets::{Dataset, Targets};
use crate::error::RunError;
use crate::models::{Model, Task};
use crate::particles::Particles;
use crate::random::Streams;

/// The model, if it is one of the data's targets, or a density, and predicts from a row of as many features.
///
/// # Errors
/// It has layers that cannot be trained so, predicts something else, or fails on a row; a layer of Burn panics on a row of
/// another length than its own.
pub(super) fn checked<B: Backend>(
    model: &Arc<dyn Model>,
    data: &Dataset,
    session: &Session<B>,
) -> Result<Arc<dyn Model>, RunError> {
    let refuse = |problem: String| RunError::Config(format!("the model of Experiment::with_model: {problem}"));
    if let Some(obstacle) = model.obstacle() {
        return Err(refuse(obstacle));
    }
    let (task, features) = (model.task(), data.features.ncols());
    let outputs = match (task, &data.targets) {
        (Task::Classification { classes }, Targets::Classes { names, .. }) if names.len() == classes => classes,
        (Task::Regression, Targets::Real { .. }) => 2,
        // A density of rows does not read their targets.
        (Task::Density, _) => 1,
        (_, targets) => {
            let has = match targets {
                Targets::Classes { names, .. } => format!("{} classes", names.len()),
                Targets::Real { .. } => "real targets".into(),
                Targets::None { .. } => "no targets".into(),
            };
            return Err(refuse(format!("it is for {task:?}, and the data have {has}")));
        }
    };
    let drawn = drawn_particles(&**model, 1, Streams::new(0));
    let particle = Particles::from_array(&drawn, model.layout(), session)?;
    let row = session.upload(vec![0.0; features], [1, features]);
    let predicted = catch_unwind(AssertUnwindSafe(|| model.predict(particle.blocks(), row).dims()));
    match predicted {
        Ok(shape) if shape == [1, 1, outputs] => Ok(model.clone()),
        Ok(shape) => Err(refuse(format!(
            "for one particle and a row of {features} features it predicts an array of shape {shape:?}, not [1, 1, {outputs}]"
        ))),
        Err(panic) => Err(refuse(format!("it fails on a row of {features} features: {}", words(&*panic)))),
    }
}

/// The text of a panic.
fn words(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panics")
}
