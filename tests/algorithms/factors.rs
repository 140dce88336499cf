//! The factors of DSVGD: clients with Gaussian likelihoods, whose posterior is known, and the properties
//! that the derivations of docs/algorithms.md rest on. References are posteriors, not the recursions of the code.

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use fedstein::backend::Flex;
use fedstein::experiment::progress::Observer;
use fedstein::experiment::{RoundRecord, run};
use fedstein::models::{Architecture, Batch, Layout, Network, ParticleModel, Prior, PriorTerm, Task};
use fedstein::protocol::ClientId;

use crate::common::{bits, experiment, outcome, small_digits, try_run};
use crate::driven::{Driven, sites};

// --------------------------------------------------------------------------------- clients with Gaussian likelihoods

/// θ ~ N(0, 1/precision), one coordinate; a row (h, m) has the likelihood N(θ; m, 1/h), which is constant for h = 0.
#[derive(Clone, Debug)]
struct GaussianConfig {
    precision: f64,
}

#[derive(Module, Debug)]
struct GaussianRows {
    theta: Param<Tensor<2>>,
}

impl GaussianRows {
    /// −½ h (m − θ_n)² of each row, `[N, B]`.
    fn rows(&self, inputs: Tensor<2>) -> Tensor<2> {
        let column = |at| inputs.clone().narrow(1, at, 1).transpose();
        (column(1) - self.theta.val()).square() * column(0).mul_scalar(-0.5)
    }
}

impl ParticleModel for GaussianRows {
    fn log_likelihood(&self, batch: &Batch) -> Tensor<1> {
        self.rows(batch.inputs.clone()).sum_dim(1).squeeze_dim(1)
    }

    fn predict(&self, inputs: Tensor<2>) -> Tensor<3> {
        self.rows(inputs).unsqueeze_dim(2)
    }
}

impl Architecture for GaussianConfig {
    type Module = GaussianRows;

    fn module(&self, particles: usize, device: &Device) -> GaussianRows {
        GaussianRows { theta: Param::from_tensor(Tensor::zeros([particles, 1], device)) }
    }

    fn task(&self) -> Task {
        Task::Density
    }

    fn prior(&self, layout: &Layout) -> Prior {
        Prior { terms: vec![PriorTerm::Normal { block: layout.position("theta").unwrap(), precision: self.precision }] }
    }
}

/// The precision e of the prior of networks.
const PRIOR: f64 = std::f64::consts::E;

#[test]
fn the_fixed_point_of_factors_with_the_whole_prior_is_the_one_that_is_documented() {
    // One particle, full batches, plain gradient steps that end at the mode of every tilted density; client k has the
    // likelihood N(θ; m_k, 1/h_k). docs/algorithms.md (3):
    // ∇ log p0 + Σ ∇ log p_k + (K − 1)[(θ − θ^(0))/λ² + ∇ log p0] = 0.
    let clients = [(40.0, 0.7), (25.0, -0.4), (60.0, 0.2)];
    let lambda: f64 = 0.55;
    let mut rows = String::new();
    for (site, (h, m)) in clients.iter().enumerate() {
        writeln!(rows, "s{site},{h},{m},0.5").unwrap();
        writeln!(rows, "s{site},0,0,1.5").unwrap();
    }
    let keys = format!(
        "kind = \"dsvgd\"\nparticles = 1\nlocal_steps = 400\nkde_bandwidth = {lambda}\n\
         [optimizer]\nkind = \"sgd\"\nlr = 0.002"
    );
    let (mut experiment, _dir) = sites("site,h,m,y", &rows, "s0,1,0,0.5\n", keys);
    experiment.model = Some(Arc::new(Network::new(GaussianConfig { precision: PRIOR })));
    let mut driven = Driven::new(&experiment);
    let start = driven.theta()[[0, 0]];
    let others = clients.len() as f64 - 1.0;
    let (h, hm) = clients.iter().fold((0.0, 0.0), |(h, hm), client| (h + client.0, hm + client.0 * client.1));
    let pull = others / (lambda * lambda);
    let want = (hm - pull * start) / (h + PRIOR * (1.0 + others) - pull);
    (1..=300).for_each(|round| drop(driven.round(round)));
    let got = driven.theta()[[0, 0]];
    assert!((got - want).abs() < 1e-6, "{got}, not {want}; the posterior has {}", hm / (h + PRIOR));
}

// -------------------------------------------------------------------------------------------------- distillation

#[test]
fn a_single_client_is_svgd_to_the_bit() {
    let optimizer = "[optimizer]\nlr = 1e-3\nepsilon = 1e-6\nreset = \"never\"\n[partition]\nclients = 1";
    let keys = |kind: &str| {
        format!("{optimizer}\n[algorithm]\nkind = \"{kind}\"\nparticles = 20\nlocal_steps = 20\nbatch = 50")
    };
    let svgd = outcome(&small_digits(10, &keys("svgd")));
    assert!(bits(&outcome(&small_digits(10, &keys("dsvgd")))) == bits(&svgd));
}

