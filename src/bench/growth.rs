//! Growth of time with the number of particles N, the dimension d, the clients K and the minibatch B: each is doubled
//! four times while the others are fixed, and the exponent of a power law is fitted to the points.

use super::cost::Networks;
use super::network_step::Step;
use super::selection::Selection;
use super::size::Size;
use super::timing::Bench;
use crate::error::RunError;
use crate::report::{AxisSpec, FigureLine, FigurePoint, LineFigure, Stroke};

/// The size that is doubled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The number of particles N, in an SVGD step of the network 784-100-10 on 100 rows.
    Particles,
    /// The dimension d, in an SVGD step of 20 networks 784-H-10 on 100 rows, through H.
    Dimension,
    /// The number of clients K, in a selection by Hilbert inner product with 10 networks and 100 rows per client.
    Clients,
    /// The size B of a minibatch, in an SVGD step of 20 networks 784-100-10.
    Batch,
}

/// Times against one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The size that is doubled.
    pub variable: Variable,
    /// The values of the size, each with the median milliseconds.
    pub points: Vec<(usize, f64)>,
}

impl Variable {
    /// All variables.
    pub const ALL: [Self; 4] = [Self::Particles, Self::Dimension, Self::Clients, Self::Batch];

    /// The variable's symbol.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Particles => "N",
            Self::Dimension => "d",
            Self::Clients => "K",
            Self::Batch => "B",
        }
    }

    /// A description of the timed work.
    pub fn what(self) -> &'static str {
        match self {
            Self::Particles => "SVGD step, 784-100-10, B = 100",
            Self::Dimension => "SVGD step, 784-H-10, N = 20, B = 100",
            Self::Clients => "selection by HIP, 784-100-10, N = 10, 100 rows a client",
            Self::Batch => "SVGD step, 784-100-10, N = 20",
        }
    }

    fn first(self, size: Size) -> usize {
        match self {
            Self::Particles => size.pick(5, 2),
            // The variable is the number of hidden units.
            Self::Dimension => size.pick(25, 2),
            Self::Clients => size.pick(8, 2),
            Self::Batch => size.pick(25, 2),
        }
    }

    /// Times the work at all values.
    ///
    /// # Errors
    /// The device fails, or particles diverge.
    pub fn measure(self, bench: &Bench) -> Result<Series, RunError> {
        let doublings = bench.settings.size.pick(4, 1);
        let values = (0..=doublings).map(|power| self.first(bench.settings.size) << power);
        let points = values.map(|value| self.point(value, bench)).collect::<Result<_, _>>()?;
        Ok(Series { variable: self, points })
    }

    fn point(self, value: usize, bench: &Bench) -> Result<(usize, f64), RunError> {
        let size = bench.settings.size;
        let (count, rows) = size.pick((20, 100), (2, 3));
        let step = |networks: Networks, rows: usize| {
            let steps = 3;
            let mut step = Step::of_network(networks, rows, &bench.session)?;
            let timed = bench.time(|| step.run(steps))?;
            Ok::<f64, RunError>(super::timing::median(&timed.milliseconds) / steps as f64)
        };
        Ok(match self {
            Self::Particles => (value, step(Networks::mnist(value), rows)?),
            Self::Dimension => {
                let networks = Networks { hidden: value, ..Networks::mnist(count) };
                (networks.dim(), step(networks, rows)?)
            }
            Self::Batch => (value, step(Networks::mnist(count), value)?),
            Self::Clients => {
                let selection = Selection::new(value, size.pick(100, 3), size.pick(10, 2), bench)?;
                let timed = bench.time(|| selection.run().map(drop))?;
                (value, super::timing::median(&timed.milliseconds))
            }
        })
    }
}

impl Series {
    /// The exponent p of t ∝ x^p, by least squares on logarithms.
    pub fn exponent(&self) -> f64 {
        let logs: Vec<(f64, f64)> = self.points.iter().map(|(x, t)| ((*x as f64).ln(), t.ln())).collect();
        let count = logs.len() as f64;
        let mean = logs.iter().fold((0.0, 0.0), |sum, (x, t)| (sum.0 + x / count, sum.1 + t / count));
        let products = logs.iter().map(|(x, t)| ((x - mean.0) * (t - mean.1), (x - mean.0).powi(2)));
        let (covariance, variance) = products.fold((0.0, 0.0), |sum, (xt, xx)| (sum.0 + xt, sum.1 + xx));
        covariance / variance
    }

    /// The exponent of the last doubling, which is closer to the behaviour at larger sizes.
    pub fn last_exponent(&self) -> f64 {
        Self { points: self.points[self.points.len().saturating_sub(2)..].to_vec(), ..*self }.exponent()
    }
}

/// Draws all series against the number of doublings, both axes logarithmic.
pub fn picture(series: &[Series], on: &str) -> LineFigure {
    let line = |series: &Series| {
        let first = series.points.first().map_or(1, |(x, _)| *x) as f64;
        let symbol = series.variable.symbol();
        let points = series.points.iter().map(|(x, t)| FigurePoint { x: *x as f64 / first, y: *t, spread: 0.0 });
        FigureLine {
            name: format!("{symbol} from {first}: time ~ {symbol}^{:.2}", series.exponent()),
            stroke: Stroke::Marked,
            points: points.collect(),
        }
    };
    let axis = |label: &str| AxisSpec { label: label.into(), log: true, range: None };
    LineFigure {
        title: "Time against size".into(),
        subtitle: on.into(),
        x: axis("times the smallest size"),
        y: axis("milliseconds"),
        lines: series.iter().map(line).collect(),
        diagonal: false,
    }
}
