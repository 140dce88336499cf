//! Exact assignment of 1000 rows, and the barycenter of 10 and of 50 clients with N = 10 in the dimension of the MNIST
//! network 784-100-10 (d = 79,510). Reported, not asserted.
//!
//! `cargo bench --bench transport`

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use fedstein::array::{Array, Values};
use fedstein::backend::{Flex, Precision, Session};
use fedstein::models::{BnnConfig, Model, Network};
use fedstein::ot::{BarycenterConfig, assign, barycenter, index_mean};
use fedstein::particles::Particles;
use fedstein::random::{Purpose, Streams};
use ndarray::Array2;
use rand::RngExt;
use rand::seq::SliceRandom;

const ROWS: usize = 1000;
const PARTICLES: usize = 10;

fn assignments(criterion: &mut Criterion) {
    let mut rng = Streams::new(1).rng(Purpose::Data, 0, 0);
    let uniform = Array2::from_shape_fn((ROWS, ROWS), |_| rng.random::<f64>());
    let mut points = || Array2::from_shape_fn((ROWS, 2), |_| rng.random::<f64>());
    let (a, b) = (points(), points());
    let plane = Array2::from_shape_fn((ROWS, ROWS), |(i, j)| (&a.row(i) - &b.row(j)).mapv(|v| v * v).sum());
    for (name, cost) in [("uniform", uniform), ("points of a plane", plane)] {
        criterion.bench_function(&format!("assign N={ROWS}, {name}"), |bencher| {
            bencher.iter(|| black_box(assign(cost.view())));
        });
    }
}

/// Particle sets of clients that hold the same modes in another order, each with its own noise.
fn clients(count: usize, session: &Session) -> Vec<Particles> {
    let model = Network::new(BnnConfig::classifier(784, &[100], 10));
    let mut rng = Streams::new(1).rng(Purpose::InitialParticles, 0, 0);
    let modes: Vec<Vec<f64>> = (0..PARTICLES).map(|_| model.initial(&mut rng)).collect();
    let mut client = || {
        let mut order: Vec<usize> = (0..PARTICLES).collect();
        order.shuffle(&mut rng);
        let own = |mode: usize| model.initial(&mut rng).into_iter().zip(&modes[mode]).map(|(own, mode)| own + mode);
        let rows = order.into_iter().flat_map(own).collect();
        let array = Array { shape: vec![PARTICLES, model.layout().dim()], values: Values::F64(rows) };
        Particles::from_array(&array, model.layout(), session).expect("rows have the model's dimension")
    };
    (0..count).map(|_| client()).collect()
}

fn barycenters(criterion: &mut Criterion) {
    let session = Session::open::<Flex>(Precision::F32).expect("flex opens everywhere");
    for count in [10, 50] {
        let clients = clients(count, &session);
        let solve = || {
            let initial = index_mean(&clients).expect("clients are alike");
            barycenter(&clients, None, &initial, &BarycenterConfig::default()).expect("flex answers")
        };
        let updates = solve().iterations();
        criterion.bench_function(&format!("barycenter K={count}, {updates} updates"), |bencher| {
            bencher.iter(|| black_box(solve()));
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = assignments, barycenters
}
criterion_main!(benches);
