//! A client selection of a program's own: it runs like one of the config's, what it selects is checked, and it resumes.

use fedstein::backend::Flex;
use fedstein::checkpoint::{CheckpointError, State};
use fedstein::error::RunError;
use fedstein::experiment::{
    Artifacts, Config, ConfigLoader, Experiment, Observer, Outcome, Overrides, Quiet, Source, run,
};
use fedstein::protocol::{ClientId, Question};
use fedstein::rows::Rows;
use fedstein::schedule::{Indicators, OwnSelection, Schedule, Selection};
use fedstein::stein::{Bandwidth, Kernel};

use crate::common::values;

/// What a rule selects in a round, from the number of its earlier rounds; it may ask a question.
struct Rule<F> {
    earlier: usize,
    select: F,
    asks: bool,
}

impl<F: Fn(usize, Option<&Indicators>) -> Vec<ClientId> + Send> Schedule for Rule<F> {
    fn question(&self) -> Option<Question> {
        let kernel = Kernel::Rbf(Bandwidth::default());
        self.asks.then_some(Question::Discrepancy { kernel, rows: Rows::Full })
    }

    fn select(&mut self, _round: usize, indicators: Option<&Indicators>) -> Result<Selection, RunError> {
        self.earlier += 1;
        Ok((self.select)(self.earlier, indicators).into())
    }

    fn save(&self) -> State {
        State::default().with_count("earlier", self.earlier)
    }

    fn restore(&mut self, state: &State) -> Result<(), CheckpointError> {
        self.earlier = state.count("earlier")?;
        Ok(())
    }
}

/// The clients of a round, from the number of this round and the answers to the question.
type Select = fn(usize, Option<&Indicators>) -> Vec<ClientId>;

fn rule(asks: bool, select: Select) -> OwnSelection {
    named("mine", asks, select)
}

fn named(name: &str, asks: bool, select: Select) -> OwnSelection {
    OwnSelection::new(name, move |_| Box::new(Rule { earlier: 0, select, asks }))
}

fn text(algorithm: &str, schedule: &str) -> String {
    format!(
        "name = \"own\"\nrounds = 5\n[data]\nkind = \"twonorm\"\nrows = 200\n[partition]\nclients = 4\n[model]\nkind = \"blr\"\n\
         [algorithm]\nkind = \"{algorithm}\"\nlocal_steps = 3\n[schedule]\n{schedule}"
    )
}

fn experiment(algorithm: &str, schedule: &str) -> Experiment {
    let text = text(algorithm, schedule);
    let (config, _) = Config::load(Source { name: "own", text: &text }, &Overrides::default()).unwrap();
    Experiment::new(config, "data")
}

fn essence(outcome: &Outcome) -> (Vec<u64>, Vec<Vec<ClientId>>) {
    let clients = outcome.rounds.iter().map(|round| round.clients.clone()).collect();
    (values(&outcome.particles).into_iter().map(f64::to_bits).collect(), clients)
}

#[test]
fn a_selection_that_selects_like_one_of_the_config_has_its_bits() {
    let two = "clients = 2";
    let here = run::<Flex>(&experiment("fedavg", two), &Quiet, None).unwrap();
    let own = rule(false, |round, _| [2 * round - 2, 2 * round - 1].map(|turn| turn % 4).to_vec());
    let there = run::<Flex>(&experiment("fedavg", two).with_selection(own), &Quiet, None).unwrap();
    assert_eq!(essence(&here), essence(&there));
}

#[test]
fn a_selection_may_ask_the_clients_and_take_the_one_with_the_largest_discrepancy() {
    let largest = |_: usize, indicators: Option<&Indicators>| {
        let values = &indicators.unwrap().values;
        vec![(0..4).max_by(|a, b| values[*a].total_cmp(&values[*b])).unwrap()]
    };
    let outcome =
        run::<Flex>(&experiment("newton-dsvgd", "").with_selection(rule(true, largest)), &Quiet, None).unwrap();
    let (_, clients) = essence(&outcome);
    assert!(
        clients.iter().all(|round| round.len() == 1) && clients.iter().any(|round| *round != clients[0]),
        "{clients:?}"
    );
}

