//! Two ways to bring a network of one's own into a federated Bayesian experiment, on the built-in digits:
//!
//! 1. an ordinary Burn module, through [`Forward`] and [`ReplicatedConfig`]: nothing to learn, one forward pass a
//!    particle;
//! 2. a module whose parameters carry a particle axis `[N, ...]`, through [`ParticleModel`] and [`Architecture`]: one
//!    batched pass for all particles, and any prior.
//!
//! `cargo run --release --example own_model`

use std::sync::Arc;

use burn::module::Module;
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation};
use fedstein::backend::Flex;
use fedstein::experiment::progress::Quiet;
use fedstein::experiment::schema::{Overrides, Source};
use fedstein::experiment::{Config, Experiment, run};
use fedstein::models::{
    Architecture, Batch, Forward, Layout, Model, Network, ParticleLinear, ParticleModel, Prior, PriorTerm,
    ReplicatedConfig, Task,
};

const PIXELS: usize = 64;
const CLASSES: usize = 10;

// 1. An ordinary Burn module: a layer, a normalisation, a layer.

#[derive(Module, Debug)]
struct Normalised {
    hidden: Linear,
    norm: LayerNorm,
    out: Linear,
}

impl Normalised {
    fn new(width: usize, device: &Device) -> Self {
        Self {
            hidden: LinearConfig::new(PIXELS, width).init(device),
            norm: LayerNormConfig::new(width).init(device),
            out: LinearConfig::new(width, CLASSES).init(device),
        }
    }
}

impl Forward for Normalised {
    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        self.out.forward(activation::relu(self.norm.forward(self.hidden.forward(inputs))))
    }
}

// 2. A particle model: a residual network, h ← h + relu(W h + b), for all particles at once.

/// What the network looks like, without a tensor.
#[derive(Clone, Debug)]
struct ResidualConfig {
    width: usize,
    depth: usize,
}

/// N residual networks; every parameter is `[N, ...]`.
#[derive(Module, Debug)]
struct Residual {
    first: ParticleLinear,
    blocks: Vec<ParticleLinear>,
    out: ParticleLinear,
}

impl Residual {
    /// Logits `[N, C, B]` of rows `[B, p]`: rows of data lie along the last axis.
    fn forward(&self, inputs: Tensor<2>) -> Tensor<3> {
        let start = activation::relu(self.first.forward_shared(inputs)); // [N, width, B]
        let step = |hidden: Tensor<3>, block: &ParticleLinear| activation::relu(block.forward(hidden.clone())) + hidden;
        self.out.forward(self.blocks.iter().fold(start, step))
    }
}

impl ParticleModel for Residual {
    fn log_likelihood(&self, batch: &Batch) -> Tensor<1> {
        let targets = batch.targets.clone().transpose().unsqueeze_dim::<3>(0); // one-hot, [1, C, B]
        let log_probs = activation::log_softmax(self.forward(batch.inputs.clone()), 1);
        (log_probs * targets).sum_dims_squeeze::<1, _>(&[1, 2])
    }

    fn predict(&self, inputs: Tensor<2>) -> Tensor<3> {
        activation::log_softmax(self.forward(inputs), 1).swap_dims(1, 2) // [N, B, C]
    }
}

impl Architecture for ResidualConfig {
    type Module = Residual;

    fn module(&self, particles: usize, device: &Device) -> Residual {
        let layer = |inputs, outputs| ParticleLinear::new(particles, inputs, outputs, device);
        Residual {
            first: layer(PIXELS, self.width),
            blocks: (0..self.depth).map(|_| layer(self.width, self.width)).collect(),
            out: layer(self.width, CLASSES),
        }
    }

    fn task(&self) -> Task {
        Task::Classification { classes: CLASSES }
    }

    /// Each weight matrix ~ N(0, 1/fan_in), so that deep sums keep their size; biases ~ N(0, 1). Particles start from
    /// a draw of it, which is what `Architecture::initial` does by default.
    fn prior(&self, layout: &Layout) -> Prior {
        let precision = |shape: &[usize]| if shape[1] == 1 { 1.0 } else { shape[1] as f64 };
        let precisions = layout.blocks().iter().map(|block| precision(&block.shape));
        let terms = precisions.enumerate().map(|(block, precision)| PriorTerm::Normal { block, precision });
        Prior { terms: terms.collect() }
    }
}

/// `[model]` stands for nothing here: the experiment brings its own.
const CONFIG: &str = r#"
    name = "own-model"
    rounds = 8
    [data]
    kind = "digits"
    [partition]
    kind = "iid"
    clients = 4
    [algorithm]
    kind = "dsvgd"
    particles = 8
    local_steps = 150
    distill_steps = 150
    batch = 64
    [optimizer]
    lr = 1e-3
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ordinary = ReplicatedConfig::new(CLASSES, |device| Normalised::new(32, device));
    let models: [(&str, Arc<dyn Model>); 2] = [
        ("an ordinary Burn module, one pass a particle", Arc::new(Network::new(ordinary))),
        ("a residual network with a particle axis", Arc::new(Network::new(ResidualConfig { width: 32, depth: 2 }))),
    ];
    let (config, _) = Config::load(Source { name: "own_model", text: CONFIG }, &Overrides::default())?;
    for (name, model) in models {
        println!("{name}: {} parameters", model.layout().dim());
        let experiment = Experiment::new(config.clone(), "data").with_model(model);
        let outcome = run::<Flex>(&experiment, &Quiet, None)?;
        println!("  round  accuracy     ECE");
        for round in &outcome.rounds {
            let metric = |name| round.metric(name).unwrap_or(f64::NAN);
            println!("  {:>5}  {:>8.3}  {:>6.3}", round.round, metric("accuracy"), metric("ece"));
        }
        println!("  {:.1} s\n", outcome.seconds);
    }
    Ok(())
}
