//! pFedGP: personal Gaussian processes of each client on an embedding that all clients share.
//!
//! The network of the model without its last layers is the embedding e = h/‖h‖; it is sent and averaged by rows. A
//! client classifies with a tree of binary Gaussian processes on its own embedded rows, kernel s·exp(−‖e − e'‖²/(2ℓ²)),
//! which never leave it and have no parameters to train: they are fitted anew for every prediction. In its round a
//! client maximises (scale)·Σ_nodes L(K(e(x; θ))), L the bound on log p(y) of [`polya_gamma`], by minibatches.
//! Source: Achituve et al. 2021 and its public code.
//!
//! Five parts differ from the paper's, for results without draws and for speed:
//!
//! | there | here |
//! |---|---|
//! | Gibbs draws of the Pólya-Gamma variables, 5 steps of 20 to 30 chains | their mean field, `inference_steps` updates |
//! | loss: log predictive likelihood of a half of the rows given the other half, the sum over the forks of each one's mean | the bound on the marginal likelihood (their other objective, `marginal_likelihood`), of a minibatch, the mean over its rows of their sums over the forks |
//! | a tree of the means of activations | of the means of unit embeddings |
//! | a jitter of .001 on K | none |
//! | exp E log σ(f), and 1 − that | E σ(f) |
//! | a prediction conditioned on all rows of a client | on `inducing_rows`, each class by its share and at least one row of it |
//! | SGD .05, momentum .9, decay .001, norm of a gradient at most 50, one step on all rows, a plain mean of clients | `[optimizer]` without decay and clip, `local_steps` minibatches, a mean by rows |
//!
//! Their embedding ends in an additional linear layer. Here it ends where the head begins: in such a layer with a
//! `stack` whose last layer is dense, in the last hidden layer with a `bnn`, which is worse where there is only one
//! (docs/algorithms.md).
//!
//! Their optimiser is reset at each visit and takes one step, so that its momentum has no effect. A row for which
//! all units are 0 is embedded at 0 and has no gradient. The server's particles are the shared layers under the head of
//! Θ^(0), which is never trained: their predictions have no meaning.

pub mod class_tree;
pub mod classifier;
pub mod embedding;
pub mod kernel;
pub mod polya_gamma;

use std::ops::Bound;
use std::sync::Arc;

use burn::tensor::Tensor;
use class_tree::{Fork, class_tree};
use classifier::{Classifier, GpConfig, held, objective};
use embedding::Embedding;
use fedstein_models::{Model, Task};
use fedstein_schema::Literal::{Float as F, Int as I};
use fedstein_schema::{Accepts, COUNT, Interval, Kind, POSITIVE, key};
use kernel::Rbf;
use ndarray::{Array2, Axis, concatenate};
use rand::Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::keys::{BATCH, LOCAL_EPOCHS, LOCAL_STEPS, LocalConfig, MEAN_LOSS, MINIBATCH, PERSONAL_LAYERS};
use super::kind::{Algorithm, Capabilities, UnusedKeys, VisitCost};
use super::split::{BaseServer, Split};
use crate::array::ArrayError;
use crate::backend::Session;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::{Particles, read_matrix};
use crate::protocol::{
    BATCHES, ClientHalf, ClientId, Halves, LocalData, Message, OPTIMIZER, Predictor, ROWS, Request, Setup, Watch,
};
use crate::random::Purpose;
use crate::rows::{Minibatches, Shard};
use crate::stein::{OptimizerState, Score, Svgd};

/// The number of rows that are embedded at once.
const CHUNK: usize = 1000;

/// The variances s for which E σ(f) is computed in reasonable time: the number of points grows with √s.
const OUTPUT_SCALE: Accepts = Accepts::Float(Interval(Bound::Excluded(0.0), Bound::Included(1e6)));

