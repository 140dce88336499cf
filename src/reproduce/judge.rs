//! Compares the paper's numbers and assertions with ours.

use std::collections::BTreeSet;

use super::curve::{Curve, Results, mean_and_sem};
use super::density::Drawn;
use super::figure::{Along, Also, Claim, DENSITY, Expected, Order, Panel, Scale, Statistic, Target, Term};
use super::grid::Cell;
use super::kept::{Kept, MIB, TRAFFIC};
use super::verdict::{Difference, Verdict};
use crate::metrics::{Direction, Metric};
use crate::protocol::KDE_ESS;

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The panel of the row.
    pub panel: String,
    /// The description of the target or claim.
    pub what: String,
    /// The source of the paper's number.
    pub source: String,
    /// The paper's number or order.
    pub target: String,
    /// Our number, ± one standard error of the mean.
    pub ours: String,
    /// Our number minus the target; for an order, the differences of neighbours.
    pub difference: String,
    /// The verdict on the difference.
    pub verdict: Verdict,
    /// A remark for the reader.
    pub note: String,
    /// The values of [`Figure::also`](super::Figure::also), in its order; empty for an order.
    pub also: Vec<String>,
}

/// Values with their seeds.
type BySeed = Vec<(u64, f64)>;

/// Which values of a metric are better; `None` where neither are. Less traffic is better.
pub fn better(metric: &str) -> Option<Direction> {
    match TRAFFIC.iter().any(|(name, _)| *name == metric) {
        true => Some(Direction::LowerIsBetter),
        false => Metric::of_column(metric).and_then(|metric| metric.better),
    }
}

/// Whether the best value of a metric is its largest, and a level is reached from below.
fn higher_is_better(metric: &str) -> bool {
    better(metric) == Some(Direction::HigherIsBetter) || metric == KDE_ESS
}

/// Judges all targets and claims of a figure.
pub fn judge(results: &Results<'_>, scale: Scale) -> Vec<Row> {
    let targets = results.figure.targets.iter().map(|target| of_target(results, target));
    let claims = results.figure.claims.iter().map(|claim| of_claim(results, claim));
    let mut rows: Vec<Row> = targets.chain(claims).collect();
    if scale == Scale::Quick {
        rows.iter_mut().filter(|row| row.verdict.is_judgement()).for_each(|row| row.verdict = Verdict::NotJudged);
    }
    rows
}

fn of_target(results: &Results<'_>, target: &Target) -> Row {
    let values = read(results, &target.term, &target.metric, target.statistic, target.between, f64::INFINITY);
    let expected = match target.value {
        Expected::Near(value, None) => number(value),
        Expected::Near(value, Some(tolerance)) => format!("{} ± {}", number(value), number(tolerance)),
        Expected::Factor(value, factor) => format!("{}, up to a factor {factor}", number(value)),
        Expected::Between(low, high) => format!("{} to {}", number(low), number(high)),
    };
    let mut row = Row {
        panel: results.figure.panels[target.term.panel].id.clone(),
        what: format!("{}: {}", name(results, &target.term), target.what),
        source: target.source.clone(),
        target: expected,
        ours: String::new(),
        difference: String::new(),
        verdict: Verdict::NotRun,
        note: target.note.clone(),
        also: also(results, &target.term),
    };
    let runs = run(results, &target.term);
    if runs > 0 && !held(results, &target.term, &target.metric, target.statistic) {
        return Row { verdict: Verdict::NeedsRun, ..row };
    }
    if matches!(target.statistic, Statistic::Reach(_)) && values.len() < runs {
        row.note = join(&row.note, &format!("{} of {runs} seeds reach it", values.len()));
    }
    match (values.is_empty(), runs, target.statistic) {
        (false, ..) => {}
        (true, 0, _) => return row,
        (true, _, Statistic::Reach(_)) => {
            return Row { ours: "never".into(), verdict: Verdict::NotConfirmed, ..row };
        }
        (true, ..) => return Row { verdict: Verdict::NoValue, ..row },
    }
    let (ours, sem) = mean_and_sem(&plain(&values));
    row.ours = with_error(ours, sem);
    let (difference, met) = match target.value {
        Expected::Near(value, tolerance) => {
            (ours - value, tolerance.map(|tolerance| (ours - value).abs() <= tolerance))
        }
        Expected::Factor(value, factor) => (ours - value, Some((value / factor..=value * factor).contains(&ours))),
        Expected::Between(low, high) => (ours - ours.clamp(low, high), Some((low..=high).contains(&ours))),
    };
    row.difference = signed(difference);
    row.verdict = Verdict::of_number(met);
    row
}

