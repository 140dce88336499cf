//! DSVGD with Newton factors: a federated posterior that does not forget where clients differ.
//!
//! The factor of client k is, for each particle, a Gaussian *site* with the exact gradient of the client's log-likelihood at
//! an anchor a_k and a curvature F_k from its own rows:
//!
//! ∇ log t_k(θ) = G_k − F_k (θ − a_k),  a_k = Θ after its last visit, G_k = Σ_i ∇ log p(y_i | x_i, a_k)/α.
//!
//! A visit starts at Θ_in with A⁻ = Σ_{j ≠ k} ∇ log t_j(Θ_in) and Λ⁻ = Σ_{j ≠ k} F_j, and takes L steps of SVGD with
//!
//! S(Θ) = A⁻ − Λ⁻ (Θ − Θ_in) + ∇ log p0(Θ) + (1/α)(N_k/B) Σ_{i ∈ batch} ∇ log p(y_i | x_i, Θ),
//!
//! then computes G_k and F_k at the Θ that it returns. With a_k = Θ for all k, S is the score of the posterior of all rows,
//! whatever the F_k are: they decide speed and stability, not the fixed points, which are those of SVGD with all rows in
//! one place. Nothing is distilled.
//!
//! The server keeps all sites, and clients keep nothing between visits. Several clients of a round all start at one Θ; the
//! server then replaces their sites, takes the mean of the returned Θ by index, and moves it by L steps of SVGD on
//! p0·Π_k t_k.
//!
//! F_k is c times a Gauss-Newton matrix (`plan.rs`): its diagonal, the whole matrix, or Kronecker factors Ā_l ⊗ diag(b_l)
//! for each layer, whose second moments Ā_l are a running mean over visits. Factors with another Ā_l than that of today
//! do not go stale: U accumulates Ā_l·ΔV_l over visits, and a site's score is G_k − (U − U_k)·diag(b_k).
//!
//! Sources: the combination is fedstein's; its parts are DSVGD (Kassab & Simeone), partitioned variational inference
//! (Ashman et al. 2022), conducive gradients (El Mekkaoui et al. 2020) and K-FAC (Martens & Grosse 2015).

mod plan;
mod server;

use fedstein_schema::Accepts::{Choice, NumberOr as NumberOrWord};
use fedstein_schema::Literal::Text as T;
use fedstein_schema::{Interval, Kind, NumberOr, key};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::keys::{BATCH, LIKELIHOOD_SCALE, LOCAL_STEPS, LocalConfig, MINIBATCH, PARTICLE_COUNT, TEMPERATURE};
use super::local::{LocalLoop, LocalSteps};
use super::{Algorithm, Capabilities, Replies};
use crate::backend::{Backend, Session};
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{
    ClientHalf, ClientId, Halves, Message, Predictor, Question, Request, Setup, Watch, as_sent, diagnosed,
};
use crate::random::{Purpose, Streams};
use crate::rows::Rows;
use crate::schedule::indicator;
use crate::stein::Score;

use plan::{Form, Moments, Plan};
use server::Server;

/// `[algorithm] kind = "newton-dsvgd"`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewtonConfig {
    /// The number of particles N.
    pub particles: usize,
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The temperature α.
    pub temperature: f64,
    /// The form of a factor's curvature.
    pub curvature: CurvatureRule,
    /// The factor c on the curvature.
    pub curvature_scale: NumberOr<ScaleRule>,
}

/// The form of a factor's curvature, or the rule that chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CurvatureRule {
    /// `full` for a logistic regression with at most [`MOST_FULL`] weights, `kronecker` for other models.
    Auto,
    /// The diagonal.
    Diagonal,
    /// The whole matrix.
    Full,
    /// Kronecker factors.
    Kronecker,
}

/// The rule for the factor on the curvature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleRule {
    /// 1 for a model without hidden layers, 3 with one, 10 with more.
    Auto,
}

/// The largest number of weights for which `auto` chooses the whole matrix.
pub const MOST_FULL: usize = 128;