/// `[algorithm] kind = "pfedgp"`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PFedGpConfig {
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The number of layers above the embedding, counted from the output.
    pub personal_layers: usize,
    /// The variance s of the processes.
    pub output_scale: f64,
    /// The length scale ℓ, on embeddings of length 1.
    pub length_scale: f64,
    /// The number of updates of the Pólya-Gamma variables of a node.
    pub inference_steps: usize,
    /// The number of a client's rows behind its tree and its predictions, at least one of each of its classes.
    pub inducing_rows: usize,
}

impl PFedGpConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "pfedgp",
        about: "Gaussian processes on a shared embedding (Achituve et al. 2021).",
        keys: &[
            LOCAL_STEPS,
            LOCAL_EPOCHS,
            BATCH,
            MINIBATCH,
            MEAN_LOSS,
            PERSONAL_LAYERS,
            key("output_scale", OUTPUT_SCALE, F(8.0), "Variance of the Gaussian processes."),
            key("length_scale", POSITIVE, F(1.0), "Length scale of their kernel, on embeddings of length 1."),
            key("inference_steps", COUNT, I(10), "Updates of the Pólya-Gamma variables of a node."),
            key(
                "inducing_rows",
                COUNT,
                I(500),
                "Number of training rows of a client on which its predictions are conditioned, at least one of each of its classes; \
                 the cost is cubic in it.",
            ),
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities {
        untrained_part: true,
        personal: true,
        weighted_rows: false,
        classifies: true,
        ..Capabilities::FEDERATED
    };
}

impl PFedGpConfig {
    fn gp(&self) -> GpConfig {
        let kernel = Rbf { output_scale: self.output_scale, length_scale: self.length_scale };
        GpConfig { kernel, inference_steps: self.inference_steps }
    }
}

/// The network below the head, as a map from rows to embeddings.
#[derive(Clone)]
struct Embedder {
    model: Arc<dyn Model>,
    split: Split,
    head_layers: usize,
    /// A network whose head completes every base, because the model takes whole networks.
    initial: Particles,
}

impl Embedder {
    /// The embedding of rows `[B, p]`, on the host. The call waits for the device.
    fn embed(&self, base: &Particles, inputs: Tensor<2>) -> Result<Embedding, RunError> {
        let network = self.split.joined(base, &self.initial);
        let activations = self.model.embed(network.blocks(), inputs, self.head_layers).ok_or_else(no_embedding)?;
        let activations = read_matrix(activations.squeeze_dim::<2>(0))?;
        match activations.iter().all(|value| value.is_finite()) {
            true => Ok(Embedding::of(activations)),
            false => Err(RunError::Config(
                "the embedding of a row is not finite; a smaller optimizer.lr usually helps".into(),
            )),
        }
    }

    /// The gradient in the base, from the gradient in the activations `[B, E]`.
    fn pull_back(&self, base: &Particles, inputs: Tensor<2>, gradient: Tensor<2>) -> Result<Particles, RunError> {
        let network = self.split.joined(base, &self.initial);
        let gradient = gradient.unsqueeze_dim::<3>(0);
        let score = self.model.embedding_score(network.blocks(), inputs, self.head_layers, gradient);
        let score = Particles::from_blocks(score.ok_or_else(no_embedding)?, network.layout().clone());
        Ok(self.split.base_of(&score))
    }
}

