//! Θ ← step(Θ, φ) with φ = C_0·(Θ − 1·m) + c·m + Σ_s C_s·X_s, m the mean of Θ's rows: one pass over the coordinates.
//!
//! φ is never stored. For a tile of columns, Θ less its mean and the rows of every X_s are brought into the cache, φ is
//! formed for a few rows at a time in registers, and the optimiser's rule moves Θ and its accumulators from there.

use ndarray::Array2;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::rule::{Move, Rule};
use super::{Host, LINE, Mean, Offsets, WORTH_THREADS, aligned, dispatch};

/// Most values of all sources in a tile: half a megabyte, so that they stay in a core's own cache.
const TILE_VALUES: usize = 1 << 17;

/// Fewest and most columns of a tile; multiples of two vectors.
const TILE_COLUMNS: (usize, usize) = (128, 512);

/// Rows of φ formed at once, largest first: as many as fit the registers of 16 lanes (32 of them), and of fewer (16).
const GROUPS: ([usize; 3], [usize; 3]) = ([10, 4, 1], [5, 4, 1]);

/// A term C·X of φ, in one block.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    /// C, `[N, M]`.
    pub coefficients: &'a Array2<f64>,
    /// X, `[M, size]`.
    pub rows: &'a Host,
}

/// φ in one block.
#[derive(Debug)]
pub(crate) struct Ascent<'a> {
    /// C_0, `[N, N]`, on Θ less its mean; `None` for 0.
    pub own: Option<&'a Array2<f64>>,
    /// c, `[N, 1]`, on the mean; `None` for 0.
    pub common: Option<&'a Array2<f64>>,
    /// The other terms.
    pub sources: Vec<Source<'a>>,
}

impl Ascent<'_> {
    /// Moves Θ `[N, size]` by the rule, and the accumulators, of the same shape, that it has.
    pub fn apply(&self, rule: Rule, theta: &mut Host, accumulators: [Option<&mut Host>; 2]) {
        let (n, width) = (theta.rows(), theta.columns());
        let coefficients = self.coefficients(n);
        let tile = (TILE_VALUES / self.depth(n) / TILE_COLUMNS.0 * TILE_COLUMNS.0)
            .clamp(TILE_COLUMNS.0, TILE_COLUMNS.1)
            .min(width.next_multiple_of(2 * MOST_LANES));
        let threads = rayon::current_num_threads().min(width.div_ceil(tile));
        let parts = if n * self.depth(n) * width < WORTH_THREADS { 1 } else { threads };
        let span = width.div_ceil(parts).next_multiple_of(tile);
        let [first, second] = accumulators;
        let strips = split(theta, span)
            .into_iter()
            .zip(optional(first, span))
            .zip(optional(second, span))
            .enumerate()
            .map(|(part, ((theta, first), second))| Strip { start: part * span, theta, first, second });
        let run = |mut strip: Strip| self.run(rule, &coefficients, tile, &mut strip);
        if parts == 1 {
            strips.for_each(run);
        } else {
            strips.collect::<Vec<_>>().into_par_iter().for_each(run);
        }
    }

    /// All tiles of a strip of columns.
    fn run(&self, rule: Rule, coefficients: &[f32], tile: usize, strip: &mut Strip) {
        let n = strip.theta.len();
        // One cache line more than a tile from row to row: at a power of two all rows would fall into a few cache sets.
        let stride = tile + LINE;
        let rows = n + 1 + self.sources.iter().map(|source| source.rows.rows()).sum::<usize>();
        let mut room = vec![0.0; rows * stride + LINE];
        let values = aligned(&mut room, rows * stride);
        let unused = n + 1 - self.centred_rows(n);
        for start in (0..strip.theta[0].len()).step_by(tile) {
            let columns = start..(start + tile).min(strip.theta[0].len());
            self.fill(values, stride, strip, columns.clone());
            let (values, theta) = (&values[unused * stride..], &mut strip.theta);
            let (first, second) = (&mut strip.first, &mut strip.second);
            dispatch(Tile { rule, values, stride, coefficients, columns, theta, first, second });
        }
    }

    /// Rows of Θ less its mean, the mean, and the rows of every source, `stride` values apart.
    fn fill(&self, values: &mut [f32], stride: usize, strip: &Strip, columns: std::ops::Range<usize>) {
        let n = strip.theta.len();
        let (centred, others) = values.split_at_mut((n + 1) * stride);
        if self.centred_rows(n) > 0 {
            let rows: Vec<&[f32]> = strip.theta.iter().map(|row| &row[columns.clone()]).collect();
            let (offsets, mean) = centred.split_at_mut(n * stride);
            let mean = &mut mean[..columns.len()];
            dispatch(Mean { rows: &rows, mean });
            if self.own.is_some() {
                dispatch(Offsets { rows: &rows, centre: mean, offsets, stride });
            }
        }
        let from = strip.start + columns.start..strip.start + columns.end;
        let rows = self.sources.iter().flat_map(|source| source.rows.values().chunks_exact(source.rows.columns()));
        for (to, row) in others.chunks_exact_mut(stride).zip(rows) {
            to[..columns.len()].copy_from_slice(&row[from.clone()]);
        }
    }

    /// How many of the rows of Θ less its mean and of the mean, in this order and from the last, φ needs.
    fn centred_rows(&self, n: usize) -> usize {
        match (self.own, self.common) {
            (Some(_), _) => n + 1,
            (None, Some(_)) => 1,
            (None, None) => 0,
        }
    }

    /// Rows that φ is a combination of.
    fn depth(&self, n: usize) -> usize {
        self.centred_rows(n) + self.sources.iter().map(|source| source.rows.rows()).sum::<usize>()
    }

    /// The coefficients in the order in which groups of rows of φ read them: `[depth, group]` for one after the other.
    fn coefficients(&self, n: usize) -> Vec<f32> {
        let mut ordered = Vec::with_capacity(n * self.depth(n));
        for group in groups(n, dispatch(Lanes)) {
            let mut columns = |matrix: &Array2<f64>| {
                for column in matrix.columns() {
                    ordered.extend(group.clone().map(|row| column[row] as f32));
                }
            };
            if let Some(own) = self.own {
                columns(own);
            }
            match self.common {
                Some(common) => columns(common),
                None if self.own.is_some() => columns(&Array2::zeros((n, 1))),
                None => {}
            }
            self.sources.iter().for_each(|source| columns(source.coefficients));
        }
        ordered
    }
}

