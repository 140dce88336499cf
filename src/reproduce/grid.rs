//! Expands a figure into its runs: layers of overrides become one config each, and equal configs become one run.
//!
//! Layers, later ones take precedence: base, panel, case, series, the panel's override of the series; then the `quick`
//! or `middle` overrides of figure, series, panel, case; then the value of a sweep. The axes of a study stand between
//! the two. As with `--set`, a key that the chosen kind of its section does not use is dropped if an earlier layer than
//! the one that chose the kind wrote it; one of an axis also if another axis chose the kind; unused keys of the scales
//! and the sweep are always dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use fedstein_schema::flat;
use toml::{Table, Value};

use super::figure::{Case, Figure, Panel, Scale, Series};
use crate::checkpoint::digest;
use crate::datasets::source::FILE_KEYS;
use crate::experiment::config::Config;
use crate::experiment::config::schema;
use crate::experiment::schema::{ConfigError, Overrides, Resolved, Source};

/// The part of a figure that the user asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The scale.
    pub scale: Scale,
    /// The seeds; `None` for the figure's own.
    pub seeds: Option<RangeInclusive<u64>>,
    /// The backend; `None` for the figure's own.
    pub backend: Option<String>,
    /// The name of the only runs (`panel/case/series`), or a part of the names of several.
    pub only: Option<String>,
}

/// A point or a curve of a panel: one config, several seeds.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The index in [`Figure::panels`].
    pub panel: usize,
    /// The index in [`Figure::series`].
    pub series: usize,
    /// The index of the panel's case or the sweep's value; 0 where there are none.
    pub slot: usize,
    /// The case's name or the sweep's value; `""` where there are none.
    pub case: String,
    /// The sweep's value, where all of the sweep's values are numbers.
    pub x: Option<f64>,
    /// Whether the cell belongs to the wanted part of the figure.
    pub wanted: bool,
    /// The cell's config, unresolved.
    text: String,
}

impl Cell {
    /// Whether the cell's config sets a key, `section.key`.
    pub fn sets(&self, path: &str) -> bool {
        // The text was generated from a table, so it always parses.
        let table: Table = self.text.parse().unwrap_or_default();
        match path.split_once('.') {
            Some((section, key)) => table.get(section).is_some_and(|section| section.get(key).is_some()),
            None => table.contains_key(path),
        }
    }
}

/// A config with a seed.
#[derive(Clone, Debug)]
pub struct Run {
    /// The resolved config.
    pub config: Config,
    /// Every setting of the resolved config.
    pub settings: Resolved,
    /// The resolved config as a file, with the sha256 of the user's own tables as comments; its text identifies the run.
    pub resolved: String,
    /// The user's own tables that the run reads, with their sha256.
    pub tables: Vec<(PathBuf, String)>,
    /// A readable name, `panel/case/series` of the first cell that needs the run.
    pub label: String,
    /// The index of that cell in [`Grid::cells`].
    pub cell: usize,
}

/// The runs of a figure at a scale.
#[derive(Clone, Debug)]
pub struct Grid {
    /// All cells, wanted or not, panel by panel.
    pub cells: Vec<Cell>,
    /// The seeds.
    pub seeds: RangeInclusive<u64>,
    backend: Option<String>,
    figure: String,
    identity: Identity,
}

/// What identifies runs besides their configs.
#[derive(Clone, Debug, Default)]
struct Identity {
    /// A line about all of them; empty for none.
    stamp: String,
    /// The sha256 of the user's own tables, by path.
    tables: BTreeMap<String, String>,
}

impl Identity {
    /// The text that identifies a run.
    fn of(&self, config: &Config, resolved: String) -> String {
        let unread = "unread".to_owned();
        let lines = own_tables(config).into_iter().map(|(key, path)| {
            let sha256 = self.tables.get(path).unwrap_or(&unread);
            format!("# sha256 of data.{key}: {sha256}\n")
        });
        let lines: String = lines.collect();
        if self.stamp.is_empty() { resolved + &lines } else { format!("{resolved}{lines}# {}\n", self.stamp) }
    }
}

