//! Personalised evaluation: how well each client's personal predictor does on that client's own rows.
//!
//! A client sends sums over its rows, never a row; sums of several clients add up, so the pooled (micro) numbers, the
//! pooled calibration error among them, are exact.

use super::client_scores::ClientScores;
use super::federated::{ClientSummary, ClientValue, Direction, summarise_clients};
use super::metric::{Metric, Over, PersonalColumn, View};

/// All clients' scores, by client.
#[derive(Debug, Clone)]
pub struct PersonalScores {
    clients: Vec<ClientScores>,
    pooled: ClientScores,
}

impl PersonalScores {
    /// The scores of these clients; `None` without a client, or where they are not of one kind.
    pub fn new(clients: Vec<ClientScores>) -> Option<Self> {
        let mut pooled = clients.first()?.clone();
        clients[1..].iter().try_for_each(|client| pooled.merge(client)).ok()?;
        Some(Self { clients, pooled })
    }

    /// Every client's scores, `[clients]`.
    pub fn clients(&self) -> &[ClientScores] {
        &self.clients
    }

    /// The pooled rows of all clients (micro).
    pub fn pooled(&self) -> &ClientScores {
        &self.pooled
    }

    /// A metric over clients: mean, worst, standard error. Clients without rows are left out.
    pub fn over_clients(&self, metric: fn(&ClientScores) -> Option<f64>, direction: Direction) -> ClientSummary {
        let value = |client: &ClientScores| ClientValue { rows: client.rows(), value: metric(client) };
        summarise_clients(&self.clients.iter().map(value).collect::<Vec<_>>(), direction)
    }

    /// The columns of `rounds.csv`: micro (pooled rows) without a suffix, then the mean over clients and the worst.
    pub fn columns(&self) -> Vec<(&'static str, Option<f64>)> {
        let value = |metric: &Metric, over: Over| {
            let of = metric.sums?;
            let summary = || self.over_clients(of, metric.better.unwrap_or(Direction::LowerIsBetter));
            match over {
                Over::Rows => of(&self.pooled),
                Over::Clients => summary().macro_mean,
                Over::Worst => summary().worst,
            }
        };
        table().map(|(metric, column)| (column.key, value(metric, column.over))).collect()
    }

    /// The names of the columns.
    pub fn column_names() -> impl Iterator<Item = &'static str> {
        table().map(|(_, column)| column.key)
    }
}

/// The columns in order, each with its metric.
fn table() -> impl Iterator<Item = (&'static Metric, &'static PersonalColumn)> {
    let of_metric = |metric: &'static Metric| metric.personal.iter().map(move |column| (metric, column));
    Metric::in_view(View::Personal).into_iter().flat_map(of_metric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::ParticleLogProbs;

    fn log_probs(rows: &[[f64; 2]]) -> ParticleLogProbs {
        let values: Vec<f32> = rows.iter().flatten().map(|p| p.ln() as f32).collect();
        ParticleLogProbs::from_f32(1, rows.len(), 2, values).unwrap()
    }

    fn scores(rows: &[[f64; 2]], labels: &[usize]) -> ClientScores {
        let mut scores = ClientScores::of_classes(2, 10);
        scores.add_classes(&log_probs(rows), labels).unwrap();
        scores
    }

    #[test]
    fn a_mean_over_clients_weighs_clients_and_not_rows() {
        let a = scores(&[[0.9, 0.1], [0.4, 0.6]], &[0, 0]);
        let b = scores(&[[0.25, 0.75], [0.8, 0.2], [0.55, 0.45]], &[1, 0, 1]);
        let personal = PersonalScores::new(vec![a, b]).unwrap();
        // Accuracies 1/2 and 2/3: the pooled one is 3/5, the mean over clients 7/12.
        let accuracy = personal.over_clients(ClientScores::accuracy, Direction::HigherIsBetter);
        assert!((accuracy.macro_mean.unwrap() - 7.0 / 12.0).abs() < 1e-12);
        assert_eq!((personal.pooled().accuracy(), accuracy.worst), (Some(0.6), Some(0.5)));
        let column = |key| personal.columns().into_iter().find(|(name, _)| *name == key).unwrap().1;
        assert_eq!(column("personal_accuracy"), Some(0.6));
        assert_eq!(column("personal_accuracy_macro"), accuracy.macro_mean);
        assert!(personal.columns().into_iter().map(|(name, _)| name).eq(PersonalScores::column_names()));
    }

    #[test]
    fn a_client_without_rows_has_no_number_and_does_not_count() {
        let personal = PersonalScores::new(vec![scores(&[[0.9, 0.1]], &[0]), ClientScores::of_classes(2, 10)]).unwrap();
        assert_eq!(personal.clients()[1].accuracy(), None);
        let accuracy = personal.over_clients(ClientScores::accuracy, Direction::HigherIsBetter);
        assert_eq!((accuracy.clients, accuracy.macro_mean), (1, Some(1.0)));
        assert!(PersonalScores::new(Vec::new()).is_none());
        assert!(PersonalScores::new(vec![ClientScores::of_classes(2, 10), ClientScores::of_targets()]).is_none());
    }
}
