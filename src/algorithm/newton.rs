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
//! F_k is c times a Gauss-Newton matrix (`plan.rs`): its diagonal, the whole matrix, or for each layer Kronecker factors
//! Ā_l ⊗ diag(b_l) or, with `kfac`, Ā_l ⊗ D_l, whose second moments Ā_l are a running mean over visits. Factors with
//! another Ā_l than that of today do not go stale: U accumulates Ā_l·ΔV_l over visits, and a site's score is
//! G_k − (U − U_k)·diag(b_k), or with D_k in the place of diag(b_k).
//!
//! Sources: the combination is fedstein's; its parts are DSVGD (Kassab & Simeone), partitioned variational inference
//! (Ashman et al. 2022), conducive gradients (El Mekkaoui et al. 2020) and K-FAC (Martens & Grosse 2015) and, for
//! convolutions, KFC (Grosse & Martens 2016).

mod names;
mod plan;
mod server;
mod site_sum;

use fedstein_models::{LayerCurvature, LayerRows, RowCurvature};
use fedstein_schema::Accepts::{Choice, NumberOr as NumberOrWord};
use fedstein_schema::Literal::Text as T;
use fedstein_schema::{Interval, Kind, NumberOr, key};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::keys::{
    BATCH, LIKELIHOOD_SCALE, LOCAL_EPOCHS, LOCAL_STEPS, LocalConfig, MINIBATCH, PARTICLE_COUNT, TEMPERATURE,
};
use super::kind::{Algorithm, Capabilities, ONE_FACTOR_EACH, Replies, UnusedKeys, VisitCost};
use super::local::{LocalLoop, LocalSteps};
use super::uploaded::Uploaded;
use crate::array::ArrayError;
use crate::backend::Session;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{
    ClientHalf, ClientId, Halves, Message, Predictor, Question, Request, Setup, Watch, as_sent, diagnosed,
};
use crate::random::{Purpose, Streams};
use crate::rows::Rows;
use crate::schedule::indicator;
use crate::stein::FirstNorm;

use names::{CURVATURE, GRADIENT};
use plan::{Form, Plan, Sums};
use server::Server;
pub(crate) use site_sum::SiteSum;

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

fedstein_schema::words! {
    /// The form of a factor's curvature, or the rule that chooses it.
    pub enum CurvatureRule {
        /// `full` for a logistic regression with at most [`MOST_FULL`] parameters; `kfac` for a network of dense layers
        /// with more than one hidden layer, or with one of at most [`MOST_UNITS`] units and at most [`FEW_OUTPUTS`]
        /// outputs; `kronecker` for other models.
        Auto = "auto",
        /// The diagonal.
        Diagonal = "diagonal",
        /// The whole matrix.
        Full = "full",
        /// Kronecker factors, the one of the outputs a diagonal.
        Kronecker = "kronecker",
        /// Kronecker factors, the one of the outputs a matrix.
        Kfac = "kfac",
    }
}

fedstein_schema::words! {
    /// The rule for the factor on the curvature.
    pub enum ScaleRule {
        /// 1 for a model without hidden layers. With them: with [`CurvatureRule::Kfac`] 2 for a regression and 5 for a
        /// classification, with the other forms 3 for one hidden layer and 10 for more.
        Auto = "auto",
    }
}

/// The largest number of parameters d for which `auto` chooses the whole matrix.
pub const MOST_FULL: usize = 128;

/// The largest number of outputs for which `auto` chooses `kfac` for a network with one hidden layer. The gradients of a
/// row in the hidden units are combinations of as many vectors as there are outputs, and therefore strongly correlated
/// where these are few.
pub const FEW_OUTPUTS: usize = 7;

/// The largest number of hidden units for which `auto` then chooses `kfac`, whose matrices have as many numbers as the
/// square of it, for each particle of each client.
pub const MOST_UNITS: usize = 256;

