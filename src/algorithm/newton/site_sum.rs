//! The sum of some clients' sites near the particles at which it was taken: A − Λ (Θ − Θ_0).
//!
//! Λ has one number for each coordinate where a curvature is diagonal and in dense layers whose inputs all particles
//! share. There the second term is the score of a Gaussian, which SVGD adds up on its pass over the coordinates: a step
//! reads Θ_0, A and Λ once more and writes nothing; of such a layer Λ is a number for each output times one for each
//! input, and only these are read. With a matrix over the outputs, such a layer is a product with it, input by input. The
//! other layers, those above the first and convolutions, are products with their second moments.

use std::sync::Arc;

use burn::tensor::{Tensor, TensorData};

use super::plan::{Form, Layer, Moments, Plan};
use crate::particles::Particles;
use crate::simd::{Host, OutputMatrices};
use crate::stein::{Precisions, Score};

/// The sum of some sites: A − Λ (Θ − Θ_0).
pub(crate) struct SiteSum {
    /// Θ_0, `[N, d]`.
    from: Particles,
    /// A, `[N, d]`.
    score: Particles,
    /// The elements of Λ of each block, `None` of those where it is not diagonal; `None` of a form without diagonal blocks.
    diagonal: Option<Arc<Vec<Option<Precisions>>>>,
    /// The layers where Λ is a matrix over the outputs and diagonal in the inputs.
    mixed: Vec<Mixed>,
    /// The other layers where Λ is not diagonal.
    products: Vec<Product>,
}

/// Λ on one layer with the weights V: V ↦ B (V∘m).
struct Mixed {
    /// The blocks of the weights and of the biases, and m of their inputs, `[1, in]`.
    blocks: Vec<(usize, Tensor<2>)>,
    layer: Layer,
    /// B, `[N, out·out]`.
    outputs: Tensor<2>,
    /// B for the CPU's loop; `None` on another device and in f64.
    on_host: Option<OutputMatrices>,
}

/// Λ on one layer with the weights V: V ↦ b·(V Ā).
struct Product {
    layer: Layer,
    /// The rows of Θ_0 and of A, `[N, out, in]`.
    from: Tensor<3>,
    score: Tensor<3>,
    /// Ā, `[N, in, in]`, or `[1, in, in]` of inputs that all particles share.
    moments: Tensor<3>,
    /// The factor of the outputs, `[N, out]` or `[N, out·out]`; `None` for 1.
    weights: Option<Tensor<2>>,
}

impl SiteSum {
    /// The sum with the score A `[N, d]` at the particles Θ_0 `[N, d]` and the curvature `[N, m]` of the plan's form.
    pub(super) fn new(
        plan: &Plan,
        from: Particles,
        score: Particles,
        curvature: &Particles,
        moments: &Moments,
    ) -> Self {
        let product = |layer: Layer, moments: Tensor<2>, weights: Option<Tensor<2>>| {
            let [particles, _] = moments.dims();
            let moments = moments.reshape([particles, layer.inputs, layer.inputs]);
            Product { layer, from: layer.rows(from.blocks()), score: layer.rows(score.blocks()), moments, weights }
        };
        let mut mixed = Vec::new();
        let (diagonal, products) = match plan.form {
            Form::Diagonal => {
                let blocks = curvature.blocks().iter().cloned().map(Precisions::of_coordinates).map(Some).collect();
                (Some(Arc::new(blocks)), Vec::new())
            }
            Form::Full => (None, vec![product(plan.layers[0], curvature.blocks()[0].clone(), None)]),
            Form::Kronecker | Form::Kfac => {
                let mut blocks = vec![None; from.blocks().len()];
                let mut products = Vec::new();
                let layers = plan.layers.iter().zip(curvature.blocks()).zip(plan.moment_of_layers(moments));
                for ((layer, weights), moments) in layers {
                    match (layer.diagonal, layer.mixed) {
                        (true, true) => mixed.push(Mixed::new(*layer, moments, weights.clone())),
                        (true, false) => {
                            let (inputs, of_bias) = layer.split(moments);
                            if let Some((at, moment)) = of_bias {
                                blocks[at] = Some(Precisions::of_coordinates(weights.clone() * moment));
                            }
                            blocks[layer.weight] = Some(Precisions::of_layer(weights.clone(), inputs));
                        }
                        (false, _) => products.push(product(*layer, moments, Some(weights.clone()))),
                    }
                }
                if let (Some(at), Some(information)) = (plan.noise, curvature.blocks().last()) {
                    blocks[at] = Some(Precisions::of_coordinates(information.clone()));
                }
                (Some(Arc::new(blocks)), products)
            }
        };
        Self { from, score, diagonal, mixed, products }
    }

    /// Θ_0, `[N, d]`.
    pub fn from(&self) -> &Particles {
        &self.from
    }

