//! The factors of DSVGD and P-DSVGD: clients with Gaussian likelihoods, whose posterior is known, and the properties
//! that the derivations of docs/algorithms.md rest on. References are posteriors, not the recursions of the code.

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use crate::common::{Built, bits, experiment, outcome, small_digits, values};
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use fedstein::backend::Flex;
use fedstein::experiment::config::{AlgorithmConfig, OptimizerConfig, Reset};
use fedstein::experiment::progress::Observer;
use fedstein::experiment::{Experiment, RoundRecord, run};
use fedstein::models::{Architecture, Batch, Layout, Network, ParticleModel, Prior, PriorTerm, Task};
use fedstein::protocol::{Ask, ClientId, Predictor, Request};
use tempfile::TempDir;

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

/// One particle in f64, full batches, plain gradient steps that end at the mode of every tilted density; client k has
/// the likelihood N(θ; m_k, 1/h_k).
struct Federation {
    experiment: Experiment,
    clients: Vec<(f64, f64)>,
    _dir: TempDir,
}

impl Federation {
    fn new(clients: &[(f64, f64)], algorithm: &str, more: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.csv");
        let mut rows = String::from("site,h,m,y\n");
        for (site, (h, m)) in clients.iter().enumerate() {
            // Sites are sorted as text.
            writeln!(rows, "s{site:03},{h},{m},0.5").unwrap();
            writeln!(rows, "s{site:03},0,0,1.5").unwrap();
        }
        std::fs::write(&path, rows).unwrap();
        let test = dir.path().join("test.csv");
        std::fs::write(&test, "site,h,m,y\ns000,1,0,0.5\n").unwrap();
        let mut experiment = experiment(&format!(
            r#"
            name = "gaussian-clients"
            precision = "f64"
            [data]
            kind = "csv"
            path = {path:?}
            test_path = {test:?}
            target = "y"
            task = "regression"
            client_column = "site"
            normalise = "none"
            [partition]
            kind = "by-column"
            [algorithm]
            particles = 1
            local_steps = 400
            {algorithm}
            [optimizer]
            kind = "sgd"
            lr = 0.002
            {more}
            "#
        ));
        experiment.model = Some(Arc::new(Network::new(GaussianConfig { precision: PRIOR })));
        Self { experiment, clients: clients.to_vec(), _dir: dir }
    }

    /// The mean of the posterior of all clients' rows, in closed form.
    fn posterior_mean(&self) -> f64 {
        let sum = |f: fn(&(f64, f64)) -> f64| self.clients.iter().map(f).sum::<f64>();
        sum(|(h, m)| h * m) / (PRIOR + sum(|(h, _)| *h))
    }

    /// The value of θ after each of this many rounds.
    fn path(&self, rounds: usize) -> Vec<f64> {
        let mut halves = Rounds::new(&self.experiment);
        (1..=rounds).map(|round| halves.round(round)).collect()
    }
}

/// Rounds driven by the test: one client after the other, or all clients of a round at once.
struct Rounds {
    built: Built,
    a_round: usize,
}

impl Rounds {
    fn new(experiment: &Experiment) -> Self {
        Self { built: Built::new(experiment), a_round: experiment.config.schedule.clients() }
    }

    /// One round of the next clients in turn; the first coordinate of the first particle after it.
    fn round(&mut self, round: usize) -> f64 {
        let Built { server, clients, .. } = &mut self.built;
        let count = clients.len();
        let asked: Vec<ClientId> = (0..self.a_round).map(|i| ((round - 1) * self.a_round + i) % count).collect();
        server.begin(round, &asked).unwrap();
        let requests: Vec<Request> = asked
            .iter()
            .map(|client| Request::new(round, *client, Ask::Train, server.configure(round).unwrap()))
            .collect();
        let replies = requests
            .iter()
            .map(|request| request.reply(clients[request.client].handle(request, &|_, _| {}).unwrap()))
            .collect();
        server.aggregate(replies).unwrap();
        self.theta()[0]
    }

    /// The global particles Θ, `[N·d]`.
    fn theta(&self) -> Vec<f64> {
        values(self.built.server.particles())
    }

    /// The factor's particles Θ_k, `[N·d]`.
    fn factor(&self, client: ClientId) -> Vec<f64> {
        let Built { clients, layout, session, .. } = &self.built;
        values(&clients[client].save().unwrap().particles("factor", layout, session).unwrap())
    }

