//! Gauss-Newton curvature of a likelihood in the parameters of dense layers and convolutions.
//!
//! For a layer z = V x̃ with V = (W | b) and x̃ = (x, 1), the Gauss-Newton matrix of −Σ_i log p(y_i | x_i, θ) in V is
//! Σ_i E[δ_i δ_iᵀ] ⊗ x̃_i x̃_iᵀ with δ_i = ∂ log p/∂z_i, where the expectation is over labels from the model's own
//! prediction (the Fisher information). One label is drawn for each row and particle, except for logistic regression,
//! whose expectation σ(1 − σ) has a closed form. A convolution is such a layer at every position t of its kernel: x_it is
//! the patch under it, and the gradient of row i in V is Σ_t δ_it x̃_itᵀ. Three forms are read off x̃ and δ:
//!
//! - [`LayerCurvature::diagonal`]: F_hj = Σ_i δ_ih² x̃_ij², and Σ_i (Σ_t δ_ith x̃_itj)² for a convolution, without the
//!   assumption that derivatives at two positions are uncorrelated;
//! - [`LayerCurvature::full`], for a dense layer with one output: F = Σ_i δ_i² x̃_i x̃_iᵀ;
//! - [`LayerCurvature::trace_weights`] and [`LayerCurvature::moments`], the two factors of F ≈ Ā ⊗ diag(b), Ā the second
//!   moment of x̃ (for a convolution of all its patches, Σ_t x̃_it x̃_itᵀ) and b_h = Σ_j F_hj/tr Ā, with F_hj the diagonal:
//!   each output has the trace of its block of the matrix. K-FAC (Martens & Grosse 2015) and KFC (Grosse & Martens 2016)
//!   with a diagonal output factor.

use burn::tensor::{Gradients, Tensor};

use crate::layer::shared;

/// The inputs of a dense layer.
#[derive(Clone, Debug)]
pub enum LayerInputs {
    /// The same for every particle, `[B, in]`.
    Shared(Tensor<2>),
    /// Each particle's own, `[N, in, B]`.
    Own(Tensor<3>),
}

impl LayerInputs {
    /// The number of inputs.
    fn width(&self) -> usize {
        match self {
            Self::Shared(x) => x.dims()[1],
            Self::Own(x) => x.dims()[1],
        }
    }

    /// The number of elements.
    fn elements(&self) -> usize {
        match self {
            Self::Shared(x) => x.dims().iter().product(),
            Self::Own(x) => x.dims().iter().product(),
        }
    }
}

/// The gradient δ of the log-likelihood in the outputs of a dense layer, `[N, out, B]`.
#[derive(Clone, Debug)]
pub enum OutputGradients {
    /// For a label that was drawn.
    Drawn(Tensor<3>),
    /// The expectation of its squares, where that has a closed form.
    Squares(Tensor<3>),
}

impl OutputGradients {
    /// The squares, or their expectation, `[N, out, B]`.
    pub fn squares(&self) -> Tensor<3> {
        match self {
            Self::Drawn(gradients) => gradients.clone().square(),
            Self::Squares(squares) => squares.clone(),
        }
    }

    /// N, the number of outputs, and B.
    fn dims(&self) -> [usize; 3] {
        match self {
            Self::Drawn(numbers) | Self::Squares(numbers) => numbers.dims(),
        }
    }
}

/// What a layer reads on some rows, and the gradient of the log-likelihood in its outputs.
#[derive(Clone, Debug)]
pub enum LayerRows {
    /// A dense layer.
    Dense {
        /// x.
        inputs: LayerInputs,
        /// δ.
        gradients: OutputGradients,
    },
    /// A convolution whose kernel has T positions.
    Convolution {
        /// x, the pixels under the kernel at each position, `[B, P, in, T]`: `in` counts the pixels of all channels, and P
        /// is 1 where all particles see the same images, else N.
        patches: Tensor<4>,
        /// δ for a drawn label, `[B, N, out, T]`.
        gradients: Tensor<4>,
    },
}

