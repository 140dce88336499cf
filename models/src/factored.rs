//! A likelihood's score in which the largest block is not multiplied yet.

use burn::tensor::Tensor;

use crate::layer::shared;

/// The gradient Σ_i a_ni x_iᵀ of a dense layer that reads the rows themselves: each particle has its own a, and all share x.
///
/// A product with a matrix over particles is quicker to take on a, `[N, out, B]`, than on the gradient, `[N, out, in]`, where
/// there are fewer rows than inputs: Σ_m k_nm a_mi x_iᵀ = (Σ_m k_nm a_mi) x_iᵀ.
#[derive(Clone, Debug)]
pub struct SharedGradient {
    /// The gradient in the layer's outputs a, `[N, out, B]`.
    pub outputs: Tensor<3>,
    /// The rows x, `[B, in]`.
    pub inputs: Tensor<2>,
}

impl SharedGradient {
    /// The gradient in the weights, `[N, out·in]`.
    pub fn weights(&self) -> Tensor<2> {
        let [particles, outputs, rows] = self.outputs.dims();
        let matrix = self.outputs.clone().reshape([particles * outputs, rows]);
        shared::sums(matrix, self.inputs.clone()).reshape([particles as i32, -1])
    }

    /// The squared norm of each particle's weights' gradient, `[N, 1]`, without the gradient: ‖a x‖² is the trace of a (x xᵀ)
    /// aᵀ.
    pub fn squared_norms(&self) -> Tensor<2> {
        let [particles, outputs, rows] = self.outputs.dims();
        let matrix = self.outputs.clone().reshape([particles * outputs, rows]);
        let gram = self.inputs.clone().matmul(self.inputs.clone().transpose());
        let products = matrix.clone().matmul(gram) * matrix;
        products.reshape([particles, outputs * rows]).sum_dim(1)
    }
}

/// A likelihood's score; the first block, the weights of the first layer, is not multiplied yet.
#[derive(Clone, Debug)]
pub struct FactoredScore {
    /// The gradient in the first block.
    pub first: SharedGradient,
    /// The gradients in the other blocks, one `[N, size]` tensor each.
    pub rest: Vec<Tensor<2>>,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::head::{Head, WeightPrecision};
    use crate::stack::StackConfig;
    use crate::{Batch, BnnConfig, Model, Network};

    const ROWS: usize = 6;

    /// Particles of a model, and rows with one-hot targets of three classes.
    fn setting(model: &dyn Model, features: usize) -> (Vec<Tensor<2>>, Batch) {
        let device = Device::flex();
        let tensor = |rows: usize, columns: usize, frequency: f32| {
            let values = (0..rows * columns).map(|i| (i as f32 * frequency).sin()).collect::<Vec<_>>();
            Tensor::<2>::from_data(TensorData::new(values, [rows, columns]), &device)
        };
        let blocks = model.layout().blocks().iter().map(|block| tensor(5, block.size(), 0.37)).collect();
        let one_hot = (0..ROWS * 3).map(|i| f32::from(u8::from(i % 3 == i / 3 % 3))).collect::<Vec<_>>();
        let targets = Tensor::from_data(TensorData::new(one_hot, [ROWS, 3]), &device);
        (blocks, Batch::new(tensor(ROWS, features, 0.11), targets))
    }

    fn values(tensor: Tensor<2>) -> Vec<f32> {
        tensor.into_data().try_into_vec().unwrap()
    }

    #[test]
    fn its_blocks_are_those_of_the_score_and_its_norms_those_of_the_first() {
        let wide = BnnConfig { hidden: vec![7, 4], ..BnnConfig::classifier(9, &[7], 3) };
        let stack = StackConfig {
            input: vec![9],
            layers: ["dense 7", "tanh", "dense 4", "relu"].map(|layer| layer.parse().unwrap()).to_vec(),
            head: Head::Classes(3),
            weight_precision: WeightPrecision::Fixed(1.0),
            init: crate::WeightInit::XavierUniform,
        };
        let models: [Arc<dyn Model>; 2] =
            [Arc::new(Network::new(wide)), Arc::new(Network::new(stack.check().unwrap()))];
        for model in models {
            let (particles, batch) = setting(&*model, 9);
            let whole = model.likelihood_score(&particles, &batch, 2.5);
            let FactoredScore { first, rest } = model.factored_score(&particles, &batch, 2.5).unwrap();
            assert_eq!(rest.len() + 1, whole.len());
            let norms = values(first.squared_norms());
            for (row, norm) in values(whole[0].clone()).chunks(63).zip(norms) {
                let exact: f64 = row.iter().map(|value| f64::from(*value).powi(2)).sum();
                assert!((f64::from(norm) - exact).abs() < 1e-5 * exact, "{norm}, not {exact}");
            }
            for (got, want) in std::iter::once(first.weights()).chain(rest).zip(whole) {
                assert_eq!(got.dims(), want.dims());
                let largest = values(want.clone()).into_iter().fold(0.0, |most: f32, value| most.max(value.abs()));
                assert!(largest > 0.0);
                for (got, want) in values(got).into_iter().zip(values(want)) {
                    assert!((got - want).abs() <= 1e-5 * largest, "{got}, not {want}");
                }
            }
        }
    }

    #[test]
    fn models_whose_first_block_is_not_such_a_layer_have_none() {
        let logistic = Network::new(crate::BlrConfig::new(9));
        let device = Device::flex();
        let particles: Vec<_> =
            logistic.layout().blocks().iter().map(|block| Tensor::ones([5, block.size()], &device)).collect();
        let batch = Batch::new(Tensor::ones([ROWS, 9], &device), Tensor::ones([ROWS, 2], &device));
        assert!(logistic.factored_score(&particles, &batch, 1.0).is_none());
    }
}