/// The additional statistics of a target's curve that the figure asks for; `""` where one is not available.
fn also(results: &Results<'_>, term: &Term) -> Vec<String> {
    let of = |asked: &Also| {
        let values = read(results, term, &asked.metric, asked.statistic, None, f64::INFINITY);
        let (mean, sem) = mean_and_sem(&plain(&values));
        let known = held(results, term, &asked.metric, asked.statistic);
        if values.is_empty() || !known { String::new() } else { with_error(mean, sem) }
    };
    results.figure.also.iter().map(of).collect()
}

fn of_claim(results: &Results<'_>, claim: &Claim) -> Row {
    let budget = equal_uplink(results, &claim.terms);
    let of_term = |term: &Term| read(results, term, &claim.metric, claim.statistic, None, budget);
    let values: Vec<BySeed> = claim.terms.iter().map(of_term).collect();
    let one_panel = claim.terms.iter().all(|term| term.panel == claim.terms[0].panel);
    let panel =
        |term: &Term| if one_panel { String::new() } else { format!("{}: ", results.figure.panels[term.panel].id) };
    let names: Vec<String> = claim.terms.iter().map(|term| panel(term) + &name(results, term)).collect();
    let sign = match claim.order {
        Order::Greater => " > ",
        Order::Smaller => " < ",
        Order::Close(_) => " ≈ ",
    };
    let mut row = Row {
        panel: results.figure.panels[claim.terms[0].panel].id.clone(),
        what: claim.what.clone(),
        source: claim.source.clone(),
        target: names.join(sign),
        ours: String::new(),
        difference: String::new(),
        verdict: Verdict::NotRun,
        note: claim.note.clone(),
        also: Vec::new(),
    };
    let shown = |(name, values): (&String, &BySeed)| {
        let (mean, sem) = mean_and_sem(&plain(values));
        if values.is_empty() { format!("{name}: none") } else { format!("{name} {}", with_error(mean, sem)) }
    };
    let lacking = |term: &Term| run(results, term) > 0 && !held(results, term, &claim.metric, claim.statistic);
    if claim.terms.iter().any(lacking) {
        return Row { verdict: Verdict::NeedsRun, ..row };
    }
    row.ours = names.iter().zip(&values).map(shown).collect::<Vec<_>>().join("; ");
    if values.iter().any(Vec::is_empty) {
        let all_run = claim.terms.iter().all(|term| run(results, term) > 0);
        return if all_run { Row { verdict: Verdict::NoValue, ..row } } else { row };
    }
    let pairs: Vec<Difference> = values.windows(2).map(|pair| Difference::of(&pair[0], &pair[1])).collect();
    row.difference = pairs.iter().map(shown_difference).collect::<Vec<_>>().join("; ");
    row.verdict = match claim.order {
        Order::Greater => Verdict::of_order(pairs),
        Order::Smaller => Verdict::of_order(pairs.into_iter().map(Difference::reversed)),
        Order::Close(within) => {
            let means: Vec<f64> = values.iter().map(|values| mean_and_sem(&plain(values)).0).collect();
            let (low, high) = ends(&means);
            row.note = join(&row.note, &format!("close: within {}", number(within)));
            Verdict::of_number(Some(high - low <= within))
        }
    };
    if claim.statistic == Statistic::EqualUplink && budget.is_finite() {
        row.note = join(&row.note, &format!("at {:.1} MiB of uplink", budget / MIB));
    }
    row
}

fn join(note: &str, more: &str) -> String {
    if note.is_empty() { more.to_owned() } else { format!("{note}; {more}") }
}

/// Formats a difference, such as `+0.0061 ± 0.0050, 10 seeds`.
fn shown_difference(difference: &Difference) -> String {
    let Difference { mean, sem, seeds } = difference;
    let error = sem.map_or_else(String::new, |sem| format!(" ± {}", number(sem)));
    let plural = if *seeds == 1 { "" } else { "s" };
    format!("{}{error}, {seeds} seed{plural}", signed(*mean))
}

/// The largest number of uplink bytes that all terms reach, by the mean over seeds.
fn equal_uplink(results: &Results<'_>, terms: &[Term]) -> f64 {
    let total = |term: &Term| {
        let totals: Vec<f64> = found(results, term).map(|(_, _, kept)| kept.bytes_until(usize::MAX).0).collect();
        if totals.is_empty() { f64::INFINITY } else { mean_and_sem(&totals).0 }
    };
    terms.iter().map(total).fold(f64::INFINITY, f64::min)
}

