//! Outlier scores of replies: a kernel Stein discrepancy against a robust Gaussian.
//!
//! The input are the replies of a round, each as the n rows of its largest array in w dimensions; the output is one
//! number for each reply. The rows of a reply are compared with N(m, s²I): m is the coordinate-wise median of the
//! replies' mean rows, s² the median over all rows of ‖θ − m‖²/w. A single reply is compared with the rows that were
//! sent: their mean and their median distance. With z = (θ − m)/s, score −z and the kernel k = (1 + r²/w)^(−½),
//!
//! score = KSD²/w = (1/(n²w)) Σ_ij [k z_i·z_j − … + tr ∇∇k]   (a V-statistic; for n = 1 it is ‖z‖²/w + 1/w),
//!
//! which is about 1 for a single row at a typical distance, and far above the others' for an outlier. The score is for
//! diagnosis only and rejects no reply: a client with unusual rows is an outlier too. The discrepancy is that of Liu,
//! Lee & Jordan 2016 and Chwialkowski, Strathmann & Gretton 2016, with the kernel of Gorham & Mackey 2017; the robust
//! Gaussian is our own.

use std::sync::Arc;

use fedstein_models::Layout;

use crate::array::{Array, Values};
use crate::backend::Session;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{Reply, Request};
use crate::statistics::median;
use crate::stein::{Bandwidth, Kernel, Rule, SteinForm};

/// Rows `[n, w]` in f64.
struct Rows {
    width: usize,
    values: Vec<f64>,
}

impl Rows {
    fn of(array: &Array) -> Self {
        let width = match array.shape[..] {
            [_, width] => width,
            _ => array.values.len(),
        };
        Self { width: width.max(1), values: array.values.to_f64() }
    }

    fn iter(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.width)
    }

    fn mean(&self) -> Vec<f64> {
        let mut mean = vec![0.0; self.width];
        self.iter().for_each(|row| mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += value));
        let count = (self.values.len() / self.width).max(1) as f64;
        mean.into_iter().map(|sum| sum / count).collect()
    }
}

/// One score per reply; `None` where the rows that they are compared with have no spread.
///
/// # Errors
/// The device does not answer.
pub(super) fn outlier_scores(
    requests: &[Request],
    replies: &[Reply],
    session: &Session,
) -> Result<Vec<Option<f64>>, RunError> {
    let Some(request) = requests.first() else { return Ok(Vec::new()) };
    let largest = request.message.arrays.iter().max_by_key(|(_, array)| array.values.len());
    let Some((name, sent)) = largest else { return Ok(vec![None; replies.len()]) };
    let sets: Vec<Rows> = replies.iter().filter_map(|reply| reply.message.arrays.get(name).map(Rows::of)).collect();
    let width = Rows::of(sent).width;
    if sets.len() != replies.len() || sets.iter().any(|set| set.width != width) {
        return Ok(vec![None; replies.len()]);
    }
    let lone = [Rows::of(sent)];
    let reference = if sets.len() > 1 { &sets[..] } else { &lone[..] };
    let (centre, variance) = gaussian(reference, width);
    if !(variance.is_finite() && variance > 0.0) {
        return Ok(vec![None; replies.len()]);
    }
    sets.iter().map(|set| score(set, &centre, variance.sqrt(), session).map(Some)).collect()
}

/// m and s².
fn gaussian(sets: &[Rows], width: usize) -> (Vec<f64>, f64) {
    let means: Vec<Vec<f64>> = sets.iter().map(Rows::mean).collect();
    let of = |at: usize| median(&mut means.iter().map(|mean| mean[at]).collect::<Vec<f64>>());
    let centre: Vec<f64> = (0..width).map(of).collect();
    let apart = |row: &[f64]| row.iter().zip(&centre).map(|(value, centre)| (value - centre).powi(2)).sum::<f64>();
    let mut squares: Vec<f64> = sets.iter().flat_map(|set| set.iter().map(apart).collect::<Vec<f64>>()).collect();
    if squares.is_empty() {
        return (centre, 0.0);
    }
    let variance = median(&mut squares) / width as f64;
    (centre, variance)
}

