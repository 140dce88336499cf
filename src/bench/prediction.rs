//! W6: the predictive mean of N = 20 networks 784-100-10 on 10,000 test images, in the chunks of an evaluation.

use super::cost::Networks;
use super::synthetic::{AS_IT_IS, KDE, images, network, particles};
use super::timing::{Bench, Line};
use crate::error::RunError;
use crate::experiment::evaluate::{Evaluator, EvaluatorConfig, Predicted};
use crate::protocol::Posterior;

/// The number of rows per chunk, the default of `evaluation.chunk`.
const CHUNK: usize = 1000;

/// Times the workload.
///
/// # Errors
/// The device fails.
pub(super) fn lines(bench: &Bench) -> Result<Vec<Line>, RunError> {
    let (count, rows) = bench.settings.size.pick((20, 10_000), (3, 50));
    let shape = Networks::mnist(count);
    let model = network(shape);
    let at = particles(&*model, count, 0, &bench.session)?;
    let config = EvaluatorConfig { chunk: CHUNK, bins: 15, kde: KDE, temperature: 1.0 };
    let test = images(7, rows, shape.inputs, shape.outputs);
    let evaluator = Evaluator::new(model, bench.session.clone(), test, &AS_IT_IS, config)?;
    let name = if rows == 10_000 { format!("W6 eval 10k N={count}") } else { format!("W6 eval {rows} N={count}") };
    let line = bench.line(name, shape.prediction(rows), 1, || {
        if let Predicted::Classes { log_probs, .. } = evaluator.predict(&at, &Posterior::Particles)? {
            std::hint::black_box(log_probs.ensemble());
        }
        Ok(())
    })?;
    Ok(vec![line])
}