    /// The client's own particles for predictions; `None` if it has none.
    fn predictor(&mut self, client: ClientId) -> Option<Vec<f64>> {
        let Built { server, clients, .. } = &mut self.built;
        let request = Request::new(1, client, Ask::Score, server.publish().unwrap());
        match clients[client].predictor(&request).unwrap() {
            Predictor::Own(particles) => Some(values(&particles)),
            _ => None,
        }
    }
}

const GROWING: &str = "kind = \"dsvgd\"\nfactors = \"growing\"\nkde_bandwidth = 0.1";

#[test]
fn uninformative_clients_do_not_move_a_growing_posterior() {
    // The first client has the likelihood N(1, 1/50), all others constant ones: the posterior after its visit is that
    // of all rows.
    for count in [10, 50] {
        let mut clients = vec![(0.0, 0.0); count];
        clients[0] = (50.0, 1.0);
        let federation = Federation::new(&clients, GROWING, "");
        let want = federation.posterior_mean();
        assert!((want - 50.0 / (50.0 + PRIOR)).abs() < 1e-15);
        let path = federation.path(2 * count + 3);
        println!("K = {count}: {:.4} after the first visit, {:.4} after the first pass", path[0], path[count - 1]);
        for (round, theta) in path.iter().enumerate() {
            assert!((theta - want).abs() < 1e-9, "K = {count}, round {}: {theta}, not {want}", round + 1);
        }
    }
}

#[test]
fn a_growing_posterior_ends_at_the_posterior_of_clients_that_differ() {
    let clients: Vec<(f64, f64)> = (0..8).map(|k| (5.0 + 6.0 * k as f64, (k as f64 * 1.7).sin() + 0.4)).collect();
    for form in ["growing", "shared-prior"] {
        let keys = format!("kind = \"dsvgd\"\nfactors = \"{form}\"\nkde_bandwidth = 0.1");
        let federation = Federation::new(&clients, &keys, "");
        let path = federation.path(400);
        let (got, want) = (path[399], federation.posterior_mean());
        assert!((got - want).abs() < 1e-6, "{form}: {got}, not {want}");
    }
}

#[test]
fn the_fixed_point_of_factors_with_the_whole_prior_is_the_one_that_is_documented() {
    // docs/algorithms.md (3) with κ = 1: ∇ log p0 + Σ ∇ log p_k + (K − 1)[(θ − c_0)/λ² + ∇ log p0] = 0.
    let clients = [(40.0, 0.7), (25.0, -0.4), (60.0, 0.2)];
    let lambda: f64 = 0.55;
    let keys = format!("kind = \"dsvgd\"\nfactors = \"with-prior\"\nkde_bandwidth = {lambda}");
    let federation = Federation::new(&clients, &keys, "");
    let start = values(Built::new(&federation.experiment).server.particles())[0];
    let others = clients.len() as f64 - 1.0;
    let (h, hm) = clients.iter().fold((0.0, 0.0), |(h, hm), client| (h + client.0, hm + client.0 * client.1));
    let pull = others / (lambda * lambda);
    let want = (hm - pull * start) / (h + PRIOR * (1.0 + others) - pull);
    let got = federation.path(300)[299];
    assert!((got - want).abs() < 1e-6, "{got}, not {want}; the posterior has {}", federation.posterior_mean());
}

// ------------------------------------------------------------------------------------------------------ P-DSVGD

