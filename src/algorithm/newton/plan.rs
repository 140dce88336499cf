//! The form of the sites' curvature for one model: what is stored for each site, and how it acts on a displacement.
//!
//! A site's score is G − b·(U_now − U_then): b is its curvature and U accumulates the displacements of Θ, each
//! multiplied by the second moments of the layers' inputs at its time. With `diagonal` and `full` there are no second
//! moments, and U is a displacement of Θ itself.

use std::sync::Arc;

use burn::tensor::Tensor;
use fedstein_models::{LayerCurvature, Layout, Model, RowCurvature};
use serde::{Deserialize, Serialize};

use super::names::{CURVATURE, GRADIENT, OWN_MOMENTS, SHARED_MOMENTS};
use crate::backend::Session;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::Message;

/// The form of a site's curvature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The diagonal of the Gauss-Newton matrix.
    Diagonal,
    /// The whole matrix, of a model with one output.
    Full,
    /// One number for each output of a layer, times the second moment of the layer's inputs.
    Kronecker,
    /// A matrix over the outputs of a layer, times the second moment of the layer's inputs.
    Kfac,
}

impl Form {
    /// Whether a layer's curvature has a factor for its inputs and one for its outputs.
    pub fn has_factors(self) -> bool {
        matches!(self, Self::Kronecker | Self::Kfac)
    }
}

/// The number of tensor elements that a group of rows may take in a pass for the curvature, 64 MiB in `f32`; the pass itself
/// takes some times as many.
const GROUP: usize = 1 << 24;

/// A dense layer or a convolution: its blocks of weights and biases and its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub weight: usize,
    pub bias: Option<usize>,
    /// The numbers of outputs, and of inputs with the 1 of the bias.
    pub outputs: usize,
    pub inputs: usize,
    /// Whether all particles share the inputs.
    pub shared: bool,
    /// Whether the second moment of the inputs is a diagonal.
    pub diagonal: bool,
    /// Whether the factor of the outputs is a matrix.
    pub mixed: bool,
}

/// What follows from the form and the model.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub form: Form,
    /// The largest number of rows whose curvature is computed at once.
    pub rows_at_once: usize,
    pub layers: Vec<Layer>,
    /// The block of log γ.
    pub noise: Option<usize>,
    /// Blocks of a curvature `[N, m]`.
    pub curvature: Arc<Layout>,
    /// Blocks of the second moments that every particle has for itself, `[N, m']`; `None` where there are none.
    pub own_moments: Option<Arc<Layout>>,
    /// Blocks of the second moments that all particles share, `[1, m'']`; `None` where there are none.
    pub shared_moments: Option<Arc<Layout>>,
}

/// Second moments of the layers' inputs, in those of a convolution summed over positions: diagonals `[1, in]` of dense
/// layers and matrices `[1, in·in]` of convolutions whose inputs all particles share, and matrices `[N, in·in]` of the
/// other layers.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    pub shared: Option<Particles>,
    pub own: Option<Particles>,
}

/// The sums over rows that a client sends: a curvature before its scale, and second moments.
pub(super) struct Sums {
    pub curvature: Particles,
    pub moments: Moments,
}

impl Moments {
    /// The running mean (1 − w)·self + w·new.
    pub fn towards(self, new: Self, w: f64) -> Self {
        let mix = |old: Option<Particles>, new: Option<Particles>| match (old, new) {
            (Some(old), Some(new)) => Some(old.zip(new, |old, new| old.mul_scalar(1.0 - w) + new.mul_scalar(w))),
            (_, new) => new,
        };
        Self { shared: mix(self.shared, new.shared), own: mix(self.own, new.own) }
    }

    /// Those that there are, with their names.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &Particles)> {
        let all = [(SHARED_MOMENTS, &self.shared), (OWN_MOMENTS, &self.own)];
        all.into_iter().filter_map(|(name, of)| Some((name, of.as_ref()?)))
    }

    /// A message with them.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn add_to(&self, message: Message) -> Result<Message, RunError> {
        self.named().try_fold(message, |message, (name, of)| Ok(message.with_array(name, of.to_array()?)))
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.named().map(|(_, of)| of.bytes()).sum()
    }
}

