//! Clients that do not answer questions, and clients that send no scores: the run continues without them.

use std::sync::{Arc, Mutex};

use fedstein::error::RunError;
use fedstein::federation::event::{Event, EventKind};
use fedstein::federation::fault_policy::{FaultPolicy, Rules};
use fedstein::federation::fleet::Fleet;
use fedstein::federation::inquiry::ask_for_scores;
use fedstein::protocol::{Ask, Message, Reply, Request, RequestKind, Scoring, Watch};

use super::harness::*;
use crate::common::{experiment, outcome};

/// DSVGD that asks ten clients before it chooses one, and faults of the answers alone.
fn asked(schedule: &str, kinds: &str, rest: &str) -> String {
    let more = format!("[faults]\nkinds = {kinds}\nrequests = [\"question\"]\n{rest}\n[federation]\ndeadline = 30\n");
    text("dsvgd", &more).replace("schedule = { clients = 1 }", &format!("schedule = {{ {schedule} }}"))
}

fn of_questions(log: &Log) -> Vec<Event> {
    log.events().filter(|event| event.request == RequestKind::Question).cloned().collect()
}

const INFORMED: [&str; 5] = [
    r#"kind = "ksd", clients = 2"#,
    r#"kind = "ksd", clients = 9, floor = 0.5"#,
    r#"kind = "hip", clients = 2"#,
    r#"kind = "hip", negative = "shift", clients = 2"#,
    r#"kind = "hip", negative = "softmax", clients = 2"#,
];

