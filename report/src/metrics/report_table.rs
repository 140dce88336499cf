//! The rest of the table of metrics: those that only a report computes. See [`super::table`].

use super::class_sums::ClassScore;
use super::classification::squared_error;
use super::error::finite;
use super::federated::Direction::{HigherIsBetter, LowerIsBetter};
use super::metric::View::{Card, Decision, Definition, Group, Overall};
use super::metric::{ClassMetric, ClassStatistic, Metric, TargetMetric, TargetStatistic, Unit};
use super::ranking::Ranking;
use super::regression::{errors, mean_error, sharpness};
use super::target_sums::TargetScore;

/// The metrics that only a report computes.
pub static REPORT: &[Metric] = &[
    Metric {
        key: "brier_binary",
        name: "Brier score, binary",
        better: Some(LowerIsBetter),
        classes: Some(ClassMetric::new(
            |scored| {
                let brier = scored.mean(squared_error)?;
                (scored.classes() == 2).then_some(0.5 * brier)
            },
            "Half of the Brier score, for two classes only: the mean squared error of p(y = 1).",
        )),
        sums: Some(|scores| {
            let brier = scores.of_class_score(ClassScore::Brier)?;
            (scores.classes()? == 2).then_some(0.5 * brier)
        }),
        places: &[(Overall, 80), (Definition, 120)],
        ..Metric::EMPTY
    },
    Metric {
        key: "mce_n",
        name: "Rows of the bin that sets the MCE",
        unit: Unit::Rows,
        classes: Some(ClassMetric::new(
            |scored| scored.top().worst(1).map(|bin| bin.n as f64),
            "Rows of the bin that sets the MCE.",
        )),
        sums: Some(|scores| scores.calibration()?.worst(1).map(|bin| bin.n as f64)),
        places: &[(Overall, 110)],
        ..Metric::EMPTY
    },
    Metric {
        key: "rmsce",
        name: "RMSCE",
        better: Some(LowerIsBetter),
        classes: Some(ClassMetric::new(
            |scored| scored.top().rmsce(),
            "Root mean square calibration error: square root of sum (n_j/n) (accuracy_j - confidence_j)^2.",
        )),
        sums: Some(|scores| scores.calibration()?.rmsce()),
        places: &[(Overall, 120), (Definition, 160)],
        ..Metric::EMPTY
    },
    Metric {
        key: "ace_unweighted",
        name: "ACE, unweighted",
        better: Some(LowerIsBetter),
        classes: Some(ClassMetric::new(
            |scored| scored.top().ace_unweighted(),
            "Plain mean of |accuracy_j - confidence_j| over non-empty equal-width bins.",
        )),
        sums: Some(|scores| scores.calibration()?.ace_unweighted()),
        places: &[(Overall, 140), (Definition, 180)],
        ..Metric::EMPTY
    },
    Metric {
        key: "ece_binary_positive",
        name: "ECE of p(y = 1)",
        better: Some(LowerIsBetter),
        classes: Some(ClassMetric::new(
            |scored| match scored.one_vs_rest() {
                [_, positive] => positive.ece(),
                _ => None,
            },
            "For two classes only: the ECE of p(y = 1) against the frequency of label 1; another number than the ECE of the top label.",
        )),
        sums: Some(|scores| match scores.classwise_ece()?.as_slice() {
            [_, positive] => Some(*positive),
            _ => None,
        }),
        places: &[(Overall, 160), (Definition, 200)],
        ..Metric::EMPTY
    },
    Metric {
        key: "debiased_l2",
        name: "Debiased L2",
        better: Some(LowerIsBetter),
        classes: Some(ClassMetric::new(
            |scored| scored.top().debiased_l2(),
            "Root of the squared calibration error less the noise of the bins: sqrt(max(0, sum over bins with n_j >= 2 of (n_j/n) [gap_j^2 - accuracy_j (1 - accuracy_j)/(n_j - 1)])).",
        )),
        sums: Some(|scores| scores.calibration()?.debiased_l2()),
        places: &[(Overall, 170), (Definition, 210)],
        ..Metric::EMPTY
    },
    Metric {
        key: "mean_error",
        name: "Mean error",
        unit: Unit::Target,
        small_print: "prediction \u{2212} target: above 0 is too high",
        targets: Some(TargetMetric::new(
            |scored| mean_error(scored.predictions()),
            "Mean of the mixture's mean minus the target, in the unit of the target: above 0 where predictions are too high.",
        )
        .with_interval(TargetStatistic::Mean(|scored| errors(scored.predictions()).collect()))),
        places: &[(Overall, 35), (Card, 95), (Definition, 55)],
        ..Metric::EMPTY
    },
    Metric {
        key: "sharpness",
        name: "Sharpness",
        unit: Unit::Target,
        small_print: "predictive standard deviation",
        targets: Some(TargetMetric::new(
            |scored| sharpness(scored.predictions()),
            "Square root of the mean predictive variance: how wide the predictive is, whatever the targets.",
        )),
        sums: Some(|scores| {
            let of = |score| scores.of_target_score(score);
            Some((of(TargetScore::Aleatoric)? + of(TargetScore::Epistemic)?).sqrt())
        }),
        places: &[(Overall, 220), (Card, 130), (Definition, 110)],
        ..Metric::EMPTY
    },
    Metric {
        key: "aleatoric_sd",
        name: "Aleatoric sd",
        unit: Unit::Target,
        small_print: "the data's noise",
        targets: Some(TargetMetric::new(
            |scored| root_mean(&scored.moments().aleatoric),
            "Square root of the mean over rows of the particles' mean variance: the noise in the data.",
        )),
        sums: Some(|scores| scores.of_target_score(TargetScore::Aleatoric).map(f64::sqrt)),
        places: &[(Overall, 230), (Card, 140), (Definition, 120)],
        ..Metric::EMPTY
    },
    Metric {
        key: "epistemic_sd",
        name: "Epistemic sd",
        unit: Unit::Target,
        targets: Some(TargetMetric::new(
            |scored| root_mean(&scored.moments().epistemic),
            "Square root of the mean over rows of the variance of the particles' means: their disagreement.",
        )),
        sums: Some(|scores| scores.of_target_score(TargetScore::Epistemic).map(f64::sqrt)),
        places: &[(Overall, 240), (Card, 150), (Definition, 130)],
        ..Metric::EMPTY
    },
    Metric {
        key: "auprc",
        name: "AUPRC",
        title: "Area under the precision-recall curve",
        better: Some(HigherIsBetter),
        classes: Some(
            ClassMetric::new(
                |scored| scored.ranking().and_then(|ranking| ranking.average_precision(&ranking.once())),
                "For two classes only: the average precision, the sum over thresholds of p(y = 1), from the highest down, of the gain in recall of class 1 times the precision; the share of class 1 is chance level, 1 is perfect.",
            )
            .with_interval(ClassStatistic::Ranked(Ranking::average_precision))
        ),
        places: &[(Overall, 212), (Decision, 20), (Definition, 202)],
        ..Metric::EMPTY
    },
    Metric {
        key: "calibration_slope",
        name: "Calibration slope",
        heading: "Slope",
        small_print: "1 is perfect",
        classes: Some(
            ClassMetric::new(
                |scored| scored.recalibration()?.slope.map(|slope| slope.value),
                "For two classes only: b in logit P(y = 1) = a + b logit p(y = 1), fitted by maximum likelihood to the rows of the report (Cox 1958); 1 is perfect, below 1 the probabilities are too extreme, above 1 not extreme enough; probabilities below 1e-12 are taken as 1e-12.",
            )
            .estimated(|of| of.slope)
        ),
        places: &[(Overall, 213), (Decision, 30), (Group, 20), (Definition, 203)],
        ..Metric::EMPTY
    },
    Metric {
        key: "calibration_intercept",
        name: "Calibration intercept",
        small_print: "0 is perfect",
        classes: Some(
            ClassMetric::new(
                |scored| scored.recalibration()?.intercept.map(|intercept| intercept.value),
                "For two classes only: a of the same fit; 0 is perfect.",
            )
            .estimated(|of| of.intercept)
        ),
        places: &[(Overall, 214), (Decision, 40), (Definition, 204)],
        ..Metric::EMPTY
    },
    Metric {
        key: "calibration_in_the_large",
        name: "Calibration in the large",
        heading: "In the large",
        small_print: "0 is perfect",
        classes: Some(
            ClassMetric::new(
                |scored| scored.recalibration()?.in_the_large.map(|intercept| intercept.value),
                "For two classes only: a with b = 1; 0 is perfect, above 0 the probabilities of class 1 are too low on average, below 0 too high.",
            )
            .estimated(|of| of.in_the_large)
        ),
        places: &[(Overall, 215), (Decision, 50), (Group, 30), (Definition, 205)],
        ..Metric::EMPTY
    },
];

/// The root of a mean.
fn root_mean(values: &[f64]) -> Option<f64> {
    finite((values.iter().sum::<f64>() / values.len() as f64).sqrt())
}
