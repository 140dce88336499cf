//! W3: 200 SVGD steps of a Bayesian logistic regression in the shape of Covertype, 54 features and 20,000 rows.
//!
//! Such a step has hardly any arithmetic: its time is the library's overhead. Minibatches are drawn and gathered in the
//! timed part.

use std::sync::Arc;

use super::cost::logistic;
use super::synthetic::{particles, shards, standardised, streams, svgd};
use super::timing::{Bench, Line};
use crate::density::{Likelihood, LikelihoodScale};
use crate::error::RunError;
use crate::models::{BlrConfig, Model, Network};
use crate::particles::Particles;
use crate::rows::{Minibatches, Order};
use crate::stein::OptimizerState;

const FEATURES: usize = 54;
const BATCH: usize = 100;

/// Times the workload.
///
/// # Errors
/// The device fails, or particles diverge.
pub(super) fn lines(bench: &Bench) -> Result<Vec<Line>, RunError> {
    let (rows, steps) = bench.settings.size.pick((20_000, 200), (200, 3));
    let shard = shards(standardised(3, rows, FEATURES), 1, &bench.session).remove(0);
    let model: Arc<dyn Model> = Arc::new(Network::new(BlrConfig::new(FEATURES)));
    let svgd = svgd(0.05, 1e-9);
    let line = |count: usize| {
        let initial = particles(&*model, count, 0, &bench.session)?;
        let minibatches = Minibatches::new(Order::Iid, rows, BATCH, streams(), 0);
        let mut likelihood = Likelihood::new(model.clone(), shard.clone(), minibatches, LikelihoodScale::Full, 1.0);
        let run = || {
            likelihood.start_visit(1);
            let score = |at: &Particles| Ok(likelihood.next_score(at, 1.0));
            svgd.run::<RunError>(initial.clone(), steps, &mut OptimizerState::default(), score, |_| {}).map(drop)
        };
        let name = format!("W3 blr L={steps} N={count}");
        let mut line = bench.line(name, logistic(count, BATCH, FEATURES, steps), 1, run)?;
        let mut note = format!("{:.1} µs a step", 1e3 * line.record.median / steps as f64);
        // The allocations are those of one step, so they are reported once.
        if let Some(allocations) = line.allocations.take() {
            note += &format!(", {:.0} allocations a step", allocations / steps as f64);
        }
        Ok(line.noted(note))
    };
    [6, 100].into_iter().map(line).collect()
}
