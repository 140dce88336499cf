//! Θ ← step(Θ, φ) with φ = C_0·(Θ − 1·m) + c·m + Σ_s C_s·X_s, m the mean of Θ's rows: one pass over the coordinates. For the
//! weights of a layer that reads the rows themselves φ may also have the product of [`Outer`].
//!
//! φ is never stored. For a tile of columns, Θ minus its mean and the rows of every X_s are copied into the cache, φ is
//! computed for a few rows at a time in registers, and the optimiser's rule updates Θ and its accumulators.

use std::ops::Range;

use ndarray::Array2;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::combination::{SideBySide, combine, group_sizes, zeros};
use super::outer::{Outer, Scratch};
use super::rule::{Step, StepRule};
use super::source::Part;
use super::{
    Host, LINE, MOST_LANES, Mean, Offsets, WORTH_THREADS, aligned, cached_values, dispatch, groups, load, store,
    with_room,
};

/// Fewest and most columns of a tile; multiples of two vectors.
const TILE_COLUMNS: (usize, usize) = (128, 1024);

/// The coefficients of φ in the order in which the loop reads them, for all blocks.
#[derive(Debug)]
pub(crate) struct Ascent {
    /// N.
    count: usize,
    /// How many of the N rows of Θ minus its mean, and the mean after them, φ depends on: all N + 1, the mean alone, or
    /// none.
    centred: usize,
    /// `[N, depth]`, column by column within each group of rows that are computed at once.
    coefficients: Vec<f32>,
}

impl Ascent {
    /// The coefficients C_0 `[N, N]` and c `[N, 1]`, `None` where they are 0, and every C_s `[N, M_s]`.
    pub fn new<'a>(
        own: Option<&Array2<f64>>,
        common: Option<&Array2<f64>>,
        terms: impl Iterator<Item = &'a Array2<f64>>,
        count: usize,
    ) -> Self {
        let no_common = Array2::zeros((count, 1));
        let mut matrices: Vec<&Array2<f64>> = Vec::with_capacity(4);
        matrices.extend(own);
        matrices.extend(common.or(own.map(|_| &no_common)));
        let centred = matrices.iter().map(|matrix| matrix.ncols()).sum();
        terms.for_each(|matrix| matrices.push(matrix));
        Self { count, centred, coefficients: dispatch(SideBySide { matrices: &matrices, count }) }
    }

    /// Number of rows that φ is a linear combination of, those of every X_s included.
    fn depth(&self) -> usize {
        self.coefficients.len() / self.count
    }

    /// Updates one block of Θ `[N, size]` by the rule, and its accumulators, which have the same shape. `sources` are
    /// the X_s; `outer` is a product that is added to φ, for a block of `[N, out·in]` weights.
    pub fn apply(
        &self,
        rule: StepRule,
        theta: &mut Host,
        sources: &[Vec<Part>],
        outer: Option<&Outer>,
        accumulators: [Option<&mut Host>; 2],
    ) {
        let width = theta.columns();
        // No tile has the weights of two outputs.
        let unit = outer.map_or(width, Outer::inputs);
        let tile = (cached_values() / self.depth().max(1) / TILE_COLUMNS.0 * TILE_COLUMNS.0)
            .clamp(TILE_COLUMNS.0, TILE_COLUMNS.1)
            .min(unit.next_multiple_of(2 * MOST_LANES));
        let granule = if outer.is_some() { unit } else { tile };
        let threads = rayon::current_num_threads().min(width.div_ceil(granule));
        let sums = self.coefficients.len() + outer.map_or(0, |outer| self.count * outer.depth());
        let parts = if sums * width < WORTH_THREADS { 1 } else { threads };
        if parts == 1 {
            let [first, second] = accumulators.map(|matrix| matrix.map_or_else(Vec::new, rows));
            return self.run(rule, sources, outer, tile, &mut Strip { start: 0, theta: rows(theta), first, second });
        }
        let span = width.div_ceil(parts).next_multiple_of(granule);
        let [first, second] = accumulators.map(|matrix| split(matrix, span, parts));
        let strips = split(Some(theta), span, parts)
            .into_iter()
            .zip(first)
            .zip(second)
            .enumerate()
            .map(|(part, ((theta, first), second))| Strip { start: part * span, theta, first, second });
        let strips: Vec<Strip> = strips.collect();
        strips.into_par_iter().for_each(|mut strip| self.run(rule, sources, outer, tile, &mut strip));
    }

    /// Updates all tiles of a strip of columns.
    fn run(&self, rule: StepRule, sources: &[Vec<Part>], outer: Option<&Outer>, tile: usize, strip: &mut Strip) {
        let (n, width) = (self.count, strip.theta[0].len());
        // One cache line more than a tile from row to row: at a power of two all rows would fall into a few cache sets.
        let stride = tile + LINE;
        let unused = n + 1 - self.centred;
        let rows = unused + self.depth();
        let unit = outer.map_or(width, Outer::inputs);
        let mut scratch = Scratch::default();
        with_room(rows * stride + LINE, |room| {
            let values = aligned(room, rows * stride);
            for first in (0..width).step_by(unit) {
                let mixed = outer.map(|outer| outer.mixed((strip.start + first) / unit, &mut scratch));
                let end = (first + unit).min(width);
                for start in (first..end).step_by(tile) {
                    let columns = start..(start + tile).min(end);
                    self.fill(values, stride, sources, strip, columns.clone());
                    let (values, theta) = (&values[unused * stride..], &mut strip.theta);
                    let coefficients = &self.coefficients;
                    let outer = outer.zip(mixed).map(|(of, mixed)| OuterTile { of, mixed, start: start - first });
                    let (first, second) = (&mut strip.first, &mut strip.second);
                    dispatch(Tile { rule, values, stride, coefficients, outer, columns, theta, first, second });
                }
            }
        });
    }

    /// Writes Θ minus its mean, the mean, and the rows of every source, with `stride` values from row to row.
    fn fill(&self, values: &mut [f32], stride: usize, sources: &[Vec<Part>], strip: &Strip, columns: Range<usize>) {
        let n = self.count;
        let (centred, others) = values.split_at_mut((n + 1) * stride);
        let rows: Vec<&[f32]> = strip.theta.iter().map(|row| &row[columns.clone()]).collect();
        if self.centred > 0 {
            let (offsets, mean) = centred.split_at_mut(n * stride);
            let mean = &mut mean[..columns.len()];
            dispatch(Mean { rows: &rows, mean });
            if self.centred > 1 {
                dispatch(Offsets { rows: &rows, centre: mean, offsets, stride });
            }
        }
        let from = strip.start + columns.start..strip.start + columns.end;
        let mut start = 0;
        for parts in sources {
            let end = start + parts[0].entries.map_or_else(|| parts[0].of.rows(), |_| n) * stride;
            for (index, part) in parts.iter().enumerate() {
                part.add(&mut others[start..end], stride, &from, &rows, index == 0);
            }
            start = end;
        }
    }
}

