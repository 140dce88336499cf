//! Embeddings of length 1: e = h/‖h‖ of the activations h below the head.

use ndarray::{Array1, Array2, Axis};

/// The shortest h that has a direction; a shorter one, as where every unit is off, is embedded at 0 (the ϵ of
/// `torch.nn.functional.normalize`).
const SHORTEST: f64 = 1e-12;

/// The unit embeddings of rows, of length 1 or 0.
#[derive(Clone, Debug)]
pub struct Embedding {
    unit: Array2<f64>,
    /// The lengths ‖h‖, `[B]`.
    lengths: Array1<f64>,
}

impl Embedding {
    /// The embeddings of activations `[B, E]`.
    pub fn of(activations: Array2<f64>) -> Self {
        let lengths = activations.map_axis(Axis(1), |h| h.dot(&h).sqrt());
        let mut unit = activations;
        for (mut row, length) in unit.rows_mut().into_iter().zip(&lengths) {
            if *length < SHORTEST {
                row.fill(0.0);
            } else {
                row /= *length;
            }
        }
        Self { unit, lengths }
    }

    /// The unit embeddings e, `[B, E]`.
    pub fn unit(&self) -> &Array2<f64> {
        &self.unit
    }

    /// The gradient in h from the gradient in e, (g − e(e·g))/‖h‖, and 0 where h has no direction. Both are `[B, E]`.
    pub fn pull_back(&self, mut gradient: Array2<f64>) -> Array2<f64> {
        for ((mut g, e), length) in gradient.rows_mut().into_iter().zip(self.unit.rows()).zip(&self.lengths) {
            if *length < SHORTEST {
                g.fill(0.0);
                continue;
            }
            let along = g.dot(&e);
            g.scaled_add(-along, &e);
            g /= *length;
        }
        gradient
    }
}
