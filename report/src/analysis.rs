//! All numbers of a classification report, computed once; its fields are those of `report.json`.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use serde::Serialize;

use super::verdict::Verdict;
use crate::metrics::{
    self, Bin, BrierDecomposition, Calibration, ClassPredictions, ClassRow, Evaluation, MetricError, ScoreIntervals,
    TemperatureFit, UncertaintySummary, apply_temperature, fit_temperature, logits_of, score_intervals,
};

/// Up to this number of rows the bootstrap draws 1,000 times, beyond it 200 times.
const MANY_ROWS: usize = 20_000;
/// Fewer rows than this cannot be split into a half that fits and a half that judges.
const FEWEST_ROWS_TO_SPLIT: usize = 20;

/// Everything that a classification report says.
#[derive(Debug, Clone, Serialize)]
pub struct ClassAnalysis {
    /// The headline in words.
    pub verdict: Verdict,
    /// The headline numbers.
    pub overall: Overall,
    /// Bootstrap intervals of the headline numbers.
    pub confidence_intervals: ScoreIntervals,
    /// Equal-width bins.
    pub bins: Vec<Bin>,
    /// Equal-mass bins; their edges are the smallest and largest confidence inside.
    pub equal_mass_bins: Vec<Bin>,
    /// Where the top-label Brier score comes from.
    pub brier_decomposition: Option<BrierDecomposition>,
    /// How every class fares.
    pub classes: Vec<ClassRow>,
    /// One-vs-rest ECE of every class.
    pub classwise_ece: Vec<f64>,
    /// How well the confidence ranks the mistakes.
    pub selective: Selective,
    /// What only the particles can tell.
    pub uncertainty: Option<UncertaintySummary>,
    /// What one temperature would change; `None` with too few rows to split.
    pub temperature_scaling: Option<TemperatureDiagnosis>,
}

/// Headline numbers of a classification.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "every field is defined in `definitions` of the report, by the same name")]
pub struct Overall {
    pub n: usize,
    pub classes: usize,
    pub bins: usize,
    pub accuracy: Option<f64>,
    pub nll: Option<f64>,
    pub nll_clamped: usize,
    pub brier: Option<f64>,
    pub brier_binary: Option<f64>,
    pub ece: Option<f64>,
    pub mce: Option<f64>,
    /// Rows of the bin that sets the MCE.
    pub mce_n: Option<usize>,
    pub rmsce: Option<f64>,
    pub ace: Option<f64>,
    pub ace_unweighted: Option<f64>,
    pub classwise_ece: Option<f64>,
    pub ece_binary_positive: Option<f64>,
    pub debiased_l2: Option<f64>,
    pub signed_gap: Option<f64>,
    pub mean_confidence: Option<f64>,
    pub reference_max: Option<f64>,
    pub entropy: Option<f64>,
}

/// How well a score ranks the mistakes; `None` where there are no mistakes, or only mistakes.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "every field is defined in `definitions` of the report, by the same name")]
pub struct Selective {
    pub auroc_misclassification: Option<f64>,
    pub auroc_mutual_information: Option<f64>,
    pub fpr95: Option<f64>,
    pub aurc: Option<f64>,
}

/// What one temperature would change. Fitted on a seeded half of the rows, judged on the other
/// half; no other number of the report uses it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TemperatureDiagnosis {
    /// The fit on the first half.
    #[serde(flatten)]
    pub fit: TemperatureFit,
    /// Rows of the first half.
    pub fit_rows: usize,
    /// Rows of the other half.
    pub evaluated_rows: usize,
    /// NLL of the other half at T = 1.
    pub evaluated_nll_before: f64,
    /// NLL of the other half at T.
    pub evaluated_nll_after: f64,
    /// ECE of the other half at T = 1.
    pub evaluated_ece_before: Option<f64>,
    /// ECE of the other half at T.
    pub evaluated_ece_after: Option<f64>,
}