/// Some columns of Θ and of its accumulators, in all rows; an accumulator that the rule does not have is empty.
struct Strip<'a> {
    /// The first column.
    start: usize,
    theta: Vec<&'a mut [f32]>,
    first: Vec<&'a mut [f32]>,
    second: Vec<&'a mut [f32]>,
}

/// The rows of a matrix.
fn rows(matrix: &mut Host) -> Vec<&mut [f32]> {
    let width = matrix.columns();
    matrix.values_mut().chunks_exact_mut(width).collect()
}

/// Strips of `span` columns of every row, at most `parts` of them; without a matrix, `parts` empty ones.
fn split(matrix: Option<&mut Host>, span: usize, parts: usize) -> Vec<Vec<&mut [f32]>> {
    let Some(matrix) = matrix else { return (0..parts).map(|_| Vec::new()).collect() };
    let (rows, width) = (matrix.rows(), matrix.columns());
    let mut strips: Vec<Vec<&mut [f32]>> = (0..width.div_ceil(span)).map(|_| Vec::with_capacity(rows)).collect();
    for row in matrix.values_mut().chunks_exact_mut(width) {
        strips.iter_mut().zip(row.chunks_mut(span)).for_each(|(strip, piece)| strip.push(piece));
    }
    strips
}

/// The product of [`Outer`] in one tile.
#[derive(Clone, Copy)]
struct OuterTile<'a> {
    of: &'a Outer,
    /// Σ_m k_nm a_mi of the tile's output.
    mixed: &'a [f32],
    /// The input of the tile's first column.
    start: usize,
}

