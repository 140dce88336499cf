//! What a client answers about the rows that it holds out for calibration: counts of scores and sums over rows, of the
//! global particles. No row and no score leaves the client.

use std::sync::Arc;

use fedstein_datasets::Targets;
use fedstein_models::Task;

use super::client_evaluator::{ClientEvaluator, Outputs, no_rows, with_scores};
use super::held_out::{HeldOut, Seen};
use super::labelled::{Labelled, test_stream};
use crate::array::{Array, Values};
use crate::error::RunError;
use crate::metrics::{ParticleLogProbs, RegressionPredictions, logits_of, temperature_sums};
use crate::protocol::calibrating::{
    AFTER, BEFORE, COUNTS, LEVELS, MOST_LEVELS, MOST_POINTS, NLLS, SETS, SLOPES, TEMPERATURES, THRESHOLDS,
};
use crate::protocol::{Calibrating, Message, PARTICLES, ROWS, Request, ScoreForm, TestForm, map_of};
use crate::report::conformal::counts_up_to;

impl ClientEvaluator {
    /// The answer of the client of this request. The request has the global particles.
    ///
    /// # Errors
    /// The particles or what is asked with them are missing or out of range, the device does not answer, or the predictions
    /// cannot be scored.
    pub fn calibrate(&self, request: &Request, what: &Calibrating) -> Result<Message, RunError> {
        let rows = self.calibration.held.rows[request.client].len();
        match what {
            Calibrating::Rows => Ok(Message::default().with_scalar(ROWS, rows as f64)),
            Calibrating::Temperatures => self.temperatures(request),
            Calibrating::Classes => self.rows_by_class(request),
            Calibrating::Vector => self.vector_sums(request),
            Calibrating::Grid => self.on_grid(request),
            Calibrating::Mapped(kind) => self.mapped(request, *kind),
            Calibrating::Counts(form) => self.counts(request, form),
            Calibrating::Test(form) => self.tested(request, form),
        }
    }

    fn temperatures(&self, request: &Request) -> Result<Message, RunError> {
        let temperatures = numbers(request, TEMPERATURES, MOST_POINTS)?;
        let sums = match self.of_calibration_rows(request)?.as_deref() {
            Some(Labelled::Classes(predictions)) => {
                let (logits, classes) = (logits_of(predictions), predictions.classes());
                temperature_sums(&logits, predictions.labels(), classes, &temperatures)
            }
            Some(Labelled::Real(_)) => return Err(invalid("a regression has no temperature")),
            None => temperature_sums(&[], &[], 2, &temperatures),
        };
        let sums = sums.map_err(RunError::Predictions)?;
        Ok(Message::default()
            .with_array(SLOPES, vector(sums.iter().map(|sums| sums.slope).collect()))
            .with_array(NLLS, vector(sums.iter().map(|sums| sums.nll).collect())))
    }

    fn counts(&self, request: &Request, form: &ScoreForm) -> Result<Message, RunError> {
        let levels = numbers(request, LEVELS, MOST_LEVELS)?;
        let thresholds = numbers(request, THRESHOLDS, levels.len() * MOST_POINTS)?;
        if levels.is_empty() || !thresholds.len().is_multiple_of(levels.len()) {
            return Err(invalid("the thresholds are not as many for each level"));
        }
        let points = thresholds.len() / levels.len();
        let counts = match self.sorted_scores(request, form, &levels)? {
            None => vec![0.0; thresholds.len()],
            Some(scores) => {
                let of_level = |(level, thresholds): (usize, &[f64])| {
                    let sorted = scores.get(level).or(scores.first()).map_or(&[][..], Vec::as_slice);
                    counts_up_to(sorted, thresholds).into_iter().map(|count| count as f64)
                };
                thresholds.chunks(points.max(1)).enumerate().flat_map(of_level).collect()
            }
        };
        Ok(Message::default()
            .with_array(COUNTS, Array { shape: vec![levels.len(), points], values: Values::F64(counts) }))
    }