impl Plan {
    /// The plan for a model; `probe` is the curvature of any rows.
    ///
    /// # Errors
    /// The model has no curvature of this form.
    pub fn new(form: Form, model: &dyn Model, probe: Option<RowCurvature>) -> Result<Self, RunError> {
        let refuse = |needs: &str| RunError::Config(format!("algorithm kind `newton-dsvgd` needs {needs}"));
        let probe = probe.ok_or_else(|| {
            refuse(
                "a logistic regression or a network of dense layers and convolutions, whose curvature it computes; \
                 `model.kind` = \"blr\", \"bnn\" or \"stack\"",
            )
        })?;
        let layer = |layer: &LayerCurvature| {
            let [outputs, inputs] = layer.sizes();
            let (shared, diagonal) = (layer.is_shared(), layer.has_diagonal_moment());
            let mixed = form == Form::Kfac && outputs > 1 && layer.output_moments().is_some();
            Layer { weight: layer.weight, bias: layer.bias, outputs, inputs, shared, diagonal, mixed }
        };
        let layers: Vec<Layer> = probe.layers.iter().map(layer).collect();
        let rows_at_once = (GROUP / probe.elements_per_row().max(1)).max(1);
        let noise = probe.noise.map(|(block, _)| block);
        let blocks = model.layout().blocks();
        let curvature = match form {
            Form::Diagonal => model.layout().clone(),
            Form::Full => match (&layers[..], &probe.layers[..]) {
                ([Layer { inputs, .. }], [layer]) if layer.has_full() => layout([("full", vec![*inputs, *inputs])]),
                _ => {
                    return Err(refuse(
                        "`algorithm.curvature` = \"diagonal\", \"kronecker\" or \"kfac\" for this model",
                    ));
                }
            },
            Form::Kronecker | Form::Kfac => {
                let factor = |layer: &Layer| match layer.mixed {
                    true => vec![layer.outputs, layer.outputs],
                    false => vec![layer.outputs],
                };
                let outputs = layers.iter().map(|layer| (blocks[layer.weight].name.as_str(), factor(layer)));
                layout(outputs.chain(noise.map(|_| ("noise", vec![1]))))
            }
        };
        let moments = |shared: bool| {
            let size =
                |layer: &Layer| if layer.diagonal { vec![layer.inputs] } else { vec![layer.inputs, layer.inputs] };
            let of = layers.iter().filter(|layer| layer.shared == shared && form.has_factors());
            let of: Vec<_> = of.map(|layer| (blocks[layer.weight].name.as_str(), size(layer))).collect();
            (!of.is_empty()).then(|| layout(of))
        };
        let (own_moments, shared_moments) = (moments(false), moments(true));
        Ok(Self { form, rows_at_once, layers, noise, curvature, own_moments, shared_moments })
    }

    /// Whether a dense first layer's curvature has nothing but a diagonal for the features of a row.
    pub fn is_diagonal_in_features(&self) -> bool {
        self.form != Form::Full && self.layers.iter().any(|layer| layer.diagonal)
    }

    /// A difference of curvatures, whose elements that act on one coordinate or one output alone may be negative by
    /// rounding; a curvature is not.
    pub fn clamped(&self, curvature: Particles) -> Particles {
        match self.form {
            Form::Full => curvature,
            Form::Diagonal => curvature.map_into(|block| block.clamp_min(0.0)),
            Form::Kronecker | Form::Kfac => {
                let mut layers = self.layers.iter();
                curvature.map_into(|block| match layers.next() {
                    Some(Layer { mixed: true, .. }) => block,
                    _ => block.clamp_min(0.0),
                })
            }
        }
    }

    /// The second moments in a message.
    ///
    /// # Errors
    /// They are missing or have another shape.
    pub fn moments_in(&self, message: &Message, session: &Session) -> Result<Moments, RunError> {
        self.read_moments(|name, layout| Ok(Particles::from_array(message.array(name)?, layout, session)?))
    }

    /// The second moments in a state.
    ///
    /// # Errors
    /// They are missing or have another shape.
    pub fn saved_moments(&self, state: &State, session: &Session) -> Result<Moments, RunError> {
        self.read_moments(|name, layout| Ok(state.particles(name, layout, session)?))
    }

