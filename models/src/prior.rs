//! Priors p0(θ) in closed form: log density, score and draws.
//!
//! The log density is a sum of terms, each over some parameter blocks. Their scores are added to a likelihood score, so
//! that the prior costs one pass over the parameters and no autodiff.

use burn::tensor::Tensor;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Gamma, StandardNormal};
use std::f64::consts::PI;

use crate::hierarchical::HierarchicalScore;
use crate::layout::Layout;

/// One independent factor of a prior. Blocks are named by their index in the [`Layout`].
#[derive(Clone, Debug, PartialEq)]
pub enum PriorTerm {
    /// Every coordinate of the block ~ N(0, 1/precision).
    Normal {
        /// The index of the block.
        block: usize,
        /// λ > 0.
        precision: f64,
    },
    /// Coordinates of `weights` ~ N(0, 1/ξ) given ξ, and ξ ~ Gamma(shape, rate); the particle holds log ξ. Source:
    /// Kassab & Simeone section 6; of networks Liu & Wang 2016. The Jacobian of log ξ is included.
    HierarchicalNormal {
        /// Indices of the blocks of weights w.
        weights: Vec<usize>,
        /// The index of log ξ (one coordinate).
        log_precision: usize,
        /// Gamma shape a.
        shape: f64,
        /// Gamma rate b.
        rate: f64,
    },
    /// γ ~ Gamma(shape, rate); the particle holds log γ, Jacobian included.
    LogGamma {
        /// The index of log γ (one coordinate).
        block: usize,
        /// Gamma shape a0.
        shape: f64,
        /// Gamma rate b0.
        rate: f64,
    },
    /// One block ~ N(mean, Σ), given by Σ⁻¹ (row-major) and a lower Cholesky factor of Σ for draws.
    Gaussian {
        /// The index of the block.
        block: usize,
        /// Mean, length of the block.
        mean: Vec<f64>,
        /// Σ⁻¹, row-major.
        precision: Vec<f64>,
        /// Lower Cholesky factor of Σ, row-major.
        cholesky: Vec<f64>,
    },
    /// Every coordinate ~ U(low, high). Its score is 0 everywhere, also outside of the interval, as in the public code
    /// (`uniform_prior.outside`).
    Uniform {
        /// The index of the block.
        block: usize,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
}

impl PriorTerm {
    /// The indices of the blocks whose density this is.
    fn blocks(&self) -> Vec<usize> {
        match self {
            Self::HierarchicalNormal { weights, log_precision, .. } => {
                weights.iter().copied().chain([*log_precision]).collect()
            }
            Self::Normal { block, .. }
            | Self::LogGamma { block, .. }
            | Self::Gaussian { block, .. }
            | Self::Uniform { block, .. } => vec![*block],
        }
    }

    /// Checks the numbers of a term whose blocks exist.
    fn check(&self, layout: &Layout) -> Result<(), String> {
        let block = |index: usize| &layout.blocks()[index];
        let positive = |what: &str, index: usize, value: f64| match value.is_finite() && value > 0.0 {
            true => Ok(()),
            false => Err(format!(
                "the {what} of block {index} (`{}`) is {value}; it must be finite and greater than 0",
                block(index).name
            )),
        };
        let finite = |what: &str, index: usize, values: &[f64]| match values.iter().find(|value| !value.is_finite()) {
            None => Ok(()),
            Some(value) => {
                Err(format!("the {what} of block {index} (`{}`) holds {value}; it must be finite", block(index).name))
            }
        };
        let numbers = |what: &str, index: usize, found: usize, needed: usize| match found == needed {
            true => Ok(()),
            false => {
                Err(format!("the {what} of block {index} (`{}`) has {found} numbers, not {needed}", block(index).name))
            }
        };
        let single = |index: usize| numbers("logarithm", index, block(index).size(), 1);
        match self {
            Self::Normal { block, precision } => positive("precision", *block, *precision),
            Self::HierarchicalNormal { weights, log_precision, shape, rate } => {
                single(*log_precision)?;
                if weights.is_empty() {
                    let name = &block(*log_precision).name;
                    return Err(format!(
                        "the precision in block {log_precision} (`{name}`) is of no weights; name their blocks"
                    ));
                }
                positive("Gamma shape", *log_precision, *shape)?;
                positive("Gamma rate", *log_precision, *rate)
            }
            Self::LogGamma { block, shape, rate } => {
                single(*block)?;
                positive("Gamma shape", *block, *shape)?;
                positive("Gamma rate", *block, *rate)
            }
            Self::Gaussian { block: index, mean, precision, cholesky } => {
                let size = block(*index).size();
                numbers("mean", *index, mean.len(), size)?;
                numbers("precision matrix", *index, precision.len(), size * size)?;
                numbers("Cholesky factor", *index, cholesky.len(), size * size)?;
                finite("mean", *index, mean)?;
                finite("precision matrix", *index, precision)?;
                finite("Cholesky factor", *index, cholesky)?;
                (0..size).try_for_each(|i| positive("Cholesky factor's diagonal", *index, cholesky[i * size + i]))
            }
            Self::Uniform { block, low, high } => positive("width of the interval", *block, high - low),
        }
    }
}

/// A prior over all blocks of a layout: a product of [`PriorTerm`]s.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prior {
    /// The factors.
    pub terms: Vec<PriorTerm>,
}

