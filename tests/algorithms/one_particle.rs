//! DSVGD, U-DSVGD and P-DSVGD of a single particle against recursions implemented independently, and their fixed
//! points.

use crate::common::{Tolerance, assert_close, outcome, values};
use crate::variants::{LAMBDA, Toy, toy};

/// ∇ log p_k of the 1-D toy: N(1, 4), and N(−3, 1) + N(3, 2).
pub(crate) fn pull(client: usize, x: f64) -> f64 {
    let components: &[(f64, f64)] = if client == 0 { &[(1.0, 4.0)] } else { &[(-3.0, 1.0), (3.0, 2.0)] };
    let density = |(m, v): &(f64, f64)| (-(x - m).powi(2) / (2.0 * v)).exp() / v.sqrt();
    let total: f64 = components.iter().map(density).sum();
    components.iter().map(|c| density(c) * (c.0 - x) / c.1).sum::<f64>() / total
}

/// A single particle on the 1-D toy with the prior N(0, 1), plain steps of 0.02: θ after `rounds` rounds, the smaller
/// and the larger of the two clients' discrepancies before the last of them, and the norm of the first score in it.
pub(crate) fn single(algorithm: &str, rounds: usize, clients: usize) -> [f64; 4] {
    let more = format!("[schedule]\nclients = {clients}\n[evaluation]\ndiscrepancy = true");
    let algorithm = format!("{algorithm}\nparticles = 1\nlocal_steps = {STEPS}");
    let optimizer = format!("[optimizer]\nkind = \"sgd\"\nlr = {STEP}");
    let run = outcome(&toy(Toy::Gaussian1d, &algorithm, 4, rounds, &format!("{optimizer}\n{more}")));
    let last = |name: &str| run.rounds[rounds - 1].metric(name).unwrap();
    [values(&run.particles)[0], last("indicator_min"), last("indicator_max"), last("score_norm")]
}

/// The discrepancies of a single particle, in order: ‖∇ log p̃_k‖², for there are no distances.
pub(crate) fn discrepancies(score: impl Fn(usize) -> f64) -> [f64; 2] {
    let [a, b] = [score(0), score(1)].map(|score| score * score);
    [a.min(b), a.max(b)]
}

pub(crate) const STEP: f64 = 0.02;
pub(crate) const STEPS: usize = 7;

/// The initial position of the single particle.
pub(crate) fn start() -> f64 {
    let optimizer = "[optimizer]\nkind = \"sgd\"\nlr = 1e-300";
    let algorithm = "kind = \"u-dsvgd\"\nparticles = 1\nlocal_steps = 1";
    values(&outcome(&toy(Toy::Gaussian1d, algorithm, 4, 1, optimizer)).particles)[0]
}

/// θ after some steps along `score`.
pub(crate) fn climb(mut theta: f64, steps: usize, step: f64, score: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..steps {
        theta += step * score(theta);
    }
    theta
}

pub(crate) const EXACT: Tolerance = Tolerance { rtol: 1e-11, atol: 1e-12 };

/// What a cavity's score is without damping and clipping.
fn unbounded(score: f64) -> f64 {
    score
}

/// Compares U-DSVGD of one particle with its recursion: partitioned variational inference with a fixed covariance.
/// `more` are keys, and `bounded` is what they make of the score of a cavity.
pub(crate) fn u_dsvgd_follows_its_recursion(more: &str, bounded: &dyn Fn(f64) -> f64) {
    // Kassab & Simeone A.2: q = N(λ²η, λ²I), t_k ∝ exp(η_k·θ), η_k = Σ_{own j} η^(j) − η^(j−1). With λ = 1 the prior
    // N(0, 1) is of the family: η^(0) = 0.
    let (mut eta, mut own, mut theta) = (0.0, [0.0; 2], start());
    for round in 1..=7 {
        let client = (round - 1) % 2;
        let tilted = |client: usize, x: f64| bounded(eta - own[client] - x) + pull(client, x);
        let [least, most] = discrepancies(|client| tilted(client, theta));
        let first = tilted(client, theta).abs();
        theta = climb(theta, STEPS, STEP, |x| tilted(client, x));
        own[client] += theta - eta;
        eta = theta;
        let got = single(&format!("kind = \"u-dsvgd\"\nkde_bandwidth = 1.0\n{more}"), round, 1);
        assert_close(&got, &[theta, least, most, first], EXACT, &format!("round {round}"));
    }
}

