//! A server without rows: the global particles are scored at the clients, and the pooled sums are the evaluation of
//! all rows together.

use std::collections::BTreeMap;
use std::path::Path;

use fedstein::array::Values;
use fedstein::backend::{AnyBackend, Flex, Precision, Session};
use fedstein::datasets::Dataset;
use fedstein::error::RunError;
use fedstein::experiment::evaluate::{Evaluator, EvaluatorConfig, Predicted};
use fedstein::experiment::finished::Finished;
use fedstein::experiment::round_evaluator::{Ended, EvaluatedRound, Measured, RoundEvaluator, RowsAt};
use fedstein::experiment::{Artifacts, Config, Experiment, Overrides, Quiet, ReportOptions, Source, run};
use fedstein::federation::client_evaluator::{ClientEvaluator, PUBLISHED_SCORES};
use fedstein::federation::event::{Event, EventKind};
use fedstein::federation::fleet::{Fleet, InProcess};
use fedstein::federation::held_out::{CalibrationRows, HeldOut};
use fedstein::federation::server::{Federation, Round, RoundObserver};
use fedstein::metrics::{ClientScores, Evaluation, ParticleLogProbs, Scale};
use fedstein::protocol::{ClientId, Reply, Request, RequestKind, ServerHalf, Watch};
use fedstein::random::Streams;
use fedstein::report::SiteScores;
use fedstein::rows::Table;
use fedstein::schedule::Schedule;
use serde_json::{Value, json};

use crate::common::{algorithms, algorithms_that, data, experiment, has_clients};
use crate::faults::harness::*;

/// The test rows of each client: unequal numbers, and none at the last one.
fn split(rows: usize, clients: usize) -> Vec<Vec<usize>> {
    let mut of = vec![Vec::new(); clients];
    (0..rows).for_each(|row| of[(row * 7 % 23) % clients.saturating_sub(1).max(1)].push(row));
    of
}

/// Both places where a round can be evaluated, over one fleet.
struct Both<'a> {
    here: RoundEvaluator<'a>,
    there: RoundEvaluator<'a>,
    fleet: &'a dyn Fleet,
    clients: usize,
    own: bool,
    evaluated: Vec<(EvaluatedRound, EvaluatedRound)>,
}

impl RoundObserver for Both<'_> {
    fn round_started(&mut self, _: usize, _: &[ClientId]) {}

    fn round_ended(&mut self, round: Round, server: &dyn ServerHalf, _: &dyn Schedule) -> Result<(), RunError> {
        let ended = Ended { round: round.round, fleet: self.fleet, policy: &round.policy, server, is_last: false };
        let evaluated = |evaluator: &RoundEvaluator<'_>| evaluator.evaluate(ended, self.clients, self.own);
        self.evaluated.push((evaluated(&self.here)?, evaluated(&self.there)?));
        Ok(())
    }
}

fn evaluator_config(config: &Config) -> EvaluatorConfig {
    EvaluatorConfig {
        chunk: 7,
        bins: config.evaluation.bins,
        kde: config.evaluation_kde(&*config.algorithm),
        temperature: 1.0,
    }
}

/// Runs a config whose clients hold the test rows; a fleet may stand around theirs. Returns every round evaluated by the
/// rows here, and by the clients.
fn evaluated(text: &str, own: bool, around: Option<&Around>) -> Vec<(EvaluatedRound, EvaluatedRound)> {
    let config = experiment(text).config;
    let (streams, session) = (Streams::new(config.seed), Session::open::<Flex>(Precision::F32).unwrap());
    let counts: Vec<usize> = rows(&config).iter().map(Vec::len).collect();
    let clients = counts.len();
    let all = data(&config);
    let model = config.model(&all.train).unwrap();
    let scale = all.normalisation.target.as_ref().map_or(Scale::IDENTITY, |t| Scale { mean: t.mean, sd: t.sd });
    let tests = split(all.test.rows(), clients);
    let counted = tests.iter().map(Vec::len).collect();
    let validation: Vec<Vec<usize>> = (0..clients).map(|client| vec![client, client + clients]).collect();
    let held = |data: &Dataset, rows: Vec<Vec<usize>>| HeldOut {
        groups: data.groups.clone(),
        targets: data.targets.clone(),
        table: Table::new(data.clone(), &all.normalisation),
        rows,
    };
    let at_clients = ClientEvaluator {
        model: model.clone(),
        session: session.clone(),
        test: held(&all.test, tests),
        validation: held(&all.train, validation.clone()),
        calibration: CalibrationRows::new(held(&all.train, vec![vec![2, 3]; clients])),
        corrections: BTreeMap::new(),
        scale,
        chunk: 3,
        bins: config.evaluation.bins,
    };
    let task = model.task();
    let on = |rows: Dataset| {
        Evaluator::new(model.clone(), session.clone(), rows, &all.normalisation, evaluator_config(&config)).unwrap()
    };
    let (here, validation_here) = (on(all.test.clone()), on(all.train.select(&validation.concat())));
    let halves = halves(text);
    let (mut server, mut schedule) = (halves.server, config.schedule(&*config.algorithm, clients, streams));
    let inside = InProcess::new(halves.clients, AnyBackend::of::<Flex>()).with_evaluator(at_clients);
    let outside = around.map(|around| around(&inside));
    let fleet: &dyn Fleet = outside.as_deref().unwrap_or(&inside);
    let names: Vec<String> = (0..clients).map(|client| format!("site {client}")).collect();
    let at = |rows| RowsAt::clients((names.clone(), rows), task, config.evaluation.bins).unwrap();
    let there = RoundEvaluator::new(at(counted), Some(at(vec![2; clients])));
    let here = RoundEvaluator::new(RowsAt::Here(&here), Some(RowsAt::Here(&validation_here)));
    let mut both = Both { here, there, fleet, clients, own, evaluated: Vec::new() };
    let policy = &mut config.fault_policy(config.algorithm.capabilities(), 1);
    let (server, schedule, diagnosis) = (&mut *server, &mut *schedule, config.diagnosis());
    let mut federation = Federation { server, schedule, fleet, rows: &counts, diagnosis, policy, session };
    federation.serve(1..=config.rounds, &|_, _| {}, &mut both).unwrap();
    both.evaluated
}

