//! What every number means, in one sentence; printed in `report.json` and on the page.

/// A number of the report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Definition {
    pub(super) key: &'static str,
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
}

const fn of(key: &'static str, name: &'static str, meaning: &'static str) -> Definition {
    Definition { key, name, meaning }
}

/// Numbers of a classification report.
pub(super) const CLASSIFICATION: &[Definition] = &[
    of("n", "Rows", "Number of labelled rows in the report."),
    of(
        "confidence",
        "Confidence",
        "Largest class probability of a row, max_c p_c, for two classes too; the predicted class is the argmax, the lowest index on ties.",
    ),
    of("mean_confidence", "Mean confidence", "Mean of the confidence over rows."),
    of(
        "accuracy",
        "Accuracy",
        "Share of rows whose predicted class is the label; of the ensemble, that is of the averaged probabilities.",
    ),
    of(
        "accuracy_mean_particle",
        "Accuracy, mean over particles",
        "Mean over particles of each particle's own accuracy.",
    ),
    of("nll", "NLL", "Negative log-likelihood: mean over rows of -ln max(p_label, 1e-12), in nats; lower is better."),
    of("nll_clamped", "NLL floor", "Number of rows whose probability of the label lay below the floor 1e-12."),
    of(
        "nll_mean_particle",
        "NLL, mean over particles",
        "Mean over particles of each particle's own NLL (Gibbs predictor); at least the ensemble's NLL by Jensen's inequality.",
    ),
    of(
        "reference_max",
        "Mean log confidence",
        "Mean of ln max_c p_c; the reference code of DSVGD prints it as log-likelihood, it never looks at a label.",
    ),
    of(
        "brier",
        "Brier score",
        "Mean over rows of sum_c (p_c - [label = c])^2, from 0 to 2 for two classes too; lower is better.",
    ),
    of(
        "brier_binary",
        "Brier score, binary",
        "Half of the Brier score, for two classes only: the mean squared error of p(y = 1).",
    ),
    of(
        "bins",
        "Bins",
        "B intervals ((j-1)/B, j/B] of the confidence; 0 belongs to the first; an empty bin has no accuracy, which is not 0.",
    ),
    of("ece", "ECE", "Expected calibration error: sum over bins of (n_j/n) |accuracy_j - confidence_j|."),
    of(
        "mce",
        "MCE",
        "Maximum calibration error: largest |accuracy_j - confidence_j| over non-empty bins; a bin with few rows can set it.",
    ),
    of(
        "rmsce",
        "RMSCE",
        "Root mean square calibration error: square root of sum (n_j/n) (accuracy_j - confidence_j)^2.",
    ),
    of(
        "ace",
        "ACE",
        "Adaptive calibration error: the ECE over equal-mass bins, rows sorted by confidence and cut into B parts whose sizes differ by at most one.",
    ),
    of(
        "ace_unweighted",
        "ACE, unweighted",
        "Plain mean of |accuracy_j - confidence_j| over non-empty equal-width bins.",
    ),
    of(
        "classwise_ece",
        "Classwise ECE",
        "Mean over classes of the ECE of p_c against the indicator [label = c], over all rows.",
    ),
    of(
        "ece_binary_positive",
        "ECE of p(y = 1)",
        "For two classes only: the ECE of p(y = 1) against the frequency of label 1; another number than the ECE of the top label.",
    ),
    of(
        "debiased_l2",
        "Debiased L2",
        "Root of the squared calibration error less the noise of the bins: sqrt(max(0, sum over bins with n_j >= 2 of (n_j/n) [gap_j^2 - accuracy_j (1 - accuracy_j)/(n_j - 1)])).",
    ),
    of("signed_gap", "Signed gap", "Mean confidence minus accuracy: above 0 over-confident, below 0 under-confident."),
    of(
        "gap",
        "Gap",
        "Mean confidence minus accuracy within a bin, or confidence minus precision of a predicted class.",
    ),
    of(
        "brier_decomposition",
        "Brier decomposition",
        "mean (confidence - correct)^2 = uncertainty - resolution + reliability + within, exact over the same bins: the spread of right and wrong, what the bins tell apart, their calibration error, and what varies inside them.",
    ),
    of("entropy", "Entropy", "Mean entropy of the predictive, -sum p ln p, in nats."),
    of(
        "aleatoric",
        "Aleatoric uncertainty",
        "Mean over particles and rows of each particle's entropy, in nats: doubt that more training would not remove.",
    ),
    of(
        "mutual_information",
        "Epistemic uncertainty",
        "Mutual information: entropy of the mean minus mean of the entropies, in nats; 0 when all particles agree.",
    ),
    of("disagreement", "Disagreement", "Mean over rows of the share of particle pairs that predict different classes."),
    of(
        "auroc_misclassification",
        "AUROC of mistakes",
        "Probability that a wrong row has a lower confidence than a right one, ties count half; 0.5 is a coin.",
    ),
    of("auroc_mutual_information", "AUROC of mistakes by MI", "The same with the mutual information as the score."),
    of(
        "fpr95",
        "FPR at 95 % TPR",
        "Share of wrong rows that pass the confidence threshold which 95 % of the right rows pass.",
    ),
    of(
        "aurc",
        "AURC",
        "Area under the risk-coverage curve: mean over i of the error rate among the i most confident rows; lower is better.",
    ),
    of(
        "confidence_intervals",
        "Intervals",
        "95 % percentile bootstrap over rows, seeded; they cover the luck of the test rows, not that of training.",
    ),
    of(
        "temperature_scaling",
        "Temperature",
        "T minimises the NLL of softmax(ln p / T) on a seeded half of the rows; before and after are measured on the other half; all other numbers of the report are at T = 1.",
    ),
];

