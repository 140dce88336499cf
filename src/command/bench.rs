//! `fedstein bench`: the workloads W1 to W7 timed on this machine, beside what it could do; or how time grows with size.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use crate::backend::{Backend, OnBackend, Precision, Session, dispatch};
use crate::bench::growth::{self, Series, Variable};
use crate::bench::{Bench, Ceilings, Line, Settings, Size, machine};
use crate::cli::{self, CliError, print_text};
use crate::error::RunError;
use crate::report::write_atomic;

/// Cores that others take on average, beyond which a line is marked: a tenth, as in the yardsticks.
const DISTURBED: f64 = 0.1;

pub(super) fn bench(typed: cli::Bench) -> Result<(), CliError> {
    if let Some(threads) = typed.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
        pool.map_err(|error| CliError::Failed(format!("cannot start {threads} threads: {error}")))?;
    }
    let backend = typed.backend.clone();
    dispatch(&backend, Job(typed))?
}

struct Job(cli::Bench);

impl OnBackend for Job {
    type Output = Result<(), CliError>;

    fn run<B: Backend>(self) -> Result<(), CliError> {
        let Self(typed) = self;
        let json = typed.json.as_deref().map(appended).transpose()?;
        let settings = Settings { seconds: typed.seconds, size: Size::Full, allocations: None };
        let session = Session::<B>::open(Precision::F32).map_err(RunError::from)?;
        let bench = Bench { session, settings };
        print_text(&heading(&bench))?;
        match &typed.growth {
            Some(path) => grow(&bench, path),
            None => table(&bench, &typed, json),
        }
    }
}

/// A file that lines are appended to.
fn appended(path: &Path) -> Result<File, CliError> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|error| CliError::Usage(format!("cannot write {}: {error}", path.display())))
}

/// On what everything ran.
fn heading<B: Backend>(bench: &Bench<B>) -> String {
    let processor = machine::processor().unwrap_or_else(|| "unknown".into());
    let load = machine::load().map_or_else(String::new, |load| format!(", load {load:.2}"));
    let threads = rayon::current_num_threads();
    format!(
        "processor  {processor}, {threads} threads{load}\nbackend    {}: {}, f32\n",
        B::NAME,
        bench.session.hardware()
    )
}

fn table<B: Backend>(bench: &Bench<B>, typed: &cli::Bench, mut json: Option<File>) -> Result<(), CliError> {
    let ceilings = Ceilings::measure(bench)?;
    print_text(&format!(
        "limits     matrix product {:.1} GFLOP/s, copy {:.1} GB/s, measured now\n\n{}",
        ceilings.gflops,
        ceilings.gbs,
        columns()
    ))?;
    let mut disturbed = false;
    for workload in &typed.only {
        for line in workload.measure(bench)? {
            disturbed |= line.record.foreign.is_some_and(|share| share > DISTURBED);
            if let Some(file) = &mut json {
                let text = serde_json::to_string(&line.record).map_err(|error| CliError::Failed(error.to_string()))?;
                // One write a line: another program may append to the same file.
                let written = file.write_all(format!("{text}\n").as_bytes());
                written.map_err(|error| CliError::Failed(format!("cannot write the JSON file: {error}")))?;
            }
            print_text(&row(&line, &ceilings))?;
        }
    }
    print_text(&explanation(disturbed))
}

fn columns() -> String {
    format!(
        "{:<26}{:>10}{:>10}{:>10}{:>8}{:>13}{:>10}{:>9}\n",
        "workload", "median ms", "min", "max", "GFLOP", "roofline ms", "achieved", "foreign"
    )
}

fn row(Line { record, cost, allocations }: &Line, ceilings: &Ceilings) -> String {
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

fn explanation(disturbed: bool) -> String {
    let mut text = "\nroofline: the work's operations at the speed of the matrix product, plus its bytes at that of \
                    the copy;\nachieved: roofline over median. foreign: cores that other processes took meanwhile.\n"
        .to_owned();
    if disturbed {
        text += "! more than a tenth of a core was not ours: repeat such a line on a quiet machine.\n";
    }
    text
}

fn grow<B: Backend>(bench: &Bench<B>, path: &Path) -> Result<(), CliError> {
    let mut all: Vec<Series> = Vec::new();
    for variable in Variable::ALL {
        let series = variable.measure(bench)?;
        print_text(&growth_text(&series))?;
        all.push(series);
    }
    let on = format!("{} on {}", B::NAME, bench.session.hardware());
    if let Some(svg) = growth::picture(&all, &on).svg() {
        write_atomic(path, svg.as_bytes()).map_err(|error| CliError::Failed(error.to_string()))?;
        print_text(&format!("\npicture    {}\n", path.display()))?;
    }
    Ok(())
}

fn growth_text(series: &Series) -> String {
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
