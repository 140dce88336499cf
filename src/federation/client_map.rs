//! What a client answers where vector scaling or isotonic regression is fitted: counts and sums over its calibration rows.

use super::client_calibration::{invalid, numbers, vector};
use super::client_evaluator::ClientEvaluator;
use super::labelled::Labelled;
use crate::array::{Array, Values};
use crate::error::RunError;
use crate::metrics::{ClassPredictions, logits_of, nll};
use crate::protocol::calibrating::{CLASSES, GRID_COUNTS, NLLS, NUMBERS, SUMS};
use crate::protocol::{Message, Request, map_of};
use crate::report::maps::{GRID, MOST_CLASSES, MapKind, VectorMap, isotonic_counts, vector_sums};

impl ClientEvaluator {
    pub(super) fn rows_by_class(&self, request: &Request) -> Result<Message, RunError> {
        let counts = self.of_classes(request, |predictions| {
            let mut counts = vec![0.0; predictions.classes()];
            predictions.labels().iter().for_each(|label| counts[*label] += 1.0);
            Ok(vector(counts))
        })?;
        Ok(Message::default().with_array(CLASSES, counts))
    }

    pub(super) fn vector_sums(&self, request: &Request) -> Result<Message, RunError> {
        let asked = numbers(request, NUMBERS, 2 * MOST_CLASSES)?;
        let sums = self.of_classes(request, |predictions| {
            let sums = VectorMap::of(&asked, predictions.classes())
                .and_then(|map| vector_sums(&logits_of(predictions), predictions.labels(), &map));
            sums.map(vector).map_err(RunError::Predictions)
        })?;
        Ok(Message::default().with_array(SUMS, sums))
    }

    pub(super) fn on_grid(&self, request: &Request) -> Result<Message, RunError> {
        let counts = self.of_classes(request, |predictions| {
            if predictions.classes() > MOST_CLASSES {
                return Err(invalid(&format!("the grid is for at most {MOST_CLASSES} classes")));
            }
            let counts = isotonic_counts(predictions);
            let shape = vec![counts.len() / (2 * GRID), GRID, 2];
            Ok(Array { shape, values: Values::F64(counts.into_iter().map(|count| count as f64).collect()) })
        })?;
        Ok(Message::default().with_array(GRID_COUNTS, counts))
    }

    pub(super) fn mapped(&self, request: &Request, kind: MapKind) -> Result<Message, RunError> {
        let sums = self.of_classes(request, |predictions| {
            let map = map_of(&request.message, (None, Some(kind)), predictions.classes())?;
            let mapped = map.map(|map| map.apply(predictions)).transpose().map_err(RunError::Predictions)?;
            let sum = |of: &ClassPredictions<'_>| nll(of).value * of.len() as f64;
            Ok(vector(vec![sum(predictions), mapped.as_ref().map_or_else(|| sum(predictions), sum)]))
        })?;
        Ok(Message::default().with_array(NLLS, sums))
    }

    /// What is asked of the calibration rows of a classification.
    fn of_classes(
        &self,
        request: &Request,
        ask: impl Fn(&ClassPredictions<'static>) -> Result<Array, RunError>,
    ) -> Result<Array, RunError> {
        match self.of_calibration_rows(request)?.as_deref() {
            Some(Labelled::Classes(predictions)) => ask(predictions),
            Some(Labelled::Real(_)) => Err(invalid("a regression has no map of probabilities")),
            // Only clients with rows are asked.
            None => Err(invalid("there are no calibration rows")),
        }
    }
}
