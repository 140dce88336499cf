//! W7: one SVGD step of the LeNet of `configs/cifar10/fedwba-lenet.toml` (d = 121,182) on images 3×32×32.

use std::sync::Arc;

use super::cost::lenet;
use super::network_step::Step;
use super::synthetic::images;
use super::timing::{Bench, Line};
use crate::error::RunError;
use crate::models::{LayerSpec, Network, StackConfig, WeightInit};

const IMAGE: [usize; 3] = [3, 32, 32];
const CLASSES: usize = 10;
/// The dense layer to the classes is implied.
const LAYERS: [&str; 10] =
    ["conv 16 5x5", "relu", "max-pool 2", "conv 32 5x5", "relu", "max-pool 2", "dense 120", "relu", "dense 84", "relu"];

/// Times the workload.
///
/// # Errors
/// The device fails, or particles diverge.
pub(super) fn lines(bench: &Bench) -> Result<Vec<Line>, RunError> {
    // N, B, and the number of steps of a unit.
    let [count, rows, steps] = bench.settings.size.pick([10, 250, 2], [2, 3, 1]);
    let layers = LayerSpec::read(&LAYERS)?;
    let stack = StackConfig { init: WeightInit::XavierUniform, ..StackConfig::classifier(&IMAGE, layers, CLASSES) };
    let data = images(8, rows, IMAGE.iter().product(), CLASSES);
    let mut step = Step::new(Arc::new(Network::new(stack.check()?)), count, data, &bench.session)?;
    let name = format!("W7 lenet N={count} B={rows}");
    Ok(vec![bench.line(name, lenet(count, rows), steps, || step.run(steps))?])
}