/// The most f32 lanes of any vector.
const MOST_LANES: usize = 16;

/// Lanes of a vector of f32 here.
struct Lanes;

impl WithSimd for Lanes {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> usize {
        S::F32_LANES
    }
}

/// 0..n in groups of the sizes that this vector width forms at once.
fn groups(n: usize, lanes: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let sizes = if lanes == MOST_LANES { GROUPS.0 } else { GROUPS.1 };
    let mut start = 0;
    std::iter::from_fn(move || {
        let size = sizes.into_iter().find(|size| *size <= n - start)?;
        start += size;
        Some(start - size..start)
    })
}

/// Some columns of Θ and of the accumulators, of every row; no accumulator is no rows.
struct Strip<'a> {
    /// First column.
    start: usize,
    theta: Vec<&'a mut [f32]>,
    first: Vec<&'a mut [f32]>,
    second: Vec<&'a mut [f32]>,
}

/// Strips of `span` columns of every row.
fn split(matrix: &mut Host, span: usize) -> Vec<Vec<&mut [f32]>> {
    let (rows, width) = (matrix.rows(), matrix.columns());
    let mut strips: Vec<Vec<&mut [f32]>> = (0..width.div_ceil(span)).map(|_| Vec::with_capacity(rows)).collect();
    for row in matrix.values_mut().chunks_exact_mut(width) {
        strips.iter_mut().zip(row.chunks_mut(span)).for_each(|(strip, piece)| strip.push(piece));
    }
    strips
}

fn optional(matrix: Option<&mut Host>, span: usize) -> Box<dyn Iterator<Item = Vec<&mut [f32]>> + '_> {
    match matrix {
        Some(matrix) => Box::new(split(matrix, span).into_iter()),
        None => Box::new(std::iter::repeat_with(Vec::new)),
    }
}