impl ClassAnalysis {
    pub(super) fn new(
        predictions: &ClassPredictions,
        uncertainty: Option<UncertaintySummary>,
        bins: usize,
        seed: u64,
    ) -> Result<Self, MetricError> {
        let n = predictions.len();
        let top = predictions.top_label();
        let width = metrics::equal_width(&top.confidence, &top.correct, bins)?;
        let mass = metrics::equal_mass(&top.confidence, &top.correct, bins)?;
        let resamples = if n <= MANY_ROWS { 1000 } else { 200 };
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let intervals = score_intervals(predictions, bins, resamples, 0.95, &mut rng)?;
        let wrong: Vec<bool> = top.correct.iter().map(|right| !right).collect();
        let doubt: Vec<f64> = top.confidence.iter().map(|c| -c).collect();
        let by_information = uncertainty
            .as_ref()
            .filter(|u| u.row_mutual_information.len() == n && u.particles > 1)
            .map(|u| metrics::auroc(&u.row_mutual_information, &wrong))
            .transpose()?
            .flatten();
        Ok(Self {
            verdict: Verdict::of_classes(&width, intervals.signed_gap),
            overall: overall(predictions, bins, &width)?,
            confidence_intervals: intervals,
            brier_decomposition: metrics::brier_decomposition(&top.confidence, &top.correct, bins)?,
            classes: metrics::per_class(predictions),
            classwise_ece: metrics::classwise_ece(predictions, bins)?,
            selective: Selective {
                auroc_misclassification: metrics::auroc(&doubt, &wrong)?,
                auroc_mutual_information: by_information,
                fpr95: metrics::fpr95(&top.confidence, &top.correct)?,
                aurc: metrics::aurc(&top.confidence, &wrong)?,
            },
            uncertainty,
            temperature_scaling: temperature(predictions, bins, seed)?,
            bins: width.bins().to_vec(),
            equal_mass_bins: mass.bins().to_vec(),
        })
    }
}

fn overall(predictions: &ClassPredictions, bins: usize, width: &Calibration) -> Result<Overall, MetricError> {
    let evaluation = Evaluation::of_predictions(predictions, bins)?;
    Ok(Overall {
        n: predictions.len(),
        classes: predictions.classes(),
        bins,
        accuracy: evaluation.accuracy,
        nll: evaluation.nll,
        nll_clamped: metrics::nll(predictions).clamped,
        brier: evaluation.brier,
        brier_binary: metrics::brier_binary(predictions),
        ece: evaluation.ece,
        mce: evaluation.mce,
        mce_n: width.worst(1).map(|bin| bin.n),
        rmsce: width.rmsce(),
        ace: evaluation.ace,
        ace_unweighted: width.ace_unweighted(),
        classwise_ece: evaluation.classwise_ece,
        ece_binary_positive: metrics::binary_positive(predictions, bins)?.and_then(|c| c.ece()),
        debiased_l2: width.debiased_l2(),
        signed_gap: evaluation.signed_gap,
        mean_confidence: evaluation.mean_confidence,
        reference_max: evaluation.reference_max,
        entropy: evaluation.entropy,
    })
}

fn temperature(
    predictions: &ClassPredictions,
    bins: usize,
    seed: u64,
) -> Result<Option<TemperatureDiagnosis>, MetricError> {
    if predictions.len() < FEWEST_ROWS_TO_SPLIT {
        return Ok(None);
    }
    let mut order: Vec<usize> = (0..predictions.len()).collect();
    // A stream of its own: the split does not depend on how often the bootstrap drew.
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(1);
    order.shuffle(&mut rng);
    let (fitted, judged) = order.split_at(order.len() / 2);
    let (fitted, judged) = (subset(predictions, fitted)?, subset(predictions, judged)?);
    let fit = fit_temperature(&logits_of(&fitted), fitted.labels(), fitted.classes())?;
    let scaled = apply_temperature(&judged, fit.temperature)?;
    let ece = |of: &ClassPredictions| -> Result<Option<f64>, MetricError> {
        let top = of.top_label();
        Ok(metrics::equal_width(&top.confidence, &top.correct, bins)?.ece())
    };
    Ok(Some(TemperatureDiagnosis {
        fit,
        fit_rows: fitted.len(),
        evaluated_rows: judged.len(),
        evaluated_nll_before: metrics::nll(&judged).value,
        evaluated_nll_after: metrics::nll(&scaled).value,
        evaluated_ece_before: ece(&judged)?,
        evaluated_ece_after: ece(&scaled)?,
    }))
}

fn subset(predictions: &ClassPredictions, rows: &[usize]) -> Result<ClassPredictions, MetricError> {
    let classes = predictions.classes();
    let labels = rows.iter().map(|&row| predictions.labels()[row]).collect();
    let values = rows.iter().flat_map(|&row| &predictions.probabilities()[row * classes..(row + 1) * classes]);
    ClassPredictions::new(labels, classes, values.copied().collect())
}
