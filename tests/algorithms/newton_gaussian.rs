//! Newton factors on clients with Gaussian likelihoods, whose posterior is known, and what follows from the fixed-point
//! argument of docs/algorithms.md.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use fedstein::experiment::Experiment;
use fedstein::models::{
    Architecture, Batch, LayerCurvature, LayerInputs, LayerRows, Layout, Network, OutputGradients, ParticleModel,
    Prior, PriorTerm, RowCurvature, Task,
};
use fedstein::protocol::Ask;
use ndarray::{Array1, Array2};
use tempfile::TempDir;

use crate::common::experiment;
use crate::driven::{Driven, rows_of, sites};

/// θ ~ N(0, I/precision) in d dimensions; a row (a, m) has the likelihood N(m; a·θ, 1).
#[derive(Clone, Debug)]
struct LinearConfig {
    dim: usize,
    precision: f64,
}

#[derive(Module, Debug)]
struct Linear {
    theta: Param<Tensor<2>>,
}

impl Linear {
    /// −½ (m − a·θ_n)² of each row, `[N, B]`.
    fn rows(&self, inputs: Tensor<2>) -> Tensor<2> {
        let [_, dim] = self.theta.val().dims();
        let (a, m) = (inputs.clone().narrow(1, 0, dim), inputs.narrow(1, dim, 1).transpose());
        (m - self.theta.val().matmul(a.transpose())).square().mul_scalar(-0.5)
    }
}

impl ParticleModel for Linear {
    fn log_likelihood(&self, batch: &Batch) -> Tensor<1> {
        self.rows(batch.inputs.clone()).sum_dim(1).squeeze_dim(1)
    }

    fn predict(&self, inputs: Tensor<2>) -> Tensor<3> {
        self.rows(inputs).unsqueeze_dim(2)
    }
}

impl Architecture for LinearConfig {
    type Module = Linear;

    fn module(&self, particles: usize, device: &Device) -> Linear {
        Linear { theta: Param::from_tensor(Tensor::zeros([particles, self.dim], device)) }
    }

    fn task(&self) -> Task {
        Task::Density
    }

    fn prior(&self, layout: &Layout) -> Prior {
        Prior { terms: vec![PriorTerm::Normal { block: layout.position("theta").unwrap(), precision: self.precision }] }
    }

    fn row_curvature(&self, particles: &[Tensor<2>], inputs: &Tensor<2>) -> Option<RowCurvature> {
        let [rows, _] = inputs.dims();
        let a = inputs.clone().narrow(1, 0, self.dim);
        let squares = particles[0].clone().narrow(1, 0, 1).ones_like().unsqueeze_dim::<3>(2).repeat_dim(2, rows);
        let inputs = LayerInputs::Shared(a);
        let dense = LayerRows::Dense { inputs, gradients: OutputGradients::Squares(squares) };
        let layer = LayerCurvature { weight: 0, bias: None, rows: dense };
        Some(RowCurvature { layers: vec![layer], noise: None, rows })
    }
}

const DIM: usize = 4;
const PRECISION: f64 = 0.5;

/// Clients whose rows point in directions of their own, and the experiment over them in f64 with full batches.
struct Federation {
    experiment: Experiment,
    /// Σ a aᵀ and Σ m a of all rows.
    precision: Array2<f64>,
    shift: Array1<f64>,
    _dir: TempDir,
}

