//! A convolution block as one operation of Burn, with its pass back.

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex, FlexDevice, TensorMetadata};
use burn::tensor::{Tensor, TensorData};

use super::LANES;
use super::backward::{Output, backward};
use super::forward::{Input, forward};
use super::plan::{Block, Plan};

/// Whether a tensor lives on flex, and keeps what the pass back needs if it is on a tape.
pub(super) fn is_here<const D: usize>(tensor: &Tensor<D>) -> bool {
    match tensor.is_autodiff() {
        true => tensor.clone().try_into_primitive::<Autodiff<Flex>>().is_ok(),
        false => tensor.clone().try_into_primitive::<Flex>().is_ok(),
    }
}

/// The block, on the tape where one of its tensors is.
pub(super) fn on_tape(images: Tensor<6>, weight: Tensor<5>, bias: Tensor<2>, block: Block) -> Tensor<6> {
    const HERE: &str = "images that lanes can hold are on flex, and so are the weights of their model";
    if !(images.is_autodiff() || weight.is_autodiff() || bias.is_autodiff()) {
        let images = images.try_into_primitive::<Flex>().expect(HERE);
        let weight = weight.try_into_primitive::<Flex>().expect(HERE);
        let bias = bias.try_into_primitive::<Flex>().expect(HERE);
        return Tensor::from_primitive::<Flex>(Forth::run(&images, &weight, &bias, block, false).values);
    }
    let images = images.autodiff().try_into_primitive::<Autodiff<Flex>>().expect(HERE);
    let weight = weight.autodiff().try_into_primitive::<Autodiff<Flex>>().expect(HERE);
    let bias = bias.autodiff().try_into_primitive::<Autodiff<Flex>>().expect(HERE);
    let nodes = [images.node(), weight.node(), bias.node()];
    let parts = (images.primitive(), weight.primitive(), bias.primitive());
    let output = match BlockBackward.prepare::<NoCheckpointing>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => {
            let forth = Forth::run(parts.0, parts.1, parts.2, block, true);
            let values = forth.values.clone();
            prep.finish(forth, values)
        }
        OpsKind::UnTracked(prep) => prep.finish(Forth::run(parts.0, parts.1, parts.2, block, false).values),
    };
    Tensor::from_primitive::<Autodiff<Flex>>(output)
}

/// What the pass back needs of the one forth.
#[derive(Clone, Debug)]
struct Forth {
    plan: Plan,
    images: FloatTensor<Flex>,
    weight: FloatTensor<Flex>,
    values: FloatTensor<Flex>,
    picks: Arc<Vec<u8>>,
}

impl Forth {
    /// `keep`: whether there will be a pass back.
    fn run(
        images: &FloatTensor<Flex>,
        weight: &FloatTensor<Flex>,
        bias: &FloatTensor<Flex>,
        block: Block,
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
    type State = Forth;

    fn backward(self, ops: Ops<Forth, 3>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let [images, weight, bias] = ops.parents;
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let Forth { plan, images: before, weight: weights, values, picks } = ops.state;
        let [particles, outputs, inputs, high, wide] = weights.shape().dims();
        let [_, blocks, _, height, width, _] = before.shape().dims();
        let input = Input { images: numbers(&before), weights: numbers(&weights), blocks };
        let output = Output { values: numbers(&values), picks: &picks, gradient: numbers(&gradient) };
        // The images of the first convolution are data: nobody asks for their gradient, a third of the work.
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
