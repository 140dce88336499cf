//! Personalised evaluation through the public interface, and rounds in which a client's reply cannot be used.

use std::sync::Mutex;

use crate::common::{Built, bits, data, experiment, outcome, partition_of, values};
use fedstein::array::Values;
use fedstein::backend::{AnyBackend, Flex};
use fedstein::datasets::Targets;
use fedstein::error::RunError;
use fedstein::experiment::Config;
use fedstein::experiment::evaluate::Predicted;
use fedstein::experiment::schema::{Overrides, Source};
use fedstein::federation::fault_policy::FaultPolicy;
use fedstein::federation::fleet::{Fleet, InProcess};
use fedstein::federation::server::{Federation, Round, RoundObserver};
use fedstein::metrics::Evaluation;
use fedstein::protocol::{Reply, Request, ServerHalf, Watch};
use fedstein::random::Streams;
use fedstein::schedule::Schedule;

const FEDAVG: &str = r#"
    rounds = 3
    data = { kind = "digits" }
    partition = { kind = "labels-per-client", clients = 6, labels = 4 }
    model = { kind = "bnn", hidden = [8] }
    algorithm = { kind = "fedavg", local_steps = 20 }
    optimizer = { lr = 1e-2 }
    schedule = { kind = "random", clients = 3 }
    evaluation = { every = 2, personal = true }
"#;

#[test]
fn a_global_model_is_scored_on_each_clients_labels() {
    let experiment = experiment(FEDAVG);
    let outcome = outcome(&experiment);
    let Predicted::Classes { log_probs, labels, .. } = &outcome.predicted else { panic!("digits are classes") };
    let predictions = log_probs.predictions(labels).unwrap();
    let (results, scores) = outcome.personal.as_ref().unwrap();
    assert_eq!(results.last.round, 3);

    let train = data(&experiment.config).train;
    let counts = partition_of(&experiment.config).counts(&train.targets);
    let (mut correct, mut rows) = (0.0, 0);
    for (client, counts) in counts.iter().enumerate() {
        let own: Vec<usize> = (0..labels.len()).filter(|row| counts[labels[*row]] > 0).collect();
        let picked: Vec<f64> = own.iter().flat_map(|row| predictions.rows().nth(*row).unwrap().to_vec()).collect();
        let own_labels: Vec<usize> = own.iter().map(|row| labels[*row]).collect();
        let own_predictions = fedstein::metrics::ClassPredictions::new(own_labels, 10, picked).unwrap();
        let expected = Evaluation::of_predictions(&own_predictions, 15).unwrap();
        let got = Evaluation::of_sums(&scores.clients()[client]);
        assert_eq!(got.rows, own.len());
        assert_eq!(got.accuracy, expected.accuracy);
        for (got, want) in [(got.nll, expected.nll), (got.ece, expected.ece), (got.brier, expected.brier)] {
            assert!((got.unwrap() - want.unwrap()).abs() < 1e-12, "{got:?} {want:?}");
        }
        correct += expected.accuracy.unwrap() * own.len() as f64;
        rows += own.len();
    }
    let pooled = results.last.numbers["personal_accuracy"].unwrap();
    assert!((pooled - correct / rows as f64).abs() < 1e-12);
}

#[test]
fn columns_exist_in_every_round_and_are_blank_where_nothing_was_scored() {
    let outcome = outcome(&experiment(FEDAVG));
    let accuracy = |round: usize| outcome.rounds[round - 1].metric("personal_accuracy");
    assert_eq!(accuracy(1), None);
    assert!(accuracy(2).is_some() && accuracy(3).is_some());
    let names = |round: usize| outcome.rounds[round - 1].metrics.iter().map(|(name, _)| &**name).collect::<Vec<_>>();
    assert_eq!(names(1), names(2));
}

#[test]
fn scoring_changes_neither_the_particles_nor_the_traffic() {
    let with = outcome(&experiment(FEDAVG));
    let without = outcome(&experiment(&FEDAVG.replace("personal = true", "personal = false")));
    assert_eq!(bits(&with), bits(&without));
    assert_eq!(with.rounds[1].uplink_bytes, without.rounds[1].uplink_bytes);
    assert!(without.personal.is_none());
    assert_eq!(without.rounds[1].metric("personal_accuracy"), None);
}

/// The corruption of a reply in transit.
type Spoil = fn(&mut Reply);

/// A fleet in which the reply of one client is replaced.
struct Corrupt {
    fleet: InProcess<'static>,
    client: usize,
    spoil: Spoil,
}

impl Fleet for Corrupt {
    fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>> {
        let mut replies = self.fleet.dispatch(requests, watch);
        for reply in replies.iter_mut().flatten().filter(|reply| reply.client == self.client) {
            (self.spoil)(reply);
        }
        replies
    }
}

fn set_first(reply: &mut Reply, value: f32) {
    for array in reply.message.arrays.values_mut() {
        if let Values::F32(values) = &mut array.values {
            values[0] = value;
        }
    }
}

/// The records of the rounds, and Θ after each.
#[derive(Default)]
struct Log(Mutex<Vec<(Round, Vec<f64>)>>);

impl RoundObserver for Log {
    fn round_started(&mut self, _: usize, _: &[usize]) {}
    fn round_ended(&mut self, round: Round, server: &dyn ServerHalf, _: &dyn Schedule) -> Result<(), RunError> {
        self.0.lock().unwrap().push((round, values(server.particles())));
        Ok(())
    }
}

