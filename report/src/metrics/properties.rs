//! Properties that the definitions imply, on random predictions.

use proptest::prelude::*;

use super::*;

/// Confidences, among them the edges of common bin counts, with their outcomes.
fn outcomes() -> impl Strategy<Value = Vec<(f64, bool)>> {
    let confidence = prop_oneof![0.0..=1.0, (0_u32..=20).prop_map(|j| f64::from(j) / 20.0)];
    prop::collection::vec((confidence, any::<bool>()), 1..200)
}

/// `[N, n, C]` log probabilities from bounded logits, no label's probability near the floor, and
/// labels.
fn particles() -> impl Strategy<Value = (ParticleLogProbs, Vec<usize>)> {
    (1_usize..5, 1_usize..30, 2_usize..5).prop_flat_map(|(particles, rows, classes)| {
        let logits = prop::collection::vec(-4.0..4.0_f64, particles * rows * classes);
        (logits, prop::collection::vec(0..classes, rows)).prop_map(move |(logits, labels)| {
            let normalise = |row: &[f64]| {
                let log_sum = row.iter().map(|z| z.exp()).sum::<f64>().ln();
                row.iter().map(|z| z - log_sum).collect::<Vec<_>>()
            };
            let log_probs = logits.chunks(classes).flat_map(normalise).collect();
            (ParticleLogProbs::new(particles, rows, classes, log_probs).expect("a softmax"), labels)
        })
    })
}

/// Mixtures of a regression on the standardised scale, with their scale.
fn mixtures() -> impl Strategy<Value = RegressionPredictions<'static>> {
    (1_usize..5, 1_usize..30).prop_flat_map(|(particles, rows)| {
        let components = prop::collection::vec((-3.0..3.0_f64, 0.05..20.0_f64), particles * rows);
        let targets = prop::collection::vec(-4.0..4.0_f64, rows);
        (components, targets, (-5.0..5.0_f64, 0.2..5.0_f64)).prop_map(move |(components, targets, (mean, sd))| {
            let scale = Scale { mean, sd };
            let scaled = components.into_iter().map(|(mean, of)| (scale.value(mean), scale.precision(of)));
            let (means, precisions) = scaled.unzip();
            let targets = targets.into_iter().map(|z| scale.value(z)).collect();
            RegressionPredictions::new(particles, means, precisions, targets).unwrap()
        })
    })
}

/// The rows of each of four clients; some may have none.
fn split(rows: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut clients = vec![Vec::new(); 4];
    (0..rows).for_each(|row| clients[(seed >> (row % 32 * 2)) as usize % 4].push(row));
    clients
}

/// The entries of some rows of an array `[N, n, width]`.
fn of_rows(values: impl Fn(usize, usize) -> Vec<f64>, particles: usize, rows: &[usize]) -> Vec<f64> {
    (0..particles).flat_map(|particle| rows.iter().flat_map(|row| values(particle, *row)).collect::<Vec<_>>()).collect()
}

/// The pooled sums of clients, each sent as a message.
fn pooled(clients: &[ClientScores]) -> ClientScores {
    let none = clients[0].without_rows();
    let came = clients.iter().map(|client| none.read(&client.to_values()).unwrap()).collect();
    PersonalScores::new(came).unwrap().pooled().clone()
}

/// Asserts that every metric of every round is that of all rows together, but those that sums do not give.
fn assert_same(got: &Evaluation, want: &Evaluation, size: f64) {
    assert_eq!(got.rows, want.rows);
    for ((metric, got), (_, want)) in got.values().zip(want.values()) {
        match metric.sums {
            Some(_) => assert_eq!(got.is_some(), want.is_some(), "{}", metric.key),
            None => assert!(got.is_none(), "{}", metric.key),
        }
        let difference = got.zip(want).map_or(0.0, |(got, want)| (got - want).abs());
        assert!(difference <= 1e-13 * size, "{}: {got:?}, not {want:?}", metric.key);
    }
}