impl Prior {
    /// Every coordinate of every block ~ N(0, 1/precision).
    pub fn normal(layout: &Layout, precision: f64) -> Self {
        let terms = (0..layout.blocks().len()).map(|block| PriorTerm::Normal { block, precision }).collect();
        Self { terms }
    }

    /// Checks that this is a density over the particles of a layout: each block has exactly one term, and the numbers of
    /// every term are within their range.
    ///
    /// # Errors
    /// A sentence that names the first block or number that is not so.
    pub fn check(&self, layout: &Layout) -> Result<(), String> {
        let blocks = layout.blocks();
        let mut terms = vec![0; blocks.len()];
        for term in &self.terms {
            for block in term.blocks() {
                let Some(count) = terms.get_mut(block) else {
                    return Err(format!("there is no block {block}; the model has {}, counted from 0", blocks.len()));
                };
                *count += 1;
            }
            term.check(layout)?;
        }
        match terms.iter().position(|count| *count != 1) {
            None => Ok(()),
            Some(block) => Err(format!(
                "block {block} (`{}`) has {} terms; each block has exactly one",
                blocks[block].name, terms[block]
            )),
        }
    }

    /// λ and a remaining prior r such that p0 ∝ N(0, I/λ)·r, with the normal density over *all* coordinates. The score
    /// of that density is −λθ, a multiple of the particles. λ is that of the first normal term that covers more than
    /// half of the coordinates, or 0 where there is none. For a block with another prior r divides N(0, I/λ) out again,
    /// which is cheap because such blocks are small.
    pub fn isotropic_part(&self, layout: &Layout) -> (f64, Self) {
        let normal = |term: &PriorTerm| match term {
            PriorTerm::Normal { block, precision } => Some((*block, *precision)),
            _ => None,
        };
        let covered = |of: f64| {
            let blocks = self.terms.iter().filter_map(normal).filter(move |(_, precision)| *precision == of);
            blocks.map(|(block, _)| block).collect::<Vec<_>>()
        };
        let size = |block: &usize| layout.blocks()[*block].size();
        let lambdas = self.terms.iter().filter_map(normal).map(|(_, precision)| precision);
        let most = |lambda: &f64| 2 * covered(*lambda).iter().map(size).sum::<usize>() > layout.dim();
        let Some(lambda) = lambdas.into_iter().find(most) else { return (0.0, self.clone()) };
        let covered = covered(lambda);
        let others = self.terms.iter().filter(|term| normal(term).is_none_or(|(_, precision)| precision != lambda));
        let uncovered = (0..layout.blocks().len()).filter(|block| !covered.contains(block));
        let back = uncovered.map(|block| PriorTerm::Normal { block, precision: -lambda });
        (lambda, Self { terms: others.cloned().chain(back).collect() })
    }

