//! A visit counts as a whole or not at all: at the server, and at the client.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use fedstein::error::RunError;
use fedstein::federation::event::{Event, EventKind};
use fedstein::federation::faults::Fault;
use fedstein::federation::fleet::Fleet;
use fedstein::protocol::{Ask, ClientId, Reply, Request, Watch};

use super::harness::*;

/// The differences of a run with disturbed visits from the run in which those clients got no request.
fn differences(kind: &str, text: &str, clean: &str, what: EventKind) -> Vec<String> {
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
const VARIANTS: [(&str, &str); 4] =
    [("dsvgd", "factors = \"with-prior\""), ("dsvgd", "factors = \"paper\""), ("p-dsvgd", ""), ("u-dsvgd", "")];

fn variant(kind: &str, keys: &str, more: &str) -> String {
    text(kind, more)
        .replace("[optimizer]", &format!("{keys}\n[optimizer]"))
        .replace("lr = 0.01", "lr = 0.01\nreset = \"never\"")
}

#[test]
fn a_visit_that_did_not_count_has_no_effect_on_client_and_server() {
    for (fault, what) in [(Fault::Straggler, EventKind::Late), (Fault::LostReply, EventKind::Unanswered)] {
        let disturbed = faults(fault, "share = 0.3\nprobability = 0.6");
        let plain = comparable().flat_map(|kind| differences(kind, &text(kind, &disturbed), &text(kind, ""), what));
        let variants = VARIANTS.iter().flat_map(|(kind, keys)| {
            differences(&format!("{kind} {keys}"), &variant(kind, keys, &disturbed), &variant(kind, keys, ""), what)
        });
        assert_none(&plain.chain(variants).collect::<Vec<_>>());
    }
}

#[test]
fn a_lost_reply_is_a_lost_request() {
    // The disturbed clients do not depend on the kind of fault: both runs lose the same visits, DSGLD's too.
    for kind in federated() {
        let run = |fault| works(&text(kind, &faults(fault, "share = 0.4\nprobability = 0.5")));
        let (request, reply) = (run(Fault::Dropout), run(Fault::LostReply));
        assert!(reply.count(EventKind::Unanswered) > 0 && request.used() == reply.used(), "{kind}");
        assert!(request.states == reply.states && request.clients == reply.clients, "{kind}");
        let bytes =
            |log: &Log| log.rounds.iter().map(|round| round.numbers.get("client_bytes").copied()).collect::<Vec<_>>();
        assert_eq!(bytes(&request), bytes(&reply), "{kind}");
    }
}

#[test]
fn a_refused_visit_is_rolled_back_too() {
    for kind in comparable() {
        // With backoff 0 no client is skipped, so that only the script differs.
        let disturbed = format!("{}backoff = 0", faults(Fault::Nan, "share = 0.3\nprobability = 0.6"));
        assert_none(&differences(kind, &text(kind, &disturbed), &text(kind, ""), EventKind::Refused));
    }
}

/// A fleet that does not inform its clients which visits counted.
struct Remote<'a>(&'a Inside);

impl Fleet for Remote<'_> {
    fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>> {
        self.0.dispatch(requests, watch)
    }

    fn events(&self) -> Vec<Event> {
        self.0.events()
    }
}

#[test]
fn clients_without_the_end_of_a_round_learn_it_from_their_next_request() {
    for kind in federated() {
        let disturbed = text(kind, &faults(Fault::LostReply, "share = 0.5\nprobability = 0.5"));
        let disturbed = disturbed.replace("rounds = 5", "rounds = 12");
        let local = works(&disturbed);
        let (remote, end) = serve_over(&disturbed, None, Some(&|inside| Box::new(Remote(inside))));
        end.unwrap();
        assert!(remote.count(EventKind::Unanswered) > 0 && remote.states == local.states, "{kind}");
    }
}

/// Every training request reaches its client twice, and the second reply is the one that is used.
struct Twice<'a>(&'a Inside);

