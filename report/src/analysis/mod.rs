//! From predictions to every number of a report.

mod binary;
mod class_headline;
mod classification;
mod confusion;
mod groups;
mod regression;
mod target_headline;

pub use binary::{BinaryAnalysis, PositiveClass};
pub use classification::{ClassAnalysis, Selective, TemperatureDiagnosis};
pub use confusion::ConfusionAnalysis;
pub use groups::GroupAnalysis;
pub use regression::RegressionAnalysis;

use crate::metrics::{MetricError, ScoredClasses, ScoredTargets};
use crate::overall::Overall;
use crate::report::{Content, Report};
use crate::verdict::CalibrationVerdict;

/// Up to this number of rows the bootstrap draws 1,000 times, beyond it 200 times.
const MANY_ROWS: usize = 20_000;

/// How often the bootstrap draws from so many rows.
fn resamples(rows: usize) -> usize {
    if rows <= MANY_ROWS { 1000 } else { 200 }
}

/// The numbers computed from the predictions.
#[derive(Debug)]
pub(crate) enum Analysis {
    Classification(Box<ClassAnalysis>),
    Regression(Box<RegressionAnalysis>),
}

impl Analysis {
    /// Computes every number of a report.
    ///
    /// # Errors
    /// A number of bins outside the accepted range, groups that are not one for each row, or sums without a row or with
    /// groups.
    pub fn new(report: &Report<'_>) -> Result<Self, MetricError> {
        let mut analysis = Self::of_content(report)?;
        if let Some(reason) = report.run.as_ref().and_then(|run| run.not_judged.as_deref()) {
            let (verdict, groups) = match &mut analysis {
                Self::Classification(analysis) => (&mut analysis.verdict, &mut analysis.groups),
                Self::Regression(analysis) => (&mut analysis.verdict, &mut analysis.groups),
            };
            for verdict in groups.iter_mut().map(|group| &mut group.verdict).chain([verdict]) {
                *verdict = CalibrationVerdict::not_judged(reason);
            }
        }
        Ok(analysis)
    }

    fn of_content(report: &Report<'_>) -> Result<Self, MetricError> {
        Ok(match &report.content {
            Content::Classification { predictions, uncertainty } => {
                Self::Classification(Box::new(ClassAnalysis::new(report, predictions, uncertainty.clone())?))
            }
            Content::Regression { predictions } => {
                Self::Regression(Box::new(RegressionAnalysis::new(report, predictions)?))
            }
            Content::Sums { .. } if report.groups.is_some() => return Err(MetricError::GroupsOfSums),
            Content::Sums { scores, .. } if scores.rows() == 0 => return Err(MetricError::NoRows),
            Content::Sums { scores, uncertainty } => match (scores.class_sums(), scores.target_sums()) {
                (Some(sums), _) => {
                    Self::Classification(Box::new(ClassAnalysis::of_sums(report, scores, sums, uncertainty.clone())))
                }
                (_, Some(sums)) => Self::Regression(Box::new(RegressionAnalysis::of_sums(scores, sums))),
                (None, None) => return Err(MetricError::NoRows),
            },
        })
    }

    /// The headline in words.
    pub fn into_verdict(self) -> CalibrationVerdict {
        match self {
            Self::Classification(analysis) => analysis.verdict,
            Self::Regression(analysis) => analysis.verdict,
        }
    }

    /// The metrics of the task, without the rest of the analysis.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn overall_of(report: &Report<'_>) -> Result<Overall, MetricError> {
        match &report.content {
            Content::Classification { predictions, .. } => {
                let scored = ScoredClasses::of_predictions(predictions, report.bins)?;
                Ok(class_headline::overall(&scored, report.bins))
            }
            Content::Regression { predictions } => {
                target_headline::overall(&ScoredTargets::new(predictions), report.bins)
            }
            // These are cheap as a whole.
            Content::Sums { .. } => Self::new(report).map(|analysis| analysis.overall().clone()),
        }
    }

    /// The metrics of every group of rows, without the rest of the analysis.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn overall_of_groups(report: &Report<'_>) -> Result<Vec<(String, Overall)>, MetricError> {
        groups::overall(report)
    }

    /// The numbers of every group of rows; none without groups.
    pub fn groups(&self) -> &[GroupAnalysis] {
        match self {
            Self::Classification(analysis) => &analysis.groups,
            Self::Regression(analysis) => &analysis.groups,
        }
    }

    /// The metrics of the task.
    pub fn overall(&self) -> &Overall {
        match self {
            Self::Classification(analysis) => &analysis.overall,
            Self::Regression(analysis) => &analysis.overall,
        }
    }
}