    /// `score` + `weight`·∇ log p0 at the particles.
    ///
    /// # Panics
    /// A term is of a block that is not there, which [`Self::check`] finds.
    ///
    /// # Shapes
    /// - `particles`, `score` and the result: one `[N, size]` tensor per block
    pub fn add_score(&self, particles: &[Tensor<2>], mut score: Vec<Tensor<2>>, weight: f64) -> Vec<Tensor<2>> {
        for term in &self.terms {
            match term {
                PriorTerm::Normal { block, precision } => {
                    add(&mut score, *block, particles[*block].clone().mul_scalar(-precision * weight));
                }
                PriorTerm::HierarchicalNormal { weights, log_precision, shape, rate } => {
                    let blocks = (weights.as_slice(), *log_precision);
                    if let Some(own) = HierarchicalScore::new(particles, blocks, (*shape, *rate), weight) {
                        score = own.add_to(score);
                        continue;
                    }
                    let xi = particles[*log_precision].clone().exp();
                    let half_p = 0.5 * size(particles, weights);
                    let half_norm = squared_norm(particles, weights).mul_scalar(0.5);
                    let pull = xi.clone().mul_scalar(-weight);
                    for block in weights {
                        add(&mut score, *block, particles[*block].clone() * pull.clone());
                    }
                    let on_xi = (xi * half_norm.add_scalar(*rate)).neg().add_scalar(half_p + shape).mul_scalar(weight);
                    add(&mut score, *log_precision, on_xi);
                }
                PriorTerm::LogGamma { block, shape, rate } => {
                    let gamma = particles[*block].clone().exp();
                    add(&mut score, *block, gamma.mul_scalar(-rate * weight).add_scalar(shape * weight));
                }
                PriorTerm::Gaussian { block, mean, precision, .. } => {
                    let theta = &particles[*block];
                    let offset = theta.clone() - row(mean, theta);
                    add(&mut score, *block, offset.matmul(square(precision, mean.len(), theta)).mul_scalar(-weight));
                }
                PriorTerm::Uniform { .. } => {}
            }
        }
        score
    }

    /// log p0 of each particle with all normalising constants.
    ///
    /// # Panics
    /// There are no blocks, or a term is of a block that is not there, which [`Self::check`] finds.
    ///
    /// # Shapes
    /// - `particles`: one `[N, size]` tensor per block
    /// - returns `[N]`
    pub fn log_density(&self, particles: &[Tensor<2>]) -> Tensor<1> {
        let rows = particles[0].dims()[0];
        let mut total = particles[0].clone().narrow(1, 0, 1).reshape([rows]).mul_scalar(0.0);
        for term in &self.terms {
            total = total + self.term_log_density(term, particles);
        }
        total
    }

    fn term_log_density(&self, term: &PriorTerm, particles: &[Tensor<2>]) -> Tensor<1> {
        let sum = |t: Tensor<2>| t.sum_dim(1).squeeze_dim::<1>(1);
        let log_two_pi = (2.0 * PI).ln();
        match term {
            PriorTerm::Normal { block, precision } => {
                let size = particles[*block].dims()[1] as f64;
                sum(particles[*block].clone().square())
                    .mul_scalar(-0.5 * precision)
                    .add_scalar(0.5 * size * (precision.ln() - log_two_pi))
            }
            PriorTerm::HierarchicalNormal { weights, log_precision, shape, rate } => {
                let p = size(particles, weights);
                let log_xi = sum(particles[*log_precision].clone());
                let half_norm = sum(squared_norm(particles, weights)).mul_scalar(0.5);
                let constant = shape * rate.ln() - libm::lgamma(*shape) - 0.5 * p * log_two_pi;
                log_xi.clone().mul_scalar(0.5 * p + shape).add_scalar(constant)
                    - log_xi.exp() * half_norm.add_scalar(*rate)
            }
            PriorTerm::LogGamma { block, shape, rate } => {
                let log_gamma = sum(particles[*block].clone());
                log_gamma.clone().mul_scalar(*shape).add_scalar(shape * rate.ln() - libm::lgamma(*shape))
                    - log_gamma.exp().mul_scalar(*rate)
            }
            PriorTerm::Gaussian { block, mean, precision, cholesky } => {
                let theta = &particles[*block];
                let d = mean.len();
                let offset = theta.clone() - row(mean, theta);
                let quadratic = sum(offset.clone().matmul(square(precision, d, theta)) * offset);
                let log_det: f64 = (0..d).map(|i| cholesky[i * d + i].ln()).sum();
                quadratic.mul_scalar(-0.5).add_scalar(-0.5 * d as f64 * log_two_pi - log_det)
            }
            PriorTerm::Uniform { block, low, high } => {
                let theta = particles[*block].clone();
                let size = theta.dims()[1] as f64;
                let outside = theta.clone().lower_elem(*low).bool_or(theta.clone().greater_elem(*high));
                let mass = theta.mul_scalar(0.0).mask_fill(outside, f64::NEG_INFINITY);
                sum(mass).add_scalar(-size * (high - low).ln())
            }
        }
    }