/// The user's own tables that a run reads: the key of each, and its path.
fn own_tables(config: &Config) -> Vec<(&'static str, &str)> {
    let path = |key: &'static str| Some((key, config.data.get(key)?.as_str()?));
    FILE_KEYS.into_iter().filter_map(path).filter(|(_, path)| !path.is_empty()).collect()
}

impl Grid {
    /// Builds the cells of a figure.
    pub fn new(figure: &Figure, wanted: &Wanted) -> Self {
        let mut cells = Vec::new();
        for (panel_at, panel) in figure.panels.iter().enumerate() {
            for (slot, point) in points(panel, wanted.scale).into_iter().enumerate() {
                for &series_at in &panel.series {
                    let series = &figure.series[series_at];
                    let config = merged(figure, panel, series, &point, wanted.scale);
                    cells.push(Cell {
                        panel: panel_at,
                        series: series_at,
                        slot,
                        wanted: true,
                        case: point.case.clone(),
                        x: point.x,
                        text: to_toml(&config),
                    });
                }
            }
        }
        if let Some(only) = &wanted.only {
            let only = only.to_lowercase();
            let name =
                |cell: &Cell| name(&figure.panels[cell.panel], &cell.case, &figure.series[cell.series]).to_lowercase();
            let is_name = cells.iter().any(|cell| name(cell) == only);
            let wants = |name: String| if is_name { name == only } else { name.contains(&only) };
            cells.iter_mut().for_each(|cell| cell.wanted = wants(name(cell)));
        }
        // A scatter plot needs the runs of its horizontal axis, whatever part is wanted.
        let bases: BTreeSet<(usize, usize)> = cells.iter().filter(|c| c.wanted).map(|c| (c.panel, c.slot)).collect();
        for cell in &mut cells {
            let axis = figure.panels[cell.panel].against == Some(cell.series);
            cell.wanted |= axis && bases.contains(&(cell.panel, cell.slot));
        }
        let seeds = wanted.seeds.clone().unwrap_or_else(|| 1..=figure.seeds.at(wanted.scale));
        let (backend, figure) = (wanted.backend.clone(), figure.id.clone());
        Self { cells, seeds, backend, figure, identity: Identity::default() }
    }

    /// The same with a line that identifies all runs too, such as the version of the program.
    #[must_use]
    pub fn stamped(mut self, stamp: &str) -> Self {
        stamp.clone_into(&mut self.identity.stamp);
        self
    }

    /// The same with the content of the user's own tables, which identifies the runs that read them.
    ///
    /// # Errors
    /// A table of a wanted cell cannot be read, or the errors of [`Config::load`] for a wanted cell.
    pub fn with_tables(mut self, figure: &Figure) -> Result<Self, ConfigError> {
        let mut tables = BTreeMap::new();
        for cell in &self.cells {
            let config = match self.config(figure, cell, 1) {
                Ok((config, _)) => config,
                Err(error) if cell.wanted => return Err(error),
                Err(_) => continue,
            };
            for (key, path) in own_tables(&config) {
                if tables.contains_key(path) {
                    continue;
                }
                match digest::of_file(Path::new(path)) {
                    Ok(sha256) => drop(tables.insert(path.to_owned(), sha256)),
                    Err(error) if cell.wanted => {
                        return Err(ConfigError::conflict(format!("`data.{key}`: cannot read `{path}`: {error}")));
                    }
                    Err(_) => {}
                }
            }
        }
        self.identity.tables = tables;
        Ok(self)
    }

    /// A readable name of a cell.
    pub fn name(&self, figure: &Figure, cell: &Cell) -> String {
        name(&figure.panels[cell.panel], &cell.case, &figure.series[cell.series])
    }

    /// The config of a cell with a seed, resolved, and the text that identifies the run: the same as a file.
    ///
    /// # Errors
    /// The errors of [`Config::load`].
    pub fn config(&self, figure: &Figure, cell: &Cell, seed: u64) -> Result<(Config, String), ConfigError> {
        self.resolved(figure, cell, seed).map(|(config, _, text)| (config, text))
    }

