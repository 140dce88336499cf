//! The SVGD update direction, Liu & Wang 2016, Kassab & Simeone eq. (9):
//!
//! φ_i = (1/N) Σ_j [ k(θ_j, θ_i) ∇ log p(θ_j) + ∇_{θ_j} k(θ_j, θ_i) ], in matrices: **φ = (K·S + M·Θ)/N**.
//!
//! S is a sum of products of small matrices with long particle sets, and so is φ. It is kept in this form: the kernel,
//! the repulsion, the prior and the densities all go into the small matrices, and φ takes one pass over the
//! coordinates. [`super::reference`] has the same equation in plain tensors.
//!
//! The score of a first layer's weights is a product itself, Σ_i a_ni x_iᵀ with rows x that all particles share. There K
//! multiplies a, `[N, out·B]`, in the place of the gradient, `[N, out·in]`.

use burn::tensor::TensorReadError;
use ndarray::{Array2, Axis, Zip};

use super::kernel::{Kernel, KernelMatrix};
use crate::particles::Particles;
use crate::simd::rule::StepRule;
use crate::simd::{Ascent, Host, HostPrecisions, Outer, Part, Source, SparseEntry};
use crate::stein::{Coefficients, Factor, FirstLayerProduct, Precisions, Score};

/// φ = C_0·(Θ − 1·m) + c·m + Σ_s C_s·X_s, with m the mean particle, as coefficients and sets that are not multiplied
/// yet.
///
/// With the mean subtracted, the large part that is common to all particles does not enter the differences; for
/// repulsion alone its weight c is exactly 0.
#[derive(Clone, Debug)]
pub struct Direction {
    /// C_0, `[N, N]`.
    own: Array2<f64>,
    /// c, `[N, 1]`.
    common: Array2<f64>,
    /// The products C_s·X_s.
    terms: Vec<Term>,
    /// A term C·X whose X has a first block that is not multiplied yet.
    product: Option<(Array2<f64>, FirstLayerProduct)>,
    /// K and M of the kernel at the particles; `None` for N = 1, where φ = S.
    pub kernel: Option<KernelMatrix>,
}

/// C·X with X = Σ_p P_p·X_p.
///
/// A likelihood's score has one row for each particle, and so has that of a density where a single centre has all the
/// weight at each particle. These rows are summed to one X of N rows before K is applied. Where many centres have
/// weight, K is applied to the weights instead.
#[derive(Clone, Debug)]
struct Term {
    /// C, `[N, M]`.
    coefficients: Array2<f64>,
    /// P_p `[M, M_p]`, `None` for the identity, and X_p `[M_p, d]`.
    parts: Vec<(Option<Coefficients>, Factor)>,
}

/// φ at the particles Θ `[N, d]`, from their score.
///
/// # Errors
/// Reading the distances from the device fails.
pub fn direction(kernel: &Kernel, particles: &Particles, score: Score) -> Result<Direction, TensorReadError> {
    let n = particles.count();
    let (score_of_itself, mut terms) = score.into_parts();
    if n == 1 {
        let common = score_of_itself.insert_axis(Axis(1));
        let terms = terms.into_iter().map(|(coefficients, of)| Term::whole(coefficients.into_matrix(), of)).collect();
        return Ok(Direction { own: Array2::zeros((1, 1)), common, terms, product: None, kernel: None });
    }
    let k = kernel.evaluate(particles)?;
    let scale = 1.0 / n as f64;

    let own = Zip::from(&k.values).and(&k.drift).and_broadcast(&score_of_itself);
    let own = own.map_collect(|k, drift, score| (k * score + drift) * scale);
    let mut common = k.values.dot(&score_of_itself) * scale;
    if !kernel.is_stationary() {
        common += &(k.drift.sum_axis(Axis(1)) * scale);
    }
    // One likelihood's score may stay a product: K multiplies the smaller of its factors.
    let is_product = |(_, of): &(Coefficients, Factor)| matches!(of, Factor::FirstLayer(_));
    let product = terms.iter().position(is_product).map(|at| terms.remove(at));
    let product = match product {
        Some((c, Factor::FirstLayer(product))) => Some((c.scaled(scale).after(&k.values), *product)),
        _ => None,
    };
    // K·(P_1·X_1 + P_2·X_2 + …) where P is sparse or has more elements than P·X, (K·C)·X elsewhere.
    let (mut parts, mut weighed) = (Vec::new(), Vec::new());
    for (c, of) in terms {
        if c.is_sparse() {
            parts.push((Some(c).filter(|c| !c.is_identity()), of));
        } else if particles.dim() < n {
            parts.push((None, Factor::Rows(c.product(&of.at(particles)))));
        } else {
            weighed.push(Term::whole(c.scaled(scale).after(&k.values), of));
        }
    }
    let mixed = (!parts.is_empty()).then(|| Term { coefficients: &k.values * scale, parts });
    let terms = mixed.into_iter().chain(weighed).collect();
    Ok(Direction { own, common: common.insert_axis(Axis(1)), terms, product, kernel: Some(k) })
}

