//! A convolution block as one operation of Burn, with its backward pass.

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex, FlexDevice, TensorMetadata};
use burn::tensor::{Tensor, TensorData};

use super::backward::{Output, backward};
use super::forward::{Input, forward};
use super::plan::{BlockOptions, LANES, Plan};

/// Whether a tensor is on flex, on a tape or not.
pub(in crate::layer) fn is_on_flex<const D: usize>(tensor: &Tensor<D>) -> bool {
    match tensor.is_autodiff() {
        true => tensor.clone().try_into_primitive::<Autodiff<Flex>>().is_ok(),
        false => tensor.clone().try_into_primitive::<Flex>().is_ok(),
    }
}

/// The block, on the tape if one of its tensors is.
pub(super) fn on_tape(images: Tensor<6>, weight: Tensor<5>, bias: Tensor<2>, block: BlockOptions) -> Tensor<6> {
    const ON_FLEX: &str = "images that lanes can hold are on flex, and so are the weights of their model";
    if !(images.is_autodiff() || weight.is_autodiff() || bias.is_autodiff()) {
        let images = images.try_into_primitive::<Flex>().expect(ON_FLEX);
        let weight = weight.try_into_primitive::<Flex>().expect(ON_FLEX);
        let bias = bias.try_into_primitive::<Flex>().expect(ON_FLEX);
        return Tensor::from_primitive::<Flex>(SavedForward::run(&images, &weight, &bias, block, false).values);
    }
    let images = images.autodiff().try_into_primitive::<Autodiff<Flex>>().expect(ON_FLEX);
    let weight = weight.autodiff().try_into_primitive::<Autodiff<Flex>>().expect(ON_FLEX);
    let bias = bias.autodiff().try_into_primitive::<Autodiff<Flex>>().expect(ON_FLEX);
    let nodes = [images.node(), weight.node(), bias.node()];
    let parts = (images.primitive(), weight.primitive(), bias.primitive());
    let output = match BlockBackward.prepare::<NoCheckpointing>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => {
            let forward = SavedForward::run(parts.0, parts.1, parts.2, block, true);
            let values = forward.values.clone();
            prep.finish(forward, values)
        }
        OpsKind::UnTracked(prep) => prep.finish(SavedForward::run(parts.0, parts.1, parts.2, block, false).values),
    };
    Tensor::from_primitive::<Autodiff<Flex>>(output)
}

/// The results of the forward pass that the backward pass needs.
#[derive(Clone, Debug)]
struct SavedForward {
    plan: Plan,
    images: FloatTensor<Flex>,
    weight: FloatTensor<Flex>,
    values: FloatTensor<Flex>,
    picks: Arc<Vec<u8>>,
}

impl SavedForward {
    /// The forward pass; `keep` says whether a backward pass will follow.
    fn run(
        images: &FloatTensor<Flex>,
        weight: &FloatTensor<Flex>,
        bias: &FloatTensor<Flex>,
        block: BlockOptions,
        keep: bool,
    ) -> Self {
        let (images, weight, bias) = (images.to_contiguous(), weight.to_contiguous(), bias.to_contiguous());
        let ([_, blocks, _, height, width, _], [particles, outputs, inputs, high, wide]) =
            (images.shape().dims(), weight.shape().dims());
        let plan = Plan::new(block, [outputs, inputs, high, wide], [height, width]);
        let input = Input { images: numbers(&images), weights: numbers(&weight), blocks };
        let (values, picks) = forward(&plan, input, numbers(&bias), keep && block.pool[0] > 1);
        let [down, across] = plan.pooled;
        let values = tensor(values, [particles, blocks, outputs, down, across, LANES]);
        Self { plan, images, weight, values, picks: Arc::new(picks) }
    }
}

#[derive(Debug)]
struct BlockBackward;

impl Backward<Flex, 3> for BlockBackward {
    type State = SavedForward;

    fn backward(self, ops: Ops<SavedForward, 3>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let [images, weight, bias] = ops.parents;
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let SavedForward { plan, images: before, weight: weights, values, picks } = ops.state;
        let [particles, outputs, inputs, high, wide] = weights.shape().dims();
        let [_, blocks, _, height, width, _] = before.shape().dims();
        let input = Input { images: numbers(&before), weights: numbers(&weights), blocks };
        let output = Output { values: numbers(&values), picks: &picks, gradient: numbers(&gradient) };
        // The images of the first convolution are data: their gradient, a third of the work, is not needed.
        let found = backward(&plan, input, output, images.is_some());
        if let Some(node) = images {
            grads.register::<Flex>(node.id, tensor(found.images, [particles, blocks, inputs, height, width, LANES]));
        }
        if let Some(node) = weight {
            grads.register::<Flex>(node.id, tensor(found.weights, [particles, outputs, inputs, high, wide]));
        }
        if let Some(node) = bias {
            grads.register::<Flex>(node.id, tensor(found.bias, [particles, outputs]));
        }
    }
}

fn numbers(tensor: &FloatTensor<Flex>) -> &[f32] {
    tensor.as_slice().expect("a contiguous tensor of f32: lanes hold nothing else")
}

fn tensor<const D: usize>(numbers: Vec<f32>, shape: [usize; D]) -> FloatTensor<Flex> {
    Flex::float_from_data(TensorData::new(numbers, shape), &FlexDevice)
}
