//! Reads a definition in TOML and checks it, to get a [`Figure`].

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};

use super::{
    Along, Also, Case, Claim, DENSITY, Expected, Figure, FigureError, Order, Panel, Seeds, Series, Statistic, Sweep,
    Target, Term,
};
use crate::experiment::schema::{did_you_mean, list};
use crate::metrics::{Evaluation, PersonalScores};
use crate::reproduce::kept::TRAFFIC;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    paper: String,
    /// Another figure whose base, series and panels, and so whose runs, this one shares.
    from: Option<String>,
    /// The panels of `from` that are kept.
    panels: Option<Vec<String>>,
    /// The series that are drawn in panels that do not name their own.
    shown: Option<Vec<String>>,
    /// The metric of all panels that do not name their own; with `from`, also of panels that do.
    y: Option<String>,
    y_range: Option<(f64, f64)>,
    /// The statistics in the table beside every target, as `metric` or `metric statistic`.
    also: Option<Vec<String>>,
    #[serde(default)]
    choices: Vec<String>,
    seeds: Option<Seeds>,
    #[serde(default)]
    base: Table,
    #[serde(default)]
    quick: Table,
    middle: Option<Table>,
    #[serde(default)]
    series: Vec<Series>,
    #[serde(default)]
    panel: Vec<PanelFile>,
    #[serde(default)]
    target: Vec<TargetFile>,
    #[serde(default)]
    claim: Vec<ClaimFile>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PanelFile {
    id: String,
    title: String,
    /// An earlier panel that provides every key which this one lacks.
    like: Option<String>,
    x: Option<Along>,
    x_label: Option<String>,
    log_x: Option<bool>,
    y: Option<String>,
    log_y: Option<bool>,
    y_range: Option<(f64, f64)>,
    set: Option<Table>,
    quick: Option<Table>,
    middle: Option<Table>,
    series: Option<Vec<String>>,
    #[serde(rename = "override")]
    overrides: Option<BTreeMap<String, Table>>,
    sweep: Option<Sweep>,
    case: Option<Vec<Case>>,
    against: Option<String>,
}

/// Reference values of one kind: a single one, or the table of a paper, with a row for each method.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetFile {
    what: String,
    source: String,
    panel: Names,
    /// The curve of a single row.
    series: Option<Names>,
    metric: Option<String>,
    at: Option<Value>,
    between: Option<(f64, f64)>,
    /// The value of a single row.
    value: Option<Values>,
    /// Several rows, in the place of `series` and `value`.
    #[serde(default)]
    rows: Vec<RowFile>,
    tolerance: Option<f64>,
    factor: Option<f64>,
    range: Option<(f64, f64)>,
    #[serde(default)]
    note: String,
}

/// A row of a paper's table.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowFile {
    series: Names,
    value: Option<Values>,
}

impl RowFile {
    /// The curves, `series` or `series@point`, and their values in the panel with index `panel` among `panels`.
    fn curves(&self, panel: usize, panels: usize) -> Result<Vec<(String, Option<f64>)>, String> {
        let series = self.series.all("series")?;
        let Some(values) = &self.value else { return Ok(series.iter().map(|series| (series.clone(), None)).collect()) };
        let name = |series: &String, point: Option<&str>| match point {
            Some(point) => format!("{series}@{point}"),
            None => series.clone(),
        };
        let points = values.at(panel, panels)?.into_iter();
        Ok(points
            .flat_map(|(point, value)| series.iter().map(move |series| (name(series, point), Some(value))))
            .collect())
    }
}

/// An assertion, the same about each of its panels.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimFile {
    what: String,
    source: String,
    panel: Names,
    metric: Option<String>,
    at: Option<Value>,
    greater: Option<Vec<String>>,
    smaller: Option<Vec<String>>,
    close: Option<Vec<String>>,
    within: Option<f64>,
    /// A remark, or one for each panel.
    note: Option<Names>,
}

/// A name or a list of names.
#[derive(Clone, Deserialize)]
#[serde(untagged, expecting = "it is a string or a list of strings")]
enum Names {
    One(String),
    Several(Vec<String>),
}

impl Names {
    /// All names; `key` is where they stand.
    fn all(&self, key: &str) -> Result<&[String], String> {
        match self {
            Self::One(name) => Ok(std::slice::from_ref(name)),
            Self::Several(names) if names.is_empty() => Err(format!("`{key}` is empty")),
            Self::Several(names) => Ok(names),
        }
    }
}