    fn tested(&self, request: &Request, form: &TestForm) -> Result<Message, RunError> {
        let Some(labelled) = self.labelled(&self.test, request)? else { return Ok(Message::default()) };
        let mut message = with_scores(Message::default(), BEFORE, &labelled.sums(self.bins)?);
        let map = map_of(&request.message, (form.temperature, form.map), labelled.classes())?;
        if let Some(map) = map {
            message = with_scores(message, AFTER, &labelled.mapped(&map)?.sums(self.bins)?);
        }
        if let Some(sets) = &form.sets {
            let results = labelled.sets(sets, test_stream(Some(request.client)))?;
            let with_clusters = results.all.has_clusters();
            let counts = [&results.all].into_iter().chain(&results.classes).map(|of| of.to_values(with_clusters));
            let counts: Vec<Vec<f64>> = counts.collect();
            let array = Array { shape: vec![counts.len(), counts[0].len()], values: Values::F64(counts.concat()) };
            message = message.with_array(SETS, array);
        }
        Ok(message)
    }

    /// The predictions of the client's calibration rows by the particles of the request; `None` where it has none.
    pub(super) fn of_calibration_rows(&self, request: &Request) -> Result<Option<Arc<Labelled>>, RunError> {
        let particles = request.message.fingerprint_of(PARTICLES)?;
        if let Some(seen) = self.calibration.seen().get(&request.client).filter(|seen| seen.particles == particles) {
            return Ok(seen.labelled.clone());
        }
        let labelled = self.labelled(&self.calibration.held, request)?.map(Arc::new);
        let seen = Seen { particles, labelled: labelled.clone(), scores: None };
        self.calibration.seen().insert(request.client, seen);
        Ok(labelled)
    }

    /// The sorted scores of the client's calibration rows, as [`Labelled::sorted_scores`]; `None` where it has none.
    fn sorted_scores(
        &self,
        request: &Request,
        form: &ScoreForm,
        levels: &[f64],
    ) -> Result<Option<Arc<Vec<Vec<f64>>>>, RunError> {
        let Some(labelled) = self.of_calibration_rows(request)? else { return Ok(None) };
        let known = |seen: &Seen| {
            let (of, at, scores) = seen.scores.as_ref()?;
            (of == form && at == levels).then(|| scores.clone())
        };
        if let Some(scores) = self.calibration.seen().get(&request.client).and_then(known) {
            return Ok(Some(scores));
        }
        let scores = Arc::new(labelled.sorted_scores(form, levels, request.client as u64)?);
        if let Some(seen) = self.calibration.seen().get_mut(&request.client) {
            seen.scores = Some((*form, levels.to_vec(), scores.clone()));
        }
        Ok(Some(scores))
    }

    /// The predictions of rows of the client by the particles of the request, in the units of the data; `None` where it has
    /// none.
    fn labelled(&self, held: &HeldOut, request: &Request) -> Result<Option<Labelled>, RunError> {
        let Some(outputs) = self.predicted_of(held, request, &self.published(request)?)? else { return Ok(None) };
        let Outputs { components, width, values } = outputs;
        let (rows, clusters) = (&held.rows[request.client], held.clusters(request.client));
        let labelled = match (&held.targets, self.model.task()) {
            (Targets::Classes { labels, .. }, Task::Classification { .. }) => {
                let labels: Vec<usize> = rows.iter().map(|row| labels[*row]).collect();
                ParticleLogProbs::from_f32(components, rows.len(), width, values)
                    .and_then(|log_probs| log_probs.predictions(&labels)?.with_clusters(clusters))
                    .map(Labelled::Classes)
            }
            (Targets::Real { values: targets }, Task::Regression) => {
                let targets = rows.iter().map(|row| targets[*row]).collect();
                RegressionPredictions::from_outputs(components, &values, self.scale, targets)
                    .and_then(|predictions| predictions.with_clusters(clusters))
                    .map(Labelled::Real)
            }
            _ => return Err(no_rows()),
        };
        labelled.map(Some).map_err(RunError::Predictions)
    }
}

/// The numbers of this name in a request, at most so many.
pub(super) fn numbers(request: &Request, name: &str, most: usize) -> Result<Vec<f64>, RunError> {
    let values = &request.message.array(name)?.values;
    match values.len() > most || values.first_non_finite().is_some() {
        true => Err(invalid(&format!("\"{name}\" of the request must be at most {most} finite numbers"))),
        false => Ok(values.to_f64()),
    }
}

pub(super) fn vector(values: Vec<f64>) -> Array {
    Array { shape: vec![values.len()], values: Values::F64(values) }
}

pub(super) fn invalid(reason: &str) -> RunError {
    RunError::Config(reason.to_owned())
}