/// Asserts that the pooled evaluation is that of all rows, but for what sums do not give. Both predict the same numbers
/// in other batches, in f32.
fn assert_same(pooled: &Evaluation, all: &Evaluation, what: &str) {
    assert_eq!(pooled.rows, all.rows, "{what}");
    for ((metric, got), (_, want)) in pooled.values().zip(all.values()) {
        let want = want.filter(|_| metric.sums.is_some());
        assert_eq!(got.is_some(), want.is_some(), "{what}: {}", metric.key);
        let distance = got.zip(want).map_or(0.0, |(got, want)| (got - want).abs() / want.abs().max(1.0));
        assert!(distance < 1e-5, "{what}: {} is {got:?}, not {want:?}", metric.key);
    }
}

/// The number of clients that an evaluator at the clients has asked.
fn there_are(evaluated: &EvaluatedRound) -> usize {
    let Predicted::Pooled { names, .. } = &evaluated.predicted else { panic!("the rows are at the clients") };
    names.len()
}

#[test]
fn the_pooled_scores_of_the_clients_are_the_evaluation_of_all_their_rows() {
    for kind in algorithms() {
        let rounds = evaluated(&text(kind, &format!("[evaluation]\npersonal = {}", has_clients(kind))), true, None);
        assert!(!rounds.is_empty());
        for (round, (here, there)) in rounds.iter().enumerate() {
            let what = format!("{kind}, round {}", round + 1);
            assert_same(&there.evaluation, &here.evaluation, &what);
            let (Some(Measured::Here(here_validation)), Some(Measured::Clients(sums))) =
                (&here.validation, &there.validation)
            else {
                panic!("{what}: {:?} {:?}", here.validation, there.validation)
            };
            assert_same(&Evaluation::of_sums(sums.pooled()), here_validation, &format!("{what}, validation"));
            assert!(there.events.is_empty(), "{what}: {:?}", there.events);
            // The same replies hold the scores of the clients' personal predictors.
            let (own, other) = (here.own.as_ref().unwrap(), there.own.as_ref().unwrap());
            assert!(there.scored == Some(there_are(there)) && other.test.pooled().rows() == there.evaluation.rows);
            // An evaluator of rows here asks without whole particles, which clients that keep their last layers cannot score.
            if !algorithms_that(|can| can.untrained_part).contains(&kind) {
                assert_eq!((own.test.columns(), here.scored), (other.test.columns(), there.scored), "{what}");
            }
        }
        let (_, last) = rounds.last().unwrap();
        let Predicted::Pooled { scores, .. } = &last.predicted else { panic!("{kind} predicts here") };
        assert_eq!(there_are(last), scores.clients().len());
        assert_eq!(scores.clients().iter().map(|client| client.rows()).sum::<usize>(), last.evaluation.rows);
    }
}

/// The config of a run on a table of 60 training and 40 test rows with a price.
fn regression(dir: &Path) -> String {
    let row = |i: u32| {
        let (a, b) = ((f64::from(i) * 0.7).sin(), (f64::from(i) * 1.3).cos());
        format!("{a},{b},{}\n", 200.0 + 30.0 * a + 10.0 * (f64::from(i) * 2.9).sin())
    };
    for (name, rows) in [("train.csv", 0..60), ("test.csv", 60..100)] {
        std::fs::write(dir.join(name), format!("a,b,price\n{}", rows.map(row).collect::<String>())).unwrap();
    }
    let [train, test] = ["train.csv", "test.csv"].map(|name| dir.join(name));
    let data = format!(
        "data = {{ kind = \"csv\", path = {train:?}, test_path = {test:?}, target = \"price\", task = \"regression\" }}"
    );
    text("fedavg", "").replace("data = { kind = \"twonorm\", rows = 120, test_fraction = 0.33333 }", &data)
}

