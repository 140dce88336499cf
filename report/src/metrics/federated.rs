//! Summaries of a metric over clients: pooled, averaged, worst.

use serde::Serialize;

use super::error::finite;

/// A metric of one client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClientValue {
    /// Test rows of the client.
    pub rows: usize,
    /// The metric; `None` where the client has none.
    pub value: Option<f64>,
}

/// Whether large or small values of a metric are the better ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Accuracy: the worst client has the smallest value.
    HigherIsBetter,
    /// NLL, ECE, RMSE: the worst client has the largest value.
    LowerIsBetter,
}

/// The summaries of a metric over clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClientSummary {
    /// Clients that have the metric.
    pub clients: usize,
    /// Weighted by rows. Equals the metric of the pooled rows for means over rows (accuracy, NLL,
    /// Brier); the pooled ECE needs the pooled predictions.
    pub micro: Option<f64>,
    /// Plain mean over clients, the headline.
    pub macro_mean: Option<f64>,
    /// Value of the worst client.
    pub worst: Option<f64>,
    /// Standard error of the plain mean.
    pub sem: Option<f64>,
}

/// Summarises a metric over clients; clients without a value are left out.
pub fn summarise_clients(clients: &[ClientValue], direction: Direction) -> ClientSummary {
    let known: Vec<(usize, f64)> = clients.iter().filter_map(|c| Some((c.rows, finite(c.value?)?))).collect();
    let values: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
    let rows: usize = known.iter().map(|(rows, _)| rows).sum();
    let pooled: f64 = known.iter().map(|(rows, value)| *rows as f64 * value).sum();
    let worse = |a: f64, b: f64| match direction {
        Direction::HigherIsBetter => a.min(b),
        Direction::LowerIsBetter => a.max(b),
    };
    ClientSummary {
        clients: known.len(),
        micro: if rows == 0 { None } else { finite(pooled / rows as f64) },
        macro_mean: super::error::mean(values.iter().copied()),
        worst: values.iter().copied().reduce(worse),
        sem: standard_error(&values),
    }
}

/// Standard error of a mean over trials, `sd / sqrt(k)` with the `k - 1` standard deviation; `None`
/// for fewer than two values. A report also states `k`.
pub fn standard_error(values: &[f64]) -> Option<f64> {
    let k = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / k;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (k - 1.0);
    finite((variance / k).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micro_weights_rows_macro_weights_clients() {
        let clients = [(10, Some(1.0)), (30, Some(0.5)), (5, None)].map(|(rows, value)| ClientValue { rows, value });
        let got = summarise_clients(&clients, Direction::HigherIsBetter);
        assert_eq!((got.clients, got.micro, got.macro_mean, got.worst), (2, Some(0.625), Some(0.75), Some(0.5)));
        // sd of (1, 0.5) is 0.35355; over sqrt(2): 0.25.
        assert!(got.sem.is_some_and(|sem| (sem - 0.25).abs() < 1e-15));
    }

    #[test]
    fn no_client_gives_no_number() {
        let got = summarise_clients(&[], Direction::LowerIsBetter);
        assert_eq!(got, ClientSummary { clients: 0, micro: None, macro_mean: None, worst: None, sem: None });
    }
}
