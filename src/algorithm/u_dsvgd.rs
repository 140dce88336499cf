//! U-DSVGD, DSVGD with exact factors. Source: Kassab & Simeone Algorithm 4, eq. (10), (13)-(15).
//!
//! A client keeps the global particles before and after each of its own visits. Its factor is their ratio,
//!
//! log t_k(θ) = Σ_{j: client's own rounds} [ log q^(j)(θ) − log q^(j−1)(θ) ],  q^(0) = p0,
//!
//! so nothing has to be distilled, and memory grows by 2Nd numbers a visit. How the prior is divided among the factors
//! makes no difference here: it cancels between q and t_k.

use std::sync::Arc;

use fedstein_models::Model;
use fedstein_schema::Kind;
use serde::{Deserialize, Serialize};

use super::keys::{
    BATCH, DensityConfig, KDE, KDE_BANDWIDTH, KDE_CLIP, KDE_DAMPING, LIKELIHOOD_SCALE, LOCAL_EPOCHS, LOCAL_STEPS,
    LocalConfig, MINIBATCH, PARTICLE_COUNT, TEMPERATURE,
};
use super::kind::{Algorithm, Capabilities, REPLACES, Replies, UnusedKeys, VisitCost};
use super::relay::Relay;
use super::uploaded::Uploaded;
use crate::backend::Session;
use crate::checkpoint::State;
use crate::density::kde::Kde;
use crate::density::{KdeBandwidth, Likelihood, prior_score};
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{
    BATCHES, ClientHalf, Halves, Message, OPTIMIZER, Predictor, Question, Request, Setup, Watch, as_sent, diagnosed,
    message_of, particles_of,
};
use crate::schedule::indicator;
use crate::statistics::mean;
use crate::stein::{FirstNorm, OptimizerState, Score, Svgd};

/// `[algorithm] kind = "u-dsvgd"`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UDsvgdConfig {
    /// The number of particles N.
    pub particles: usize,
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The temperature α.
    pub temperature: f64,
    /// The kernel density estimate of the particles.
    #[serde(flatten)]
    pub density: DensityConfig,
}

impl UDsvgdConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "u-dsvgd",
        about: "DSVGD with exact factors; memory grows with the number of visits.",
        keys: &[
            PARTICLE_COUNT,
            LOCAL_STEPS,
            LOCAL_EPOCHS,
            BATCH,
            MINIBATCH,
            LIKELIHOOD_SCALE,
            TEMPERATURE,
            KDE,
            KDE_BANDWIDTH,
            KDE_DAMPING,
            KDE_CLIP,
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities {
        keeps_upload: true,
        model_prior: true,
        tilted: true,
        one_client_per_round: true,
        replies: Replies::Different(REPLACES),
        ..Capabilities::FEDERATED
    };
}

/// The global posterior q of a round.
enum Global {
    /// A negligible density of the particles. The local score contains the prior then.
    Negligible,
    /// The prior q^(0) = p0, and the λ that a density of the particles would have.
    Prior(Arc<dyn Model>, f64),
    /// The density of the particles.
    Kde(Box<Kde>),
}

/// From particles to a score at each of them.
type ScoreOf<'a> = Box<dyn FnMut(&Particles) -> Result<Score, RunError> + 'a>;

impl Global {
    /// The density of particles.
    fn of(kde: Kde) -> Self {
        if kde.is_negligible() { Self::Negligible } else { Self::Kde(Box::new(kde)) }
    }

    /// The score ∇ log q, for one loop with steps of at most this length; see [`Kde::evaluator`].
    fn score(&self, longest_step: f64) -> ScoreOf<'_> {
        match self {
            Self::Kde(kde) => {
                let mut kde = kde.evaluator(longest_step);
                Box::new(move |at| kde.score(at))
            }
            Self::Prior(model, _) => Box::new(move |at| Ok(prior_score(&**model, at, 1.0))),
            Self::Negligible => Box::new(|at| Ok(Score::zero(at.count()))),
        }
    }
}

/// The posterior q before and after one visit, and the particles Θ `[N, d]` of both densities.
struct PastVisit {
    before: Global,
    after: Kde,
    sent: Particles,
    moved: Particles,
}

/// The names under which a client keeps which of its visits began with p0, and Θ before and after each visit.
const FROM_PRIOR: &str = "from_prior";
const SENT: &str = "sent";
const MOVED: &str = "moved";