/// A layer's curvature on some rows.
#[derive(Clone, Debug)]
pub struct LayerCurvature {
    /// The block of the weights, `[N, out·in]`.
    pub weight: usize,
    /// The block of the biases, `[N, out]`; `None` where the bias is a column of the weights.
    pub bias: Option<usize>,
    /// x and δ.
    pub rows: LayerRows,
}

/// The curvature of the likelihood of some rows.
#[derive(Clone, Debug)]
pub struct RowCurvature {
    /// The layers, the first one first.
    pub layers: Vec<LayerCurvature>,
    /// The block of log γ and the Fisher information of log γ in one row, which is 1/2, in a regression.
    pub noise: Option<(usize, f64)>,
    /// The number of rows B.
    pub rows: usize,
}

impl RowCurvature {
    /// The number of tensor elements that one row takes, for all particles: inputs and gradients of every layer, and a
    /// convolution's gradient in its weights. It decides how many rows fit into memory.
    pub fn elements_per_row(&self) -> usize {
        self.layers.iter().map(|layer| layer.rows.elements()).sum::<usize>().div_ceil(self.rows.max(1))
    }

    /// The curvature of the same rows where row i counts w_i times, `[B, 1]`: every δ_i is multiplied by √w_i.
    /// The second moment of a layer's inputs in [`LayerCurvature::moments`] stays that of all rows alike. Not for a
    /// regression's noise.
    #[must_use]
    pub fn weighted(self, weights: &Tensor<2>) -> Self {
        let layer = |layer: LayerCurvature| LayerCurvature { rows: layer.rows.weighted(weights), ..layer };
        Self { layers: self.layers.into_iter().map(layer).collect(), ..self }
    }
}

impl LayerRows {
    fn weighted(self, weights: &Tensor<2>) -> Self {
        match self {
            Self::Dense { inputs, gradients } => {
                let weights = weights.clone().transpose().unsqueeze_dim::<3>(0); // [1, 1, B]
                let gradients = match gradients {
                    OutputGradients::Drawn(gradients) => OutputGradients::Drawn(gradients * weights.sqrt()),
                    OutputGradients::Squares(squares) => OutputGradients::Squares(squares * weights),
                };
                Self::Dense { inputs, gradients }
            }
            Self::Convolution { patches, gradients } => {
                let root = weights.clone().sqrt().unsqueeze_dims::<4>(&[2, 3]); // [B, 1, 1, 1]
                Self::Convolution { patches, gradients: gradients * root }
            }
        }
    }

    fn elements(&self) -> usize {
        fn size<const D: usize>(tensor: &Tensor<D>) -> usize {
            tensor.dims().iter().product()
        }
        match self {
            Self::Dense { inputs, gradients } => inputs.elements() + gradients.dims().iter().product::<usize>(),
            Self::Convolution { patches, gradients } => {
                let ([rows, particles, outputs, _], inputs) = (gradients.dims(), patches.dims()[2]);
                size(patches) + size(gradients) + rows * particles * outputs * inputs
            }
        }
    }
}

impl LayerCurvature {
    /// The number of outputs, and of inputs x̃: one more than those of x where the biases are a block of their own.
    pub fn sizes(&self) -> [usize; 2] {
        let (outputs, inputs) = match &self.rows {
            LayerRows::Dense { inputs, gradients } => (gradients.dims()[1], inputs.width()),
            LayerRows::Convolution { patches, gradients } => (gradients.dims()[2], patches.dims()[2]),
        };
        [outputs, inputs + usize::from(self.bias.is_some())]
    }

    /// Whether all particles share the inputs.
    pub fn is_shared(&self) -> bool {
        match &self.rows {
            LayerRows::Dense { inputs, .. } => matches!(inputs, LayerInputs::Shared(_)),
            LayerRows::Convolution { patches, .. } => patches.dims()[1] == 1,
        }
    }

