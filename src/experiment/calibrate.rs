//! After the last round: the map of probabilities and the thresholds of prediction sets, from the calibration rows of all
//! clients.
//!
//! The clients answer with counts and sums, in one process as at their sites, so that both have the same thresholds: the
//! exact order statistics of all scores together. A client without a usable answer is left out, and the questions begin anew
//! without it.

mod fit;
mod inquiry;
mod plan;
mod tested;

use std::collections::BTreeSet;

use crate::array::{Array, Values};
use crate::datasets::{KeptSets, Partition, Recalibration};
use crate::error::RunError;
use crate::federation::client_evaluator::{no_rows, no_scores};
use crate::federation::labelled::SetResults as Counted;
use crate::particles::Particles;
use crate::protocol::calibrating::{AFTER, BEFORE, COUNTS, LEVELS, SETS, THRESHOLDS};
use crate::protocol::{Calibrating, ClientId, Message, ROWS, ScoreForm, SetForm, TestForm, message_of};
use crate::report::conformal::{QuantileSearch, Score, SetCounts, levels_with, rank};
use crate::report::maps::ProbabilityMap;
use crate::report::{CalibrationResults, SetLine, SetResults};
use crate::site::MOST_ROWS;

use super::config::Config;
use super::evaluate::Predicted;
use fit::Fitted;
pub(super) use inquiry::Asked;
use inquiry::{Inquiry, Stop, values, vector};
pub(super) use plan::Plan;
use tested::Tested;

/// What was learned from the calibration rows.
#[derive(Debug, Clone)]
pub struct Calibrated {
    /// What predictions on new rows need.
    pub kept: Recalibration,
    /// What it does on the test rows.
    pub results: CalibrationResults,
}

impl Plan {
    /// Asks the clients and evaluates what was learned; `None` where no client has an answer. Notes for the user are added to
    /// `notes`.
    ///
    /// # Arguments
    /// * `asked`: the clients
    /// * `round`: the last round
    /// * `particles`: the particles that are published, `[N, d]`: those after the last round, or after the best one
    /// * `predicted`: their predictions of the test rows, of which none are changed
    ///
    /// # Errors
    /// Anything fails but a client.
    pub fn run(
        &self,
        config: &Config,
        asked: &Asked<'_>,
        (round, particles, predicted): (usize, &Particles, &Predicted),
        notes: &mut Vec<String>,
    ) -> Result<Option<Calibrated>, RunError> {
        let inquiry = Inquiry { plan: self, config, asked, round, predicted, published: message_of(particles)? };
        let mut clients: Vec<ClientId> = (0..asked.clients).collect();
        while !clients.is_empty() {
            match inquiry.run(&clients) {
                Ok((calibrated, note)) => {
                    notes.extend(note);
                    return Ok(calibrated);
                }
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Lost(lost)) => {
                    let note = |(client, reason): &(ClientId, String)| {
                        format!("{} was left out of the calibration: {reason}", asked.names.titled(*client))
                    };
                    notes.extend(lost.iter().map(note));
                    clients.retain(|client| lost.iter().all(|(absent, _)| absent != client));
                }
            }
        }
        notes.push(
            "no client answered questions about its calibration rows; the run has no temperature and no sets".into(),
        );
        Ok(None)
    }
}

/// The calibration rows of each client of a run in one process; of rows that several clients hold, the first one has them.
pub(super) fn rows_of_clients(partition: &Partition, pooled: bool) -> Vec<Vec<usize>> {
    if pooled {
        return vec![partition.calibrating()];
    }
    let mut seen = BTreeSet::new();
    let mut new = |row: &usize| seen.insert(*row);
    let of_client = |client| partition.calibration(client).iter().copied().filter(&mut new).collect();
    (0..partition.clients().len()).map(of_client).collect()
}