#[test]
fn u_dsvgd_of_one_particle_is_partitioned_variational_inference_with_a_fixed_covariance() {
    u_dsvgd_follows_its_recursion("", &unbounded);
}

/// DSVGD as printed with a single particle at each of two clients, prior N(0, 1): q and t_k are Gaussians of variance
/// λ², t_k is 1 before the client's first visit, and q of the first round is p0.
struct Printed<'a> {
    round: usize,
    q: f64,
    /// Θ_k, and whether the client was visited.
    t: (f64, bool),
    /// What damping and clipping make of ∇ log q − ∇ log t_k where Θ moves.
    bounded: &'a dyn Fn(f64) -> f64,
}

impl Printed<'_> {
    /// ∇ log q − ∇ log t_k
    fn cavity(&self, x: f64) -> f64 {
        let score = |centre: f64| (centre - x) / (LAMBDA * LAMBDA);
        let q = if self.round == 1 { -x } else { score(self.q) };
        q - if self.t.1 { score(self.t.0) } else { 0.0 }
    }

    /// ∇ log p̃_k
    fn tilted(&self, client: usize, x: f64) -> f64 {
        (self.bounded)(self.cavity(x)) + pull(client, x)
    }

    /// The new position of q's particle, and then that of t_k's after five steps of distillation, which is of the whole
    /// change.
    fn visit(&self, client: usize) -> (f64, f64) {
        let moved = climb(self.q, STEPS, STEP, |x| self.tilted(client, x));
        let distilled = |x: f64| (moved - x) / (LAMBDA * LAMBDA) - self.cavity(x);
        (moved, climb(self.t.0, 5, STEP, distilled))
    }
}

/// Compares DSVGD as printed with its recursion. `more` are keys, and `bounded` is what they make of the score of a cavity.
pub(crate) fn dsvgd_follows_its_recursion(more: &str, bounded: &dyn Fn(f64) -> f64) {
    // Eq. (14), (15), with a single centre in each density.
    let (mut theta, mut own) = (start(), [(start(), false); 2]);
    for round in 1..=5 {
        let client = (round - 1) % 2;
        let views = own.map(|t| Printed { round, q: theta, t, bounded });
        let [least, most] = discrepancies(|k| views[k].tilted(k, theta));
        let first = views[client].tilted(client, theta).abs();
        let (moved, factor) = views[client].visit(client);
        (theta, own[client]) = (moved, (factor, true));
        let keys = format!("kind = \"dsvgd\"\nfactors = \"paper\"\nkde_bandwidth = 0.55\ndistill_steps = 5\n{more}");
        assert_close(&single(&keys, round, 1), &[theta, least, most, first], EXACT, &format!("round {round}"));
    }
}

#[test]
fn dsvgd_as_printed_follows_its_recursion() {
    dsvgd_follows_its_recursion("", &unbounded);
}