/// The update of one tile.
struct Tile<'a, 'b> {
    rule: StepRule,
    /// `[depth, stride]`.
    values: &'a [f32],
    stride: usize,
    coefficients: &'a [f32],
    outer: Option<OuterTile<'a>>,
    /// The tile's columns, counted within the strip.
    columns: Range<usize>,
    theta: &'a mut [&'b mut [f32]],
    first: &'a mut [&'b mut [f32]],
    second: &'a mut [&'b mut [f32]],
}

impl WithSimd for Tile<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        match self.rule {
            StepRule::Gradient(rule) => self.all(simd, rule),
            StepRule::Adaptive(rule) => self.all(simd, rule),
            StepRule::Adam(rule) => self.all(simd, rule),
        }
    }
}

impl Tile<'_, '_> {
    /// Updates all rows in two vectors of columns before the next two, whose values are then in the first-level cache.
    #[inline(always)]
    fn all<S: Simd>(&mut self, simd: S, rule: impl Step) {
        for start in (0..self.columns.len()).step_by(2 * S::F32_LANES) {
            for group in groups(self.theta.len(), group_sizes(S::F32_LANES)) {
                match group.len() {
                    10 => self.group::<S, 10>(simd, rule, group.start, start),
                    5 => self.group::<S, 5>(simd, rule, group.start, start),
                    4 => self.group::<S, 4>(simd, rule, group.start, start),
                    _ => self.group::<S, 1>(simd, rule, group.start, start),
                }
            }
        }
    }

    /// Updates R rows in two vectors of columns, or in one where no more are left.
    #[inline(always)]
    fn group<S: Simd, const R: usize>(&mut self, simd: S, rule: impl Step, row: usize, start: usize) {
        if self.columns.len() - start > S::F32_LANES {
            let phi = self.phi::<S, R, 2>(simd, row, start);
            self.step(simd, rule, row, start, phi);
        } else {
            let phi = self.phi::<S, R, 1>(simd, row, start);
            self.step(simd, rule, row, start, phi);
        }
    }

    /// φ of R rows in V vectors of columns.
    #[inline(always)]
    fn phi<S: Simd, const R: usize, const V: usize>(&self, simd: S, row: usize, start: usize) -> [[S::f32s; V]; R] {
        let depth = self.values.len() / self.stride;
        let coefficients = &self.coefficients[row * depth..(row + R) * depth];
        let phi = combine::<S, R, V>(simd, zeros(simd), self.values, self.stride, coefficients, start);
        let Some(OuterTile { of, mixed, start: first }) = self.outer else { return phi };
        let (panel, depth) = (of.panel(first + start, S::F32_LANES), of.depth());
        combine::<S, R, V>(simd, phi, panel, 2 * S::F32_LANES, &mixed[row * depth..(row + R) * depth], 0)
    }

    /// Updates R rows in V vectors of columns.
    #[inline(always)]
    fn step<S: Simd, const R: usize, const V: usize>(
        &mut self,
        simd: S,
        rule: impl Step,
        row: usize,
        start: usize,
        phi: [[S::f32s; V]; R],
    ) {
        let width = self.columns.len();
        for (r, phi) in phi.into_iter().enumerate() {
            for (part, phi) in phi.into_iter().enumerate() {
                let from = (start + part * S::F32_LANES).min(width);
                let to = (from + S::F32_LANES).min(width);
                let at = self.columns.start + from..self.columns.start + to;
                let theta = load_row(simd, self.theta, row + r, at.clone());
                let [m, v] =
                    [load_row(simd, self.first, row + r, at.clone()), load_row(simd, self.second, row + r, at.clone())];
                let [theta, m, v] = rule.step(simd, phi, theta, m, v);
                store_row(simd, self.theta, row + r, at.clone(), theta);
                store_row(simd, self.first, row + r, at.clone(), m);
                store_row(simd, self.second, row + r, at, v);
            }
        }
    }
}

/// At most one vector of a row's values, filled up with 0; all 0 where the row does not exist.
#[inline(always)]
fn load_row<S: Simd>(simd: S, rows: &[&mut [f32]], row: usize, at: Range<usize>) -> S::f32s {
    rows.get(row).map_or(simd.splat_f32s(0.0), |row| load(simd, &row[at]))
}

/// Stores as many values of a vector as the row has room for.
#[inline(always)]
fn store_row<S: Simd>(simd: S, rows: &mut [&mut [f32]], row: usize, at: Range<usize>, values: S::f32s) {
    if let Some(row) = rows.get_mut(row) {
        store(simd, &mut row[at], values);
    }
}