#[test]
fn what_cannot_be_selected_ends_the_run_with_the_name_of_the_selection() {
    let wrong: [(Select, &str); 4] = [
        (|_, _| vec![4], "selects client 4 of 4, counted from 0"),
        (|_, _| vec![1, 1], "selects client 1 twice"),
        (|_, _| Vec::new(), "selects no client"),
        (|_, _| vec![0, 1, 2], "selects 3 clients, and `schedule.clients` is 2"),
    ];
    for (select, words) in wrong {
        let experiment = experiment("fedavg", "clients = 2").with_selection(rule(false, select));
        let error = run::<Flex>(&experiment, &Quiet, None).unwrap_err().to_string();
        assert!(error.contains("round 1: the client selection `mine`") && error.contains(words), "{error}");
    }
    let none = |_: usize, _: Option<&Indicators>| vec![0];
    for (algorithm, asks, words) in [
        ("svgd", false, "algorithm kind `svgd` has all rows in one place"),
        ("dsgld", false, "chooses the clients of a round itself"),
        ("fedavg", true, "has no tilted densities"),
    ] {
        let experiment = experiment(algorithm, "").with_selection(rule(asks, none));
        let error = run::<Flex>(&experiment, &Quiet, None).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_selection_takes_the_place_of_a_kind_that_the_algorithm_does_not_know_and_has_a_name_of_its_own() {
    let text = text("fedavg", "kind = \"ksd\"");
    let source = || Source { name: "own", text: &text };
    assert!(Config::load(source(), &Overrides::default()).is_err());
    let (config, _) = ConfigLoader::default().with_selection().load(source(), &Overrides::default()).unwrap();
    let with = |name: &str| {
        let own = named(name, false, |round, _| vec![round % 4]);
        run::<Flex>(&Experiment::new(config.clone(), "data").with_selection(own), &Quiet, None)
    };
    assert!(with("mine-2").is_ok());
    for name in ["", "ksd", "Mine", "a b", "a\nb"] {
        let error = with(name).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("Experiment::with_selection: the"), "{error}");
    }
}

/// Ends a run after its second round.
struct Stops;

impl Observer for Stops {
    fn started(&self, _: usize, _: &str) {}
    fn round(&self, _: usize, _: &[usize]) {}
    fn step(&self, _: usize, _: usize) {}
    fn finished_round(&self, _: &fedstein::experiment::RoundRecord) {}
    fn finished(&self) {}

    fn wants_to_stop(&self) -> bool {
        true
    }
}

#[test]
fn a_run_resumes_with_its_selection_alone_and_to_the_same_bits() {
    // It depends on what it has done before, which a round's number alone would not tell.
    let own = || rule(false, |earlier, _| vec![(earlier * earlier) % 4]);
    let whole = run::<Flex>(&experiment("fedavg", "").with_selection(own()), &Quiet, None).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let text = text("fedavg", "");
    let (_, resolved) = Config::load(Source { name: "own", text: &text }, &Overrides::default()).unwrap();
    let stopped = {
        let mut artifacts = Artifacts::new(path.clone(), false, resolved.clone());
        run::<Flex>(&experiment("fedavg", "").with_selection(own()), &Stops, Some(&mut artifacts)).unwrap_err()
    };
    assert!(matches!(stopped, RunError::Interrupted { round: 1, .. }), "{stopped}");
    let resumed = || Artifacts::resume(path.clone(), resolved.clone(), &mut |_| {}).unwrap();
    let error = run::<Flex>(&experiment("fedavg", ""), &Quiet, Some(&mut resumed())).unwrap_err().to_string();
    assert!(error.contains("a client selection of its own, `mine`") && error.contains("with_selection"), "{error}");
    let other = named("other", false, |_, _| vec![0]);
    let experiment_of_other = experiment("fedavg", "").with_selection(other);
    let error = run::<Flex>(&experiment_of_other, &Quiet, Some(&mut resumed())).unwrap_err().to_string();
    assert!(error.contains("the client selection `mine`, and Experiment::with_selection brings `other`"), "{error}");
    let experiment = experiment("fedavg", "").with_selection(own());
    let outcome = run::<Flex>(&experiment, &Quiet, Some(&mut resumed())).unwrap();
    assert_eq!(essence(&outcome), essence(&whole));
}
