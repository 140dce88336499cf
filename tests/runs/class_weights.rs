//! Rows that count more or less than once in the clients' likelihoods.

use fedstein::experiment::Config;
use fedstein::experiment::schema::{Overrides, Source};

use crate::common::{SILENT, algorithms_that, bits, data, experiment, outcome, partition_of};
use crate::faults::harness::text;

fn weighted(kind: &str) -> String {
    let text = text(kind, "");
    let data = "test_fraction = 0.33333 }";
    assert!(text.contains(data));
    text.replace(data, "test_fraction = 0.33333, class_weights = \"balanced\" }")
}

#[test]
fn every_method_weighs_its_rows_or_refuses_to() {
    let (weigh, refuse) = (algorithms_that(|can| can.weighted_rows), algorithms_that(|can| !can.weighted_rows));
    assert!(weigh.len() > 10 && !refuse.is_empty(), "{weigh:?} {refuse:?}");
    // The method that sends nothing moves no particles at the server.
    for kind in weigh.into_iter().filter(|kind| *kind != SILENT) {
        let config = &experiment(&text(kind, "")).config;
        let counts = partition_of(config).counts(&data(config).train.targets);
        let of_class = |class: usize| counts.iter().map(|client| client[class]).sum::<usize>();
        assert_ne!(of_class(0), of_class(1), "the test needs classes of unlike sizes");
        let particles = |text: &str| {
            let mut experiment = experiment(text);
            experiment.config.rounds = 2;
            bits(&outcome(&experiment))
        };
        assert_ne!(particles(&weighted(kind)), particles(&text(kind, "")), "{kind}");
    }
    for kind in refuse {
        let text = weighted(kind);
        let error = Config::load(Source { name: "test.toml", text: &text }, &Overrides::default()).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("data.class_weights") && said.contains(kind), "{said}");
    }
}
