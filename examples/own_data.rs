//! Rows of one's own, made in the program: three hospitals that measure the same two things, each with its own bias.
//!
//! cargo run --release --example own_data

use fedstein::backend::Flex;
use fedstein::datasets::{Dataset, Normalise, Targets, TrainTest};
use fedstein::experiment::{ConfigLoader, Experiment, Overrides, Quiet, Source, run};
use ndarray::Array2;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Rows of hospitals 0, 1 and 2; the label is whether the two measurements add up to more than 1.
fn rows(count: usize, seed: u64) -> Result<Dataset, Box<dyn std::error::Error>> {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut features, mut labels, mut hospitals) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..count {
        let (a, b): (f32, f32) = (rng.random(), rng.random());
        let hospital = row % 3;
        let bias = 0.1 * hospital as f32;
        features.extend([a + bias, b - bias]);
        labels.push(usize::from(a + b > 1.0));
        hospitals.push(hospital);
    }
    let targets = Targets::Classes { labels, names: vec!["healthy".into(), "ill".into()] };
    let data = Dataset::new("hospitals", Array2::from_shape_vec((count, 2), features)?, targets)?;
    Ok(data.with_feature_names(vec!["marker a".into(), "marker b".into()])?.with_clients(hospitals)?)
}

const CONFIG: &str = r#"
    name = "hospitals"
    rounds = 9
    partition = { kind = "by-column" }
    model = { kind = "blr", bias = true }
    optimizer = { lr = 0.05 }
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = TrainTest::from_rows(rows(600, 1)?, rows(300, 2)?, Normalise::Auto)?;
    let source = Source { name: "own_data", text: CONFIG };
    let (config, _) = ConfigLoader::default().with_data(&data).load(source, &Overrides::default())?;
    let outcome = run::<Flex>(&Experiment::new(config, "data").with_data(data), &Quiet, None)?;
    let evaluation = outcome.evaluation;
    println!("accuracy {:.3}, ECE {:.3}", evaluation.accuracy.unwrap_or(f64::NAN), evaluation.ece.unwrap_or(f64::NAN));
    Ok(())
}
