//! W5: one FedWBA round: 10 clients × N = 10 networks × 50 steps with B = 250 of 1200 rows, against the density of the
//! global particles (W5a); then the barycenter of 50 clients' particles (W5b).
//!
//! The clients are the algorithm's own, in a fleet: in parallel on a CPU. The 40 others hold the same modes in another
//! order, each with its own noise, so that the matching is not trivial.

use rand::seq::SliceRandom;

use super::cost::Networks;
use super::synthetic::{DENSITY, images, local, network, particles, shards, streams, svgd};
use super::timing::{Bench, Line};
use crate::algorithm::Algorithm;
use crate::algorithm::fedwba::{FedWbaConfig, Over, Start, Weights};
use crate::error::RunError;
use crate::federation::fleet::{Fleet, InProcess};
use crate::ot::{BarycenterConfig, Eq5, Iterate, barycenter, index_mean};
use crate::particles::Particles;
use crate::protocol::{Ask, PARTICLES, Reply, Request, Setup, SharedMessage, all_here};
use crate::random::Purpose;

/// N, B, N_k and L; the number of clients that train, and of all clients.
#[derive(Clone, Copy)]
struct Shape {
    count: usize,
    batch: usize,
    rows: usize,
    steps: usize,
    trained: usize,
    clients: usize,
}

/// Times the workload.
///
/// # Errors
/// The device fails, particles diverge, or the barycenter is undefined.
pub(super) fn lines(bench: &Bench) -> Result<Vec<Line>, RunError> {
    let full = Shape { count: 10, batch: 250, rows: 1200, steps: 50, trained: 10, clients: 50 };
    let tiny = Shape { count: 3, batch: 4, rows: 8, steps: 2, trained: 2, clients: 4 };
    let shape = bench.settings.size.pick(full, tiny);
    let Shape { count, batch, steps, trained, clients, .. } = shape;
    let round = Round::new(shape, bench)?;
    let networks = Networks::mnist(count);

    let local = networks.fedwba_clients(trained, steps, batch);
    let a = bench.line(format!("W5a fedwba {trained} clients"), local, 1, || round.train().map(drop))?;
    let iterations = aggregate(&round.sets)?;
    let transport = networks.barycenter(clients, iterations);
    let b = bench.line(format!("W5b barycenter K={clients}"), transport, 1, || aggregate(&round.sets).map(drop))?;
    let b = b.noted(format!("fixed-point iters={iterations}"));

    let mut last = 0;
    let cost = local.plus(transport);
    let whole = bench.line("W5 fedwba round", cost, 1, || {
        let mut sets = round.train()?;
        sets.extend_from_slice(&round.sets[trained..]);
        last = aggregate(&sets)?;
        Ok(())
    })?;
    let share = 100.0 * b.record.median / whole.record.median;
    Ok(vec![whole.noted(format!("bary iters={last}; the barycenter is {share:.0} % of the round")), a, b])
}

/// Computes the barycenter from the mean by index; returns its number of updates.
fn aggregate(sets: &[Particles]) -> Result<usize, RunError> {
    Ok(barycenter(sets, None, &index_mean(sets)?, &BarycenterConfig::default())?.iterations())
}

struct Round<'a> {
    fleet: InProcess<'static>,
    requests: Vec<Request>,
    /// The particle sets of all clients, `[K]` sets of `[N, d]`.
    sets: Vec<Particles>,
    bench: &'a Bench,
}

impl<'a> Round<'a> {
    fn new(shape: Shape, bench: &'a Bench) -> Result<Self, RunError> {
        let Shape { count, batch, rows, steps, trained, clients } = shape;
        let (networks, session) = (Networks::mnist(count), bench.session.clone());
        let model = network(networks);
        let modes = particles(&*model, count, 1, &session)?;
        let set = |client: usize| {
            let mut order: Vec<usize> = (0..count).collect();
            order.shuffle(&mut streams().rng(Purpose::Data, 5, client));
            let own = particles(&*model, count, 2 + client, &session)?;
            Ok(modes.rows(&order).zip(own, |mode, own| (mode + own).mul_scalar(0.7)))
        };
        let sets = (0..clients).map(set).collect::<Result<Vec<_>, RunError>>()?;

        let config = FedWbaConfig {
            particles: count,
            local: local(steps, batch),
            temperature: 1.0,
            density: DENSITY,
            start: Start::Global,
            over: Over::Sampled,
            weights: Weights::Uniform,
            iterate: Iterate::FixedPoint,
            eq5: Eq5::N,
            shared_layers: Vec::new(),
        };
        let data = images(6, trained * rows, networks.inputs, networks.outputs);
        let (roster, here) = all_here(shards(data, trained, &session));
        let setup = Setup {
            initial: index_mean(&sets)?,
            roster,
            here,
            width: networks.inputs,
            model,
            session,
            streams: streams(),
            svgd: svgd(1e-3, 1e-6),
            reset_optimizer: true,
            personal: false,
            robust: None,
        };
        let halves = config.build(setup)?;
        let message = SharedMessage::from(halves.server.configure(1)?);
        let request = |client| Request::new(1, client, Ask::Train, message.clone());
        let requests = (0..trained).map(request).collect();
        Ok(Self { fleet: InProcess::new(halves.clients, bench.session.backend()), requests, sets, bench })
    }

    /// Trains the clients; returns their particles.
    fn train(&self) -> Result<Vec<Particles>, RunError> {
        let replies = self.fleet.dispatch(&self.requests, &|_, _| {}).into_iter();
        // The round is settled, so that the same requests train again the next time.
        self.fleet.settle(1, &(0..self.requests.len()).collect::<Vec<_>>());
        let read = |reply: Result<Reply, RunError>| {
            let message = reply?.message;
            let array = message.array(PARTICLES)?;
            Particles::from_array(array, self.sets[0].layout(), &self.bench.session).map_err(RunError::Array)
        };
        replies.map(read).collect()
    }
}