impl Federation {
    fn new(clients: usize, algorithm: &str, lr: f64, more: &str) -> Self {
        let mut rows = String::new();
        let (mut precision, mut shift) = (Array2::<f64>::eye(DIM) * PRECISION, Array1::<f64>::zeros(DIM));
        for client in 0..clients {
            for row in 0..6 {
                // Features are read in f32.
                let number =
                    |at: usize| f64::from((((client * 31 + row * 7 + at * 3) as f64 * 0.83).sin() * 1.5) as f32);
                let a = Array1::from_shape_fn(DIM, |at| number(at) * if at == client % DIM { 3.0 } else { 1.0 });
                let a = a.mapv(|value| f64::from(value as f32));
                let m = f64::from((number(9) + client as f64) as f32);
                writeln!(rows, "s{client},{},{},{},{},{m},0.5", a[0], a[1], a[2], a[3]).unwrap();
                for i in 0..DIM {
                    for j in 0..DIM {
                        precision[[i, j]] += a[i] * a[j];
                    }
                }
                shift += &(&a * m);
            }
            writeln!(rows, "s{client},0,0,0,0,0,1.5").unwrap();
        }
        let keys = format!("kind = \"newton-dsvgd\"\n{algorithm}\n[optimizer]\nkind = \"sgd\"\nlr = {lr}\n{more}");
        let (mut experiment, dir) = sites("site,a0,a1,a2,a3,m,y", &rows, "s0,1,0,0,0,1,0.5\n", keys);
        experiment.model = Some(Arc::new(Network::new(LinearConfig { dim: DIM, precision: PRECISION })));
        Self { experiment, precision, shift, _dir: dir }
    }

    /// The score of the posterior of all rows at θ: Σ m a − P θ.
    fn score(&self, theta: &Array1<f64>) -> Array1<f64> {
        &self.shift - &self.precision.dot(theta)
    }

    /// The largest coordinate of SVGD's direction of all particles under the score of all rows, by its definition.
    fn direction(&self, theta: &Array2<f64>) -> f64 {
        let n = theta.nrows();
        let squared = |i: usize, j: usize| (&theta.row(i) - &theta.row(j)).mapv(|gap| gap * gap).sum();
        let mut distances: Vec<f64> =
            (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| squared(i, j)).collect();
        distances.sort_by(f64::total_cmp);
        let middle = distances.len() / 2;
        let median = if distances.len().is_multiple_of(2) {
            0.5 * (distances[middle - 1] + distances[middle])
        } else {
            distances[middle]
        };
        let h = median / ((n + 1) as f64).ln();
        let mut largest = 0.0f64;
        for i in 0..n {
            let mut phi = Array1::<f64>::zeros(DIM);
            for j in 0..n {
                let k = (-squared(i, j) / h).exp();
                phi += &(self.score(&theta.row(j).to_owned()) * k);
                phi += &((&theta.row(i) - &theta.row(j)) * (2.0 / h * k));
            }
            largest = phi.iter().fold(largest, |largest, value| largest.max(value.abs() / n as f64));
        }
        largest
    }
}

#[test]
fn gaussian_clients_that_differ_end_at_the_fixed_point_of_svgd_with_all_rows() {
    // A diagonal lacks the correlations: with a larger c it is as stable as the whole matrix, and slower.
    for (curvature, c, at_once, rounds, bound) in [
        ("full", 1.0, 1, 40, 1e-5),
        ("full", 1.0, 5, 40, 1e-5),
        ("diagonal", 3.0, 1, 300, 1e-3),
        ("kronecker", 3.0, 1, 300, 1e-3),
    ] {
        let (steps, lr) = if c == 1.0 { (1500, 0.01) } else { (500, 0.003) };
        let keys = format!(
            "particles = 5\nlocal_steps = {steps}\nbatch = 7\ncurvature = \"{curvature}\"\ncurvature_scale = {c:.1}"
        );
        let federation = Federation::new(5, &keys, lr, &format!("[schedule]\nclients = {at_once}"));
        let mut driven = Driven::new(&federation.experiment);
        (1..=rounds / 2).for_each(|round| drop(driven.round(round)));
        let half = federation.direction(&driven.theta());
        (rounds / 2 + 1..=rounds).for_each(|round| drop(driven.round(round)));
        let phi = federation.direction(&driven.theta());
        println!("{curvature}, {at_once} at once: largest coordinate of φ {half:.1e}, then {phi:.1e}");
        // Below the bound, and still on its way.
        assert!(phi < bound && phi < 0.3 * half, "{curvature}, {at_once} at once: {half:.1e}, then {phi:.1e}");
    }
}

