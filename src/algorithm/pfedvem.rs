//! pFedVEM: a base that all clients share, and a Gaussian head for each, whose prior bounds how far a client differs.
//! Source: Zhu et al. 2023 (variational expectation maximisation) and its public code.
//!
//! The base is a point; the head of client k is q_k = N(μ_k, diag σ_k²), σ_k = softplus of a raw number, with the prior
//! N(μ, ρ_k²·I) around the server's μ. A visit of client k, which receives base and μ:
//! 1. M-step, in closed form: ρ_k² = (Σσ_k² + ‖μ_k − μ‖²)/d_h. Its inverse is the client's confidence.
//! 2. E-step: `head_steps` steps on all rows down −(1/S) Σ_s Σ_i log p(y_i | x_i, base, head_s) + KL(q_k ‖ prior), with
//!    momentum: v ← m·v + g, (μ_k, raw) ← (μ_k, raw) − ε·v.
//! 3. L minibatch steps of the base down the mean loss over S draws of the new head, by the configured optimiser.
//!
//! Server: μ ← Σ_k μ_k/ρ_k² / Σ_k 1/ρ_k²; base ← Σ_k N_k base_k / Σ_k N_k. Base and μ are sent down; base, μ_k and the
//! confidence 1/ρ_k², as an array of length 1, are sent up. A client predicts with its head on the base that the server
//! published: with μ_k for one particle, else with draws from q_k. Until its first visit it predicts with (base, μ).
//!
//! q_k starts at N(μ, I) with the μ of the client's first visit, so that then ρ_k = 1. In the public code all clients
//! train in every round and some are averaged, the momentum also moves the base, where here `optimizer` does, and a
//! client is scored on its own new base, here on the averaged one.

use std::sync::Arc;

use burn::tensor::DType;
use fedstein_models::Layout;
use fedstein_schema::Accepts::Float;
use fedstein_schema::Literal::{Float as F, Int as I};
use fedstein_schema::{COUNT, Interval, Kind, POSITIVE, key};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::fedavg::{AveragingWeights, mixed};
use super::keys::{
    BATCH_OF_TEN, LOCAL_EPOCHS, LOCAL_STEPS, LocalConfig, MEAN_LOSS, MINIBATCH, PARTICLE_COUNT, PERSONAL_LAYERS,
    SAMPLES,
};
use super::kind::{Algorithm, Capabilities, UnusedKeys, VisitCost};
use super::mean_field::{MeanField, noise, single};
use super::split::Split;
use crate::array::{Array, Values};
use crate::backend::Session;
use crate::checkpoint::State;
use crate::density::{Likelihood, LikelihoodScale};
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{
    BATCHES, ClientHalf, ClientId, Halves, LocalData, Message, OPTIMIZER, PARTICLES, Predictor, ROWS, Reply, Request,
    ServerHalf, Setup, Watch,
};
use crate::random::{Purpose, Streams};
use crate::rows::Rows;
use crate::stein::{OptimizerState, Score, Svgd};

/// `[algorithm] kind = "pfedvem"`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PFedVemConfig {
    /// The number of draws from its head with which a client predicts; with 1 it predicts with the mean head.
    pub particles: usize,
    /// L steps of the base, B and the rows that the steps see.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The number of draws S behind a step.
    pub samples: usize,
    /// The number of layers of the head.
    pub personal_layers: usize,
    /// The number of steps of the head, each on all rows.
    pub head_steps: usize,
    /// The step size ε of the head.
    pub head_lr: f64,
    /// The momentum m of the head's steps.
    pub head_momentum: f64,
}

impl PFedVemConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "pfedvem",
        about: "Gaussian heads on a shared base (Zhu et al. 2023).",
        keys: &[
            PARTICLE_COUNT
                .default(I(1))
                .doc("Number of draws N from the head for a client's predictions; 1 is the mean head."),
            LOCAL_STEPS,
            LOCAL_EPOCHS,
            BATCH_OF_TEN,
            MINIBATCH,
            MEAN_LOSS,
            SAMPLES.default(I(5)),
            PERSONAL_LAYERS,
            key("head_steps", COUNT, I(10), "Number of steps on the Gaussian head, each on all rows."),
            key("head_lr", POSITIVE, F(0.001), "Step size of the steps on the head."),
            key("head_momentum", Float(Interval::DECAY), F(0.9), "Momentum of the steps on the head."),
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities { personal: true, pairs: false, ..Capabilities::FEDERATED };
}