    /// The second moments of this model, each read by its name.
    fn read_moments(
        &self,
        read: impl Fn(&str, &Arc<Layout>) -> Result<Particles, RunError>,
    ) -> Result<Moments, RunError> {
        let of =
            |name: &str, layout: &Option<Arc<Layout>>| layout.as_ref().map(|layout| read(name, layout)).transpose();
        Ok(Moments { shared: of(SHARED_MOMENTS, &self.shared_moments)?, own: of(OWN_MOMENTS, &self.own_moments)? })
    }

    /// Checks that a message has the site of one client, or the sums of several, at particles `[N, d]`: its gradient,
    /// its curvature and the second moments.
    ///
    /// # Errors
    /// A sentence that names the array that is missing or has another shape.
    pub fn check_shapes(&self, message: &Message, theta: &Particles) -> Result<(), String> {
        let arrays = [
            (GRADIENT, Some(theta.layout()), theta.count()),
            (CURVATURE, Some(&self.curvature), theta.count()),
            (SHARED_MOMENTS, self.shared_moments.as_ref(), 1),
            (OWN_MOMENTS, self.own_moments.as_ref(), theta.count()),
        ];
        for (name, layout, rows) in arrays {
            let Some(layout) = layout else { continue };
            let array = message.array(name).map_err(|error| error.to_string())?;
            if array.shape != [rows, layout.dim()] {
                return Err(format!("array \"{name}\" is {:?}, not [{rows}, {}]", array.shape, layout.dim()));
            }
        }
        Ok(())
    }

    /// Checks that the sums of squares in a message are not negative: the curvature and the second moments, of matrices
    /// their diagonals.
    ///
    /// # Errors
    /// A sentence that names the array.
    pub fn check(&self, message: &Message) -> Result<(), String> {
        let arrays = [
            (CURVATURE, Some(&self.curvature), self.form != Form::Diagonal),
            (SHARED_MOMENTS, self.shared_moments.as_ref(), true),
            (OWN_MOMENTS, self.own_moments.as_ref(), true),
        ];
        for (name, layout, matrices) in arrays {
            let (Some(layout), Some(array)) = (layout, message.arrays.get(name)) else { continue };
            let is_negative = |row: &[f64]| {
                layout.blocks().iter().any(|block| {
                    // The elements of a diagonal are one row and one column apart.
                    let step = match block.shape[..] {
                        [_, columns] if matrices => columns + 1,
                        _ => 1,
                    };
                    row[block.offset..block.offset + block.size()].iter().step_by(step).any(|value| *value < 0.0)
                })
            };
            if array.values.to_f64().chunks_exact(layout.dim()).any(is_negative) {
                return Err(format!("array \"{name}\" has negative sums of squares"));
            }
        }
        Ok(())
    }

    /// The number of hidden layers.
    pub fn hidden_layers(&self) -> usize {
        self.layers.len() - 1
    }

    /// The sums of the form over groups of rows, each with the factor `scale` on its curvature; `rows` is the number of all
    /// rows, over which second moments are means. `like` has the particles' layout, `[N, d]`.
    pub fn sums(
        &self,
        groups: impl Iterator<Item = RowCurvature>,
        (scale, rows): (f64, usize),
        like: &Particles,
    ) -> Sums {
        let mut total: Option<(Vec<Tensor<2>>, Vec<Tensor<2>>, Vec<Tensor<2>>)> = None;
        for group in groups {
            let new = (
                self.curvature_blocks(&group, like),
                self.moment_blocks(&group, true),
                self.moment_blocks(&group, false),
            );
            let add = |sum: Vec<Tensor<2>>, new: Vec<Tensor<2>>| sum.into_iter().zip(new).map(|(a, b)| a + b).collect();
            total = Some(match total {
                None => new,
                Some(sum) => (add(sum.0, new.0), add(sum.1, new.1), add(sum.2, new.2)),
            });
        }
        let (curvature, shared, own) = total.expect("a client has at least one row");
        let scaled = |blocks: Vec<Tensor<2>>, by: f64| -> Vec<Tensor<2>> {
            blocks.into_iter().map(|block| block.mul_scalar(by)).collect()
        };
        let mean = |blocks: Vec<Tensor<2>>, layout: &Option<Arc<Layout>>| {
            layout.as_ref().map(|layout| Particles::from_blocks(scaled(blocks, 1.0 / rows as f64), layout.clone()))
        };
        Sums {
            curvature: Particles::from_blocks(scaled(curvature, scale), self.curvature.clone()),
            moments: Moments { shared: mean(shared, &self.shared_moments), own: mean(own, &self.own_moments) },
        }
    }