#[test]
fn a_visit_without_a_change_elsewhere_leaves_the_posterior_where_it_is() {
    let keys = "particles = 4\nlocal_steps = 1500\nbatch = 7\ncurvature = \"full\"";
    let federation = Federation::new(3, keys, 0.01, "");
    let mut driven = Driven::new(&federation.experiment);
    (1..=30).for_each(|round| drop(driven.round(round)));
    let before = driven.theta();
    for round in 31..=36 {
        driven.round(round);
        let moved = (&driven.theta() - &before).fold(0.0f64, |most, gap| most.max(gap.abs()));
        assert!(moved < 1e-5, "round {round}: {moved}");
    }
}

#[test]
fn the_order_of_magnitude_of_the_curvature_does_not_move_the_fixed_point() {
    // With one particle SVGD ends at the posterior's mean, where the score of all rows is 0.
    for (curvature, scale, rounds) in
        [("full", 1.0, 40), ("full", 3.0, 40), ("diagonal", 3.0, 240), ("kronecker", 3.0, 240)]
    {
        let keys = format!(
            "particles = 1\nlocal_steps = 1500\nbatch = 7\ncurvature = \"{curvature}\"\ncurvature_scale = {scale:.1}"
        );
        let federation = Federation::new(4, &keys, 0.001, "");
        let mut driven = Driven::new(&federation.experiment);
        (1..=rounds).for_each(|round| drop(driven.round(round)));
        let score = federation.score(&driven.theta().row(0).to_owned());
        println!("{curvature}, c = {scale}: score of all rows {score:.1e}");
        assert!(score.iter().all(|value| value.abs() < 1e-5), "{curvature}, c = {scale}: {score}");
    }
}

#[test]
fn sums_of_sites_do_not_drift_in_six_hundred_rounds_of_f32() {
    const ROUNDS: usize = 600;
    let mut driven = Driven::new(&experiment(
        "name = \"drift\"\nseed = 2\n[data]\nkind = \"twonorm\"\nrows = 300\n[partition]\nclients = 5\n[model]\n\
         kind = \"blr\"\n[algorithm]\nkind = \"newton-dsvgd\"\nparticles = 4\nlocal_steps = 3\nbatch = 20\n\
         curvature = \"diagonal\"\ncurvature_scale = 1.0\n[optimizer]\nkind = \"adagrad\"\nlr = 0.05\nepsilon = 1e-9",
    ));
    let mut sites = BTreeMap::new();
    (1..=ROUNDS).for_each(|round| sites.extend(driven.round(round)));
    let theta: Vec<f64> = driven.theta().iter().copied().collect();
    let request = driven.request(ROUNDS + 1, 0, Ask::Train);
    // What every other client sent last, at today's particles, in f64: G − F (Θ − a).
    let (mut score, mut curvature) = (vec![0.0; theta.len()], vec![0.0; theta.len()]);
    let mut largest = 0.0f64;
    for message in (1..5).map(|client| &sites[&client]) {
        let [a, g, f] = ["particles", "gradient", "curvature"].map(|name| rows_of(message, name));
        for i in 0..theta.len() {
            let change = f[i] * (theta[i] - a[i]);
            score[i] += g[i] - change;
            curvature[i] += f[i];
            largest = largest.max(g[i].abs()).max(change.abs()).max(f[i]);
        }
    }
    // A visit adds to each sum, or subtracts, at most eight terms of at most five sites, with one rounding each.
    let bound = 8.0 * 5.0 * ROUNDS as f64 * f64::from(f32::EPSILON) / 2.0 * largest;
    for (name, want) in [("gradient", &score), ("curvature", &curvature)] {
        let gaps = rows_of(&request.message, name).into_iter().zip(want).map(|(got, want)| (got - want).abs());
        let gap = gaps.fold(0.0, f64::max);
        println!("{name}: {gap:.1e}, bound {bound:.1e}, largest term {largest:.1e}");
        assert!(gap < bound && gap < 1e-3 * largest, "{name}: {gap}");
    }
}
