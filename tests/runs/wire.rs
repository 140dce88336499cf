//! Runs whose messages are sent in another precision: what arrives, its bytes, and what clients keep of it.

use std::sync::{Arc, Mutex};

use fedstein::array::Values;
use fedstein::backend::Precision;
use fedstein::checkpoint::codec;
use fedstein::error::RunError;
use fedstein::federation::event::Event;
use fedstein::federation::fleet::Fleet;
use fedstein::protocol::{ClientId, Message, Reply, Request, Watch};

use crate::common::place::{Place, numbers};
use crate::common::{SILENT, outcome, small_digits};
use crate::faults::harness::*;

fn wire(word: &str) -> String {
    format!("[federation]\nwire = \"{word}\"\n")
}

/// The algorithms whose messages can be sent in 16 bits, and have arrays.
fn halved() -> impl Iterator<Item = &'static str> {
    federated().into_iter().filter(|kind| !["pvi", SILENT].contains(kind))
}

/// A fleet that records the replies and checks that everything that it delivers has at most this many bits: f32 has 23
/// after the first, of which `unused` are 0.
struct Checked<'a> {
    inside: &'a Inside,
    unused: u32,
    replies: Replies,
}

type Replies = Arc<Mutex<Vec<Reply>>>;

impl Checked<'_> {
    fn check(&self, message: &Message) {
        for (name, array) in &message.arrays {
            let Values::F32(values) = &array.values else { panic!("\"{name}\" is not in the run's precision") };
            let rounded = values.iter().all(|value| value.to_bits() & ((1 << self.unused) - 1) == 0);
            assert!(rounded && values.iter().all(|value| value.is_finite()), "{name}: {values:?}");
        }
    }
}

impl Fleet for Checked<'_> {
    fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>> {
        for request in requests {
            self.check(&request.message);
            assert_eq!(request.state, request.message.fingerprint(), "the fingerprint is that of what arrives");
        }
        let replies = self.inside.dispatch(requests, watch);
        for reply in replies.iter().flatten() {
            self.check(&reply.message);
            self.replies.lock().unwrap().push(reply.clone());
        }
        replies
    }

    fn events(&self) -> Vec<Event> {
        self.inside.events()
    }

    fn settle(&self, round: usize, counted: &[ClientId]) {
        self.inside.settle(round, counted);
    }
}

/// A run over a [`Checked`] fleet, and all its replies.
fn checked(text: &str, unused: u32) -> (Log, Vec<Reply>) {
    let all = Replies::default();
    let replies = all.clone();
    let (log, end) =
        serve_over(text, None, Some(&move |inside| Box::new(Checked { inside, unused, replies: replies.clone() })));
    end.unwrap();
    let replies = all.lock().unwrap().clone();
    (log, replies)
}

/// The elements of an array of a message.
fn elements(message: &Message, name: &str) -> Vec<f64> {
    message.arrays[name].values.to_f64()
}

/// The elements of an array that a client keeps after the last round.
fn kept(log: &Log, client: ClientId, name: &str) -> Vec<f64> {
    codec::decode(&log.clients[client]).unwrap().array(name).unwrap().values.to_f64()
}

#[test]
fn with_16_bits_every_algorithm_sends_half_the_bytes_and_nothing_but_rounded_values() {
    let hip = |text: String| text.replace("schedule = { clients = 1 }", "schedule = { kind = \"hip\" }");
    for (kind, change) in halved().map(|kind| (kind, None)).chain([("dsvgd", Some(hip))]) {
        let of = |more: &str| change.iter().fold(text(kind, more), |text, change| change(text));
        let full = works(&of(""));
        for (word, unused) in [("f16", 13), ("bf16", 16)] {
            let what = format!("{kind} in {word}");
            let (log, _) = checked(&of(&wire(word)), unused);
            log.assert_finite(&what);
            assert!(log.states != full.states, "{what}");
            assert!(full.rounds[0].uplink_bytes > 0 && log.rounds.len() == full.rounds.len());
            for (half, whole) in log.rounds.iter().zip(&full.rounds) {
                assert_eq!(
                    (2 * half.uplink_bytes, 2 * half.downlink_bytes),
                    (whole.uplink_bytes, whole.downlink_bytes)
                );
            }
        }
    }
}

