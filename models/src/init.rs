//! Initial weights: from a layout to one flat particle. Biases and log γ start at 0.
//!
//! Source: Kassab & Simeone (their code) and the FedWBA paper.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

use crate::layout::{Block, Layout};

fedstein_schema::words! {
    /// The distribution of a particle's initial weights; biases start at 0.
    #[derive(Default)]
    pub enum WeightInit {
        /// N(0, 1/(fan_in + 1)), as in Kassab & Simeone.
        #[default]
        ScaledNormal = "scaled-normal",
        /// U(±√(6/fan_in)), as in the FedWBA paper's code for dense networks.
        KaimingUniform = "kaiming-uniform",
        /// U(±√(6/(fan_in + fan_out))), as in its code for convolutional ones.
        XavierUniform = "xavier-uniform",
    }
}

impl WeightInit {
    /// One flat particle, `[d]`: every block whose name ends in `weight` is drawn, in the layout's order; the rest is 0.
    pub(crate) fn particle(self, layout: &Layout, rng: &mut dyn Rng) -> Vec<f64> {
        let mut theta = vec![0.0; layout.dim()];
        for block in layout.blocks().iter().filter(|block| block.name.ends_with("weight")) {
            self.draw(block, &mut theta[block.offset..block.offset + block.size()], rng);
        }
        theta
    }

    fn draw(self, block: &Block, to: &mut [f64], rng: &mut dyn Rng) {
        // [out, in], or [out, in, height, width] of a kernel, each of whose pixels counts as an input and an output.
        let (outputs, fan_in) = (block.shape[0], block.shape[1..].iter().product::<usize>());
        let fan_out = outputs * block.shape[2..].iter().product::<usize>();
        let mut uniform = |bound: f64| to.iter_mut().for_each(|value| *value = rng.random_range(-bound..bound));
        match self {
            Self::ScaledNormal => {
                let sd = (fan_in as f64 + 1.0).powf(-0.5);
                to.iter_mut().for_each(|value| *value = sd * standard_normal(rng));
            }
            Self::KaimingUniform => uniform((6.0 / fan_in as f64).sqrt()),
            Self::XavierUniform => uniform((6.0 / (fan_in + fan_out) as f64).sqrt()),
        }
    }
}

/// Draws z ~ N(0, 1).
pub(crate) fn standard_normal(rng: &mut dyn Rng) -> f64 {
    StandardNormal.sample(rng)
}
