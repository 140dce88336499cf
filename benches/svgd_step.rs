//! One SVGD step on the MNIST network 784-100-10 (d = 79,510), on synthetic rows of that shape: minibatch, score,
//! direction, AdaGrad. Then what DSVGD adds to each step, the score of the cavity. Reported, not asserted;
//! `docs/performance.md` has figures.
//!
//! `cargo bench --bench svgd_step`

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use fedstein::backend::{Flex, Precision, Session};
use fedstein::datasets::{Dataset, FeatureScale, Normalisation, Targets};
use fedstein::density::{Kde, KdeBandwidth, KdeConfig, KdeMode, Likelihood, LikelihoodScale, LogDensity};
use fedstein::federation::message::{Array, Values};
use fedstein::federation::shard::{Minibatches, Order, Shard, Table};
use fedstein::models::{BnnConfig, Model, Network};
use fedstein::particles::Particles;
use fedstein::random::{Purpose, Streams};
use fedstein::stein::{AccumulatorStart, EpsilonPlace, Kernel, Optimizer, OptimizerState, direction};
use ndarray::Array2;
use rand::RngExt;

const PIXELS: usize = 784;
const CLASSES: usize = 10;
const ROWS: usize = 3000;
/// [D] Table 3.
const ADAGRAD: Optimizer = Optimizer::AdaGrad {
    lr: 1e-3,
    epsilon: 1e-6,
    momentum: 0.9,
    init: AccumulatorStart::G2,
    place: EpsilonPlace::Outside,
};

/// A client's share of MNIST in shape: pixels in [0.01, 1], labels in turn.
fn table() -> Table {
    let mut rng = Streams::new(1).rng(Purpose::Data, 0, 0);
    let features = Array2::from_shape_fn((ROWS, PIXELS), |_| rng.random_range(0.01f32..1.0));
    let names = (0..CLASSES).map(|class| class.to_string()).collect();
    let data = Dataset {
        name: "synthetic".into(),
        features,
        feature_shape: vec![PIXELS],
        feature_names: None,
        targets: Targets::Classes { labels: (0..ROWS).map(|row| row % CLASSES).collect(), names },
        clients: None,
    };
    Table::new(data, &Normalisation { features: FeatureScale::Identity, target: None })
}

fn particles(model: &dyn Model, count: usize, round: usize, session: &Session<Flex>) -> Particles<Flex> {
    let mut rng = Streams::new(1).rng(Purpose::InitialParticles, round, 0);
    let rows = (0..count).flat_map(|_| model.initial(&mut rng)).collect();
    let array = Array { shape: vec![count, model.layout().dim()], values: Values::F64(rows) };
    Particles::from_array(&array, model.layout(), session).expect("the rows have the model's dimension")
}

fn bench(criterion: &mut Criterion) {
    let session = Session::<Flex>::open(Precision::F32).expect("flex opens everywhere");
    let model: Arc<dyn Model> = Arc::new(Network::new(BnnConfig::classifier(PIXELS, &[100], CLASSES)));
    let table = table();

    let mut group = criterion.benchmark_group("784-100-10");
    for (count, batch) in [(20, 100), (10, 250)] {
        let shard = Shard::new(table.clone(), (0..ROWS).collect(), session.clone());
        let minibatches = Minibatches::new(Order::EpochPermutation, ROWS, batch, Streams::new(1), 0);
        let mut likelihood = Likelihood::new(model.clone(), shard, minibatches, LikelihoodScale::Full, 1.0);
        let theta = particles(&*model, count, 0, &session);
        let mut state = OptimizerState::default();
        group.bench_function(format!("score, N={count} B={batch}"), |bencher| {
            bencher.iter(|| black_box(likelihood.next_score(&theta, 1.0)));
        });
        group.bench_function(format!("step, N={count} B={batch}"), |bencher| {
            let mut moving = Some(particles(&*model, count, 0, &session));
            bencher.iter(|| {
                let theta = moving.take().expect("put back below");
                let score = likelihood.next_score(&theta, 1.0);
                let phi = direction(&Kernel::default(), &theta, score).expect("flex answers");
                moving = Some(ADAGRAD.follow(theta, phi, &mut state));
            });
        });
        let config = KdeConfig { mode: KdeMode::Exact, bandwidth: KdeBandwidth::Fixed(0.55) };
        let [q, t] = [1, 2].map(|round| {
            let centres = particles(&*model, count, round, &session);
            Kde::new(&centres, config).expect("flex answers")
        });
        let cavity = || {
            let t = t.score(&theta).expect("flex answers");
            q.score(&theta).expect("flex answers").minus(t)
        };
        group.bench_function(format!("cavity score, N={count}"), |bencher| {
            bencher.iter(|| black_box(cavity().evaluate(&theta)));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = bench
}
criterion_main!(benches);
