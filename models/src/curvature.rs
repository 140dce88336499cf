//! Gauss-Newton curvature of a likelihood in the parameters of dense layers.
//!
//! For a layer z = V x̃ with V = (W | b) and x̃ = (x, 1), the Gauss-Newton matrix of −Σ_i log p(y_i | x_i, θ) in V is
//! Σ_i E[δ_i δ_iᵀ] ⊗ x̃_i x̃_iᵀ with δ_i = ∂ log p/∂z_i, where the expectation is over labels from the model's own
//! prediction (the Fisher information). One label is drawn for each row and particle, except for logistic regression,
//! whose expectation σ(1 − σ) has a closed form. Three forms are read off the pairs (x̃_i, δ_i²):
//!
//! - [`LayerCurvature::diagonal`]: F_hj = Σ_i δ_ih² x̃_ij²;
//! - [`LayerCurvature::full`], for a layer with one output: F = Σ_i δ_i² x̃_i x̃_iᵀ;
//! - [`LayerCurvature::trace_weights`] and [`LayerCurvature::moments`], the two factors of F ≈ Ā ⊗ diag(b), Ā the second
//!   moment of x̃ and b_h = Σ_i δ_ih² ‖x̃_i‖²/tr Ā, which has the trace of the matrix (Martens & Grosse 2015, K-FAC, with
//!   a diagonal output factor).

use burn::tensor::{Gradients, Tensor};

/// The inputs of a dense layer.
#[derive(Clone, Debug)]
pub enum LayerInputs {
    /// The same for every particle, `[B, in]`.
    Shared(Tensor<2>),
    /// Each particle's own, `[N, in, B]`.
    Own(Tensor<3>),
}

/// The inputs of a dense layer on some rows, and the expected squares of the log-likelihood's gradient in its outputs.
#[derive(Clone, Debug)]
pub struct LayerCurvature {
    /// The block of the weights, `[N, out·in]`.
    pub weight: usize,
    /// The block of the biases, `[N, out]`; `None` where the bias is a column of the weights.
    pub bias: Option<usize>,
    /// x.
    pub inputs: LayerInputs,
    /// δ², `[N, out, B]`.
    pub squares: Tensor<3>,
}

/// The curvature of the likelihood of some rows.
#[derive(Clone, Debug)]
pub struct RowCurvature {
    /// The dense layers, the first one first.
    pub layers: Vec<LayerCurvature>,
    /// The block of log γ and the Fisher information of log γ in one row, which is 1/2, in a regression.
    pub noise: Option<(usize, f64)>,
    /// The number of rows B.
    pub rows: usize,
}

impl LayerCurvature {
    /// The diagonal in the weights and in the biases.
    ///
    /// # Shapes
    /// - returns `[N, out·in]`, and `[N, out]` where the biases are a block of their own
    pub fn diagonal(&self) -> (Tensor<2>, Option<Tensor<2>>) {
        let [particles, outputs, rows] = self.squares.dims();
        let weights = match &self.inputs {
            LayerInputs::Shared(x) => {
                let squares = self.squares.clone().reshape([particles * outputs, rows]);
                squares.matmul(x.clone().square()).reshape([particles as i32, -1])
            }
            LayerInputs::Own(x) => {
                let product = self.squares.clone().matmul(x.clone().square().swap_dims(1, 2));
                product.reshape([particles as i32, -1])
            }
        };
        (weights, self.bias.map(|_| self.squares.clone().sum_dim(2).squeeze_dim(2)))
    }

    /// The whole matrix in the weights of a layer with one output whose inputs all particles share.
    ///
    /// # Shapes
    /// - returns `[N, in, in]`; `None` for any other layer
    pub fn full(&self) -> Option<Tensor<3>> {
        let LayerInputs::Shared(x) = &self.inputs else { return None };
        if self.squares.dims()[1] != 1 || self.bias.is_some() {
            return None;
        }
        let weighted = self.squares.clone() * x.clone().transpose().unsqueeze_dim::<3>(0); // [N, in, B]
        let [particles, inputs, rows] = weighted.dims();
        let product = weighted.reshape([particles * inputs, rows]).matmul(x.clone());
        Some(product.reshape([particles, inputs, inputs]))
    }

    /// Σ_i δ_ih² ‖x̃_i‖² for each output h: the numerator of b.
    ///
    /// # Shapes
    /// - returns `[N, out]`
    pub fn trace_weights(&self) -> Tensor<2> {
        let one = if self.bias.is_some() { 1.0 } else { 0.0 };
        let lengths = match &self.inputs {
            LayerInputs::Shared(x) => x.clone().square().sum_dim(1).transpose().unsqueeze_dim::<3>(0), // [1, 1, B]
            LayerInputs::Own(x) => x.clone().square().sum_dim(1),                                      // [N, 1, B]
        };
        (self.squares.clone() * lengths.add_scalar(one)).sum_dim(2).squeeze_dim(2)
    }

