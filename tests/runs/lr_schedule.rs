//! Step sizes that change over the rounds.

use fedstein::experiment::schema::{Overrides, Source};
use fedstein::experiment::{Config, Outcome};

use crate::common::{SILENT, algorithms_that, bits, experiment, outcome, values};
use crate::faults::harness::text;

/// The outcome of so many rounds of the method.
fn run(kind: &str, rounds: usize, more: &str) -> Outcome {
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
    for kind in follow.into_iter().filter(|kind| *kind != SILENT) {
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

#[test]
fn a_round_whose_step_size_vanishes_moves_nothing() {
    // Where the server takes steps of its own, and DSVGD and FedAvg, where only clients do.
    let vanishing = HALVED.replace("0.5", "1e-30");
    for kind in ["p-dsvgd", "fedsgd", "newton-dsvgd", "dsvgd", "fedavg"] {
        let theta = |rounds, more| values(&run(kind, rounds, more).particles);
        let (first, second, still) = (theta(1, ""), theta(2, ""), theta(2, &vanishing));
        let moved = |to: &[f64]| first.iter().zip(to).fold(0.0f64, |most, (from, to)| most.max((from - to).abs()));
        // A mean over clients in f32 rounds numbers of order 1.
        assert!(moved(&still) < 1e-6, "{kind}: {}", moved(&still));
        assert!(moved(&second) > 1e-3, "{kind}: a step of {} tells little", moved(&second));
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
