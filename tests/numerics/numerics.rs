//! Steps that could overflow or divide by zero, and the answer that each has: the table of docs/reliability.md.

use std::cell::Cell;
use std::sync::Arc;

use crate::common::{particles, values, with_layout};
use fedstein::backend::{Flex, Precision, Session};
use fedstein::density::{Kde, KdeBandwidth, KdeConfig, KdeMode, LogDensity};
use fedstein::error::RunError;
use fedstein::metrics::{ClassPredictions, nll};
use fedstein::models::{Batch, BnnConfig, Head, Model, Network};
use fedstein::particles::Particles;
use fedstein::stein::svgd::MAX_SCORE_NORM;
use fedstein::stein::{Bandwidth, Distances, Kernel, Optimizer, OptimizerState, Score, Svgd, direction};
use ndarray::{Array2, array};

fn session() -> Session {
    Session::open::<Flex>(Precision::F32).unwrap()
}

fn finite(values: &[f64]) -> bool {
    values.iter().all(|value| value.is_finite())
}

#[test]
fn a_median_of_zero_gives_way_to_the_mean_of_the_positive_distances() {
    // Five at 0 and one at 3: of 36 squared distances 26 are 0.
    let x = array![[0.0], [0.0], [0.0], [0.0], [0.0], [3.0]];
    let distances = Distances::of_gram(&x.dot(&x.t()));
    let bandwidth = Bandwidth::default();
    assert_eq!(bandwidth.rule_value(&distances, 2), 0.0);
    assert!((bandwidth.evaluate(&distances, 2) - 9.0 / 7f64.ln()).abs() < 1e-12);
    let at = particles(&x, &session());
    let phi = direction(&Kernel::default(), &at, Score::zero(6)).unwrap().evaluate(&at);
    assert!(finite(&values(&phi)) && values(&phi)[5] > 0.0);
}

#[test]
fn particles_at_one_place_have_bandwidth_one_and_share_their_scores_mean() {
    let at = particles(&Array2::from_elem((3, 2), 0.7), &session());
    let score = Score::dense(particles(&array![[1.0, 0.0], [2.0, 0.0], [6.0, 3.0]], &session()));
    let along = direction(&Kernel::default(), &at, score).unwrap();
    assert_eq!(along.kernel.as_ref().unwrap().bandwidth, Some(1.0));
    for row in values(&along.evaluate(&at)).chunks_exact(2) {
        assert!((row[0] - 3.0).abs() < 1e-6 && (row[1] - 1.0).abs() < 1e-6, "{row:?}");
    }
}

#[test]
fn one_particle_has_no_kernel_and_follows_its_score() {
    let at = particles(&array![[0.3, -0.2]], &session());
    let along = direction(&Kernel::default(), &at, Score::dense(particles(&array![[5.0, 7.0]], &session()))).unwrap();
    assert!(along.kernel.is_none());
    assert_eq!(values(&along.evaluate(&at)), [5.0, 7.0]);
}

#[test]
fn a_density_far_from_its_centres_is_one_hot_and_not_zero_over_zero() {
    // 80,000 coordinates at λ = 0.55: every exponent of the plain formula underflows, in f64 as well.
    let d = 80_000;
    let centres = particles(&Array2::from_shape_fn((3, d), |(n, j)| ((n * 7 + j) % 11) as f64 * 0.1), &session());
    let config = KdeConfig { mode: KdeMode::Exact, bandwidth: KdeBandwidth::Fixed(0.55) };
    let density = Kde::new(&centres, config).unwrap();
    let far = particles(&Array2::from_elem((2, d), 100.0), &session());
    let weights = density.weights(&far).unwrap();
    for row in weights.rows() {
        assert!((row.sum() - 1.0).abs() < 1e-12 && finite(&row.to_vec()), "{row}");
    }
    assert!(finite(&values(&density.score(&far).unwrap().evaluate(&far))));
    assert!(finite(&density.log_density(&far).unwrap()));
}

#[test]
fn a_label_of_probability_zero_costs_a_finite_number_of_nats() {
    let predictions = ClassPredictions::new(vec![1, 0], 2, vec![1.0, 0.0, 1.0, 0.0]).unwrap();
    let got = nll(&predictions);
    // One row of two is at the floor of 1e-12, which the report states.
    assert!((got.value + 0.5 * 1e-12f64.ln()).abs() < 1e-9 && got.clamped == 1, "{got:?}");
}

