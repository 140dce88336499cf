//! The rows of a client, and the order in which it reads them.

use std::sync::Arc;

use fedstein_datasets::{Dataset, Normalisation, Targets};
use fedstein_models::Batch;
use ndarray::ArrayView2;
use rand::RngExt;
use rand::seq::SliceRandom;

use crate::backend::Session;
use crate::checkpoint::{CheckpointError, State};
use crate::random::{Purpose, Streams};

/// A whole training or test set in the form that models take: features `[n, p]`, targets `[n, outputs]`, both
/// row-major.
#[derive(Clone, Debug)]
pub struct Table {
    features: Arc<Vec<f32>>,
    targets: Arc<Vec<f32>>,
    /// The weight of each row `[n]`; `None` where all are 1.
    weights: Option<Arc<Vec<f32>>>,
    width: usize,
    outputs: usize,
}

impl Table {
    /// A table of a data set. Classes become one-hot rows; real targets are standardised with the mean and the standard
    /// deviation of the training set.
    pub fn new(data: Dataset, normalisation: &Normalisation) -> Self {
        let (rows, width) = (data.rows(), data.width());
        let (outputs, targets) = match &data.targets {
            Targets::Classes { labels, names } => {
                let mut one_hot = vec![0.0; rows * names.len()];
                for (row, label) in labels.iter().enumerate() {
                    one_hot[row * names.len() + label] = 1.0;
                }
                (names.len(), one_hot)
            }
            Targets::Real { values } => {
                let (mean, sd) = normalisation.target.as_ref().map_or((0.0, 1.0), |scale| (scale.mean, scale.sd));
                (1, values.iter().map(|value| ((value - mean) / sd) as f32).collect())
            }
            Targets::None { rows } => (1, vec![0.0; *rows]),
        };
        let features = match data.features.is_standard_layout() {
            true => data.features.into_raw_vec_and_offset().0,
            false => data.features.iter().copied().collect(),
        };
        Self { features: Arc::new(features), targets: Arc::new(targets), weights: None, width, outputs }
    }

    /// The same rows of a classification, of which those of class c count w_c times in a likelihood. `class_weights` is
    /// `[C]`; `None` for once.
    #[must_use]
    pub fn weighted(self, class_weights: Option<&[f64]>) -> Self {
        let Some(class_weights) = class_weights else { return self };
        let weight = |one_hot: &[f32]| {
            let class = one_hot.iter().zip(class_weights).find(|(is, _)| **is > 0.0);
            class.map_or(1.0, |(_, weight)| *weight as f32)
        };
        let weights = self.targets.chunks_exact(self.outputs).map(weight).collect();
        Self { weights: Some(Arc::new(weights)), ..self }
    }

    /// The number of rows n.
    pub fn rows(&self) -> usize {
        self.targets.len() / self.outputs
    }

    /// The number of features p.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The features, `[n, p]`.
    pub fn features(&self) -> ArrayView2<'_, f32> {
        ArrayView2::from_shape((self.rows(), self.width), &self.features).expect("n rows of p features")
    }

    /// Uploads these rows to the device, `[rows, p]` and `[rows, outputs]`.
    pub fn batch(&self, rows: impl ExactSizeIterator<Item = usize> + Clone, on: &Session) -> Batch {
        let pick = |from: &[f32], width: usize| -> Vec<f32> {
            let mut picked = Vec::with_capacity(rows.len() * width);
            match width {
                // Rows of one or two numbers are faster without a call that copies.
                1 => picked.extend(rows.clone().map(|row| from[row])),
                2 => picked.extend(rows.clone().flat_map(|row| [from[2 * row], from[2 * row + 1]])),
                _ => rows.clone().for_each(|row| picked.extend_from_slice(&from[row * width..(row + 1) * width])),
            }
            picked
        };
        let inputs = on.upload(pick(&self.features, self.width), [rows.len(), self.width]);
        let batch = Batch::new(inputs, on.upload(pick(&self.targets, self.outputs), [rows.len(), self.outputs]));
        match &self.weights {
            None => batch,
            Some(weights) => batch.weighted(on.upload(pick(weights, 1), [rows.len(), 1])),
        }
    }
}

/// The rows of one client. All clients of a simulation share one table in memory; each has its own row indices.
#[derive(Clone, Debug)]
pub struct Shard {
    table: Table,
    rows: Arc<Vec<usize>>,
    session: Session,
}

impl Shard {
    /// A client that holds these rows of the table.
    pub fn new(table: Table, rows: Vec<usize>, session: Session) -> Self {
        Self { table, rows: Arc::new(rows), session }
    }