/// The value or values of a row.
#[derive(Clone, Deserialize)]
#[serde(untagged, expecting = "it is a number, a list with one for each panel, or a table with one for each point")]
enum Values {
    One(f64),
    /// One for each of the target's panels.
    Panels(Vec<f64>),
    /// One for each point of a sweep or case, by what stands after `@`.
    Points(Table),
}

impl Values {
    /// The points and their values in the panel with index `panel` among `panels`.
    fn at(&self, panel: usize, panels: usize) -> Result<Vec<(Option<&str>, f64)>, String> {
        match self {
            Self::One(value) => Ok(vec![(None, *value)]),
            Self::Panels(values) if values.len() == panels => Ok(vec![(None, values[panel])]),
            Self::Panels(values) => Err(format!("`value` has {} numbers for {panels} panels", values.len())),
            Self::Points(values) => values.iter().map(|(at, value)| Ok((Some(at.as_str()), number(value)?))).collect(),
        }
    }
}

fn number(value: &Value) -> Result<f64, String> {
    match value {
        Value::Float(value) => Ok(*value),
        #[expect(clippy::cast_precision_loss, reason = "a reference value has few digits")]
        Value::Integer(value) => Ok(*value as f64),
        other => Err(format!("`value` cannot be {other}")),
    }
}

/// The name of the exact density of a toy in the place of a series.
const EXACT: &str = "exact";

impl Figure {
    /// Reads and checks a definition; `text` returns the definition of the figure in `from`.
    ///
    /// # Errors
    /// An unknown key, a reference to an unknown name, or a target without a value.
    pub fn parse(id: &str, own: &str, text: &dyn Fn(&str) -> Option<&'static str>) -> Result<Self, FigureError> {
        let wrong = |problem: String| FigureError::Definition { id: id.to_owned(), problem };
        let read = |own: &str| toml::from_str::<File>(own).map_err(|error| wrong(error.to_string()));
        let mut file = read(own)?;
        if let Some(parent) = file.from.clone() {
            let parent_text =
                text(&parent).ok_or_else(|| wrong(format!("there is no figure `{parent}` to be from")))?;
            file = inherit(file, read(parent_text)?).map_err(wrong)?;
        }
        build(id, file).map_err(wrong)
    }

    /// The index of the series of this name.
    fn series_named(&self, name: &str) -> Result<usize, String> {
        position(&self.series, name, |series| &series.id, "series")
    }

    fn panel_named(&self, name: &str) -> Result<usize, String> {
        position(&self.panels, name, |panel| &panel.id, "panel")
    }

    /// Parses `series`, `series@value` or `panel/series@value`.
    fn term(&self, panel: &str, text: &str) -> Result<Term, String> {
        let (panel, rest) = text.split_once('/').unwrap_or((panel, text));
        let (series, at) = match rest.split_once('@') {
            Some((series, at)) => (series, Some(at.to_owned())),
            None => (rest, None),
        };
        let panel = self.panel_named(panel)?;
        let series = if series == EXACT { None } else { Some(self.series_named(series)?) };
        let here = &self.panels[panel];
        if series.is_some_and(|series| !here.series.contains(&series)) {
            return Err(format!("panel `{}` does not show series `{rest}`", here.id));
        }
        Ok(Term { panel, series, at })
    }

    fn metric(&self, named: Option<String>, panel: usize) -> Result<String, String> {
        let metric = named.unwrap_or_else(|| self.panels[panel].y.clone());
        drawn_metric(&metric)?;
        Ok(metric)
    }

    /// The targets of one entry: panel by panel, then row by row.
    fn targets(&self, file: TargetFile) -> Result<Vec<Target>, String> {
        let here = |problem: String| format!("target `{}`: {problem}", file.what);
        let rows = match (file.series, file.rows) {
            (Some(series), rows) if rows.is_empty() => vec![RowFile { series, value: file.value }],
            (None, rows) if !rows.is_empty() && file.value.is_none() => rows,
            _ => return Err(here("it takes `series` with its `value`, or `rows`".into())),
        };
        let statistic = statistic(file.at).map_err(here)?;
        let expected = |value: Option<f64>| match (value, file.tolerance, file.factor, file.range) {
            (Some(value), tolerance, None, None) => Ok(Expected::Near(value, tolerance)),
            (Some(value), None, Some(factor), None) if factor >= 1.0 => Ok(Expected::Factor(value, factor)),
            (None, None, None, Some((low, high))) if low <= high => Ok(Expected::Between(low, high)),
            _ => Err("it takes `value` with at most one of `tolerance`, `factor` (≥ 1), or `range`".to_owned()),
        };
        let panels = file.panel.all("panel").map_err(here)?;
        let mut targets = Vec::new();
        for (at, panel) in panels.iter().enumerate() {
            for row in &rows {
                for (curve, value) in row.curves(at, panels.len()).map_err(here)? {
                    let term = self.term(panel, &curve).map_err(here)?;
                    targets.push(Target {
                        what: file.what.clone(),
                        source: file.source.clone(),
                        metric: self.metric(file.metric.clone(), term.panel).map_err(here)?,
                        term,
                        statistic,
                        between: file.between,
                        value: expected(value).map_err(here)?,
                        note: file.note.clone(),
                    });
                }
            }
        }
        Ok(targets)
    }

