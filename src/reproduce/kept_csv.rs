//! Reads a figure's CSV files, so that the figure is judged and drawn without its runs. [`super::numbers`] describes the
//! format. Several files hold different runs of one figure, such as other seeds or panels.
//!
//! Files of earlier versions have only the numbers of the pictures. What follows from these is recovered: all values of
//! a curve over rounds, the last values of a sweep, and, where two panels show the same runs over rounds and over
//! bytes, the bytes of each round. Everything else is not [held](Held).

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;

use super::curve::{Curve, Results, Sample};
use super::figure::{Along, DENSITY, Figure, Scale};
use super::grid::{Cell, Grid};
use super::held::{Held, is_shown};
use super::kept::Kept;
use super::numbers::{CLIENTS, FAILED, HEADER, NOTE, RUN, SECONDS, TRAFFIC};
use crate::error::RunError;
use crate::experiment::RoundRecord;
use crate::report::files::{quoted, read_whole};

/// The largest size to which a compressed file is unpacked.
const MOST_BYTES: u64 = 1 << 30;

/// An error in a file, with its row.
#[derive(Debug, thiserror::Error)]
pub enum KeptCsvError {
    /// The file cannot be read, or has another format.
    #[error("{file}: {problem}", file = .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A row does not fit the figure.
    #[error("{file}: line {line}: {problem}", file = .file.display())]
    Row {
        /// The file.
        file: PathBuf,
        /// The number of the line; the header is line 1.
        line: u64,
        /// The problem, and a valid alternative.
        problem: String,
    },
    /// The figure's own configs are inconsistent.
    #[error("{0}")]
    Figure(#[from] RunError),
}

/// The rows of some files.
#[derive(Debug)]
pub struct KeptCsv {
    rows: Vec<Line>,
    /// The scale of the files' runs.
    pub scale: Scale,
    /// The largest seed in the files.
    pub seeds: u64,
}

#[derive(Debug)]
struct Line {
    file: Arc<Path>,
    at: u64,
    panel: String,
    series: String,
    case: String,
    /// 0 for what does not depend on a seed.
    seed: u64,
    x: f64,
    metric: String,
    /// The value; `None` where the metric has none.
    value: Option<f64>,
}

impl Line {
    fn wrong(&self, problem: impl fmt::Display) -> KeptCsvError {
        KeptCsvError::Row { file: self.file.to_path_buf(), line: self.at, problem: problem.to_string() }
    }

    /// The horizontal coordinate as a round.
    fn round(&self) -> Result<usize, KeptCsvError> {
        let whole = self.x >= 1.0 && self.x.fract() == 0.0 && self.x <= MOST;
        let wrong = || self.wrong(format!("x is a round, 1 to {MOST}, not {}", self.x));
        if whole { Ok(self.x as usize) } else { Err(wrong()) }
    }

    fn number(&self) -> Result<f64, KeptCsvError> {
        self.value.ok_or_else(|| self.wrong("the value is missing"))
    }
}

impl KeptCsv {
    /// Reads plain or compressed files.
    ///
    /// # Errors
    /// A file cannot be read, has another header, has text where a number is required, or has another scale than the
    /// first.
    pub fn open(paths: &[PathBuf]) -> Result<Self, KeptCsvError> {
        let (mut rows, mut scale) = (Vec::new(), None);
        for path in paths {
            let before = rows.len();
            read(path, &mut rows, &mut scale)?;
            if rows.len() == before {
                return Err(unreadable(path, &"it has no rows below the header"));
            }
        }
        let seeds = rows.iter().map(|row| row.seed).max().unwrap_or(0);
        Ok(Self { rows, scale: scale.unwrap_or(Scale::Full), seeds })
    }

    /// Whether a row has one of these seeds.
    pub fn has_one_of(&self, seeds: &RangeInclusive<u64>) -> bool {
        self.rows.iter().any(|row| seeds.contains(&row.seed))
    }