/// Numbers of a regression report.
pub(super) const REGRESSION: &[Definition] = &[
    of("n", "Rows", "Number of rows with a target in the report."),
    of(
        "predictive",
        "Predictive",
        "p(y|x) = (1/N) sum_n N(y; mean_n, 1/precision_n), an equal-weight mixture over N particles; every number is on the scale of the data.",
    ),
    of("rmse", "RMSE", "Root mean squared error of the mixture's mean, in the unit of the target."),
    of("mae", "MAE", "Mean absolute error of the mixture's mean, in the unit of the target."),
    of("nll", "NLL", "Negative log-likelihood: mean of -ln p(y|x) by log-sum-exp, in nats; lower is better."),
    of("log_likelihood", "Log-likelihood", "Minus the NLL."),
    of(
        "crps",
        "CRPS",
        "Continuous ranked probability score, closed form for the mixture, in the unit of the target; lower is better, |y - prediction| for a certain prediction.",
    ),
    of(
        "sharpness",
        "Sharpness",
        "Square root of the mean predictive variance: how wide the predictive is, whatever the targets.",
    ),
    of(
        "aleatoric_sd",
        "Aleatoric sd",
        "Square root of the mean over rows of the particles' mean variance: the noise in the data.",
    ),
    of(
        "epistemic_sd",
        "Epistemic sd",
        "Square root of the mean over rows of the variance of the particles' means: their disagreement.",
    ),
    of(
        "coverage",
        "Coverage (PICP)",
        "Share of targets inside the central interval of a level, between the quantiles 1/2 - level/2 and 1/2 + level/2 of the mixture.",
    ),
    of("mean_width", "Mean width (MPIW)", "Mean length of that interval, in the unit of the target."),
    of(
        "pit",
        "PIT",
        "Probability integral transform: the mixture's distribution function at the target; uniform when calibrated, humped when too wide, U-shaped when too narrow.",
    ),
    of(
        "quantile_calibration",
        "Quantile calibration",
        "Mean absolute and root mean squared distance between a level and the share of PIT values at or below it, over 100 levels from 0 to 1.",
    ),
    of(
        "interval_calibration",
        "Interval calibration",
        "The same for central intervals: the share of targets inside against the level.",
    ),
];