proptest! {
    /// Sums of at most 30 terms below 10.
    #[test]
    fn pooled_sums_of_labelled_rows_are_the_scores_of_all_rows(
        (log_probs, labels) in particles(), bins in 1_usize..20, seed in any::<u64>()
    ) {
        let (particles, classes) = (log_probs.particles(), log_probs.classes());
        let of = |rows: Vec<usize>| {
            let mut scores = ClientScores::of_classes(classes, bins);
            if !rows.is_empty() {
                let values = of_rows(|particle, row| log_probs.row(particle, row), particles, &rows);
                let own = ParticleLogProbs::new(particles, rows.len(), classes, values).unwrap();
                scores.add_classes(&own, &rows.iter().map(|row| labels[*row]).collect::<Vec<_>>()).unwrap();
            }
            scores
        };
        let clients: Vec<ClientScores> = split(labels.len(), seed).into_iter().map(of).collect();
        let want = Evaluation::classification(&log_probs, &labels, bins).unwrap();
        assert_same(&Evaluation::of_sums(&pooled(&clients)), &want, 10.0);
    }

    /// Sums of at most 30 terms below 10⁴: squares of errors of at most 35 units, and logarithms.
    #[test]
    fn pooled_sums_of_real_targets_are_the_scores_of_all_rows(all in mixtures(), seed in any::<u64>()) {
        let particles = all.particles();
        let of = |rows: Vec<usize>| {
            let mut scores = ClientScores::of_targets();
            if !rows.is_empty() {
                let mean = of_rows(|n, row| vec![all.mean()[n * all.rows() + row]], particles, &rows);
                let precision = of_rows(|n, row| vec![all.precision()[n * all.rows() + row]], particles, &rows);
                let target = rows.iter().map(|row| all.target()[*row]).collect();
                let own = RegressionPredictions::new(particles, mean, precision, target).unwrap();
                scores.add_real(&own).unwrap();
            }
            scores
        };
        let clients: Vec<ClientScores> = split(all.rows(), seed).into_iter().map(of).collect();
        let want = Evaluation::regression(&all);
        assert_same(&Evaluation::of_sums(&pooled(&clients)), &want, 1e4);
    }

    /// Sums of at most 200 terms of size 1: 1e-12 leaves room for rounding only.
    #[test]
    fn calibration_errors_are_ordered_and_bounded(rows in outcomes(), bins in 1_usize..40) {
        let (conf, correct): (Vec<f64>, Vec<bool>) = rows.iter().copied().unzip();
        let got = equal_width(&conf, &correct, bins).unwrap();
        let (ece, mce, gap) = (got.ece().unwrap(), got.mce().unwrap(), got.signed_gap().unwrap());
        prop_assert!(ece <= mce + 1e-12 && mce <= 1.0 + 1e-12);
        prop_assert!(ece >= gap.abs() - 1e-12);
        prop_assert!(ece <= got.rmsce().unwrap() + 1e-12);
        prop_assert_eq!(got.bins().iter().map(|b| b.n).sum::<usize>(), rows.len());
        prop_assert!(got.bins().iter().all(|b| (b.n == 0) == b.accuracy.is_none()));

        let one = equal_width(&conf, &correct, 1).unwrap();
        prop_assert!((one.ece().unwrap() - gap.abs()).abs() < 1e-12);

        let (conf, correct): (Vec<f64>, Vec<bool>) = rows.iter().rev().copied().unzip();
        let reversed = equal_width(&conf, &correct, bins).unwrap();
        prop_assert!((reversed.ece().unwrap() - ece).abs() < 1e-12);
    }

    #[test]
    fn every_confidence_lies_in_its_bin(rows in outcomes(), bins in 1_usize..200) {
        for (confidence, correct) in rows {
            let got = equal_width(&[confidence], &[correct], bins).unwrap();
            let bin = got.bins().iter().find(|b| b.n == 1).unwrap();
            prop_assert!(confidence <= bin.hi && (bin.lo < confidence || confidence == 0.0 && bin.lo == 0.0));
        }
    }

    #[test]
    fn the_brier_decomposition_is_exact(rows in outcomes(), bins in 1_usize..40) {
        let (conf, correct): (Vec<f64>, Vec<bool>) = rows.iter().copied().unzip();
        let d = brier_decomposition(&conf, &correct, bins).unwrap().unwrap();
        prop_assert!((d.brier - (d.uncertainty - d.resolution + d.reliability + d.within)).abs() < 1e-12);
    }

    #[test]
    fn the_ensemble_is_never_worse_than_its_particles_on_average((log_probs, labels) in particles()) {
        let predictions = log_probs.predictions(&labels).unwrap();
        prop_assert!(gibbs_nll(&log_probs, &labels).unwrap() >= nll(&predictions).value - 1e-12);
        let bound = (log_probs.particles().min(log_probs.classes()) as f64).ln();
        let split = RowUncertainty::new(&log_probs);
        prop_assert!(split.epistemic.iter().all(|mi| (0.0..=bound + 1e-12).contains(mi)));
    }

    #[test]
    fn the_single_pass_agrees_with_the_functions((log_probs, labels) in particles(), bins in 1_usize..20) {
        let one_pass = Evaluation::classification(&log_probs, &labels, bins).unwrap();
        let predictions = log_probs.predictions(&labels).unwrap();
        let summary = UncertaintySummary::new(&log_probs, &labels).unwrap();
        let same = |a: Option<f64>, b: f64| a.is_some_and(|a| (a - b).abs() < 1e-12);
        // A report reads these predictions from a file: its numbers are those of the run.
        let of_file = Evaluation::of_predictions(&predictions, bins).unwrap();
        prop_assert_eq!((one_pass.ece, one_pass.nll, one_pass.brier), (of_file.ece, of_file.nll, of_file.brier));
        prop_assert!(same(one_pass.accuracy, accuracy(&predictions)));
        prop_assert!(same(one_pass.nll, nll(&predictions).value));
        prop_assert!(same(one_pass.reference_max, reference_max(&predictions)));
        prop_assert!(same(one_pass.accuracy_mean_particle, summary.accuracy_mean_particle));
        prop_assert!(same(one_pass.nll_mean_particle, summary.nll_mean_particle));
        prop_assert!(same(one_pass.mutual_information, summary.mutual_information.unwrap()));
        prop_assert_eq!(one_pass.disagreement.is_some(), log_probs.particles() > 1);
    }

    #[test]
    fn temperature_leaves_the_accuracy_and_never_hurts_its_own_rows((log_probs, labels) in particles()) {
        let predictions = log_probs.predictions(&labels).unwrap();
        let fit = fit_temperature(&logits_of(&predictions), &labels, predictions.classes()).unwrap();
        prop_assert!(fit.nll_after <= fit.nll_before);
        let scaled = apply_temperature(&predictions, fit.temperature).unwrap();
        prop_assert_eq!(accuracy(&scaled), accuracy(&predictions));
        prop_assert!((nll(&scaled).value - fit.nll_after).abs() < 1e-9);
    }

    #[test]
    fn a_quantile_inverts_the_distribution_function(means in prop::collection::vec(-50.0..50.0_f64, 1..6), share in 0.01..0.99_f64) {
        let n = means.len();
        let precision: Vec<f64> = (0..n).map(|i| 10_f64.powi(i as i32 - 2)).collect();
        let at = RegressionPredictions::new(n, means.clone(), precision.clone(), vec![0.0]).unwrap();
        let y = quantile(&at, 0, share).unwrap();
        let there = RegressionPredictions::new(n, means, precision, vec![y]).unwrap();
        prop_assert!((pit(&there)[0] - share).abs() < 1e-10);
    }
}