    /// The number of rows N_k.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Uploads the rows at these positions of the shard to the device.
    pub fn batch(&self, positions: &[usize]) -> Batch {
        self.table.batch(positions.iter().map(|position| self.rows[*position]), &self.session)
    }
}

fedstein_schema::words! {
    /// The rows from which a client computes its answer to a question about particles.
    #[derive(Default)]
    pub enum Rows {
        /// All rows of the client.
        #[default]
        Full = "full",
        /// One minibatch, which is drawn independently in each round.
        Minibatch = "minibatch",
    }
}

fedstein_schema::words! {
    /// The order in which a client reads its rows.
    #[derive(Default)]
    pub enum Order {
        /// A new permutation in each epoch; the position persists over rounds (BLR reference).
        #[default]
        EpochPermutation = "epoch-permutation",
        /// In order from row 0 in every visit (BNN reference).
        SequentialRestart = "sequential-restart",
        /// Independent minibatches, each without repeated rows (FedWBA reference).
        Iid = "iid",
    }
}

/// Minibatches of fixed size from the positions 0..rows of a shard.
#[derive(Debug)]
pub struct Minibatches {
    order: Order,
    streams: Streams,
    client: usize,
    batch: usize,
    epoch: usize,
    position: usize,
    rows: Vec<usize>,
    /// The places of `rows` whose entries may have been swapped since they were in order, for independent minibatches; all
    /// places where these are as many as rows.
    swapped: Vec<usize>,
    current: Vec<usize>,
    rng: rand::rngs::ChaCha12Rng,
}

impl Minibatches {
    /// Minibatches of min(batch, rows) rows of a client.
    pub fn new(order: Order, rows: usize, batch: usize, streams: Streams, client: usize) -> Self {
        let mut minibatches = Self {
            order,
            streams,
            client,
            batch: batch.min(rows),
            epoch: 0,
            position: 0,
            rows: (0..rows).collect(),
            swapped: Vec::new(),
            current: Vec::new(),
            rng: streams.rng(Purpose::Minibatch, 0, client),
        };
        minibatches.start_epoch();
        minibatches
    }

    /// The number of rows in a minibatch.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// A minibatch for a question in this round, as positions in the shard. It does not change the order of training.
    pub fn question_batch(&self, round: usize) -> Vec<usize> {
        let mut rng = self.streams.rng(Purpose::Question, round, self.client);
        rand::seq::index::sample(&mut rng, self.rows.len(), self.batch).into_vec()
    }

    /// Begins a training visit.
    pub fn start_visit(&mut self, round: usize) {
        match self.order {
            Order::EpochPermutation => {}
            Order::SequentialRestart => self.position = 0,
            Order::Iid => {
                // The initial order is always the same: a visit's draws depend on its round and client alone.
                self.put_in_order();
                self.rng = self.streams.rng(Purpose::Minibatch, round, self.client);
            }
        }
    }

    /// The position of the next minibatch. The order of an epoch is computed from its number, that of a visit from its
    /// round.
    pub fn save(&self) -> State {
        State::default().with_count("epoch", self.epoch).with_count("position", self.position)
    }

    /// Restores the position of [`Self::save`].
    ///
    /// # Errors
    /// The state has no position, or one beyond the client's rows.
    pub fn restore(&mut self, state: &State) -> Result<(), CheckpointError> {
        let (epoch, position, rows) = (state.count("epoch")?, state.count("position")?, self.rows.len());
        if position > rows {
            return Err(CheckpointError::Content(format!(
                "the next row is {position}, and the client has {rows} rows"
            )));
        }
        self.epoch = epoch;
        self.start_epoch();
        self.position = position;
        Ok(())
    }

    /// Entry i is i again. After a few small minibatches of many rows that takes a few assignments.
    fn put_in_order(&mut self) {
        if self.swapped.len() < self.rows.len() {
            self.swapped.iter().for_each(|place| self.rows[*place] = *place);
        } else {
            self.rows.iter_mut().enumerate().for_each(|(place, row)| *row = place);
        }
        self.swapped.clear();
    }

    fn start_epoch(&mut self) {
        self.position = 0;
        if self.order == Order::EpochPermutation {
            self.rng = self.streams.rng(Purpose::Minibatch, self.epoch, self.client);
            self.rows.iter_mut().enumerate().for_each(|(place, row)| *row = place);
            self.rows.shuffle(&mut self.rng);
        }
    }

