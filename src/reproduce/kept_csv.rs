//! Reads a figure's CSV file, so that the figure is judged and drawn without its runs. [`super::numbers`] describes the
//! format.
//!
//! Files of earlier versions have only the numbers of the pictures. What follows from these is recovered: all values of
//! a curve over rounds, the last values of a sweep, and, where two panels show the same runs over rounds and over
//! bytes, the bytes of each round. Everything else is not [held](Held).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::curve::{Curve, Results, Sample};
use super::figure::{Along, DENSITY, Figure, Scale};
use super::grid::{Cell, Grid};
use super::held::{Held, is_shown};
use super::kept::Kept;
use super::numbers::{FAILED, HEADER, NOTE, RUN, SECONDS, TRAFFIC};
use crate::error::RunError;
use crate::experiment::RoundRecord;
use crate::report::files::{quoted, read_whole};

/// The largest size to which a compressed file is unpacked.
const MOST_BYTES: u64 = 1 << 30;

/// An error in a file, with its row.
#[derive(Debug, thiserror::Error)]
pub enum KeptCsvError {
    /// The file cannot be read, or has another format.
    #[error("{0}")]
    File(String),
    /// A row does not fit the figure.
    #[error("line {line}: {problem}")]
    Row {
        /// The number of the line; the header is line 1.
        line: u64,
        /// The problem, and a valid alternative.
        problem: String,
    },
    /// The figure's own configs are inconsistent.
    #[error("{0}")]
    Figure(#[from] RunError),
}

/// The rows of a file.
#[derive(Debug)]
pub struct KeptCsv {
    rows: Vec<Line>,
    /// The scale of the file's runs.
    pub scale: Scale,
    /// The largest seed in the file.
    pub seeds: u64,
}

#[derive(Debug)]
struct Line {
    at: u64,
    panel: String,
    series: String,
    case: String,
    seed: u64,
    x: f64,
    metric: String,
    /// The value; `None` where the metric has none.
    value: Option<f64>,
}

impl Line {
    fn wrong(&self, problem: impl fmt::Display) -> KeptCsvError {
        KeptCsvError::Row { line: self.at, problem: problem.to_string() }
    }

    /// The horizontal coordinate as a round.
    fn round(&self) -> Result<usize, KeptCsvError> {
        let whole = self.x >= 1.0 && self.x.fract() == 0.0 && self.x < 1e9;
        let wrong = || self.wrong(format!("x is a round, 1 or more, not {}", self.x));
        if whole { Ok(self.x as usize) } else { Err(wrong()) }
    }

    fn number(&self) -> Result<f64, KeptCsvError> {
        self.value.ok_or_else(|| self.wrong("the value is missing"))
    }
}

impl KeptCsv {
    /// Reads a plain or compressed file.
    ///
    /// # Errors
    /// The file cannot be read, has another header, or has text where a number is required.
    pub fn open(path: &Path) -> Result<Self, KeptCsvError> {
        let file = |problem: &dyn fmt::Display| KeptCsvError::File(problem.to_string());
        let mut bytes = read_whole(path).map_err(|error| file(&error))?;
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut unpacked = Vec::new();
            let mut packed = MultiGzDecoder::new(bytes.as_slice()).take(MOST_BYTES + 1);
            packed.read_to_end(&mut unpacked).map_err(|error| file(&error))?;
            if unpacked.len() as u64 > MOST_BYTES {
                return Err(file(&format!("it unpacks to more than {MOST_BYTES} bytes")));
            }
            bytes = unpacked;
        }
        let mut reader = csv::ReaderBuilder::new().from_reader(bytes.as_slice());
        let header = reader.headers().map_err(|error| file(&error))?;
        if header.iter().ne(HEADER) {
            return Err(KeptCsvError::Row { line: 1, problem: format!("the header is {}", HEADER.join(",")) });
        }
        let (mut rows, mut scale) = (Vec::new(), None);
        for record in reader.records() {
            let record = record.map_err(|error| file(&error))?;
            let at = record.position().map_or(0, csv::Position::line);
            let (row, own) = line(at, &record)?;
            if *scale.get_or_insert(own) != own {
                return Err(row.wrong(format!("its scale is {}, that of the rows before another", own.word())));
            }
            rows.push(row);
        }
        let scale = scale.ok_or_else(|| file(&"it has no rows below the header"))?;
        Ok(Self { seeds: rows.iter().map(|row| row.seed).max().unwrap_or(0), rows, scale })
    }

