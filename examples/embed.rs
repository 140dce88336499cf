//! fedstein inside a program of one's own: rows and a network of the program's, progress as it comes, results without
//! reading files, and predictions later from the run's directory.
//!
//! cargo run --release --example embed

use std::path::Path;
use std::sync::Arc;

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation};
use fedstein::backend::Flex;
use fedstein::datasets::{Dataset, Normalise, Targets, TrainTest};
use fedstein::experiment::{
    Artifacts, ConfigLoader, Experiment, Finished, Forecast, Observer, Overrides, RoundRecord, Source, run,
};
use fedstein::models::{Forward, Network, ReplicatedConfig};
use ndarray::Array2;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

#[derive(Module, Debug)]
struct Mlp {
    hidden: Linear,
    out: Linear,
}

impl Forward for Mlp {
    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        self.out.forward(activation::tanh(self.hidden.forward(inputs)))
    }
}

/// Points of the plane; the label is whether they lie in the unit circle.
fn rows(count: usize, seed: u64) -> Result<Dataset, Box<dyn std::error::Error>> {
    let mut rng = StdRng::seed_from_u64(seed);
    let points = Array2::from_shape_simple_fn((count, 2), || 3.0 * rng.random::<f32>() - 1.5);
    let labels = points.rows().into_iter().map(|point| usize::from(point.dot(&point) < 1.0)).collect();
    let targets = Targets::Classes { labels, names: vec!["outside".into(), "inside".into()] };
    Ok(Dataset::new("circle", points, targets)?)
}

/// Prints each round as it ends.
struct Progress;

impl Observer for Progress {
    fn finished_round(&self, record: &RoundRecord) {
        println!("round {}: accuracy {:.3}", record.round, record.metric("accuracy").unwrap_or(f64::NAN));
    }
}

const CONFIG: &str = r#"
    name = "circle"
    rounds = 6
    partition = { clients = 3 }
    algorithm = { kind = "dsvgd", particles = 8, local_steps = 100, distill_steps = 100, batch = 50 }
    optimizer = { lr = 0.02 }
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = TrainTest::from_rows(rows(900, 1)?, rows(300, 2)?, Normalise::Auto)?;
    let network = Arc::new(Network::new(ReplicatedConfig::new(2, |device: &Device| Mlp {
        hidden: LinearConfig::new(2, 16).init(device),
        out: LinearConfig::new(16, 2).init(device),
    })));
    let loader = ConfigLoader::default().with_data(&data).with_model();
    let (config, resolved) = loader.load(Source { name: "embed", text: CONFIG }, &Overrides::default())?;

    // Without the third argument of `run` no file is written.
    let directory = Path::new("runs/circle");
    let mut files = Artifacts::new(directory.into(), true, resolved);
    let experiment = Experiment::new(config, "data").with_data(data).with_model(network.clone());
    let outcome = run::<Flex>(&experiment, &Progress, Some(&mut files))?;
    println!("test rows: NLL {:.3}", outcome.evaluation.nll.unwrap_or(f64::NAN));

    // A particle as the ordinary module that it is; its inputs are scaled features.
    let first: Mlp = network.module(outcome.particles.blocks()).particle(0);
    println!("{} parameters in particle 0", first.num_params());

    // Later, perhaps in another process: predictions of new rows in the units of the data.
    let run = Finished::open(directory)?.with_model(network);
    let points = Array2::from_shape_vec((2, 2), vec![0.0, 0.0, 1.4, 1.4])?;
    if let Forecast::Classes { log_probs, names } = run.forecast(&run.config()?, points, "two points")? {
        for (point, p) in log_probs.ensemble().chunks_exact(names.len()).enumerate() {
            println!("point {point}: p({}) = {:.3}", names[1], p[1]);
        }
    }
    Ok(())
}