    /// Σ_i x̃_ij² for each input j, for a layer whose inputs all particles share: the diagonal of [`Self::moments`].
    ///
    /// # Shapes
    /// - returns `[1, in']`, `[N, in']` for a layer with inputs of its own
    pub fn moment_diagonal(&self) -> Tensor<2> {
        let (sums, rows) = match &self.inputs {
            LayerInputs::Shared(x) => (x.clone().square().sum_dim(0), x.dims()[0]),
            LayerInputs::Own(x) => (x.clone().square().sum_dim(2).squeeze_dim(2), x.dims()[2]),
        };
        match self.bias {
            None => sums,
            Some(_) => {
                let ones = sums.clone().narrow(1, 0, 1).full_like(rows as f64);
                Tensor::cat(vec![sums, ones], 1)
            }
        }
    }

    /// Σ_i x̃_i x̃_iᵀ.
    ///
    /// # Shapes
    /// - returns `[1, in', in']` where all particles share the inputs, else `[N, in', in']`, with in' = in + 1 where the
    ///   biases are a block of their own
    pub fn moments(&self) -> Tensor<3> {
        let x = match &self.inputs {
            LayerInputs::Shared(x) => x.clone().transpose().unsqueeze_dim::<3>(0),
            LayerInputs::Own(x) => x.clone(),
        };
        let x = match self.bias {
            None => x,
            Some(_) => {
                let ones = x.clone().narrow(1, 0, 1).ones_like();
                Tensor::cat(vec![x, ones], 1)
            }
        };
        x.clone().matmul(x.swap_dims(1, 2))
    }
}

/// Records what enters the dense layers of a forward pass, and adds to what leaves each of them a zero on the tape. The
/// gradient in that zero is the gradient in the layer's outputs.
#[derive(Debug, Default)]
pub struct DenseTrace {
    layers: Vec<(LayerInputs, Tensor<3>)>,
}

impl DenseTrace {
    /// Records a layer, and returns its outputs `[N, out, B]` with the zero added.
    pub fn layer(&mut self, inputs: LayerInputs, outputs: Tensor<3>) -> Tensor<3> {
        let inputs = match inputs {
            LayerInputs::Shared(x) => LayerInputs::Shared(x.without_autodiff()),
            LayerInputs::Own(x) => LayerInputs::Own(x.without_autodiff()),
        };
        let zero = outputs.clone().without_autodiff().zeros_like().autodiff().require_grad();
        self.layers.push((inputs, zero.clone()));
        outputs.autodiff() + zero
    }

    /// The inputs and the squared gradients `[N, out, B]` of the layers, in order.
    pub(crate) fn squares(self, mut gradients: Gradients) -> Vec<(LayerInputs, Tensor<3>)> {
        let square = |(inputs, zero): (LayerInputs, Tensor<3>)| {
            let gradient = zero.grad_remove(&mut gradients);
            (inputs, gradient.unwrap_or_else(|| zero.without_autodiff().zeros_like()).square())
        };
        self.layers.into_iter().map(square).collect()
    }
}

/// The gradient of log p(label | z) in the logits z for a label that is drawn from softmax(z) with one uniform number a
/// row: one-hot(label) − softmax(z).
///
/// # Shapes
/// - `probabilities`: softmax(z), `[N, C, B]`
/// - `uniforms`: in [0, 1), `[N, B]`
/// - returns `[N, C, B]`
pub(crate) fn drawn_residual(probabilities: Tensor<3>, uniforms: Tensor<2>) -> Tensor<3> {
    let [_, classes, _] = probabilities.dims();
    let uniforms = uniforms.unsqueeze_dim::<3>(1); // [N, 1, B]
    // The label is the number of cumulative probabilities that the uniform number has reached; the last one is 1 up to
    // rounding and never reached.
    let reached = |upto: usize| {
        let cumulative = probabilities.clone().narrow(1, 0, upto).sum_dim(1);
        uniforms.clone().greater_equal(cumulative).float().cast(probabilities.dtype())
    };
    let first = uniforms.ones_like();
    let last = first.zeros_like();
    let steps: Vec<_> = (1..classes).map(reached).collect();
    let at_least = Tensor::cat(std::iter::once(first).chain(steps.clone()).collect(), 1);
    let above = Tensor::cat(steps.into_iter().chain([last]).collect(), 1);
    at_least - above - probabilities
}