struct Client {
    config: PFedGpConfig,
    svgd: Svgd,
    reset_optimizer: bool,
    embedder: Embedder,
    shard: Shard,
    minibatches: Minibatches,
    /// The class of every row of the shard.
    labels: Vec<usize>,
    /// The number of classes C of the task.
    classes: usize,
    /// The inducing rows, by their ascending positions in the shard.
    inducing: Vec<usize>,
    state: OptimizerState,
    session: Session,
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let base = self.embedder.split.base_in(&request.message, &self.session)?;
        if self.reset_optimizer {
            self.state = OptimizerState::default();
        }
        self.minibatches.start_visit(request.round);
        let forks = self.forks(&base)?;
        let steps = self.config.local.steps(self.shard.rows());
        // A visit that fails leaves the optimiser's state of the last one.
        let (svgd, mut state) = (self.svgd.scaled(request.step_factor()), self.state.clone());
        let moved = svgd.run(base, steps, &mut state, |at| self.next_score(at, &forks), |done| watch(done, steps))?;
        self.state = state;
        Ok(self.embedder.split.message_of(&moved)?.with_scalar(ROWS, self.shard.rows() as f64))
    }

    fn predictor(&mut self, published: &Request) -> Result<Predictor, RunError> {
        let base = self.embedder.split.base_in(&published.message, &self.session)?;
        let (rows, labels) = self.inducing_rows(&base)?;
        let classifier = Classifier::fit(self.config.gp(), &rows, &labels, self.classes).ok_or_else(singular)?;
        let (embedder, session) = (self.embedder.clone(), self.session.clone());
        Ok(Predictor::Rows(Box::new(move |inputs| {
            let rows = embedder.embed(&base, inputs)?;
            Ok(session.matrix(&classifier.log_probabilities(rows.unit())).unsqueeze_dim::<3>(0))
        })))
    }

    fn save(&self) -> Result<State, RunError> {
        let state = State::default().with_part(BATCHES, self.minibatches.save());
        match self.reset_optimizer {
            true => Ok(state),
            false => Ok(state.with_optimizer(OPTIMIZER, &self.state)?),
        }
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.minibatches.restore(&state.part(BATCHES))?;
        if !self.reset_optimizer {
            self.state = state.optimizer(OPTIMIZER, &self.session)?;
        }
        Ok(())
    }
}

impl Client {
    /// The gradient of the next minibatch's bound in the base.
    fn next_score(&mut self, at: &Particles, forks: &[Fork]) -> Result<Score, RunError> {
        let LocalData { scale, temperature, .. } = self.config.local.data(1.0);
        let scale = scale.factor(self.shard.rows(), self.minibatches.batch()) / temperature;
        let positions = self.minibatches.next_batch();
        let labels: Vec<usize> = positions.iter().map(|position| self.labels[*position]).collect();
        let inputs = self.shard.batch(positions).inputs;
        let embedding = self.embedder.embed(at, inputs.clone())?;
        let (_, gradient) = objective(self.config.gp(), forks, embedding.unit(), &labels).ok_or_else(singular)?;
        let gradient = self.session.matrix(&(embedding.pull_back(gradient) * scale));
        Ok(Score::dense(self.embedder.pull_back(at, inputs, gradient)?))
    }

    /// The tree of the client's classes in the current embedding.
    fn forks(&self, base: &Particles) -> Result<Vec<Fork>, RunError> {
        let (rows, labels) = self.inducing_rows(base)?;
        Ok(class_tree(&held(&labels), &rows, &labels))
    }

    /// Unit embeddings `[M, E]` of the inducing rows, and their classes.
    fn inducing_rows(&self, base: &Particles) -> Result<(Array2<f64>, Vec<usize>), RunError> {
        let embed = |chunk: &[usize]| self.embedder.embed(base, self.shard.batch(chunk).inputs);
        let parts = self.inducing.chunks(CHUNK).map(embed).collect::<Result<Vec<_>, RunError>>()?;
        let views: Vec<_> = parts.iter().map(|part| part.unit().view()).collect();
        let rows = concatenate(Axis(0), &views).map_err(|error| ArrayError::Content(error.to_string()))?;
        Ok((rows, self.inducing.iter().map(|position| self.labels[*position]).collect()))
    }
}