impl NewtonConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "newton-dsvgd",
        about: "DSVGD with Newton factors: remembers what each client knows, exactly to first order.",
        keys: &[
            PARTICLE_COUNT,
            LOCAL_STEPS,
            BATCH,
            MINIBATCH,
            LIKELIHOOD_SCALE,
            TEMPERATURE,
            key(
                "curvature",
                Choice(&["auto", "diagonal", "full", "kronecker"]),
                T("auto"),
                "Curvature of a client's factor: the Gauss-Newton matrix's diagonal (rotate the inputs: `data.rotate`), the whole matrix (a logistic regression), or one number an output of each layer times the second moment of the layer's inputs (rotate the inputs). `auto`: `full` for a logistic regression with at most 128 weights, else `kronecker`.",
            ),
            key(
                "curvature_scale",
                NumberOrWord(Interval::POSITIVE, &["auto"]),
                T("auto"),
                "Factor c on the curvature: larger holds Θ closer to where the other clients left it, and learns more slowly. `auto`: 1 without hidden layers, 3 with one, 10 with more.",
            ),
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities {
        tilted: true,
        replies: Replies::Different("every reply is the factor of other rows, and the server multiplies them"),
        changes: &[GRADIENT, CURVATURE],
        ..Capabilities::FEDERATED
    };

    /// The form of the curvature for a model whose layout has `dim` coordinates.
    fn form(&self, has_full: bool, dim: usize) -> Form {
        match self.curvature {
            CurvatureRule::Diagonal => Form::Diagonal,
            CurvatureRule::Full => Form::Full,
            CurvatureRule::Kronecker => Form::Kronecker,
            CurvatureRule::Auto if has_full && dim <= MOST_FULL => Form::Full,
            CurvatureRule::Auto => Form::Kronecker,
        }
    }

    /// The factor c on the curvature.
    fn scale(&self, plan: &Plan) -> f64 {
        match (self.curvature_scale, plan.hidden_layers()) {
            (NumberOr::Fixed(c), _) => c,
            (NumberOr::Rule(ScaleRule::Auto), 0) => 1.0,
            (NumberOr::Rule(ScaleRule::Auto), 1) => 3.0,
            (NumberOr::Rule(ScaleRule::Auto), _) => 10.0,
        }
    }
}

/// The names under which scores and curvatures of sites travel: those of the cavity to the client, those of its own site
/// back. With them go the second moments that act on displacements, and those of the client's own rows.
const GRADIENT: &str = "gradient";
const CURVATURE: &str = "curvature";
const SHARED_MOMENTS: &str = "input_moments";
const OWN_MOMENTS: &str = "hidden_moments";

/// The name under which a client keeps the Θ that it uploaded, where it predicts with it.
const UPLOADED: &str = "uploaded";

struct Client<B: Backend> {
    id: ClientId,
    plan: Plan,
    local: LocalSteps<B>,
    streams: Streams,
    session: Session<B>,
    /// Whether the client keeps the Θ that it uploads and predicts with it.
    personal: bool,
    uploaded: Option<Particles<B>>,
}

/// The other clients' sites as one: A⁻ − Λ⁻ (Θ − Θ_in).
struct Cavity<B: Backend> {
    from: Particles<B>,
    score: Particles<B>,
    curvature: Particles<B>,
    moments: Option<Moments<B>>,
}

impl<B: Backend> Cavity<B> {
    /// The score at the particles `[N, d]`, which are near Θ_in.
    fn score(&self, plan: &Plan, at: &Particles<B>) -> Particles<B> {
        let moved = at.clone().zip(self.from.clone(), |at, from| at - from);
        let change = plan.product(&self.curvature, plan.transported(moved, self.moments.as_ref()));
        self.score.clone().zip(change, |score, change| score - change)
    }
}

impl<B: Backend> Client<B> {
    /// The cavity in a request; `None` where no other client has a site.
    fn cavity(&self, from: &Particles<B>, message: &Message) -> Result<Option<Cavity<B>>, RunError> {
        if !message.arrays.contains_key(GRADIENT) {
            return Ok(None);
        }
        let (session, plan) = (&self.session, &self.plan);
        let read =
            |name: &str, layout| Ok::<_, RunError>(Particles::from_array(message.array(name)?, layout, session)?);
        Ok(Some(Cavity {
            from: from.clone(),
            score: read(GRADIENT, from.layout())?,
            curvature: read(CURVATURE, &plan.curvature)?,
            moments: Some(plan.moments_in(message, session)?),
        }))
    }
}

impl<B: Backend> ClientHalf<B> for Client<B> {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let theta = self.local.sent(request)?;
        let cavity = self.cavity(&theta, &request.message)?;
        let (plan, mut score_norm) = (&self.plan, None);
        let moved = self.local.run(theta, request.round, watch, |likelihood, at| {
            let own = likelihood.next_score(at, 1.0);
            let score = match &cavity {
                None => own,
                Some(cavity) => own.plus(Score::dense(cavity.score(plan, at))),
            };
            if score_norm.is_none() {
                score_norm = Some(score.mean_norm(at)?);
            }
            Ok(score)
        })?;