/// The name of the mean of a head in messages, and of the head in a client's state.
const HEAD: &str = "head";

/// The name of the confidence 1/ρ_k² in messages. A rule that shortens long replies then bounds the weight of a client.
const CONFIDENCE: &str = "confidence";

/// The largest confidence that the server takes: the sum over any number of clients is finite.
const LARGEST_CONFIDENCE: f64 = 1e30;

/// The standard deviation σ_k before the first visit.
const INITIAL_SD: f64 = 1.0;

/// The constants that server and clients share.
struct Problem {
    config: PFedVemConfig,
    svgd: Svgd,
    reset_optimizer: bool,
    split: Split,
    whole: Arc<Layout>,
    head: Arc<Layout>,
    streams: Streams,
    session: Session,
}

impl Problem {
    /// The networks `[S, d]` of one base `[1, d_b]` under each of S heads `[S, d_h]`.
    fn under(&self, base: &Particles, heads: &Particles) -> Particles {
        let bases = base.map(|block| block.repeat_dim(0, heads.count()));
        Particles::from_blocks([bases.blocks(), heads.blocks()].concat(), self.whole.clone())
    }

    fn head_of(&self, whole: &Particles) -> Particles {
        Particles::from_blocks(whole.blocks()[self.split.base_blocks()..].to_vec(), self.head.clone())
    }

    fn message(&self, whole: &Particles) -> Result<Message, RunError> {
        Ok(self.split.message_of(whole)?.with_array(HEAD, self.head_of(whole).to_array()?))
    }

    /// Reads the base and the mean head.
    fn read(&self, message: &Message) -> Result<(Particles, Particles), RunError> {
        Ok((self.split.base_in(message, &self.session)?, single(message, HEAD, &self.head, &self.session)?))
    }

    /// Draws z ~ N(0, I), `[count, d_h]`.
    fn noise(&self, rng: &mut impl Rng, count: usize) -> Result<Particles, RunError> {
        noise(rng, 1.0, count, &self.head, &self.session)
    }

    /// An array of one number, which takes as many bytes as a coordinate.
    fn number(&self, value: f64) -> Array {
        let values = match self.session.dtype() {
            DType::F64 => Values::F64(vec![value]),
            _ => Values::F32(vec![value as f32]),
        };
        Array { shape: vec![1], values }
    }
}

struct Server {
    problem: Arc<Problem>,
    /// The base and μ, `[1, d]`.
    theta: Particles,
}

impl ServerHalf for Server {
    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        self.problem.message(&self.theta)
    }

    fn check(&self, reply: &Reply) -> Result<(), String> {
        confidence(reply).map(drop).map_err(|error| match error {
            RunError::Client { reason, .. } => reason,
            other => other.to_string(),
        })
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        let confidences = replies.iter().map(confidence).collect::<Result<Vec<f64>, RunError>>()?;
        let all: f64 = confidences.iter().sum();
        let by_confidence = confidences.iter().map(|confidence| confidence / all).collect();
        let read =
            replies.iter().map(|reply| self.problem.read(&reply.message)).collect::<Result<Vec<_>, RunError>>()?;
        let (bases, heads): (Vec<_>, Vec<_>) = read.into_iter().unzip();
        let (base, head) = (self.problem.split.base_of(&self.theta), self.problem.head_of(&self.theta));
        let base = mixed(&base, AveragingWeights::Rows.of(&replies), bases.into_iter().map(Ok))?;
        let centre = mixed(&head, (0.0, by_confidence), heads.into_iter().map(Ok))?;
        self.theta = self.problem.under(&base, &centre);
        Ok(())
    }

    fn particles(&self) -> &Particles {
        &self.theta
    }

    fn save(&self) -> Result<State, RunError> {
        Ok(State::default().with_particles(PARTICLES, &self.theta)?)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.theta = state.particles(PARTICLES, self.theta.layout(), &self.problem.session)?;
        Ok(())
    }
}