struct Client {
    config: UDsvgdConfig,
    svgd: Svgd,
    reset_optimizer: bool,
    model: Arc<dyn Model>,
    likelihood: Likelihood,
    /// The client's own rounds; their product is t_k.
    visits: Vec<PastVisit>,
    /// Θ after the last visit, where the client predicts with it.
    uploaded: Uploaded,
    optimizer: OptimizerState,
    like: Particles,
    session: Session,
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let theta = particles_of(&request.message, &self.like, &self.session)?;
        let mut optimizer = if self.reset_optimizer { OptimizerState::default() } else { self.optimizer.clone() };
        self.likelihood.start_visit(request.round);
        let before = self.global(&theta, request.round)?;
        let cavity = Cavity { q: &before, visits: &self.visits, config: self.config };
        let (mut first_norm, steps) = (FirstNorm::default(), self.config.local.steps(self.likelihood.rows()));
        let (likelihood, prior) = (&mut self.likelihood, cavity.prior_weight());
        let svgd = self.svgd.scaled(request.step_factor());
        let mut others = cavity.score(svgd.optimizer.longest_step(theta.dim()));
        // ∇ log p̃_k = ∇ log q − ∇ log t_k − (1/α) ∇L_k
        let tilted = |at: &Particles| {
            let score = likelihood.next_score(at, prior).plus(others(at)?);
            first_norm.take(&score, at)?;
            Ok(score)
        };
        let start = theta.clone();
        let moved = svgd.run::<RunError>(start, steps, &mut optimizer, tilted, |done| watch(done, steps))?;
        drop(others);
        // The client's density of q after its visit is that of the particles that the server receives.
        let moved = as_sent(moved, request.wire, &self.session)?;
        if !self.reset_optimizer {
            self.optimizer = optimizer;
        }
        let after = Kde::new(&moved, self.config.density.kde())?;
        let kde_ess = match &before {
            Global::Kde(q) => Some(mean(&q.effective_sample_size(&moved)?)),
            Global::Prior(..) | Global::Negligible => None,
        };
        self.uploaded.set(&moved);
        // A density without a score need not be kept.
        if !after.is_negligible() {
            self.visits.push(PastVisit { before, after, sent: theta, moved: moved.clone() });
        }
        Ok(diagnosed(message_of(&moved)?, first_norm.get(), kde_ess))
    }

    fn predictor(&mut self, _published: &Request) -> Result<Predictor, RunError> {
        Ok(self.uploaded.predictor())
    }

    fn answer(&mut self, request: &Request, question: &Question) -> Result<Message, RunError> {
        let theta = particles_of(&request.message, &self.like, &self.session)?;
        let score = match question {
            Question::LikelihoodScore { rows, .. } => self.likelihood.score_in(&theta, *rows, request.round, 0.0),
            Question::Discrepancy { rows, .. } => {
                let q = self.global(&theta, request.round)?;
                let cavity = Cavity { q: &q, visits: &self.visits, config: self.config };
                let local = self.likelihood.score_in(&theta, *rows, request.round, cavity.prior_weight());
                Score::dense(local).plus(cavity.score(f64::INFINITY)(&theta)?).evaluate(&theta)
            }
        };
        indicator::answer(question, &theta, &score)
    }

    fn state_bytes(&self) -> u64 {
        // Every visit keeps the particles of q before and after; p0 needs none.
        let sets = |visit: &PastVisit| 1 + u64::from(matches!(visit.before, Global::Kde(_)));
        self.visits.iter().map(sets).sum::<u64>() * self.like.bytes() + self.uploaded.bytes()
    }

    fn save(&self) -> Result<State, RunError> {
        let from_prior = self.visits.iter().map(|visit| usize::from(matches!(visit.before, Global::Prior(..))));
        let mut state = State::default().with_part(BATCHES, self.likelihood.save()).with_counts(FROM_PRIOR, from_prior);
        for (i, PastVisit { sent, moved, .. }) in self.visits.iter().enumerate() {
            state =
                state.with_particles(&format!("{SENT}_{i}"), sent)?.with_particles(&format!("{MOVED}_{i}"), moved)?;
        }
        state = self.uploaded.save(state)?;
        match self.reset_optimizer {
            true => Ok(state),
            false => Ok(state.with_optimizer(OPTIMIZER, &self.optimizer)?),
        }
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.likelihood.restore(&state.part(BATCHES))?;
        let from_prior = state.counts(FROM_PRIOR)?;
        let visits = from_prior.into_iter().enumerate().map(|(i, from_prior)| self.visit_in(state, i, from_prior != 0));
        self.visits = visits.collect::<Result<_, RunError>>()?;
        self.uploaded.restore(state, self.like.layout(), &self.session)?;
        if !self.reset_optimizer {
            self.optimizer = state.optimizer(OPTIMIZER, &self.session)?;
        }
        Ok(())
    }
}