#[test]
fn the_factors_together_move_as_far_as_the_global_particles() {
    // Σ_k (Θ_k − Θ^(0)) = Θ − Θ^(0) where one centre has all the weight: what the fixed-point argument rests on.
    let keys = "[partition]\nclients = 3\n[algorithm]\nkind = \"dsvgd\"\nparticles = 6\nlocal_steps = 8\nbatch = 50";
    let mut driven = Driven::new(&small_digits(9, keys));
    let start: Vec<f64> = driven.theta().into_iter().collect();
    for round in 1..=9 {
        driven.round(round);
        let theta: Vec<f64> = driven.theta().into_iter().collect();
        let factors: Vec<Vec<f64>> = (0..3).map(|client| driven.factor(client)).collect();
        let largest = factors.iter().flatten().fold(0.0f64, |most, value| most.max(value.abs()));
        let gap = (0..theta.len())
            .map(|i| (factors.iter().map(|f| f[i] - start[i]).sum::<f64>() - (theta[i] - start[i])).abs());
        let gap = gap.fold(0.0f64, f64::max);
        // At most ten roundings in f32 per visit, of numbers as large as the largest factor.
        let bound = 10.0 * f64::from(round as u32) * f64::from(f32::EPSILON) * largest.max(1.0);
        assert!(gap < bound, "round {round}: {gap:e}, rounding allows {bound:e}");
        assert!(theta.iter().zip(&start).any(|(theta, start)| (theta - start).abs() > 1e3 * bound), "round {round}");
    }
}

// ----------------------------------------------------------------------------------------------------- the advice

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn started(&self, _rounds: usize, _note: &str) {}
    fn step(&self, _done: usize, _total: usize) {}
    fn round(&self, _round: usize, _clients: &[ClientId]) {}
    fn finished_round(&self, _record: &RoundRecord) {}
    fn finished(&self) {}
    fn note(&self, note: &str) {
        self.0.lock().unwrap().push(note.to_owned());
    }
}

/// The messages of a run about densities in which one centre has all the weight.
fn advice(rounds: usize, keys: &str) -> Vec<String> {
    let experiment = small_digits(rounds, &format!("[algorithm]\nparticles = 4\nlocal_steps = 3\n{keys}"));
    let notes = Notes::default();
    run::<Flex>(&experiment, &notes, None).unwrap();
    notes.0.into_inner().unwrap().into_iter().filter(|note| note.contains("one-hot")).collect()
}

#[test]
fn the_advice_about_one_hot_densities_depends_on_the_algorithm() {
    for keys in ["kind = \"dsvgd\"", "kind = \"dsvgd\"\nfactors = \"paper\""] {
        // With `paper` q is p0 in the first round, and one-hot from the second on.
        let notes = advice(2, keys);
        assert!(notes.len() == 1, "{notes:?}");
        assert!(!notes[0].contains("forgets less") && notes[0].contains("\"newton-dsvgd\""), "{notes:?}");
    }
    let exact = advice(1, "kind = \"u-dsvgd\"");
    assert!(exact.iter().all(|note| note.contains("a smaller one forgets less")), "{exact:?}");
    let barycenter = advice(1, "kind = \"fedwba\"");
    assert!(barycenter.iter().all(|note| !note.contains("forgets less")), "{barycenter:?}");
}

// ------------------------------------------------------------------------------------- densities of the public codes

#[test]
fn where_the_public_codes_density_says_nothing_the_prior_is_in_every_local_score() {
    // A logistic regression on twonorm has d = 21. Of an isolated centre's score the public codes leave 2.6e-7 with 20
    // particles and .074 with 6 (docs/algorithms.md): the first is as good as none.
    let twonorm = |particles: usize, keys: &str| {
        experiment(&format!(
            "rounds = 4\n[data]\nkind = \"twonorm\"\ntrain_limit = 300\n[model]\nkind = \"blr\"\n[partition]\nclients = 3\n\
             [algorithm]\nparticles = {particles}\nlocal_steps = 5\nkde_bandwidth = 0.55\n{keys}"
        ))
    };
    for kind in ["dsvgd\"\nfactors = \"with-prior\"", "dsvgd\"\nfactors = \"paper\"", "u-dsvgd\""] {
        let run =
            |particles, kde: &str| bits(&outcome(&twonorm(particles, &format!("kde = \"{kde}\"\nkind = \"{kind}"))));
        assert!(run(20, "reference") == run(20, "off"), "{kind}");
        assert!(run(6, "reference") != run(6, "off"), "{kind}");
        assert!(run(20, "exact") != run(20, "off"), "{kind}");
    }
    // The server of P-DSVGD would learn nothing.
    let refused = try_run(&twonorm(20, "kind = \"p-dsvgd\"\nkde = \"reference\"")).unwrap_err().to_string();
    assert!(refused.contains("they are next to 0 in d = 21 dimensions"), "{refused}");
    assert!(try_run(&twonorm(6, "kind = \"p-dsvgd\"\nkde = \"reference\"")).is_ok());
}

// ------------------------------------------------------------------------------------------- personal predictions

#[test]
fn a_client_predicts_with_what_it_uploaded_last() {
    for kind in ["dsvgd", "u-dsvgd"] {
        let keys = format!(
            "[partition]\nclients = 3\n[algorithm]\nkind = \"{kind}\"\nparticles = 3\nlocal_steps = 4\nbatch = 20\n\
             [evaluation]\npersonal = true"
        );
        let mut driven = Driven::new(&small_digits(2, &keys));
        driven.round(1);
        let first: Vec<f64> = driven.theta().into_iter().collect();
        assert_eq!(driven.predictor(0).as_ref(), Some(&first), "{kind}");
        assert_eq!(driven.predictor(1), None, "{kind}: before its first visit");
        driven.round(2);
        assert_ne!(driven.theta().into_iter().collect::<Vec<_>>(), first);
        assert_eq!(driven.predictor(0).as_ref(), Some(&first), "{kind}: the global particles went on");
        // A client that is resumed from a checkpoint has the same predictor.
        let state = driven.built.clients[0].1.save().unwrap();
        let mut again = Driven::new(&small_digits(2, &keys));
        again.built.clients[0].1.restore(&state).unwrap();
        assert_eq!(again.predictor(0).as_ref(), Some(&first), "{kind}");
    }
}