    /// The next minibatch, as positions in the shard.
    pub fn next_batch(&mut self) -> &[usize] {
        self.current.clear();
        if self.order == Order::Iid {
            // A partial Fisher-Yates shuffle: the first `batch` entries become a uniform draw without replacement.
            for place in 0..self.batch {
                let other = self.rng.random_range(place..self.rows.len());
                self.rows.swap(place, other);
                if self.swapped.len() < self.rows.len() {
                    self.swapped.extend([place, other]);
                }
            }
            self.current.extend_from_slice(&self.rows[..self.batch]);
            return &self.current;
        }
        while self.current.len() < self.batch {
            if self.position == self.rows.len() {
                self.epoch += 1;
                self.start_epoch();
            }
            let take = (self.batch - self.current.len()).min(self.rows.len() - self.position);
            self.current.extend_from_slice(&self.rows[self.position..self.position + take]);
            self.position += take;
        }
        &self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(order: Order, batch: usize) -> Vec<usize> {
        let mut minibatches = Minibatches::new(order, 10, batch, Streams::new(3), 4);
        (0..20 / batch).flat_map(|_| minibatches.next_batch().to_vec()).collect()
    }

    #[test]
    fn an_epoch_visits_every_row_once_even_when_batches_do_not_divide_it() {
        for batch in [1, 4, 5, 10] {
            let mut seen = epochs(Order::EpochPermutation, batch);
            let mut first: Vec<_> = seen.drain(..10).collect();
            first.sort_unstable();
            assert_eq!(first, (0..10).collect::<Vec<_>>(), "batch {batch}");
        }
        assert_ne!(epochs(Order::EpochPermutation, 5)[..10], epochs(Order::EpochPermutation, 5)[10..]);
    }

    #[test]
    fn sequential_reading_starts_again_at_every_visit() {
        let mut minibatches = Minibatches::new(Order::SequentialRestart, 10, 3, Streams::new(3), 0);
        assert_eq!(minibatches.next_batch(), [0, 1, 2]);
        minibatches.start_visit(2);
        assert_eq!(minibatches.next_batch(), [0, 1, 2]);
    }

    #[test]
    fn iid_batches_repeat_no_row_and_are_the_same_for_the_same_seed() {
        let draw = || {
            let mut minibatches = Minibatches::new(Order::Iid, 10, 6, Streams::new(3), 1);
            minibatches.start_visit(5);
            minibatches.next_batch().to_vec()
        };
        let mut batch = draw();
        assert_eq!(batch, draw());
        batch.sort_unstable();
        batch.dedup();
        assert_eq!(batch.len(), 6);
    }

    #[test]
    fn iid_batches_of_a_round_do_not_depend_on_the_rounds_before() {
        let mut fresh = Minibatches::new(Order::Iid, 10, 6, Streams::new(3), 1);
        let mut used = Minibatches::new(Order::Iid, 10, 6, Streams::new(3), 1);
        used.start_visit(4);
        used.next_batch();
        fresh.start_visit(5);
        used.start_visit(5);
        assert_eq!(fresh.next_batch(), used.next_batch());
    }

    #[test]
    fn every_visit_of_a_client_draws_other_iid_batches() {
        let mut minibatches = Minibatches::new(Order::Iid, 100, 10, Streams::new(3), 1);
        let mut first = |round: usize| {
            minibatches.start_visit(round);
            minibatches.next_batch().to_vec()
        };
        assert_ne!(first(5), first(6));
    }

    #[test]
    fn every_client_has_an_order_of_its_own() {
        for order in [Order::EpochPermutation, Order::Iid] {
            let first = |client: usize| {
                let mut minibatches = Minibatches::new(order, 100, 10, Streams::new(3), client);
                minibatches.start_visit(5);
                minibatches.next_batch().to_vec()
            };
            assert_ne!(first(0), first(1), "{order:?}");
        }
    }

    #[test]
    fn reading_continues_at_the_saved_position() {
        for order in [Order::EpochPermutation, Order::SequentialRestart, Order::Iid] {
            for batches in 0..9 {
                let mut read = Minibatches::new(order, 10, 4, Streams::new(3), 1);
                read.start_visit(1);
                (0..batches).for_each(|_| drop(read.next_batch().to_vec()));
                let mut restored = Minibatches::new(order, 10, 4, Streams::new(3), 1);
                restored.restore(&read.save()).unwrap();
                for minibatches in [&mut read, &mut restored] {
                    minibatches.start_visit(2);
                }
                for _ in 0..9 {
                    assert_eq!(read.next_batch(), restored.next_batch(), "{order:?} after {batches} batches");
                }
            }
        }
        let beyond = State::default().with_count("epoch", 0).with_count("position", 11);
        assert!(Minibatches::new(Order::Iid, 10, 4, Streams::new(3), 1).restore(&beyond).is_err());
    }

    #[test]
    fn a_batch_has_at_most_all_rows_of_the_client() {
        assert_eq!(Minibatches::new(Order::Iid, 4, 100, Streams::new(1), 0).batch(), 4);
    }
}