    /// The results of a figure from the file's rows; seeds beyond the grid's are left out.
    ///
    /// # Errors
    /// A row does not belong to the figure.
    pub fn results<'a>(&self, figure: &'a Figure, grid: &'a Grid) -> Result<Results<'a>, KeptCsvError> {
        let mut reader = ResultsReader::new(figure, grid);
        for row in self.rows.iter().filter(|row| row.seed <= grid.seeds) {
            reader.take(row)?;
        }
        reader.finish()
    }
}

fn line(at: u64, record: &csv::StringRecord) -> Result<(Line, Scale), KeptCsvError> {
    let wrong = |problem: String| KeptCsvError::Row { line: at, problem };
    let cell =
        |name: &str| HEADER.iter().position(|own| *own == name).and_then(|at| record.get(at)).unwrap_or_default();
    let finite = |name: &str| {
        let number = cell(name).parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| wrong(format!("{name} is a finite number, not `{}`", quoted(cell(name)))))
    };
    let seed =
        cell("seed").parse().map_err(|_| wrong(format!("seed is a whole number, not `{}`", quoted(cell("seed")))))?;
    let scales = [Scale::Quick, Scale::Middle, Scale::Full];
    let scale = scales.into_iter().find(|scale| scale.word() == cell("scale"));
    let scale =
        scale.ok_or_else(|| wrong(format!("scale is quick, middle or full, not `{}`", quoted(cell("scale")))))?;
    let [panel, series, case, metric] = ["panel", "series", "case", "metric"].map(|name| cell(name).to_owned());
    let value = if cell("value").is_empty() && metric.starts_with(RUN) { None } else { Some(finite("value")?) };
    Ok((Line { at, panel, series, case, seed, x: finite("x")?, metric, value }, scale))
}

/// The data of a run read so far.
#[derive(Default)]
struct Run {
    curves: BTreeMap<String, BTreeMap<usize, f64>>,
    /// The value of a metric that a picture shows, with the round that the series selects, or 1 for the last.
    last: BTreeMap<String, (usize, f64)>,
    /// The values of each of [`TRAFFIC`], by the first round for which they hold.
    traffic: [BTreeMap<usize, u64>; TRAFFIC.len()],
    /// The number of points of a picture read so far.
    points: usize,
    /// The bytes at each of these points, where the picture is over uplink bytes.
    bytes: Vec<f64>,
}

/// The content of the rows read so far.
struct ResultsReader<'a> {
    figure: &'a Figure,
    grid: &'a Grid,
    runs: Vec<BTreeMap<u64, Run>>,
    held: Vec<Held>,
    samples: Vec<Vec<Sample>>,
    /// The number of points read of densities that belong to no series.
    drawn: BTreeMap<(usize, Curve), usize>,
    seconds: Vec<Option<f64>>,
    notes: BTreeMap<String, usize>,
    failures: Vec<String>,
    seen: BTreeSet<(String, String, String, u64, u64, String)>,
}

