//! pFedBayes: every client has a Gaussian of its own, and all of them a Gaussian w as their prior. Source: Zhang et al.
//! 2022, Algorithm 1.
//!
//! q_k = N(μ_k, diag σ_k²) and w = N(μ, diag σ²) with σ = softplus(ρ) over all d parameters; the model's own prior is
//! not used. A step of client k, L of them in a visit, on a minibatch of B of its N_k rows:
//! 1. θ_s = μ_k + σ_k ⊙ z_s, z_s ~ N(0, v·I), s = 1..S;
//! 2. (μ_k, ρ_k) one step down −(N_k/B) (1/S) Σ_s Σ_{i ∈ batch} log p(y_i | x_i, θ_s) + ζ KL(q_k ‖ w_k);
//! 3. (μ, ρ) of the client's copy w_k one step down KL(q_k ‖ w_k).
//!
//! Server: (μ, ρ) ← (1 − β)(μ, ρ) + β·mean of the clients' copies. 2d numbers are sent down, 2d up; q_k never leaves
//! the client. A client predicts with draws from q_k, and with the server's draws from w until its first visit.
//!
//! q_k starts at the w of the client's first visit. The unofficial public code (AllenBeau/pFedBayes) starts it at
//! w^(0), takes five steps of 2. for one of 3. by Adam that is never reset, on the batch's sum in 2. and (ζ/L)·KL in both,
//! weighs clients by their rows, and draws z with a standard deviation of 0.001, in training as in prediction:
//! `noise_variance = 1e-6`, almost a point estimate.

use std::sync::Arc;

use fedstein_models::Layout;
use fedstein_schema::Accepts::Float;
use fedstein_schema::Literal::{Float as F, Int as I};
use fedstein_schema::{Interval, Kind, POSITIVE, key};
use serde::{Deserialize, Serialize};

use super::keys::{
    BATCH, LIKELIHOOD_SCALE, LOCAL_EPOCHS, LOCAL_STEPS, LocalConfig, MINIBATCH, PARTICLE_COUNT, SAMPLES, SERVER_MIX,
};
use super::kind::{Algorithm, Capabilities, UnusedKeys, VisitCost};
use super::mean_field::{MeanField, MeanFieldState, noise};
use crate::backend::Session;
use crate::checkpoint::State;
use crate::density::Likelihood;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{
    BATCHES, ClientHalf, ClientId, Halves, Message, Predictor, Reply, Request, ServerHalf, Setup, Watch,
};
use crate::random::{Purpose, Streams};
use crate::stein::{Optimizer, SvgdError};

/// `[algorithm] kind = "pfedbayes"`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PFedBayesConfig {
    /// The number of draws N that predictions are made with.
    pub particles: usize,
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The number of draws S behind a step.
    pub samples: usize,
    /// The weight β of the clients' mean at the server.
    pub server_mix: f64,
    /// The weight ζ of the KL term.
    pub kl_weight: f64,
    /// The initial ρ^(0), the same for every coordinate.
    pub initial_rho: f64,
    /// The standard deviation of μ^(0) around 0.
    pub initial_sd: f64,
    /// The variance v of z in training and in prediction.
    pub noise_variance: f64,
}

impl PFedBayesConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "pfedbayes",
        about: "Personal Gaussians around a shared Gaussian (Zhang et al. 2022).",
        keys: &[
            PARTICLE_COUNT.default(I(10)).doc("Number of draws N for predictions."),
            LOCAL_STEPS,
            LOCAL_EPOCHS,
            BATCH,
            MINIBATCH,
            LIKELIHOOD_SCALE,
            SAMPLES.default(I(1)),
            SERVER_MIX,
            key("kl_weight", POSITIVE, F(10.0), "ζ: weight of KL(personal ‖ shared)."),
            key(
                "initial_rho",
                Float(Interval::FINITE),
                F(-2.5),
                "Initial ρ; a standard deviation is ln(1 + e^ρ) (public code: -3).",
            )
            .reference(F(-3.0)),
            key("initial_sd", POSITIVE, F(0.1), "Standard deviation of the initial means."),
            key(
                "noise_variance",
                POSITIVE,
                F(1.0),
                "Variance of the noise of a draw, in training and in prediction: 1 in the method, 1e-6 in the \
                 unofficial public code (sd 0.001), whose draws hardly differ from the mean.",
            )
            .reference(F(1e-6)),
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities =
        Capabilities { personal: true, own_start: true, pairs: false, ..Capabilities::FEDERATED };
}