    fn curvature_blocks(&self, group: &RowCurvature, like: &Particles) -> Vec<Tensor<2>> {
        let noise = |block: &Tensor<2>| {
            let per_row = group.noise.map_or(0.0, |(_, information)| information);
            block.full_like(per_row * group.rows as f64)
        };
        match self.form {
            Form::Diagonal => {
                let mut blocks: Vec<Tensor<2>> = like.blocks().iter().map(|block| block.zeros_like()).collect();
                for layer in &group.layers {
                    let (weights, biases) = layer.diagonal();
                    blocks[layer.weight] = weights;
                    if let (Some(at), Some(biases)) = (layer.bias, biases) {
                        blocks[at] = biases;
                    }
                }
                if let Some(at) = self.noise {
                    blocks[at] = noise(&blocks[at]);
                }
                blocks
            }
            Form::Full => {
                let full = group.layers[0].full().expect("the plan was made for one output and shared inputs");
                vec![full.flatten(1, 2)]
            }
            Form::Kronecker | Form::Kfac => {
                let weights = group.layers.iter().zip(&self.layers).map(|(rows, layer)| match layer.mixed {
                    true => rows.output_moments().expect("a layer with drawn labels").flatten(1, 2),
                    false => rows.trace_weights(),
                });
                weights.chain(self.noise.map(|at| noise(&like.blocks()[at]))).collect()
            }
        }
    }

    fn moment_blocks(&self, group: &RowCurvature, shared: bool) -> Vec<Tensor<2>> {
        if !self.form.has_factors() {
            return Vec::new();
        }
        let layers = group.layers.iter().filter(|layer| layer.is_shared() == shared);
        layers.map(|layer| layer.moment_diagonal().unwrap_or_else(|| layer.moments().flatten(1, 2))).collect()
    }

    /// The curvature b of a site: its sums times c, and divided by the trace of the second moments where it has factors.
    pub fn scaled(&self, sums: Particles, moments: &Moments, c: f64) -> Particles {
        if !self.form.has_factors() {
            return sums.map_into(|block| block.mul_scalar(c));
        }
        let mut traces =
            self.layers.iter().zip(self.moment_of_layers(moments)).map(|(layer, moment)| match layer.diagonal {
                true => moment.sum_dim(1),
                false => {
                    let identity = Tensor::<2>::eye(layer.inputs, &moment.device()).cast(moment.dtype());
                    (moment * identity.reshape([1, layer.inputs * layer.inputs])).sum_dim(1)
                }
            });
        sums.map_into(|block| match traces.next() {
            // Inputs that are 0 everywhere have no curvature: 0 over the smallest number, not over 0.
            Some(trace) => block.mul_scalar(c) / trace.clamp_min(f64::from(f32::MIN_POSITIVE)),
            None => block.mul_scalar(c), // log γ has no inputs
        })
    }

    /// A displacement of particles, multiplied by the second moments of the layers' inputs; itself where the form has
    /// none. `[N, d]` in and out.
    pub fn transported(&self, by: Particles, moments: Option<&Moments>) -> Particles {
        let Some(moments) = moments.filter(|_| self.form.has_factors()) else { return by };
        let layout = by.layout().clone();
        let mut blocks = by.blocks().to_vec();
        for (layer, moment) in self.layers.iter().zip(self.moment_of_layers(moments)) {
            let rows = layer.rows(&blocks);
            let product = match layer.diagonal {
                true => rows * moment.unsqueeze_dim::<3>(1),
                false => {
                    let [sets, _] = moment.dims(); // 1, or the particles
                    rows.matmul(moment.reshape([sets, layer.inputs, layer.inputs]))
                }
            };
            layer.set_rows(&mut blocks, product);
        }
        Particles::from_blocks(blocks, layout)
    }