#[test]
fn several_clients_per_round_approach_the_posterior_steadily() {
    // Undamped, the server moves Θ by the sum over 20 clients of r_k/((K − 1)/(Kλ²) + H): 14.9 times too far.
    let keys = "kind = \"p-dsvgd\"\nfactors = \"growing\"\nkde_bandwidth = 0.1\nserver_steps = 60";
    let errors = |mean: fn(f64) -> f64, rounds: usize, damping: &str| {
        let clients: Vec<(f64, f64)> = (0..100).map(|k| (290.0, mean(f64::from(k)))).collect();
        let mut federation = Federation::new(&clients, &format!("{keys}\n{damping}"), "[schedule]\nclients = 20");
        // Close to one over the precision of every tilted density: 15 steps end at its mode.
        let AlgorithmConfig::PDsvgd(config) = &mut federation.experiment.config.algorithm else { panic!("P-DSVGD") };
        config.client.local.local_steps = 15;
        federation.experiment.config.optimizer = OptimizerConfig::Sgd { lr: 0.0025, reset: Reset::PerVisit };
        let want = federation.posterior_mean();
        federation.path(rounds).iter().map(|theta| (theta - want).abs()).collect::<Vec<f64>>()
    };
    let alike = errors(|_| 1.0, 20, "");
    println!("clients alike: {alike:.6?}");
    let arrived = alike.iter().position(|error| *error < 1e-3).expect("20 rounds are enough");
    assert!(alike[..=arrived].windows(2).all(|pair| pair[1] < pair[0]), "{alike:.6?}");
    assert!(alike[arrived..].iter().all(|error| *error < 1e-3), "{alike:.6?}");
    let undamped = errors(|_| 1.0, 10, "factor_damping = 1.0");
    println!("clients alike, undamped: {undamped:.3?}");
    assert!(undamped[9] > 1e3 * undamped[4], "{undamped:.3?}");
    // Clients differ: each group of a round moves Θ to its own optimum, and a factor corrects a hundredth,
    // (1/|S|)·(1/λ²)/((K − 1)/(Kλ²) + H), of what it lacks at a visit. So passes over all clients are compared, by
    // their largest error.
    let passes: Vec<f64> = errors(|k| (0.37 * k).sin(), 60, "")
        .chunks(5)
        .map(|pass| pass.iter().fold(0.0f64, |most, error| most.max(*error)))
        .collect();
    println!("clients that differ, by passes: {passes:.4?}");
    assert!(passes.windows(2).all(|pair| pair[1] < pair[0]), "{passes:.5?}");
}

// -------------------------------------------------------------------------------------------------- distillation

#[test]
fn a_single_client_is_svgd_to_the_bit() {
    let optimizer = "[optimizer]\nlr = 1e-3\nepsilon = 1e-6\nreset = \"never\"\n[partition]\nclients = 1";
    let keys = |kind: &str| {
        format!("{optimizer}\n[algorithm]\nkind = \"{kind}\"\nparticles = 20\nlocal_steps = 20\nbatch = 50")
    };
    let svgd = outcome(&small_digits(10, &keys("svgd")));
    for form in ["auto", "growing", "shared-prior", "with-prior"] {
        let dsvgd = outcome(&small_digits(10, &format!("{}\nfactors = \"{form}\"", keys("dsvgd"))));
        assert!(bits(&dsvgd) == bits(&svgd), "{form}");
    }
}

#[test]
fn factors_sum_to_the_posterior_after_every_round() {
    // (1/K) Σ_k c_k = c_q is what the fixed-point argument rests on.
    for (form, rounds) in [("shared-prior", 9), ("growing", 9)] {
        let keys = format!(
            "[partition]\nclients = 3\n[algorithm]\nkind = \"dsvgd\"\nparticles = 6\nlocal_steps = 8\nbatch = 50\n\
             factors = \"{form}\"\nkde_bandwidth = 0.1"
        );
        let mut halves = Rounds::new(&small_digits(rounds, &keys));
        for round in 1..=rounds {
            halves.round(round);
            if form == "growing" && round < 3 {
                continue;
            }
            let theta = halves.theta();
            let factors: Vec<Vec<f64>> = (0..3).map(|client| halves.factor(client)).collect();
            let largest = factors.iter().flatten().fold(0.0f64, |most, value| most.max(value.abs()));
            let gap = (0..theta.len()).map(|i| (factors.iter().map(|f| f[i]).sum::<f64>() - 3.0 * theta[i]).abs());
            let gap = gap.fold(0.0f64, f64::max);
            // At most ten roundings in f32 per visit, of numbers as large as the largest factor.
            let bound = 10.0 * round as f64 * f64::from(f32::EPSILON) * largest.max(1.0);
            assert!(gap < bound, "{form}, round {round}: {gap:e}, rounding allows {bound:e}");
        }
    }
}

// ----------------------------------------------------------------------------------------------- the chosen form

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

