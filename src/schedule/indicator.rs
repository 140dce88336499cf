//! Selection indicators, computed from the clients' answers: the squared Stein discrepancy (KSD) or the Hilbert inner
//! product (HIP). Source: Yang et al. eq. (13)-(24).

use serde::{Deserialize, Serialize};

use crate::backend::Session;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{ClientId, DISCREPANCY, Message, PARTICLES, Question, Reply};
use crate::stein::{Kernel, SteinForm, SteinProduct};

/// The kinds of indicators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// S_k = ‖φ_k‖²_H, the squared Stein discrepancy between Θ and the client's tilted density.
    Ksd,
    /// ⟨φ_k, φ'⟩_H of the client's likelihood and the mean over all clients' likelihoods.
    Hip,
}

/// One number per client, and diagnostics of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Indicators {
    /// The kind of the indicators.
    pub measure: Measure,
    /// S_k or HIP_k, `[K]`; 0 for the absent clients.
    pub values: Vec<f64>,
    /// The clients without a usable answer, in ascending order. Their probability is 0.
    pub absent: Vec<ClientId>,
    /// The share of the mean value that does not depend on the clients' rows: the kernel's trace terms.
    pub constant_share: f64,
    /// Σ_{i≠j} K_ij / N²: 0 where the kernel between different particles vanishes, so that an indicator is the norm of
    /// a gradient.
    pub off_diagonal_mass: f64,
    /// The bandwidth h of the kernel.
    pub bandwidth: f64,
}

/// The name of the array with a client's scores, which is that of the particles in the question.
const SCORES: &str = PARTICLES;

impl Indicators {
    /// The indicators of the clients' replies to a question about the particles Θ. The replies are in the order of the
    /// clients, `None` for the absent.
    ///
    /// # Errors
    /// A reply lacks its answer, the kernel has no Stein form, or the device does not answer.
    pub(crate) fn of(
        question: &Question,
        theta: &Particles,
        replies: &[Option<Reply>],
        session: &Session,
    ) -> Result<Self, RunError> {
        let answered = || replies.iter().flatten();
        let (measure, form, values) = match question {
            Question::Discrepancy { kernel, .. } => {
                let form = form(kernel, theta)?;
                let value = |reply: &Reply| reply.message.scalars.get(DISCREPANCY).copied().unwrap_or(f64::NAN);
                (Measure::Ksd, form, answered().map(value).collect())
            }
            Question::LikelihoodScore { kernel, .. } => {
                let form = form(kernel, theta)?;
                let scores = answered().map(|reply| {
                    let array = reply.message.array(SCORES)?;
                    Particles::from_array(array, theta.layout(), session).map_err(RunError::Array)
                });
                let scores = scores.collect::<Result<Vec<_>, _>>()?;
                let values = inner_products(&form, &scores)?;
                (Measure::Hip, form, values)
            }
        };
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let (mut left, absent) = (values.into_iter(), (0..replies.len()).filter(|k| replies[*k].is_none()).collect());
        Ok(Self {
            measure,
            // NaN if no client answered.
            constant_share: form.constant() / mean,
            off_diagonal_mass: form.off_diagonal_mass(),
            bandwidth: form.bandwidth(),
            values: replies.iter().map(|reply| reply.as_ref().and_then(|_| left.next()).unwrap_or(0.0)).collect(),
            absent,
        })
    }

    /// The clients that answered, in ascending order.
    pub fn answered(&self) -> Vec<ClientId> {
        (0..self.values.len()).filter(|client| self.absent.binary_search(client).is_err()).collect()
    }

    /// The values of the clients that answered, in ascending order of the clients.
    pub fn known(&self) -> Vec<f64> {
        self.answered().into_iter().map(|client| self.values[client]).collect()
    }
}

/// A client's answer to a question about Θ, computed from its score `[N, d]` at Θ.
///
/// # Errors
/// The kernel has no Stein form, or the device does not answer.
pub fn answer(question: &Question, theta: &Particles, score: &Particles) -> Result<Message, RunError> {
    match question {
        Question::Discrepancy { kernel, .. } => {
            let product: SteinProduct = form(kernel, theta)?.product(score, score)?;
            Ok(Message::default().with_scalar(DISCREPANCY, product.v))
        }
        Question::LikelihoodScore { .. } => Ok(Message::default().with_array(SCORES, score.to_array()?)),
    }
}

/// HIP_k = ⟨φ_k, φ'⟩ with S' = (1/K) Σ_m S_m (24), for the scores S_k `[N, d]` of K clients.
///
/// # Errors
/// The device does not answer.
pub fn inner_products(form: &SteinForm, scores: &[Particles]) -> Result<Vec<f64>, burn::tensor::TensorReadError> {
    Particles::mean_of(scores).map_or_else(|| Ok(Vec::new()), |mean| form.products(scores, &mean))
}

fn form(kernel: &Kernel, at: &Particles) -> Result<SteinForm, RunError> {
    let form = SteinForm::new(kernel, at)?;
    form.ok_or_else(|| RunError::Config(format!("a Stein discrepancy has no {kernel:?} kernel; use rbf or imq")))
}
