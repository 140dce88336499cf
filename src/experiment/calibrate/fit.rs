//! The map of probabilities: a temperature, vector scaling or isotonic regression, from sums and counts over all clients.

use super::inquiry::{Inquiry, Stop, values, vector};
use super::tested::Tested;
use crate::array::{Array, Values};
use crate::datasets::{ExactSum, KeptVector, Recalibration};
use crate::metrics::TemperatureSearch;
use crate::protocol::calibrating::{CLASSES, GRID_COUNTS, MAP, NLLS, NUMBERS, SLOPES, SUMS, TEMPERATURES};
use crate::protocol::{Calibrating, ClientId, Message, map_array};
use crate::report::maps::{
    GRID, IsotonicMap, MapKind, ProbabilityMap, VectorMap, VectorSearch, isotonic_functions, vector_sums_len,
};
use crate::report::{MapResults, TemperatureResults};

/// The largest amount of a logarithm of a probability, ln 1e12, with a margin.
const LARGEST_LOG: f64 = 28.0;

/// The smallest number of calibration rows with which a temperature is fitted: ten for a number, as in vector scaling.
const TEMPERATURE_ROWS: usize = 10;

/// A fitted map.
pub(super) struct Fitted {
    pub map: ProbabilityMap,
    /// Whether the search of a temperature ended at its limit.
    at_limit: bool,
    /// Mean NLL of the calibration rows before and after.
    nll: [f64; 2],
}

/// Writes a map into what `model.json` keeps.
pub(super) fn keep(map: ProbabilityMap, kept: &mut Recalibration) {
    match map {
        ProbabilityMap::Temperature(temperature) => kept.temperature = Some(temperature),
        ProbabilityMap::Vector(VectorMap { scale, bias }) => kept.vector = Some(KeptVector { scale, bias }),
        ProbabilityMap::Isotonic(map) => kept.isotonic = Some(map.corners().to_vec()),
    }
}

impl Fitted {
    /// The temperature, or the kind of another map, as a question has it.
    pub fn form(&self) -> (Option<f64>, Option<MapKind>) {
        match &self.map {
            ProbabilityMap::Temperature(temperature) => (Some(*temperature), None),
            map => (None, map.kind()),
        }
    }

    pub fn of_temperature(&self, tested: &[Tested]) -> Option<TemperatureResults> {
        let ProbabilityMap::Temperature(temperature) = self.map else { return None };
        let [nll_before, nll_after] = self.nll;
        let (at_limit, test) = (self.at_limit, Tested::of_all(tested));
        Some(TemperatureResults { temperature, at_limit, nll_before, nll_after, test })
    }

    pub fn of_map(&self, tested: &[Tested]) -> Option<MapResults> {
        let kind = self.map.kind()?;
        let [nll_before, nll_after] = self.nll;
        Some(MapResults { kind, nll_before, nll_after, test: Tested::of_all(tested) })
    }
}

