//! Formats lines as text, in 100 columns.

use std::fmt::Write as _;

use super::activity;
use super::growth::Series;
use super::roofline::Ceilings;
use super::timing::{Bench, Line};
use crate::machine;

/// The number of cores that other processes use on average, beyond which a line is marked: a tenth, as in the
/// yardsticks.
const DISTURBED: f64 = 0.1;

/// The description of the machine and the backend.
pub fn heading(bench: &Bench) -> String {
    let processor = machine::processor().unwrap_or_else(|| "unknown".into());
    let load = activity::load().map_or_else(String::new, |load| format!(", load {load:.2}"));
    let threads = rayon::current_num_threads();
    format!(
        "processor  {processor}, {threads} threads{load}\nbackend    {}: {}, f32\n",
        bench.session.backend().name(),
        bench.session.hardware()
    )
}

/// The measured limits, and the headings of the columns.
pub fn columns(ceilings: &Ceilings) -> String {
    format!(
        "limits     matrix product {:.1} GFLOP/s, copy {:.1} GB/s, measured now\n\n{:<26}{:>10}{:>10}{:>10}{:>8}{:>13}{:>10}{:>9}\n",
        ceilings.gflops,
        ceilings.gbs,
        "workload",
        "median ms",
        "min",
        "max",
        "GFLOP",
        "roofline ms",
        "achieved",
        "foreign"
    )
}

/// One line, and its notes on a second one.
pub fn row(Line { record, cost, allocations }: &Line, ceilings: &Ceilings) -> String {
    let milliseconds = |value: f64| if value < 1000.0 { format!("{value:.3}") } else { format!("{value:.1}") };
    let [median, min, max] = [record.median, record.min, record.max].map(milliseconds);
    let (gflop, roofline, achieved) = match cost {
        Some(cost) => {
            let (gflop, bound) = (1e-9 * cost.flops, ceilings.milliseconds(*cost));
            let digits = usize::from(gflop < 100.0) + 2 * usize::from(gflop < 10.0);
            (format!("{gflop:.digits$}"), milliseconds(bound), format!("{:.0} %", 100.0 * bound / record.median))
        }
        None => Default::default(),
    };
    let foreign = record
        .foreign
        .map_or_else(String::new, |share| format!("{share:.2}{}", if share > DISTURBED { "!" } else { "" }));
    let mut text = format!(
        "{:<26}{median:>10}{min:>10}{max:>10}{gflop:>8}{roofline:>13}{achieved:>10}{foreign:>9}\n",
        record.name
    );
    let allocations = allocations.map(|count| format!("{count:.0} allocations"));
    let notes: Vec<&str> = [record.note.as_str(), allocations.as_deref().unwrap_or("")]
        .into_iter()
        .filter(|note| !note.is_empty())
        .collect();
    if !notes.is_empty() {
        let _ = writeln!(text, "    {}", notes.join("; "));
    }
    text
}

/// The explanation of the columns.
pub fn explanation(lines: &[Line]) -> String {
    let mut text = "\nroofline: the work's operations at the matrix product's speed plus its bytes at the copy's;\n\
                    achieved: roofline over median. foreign: cores that other processes used at the same time.\n"
        .to_owned();
    if lines.iter().any(|line| line.record.foreign.is_some_and(|share| share > DISTURBED)) {
        text += "! other processes used more than a tenth of a core: repeat such a line on an idle machine.\n";
    }
    text
}

/// The times of a series and its exponents.
pub fn growth(series: &Series) -> String {
    let symbol = series.variable.symbol();
    let cells = |pick: &dyn Fn(&(usize, f64)) -> String| -> String {
        series.points.iter().map(|point| format!("{:>11}", pick(point))).collect()
    };
    format!(
        "\n{}\n{symbol:>4} {}\n  ms {}\n     time ~ {symbol}^{:.2}, over the last doubling {symbol}^{:.2}\n",
        series.variable.what(),
        cells(&|(x, _)| x.to_string()),
        cells(&|(_, t)| format!("{t:.3}")),
        series.exponent(),
        series.last_exponent()
    )
}