    /// As [`Self::config`], with the settings between the two.
    fn resolved(&self, figure: &Figure, cell: &Cell, seed: u64) -> Result<(Config, Resolved, String), ConfigError> {
        let overrides = Overrides { set: Vec::new(), seed: Some(seed), backend: self.backend.clone() };
        let source = format!("{}, {}", self.figure, self.name(figure, cell));
        let (config, settings) = Config::load(Source { name: &source, text: &cell.text }, &overrides)?;
        let text = self.identity.of(&config, settings.to_toml());
        Ok((config, settings, text))
    }

    /// Whether two cells have the same runs.
    pub fn same_runs(&self, a: usize, b: usize) -> bool {
        self.cells[a].text == self.cells[b].text
    }

    /// The wanted runs without duplicates, all of one seed before the next seed.
    ///
    /// # Errors
    /// The errors of [`Config::load`].
    pub fn runs(&self, figure: &Figure) -> Result<Vec<Run>, ConfigError> {
        let mut seen = BTreeSet::new();
        let mut runs = Vec::new();
        for seed in self.seeds.clone() {
            for (at, cell) in self.cells.iter().enumerate().filter(|(_, cell)| cell.wanted) {
                let (config, settings, resolved) = self.resolved(figure, cell, seed)?;
                if seen.insert(resolved.clone()) {
                    let of =
                        |(_, path): (_, &str)| Some((PathBuf::from(path), self.identity.tables.get(path)?.clone()));
                    let tables = own_tables(&config).into_iter().filter_map(of).collect();
                    let label = self.name(figure, cell);
                    runs.push(Run { config, settings, resolved, tables, label, cell: at });
                }
            }
        }
        Ok(runs)
    }

    /// The number of wanted runs; the configs need not be valid.
    pub fn count(&self) -> u64 {
        let texts: BTreeSet<&str> =
            self.cells.iter().filter(|cell| cell.wanted).map(|cell| cell.text.as_str()).collect();
        texts.len() as u64 * self.trials()
    }

    /// The number of seeds.
    pub fn trials(&self) -> u64 {
        self.seeds.end() + 1 - self.seeds.start()
    }

    /// The distinct `[data]` sections of the wanted cells, with the panels that need each.
    pub fn data(&self) -> Vec<(Table, Vec<usize>)> {
        let mut found: Vec<(Table, Vec<usize>)> = Vec::new();
        for cell in self.cells.iter().filter(|cell| cell.wanted) {
            // The text was generated from a table, so it always parses.
            let table: Table = cell.text.parse().unwrap_or_default();
            let data = table.get("data").and_then(Value::as_table).cloned().unwrap_or_default();
            match found.iter_mut().find(|(other, _)| *other == data) {
                Some((_, panels)) if panels.contains(&cell.panel) => {}
                Some((_, panels)) => panels.push(cell.panel),
                None => found.push((data, vec![cell.panel])),
            }
        }
        found
    }
}

/// A value of a sweep, or a case.
struct Point<'a> {
    case: String,
    x: Option<f64>,
    /// The overrides of the case, and its further ones with `--quick`.
    case_set: Option<(&'a Table, &'a Table)>,
    /// The swept keys, and the value that they get.
    swept: Option<(&'a [String], &'a Value)>,
}

impl<'a> From<&'a Case> for Point<'a> {
    fn from(case: &'a Case) -> Self {
        Self { case: case.id.clone(), x: None, case_set: Some((&case.set, &case.quick)), swept: None }
    }
}

fn points(panel: &Panel, scale: Scale) -> Vec<Point<'_>> {
    if let Some(sweep) = &panel.sweep {
        let number = |value: &Value| value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
        // A word among the values has no place on a numeric axis; then all values are placed in their order.
        let numbers = sweep.at(scale).iter().all(|value| number(value).is_some());
        let point = |value| Point {
            case: plain(value),
            x: number(value).filter(|_| numbers),
            case_set: None,
            swept: Some((sweep.keys.as_slice(), value)),
        };
        return sweep.at(scale).iter().map(point).collect();
    }
    if panel.cases.is_empty() {
        return vec![Point { case: String::new(), x: None, case_set: None, swept: None }];
    }
    panel.cases.iter().map(Point::from).collect()
}

