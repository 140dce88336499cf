//! Functions of each number by itself, in SIMD vectors on the CPU.

use pulp::{Simd, WithSimd};

use crate::simd::dispatch;

/// A function of numbers, computed for a whole vector of them.
///
/// An implementation is `#[inline(always)]`, as the functions in `mean.rs` are. It is a type and not a closure, which could not
/// be generic over the vectors.
pub(crate) trait VectorFunction: Copy {
    /// Its values at the numbers of `x`.
    fn of<S: Simd>(self, simd: S, x: S::f32s) -> S::f32s;
}

/// Replaces every number x by f(x).
pub(crate) fn apply(f: impl VectorFunction, values: &mut [f32]) {
    dispatch(Elementwise { f, values });
}

struct Elementwise<'a, F> {
    f: F,
    values: &'a mut [f32],
}

impl<F: VectorFunction> WithSimd for Elementwise<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (vectors, rest) = S::as_mut_simd_f32s(self.values);
        for x in vectors {
            *x = self.f.of(simd, *x);
        }
        let last = self.f.of(simd, simd.partial_load_f32s(rest));
        simd.partial_store_f32s(rest, last);
    }
}