impl Direction {
    /// A φ that is at hand, `[N, d]`, such as the gradient of a loss.
    pub fn given(phi: Particles) -> Self {
        let n = phi.count();
        let terms = vec![Term::whole(Array2::eye(n), Factor::Rows(phi))];
        Self { own: Array2::zeros((n, n)), common: Array2::zeros((n, 1)), terms, product: None, kernel: None }
    }

    /// φ as one set, `[N, d]`, by general tensor operations; `at` is Θ `[N, d]`.
    pub fn evaluate(&self, at: &Particles) -> Particles {
        let (offsets, mean) = at.centred();
        let centred = (!is_zero(&self.own)).then(|| offsets.combine(&self.own));
        let common = (!is_zero(&self.common)).then(|| mean.combine(&self.common));
        let terms = self.terms.iter().flat_map(|term| term.evaluate(at));
        let product = self.product.as_ref().map(|(c, product)| product.whole().combine(c));
        let all = centred.into_iter().chain(common).chain(terms).chain(product);
        let total = all.reduce(|sum, term| sum.zip(term, |a, b| a + b));
        total.unwrap_or_else(|| at.map(|block| block.zeros_like()))
    }

    /// φ for the loop in `simd`; `None` where a block is not in this process's memory in f32.
    pub(crate) fn into_host(self) -> Option<OnHost> {
        let count = self.own.nrows();
        let [own, common] = [&self.own, &self.common].map(|matrix| (!is_zero(matrix)).then_some(matrix));
        let coefficients = || self.terms.iter().map(|term| &term.coefficients);
        let Some((c, FirstLayerProduct { first, rest, .. })) = self.product else {
            let ascent = Ascent::new(own, common, coefficients(), count);
            let sources = self.terms.into_iter().map(Term::into_host).collect::<Option<_>>()?;
            return Some(OnHost { first: None, ascent, sources });
        };
        let outer = Outer::new(&c, Host::of(first.outputs.flatten(1, 2))?, &Host::of(first.inputs)?);
        let first = Some((Ascent::new(own, common, coefficients(), count), outer));
        let ascent = Ascent::new(own, common, coefficients().chain([&c]), count);
        let mut sources = self.terms.into_iter().map(Term::into_host).collect::<Option<Vec<_>>>()?;
        sources.push(HostRows { parts: vec![(None, HostFactor::Rest(Host::all(rest)?))] });
        Some(OnHost { first, ascent, sources })
    }
}

/// φ in this process's memory.
pub(crate) struct OnHost {
    /// For the first block, where it has a product: the coefficients of the other terms, and the product.
    first: Option<(Ascent, Outer)>,
    /// For every other block.
    ascent: Ascent,
    /// X_s of every term, the rest of one with a product last.
    sources: Vec<HostRows>,
}

