//! A tree of binary Gaussian processes over embedded rows: the classifier of a client, and the objective of the
//! embedding.
//!
//! A fork (see [`class_tree`](mod@super::class_tree)) is fitted to the rows of its own classes, the left ones as y = 1.
//! The inputs are unit embeddings `[n, E]` and classes. The outputs are log-probabilities, each the product of E σ(±f)
//! along the path to a leaf; or the sum over the forks of the bound L on log p(y) (see [`super::polya_gamma`]) and its
//! gradient in the embeddings.

use std::collections::BTreeMap;

use ndarray::{Array1, Array2, Axis};

use super::class_tree::{Fork, class_tree};
use super::kernel::Rbf;
use super::polya_gamma::Posterior;
use crate::algorithm::gaussian::expectation::Nodes;

/// The probability of all classes together of which the client holds no row; they share it equally.
pub const UNSEEN: f64 = 1e-6;

/// The constants of all nodes.
#[derive(Clone, Copy, Debug)]
pub struct GpConfig {
    /// The covariance of f.
    pub kernel: Rbf,
    /// The number of updates of the Pólya-Gamma variables.
    pub inference_steps: usize,
}

/// A binary process and the rows that it was fitted to.
#[derive(Clone, Debug)]
struct Node {
    fork: Fork,
    rows: Array2<f64>,
    posterior: Posterior,
}

/// The Gaussian processes at the forks of a client's classes.
#[derive(Clone, Debug)]
pub struct Classifier {
    kernel: Rbf,
    /// The number of classes C of the task.
    classes: usize,
    /// The classes of the rows, ascending.
    held: Vec<usize>,
    nodes: Vec<Node>,
}

impl Classifier {
    /// Builds the tree and fits its nodes.
    ///
    /// # Arguments
    /// - `rows`: `[n, E]`, at least one
    /// - `labels`: `[n]`, below `classes`
    ///
    /// `None` where a covariance is not finite.
    pub fn fit(config: GpConfig, rows: &Array2<f64>, labels: &[usize], classes: usize) -> Option<Self> {
        let held = held(labels);
        let node = |fork: Fork| {
            let (places, sides) = members(&fork, labels);
            let rows = rows.select(Axis(0), &places);
            let posterior = Posterior::fit(&config.kernel.gram(&rows), &sides, config.inference_steps)?;
            Some(Node { fork, rows, posterior })
        };
        let nodes = class_tree(&held, rows, labels).into_iter().map(node).collect::<Option<_>>()?;
        Some(Self { kernel: config.kernel, classes, held, nodes })
    }

    /// The values log p(class | row) `[T, C]` of other rows `[T, E]`: finite, and a distribution in every row. The
    /// classes that the client does not hold share the probability [`UNSEEN`].
    pub fn log_probabilities(&self, rows: &Array2<f64>) -> Array2<f64> {
        let unseen = self.classes - self.held.len();
        let mut log = Array2::from_elem((rows.nrows(), self.classes), (UNSEEN / unseen.max(1) as f64).ln());
        let seen_together = if unseen == 0 { 0.0 } else { (-UNSEEN).ln_1p() };
        for class in &self.held {
            log.column_mut(*class).fill(seen_together);
        }
        for Node { fork, rows: seen, posterior } in &self.nodes {
            let cross = self.kernel.cross(rows.view(), seen.view());
            let (mean, variance) = posterior.predict(cross.view(), self.kernel.output_scale);
            let sides = log_sides(&mean, &variance);
            for (classes, side) in [(&fork.left, &sides[0]), (&fork.right, &sides[1])] {
                for class in classes {
                    let mut column = log.column_mut(*class);
                    column += side;
                }
            }
        }
        log
    }
}