/// The constants that server and clients share.
struct Problem {
    config: PFedBayesConfig,
    optimizer: Optimizer,
    reset_optimizer: bool,
    layout: Arc<Layout>,
    streams: Streams,
    session: Session,
}

impl Problem {
    fn read(&self, message: &Message) -> Result<MeanField, RunError> {
        MeanField::from_message(message, &self.layout, &self.session)
    }

    /// N draws `[N, d]` from q with the same z in every round, so that predictions change with q and not with the
    /// draws. Rounds count from 1, so that round 0 is the stream of no visit. Stream 0 is the server's, k + 1 client
    /// k's.
    fn predictive(&self, q: &MeanField, stream: usize) -> Result<Particles, RunError> {
        let mut rng = self.streams.rng(Purpose::Gaussian, 0, stream);
        Ok(q.at(&noise(&mut rng, self.config.noise_variance, self.config.particles, &self.layout, &self.session)?))
    }
}

struct Server {
    problem: Arc<Problem>,
    /// The shared Gaussian w.
    shared: MeanField,
    draws: Particles,
}

impl ServerHalf for Server {
    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        self.shared.to_message()
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        let mix = self.problem.config.server_mix;
        let mut mixed = self.shared.times(1.0 - mix);
        for reply in &replies {
            mixed = mixed.plus(self.problem.read(&reply.message)?, mix / replies.len() as f64);
        }
        self.shared = mixed;
        self.draws = self.problem.predictive(&self.shared, 0)?;
        Ok(())
    }

    fn particles(&self) -> &Particles {
        &self.draws
    }

    fn state_bytes(&self) -> u64 {
        self.shared.bytes() + self.draws.bytes()
    }

    /// The state holds w only; the draws follow from it.
    fn save(&self) -> Result<State, RunError> {
        self.shared.save()
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.shared = MeanField::in_state(state, &self.problem.layout, &self.problem.session)?;
        self.draws = self.problem.predictive(&self.shared, 0)?;
        Ok(())
    }
}

/// The optimiser states of q_k and of w_k.
#[derive(Clone, Debug, Default)]
struct States {
    personal: MeanFieldState,
    shared: MeanFieldState,
}

/// The names of the parts of a client's state: q_k, and the optimiser states of q_k and of w_k.
const PERSONAL: &str = "personal";
const OF_PERSONAL: &str = "personal_optimizer";
const OF_SHARED: &str = "shared_optimizer";

struct Client {
    problem: Arc<Problem>,
    likelihood: Likelihood,
    client: ClientId,
    /// The client's Gaussian q_k, from the first visit on.
    personal: Option<MeanField>,
    states: States,
}

