//! Rows that count more or less than once (`data.class_weights`).

use burn::tensor::Tensor;
use fedstein::backend::{Flex, Precision, Session};
use fedstein::models::{Batch, BlrConfig, Model, Network, RowCurvature, StackConfig};
use ndarray::{Array2, concatenate, s};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

use crate::common::{blocks, host, normal};
use crate::stack::{assert_near, network, specs};

/// The weight of each row: the third row counts as none, and the others as that many equal rows.
const WEIGHTS: [usize; 4] = [2, 1, 0, 3];

/// Models with their number of classes: dense layers, a convolution, and both gradients of logistic regression.
fn models() -> Vec<(&'static str, Box<dyn Model>, usize)> {
    let stack = |layers: &[&str]| Box::new(network(StackConfig::classifier(&[1, 4, 3], specs(layers), 3)));
    vec![
        ("dense layers", stack(&["dense 5", "tanh", "dense 4", "relu"]), 3),
        ("a convolution", stack(&["conv 2 2x2", "relu", "dense 3", "tanh"]), 3),
        ("logistic regression", Box::new(Network::new(BlrConfig::new(12).check().unwrap())), 2),
    ]
}

/// Rows i of an array, w_i times each.
fn repeated(rows: &Array2<f64>) -> Array2<f64> {
    let times = |row: usize| (0..WEIGHTS[row]).map(move |_| rows.slice(s![row..=row, ..]));
    let copies: Vec<_> = (0..WEIGHTS.len()).flat_map(times).collect();
    concatenate(ndarray::Axis(0), &copies).unwrap()
}

#[test]
fn a_row_of_weight_two_counts_as_two_rows() {
    let on = Session::open::<Flex>(Precision::F64).unwrap();
    for (what, model, classes) in models() {
        let mut rng = ChaCha12Rng::seed_from_u64(11);
        let theta = blocks(&(0.5 * normal((3, model.layout().dim()), &mut rng)), &*model, &on);
        let inputs = normal((WEIGHTS.len(), 12), &mut rng);
        let targets =
            Array2::from_shape_fn((WEIGHTS.len(), classes), |(row, class)| f64::from(u8::from(row % classes == class)));
        let uniforms = Array2::from_shape_simple_fn((3, WEIGHTS.len()), || rng.random::<f64>());

        let column = WEIGHTS.map(|weight| weight as f64).to_vec();
        let weights = on.matrix(&Array2::from_shape_vec((WEIGHTS.len(), 1), column).unwrap());
        let weighted = Batch::new(on.matrix(&inputs), on.matrix(&targets)).weighted(weights.clone());
        let copied = Batch::new(on.matrix(&repeated(&inputs)), on.matrix(&repeated(&targets)));

        let score = |batch| host(Tensor::cat(model.likelihood_score(&theta, batch, 1.5), 1));
        assert_near(&score(&weighted), &score(&copied), 1e-12, &format!("{what}: score"));
        let value = |batch| host(model.log_likelihood(&theta, batch));
        assert_near(&value(&weighted), &value(&copied), 1e-12, &format!("{what}: log-likelihood"));

        // One label is drawn for each row, which all of its copies have here too.
        let of = |inputs: &Array2<f64>, uniforms: &Array2<f64>| {
            model.row_curvature(&theta, on.matrix(inputs), on.matrix(uniforms)).unwrap()
        };
        let uniforms_of_copies = repeated(&uniforms.t().to_owned()).t().to_owned();
        let numbers = |curvature: RowCurvature| -> Vec<f64> {
            let of_layer = |layer: &fedstein::models::LayerCurvature| {
                let (weights, biases) = layer.diagonal();
                [Some(weights), biases].into_iter().flatten().flat_map(host).collect::<Vec<f64>>()
            };
            curvature.layers.iter().flat_map(of_layer).collect()
        };
        let ours = numbers(of(&inputs, &uniforms).weighted(&weights));
        let copies = numbers(of(&repeated(&inputs), &uniforms_of_copies));
        assert!(ours.iter().any(|value| *value > 1e-3), "{what}: {ours:?}");
        assert_near(&ours, &copies, 1e-12, &format!("{what}: curvature"));
    }
}
