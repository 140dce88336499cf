//! What a finished run learned from calibration rows, applied to predictions on new rows.

use super::finished::Finished;
use super::row_groups::RowGroups;
use super::run_dir;
use crate::datasets::{KeptSets, KeptVector, Recalibration};
use crate::error::RunError;
use crate::federation::labelled::{Labelled, NEW_STREAM, merged, test_stream};
use crate::metrics::{ClassPredictions, Evaluation, RegressionPredictions};
use crate::protocol::{ScoreForm, SetForm};
use crate::report::conformal::{Score, SetCounts, TargetInterval, class_set, draws_of, intervals};
use crate::report::maps::{IsotonicMap, ProbabilityMap, VectorMap};
use crate::report::{CalibrationResults, SetLine, SetResults};

/// The map of probabilities and the sets of a finished run.
#[derive(Clone, Debug, Default)]
pub struct Recalibrated {
    /// The number of calibration rows.
    rows: usize,
    map: Option<ProbabilityMap>,
    sets: Option<Sets>,
}

/// What the sets of new rows are made from.
#[derive(Clone, Debug)]
struct Sets {
    score: Score,
    seed: Option<u64>,
    /// The stream of the draws for test rows.
    test_stream: u64,
    level: f64,
    /// `None`: every set is everything.
    threshold: Option<f64>,
}

impl Finished {
    /// What the run learned from calibration rows: nothing where it had none.
    ///
    /// # Arguments
    /// * `level`: that of the sets; `None` for the run's
    ///
    /// # Errors
    /// A level is asked for and no sets, or none of this level, are kept; or `model.json` names an unknown score, or one of
    /// the other task, or has a map of probabilities that does not fit the classes.
    pub fn recalibrated(&self, level: Option<f64>) -> Result<Recalibrated, RunError> {
        let kept = self.card.calibration.as_ref();
        let sets = match (kept.and_then(|kept| kept.conformal.as_ref()), level) {
            (Some(kept), level) => Some(self.sets(kept, level.unwrap_or(kept.level))?),
            (None, Some(level)) => {
                return Err(RunError::Config(format!(
                    "level {level}: the run {} has no prediction sets; train with rows held out for them, \
                     `partition.calibration = 0.2`, or in a federation `data.calibration_fraction = 0.2` of its sites",
                    self.path.display()
                )));
            }
            (None, None) => None,
        };
        let Some(kept) = kept else { return Ok(Recalibrated::default()) };
        Ok(Recalibrated { rows: kept.rows, map: self.map(kept)?, sets })
    }

    fn map(&self, kept: &Recalibration) -> Result<Option<ProbabilityMap>, RunError> {
        let classes = self.card.classes.as_ref().map_or(0, Vec::len);
        let (field, map) = match kept {
            Recalibration { temperature: Some(temperature), .. } => {
                return Ok(Some(ProbabilityMap::Temperature(*temperature)));
            }
            Recalibration { vector: Some(KeptVector { scale, bias }), .. } => {
                // Parts of unlike lengths may have the right sum.
                let map = match scale.len() == bias.len() {
                    true => VectorMap::of(&[&scale[..], bias].concat(), classes),
                    false => VectorMap::of(bias, classes),
                };
                ("vector", map.map(ProbabilityMap::Vector))
            }
            Recalibration { isotonic: Some(corners), .. } => {
                ("isotonic", IsotonicMap::of(corners.clone(), classes).map(ProbabilityMap::Isotonic))
            }
            _ => return Ok(None),
        };
        let place = self.path.join(run_dir::MODEL);
        map.map(Some).map_err(|error| {
            RunError::Config(format!("{}: `calibration.{field}` cannot be used: {error}", place.display()))
        })
    }