/// The results of a term, each with the index of its cell.
fn found<'r>(results: &'r Results<'_>, term: &'r Term) -> impl Iterator<Item = (usize, u64, &'r Kept)> {
    let of_series = |cell: &Cell| cell.panel == term.panel && Some(cell.series) == term.series;
    let cells = || results.grid.cells.iter().filter(|cell| of_series(cell));
    let slot = match &term.at {
        None => cells().map(|cell| cell.slot).max(),
        Some(at) => cells().find(|cell| same(&cell.case, at)).map(|cell| cell.slot),
    };
    let cells = results.grid.cells.iter().zip(&results.kept).enumerate();
    let wanted = cells.filter(move |(_, (cell, _))| of_series(cell) && Some(cell.slot) == slot);
    wanted.flat_map(|(at, (_, kept))| kept.iter().map(move |(seed, kept)| (at, *seed, kept)))
}

/// Whether a statistic of a metric is available in all results of a term.
fn held(results: &Results<'_>, term: &Term, metric: &str, statistic: Statistic) -> bool {
    metric == DENSITY || found(results, term).all(|(cell, ..)| results.holds(cell, metric, statistic))
}

/// The number of results of a term's series, at any value of a sweep.
fn run(results: &Results<'_>, term: &Term) -> usize {
    match term.series {
        Some(_) => found(results, &Term { at: None, ..term.clone() }).count(),
        None => usize::from(results.toys[term.panel].is_some()),
    }
}

/// Whether `at` is the case's name, or the same number.
fn same(case: &str, at: &str) -> bool {
    let numbers = case.parse::<f64>().ok().zip(at.parse::<f64>().ok());
    case == at || numbers.is_some_and(|(a, b)| a == b)
}

/// The statistic of a term, by seed; empty where the term was not run or has no value.
fn read(
    results: &Results<'_>,
    term: &Term,
    metric: &str,
    statistic: Statistic,
    between: Option<(f64, f64)>,
    budget: f64,
) -> BySeed {
    if metric == DENSITY {
        return peaks(results, term, statistic, between);
    }
    let value = |(at, seed, kept): (usize, u64, &Kept)| {
        let cell = &results.grid.cells[at];
        let value = match (statistic, results.figure.series[cell.series].round) {
            (Statistic::Last, Some(_)) => results.final_value(cell, kept, metric),
            _ => of_curve(kept, metric, statistic, budget),
        };
        Some((seed, value?))
    };
    found(results, term).filter_map(value).collect()
}

/// Computes a statistic of a metric over the rounds of a run.
pub fn of_curve(kept: &Kept, metric: &str, statistic: Statistic, budget: f64) -> Option<f64> {
    let curve = kept.values(metric);
    let values: Vec<f64> = curve.iter().map(|(_, value)| *value).collect();
    match statistic {
        Statistic::Round(round) => curve.iter().find(|(at, _)| *at == round).map(|(_, value)| *value),
        Statistic::Last => kept.result(metric),
        Statistic::Best => {
            let better = if higher_is_better(metric) { f64::max } else { f64::min };
            values.into_iter().reduce(better)
        }
        Statistic::Mean => (!values.is_empty()).then(|| mean_and_sem(&values).0),
        Statistic::Stability => {
            let changes: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let late = &changes[changes.len() / 2..];
            // `mean_and_sem` returns the standard error; times √n it is the standard deviation.
            mean_and_sem(late).1.map(|sem| sem * (late.len() as f64).sqrt())
        }
        Statistic::Reach(level) => {
            let up = higher_is_better(metric);
            curve.iter().find(|(_, value)| if up { *value >= level } else { *value <= level }).map(|(at, _)| *at as f64)
        }
        Statistic::Visits(visits) => {
            let within = curve.iter().take_while(|(round, _)| kept.visits_until(*round) <= visits);
            within.last().map(|(_, value)| *value)
        }
        Statistic::EqualUplink => {
            let within = curve.iter().take_while(|(round, _)| kept.bytes_until(*round).0 <= budget);
            within.last().map(|(_, value)| *value)
        }
        Statistic::Peak | Statistic::PeakAt => None,
    }
}