/// Runs a config over a corrupt fleet whose round has all clients.
fn serve(text: &str, client: usize, spoil: Spoil) -> Result<Vec<(Round, Vec<f64>)>, RunError> {
    let experiment = experiment(text);
    let config = &experiment.config;
    let Built { mut server, clients, session, .. } = Built::new(&experiment);
    let mut schedule = config.schedule(&*config.algorithm, clients.len(), Streams::new(config.seed));
    let fleet = Corrupt { fleet: InProcess::new(clients, AnyBackend::of::<Flex>()), client, spoil };
    let counts: Vec<usize> = partition_of(config).clients().iter().map(Vec::len).collect();
    let mut log = Log::default();
    let (server, schedule, policy) = (&mut *server, &mut *schedule, &mut FaultPolicy::default());
    let mut federation =
        Federation { server, schedule, fleet: &fleet, rows: &counts, diagnosis: None, policy, session };
    federation.serve(1..=config.rounds, &|_, _| {}, &mut log)?;
    Ok(log.0.into_inner().unwrap())
}

const THREE: &str = r#"
    rounds = 2
    data = { kind = "digits" }
    partition = { kind = "iid", clients = 3 }
    model = { kind = "bnn", hidden = [4] }
    algorithm = { kind = "fedavg", local_steps = 5 }
    schedule = { kind = "round-robin", clients = 3 }
"#;

#[test]
fn a_reply_that_cannot_be_used_is_left_out_and_the_round_continues() {
    let spoils: [(Spoil, &str); 5] = [
        (|reply| set_first(reply, f32::NAN), "not finite"),
        (|reply| set_first(reply, f32::INFINITY), "not finite"),
        (|reply| reply.message.arrays.clear(), "lacks"),
        (|reply| reply.round = 7, "round 7"),
        (
            |reply| {
                let array = reply.message.arrays.get_mut("particles").unwrap();
                array.shape = vec![array.shape[1], 1];
            },
            "not [1, ",
        ),
    ];
    for (spoil, word) in spoils {
        let rounds = serve(THREE, 1, spoil).unwrap();
        for (round, theta) in &rounds {
            assert_eq!(round.rejected.len(), 1);
            assert_eq!(round.rejected[0].0, 1);
            assert!(round.rejected[0].1.contains(word), "{:?}", round.rejected);
            assert!(theta.iter().all(|value| value.is_finite()));
        }
    }
}

#[test]
fn without_the_rejected_client_the_server_aggregates_the_others() {
    let rejected = serve(THREE, 1, |reply| set_first(reply, f32::NAN)).unwrap();
    let others = THREE.replace(r#""round-robin", clients = 3"#, r#""round-robin", clients = 2, first = 2"#);
    let asked = serve(&others, 9, |_| {}).unwrap();
    assert_eq!(asked[0].0.selection.clients, [2, 0]);
    // The same average, summed in another order.
    assert!(rejected[0].1.iter().zip(&asked[0].1).all(|(a, b)| (a - b).abs() < 1e-6));
    let all = serve(THREE, 9, |_| {}).unwrap();
    assert!(all[0].0.rejected.is_empty() && rejected[0].1.iter().zip(&all[0].1).any(|(a, b)| (a - b).abs() > 1e-4));
}

#[test]
fn a_round_without_a_usable_reply_fails_with_the_reason() {
    let one =
        THREE.replace("clients = 3 }\n    model", "clients = 1 }\n    model").replace("clients = 3", "clients = 1");
    let error = serve(&one, 0, |reply| set_first(reply, f32::NAN)).unwrap_err();
    assert!(error.to_string().contains("round 1, client 0: array \"particles\" of the reply is not finite"), "{error}");
    assert_eq!(error.exit_code(), 1);
}

#[test]
fn a_method_with_all_rows_in_one_place_has_no_clients_to_score() {
    let svgd = FEDAVG.replace(r#"kind = "fedavg""#, r#"kind = "svgd", particles = 2"#);
    let error = Config::load(Source { name: "test.toml", text: &svgd }, &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("evaluation.personal") && error.contains("all rows in one place"), "{error}");
}

#[test]
fn regressions_are_scored_in_the_units_of_the_data() {
    let text = r#"
        rounds = 2
        data = { kind = "csv", path = 'CSV', target = "y", task = "regression", test_fraction = 0.5 }
        partition = { kind = "iid", clients = 2, validation = 0.2 }
        model = { kind = "bnn", hidden = [4] }
        algorithm = { kind = "fedavg", local_steps = 5 }
        schedule = { kind = "round-robin", clients = 2 }
        evaluation = { personal = true }
    "#;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("line.csv");
    let rows: String = (0..40).map(|i| format!("{i},{}\n", 100 + 3 * i)).collect();
    std::fs::write(&path, format!("x,y\n{rows}")).unwrap();
    let experiment = experiment(&text.replace("CSV", &path.display().to_string()));
    let outcome = outcome(&experiment);
    let (results, scores) = outcome.personal.as_ref().unwrap();
    // Both clients are scored on all test rows with the same particles: the pooled number is the global one.
    let (rmse, nll) = (outcome.evaluation.rmse.unwrap(), outcome.evaluation.nll.unwrap());
    assert!((results.last.numbers["personal_rmse"].unwrap() - rmse).abs() < 1e-9 * rmse);
    assert!((results.last.numbers["personal_nll"].unwrap() - nll).abs() < 1e-9 * nll.abs());
    assert_eq!(scores.clients().len(), 2);
    let of_validation = |name: &str| results.last.numbers[name];
    assert!(of_validation("validation_rmse").unwrap() > 0.0 && of_validation("validation_accuracy").is_none());
    assert!(matches!(data(&experiment.config).test.targets, Targets::Real { .. }));
}