    /// The claims of one entry, one for each of its panels.
    fn claims(&self, file: ClaimFile) -> Result<Vec<Claim>, String> {
        let here = |problem: String| format!("claim `{}`: {problem}", file.what);
        let (terms, order) = match (file.greater, file.smaller, file.close, file.within) {
            (Some(terms), None, None, None) => (terms, Order::Greater),
            (None, Some(terms), None, None) => (terms, Order::Smaller),
            (None, None, Some(terms), Some(within)) if within > 0.0 => (terms, Order::Close(within)),
            _ => return Err(here("it takes one of `greater`, `smaller`, or `close` with `within` (> 0)".into())),
        };
        if terms.len() < 2 {
            return Err(here("it compares at least two series".into()));
        }
        let statistic = statistic(file.at).map_err(here)?;
        let panels = file.panel.all("panel").map_err(here)?;
        let notes = match file.note {
            None => vec![String::new(); panels.len()],
            Some(Names::One(note)) => vec![note; panels.len()],
            Some(Names::Several(notes)) if notes.len() == panels.len() => notes,
            Some(Names::Several(notes)) => {
                return Err(here(format!("`note` has {} remarks for {} panels", notes.len(), panels.len())));
            }
        };
        let claim = |(panel, note): (&String, String)| {
            let terms: Result<Vec<Term>, String> = terms.iter().map(|term| self.term(panel, term)).collect();
            let terms = terms.map_err(here)?;
            Ok(Claim {
                what: file.what.clone(),
                source: file.source.clone(),
                metric: self.metric(file.metric.clone(), terms[0].panel).map_err(here)?,
                terms,
                order,
                statistic,
                note,
            })
        };
        panels.iter().zip(notes).map(claim).collect()
    }
}

/// Merges a figure with the figure in its `from`; its own keys take precedence.
fn inherit(own: File, parent: File) -> Result<File, String> {
    if parent.from.is_some() {
        return Err("a figure is from another that is from none".into());
    }
    if !own.base.is_empty() || !own.quick.is_empty() || own.middle.is_some() || !own.series.is_empty() {
        return Err("a figure that is `from` another takes its base, scales and series from there".into());
    }
    let mut panel = without_like(parent.panel)?;
    if let Some(kept) = &own.panels {
        if let Some(missing) = kept.iter().find(|name| panel.iter().all(|panel| panel.id != **name)) {
            return Err(format!("`panels` names `{missing}`, which is none of the other figure's"));
        }
        panel.retain(|panel| kept.contains(&panel.id));
    }
    for panel in &mut panel {
        panel.y = own.y.clone().or(panel.y.take());
        panel.y_range = if own.y.is_some() { own.y_range } else { own.y_range.or(panel.y_range) };
        // The parent's drawn series do not apply to this figure.
        if own.shown.is_some() {
            panel.series = None;
        }
    }
    panel.extend(own.panel);
    let choices = parent.choices.into_iter().chain(own.choices).collect();
    Ok(File {
        from: None,
        panels: None,
        shown: own.shown.or(parent.shown),
        y: own.y.or(parent.y),
        also: own.also.or(parent.also),
        choices,
        seeds: own.seeds.or(parent.seeds),
        base: parent.base,
        quick: parent.quick,
        middle: parent.middle,
        series: parent.series,
        panel,
        ..own
    })
}

