//! The random streams of a run.
//!
//! The random number generators of data, training and client selection are made here. There is one ChaCha stream for each
//! seed, purpose, round and client, so that a run does not depend on the number of threads or on the order of clients, and
//! draws the same numbers on every backend. What a report draws (resampling, a split of its rows, the random form of
//! prediction sets) follows from a seed too, in `fedstein-report`. Keys, waiting times and names of files are no results and
//! come from the operating system.

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

/// The purpose of a random stream. Its discriminant is part of the stream's key: never reuse or renumber one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Synthetic data, train/test split, subsets.
    Data = 1,
    /// The partition of the rows over clients.
    Partition = 2,
    /// The initial particles.
    InitialParticles = 3,
    /// The order of a client's rows.
    Minibatch = 4,
    /// The clients of a round.
    Schedule = 5,
    /// Minibatches for the indicators of client selection.
    Question = 7,
    /// The noise of Langevin chains.
    Langevin = 8,
    /// The assignment of chains to workers.
    Chains = 9,
    /// Draws from a Gaussian posterior, for expectations and for predictions.
    Gaussian = 10,
    /// Resampling and jitter of particle mirror descent.
    Resample = 11,
    /// Probe vectors of stochastic trace estimates.
    Trace = 12,
    /// The labels drawn from a model's own predictions for its curvature.
    Curvature = 13,
    /// The rows of a client that a Gaussian process is conditioned on.
    InducingRows = 16,
    /// Injected faults of training requests.
    Faults = 20,
    /// Injected faults of answers to questions.
    QuestionFaults = 21,
    /// Injected faults of evaluations by clients.
    ScoreFaults = 22,
}

/// A number from the operating system's random source, for names of files and never for results.
pub fn nonce() -> u64 {
    rand::random()
}

/// The random streams of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// The streams of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The generator for a purpose, a round and a client; round and client are 0 where there is none.
    pub fn rng(&self, purpose: Purpose, round: usize, client: usize) -> ChaCha12Rng {
        let mut key = [0u8; 32];
        let words = [self.seed, purpose as u64, round as u64, client as u64];
        for (bytes, word) in key.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        ChaCha12Rng::from_seed(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    #[test]
    fn streams_differ_by_every_coordinate_and_repeat_exactly() {
        let streams = Streams::new(7);
        let draw = |s: Streams, p, round, client| s.rng(p, round, client).random::<u64>();
        let first = draw(streams, Purpose::Data, 1, 2);
        assert_eq!(first, draw(streams, Purpose::Data, 1, 2));
        for other in [
            draw(Streams::new(8), Purpose::Data, 1, 2),
            draw(streams, Purpose::Partition, 1, 2),
            draw(streams, Purpose::Data, 2, 2),
            draw(streams, Purpose::Data, 1, 3),
        ] {
            assert_ne!(first, other);
        }
    }
}
