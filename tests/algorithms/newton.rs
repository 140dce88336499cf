//! Newton factors: exactness of the tilted score, clients with Gaussian likelihoods, whose posterior is known, and what
//! follows from the fixed-point argument of docs/algorithms.md. References are posteriors and sums over all rows, not the
//! recursions of the code; where second moments move with several clients at once, the documentation's.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use fedstein::algorithm::AlgorithmConfig;
use fedstein::array::{Array, Values};
use fedstein::backend::{Flex, Session};
use fedstein::datasets::{Dataset, FeatureScale, Normalisation, Targets};
use fedstein::experiment::Experiment;
use fedstein::experiment::config::NumberOr;
use fedstein::models::{
    Architecture, Batch, BlrConfig, LayerCurvature, LayerInputs, LayerRows, Layout, Model, Network, OutputGradients,
    ParticleModel, Prior, PriorTerm, RowCurvature, Task,
};
use fedstein::particles::Particles;
use fedstein::protocol::{Ask, Halves, Message, Question, Request, Setup, all_here};
use fedstein::random::Streams;
use fedstein::rows::{Rows, Shard, Table};
use fedstein::stein::{Bandwidth, Kernel};
use ndarray::{Array1, Array2};
use tempfile::TempDir;

use crate::common::{
    Built, assert_close, bits, data, experiment, flat, golden, matrix, outcome, small_digits, with_layout,
};
use crate::driven::{Driven, sites};

// --------------------------------------------------------------------------------- clients with Gaussian likelihoods

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