fn build(id: &str, file: File) -> Result<Figure, String> {
    let seeds = file.seeds.ok_or("`seeds` is missing")?;
    if [seeds.full, seeds.middle, seeds.quick].contains(&0) {
        return Err("`seeds` are at least 1".into());
    }
    let mut figure = Figure {
        id: id.to_owned(),
        title: file.title,
        paper: file.paper,
        choices: file.choices,
        seeds,
        base: file.base,
        quick: file.quick,
        middle: file.middle,
        series: file.series,
        panels: Vec::new(),
        targets: Vec::new(),
        claims: Vec::new(),
        also: file.also.unwrap_or_default().into_iter().map(also).collect::<Result<_, _>>()?,
    };
    unique(figure.series.iter().map(|series| series.id.as_str()))?;
    if file.panels.is_some() {
        return Err("`panels` chooses among those of another figure; it needs `from`".into());
    }
    for mut panel in without_like(file.panel)? {
        let id = panel.id.clone();
        panel.y_range = panel.y_range.or(file.y_range.filter(|_| panel.y.is_none()));
        let built = self::panel(&figure, panel, file.y.as_deref(), file.shown.as_deref());
        figure.panels.push(built.map_err(|problem| format!("panel `{id}`: {problem}"))?);
    }
    unique(figure.panels.iter().map(|panel| panel.id.as_str()))?;
    if figure.panels.is_empty() {
        return Err("it has no panel".into());
    }
    for target in file.target {
        let targets = figure.targets(target)?;
        figure.targets.extend(targets);
    }
    for claim in file.claim {
        let claims = figure.claims(claim)?;
        figure.claims.extend(claims);
    }
    Ok(figure)
}

/// Resolves the `like` of every panel.
fn without_like(panels: Vec<PanelFile>) -> Result<Vec<PanelFile>, String> {
    let mut done: Vec<PanelFile> = Vec::new();
    for mut panel in panels {
        if let Some(name) = panel.like.take() {
            let other = done[position(&done, &name, |file| &file.id, "earlier panel")?].clone();
            panel = like(panel, other);
        }
        done.push(panel);
    }
    Ok(done)
}

/// Fills the keys that a panel lacks from another panel.
fn like(own: PanelFile, other: PanelFile) -> PanelFile {
    PanelFile {
        id: own.id,
        title: own.title,
        like: None,
        x: own.x.or(other.x),
        x_label: own.x_label.or(other.x_label),
        log_x: own.log_x.or(other.log_x),
        // Another metric has another range.
        y_range: own.y_range.or(other.y_range.filter(|_| own.y.is_none())),
        y: own.y.or(other.y),
        log_y: own.log_y.or(other.log_y),
        set: own.set.or(other.set),
        quick: own.quick.or(other.quick),
        middle: own.middle.or(other.middle),
        series: own.series.or(other.series),
        overrides: own.overrides.or(other.overrides),
        sweep: own.sweep.or(other.sweep),
        case: own.case.or(other.case),
        against: own.against.or(other.against),
    }
}

fn panel(figure: &Figure, file: PanelFile, y: Option<&str>, shown: Option<&[String]>) -> Result<Panel, String> {
    let x = file.x.unwrap_or(Along::Round);
    let y = match (file.y.or_else(|| y.map(str::to_owned)), x) {
        (Some(y), _) => y,
        (None, Along::Theta | Along::Plane) => DENSITY.to_owned(),
        (None, Along::Confidence) => "accuracy".to_owned(),
        (None, _) => return Err("`y` is missing".into()),
    };
    drawn_metric(&y)?;
    let named = |names: &[String]| names.iter().map(|name| figure.series_named(name)).collect::<Result<Vec<_>, _>>();
    let series = match (file.series.as_deref(), shown) {
        (Some(names), _) | (None, Some(names)) => named(names)?,
        (None, None) => (0..figure.series.len()).collect(),
    };
    let overrides = file.overrides.unwrap_or_default();
    overrides.keys().try_for_each(|name| figure.series_named(name).map(|_| ()))?;
    let against = file.against.as_deref().map(|name| figure.series_named(name)).transpose()?;
    let cases = file.case.unwrap_or_default();
    unique(cases.iter().map(|case| case.id.as_str()))?;
    if (x == Along::Sweep) != file.sweep.is_some() {
        return Err("`x = \"sweep\"` and `sweep` go together".into());
    }
    if (x == Along::Series) != against.is_some() || (x == Along::Series) == cases.is_empty() {
        return Err("`x = \"series\"`, `against` and `case` go together".into());
    }
    if x == Along::Plane && series.len() != 1 {
        return Err("`x = \"plane\"` shows one series".into());
    }
    if series.is_empty() {
        return Err("it shows no series".into());
    }
    Ok(Panel {
        id: file.id,
        title: file.title,
        x,
        x_label: file.x_label,
        log_x: file.log_x.unwrap_or(false),
        y,
        log_y: file.log_y.unwrap_or(false),
        y_range: file.y_range,
        set: file.set.unwrap_or_default(),
        quick: file.quick.unwrap_or_default(),
        middle: file.middle.unwrap_or_default(),
        axes: Vec::new(),
        series,
        overrides,
        sweep: file.sweep,
        cases,
        against,
    })
}