    /// The results of a figure from the rows; seeds that the grid does not have are left out.
    ///
    /// # Errors
    /// A row does not belong to the figure, or a number stands in the files twice.
    pub fn results<'a>(&self, figure: &'a Figure, grid: &'a Grid) -> Result<Results<'a>, KeptCsvError> {
        let mut reader = ResultsReader::new(figure, grid);
        for row in self.rows.iter().filter(|row| row.seed == 0 || grid.seeds.contains(&row.seed)) {
            reader.take(row)?;
        }
        reader.finish()
    }
}

fn unreadable(path: &Path, problem: &dyn fmt::Display) -> KeptCsvError {
    KeptCsvError::File { file: path.to_path_buf(), problem: problem.to_string() }
}

/// Appends the rows of a plain or compressed file. `scale` is that of the rows before, if there are any.
fn read(path: &Path, rows: &mut Vec<Line>, scale: &mut Option<Scale>) -> Result<(), KeptCsvError> {
    let file: Arc<Path> = path.into();
    let mut bytes = read_whole(path).map_err(|error| unreadable(path, &error))?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        let mut packed = MultiGzDecoder::new(bytes.as_slice()).take(MOST_BYTES + 1);
        packed.read_to_end(&mut unpacked).map_err(|error| unreadable(path, &error))?;
        if unpacked.len() as u64 > MOST_BYTES {
            return Err(unreadable(path, &format!("it unpacks to more than {MOST_BYTES} bytes")));
        }
        bytes = unpacked;
    }
    let mut reader = csv::ReaderBuilder::new().from_reader(bytes.as_slice());
    let header = reader.headers().map_err(|error| unreadable(path, &error))?;
    if header.iter().ne(HEADER) {
        let problem = format!("the header is {}", HEADER.join(","));
        return Err(KeptCsvError::Row { file: path.to_path_buf(), line: 1, problem });
    }
    for record in reader.records() {
        let record = record.map_err(|error| unreadable(path, &error))?;
        let (row, own) = line(&file, &record)?;
        if *scale.get_or_insert(own) != own {
            return Err(row.wrong(format!("its scale is {}, that of the rows before another", own.word())));
        }
        rows.push(row);
    }
    Ok(())
}

fn line(file: &Arc<Path>, record: &csv::StringRecord) -> Result<(Line, Scale), KeptCsvError> {
    let at = record.position().map_or(0, csv::Position::line);
    let wrong = |problem: String| KeptCsvError::Row { file: file.to_path_buf(), line: at, problem };
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
    Ok((Line { file: file.clone(), at, panel, series, case, seed, x: finite("x")?, metric, value }, scale))
}

/// The most rounds and the most clients of a round of a run: each round becomes a record with its clients.
const MOST: f64 = 1e6;

