//! A visit counts as a whole or not at all: at the server, and at the client.

use fedstein::federation::event::Happening;
use fedstein::federation::faults::Fault;

use super::harness::*;

/// The algorithms whose rounds without a client are those in which it was not chosen.
fn comparable() -> impl Iterator<Item = &'static str> {
    // DSGLD's chains are assigned before anybody is lost.
    FEDERATED.into_iter().filter(|kind| *kind != "dsgld")
}

/// In what a run whose visits are disturbed differs from the run in which those clients were not asked.
fn differences(kind: &str, text: &str, clean: &str, what: Happening) -> Vec<String> {
    let disturbed = works(text);
    assert!(disturbed.count(what) > 0, "{kind}");
    let (without, end) = serve(clean, Some(disturbed.used()));
    end.unwrap();
    let clients = disturbed.clients.iter().zip(&without.clients).filter(|(a, b)| a != b).count();
    let server = disturbed.states.iter().zip(&without.states).position(|(a, b)| a != b);
    let found = [
        server.map(|round| format!("{kind}: the server from round {} on", round + 1)),
        (clients > 0).then(|| format!("{kind}: {clients} of {} clients", disturbed.clients.len())),
    ];
    found.into_iter().flatten().collect()
}

fn assert_none(differ: &[String]) {
    assert!(differ.is_empty(), "{differ:#?}");
}

/// The forms of DSVGD's factors, and optimisers that remember former visits.
const VARIANTS: [(&str, &str); 5] = [
    ("dsvgd", "factors = \"growing\""),
    ("dsvgd", "factors = \"with-prior\""),
    ("dsvgd", "factors = \"paper\""),
    ("p-dsvgd", "factors = \"growing\""),
    ("u-dsvgd", ""),
];

fn variant(kind: &str, keys: &str, more: &str) -> String {
    text(kind, more)
        .replace("[optimizer]", &format!("{keys}\n[optimizer]"))
        .replace("lr = 0.01", "lr = 0.01\nreset = \"never\"")
}

#[test]
fn a_visit_that_did_not_count_leaves_client_and_server_where_a_run_without_it_would() {
    for fault in [Fault::Straggler] {
        let what = Happening::Late;
        let disturbed = faults(fault, "share = 0.3\nprobability = 0.6");
        let plain = comparable().flat_map(|kind| differences(kind, &text(kind, &disturbed), &text(kind, ""), what));
        let variants = VARIANTS.iter().flat_map(|(kind, keys)| {
            differences(&format!("{kind} {keys}"), &variant(kind, keys, &disturbed), &variant(kind, keys, ""), what)
        });
        assert_none(&plain.chain(variants).collect::<Vec<_>>());
    }
}
