//! W4: client selection by Hilbert inner product over K = 120 clients with 400 rows each: the likelihood's score on all
//! rows of every client, then HIP_k of each with the mean of all. Clients work in parallel on a CPU, as in a fleet.

use rayon::prelude::*;

use super::cost::Networks;
use super::synthetic::{images, network, particles, shards, streams};
use super::timing::{Bench, Line};
use crate::density::{Likelihood, LikelihoodScale};
use crate::error::RunError;
use crate::particles::Particles;
use crate::rows::{Minibatches, Order, Rows};
use crate::schedule::indicator::inner_products;
use crate::stein::{Kernel, SteinForm};

/// Times the workload.
///
/// # Errors
/// The device fails.
pub(super) fn lines(bench: &Bench) -> Result<Vec<Line>, RunError> {
    let (clients, rows, count) = bench.settings.size.pick((120, 400, 20), (4, 5, 3));
    let selection = Selection::new(clients, rows, count, bench)?;
    let shape = Networks::mnist(count);
    let name = format!("W4 hip K={clients} n={rows}");
    let whole = bench.line(name, shape.selection(clients, rows), 1, || selection.run().map(drop))?;
    let scores = bench.line("W4a scores only", shape.scores(clients, rows), 1, || {
        selection.scores();
        Ok(())
    })?;
    Ok(vec![whole, scores])
}

/// The clients, and the particles at which their scores are computed.
pub(super) struct Selection {
    likelihoods: Vec<Likelihood>,
    theta: Particles,
    /// Whether the clients may compute at the same time.
    parallel: bool,
}

impl Selection {
    /// Prepares K clients with `rows` rows each and N = `count` networks 784-100-10.
    ///
    /// # Errors
    /// A particle cannot be copied to the device.
    pub fn new(clients: usize, rows: usize, count: usize, bench: &Bench) -> Result<Self, RunError> {
        let shape = Networks::mnist(count);
        let model = network(shape);
        let data = images(4, clients * rows, shape.inputs, shape.outputs);
        let shards = shards(data, clients, &bench.session).into_iter().enumerate();
        let likelihood = |(client, shard)| {
            let minibatches = Minibatches::new(Order::Iid, rows, rows, streams(), client);
            Likelihood::new(model.clone(), shard, minibatches, LikelihoodScale::Full, 1.0)
        };
        let (likelihoods, theta) = (shards.map(likelihood).collect(), particles(&*model, count, 0, &bench.session)?);
        Ok(Self { likelihoods, theta, parallel: bench.session.backend().has_parallel_clients() })
    }

    /// The scores of all clients on all their rows, `[K]` sets of `[N, d]`.
    fn scores(&self) -> Vec<Particles> {
        let score = |likelihood: &Likelihood| likelihood.score_in(&self.theta, Rows::Full, 1, 0.0);
        if self.parallel {
            self.likelihoods.par_iter().map(score).collect()
        } else {
            self.likelihoods.iter().map(score).collect()
        }
    }

    /// Computes HIP_k of every client, `[K]`.
    ///
    /// # Errors
    /// The device fails.
    pub fn run(&self) -> Result<Vec<f64>, RunError> {
        let scores = self.scores();
        let form = SteinForm::new(&Kernel::default(), &self.theta)?.expect("the RBF kernel has a trace");
        Ok(inner_products(&form, &scores)?)
    }
}
