//! Prior correction: a client's probabilities of classes, where classes are not as frequent as among all clients.
//!
//! A posterior that all clients share has learned the frequencies π_c of the classes among all rows. At a client whose
//! frequencies are π'_c, and whose rows of a class are as anywhere, Bayes' rule gives
//!
//! p'(c | x) ∝ p(c | x) · π'_c / π_c
//!
//! (Saerens, Latinne and Decaestecker, *Adjusting the Outputs of a Classifier to New a Priori Probabilities*, 2002).

use crate::site::class_prior::ClassPrior;

/// The correction of one client's predictions.
#[derive(Clone, Debug, PartialEq)]
pub struct PriorCorrection {
    /// log(π'_c / π_c), `[C]`.
    log_ratios: Vec<f64>,
}

impl PriorCorrection {
    /// The correction of a client.
    ///
    /// # Arguments
    /// * `rows`: the client's number of training rows in each class, `[C]`
    /// * `prior`: that of all clients
    pub fn new(rows: &[usize], prior: &ClassPrior) -> Self {
        let ClassPrior { learned, pseudo_rows } = prior;
        let added: f64 = pseudo_rows.iter().sum();
        let all = rows.iter().sum::<usize>() as f64 + added;
        let log_ratio = |((rows, pseudo_rows), learned): ((&usize, &f64), &f64)| {
            // For a class that no client has, what any other is without rows here.
            let ratio = if *learned > 0.0 { (*rows as f64 + pseudo_rows) / learned } else { added };
            (ratio / all).ln()
        };
        Self { log_ratios: rows.iter().zip(pseudo_rows).zip(learned).map(log_ratio).collect() }
    }

    /// The correction with these log(π'_c / π_c), `[C]`.
    pub fn of_log_ratios(log_ratios: Vec<f64>) -> Self {
        Self { log_ratios }
    }

    /// log(π'_c / π_c), `[C]`.
    pub fn log_ratios(&self) -> &[f64] {
        &self.log_ratios
    }

    /// Corrects log-probabilities in place, those of each particle by themselves.
    ///
    /// # Arguments
    /// * `log_probs`: `[…, C]`
    pub fn apply(&self, log_probs: &mut [f32]) {
        let mut corrected = vec![0.0; self.log_ratios.len()];
        for row in log_probs.chunks_exact_mut(self.log_ratios.len()) {
            for ((value, log_prob), log_ratio) in corrected.iter_mut().zip(&*row).zip(&self.log_ratios) {
                *value = f64::from(*log_prob) + log_ratio;
            }
            let largest = corrected.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            // A prediction that is not finite stays so, for the scores to refuse.
            let total = corrected.iter().map(|value| (value - largest).exp()).sum::<f64>().ln() + largest;
            row.iter_mut().zip(&corrected).for_each(|(log_prob, value)| *log_prob = (value - total) as f32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The prior of a model that has learned `learned`, with `added` rows that are spread likewise.
    fn prior(learned: &[f64], added: f64) -> ClassPrior {
        ClassPrior { learned: learned.to_vec(), pseudo_rows: learned.iter().map(|share| added * share).collect() }
    }

    fn normal(x: f64, mean: f64) -> f64 {
        (-(x - mean).powi(2) / 2.0).exp()
    }

    /// Bayes' rule for three normal densities, once with the frequencies of all rows, once with the client's.
    #[test]
    fn corrected_probabilities_are_bayes_rule_with_the_clients_frequencies() {
        let (learned, rows) = ([0.5, 0.3, 0.2], [20_000_000, 0, 60_000_000]);
        let posterior = |x: f64, frequencies: [f64; 3]| {
            let joint: Vec<f64> =
                frequencies.iter().zip([-1.0, 0.0, 2.0]).map(|(f, mean)| f * normal(x, mean)).collect();
            joint.iter().map(|value| value / joint.iter().sum::<f64>()).collect::<Vec<f64>>()
        };
        let correction = PriorCorrection::new(&rows, &prior(&learned, 1.0));
        for x in [-3.0, -0.4, 0.6, 2.5] {
            let mut log_probs: Vec<f32> = posterior(x, learned).into_iter().map(|p| p.ln() as f32).collect();
            correction.apply(&mut log_probs);
            for (log_prob, expected) in log_probs.iter().zip(posterior(x, [0.25, 0.0, 0.75])) {
                assert!((f64::from(log_prob.exp()) - expected).abs() < 1e-6, "{x}: {log_probs:?}, expected {expected}");
            }
        }
    }

    #[test]
    fn a_class_without_rows_keeps_some_probability_and_one_row_moves_little() {
        let mut log_probs = [0.2_f32.ln(), 0.8_f32.ln(), 1.0_f32.ln(), f32::NEG_INFINITY];
        PriorCorrection::new(&[9, 0], &prior(&[0.5, 0.5], 1.0)).apply(&mut log_probs);
        // Odds of .2 to .8, times (9.5/10)/.5 to (.5/10)/.5.
        assert!((log_probs[0].exp() - 3.8 / (3.8 + 0.8)).abs() < 1e-6, "{log_probs:?}");
        assert_eq!(log_probs[2..], [0.0, f32::NEG_INFINITY]);
        let mut few = [0.2_f32.ln(), 0.8_f32.ln()];
        PriorCorrection::new(&[0, 1], &prior(&[0.5, 0.5], 1.0)).apply(&mut few);
        assert!((few[1].exp() - 1.2 / (1.2 + 0.1)).abs() < 1e-6, "{few:?}");
    }

    #[test]
    fn a_client_of_which_little_is_known_has_the_frequencies_of_all_rows_in_the_place_of_weighted_ones() {
        let prior = ClassPrior { learned: vec![0.5, 0.5], pseudo_rows: vec![9e8, 1e8] };
        let mut log_probs = [0.5_f32.ln(), 0.5_f32.ln()];
        PriorCorrection::new(&[1, 2], &prior).apply(&mut log_probs);
        assert!((log_probs[0].exp() - 0.9).abs() < 1e-6, "{log_probs:?}");
    }

    #[test]
    fn a_client_like_all_others_is_not_corrected_and_no_class_is_needed_twice() {
        let mut log_probs = [0.1_f32.ln(), 0.6_f32.ln(), 0.3_f32.ln()];
        let before = log_probs;
        PriorCorrection::new(&[50, 30, 20], &prior(&[0.5, 0.3, 0.2], 1.0)).apply(&mut log_probs);
        assert!(log_probs.iter().zip(before).all(|(after, before)| (after - before).abs() < 1e-6), "{log_probs:?}");
        // A class that nobody has.
        PriorCorrection::new(&[2, 2, 0], &prior(&[0.5, 0.5, 0.0], 1.0)).apply(&mut log_probs);
        assert!(log_probs.iter().all(|value| value.is_finite()), "{log_probs:?}");
    }
}