        // The site: G_k and F_k at the particles that go back, as the server will read them: its anchor.
        let moved = as_sent(moved, request.wire, &self.session)?;
        let likelihood = &self.local.likelihood;
        let gradient = likelihood.score_in(&moved, Rows::Full, request.round, 0.0);
        let mut rng = self.streams.rng(Purpose::Curvature, request.round, self.id);
        let mut uniforms = |shape: [usize; 2]| {
            let values = (0..shape[0] * shape[1]).map(|_| rng.random::<f32>()).collect();
            self.session.upload(values, shape)
        };
        let groups = likelihood.row_curvatures(&moved, &mut uniforms);
        let sums = plan.sums(groups, (likelihood.whole_scale(), likelihood.rows()), &moved);
        let mut reply = self.local.reply(&moved)?.with_array(GRADIENT, gradient.to_array()?);
        reply = reply.with_array(CURVATURE, sums.curvature.to_array()?);
        for (name, of) in [(SHARED_MOMENTS, &sums.moments.shared), (OWN_MOMENTS, &sums.moments.own)] {
            if let Some(of) = of {
                reply = reply.with_array(name, of.to_array()?);
            }
        }
        self.uploaded = self.personal.then(|| moved.clone());
        Ok(diagnosed(reply, score_norm, None))
    }

    fn predictor(&mut self, _published: &Request) -> Result<Predictor<B>, RunError> {
        Ok(self.uploaded.clone().map_or(Predictor::Published, Predictor::Own))
    }

    fn answer(&mut self, request: &Request, question: &Question) -> Result<Message, RunError> {
        let theta = self.local.sent(request)?;
        let likelihood = &self.local.likelihood;
        let score = match question {
            Question::LikelihoodScore { rows, .. } => likelihood.score_in(&theta, *rows, request.round, 0.0),
            Question::Discrepancy { rows, .. } => {
                let own = likelihood.score_in(&theta, *rows, request.round, 1.0);
                match self.cavity(&theta, &request.message)? {
                    // At Θ_in the sites' curvature does not act.
                    Some(cavity) => own.zip(cavity.score, |own, others| own + others),
                    None => own,
                }
            }
        };
        indicator::answer(question, &theta, &score)
    }

    fn state_bytes(&self) -> u64 {
        self.uploaded.as_ref().map_or(0, Particles::bytes)
    }

    fn save(&self) -> Result<State, RunError> {
        let state = self.local.save()?;
        Ok(match &self.uploaded {
            Some(uploaded) => state.with_particles(UPLOADED, uploaded)?,
            None => state,
        })
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.local.restore(state)?;
        self.uploaded = match state.has(UPLOADED) {
            true => Some(self.local.particles_in(state, UPLOADED)?),
            false => None,
        };
        Ok(())
    }
}

impl Algorithm for NewtonConfig {
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

    fn build<B: Backend>(&self, mut setup: Setup<B>) -> Result<Halves<B>, RunError> {
        let plan = self.plan(&setup)?;
        let (streams, session, personal) = (setup.streams, setup.session.clone(), setup.personal);
        let visit = LocalLoop { steps: self.local.local_steps, reset_optimizer: setup.reset_optimizer };
        let locals = LocalSteps::of_shards(&mut setup, self.local.data(self.temperature), visit);
        let client = |(id, local)| {
            let (plan, session) = (plan.clone(), session.clone());
            Box::new(Client { id, plan, local, streams, session, personal, uploaded: None }) as _
        };
        let clients = locals.enumerate().map(client).collect();
        Ok(Halves { server: Box::new(Server::new(*self, plan, setup)), clients })
    }
}

impl NewtonConfig {
    /// The plan of the curvature for this model, from the shapes that one row has in it.
    fn plan<B: Backend>(&self, setup: &Setup<B>) -> Result<Plan, RunError> {
        let row = setup.shards.first().map(|shard| shard.batch(&[0]));
        let row = row.ok_or_else(|| RunError::Config("there is no client".into()))?;
        let count = setup.initial.count();
        let uniforms = setup.session.upload(vec![0.0; count], [count, 1]);
        let probe = setup.model.row_curvature(setup.initial.blocks(), row.inputs, uniforms);
        let has_full = probe.as_ref().is_some_and(|probe| probe.layers.len() == 1 && probe.layers[0].full().is_some());
        let form = self.form(has_full, setup.initial.dim());
        Plan::new(form, &*setup.model, probe)
    }
}
