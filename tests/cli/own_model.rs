//! The command on a run that a program has made with a model and with rows of its own.

use std::fs;
use std::sync::Arc;

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation};
use fedstein::backend::Flex;
use fedstein::datasets::{Dataset, Normalise, Targets, TrainTest};
use fedstein::experiment::{Artifacts, Config, ConfigLoader, Experiment, Observer, Overrides, Quiet, Source, run};
use fedstein::models::{Forward, Network, ReplicatedConfig};
use ndarray::Array2;

use super::place::Place;

/// The parameters of the default network of the digits in another order of names: as many, and another function.
#[derive(Module, Debug)]
struct Same {
    hidden: Linear,
    out: Linear,
}

impl Forward for Same {
    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        self.out.forward(activation::tanh(self.hidden.forward(inputs)))
    }
}

#[test]
fn a_run_with_a_model_of_its_own_is_for_the_program_that_made_it() {
    let place = Place::new();
    let model = Arc::new(Network::new(ReplicatedConfig::new(10, |device: &Device| Same {
        hidden: LinearConfig::new(64, 50).init(device),
        out: LinearConfig::new(50, 10).init(device),
    })));
    let text = "rounds = 2\npartition.clients = 2\n\
                algorithm = { kind = \"dsvgd\", particles = 3, local_steps = 2, distill_steps = 1, batch = 10 }";
    let (config, resolved) = Config::load(Source { name: "own", text }, &Overrides::default()).unwrap();
    let mut artifacts = Artifacts::new(place.path("run"), false, resolved);
    run::<Flex>(&Experiment::new(config, "data").with_model(model), &Quiet, Some(&mut artifacts)).unwrap();
    drop(artifacts);
    place.works("runs run");
    place.refuses("train --resume run --set rounds=3 --quiet", &["this run has a model of its own"]);
    let row = vec!["1"; 64].join(",");
    place.write("rows.csv", format!("{row}\n")).write("labelled.csv", format!("{row},3\n"));
    place.refuses("predict run --input rows.csv", &["has a model of its own", "Finished::with_model"]);
    place.refuses("evaluate run --input labelled.csv --target 64", &["has a model of its own", "Finished::with_model"]);
    // The report is of what the program has predicted.
    place.works("report run");
}

/// Ends a run after its first round.
struct Stopping;

impl Observer for Stopping {
    fn wants_to_stop(&self) -> bool {
        true
    }
}

#[test]
fn a_run_with_rows_of_its_own_is_listed_with_their_name() {
    let place = Place::new();
    let rows = |from: usize| {
        let features = Array2::from_shape_fn((30, 2), |(row, column)| ((from + 3 * row + column) % 7) as f32);
        let names = vec!["well".to_owned(), "ill".to_owned()];
        let labels = (0..30).map(|row| (from + row) % 2).collect();
        Dataset::new("hospitals", features, Targets::Classes { labels, names }).unwrap()
    };
    let data = TrainTest::from_rows(rows(0), rows(1), Normalise::Auto).unwrap();
    let text = "rounds = 1\npartition.clients = 2\nalgorithm = { kind = \"fedavg\", local_steps = 2, batch = 5 }";
    let source = Source { name: "own", text };
    let (config, resolved) = ConfigLoader::default().with_data(&data).load(source, &Overrides::default()).unwrap();
    // Stopped after its first round of two.
    let longer = Overrides { set: vec!["rounds=2".into()], ..Overrides::default() };
    let (more, of_more) = ConfigLoader::default().with_data(&data).load(source, &longer).unwrap();
    let mut artifacts = Artifacts::new(place.path("stopped"), false, of_more);
    run::<Flex>(&Experiment::new(more, "data").with_data(data.clone()), &Stopping, Some(&mut artifacts)).unwrap_err();
    drop(artifacts);
    let printed = place.works("runs .").stdout;
    assert!(printed.contains("stopped: ./stopped, of a program's own rows"), "{printed}");

    let mut artifacts = Artifacts::new(place.path("run"), false, resolved);
    run::<Flex>(&Experiment::new(config, "data").with_data(data), &Quiet, Some(&mut artifacts)).unwrap();
    drop(artifacts);
    let printed = place.works("runs run").stdout;
    assert!(printed.contains("  hospitals  ") && !printed.contains("digits"), "{printed}");
    let config = fs::read_to_string(place.path("run/config.toml")).unwrap();
    let data = "[data]\n# The rows are the program's own";
    assert!(config.contains(data) && config.contains("\nrotate = ") && !config.contains("digits"), "{config}");
    place.refuses("train --resume run --set rounds=3 --quiet", &["the run in `run` has rows of its own"]);
    place.write("rows.csv", "a,b\n1,2\n");
    place.works("predict run --input rows.csv");
    place.refuses("evaluate run --input rows.csv", &["--target is needed", "`hospitals`"]);
    place.works("report run");
}
