//! W1: one SVGD step of the network 784-100-10: score, direction, AdaGrad.
//!
//! Every step has the same minibatch, all rows of the shard, as in the yardstick; copying it to the device is timed, as
//! in a run. A unit is several steps of [`Svgd::run`], whose check at the end is shared by all of them.

use std::sync::Arc;

use super::cost::Networks;
use super::synthetic::{images, network, particles, shards, streams, svgd};
use super::timing::{Bench, Line};
use crate::algorithm::newton::SiteSum;
use crate::backend::Session;
use crate::datasets::Dataset;
use crate::density::{Likelihood, LikelihoodScale};
use crate::error::RunError;
use crate::models::Model;
use crate::particles::Particles;
use crate::rows::{Minibatches, Order};
use crate::stein::{OptimizerState, Svgd};

/// Times the workload.
///
/// # Errors
/// The device fails, or particles diverge.
pub(super) fn lines(bench: &Bench) -> Result<Vec<Line>, RunError> {
    // N, B, and the number of steps of a unit.
    let sizes =
        bench.settings.size.pick([[20, 100, 10], [10, 250, 10], [100, 100, 3]], [[3, 4, 2], [2, 5, 2], [4, 4, 1]]);
    let line = |[count, rows, steps]: [usize; 3]| {
        let shape = Networks::mnist(count);
        let mut step = Step::of_network(shape, rows, &bench.session)?;
        let name = format!("W1 svgd N={count} B={rows}");
        bench.line(name, shape.svgd_step(rows), steps, || step.run(steps))
    };
    sizes.into_iter().map(line).collect()
}

/// SVGD of a model on one minibatch; each call continues from the previous particles.
pub(super) struct Step {
    svgd: Svgd,
    likelihood: Likelihood,
    particles: Particles,
    state: OptimizerState,
    sites: Option<SiteSum>,
}

impl Step {
    /// Prepares N particles of a model, with all rows of a data set as the minibatch.
    ///
    /// # Errors
    /// A particle cannot be copied to the device, or the device fails.
    pub fn new(model: Arc<dyn Model>, count: usize, data: Dataset, session: &Session) -> Result<Self, RunError> {
        let rows = data.rows();
        let shard = shards(data, 1, session).remove(0);
        let minibatches = Minibatches::new(Order::SequentialRestart, rows, rows, streams(), 0);
        Ok(Self {
            svgd: svgd(1e-3, 1e-6),
            particles: particles(&*model, count, 0, session)?,
            likelihood: Likelihood::new(model, shard, minibatches, LikelihoodScale::Full, 1.0),
            state: OptimizerState::default(),
            sites: None,
        })
    }

    /// Prepares networks of one hidden layer on synthetic images.
    ///
    /// # Errors
    /// A particle cannot be copied to the device, or the device fails.
    pub fn of_network(shape: Networks, rows: usize, session: &Session) -> Result<Self, RunError> {
        Self::new(network(shape), shape.particles, images(1, rows, shape.inputs, shape.outputs), session)
    }

    /// The same with the other clients' sites in the score, as a visit of newton-dsvgd has them, from the particles at
    /// which they were taken.
    pub fn with_sites(self, sites: SiteSum) -> Self {
        Self { particles: sites.from().clone(), sites: Some(sites), ..self }
    }

    /// Runs some further steps.
    ///
    /// # Errors
    /// The device fails, or particles diverge.
    pub fn run(&mut self, steps: usize) -> Result<(), RunError> {
        let Self { svgd, likelihood, particles, state, sites } = self;
        let score = |at: &Particles| {
            let own = likelihood.next_score(at, 1.0);
            Ok(match sites {
                None => own,
                Some(sites) => own.plus(sites.score(at)),
            })
        };
        *particles = svgd.run::<RunError>(particles.clone(), steps, state, score, |_| {})?;
        Ok(())
    }
}