    fn sets(&self, kept: &KeptSets, level: f64) -> Result<Sets, RunError> {
        let in_card =
            |problem: String| RunError::Config(format!("{}: {problem}", self.path.join(run_dir::MODEL).display()));
        let score = match kept.score.as_str() {
            "lac" => Score::Lac,
            "aps" => Score::Aps,
            "raps" => {
                let parameters = kept.penalty.zip(kept.free);
                let missing =
                    || in_card("`calibration.conformal` needs `penalty` and `free` with the score `raps`".into());
                let (penalty, free) = parameters.ok_or_else(missing)?;
                Score::Raps { penalty, free }
            }
            "normalised" => Score::Normalised,
            "cqr" => Score::Cqr,
            other => {
                let other = crate::report::quoted(other);
                return Err(in_card(format!(
                    "`calibration.conformal.score` is \"{other}\"; this program knows lac, aps, raps, normalised and cqr"
                )));
            }
        };
        if score.is_of_classes() != self.card.classes.is_some() {
            let word = score.word();
            return Err(in_card(format!("`calibration.conformal.score` is \"{word}\", which is of the other task")));
        }
        let Some(threshold) = kept.threshold(level) else {
            let levels: Vec<String> = kept.thresholds.iter().map(|(level, _)| level.to_string()).collect();
            return Err(RunError::Config(format!(
                "level {level}: the run {} keeps thresholds of the levels {}; for another one, train with \
                 `calibration.level`",
                self.path.display(),
                levels.join(", ")
            )));
        };
        Ok(Sets { score, seed: kept.seed, test_stream: test_stream(kept.client), level, threshold })
    }
}

impl Recalibrated {
    /// The probabilities of rows after the run's temperature or other map; as they are where it has none.
    ///
    /// # Arguments
    /// * `probabilities`: `[n, classes]`, row-major
    ///
    /// # Errors
    /// The probabilities are none.
    pub fn probabilities(&self, probabilities: Vec<f64>, classes: usize) -> Result<Vec<f64>, RunError> {
        let Some(map) = self.map.as_ref().filter(|_| !probabilities.is_empty()) else {
            return Ok(probabilities);
        };
        // The labels are not used.
        let labels = vec![0; probabilities.len() / classes.max(1)];
        ClassPredictions::new(labels, classes, probabilities)
            .and_then(|predictions| map.apply(&predictions))
            .map(|scaled| scaled.probabilities().to_vec())
            .map_err(RunError::Predictions)
    }

    /// Which classes are in the set of each row, `[n][C]`; `None` where the run has no sets.
    ///
    /// # Arguments
    /// * `unmapped`: the probabilities as the model gives them
    /// * `mapped`: those of [`Self::probabilities`]
    pub fn sets(&self, unmapped: &[f64], mapped: &[f64], classes: usize) -> Option<Vec<Vec<bool>>> {
        self.sets_from(0, (unmapped, mapped), classes)
    }

    /// As [`Self::sets`], of rows before which there are others, for probabilities `unmapped` and `mapped`.
    pub fn sets_from(
        &self,
        first: usize,
        (unmapped, mapped): (&[f64], &[f64]),
        classes: usize,
    ) -> Option<Vec<Vec<bool>>> {
        let Sets { score, seed, threshold, .. } = self.sets.as_ref()?;
        let probabilities = if self.maps_without_sets() { unmapped } else { mapped };
        let rows = probabilities.chunks_exact(classes.max(1));
        let draws = seed.map(|seed| draws_of(seed, NEW_STREAM, first..first + rows.len()));
        let draw = |row: usize| draws.as_ref().map(|draws| draws[row]);
        Some(rows.enumerate().map(|(row, of)| class_set(*score, of, *threshold, draw(row))).collect())
    }

    /// Whether the map has more numbers than a temperature: sets do without it, whose coverage it would take.
    fn maps_without_sets(&self) -> bool {
        self.map.as_ref().is_some_and(|map| map.kind().is_some())
    }

    /// The temperature of the probabilities that sets are made from: 1 with another map, which sets do without.
    fn temperature(&self) -> f64 {
        match self.map {
            Some(ProbabilityMap::Temperature(temperature)) => temperature,
            _ => 1.0,
        }
    }

    /// The interval of each row, `[n]`; `None` where the run has no sets. An interval may be empty.
    ///
    /// # Errors
    /// The predictions have no quantiles.
    pub fn intervals(
        &self,
        predictions: &RegressionPredictions<'_>,
    ) -> Result<Option<Vec<Option<TargetInterval>>>, RunError> {
        let Some(Sets { score, level, threshold, .. }) = &self.sets else { return Ok(None) };
        intervals(*score, predictions, *level, *threshold).map(Some).map_err(RunError::Predictions)
    }

