//! Vector scaling (Guo et al. 2017): a factor and an offset for the logarithm of each class's probability.

use crate::metrics::{ClassPredictions, MetricError, check_finite, check_labels, check_length, logits_of};

/// softmax(a_k ln p_k + b_k). The logarithms are of the probabilities of the predictive distribution, which of an ensemble is
/// the mean over its members, and are at least ln 1e-12.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorMap {
    /// The factors a, `[C]`.
    pub scale: Vec<f64>,
    /// The offsets b, `[C]`.
    pub bias: Vec<f64>,
}

impl VectorMap {
    /// The map of its numbers `[2, C]`: first the factors, then the offsets.
    ///
    /// # Errors
    /// There are not 2 C numbers, or one is not finite.
    pub fn of(numbers: &[f64], classes: usize) -> Result<Self, MetricError> {
        check_length("vector scaling", numbers.len(), 2 * classes)?;
        check_finite("number of vector scaling", numbers)?;
        let (scale, bias) = numbers.split_at(classes);
        Ok(Self { scale: scale.to_vec(), bias: bias.to_vec() })
    }

    /// The numbers of the map, as [`Self::of`] takes them.
    pub fn numbers(&self) -> Vec<f64> {
        [&self.scale[..], &self.bias].concat()
    }

    /// The predictions with the map applied. The most probable class may become another one.
    ///
    /// # Errors
    /// The map is of another number of classes.
    pub fn apply(&self, predictions: &ClassPredictions<'_>) -> Result<ClassPredictions<'static>, MetricError> {
        let classes = predictions.classes();
        check_length("factors of vector scaling", self.scale.len(), classes)?;
        check_length("offsets of vector scaling", self.bias.len(), classes)?;
        let mut probabilities = Vec::with_capacity(predictions.probabilities().len());
        for row in logits_of(predictions).chunks_exact(classes) {
            push_softmax(self.logits(row), &mut probabilities);
        }
        predictions.with_probabilities(probabilities)
    }

    fn logits(&self, row: &[f64]) -> impl Iterator<Item = f64> + Clone {
        row.iter().zip(&self.scale).zip(&self.bias).map(|((l, a), b)| a * l + b)
    }
}

/// The number of sums of [`vector_sums`]: 1 + 2 C + C (2 C + 1).
pub fn vector_sums_len(classes: usize) -> usize {
    1 + 2 * classes + classes * (2 * classes + 1)
}

/// Sums over rows: the NLL in nats, its gradient by the numbers of the map `[2 C]`, and the upper triangle of its Hessian by
/// rows `[C (2 C + 1)]`.
///
/// # Arguments
/// * `logits`: `[n, classes]`, row-major; [`logits_of`] predictions
/// * `labels`: `[n]`
///
/// # Errors
/// Lengths that do not fit, a label out of range, a logit that is not finite.
pub fn vector_sums(logits: &[f64], labels: &[usize], map: &VectorMap) -> Result<Vec<f64>, MetricError> {
    let classes = map.scale.len();
    check_length("offsets of vector scaling", map.bias.len(), classes)?;
    check_length("logits", logits.len(), labels.len() * classes)?;
    check_labels(labels, classes)?;
    check_finite("logit", logits)?;
    let mut sums = vec![0.0; vector_sums_len(classes)];
    let mut p = Vec::with_capacity(classes);
    for (row, &label) in logits.chunks_exact(classes.max(1)).zip(labels) {
        p.clear();
        push_softmax(map.logits(row), &mut p);
        sums[0] += nll(map.logits(row), label);
        let (gradient, hessian) = sums[1..].split_at_mut(2 * classes);
        for (class, (p, l)) in p.iter().zip(row).enumerate() {
            let residual = p - f64::from(u8::from(class == label));
            gradient[class] += residual * l;
            gradient[classes + class] += residual;
        }
        add_hessian(&p, row, hessian);
    }
    Ok(sums)
}

/// −ln softmax(z)[label], exact for a label whose probability is 0 in `f64`.
fn nll(mut logits: impl Iterator<Item = f64> + Clone, label: usize) -> f64 {
    let largest = logits.clone().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.clone().map(|logit| (logit - largest).exp()).sum();
    let of_label = logits.nth(label).unwrap_or(largest);
    sum.ln() - (of_label - largest)
}

/// Adds the Hessian of one row: with w_jk = p_j (δ_jk − p_k), the blocks are w l_j l_k, w l_j and w.
fn add_hessian(p: &[f64], l: &[f64], hessian: &mut [f64]) {
    let classes = p.len();
    let weight = |j: usize, k: usize| p[j] * (f64::from(u8::from(j == k)) - p[k]);
    let mut at = hessian.iter_mut();
    let mut add = |value: f64| {
        if let Some(sum) = at.next() {
            *sum += value;
        }
    };
    for j in 0..classes {
        (j..classes).for_each(|k| add(weight(j, k) * l[j] * l[k]));
        (0..classes).for_each(|k| add(weight(j, k) * l[j]));
    }
    for j in 0..classes {
        (j..classes).for_each(|k| add(weight(j, k)));
    }
}

/// Writes softmax of some logits to the end of `out`.
pub(super) fn push_softmax(logits: impl Iterator<Item = f64> + Clone, out: &mut Vec<f64>) {
    let largest = logits.clone().fold(f64::NEG_INFINITY, f64::max);
    let start = out.len();
    // Subtracting the largest logit first keeps every exponent at or below 0.
    out.extend(logits.map(|logit| (logit - largest).exp()));
    let sum: f64 = out[start..].iter().sum();
    out[start..].iter_mut().for_each(|p| *p /= sum);
}