impl OnHost {
    /// Updates a block of Θ and its accumulators; see [`Ascent::apply`].
    pub fn apply(&self, block: usize, rule: StepRule, theta: &mut Host, accumulators: [Option<&mut Host>; 2]) {
        let (ascent, sources, outer) = match &self.first {
            Some((ascent, outer)) if block == 0 => (ascent, &self.sources[..self.sources.len() - 1], Some(outer)),
            _ => (&self.ascent, &self.sources[..], None),
        };
        let sources: Vec<_> = sources.iter().map(|rows| rows.block(block)).collect();
        ascent.apply(rule, theta, &sources, outer, accumulators);
    }
}

impl Term {
    /// C·X.
    fn whole(coefficients: Array2<f64>, of: Factor) -> Self {
        Self { coefficients, parts: vec![(None, of)] }
    }

    /// C·P_p·X_p of every part, at the particles Θ `[N, d]`.
    fn evaluate(&self, at: &Particles) -> impl Iterator<Item = Particles> {
        self.parts.iter().map(move |(p, of)| match p {
            None if is_identity(&self.coefficients) => of.at(at),
            None => of.at(at).combine(&self.coefficients),
            Some(p) => of.at(at).combine(&p.after(&self.coefficients)),
        })
    }

    fn into_host(self) -> Option<HostRows> {
        let part = |(p, of): (Option<Coefficients>, Factor)| {
            let of = match of {
                Factor::Rows(rows) => HostFactor::Rows(rows.into_host()?),
                Factor::Gaussian { mean, precision } => {
                    let precision = precision.iter().map(Option::as_ref);
                    // A block without precisions has none on the host either.
                    let precision = precision.map(|block| block.map_or(Some(None), |of| of.on_host().map(Some)));
                    let precision = precision.collect::<Option<_>>()?;
                    HostFactor::Gaussian { mean: mean.into_host()?, precision }
                }
                Factor::FirstLayer(product) => HostFactor::Rows(product.whole().into_host()?),
            };
            Some((p.as_ref().map(Coefficients::entries), of))
        };
        Some(HostRows { parts: self.parts.into_iter().map(part).collect::<Option<_>>()? })
    }
}

/// X of a term in this process's memory: the elements of every P_p, and the blocks of X_p.
struct HostRows {
    parts: Vec<(Option<Vec<SparseEntry>>, HostFactor)>,
}

/// The blocks of a [`Factor`].
enum HostFactor {
    Rows(Vec<Host>),
    /// Every block but the first.
    Rest(Vec<Host>),
    Gaussian {
        mean: Vec<Host>,
        precision: Vec<Option<HostPrecisions>>,
    },
}

impl Precisions {
    /// `None` where they are not in this process's memory in f32.
    fn on_host(&self) -> Option<HostPrecisions> {
        let outputs = Host::of(self.outputs.clone())?;
        Some(match &self.inputs {
            None => HostPrecisions::Coordinates(outputs),
            Some(inputs) => HostPrecisions::Layer { outputs, inputs: Host::of(inputs.clone())? },
        })
    }
}

impl HostRows {
    /// The parts of the block with this index.
    fn block(&self, block: usize) -> Vec<Part<'_>> {
        self.parts.iter().map(|(entries, of)| Part { entries: entries.as_deref(), of: of.block(block) }).collect()
    }
}

impl HostFactor {
    fn block(&self, block: usize) -> Source<'_> {
        match self {
            Self::Rows(rows) => Source::Rows(&rows[block]),
            Self::Rest(rows) => Source::Rows(&rows[block - 1]),
            Self::Gaussian { mean, precision } => {
                Source::Gaussian { mean: &mean[block], precision: precision[block].as_ref() }
            }
        }
    }
}

fn is_zero(matrix: &Array2<f64>) -> bool {
    matrix.iter().all(|value| *value == 0.0)
}

fn is_identity(matrix: &Array2<f64>) -> bool {
    matrix.is_square() && matrix.indexed_iter().all(|((i, j), value)| *value == f64::from(u8::from(i == j)))
}