/// A value in the form in which it is typed.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn name(panel: &Panel, case: &str, series: &Series) -> String {
    if case.is_empty() { format!("{}/{}", panel.id, series.id) } else { format!("{}/{case}/{}", panel.id, series.id) }
}

/// When a value is dropped without an error, because the chosen kind does not use its key.
#[derive(Clone, Copy)]
enum Unused {
    /// Where a later layer chose the kind.
    Later,
    /// Where any other layer chose it.
    Other,
    /// Always.
    Any,
}

/// The value of a path, and the layer that wrote it.
struct Written {
    value: Value,
    layer: usize,
    unused: Unused,
}

fn merged(figure: &Figure, panel: &Panel, series: &Series, point: &Point<'_>, scale: Scale) -> BTreeMap<String, Value> {
    let empty = Table::new();
    let of_scale = |quick: &'_ Table, middle: &'_ Table| match scale {
        Scale::Quick => quick.clone(),
        Scale::Middle => middle.clone(),
        Scale::Full => Table::new(),
    };
    let (case, case_quick) = point.case_set.unwrap_or((&empty, &empty));
    let own = panel.overrides.get(&series.id).unwrap_or(&empty);
    let strict = [figure.base.clone(), panel.set.clone(), case.clone(), series.set.clone(), own.clone()];
    let scaled = [
        of_scale(&figure.quick, figure.middle.as_ref().unwrap_or(&empty)),
        of_scale(&series.quick, &series.middle),
        of_scale(&panel.quick, &panel.middle),
        of_scale(case_quick, &empty),
    ];
    let mut written: BTreeMap<String, Written> = BTreeMap::new();
    let strict = strict.iter().map(|table| (table, Unused::Later));
    let axes = panel.axes.iter().chain([&series.axis]).map(|table| (table, Unused::Other));
    let layers = strict.chain(axes).chain(scaled.iter().map(|table| (table, Unused::Any)));
    for (layer, (table, unused)) in layers.enumerate() {
        for (path, value) in flat(table) {
            written.insert(path, Written { value: value.clone(), layer, unused });
        }
    }
    if let Some((keys, value)) = point.swept {
        for path in keys {
            written.insert(path.clone(), Written { value: value.clone(), layer: usize::MAX, unused: Unused::Any });
        }
    }
    // All runs have the same name, so that equal experiments have equal configs.
    written.insert("name".into(), Written { value: "reproduce".into(), layer: 0, unused: Unused::Later });
    drop_useless(&mut written);
    written.into_iter().map(|(path, written)| (path, written.value)).collect()
}

fn drop_useless(written: &mut BTreeMap<String, Written>) {
    for section in &schema().sections {
        let Some(default) = section.default_kind else { continue };
        let (kind, chosen) = match written.get(&section.path("kind")) {
            Some(Written { value, layer, .. }) => (plain(value), *layer),
            None => (default.to_string(), 0),
        };
        written.retain(|path, entry| {
            let name = path.strip_prefix(section.name).and_then(|rest| rest.strip_prefix('.'));
            let users = name.map(|name| section.users(name)).unwrap_or_default();
            let useless = !users.is_empty() && !users.contains(&kind.as_str());
            let dropped = match entry.unused {
                Unused::Later => entry.layer < chosen,
                Unused::Other => entry.layer != chosen,
                Unused::Any => true,
            };
            !(useless && dropped)
        });
    }
}

/// Formats paths and values as a config file.
fn to_toml(entries: &BTreeMap<String, Value>) -> String {
    let mut text = String::new();
    for (path, value) in entries.iter().filter(|(path, _)| !path.contains('.')) {
        text += &format!("{path} = {value}\n");
    }
    let mut section = "";
    for (path, value) in entries {
        let Some((of, key)) = path.split_once('.') else { continue };
        if of != section {
            section = of;
            text += &format!("[{of}]\n");
        }
        text += &format!("{key} = {value}\n");
    }
    text
}
