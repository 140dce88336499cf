//! Products with the rows that all particles share.
//!
//! The gradient of a first layer is as large as the particles. Burn's flex backend writes the product of two matrices to
//! bytes that it has zeroed and then copied to an aligned place: two passes over memory before the product begins, a tenth
//! of an SVGD step and more (docs/performance.md). Its convolution whose kernel is a single point is the same product, by
//! the same crate with the same bits, and starts from numbers that are aligned already.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::ops::{FloatTensorOps, ModuleOps};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex, TensorMetadata};
use burn::tensor::Tensor;
use burn::tensor::ops::ConvOptions;

use super::lanes::is_on_flex;

/// W xᵀ of all particles' weights and the rows that they share, on the tape if one of them is.
///
/// # Shapes
/// - `weight`: `[R, in]`
/// - `x`: `[B, in]`
/// - returns `[R, B]`
pub(crate) fn outputs(weight: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
    if !(weight.is_autodiff() && is_on_flex(&weight)) {
        return weight.matmul(x.transpose());
    }
    const ON_FLEX: &str = "the rows are where the weights are";
    let weight = weight.try_into_primitive::<Autodiff<Flex>>().expect(ON_FLEX);
    let x = x.autodiff().try_into_primitive::<Autodiff<Flex>>().expect(ON_FLEX);
    let nodes = [weight.node(), x.node()];
    let (weight, x) = (weight.primitive().clone(), x.primitive().clone());
    let product = Flex::float_matmul(weight.clone(), Flex::float_transpose(x.clone()));
    let output = match OutputsBackward.prepare::<NoCheckpointing>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish((weight, x), product),
        OpsKind::UnTracked(prep) => prep.finish(product),
    };
    Tensor::from_primitive::<Autodiff<Flex>>(output)
}

/// M x for a matrix and rows that all particles share, neither of them on a tape: their weights' gradient where M is that
/// of [`outputs`].
///
/// # Shapes
/// - `matrix`: `[R, B]`
/// - `x`: `[B, in]`
/// - returns `[R, in]`
pub(crate) fn sums(matrix: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
    if matrix.is_autodiff() || x.is_autodiff() || !is_on_flex(&matrix) {
        return matrix.matmul(x);
    }
    const ON_FLEX: &str = "the rows are where the matrix is";
    let matrix = matrix.try_into_primitive::<Flex>().expect(ON_FLEX);
    let x = x.try_into_primitive::<Flex>().expect(ON_FLEX);
    Tensor::from_primitive::<Flex>(product(matrix, x))
}

/// M x on flex: a convolution of one image with B channels, whose positions are the columns of x, by R kernels of one
/// point.
fn product(matrix: FloatTensor<Flex>, x: FloatTensor<Flex>) -> FloatTensor<Flex> {
    let ([outputs, rows], [_, inputs]) = (matrix.shape().dims(), x.shape().dims());
    let image = Flex::float_reshape(x, [1, rows, inputs].into());
    let kernels = Flex::float_reshape(matrix, [outputs, rows, 1].into());
    let product = Flex::conv1d(image, kernels, None, ConvOptions::new([1], [0], [1], 1));
    Flex::float_reshape(product, [outputs, inputs].into())
}

#[derive(Debug)]
struct OutputsBackward;

impl Backward<Flex, 2> for OutputsBackward {
    /// W and x.
    type State = (FloatTensor<Flex>, FloatTensor<Flex>);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let [weight, x] = ops.parents;
        let gradient = grads.consume::<Flex>(&ops.node);
        let (weights, rows) = ops.state;
        if let Some(node) = x {
            let transposed = Flex::float_transpose(gradient.clone());
            grads.register::<Flex>(node.id, Flex::float_matmul(transposed, weights));
        }
        if let Some(node) = weight {
            grads.register::<Flex>(node.id, product(gradient, rows));
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Distribution};

    use super::*;

    fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().try_into_vec().unwrap()
    }

    /// Sizes below and above those at which a product runs on several threads.
    const SIZES: [[usize; 3]; 3] = [[6, 5, 4], [200, 33, 784], [1000, 100, 784]];

    #[test]
    fn sums_have_the_bits_of_the_matrix_product() {
        let device = Device::flex();
        for [outputs, rows, inputs] in SIZES {
            let matrix = Tensor::<2>::random([outputs, rows], Distribution::Default, &device);
            let x = Tensor::<2>::random([rows, inputs], Distribution::Default, &device);
            assert_eq!(numbers(sums(matrix.clone(), x.clone())), numbers(matrix.matmul(x)));
        }
    }

    #[test]
    fn outputs_and_both_gradients_have_the_bits_of_burn_s_own_tape() {
        let device = Device::flex();
        for [outs, rows, inputs] in SIZES {
            let weight = Tensor::<2>::random([outs, inputs], Distribution::Default, &device);
            let x = Tensor::<2>::random([rows, inputs], Distribution::Default, &device);
            let results = [outputs as fn(Tensor<2>, Tensor<2>) -> Tensor<2>, |w, x| w.matmul(x.transpose())].map(|f| {
                let (w, x) = (weight.clone().autodiff().require_grad(), x.clone().autodiff().require_grad());
                let value = f(w.clone(), x.clone());
                let gradients = value.clone().square().sum().backward();
                [value, w.grad(&gradients).unwrap(), x.grad(&gradients).unwrap()].map(numbers)
            });
            assert!(results[0] == results[1], "{outs} x {rows} x {inputs}");
        }
    }

    #[test]
    fn rows_off_the_tape_have_no_gradient() {
        let device = Device::flex();
        let weight = Tensor::<2>::ones([2, 3], &device).autodiff().require_grad();
        let x = Tensor::<2>::from_data([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], &device);
        let gradients = outputs(weight.clone(), x).sum().backward();
        assert_eq!(numbers(weight.grad(&gradients).unwrap()), [5.0, 7.0, 9.0, 5.0, 7.0, 9.0]);
    }
}
