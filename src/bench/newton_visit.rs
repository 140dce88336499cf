//! W8: one visit of newton-dsvgd on the network 784-100-10, with the sizes of W1 and W2.
//!
//! The client half handles a server's request as in a run: L local steps with the other clients' sites in the score,
//! then the gradient (W8c) and the curvature (W8d) of all its rows. The sites are those that the server sends after a
//! visit of a second client, with Kronecker factors. A local step (W8a) and a step of plain SVGD on the same rows (W8b),
//! which is W1's, take turns; the note has the median of the ratios of neighbouring units.

use super::cost::Networks;
use super::network_step::Step;
use super::synthetic::{images, local, network, particles, shards, streams, svgd};
use super::timing::{Bench, Line, median};
use crate::algorithm::Algorithm;
use crate::algorithm::newton::{Client, CurvatureRule, NewtonConfig, ScaleRule, SiteSum};
use crate::backend::Session;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{Ask, ClientHalf, ClientId, Halves, Message, PARTICLES, Request, ServerHalf, Setup, all_here};
use fedstein_schema::NumberOr;

/// The sizes N, B, N_k and L of a visit.
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
    let size = bench.settings.size;
    let full = Shape { count: 20, batch: 100, rows: 3000, steps: 200 };
    let shape = size.pick(full, Shape { count: 3, batch: 4, rows: 20, steps: 2 });
    let Shape { count, batch, rows, steps } = shape;
    let networks = Networks::mnist(count);
    let mut visit = Visit::new(shape, &bench.session)?;
    let cost = networks.newton_visit(batch, rows, steps);
    let whole = bench.line(format!("W8 newton-dsvgd L={steps}"), cost, 1, || visit.run())?;

    // N, B, and the number of steps of a unit.
    let sizes = size.pick([[20, 100, 10], [10, 250, 10]], [[3, 4, 2], [2, 5, 2]]);
    let mut lines = vec![whole];
    for [count, batch, steps] in sizes {
        lines.extend(steps_in_turn(bench, Shape { count, batch, rows: batch, steps })?);
    }
    let (client, theta) = (&visit.client, &visit.theta);
    let name = format!("W8c gradient, {rows} rows");
    let gradient = || {
        drop(client.gradient(theta, 1));
        Ok(())
    };
    lines.push(bench.line(name, networks.scores(1, rows), 1, gradient)?);
    let name = format!("W8d curvature, {rows} rows");
    let curvature = || client.with_curvature(Message::default(), theta, 1).map(drop);
    lines.push(bench.line(name, networks.curvature(rows), 1, curvature)?);
    Ok(lines)
}

/// A local step with the sites of a second client, and without, in turn; a unit has L steps.
///
/// # Errors
/// The device fails, or particles diverge.
fn steps_in_turn(bench: &Bench, shape: Shape) -> Result<[Line; 2], RunError> {
    let Shape { count, batch, steps, .. } = shape;
    let networks = Networks::mnist(count);
    let step = || Step::of_network(networks, batch, &bench.session);
    let sites = Visit::new(shape, &bench.session)?.sites()?;
    let (mut local, mut plain) = (step()?.with_sites(sites), step()?);
    let [local, plain] = bench.time_in_turn([&mut || local.run(steps), &mut || plain.run(steps)])?;
    let (local, plain) = (local.of_one(steps), plain.of_one(steps));
    let ratios: Vec<f64> = local.milliseconds.iter().zip(&plain.milliseconds).map(|(a, b)| a / b).collect();
    let name = |part: &str| format!("{part} N={count} B={batch}");
    Ok([
        bench
            .line_of(name("W8a local step"), Some(networks.newton_step(batch)), &local)
            .noted(format!("{:.2} times a step of plain SVGD", median(&ratios))),
        bench.line_of(name("W8b plain SVGD"), Some(networks.svgd_step(batch)), &plain),
    ])
}

/// The first of two clients, and the request to it after a visit of the second one.
struct Visit {
    client: Client,
    request: Request,
    /// Θ of the request.
    theta: Particles,
}

impl Visit {
    fn new(shape: Shape, session: &Session) -> Result<Self, RunError> {
        // One step is enough for a site.
        let Halves { mut server, mut clients } = config(Shape { steps: 1, ..shape }).build(setup(shape, session)?)?;
        let first = request(&*server, 1, 1)?;
        let reply = clients[1].1.handle(&first, &|_, _| {})?;
        server.aggregate(vec![first.reply(reply)])?;
        let request = request(&*server, 2, 0)?;
        let client = config(shape).first_client(setup(shape, session)?)?;
        let layout = server.particles().layout();
        let theta = Particles::from_array(request.message.array(PARTICLES)?, layout, session)?;
        Ok(Self { client, request, theta })
    }

    /// Runs a further visit of the client.
    fn run(&mut self) -> Result<(), RunError> {
        self.client.handle(&self.request, &|_, _| {}).map(drop)
    }

    /// The second client's site in the request.
    fn sites(&self) -> Result<SiteSum, RunError> {
        let sites = self.client.cavity(&self.theta, &self.request.message)?;
        sites.ok_or_else(|| RunError::Config("the second client has left no site".into()))
    }
}

fn request(server: &dyn ServerHalf, round: usize, client: ClientId) -> Result<Request, RunError> {
    let message = match server.configure_for(round, client)? {
        Some(own) => own,
        None => server.configure(round)?,
    };
    Ok(Request::new(round, client, Ask::Train, message))
}

fn config(Shape { count, batch, steps, .. }: Shape) -> NewtonConfig {
    NewtonConfig {
        particles: count,
        local: local(steps, batch),
        temperature: 1.0,
        curvature: CurvatureRule::Kronecker,
        curvature_scale: NumberOr::Rule(ScaleRule::Auto),
    }
}

fn setup(Shape { count, rows, .. }: Shape, session: &Session) -> Result<Setup, RunError> {
    let networks = Networks::mnist(count);
    let model = network(networks);
    let data = images(8, 2 * rows, networks.inputs, networks.outputs);
    let (roster, here) = all_here(shards(data, 2, session));
    Ok(Setup {
        initial: particles(&*model, count, 0, session)?,
        model,
        roster,
        here,
        width: networks.inputs,
        session: session.clone(),
        streams: streams(),
        svgd: svgd(1e-3, 1e-6),
        reset_optimizer: true,
        personal: false,
        robust: None,
    })
}