/// The height or the place of the highest point of a density, by seed.
fn peaks(results: &Results<'_>, term: &Term, statistic: Statistic, between: Option<(f64, f64)>) -> BySeed {
    let Some(toy) = &results.toys[term.panel] else { return Vec::new() };
    let inside = |x: f64| between.is_none_or(|(low, high)| (low..=high).contains(&x));
    let highest = |points: &mut dyn Iterator<Item = (f64, f64)>| {
        let (at, height) = points.filter(|(x, _)| inside(*x)).max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(if statistic == Statistic::PeakAt { at } else { height })
    };
    let Some(series) = term.series else {
        let Drawn { points, values } = toy.exact();
        let mut points = points.into_iter().map(|point| point[0]).zip(values);
        return highest(&mut points).map(|value| (0, value)).into_iter().collect();
    };
    let own = || results.samples[term.panel].iter().filter(|sample| sample.curve == Curve::Series(series));
    let seeds: BTreeSet<u64> = own().map(|sample| sample.seed).collect();
    let of_seed = |seed: u64| {
        let mut points = own().filter(|sample| sample.seed == seed).map(|sample| (sample.x, sample.value));
        Some((seed, highest(&mut points)?))
    };
    seeds.into_iter().filter_map(of_seed).collect()
}

fn plain(values: &[(u64, f64)]) -> Vec<f64> {
    values.iter().map(|(_, value)| *value).collect()
}

fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)))
}

fn name(results: &Results<'_>, term: &Term) -> String {
    let curve = term.series.map_or(Curve::Exact, Curve::Series);
    let series = results.curve_name(curve);
    match &term.at {
        Some(at) => format!("{series} @ {at}"),
        None => series,
    }
}

/// Formats a number for the tables.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size < 1e-12 => "0".into(),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.2}"),
        size if size < 1e-3 => format!("{value:.1e}"),
        _ => format!("{value:.4}"),
    }
}

/// Formats a difference for the tables, with its sign.
pub fn signed(value: f64) -> String {
    if value >= 0.0 { format!("+{}", number(value)) } else { number(value) }
}

/// Formats a mean with its standard error, such as `0.7512 ± 0.0010`.
pub fn with_error(mean: f64, sem: Option<f64>) -> String {
    sem.map_or_else(|| number(mean), |sem| format!("{} ± {}", number(mean), number(sem)))
}

/// Statistics of one series' curve over rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The panel.
    pub panel: String,
    /// The series' name.
    pub series: String,
    /// The number of seeds.
    pub seeds: usize,
    /// The metric.
    pub metric: String,
    /// Last value, best value, mean over rounds, stability, and the value at equal uplink: mean and standard error.
    pub numbers: [Option<(f64, Option<f64>)>; 5],
    /// Uplink bytes of a whole run; `None` where unknown.
    pub uplink: Option<f64>,
    /// Seconds of a run; `None` where unknown.
    pub seconds: Option<f64>,
}

/// The names of the columns of [`Summary::numbers`] and their statistics.
pub const SUMMARISED: [(&str, Statistic); 5] = [
    ("last", Statistic::Last),
    ("best", Statistic::Best),
    ("mean over rounds", Statistic::Mean),
    ("stability", Statistic::Stability),
    ("at equal uplink", Statistic::EqualUplink),
];

