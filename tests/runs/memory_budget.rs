//! Clients whose states are on the disk between rounds (`federation.memory_mib`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fedstein::backend::{AnyBackend, Flex};
use fedstein::federation::faults::Fault;
use fedstein::federation::fleet::InProcess;
use fedstein::federation::parked::Parking;
use fedstein::protocol::ClientId;
use tempfile::TempDir;

use crate::common::{bits, experiment, outcome};
use crate::faults::harness::{K, Log, faults, federated, halves_of, serve, serve_fleet, text};

/// The run of a config with this many bytes for the clients' states, and how often a client was built.
fn parked(text: &str, budget: u64) -> (Log, usize) {
    let (dir, built) = (TempDir::new().unwrap(), Arc::new(AtomicUsize::new(0)));
    let states = dir.path().join("states");
    let (owned, counter) = (text.to_owned(), built.clone());
    let build = move |client: ClientId| {
        counter.fetch_add(1, Ordering::Relaxed);
        halves_of(&owned, |id| id == client).into_client(client)
    };
    let fleet = InProcess::parked(K, Parking::new(build, states.clone(), budget).unwrap(), AnyBackend::of::<Flex>());
    let (log, end) = serve_fleet(text, (halves_of(text, |_| false).server, fleet), None, None);
    end.unwrap();
    assert!(!states.exists(), "the directory of the states is left");
    (log, built.load(Ordering::Relaxed))
}

/// Asserts that the server's messages after every round and the clients' states at the end have the same bits.
fn compare(kind: &str, more: &str) {
    let text = text(kind, more);
    let (expected, end) = serve(&text, None);
    end.unwrap();
    // Without room for any client, with room for about two, and for all.
    for budget in [0, 10_000, u64::MAX] {
        let (log, built) = parked(&text, budget);
        assert!(log.states == expected.states, "{kind}, {budget} bytes: the server's states differ");
        assert!(log.clients == expected.clients, "{kind}, {budget} bytes: the clients' states differ");
        match budget {
            0 => assert!(built > K, "{kind}: {built} built, so all have stayed in memory"),
            u64::MAX => assert_eq!(built, K, "{kind}"),
            _ => {}
        }
    }
}

#[test]
fn every_method_has_the_same_bits_with_the_states_on_the_disk() {
    for kind in federated() {
        compare(kind, "");
    }
}

#[test]
fn so_it_has_where_visits_do_not_count() {
    for kind in ["p-dsvgd", "scaffold", "newton-dsvgd", "fedwba"] {
        compare(kind, &faults(Fault::LostReply, "share = 0.5"));
    }
}

/// A run by the key: clients of half a MiB each, and room for two of them.
#[test]
fn the_key_changes_no_bit_of_a_run() {
    let run = |mib: usize| {
        let text = text("p-dsvgd", &format!("[federation]\nmemory_mib = {mib}"));
        let text = text.replace("hidden = [3]", "hidden = [300]").replace("particles = 4", "particles = 20");
        bits(&outcome(&experiment(&text)))
    };
    assert_eq!(run(0), run(1));
}