/// At most `most` ascending positions of `labels` `[n]`: about its share of every class, and at least one.
pub fn stratified(labels: &[usize], most: usize, rng: &mut impl Rng) -> Vec<usize> {
    let classes = held(labels);
    let mut ranked = Vec::with_capacity(labels.len());
    for class in &classes {
        let mut own: Vec<usize> = (0..labels.len()).filter(|position| labels[*position] == *class).collect();
        own.shuffle(rng);
        let count = own.len() as f64;
        ranked.extend(own.into_iter().enumerate().map(|(rank, position)| (rank as f64 / count, position)));
    }
    // The sort is stable: the first rows of every class come before all others.
    ranked.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut chosen: Vec<usize> = ranked.into_iter().map(|(_, position)| position).collect();
    chosen.truncate(most.max(classes.len()));
    chosen.sort_unstable();
    chosen
}

/// The class of every row of a shard. The call waits for the device.
fn labels_of(shard: &Shard) -> Result<Vec<usize>, RunError> {
    let positions: Vec<usize> = (0..shard.rows()).collect();
    let mut labels = Vec::with_capacity(positions.len());
    for chunk in positions.chunks(CHUNK) {
        let one_hot = read_matrix(shard.batch(chunk).targets)?;
        let class = |row: ndarray::ArrayView1<f64>| row.iter().position(|value| *value > 0.5).unwrap_or(0);
        labels.extend(one_hot.rows().into_iter().map(class));
    }
    Ok(labels)
}

fn no_embedding() -> RunError {
    RunError::Config(
        "algorithm kind `pfedgp` needs a model that gives an embedding, as `bnn` with `model.hidden` or `stack` with a dense layer; this one gives none".into(),
    )
}

fn singular() -> RunError {
    RunError::Config(
        "a covariance of the Gaussian processes is not finite or singular; a smaller algorithm.output_scale helps"
            .into(),
    )
}

impl Algorithm for PFedGpConfig {
    fn kind(&self) -> Kind {
        Self::KIND
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn visit_cost(&self, rows: usize) -> VisitCost {
        VisitCost { steps: self.local.steps(rows).saturating_mul(self.inference_steps), draws: 0 }
    }

    fn held_numbers(&self, setup: &Setup) -> usize {
        // The covariance of the inducing rows, or that of a minibatch.
        let rows = setup.here.iter().map(|(_, shard)| shard.rows()).max().unwrap_or_default();
        let together = rows.min(self.inducing_rows.max(self.local.batch));
        together.saturating_mul(together)
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.local.unused_keys()
    }

    fn build(&self, setup: Setup) -> Result<Halves, RunError> {
        // A server with the shared layers and clients with Gaussian processes.
        let blank_row = setup.blank_row();
        let Setup { model, here, initial, session, streams, svgd, reset_optimizer, .. } = setup;
        let Task::Classification { classes } = model.task() else {
            return Err(RunError::Config("algorithm kind `pfedgp` classifies; this model has no classes".into()));
        };
        let split = Split::of(model.layout(), self.personal_layers)?;
        let head_layers = self.personal_layers;
        let embedder = Embedder { model, split: split.clone(), head_layers, initial: initial.clone() };
        embedder.embed(&split.base_of(&initial), blank_row)?;
        let client = |(id, shard): (ClientId, Shard)| -> Result<(ClientId, Box<dyn ClientHalf>), RunError> {
            let labels = labels_of(&shard)?;
            let mut rng = streams.rng(Purpose::InducingRows, 0, id);
            let client = Client {
                config: *self,
                svgd,
                reset_optimizer,
                embedder: embedder.clone(),
                minibatches: Minibatches::new(self.local.minibatch, shard.rows(), self.local.batch, streams, id),
                inducing: stratified(&labels, self.inducing_rows, &mut rng),
                shard,
                labels,
                classes,
                state: OptimizerState::default(),
                session: session.clone(),
            };
            Ok((id, Box::new(client) as _))
        };
        let clients = here.into_iter().map(client).collect::<Result<_, RunError>>()?;
        Ok(Halves { server: Box::new(BaseServer::new(initial, split, session)), clients })
    }
}
