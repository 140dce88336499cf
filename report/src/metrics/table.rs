//! The table of metrics. **A new metric is one entry**: in [`ROUND`] for one that is computed after every evaluated
//! round, in [`REPORT`](super::REPORT) for one that only a report computes. Tests of the crates hold
//! the names and the order of the columns of files, and fail until they have it; in Python it is a property of
//! `_report.py`.
//!
//! The entries of [`ROUND`] are in the order of the fields of a saved [`Evaluation`]; [`Metric::places`] orders
//! columns, report and page. Keys and orders are part of the file formats, so existing ones do not change and new
//! entries follow.

use serde::{Deserialize, Serialize};

use super::calibration::Calibration;
use super::class_sums::ClassScore;
use super::classification::{PROBABILITY_FLOOR, floored_nll, squared_error};
use super::client_scores::ClientScores;
use super::error::{finite, mean};
use super::federated::Direction::{HigherIsBetter, LowerIsBetter};
use super::metric::View::{Card, Column, Comparison, Decision, Definition, Group, Overall, Personal};
use super::metric::{ClassMetric, ClassStatistic, Metric, Over, PersonalColumn, TargetMetric, TargetStatistic, Unit};
use super::predictions::argmax;
use super::ranking::Ranking;
use super::regression::{coverage_of_pit, errors, is_central, mae, rmse};
use super::scored::{ParticleMeans, ScoredClasses, ScoredTargets};
use super::target_sums::TargetScore;
use super::uncertainty::entropy;