fn rows_of(message: &Message, name: &str) -> Vec<f64> {
    message.arrays[name].values.to_f64()
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

// -------------------------------------------------------------------------------------------------------- exactness

/// Two convolutions and two dense layers. Blank pixels put all of the first convolution on its biases, which begin at 0: a
/// ReLU there would have another gradient at the 1e-30 to which a step moves a bias.
const CONVOLUTIONS: &str = "[model]\nkind = \"stack\"\nlayers = [\"conv 3 3x3\", \"tanh\", \"max-pool 2\", \"conv 4 2x2\", \
                            \"tanh\", \"dense 5\", \"relu\"]";

/// Configs of models of every kind with each curvature that they have.
fn models() -> Vec<(String, &'static str)> {
    let digits = "[data]\nkind = \"digits\"\ntrain_limit = 90\ntest_limit = 20";
    let two = "[data]\nkind = \"twonorm\"\nrows = 120";
    let network = |hidden: &str| format!("[model]\nkind = \"bnn\"\nhidden = {hidden}");
    let mut all = Vec::new();
    for curvature in ["diagonal", "full", "kronecker", "kfac"] {
        all.push((format!("{two}\n[model]\nkind = \"blr\""), curvature));
        all.push((format!("{two}\n[model]\nkind = \"blr\"\nbias = true"), curvature));
    }
    for curvature in ["diagonal", "kronecker", "kfac"] {
        all.push((format!("{digits}\n{}", network("[6]")), curvature));
        all.push((format!("{digits}\n{}\nactivation = \"tanh\"", network("[6, 5]")), curvature));
        all.push((format!("{digits}\n{}", network("[]")), curvature));
        all.push((format!("{digits}\n[model]\nkind = \"stack\"\nlayers = [\"dense 6\", \"gelu\"]"), curvature));
        all.push((format!("{digits}\n{CONVOLUTIONS}"), curvature));
    }
    all
}

#[test]
fn the_tilted_score_of_clients_that_were_visited_at_theta_is_that_of_all_rows() {
    for (model, curvature) in models() {
        let what = format!("{model}, {curvature}");
        assert_tilted_scores_are_those_of_all_rows(&at_rest(&model, curvature), &what);
    }
}

/// Three clients with this model and curvature in f64, with α = 0.7 and steps that do not move the particles.
fn at_rest(model: &str, curvature: &str) -> Experiment {
    experiment(&format!(
        "name = \"exact\"\nprecision = \"f64\"\nseed = 3\n{model}\n[partition]\nclients = 3\n[algorithm]\n\
         kind = \"newton-dsvgd\"\nparticles = 3\nlocal_steps = 1\nbatch = 20\ncurvature = \"{curvature}\"\n\
         temperature = 0.7\n[optimizer]\nkind = \"sgd\"\nlr = 1e-30"
    ))
}

#[test]
fn the_tilted_score_of_a_regression_is_that_of_all_rows() {
    for curvature in ["diagonal", "kronecker", "kfac"] {
        let (experiment, _files) = regression(&format!("local_steps = 1\ncurvature = \"{curvature}\""), "[5]");
        assert_tilted_scores_are_those_of_all_rows(&experiment, curvature);
    }
}

/// Visits the three clients of an experiment with α = 0.7 whose steps do not move the particles, and compares the tilted
/// score of each of them with that of all rows.
fn assert_tilted_scores_are_those_of_all_rows(experiment: &Experiment, what: &str) {
    let mut driven = Driven::new(experiment);
    (1..=3).for_each(|round| drop(driven.round(round)));
    let score = score_of_all_rows(experiment, &driven.built);
    for client in 0..3 {
        let question = Question::LikelihoodScore { kernel: Kernel::Rbf(Bandwidth::default()), rows: Rows::Full };
        let request = driven.request(4, client, Ask::Answer(question));
        let own = driven.built.clients[client].1.answer(&request, &question).unwrap();
        let own = rows_of(&own, "particles");
        let others = rows_of(&request.message, "gradient");
        let size = score.iter().fold(1.0f64, |most, value| most.max(value.abs()));
        for ((own, others), want) in own.iter().zip(&others).zip(&score) {
            let gap = (own + others - want).abs();
            assert!(gap < 1e-10 * size, "{what}, client {client}: {} and not {want}", own + others);
        }
    }
}

/// A regression with these hidden layers over three clients that hold different intervals of a feature, in f64 with
/// α = 0.7 and steps that do not move the particles; `keys` are further ones of `[algorithm]`.
fn regression(keys: &str, hidden: &str) -> (Experiment, TempDir) {
    let rows = (0..45).fold(String::new(), |mut rows, i| {
        let (x, z) = (f64::from(i) / 10.0 - 2.0, f64::from(i * 7 % 11) / 5.0 - 1.0);
        writeln!(rows, "{x},{z},{},s{}", (2.0 * x).sin() + z * z, i / 15).unwrap();
        rows
    });
    let keys = format!(
        "kind = \"newton-dsvgd\"\nparticles = 3\nbatch = 20\ntemperature = 0.7\n{keys}\n[model]\nkind = \"bnn\"\n\
         hidden = {hidden}\nactivation = \"tanh\"\n[optimizer]\nkind = \"sgd\"\nlr = 1e-30"
    );
    sites("x,z,y,site", &rows, "0.5,0.5,1,s0", keys)
}

#[test]
fn auto_is_the_curvature_and_the_scale_that_the_documentation_says() {
    let classes = |data: &str, hidden: &str| {
        let (data, hidden) = (data.to_owned(), hidden.to_owned());
        move |keys: &str| {
            let experiment = experiment(&format!(
                "name = \"auto\"\nprecision = \"f64\"\nseed = 3\n[data]\n{data}\n[partition]\nclients = 3\n[model]\n\
                 kind = \"bnn\"\nhidden = {hidden}\n[algorithm]\nkind = \"newton-dsvgd\"\nparticles = 2\nlocal_steps = 2\n\
                 batch = 20\n{keys}"
            ));
            (experiment, tempfile::tempdir().unwrap())
        }
    };
    let (two, three) = ("kind = \"twonorm\"\nrows = 120", "kind = \"waveform\"\nrows = 120");
    let ten = "kind = \"digits\"\ntrain_limit = 90\ntest_limit = 20";
    type Make = Box<dyn Fn(&str) -> (Experiment, TempDir)>;
    let cases: [(Make, &str, f64); 8] = [
        (Box::new(classes(two, "[]")), "kronecker", 1.0),
        (Box::new(classes(two, "[6]")), "kfac", 5.0),
        (Box::new(classes(three, "[6]")), "kfac", 5.0),
        (Box::new(classes(two, "[257]")), "kronecker", 3.0),
        (Box::new(classes(ten, "[6]")), "kronecker", 3.0),
        (Box::new(classes(ten, "[6, 5]")), "kfac", 5.0),
        (Box::new(|keys| regression(&format!("local_steps = 2\n{keys}"), "[5]")), "kfac", 2.0),
        (Box::new(|keys| regression(&format!("local_steps = 2\n{keys}"), "[]")), "kronecker", 1.0),
    ];
    for (case, (make, form, scale)) in cases.iter().enumerate() {
        let sent = |keys: &str| {
            let (experiment, _files) = make(keys);
            let mut driven = Driven::new(&experiment);
            driven.round(1);
            driven.request(2, 1, Ask::Train).message.arrays.clone()
        };
        let explicit = sent(&format!("curvature = \"{form}\"\ncurvature_scale = {scale:.1}"));
        assert!(sent("") == explicit, "case {case}");
        assert!(sent(&format!("curvature_scale = {:.1}", 2.0 * scale)) != explicit, "case {case}");
    }
}

#[test]
fn the_kronecker_factors_of_a_visit_have_the_trace_of_its_diagonal_in_every_layer() {
    let visited = |curvature: &str| {
        let experiment = experiment(&format!(
            "name = \"trace\"\nprecision = \"f64\"\nseed = 3\n[data]\nkind = \"digits\"\ntrain_limit = 90\n\
             test_limit = 20\n{CONVOLUTIONS}\n[partition]\nclients = 2\n[algorithm]\nkind = \"newton-dsvgd\"\n\
             particles = 3\nlocal_steps = 1\nbatch = 20\ncurvature = \"{curvature}\"\ncurvature_scale = 1.0\n\
             [optimizer]\nkind = \"sgd\"\nlr = 1e-30"
        ));
        let mut driven = Driven::new(&experiment);
        driven.round(1);
        // What client 1 gets is the factor of client 0, at the same particles and with the same drawn labels.
        (driven.request(2, 1, Ask::Train).message, driven.built.layout.clone())
    };
    let (diagonal, layout) = visited("diagonal");
    let (kronecker, _) = visited("kronecker");
    let diagonal = rows_of(&diagonal, "curvature");
    let factors = rows_of(&kronecker, "curvature");
    let (shared, own) = (rows_of(&kronecker, "input_moments"), rows_of(&kronecker, "hidden_moments"));

    let particles = 3;
    let (outputs, moments) = (factors.len() / particles, own.len() / particles);
    let (mut output, mut moment) = (0, 0);
    let (layers, _) = layout.blocks().as_chunks::<2>();
    for [weight, bias] in layers {
        let inputs = weight.size() / bias.size() + 1;
        let is_first = weight.offset == 0;
        for n in 0..particles {
            let own = &own[n * moments..(n + 1) * moments];
            // The matrix of the images' patches is one for all particles.
            let matrix = if is_first { &shared[..] } else { &own[moment..moment + inputs * inputs] };
            assert_eq!(matrix.len(), inputs * inputs, "{}", weight.name);
            let trace: f64 = (0..inputs).map(|j| matrix[j * inputs + j]).sum();
            let of = &factors[n * outputs + output..][..bias.size()];
            let got = trace * of.iter().sum::<f64>();
            let of = &diagonal[n * layout.dim() + weight.offset..][..weight.size() + bias.size()];
            let want: f64 = of.iter().sum();
            assert!(want > 0.0 && (got / want - 1.0).abs() < 1e-10, "{}, particle {n}: {got}, not {want}", weight.name);
        }
        output += bias.size();
        moment += if is_first { 0 } else { inputs * inputs };
    }
    assert_eq!((layers.len(), output, moment), (4, outputs, moments));
}

#[test]
fn a_matrix_over_outputs_is_the_sum_of_outer_products_whose_squares_are_the_kronecker_numbers() {
    // One client with one row: the matrix of a layer is δ δᵀ up to a factor, of rank one, and its diagonal is that of
    // `kronecker`, with the same drawn label.
    let visited = |curvature: &str, rows: usize| {
        let experiment = experiment(&format!(
            "name = \"outer\"\nprecision = \"f64\"\nseed = 3\n[data]\nkind = \"digits\"\ntrain_limit = {rows}\ntest_limit = 20\n\
             [model]\nkind = \"bnn\"\nhidden = [6, 5]\nactivation = \"tanh\"\n[partition]\nclients = 2\n[algorithm]\n\
             kind = \"newton-dsvgd\"\nparticles = 3\nlocal_steps = 1\nbatch = 20\ncurvature = \"{curvature}\"\n\
             curvature_scale = 1.0\n[optimizer]\nkind = \"sgd\"\nlr = 1e-30"
        ));
        let mut driven = Driven::new(&experiment);
        driven.round(1);
        rows_of(&driven.request(2, 1, Ask::Train).message, "curvature")
    };
    let sizes = [6, 5, 10];
    let (numbers, elements) = (21, 36 + 25 + 100);
    for rows in [2, 60] {
        let (kronecker, kfac) = (visited("kronecker", rows), visited("kfac", rows));
        assert_eq!((kronecker.len(), kfac.len()), (3 * numbers, 3 * elements));
        for n in 0..3 {
            let (mut number, mut element) = (n * numbers, n * elements);
            for size in sizes {
                let d = |i: usize, j: usize| kfac[element + i * size + j];
                let largest = (0..size).map(|i| d(i, i)).fold(0.0, f64::max);
                assert!(largest > 0.0);
                let mut apart = 0.0f64;
                for (i, j) in (0..size).flat_map(|i| (0..size).map(move |j| (i, j))) {
                    assert!((d(i, j) - d(j, i)).abs() < 1e-12 * largest);
                    // Cauchy and Schwarz, with equality for one row.
                    let gap = d(i, i) * d(j, j) - d(i, j) * d(i, j);
                    assert!(gap > -1e-12 * largest * largest);
                    apart = apart.max(gap);
                }
                if rows == 2 {
                    assert!(apart < 1e-12 * largest * largest, "one row a client: {apart:e}");
                } else {
                    assert!(apart > 1e-3 * largest * largest, "thirty rows a client: {apart:e}");
                }
                for i in 0..size {
                    assert!((d(i, i) - kronecker[number + i]).abs() < 1e-12 * largest, "{rows} rows, output {i}");
                }
                (number, element) = (number + size, element + size * size);
            }
        }
    }
}

#[test]
fn the_curvature_of_a_visit_is_proportional_to_its_scale_and_to_one_over_the_temperature() {
    // What the server sends of the factor of client 0: at the same particles, with the same drawn labels.
    let sent = |experiment: &mut Experiment, temperature: f64, c: f64| {
        let AlgorithmConfig::NewtonDsvgd(config) = &mut experiment.config.algorithm else { panic!("newton") };
        (config.temperature, config.curvature_scale) = (temperature, NumberOr::Fixed(c));
        let mut driven = Driven::new(experiment);
        driven.round(1);
        rows_of(&driven.request(2, 1, Ask::Train).message, "curvature")
    };
    let check = |mut experiment: Experiment, what: &str| {
        let once = sent(&mut experiment, 1.0, 1.0);
        assert!(once.iter().any(|value| value.abs() > 0.01), "{what}: no curvature");
        for (temperature, c, ratio) in [(2.5, 1.0, 0.4), (1.0, 3.0, 3.0)] {
            let other = sent(&mut experiment, temperature, c);
            // A few products in f64, each with one rounding.
            let far = once.iter().zip(&other).find(|(once, other)| (*other - ratio * *once).abs() > 1e-12 * once.abs());
            assert!(far.is_none(), "{what}, α = {temperature}, c = {c}: not {ratio} times: {far:?}");
        }
        once
    };
    for (model, curvature) in models().iter().filter(|(model, _)| !model.contains("conv")) {
        check(at_rest(model, curvature), &format!("{model}, {curvature}"));
    }
    for curvature in ["diagonal", "kronecker", "kfac"] {
        let (experiment, _files) = regression(&format!("local_steps = 1\ncurvature = \"{curvature}\""), "[5]");
        let curvature = check(experiment, &format!("regression, {curvature}"));
        // The element of log γ is that of the last coordinate: ½ a row, of which client 0 has fifteen.
        for last in curvature.chunks_exact(curvature.len() / 3).map(|of_particle| of_particle.last().unwrap()) {
            assert!((last - 7.5).abs() < 1e-12, "{last}");
        }
    }
}

// ------------------------------------------------------------------------------------------- several clients at once

/// Outputs and inputs of the layers of a network 64-6-10.
const LAYERS: [(usize, usize); 2] = [(6, 64), (10, 6)];

/// Matrices of each layer, of one particle after the other.
#[derive(Clone)]
struct Layered(Vec<Array2<f64>>);

impl Layered {
    /// The weights of every layer with the biases beside them, `[out, in + 1]`, of rows `[N, d]`.
    fn weights(rows: &[f64]) -> Self {
        let d: usize = LAYERS.iter().map(|(outputs, inputs)| outputs * (inputs + 1)).sum();
        let of_particle = |row: &[f64]| {
            let mut start = 0;
            LAYERS.map(|(outputs, inputs)| {
                let (bias, end) = (start + outputs * inputs, start + outputs * (inputs + 1));
                let of = |(o, i): (usize, usize)| row[if i == inputs { bias + o } else { start + o * inputs + i }];
                let matrix = Array2::from_shape_fn((outputs, inputs + 1), of);
                start = end;
                matrix
            })
        };
        Self(rows.chunks_exact(d).flat_map(of_particle).collect())
    }

    /// The second moments Ā of the layers' inputs in a message: a diagonal that all particles share, and matrices.
    fn moments(message: &Message, particles: usize) -> Self {
        let first = Array2::from_diag(&Array1::from(rows_of(message, "input_moments")));
        let own = rows_of(message, "hidden_moments");
        let own = |n: usize| Array2::from_shape_vec((7, 7), own[n * 49..(n + 1) * 49].to_vec()).unwrap();
        Self((0..particles).flat_map(|n| [first.clone(), own(n)]).collect())
    }

    /// The factors of the layers' outputs in a message: diagonals, or with `kfac` matrices.
    fn outputs(message: &Message, form: &str) -> Self {
        let (numbers, is_diagonal) = (rows_of(message, "curvature"), form == "kronecker");
        let mut rest = numbers.as_slice();
        let mut all = Vec::new();
        while !rest.is_empty() {
            for (size, _) in LAYERS {
                let (now, later) = rest.split_at(if is_diagonal { size } else { size * size });
                rest = later;
                all.push(match is_diagonal {
                    true => Array2::from_diag(&Array1::from(now.to_vec())),
                    false => Array2::from_shape_vec((size, size), now.to_vec()).unwrap(),
                });
            }
        }
        Self(all)
    }

    fn with(&self, other: &Self, f: impl Fn(&Array2<f64>, &Array2<f64>) -> Array2<f64>) -> Self {
        assert_eq!(self.0.len(), other.0.len());
        Self(self.0.iter().zip(&other.0).map(|(a, b)| f(a, b)).collect())
    }

    /// self + by·other.
    fn plus(&self, by: f64, other: &Self) -> Self {
        self.with(other, |a, b| a + &(b * by))
    }

    fn dot(&self, other: &Self) -> Self {
        self.with(other, |a, b| a.dot(b))
    }

    fn mean(of: &[Self]) -> Self {
        let sum = of[1..].iter().fold(of[0].clone(), |sum, other| sum.plus(1.0, other));
        Self(sum.0.iter().map(|matrix| matrix / of.len() as f64).collect())
    }

    fn largest(&self) -> f64 {
        self.0.iter().flatten().fold(0.0, |most, value| most.max(value.abs()))
    }

    fn assert_near(&self, want: &Self, what: &str) {
        // Sums of some dozen terms in f64.
        let (gap, size) = (self.plus(-1.0, want).largest(), want.largest());
        assert!(gap < 1e-11 * size && size > 0.0, "{what}: off by {gap:e} of {size:e}");
    }
}

#[test]
fn factors_of_several_clients_at_once_are_the_recursion_of_the_documentation() {
    // docs/algorithms.md, "Second moments that move": Ā ← 0.9^|R| Ā + (1 − 0.9^|R|) mean Ā_k, U ← U + ΔV Ā,
    // U_k = U − (Θ̄ − Θ_k) Ā, ∇ log t_k = G_k − b_k (U − U_k), b_k = c·(what the client sent)/tr Ā.
    const C: f64 = 2.0;
    for form in ["kronecker", "kfac"] {
        let experiment = experiment(&format!(
            "name = \"together\"\nprecision = \"f64\"\nseed = 3\n[data]\nkind = \"digits\"\ntrain_limit = 90\n\
             test_limit = 20\n[model]\nkind = \"bnn\"\nhidden = [6]\nactivation = \"tanh\"\n[partition]\nclients = 4\n\
             [algorithm]\nkind = \"newton-dsvgd\"\nparticles = 3\nlocal_steps = 5\nbatch = 20\n\
             curvature = \"{form}\"\ncurvature_scale = {C:?}\n[optimizer]\nkind = \"sgd\"\nlr = 1e-2\n\
             [schedule]\nclients = 2"
        ));
        let mut driven = Driven::new(&experiment);
        let theta = |driven: &Driven| Layered::weights(&driven.theta().iter().copied().collect::<Vec<_>>());
        let mut at = theta(&driven);
        let mut transport = at.plus(-1.0, &at);
        let mut moments: Option<Layered> = None;
        // G_k, U_k and b_k.
        let mut sites: BTreeMap<usize, [Layered; 3]> = BTreeMap::new();
        // Clients 0 and 1, 2 and 3, and 0 and 1 again.
        for round in 1..=3 {
            let visits = driven.round(round);
            let moved: Vec<_> = visits.iter().map(|(_, sent)| Layered::weights(&rows_of(sent, "particles"))).collect();
            let mean = Layered::mean(&moved);
            if let Some(moments) = &moments {
                transport = transport.plus(1.0, &mean.plus(-1.0, &at).dot(moments));
            }
            let sent = Layered::mean(&visits.iter().map(|(_, sent)| Layered::moments(sent, 3)).collect::<Vec<_>>());
            let now = match &moments {
                None => sent,
                Some(old) => old.with(&sent, |old, sent| old * 0.81 + sent * 0.19),
            };
            for ((client, sent), moved) in visits.iter().zip(&moved) {
                let then = transport.plus(-1.0, &mean.plus(-1.0, moved).dot(&now));
                let b = Layered::outputs(sent, form).with(&now, |factor, moment| factor * (C / moment.diag().sum()));
                sites.insert(*client, [Layered::weights(&rows_of(sent, "gradient")), then, b]);
            }
            // The server's own steps.
            at = theta(&driven);
            transport = transport.plus(1.0, &at.plus(-1.0, &mean).dot(&now));

            for client in 0..4 {
                let what = format!("{form}, round {round}, client {client}");
                let others = || sites.iter().filter(|(other, _)| **other != client).map(|(_, site)| site);
                let score = others().map(|[g, then, b]| g.plus(-1.0, &b.dot(&transport.plus(-1.0, then))));
                let sum = |of: Vec<Layered>| of[1..].iter().fold(of[0].clone(), |sum, of| sum.plus(1.0, of));
                let message = driven.request(round + 1, client, Ask::Train).message;
                let got = Layered::weights(&rows_of(&message, "gradient"));
                got.assert_near(&sum(score.collect()), &format!("A, {what}"));
                let b = sum(others().map(|[_, _, b]| b.clone()).collect());
                Layered::outputs(&message, form).assert_near(&b, &format!("Λ, {what}"));
                Layered::moments(&message, 3).assert_near(&now, &format!("Ā, {what}"));
            }
            moments = Some(now);
        }
    }
}

/// (1/α) Σ ∇ log p(row | θ) over the rows of all clients, as one product over all of them.
fn score_of_all_rows(experiment: &Experiment, built: &Built) -> Vec<f64> {
    let all = data(&experiment.config);
    let model = experiment.config.model(&all.train).unwrap();
    let rows = all.train.rows();
    let table = Table::new(all.train, &all.normalisation);
    let shard = Shard::new(table, (0..rows).collect(), built.session.clone());
    let particles: &Particles = built.server.particles();
    let score = model.likelihood_score(particles.blocks(), &shard.batch(&(0..rows).collect::<Vec<_>>()), 1.0 / 0.7);
    let array: Array = {
        let flat: Vec<Vec<f64>> = score.into_iter().map(|block| block.try_into_vec_as::<f64>().unwrap()).collect();
        let count = particles.count();
        let mut values = Vec::new();
        for n in 0..count {
            for block in &flat {
                let size = block.len() / count;
                values.extend_from_slice(&block[n * size..(n + 1) * size]);
            }
        }
        Array { shape: vec![count, particles.dim()], values: fedstein::array::Values::F64(values) }
    };
    array.values.to_f64()
}

#[test]
fn a_single_client_is_svgd_to_the_bit() {
    let optimizer = "[optimizer]\nlr = 1e-3\nepsilon = 1e-6\nreset = \"never\"\n[partition]\nclients = 1";
    let keys = |kind: &str| {
        format!("{optimizer}\n[algorithm]\nkind = \"{kind}\"\nparticles = 20\nlocal_steps = 20\nbatch = 50")
    };
    let svgd = outcome(&small_digits(10, &keys("svgd")));
    let newton = outcome(&small_digits(10, &keys("newton-dsvgd")));
    assert!(bits(&newton) == bits(&svgd));
}

#[test]
fn what_a_client_sends_and_what_the_server_keeps_is_what_the_documentation_says() {
    let keys = "[partition]\nclients = 3\n[algorithm]\nkind = \"newton-dsvgd\"\nparticles = 2\nlocal_steps = 1";
    let run = outcome(&small_digits(4, keys));
    // 64-7-10: N·d for Θ and N·d for G, one number an output, and second moments of inputs and of hidden units.
    let (d, outputs, moments) = (64 * 7 + 7 + 7 * 10 + 10, 17, 65 + 2 * 8 * 8);
    let up = 4 * (2 * 2 * d + 2 * outputs + moments) as u64;
    assert_eq!(run.rounds.iter().map(|round| round.uplink_bytes).collect::<Vec<_>>(), [up; 4]);
    let first = 4 * (2 * d) as u64;
    assert_eq!(run.rounds.iter().map(|round| round.downlink_bytes).collect::<Vec<_>>(), [first, up, up, up]);
}

#[test]
fn visits_follow_the_prototype() {
    for case in golden("newton_factors") {
        let number = |key: &str| case.number(key);
        let form = case.input("curvature").as_str().unwrap();
        let config = experiment(&format!(
            "name = \"golden\"\nprecision = \"f64\"\n[data]\nkind = \"twonorm\"\n[model]\nkind = \"blr\"\n[algorithm]\n\
             kind = \"newton-dsvgd\"\nbatch = 1000\nlocal_steps = {}\ncurvature = \"{form}\"\ncurvature_scale = 1.0\n\
             [optimizer]\nkind = \"adagrad\"\nlr = {}\nepsilon = {:e}",
            number("local_steps"),
            number("lr"),
            number("epsilon")
        ))
        .config;
        let session = Session::open::<Flex>(config.precision).unwrap();
        let features = matrix_of_all(case.input("features"));
        let labels: Vec<usize> = flat(case.input("labels")).into_iter().map(|label| label as usize).collect();
        let sizes = case.input("labels").as_array().unwrap().iter().map(|of| of.as_array().unwrap().len());
        let sizes: Vec<usize> = sizes.collect();
        let width = features.ncols();
        let targets = Targets::Classes { labels, names: vec!["0".into(), "1".into()] };
        let rows = Dataset::new("golden", features.mapv(|value| value as f32), targets).unwrap();
        let table = Table::new(rows, &Normalisation { features: FeatureScale::Identity, target: None });
        let model: Arc<dyn Model> =
            Arc::new(Network::new(BlrConfig { gamma_rate: number("gamma_rate"), ..BlrConfig::new(width) }));
        let starts = sizes.iter().scan(0, |end, size| {
            *end += size;
            Some(*end - size..*end)
        });
        let (roster, here) = all_here(starts.map(|rows| Shard::new(table.clone(), rows.collect(), session.clone())));
        let setup = Setup {
            roster,
            here,
            width,
            initial: with_layout(&matrix(case.input("initial")), model.layout(), &session),
            model,
            session: session.clone(),
            streams: Streams::new(1),
            svgd: config.svgd(),
            reset_optimizer: true,
            personal: false,
            robust: None,
        };
        let layout = setup.initial.layout().clone();
        let Halves { server, clients } = config.algorithm.build(setup).unwrap();
        let mut driven = Driven::of(Built { server, clients, layout, session }, 1);
        for (round, expected) in (1..).zip(case.expected("particles").as_array().unwrap()) {
            driven.round(round);
            let got: Vec<f64> = driven.theta().iter().copied().collect();
            let what = format!("{}, visit {round}", case.name());
            assert_close(&got, &flat(expected), case.tolerance(config.precision), &what);
        }
    }
}

/// The rows of several matrices as one.
fn matrix_of_all(value: &serde_json::Value) -> Array2<f64> {
    let parts: Vec<Array2<f64>> = value.as_array().unwrap().iter().map(matrix).collect();
    ndarray::concatenate(ndarray::Axis(0), &parts.iter().map(|part| part.view()).collect::<Vec<_>>()).unwrap()
}

#[test]
fn a_site_with_other_numbers_of_rows_is_refused_by_the_server_and_by_a_client() {
    let keys = "[partition]\nclients = 2\n[algorithm]\nkind = \"newton-dsvgd\"\nparticles = 3\nlocal_steps = 1";
    let mut driven = Driven::new(&small_digits(1, keys));
    let request = driven.request(1, 0, Ask::Train);
    let good = driven.built.clients[0].1.handle(&request, &|_, _| {}).unwrap();
    assert_eq!(driven.built.server.check(&request.reply(good.clone())), Ok(()));

    // Each array of the first visit with a row too many, with one row alone, and not there at all.
    let with_rows = |message: &Message, name: &str, rows: usize| {
        let mut message = message.clone();
        let array = message.arrays.get_mut(name).unwrap();
        let row = array.values.to_f64()[..array.shape[1]].to_vec();
        *array = Array {
            shape: vec![rows, array.shape[1]],
            values: Values::F32(row.repeat(rows).iter().map(|x| *x as f32).collect()),
        };
        message
    };
    let names: Vec<String> = good.arrays.keys().filter(|name| *name != "particles").cloned().collect();
    assert!(names.len() >= 3, "{names:?}");
    for name in &names {
        let rows = good.arrays[name].shape[0];
        for wrong in [rows + 1, if rows == 1 { 3 } else { 1 }] {
            let reason = driven.built.server.check(&request.reply(with_rows(&good, name, wrong))).unwrap_err();
            assert!(reason.contains(&format!("\"{name}\"")) && reason.contains(&format!("[{wrong}, ")), "{reason}");
        }
        let mut without = good.clone();
        without.arrays.remove(name);
        let reason = driven.built.server.check(&request.reply(without)).unwrap_err();
        assert!(reason.contains(&format!("no array \"{name}\"")), "{reason}");
    }

    // The same arrays as the cavity in a request to the other client.
    driven.built.server.aggregate(vec![request.reply(good)]).unwrap();
    let request = driven.request(2, 1, Ask::Train);
    let broken = Request { message: with_rows(&request.message, "gradient", 4).into(), ..request };
    let error = driven.built.clients[1].1.handle(&broken, &|_, _| {}).unwrap_err();
    assert!(error.to_string().contains("\"gradient\" is [4, "), "{error}");
}