#[test]
fn a_client_that_does_not_answer_has_weight_0_and_an_event() {
    for schedule in INFORMED {
        for (kind, what) in [
            ("dropout", EventKind::Unanswered),
            ("lost-reply", EventKind::Unanswered),
            ("straggler", EventKind::Late),
            ("stale", EventKind::Stale),
            ("nan", EventKind::Refused),
        ] {
            let rest = "share = 0.4\nprobability = 0.7";
            // Two clients per round are more than `dsvgd` accepts; `p-dsvgd` accepts any number.
            let text = asked(schedule, &format!("[\"{kind}\"]"), rest).replace("\"dsvgd\"", "\"p-dsvgd\"");
            let log = works(&text);
            let mut absences = 0;
            for round in &log.rounds {
                let indicators = round.indicators.as_ref().unwrap();
                let reasons = round.selection.reasons.as_ref().unwrap();
                let events = round.events.iter().filter(|event| event.request == RequestKind::Question);
                let mut absent: Vec<usize> = events.filter(|event| event.kind == what).map(|e| e.client).collect();
                absent.sort_unstable();
                assert_eq!(indicators.absent, absent, "{schedule}, {kind}");
                for client in &absent {
                    assert_eq!((indicators.values[*client], reasons.probabilities[*client]), (0.0, 0.0));
                    assert!(!round.selection.clients.contains(client), "{schedule}, {kind}: {round:?}");
                }
                assert!((reasons.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                assert!(indicators.constant_share.is_finite() && reasons.entropy <= 1.0 + 1e-12);
                assert_eq!((round.rejected.len(), round.attempts), (0, 1), "the visits are not disturbed");
                absences += absent.len();
            }
            assert!(absences > 0, "{schedule}, {kind}");
        }
    }
}

#[test]
fn if_no_client_answers_all_are_equally_likely() {
    for schedule in [INFORMED[0], INFORMED[2], INFORMED[4]] {
        let log = works(&asked(schedule, r#"["dropout"]"#, "share = 1").replace("\"dsvgd\"", "\"p-dsvgd\""));
        for round in &log.rounds {
            let reasons = round.selection.reasons.as_ref().unwrap();
            assert_eq!(reasons.probabilities, [0.1; 10], "{schedule}");
            assert_eq!(round.used.len(), 2);
        }
        assert_eq!(of_questions(&log).len(), 2 * K * log.rounds.len(), "one injected, one unanswered");
    }
}

#[test]
fn with_one_answer_the_mean_direction_is_that_of_its_client() {
    let hip = |faults: &str| works(&asked(INFORMED[2], r#"["dropout"]"#, faults).replace("\"dsvgd\"", "\"p-dsvgd\""));
    let log = hip("share = 0.9");
    let alone = log.rounds[0].indicators.as_ref().unwrap();
    assert_eq!(alone.answered().len(), 1);
    let client = alone.answered()[0];
    assert_eq!(log.rounds[0].selection.clients, [client], "nobody else answered");
    // HIP_k = <phi_k, mean> over ten clients; over one it is the squared norm of phi_k, and larger than a tenth of it.
    let all = hip("share = 0.1\nprobability = 0.001");
    let all = all.rounds[0].indicators.as_ref().unwrap();
    assert_eq!(all.answered().len(), K);
    assert!(alone.values[client] > 0.0 && alone.values[client] != all.values[client]);
}

#[test]
fn questions_that_are_not_answered_change_nothing_where_they_only_diagnose() {
    let diagnosed = |more: &str| format!("{}\n[evaluation]\ndiscrepancy = true", text("dsvgd", more));
    let clean = works(&diagnosed(""));
    let lossy = works(&diagnosed("[faults]\nkinds = [\"dropout\"]\nrequests = [\"question\"]"));
    assert!(clean.states == lossy.states && clean.clients == lossy.clients);
    let known = |log: &Log| log.rounds[0].indicators.as_ref().unwrap().known();
    assert_eq!((known(&clean).len(), known(&lossy).len()), (K, 7));
    assert!(known(&lossy).iter().all(|value| known(&clean).contains(value)));
}

#[test]
fn faults_of_visits_do_not_depend_on_faults_of_questions() {
    let of_visits = |requests: &str| {
        let more = format!("[faults]\nkinds = [\"dropout\", \"nan\", \"sign-flip\"]\nrequests = {requests}");
        let log =
            works(&format!("{}\n[evaluation]\ndiscrepancy = true", text("fedavg", &more).replace("fedavg", "p-dsvgd")));
        let visits: Vec<Event> = log.events().filter(|event| event.request == RequestKind::Training).cloned().collect();
        (visits, log.states)
    };
    let (both, visits) = (of_visits(r#"["training", "question"]"#), of_visits(r#"["training"]"#));
    assert!(!visits.0.is_empty() && both == visits);
}

/// The numbers of requests that a fleet received at once, by kind.
type Sizes = Arc<Mutex<Vec<(RequestKind, usize)>>>;

/// A fleet that accepts this many requests at once.
struct Narrow<'a>(&'a Inside, Option<usize>, Sizes);

impl Fleet for Narrow<'_> {
    fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>> {
        self.2.lock().unwrap().push((requests[0].ask.kind(), requests.len()));
        self.0.dispatch(requests, watch)
    }

    fn at_once(&self) -> usize {
        self.1.unwrap_or(usize::MAX)
    }
}

#[test]
fn the_fleet_says_how_many_are_asked_at_once() {
    let text = asked(INFORMED[0], "[]", "").replace("\"dsvgd\"", "\"p-dsvgd\"").replace("rounds = 5", "rounds = 1");
    let text = text.replace("rounds = 21", "rounds = 1");
    let clean = works(&text);
    for (width, want) in [(None, vec![10]), (Some(4), vec![4, 4, 2]), (Some(1), vec![1; 10]), (Some(0), vec![1; 10])] {
        let sizes = Sizes::default();
        let recorded = sizes.clone();
        let (log, end) =
            serve_over(&text, None, Some(&move |inside| Box::new(Narrow(inside, width, recorded.clone()))));
        end.unwrap();
        let sizes = sizes.lock().unwrap();
        let questions = sizes.iter().filter(|(kind, _)| *kind == RequestKind::Question).map(|(_, size)| *size);
        assert_eq!(questions.collect::<Vec<_>>(), want);
        assert!(log.states == clean.states);
    }
}

// ------------------------------------------------------------------------------------------------------------- scores

/// A personalised run; the scores of some clients do not arrive.
fn scored(more: &str) -> String {
    let personal = "[evaluation]\npersonal = true";
    text("fedper", &format!("{more}\n{personal}")).replace("clients = 10 }", "clients = 10, validation = 0.3 }")
}

const LOST_SCORES: &str = "[faults]\nkinds = [\"lost-reply\"]\nrequests = [\"scores\"]\nshare = 0.3";

#[test]
fn personal_scores_are_those_of_the_clients_that_answered_and_state_their_number() {
    let (clean, lossy) = (outcome(&experiment(&scored(""))), outcome(&experiment(&scored(LOST_SCORES))));
    let count = |run: &fedstein::experiment::Outcome| run.rounds.last().unwrap().metric("scored_clients");
    assert_eq!((count(&clean), count(&lossy)), (Some(10.0), Some(7.0)));
    let (Some((results, scores)), Some((_, all))) = (&lossy.personal, &clean.personal) else { panic!("not scored") };
    assert_eq!((results.clients, results.last.scored()), (10, Some(7)));
    // The rows of every client are its own: those of the absent are in no sum.
    let answered: Vec<usize> = (0..10).filter(|client| scores.clients()[*client].rows() > 0).collect();
    assert_eq!(answered.len(), 7);
    let (mut nll, mut rows) = (0.0, 0.0);
    for client in &answered {
        let own = &all.clients()[*client];
        nll += own.nll().unwrap() * own.rows() as f64;
        rows += own.rows() as f64;
    }
    let pooled = lossy.rounds.last().unwrap().metric("personal_nll").unwrap();
    assert!((pooled - nll / rows).abs() < 1e-12, "{pooled}, not {}", nll / rows);
    assert!(results.best_validation.is_some());
    // The training is the same.
    assert_eq!(crate::common::bits(&clean), crate::common::bits(&lossy));
}

#[test]
fn without_any_scores_the_personal_columns_are_blank_and_the_run_continues() {
    let nobody = outcome(&experiment(&scored(&LOST_SCORES.replace("0.3", "1"))));
    let last = nobody.rounds.last().unwrap();
    assert_eq!((last.metric("scored_clients"), last.metric("personal_nll")), (Some(0.0), None));
    assert!(last.metric("accuracy").is_some());
    assert!(nobody.personal.unwrap().0.best_validation.is_none());
}

/// A client that receives requests and sends no usable answers.
struct Deaf(Mutex<Vec<Request>>);

impl Fleet for Deaf {
    fn dispatch(&self, requests: &[Request], _: Watch) -> Vec<Result<Reply, RunError>> {
        self.0.lock().unwrap().extend_from_slice(requests);
        let late = |request: &Request| Reply { seconds: 31.0, ..request.reply(Message::default()) };
        requests.iter().map(|request| Ok(late(request))).collect()
    }
}

#[test]
fn requests_for_scores_carry_the_number_of_the_run_and_wait_no_longer_than_the_deadline() {
    let halves = halves(&scored(""));
    let fleet = Deaf(Mutex::default());
    let policy = FaultPolicy::new(Rules { deadline: Some(30.0), ..Rules::default() }, 77);
    let wanted = Scoring { own: true, ..Scoring::default() };
    let scores = ask_for_scores(&fleet, &policy, halves.server.publish().unwrap(), 3, &[0, 4], wanted).unwrap();
    let requests = fleet.0.into_inner().unwrap();
    assert!(requests.iter().all(|request| (request.run, request.ask) == (77, Ask::Score(wanted))));
    assert!(scores.replies.iter().all(Option::is_none));
    let late = |event: &Event| (event.kind, event.request) == (EventKind::Late, RequestKind::Scores);
    assert!(scores.events.len() == 2 && scores.events.iter().all(late), "{:?}", scores.events);
}