/// From `key = entry` to the fields of [`Evaluation`] and to [`ROUND`].
macro_rules! metrics {
    ($($(#[$doc:meta])* $key:ident = $entry:expr),+ $(,)?) => {
        /// Headline numbers of one evaluation; `None` where a number has no meaning for the task or no value.
        ///
        /// Accuracy is the ensemble's; the mean over particles has its own field. Entropies and log-likelihoods are in
        /// nats, regression numbers on the scale of the data.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        pub struct Evaluation {
            /// Test rows.
            pub rows: usize,
            $($(#[$doc])* #[serde(default)] pub $key: Option<f64>,)+
        }

        /// The metrics of every evaluated round, in the order of the fields of [`Evaluation`].
        pub static ROUND: &[Metric] = &[$(Metric { key: stringify!($key), ..$entry }),+];

        impl Evaluation {
            /// Every metric's value, from a function of the metric.
            pub(super) fn from_metrics(rows: usize, mut value: impl FnMut(&'static Metric) -> Option<f64>) -> Self {
                let mut metrics = ROUND.iter();
                Self { rows, $($key: metrics.next().and_then(&mut value)),+ }
            }

            /// Every metric with its value, in the order of [`ROUND`].
            pub fn values(&self) -> impl Iterator<Item = (&'static Metric, Option<f64>)> {
                ROUND.iter().zip([$(self.$key),+])
            }
        }
    };
}

metrics!(
    /// Accuracy of the ensemble.
    accuracy = Metric {
        name: "Accuracy",
        unit: Unit::Share,
        note: "of the ensemble",
        better: Some(HigherIsBetter),
        classes: Some(
            ClassMetric::new(
                |scored| scored.mean(right),
                "Share of rows whose predicted class is the label; of the ensemble, that is of the averaged probabilities.",
            )
            .with_interval(ClassStatistic::Share(right))
        ),
        sums: Some(ClientScores::accuracy),
        personal: &[
                column("personal_accuracy", Over::Rows, "accuracy", "all clients' test rows"),
                column("personal_accuracy_macro", Over::Clients, "accuracy, by client", "mean over clients"),
                column("personal_accuracy_worst", Over::Worst, "accuracy, worst client", ""),
            ],
        places: &[(Column, 10), (Overall, 10), (Card, 10), (Comparison, 10), (Definition, 40), (Personal, 10)],
        ..Metric::EMPTY
    },
    /// Mean over particles of each particle's accuracy.
    accuracy_mean_particle = Metric {
        name: "Accuracy, mean over particles",
        unit: Unit::Share,
        note: "mean over particles",
        better: Some(HigherIsBetter),
        classes: Some(ClassMetric::of_particles(
            |scored| of_particles(scored, |means| means.accuracy),
            "Mean over particles of each particle's own accuracy.",
        )),
        sums: Some(|scores| scores.of_class_score(ClassScore::CorrectMeanParticle)),
        personal: &[column(
                "personal_accuracy_mean_particle",
                Over::Rows,
                "accuracy, by particle",
                "mean over particles"
            )],
        places: &[(Column, 20), (Definition, 50), (Personal, 20)],
        ..Metric::EMPTY
    },
    /// Negative log-likelihood of the predictive.
    nll = Metric {
        name: "NLL",
        title: "Negative log-likelihood",
        unit: Unit::Nats,
        note: "negative log-likelihood, nats",
        better: Some(LowerIsBetter),
        classes: Some(
            ClassMetric::new(
                |scored| scored.mean(nll_of_row),
                "Negative log-likelihood: mean over rows of -ln max(p_label, 1e-12), in nats; lower is better.",
            )
            .with_interval(ClassStatistic::Mean(nll_of_row))
        ),
        targets: Some(TargetMetric::new(
            |scored| scored.log_likelihood().map(|value| -value),
            "Negative log-likelihood: mean of -ln p(y|x) by log-sum-exp, in nats; lower is better.",
        )
        .with_interval(TargetStatistic::Mean(|scored| scored.log_densities().iter().map(|density| -density).collect()))),
        sums: Some(ClientScores::nll),
        personal: &[
                column("personal_nll", Over::Rows, "nll", "negative log-likelihood, nats"),
                column("personal_nll_macro", Over::Clients, "nll, by client", "mean over clients"),
            ],
        places: &[(Column, 30), (Overall, 40), (Card, 110), (Comparison, 50), (Definition, 60), (Personal, 30)],
        ..Metric::EMPTY
    },
    /// Mean over particles of each particle's negative log-likelihood.
    nll_mean_particle = Metric {
        name: "NLL, mean over particles",
        unit: Unit::Nats,
        better: Some(LowerIsBetter),
        classes: Some(ClassMetric::of_particles(
            |scored| of_particles(scored, |means| means.nll),
            "Mean over particles of each particle's own NLL (Gibbs predictor); at least the ensemble's NLL by Jensen's inequality.",
        )),
        sums: Some(|scores| scores.of_class_score(ClassScore::NllMeanParticle)),
        places: &[(Column, 40), (Definition, 80)],
        ..Metric::EMPTY
    },
    /// Rows whose probability of the label lay below the floor of the NLL.
    nll_clamped = Metric {
        name: "NLL floor",
        unit: Unit::Rows,
        classes: Some(ClassMetric::new(
            |scored| Some(scored.count(|row, label| row[label] < PROBABILITY_FLOOR)),
            "Number of rows whose probability of the label lay below the floor 1e-12.",
        )),
        sums: Some(|scores| (scores.rows() > 0).then_some(scores.class_sums()?.get(ClassScore::Clamped))),
        places: &[(Overall, 50), (Definition, 70)],
        ..Metric::EMPTY
    },
    /// Mean log density or log probability of the targets, `-nll`.
    log_likelihood = Metric {
        name: "Log-likelihood",
        unit: Unit::Nats,
        note: "mean log density of the targets, nats",
        better: Some(HigherIsBetter),
        classes: Some(ClassMetric::new(|scored| scored.mean(nll_of_row).map(|value| 0.0 - value), "")),
        targets: Some(TargetMetric::new(|scored| scored.log_likelihood(), "Minus the NLL.")),
        sums: Some(|scores| scores.nll().map(|nll| 0.0 - nll)),
        places: &[(Column, 160), (Overall, 60), (Definition, 90)],
        ..Metric::EMPTY
    },
    /// Mean log of the largest probability, which the reference code calls "log-likelihood".
    reference_max = Metric {
        name: "Mean log confidence",
        unit: Unit::Nats,
        classes: Some(ClassMetric::new(
            |scored| scored.mean(|row, _| -floored_nll(row[argmax(row)])),
            "Mean of ln max_c p_c; the reference code of DSVGD prints it as log-likelihood, it never looks at a label.",
        )),
        sums: Some(|scores| scores.of_class_score(ClassScore::LogConfidence)),
        places: &[(Column, 150), (Overall, 200), (Definition, 100)],
        ..Metric::EMPTY
    },
    /// Brier score, `[0, 2]`.
    brier = Metric {
        name: "Brier score",
        heading: "Brier",
        note: "Brier score, 0 to 2",
        better: Some(LowerIsBetter),
        classes: Some(
            ClassMetric::new(
                |scored| scored.mean(squared_error),
                "Mean over rows of sum_c (p_c - [label = c])^2, from 0 to 2 for two classes too; lower is better.",
            )
            .with_interval(ClassStatistic::Mean(squared_error))
        ),
        sums: Some(|scores| scores.of_class_score(ClassScore::Brier)),
        personal: &[column("personal_brier", Over::Rows, "brier", "Brier score, 0 to 2")],
        places: &[(Column, 90), (Overall, 70), (Card, 120), (Comparison, 70), (Definition, 110), (Personal, 60)],
        ..Metric::EMPTY
    },
    /// Expected calibration error of the top label.
    ece = Metric {
        name: "ECE",
        title: "Expected calibration error",
        note: "expected calibration error",
        better: Some(LowerIsBetter),
        classes: Some(
            ClassMetric::new(
                |scored| scored.top().ece(),
                "Expected calibration error: sum over bins of (n_j/n) |accuracy_j - confidence_j|.",
            )
            .with_interval(ClassStatistic::CalibrationError)
        ),
        sums: Some(ClientScores::ece),
        personal: &[
                column("personal_ece", Over::Rows, "ece", "expected calibration error"),
                column("personal_ece_macro", Over::Clients, "ece, by client", "mean over clients"),
            ],
        places: &[(Column, 50), (Overall, 90), (Card, 40), (Comparison, 80), (Definition, 140), (Personal, 40)],
        ..Metric::EMPTY
    },
    /// Maximum calibration error of the top label.
    mce = Metric {
        name: "MCE",
        title: "Maximum calibration error",
        note: "maximum calibration error",
        better: Some(LowerIsBetter),
        classes: Some(ClassMetric::new(
            |scored| scored.top().mce(),
            "Maximum calibration error: largest |accuracy_j - confidence_j| over non-empty bins; a bin with few rows can set it.",
        )),
        sums: Some(|scores| scores.calibration()?.mce()),
        personal: &[column("personal_mce", Over::Rows, "", "")],
        places: &[(Column, 60), (Overall, 100), (Card, 50), (Comparison, 90), (Definition, 150), (Personal, 50)],
        ..Metric::EMPTY
    },
    /// Adaptive (equal-mass) calibration error of the top label.
    ace = Metric {
        name: "ACE",
        title: "Adaptive calibration error",
        small_print: "bins of equal mass",
        better: Some(LowerIsBetter),
        classes: Some(ClassMetric::new(
            |scored| scored.equal_mass().ece(),
            "Adaptive calibration error: the ECE over equal-mass bins, rows sorted by confidence and cut into B parts whose sizes differ by at most one. Rows of equal confidence stay in the order in which they were given, so that with many of them another order gives another number.",
        )),
        places: &[(Column, 70), (Overall, 130), (Card, 60), (Comparison, 100), (Definition, 170)],
        ..Metric::EMPTY
    },
    /// Mean over classes of the one-vs-rest calibration errors.
    classwise_ece = Metric {
        name: "Classwise ECE",
        better: Some(LowerIsBetter),
        classes: Some(ClassMetric::new(
            mean_of_classes,
            "Mean over classes of the ECE of p_c against the indicator [label = c], over all rows.",
        )),
        sums: Some(|scores| mean_ece(&scores.classwise_ece()?)),
        places: &[(Column, 80), (Overall, 150), (Card, 70), (Definition, 190)],
        ..Metric::EMPTY
    },
    /// Mean confidence minus accuracy.
    signed_gap = Metric {
        name: "Signed gap",
        unit: Unit::Points,
        note: "mean confidence − accuracy: above 0 is overconfident",
        classes: Some(
            ClassMetric::new(
                |scored| scored.top().signed_gap(),
                "Mean confidence minus accuracy: above 0 over-confident, below 0 under-confident.",
            )
            .with_interval(ClassStatistic::Mean(gap))
        ),
        sums: Some(|scores| scores.calibration()?.signed_gap()),
        places: &[(Column, 100), (Overall, 180), (Card, 30), (Definition, 220)],
        ..Metric::EMPTY
    },
    /// Mean probability of the predicted class.
    mean_confidence = Metric {
        name: "Mean confidence",
        heading: "Confidence",
        unit: Unit::Share,
        classes: Some(ClassMetric::new(
            |scored| scored.mean(|row, _| row[argmax(row)]),
            "Mean of the confidence over rows.",
        )),
        sums: Some(|scores| scores.calibration()?.mean_confidence()),
        places: &[(Column, 110), (Overall, 190), (Card, 20), (Comparison, 20), (Definition, 30)],
        ..Metric::EMPTY
    },
    /// Mean entropy of the predictive.
    entropy = Metric {
        name: "Entropy",
        unit: Unit::Nats,
        classes: Some(ClassMetric::new(
            |scored| scored.mean(|row, _| entropy(row)),
            "Mean entropy of the predictive, -sum p ln p, in nats.",
        )),
        sums: Some(|scores| scores.of_class_score(ClassScore::Entropy)),
        places: &[(Column, 120), (Overall, 210), (Definition, 250)],
        ..Metric::EMPTY
    },
    /// Mean entropy of the particles.
    aleatoric = Metric {
        name: "Aleatoric uncertainty",
        unit: Unit::Nats,
        classes: Some(ClassMetric::of_particles(
            |scored| of_particles(scored, |means| means.aleatoric),
            "Mean over particles and rows of each particle's entropy, in nats: doubt that more training would not remove.",
        )),
        sums: Some(|scores| scores.of_class_score(ClassScore::Aleatoric)),
        places: &[(Definition, 260)],
        ..Metric::EMPTY
    },
    /// Mean mutual information, `entropy - aleatoric`.
    mutual_information = Metric {
        name: "Epistemic uncertainty",
        unit: Unit::Nats,
        note: "what the particles disagree about, nats",
        classes: Some(ClassMetric::of_particles(
            |scored| of_particles(scored, |means| means.epistemic),
            "Mutual information: entropy of the mean minus mean of the entropies, in nats; 0 when all particles agree.",
        )),
        sums: Some(|scores| scores.of_class_score(ClassScore::Epistemic)),
        places: &[(Column, 130), (Definition, 270)],
        ..Metric::EMPTY
    },
    /// Mean share of particle pairs that predict different classes.
    disagreement = Metric {
        name: "Disagreement",
        unit: Unit::Share,
        classes: Some(ClassMetric::of_particles(
            |scored| scored.particles()?.disagreement.and_then(finite),
            "Mean over rows of the share of particle pairs that predict different classes.",
        )),
        sums: Some(ClientScores::disagreement),
        places: &[(Column, 140), (Definition, 280)],
        ..Metric::EMPTY
    },
    /// Root mean squared error.
    rmse = Metric {
        name: "RMSE",
        title: "Root mean squared error",
        unit: Unit::Target,
        note: "root mean squared error, units of the data",
        small_print: "unit of the target",
        better: Some(LowerIsBetter),
        targets: Some(TargetMetric::new(
            |scored| rmse(scored.predictions()),
            "Root mean squared error of the mixture's mean, in the unit of the target.",
        )
        .with_interval(TargetStatistic::RootMean(|scored| errors(scored.predictions()).map(|e| e * e).collect()))),
        sums: Some(|scores| scores.of_target_score(TargetScore::SquaredError).map(f64::sqrt)),
        personal: &[
                column("personal_rmse", Over::Rows, "rmse", "root mean squared error, units of the data"),
                column("personal_rmse_macro", Over::Clients, "rmse, by client", "mean over clients"),
            ],
        places: &[(Column, 170), (Overall, 20), (Card, 80), (Comparison, 30), (Definition, 40), (Personal, 70)],
        ..Metric::EMPTY
    },
    /// Mean absolute error.
    mae = Metric {
        name: "MAE",
        title: "Mean absolute error",
        unit: Unit::Target,
        small_print: "unit of the target",
        better: Some(LowerIsBetter),
        targets: Some(TargetMetric::new(
            |scored| mae(scored.predictions()),
            "Mean absolute error of the mixture's mean, in the unit of the target.",
        )
        .with_interval(TargetStatistic::Mean(|scored| errors(scored.predictions()).map(f64::abs).collect()))),
        sums: Some(|scores| scores.of_target_score(TargetScore::AbsoluteError)),
        places: &[(Column, 180), (Overall, 30), (Card, 90), (Comparison, 40), (Definition, 50)],
        ..Metric::EMPTY
    },
    /// Continuous ranked probability score.
    crps = Metric {
        name: "CRPS",
        title: "Continuous ranked probability score",
        unit: Unit::Target,
        note: "continuous ranked probability score",
        small_print: "unit of the target",
        better: Some(LowerIsBetter),
        targets: Some(TargetMetric::new(
            |scored| mean(scored.crps().iter().copied()),
            "Continuous ranked probability score, closed form for the mixture, in the unit of the target; lower is better, |y - prediction| for a certain prediction.",
        )
        .with_interval(TargetStatistic::Mean(|scored| scored.crps().to_vec()))),
        sums: Some(|scores| scores.of_target_score(TargetScore::Crps)),
        places: &[(Column, 190), (Overall, 65), (Card, 100), (Comparison, 60), (Definition, 100)],
        ..Metric::EMPTY
    },
    /// Share of targets in the central 50 % interval.
    coverage_50 = Metric {
        name: "Coverage of 50 % intervals",
        heading: "50 %",
        unit: Unit::Share,
        targets: Some(
            TargetMetric::new(
                |scored| finite(coverage_of_pit(scored.pit(), 0.5)),
                "Share of targets inside the central 50 % interval.",
            )
            .with_interval(TargetStatistic::Share(|scored| inside(scored, 0.5))),
        ),
        sums: Some(|scores| scores.coverage(0.5)),
        places: &[(Comparison, 110)],
        ..Metric::EMPTY
    },
    /// Share of targets in the central 90 % interval.
    coverage_90 = Metric {
        name: "Coverage of 90 % intervals",
        heading: "90 %",
        unit: Unit::Share,
        note: "share of targets inside the 90 % interval",
        targets: Some(
            TargetMetric::new(
                |scored| finite(coverage_of_pit(scored.pit(), 0.9)),
                "Share of targets inside the central 90 % interval.",
            )
            .with_interval(TargetStatistic::Share(|scored| inside(scored, 0.9))),
        ),
        sums: Some(|scores| scores.coverage(0.9)),
        places: &[(Column, 200), (Comparison, 120)],
        ..Metric::EMPTY
    },
    /// Share of targets in the central 95 % interval.
    coverage_95 = Metric {
        name: "Coverage of 95 % intervals",
        heading: "95 %",
        unit: Unit::Share,
        targets: Some(
            TargetMetric::new(
                |scored| finite(coverage_of_pit(scored.pit(), 0.95)),
                "Share of targets inside the central 95 % interval.",
            )
            .with_interval(TargetStatistic::Share(|scored| inside(scored, 0.95))),
        ),
        sums: Some(|scores| scores.coverage(0.95)),
        places: &[(Comparison, 130)],
        ..Metric::EMPTY
    },
    /// KL(q ‖ posterior) of a toy density, by quadrature; the experiment fills it in.
    kl = Metric {
        name: "KL(q \u{2016} posterior)",
        unit: Unit::Nats,
        note: "divergence from the exact posterior, nats",
        better: Some(LowerIsBetter),
        places: &[(Column, 210)],
        ..Metric::EMPTY
    },
    /// Area under the ROC curve of p(y = 1), for two classes.
    auroc = Metric {
        name: "AUROC",
        title: "Area under the ROC curve",
        note: "how well p(y = 1) ranks the rows: 0.5 is chance level",
        better: Some(HigherIsBetter),
        classes: Some(
            ClassMetric::new(
                |scored| scored.ranking().and_then(|ranking| ranking.auroc(&ranking.once())),
                "For two classes only: the probability that p(y = 1) is higher for a row of class 1 than for a row of class 0, ties count half; 0.5 is chance level, 1 is perfect.",
            )
            .with_interval(ClassStatistic::Ranked(Ranking::auroc))
        ),
        places: &[(Column, 220), (Overall, 211), (Decision, 10), (Group, 10), (Definition, 201)],
        ..Metric::EMPTY
    },
);

/// A column on the clients' personal predictors.
const fn column(key: &'static str, over: Over, name: &'static str, note: &'static str) -> PersonalColumn {
    PersonalColumn { key, over, name, note }
}

/// 1 where the predicted class is the label.
fn right(row: &[f64], label: usize) -> f64 {
    f64::from(u8::from(argmax(row) == label))
}

/// Floored negative log-likelihood of a row.
fn nll_of_row(row: &[f64], label: usize) -> f64 {
    floored_nll(row[label])
}

/// 1 where the target is in the central interval of a level, `[n]`.
fn inside(scored: &ScoredTargets<'_>, level: f64) -> Vec<f64> {
    scored.pit().iter().map(|pit| f64::from(u8::from(is_central(*pit, level)))).collect()
}

/// Confidence less 1 where the predicted class is the label.
fn gap(row: &[f64], label: usize) -> f64 {
    row[argmax(row)] - right(row, label)
}

fn of_particles(scored: &ScoredClasses<'_>, value: fn(&ParticleMeans) -> f64) -> Option<f64> {
    scored.particles().map(value).and_then(finite)
}

fn mean_of_classes(scored: &ScoredClasses<'_>) -> Option<f64> {
    mean_ece(&scored.one_vs_rest().iter().filter_map(Calibration::ece).collect::<Vec<_>>())
}

/// The mean of the ECEs of classes.
fn mean_ece(of_classes: &[f64]) -> Option<f64> {
    finite(of_classes.iter().sum::<f64>() / of_classes.len() as f64)
}