    /// The score at the particles Θ `[N, d]`, which are near Θ_0.
    pub fn score(&self, at: &Particles) -> Score {
        let mut blocks = self.score.blocks().to_vec();
        for mixed in &self.mixed {
            for (block, inputs) in &mixed.blocks {
                let [score, from, at] = [&self.score, &self.from, at].map(|set| &set.blocks()[*block]);
                blocks[*block] = mixed.score(score, from, at, inputs);
            }
        }
        for product in &self.products {
            product.layer.set_rows(&mut blocks, product.score(at.blocks()));
        }
        let score = Score::dense(Particles::from_blocks(blocks, self.score.layout().clone()));
        match &self.diagonal {
            None => score,
            Some(precision) => score.plus(Score::gaussian(self.from.clone(), precision.clone())),
        }
    }
}

impl Mixed {
    /// Λ of a layer with the second moments m `[1, in]` and the matrices B `[N, out·out]`.
    fn new(layer: Layer, moments: Tensor<2>, outputs: Tensor<2>) -> Self {
        let (inputs, of_bias) = layer.split(moments);
        let blocks = std::iter::once((layer.weight, inputs)).chain(of_bias).collect();
        let on_host = Host::of(outputs.clone()).map(|matrices| OutputMatrices::new(&matrices, layer.outputs));
        Self { blocks, layer, outputs, on_host }
    }

    /// A − B ((Θ − Θ_0)∘m) of one block, `[N, size]`.
    fn score(&self, score: &Tensor<2>, from: &Tensor<2>, at: &Tensor<2>, inputs: &Tensor<2>) -> Tensor<2> {
        let ([particles, size], [_, width]) = (score.dims(), inputs.dims());
        let hosts = Host::all([score, from, at, inputs].map(Tensor::clone));
        if let (Some(matrices), Some([of_score, from, at, inputs])) = (&self.on_host, hosts.as_deref()) {
            let values = matrices.score(of_score, from, at, inputs);
            return Tensor::from_data(TensorData::new(values, [particles, size]), &score.device());
        }
        let moved = (at.clone() - from.clone()).reshape([particles, self.layer.outputs, width]);
        let change = self.layer.weighted(&self.outputs, moved * inputs.clone().unsqueeze_dim::<3>(1));
        score.clone() - change.reshape([particles, size])
    }
}

impl Product {
    /// The rows of the score, `[N, out, in]`, at particles with these blocks.
    fn score(&self, at: &[Tensor<2>]) -> Tensor<3> {
        let moved = self.layer.rows(at) - self.from.clone();
        let change = moved.matmul(self.moments.clone());
        let change = match &self.weights {
            Some(weights) => self.layer.weighted(weights, change),
            None => change,
        };
        self.score.clone() - change
    }
}

#[cfg(test)]
mod tests {
    use fedstein_models::{BlrConfig, BnnConfig, Head, Layout, Model, Network};
    use ndarray::Array2;
    use rand::rngs::ChaCha12Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::array::{Array, Values};
    use crate::backend::{Flex, Precision, Session};

    const COUNT: usize = 3;

    /// `[rows, d]` numbers between −1 and 1, the same in both precisions.
    fn set(rows: usize, layout: &Arc<Layout>, seed: u64, session: &Session) -> Particles {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let numbers = (0..rows * layout.dim()).map(|_| f64::from(rng.random_range(-1.0f32..1.0))).collect();
        let array = Array { shape: vec![rows, layout.dim()], values: Values::F64(numbers) };
        Particles::from_array(&array, layout, session).unwrap()
    }

    fn values(of: &Particles) -> Array2<f64> {
        Array2::from_shape_vec((of.count(), of.dim()), of.to_array().unwrap().values.to_f64()).unwrap()
    }

    /// A sum of any numbers, and its score at Θ = `at` as the code computes it.
    struct Case {
        from: Array2<f64>,
        score: Array2<f64>,
        at: Array2<f64>,
        curvature: Array2<f64>,
        /// The second moments of the inputs that all particles share, and of the others; of Kronecker factors only.
        shared: Option<Array2<f64>>,
        own: Option<Array2<f64>>,
        got: Array2<f64>,
    }

    impl Case {
        fn new(form: Form, model: &dyn Model, features: usize, precision: Precision) -> Self {
            let session = Session::open::<Flex>(precision).unwrap();
            let [from, score, at] = [1, 2, 3].map(|seed| set(COUNT, model.layout(), seed, &session));
            let row = session.matrix(&Array2::ones((1, features)));
            let uniforms = session.matrix(&Array2::zeros((COUNT, 1)));
            let plan = Plan::new(form, model, model.row_curvature(from.blocks(), row, uniforms)).unwrap();
            let curvature = set(COUNT, &plan.curvature, 4, &session);
            let moments = Moments {
                shared: plan.shared_moments.as_ref().map(|layout| set(1, layout, 5, &session)),
                own: plan.own_moments.as_ref().map(|layout| set(COUNT, layout, 6, &session)),
            };
            let sum = SiteSum::new(&plan, from.clone(), score.clone(), &curvature, &moments);
            assert_eq!(values(&sum.score(&from).evaluate(&from)), values(&score));
            let got = values(&sum.score(&at).evaluate(&at));
            let [from, score, at, curvature] = [from, score, at, curvature].map(|of| values(&of));
            let (shared, own) = (moments.shared.as_ref().map(values), moments.own.as_ref().map(values));
            Self { from, score, at, curvature, shared, own, got }
        }

