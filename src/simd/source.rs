//! The rows that φ is a linear combination of: a particle set, or sparse combinations of the rows of several sets.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::{Host, dispatch};

/// A nonzero element of a sparse matrix P `[N, M]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SparseEntry {
    /// Row, below N.
    pub row: usize,
    /// Column, below M.
    pub column: usize,
    /// The element.
    pub value: f32,
}

/// P·X for one block. An X_s is a sum of such parts, with N rows, or X itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    /// The elements of P; `None` for the identity.
    pub entries: Option<&'a [SparseEntry]>,
    /// X, `[M, size]`.
    pub of: &'a Host,
}

impl Part<'_> {
    /// Adds some columns of P·X to the rows of `to`, which are `stride` values apart; writes them if this part is the
    /// first.
    pub fn add(&self, to: &mut [f32], stride: usize, columns: &Range<usize>, first: bool) {
        let row = |row: usize| &self.of.values()[row * self.of.columns()..][columns.clone()];
        let add = |to: &mut [f32], of: &[f32], factor| dispatch(AddMultiple { to: &mut to[..of.len()], of, factor });
        match self.entries {
            None => {
                for (index, to) in to.chunks_exact_mut(stride).enumerate() {
                    match first {
                        true => to[..columns.len()].copy_from_slice(row(index)),
                        false => add(to, row(index), 1.0),
                    }
                }
            }
            Some(entries) => {
                if first {
                    to.fill(0.0);
                }
                for entry in entries {
                    add(&mut to[entry.row * stride..], row(entry.column), entry.value);
                }
            }
        }
    }
}

/// Adds a multiple of a row.
struct AddMultiple<'a> {
    to: &'a mut [f32],
    of: &'a [f32],
    factor: f32,
}

impl WithSimd for AddMultiple<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (to, value) in self.to.iter_mut().zip(self.of) {
            *to += self.factor * value;
        }
    }
}
