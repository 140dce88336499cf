//! Rows that φ is a combination of: a set as it is, or a sum of a few of its rows, and of other sets', for each particle.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::{Host, dispatch};

/// A number of a sparse matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Of N.
    pub row: usize,
    /// Of the rows of what is multiplied.
    pub column: usize,
    /// Not 0.
    pub value: f32,
}

/// P·X of one block; an X_s is a sum of such parts, with N rows, or X itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    /// P, `None` for 1.
    pub entries: Option<&'a [Entry]>,
    /// X, `[M, size]`.
    pub of: &'a Host,
}

impl Part<'_> {
    /// Adds some columns to rows that are `stride` values apart, or writes them where it is the first.
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