/// φ and the move in one tile.
struct Tile<'a, 'b> {
    rule: Rule,
    /// `[depth, stride]`.
    values: &'a [f32],
    stride: usize,
    coefficients: &'a [f32],
    /// Within the strip.
    columns: std::ops::Range<usize>,
    theta: &'a mut [&'b mut [f32]],
    first: &'a mut [&'b mut [f32]],
    second: &'a mut [&'b mut [f32]],
}

impl WithSimd for Tile<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        match self.rule {
            Rule::Gradient(rule) => self.all(simd, rule),
            Rule::Adaptive(rule) => self.all(simd, rule),
            Rule::Adam(rule) => self.all(simd, rule),
        }
    }
}

impl Tile<'_, '_> {
    #[inline(always)]
    fn all<S: Simd>(&mut self, simd: S, rule: impl Move) {
        let depth = self.values.len() / self.stride;
        let mut coefficients = self.coefficients;
        for group in groups(self.theta.len(), S::F32_LANES) {
            let (these, rest) = coefficients.split_at(group.len() * depth);
            coefficients = rest;
            match group.len() {
                10 => self.group::<S, 10>(simd, rule, group.start, these),
                5 => self.group::<S, 5>(simd, rule, group.start, these),
                4 => self.group::<S, 4>(simd, rule, group.start, these),
                _ => self.group::<S, 1>(simd, rule, group.start, these),
            }
        }
    }

    /// R rows of φ, two vectors of columns at a time.
    #[inline(always)]
    fn group<S: Simd, const R: usize>(&mut self, simd: S, rule: impl Move, row: usize, coefficients: &[f32]) {
        let width = self.columns.len();
        for start in (0..width).step_by(2 * S::F32_LANES) {
            let phi = combine::<S, R>(simd, self.values, self.stride, coefficients, start);
            for (r, phi) in phi.into_iter().enumerate() {
                for (half, phi) in phi.into_iter().enumerate() {
                    let from = (start + half * S::F32_LANES).min(width);
                    let to = (from + S::F32_LANES).min(width);
                    let at = self.columns.start + from..self.columns.start + to;
                    let pick = |rows: &mut [&mut [f32]]| match rows.get(row + r) {
                        Some(row) => load(simd, &row[at.clone()]),
                        None => simd.splat_f32s(0.0),
                    };
                    let theta = pick(self.theta);
                    let moved = rule.step(simd, phi, theta, pick(self.first), pick(self.second));
                    for (rows, value) in [&mut *self.theta, &mut *self.first, &mut *self.second].into_iter().zip(moved)
                    {
                        if let Some(row) = rows.get_mut(row + r) {
                            store(simd, &mut row[at.clone()], value);
                        }
                    }
                }
            }
        }
    }
}

/// At most one vector of values; 0 where there are fewer.
#[inline(always)]
fn load<S: Simd>(simd: S, values: &[f32]) -> S::f32s {
    match S::as_simd_f32s(values).0 {
        [whole, ..] => *whole,
        [] => simd.partial_load_f32s(values),
    }
}

/// As many values of a vector as there is room for.
#[inline(always)]
fn store<S: Simd>(simd: S, to: &mut [f32], values: S::f32s) {
    match S::as_mut_simd_f32s(to) {
        ([whole, ..], _) => *whole = values,
        ([], part) => simd.partial_store_f32s(part, values),
    }
}

/// R rows of C·X at two vectors of columns.
#[inline(always)]
fn combine<S: Simd, const R: usize>(
    simd: S,
    values: &[f32],
    stride: usize,
    coefficients: &[f32],
    start: usize,
) -> [[S::f32s; 2]; R] {
    let mut sums = [[simd.splat_f32s(0.0); 2]; R];
    for (row, c) in values.chunks_exact(stride).zip(coefficients.chunks_exact(R)) {
        let pair = &S::as_simd_f32s(&row[start..start + 2 * S::F32_LANES]).0[..2];
        let (left, right) = (pair[0], pair[1]);
        for r in 0..R {
            let c = simd.splat_f32s(c[r]);
            sums[r] = [simd.mul_add_f32s(c, left, sums[r][0]), simd.mul_add_f32s(c, right, sums[r][1])];
        }
    }
    sums
}
