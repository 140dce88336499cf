//! Personalised evaluation: how well each client's own predictor does on that client's own rows.
//!
//! A client sends sums over its rows, never a row; sums of several clients add up, so the pooled (micro) numbers, the
//! pooled calibration error among them, are exact. Source: ALGORITHMS 6.8.

use super::calibration::{Bin, BinRule, Histogram, MAX_BINS};
use super::classification::{argmax, floored_nll, squared_error};
use super::error::{MetricError, check_length, finite};
use super::federated::{ClientSummary, ClientValue, Direction, summarise_clients};
use super::metric::{Metric, Over, PersonalMetric, View};
use super::mixture::RegressionPredictions;
use super::predictions::{ParticleLogProbs, check_labels};
use super::regression::{log_likelihood, rmse};

/// Sums over the rows of one client, or of several.
#[derive(Debug, Clone)]
pub struct ClientScores {
    rows: f64,
    classes: bool,
    correct: f64,
    /// Mean over predictive components of the number of right predictions.
    correct_mean_particle: f64,
    nll: f64,
    brier: f64,
    squared_error: f64,
    confidence: Histogram,
}

/// Numbers before the histogram in [`ClientScores::to_values`].
const SUMS: usize = 7;

impl ClientScores {
    /// The scores of no row, with this many bins of confidence, from 1 to [`MAX_BINS`]; other numbers become the nearest of
    /// these.
    pub fn new(bins: usize) -> Self {
        Self {
            rows: 0.0,
            classes: false,
            correct: 0.0,
            correct_mean_particle: 0.0,
            nll: 0.0,
            brier: 0.0,
            squared_error: 0.0,
            confidence: Histogram::empty(bins.clamp(1, MAX_BINS), BinRule::UpperClosed),
        }
    }

    /// Adds rows with their labels.
    ///
    /// # Arguments
    /// * `log_probs`: `[N, n, C]`
    /// * `labels`: `[n]`
    ///
    /// # Errors
    /// Labels out of range or not one a row.
    pub fn add_classes(&mut self, log_probs: &ParticleLogProbs, labels: &[usize]) -> Result<(), MetricError> {
        check_length("labels", labels.len(), log_probs.rows())?;
        check_labels(labels, log_probs.classes())?;
        let predictions = log_probs.predictions(labels)?;
        for (index, (row, &label)) in predictions.rows().zip(labels).enumerate() {
            let predicted = argmax(row);
            let right = (0..log_probs.particles()).filter(|n| argmax(log_probs.row(*n, index)) == label).count();
            self.correct += f64::from(u8::from(predicted == label));
            self.correct_mean_particle += right as f64 / log_probs.particles() as f64;
            self.nll += floored_nll(row[label]);
            self.brier += squared_error(row, label);
            self.confidence.push(row[predicted], predicted == label);
        }
        self.classes = true;
        self.rows += labels.len() as f64;
        Ok(())
    }

    /// Adds rows with real targets, in the units in which they are to be reported.
    ///
    /// # Errors
    /// None that checked predictions can cause.
    pub fn add_real(&mut self, predictions: &RegressionPredictions) -> Result<(), MetricError> {
        let rows = predictions.rows() as f64;
        self.rows += rows;
        self.nll -= log_likelihood(predictions).unwrap_or(f64::NAN) * rows;
        self.squared_error += rmse(predictions).unwrap_or(f64::NAN).powi(2) * rows;
        Ok(())
    }

    /// Adds another client's sums, whose bins must be as many.
    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.classes |= other.classes;
        self.correct += other.correct;
        self.correct_mean_particle += other.correct_mean_particle;
        self.nll += other.nll;
        self.brier += other.brier;
        self.squared_error += other.squared_error;
        self.confidence.merge(&other.confidence);
    }

    /// The sums as a message carries them, `[7 + 3 * bins]`: seven numbers, then rows, right predictions and confidence of
    /// every bin.
    pub fn to_values(&self) -> Vec<f64> {
        let classes = f64::from(u8::from(self.classes));
        let sums =
            [self.rows, classes, self.correct, self.correct_mean_particle, self.nll, self.brier, self.squared_error];
        sums.into_iter().chain(self.confidence.values()).collect()
    }

    /// The sums of a message, `[7 + 3 * bins]`; `None` where the length is another one.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let (sums, bins) = values.split_at_checked(SUMS)?;
        if bins.is_empty() || !bins.len().is_multiple_of(3) {
            return None;
        }
        Some(Self {
            rows: sums[0],
            classes: sums[1] > 0.0,
            correct: sums[2],
            correct_mean_particle: sums[3],
            nll: sums[4],
            brier: sums[5],
            squared_error: sums[6],
            confidence: Histogram::of_values(bins),
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    fn mean(&self, sum: f64, defined: bool) -> Option<f64> {
        if defined && self.rows > 0.0 { finite(sum / self.rows) } else { None }
    }

    /// Accuracy of the ensemble.
    pub fn accuracy(&self) -> Option<f64> {
        self.mean(self.correct, self.classes)
    }

    /// Mean over particles of each particle's accuracy.
    pub fn accuracy_mean_particle(&self) -> Option<f64> {
        self.mean(self.correct_mean_particle, self.classes)
    }

    /// Negative log-likelihood of the predictive, nats.
    pub fn nll(&self) -> Option<f64> {
        self.mean(self.nll, true)
    }

    /// Brier score, `[0, 2]`.
    pub fn brier(&self) -> Option<f64> {
        self.mean(self.brier, self.classes)
    }

    /// Expected calibration error of the top label.
    pub fn ece(&self) -> Option<f64> {
        if self.classes { self.confidence.finish().ece() } else { None }
    }

    /// Maximum calibration error of the top label.
    pub fn mce(&self) -> Option<f64> {
        if self.classes { self.confidence.finish().mce() } else { None }
    }

    /// Bins of confidence; all empty for real targets.
    pub fn bins(&self) -> Vec<Bin> {
        self.confidence.finish().bins().to_vec()
    }

    /// Root mean squared error.
    pub fn rmse(&self) -> Option<f64> {
        self.mean(self.squared_error, !self.classes).map(f64::sqrt)
    }
}

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
    use crate::metrics::Evaluation;

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
    fn sums_survive_the_wire_and_other_numbers_are_refused() {
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
