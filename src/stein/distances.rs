//! Squared distances between N particles, each pair once, from their Gram matrix.

use ndarray::Array2;

/// r² of every pair of N particles.
#[derive(Clone, Debug, PartialEq)]
pub struct Distances {
    count: usize,
    /// Pairs (1,0), (2,0), (2,1), (3,0), …
    pairs: Vec<f64>,
}

impl Distances {
    /// From the Gram matrix `[N, N]`. Rounding below 0 is cut; NaN stays NaN, for it is how the loop notices particles that
    /// are no longer numbers.
    pub fn of_gram(gram: &Array2<f64>) -> Self {
        let count = gram.nrows();
        let norms = gram.diag().to_vec();
        let mut pairs = Vec::with_capacity(count * count.saturating_sub(1) / 2);
        let gram = gram.as_standard_layout();
        let rows = gram.as_slice().expect("standard layout").chunks_exact(count.max(1));
        for (i, (row, norm)) in rows.zip(&norms).enumerate() {
            pairs.extend(row[..i].iter().zip(&norms[..i]).map(|(product, other)| {
                let r2 = norm + other - 2.0 * product;
                if r2 < 0.0 { 0.0 } else { r2 }
            }));
        }
        Self { count, pairs }
    }

    /// N.
    pub fn count(&self) -> usize {
        self.count
    }

    /// r² of every pair, in no order to rely on.
    pub fn pairs(&self) -> &[f64] {
        &self.pairs
    }

    /// M symmetric matrices `[N, N]` of functions of r², with r² = 0 on the diagonal.
    pub fn map<const M: usize>(&self, f: impl Fn(f64) -> [f64; M]) -> [Array2<f64>; M] {
        let diagonal = f(0.0);
        let mut values = diagonal.map(|_| Vec::with_capacity(self.pairs.len()));
        for r2 in &self.pairs {
            values.iter_mut().zip(f(*r2)).for_each(|(values, value)| values.push(value));
        }
        std::array::from_fn(|matrix| self.symmetric(diagonal[matrix], &values[matrix]))
    }

    /// The symmetric matrix `[N, N]` with these values of the pairs, in their order, and this number on the diagonal.
    pub fn symmetric(&self, diagonal: f64, values: &[f64]) -> Array2<f64> {
        let n = self.count;
        let mut matrix = Array2::from_elem((n, n), diagonal);
        let mut rest = values;
        for i in 0..n {
            let (row, others) = rest.split_at(i);
            rest = others;
            for (j, value) in row.iter().enumerate() {
                matrix[[i, j]] = *value;
                matrix[[j, i]] = *value;
            }
        }
        matrix
    }

    /// r² as a matrix, `[N, N]`.
    pub fn matrix(&self) -> Array2<f64> {
        let [matrix] = self.map(|r2| [r2]);
        matrix
    }
}
