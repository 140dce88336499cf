//! The linear assignment problem, exactly: π = argmin_π Σ_i C_{iπ(i)} over permutations, for a host matrix C `[N, N]`.
//!
//! Shortest augmenting paths with column potentials v: every path is Dijkstra's in the reduced costs C_ij − u_i − v_j ≥
//! 0, O(N²) a row that the start leaves free and O(N³) in all. The start is a column reduction, v_j = min_i C_ij, and a
//! greedy matching where a minimum is attained. (Augmenting row reduction is left out: on points of few dimensions it
//! takes longer than the paths that it saves.) Source: Jonker & Volgenant 1987; Crouse 2016.

use ndarray::{ArrayView2, Axis};

use super::TransportError;

/// An optimal assignment.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// π, `[N]`: the column of each row.
    pub permutation: Vec<usize>,
    /// Σ_i C_{iπ(i)}, in the order of the rows.
    pub total: f64,
}

/// Matches rows to columns at the least total cost, for a matrix C `[N, N]`. Among equally good choices the search
/// takes a free column first, then the lowest index, so that the result depends on the input alone.
///
/// # Errors
/// The matrix is empty or not square, or a cost is NaN or larger in size than f64's range over 8N.
pub fn assign(cost: ArrayView2<f64>) -> Result<Assignment, TransportError> {
    check(cost)?;
    let mut search = Search::new(cost);
    search.match_minima();
    for row in 0..cost.nrows() {
        if search.column_of[row].is_none() {
            search.augment(row);
        }
    }
    let permutation: Vec<usize> = search.column_of.into_iter().flatten().collect();
    let total = permutation.iter().enumerate().map(|(row, column)| cost[[row, *column]]).sum();
    Ok(Assignment { permutation, total })
}

fn check(cost: ArrayView2<f64>) -> Result<(), TransportError> {
    let (rows, columns) = cost.dim();
    if cost.is_empty() {
        return Err(TransportError::NoCosts);
    }
    if rows != columns {
        return Err(TransportError::NotSquare { rows, columns });
    }
    // A path has at most 2N edges, a potential is the length of one, and the search subtracts the two.
    let limit = f64::MAX / (8.0 * rows as f64);
    match cost.indexed_iter().find(|(_, value)| value.is_nan() || value.abs() > limit) {
        None => Ok(()),
        Some(((row, column), value)) => Err(TransportError::Cost { row, column, value: *value, limit }),
    }
}

/// An optimal matching of some of the rows, and the state of the search for the next path.
struct Search {
    /// C, row-major.
    cost: Vec<f64>,
    /// v, `[N]`. The row potential is implied: u_i = C_ij − v_j on the matched column j.
    potential: Vec<f64>,
    /// The column of each matched row, `[N]`.
    column_of: Vec<Option<usize>>,
    /// The row of each matched column, `[N]`.
    row_of: Vec<Option<usize>>,
    /// Length of the shortest path from the free row to each column, `[N]`.
    distance: Vec<f64>,
    /// The last row on the shortest path to each column, `[N]`.
    from: Vec<usize>,
}

impl Search {
    fn new(cost: ArrayView2<f64>) -> Self {
        let n = cost.nrows();
        let potential = cost.fold_axis(Axis(0), f64::INFINITY, |least, value| least.min(*value)).to_vec();
        Self {
            cost: cost.iter().copied().collect(),
            potential,
            column_of: vec![None; n],
            row_of: vec![None; n],
            distance: vec![0.0; n],
            from: vec![0; n],
        }
    }

    /// Matches each row to the first free column that has its minimum there.
    fn match_minima(&mut self) {
        let n = self.potential.len();
        for (row, costs) in self.cost.chunks_exact(n).enumerate() {
            let free = |column: &usize| self.row_of[*column].is_none() && costs[*column] == self.potential[*column];
            if let Some(column) = (0..n).find(free) {
                self.row_of[column] = Some(row);
                self.column_of[row] = Some(column);
            }
        }
    }

    /// Matches a free row along a shortest path to a free column and moves the potentials of the columns passed.
    fn augment(&mut self, free_row: usize) {
        let n = self.potential.len();
        let mut open: Vec<usize> = (0..n).collect(); // ascending throughout
        let mut passed = Vec::new();
        self.distance.fill(f64::INFINITY);
        let (mut row, mut base) = (free_row, 0.0);
        let (end, length) = loop {
            let at = self.relax(&open, row, base);
            let column = open.remove(at);
            let length = self.distance[column];
            let Some(next) = self.row_of[column] else { break (column, length) };
            passed.push(column);
            row = next;
            base = length - (self.cost[row * n + column] - self.potential[column]);
        };
        for column in passed {
            self.potential[column] += self.distance[column] - length;
        }
        self.flip(end);
    }

    /// Shortens the paths to the open columns that lead through `row`, and returns the index in `open` of the nearest
    /// column.
    fn relax(&mut self, open: &[usize], row: usize, base: f64) -> usize {
        let n = self.potential.len();
        let costs = &self.cost[row * n..(row + 1) * n];
        let (mut nearest, mut least, mut is_free) = (0, f64::INFINITY, false);
        for (at, column) in open.iter().copied().enumerate() {
            let length = base + costs[column] - self.potential[column];
            if length < self.distance[column] {
                self.distance[column] = length;
                self.from[column] = row;
            }
            let distance = self.distance[column];
            if distance < least || (distance == least && !is_free && self.row_of[column].is_none()) {
                (nearest, least, is_free) = (at, distance, self.row_of[column].is_none());
            }
        }
        nearest
    }

    /// Changes the matching along the path that ends in the column `end`, back to the free row.
    fn flip(&mut self, end: usize) {
        let mut column = Some(end);
        while let Some(to) = column {
            let row = self.from[to];
            self.row_of[to] = Some(row);
            column = self.column_of[row].replace(to);
        }
    }
}
