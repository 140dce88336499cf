//! Federated algorithms: each a server half and a client half that exchange messages.
//!
//! To add one: a file here with its configuration and its halves, and a line in [`Algorithm::build`].

pub mod dsgld;
pub mod dsvgd;
pub mod fedavg;
pub mod fedper;
pub mod fedprox;
pub mod fedsgd;
pub mod fedwba;
pub mod gaussian;
pub mod gvi;
pub mod langevin;
mod layers;
mod lbfgs;
mod local;
pub mod mean_field;
pub mod npv;
pub mod p_dsvgd;
pub mod per_fedavg;
pub mod pfedbayes;
pub mod pfedgp;
pub mod pfedme;
pub mod pfedvem;
pub mod pmd;
pub mod pvi;
mod relay;
pub mod scaffold;
pub mod sgld;
mod split;
pub mod svgd;
pub mod u_dsvgd;

use std::sync::Arc;

use burn::tensor::Tensor;
use fedstein_models::Model;

use crate::backend::{Backend, Session};
use crate::checkpoint::State;
use crate::density::{Likelihood, LikelihoodScale, Score};
use crate::error::RunError;
use crate::federation::fleet::Watch;
use crate::federation::message::{ClientId, Message, Question, Reply, Request};
use crate::federation::shard::{Minibatches, Order, Shard};
use crate::particles::Particles;
use crate::random::Streams;
use crate::stein::Svgd;

/// The server's side of an algorithm.
pub trait ServerHalf<B: Backend>: Send {
    /// A round begins with these clients.
    fn begin(&mut self, _round: usize, _clients: &[ClientId]) -> Result<(), RunError> {
        Ok(())
    }

    /// What a selected client is sent.
    fn configure(&self, round: usize, client: ClientId) -> Result<Message, RunError>;

    /// Another client is asked in the place of one that gave no usable reply.
    fn substitute(&mut self, _absent: ClientId, _by: ClientId) {}

    /// What this algorithm asks of a reply beyond what holds for all of them.
    ///
    /// # Errors
    /// Why the reply cannot be used, in words.
    fn check(&self, _reply: &Reply) -> Result<(), String> {
        Ok(())
    }

    /// Takes the validated replies of a round, in the order of selection.
    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError>;

    /// The global particles Θ: what predictions are made with.
    fn particles(&self) -> &Particles<B>;

    /// What every client is sent to predict with: Θ.
    fn publish(&self) -> Result<Message, RunError> {
        message_of(self.particles())
    }

    /// q as a density over θ, where it is more than its particles.
    fn posterior(&self) -> Posterior {
        Posterior::Particles
    }

    /// What the server noticed in the last round, by name; columns of `rounds.csv` where `experiment::diagnosis` has them.
    fn numbers(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Bytes of what the server keeps between rounds.
    fn state_bytes(&self) -> u64 {
        self.particles().bytes()
    }

    /// What it needs to go on after a break: all that rounds change and that does not follow from the rest.
    fn save(&self) -> Result<State, RunError>;

    /// Takes over what [`Self::save`] of a half that was built alike has returned.
    fn restore(&mut self, state: &State) -> Result<(), RunError>;
}

/// A client's side of an algorithm.
pub trait ClientHalf<B: Backend>: Send {
    /// Does the client's part of a round.
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError>;

    /// With what this client predicts on its own rows, given what the server published; leaves the client as it was.
    fn predictor(&mut self, _published: &Request) -> Result<Predictor<B>, RunError> {
        Ok(Predictor::Published)
    }

    /// Answers a question about the particles in the request; leaves the client as it was.
    fn answer(&mut self, _request: &Request, _question: &Question) -> Result<Message, RunError> {
        Err(RunError::Config("this algorithm's clients have no tilted density to be asked about".into()))
    }

    /// Bytes of what the client keeps between rounds, its rows apart.
    fn state_bytes(&self) -> u64 {
        0
    }

    /// What it needs to go on after a break, or as if its last visit had not been: all that rounds change and that does
    /// not follow from the rest.
    fn save(&self) -> Result<State, RunError>;