#[test]
fn p_dsvgd_as_printed_follows_its_recursion() {
    // Eq. (22): the factors, and the whole of p0 in addition.
    for a_round in [1, 2] {
        let (mut theta, mut own) = (start(), [(start(), false); 2]);
        for round in 1..=4 {
            let views = own.map(|t| Printed { round, q: theta, t, bounded: &unbounded });
            let [least, most] = discrepancies(|k| views[k].tilted(k, theta));
            let clients = if a_round == 2 { vec![0, 1] } else { vec![(round - 1) % 2] };
            let firsts = clients.iter().map(|client| views[*client].tilted(*client, theta).abs());
            let first = firsts.sum::<f64>() / a_round as f64;
            for client in clients {
                own[client] = (views[client].visit(client).1, true);
            }
            let visited = || own.iter().filter(|(_, visited)| *visited).map(|(t, _)| *t);
            let product = |x: f64| visited().map(|t| (t - x) / (LAMBDA * LAMBDA)).sum::<f64>();
            theta = climb(theta, 6, STEP, |x| product(x) - x);
            let keys = "kind = \"p-dsvgd\"\nfactors = \"paper\"\nkde_bandwidth = 0.55\n\
                        distill_steps = 5\nserver_steps = 6";
            let what = format!("{a_round} a round, round {round}");
            assert_close(&single(keys, round, a_round), &[theta, least, most, first], EXACT, &what);
        }
    }
}

#[test]
fn the_discrepancy_of_a_client_is_that_of_its_tilted_density() {
    // After convergence every tilted density has its mode at Θ.
    let [theta, least, most, _] = single("kind = \"dsvgd\"\nkde_bandwidth = 1.2", 400, 1);
    assert!((0.0..1e-9).contains(&least) && (0.0..1e-9).contains(&most), "{least}, {most}");
    // And Θ is at the fixed point of docs/algorithms.md (3).
    let score = pull(0, theta) + pull(1, theta) - theta + (theta - start()) / (1.2 * 1.2) - theta;
    assert!(score.abs() < 1e-6, "θ = {theta}, score {score}");
}

#[test]
fn p_dsvgd_of_one_particle_ends_at_a_mode_of_the_posterior() {
    for a_round in [1, 2] {
        for form in ["paper", "with-prior"] {
            let keys = format!("kind = \"p-dsvgd\"\nfactors = \"{form}\"\nkde_bandwidth = 0.55\nserver_steps = 60");
            let [theta, ..] = single(&keys, 300, a_round);
            let score = pull(0, theta) + pull(1, theta) - theta;
            assert!(score.abs() < 1e-6, "{form}, {a_round} a round: θ = {theta}, score {score}");
        }
    }
}

#[test]
fn a_single_particle_with_a_temperature_ends_at_the_mode_of_the_tempered_posterior() {
    // scipy.optimize.brentq of (∇ log p_0 + ∇ log p_1)/2.5 − θ, which has one zero; where the temperature is ignored, the score
    // there is 0.78. With λ = 1 the prior N(0, 1) is of U-DSVGD's family.
    const MODE: f64 = 0.5189755685852595;
    assert!(((pull(0, MODE) + pull(1, MODE)) / 2.5 - MODE).abs() < 1e-12);
    let p_dsvgd = "kind = \"p-dsvgd\"\nkde_bandwidth = 0.55\nserver_steps = 60";
    for (algorithm, clients) in [
        ("kind = \"u-dsvgd\"\nkde_bandwidth = 1.0", 1),
        (&format!("{p_dsvgd}\nfactors = \"paper\""), 2),
        (&format!("{p_dsvgd}\nfactors = \"with-prior\""), 2),
    ] {
        let [theta, ..] = single(&format!("{algorithm}\ntemperature = 2.5"), 300, clients);
        // Runs of these configs ended within 3e-9 of it.
        assert!((theta - MODE).abs() < 1e-6, "{algorithm}: θ = {theta}, not {MODE}");
    }
    // Θ of DSVGD is at the fixed point of docs/algorithms.md (3), with the likelihoods' scores over α.
    let [theta, ..] = single("kind = \"dsvgd\"\nkde_bandwidth = 1.2\ntemperature = 2.5", 400, 1);
    let score = (pull(0, theta) + pull(1, theta)) / 2.5 - theta + (theta - start()) / (1.2 * 1.2) - theta;
    assert!(score.abs() < 1e-6, "θ = {theta}, score {score}");
}
