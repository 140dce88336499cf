//! Two thousand rounds in one process: memory does not grow but for the record of each round.

use std::sync::Mutex;

use crate::common::experiment;
use crate::{alone, resident};
use fedstein::backend::Flex;
use fedstein::experiment::progress::Observer;
use fedstein::experiment::{RoundRecord, run};
use fedstein::protocol::ClientId;

/// Resident size at the beginning of some rounds.
#[derive(Default)]
struct Sizes(Mutex<Vec<(usize, u64)>>);

impl Observer for Sizes {
    fn started(&self, _rounds: usize, _note: &str) {}
    fn step(&self, _done: usize, _total: usize) {}
    fn finished_round(&self, _record: &RoundRecord) {}
    fn finished(&self) {}
    fn note(&self, _note: &str) {}

    fn round(&self, round: usize, _clients: &[ClientId]) {
        if let (100 | 2000, Some(bytes)) = (round, resident()) {
            self.0.lock().unwrap().push((round, bytes));
        }
    }
}

/// All allocations that happen once, such as those of the first evaluation (round 50), are over by round 100.
#[test]
fn two_thousand_rounds_leave_memory_flat() {
    let text = r#"
        name = "soak"
        rounds = 2000
        [data]
        kind = "digits"
        [partition]
        kind = "iid"
        clients = 4
        [model]
        hidden = [8]
        [algorithm]
        kind = "dsvgd"
        particles = 4
        local_steps = 2
        distill_steps = 2
        batch = 20
        [evaluation]
        every = 50
    "#;
    let _alone = alone();
    let sizes = Sizes::default();
    let outcome = run::<Flex>(&experiment(text), &sizes, None).unwrap();
    assert_eq!(outcome.rounds.len(), 2000);
    let sizes = sizes.0.into_inner().unwrap();
    let [(100, early), (2000, late)] = sizes[..] else {
        println!("skipped: this system does not report a process's resident size");
        return;
    };
    println!("resident: {early} bytes in round 100, {late} in round 2000");
    // The record of a round takes some 600 bytes; the particles of one client take 10 kB.
    assert!(late <= early + 1900 * 1024, "grown from {early} to {late} bytes");
}
