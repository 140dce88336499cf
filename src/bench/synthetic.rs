//! Synthetic rows and particles of the right shape: random numbers in place of images, the same on every backend.

use std::sync::Arc;

use fedstein_schema::NumberOr;
use ndarray::Array2;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::algorithm::keys::{DensityConfig, LocalConfig};
use crate::array::{Array, Values};
use crate::backend::Session;
use crate::datasets::{Dataset, FeatureScale, Normalisation, Targets};
use crate::density::{KdeBandwidth, KdeConfig, KdeMode, LikelihoodScale};
use crate::error::RunError;
use crate::models::{BnnConfig, Model, Network};
use crate::particles::Particles;
use crate::random::{Purpose, Streams};
use crate::rows::{Order, Shard, Table};
use crate::stein::{AccumulatorStart, EpsilonPlace, Kernel, Optimizer, Svgd};

use super::cost::Networks;

/// The random streams of all workloads, from one seed.
pub(super) fn streams() -> Streams {
    Streams::new(1)
}

/// The configuration of the papers' densities: exact, λ = 0.55.
pub(super) const DENSITY: DensityConfig =
    DensityConfig { kde: KdeMode::Exact, kde_bandwidth: NumberOr::Fixed(0.55), kde_damping: 1.0, kde_clip: 0.0 };

/// The configuration of L steps on random minibatches of B rows.
pub(super) fn local(local_steps: usize, batch: usize) -> LocalConfig {
    LocalConfig {
        local_steps,
        local_epochs: None,
        batch,
        minibatch: Order::Iid,
        likelihood_scale: LikelihoodScale::Full,
    }
}

pub(super) const KDE: KdeConfig = KdeConfig { mode: KdeMode::Exact, bandwidth: KdeBandwidth::Fixed(0.55) };

/// The identity normalisation.
pub(super) const AS_IT_IS: Normalisation = Normalisation { features: FeatureScale::Identity, target: None };

/// SVGD with an RBF kernel and AdaGrad with momentum, as in DSVGD Table 3.
pub(super) fn svgd(lr: f64, epsilon: f64) -> Svgd {
    let (init, place) = (AccumulatorStart::G2, EpsilonPlace::Outside);
    let optimizer = Optimizer::AdaGrad { lr, epsilon, momentum: 0.9, init, place };
    Svgd { kernel: Kernel::default(), optimizer }
}

/// Data in the shape of images: pixels uniform in [0, 1), labels in turn. `set` distinguishes data sets.
pub(super) fn images(set: usize, rows: usize, width: usize, classes: usize) -> Dataset {
    let mut rng = streams().rng(Purpose::Data, set, 0);
    let features = Array2::from_shape_simple_fn((rows, width), || rng.random::<f32>());
    classified(features, (0..rows).map(|row| row % classes).collect(), classes)
}

/// Data in the shape of Covertype: standard normal features, two classes at random.
pub(super) fn standardised(set: usize, rows: usize, width: usize) -> Dataset {
    let mut rng = streams().rng(Purpose::Data, set, 0);
    let features = Array2::from_shape_simple_fn((rows, width), || StandardNormal.sample(&mut rng));
    let labels = (0..rows).map(|_| usize::from(rng.random::<bool>())).collect();
    classified(features, labels, 2)
}

fn classified(features: Array2<f32>, labels: Vec<usize>, classes: usize) -> Dataset {
    let names = (0..classes).map(|class| class.to_string()).collect();
    Dataset {
        name: "synthetic".into(),
        feature_shape: vec![features.ncols()],
        features,
        feature_names: None,
        targets: Targets::Classes { labels, names },
        clients: None,
        client_names: None,
        groups: None,
        lines: None,
    }
}

/// K clients with the same number of rows each.
pub(super) fn shards(data: Dataset, clients: usize, session: &Session) -> Vec<Shard> {
    let table = Table::new(data, &AS_IT_IS);
    let rows = table.rows() / clients;
    let shard = |client| Shard::new(table.clone(), (client * rows..(client + 1) * rows).collect(), session.clone());
    (0..clients).map(shard).collect()
}

/// A network of one hidden layer.
pub(super) fn network(shape: Networks) -> Arc<dyn Model> {
    Arc::new(Network::new(BnnConfig::classifier(shape.inputs, &[shape.hidden], shape.outputs)))
}

/// N initial particles of a model. `set` distinguishes sets.
///
/// # Errors
/// A particle cannot be copied to the device.
pub(super) fn particles(model: &dyn Model, count: usize, set: usize, session: &Session) -> Result<Particles, RunError> {
    let mut rng = streams().rng(Purpose::InitialParticles, set, 0);
    let rows = (0..count).flat_map(|_| model.initial(&mut rng)).collect();
    let array = Array { shape: vec![count, model.layout().dim()], values: Values::F64(rows) };
    Particles::from_array(&array, model.layout(), session).map_err(RunError::Array)
}