/// The data of a run read so far.
#[derive(Default)]
struct Run {
    /// The file in which its first row stands.
    file: Option<Arc<Path>>,
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

/// Panel, series, case, seed, bits of x and metric of a number; with its file, where every file has its own.
type Key = (String, String, String, u64, u64, String, Option<Arc<Path>>);

/// The content of the rows read so far.
struct ResultsReader<'a> {
    figure: &'a Figure,
    grid: &'a Grid,
    runs: Vec<BTreeMap<u64, Run>>,
    held: Vec<Held>,
    /// The numbers of each panel's picture, each with its cell; those of no series have the number of cells there.
    samples: Vec<Vec<(usize, Sample)>>,
    /// The number of points read of densities that belong to no series.
    drawn: BTreeMap<(usize, Curve), usize>,
    /// The seconds of a cell's runs that each file states.
    seconds: Vec<BTreeMap<Arc<Path>, f64>>,
    notes: BTreeMap<String, usize>,
    failures: Vec<String>,
    /// What was read so far: the file of each number.
    seen: BTreeMap<Key, (Arc<Path>, Option<f64>)>,
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
            seconds: vec![BTreeMap::new(); cells],
            notes: BTreeMap::new(),
            failures: Vec::new(),
            seen: BTreeMap::new(),
        }
    }

    fn take(&mut self, row: &Line) -> Result<(), KeptCsvError> {
        if !self.is_new(row)? {
            return Ok(());
        }
        let Some(metric) = row.metric.strip_prefix(RUN) else { return self.shown(row) };
        if let Some(note) = metric.strip_prefix(NOTE) {
            *self.notes.entry(note.to_owned()).or_default() += row.number()? as usize;
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
            self.seconds[cell].insert(row.file.clone(), row.number()?);
            return Ok(());
        }
        let run = self.run(cell, row);
        if let Some(which) = TRAFFIC.iter().position(|(name, _)| *name == metric) {
            let value = row.number()?;
            if value < 0.0 || value.fract() != 0.0 {
                return Err(row.wrong(format!("{metric} is a whole number, not {value}")));
            }
            if which == CLIENTS && value > MOST {
                return Err(row.wrong(format!("{metric} is a number of clients, at most {MOST}, not {value}")));
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

    /// Whether a row says something that no row before it says. Exact densities, which do not depend on a seed, may stand
    /// in several files.
    fn is_new(&mut self, row: &Line) -> Result<bool, KeptCsvError> {
        let (panel, series, case) = (row.panel.clone(), row.series.clone(), row.case.clone());
        let own = (row.seed == 0 && row.metric.starts_with(RUN)).then(|| row.file.clone());
        let key = (panel, series, case, row.seed, row.x.to_bits(), row.metric.clone(), own);
        match self.seen.get(&key) {
            None => {
                self.seen.insert(key, (row.file.clone(), row.value));
                Ok(true)
            }
            Some((file, _)) if *file == row.file => Err(row.wrong("this number stands there twice")),
            Some((_, value)) if row.seed == 0 && *value == row.value => Ok(false),
            Some((file, _)) => {
                Err(row.wrong(format!("this number, of seed {}, stands in {} too", row.seed, file.display())))
            }
        }
    }

    /// The run of a row's seed.
    fn run(&mut self, cell: usize, row: &Line) -> &mut Run {
        self.runs[cell].entry(row.seed).or_insert_with(|| Run { file: Some(row.file.clone()), ..Run::default() })
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
            self.samples[at].push((self.grid.cells.len(), sample(curve, *slot)));
            *slot += 1;
            return Ok(());
        }
        let series = self.series(row, at)?;
        // For a bin and for a density, the column `case` is not the cell's case.
        let own_case = !densities && panel.x != Along::Confidence;
        let cell = self.cell(row, at, series, own_case.then_some(&row.case))?;
        let own = &self.grid.cells[cell];
        let whole_curve = is_shown(self.figure, own);
        let run = self.run(cell, row);
        let place = run.points;
        run.points += 1;
        let slot = match panel.x {
            Along::Round => row.round()?,
            Along::Sweep | Along::Series => own.slot,
            Along::Confidence => bin(row)?,
            Along::UplinkBytes | Along::DownlinkBytes | Along::Theta | Along::Plane => place,
        };
        match panel.x {
            // A level that is reached in the first round is the whole curve.
            Along::Round if whole_curve || slot == 1 => {
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
        // Contours show a single run.
        let other = |(_, sample): &(usize, Sample)| sample.curve == Curve::Series(series) && sample.seed != row.seed;
        if panel.x != Along::Plane || !self.samples[at].iter().any(other) {
            self.samples[at].push((cell, sample(Curve::Series(series), slot)));
        }
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
        let seconds = self.seconds.iter().zip(&self.runs).map(|(seconds, runs)| mean_seconds(seconds, runs)).collect();
        // As the runs themselves give them: by cell, then by seed.
        self.samples.iter_mut().for_each(|panel| panel.sort_by_key(|(cell, sample)| (*cell, sample.seed)));
        let samples = self.samples.into_iter().map(|panel| panel.into_iter().map(|(_, sample)| sample).collect());
        let samples = samples.collect();
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
            samples,
            seconds,
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

/// The mean seconds of a cell's runs, from the means of the files, each of which counts as often as it has runs.
fn mean_seconds(of_files: &BTreeMap<Arc<Path>, f64>, runs: &BTreeMap<u64, Run>) -> Option<f64> {
    let weighted = of_files.iter().map(|(file, seconds)| {
        let runs = runs.values().filter(|run| run.file.as_ref() == Some(file)).count().max(1) as f64;
        (runs * seconds, runs)
    });
    let (sum, runs) = weighted.fold((0.0, 0.0), |(sum, all), (seconds, runs)| (sum + seconds, all + runs));
    (runs > 0.0).then(|| sum / runs)
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
        clients: vec![0; at(CLIENTS, round) as usize],
        ..RoundRecord::default()
    };
    (1..=last).map(round).collect()
}
