//! The score of the hierarchical normal prior in plain loops, for few coordinates on the CPU: Burn's operations take about a
//! microsecond each whatever their size.

use burn::backend::Flex;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Tensor;

use crate::simd::on_flex;

/// The most coordinates of all particles together for which this is used.
const MOST: usize = 1 << 16;

/// The score of weights w ~ N(0, 1/ξ) with ξ ~ Gamma(shape, rate), where a particle holds log ξ: −ξ w in the weights, and
/// P/2 + shape − ξ(rate + ‖w‖²/2) in log ξ, with P weights.
pub(crate) struct HierarchicalScore {
    /// The blocks of particles that it is of, the weights' before that of log ξ.
    blocks: Vec<(usize, FloatTensor<Flex>)>,
    /// −ξ of each particle times the prior's weight, `[N]`.
    pull: Vec<f32>,
    /// The score of log ξ times the prior's weight, `[N]`.
    on_log_xi: Vec<f32>,
}

impl HierarchicalScore {
    /// `weight` times this score; `None` where a block is elsewhere, in another precision or large.
    ///
    /// # Shapes
    /// - `particles`: one `[N, size]` tensor per block
    pub(crate) fn new(
        particles: &[Tensor<2>],
        (weights, log_precision): (&[usize], usize),
        (shape, rate): (f64, f64),
        weight: f64,
    ) -> Option<Self> {
        let of = weights.iter().chain([&log_precision]).copied();
        let count = particles[log_precision].dims()[0];
        let size: usize = of.clone().map(|block| particles[block].dims()[1]).sum();
        if count * size > MOST {
            return None;
        }
        let blocks: Vec<_> =
            of.map(|block| Some((block, on_flex(particles[block].clone())?))).collect::<Option<_>>()?;
        let values = |block: usize| blocks[block].1.storage::<f32>();
        let (mut pull, mut on_log_xi) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (n, log_xi) in values(weights.len()).iter().enumerate() {
            let xi = f64::from(*log_xi).exp();
            let squares = (0..weights.len()).map(|block| {
                let row = row(values(block), n, count);
                row.iter().map(|w| f64::from(*w).powi(2)).sum::<f64>()
            });
            let half_norm = 0.5 * squares.sum::<f64>();
            pull.push((-weight * xi) as f32);
            on_log_xi.push((weight * (0.5 * (size - 1) as f64 + shape - xi * (half_norm + rate))) as f32);
        }
        Some(Self { blocks, pull, on_log_xi })
    }

    /// Adds it to a score of the same particles, one `[N, size]` tensor per block.
    pub(crate) fn add_to(&self, score: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
        let add = |(block, score): (usize, Tensor<2>)| {
            let Some(place) = self.blocks.iter().position(|(of, _)| *of == block) else { return score };
            let Some(mut score) = on_flex(score) else { unreachable!("a score is where its particles are") };
            let to = score.storage_mut::<f32>();
            if place + 1 == self.blocks.len() {
                to.iter_mut().zip(&self.on_log_xi).for_each(|(score, own)| *score += own);
            } else {
                let width = to.len() / self.pull.len();
                let rows = self.blocks[place].1.storage::<f32>().chunks_exact(width);
                for ((score, w), pull) in to.chunks_exact_mut(width).zip(rows).zip(&self.pull) {
                    score.iter_mut().zip(w).for_each(|(score, w)| *score += pull * w);
                }
            }
            Tensor::from_primitive::<Flex>(score)
        };
        score.into_iter().enumerate().map(add).collect()
    }
}

/// Row n of `count` rows.
fn row(values: &[f32], n: usize, count: usize) -> &[f32] {
    let width = values.len() / count;
    &values[n * width..][..width]
}