    /// Whether the second moment of the inputs is a diagonal: that of a dense layer whose inputs all particles share.
    pub fn has_diagonal_moment(&self) -> bool {
        matches!(&self.rows, LayerRows::Dense { inputs: LayerInputs::Shared(_), .. })
    }

    /// The diagonal in the weights and in the biases.
    ///
    /// # Shapes
    /// - returns `[N, out·in]`, and `[N, out]` where the biases are a block of their own
    pub fn diagonal(&self) -> (Tensor<2>, Option<Tensor<2>>) {
        let (weights, biases) = match &self.rows {
            LayerRows::Dense { inputs, gradients } => {
                let ([particles, outputs, rows], squares) = (gradients.dims(), gradients.squares());
                let weights: Tensor<2> = match inputs {
                    LayerInputs::Shared(x) => {
                        let squares = squares.clone().reshape([particles * outputs, rows]);
                        shared::sums(squares, x.clone().square()).reshape([particles as i32, -1])
                    }
                    LayerInputs::Own(x) => {
                        let product = squares.clone().matmul(x.clone().square().swap_dims(1, 2));
                        product.reshape([particles as i32, -1])
                    }
                };
                (weights, squares.sum_dim(2).squeeze_dim(2))
            }
            LayerRows::Convolution { patches, gradients } => {
                let [_, particles, outputs, _] = gradients.dims();
                let weights: Tensor<4> = row_gradients(patches.clone(), gradients.clone()).square().sum_dim(0);
                let biases = gradients.clone().sum_dim(3).square().sum_dim(0);
                (weights.reshape([particles as i32, -1]), biases.reshape([particles, outputs]))
            }
        };
        (weights, self.bias.map(|_| biases))
    }

    /// Whether this is a layer of which [`Self::full`] computes the whole matrix.
    pub fn has_full(&self) -> bool {
        let is_dense = matches!(self.rows, LayerRows::Dense { .. });
        is_dense && self.is_shared() && self.sizes()[0] == 1 && self.bias.is_none()
    }

    /// The whole matrix in the weights of a dense layer with one output, all inputs shared by all particles and no bias of
    /// its own.
    ///
    /// # Shapes
    /// - returns `[N, in, in]`; `None` for any other layer
    pub fn full(&self) -> Option<Tensor<3>> {
        let LayerRows::Dense { inputs: LayerInputs::Shared(x), gradients } = &self.rows else { return None };
        if !self.has_full() {
            return None;
        }
        let weighted = gradients.squares() * x.clone().transpose().unsqueeze_dim::<3>(0); // [N, in, B]
        let [particles, inputs, rows] = weighted.dims();
        let product = shared::sums(weighted.reshape([particles * inputs, rows]), x.clone());
        Some(product.reshape([particles, inputs, inputs]))
    }

    /// Σ_j F_hj for each output h, the trace of its block of the matrix: the numerator of b. That is Σ_i δ_ih² ‖x̃_i‖² for a
    /// dense layer and Σ_i ‖Σ_t δ_ith x̃_it‖² for a convolution.
    ///
    /// # Shapes
    /// - returns `[N, out]`
    pub fn trace_weights(&self) -> Tensor<2> {
        match &self.rows {
            LayerRows::Dense { inputs, gradients } => {
                (gradients.squares() * self.squared_lengths(inputs)).sum_dim(2).squeeze_dim(2)
            }
            LayerRows::Convolution { patches, gradients } => {
                let ([_, particles, outputs, _], inputs) = (gradients.dims(), patches.dims()[2]);
                let (weights, biases) = self.diagonal();
                let weights: Tensor<2> = weights.reshape([particles, outputs, inputs]).sum_dim(2).squeeze_dim(2);
                match biases {
                    Some(biases) => weights + biases,
                    None => weights,
                }
            }
        }
    }