/// The summaries of a figure's curves over rounds.
pub fn summaries(results: &Results<'_>) -> Vec<Summary> {
    let over_rounds = |panel: &Panel| matches!(panel.x, Along::Round | Along::UplinkBytes | Along::DownlinkBytes);
    let mut summaries: Vec<Summary> = Vec::new();
    let mut seen: Vec<(Vec<&str>, &str)> = Vec::new();
    for (at, panel) in results.figure.panels.iter().enumerate().filter(|(_, panel)| over_rounds(panel)) {
        // Panels that show the same runs over different axes have the same numbers.
        let configs: Vec<&str> =
            results.of_panel(at).flat_map(|(_, kept)| kept.iter().map(|(_, kept)| kept.config.as_str())).collect();
        let key = (configs, panel.y.as_str());
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let terms: Vec<Term> = results
            .of_panel(at)
            .filter(|(cell, _)| !results.figure.series[cell.series].flat)
            .map(|(cell, _)| Term { panel: at, series: Some(cell.series), at: None })
            .collect();
        let budget = equal_uplink(results, &terms);
        let budget_is_known = terms.iter().all(|term| held(results, term, &panel.y, Statistic::EqualUplink));
        let cells = results.grid.cells.iter().zip(&results.kept).enumerate();
        for (place, (cell, kept)) in cells.filter(|(_, (cell, kept))| cell.panel == at && !kept.is_empty()) {
            let of = |statistic| {
                if !results.holds(place, &panel.y, statistic)
                    || (statistic == Statistic::EqualUplink && !budget_is_known)
                {
                    return None;
                }
                let values: Vec<f64> =
                    kept.iter().filter_map(|(_, kept)| of_curve(kept, &panel.y, statistic, budget)).collect();
                (!values.is_empty()).then(|| mean_and_sem(&values))
            };
            let uplink =
                || kept.iter().map(|(_, kept)| kept.bytes_until(usize::MAX).0).sum::<f64>() / kept.len() as f64;
            let known = results.held.as_ref().is_none_or(|held| held[place].uplink);
            summaries.push(Summary {
                panel: panel.id.clone(),
                series: results.figure.series[cell.series].name.clone(),
                seeds: kept.len(),
                metric: panel.y.clone(),
                numbers: SUMMARISED.map(|(_, statistic)| of(statistic)),
                uplink: known.then(uplink),
                seconds: results.seconds[place],
            });
        }
    }
    summaries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::RoundRecord;

    fn kept(values: &[f64]) -> Kept {
        let mut kept: Kept = serde_json::from_str(
            r#"{"version":1,"config":"","seconds":0,"notes":[],"metrics":["accuracy"],"rounds":[],"bins":[]}"#,
        )
        .unwrap();
        let round = |(at, value): (usize, &f64)| RoundRecord {
            clients: vec![0],
            uplink_bytes: 100,
            ..RoundRecord::new(at + 1, [("accuracy", Some(*value))])
        };
        kept.rounds = values.iter().enumerate().map(round).collect();
        kept
    }

    #[test]
    fn statistics_of_a_curve_are_what_their_names_say() {
        let kept = kept(&[0.2, 0.6, 0.8, 0.7, 0.9, 0.7]);
        let of = |statistic| of_curve(&kept, "accuracy", statistic, 350.0);
        assert_eq!(of(Statistic::Last), Some(0.7));
        assert_eq!(of(Statistic::Best), Some(0.9));
        assert_eq!(of(Statistic::Round(2)), Some(0.6));
        assert_eq!(of(Statistic::Round(7)), None);
        assert_eq!(of(Statistic::Reach(0.75)), Some(3.0));
        assert_eq!(of(Statistic::Reach(0.95)), None);
        assert!((of(Statistic::Mean).unwrap() - 0.65).abs() < 1e-15);
        // The budget of 350 bytes pays for three rounds of 100.
        assert_eq!(of(Statistic::EqualUplink), Some(0.8));
        // A round is a visit of one client here.
        assert_eq!(of(Statistic::Visits(5)), Some(0.9));
        assert_eq!(of(Statistic::Visits(60)), Some(0.7));
        assert_eq!(of(Statistic::Visits(0)), None);
        // The changes are .4 .2 -.1 .2 -.2; the last half is -.1 .2 -.2 with mean -1/30 and sd .2082.
        assert!((of(Statistic::Stability).unwrap() - 0.208_166_6).abs() < 1e-6);
        assert_eq!(of_curve(&kept, "nll", Statistic::Last, 0.0), None);
    }

    #[test]
    fn a_curve_reaches_a_level_in_the_direction_in_which_its_metric_is_better() {
        let reach = |metric: &'static str, values: &[f64], level| {
            let mut kept = kept(&[]);
            let round = |(at, value): (usize, &f64)| RoundRecord::new(at + 1, [(metric, Some(*value))]);
            kept.rounds = values.iter().enumerate().map(round).collect();
            of_curve(&kept, metric, Statistic::Reach(level), 0.0)
        };
        assert_eq!(reach("nll", &[0.9, 0.5, 0.3], 0.4), Some(3.0));
        assert_eq!(reach("nll", &[0.3, 0.5], 0.4), Some(1.0));
        // A curve that begins above the level has reached it, whether or not it falls below it later.
        assert_eq!(reach("accuracy", &[0.72, 0.69, 0.72], 0.7), Some(1.0));
        assert_eq!(reach("accuracy", &[0.65, 0.65, 0.7], 0.7), Some(3.0));
        assert_eq!(reach("accuracy", &[0.65, 0.69], 0.7), None);
    }

    #[test]
    fn a_difference_is_shown_with_its_error_and_its_seeds() {
        // The seeds differ much more than the methods: the paired error is small.
        let shown = |a: &[(u64, f64)], b: &[(u64, f64)]| shown_difference(&Difference::of(a, b));
        assert_eq!(shown(&[(1, 0.5), (2, 0.75)], &[(2, 0.5), (1, 0.25)]), "+0.2500 ± 0, 2 seeds");
        assert_eq!(shown(&[(1, 0.25)], &[(2, 0.0), (1, 0.5)]), "-0.2500, 1 seed");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0.0, 0.75123, -1.1, 12.5, 12345.6, 2e-5].map(number),
            ["0", "0.7512", "-1.1000", "12.50", "12346", "2.0e-5"]
        );
        assert_eq!((signed(0.5), signed(-0.5)), ("+0.5000".into(), "-0.5000".into()));
        assert!(same("8", "8.0") && same("image", "image") && !same("8", "80"));
    }
}