        /// Compares the score with A minus the product of Λ and Θ − Θ_0, `[N, d]`, whose sums have `terms` terms at most.
        fn compare(&self, product: &Array2<f64>, terms: usize, precision: Precision, what: &str) {
            let error = (&self.score - product - &self.got).fold(0.0f64, |most, gap| most.max(gap.abs()));
            // Of products of numbers below 1.
            let bound = terms as f64 * if precision == Precision::F64 { 6e-15 } else { 6e-7 };
            assert!(error < bound, "{what}, {precision:?}: {error}");
        }
    }

    const PRECISIONS: [Precision; 2] = [Precision::F32, Precision::F64];

    #[test]
    fn kronecker_factors_act_on_the_rows_of_each_layer() {
        kronecker_factors_act_on_rows(5, [4, 3]);
    }

    /// Tiles of inputs, whole and broken ones, and groups of outputs of every size.
    #[test]
    fn kronecker_factors_act_on_the_rows_of_a_wide_layer() {
        kronecker_factors_act_on_rows(1063, [25, 3]);
    }

    fn kronecker_factors_act_on_rows(features: usize, hidden: [usize; 2]) {
        let head = Head::Real { gamma_shape: 1.0, gamma_rate: 0.1 };
        // Inputs and outputs of the layers; weights, biases and so on, and log γ last.
        let layers = [(features, hidden[0]), (hidden[0], hidden[1]), (hidden[1], 1)];
        let model = Network::new(BnnConfig { head, ..BnnConfig::classifier(features, &hidden, 2) });
        for (form, precision) in
            [Form::Kronecker, Form::Kfac].into_iter().flat_map(|form| PRECISIONS.map(|p| (form, p)))
        {
            let case = Case::new(form, &model, features, precision);
            let (shared, own) = (case.shared.as_ref().unwrap(), case.own.as_ref().unwrap());
            let moved = &case.at - &case.from;
            let mut product = Array2::zeros(moved.dim());
            let (mut start, mut first_output, mut first_moment) = (0, 0, 0);
            for (layer, (inputs, outputs)) in layers.into_iter().enumerate() {
                // The last layer has one output, of which a matrix is one number.
                let matrix = form == Form::Kfac && outputs > 1;
                let place = |output: usize, input: usize| match input == inputs {
                    true => start + outputs * inputs + output,
                    false => start + output * inputs + input,
                };
                for n in 0..COUNT {
                    for (output, j) in (0..outputs).flat_map(|output| (0..=inputs).map(move |j| (output, j))) {
                        let sum = |output: usize| -> f64 {
                            match layer {
                                0 => moved[[n, place(output, j)]] * shared[[0, j]],
                                _ => (0..=inputs)
                                    .map(|i| {
                                        moved[[n, place(output, i)]] * own[[n, first_moment + i * (inputs + 1) + j]]
                                    })
                                    .sum(),
                            }
                        };
                        let factor = |at: usize| case.curvature[[n, first_output + at]];
                        product[[n, place(output, j)]] = match matrix {
                            true => (0..outputs).map(|other| factor(output * outputs + other) * sum(other)).sum(),
                            false => factor(output) * sum(output),
                        };
                    }
                }
                start += (inputs + 1) * outputs;
                first_output += if matrix { outputs * outputs } else { outputs };
                first_moment += if layer == 0 { 0 } else { (inputs + 1) * (inputs + 1) };
            }
            assert_eq!((start + 1, first_output + 1), (moved.ncols(), case.curvature.ncols()));
            for n in 0..COUNT {
                product[[n, start]] = case.curvature[[n, first_output]] * moved[[n, start]];
            }
            let terms = hidden[0].max((hidden[0] + 1) * hidden[1]);
            case.compare(&product, terms, precision, &format!("{form:?}"));
        }
    }

    #[test]
    fn a_diagonal_acts_on_each_coordinate_and_a_matrix_on_the_weights_of_a_logistic_regression() {
        let network = Network::new(BnnConfig::classifier(5, &[4], 3));
        let regression = Network::new(BlrConfig::new(4));
        for precision in PRECISIONS {
            let case = Case::new(Form::Diagonal, &network, 5, precision);
            case.compare(&(&case.curvature * &(&case.at - &case.from)), 1, precision, "diagonal");

            let case = Case::new(Form::Full, &regression, 4, precision);
            let moved = &case.at - &case.from;
            // The last coordinate is the log precision of the weights, of which the rows say nothing.
            let product = Array2::from_shape_fn(moved.dim(), |(n, j)| match j {
                4 => 0.0,
                _ => (0..4).map(|i| moved[[n, i]] * case.curvature[[n, 4 * i + j]]).sum(),
            });
            case.compare(&product, 4, precision, "full");
        }
    }
}