    /// Σ_i g_i g_iᵀ with g_i `[out, in']` the gradient of row i in the weights: Σ_i ‖x̃_i‖² δ_i δ_iᵀ of a dense layer. Its
    /// diagonal is [`Self::trace_weights`].
    ///
    /// # Shapes
    /// - returns `[N, out, out]`; `None` where no label was drawn
    pub fn output_moments(&self) -> Option<Tensor<3>> {
        match &self.rows {
            LayerRows::Dense { inputs, gradients } => {
                let OutputGradients::Drawn(gradients) = gradients else { return None };
                let weighted = gradients.clone() * self.squared_lengths(inputs);
                Some(weighted.matmul(gradients.clone().swap_dims(1, 2)))
            }
            LayerRows::Convolution { patches, gradients } => {
                let sums = row_gradients(patches.clone(), gradients.clone()); // [B, N, out, in]
                let rows = match self.bias {
                    None => sums,
                    Some(_) => Tensor::cat(vec![sums, gradients.clone().sum_dim(3)], 3),
                };
                let [count, particles, outputs, inputs] = rows.dims();
                let rows = rows.permute([1, 2, 0, 3]).reshape([particles, outputs, count * inputs]);
                Some(rows.clone().matmul(rows.swap_dims(1, 2)))
            }
        }
    }

    /// ‖x̃_i‖² of a dense layer, `[1, 1, B]` or `[N, 1, B]`.
    fn squared_lengths(&self, inputs: &LayerInputs) -> Tensor<3> {
        let lengths = match inputs {
            LayerInputs::Shared(x) => x.clone().square().sum_dim(1).transpose().unsqueeze_dim::<3>(0),
            LayerInputs::Own(x) => x.clone().square().sum_dim(1),
        };
        lengths.add_scalar(if self.bias.is_some() { 1.0 } else { 0.0 })
    }

    /// Σ_i x̃_ij² for each input j of a dense layer whose inputs all particles share, to be used as the diagonal matrix
    /// that [`Self::moments`] is where the inputs are rotated to their principal axes. Images are not rotated: `None` for
    /// a convolution, and for inputs of a particle's own.
    ///
    /// # Shapes
    /// - returns `[1, in']`, in' = in + 1 where the biases are a block of their own
    pub fn moment_diagonal(&self) -> Option<Tensor<2>> {
        let LayerRows::Dense { inputs: LayerInputs::Shared(x), .. } = &self.rows else { return None };
        let (sums, rows) = (x.clone().square().sum_dim(0), x.dims()[0]);
        Some(match self.bias {
            None => sums,
            Some(_) => {
                let ones = sums.clone().narrow(1, 0, 1).full_like(rows as f64);
                Tensor::cat(vec![sums, ones], 1)
            }
        })
    }

