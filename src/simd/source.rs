//! The rows that φ is a linear combination of: a particle set, the scores of Gaussians, or sparse combinations of several
//! of these.

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

/// X, for one block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    /// The rows of a set, `[M, size]`.
    Rows(&'a Host),
    /// W∘(μ − Θ): the scores of Gaussians with means μ and diagonal precisions W, one for each row of Θ, `[N, size]`.
    Gaussian {
        /// μ.
        mean: &'a Host,
        /// W; `None` for 0.
        precision: Option<&'a HostPrecisions>,
    },
}

/// The diagonal precisions of N Gaussians in one block.
#[derive(Debug)]
pub(crate) enum HostPrecisions {
    /// One for each coordinate, `[N, size]`.
    Coordinates(Host),
    /// w_no m_i in the weights of a layer, `[N, out·in]`.
    Layer {
        /// w, `[N, out]`.
        outputs: Host,
        /// m, `[1, in]`.
        inputs: Host,
    },
}

impl HostPrecisions {
    /// The first of these columns of a row, as a number and its multiples: all of them, or those of one output.
    fn piece(&self, row: usize, columns: Range<usize>) -> (f32, &[f32]) {
        match self {
            Self::Coordinates(precisions) => (1.0, cut(precisions, row, &columns)),
            Self::Layer { outputs, inputs } => {
                let width = inputs.columns();
                let (output, input) = (columns.start / width, columns.start % width);
                let count = columns.len().min(width - input);
                (outputs.values()[row * outputs.columns() + output], &inputs.values()[input..][..count])
            }
        }
    }
}

impl Source<'_> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Rows(of) => of.rows(),
            Self::Gaussian { mean, .. } => mean.rows(),
        }
    }
}

/// P·X for one block. An X_s is a sum of such parts, with N rows, or X itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    /// The elements of P; `None` for the identity.
    pub entries: Option<&'a [SparseEntry]>,
    /// X.
    pub of: Source<'a>,
}

impl Part<'_> {
    /// Adds some columns of P·X to the rows of `to`, which are `stride` values apart; writes them if this part is the
    /// first. `theta` are these columns of Θ.
    pub fn add(&self, to: &mut [f32], stride: usize, columns: &Range<usize>, theta: &[&[f32]], first: bool) {
        let add = |to: &mut [f32], row: usize, factor: f32| {
            let to = &mut to[..columns.len()];
            match self.of {
                Source::Rows(of) => dispatch(AddMultiple { to, of: cut(of, row, columns), factor }),
                Source::Gaussian { precision: None, .. } => {}
                Source::Gaussian { mean, precision: Some(precision) } => {
                    let mean = cut(mean, row, columns);
                    let mut start = 0;
                    while start < columns.len() {
                        let (scale, precision) = precision.piece(row, columns.start + start..columns.end);
                        let part = start..start + precision.len();
                        start = part.end;
                        let (to, theta, mean) = (&mut to[part.clone()], &theta[row][part.clone()], &mean[part]);
                        dispatch(AddGaussian { to, theta, mean, precision, factor: factor * scale });
                    }
                }
            }
        };
        match (self.entries, self.of) {
            (None, Source::Rows(of)) if first => {
                for (to, row) in to.chunks_exact_mut(stride).zip(of.values().chunks_exact(of.columns())) {
                    to[..columns.len()].copy_from_slice(&row[columns.clone()]);
                }
                return;
            }
            _ if first => to.fill(0.0),
            _ => {}
        }
        match self.entries {
            None => to.chunks_exact_mut(stride).enumerate().for_each(|(index, to)| add(to, index, 1.0)),
            Some(entries) => {
                for entry in entries {
                    add(&mut to[entry.row * stride..], entry.column, entry.value);
                }
            }
        }
    }
}

/// Some columns of a row.
fn cut<'a>(of: &'a Host, row: usize, columns: &Range<usize>) -> &'a [f32] {
    &of.values()[row * of.columns()..][columns.clone()]
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

/// Adds a multiple of the score of a Gaussian.
struct AddGaussian<'a> {
    to: &'a mut [f32],
    theta: &'a [f32],
    mean: &'a [f32],
    precision: &'a [f32],
    factor: f32,
}

impl WithSimd for AddGaussian<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { to, theta, mean, precision, factor } = self;
        for (((to, theta), mean), precision) in to.iter_mut().zip(theta).zip(mean).zip(precision) {
            *to += factor * precision * (mean - theta);
        }
    }
}