    /// Takes over what [`Self::save`] of a half that was built alike has returned.
    fn restore(&mut self, state: &State) -> Result<(), RunError>;
}

/// How a client predicts.
#[allow(missing_debug_implementations)] // Holds a closure.
pub enum Predictor<B: Backend> {
    /// With the particles that the server published.
    Published,
    /// With particles of its own.
    Own(Particles<B>),
    /// Rows `[B, p]` in, log-probabilities `[S, B, C]` of S predictive components out.
    Rows(Box<dyn Fn(Tensor<2>) -> Result<Tensor<3>, RunError>>),
}

/// What the global posterior q is.
#[derive(Clone, Debug, PartialEq)]
pub enum Posterior {
    /// Particles; a density only with a kernel around each.
    Particles,
    /// N(mean, covariance).
    Gaussian {
        /// `[d]`
        mean: Vec<f64>,
        /// `[d, d]`, row-major.
        covariance: Vec<f64>,
    },
    /// (1/N) Σ_n N(θ_n, v_n·I) around the particles.
    Mixture {
        /// v, `[N]`.
        variances: Vec<f64>,
    },
}

/// Both sides, ready to run.
pub struct Halves<B: Backend> {
    /// The server.
    pub server: Box<dyn ServerHalf<B>>,
    /// The clients, by id.
    pub clients: Vec<Box<dyn ClientHalf<B>>>,
}

/// How clients turn their rows into scores.
#[derive(Clone, Copy, Debug)]
pub struct LocalData {
    /// Rows B in a minibatch.
    pub batch: usize,
    /// In which order rows are read.
    pub order: Order,
    /// How a minibatch stands for all rows.
    pub scale: LikelihoodScale,
    /// α.
    pub temperature: f64,
}

/// An algorithm and its constants.
#[derive(Clone, Debug)]
pub enum Algorithm {
    /// Distributed SVGD.
    Dsvgd(dsvgd::DsvgdConfig),
    /// DSVGD whose factors are remembered exactly.
    UDsvgd(u_dsvgd::UDsvgdConfig),
    /// DSVGD of many clients at once.
    PDsvgd(p_dsvgd::PDsvgdConfig),
    /// SVGD on all rows in one place.
    Svgd(svgd::SvgdConfig),
    /// Langevin dynamics on all rows in one place.
    Sgld(sgld::SgldConfig),
    /// Langevin chains that travel between clients.
    Dsgld(dsgld::DsgldConfig),
    /// Partitioned variational inference with Gaussians.
    Pvi(pvi::PviConfig),
    /// Gaussian variational inference on all rows in one place.
    Gvi(gvi::GviConfig),
    /// Particle mirror descent on all rows in one place.
    Pmd(pmd::PmdConfig),
    /// Nonparametric variational inference on all rows in one place.
    Npv(npv::NpvConfig),
    /// Federated averaging.
    FedAvg(fedavg::FedAvgConfig),
    /// Federated gradient steps.
    FedSgd(fedsgd::FedSgdConfig),
    /// Particles and Wasserstein barycenters.
    FedWba(fedwba::FedWbaConfig),
    /// Averaging with a proximal term.
    FedProx(fedprox::FedProxConfig),
    /// Averaging with control variates.
    Scaffold(scaffold::ScaffoldConfig),
    /// Averaging below a personal head.
    FedPer(fedper::FedPerConfig),
    /// Averaging of a start from which a client adapts.
    PerFedAvg(per_fedavg::PerFedAvgConfig),
    /// Personal parameters around a shared centre.
    PFedMe(pfedme::PFedMeConfig),
    /// Personal Gaussians around a shared Gaussian.
    PFedBayes(pfedbayes::PFedBayesConfig),
    /// Gaussian heads on a shared base.
    PFedVem(pfedvem::PFedVemConfig),
    /// Gaussian processes on a shared embedding.
    PFedGp(pfedgp::PFedGpConfig),
}

/// What every algorithm starts from.
pub struct Setup<B: Backend> {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The clients' rows, by id.
    pub shards: Vec<Shard<B>>,
    /// Θ^(0).
    pub initial: Particles<B>,
    /// The open device.
    pub session: Session<B>,
    /// The run's random numbers.
    pub streams: Streams,
    /// Kernel and step rule.
    pub svgd: Svgd,
    /// Whether the optimiser starts afresh at each visit.
    pub reset_optimizer: bool,
}

impl<B: Backend> Setup<B> {
    fn likelihoods(&mut self, data: LocalData) -> Vec<Likelihood<B>> {
        let (model, streams) = (&self.model, self.streams);
        let shards = std::mem::take(&mut self.shards).into_iter().enumerate();
        let likelihood = |(client, shard): (usize, Shard<B>)| {
            let minibatches = Minibatches::new(data.order, shard.rows(), data.batch, streams, client);
            Likelihood::new(model.clone(), shard, minibatches, data.scale, data.temperature)
        };
        shards.map(likelihood).collect()
    }
}

impl Algorithm {
    /// Number of particles N.
    pub fn particles(&self) -> usize {
        match self {
            Self::Dsvgd(config) => config.particles,
            Self::UDsvgd(config) => config.particles,
            Self::PDsvgd(config) => config.local.particles,
            Self::Svgd(config) => config.particles,
            Self::Sgld(config) => config.particles,
            Self::Dsgld(config) => config.particles,
            Self::Pvi(config) => config.particles,
            Self::Gvi(config) => config.particles,
            Self::Pmd(config) => config.particles,
            Self::Npv(config) => config.particles,
            Self::FedWba(config) => config.particles,
            Self::PFedBayes(config) => config.particles,
            Self::PFedVem(config) => config.particles,
            Self::FedAvg(_)
            | Self::FedSgd(_)
            | Self::FedProx(_)
            | Self::Scaffold(_)
            | Self::FedPer(_)
            | Self::PerFedAvg(_)
            | Self::PFedMe(_)
            | Self::PFedGp(_) => 1,
        }
    }