#[test]
fn a_regression_is_judged_by_its_clients_in_the_units_of_the_data() {
    let dir = tempfile::tempdir().unwrap();
    for (here, there) in &evaluated(&regression(dir.path()), false, None) {
        assert_same(&there.evaluation, &here.evaluation, "fedavg");
        // The targets spread over 60 units and more.
        assert!(there.evaluation.rows == 40 && there.evaluation.rmse.unwrap() > 2.0 && there.own.is_none());
        assert_eq!((here.scored, there.scored), (None, Some(K)));
    }
}

/// A fleet whose client 1 loses its scores, whose client 2 claims rows that it cannot have, and whose client 3 leaves its rows out.
struct Unusable<'a>(&'a Inside);

impl Fleet for Unusable<'_> {
    fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>> {
        let asked: BTreeMap<ClientId, &Request> = requests.iter().map(|request| (request.client, request)).collect();
        let mut replies = self.0.dispatch(requests, watch);
        let of_scores =
            |reply: &Reply| asked.get(&reply.client).is_some_and(|request| request.ask.kind() == RequestKind::Scores);
        replies.retain(|reply| !reply.as_ref().is_ok_and(|reply| of_scores(reply) && reply.client == 1));
        for reply in replies.iter_mut().flatten().filter(|reply| of_scores(reply) && [2, 3].contains(&reply.client)) {
            let mut values = reply.message.array(PUBLISHED_SCORES).unwrap().clone();
            let mut lie = values.values.to_f64();
            match reply.client {
                2 => lie[0] = 1e12,
                _ => lie.fill(0.0),
            }
            values.values = Values::F64(lie);
            reply.message.arrays.insert(PUBLISHED_SCORES.into(), values);
        }
        replies
    }

    fn at_once(&self) -> usize {
        self.0.at_once()
    }

    fn settle(&self, round: usize, counted: &[ClientId]) {
        self.0.settle(round, counted);
    }
}

#[test]
fn a_client_without_usable_scores_leaves_fewer_rows_and_an_event() {
    let text = text("fedavg", "");
    let (_, clean) = evaluated(&text, false, None).pop().unwrap();
    let (_, lossy) = evaluated(&text, false, Some(&|inside| Box::new(Unusable(inside)))).pop().unwrap();
    assert_eq!((clean.scored, lossy.scored), (Some(K), Some(K - 3)));
    let of = |event: &Event| (event.client, event.kind, event.request);
    let events: Vec<_> = lossy.events.iter().map(of).collect();
    let scores = RequestKind::Scores;
    assert_eq!(
        events,
        [(1, EventKind::Unanswered, scores), (2, EventKind::Refused, scores), (3, EventKind::Refused, scores)]
    );
    let detail = |event: usize| lossy.events[event].detail.as_deref().unwrap_or_default();
    assert!(detail(1).contains("published_scores"), "{}", detail(1));
    assert!(detail(2).contains("are of 0 rows; the client has told 6"), "{}", detail(2));
    let (Predicted::Pooled { scores: clean, .. }, Predicted::Pooled { scores: lossy, .. }) =
        (&clean.predicted, &lossy.predicted)
    else {
        panic!("the rows are at the clients")
    };
    for (client, (clean, lossy)) in clean.clients().iter().zip(lossy.clients()).enumerate() {
        let expected = if [1, 2, 3].contains(&client) { &clean.without_rows() } else { clean };
        assert_eq!(lossy, expected, "client {client}");
    }
}

