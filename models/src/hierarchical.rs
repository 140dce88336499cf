//! The score of the hierarchical normal prior in plain loops, for few coordinates on the CPU: Burn's operations take about a
//! microsecond each whatever their size.

use burn::backend::Flex;
use burn::tensor::Tensor;

use crate::mean::on_flex;

/// The most coordinates of all particles together for which this is used.
const MOST: usize = 1 << 16;

/// Adds `weight`·∇ log p0 of weights w ~ N(0, 1/ξ) with ξ ~ Gamma(shape, rate), where a particle holds log ξ: −ξ w in the
/// weights, and P/2 + shape − ξ(rate + ‖w‖²/2) in log ξ, with P weights. `false` where a block is elsewhere, in another
/// precision or large, and nothing is added.
///
/// # Shapes
/// - `particles`, `score`: one `[N, size]` tensor per block
pub(crate) fn add_score(
    particles: &[Tensor<2>],
    score: &mut [Tensor<2>],
    (weights, log_precision): (&[usize], usize),
    (shape, rate): (f64, f64),
    weight: f64,
) -> bool {
    let blocks = || weights.iter().chain([&log_precision]).copied();
    let count = particles[log_precision].dims()[0];
    let size: usize = blocks().map(|block| particles[block].dims()[1]).sum();
    if count * size > MOST || blocks().any(|block| on_flex(score[block].clone()).is_none()) {
        return false;
    }
    let on_host: Option<Vec<_>> = blocks().map(|block| on_flex(particles[block].clone())).collect();
    let Some(on_host) = on_host else { return false };
    let values: Option<Vec<&[f32]>> = on_host.iter().map(|block| block.as_slice::<f32>()).collect();
    let Some((log_xi, of_weights)) = values.as_ref().and_then(|values| values.split_last()) else { return false };
    let (mut pull, mut on_xi) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for (n, log_xi) in log_xi.iter().enumerate() {
        let xi = f64::from(*log_xi).exp();
        let row = |block: &&[f32]| {
            let width = block.len() / count;
            block[n * width..][..width].iter().map(|w| f64::from(*w).powi(2)).sum::<f64>()
        };
        let half_norm = 0.5 * of_weights.iter().map(row).sum::<f64>();
        pull.push((-weight * xi) as f32);
        on_xi.push((weight * (0.5 * (size - 1) as f64 + shape - xi * (half_norm + rate))) as f32);
    }
    for (block, w) in weights.iter().zip(of_weights) {
        let width = w.len() / count;
        change(&mut score[*block], |score| {
            for (n, (score, w)) in score.chunks_exact_mut(width).zip(w.chunks_exact(width)).enumerate() {
                score.iter_mut().zip(w).for_each(|(score, w)| *score += pull[n] * w);
            }
        });
    }
    change(&mut score[log_precision], |score| score.iter_mut().zip(&on_xi).for_each(|(score, own)| *score += own));
    true
}

/// Changes the values of a tensor that is f32 on flex; they are copied first where another tensor shares them.
fn change(tensor: &mut Tensor<2>, f: impl FnOnce(&mut [f32])) {
    let device = tensor.device();
    let taken = std::mem::replace(tensor, Tensor::empty([0, 0], &device));
    let Some(mut values) = on_flex(taken) else { unreachable!("the caller has found the block on the host") };
    f(values.storage_mut::<f32>());
    *tensor = Tensor::from_primitive::<Flex>(values);
}