impl Client {
    /// Reads visit i from a state. Its densities follow from their centres.
    fn visit_in(&self, state: &State, i: usize, from_prior: bool) -> Result<PastVisit, RunError> {
        let read = |name: &str| state.particles(&format!("{name}_{i}"), self.like.layout(), &self.session);
        let (sent, moved) = (read(SENT)?, read(MOVED)?);
        let kde = Kde::new(&sent, self.config.density.kde())?;
        let before = match from_prior {
            true => Global::Prior(self.model.clone(), kde.lambda()),
            false => Global::of(kde),
        };
        Ok(PastVisit { before, after: Kde::new(&moved, self.config.density.kde())?, sent, moved })
    }

    /// The posterior q^(i−1) at the start of round i.
    fn global(&self, theta: &Particles, round: usize) -> Result<Global, RunError> {
        let kde = Kde::new(theta, self.config.density.kde())?;
        Ok(match Global::of(kde) {
            Global::Kde(kde) if round == 1 => Global::Prior(self.model.clone(), kde.lambda()),
            global => global,
        })
    }
}

/// The cavity q/t_k in terms of kernel density estimates.
struct Cavity<'a> {
    q: &'a Global,
    visits: &'a [PastVisit],
    config: UDsvgdConfig,
}

impl Cavity<'_> {
    /// The weight of ∇ log p0 in the local score.
    fn prior_weight(&self) -> f64 {
        match self.q {
            Global::Negligible => 1.0,
            Global::Kde(_) | Global::Prior(..) => 0.0,
        }
    }

    /// The clipped score ρ·(∇ log q − ∇ log t_k), for one loop with steps of at most `longest_step`.
    fn score(&self, longest_step: f64) -> impl FnMut(&Particles) -> Result<Score, RunError> {
        let mut q = self.q.score(longest_step);
        let mut after: Vec<_> = self.visits.iter().map(|visit| visit.after.evaluator(longest_step)).collect();
        let mut before: Vec<_> = self.visits.iter().map(|visit| visit.before.score(longest_step)).collect();
        move |at| {
            let mut score = q(at)?;
            for (after, before) in after.iter_mut().zip(&mut before) {
                score = score.minus(after.score(at)?).plus(before(at)?);
            }
            match self.q {
                Global::Kde(q) => self.config.density.bounded(score, at, q.lambda()),
                Global::Prior(_, lambda) => self.config.density.bounded(score, at, *lambda),
                Global::Negligible => Ok(score),
            }
        }
    }
}

impl Algorithm for UDsvgdConfig {
    fn kind(&self) -> Kind {
        Self::KIND
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn particles(&self) -> usize {
        self.particles
    }

    fn temperature(&self) -> f64 {
        self.temperature
    }

    fn kde_bandwidth(&self) -> Option<KdeBandwidth> {
        Some(self.density.kde().bandwidth)
    }

    fn check(&self) -> Result<(), String> {
        self.density.check_for_factors()
    }

    fn visit_cost(&self, rows: usize) -> VisitCost {
        self.local.cost(rows)
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.local
            .unused_keys()
            .into_iter()
            .chain(self.density.unused_keys(&["kde_bandwidth", "kde_damping", "kde_clip"]))
            .collect()
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // A relay server over clients without past visits.
        let likelihoods = setup.likelihoods(self.local.data(self.temperature));
        let client = |(id, likelihood)| {
            let client = Client {
                config: *self,
                svgd: setup.svgd,
                reset_optimizer: setup.reset_optimizer,
                model: setup.model.clone(),
                likelihood,
                visits: Vec::new(),
                uploaded: Uploaded::new(setup.personal),
                optimizer: OptimizerState::default(),
                like: setup.initial.clone(),
                session: setup.session.clone(),
            };
            (id, Box::new(client) as _)
        };
        let clients = likelihoods.into_iter().map(client).collect();
        Ok(Halves { server: Box::new(Relay::new(setup.initial.clone(), setup.session.clone())), clients })
    }
}