impl Fleet for Twice<'_> {
    fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>> {
        let steps = AtomicUsize::new(0);
        drop(self.0.dispatch(requests, watch));
        let again = self.0.dispatch(requests, &|_, _| {
            steps.fetch_add(1, Relaxed);
        });
        assert!(requests.iter().any(|request| request.ask != Ask::Train) || steps.into_inner() == 0);
        again
    }

    fn settle(&self, round: usize, counted: &[ClientId]) {
        self.0.settle(round, counted);
    }
}

#[test]
fn a_repeated_request_has_the_same_reply_without_further_training() {
    for kind in federated().into_iter().chain(centralised()) {
        let once = works(&text(kind, ""));
        let (twice, end) = serve_over(&text(kind, ""), None, Some(&|inside| Box::new(Twice(inside))));
        end.unwrap();
        assert!(once.states == twice.states && once.clients == twice.clients, "{kind}");
    }
}

#[test]
fn a_repeated_round_has_the_reply_that_came_too_late() {
    // The only client is asked again in its round: the steps that it has done are not done twice.
    for kind in centralised() {
        let disturbed = format!("{}repeats = 20", faults(Fault::Straggler, "share = 1\nprobability = 0.5"));
        let late = works(&text(kind, &disturbed));
        assert!(late.rounds.iter().any(|round| round.attempts > 1), "{kind}");
        let clean = works(&text(kind, ""));
        assert!(late.states == clean.states && late.clients == clean.clients, "{kind}");
    }
}

/// One client claims another number of rows than it has.
struct Claims<'a>(&'a Inside, f64);

impl Fleet for Claims<'_> {
    fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>> {
        let mut replies = self.0.dispatch(requests, watch);
        for reply in replies.iter_mut().flatten().filter(|reply| reply.client == 1) {
            reply.message.scalars.entry("rows".into()).and_modify(|rows| *rows = self.1);
        }
        replies
    }

    fn settle(&self, round: usize, counted: &[ClientId]) {
        self.0.settle(round, counted);
    }
}

#[test]
fn a_reply_that_claims_other_rows_than_the_client_has_is_refused() {
    for kind in federated() {
        let counts = works(&text(kind, ""));
        for claim in [1e9, 7.0, 0.0, -1.0] {
            let (log, end) = serve_over(&text(kind, ""), None, Some(&move |inside| Box::new(Claims(inside, claim))));
            end.unwrap();
            if counts.rounds[0].numbers.contains_key("rows") {
                let refused = log.events().find(|event| event.kind == EventKind::Refused).unwrap();
                let reason = refused.detail.as_deref().unwrap();
                assert!(refused.client == 1 && reason.contains(&format!("claims {claim} rows")), "{kind}: {reason}");
                assert!(log.rounds.iter().all(|round| !round.used.contains(&1)), "{kind}");
            } else {
                assert!(log.states == counts.states, "{kind} sends no rows");
            }
        }
    }
}

#[test]
fn requests_carry_the_last_round_that_counted() {
    type Seen = Arc<Mutex<Vec<(usize, ClientId, usize)>>>;
    struct Listens<'a>(&'a Inside, Seen);
    impl Fleet for Listens<'_> {
        fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>> {
            let of = |request: &Request| (request.round, request.client, request.counted);
            self.1.lock().unwrap().extend(requests.iter().map(of));
            self.0.dispatch(requests, watch)
        }
    }
    let disturbed = text("fedavg", &faults(Fault::LostReply, "share = 0.5\nprobability = 0.5"));
    let disturbed = disturbed.replace("rounds = 5", "rounds = 12");
    let seen = Seen::default();
    let requests = seen.clone();
    let (log, end) = serve_over(&disturbed, None, Some(&move |inside| Box::new(Listens(inside, requests.clone()))));
    end.unwrap();
    for (round, client, counted) in seen.lock().unwrap().iter().copied() {
        let before = log.rounds.iter().filter(|r| r.round < round && r.used.contains(&client));
        assert_eq!(counted, before.map(|r| r.round).max().unwrap_or(0), "round {round}, client {client}");
    }
}
