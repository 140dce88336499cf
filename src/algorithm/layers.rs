//! Partly Bayesian networks: sets of N particles in which some layers have one value for all particles.
//!
//! A set `[N, d]` is divided into two parts: the Bayesian coordinates, N rows of d_B, and the shared ones, one row of
//! d_F = d − d_B. The inputs are a layout and the layers to share, counted from 1 at the input; the outputs are parts,
//! whole sets and messages of 4·(N·d_B + d_F) bytes in f32. Source: FedWBA Table 7.

use std::sync::Arc;

use burn::tensor::Tensor;
use fedstein_models::Layout;

use super::split::begins_layer;
use crate::backend::Session;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{Message, PARTICLES};

/// The name of the array of shared coordinates in messages.
const SHARED: &str = "shared";

/// The division of a layout's blocks into Bayesian and shared ones.
#[derive(Clone, Debug)]
pub(super) struct Layers {
    whole: Arc<Layout>,
    /// Whether a block is shared, for every block.
    is_shared: Vec<bool>,
    bayesian: Arc<Layout>,
    shared: Arc<Layout>,
}

/// A set of particles in two parts.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// The Bayesian coordinates, `[N, d_B]`.
    pub bayesian: Particles,
    /// The shared coordinates, `[1, d_F]`; `None` without shared layers.
    pub shared: Option<Particles>,
}

impl Layers {
    /// The division of a layout. A layer begins with its block `weight`; blocks after the last layer, such as the log
    /// precision of the noise, belong to the last layer.
    ///
    /// # Errors
    /// `shared_layers` names a layer that the model does not have.
    pub fn of(whole: &Arc<Layout>, shared_layers: &[usize]) -> Result<Self, RunError> {
        let layers = whole.blocks().iter().scan(0, |layer, block| {
            *layer += usize::from(begins_layer(block));
            Some(*layer)
        });
        let layers: Vec<usize> = layers.collect();
        let count = layers.last().copied().unwrap_or(0);
        if let Some(unknown) = shared_layers.iter().find(|layer| !(1..=count).contains(*layer)) {
            return Err(RunError::Config(format!(
                "algorithm.shared_layers names layer {unknown}, but the model's layers are 1 to {count}"
            )));
        }
        let is_shared: Vec<bool> = layers.iter().map(|layer| shared_layers.contains(layer)).collect();
        let part = |of: bool| {
            let blocks = whole.blocks().iter().zip(&is_shared).filter(|(_, shared)| **shared == of);
            Arc::new(Layout::new(blocks.map(|(block, _)| (block.name.as_str(), block.shape.as_slice()))))
        };
        let (bayesian, shared) = (part(false), part(true));
        Ok(Self { whole: whole.clone(), is_shared, bayesian, shared })
    }

    /// Whether no layer is Bayesian: d_B = 0.
    pub fn none_bayesian(&self) -> bool {
        self.bayesian.dim() == 0
    }

    /// Both parts of a set `[N, d]`; `one_of` maps a shared block's N rows to one row.
    pub fn parts(&self, whole: &Particles, one_of: impl Fn(Tensor<2>) -> Tensor<2>) -> Parts {
        let blocks = |of: bool| {
            let blocks = whole.blocks().iter().zip(&self.is_shared).filter(move |(_, shared)| **shared == of);
            blocks.map(|(block, _)| block.clone())
        };
        let bayesian = Particles::from_blocks(blocks(false).collect(), self.bayesian.clone());
        let shared = Particles::from_blocks(blocks(true).map(one_of).collect(), self.shared.clone());
        Parts { bayesian, shared: (self.shared.dim() > 0).then_some(shared) }
    }

    /// The set `[N, d]` with these parts, `[N, d_B]` and `[1, d_F]`; the shared row is repeated N times.
    pub fn whole(&self, bayesian: &Particles, shared: Option<&Particles>) -> Particles {
        let count = bayesian.count();
        let mut own = bayesian.blocks().iter();
        let mut common = shared.map_or(&[][..], Particles::blocks).iter();
        let blocks = self.is_shared.iter().map(|is_shared| match is_shared {
            false => own.next().expect("a block for every flag").clone(),
            true => common.next().expect("a block for every flag").clone().repeat_dim(0, count),
        });
        Particles::from_blocks(blocks.collect(), self.whole.clone())
    }