    /// What the map and the sets do on labelled rows: the results of the run with these rows in the place of its test rows.
    ///
    /// # Arguments
    /// * `of_run`: the results of the run
    /// * `labelled`: the predictions without the map
    /// * `bins`: the number of bins of confidence
    /// * `classes`: their names; none of a regression
    /// * `groups`: the names of groups, and the group of each row, `[n]`
    ///
    /// # Errors
    /// The predictions cannot be scored.
    pub(super) fn on_rows(
        &self,
        of_run: &CalibrationResults,
        (labelled, bins): (&Labelled, usize),
        classes: &[String],
        groups: Option<&RowGroups>,
    ) -> Result<CalibrationResults, RunError> {
        let mut results = of_run.clone();
        if let Some(map) = &self.map {
            let sums = [labelled.sums(bins)?, labelled.mapped(map)?.sums(bins)?];
            let both = sums.map(|sums| Evaluation::of_sums_of_means(&sums));
            let test = Some(<(Evaluation, Evaluation)>::from(both));
            if let Some(of) = &mut results.temperature {
                of.test = test;
            } else if let Some(of) = &mut results.map {
                of.test = test;
            }
        }
        results.sets = match &self.sets {
            Some(sets) => Some(sets.on_rows(self.temperature(), labelled, classes, groups)?),
            None => None,
        };
        Ok(results)
    }

    /// What is done to predictions, one sentence each; none where nothing is.
    ///
    /// # Arguments
    /// * `raw`: whether the probabilities stay as they are
    pub fn notes(&self, raw: bool) -> Vec<String> {
        let Self { rows, map, sets } = self;
        let without = if self.maps_without_sets() { " from the probabilities without the map" } else { "" };
        let map = map.as_ref().filter(|_| !raw).map(|map| {
            let what = match map {
                ProbabilityMap::Temperature(t) => format!("at the temperature T = {t:.4}"),
                ProbabilityMap::Vector(_) => "after vector scaling".to_owned(),
                ProbabilityMap::Isotonic(_) => "after isotonic regression".to_owned(),
            };
            format!("the probabilities are {what}, fitted on {rows} calibration rows; --raw gives them without")
        });
        let sets = sets.as_ref().filter(|sets| sets.threshold.is_some()).map(|Sets { score, level, .. }| {
            let (what, share) = (called(*score), 100.0 * level);
            format!("{what} ({}) are made{without} to hold the truth for {share:.1} % of rows", score.word())
        });
        map.into_iter().chain(sets).chain(self.note_on_few()).collect()
    }

    /// That there were too few calibration rows for sets of this level, where it is so.
    pub fn note_on_few(&self) -> Option<String> {
        let Sets { score, level, .. } = self.sets.as_ref().filter(|sets| sets.threshold.is_none())?;
        let (rows, what) = (self.rows, called(*score));
        Some(format!(
            "{rows} calibration rows are too few for {what} at the level {level}: every one of them holds everything"
        ))
    }
}

/// What the sets of a score are called.
fn called(score: Score) -> &'static str {
    if score.is_of_classes() { "sets" } else { "intervals" }
}

impl Sets {
    fn on_rows(
        &self,
        temperature: f64,
        labelled: &Labelled,
        classes: &[String],
        groups: Option<&RowGroups>,
    ) -> Result<SetResults, RunError> {
        let Self { score, seed, test_stream, level, threshold } = *self;
        let form = ScoreForm { score, temperature, seed };
        // The stream of test rows: on its own test rows a run has the sets of its own report.
        let rows = labelled.set_of_each(&SetForm { form, level, threshold }, test_stream)?;
        let clusters = labelled.clusters();
        let lines = |names: &[String], of: &[usize]| -> Vec<SetLine> {
            let counts = merged(&rows, of, names.len(), clusters);
            names.iter().zip(counts).map(|(name, counts)| SetLine::new(name, counts)).collect()
        };
        Ok(SetResults {
            score: score.word().to_owned(),
            random: seed.is_some(),
            level,
            threshold,
            all: Some(SetLine::new("all", SetCounts::of_rows(rows.iter().enumerate(), clusters))),
            classes: match labelled {
                Labelled::Classes(predictions) => lines(classes, predictions.labels()),
                Labelled::Real(_) => Vec::new(),
            },
            clients: Vec::new(),
            groups: groups.map_or_else(Vec::new, |groups| lines(&groups.names, &groups.of)),
        })
    }
}