    /// Σ_i x̃_i x̃_iᵀ, summed over positions too for a convolution.
    ///
    /// # Shapes
    /// - returns `[1, in', in']` where all particles share the inputs, else `[N, in', in']`, with in' = in + 1 where the
    ///   biases are a block of their own
    pub fn moments(&self) -> Tensor<3> {
        let x = match &self.rows {
            LayerRows::Dense { inputs: LayerInputs::Shared(x), .. } => x.clone().transpose().unsqueeze_dim::<3>(0),
            LayerRows::Dense { inputs: LayerInputs::Own(x), .. } => x.clone(),
            LayerRows::Convolution { patches, .. } => {
                let [rows, sets, inputs, positions] = patches.dims();
                patches.clone().permute([1, 2, 0, 3]).reshape([sets, inputs, rows * positions])
            }
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

/// The gradient of each row in the weights of a convolution, Σ_t δ_t x_tᵀ. It takes in/T of the memory of δ, or out/T of
/// that of the particles' own patches.
///
/// # Shapes
/// - `patches`: `[B, P, in, T]`, P = 1 or N
/// - `gradients`: `[B, N, out, T]`
/// - returns `[B, N, out, in]`
fn row_gradients(patches: Tensor<4>, gradients: Tensor<4>) -> Tensor<4> {
    let [rows, particles, outputs, positions] = gradients.dims();
    let [_, sets, inputs, _] = patches.dims();
    // One product for all particles that share their patches.
    let gradients = gradients.reshape([rows, sets, particles / sets * outputs, positions]);
    gradients.matmul(patches.swap_dims(2, 3)).reshape([rows, particles, outputs, inputs])
}

/// Records what enters the layers of a forward pass, and adds to what leaves each of them a zero on the tape. The gradient
/// in that zero is the gradient in the layer's outputs.
#[derive(Debug, Default)]
pub struct LayerTrace {
    layers: Vec<TracedLayer>,
}

/// The inputs of a layer, off the tape, and the zero that was added to its outputs.
#[derive(Debug)]
enum TracedLayer {
    Dense(LayerInputs, Tensor<3>),
    Convolution(Tensor<4>, Tensor<4>),
}

impl LayerTrace {
    /// Records a dense layer, and returns its outputs `[N, out, B]` with the zero added.
    pub fn dense(&mut self, inputs: LayerInputs, outputs: Tensor<3>) -> Tensor<3> {
        let inputs = match inputs {
            LayerInputs::Shared(x) => LayerInputs::Shared(x.without_autodiff()),
            LayerInputs::Own(x) => LayerInputs::Own(x.without_autodiff()),
        };
        let (zero, outputs) = with_zero(outputs);
        self.layers.push(TracedLayer::Dense(inputs, zero));
        outputs
    }

    /// Records a convolution with its patches `[B, P, in, T]`, P = 1 where all particles share them and else N, and returns
    /// its outputs `[B, N, out, T]` with the zero added.
    pub fn convolution(&mut self, patches: Tensor<4>, outputs: Tensor<4>) -> Tensor<4> {
        let (zero, outputs) = with_zero(outputs);
        self.layers.push(TracedLayer::Convolution(patches.without_autodiff(), zero));
        outputs
    }

    /// The inputs of the layers and the gradients in their outputs, in order.
    pub(crate) fn rows(self, mut gradients: Gradients) -> Vec<LayerRows> {
        let rows = |layer: TracedLayer| match layer {
            TracedLayer::Dense(inputs, zero) => {
                LayerRows::Dense { inputs, gradients: OutputGradients::Drawn(gradient_in(zero, &mut gradients)) }
            }
            TracedLayer::Convolution(patches, zero) => {
                LayerRows::Convolution { patches, gradients: gradient_in(zero, &mut gradients) }
            }
        };
        self.layers.into_iter().map(rows).collect()
    }
}

/// A zero on the tape of the shape of some outputs, and the outputs with this zero added.
fn with_zero<const D: usize>(outputs: Tensor<D>) -> (Tensor<D>, Tensor<D>) {
    let zero = outputs.clone().without_autodiff().zeros_like().autodiff().require_grad();
    (zero.clone(), outputs.autodiff() + zero)
}

/// The gradient in a zero of [`with_zero`]: 0 if nothing depends on it.
fn gradient_in<const D: usize>(zero: Tensor<D>, gradients: &mut Gradients) -> Tensor<D> {
    let gradient = zero.grad_remove(gradients);
    gradient.unwrap_or_else(|| zero.without_autodiff().zeros_like())
}

/// The gradient of log p(label | z) in the logits z for a label that is drawn from softmax(z) with one uniform number a
/// row: one-hot(label) − softmax(z). It is what [`ParticleModel::drawn_gradient`](crate::ParticleModel::drawn_gradient) of a
/// classifier returns.
///
/// # Shapes
/// - `probabilities`: softmax(z), `[N, C, B]`
/// - `uniforms`: in [0, 1), `[N, B]`
/// - returns `[N, C, B]`
pub fn drawn_residual(probabilities: Tensor<3>, uniforms: Tensor<2>) -> Tensor<3> {
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