    /// Whether all rows are in one place: then there is one client, whatever the partition.
    pub fn is_centralised(&self) -> bool {
        matches!(self, Self::Svgd(_) | Self::Sgld(_) | Self::Gvi(_) | Self::Pmd(_) | Self::Npv(_))
    }

    /// Arrays of a reply that are changes already, not new values of what was sent under their names.
    pub fn changes(&self) -> &'static [&'static str] {
        match self {
            Self::FedSgd(_) => &[PARTICLES],
            Self::Scaffold(_) => &[scaffold::CONTROL],
            _ => &[],
        }
    }

    /// How many of K clients a round takes, where the algorithm itself decides.
    pub fn clients_a_round(&self, clients: usize) -> Option<usize> {
        match self {
            Self::Dsgld(config) => Some(config.workers(clients)),
            _ => None,
        }
    }

    /// Server and clients.
    ///
    /// # Errors
    /// The algorithm cannot work on this model or with these clients.
    pub fn build<B: Backend>(&self, setup: Setup<B>) -> Result<Halves<B>, RunError> {
        Ok(match self.clone() {
            Self::Dsvgd(config) => dsvgd::build(config, setup),
            Self::UDsvgd(config) => u_dsvgd::build(config, setup),
            Self::PDsvgd(config) => p_dsvgd::build(config, setup)?,
            Self::Svgd(config) => svgd::build(config, setup),
            Self::Sgld(config) => sgld::build(config, setup),
            Self::Dsgld(config) => dsgld::build(config, setup),
            Self::Pvi(config) => pvi::build(config, setup)?,
            Self::Gvi(config) => gvi::build(config, setup)?,
            Self::Pmd(config) => pmd::build(config, setup),
            Self::Npv(config) => npv::build(config, setup)?,
            Self::FedAvg(config) => fedavg::build(config, setup),
            Self::FedSgd(config) => fedsgd::build(config, setup),
            Self::FedWba(config) => fedwba::build(config, setup)?,
            Self::FedProx(config) => fedprox::build(config, setup)?,
            Self::Scaffold(config) => scaffold::build(config, setup)?,
            Self::FedPer(config) => fedper::build(config, setup)?,
            Self::PerFedAvg(config) => per_fedavg::build(config, setup)?,
            Self::PFedMe(config) => pfedme::build(config, setup)?,
            Self::PFedBayes(config) => pfedbayes::build(config, setup)?,
            Self::PFedVem(config) => pfedvem::build(config, setup)?,
            Self::PFedGp(config) => pfedgp::build(config, setup)?,
        })
    }
}

/// The name under which particles travel.
pub(crate) const PARTICLES: &str = "particles";

/// The part of a client's state that says where its rows are read.
const BATCHES: &str = "batches";

/// The part of a state that an optimiser remembers.
const OPTIMIZER: &str = "optimizer";

/// Reads the particles out of a message.
fn particles_of<B: Backend>(
    message: &Message,
    like: &Particles<B>,
    session: &Session<B>,
) -> Result<Particles<B>, RunError> {
    message
        .array(PARTICLES)
        .and_then(|array| Particles::from_array(array, like.layout(), session))
        .map_err(RunError::Device)
}

/// A message that carries particles.
fn message_of<B: Backend>(particles: &Particles<B>) -> Result<Message, RunError> {
    Ok(Message::default().with_array(PARTICLES, particles.to_array()?))
}

/// The name under which a client reports how many particles speak in the density of its cavity: 1 is one-hot.
pub const KDE_ESS: &str = "kde_ess";

/// The name under which a client reports the mean length of its target's score at the start of a visit.
pub const SCORE_NORM: &str = "score_norm";

/// A reply with what a client noticed on its visit.
fn diagnosed(reply: Message, score_norm: Option<f64>, kde_ess: Option<f64>) -> Message {
    let numbers = [(SCORE_NORM, score_norm), (KDE_ESS, kde_ess)];
    let known = numbers.into_iter().filter_map(|(name, value)| Some((name, value?)));
    known.fold(reply, |reply, (name, value)| reply.with_scalar(name, value))
}

/// `weight`·∇ log p0 at every particle.
fn prior_score<B: Backend>(model: &dyn Model, at: &Particles<B>, weight: f64) -> Score<B> {
    let zeros = at.blocks().iter().map(|block| block.zeros_like()).collect();
    let prior = model.prior().add_score(at.blocks(), zeros, weight);
    Score::dense(Particles::from_blocks(prior, at.layout().clone()))
}

/// Mean over particles of ‖S_n‖.
fn mean_norm<B: Backend>(score: &Score<B>, at: &Particles<B>) -> Result<f64, RunError> {
    Ok(mean(&score.evaluate(at).row_norms()?))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