impl<'a> ResultsReader<'a> {
    fn new(figure: &'a Figure, grid: &'a Grid) -> Self {
        let cells = grid.cells.len();
        Self {
            figure,
            grid,
            runs: (0..cells).map(|_| BTreeMap::new()).collect(),
            held: vec![Held::default(); cells],
            samples: vec![Vec::new(); figure.panels.len()],
            drawn: BTreeMap::new(),
            seconds: vec![None; cells],
            notes: BTreeMap::new(),
            failures: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    fn take(&mut self, row: &Line) -> Result<(), KeptCsvError> {
        let key =
            (row.panel.clone(), row.series.clone(), row.case.clone(), row.seed, row.x.to_bits(), row.metric.clone());
        if !self.seen.insert(key) {
            return Err(row.wrong("this number stands there twice"));
        }
        let Some(metric) = row.metric.strip_prefix(RUN) else { return self.shown(row) };
        if let Some(note) = metric.strip_prefix(NOTE) {
            self.notes.insert(note.to_owned(), row.number()? as usize);
            return Ok(());
        }
        if let Some(failure) = metric.strip_prefix(FAILED) {
            self.failures.push(failure.to_owned());
            return Ok(());
        }
        let panel = self.panel(row)?;
        let series = self.series(row, panel)?;
        let cell = self.cell(row, panel, series, Some(&row.case))?;
        if metric == SECONDS {
            self.seconds[cell] = Some(row.number()?);
            return Ok(());
        }
        let run = self.runs[cell].entry(row.seed).or_default();
        if let Some(which) = TRAFFIC.iter().position(|(name, _)| *name == metric) {
            let value = row.number()?;
            if value < 0.0 || value.fract() != 0.0 {
                return Err(row.wrong(format!("{metric} is a whole number, not {value}")));
            }
            run.traffic[which].insert(row.round()?, value as u64);
            return Ok(());
        }
        let curve = run.curves.entry(metric.to_owned()).or_default();
        if let Some(value) = row.value {
            curve.insert(row.round()?, value);
        }
        self.held[cell].curves.insert(metric.to_owned());
        Ok(())
    }

    /// Takes in a number of a picture.
    fn shown(&mut self, row: &Line) -> Result<(), KeptCsvError> {
        let at = self.panel(row)?;
        let panel = &self.figure.panels[at];
        if row.metric != panel.y {
            return Err(row.wrong(format!("panel `{}` shows {}, not `{}`", panel.id, panel.y, quoted(&row.metric))));
        }
        let (value, densities) = (row.number()?, matches!(panel.x, Along::Theta | Along::Plane));
        let sample = |curve, slot| Sample { curve, slot, case: row.case.clone(), seed: row.seed, x: row.x, value };
        let local = || row.series.strip_prefix("local-")?.parse::<usize>().ok()?.checked_sub(1).map(Curve::Local);
        let known = if row.series == "exact" { Some(Curve::Exact) } else { local() };
        if let Some(curve) = known.filter(|_| densities) {
            let slot = self.drawn.entry((at, curve)).or_default();
            self.samples[at].push(sample(curve, *slot));
            *slot += 1;
            return Ok(());
        }
        let series = self.series(row, at)?;
        // For a bin and for a density, the column `case` is not the cell's case.
        let own_case = !densities && panel.x != Along::Confidence;
        let cell = self.cell(row, at, series, own_case.then_some(&row.case))?;
        let run = self.runs[cell].entry(row.seed).or_default();
        let place = run.points;
        run.points += 1;
        let own = &self.grid.cells[cell];
        let slot = match panel.x {
            Along::Round => row.round()?,
            Along::Sweep | Along::Series => own.slot,
            Along::Confidence => bin(row)?,
            Along::UplinkBytes | Along::DownlinkBytes | Along::Theta | Along::Plane => place,
        };
        match panel.x {
            // A level that is reached in the first round is the whole curve.
            Along::Round if is_shown(self.figure, own) || slot == 1 => {
                run.curves.entry(panel.y.clone()).or_default().insert(slot, value);
                self.held[cell].curves.insert(panel.y.clone());
            }
            Along::Round | Along::Sweep => self.last(cell, row.seed, value),
            Along::Series => {
                self.last(cell, row.seed, value);
                // The horizontal coordinate is the value of another cell.
                let axis =
                    |other: &Cell| other.panel == at && other.slot == own.slot && Some(other.series) == panel.against;
                if let Some(axis) = self.grid.cells.iter().position(axis) {
                    self.last(axis, row.seed, row.x);
                }
            }
            Along::UplinkBytes => run.bytes.push(row.x),
            Along::DownlinkBytes | Along::Confidence | Along::Theta | Along::Plane => {}
        }
        self.samples[at].push(sample(Curve::Series(series), slot));
        Ok(())
    }

    /// Stores the value of the last round, or of the round that the cell's series selects.
    fn last(&mut self, cell: usize, seed: u64, value: f64) {
        let of = &self.grid.cells[cell];
        let metric = &self.figure.panels[of.panel].y;
        self.held[cell].last.insert(metric.clone());
        let round = self.figure.series[of.series].round.unwrap_or(1);
        self.runs[cell].entry(seed).or_default().last.insert(metric.clone(), (round, value));
    }

    fn panel(&self, row: &Line) -> Result<usize, KeptCsvError> {
        let found = self.figure.panels.iter().position(|panel| panel.id == row.panel);
        found.ok_or_else(|| row.wrong(format!("`{}` has no panel `{}`", self.figure.id, quoted(&row.panel))))
    }

    fn series(&self, row: &Line, panel: usize) -> Result<usize, KeptCsvError> {
        let panel = &self.figure.panels[panel];
        let found = panel.series.iter().copied().find(|series| self.figure.series[*series].id == row.series);
        found.ok_or_else(|| row.wrong(format!("panel `{}` has no series `{}`", panel.id, quoted(&row.series))))
    }

    fn cell(&self, row: &Line, panel: usize, series: usize, case: Option<&String>) -> Result<usize, KeptCsvError> {
        let found = self.grid.cells.iter().position(|cell| {
            cell.panel == panel && cell.series == series && case.is_none_or(|case| cell.case == *case)
        });
        let panel = &self.figure.panels[panel].id;
        found.ok_or_else(|| row.wrong(format!("panel `{panel}` has no case `{}`", quoted(&row.case))))
    }

    fn finish(mut self) -> Result<Results<'a>, KeptCsvError> {
        self.bytes_of_panels_with_the_same_runs();
        for (held, runs) in self.held.iter_mut().zip(&self.runs) {
            let known = |which: usize| !runs.is_empty() && runs.values().all(|run| !run.traffic[which].is_empty());
            (held.uplink, held.traffic) = (known(0), (0..TRAFFIC.len()).all(known));
        }
        let mut kept = Vec::new();
        for (cell, runs) in self.grid.cells.iter().zip(self.runs) {
            let of = |(seed, mut run): (u64, Run)| {
                for (metric, (round, value)) in std::mem::take(&mut run.last) {
                    run.curves.entry(metric).or_insert_with(|| BTreeMap::from([(round, value)]));
                }
                let config = self.grid.config(self.figure, cell, seed);
                let (_, config) = config.map_err(|error| RunError::Config(error.to_string()))?;
                Ok((seed, Kept::of_curves(config, &run.curves, rounds(&run))))
            };
            kept.push(runs.into_iter().map(of).collect::<Result<Vec<_>, RunError>>()?);
        }
        Ok(Results {
            figure: self.figure,
            grid: self.grid,
            kept,
            toys: Results::toys(self.figure, self.grid)?,
            samples: self.samples,
            seconds: self.seconds,
            notes: self.notes,
            failures: self.failures,
            held: Some(self.held),
        })
    }

    /// For files of earlier versions: where a panel over uplink bytes and one over rounds show the same runs, their
    /// points are in the same order, which gives the bytes of each round.
    fn bytes_of_panels_with_the_same_runs(&mut self) {
        let cells = &self.grid.cells;
        let panel = |cell: usize| &self.figure.panels[cells[cell].panel];
        let over = |cell: usize, x: Along| panel(cell).x == x && is_curve(&panel(cell).y);
        for bytes in (0..cells.len()).filter(|cell| over(*cell, Along::UplinkBytes)) {
            let same = |cell: &usize| {
                over(*cell, Along::Round) && panel(*cell).y == panel(bytes).y && self.grid.same_runs(*cell, bytes)
            };
            let Some(rounds) = (0..cells.len()).find(same) else { continue };
            let metric = &panel(bytes).y;
            for seed in self.runs[bytes].keys().copied().collect::<Vec<_>>() {
                let so_far = self.runs[bytes][&seed].bytes.clone();
                let Some(curve) = self.runs[rounds].get(&seed).and_then(|run| run.curves.get(metric)).cloned() else {
                    continue;
                };
                // If some rounds were not evaluated, the bytes of the rounds between are unknown.
                if curve.len() != so_far.len() || !curve.keys().copied().eq(1..=so_far.len()) {
                    continue;
                }
                let before = std::iter::once(0.0).chain(so_far.iter().copied());
                let uplink: BTreeMap<usize, u64> =
                    (1..).zip(so_far.iter().zip(before).map(|(now, before)| (now - before) as u64)).collect();
                for cell in [bytes, rounds] {
                    let Some(run) = self.runs[cell].get_mut(&seed) else { continue };
                    if run.traffic[0].is_empty() {
                        run.traffic[0] = uplink.clone();
                    }
                }
                if !self.held[bytes].curves.contains(metric) {
                    self.runs[bytes].entry(seed).or_default().curves.insert(metric.clone(), curve);
                }
            }
            let whole = |run: &Run| run.curves.get(metric).is_some_and(|curve| !curve.is_empty());
            if self.runs[bytes].values().all(whole) {
                self.held[bytes].curves.insert(metric.clone());
            }
        }
    }
}

fn is_curve(metric: &str) -> bool {
    metric != DENSITY
}

/// The index of a bin, from `bin 3 of 15: 120 rows`.
fn bin(row: &Line) -> Result<usize, KeptCsvError> {
    let place = row.case.strip_prefix("bin ").and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok());
    let wrong = || row.wrong(format!("the case is a bin, as `bin 3 of 15: 120 rows`, not `{}`", quoted(&row.case)));
    place.and_then(|place| place.checked_sub(1)).ok_or_else(wrong)
}

/// All known rounds, with their bytes and their numbers of clients.
fn rounds(run: &Run) -> Vec<RoundRecord> {
    let ends = run.traffic.iter().filter_map(|of| of.keys().next_back());
    let last = ends.chain(run.curves.values().filter_map(|curve| curve.keys().next_back())).copied().max().unwrap_or(0);
    let at = |which: usize, round: usize| run.traffic[which].range(..=round).next_back().map_or(0, |(_, value)| *value);
    let round = |round| RoundRecord {
        round,
        uplink_bytes: at(0, round),
        downlink_bytes: at(1, round),
        clients: vec![0; at(2, round) as usize],
        ..RoundRecord::default()
    };
    (1..=last).map(round).collect()
}