impl NewtonConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "newton-dsvgd",
        about: "DSVGD with Newton factors: remembers what each client knows, exactly to first order.",
        keys: &[
            PARTICLE_COUNT,
            LOCAL_STEPS,
            LOCAL_EPOCHS,
            BATCH,
            MINIBATCH,
            LIKELIHOOD_SCALE,
            TEMPERATURE,
            key(
                "curvature",
                Choice(CurvatureRule::WORDS),
                T(CurvatureRule::Auto.word()),
                "Curvature of a client's factor: the Gauss-Newton matrix's diagonal (rotate the inputs: `data.rotate`), the whole matrix (a logistic regression), or for each layer the second moment of its inputs (rotate the inputs of a dense first layer) times one number an output (`kronecker`) or a matrix over the outputs (`kfac`; slower, and better for regressions, few classes and several hidden layers). `auto`: `full` for a logistic regression with at most 128 parameters; `kfac` for networks of dense layers with more than one hidden layer, or with one of at most 256 units and at most 7 outputs; else `kronecker`.",
            ),
            key(
                "curvature_scale",
                NumberOrWord(Interval::POSITIVE, ScaleRule::WORDS),
                T(ScaleRule::Auto.word()),
                "Factor c on the curvature: larger holds Θ closer to where the other clients left it, and learns more slowly. `auto`: 1 without hidden layers; with them, with `kfac` 2 for a regression and 5 for a classification, with the other forms 3 for one hidden layer and 10 for more.",
            ),
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities {
        keeps_upload: true,
        model_prior: true,
        tilted: true,
        curvature: true,
        replies: Replies::Different(ONE_FACTOR_EACH),
        changes: &[GRADIENT, CURVATURE],
        row_sums: &[GRADIENT, CURVATURE],
        ..Capabilities::FEDERATED
    };

    /// The form of the curvature for a model whose layout has `dim` coordinates and whose rows have this curvature.
    fn form(&self, probe: Option<&RowCurvature>, dim: usize) -> Form {
        let has_full = probe.is_some_and(|probe| probe.layers.len() == 1 && probe.layers[0].has_full());
        let is_dense = |layer: &LayerCurvature| matches!(layer.rows, LayerRows::Dense { .. });
        let is_kfac = probe.is_some_and(|probe| {
            let outputs: Vec<usize> = probe.layers.iter().map(|layer| layer.sizes()[0]).collect();
            let is_mixed = match outputs[..] {
                [] | [_] => false,
                [hidden, outputs] => hidden <= MOST_UNITS && outputs <= FEW_OUTPUTS,
                _ => true,
            };
            is_mixed && probe.layers.iter().all(is_dense)
        });
        match self.curvature {
            CurvatureRule::Diagonal => Form::Diagonal,
            CurvatureRule::Full => Form::Full,
            CurvatureRule::Kronecker => Form::Kronecker,
            CurvatureRule::Kfac => Form::Kfac,
            CurvatureRule::Auto if has_full && dim <= MOST_FULL => Form::Full,
            CurvatureRule::Auto if is_kfac => Form::Kfac,
            CurvatureRule::Auto => Form::Kronecker,
        }
    }

    /// The factor c on the curvature.
    fn scale(&self, plan: &Plan) -> f64 {
        match (self.curvature_scale, plan.form, plan.hidden_layers()) {
            (NumberOr::Fixed(c), ..) => c,
            (NumberOr::Rule(ScaleRule::Auto), Form::Kfac, 1..) if plan.noise.is_some() => 2.0,
            (NumberOr::Rule(ScaleRule::Auto), Form::Kfac, 1..) => 5.0,
            (NumberOr::Rule(ScaleRule::Auto), _, 0) => 1.0,
            (NumberOr::Rule(ScaleRule::Auto), _, 1) => 3.0,
            (NumberOr::Rule(ScaleRule::Auto), ..) => 10.0,
        }
    }
}

/// A client half; its methods are the parts of a visit.
pub(crate) struct Client {
    id: ClientId,
    plan: Plan,
    local: LocalSteps,
    streams: Streams,
    session: Session,
    /// Θ after the last visit, where the client predicts with it.
    uploaded: Uploaded,
}