#[test]
fn rounds_csv_has_half_the_bytes_and_a_prediction_of_almost_the_same_quality() {
    for kind in ["dsvgd", "fedavg", "newton-dsvgd"] {
        let place = Place::new();
        for word in ["full", "f16", "bf16"] {
            let line = "train --quiet --set rounds=4 --set partition.clients=4 --set model.hidden=[20]";
            place.works(&format!("{line} --set algorithm.kind={kind} --set federation.wire={word} --out {word}"));
            assert!(place.text(&format!("{word}/config.toml")).contains(&format!("wire = \"{word}\"")));
        }
        let column = |word: &str, name: &str| {
            let table = place.table(&format!("{word}/rounds.csv"));
            let at = table[0].iter().position(|column| column == name).unwrap();
            numbers(&table[1..].iter().map(|row| row[at].clone()).collect::<Vec<_>>())
        };
        for word in ["f16", "bf16"] {
            for name in ["uplink_bytes", "downlink_bytes"] {
                let twice: Vec<f64> = column(word, name).iter().map(|bytes| 2.0 * bytes).collect();
                assert_eq!(twice, column("full", name), "{kind}, {word}: {name}");
            }
            // The loose bound of a rounding error: a parameter changes by 2⁻⁸ of itself at most.
            let gap = (column(word, "nll")[3] - column("full", "nll")[3]).abs();
            println!("{kind}, {word}: the NLL differs by {gap:.4}");
            assert!(gap < 0.05, "{kind}, {word}: {gap}");
        }
    }
}

#[test]
fn f32_changes_nothing_in_a_run_of_that_precision_and_halves_what_was_in_f64() {
    for kind in halved() {
        assert!(works(&text(kind, "")).states == works(&text(kind, &wire("f32"))).states, "{kind}");
    }
    // The bytes of each round, up and down, of a run in this precision with these keys of the algorithm.
    let bytes = |precision: Precision, algorithm: &str| {
        let mut experiment = small_digits(3, &format!("[algorithm]\n{algorithm}"));
        experiment.config.precision = precision;
        let rounds = outcome(&experiment).rounds;
        rounds.iter().map(|round| (round.uplink_bytes, round.downlink_bytes)).collect::<Vec<_>>()
    };
    let times = |by: u64, of: Vec<(u64, u64)>| of.iter().map(|(up, down)| (by * up, by * down)).collect::<Vec<_>>();
    // Natural parameters are computed in f64 in every run.
    let pvi =
        |word: &str| bytes(Precision::F32, &format!("kind = \"pvi\"\nparticles = 3\nlocal_steps = 3\n{}", wire(word)));
    assert_eq!(times(2, pvi("f32")), pvi("full"));
    let double = |word: &str| bytes(Precision::F64, &format!("kind = \"fedavg\"\nlocal_steps = 3\n{}", wire(word)));
    assert_eq!((times(2, double("f32")), times(4, double("f16"))), (double("full"), double("full")));
}

#[test]
fn what_a_client_keeps_of_its_reply_is_what_the_server_received() {
    let personal = format!("{}[evaluation]\npersonal = true\n", wire("bf16"));
    for (kind, name) in
        [("dsvgd", "uploaded"), ("u-dsvgd", "uploaded"), ("newton-dsvgd", "uploaded"), ("p-dsvgd", "factor")]
    {
        let (log, replies) = checked(&text(kind, &personal), 16);
        for client in 0..K {
            let last = replies.iter().rev().find(|reply| reply.client == client).unwrap();
            assert_eq!(kept(&log, client, name), elements(&last.message, "particles"), "{kind}, client {client}");
        }
    }
}

#[test]
fn scaffolds_control_variates_are_the_sums_of_the_changes_that_the_server_received() {
    let (log, replies) = checked(&text("scaffold", &wire("bf16")), 16);
    for client in 0..K {
        let changes = replies.iter().filter(|reply| reply.client == client);
        let changes: Vec<Vec<f64>> = changes.map(|reply| elements(&reply.message, "control")).collect();
        assert!(!changes.is_empty());
        // The client adds in f32, in the order of its visits.
        let sum = |at: usize| changes.iter().fold(0.0f32, |sum, change| sum + change[at] as f32);
        let want: Vec<f64> = (0..changes[0].len()).map(|at| f64::from(sum(at))).collect();
        assert_eq!(kept(&log, client, "control"), want, "client {client}");
    }
}

#[test]
fn gradients_and_curvatures_beyond_the_range_of_f16_stay_finite() {
    // The likelihood counts a million times, and with it the gradients and curvatures of the sites.
    let text = text("newton-dsvgd", &wire("f16"))
        .replace("kind = \"newton-dsvgd\"", "kind = \"newton-dsvgd\"\ntemperature = 0.000001");
    let (log, replies) = checked(&text, 13);
    log.assert_finite("newton-dsvgd");
    for name in ["gradient", "curvature"] {
        let largest =
            |reply: &Reply| elements(&reply.message, name).iter().fold(0.0f64, |top, value| top.max(value.abs()));
        assert!(replies.iter().map(largest).fold(0.0, f64::max) > 65504.0, "{name}: no element is beyond f16");
    }
}