/// The confidence 1/ρ_k² of a reply.
fn confidence(reply: &Reply) -> Result<f64, RunError> {
    let refuse = |reason| RunError::Client { round: reply.round, client: reply.client, reason };
    let values = reply.message.array(CONFIDENCE).map_err(|error| refuse(error.to_string()))?.values.to_f64();
    match values[..] {
        [confidence] if confidence > 0.0 && confidence <= LARGEST_CONFIDENCE => Ok(confidence),
        _ => Err(refuse(format!(
            "\"{CONFIDENCE}\" must be a positive number of at most {LARGEST_CONFIDENCE:e}, not {values:?}"
        ))),
    }
}

struct Client {
    problem: Arc<Problem>,
    client: ClientId,
    /// The rows for steps of the base, in minibatches.
    minibatches: Likelihood,
    /// The rows for steps of the head: the sum over all of them.
    all_rows: Likelihood,
    /// The client's Gaussian head q_k, from the first visit on.
    head: Option<MeanField>,
    state: OptimizerState,
}

impl Client {
    /// The E-step on the received base.
    fn fit_head(
        &self,
        mut head: MeanField,
        prior: &MeanField,
        base: &Particles,
        rng: &mut impl Rng,
        watch: impl Fn(usize),
    ) -> Result<MeanField, RunError> {
        let PFedVemConfig { head_steps, head_lr, head_momentum, samples, .. } = self.problem.config;
        let mut velocity = head.times(0.0);
        for step in 1..=head_steps {
            let z = self.problem.noise(rng, samples)?;
            let at = self.problem.under(base, &head.at(&z));
            // The round only selects minibatches; all rows are read here.
            let scores = self.problem.head_of(&self.all_rows.score_in(&at, Rows::Full, 0, 0.0));
            let ascent = head.pulled_back(&scores, &z).plus(head.kl_gradient(prior), -1.0);
            velocity = velocity.times(head_momentum).plus(ascent, 1.0);
            head = head.plus(velocity.clone(), head_lr);
            watch(step);
        }
        if head.is_finite()? {
            return Ok(head);
        }
        Err(RunError::Config(format!(
            "the head is not finite after {head_steps} steps; a smaller algorithm.head_lr usually helps"
        )))
    }

    /// L steps of the base under draws of the head.
    fn fit_base(
        &mut self,
        base: Particles,
        head: &MeanField,
        (svgd, state): (Svgd, &mut OptimizerState),
        rng: &mut impl Rng,
        watch: impl Fn(usize),
    ) -> Result<Particles, RunError> {
        let Self { problem, minibatches, .. } = self;
        let PFedVemConfig { local, samples, .. } = problem.config;
        let steps = local.steps(minibatches.rows());
        let score = |base: &Particles| {
            let heads = head.at(&problem.noise(rng, samples)?);
            let scores = minibatches.next_gradient(&problem.under(base, &heads), 0.0);
            Ok(Score::dense(problem.split.base_of(&scores).mean()))
        };
        svgd.run(base, steps, state, score, watch)
    }
}