impl Inquiry<'_> {
    /// The same questions with a map that was found.
    pub(super) fn with_map(&self, map: Option<&ProbabilityMap>) -> Self {
        let published = match map.and_then(map_array) {
            Some(array) => self.published.clone().with_array(MAP, array),
            None => self.published.clone(),
        };
        Self { published, ..*self }
    }

    /// The map of the keys, or a temperature and a note where the rows do not allow it.
    ///
    /// # Arguments
    /// * `holders`: the clients with calibration rows
    /// * `rows`: how many each has
    pub(super) fn fitted(
        &self,
        holders: &[ClientId],
        rows: &[usize],
    ) -> Result<(Option<Fitted>, Option<String>), Stop> {
        let keys = &self.config.calibration;
        if !keys.fits_map(self.plan.task) {
            return Ok((None, None));
        }
        let total = rows.iter().sum();
        let reason = match keys.map.kind() {
            None => return self.temperature(holders, total),
            Some(kind) => match self.too_few(kind, holders, rows)? {
                Some(reason) => format!("calibration.map = \"{}\": {reason}", kind.word()),
                None => match self.of_kind(kind, holders, rows)? {
                    Some(fitted) => return Ok((Some(fitted), None)),
                    None => format!(
                        "calibration.map = \"{}\": the map does not lower the NLL of the calibration rows",
                        kind.word()
                    ),
                },
            },
        };
        let (fitted, limit) = self.temperature(holders, total)?;
        let instead = format!("{reason}; a temperature was fitted instead");
        Ok((fitted, Some([Some(instead), limit].into_iter().flatten().collect::<Vec<_>>().join(". "))))
    }

    /// Why the rows do not allow a map of this kind; `None` where they do.
    fn too_few(&self, kind: MapKind, holders: &[ClientId], rows: &[usize]) -> Result<Option<String>, Stop> {
        let classes = self.plan.classes.len();
        let (total, fewest) = (rows.iter().sum::<usize>(), kind.fewest_rows_a_class());
        // Then there is no need to ask for the rows of each class.
        if total < fewest * classes {
            return Ok(Some(format!(
                "{total} calibration rows are fewer than the {} that {classes} classes need",
                fewest * classes
            )));
        }
        let replies = self.ask(holders, Calibrating::Classes, &[], |message| values(message, CLASSES, classes))?;
        let counts = summed(holders, &replies, |client, counts| {
            let is_count = |count: &f64| count.fract() == 0.0 && *count >= 0.0;
            counts.iter().all(is_count) && counts.iter().sum::<f64>() == rows[client] as f64
        })?;
        let rarest = counts.iter().zip(&self.plan.classes).min_by_key(|(count, _)| **count);
        let rarest = rarest.filter(|(count, _)| **count < fewest as u64);
        Ok(rarest.map(|(count, name)| match (count, crate::report::quoted(name)) {
            (0, name) => format!("no calibration row is of the class {name}"),
            (1, name) => format!("1 calibration row is of the class {name}, and each class needs {fewest}"),
            (count, name) => format!("{count} calibration rows are of the class {name}, and each class needs {fewest}"),
        }))
    }

    /// The map of this kind; `None` where it does not lower the NLL of the calibration rows.
    fn of_kind(&self, kind: MapKind, holders: &[ClientId], rows: &[usize]) -> Result<Option<Fitted>, Stop> {
        let map = match kind {
            MapKind::Vector => ProbabilityMap::Vector(self.vector(holders, rows)?),
            MapKind::Isotonic => ProbabilityMap::Isotonic(self.isotonic(holders, rows)?),
        };
        let read = |message: &Message| values(message, NLLS, 2);
        let replies = self.with_map(Some(&map)).ask(holders, Calibrating::Mapped(kind), &[], read)?;
        let total = rows.iter().sum::<usize>() as f64;
        let [before, after] = [0, 1].map(|at| sum_at(&replies, at) / total);
        Ok((after < before).then_some(Fitted { map, at_limit: false, nll: [before, after] }))
    }

    fn vector(&self, holders: &[ClientId], rows: &[usize]) -> Result<VectorMap, Stop> {
        let classes = self.plan.classes.len();
        let mut search = VectorSearch::new(rows.iter().sum(), classes);
        while let Some(numbers) = search.question() {
            let asked = [(NUMBERS, Array { shape: vec![2, classes], values: Values::F64(numbers.to_vec()) })];
            let read = |message: &Message| values(message, SUMS, vector_sums_len(classes));
            let replies = self.ask(holders, Calibrating::Vector, &asked, read)?;
            let impossible = |(at, sums): (usize, &Vec<f64>)| {
                // A second derivative of a row is at most the square of a logarithm.
                let most = rows[at] as f64 * LARGEST_LOG * LARGEST_LOG;
                let is_off = sums[0] < 0.0 || sums[1..].iter().any(|sum| sum.abs() > most);
                is_off.then(|| (holders[at], format!("the reply's sums are beyond those of {} rows", rows[at])))
            };
            let lost: Vec<(ClientId, String)> = replies.iter().enumerate().filter_map(impossible).collect();
            if !lost.is_empty() {
                return Err(Stop::Lost(lost));
            }
            let sums: Vec<f64> = (0..vector_sums_len(classes)).map(|at| sum_at(&replies, at)).collect();
            search.answer(&sums);
        }
        Ok(search.map())
    }

    fn isotonic(&self, holders: &[ClientId], rows: &[usize]) -> Result<IsotonicMap, Stop> {
        let classes = self.plan.classes.len();
        let read = |message: &Message| values(message, GRID_COUNTS, isotonic_functions(classes) * GRID * 2);
        let replies = self.ask(holders, Calibrating::Grid, &[], read)?;
        let counts = summed(holders, &replies, |client, counts| {
            let is_pair =
                |pair: &[f64]| pair[0].fract() == 0.0 && pair[1].fract() == 0.0 && (0.0..=pair[0]).contains(&pair[1]);
            let of_function = |counts: &[f64]| counts.chunks_exact(2).map(|pair| pair[0]).sum::<f64>();
            counts.chunks_exact(2).all(is_pair)
                && counts.chunks_exact(2 * GRID).all(|counts| of_function(counts) == rows[client] as f64)
        })?;
        IsotonicMap::fit(&counts, classes).map_err(|error| Stop::Failed(crate::error::RunError::Predictions(error)))
    }

    /// The temperature, and a note where the rows do not determine one.
    fn temperature(&self, holders: &[ClientId], rows: usize) -> Result<(Option<Fitted>, Option<String>), Stop> {
        if rows < TEMPERATURE_ROWS {
            let nll = self.sums(holders, &[1.0], NLLS)?[0] / rows as f64;
            let are = if rows == 1 { "is 1".to_owned() } else { format!("are {rows}") };
            let note = format!(
                "calibration: a temperature needs {TEMPERATURE_ROWS} calibration rows, and there {are}; probabilities stay as they are"
            );
            let map = ProbabilityMap::Temperature(1.0);
            return Ok((Some(Fitted { map, at_limit: false, nll: [nll, nll] }), Some(note)));
        }
        let mut search = TemperatureSearch::default();
        while let Some(temperatures) = search.question() {
            let slopes = self.sums(holders, &temperatures, SLOPES)?;
            search.answer(&slopes);
        }
        let temperature = search.temperature();
        let nll = self.sums(holders, &[1.0, temperature], NLLS)?;
        let [before, after] = [nll[0], nll[1]].map(|sum| sum / rows as f64);
        let at_limit = after < before && search.at_limit();
        let is_sharp = temperature < 1.0;
        let note = at_limit.then(|| match is_sharp {
            true => format!(
                "calibration: the search of a temperature ended at its lower limit, {temperature:.2}, as where all of the {rows} \
                 calibration rows are right; they do not determine one, and probabilities stay as they are"
            ),
            false => format!(
                "calibration: the search of a temperature ended at its upper limit, {temperature:.1}: on the {rows} calibration rows \
                 the model is confident and wrong, and almost equal probabilities of all classes are better"
            ),
        });
        // At its lower limit the temperature would make all probabilities 0 and 1.
        let is_used = after < before && !(at_limit && is_sharp);
        let (temperature, after) = if is_used { (temperature, after) } else { (1.0, before) };
        let map = ProbabilityMap::Temperature(temperature);
        Ok((Some(Fitted { map, at_limit, nll: [before, after] }), note))
    }

    /// The sums over all clients at each temperature.
    fn sums(&self, holders: &[ClientId], temperatures: &[f64], name: &str) -> Result<Vec<f64>, Stop> {
        let asked = [(TEMPERATURES, vector(temperatures))];
        let read = |message: &Message| values(message, name, temperatures.len());
        let replies = self.ask(holders, Calibrating::Temperatures, &asked, read)?;
        Ok((0..temperatures.len()).map(|at| sum_at(&replies, at)).collect())
    }
}

/// The sum of one number of all replies, the same in any order of the clients.
fn sum_at(replies: &[Vec<f64>], at: usize) -> f64 {
    replies.iter().map(|values| values[at]).collect::<ExactSum>().value()
}

/// The counts of all clients together, or the clients whose counts cannot be.
fn summed(
    holders: &[ClientId],
    replies: &[Vec<f64>],
    is_possible: impl Fn(usize, &[f64]) -> bool,
) -> Result<Vec<u64>, Stop> {
    let mut all = vec![0; replies.first().map_or(0, Vec::len)];
    let mut lost = Vec::new();
    for (at, counts) in replies.iter().enumerate() {
        match is_possible(at, counts) {
            true => all.iter_mut().zip(counts).for_each(|(all, count)| *all += *count as u64),
            false => lost.push((holders[at], "the reply counts other rows than the client has".to_owned())),
        }
    }
    if lost.is_empty() { Ok(all) } else { Err(Stop::Lost(lost)) }
}