/// The last particles, and the messages of the run.
fn outcome_of(experiment: &Experiment) -> (Vec<u64>, Vec<String>) {
    let notes = Notes::default();
    let outcome = run::<Flex>(experiment, &notes, None).unwrap();
    (bits(&outcome), notes.0.into_inner().unwrap())
}

#[test]
fn the_form_of_the_factors_follows_from_the_densities_and_is_reported() {
    let toy = |factors: &str| {
        experiment(&format!(
            "rounds = 2\nprecision = \"f64\"\ndata = {{ kind = \"mixture-1d\" }}\npartition = {{ kind = \"by-column\" }}\n\
             model = {{ kind = \"mixture\" }}\n[algorithm]\nkind = \"dsvgd\"\nparticles = 30\nlocal_steps = 10\n{factors}"
        ))
    };
    let digits = |factors: &str| {
        small_digits(2, &format!("[algorithm]\nkind = \"dsvgd\"\nparticles = 4\nlocal_steps = 5\n{factors}"))
    };
    for (chosen, unsaid, said) in [
        ("with-prior", toy(""), toy("factors = \"with-prior\"")),
        ("growing", digits(""), digits("factors = \"growing\"")),
        ("with-prior", digits("kde = \"reference\""), digits("kde = \"reference\"\nfactors = \"with-prior\"")),
    ] {
        let ((bits, notes), (want, silent)) = (outcome_of(&unsaid), outcome_of(&said));
        assert!(bits == want, "{chosen}");
        let about =
            |notes: &[String]| notes.iter().any(|note| note.contains(&format!("algorithm.factors = \"{chosen}\"")));
        assert!(about(&notes), "{notes:?}");
        assert!(!about(&silent), "{silent:?}");
    }
}

#[test]
fn the_advice_about_one_hot_densities_depends_on_the_form_of_the_factors() {
    let advice = |keys: &str| {
        let experiment = small_digits(1, &format!("[algorithm]\nparticles = 4\nlocal_steps = 3\n{keys}"));
        outcome_of(&experiment).1.into_iter().filter(|note| note.contains("one-hot")).collect::<Vec<_>>()
    };
    let growing = advice("kind = \"dsvgd\"\nfactors = \"shared-prior\"");
    assert!(growing.len() == 1 && growing[0].contains("a smaller one forgets less"), "{growing:?}");
    for form in ["with-prior", "paper"] {
        // With `paper` q is p0 in the first round, and one-hot from the second on.
        let keys = format!("kind = \"dsvgd\"\nfactors = \"{form}\"");
        let mut experiment = small_digits(2, &format!("[algorithm]\nparticles = 4\nlocal_steps = 3\n{keys}"));
        experiment.config.rounds = 2;
        let notes: Vec<String> =
            outcome_of(&experiment).1.into_iter().filter(|note| note.contains("one-hot")).collect();
        assert!(notes.len() == 1, "{notes:?}");
        assert!(!notes[0].contains("forgets less") && notes[0].contains("\"growing\""), "{notes:?}");
    }
    let barycenter = advice("kind = \"fedwba\"");
    assert!(barycenter.iter().all(|note| !note.contains("forgets less")), "{barycenter:?}");
}

// ------------------------------------------------------------------------------------------- personal predictions

#[test]
fn a_client_predicts_with_what_it_uploaded_last() {
    for kind in ["dsvgd", "u-dsvgd"] {
        let keys = format!(
            "[partition]\nclients = 3\n[algorithm]\nkind = \"{kind}\"\nparticles = 3\nlocal_steps = 4\nbatch = 20\n\
             [evaluation]\npersonal = true"
        );
        let mut halves = Rounds::new(&small_digits(2, &keys));
        halves.round(1);
        let first = halves.theta();
        assert_eq!(halves.predictor(0).as_ref(), Some(&first), "{kind}");
        assert_eq!(halves.predictor(1), None, "{kind}: before its first visit");
        halves.round(2);
        assert_ne!(halves.theta(), first);
        assert_eq!(halves.predictor(0).as_ref(), Some(&first), "{kind}: the global particles went on");
        // A client that is resumed from a checkpoint has the same predictor.
        let state = halves.built.clients[0].save().unwrap();
        let mut again = Rounds::new(&small_digits(2, &keys));
        again.built.clients[0].restore(&state).unwrap();
        assert_eq!(again.predictor(0).as_ref(), Some(&first), "{kind}");
    }
}
