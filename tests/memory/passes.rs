//! Passes through a network do not leak memory.

use fedstein::backend::{Flex, Precision, Session};
use fedstein::models::{Batch, BnnConfig, Model, Network};
use ndarray::Array2;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

use crate::common::with_layout;
use crate::{alone, resident};

#[test]
fn two_hundred_scores_and_as_many_predictions_leave_memory_flat() {
    // A forward pass on the tape that no backward pass frees leaks 1.5 MB at this size, 309 MB in 200 passes (measured
    // with lifted blocks; BURN.md, autodiff 5). Scores and predictions apart, because a backward pass hides the leak.
    let _alone = alone();
    let session = Session::open::<Flex>(Precision::F32).unwrap();
    let model = Network::new(BnnConfig::classifier(784, &[50], 10));
    let mut rng = ChaCha12Rng::seed_from_u64(18);
    let theta: Vec<f64> = (0..20).flat_map(|_| model.initial(&mut rng)).collect();
    let theta = Array2::from_shape_vec((20, model.layout().dim()), theta).unwrap();
    let theta = with_layout(&theta, model.layout(), &session).blocks().to_vec();
    let x = Array2::from_shape_fn((100, 784), |_| rng.random::<f64>());
    let targets = Array2::from_shape_fn((100, 10), |(row, class)| f64::from(u8::from(row % 10 == class)));
    let batch = Batch::new(session.matrix(&x), session.matrix(&targets));
    let score = || {
        let score = model.likelihood_score(&theta, &batch, 1.0);
        assert_eq!(score[0].dims(), [20, 784 * 50]);
    };
    let evaluate = || {
        model.log_likelihood(&theta, &batch);
        model.predict(&theta, batch.inputs.clone());
    };
    for (what, work) in [("scores", &score as &dyn Fn()), ("evaluations", &evaluate)] {
        (0..20).for_each(|_| work());
        let before = resident();
        (0..200).for_each(|_| work());
        let (Some(before), Some(after)) = (before, resident()) else {
            println!("skipped: this system does not report a process's resident size");
            return;
        };
        let grown = after as f64 - before as f64;
        assert!(grown < 64e6, "200 {what} left {} MB behind", grown / 1e6);
    }
}