impl Client {
    /// The cavity in a request, the other clients' sites as one: A⁻ − Λ⁻ (Θ − Θ_in), with Θ_in `[N, d]`. `None` where
    /// no other client has a site.
    ///
    /// # Errors
    /// The message's arrays are missing or have another shape.
    pub(crate) fn cavity(&self, from: &Particles, message: &Message) -> Result<Option<SiteSum>, RunError> {
        if !message.arrays.contains_key(GRADIENT) {
            return Ok(None);
        }
        let (session, plan) = (&self.session, &self.plan);
        plan.check_shapes(message, from).map_err(ArrayError::Content)?;
        let read =
            |name: &str, layout| Ok::<_, RunError>(Particles::from_array(message.array(name)?, layout, session)?);
        let (score, curvature) = (read(GRADIENT, from.layout())?, read(CURVATURE, &plan.curvature)?);
        let moments = plan.moments_in(message, session)?;
        Ok(Some(SiteSum::new(plan, from.clone(), score, &curvature, &moments)))
    }

    /// G_k at the particles `[N, d]`, from all rows of the client.
    pub(crate) fn gradient(&self, at: &Particles, round: usize) -> Particles {
        self.local.likelihood.score_in(at, Rows::Full, round, 0.0)
    }

    /// Adds the curvature of all rows of the client at the particles `[N, d]` to a message, before the factor c, and the
    /// second moments that go with it.
    ///
    /// # Errors
    /// The device does not answer.
    pub(crate) fn with_curvature(&self, message: Message, at: &Particles, round: usize) -> Result<Message, RunError> {
        let Sums { curvature, moments } = self.sums(at, round);
        moments.add_to(message.with_array(CURVATURE, curvature.to_array()?))
    }

    fn sums(&self, at: &Particles, round: usize) -> Sums {
        let likelihood = &self.local.likelihood;
        let mut rng = self.streams.rng(Purpose::Curvature, round, self.id);
        let mut uniforms = |shape: [usize; 2]| {
            let values = (0..shape[0] * shape[1]).map(|_| rng.random::<f32>()).collect();
            self.session.upload(values, shape)
        };
        let groups = likelihood.row_curvatures(at, self.plan.rows_at_once, &mut uniforms);
        self.plan.sums(groups, (likelihood.whole_scale(), likelihood.rows()), at)
    }
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let theta = self.local.sent(request)?;
        let cavity = self.cavity(&theta, &request.message)?;
        let mut first_norm = FirstNorm::default();
        let moved = self.local.run(theta, request, watch, |likelihood, at| {
            let own = likelihood.next_score(at, 1.0);
            let score = match &cavity {
                None => own,
                Some(cavity) => own.plus(cavity.score(at)),
            };
            first_norm.take(&score, at)?;
            Ok(score)
        })?;