    /// The product of a curvature `[N, m]` with a transported displacement `[N, d]`: b·U, `[N, d]`.
    pub fn product(&self, curvature: &Particles, of: Particles) -> Particles {
        match self.form {
            Form::Diagonal => of.zip(curvature.clone(), |u, b| u * b),
            Form::Full => {
                let (layout, Layer { weight, inputs, .. }) = (of.layout().clone(), self.layers[0]);
                let [particles, _] = of.blocks()[weight].dims();
                let matrices = curvature.blocks()[0].clone().reshape([particles, inputs, inputs]);
                let mut blocks: Vec<Tensor<2>> = of.blocks().iter().map(|block| block.zeros_like()).collect();
                let rows = of.blocks()[weight].clone().unsqueeze_dim::<3>(1);
                blocks[weight] = rows.matmul(matrices).squeeze_dim(1);
                Particles::from_blocks(blocks, layout)
            }
            Form::Kronecker | Form::Kfac => {
                let layout = of.layout().clone();
                let mut blocks: Vec<Tensor<2>> = of.blocks().iter().map(|block| block.zeros_like()).collect();
                for (layer, weights) in self.layers.iter().zip(curvature.blocks()) {
                    let product = layer.weighted(weights, layer.rows(of.blocks()));
                    layer.set_rows(&mut blocks, product);
                }
                if let (Some(at), Some(information)) = (self.noise, curvature.blocks().last()) {
                    blocks[at] = of.blocks()[at].clone() * information.clone();
                }
                Particles::from_blocks(blocks, layout)
            }
        }
    }

    /// The second moments of each layer, in the order of the layers.
    pub fn moment_of_layers(&self, moments: &Moments) -> Vec<Tensor<2>> {
        let blocks = |of: &Option<Particles>| of.as_ref().map_or(Vec::new(), |of| of.blocks().to_vec()).into_iter();
        let (mut shared, mut own) = (blocks(&moments.shared), blocks(&moments.own));
        let of = self.layers.iter().map(|layer| if layer.shared { shared.next() } else { own.next() });
        of.map(|block| block.expect("the plan has moments for every layer")).collect()
    }
}

impl Layer {
    /// The weights and the biases beside them, `[N, out, in]`, out of blocks `[N, size]`.
    pub fn rows(&self, blocks: &[Tensor<2>]) -> Tensor<3> {
        let [particles, _] = blocks[self.weight].dims();
        let width = self.inputs - usize::from(self.bias.is_some());
        let weights = blocks[self.weight].clone().reshape([particles, self.outputs, width]);
        match self.bias {
            None => weights,
            Some(at) => Tensor::cat(vec![weights, blocks[at].clone().reshape([particles, self.outputs, 1])], 2),
        }
    }

    /// A number for each input, `[1, in]`: those of the weights, and that of the biases with their block.
    pub fn split(&self, inputs: Tensor<2>) -> (Tensor<2>, Option<(usize, Tensor<2>)>) {
        match self.bias {
            None => (inputs, None),
            Some(at) => {
                let width = self.inputs - 1;
                (inputs.clone().narrow(1, 0, width), Some((at, inputs.narrow(1, width, 1))))
            }
        }
    }

    /// The factor of the outputs, `[N, out]` or `[N, out·out]`, times rows `[N, out, in]`.
    pub fn weighted(&self, factor: &Tensor<2>, rows: Tensor<3>) -> Tensor<3> {
        match self.mixed {
            true => {
                let [particles, _] = factor.dims();
                factor.clone().reshape([particles, self.outputs, self.outputs]).matmul(rows)
            }
            false => rows * factor.clone().unsqueeze_dim::<3>(2),
        }
    }

    /// Puts [`Self::rows`] back into the blocks.
    pub fn set_rows(&self, blocks: &mut [Tensor<2>], rows: Tensor<3>) {
        let [particles, outputs, _] = rows.dims();
        let width = self.inputs - usize::from(self.bias.is_some());
        blocks[self.weight] = rows.clone().narrow(2, 0, width).reshape([particles, outputs * width]);
        if let Some(at) = self.bias {
            blocks[at] = rows.narrow(2, width, 1).reshape([particles, outputs]);
        }
    }
}

/// A layout of blocks with these names and shapes.
fn layout<'a>(blocks: impl IntoIterator<Item = (&'a str, Vec<usize>)>) -> Arc<Layout> {
    let blocks: Vec<(&str, Vec<usize>)> = blocks.into_iter().collect();
    Arc::new(Layout::new(blocks.iter().map(|(name, shape)| (*name, shape.as_slice()))))
}
