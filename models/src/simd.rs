//! Values of tensors on the CPU, and dispatch to the widest SIMD vectors of this processor, for loops that are slow as general
//! tensor operations.

use std::cell::Cell;

use burn::backend::Flex;
use burn::backend::tensor::FloatTensor;
use burn::tensor::{DType, Tensor, TensorData};
use pulp::WithSimd;

/// The most f32 lanes of any vector.
pub const MOST_LANES: usize = 16;

/// Runs an operation with the widest vectors of this processor, which are detected at run time.
#[inline]
pub fn dispatch<Op: WithSimd>(op: Op) -> Op::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(simd) = pulp::x86::V4::try_new() {
            return pulp::Simd::vectorize(simd, op);
        }
        if let Some(simd) = pulp::x86::V3::try_new() {
            return pulp::Simd::vectorize(simd, op);
        }
    }
    pulp::Arch::new().dispatch(op)
}

/// A tensor whose storage has its values in row-major order and nothing else; `None` where they are not f32 on flex. They are
/// copied only where the tensor is a view.
pub fn on_flex<const D: usize>(tensor: Tensor<D>) -> Option<FloatTensor<Flex>> {
    if tensor.dtype() != DType::F32 {
        return None;
    }
    let tensor = tensor.try_into_primitive::<Flex>().ok()?;
    let layout = tensor.layout();
    let values = layout.num_elements();
    let whole = layout.is_contiguous() && layout.start_offset() == 0 && tensor.storage::<f32>().len() == values;
    Some(if whole { tensor } else { tensor.to_contiguous() })
}

/// A matrix on flex with these values, row-major.
pub(crate) fn matrix(values: Vec<f32>, shape: [usize; 2]) -> Tensor<2> {
    Tensor::from_primitive::<Flex>(FloatTensor::<Flex>::from_data(TensorData::new(values, shape)))
}

/// Runs `f` on a buffer of `count` numbers that this thread keeps for the next time. What they are is unspecified: those of the
/// time before, as a rule. An allocation of some kilobytes takes longer than many of the loops that need one.
pub fn with_room<R>(count: usize, f: impl FnOnce(&mut [f32]) -> R) -> R {
    thread_local!(static ROOM: Cell<Vec<f32>> = const { Cell::new(Vec::new()) });
    // If `f` does the same, it has another buffer.
    let mut room = ROOM.take();
    if room.len() < count {
        room.resize(count, 0.0);
    }
    let result = f(&mut room[..count]);
    ROOM.set(room);
    result
}
