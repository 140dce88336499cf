//! `kde_damping` ρ and `kde_clip` c: what bounds the score of a cavity where the global particles move, and nowhere else.

use std::cell::Cell;

use crate::common::assert_close;
use crate::one_particle::{
    EXACT, STEP, STEPS, climb, discrepancies, dsvgd_follows_its_recursion, pull, single, start,
    u_dsvgd_follows_its_recursion,
};
use crate::variants::LAMBDA;

/// The keys of every test here: ρ = ½, and c√d = 0.22 in units of 1/λ.
const KEYS: &str = "kde_damping = 0.5\nkde_clip = 0.22";

/// Half of a score, cut off at ±most.
struct Bounded {
    most: f64,
    /// How many scores were within the bound, and how many beyond.
    counts: Cell<[usize; 2]>,
}

impl Bounded {
    fn new(lambda: f64) -> Self {
        Self { most: 0.22 / lambda, counts: Cell::default() }
    }

    fn of(&self, score: f64) -> f64 {
        let damped = 0.5 * score;
        let mut counts = self.counts.get();
        counts[usize::from(damped.abs() > self.most)] += 1;
        self.counts.set(counts);
        damped.clamp(-self.most, self.most)
    }

    /// Asserts that there were scores of both kinds.
    fn assert_both(&self) {
        let counts = self.counts.get();
        assert!(counts.iter().all(|count| *count > 0), "{counts:?} scores within and beyond the bound");
    }
}

#[test]
fn dsvgd_bounds_the_score_by_which_it_moves_and_distils_the_whole_change() {
    let bounded = Bounded::new(LAMBDA);
    dsvgd_follows_its_recursion(KEYS, &|score| bounded.of(score));
    bounded.assert_both();
}

#[test]
fn u_dsvgd_bounds_the_score_by_which_it_moves_and_keeps_the_whole_change() {
    let bounded = Bounded::new(1.0);
    u_dsvgd_follows_its_recursion(KEYS, &|score| bounded.of(score));
    bounded.assert_both();
}

#[test]
fn the_prior_in_the_local_score_is_not_bounded() {
    // Single centres: the score of the cavity is (Θ − Θ_k)/λ² everywhere, ∇ log p0 = −x, and Θ_k moves as Θ does.
    let bounded = Bounded::new(LAMBDA);
    let (mut theta, mut own) = (start(), [start(); 2]);
    for round in 1..=6 {
        let client = (round - 1) % 2;
        let drift = own.map(|factor| bounded.of((theta - factor) / (LAMBDA * LAMBDA)));
        let tilted = |client: usize, x: f64| drift[client] - x + pull(client, x);
        let [least, most] = discrepancies(|client| tilted(client, theta));
        let first = tilted(client, theta).abs();
        let moved = climb(theta, STEPS, STEP, |x| tilted(client, x));
        own[client] += moved - theta;
        theta = moved;
        let got = single(&format!("kind = \"dsvgd\"\nkde_bandwidth = 0.55\n{KEYS}"), round, 1);
        assert_close(&got, &[theta, least, most, first], EXACT, &format!("round {round}"));
    }
    bounded.assert_both();
}
