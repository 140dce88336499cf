//! SVGD of every client alone: its recursion, whatever the other clients do.

use crate::common::{assert_close, toy};
use crate::driven::Driven;
use crate::one_particle::{EXACT, STEP, STEPS, climb, pull, start};

#[test]
fn a_client_alone_climbs_its_own_tempered_posterior_from_where_it_was() {
    // With one particle SVGD is gradient ascent: θ ← θ + ε (∇ log p0 + ∇ log p_k/α), and p0 = N(0, 1) counts in full.
    const ALPHA: f64 = 2.5;
    let keys = format!(
        "kind = \"local-svgd\"\nparticles = 1\nlocal_steps = {STEPS}\nbatch = 2\ntemperature = {ALPHA:?}\n[optimizer]\n\
         kind = \"sgd\"\nlr = {STEP}"
    );
    let mut driven = Driven::new(&toy("mixture-1d", "gaussian", "kind = \"by-column\"", 4, 1, &keys));
    let start = start();
    let after = |client: usize, visits: usize| climb(start, visits * STEPS, STEP, |x| pull(client, x) / ALPHA - x);
    // Client 1 waits while client 0 is visited, and the other way round.
    for round in 1..=5 {
        driven.round(round);
        for (client, visits) in [(0, round.div_ceil(2)), (1, round / 2)] {
            let own = driven.predictor(client).unwrap();
            assert_close(&own, &[after(client, visits)], EXACT, &format!("round {round}, client {client}"));
        }
    }
    // The server moves nothing.
    assert_close(&driven.theta().iter().copied().collect::<Vec<_>>(), &[start], EXACT, "the server's particle");
}
