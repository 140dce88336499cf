//! An algorithm of one's own, from outside the crate: federated averaging whose server keeps a moving average of θ.
//! It has its keys in the config, and the loop, checkpoints, evaluation and report that every other algorithm has.
//!
//! cargo run --release --example own_algorithm

use std::path::Path;

use fedstein::algorithm::keys::{BATCH, LIKELIHOOD_SCALE, LOCAL_STEPS, LocalConfig, MINIBATCH};
use fedstein::algorithm::local::{self, LocalLoop};
use fedstein::algorithm::{Algorithm, Capabilities};
use fedstein::backend::{Flex, Session};
use fedstein::checkpoint::State;
use fedstein::error::RunError;
use fedstein::experiment::schema::{Accepts, Interval, Key, Kind, Literal, key};
use fedstein::experiment::{Artifacts, ConfigLoader, Experiment, Overrides, Quiet, Source, run, write_report};
use fedstein::particles::Particles;
use fedstein::protocol::{Halves, Message, PARTICLES, Reply, ServerHalf, Setup, message_of, particles_of};
use serde::Deserialize;

/// `[algorithm] kind = "moving-average"`
#[derive(Clone, Copy, Debug, Deserialize)]
struct MovingAverage {
    #[serde(flatten)]
    local: LocalConfig,
    keep: f64,
}

const KEEP: Key = key("keep", Accepts::Float(Interval::DECAY), Literal::Float(0.5), "Share of θ that a round keeps.");
const KIND: Kind = Kind {
    name: "moving-average",
    about: "Averaging with memory.",
    keys: &[LOCAL_STEPS, BATCH, MINIBATCH, LIKELIHOOD_SCALE, KEEP],
};

impl Algorithm for MovingAverage {
    fn kind(&self) -> Kind {
        KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::FEDERATED
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        let visit = LocalLoop { local: self.local, reset_optimizer: setup.reset_optimizer };
        let clients = local::clients(&mut setup, self.local.data(1.0), visit, 0.0);
        let server = Server { theta: setup.initial, keep: self.keep, session: setup.session };
        Ok(Halves { server: Box::new(server), clients })
    }
}

/// θ ← keep·θ + (1 − keep)·mean of the replies.
struct Server {
    theta: Particles,
    keep: f64,
    session: Session,
}

impl ServerHalf for Server {
    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        message_of(&self.theta)
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        let weight = (1.0 - self.keep) / replies.len() as f64;
        let mut sum = self.theta.map(|block| block.mul_scalar(self.keep));
        for reply in replies {
            let moved = particles_of(&reply.message, &self.theta, &self.session)?;
            sum = sum.zip(moved, |sum, moved| sum + moved.mul_scalar(weight));
        }
        self.theta = sum;
        Ok(())
    }

    fn particles(&self) -> &Particles {
        &self.theta
    }

    fn save(&self) -> Result<State, RunError> {
        Ok(State::default().with_particles(PARTICLES, &self.theta)?)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.theta = state.particles(PARTICLES, self.theta.layout(), &self.session)?;
        Ok(())
    }
}

const CONFIG: &str = r#"
    name = "moving-average"
    rounds = 8
    algorithm = { kind = "moving-average", keep = 0.3 }
    partition = { clients = 4 }
    schedule = { clients = 4 }
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = Source { name: "own_algorithm", text: CONFIG };
    let (config, resolved) = ConfigLoader::default().with_algorithm(KIND).load(source, &Overrides::default())?;
    let algorithm: MovingAverage = config.own_algorithm(KIND)?;
    let directory = Path::new("runs/moving-average");
    let mut artifacts = Artifacts::new(directory.into(), true, resolved);
    let experiment = Experiment::new(config, "data").with_algorithm(algorithm);
    let outcome = run::<Flex>(&experiment, &Quiet, Some(&mut artifacts))?;
    for round in &outcome.rounds {
        println!("round {}: accuracy {:.3}", round.round, round.metric("accuracy").unwrap_or(f64::NAN));
    }
    if let Some(files) = write_report(directory, &directory.join("report"))? {
        println!("report  {}", files.html.display());
    }
    Ok(())
}