/// A finished run of this config in a directory, changed into one whose test rows were at two sites: sums in the place of
/// predictions.
fn run_at_sites(text: &str, path: &Path) {
    let overrides = Overrides::default();
    let (config, resolved) = Config::load(Source { name: "test.toml", text }, &overrides).unwrap();
    let mut artifacts = Artifacts::new(path.to_owned(), false, resolved);
    let outcome = run::<Flex>(&Experiment::new(config, "data"), &Quiet, Some(&mut artifacts)).unwrap();
    drop(artifacts);
    let mut scores = Vec::new();
    match &outcome.predicted {
        Predicted::Classes { log_probs, labels, .. } => {
            let (particles, classes) = (log_probs.particles(), log_probs.classes());
            for rows in [0..11, 11..labels.len()] {
                let of = |n: usize| rows.clone().flat_map(move |row| log_probs.row(n, row));
                let values = (0..particles).flat_map(of).collect();
                let own = ParticleLogProbs::new(particles, rows.len(), classes, values).unwrap();
                let mut sums = ClientScores::of_classes(classes, 15);
                sums.add_classes(&own, &labels[rows]).unwrap();
                scores.push(sums);
            }
        }
        Predicted::Real(predictions) => {
            let mut sums = ClientScores::of_targets();
            sums.add_real(predictions).unwrap();
            scores = vec![sums.clone(), sums.without_rows()];
        }
        _ => panic!("no predictions"),
    }
    let mut all = scores[0].clone();
    all.merge(&scores[1]).unwrap();
    let site =
        |(index, (name, scores)): (usize, (&str, &ClientScores))| SiteScores::of_sums(name.into(), index, scores, None);
    let sites: Vec<SiteScores> = ["north", "south"].into_iter().zip(&scores).enumerate().map(site).collect();
    let file = path.join("summary.json");
    let mut summary: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert!(summary.get("scores").is_none() && summary.get("sites").is_none(), "the rows of this run are here");
    summary["scores"] = serde_json::to_value(&all).unwrap();
    summary["sites"] = serde_json::to_value(&sites).unwrap();
    std::fs::write(&file, summary.to_string()).unwrap();
    std::fs::rename(path.join("predictions.csv"), path.join("predictions-before.csv")).unwrap();
}

fn report_of(path: &Path, options: ReportOptions<'_>) -> Result<Option<(Value, String)>, RunError> {
    let out = path.join("new report");
    let Some(files) = Finished::open(path)?.report(&out, options)? else { return Ok(None) };
    let json = serde_json::from_str(&std::fs::read_to_string(files.json).unwrap()).unwrap();
    Ok(Some((json, std::fs::read_to_string(files.html).unwrap())))
}

#[test]
fn a_run_at_sites_has_a_report_of_their_sums_with_each_site_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [("classes", text("dsvgd", "")), ("prices", regression(dir.path()))] {
        let path = dir.path().join(name);
        run_at_sites(&text, &path);
        let evaluation = Finished::open(&path).unwrap().summary.evaluation;
        let (json, html) = report_of(&path, ReportOptions::default()).unwrap().unwrap();
        assert!(html.contains("north") && html.contains("south"));
        assert_eq!(json["run"]["sites"].as_array().unwrap().len(), 2);
        let overall = json["overall"].as_object().unwrap();
        for (metric, value) in evaluation.values().filter(|(metric, _)| overall.contains_key(metric.key)) {
            let got = &overall[metric.key];
            match value.filter(|_| metric.sums.is_some()) {
                Some(value) => assert!((got.as_f64().unwrap() - value).abs() < 1e-9, "{name}: {}", metric.key),
                None => assert!(got.is_null(), "{name}: {}", metric.key),
            }
        }
        // Beside a run that has its predictions.
        let other = dir.path().join(format!("{name} whole"));
        let (config, resolved) = Config::load(Source { name: "t", text: &text }, &Overrides::default()).unwrap();
        let mut artifacts = Artifacts::new(other.clone(), false, resolved);
        run::<Flex>(&Experiment::new(config, "data"), &Quiet, Some(&mut artifacts)).unwrap();
        for (of, with) in [(&path, &other), (&other, &path)] {
            let compare = [Finished::open(with).unwrap()];
            let (json, _) = report_of(of, ReportOptions { compare: &compare, ..Default::default() }).unwrap().unwrap();
            let bins = json["run"]["compare"][0]["bins"].as_array().unwrap();
            assert_eq!(bins.len(), if name == "classes" { 15 } else { 0 });
        }
    }
}

#[test]
fn sums_that_do_not_belong_to_the_run_and_other_bins_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    run_at_sites(&text("fedavg", ""), &path);
    let error = report_of(&path, ReportOptions { bins: Some(10), ..Default::default() }).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("--bins 10") && error.to_string().contains("15 bins"), "{error}");
    let file = path.join("summary.json");
    let summary: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let with = |scores: Value| {
        let mut summary = summary.clone();
        summary["scores"] = scores;
        std::fs::write(&file, summary.to_string()).unwrap();
        report_of(&path, ReportOptions::default())
    };
    let targets = serde_json::to_value(ClientScores::of_targets()).unwrap();
    let error = with(targets).unwrap_err().to_string();
    assert!(error.contains("summary.json") && error.contains("a regression") && error.contains("2 classes"), "{error}");
    let mut values = summary["scores"].clone();
    values["values"][0] = json!(1e9);
    let error = with(values).unwrap_err().to_string();
    assert!(error.contains("summary.json") && error.contains("expected 1000000000"), "{error}");
    // Where no site sent scores, there is nothing to report on.
    let none = serde_json::to_value(ClientScores::of_classes(2, 15)).unwrap();
    assert!(with(none).unwrap().is_none());
}
