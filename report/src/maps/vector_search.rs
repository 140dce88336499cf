//! The vector scaling of rows that lie in several places, from sums alone.

use super::newton::{dot, solve};
use super::vector::{VectorMap, vector_sums_len};

/// The objective is the sum of the NLLs plus half of this weight times the squared distance of the numbers from those of the
/// identity (every factor 1, every offset 0), which is a normal prior of the standard deviation 10. The minimum is then unique,
/// though the same offset for all classes changes no probability, and finite where every calibration row is right.
pub const PENALTY: f64 = 0.01;
/// The most questions; a fit takes about ten.
const QUESTIONS: usize = 100;
/// The most halvings of a step.
const HALVINGS: usize = 30;
/// The search ends where Newton's decrement, which is twice what is left to gain, is below this share of the number of rows.
const DECREMENT: f64 = 1e-20;
/// Below this share the objective no longer shows in `f64` whether a step is good, and Newton's steps are.
const FLAT: f64 = 1e-12;
/// Share of the gain that the slope promises, which a step must have.
const ARMIJO: f64 = 1e-4;

/// Finds the vector scaling with the lowest penalised NLL by Newton's method: a question is a map, the answer to it the
/// [`vector_sums`](super::vector_sums) of all rows. The objective is convex.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorSearch {
    rows: f64,
    classes: usize,
    /// The best numbers so far, `[2 C]`, and the objective there; `None` before the first answer.
    at: Vec<f64>,
    objective: Option<f64>,
    direction: Vec<f64>,
    decrement: f64,
    /// The share of the direction that the next question goes.
    step: f64,
    halvings: usize,
    asked: usize,
    next: Option<Vec<f64>>,
}

impl VectorSearch {
    /// A search over so many rows.
    pub fn new(rows: usize, classes: usize) -> Self {
        let at = [vec![1.0; classes], vec![0.0; classes]].concat();
        Self {
            rows: rows as f64,
            classes,
            direction: vec![0.0; at.len()],
            next: Some(at.clone()),
            at,
            objective: None,
            decrement: 0.0,
            step: 1.0,
            halvings: 0,
            asked: 0,
        }
    }

    /// The numbers of the next map, `[2 C]`; `None` at the end.
    pub fn question(&self) -> Option<&[f64]> {
        self.next.as_deref()
    }

    /// Takes the sums over all places; others than [`vector_sums_len`] numbers end the search.
    pub fn answer(&mut self, sums: &[f64]) {
        let Some(asked) = self.next.take() else { return };
        self.asked += 1;
        if sums.len() != vector_sums_len(self.classes) || self.asked > QUESTIONS {
            return;
        }
        let off = self.off_identity(&asked);
        let objective = sums[0] + 0.5 * PENALTY * dot(&off, &off);
        let is_better =
            |known: f64| objective <= known - ARMIJO * self.step * self.decrement || self.decrement < FLAT * self.rows;
        match self.objective.is_none_or(is_better) {
            true => self.accept(asked, objective, &sums[1..], &off),
            false => self.shorten(),
        }
    }

    /// The map that was found: the identity before the first answer.
    pub fn map(&self) -> VectorMap {
        let (scale, bias) = self.at.split_at(self.classes);
        VectorMap { scale: scale.to_vec(), bias: bias.to_vec() }
    }

    fn accept(&mut self, at: Vec<f64>, objective: f64, derivatives: &[f64], off: &[f64]) {
        let (gradient, hessian) = derivatives.split_at(at.len());
        let downhill: Vec<f64> = gradient.iter().zip(off).map(|(g, off)| -(g + PENALTY * off)).collect();
        (self.at, self.objective, self.step, self.halvings) = (at, Some(objective), 1.0, 0);
        let Some(direction) = solve(hessian, PENALTY, &downhill) else { return };
        self.decrement = dot(&downhill, &direction);
        self.direction = direction;
        if self.decrement > DECREMENT * self.rows {
            self.go();
        }
    }

    fn shorten(&mut self) {
        (self.step, self.halvings) = (0.5 * self.step, self.halvings + 1);
        if self.halvings <= HALVINGS {
            self.go();
        }
    }

    fn go(&mut self) {
        let next: Vec<f64> = self.at.iter().zip(&self.direction).map(|(at, by)| at + self.step * by).collect();
        self.next = Some(next).filter(|next| next.iter().all(|value| value.is_finite()));
    }

    fn off_identity(&self, numbers: &[f64]) -> Vec<f64> {
        let identity = |at: usize| f64::from(u8::from(at < self.classes));
        numbers.iter().enumerate().map(|(at, value)| value - identity(at)).collect()
    }
}