fn score(set: &Rows, centre: &[f64], sd: f64, session: &Session) -> Result<f64, RunError> {
    let width = set.width;
    let z = set.iter().flat_map(|row| row.iter().zip(centre).map(|(value, centre)| (value - centre) / sd));
    let values: Vec<f64> = z.collect();
    let layout = Arc::new(Layout::new([("reply", [width].as_slice())]));
    let array = Array { shape: vec![values.len() / width, width], values: Values::F64(values) };
    let z = Particles::from_array(&array, &layout, session)?;
    let kernel = Kernel::Imq {
        bandwidth: Bandwidth { rule: Rule::Fixed(width as f64), ..Bandwidth::default() },
        exponent: -0.5,
    };
    let form = SteinForm::new(&kernel, &z)?
        .ok_or_else(|| RunError::Config("outlier scores need a kernel with a Stein form".into()))?;
    let pull = z.map(|block| block.neg());
    Ok(form.product(&pull, &pull)?.v / width as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Flex, Precision};
    use crate::protocol::{Ask, Message};

    fn scores(sent: (&[usize], Vec<f64>), replies: Vec<Vec<f64>>) -> Vec<Option<f64>> {
        let array = |values| Array { shape: sent.0.to_vec(), values: Values::F64(values) };
        let message = |values| Message::default().with_array("particles", array(values));
        let request = |client| Request::new(1, client, Ask::Train, message(sent.1.clone()));
        let requests: Vec<Request> = (0..replies.len()).map(request).collect();
        let replies: Vec<Reply> =
            requests.iter().zip(replies).map(|(request, values)| request.reply(message(values))).collect();
        outlier_scores(&requests, &replies, &Session::open::<Flex>(Precision::F64).unwrap()).unwrap()
    }

    #[test]
    fn a_single_row_scores_its_squared_distance() {
        // m = (0, 0); squared distances 4, 4, 400, 0, 0 over w = 2: s² = 4/2 = 2, ‖z‖²/w = r²/(s² w) = r²/4; 1/w = ½.
        let got = scores(
            (&[1, 2], vec![9.0, 9.0]),
            vec![vec![2.0, 0.0], vec![-2.0, 0.0], vec![0.0, 20.0], vec![0.0, 0.0], vec![0.0, 0.0]],
        );
        let want = [1.5, 1.5, 100.5, 0.5, 0.5];
        got.iter().zip(want).for_each(|(got, want)| assert!((got.unwrap() - want).abs() < 1e-9, "{got:?}, not {want}"));
    }

    #[test]
    fn several_rows_have_the_discrepancy_of_numpy() {
        // numpy: the means of the replies are (.5, 1), (.5, 0) and (5, 4), so m = (.5, 1); the squared distances of the six rows
        // from it have the median 4.25, so s² = 2.125; then (1/(n²w)) Σ_ij [k z_i·z_j − z_i·∇_j k − ∇_i k·z_j + tr ∇_i ∇_j k].
        let got = scores(
            (&[2, 2], vec![7.0, 7.0, 8.0, 8.0]),
            vec![vec![1.0, 0.0, 0.0, 2.0], vec![-1.0, 1.0, 2.0, -1.0], vec![6.0, 3.0, 4.0, 5.0]],
        );
        let want = [0.22050820220972278, 0.5211040627716772, 5.719660553129896];
        got.iter().zip(want).for_each(|(got, want)| assert!((got.unwrap() - want).abs() < 1e-9, "{got:?}, not {want}"));
    }

    #[test]
    fn a_single_reply_is_compared_with_what_was_sent() {
        let sent = vec![-1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, -1.0];
        let same = scores((&[4, 2], sent.clone()), vec![sent.clone()])[0].unwrap();
        let far = scores((&[4, 2], sent.clone()), vec![sent.iter().map(|value| value + 10.0).collect()])[0].unwrap();
        assert!(same < 1.0 && far > 50.0, "{same} {far}");
        // One particle has no spread.
        assert_eq!(scores((&[1, 2], vec![0.0, 0.0]), vec![vec![1.0, 0.0]]), [None]);
    }
}