impl Client {
    /// q_k and w_k after L steps from here.
    fn fit(
        &mut self,
        mut personal: MeanField,
        mut shared: MeanField,
        states: &mut States,
        request: &Request,
        watch: Watch,
    ) -> Result<(MeanField, MeanField), RunError> {
        let Problem { config, optimizer, layout, streams, session, .. } = &*self.problem;
        let (steps, optimizer) = (config.local.steps(self.likelihood.rows()), optimizer.scaled(request.step_factor()));
        self.likelihood.start_visit(request.round);
        let mut rng = streams.rng(Purpose::Gaussian, request.round, self.client);
        for step in 1..=steps {
            let z = noise(&mut rng, config.noise_variance, config.samples, layout, session)?;
            let scores = self.likelihood.next_gradient(&personal.at(&z), 0.0);
            let ascent = personal.pulled_back(&scores, &z).plus(personal.kl_gradient(&shared), -config.kl_weight);
            personal = personal.step(ascent, &optimizer, &mut states.personal);
            let ascent = shared.reverse_kl_gradient(&personal).times(-1.0);
            shared = shared.step(ascent, &optimizer, &mut states.shared);
            watch(step, steps);
        }
        if !(personal.is_finite()? && shared.is_finite()?) {
            return Err(SvgdError::NotFinite { step: steps, particle: 0 }.into());
        }
        Ok((personal, shared))
    }
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let shared = self.problem.read(&request.message)?;
        let personal = self.personal.clone().unwrap_or_else(|| shared.clone());
        let mut states = if self.problem.reset_optimizer { States::default() } else { self.states.clone() };
        let (personal, shared) = self.fit(personal, shared, &mut states, request, watch)?;
        (self.personal, self.states) = (Some(personal), states);
        shared.to_message()
    }

    fn predictor(&mut self, _published: &Request) -> Result<Predictor, RunError> {
        match &self.personal {
            Some(personal) => Ok(Predictor::Own(self.problem.predictive(personal, self.client + 1)?)),
            None => Ok(Predictor::Published),
        }
    }

    fn state_bytes(&self) -> u64 {
        self.personal.as_ref().map_or(0, MeanField::bytes)
    }

    fn save(&self) -> Result<State, RunError> {
        let mut state = State::default().with_part(BATCHES, self.likelihood.save());
        if let Some(personal) = &self.personal {
            state = state.with_part(PERSONAL, personal.save()?);
        }
        if !self.problem.reset_optimizer {
            let States { personal, shared } = &self.states;
            state = state.with_part(OF_PERSONAL, personal.save()?).with_part(OF_SHARED, shared.save()?);
        }
        Ok(state)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        let Problem { layout, session, reset_optimizer, .. } = &*self.problem;
        self.likelihood.restore(&state.part(BATCHES))?;
        let personal = || MeanField::in_state(&state.part(PERSONAL), layout, session);
        self.personal = state.has(PERSONAL).then(personal).transpose()?;
        if !reset_optimizer {
            let of = |part: &str| MeanFieldState::in_state(&state.part(part), session);
            self.states = States { personal: of(OF_PERSONAL)?, shared: of(OF_SHARED)? };
        }
        Ok(())
    }
}

impl Algorithm for PFedBayesConfig {
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
        VisitCost { draws: self.samples, ..self.local.cost(rows) }
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.local.unused_keys()
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // A server that averages copies of w, and clients that keep their q_k.
        let likelihoods = setup.likelihoods(self.local.data(1.0));
        let problem = Arc::new(Problem {
            config: *self,
            optimizer: setup.svgd.optimizer,
            reset_optimizer: setup.reset_optimizer,
            layout: setup.model.layout().clone(),
            streams: setup.streams,
            session: setup.session,
        });
        // Stream 0 drew the model's own initial particles, which pFedBayes does not use.
        let mut rng = problem.streams.rng(Purpose::InitialParticles, 0, 1);
        let mean = noise(&mut rng, self.initial_sd.powi(2), 1, &problem.layout, &problem.session)?;
        let shared = MeanField::with_rho(mean, self.initial_rho);
        let client = |(client, likelihood)| {
            let (problem, states) = (problem.clone(), States::default());
            (client, Box::new(Client { problem, likelihood, client, personal: None, states }) as _)
        };
        let clients = likelihoods.into_iter().map(client).collect();
        let draws = problem.predictive(&shared, 0)?;
        Ok(Halves { server: Box::new(Server { problem, shared, draws }), clients })
    }
}
