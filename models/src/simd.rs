//! Dispatch to the widest SIMD vectors of this processor, for loops that are slow as general tensor operations.

use pulp::{Simd, WithSimd};

/// The most f32 lanes of any vector.
pub const MOST_LANES: usize = 16;

/// Runs an operation with the widest vectors of this processor, which are detected at run time.
#[inline]
pub fn dispatch<Op: WithSimd>(op: Op) -> Op::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(simd) = pulp::x86::V4::try_new() {
            return Simd::vectorize(simd, op);
        }
        if let Some(simd) = pulp::x86::V3::try_new() {
            return Simd::vectorize(simd, op);
        }
    }
    pulp::Arch::new().dispatch(op)
}
