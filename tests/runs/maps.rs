//! What clients answer where vector scaling or isotonic regression is fitted: together, that of all rows at one client.

use std::collections::BTreeMap;

use fedstein::array::{Array, Values};
use fedstein::backend::{AnyBackend, Flex, Precision, Session};
use fedstein::datasets::Dataset;
use fedstein::experiment::Config;
use fedstein::federation::client_evaluator::ClientEvaluator;
use fedstein::federation::fleet::{Fleet, InProcess};
use fedstein::federation::held_out::{CalibrationRows, HeldOut};
use fedstein::metrics::Scale;
use fedstein::protocol::calibrating::{CLASSES, GRID_COUNTS, MAP, NLLS, NUMBERS, SUMS};
use fedstein::protocol::{Ask, Calibrating, Message, Request, map_array};
use fedstein::report::maps::{IsotonicMap, MapKind, ProbabilityMap};
use fedstein::rows::Table;

use crate::common::{data, experiment};
use crate::faults::harness::*;

const CLIENTS: usize = K;

/// Clients of a run of which each has these calibration rows, and the message with the first particles.
fn clients(config: &Config, text: &str, of_client: Vec<Vec<usize>>) -> (InProcess<'static>, Message) {
    let session = Session::open::<Flex>(Precision::F32).unwrap();
    let all = data(config);
    let held = |data: &Dataset, rows: Vec<Vec<usize>>| HeldOut {
        groups: data.groups.clone(),
        targets: data.targets.clone(),
        table: Table::new(data.clone(), &all.normalisation),
        rows,
    };
    let none = vec![Vec::new(); CLIENTS];
    let evaluator = ClientEvaluator {
        model: config.model(&all.train).unwrap(),
        session,
        test: held(&all.test, none.clone()),
        validation: held(&all.train, none),
        calibration: CalibrationRows::new(held(&all.train, of_client)),
        corrections: BTreeMap::new(),
        scale: Scale::IDENTITY,
        // Every row is predicted by itself, so that it has the same bits wherever it is.
        chunk: 1,
        bins: 15,
    };
    let halves = halves(text);
    let published = halves.server.publish().unwrap();
    (InProcess::new(halves.clients, AnyBackend::of::<Flex>()).with_evaluator(evaluator), published)
}

/// The numbers of this name that each client answers.
fn answers(fleet: &dyn Fleet, message: &Message, what: Calibrating, name: &str, of: &[usize]) -> Vec<Vec<f64>> {
    let request = |client: &usize| Request::new(1, *client, Ask::Calibrate(what), message.clone());
    let requests: Vec<Request> = of.iter().map(request).collect();
    let replies = fleet.dispatch(&requests, &|_, _| {});
    replies.into_iter().map(|reply| reply.unwrap().message.array(name).unwrap().values.to_f64()).collect()
}

fn sum(answers: &[Vec<f64>]) -> Vec<f64> {
    (0..answers[0].len()).map(|at| answers.iter().map(|of| of[at]).sum()).collect()
}

#[test]
fn clients_together_answer_what_one_client_with_all_their_rows_does() {
    let text = text("dsvgd", "");
    let config = experiment(&text).config;
    let rows: Vec<usize> = (0..60).collect();
    let parts: Vec<Vec<usize>> =
        (0..CLIENTS).map(|client| rows.iter().copied().filter(|row| row * 7 % CLIENTS == client).collect()).collect();
    let mut whole = vec![Vec::new(); CLIENTS];
    whole[0] = rows;
    let (apart, published) = clients(&config, &text, parts);
    let (together, _) = clients(&config, &text, whole);
    let everyone: Vec<usize> = (0..CLIENTS).collect();
    let both = |message: &Message, what: Calibrating, name: &str| {
        let one = answers(&together, message, what, name, &[0]);
        (sum(&answers(&apart, message, what, name, &everyone)), one[0].clone())
    };
    // Counts are equal, and so is the function that is fitted from them.
    let (counts, want) = both(&published, Calibrating::Classes, CLASSES);
    assert_eq!((counts.iter().sum::<f64>(), counts), (60.0, want));
    let (counts, want) = both(&published, Calibrating::Grid, GRID_COUNTS);
    assert_eq!(counts, want);
    assert_eq!(counts.iter().step_by(2).sum::<f64>(), 60.0);
    let counts: Vec<u64> = counts.into_iter().map(|count| count as u64).collect();
    let map = ProbabilityMap::Isotonic(IsotonicMap::fit(&counts, 2).unwrap());
    let with_map = published.clone().with_array(MAP, map_array(&map).unwrap());
    let numbers = Array { shape: vec![2, 2], values: Values::F64(vec![1.5, 0.5, -0.25, 0.25]) };
    let with_numbers = published.clone().with_array(NUMBERS, numbers);
    // Sums are equal up to rounding.
    for (sums, want) in
        [both(&with_numbers, Calibrating::Vector, SUMS), both(&with_map, Calibrating::Mapped(MapKind::Isotonic), NLLS)]
    {
        assert!(
            sums.iter().zip(&want).all(|(got, want)| (got - want).abs() <= 1e-12 * want.abs().max(1.0)),
            "{sums:?} {want:?}"
        );
    }
    let (nlls, _) = both(&with_map, Calibrating::Mapped(MapKind::Isotonic), NLLS);
    assert!(nlls[1] < nlls[0]);
}

#[test]
fn a_client_refuses_maps_that_cannot_be() {
    let text = text("dsvgd", "");
    let config = experiment(&text).config;
    let (fleet, published) = clients(&config, &text, vec![vec![0, 1]; CLIENTS]);
    let refusal = |message: &Message, what: Calibrating| {
        let request = Request::new(1, 0, Ask::Calibrate(what), message.clone());
        fleet.dispatch(&[request], &|_, _| {}).remove(0).unwrap_err().to_string()
    };
    let with = |name: &str, values: Vec<f64>| {
        let shape = if name == MAP { vec![values.len() / 3, 3] } else { vec![values.len()] };
        published.clone().with_array(name, Array { shape, values: Values::F64(values) })
    };
    assert!(refusal(&published, Calibrating::Vector).contains(NUMBERS));
    assert!(refusal(&with(NUMBERS, vec![1.0; 3]), Calibrating::Vector).contains("3 values, expected 4"));
    assert!(refusal(&with(NUMBERS, vec![f64::NAN; 4]), Calibrating::Vector).contains("finite"));
    let isotonic = Calibrating::Mapped(MapKind::Isotonic);
    assert!(refusal(&published, isotonic).contains(MAP));
    assert!(refusal(&with(MAP, vec![0.0, 0.5, 0.6, 0.0, 0.6, 0.5]), isotonic).contains("falls"));
    assert!(refusal(&with(MAP, vec![1.0, 0.5, 0.6]), isotonic).contains("function 1"));
    assert!(refusal(&with(MAP, vec![0.0; 3 * 4000]), isotonic).contains("larger than a map of 2 classes"));
}