impl Inquiry<'_> {
    /// What the clients' answers give, and a note where the map is another one than the keys ask for.
    fn run(&self, clients: &[ClientId]) -> Result<(Option<Calibrated>, Option<String>), Stop> {
        let rows = self.rows(clients)?;
        let holders: Vec<ClientId> =
            clients.iter().zip(&rows).filter(|(_, rows)| **rows > 0).map(|(client, _)| *client).collect();
        let of_holder: Vec<usize> = rows.iter().copied().filter(|rows| *rows > 0).collect();
        let total: usize = of_holder.iter().sum();
        if total == 0 {
            return Ok((None, None));
        }
        let keys = &self.config.calibration;
        let (fitted, note) = self.fitted(&holders, &of_holder)?;
        let map = fitted.as_ref().map(|fitted| &fitted.map);
        let (temperature, kind) = fitted.as_ref().map_or((None, None), Fitted::form);
        // Scores of a map with more numbers than a temperature, which has seen the same rows, would take coverage.
        let form = keys.score(self.plan.task).map(|score| ScoreForm {
            score,
            temperature: temperature.unwrap_or(1.0),
            seed: (keys.randomised && score.can_be_random()).then_some(self.config.seed),
        });
        let kept = match form {
            Some(form) => Some(self.thresholds(&holders, &of_holder, form)?),
            None => None,
        };
        let sets = form.zip(kept.as_ref()).map(|(form, kept)| SetForm {
            form,
            level: kept.level,
            threshold: kept.threshold(kept.level).flatten(),
        });
        let tested = self.with_map(map).tested(clients, TestForm { sets, temperature, map: kind }, map)?;
        let results = CalibrationResults {
            rows: total,
            clients: holders.len(),
            temperature: fitted.as_ref().and_then(|fitted| fitted.of_temperature(&tested)),
            map: fitted.as_ref().and_then(|fitted| fitted.of_map(&tested)),
            sets: sets.map(|sets| self.set_results(&sets, &tested)),
        };
        let mut kept = Recalibration { rows: total, temperature: None, vector: None, isotonic: None, conformal: kept };
        if let Some(fitted) = fitted {
            fit::keep(fitted.map, &mut kept);
        }
        Ok((Some(Calibrated { kept, results }), note))
    }

    /// The number of calibration rows of each client.
    fn rows(&self, clients: &[ClientId]) -> Result<Vec<usize>, Stop> {
        self.ask(clients, Calibrating::Rows, &[], |message| {
            let rows = message.scalars.get(ROWS).copied().unwrap_or(f64::NAN);
            match rows.fract() == 0.0 && (0.0..=MOST_ROWS as f64).contains(&rows) {
                true => Ok(rows as usize),
                false => Err(format!("the reply claims {rows} calibration rows")),
            }
        })
    }

    /// The thresholds of all levels that are kept.
    fn thresholds(&self, holders: &[ClientId], rows: &[usize], form: ScoreForm) -> Result<KeptSets, Stop> {
        let keys = &self.config.calibration;
        let total = rows.iter().sum();
        let levels = levels_with(keys.level);
        let ranked: Vec<(f64, usize)> =
            levels.iter().filter_map(|level| Some((*level, rank(total, *level)?))).collect();
        let (searched, ranks): (Vec<f64>, Vec<usize>) = ranked.into_iter().unzip();
        let mut search = QuantileSearch::new(ranks);
        while let Some(thresholds) = search.question() {
            let shape = vec![searched.len(), thresholds.len() / searched.len().max(1)];
            let asked =
                [(LEVELS, vector(&searched)), (THRESHOLDS, Array { shape, values: Values::F64(thresholds.clone()) })];
            let read = |message: &Message| values(message, COUNTS, thresholds.len());
            let replies = self.ask(holders, Calibrating::Counts(form), &asked, read)?;
            let counts = counted(holders, rows, &replies).map_err(Stop::Lost)?;
            search.answer(&counts);
        }
        let found = search.found();
        let threshold = |level: &f64| searched.iter().position(|of| of == level).map(|at| found[at]);
        let (penalty, free) = match form.score {
            Score::Raps { penalty, free } => (Some(penalty), Some(free)),
            _ => (None, None),
        };
        Ok(KeptSets {
            score: form.score.word().to_owned(),
            penalty,
            free,
            seed: form.seed,
            client: None,
            level: keys.level,
            thresholds: levels.iter().map(|level| (*level, threshold(level))).collect(),
        })
    }

    /// What the test rows gave: all of them first, where they are known, and those of each client that has some.
    fn tested(&self, clients: &[ClientId], form: TestForm, map: Option<&ProbabilityMap>) -> Result<Vec<Tested>, Stop> {
        let mut tested = Vec::new();
        let here = self.predicted.labelled()?;
        if let Some(labelled) = &here {
            tested.push(Tested::of(labelled, (&form, map), self.config.evaluation.bins)?);
        }
        if self.plan.own_tests || here.is_none() {
            let read = |message: &Message| self.read_tested(message, &form);
            let replies = self.ask(clients, Calibrating::Test(form), &[], read)?;
            let of_client =
                |(client, reply): (&ClientId, Option<Tested>)| Some(Tested { client: Some(*client), ..reply? });
            let of_clients: Vec<Tested> = clients.iter().zip(replies).filter_map(of_client).collect();
            if here.is_none() {
                tested.extend(Tested::pooled(&of_clients));
            }
            tested.extend(of_clients);
        }
        Ok(tested)
    }

    /// A client's answer about its test rows; `None` where it has none.
    fn read_tested(&self, message: &Message, form: &TestForm) -> Result<Option<Tested>, String> {
        if message.arrays.is_empty() {
            return Ok(None);
        }
        let none = no_scores(self.plan.task, self.config.evaluation.bins).ok_or_else(|| no_rows().to_string())?;
        let sums = |name: &str| {
            let values = message.array(name).map_err(|error| error.to_string())?.values.to_f64();
            none.read(&values).map_err(|error| format!("the reply's \"{name}\" cannot be used: {error}"))
        };
        let before = sums(BEFORE)?;
        let after = (form.temperature.is_some() || form.map.is_some()).then(|| sums(AFTER)).transpose()?;
        let sets = match form.sets {
            None => None,
            Some(_) => {
                let parts = 1 + self.plan.classes.len();
                let given = message.array(SETS).map_or(0, |sets| sets.values.len());
                let [independent, with_clusters] = SetCounts::LENGTHS;
                let length = if given == parts * with_clusters { with_clusters } else { independent };
                let values = values(message, SETS, parts * length)?;
                let read = |of: &[f64]| SetCounts::from_values(of).ok_or("the reply's \"sets\" are impossible counts");
                let counts = values.chunks_exact(length).map(read).collect::<Result<Vec<_>, _>>()?;
                let (all, classes) = counts.split_first().ok_or("the reply has no sets")?;
                Some(Counted { all: all.clone(), classes: classes.to_vec() })
            }
        };
        Ok(Some(Tested { client: None, before, after, sets }))
    }

    fn set_results(&self, sets: &SetForm, tested: &[Tested]) -> SetResults {
        let of = |tested: &Tested| Some((tested.client, tested.sets.as_ref()?.clone()));
        let counted: Vec<(Option<ClientId>, Counted)> = tested.iter().filter_map(of).collect();
        let all = counted.iter().find(|(client, _)| client.is_none()).map(|(_, counted)| counted);
        let classes = all.map_or(&[][..], |counted| &counted.classes);
        let of_client = |(client, counted): &(Option<ClientId>, Counted)| {
            Some(SetLine::new(self.asked.names.titled((*client)?), counted.all.clone()))
        };
        SetResults {
            score: sets.form.score.word().to_owned(),
            random: sets.form.seed.is_some(),
            level: sets.level,
            threshold: sets.threshold,
            all: all.map(|counted| SetLine::new("all", counted.all.clone())),
            classes: self
                .plan
                .classes
                .iter()
                .zip(classes)
                .map(|(name, counts)| SetLine::new(name, counts.clone()))
                .collect(),
            clients: counted.iter().filter_map(of_client).collect(),
            groups: Vec::new(),
        }
    }
}

/// The counts of all clients together, or the clients whose counts cannot be.
fn counted(clients: &[ClientId], rows: &[usize], replies: &[Vec<f64>]) -> Result<Vec<u64>, Vec<(ClientId, String)>> {
    let mut all = vec![0; replies.first().map_or(0, Vec::len)];
    let mut lost = Vec::new();
    for ((client, rows), counts) in clients.iter().zip(rows).zip(replies) {
        match counts.iter().find(|count| count.fract() != 0.0 || !(0.0..=*rows as f64).contains(*count)) {
            Some(count) => lost.push((*client, format!("the reply counts {count} of {rows} scores"))),
            None => all.iter_mut().zip(counts).for_each(|(all, count)| *all += *count as u64),
        }
    }
    if lost.is_empty() { Ok(all) } else { Err(lost) }
}
