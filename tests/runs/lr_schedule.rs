//! Step sizes that change over the rounds.

use fedstein::backend::Flex;
use fedstein::experiment::schema::{Overrides, Source};
use fedstein::experiment::{Config, Outcome};

use crate::common::{algorithms_that, bits, experiment, outcome, values};
use crate::faults::harness::text;

/// The outcome of so many rounds of the method.
fn run(kind: &str, rounds: usize, more: &str) -> Outcome<Flex> {
    let mut experiment = experiment(&text(kind, more));
    experiment.config.rounds = rounds;
    outcome(&experiment)
}

/// Half the step size in every further round.
const HALVED: &str = "[lr_schedule]\nkind = \"step\"\nrounds = 1\nfactor = 0.5";

#[test]
fn every_method_follows_the_schedule_of_the_step_size_or_refuses_it() {
    let (follow, refuse) = (algorithms_that(|can| can.scheduled_steps), algorithms_that(|can| !can.scheduled_steps));
    assert!(follow.len() > 10 && refuse.len() > 3, "{follow:?} {refuse:?}");
    for kind in follow {
        let particles = |rounds, more| bits(&run(kind, rounds, more));
        assert_eq!(particles(1, HALVED), particles(1, ""), "{kind}: the first round has the factor 1");
        assert_ne!(particles(2, HALVED), particles(2, ""), "{kind}: the second round has not");
        // A factor of 1 for longer than the run changes no bit.
        let later = HALVED.replace("rounds = 1", "rounds = 9");
        assert_eq!(particles(2, &later), particles(2, ""), "{kind}");
    }
    for kind in refuse {
        let text = text(kind, HALVED);
        let error = Config::load(Source { name: "test.toml", text: &text }, &Overrides::default()).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("lr_schedule.kind") && said.contains(kind), "{said}");
    }
}

/// θ + ε g: one step of all clients on all their rows moves their mean by the step size times the mean gradient.
#[test]
fn a_plain_step_is_shorter_by_the_factor_of_its_round() {
    let fedavg = |rounds, schedule: &str| {
        let text = text("fedavg", schedule)
            .replace("lr = 0.01", "kind = \"sgd\"\nlr = 0.125")
            .replace("local_steps = 3", "local_steps = 1")
            .replace("batch = 8", "batch = 4096")
            .replace("schedule = { clients = 5 }", "schedule = { clients = 10 }");
        let mut experiment = experiment(&text);
        experiment.config.rounds = rounds;
        values(&outcome(&experiment).particles)
    };
    let (first, plain, cosine) =
        (fedavg(1, ""), fedavg(2, ""), fedavg(2, "[lr_schedule]\nkind = \"cosine\"\nrounds = 1\nend = 0.25"));
    let mut moved = 0.0f64;
    for ((first, plain), cosine) in first.iter().zip(&plain).zip(&cosine) {
        let (whole, quarter) = (plain - first, cosine - first);
        assert!((quarter - 0.25 * whole).abs() < 1e-6, "{quarter} is not a quarter of {whole}");
        moved = moved.max(whole.abs());
    }
    assert!(moved > 1e-3, "a step of {moved} tells little");
}