    /// One draw of a flat particle, `[d]`. Blocks without a term are 0.
    ///
    /// # Panics
    /// A term is of a block that is not there, or has a number out of its range, which [`Self::check`] finds.
    pub fn sample(&self, layout: &Layout, rng: &mut dyn Rng) -> Vec<f64> {
        let mut theta = vec![0.0; layout.dim()];
        let range = |block: usize| {
            let block = &layout.blocks()[block];
            block.offset..block.offset + block.size()
        };
        for term in &self.terms {
            match term {
                PriorTerm::Normal { block, precision } => {
                    fill_normal(&mut theta[range(*block)], precision.powf(-0.5), rng);
                }
                PriorTerm::HierarchicalNormal { weights, log_precision, shape, rate } => {
                    let xi = gamma_draw(*shape, *rate, rng);
                    theta[range(*log_precision)].fill(xi.ln());
                    for block in weights {
                        fill_normal(&mut theta[range(*block)], xi.powf(-0.5), rng);
                    }
                }
                PriorTerm::LogGamma { block, shape, rate } => {
                    theta[range(*block)].fill(gamma_draw(*shape, *rate, rng).ln());
                }
                PriorTerm::Gaussian { block, mean, cholesky, .. } => {
                    let d = mean.len();
                    let z: Vec<f64> = (0..d).map(|_| StandardNormal.sample(rng)).collect();
                    let draw = (0..d).map(|i| mean[i] + (0..=i).map(|j| cholesky[i * d + j] * z[j]).sum::<f64>());
                    theta[range(*block)].iter_mut().zip(draw).for_each(|(to, value)| *to = value);
                }
                PriorTerm::Uniform { block, low, high } => {
                    theta[range(*block)].iter_mut().for_each(|to| *to = rng.random_range(*low..*high));
                }
            }
        }
        theta
    }
}

/// The number of coordinates of these blocks.
fn size(particles: &[Tensor<2>], blocks: &[usize]) -> f64 {
    blocks.iter().map(|block| particles[*block].dims()[1]).sum::<usize>() as f64
}

/// ‖w_n‖² over these blocks, `[N, 1]`; at least one block.
fn squared_norm(particles: &[Tensor<2>], blocks: &[usize]) -> Tensor<2> {
    let norms = blocks.iter().map(|block| particles[*block].clone().square().sum_dim(1));
    norms.reduce(|sum, norm| sum + norm).expect("a model has weights")
}

/// A host vector as one row `[1, d]`, in the dtype and on the device of `like`.
fn row(values: &[f64], like: &Tensor<2>) -> Tensor<2> {
    square_or_row(values, [1, values.len()], like)
}

/// A host matrix `[d, d]`, row-major, in the dtype and on the device of `like`.
fn square(values: &[f64], d: usize, like: &Tensor<2>) -> Tensor<2> {
    square_or_row(values, [d, d], like)
}

fn square_or_row(values: &[f64], shape: [usize; 2], like: &Tensor<2>) -> Tensor<2> {
    let data = burn::tensor::TensorData::new(values.to_vec(), shape);
    Tensor::from_data(data, (&like.device(), like.dtype()))
}

fn add(score: &mut [Tensor<2>], block: usize, term: Tensor<2>) {
    let likelihood = score[block].clone();
    score[block] = likelihood + term;
}

fn fill_normal(to: &mut [f64], sd: f64, rng: &mut dyn Rng) {
    for value in to {
        let z: f64 = StandardNormal.sample(rng);
        *value = sd * z;
    }
}

