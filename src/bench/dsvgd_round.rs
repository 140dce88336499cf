//! W2: one DSVGD round on the network 784-100-10, exact densities with λ = 0.55, random minibatches.
//!
//! The client half handles a server's request as in a run: L local steps, and the new factor in closed form. Its
//! factor and the global particles differ, so that no two densities are equal. Factors contain the prior
//! (`with-prior`), which the yardstick's local score does not; this adds one term and no passes. The yardstick distils
//! in L' further steps. W2c is the same round with densities off.

use super::cost::Networks;
use super::synthetic::{DENSITY, images, local, network, particles, shards, streams, svgd};
use super::timing::{Bench, Line, median};
use crate::algorithm::Algorithm;
use crate::algorithm::dsvgd::{DsvgdConfig, Factors};
use crate::algorithm::keys::DensityConfig;
use crate::density::KdeMode;
use crate::error::RunError;
use crate::protocol::{Ask, ClientHalf, Message, PARTICLES, Request, Setup};
use crate::rows::Shard;

/// The sizes N, B, N_k and L of a round.
#[derive(Clone, Copy)]
struct Shape {
    count: usize,
    batch: usize,
    rows: usize,
    steps: usize,
}

/// Times the workload.
///
/// # Errors
/// The device fails, or particles diverge.
pub(super) fn lines(bench: &Bench) -> Result<Vec<Line>, RunError> {
    let full = Shape { count: 20, batch: 100, rows: 3000, steps: 200 };
    let shape = bench.settings.size.pick(full, Shape { count: 3, batch: 4, rows: 20, steps: 2 });
    let round = Round::new(shape, bench)?;
    let Shape { count, batch, steps, .. } = shape;

    let whole = bench.time(|| round.run(DENSITY))?;
    let without = bench.time(|| round.run(DensityConfig { kde: KdeMode::Off, ..DENSITY }))?;

    let share = 1.0 - median(&without.milliseconds) / median(&whole.milliseconds);
    let cost = Networks::mnist(count).dsvgd_round(batch, steps, 0);
    let note = format!("density terms {:.0} %", 100.0 * share);
    Ok(vec![
        bench.line_of(format!("W2 dsvgd-round L={steps}"), Some(cost), &whole).noted(note),
        bench.line_of("W2c the same, densities off", None, &without),
    ])
}

/// The data and settings of a round.
struct Round<'a> {
    shape: Shape,
    bench: &'a Bench,
    shard: Shard,
    request: Request,
}

impl<'a> Round<'a> {
    fn new(shape: Shape, bench: &'a Bench) -> Result<Self, RunError> {
        let network_shape = Networks::mnist(shape.count);
        let theta = particles(&*network(network_shape), shape.count, 1, &bench.session)?;
        let message = Message::default().with_array(PARTICLES, theta.to_array()?);
        let data = images(2, shape.rows, network_shape.inputs, network_shape.outputs);
        Ok(Self {
            shape,
            bench,
            shard: shards(data, 1, &bench.session).remove(0),
            request: Request::new(1, 0, Ask::Train, message),
        })
    }

    /// Runs one visit of a new client, so that every unit is bitwise the same.
    fn run(&self, density: DensityConfig) -> Result<(), RunError> {
        self.client(density)?.handle(&self.request, &|_, _| {}).map(drop)
    }

    fn client(&self, density: DensityConfig) -> Result<Box<dyn ClientHalf>, RunError> {
        let Shape { count, batch, steps, .. } = self.shape;
        let config = DsvgdConfig {
            particles: count,
            local: local(steps, batch),
            distill_steps: steps,
            temperature: 1.0,
            density,
            factors: Factors::WithPrior,
        };
        let (session, model) = (self.bench.session.clone(), network(Networks::mnist(count)));
        let setup = Setup {
            initial: particles(&*model, count, 0, &session)?,
            model,
            // A single client would have no state to keep between rounds, so there is a second one elsewhere.
            roster: vec![self.shape.rows; 2],
            here: vec![(0, self.shard.clone())],
            width: Networks::mnist(count).inputs,
            session,
            streams: streams(),
            svgd: svgd(1e-3, 1e-6),
            reset_optimizer: true,
            personal: false,
            robust: None,
        };
        let mut clients = config.build(setup)?.clients;
        Ok(clients.remove(0).1)
    }
}