/// Diagnostics of a round that a figure may show besides the metrics of an evaluation.
const DIAGNOSTICS: &[&str] = &["spread", "kde_ess", "delta_ksd", "delta_hip", "constant_share", "selection_entropy"];

/// Checks that a panel may show this: a metric, or the density of a toy's particles.
fn drawn_metric(name: &str) -> Result<(), String> {
    if name == DENSITY { Ok(()) } else { known_metric(name) }
}

/// Checks that a run may have a metric of this name.
///
/// # Errors
/// It may not: a sentence, with the nearest name.
pub(crate) fn known_metric(name: &str) -> Result<(), String> {
    let metrics: Vec<&str> = Evaluation::default().columns().into_iter().map(|(name, _)| name).collect();
    let measured = || metrics.iter().chain(DIAGNOSTICS).copied().chain(PersonalScores::column_names());
    let known = || measured().chain(TRAFFIC.iter().map(|(name, _)| *name));
    if known().any(|metric| metric == name) {
        return Ok(());
    }
    if let Some(of_rows) = name.strip_prefix("validation_").filter(|of_rows| metrics.contains(of_rows)) {
        return Err(format!(
            "`{name}` is not a metric: with evaluation.rows = \"validation\" `{of_rows}` is that of the validation rows"
        ));
    }
    Err(format!("`{name}` is not a metric{}", did_you_mean(name, known())))
}

/// Parses `metric` or `metric statistic`.
fn also(text: String) -> Result<Also, String> {
    let (metric, at) = text.split_once(' ').map_or((text.as_str(), None), |(metric, at)| (metric, Some(at)));
    known_metric(metric).map_err(|problem| format!("also `{text}`: {problem}"))?;
    let at = at.map(|at| at.parse().map_or_else(|_| Value::String(at.to_owned()), Value::Integer));
    let statistic = statistic(at).map_err(|problem| format!("also `{text}`: {problem}"))?;
    // These statistics need a second curve or a density, which `also` does not have.
    if matches!(statistic, Statistic::EqualUplink | Statistic::Peak | Statistic::PeakAt) {
        return Err(format!("also `{text}`: that statistic compares curves, and this is one"));
    }
    let name = text.replacen(' ', ", ", 1);
    Ok(Also { metric: metric.to_owned(), statistic, name })
}

fn statistic(at: Option<Value>) -> Result<Statistic, String> {
    let text = match at {
        None => return Ok(Statistic::Last),
        Some(Value::Integer(round)) => {
            let round = usize::try_from(round).ok().filter(|round| *round > 0);
            return round.map(Statistic::Round).ok_or_else(|| "rounds count from 1".into());
        }
        Some(Value::String(text)) => text,
        Some(other) => return Err(format!("`at` cannot be {other}")),
    };
    const WORDS: &[&str] =
        &["last", "best", "mean", "stability", "reach X", "visits N", "equal-uplink", "peak", "peak-at"];
    if let Some(Ok(visits)) = text.strip_prefix("visits ").map(str::parse::<usize>) {
        return Ok(Statistic::Visits(visits));
    }
    Ok(match (text.as_str(), text.strip_prefix("reach ").map(str::parse::<f64>)) {
        (_, Some(Ok(level))) if level.is_finite() => Statistic::Reach(level),
        ("last", _) => Statistic::Last,
        ("best", _) => Statistic::Best,
        ("mean", _) => Statistic::Mean,
        ("stability", _) => Statistic::Stability,
        ("equal-uplink", _) => Statistic::EqualUplink,
        ("peak", _) => Statistic::Peak,
        ("peak-at", _) => Statistic::PeakAt,
        _ => return Err(format!("`at` cannot be `{text}`; it is a round or one of {}", list(WORDS))),
    })
}

fn position<T>(all: &[T], name: &str, of: impl Fn(&T) -> &String, what: &str) -> Result<usize, String> {
    all.iter().position(|one| of(one) == name).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|one| of(one).as_str()).collect();
        format!("there is no {what} `{name}`; there are {}", list(&names))
    })
}

/// Names become parts of file names and of references.
fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name == EXACT || !name.chars().all(fits) {
            return Err(format!("`{name}` is not a name: lower-case letters, digits and `-`, and not `{EXACT}`"));
        }
        if seen.contains(&name) {
            return Err(format!("`{name}` stands there twice"));
        }
        seen.push(name);
    }
    Ok(())
}