/// One draw of Gamma(shape, rate), at least the smallest positive f64.
pub(crate) fn gamma_draw(shape: f64, rate: f64, rng: &mut dyn Rng) -> f64 {
    let gamma = Gamma::new(shape, 1.0 / rate).expect("shape and rate are checked to be positive");
    gamma.sample(rng).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{DType, Device, TensorData};

    #[test]
    fn the_isotropic_part_of_a_prior_and_the_rest_have_its_score_together() {
        let layout = Layout::new([("w", [3].as_slice()), ("b", &[2]), ("log_gamma", &[1])]);
        let prior = Prior {
            terms: vec![
                PriorTerm::Normal { block: 0, precision: 4.0 },
                PriorTerm::Normal { block: 1, precision: 4.0 },
                PriorTerm::LogGamma { block: 2, shape: 2.0, rate: 0.5 },
            ],
        };
        let (lambda, rest) = prior.isotropic_part(&layout);
        assert_eq!(lambda, 4.0);
        let block = |values: Vec<f64>| {
            let shape = [1, values.len()];
            Tensor::<2>::from_data(TensorData::new(values, shape), (&Device::flex(), DType::F64))
        };
        let theta = [block(vec![1.0, -2.0, 0.5]), block(vec![3.0, -1.0]), block(vec![0.3])];
        let zeros = theta.iter().map(|block| block.zeros_like()).collect();
        let score = Tensor::cat(rest.add_score(&theta, zeros, 0.5), 1);
        let score = score.into_data().convert::<f64>().try_into_vec::<f64>().unwrap();
        // Of −4θ everywhere and the rest, −4θ is left of weights and biases, and a − b·e^θ = 2 − ½e^0.3 of log γ.
        let want = [0.0, 0.0, 0.0, 0.0, 0.0, 0.5 * (2.0 - 0.5 * 0.3f64.exp() + 4.0 * 0.3)];
        assert!(score.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-14), "{score:?}, not {want:?}");
        // Half of the coordinates are not most of them.
        let layout = Layout::new([("w", [3].as_slice()), ("b", &[3])]);
        let halves = [4.0, 9.0].into_iter().enumerate();
        let terms = halves.map(|(block, precision)| PriorTerm::Normal { block, precision }).collect();
        let halves = Prior { terms };
        assert_eq!(halves.isotropic_part(&layout), (0.0, halves.clone()));
    }

    #[test]
    fn a_precision_of_no_weights_and_numbers_that_are_not_finite_are_no_prior() {
        let layout = Layout::new([("w", [2].as_slice()), ("log_precision", [1].as_slice())]);
        let hierarchical =
            |weights: Vec<usize>| PriorTerm::HierarchicalNormal { weights, log_precision: 1, shape: 1.0, rate: 1.0 };
        let check = |terms: Vec<PriorTerm>| Prior { terms }.check(&layout);
        assert_eq!(check(vec![hierarchical(vec![0])]), Ok(()));
        let message = check(vec![PriorTerm::Normal { block: 0, precision: 1.0 }, hierarchical(vec![])]).unwrap_err();
        assert!(message.contains("block 1 (`log_precision`) is of no weights"), "{message}");

        let gaussian = |mean: f64, precision: f64, below: f64| PriorTerm::Gaussian {
            block: 0,
            mean: vec![mean, 0.0],
            precision: vec![precision, 0.0, 0.0, 1.0],
            cholesky: vec![1.0, 0.0, below, 1.0],
        };
        let last = || PriorTerm::LogGamma { block: 1, shape: 1.0, rate: 1.0 };
        assert_eq!(check(vec![gaussian(0.0, 1.0, 0.0), last()]), Ok(()));
        for (term, words) in [
            (gaussian(f64::NAN, 1.0, 0.0), "the mean of block 0 (`w`) holds NaN"),
            (gaussian(0.0, f64::INFINITY, 0.0), "the precision matrix of block 0 (`w`) holds inf"),
            (gaussian(0.0, 1.0, f64::NAN), "the Cholesky factor of block 0 (`w`) holds NaN"),
        ] {
            let message = check(vec![term, last()]).unwrap_err();
            assert!(message.contains(words), "no {words:?} in {message}");
        }
    }
}