fn from_blocks(blocks: Vec<burn::tensor::Tensor<2>>, like: &Particles) -> Particles {
    let mut blocks = blocks.into_iter();
    like.map(|_| blocks.next().expect("one block of the score a block of the particles"))
}

#[test]
fn a_noise_precision_that_runs_away_stops_its_loop_by_name() {
    let head = Head::Real { gamma_shape: 1.0, gamma_rate: 0.1 };
    let model = Network::new(BnnConfig { head, ..BnnConfig::classifier(1, &[2], 1) });
    let one = session().upload(vec![1.0], [1, 1]);
    let batch = Batch::new(one.clone(), one);
    let svgd = Svgd { kernel: Kernel::default(), optimizer: Optimizer::Sgd { lr: 1e-9 } };
    // e^89 is beyond f32: the score is not finite, and must not reach a particle.
    for (log_gamma, stops) in [(5.0, false), (89.0, true)] {
        let mut theta = Array2::from_elem((1, model.layout().dim()), 0.5);
        theta[[0, model.layout().blocks()[model.log_noise_precision().unwrap()].offset]] = log_gamma;
        let at = with_layout(&theta, model.layout(), &session());
        let score =
            |at: &Particles| Ok(Score::dense(from_blocks(model.likelihood_score(at.blocks(), &batch, 1.0), at)));
        match svgd.run::<RunError>(at, 5, &mut OptimizerState::default(), score, |_| {}) {
            Ok(_) => assert!(!stops),
            Err(error) => assert!(stops && error.to_string().contains("step 1"), "{error}"),
        }
    }
}

#[test]
fn a_score_beyond_its_bound_stops_the_loop_before_the_particles_move() {
    let svgd = Svgd { kernel: Kernel::default(), optimizer: Optimizer::Sgd { lr: 1e-3 } };
    for (size, stops) in [(0.5 * MAX_SCORE_NORM, false), (2.0 * MAX_SCORE_NORM, true)] {
        let done = Cell::new(0);
        let score = |_: &Particles| Ok(Score::dense(particles(&array![[1.0, 0.0], [size, 0.0]], &session())));
        let at = particles(&array![[0.0, 0.0], [1.0, 1.0]], &session());
        let result = svgd.run::<RunError>(at, 3, &mut OptimizerState::default(), score, |step| done.set(step));
        match stops {
            false => assert!(result.is_ok() && done.get() == 3),
            true => {
                let error = result.unwrap_err().to_string();
                assert!(error.contains("particle 1") && error.contains("2.0e15"), "{error}");
                assert_eq!(done.get(), 0);
            }
        }
    }
}

#[test]
fn a_loop_that_leaves_the_range_of_f32_between_two_checks_is_stopped_by_its_kernel() {
    let svgd = Svgd { kernel: Kernel::default(), optimizer: Optimizer::Sgd { lr: 1.0 } };
    let done = Cell::new(0);
    // Small at the first look, then beyond f32 within a few steps.
    let score = |at: &Particles| Ok(Score::dense(at.map(|block| block.mul_scalar(1e12))));
    let at = particles(&array![[1.0, 0.0], [0.0, 1.0]], &session());
    let error = svgd
        .run::<RunError>(at, 9, &mut OptimizerState::default(), score, |step| done.set(step))
        .unwrap_err()
        .to_string();
    assert!(error.contains("is not finite") && done.get() < 9, "{error} after {}", done.get());
}

#[test]
fn logits_beyond_the_exponential_give_scores_within_their_bounds() {
    // A weight of 1e4 on features of 1: residuals are 0 or ±1, never NaN.
    let model: Arc<dyn Model> = Arc::new(Network::new(BnnConfig::classifier(1, &[], 2)));
    let theta = array![[1e4, -1e4, 0.0, 0.0]];
    let at = with_layout(&theta, model.layout(), &session());
    let batch = Batch::new(session().upload(vec![1.0], [1, 1]), session().upload(vec![0.0, 1.0], [1, 2]));
    let score = from_blocks(model.likelihood_score(at.blocks(), &batch, 1.0), &at);
    let got = values(&score);
    for (got, want) in got.iter().zip([-1.0, 1.0, -1.0, 1.0]) {
        assert!((got - want).abs() < 1e-6, "{got}, not {want}");
    }
}
