//! A step of Newton's method, from the upper triangle of a Hessian.

/// The solution of `(H + penalty I) x = b`, or `None` where the matrix is not positive definite.
///
/// # Arguments
/// * `upper`: the upper triangle of H by rows, `[d (d + 1) / 2]`
/// * `b`: `[d]`
pub(super) fn solve(upper: &[f64], penalty: f64, b: &[f64]) -> Option<Vec<f64>> {
    let d = b.len();
    // The row i of the lower triangle L with L Lᵀ = H + penalty I.
    let mut lower = vec![vec![0.0; d]; d];
    let mut rest = upper.iter();
    for i in 0..d {
        for row in &mut lower[i..] {
            row[i] = *rest.next()?;
        }
        lower[i][i] += penalty;
    }
    for j in 0..d {
        let (row, below) = lower[j..].split_first_mut()?;
        let pivot = row[j] - dot(&row[..j], &row[..j]);
        if !(pivot.is_finite() && pivot > 0.0) {
            return None;
        }
        row[j] = pivot.sqrt();
        for other in below {
            other[j] = (other[j] - dot(&other[..j], &row[..j])) / row[j];
        }
    }
    let mut x = b.to_vec();
    for i in 0..d {
        x[i] = (x[i] - dot(&lower[i][..i], &x[..i])) / lower[i][i];
    }
    for i in (0..d).rev() {
        let known: f64 = (i + 1..d).map(|k| lower[k][i] * x[k]).sum();
        x[i] = (x[i] - known) / lower[i][i];
    }
    Some(x)
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_solved_and_an_indefinite_matrix_is_not() {
        // [[4, 2, 0], [2, 3, 1], [0, 1, 2]] x = [10, 11, 8] has x = (11/6, 4/3, 10/3).
        let x = solve(&[3.0, 2.0, 0.0, 2.0, 1.0, 1.0], 1.0, &[10.0, 11.0, 8.0]).unwrap();
        assert!(
            x.iter().zip([11.0 / 6.0, 4.0 / 3.0, 10.0 / 3.0]).all(|(got, want)| (got - want).abs() < 1e-12),
            "{x:?}"
        );
        assert_eq!(solve(&[1.0, 2.0, 1.0], 0.0, &[1.0, 1.0]), None);
        assert_eq!(solve(&[f64::NAN], 0.0, &[1.0]), None);
    }
}
