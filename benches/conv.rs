//! The LeNet of the FedWBA paper on CIFAR-10's shape (3×32×32, d = 121,182), N = 10 particles: the score of a minibatch
//! of 250 rows, of its convolutions alone, and predictions on 1,000 rows. Synthetic rows. Reported, not asserted;
//! `docs/performance.md` has figures.
//!
//! `cargo bench --bench conv`

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use fedstein::array::{Array, Values};
use fedstein::backend::{Backend, Flex, Precision, Session};
use fedstein::models::{Batch, LayerSpec, Model, Network, StackConfig};
use fedstein::particles::Particles;
use fedstein::random::{Purpose, Streams};
use ndarray::Array2;
use rand::RngExt;

const IMAGE: [usize; 3] = [3, 32, 32];
const CLASSES: usize = 10;
const PARTICLES: usize = 10;
const BLOCKS: [&str; 6] = ["conv 16 5x5", "relu", "max-pool 2", "conv 32 5x5", "relu", "max-pool 2"];
const DENSE: [&str; 4] = ["dense 120", "relu", "dense 84", "relu"];

fn network(layers: &[&str]) -> impl Model {
    let layers = LayerSpec::read(layers).expect("the layers are well written");
    Network::new(StackConfig::classifier(&IMAGE, layers, CLASSES).check().expect("the layers fit"))
}

fn particles(model: &dyn Model, session: &Session) -> Vec<burn::tensor::Tensor<2>> {
    let mut rng = Streams::new(1).rng(Purpose::InitialParticles, 0, 0);
    let rows = (0..PARTICLES).flat_map(|_| model.initial(&mut rng)).collect();
    let array = Array { shape: vec![PARTICLES, model.layout().dim()], values: Values::F64(rows) };
    let particles = Particles::from_array(&array, model.layout(), session);
    particles.expect("the rows have the model's dimension").blocks().to_vec()
}

/// Synthetic rows: pixels in [0, 1), labels in turn.
fn batch(rows: usize, session: &Session) -> Batch {
    let mut rng = Streams::new(1).rng(Purpose::Data, 0, 0);
    let inputs = Array2::from_shape_fn((rows, IMAGE.iter().product()), |_| rng.random_range(0.0f64..1.0));
    let targets = Array2::from_shape_fn((rows, CLASSES), |(row, class)| f64::from(u8::from(row % CLASSES == class)));
    Batch::new(session.matrix(&inputs), session.matrix(&targets))
}

fn bench(criterion: &mut Criterion) {
    let session = Session::open::<Flex>(Precision::F32).expect("flex opens everywhere");
    let mut group = criterion.benchmark_group(format!("lenet, {}, N={PARTICLES}", Flex::NAME));
    let all = [&BLOCKS[..], &DENSE[..]].concat();
    for (name, layers) in
        [("", &all[..]), (" without hidden dense layers", &BLOCKS[..]), (" first block", &BLOCKS[..3])]
    {
        let model = network(layers);
        let (theta, rows) = (particles(&model, &session), batch(250, &session));
        group.bench_function(format!("score, B=250{name}"), |bencher| {
            bencher.iter(|| black_box(model.likelihood_score(&theta, &rows, 200.0)));
        });
    }
    let model = network(&all);
    let (theta, rows) = (particles(&model, &session), batch(1000, &session));
    group.bench_function("predict, 1000 rows", |bencher| {
        bencher.iter(|| black_box(model.predict(&theta, rows.inputs.clone())));
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = bench
}
criterion_main!(benches);
