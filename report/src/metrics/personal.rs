//! Personalised evaluation: how well each client's own predictor does on that client's own rows.
//!
//! A client sends sums over its rows, never a row; sums of several clients add up, so the pooled (micro) numbers, the
//! pooled calibration error among them, are exact. Source: ALGORITHMS 6.8.

use super::client_scores::ClientScores;
use super::federated::{ClientSummary, ClientValue, Direction, summarise_clients};
use super::metric::{Metric, Over, PersonalMetric, View};

/// All clients' scores, by client.
#[derive(Debug, Clone)]
pub struct PersonalScores {
    clients: Vec<ClientScores>,
    pooled: ClientScores,
}

impl PersonalScores {
    /// The scores of these clients; `None` without a client.
    pub fn new(clients: Vec<ClientScores>) -> Option<Self> {
        let mut pooled = clients.first()?.clone();
        clients[1..].iter().for_each(|client| pooled.merge(client));
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
        let personal =
            Metric::in_view(View::Personal).into_iter().filter_map(|metric| Some((metric, metric.personal?)));
        let value = |metric: &Metric, of: PersonalMetric, over: Over| {
            let summary = || self.over_clients(of.of, metric.better.unwrap_or(Direction::LowerIsBetter));
            match over {
                Over::Rows => (of.of)(&self.pooled),
                Over::Clients => summary().macro_mean,
                Over::Worst => summary().worst,
            }
        };
        let columns = personal.flat_map(|(metric, of)| of.columns.iter().map(move |column| (metric, of, column)));
        columns.map(|(metric, of, column)| (column.key, value(metric, of, column.over))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Evaluation, ParticleLogProbs};

    fn log_probs(rows: &[[f64; 2]]) -> ParticleLogProbs {
        let values: Vec<f32> = rows.iter().flatten().map(|p| p.ln() as f32).collect();
        ParticleLogProbs::from_f32(1, rows.len(), 2, &values).unwrap()
    }

    fn scores(rows: &[[f64; 2]], labels: &[usize]) -> ClientScores {
        let mut scores = ClientScores::new(10);
        scores.add_classes(&log_probs(rows), labels).unwrap();
        scores
    }

    #[test]
    fn pooled_sums_are_the_scores_of_the_pooled_rows() {
        let (a, b) = ([[0.9, 0.1], [0.4, 0.6]], [[0.25, 0.75], [0.8, 0.2], [0.55, 0.45]]);
        let (of_a, of_b) = ([0, 0], [1, 0, 1]);
        let personal = PersonalScores::new(vec![scores(&a, &of_a), scores(&b, &of_b)]).unwrap();
        let all = [a.as_slice(), b.as_slice()].concat();
        let expected = Evaluation::classification(&log_probs(&all), &[of_a.as_slice(), &of_b].concat(), 10).unwrap();
        let pooled = personal.pooled();
        for (got, want) in [
            (pooled.accuracy(), expected.accuracy),
            (pooled.nll(), expected.nll),
            (pooled.ece(), expected.ece),
            (pooled.mce(), expected.mce),
            (pooled.brier(), expected.brier),
            (pooled.accuracy_mean_particle(), expected.accuracy_mean_particle),
        ] {
            assert!((got.unwrap() - want.unwrap()).abs() < 1e-12, "{got:?} {want:?}");
        }
        // Accuracies 1/2 and 2/3: the pooled one is 3/5, the mean over clients 7/12.
        let accuracy = personal.over_clients(ClientScores::accuracy, Direction::HigherIsBetter);
        assert!((accuracy.macro_mean.unwrap() - 7.0 / 12.0).abs() < 1e-12);
        assert_eq!(accuracy.worst, Some(0.5));
    }

    #[test]
    fn sums_are_read_back_from_their_values_and_other_numbers_are_refused() {
        let sent = scores(&[[0.9, 0.1], [0.4, 0.6]], &[0, 0]);
        let came = ClientScores::from_values(&sent.to_values()).unwrap();
        assert_eq!(came.to_values(), sent.to_values());
        assert_eq!((came.rows(), came.ece()), (2, sent.ece()));
        assert!(ClientScores::from_values(&[1.0; 7]).is_none());
        assert!(ClientScores::from_values(&[1.0; 9]).is_none());
    }

    #[test]
    fn a_client_without_rows_has_no_number_and_does_not_count() {
        let personal = PersonalScores::new(vec![scores(&[[0.9, 0.1]], &[0]), ClientScores::new(10)]).unwrap();
        assert_eq!(personal.clients()[1].accuracy(), None);
        let accuracy = personal.over_clients(ClientScores::accuracy, Direction::HigherIsBetter);
        assert_eq!((accuracy.clients, accuracy.macro_mean), (1, Some(1.0)));
        assert!(PersonalScores::new(Vec::new()).is_none());
    }
}