/// The prior variance ρ_k² = (Σσ_k² + ‖μ_k − μ‖²)/d_h.
///
/// # Errors
/// The variance is not finite, for example because the server's μ is not.
fn prior_variance(head: &MeanField, centre: &Particles) -> Result<f64, RunError> {
    let apart = head.mean.clone().zip(centre.clone(), |mean, centre| mean - centre);
    let variance = (head.sd().squared_norms()?[0] + apart.squared_norms()?[0]) / centre.dim() as f64;
    if variance.is_finite() {
        return Ok(variance);
    }
    Err(RunError::Config(format!(
        "the variance of the head's prior is {variance}; a smaller algorithm.head_lr usually helps"
    )))
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let problem = self.problem.clone();
        let PFedVemConfig { head_steps, local, .. } = problem.config;
        let steps = head_steps + local.steps(self.minibatches.rows());
        let (base, centre) = problem.read(&request.message)?;
        let head = self.head.clone().unwrap_or_else(|| MeanField::isotropic(centre.clone(), INITIAL_SD));
        let mut state = if problem.reset_optimizer { OptimizerState::default() } else { self.state.clone() };
        let mut rng = problem.streams.rng(Purpose::Gaussian, request.round, self.client);
        self.minibatches.start_visit(request.round);

        let variance = prior_variance(&head, &centre)?;
        let prior = MeanField::isotropic(centre, variance.sqrt());
        let head = self.fit_head(head, &prior, &base, &mut rng, |done| watch(done, steps))?;
        let svgd = problem.svgd.scaled(request.step_factor());
        let base = self.fit_base(base, &head, (svgd, &mut state), &mut rng, |done| watch(head_steps + done, steps))?;

        let reply = problem.message(&problem.under(&base, &head.mean))?;
        (self.head, self.state) = (Some(head), state);
        let rows = self.minibatches.rows() as f64;
        Ok(reply.with_array(CONFIDENCE, problem.number(1.0 / variance)).with_scalar(ROWS, rows))
    }

    fn predictor(&mut self, published: &Request) -> Result<Predictor, RunError> {
        let Problem { config, split, whole, streams, session, .. } = &*self.problem;
        let Some(head) = &self.head else { return Ok(Predictor::Published) };
        let heads = match config.particles {
            1 => head.mean.clone(),
            // Rounds count from 1, so that round 0 is the stream of no visit. It gives the same z in every round.
            count => head.at(&self.problem.noise(&mut streams.rng(Purpose::Gaussian, 0, self.client + 1), count)?),
        };
        let theta = single(&published.message, PARTICLES, whole, session)?;
        Ok(Predictor::Own(self.problem.under(&split.base_of(&theta), &heads)))
    }

    fn state_bytes(&self) -> u64 {
        self.head.as_ref().map_or(0, MeanField::bytes)
    }

    fn save(&self) -> Result<State, RunError> {
        let mut state = State::default().with_part(BATCHES, self.minibatches.save());
        if let Some(head) = &self.head {
            state = state.with_part(HEAD, head.save()?);
        }
        match self.problem.reset_optimizer {
            true => Ok(state),
            false => Ok(state.with_optimizer(OPTIMIZER, &self.state)?),
        }
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        let Problem { head, session, reset_optimizer, .. } = &*self.problem;
        self.minibatches.restore(&state.part(BATCHES))?;
        self.head = state.has(HEAD).then(|| MeanField::in_state(&state.part(HEAD), head, session)).transpose()?;
        if !reset_optimizer {
            self.state = state.optimizer(OPTIMIZER, session)?;
        }
        Ok(())
    }
}

impl Algorithm for PFedVemConfig {
    fn kind(&self) -> Kind {
        Self::KIND
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn particles(&self) -> usize {
        self.particles
    }

    fn visit_cost(&self, rows: usize) -> VisitCost {
        VisitCost { steps: self.local.steps(rows).saturating_add(self.head_steps), draws: self.samples }
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.local.unused_keys()
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // A server that averages bases by rows and heads by confidence, and clients that keep their q_k.
        let whole = setup.model.layout().clone();
        let split = Split::of(&whole, self.personal_layers)?;
        let of_head = whole.blocks()[split.base_blocks()..].iter();
        let head = Layout::new(of_head.map(|block| (block.name.as_str(), block.shape.as_slice())));
        let here = setup.here.clone();
        let minibatches = setup.likelihoods(self.local.data(1.0));
        setup.here = here;
        let all_rows = setup.likelihoods(LocalData { scale: LikelihoodScale::Full, ..self.local.data(1.0) });
        let theta = setup.initial.rows(&[0]);
        let problem = Arc::new(Problem {
            config: *self,
            svgd: setup.svgd,
            reset_optimizer: setup.reset_optimizer,
            split,
            whole,
            head: Arc::new(head),
            streams: setup.streams,
            session: setup.session,
        });
        let client = |((client, minibatches), (_, all_rows))| {
            let (problem, state) = (problem.clone(), OptimizerState::default());
            (client, Box::new(Client { problem, client, minibatches, all_rows, head: None, state }) as _)
        };
        let clients = minibatches.into_iter().zip(all_rows).map(client).collect();
        Ok(Halves { server: Box::new(Server { problem, theta }), clients })
    }
}
