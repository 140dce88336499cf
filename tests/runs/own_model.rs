//! A program's own Burn module: it trains, or the run is refused before its first round with what would be right.

use std::sync::Arc;

use burn::module::Module;
use burn::nn::{BatchNorm, BatchNormConfig, Dropout, DropoutConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation};
use fedstein::backend::Flex;
use fedstein::experiment::{Config, Experiment, Overrides, Quiet, Source, run};
use fedstein::models::{Forward, Network, ReplicatedConfig};

/// What stands between the two dense layers.
#[derive(Module, Debug)]
enum Between {
    Nothing(LayerNorm),
    Batch(BatchNorm),
    Random(Dropout),
}

#[derive(Module, Debug)]
struct Net {
    hidden: Linear,
    between: Between,
    out: Linear,
}

impl Forward for Net {
    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        let hidden = self.hidden.forward(inputs);
        let hidden = match &self.between {
            Between::Nothing(norm) => norm.forward(hidden),
            Between::Batch(norm) => norm.forward(hidden.unsqueeze_dim::<3>(2)).squeeze_dim(2),
            Between::Random(dropout) => dropout.forward(hidden),
        };
        self.out.forward(activation::relu(hidden))
    }
}

/// A run on the digits: 64 features and ten classes.
fn trained(
    classes: usize,
    [inputs, outputs]: [usize; 2],
    between: impl Fn(&Device) -> Between + Send + Sync + 'static,
) -> Result<f64, String> {
    let build = move |device: &Device| Net {
        hidden: LinearConfig::new(inputs, 6).init(device),
        between: between(device),
        out: LinearConfig::new(6, outputs).init(device),
    };
    let text = "rounds = 2\ndata = { kind = \"digits\", train_limit = 200 }\npartition = { clients = 2 }\n\
                algorithm = { kind = \"dsvgd\", particles = 2, local_steps = 2, distill_steps = 1, batch = 10 }";
    let (config, _) = Config::load(Source { name: "own", text }, &Overrides::default()).unwrap();
    let model = Arc::new(Network::new(ReplicatedConfig::new(classes, build)));
    let outcome = run::<Flex>(&Experiment::new(config, "data").with_model(model), &Quiet, None);
    outcome.map(|outcome| outcome.evaluation.nll.unwrap()).map_err(|error| error.to_string())
}

fn normalised(device: &Device) -> Between {
    Between::Nothing(LayerNormConfig::new(6).init(device))
}

#[test]
fn a_module_that_fits_the_data_trains() {
    assert!(trained(10, [64, 10], normalised).unwrap().is_finite());
}

#[test]
fn a_module_of_another_shape_than_the_data_is_refused() {
    for (classes, shape, words) in [
        (10, [63, 10], "it fails on a row of 64 features"),
        (10, [64, 9], "predicts an array of shape [1, 1, 9], not [1, 1, 10]"),
        (9, [64, 9], "and the data have 10 classes"),
    ] {
        let message = trained(classes, shape, normalised).unwrap_err();
        assert!(message.contains(words) && message.contains("with_model"), "{message}");
    }
}

#[test]
fn a_layer_that_acts_differently_in_training_is_refused() {
    let batch = |device: &Device| Between::Batch(BatchNormConfig::new(6).init(device));
    let random = |_: &Device| Between::Random(DropoutConfig::new(0.5).init());
    for message in [trained(10, [64, 10], batch), trained(10, [64, 10], random)].map(Result::unwrap_err) {
        assert!(message.contains("`between") && message.contains("use LayerNorm or GroupNorm"), "{message}");
    }
}