    /// Both parts as a message.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn message_of(&self, parts: &Parts) -> Result<Message, RunError> {
        let message = Message::default().with_array(PARTICLES, parts.bayesian.to_array()?);
        match &parts.shared {
            Some(shared) => Ok(message.with_array(SHARED, shared.to_array()?)),
            None => Ok(message),
        }
    }

    /// Both parts as a state.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn save(&self, parts: &Parts) -> Result<State, RunError> {
        let state = State::default().with_particles(PARTICLES, &parts.bayesian)?;
        match &parts.shared {
            Some(shared) => Ok(state.with_particles(SHARED, shared)?),
            None => Ok(state),
        }
    }

    /// Reads both parts from a state.
    ///
    /// # Errors
    /// An array is missing or has another shape.
    pub fn parts_of(&self, state: &State, session: &Session) -> Result<Parts, RunError> {
        let bayesian = state.particles(PARTICLES, &self.bayesian, session)?;
        let shared = (self.shared.dim() > 0).then(|| state.particles(SHARED, &self.shared, session)).transpose()?;
        Ok(Parts { bayesian, shared })
    }

    /// Reads both parts from a message.
    ///
    /// # Errors
    /// An array is missing or has another shape.
    pub fn parts_in(&self, message: &Message, session: &Session) -> Result<Parts, RunError> {
        let read = |name: &str, layout: &Arc<Layout>| {
            let array = message.array(name)?;
            Particles::from_array(array, layout, session).map_err(RunError::Array)
        };
        let bayesian = read(PARTICLES, &self.bayesian)?;
        let shared = (self.shared.dim() > 0).then(|| read(SHARED, &self.shared)).transpose()?;
        Ok(Parts { bayesian, shared })
    }
}

impl Parts {
    /// The number of bytes of all coordinates.
    pub fn bytes(&self) -> u64 {
        self.bayesian.bytes() + self.shared.as_ref().map_or(0, Particles::bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Flex, Precision};

    /// Five convolutions and a head: 629,016 coordinates, 230,500 of them in the fifth.
    fn cnn5() -> Arc<Layout> {
        let widths = [3usize, 32, 64, 128, 256, 100];
        let mut blocks: Vec<(String, Vec<usize>)> = Vec::new();
        for (layer, pair) in widths.windows(2).enumerate() {
            blocks.push((format!("convolutions.{layer}.weight"), vec![pair[1], pair[0], 3, 3]));
            blocks.push((format!("convolutions.{layer}.bias"), vec![pair[1], 1]));
        }
        blocks.push(("head.weight".into(), vec![100, 100]));
        blocks.push(("head.bias".into(), vec![100, 1]));
        Arc::new(Layout::new(blocks.iter().map(|(name, shape)| (name.as_str(), shape.as_slice()))))
    }

    /// A set of N particles in which every coordinate is the particle's index.
    fn counted(layout: &Arc<Layout>, count: usize) -> Particles {
        let session = Session::open::<Flex>(Precision::F32).unwrap();
        let block = |size: usize| (0..count * size).map(|i| (i / size) as f32).collect();
        let blocks = layout.blocks().iter().map(|b| session.upload(block(b.size()), [count, b.size()]));
        Particles::from_blocks(blocks.collect(), layout.clone())
    }

    #[test]
    fn a_shared_layer_is_sent_once() {
        let layout = cnn5();
        assert_eq!(layout.dim(), 629_016);
        let theta = counted(&layout, 10);
        let bytes = |shared: &[usize]| {
            let layers = Layers::of(&layout, shared).unwrap();
            let parts = layers.parts(&theta, |block| block.narrow(0, 0, 1));
            let bytes = layers.message_of(&parts).unwrap().bytes();
            assert_eq!(parts.bytes(), bytes);
            bytes
        };
        // FedWBA Table 7: 23.99 and 16.08 MiB with six and five Bayesian layers.
        for (shared, d_shared, mib) in [(&[][..], 0, 23.995), (&[5], 230_500, 16.08)] {
            assert_eq!(bytes(shared), 4 * (10 * (629_016 - d_shared) + d_shared));
            assert!((bytes(shared) as f64 / f64::from(1 << 20) - mib).abs() < 0.005);
        }
    }

    #[test]
    fn parts_are_joined_to_the_whole() {
        let layout = cnn5();
        let session = Session::open::<Flex>(Precision::F32).unwrap();
        let layers = Layers::of(&layout, &[2, 6]).unwrap();
        let parts = layers.parts(&counted(&layout, 3), |block| block.mean_dim(0));
        let sent = layers.parts_in(&layers.message_of(&parts).unwrap(), &session).unwrap();
        let whole = layers.whole(&sent.bayesian, sent.shared.as_ref()).to_array().unwrap();
        assert_eq!(whole.shape, [3, 629_016]);
        let values = whole.values.to_f64();
        for block in layout.blocks() {
            let shared = block.name.starts_with("convolutions.1.") || block.name.starts_with("head");
            for n in 0..3 {
                let at = n * 629_016 + block.offset;
                let expected = if shared { 1.0 } else { n as f64 };
                assert!(values[at..at + block.size()].iter().all(|value| *value == expected), "{}", block.name);
            }
        }
    }

    #[test]
    fn layers_that_do_not_exist_are_named() {
        for (shared, word) in [(0, "layer 0"), (7, "1 to 6")] {
            let error = Layers::of(&cnn5(), &[1, shared]).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("algorithm.shared_layers"), "{error}");
        }
        assert!(Layers::of(&cnn5(), &[1, 2, 3, 4, 5, 6]).unwrap().none_bayesian());
    }
}