        // The site: G_k and F_k at the particles that go back, as the server will read them: its anchor.
        let moved = as_sent(moved, request.wire, &self.session)?;
        let reply = self.local.reply(&moved)?.with_array(GRADIENT, self.gradient(&moved, request.round).to_array()?);
        let reply = self.with_curvature(reply, &moved, request.round)?;
        self.uploaded.set(&moved);
        Ok(diagnosed(reply, first_norm.get(), None))
    }

    fn predictor(&mut self, _published: &Request) -> Result<Predictor, RunError> {
        Ok(self.uploaded.predictor())
    }

    fn answer(&mut self, request: &Request, question: &Question) -> Result<Message, RunError> {
        let theta = self.local.sent(request)?;
        let likelihood = &self.local.likelihood;
        let score = match question {
            Question::LikelihoodScore { rows, .. } => likelihood.score_in(&theta, *rows, request.round, 0.0),
            Question::Discrepancy { rows, .. } => {
                let own = likelihood.score_in(&theta, *rows, request.round, 1.0);
                // The score of the cavity at Θ is A⁻, whatever the curvature.
                match request.message.arrays.get(GRADIENT) {
                    Some(others) => {
                        let others = Particles::from_array(others, theta.layout(), &self.session)?;
                        if others.count() != own.count() {
                            let (found, wanted) = (others.count(), own.count());
                            let problem = format!("`{GRADIENT}` is of {found} particles, and the request has {wanted}");
                            return Err(ArrayError::Content(problem).into());
                        }
                        own.zip(others, |own, others| own + others)
                    }
                    None => own,
                }
            }
        };
        indicator::answer(question, &theta, &score)
    }

    fn state_bytes(&self) -> u64 {
        self.uploaded.bytes()
    }

    fn save(&self) -> Result<State, RunError> {
        self.uploaded.save(self.local.save()?)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.local.restore(state)?;
        self.uploaded.restore(state, self.local.layout(), &self.session)
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

    fn visit_cost(&self, rows: usize) -> VisitCost {
        self.local.cost(rows)
    }

    fn held_numbers(&self, setup: &Setup) -> usize {
        let (count, dim) = (setup.initial.count(), setup.initial.dim());
        let probe = Self::probe(setup);
        // G, and the curvature with the second moments.
        let curvature = match self.form(probe.as_ref(), dim) {
            Form::Diagonal => count.saturating_mul(dim),
            Form::Full => count.saturating_mul(dim).saturating_mul(dim),
            form => probe.iter().flat_map(|probe| &probe.layers).fold(0, |sum: usize, layer| {
                let [outputs, inputs] = layer.sizes();
                let of_outputs = if form == Form::Kfac { outputs.saturating_mul(outputs) } else { outputs };
                let of_inputs = if layer.has_diagonal_moment() { inputs } else { inputs.saturating_mul(inputs) };
                sum.saturating_add(count.saturating_mul(of_outputs.saturating_add(of_inputs)))
            }),
        };
        curvature.saturating_add(count.saturating_mul(dim))
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.local.unused_keys()
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        let plan = self.plan(&setup)?;
        let clients = self.clients(&plan, &mut setup).map(|client| (client.id, Box::new(client) as _)).collect();
        let server = Server::new(self.local, self.scale(&plan), plan, setup);
        Ok(Halves { server: Box::new(server), clients })
    }
}

impl NewtonConfig {
    /// The clients of a setup that live in this process.
    fn clients(&self, plan: &Plan, setup: &mut Setup) -> impl Iterator<Item = Client> {
        let (streams, session, is_kept) = (setup.streams, setup.session.clone(), setup.personal);
        let visit = LocalLoop { local: self.local, reset_optimizer: setup.reset_optimizer };
        let locals = LocalSteps::of_shards(setup, self.local.data(self.temperature), visit);
        locals.map(move |(id, local)| {
            let (plan, session) = (plan.clone(), session.clone());
            Client { id, plan, local, streams, session, uploaded: Uploaded::new(is_kept) }
        })
    }

    /// The first client of a setup, whose parts of a visit can be timed.
    ///
    /// # Errors
    /// The setup has no client, or the model has no curvature of this form.
    pub(crate) fn first_client(&self, mut setup: Setup) -> Result<Client, RunError> {
        let plan = self.plan(&setup)?;
        let first = self.clients(&plan, &mut setup).next();
        first.ok_or_else(|| RunError::Config("there is no client".into()))
    }

    /// The curvature of a row of zeros, which has the shapes of that of any row; `None` for a model without.
    fn probe(setup: &Setup) -> Option<RowCurvature> {
        let count = setup.initial.count();
        let uniforms = setup.session.upload(vec![0.0; count], [count, 1]);
        setup.model.row_curvature(setup.initial.blocks(), setup.blank_row(), uniforms)
    }

    /// The plan of the curvature for this model, from the shapes that any row has in it.
    fn plan(&self, setup: &Setup) -> Result<Plan, RunError> {
        let probe = Self::probe(setup);
        let form = self.form(probe.as_ref(), setup.initial.dim());
        Plan::new(form, &*setup.model, probe)
    }
}