/// The sum Σ_forks L of a minibatch and its gradient `[B, E]` in the embeddings, both for the tree over `forks`.
///
/// # Arguments
/// - `rows`: `[B, E]`
/// - `labels`: `[B]`
///
/// `None` where a covariance is not finite.
pub fn objective(config: GpConfig, forks: &[Fork], rows: &Array2<f64>, labels: &[usize]) -> Option<(f64, Array2<f64>)> {
    let mut gradient = Array2::zeros(rows.raw_dim());
    let mut bound = 0.0;
    for fork in forks {
        let (places, sides) = members(fork, labels);
        if places.is_empty() {
            continue;
        }
        let own = rows.select(Axis(0), &places);
        let gram = config.kernel.gram(&own);
        let posterior = Posterior::fit(&gram, &sides, config.inference_steps)?;
        bound += posterior.bound();
        let part = config.kernel.pull_back(&own, &gram, &posterior.gradient());
        for (place, part) in places.into_iter().zip(part.rows()) {
            let mut row = gradient.row_mut(place);
            row += &part;
        }
    }
    Some((bound, gradient))
}

/// The classes that occur in `labels`, ascending.
pub fn held(labels: &[usize]) -> Vec<usize> {
    let mut held = labels.to_vec();
    held.sort_unstable();
    held.dedup();
    held
}

/// The rows of a fork's classes, and whether each is on the left side.
fn members(fork: &Fork, labels: &[usize]) -> (Vec<usize>, Vec<bool>) {
    let side = |(place, label): (usize, &usize)| match (fork.left.contains(label), fork.right.contains(label)) {
        (false, false) => None,
        (left, _) => Some((place, left)),
    };
    labels.iter().enumerate().filter_map(side).unzip()
}

/// log E σ(f) and log E σ(−f) for f ~ N(mean, variance), `[T]` each, by the trapezoidal rule.
///
/// σ has singularities at ±iπ, so that the error is about e^(−2π²/h) with the distance h of two points f. It is .8 or less.
fn log_sides(mean: &Array1<f64>, variance: &Array1<f64>) -> [Array1<f64>; 2] {
    let mut rules = BTreeMap::new();
    let mut sides = [Array1::zeros(mean.len()), Array1::zeros(mean.len())];
    for (row, (mean, variance)) in mean.iter().zip(variance).enumerate() {
        let deviation = variance.sqrt();
        let fineness = (deviation / 4.0).ceil().max(1.0) as usize;
        let nodes = rules.entry(fineness).or_insert_with(|| Nodes::line(80 * fineness + 1));
        let (mut up, mut down) = (0.0, 0.0);
        for (z, weight) in nodes.points.iter().zip(&nodes.weights) {
            let f = mean + deviation * z;
            // σ(|f|) and σ(−|f|) are both computed without a difference.
            let small = (-f.abs()).exp();
            let (near, far) = (weight / (1.0 + small), weight * small / (1.0 + small));
            let (positive, negative) = if f > 0.0 { (near, far) } else { (far, near) };
            up += positive;
            down += negative;
        }
        // The smallest positive f64, about e^-709, takes the place of 0: log 0 = −∞ could not be sent.
        sides[0][row] = up.max(f64::MIN_POSITIVE).ln();
        sides[1][row] = down.max(f64::MIN_POSITIVE).ln();
    }
    sides
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn the_expectation_of_a_sigmoid_holds_for_narrow_and_for_wide_functions() {
        // By mpmath's adaptive quadrature with 30 digits.
        for (mean, variance, want) in [
            (0.7, 2.0, 0.624_827_673_262_829_5),
            (-10.0, 309.0, 0.285_736_301_815_705_02),
            (-44.0, 3538.0, 0.229_835_927_309_984_07),
            (30.0, 1e4, 0.617_892_607_757_784_3),
            (-3.0, 1e6, 0.498_803_176_922_719_12),
        ] {
            let [up, down] = log_sides(&array![mean], &array![variance]).map(|side| side[0].exp());
            assert!((up - want).abs() < 1e-9, "N({mean}, {variance}): {up}, not {want}");
            assert!((up + down - 1.0).abs() < 1e-12, "N({mean}, {variance}): {up} and {down}");
        }
    }
}
