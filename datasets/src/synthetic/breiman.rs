//! Breiman's three generators: a number of rows and a random generator in, a [`Dataset`] with equally likely classes
//! out. Source: L. Breiman, *Bias, variance, and arcing classifiers*, Technical report 460, Berkeley, 1996;
//! *Classification and regression trees*, 1984, section 2.6 (waveform).

use crate::{Dataset, Targets};
use ndarray::Array2;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

const RING_WIDTH: usize = 20;
const WAVE_WIDTH: usize = 21;

/// 20 features; class 1 is N(a·1, I), class 0 is N(−a·1, I), a = 2/√20. Bayes error Φ(−2) = 2.275 %.
pub fn twonorm(rows: usize, rng: &mut impl Rng) -> Dataset {
    let centre = shift();
    generate("twonorm", rows, RING_WIDTH, ["-1", "+1"], rng, |class, features, rng| {
        let mean = if class == 1 { centre } else { -centre };
        for x in features {
            *x = (mean + normal(rng)) as f32;
        }
    })
}

/// 20 features; class 0 is N(0, 4I), class 1 is N(a·1, I), a = 2/√20. Bayes error about 1.25 %; the best linear
/// rule reaches an accuracy of about 0.76.
pub fn ringnorm(rows: usize, rng: &mut impl Rng) -> Dataset {
    let centre = shift();
    generate("ringnorm", rows, RING_WIDTH, ["-1", "+1"], rng, |class, features, rng| {
        let (mean, sd) = if class == 1 { (centre, 1.0) } else { (0.0, 2.0) };
        for x in features {
            *x = (mean + sd * normal(rng)) as f32;
        }
    })
}

/// 21 features; each of the three classes is a random convex combination of two of three triangular waves, plus
/// unit noise: u·h₁ + (1−u)·h₂, u·h₁ + (1−u)·h₃, u·h₂ + (1−u)·h₃ with u uniform on 0..1. Bayes error about 13.2 %.
pub fn waveform(rows: usize, rng: &mut impl Rng) -> Dataset {
    let names = ["waves 1 and 2", "waves 1 and 3", "waves 2 and 3"];
    generate("waveform", rows, WAVE_WIDTH, names, rng, |class, features, rng| {
        let (first, second) = WAVES_OF[class];
        let u: f64 = rng.random();
        for (i, x) in features.iter_mut().enumerate() {
            *x = (u * wave(first, i) + (1.0 - u) * wave(second, i) + normal(rng)) as f32;
        }
    })
}

/// The two waves of each class of [`waveform`].
const WAVES_OF: [(usize, usize); 3] = [(0, 1), (0, 2), (1, 2)];

/// Height of wave 0, 1 or 2 at feature `i`: max(6 − |i + 1 − peak|, 0), peaks at 11, 15 and 7.
fn wave(which: usize, i: usize) -> f64 {
    let peak = [11.0, 15.0, 7.0][which];
    (6.0 - (i as f64 + 1.0 - peak).abs()).max(0.0)
}

fn shift() -> f64 {
    2.0 / (RING_WIDTH as f64).sqrt()
}

fn normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}

fn generate<const C: usize, R: Rng>(
    name: &str,
    rows: usize,
    width: usize,
    names: [&str; C],
    rng: &mut R,
    fill: impl Fn(usize, &mut [f32], &mut R),
) -> Dataset {
    let mut flat = vec![0f32; rows * width];
    let mut labels = Vec::with_capacity(rows);
    for features in flat.chunks_exact_mut(width) {
        let class = rng.random_range(0..C);
        fill(class, features, rng);
        labels.push(class);
    }
    Dataset {
        name: name.to_owned(),
        features: Array2::from_shape_vec((rows, width), flat).expect("rows * width numbers were made"),
        feature_shape: vec![width],
        feature_names: None,
        targets: Targets::Classes { labels, names: names.map(str::to_owned).to_vec() },
        clients: None,
        client_names: None,
        groups: None,
        lines: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::ChaCha8Rng};

    const ROWS: usize = 100_000;

    /// The share of rows that a rule misclassifies.
    fn error_rate(data: &Dataset, rule: impl Fn(&[f32]) -> usize) -> f64 {
        let labels = data.labels().unwrap();
        let wrong = data.features.rows().into_iter().zip(labels).filter(|(x, y)| rule(x.as_slice().unwrap()) != **y);
        wrong.count() as f64 / labels.len() as f64
    }

    #[test]
    fn twonorm_has_the_bayes_error_of_its_formula() {
        let data = twonorm(ROWS, &mut ChaCha8Rng::seed_from_u64(1));
        let error = error_rate(&data, |x| usize::from(x.iter().sum::<f32>() > 0.0));
        // Phi(-2) = 0.02275; four standard errors of 100,000 rows are 0.0019
        assert!((error - 0.02275).abs() < 0.0019, "{error}");
    }

    #[test]
    fn ringnorm_has_the_bayes_error_of_the_specification() {
        let data = ringnorm(ROWS, &mut ChaCha8Rng::seed_from_u64(2));
        let centre = shift();
        let error = error_rate(&data, |x| {
            let near: f64 = x.iter().map(|&x| (f64::from(x) - centre).powi(2)).sum();
            let far: f64 = x.iter().map(|&x| f64::from(x).powi(2) / 4.0).sum();
            usize::from(near < far + 20.0 * 4f64.ln())
        });
        // 0.0125; four standard errors are 0.0014
        assert!((error - 0.0125).abs() < 0.0014, "{error}");
    }

    #[test]
    fn waveform_has_the_bayes_error_of_the_specification() {
        let data = waveform(20_000, &mut ChaCha8Rng::seed_from_u64(3));
        let error = error_rate(&data, |x| {
            let density = |class: usize| -> f64 {
                let (first, second) = WAVES_OF[class];
                let at = |u: f64| -> f64 {
                    let mean = |i| u * wave(first, i) + (1.0 - u) * wave(second, i);
                    let squares: f64 = x.iter().enumerate().map(|(i, &x)| (f64::from(x) - mean(i)).powi(2)).sum();
                    (-0.5 * (squares - 21.0)).exp()
                };
                (0..40).map(|k| at((f64::from(k) + 0.5) / 40.0)).sum()
            };
            (0..3).max_by(|&a, &b| density(a).total_cmp(&density(b))).unwrap()
        });
        // 0.132; four standard errors are 0.0096
        assert!((error - 0.132).abs() < 0.0096, "{error}");
    }

    #[test]
    fn the_same_seed_draws_the_same_rows() {
        let draw = |seed| waveform(50, &mut ChaCha8Rng::seed_from_u64(seed));
        assert_eq!(draw(5).features, draw(5).features);
        assert_eq!(draw(5).targets, draw(5).targets);
        assert_ne!(draw(5).features, draw(6).features);
    }

    #[test]
    fn classes_are_about_equally_likely() {
        let data = waveform(30_000, &mut ChaCha8Rng::seed_from_u64(4));
        for class in 0..3 {
            let count = data.labels().unwrap().iter().filter(|&&y| y == class).count();
            // sd of the count is 82
            assert!(count.abs_diff(10_000) < 400, "class {class}: {count}");
        }
    }
}
