//! Faults between server and clients: every algorithm under every fault, the effect of the server's rules, and the
//! records of faults in the files of a run.

pub mod harness;
mod questions;
mod visits;

use std::collections::BTreeMap;
use std::process::Command;

use crate::common::{SILENT, experiment};
use fedstein::backend::{AnyBackend, Flex};
use fedstein::checkpoint::State;
use fedstein::experiment::Config;
use fedstein::experiment::schema::{Overrides, Source};
use fedstein::federation::event::{Event, EventKind};
use fedstein::federation::fault_policy::{ClientReliability, FaultPolicy};
use fedstein::federation::faults::{Fault, Faulty};
use fedstein::federation::fleet::{Fleet, InProcess};
use fedstein::federation::server::Round;
use fedstein::protocol::ClientId;
use fedstein::random::Streams;
use harness::*;
use serde_json::Value;

// ----------------------------------------------------------------------------------- every algorithm, every fault

/// The server's reaction to a fault: the record, and whether the reply is still used.
fn answer_to(fault: Fault) -> (Option<EventKind>, bool) {
    match fault {
        Fault::Dropout | Fault::LostReply => (Some(EventKind::Unanswered), false),
        Fault::Straggler => (Some(EventKind::Late), false),
        Fault::Stale => (Some(EventKind::Stale), false),
        Fault::Duplicate => (Some(EventKind::Duplicate), true),
        Fault::Nan | Fault::Inf | Fault::WrongShape | Fault::WrongDtype | Fault::WrongN => {
            (Some(EventKind::Refused), false)
        }
        // Finite and well-formed: nothing that the server could detect.
        Fault::Reordered | Fault::HugeNorm | Fault::SignFlip | Fault::Replay => (None, true),
    }
}

fn stands(kind: &str, rest: &str) {
    // Those that disturb a message, not the arrays in it.
    let of_messages =
        [Fault::Dropout, Fault::Straggler, Fault::Duplicate, Fault::Reordered, Fault::Stale, Fault::LostReply];
    let faults_of_kind = if kind == SILENT { &of_messages[..] } else { Fault::ALL };
    for &fault in faults_of_kind {
        let what = format!("{kind} under {}", fault.word());
        let (log, end) = serve(&text(kind, &faults(fault, rest)), None);
        log.assert_finite(&what);
        if let Err(error) = end {
            // A poisoned state may not recover where there is no other client; the run then ends with a reason.
            let poisoned = centralised().contains(&kind) && fault == Fault::HugeNorm;
            assert!(poisoned && error.exit_code() == 1, "{what}: {error}");
        }
        let injected: Vec<&Event> = log.events().filter(|event| event.kind == EventKind::Injected).collect();
        assert!(!injected.is_empty(), "{what}: nothing was injected");
        let (expected, is_used) = answer_to(fault);
        for event in injected {
            let round = &log.rounds[event.round - 1];
            let of_client = |what: EventKind| {
                let same = |other: &&Event| (other.client, other.attempt) == (event.client, event.attempt);
                round.events.iter().filter(same).any(|other| other.kind == what)
            };
            assert!(expected.is_none_or(of_client), "{what}: {event:?} in {:?}", round.events);
            let refused = of_client(EventKind::Refused);
            assert!(refused || !of_client(EventKind::Quarantined), "{what}");
            // A negative variance or curvature is invalid, which only the algorithm's own check detects.
            let checks = ["pfedvem", "newton-dsvgd"].contains(&kind);
            let seen = checks && matches!(fault, Fault::SignFlip | Fault::HugeNorm) && refused;
            let again = round.attempts > event.attempt;
            assert!(round.used.contains(&event.client) == (is_used && !seen) || again, "{what}: {event:?}");
            assert!(is_used || again || round.rejected.iter().any(|(client, _)| *client == event.client), "{what}");
        }
    }
}

#[test]
fn federated_algorithms_end_with_finite_states_under_every_fault_at_three_clients_of_ten() {
    federated().iter().for_each(|kind| stands(kind, "share = 0.3"));
}

#[test]
fn with_all_rows_in_one_place_a_fault_leads_to_a_repeated_request() {
    centralised().iter().for_each(|kind| stands(kind, "probability = 0.4"));
}

#[test]
fn after_dropouts_the_server_is_that_of_a_run_without_the_lost_clients() {
    for kind in comparable() {
        let lossy = works(&text(kind, &faults(Fault::Dropout, "share = 0.3\nprobability = 0.6")));
        assert!(lossy.count(EventKind::Unanswered) > 0, "{kind}");
        let (without, end) = serve(&text(kind, ""), Some(lossy.used()));
        end.unwrap();
        assert_eq!(without.rounds.iter().map(|round| round.events.len()).sum::<usize>(), 0, "{kind}");
        assert!(lossy.states == without.states, "{kind}");
    }
}

#[test]
fn the_chains_of_a_lost_worker_do_not_move() {
    // Chains are assigned before a client is lost, so the chains of the others move as in a round without faults.
    let (clean, lossy) = (works(&text("dsgld", "")), works(&text("dsgld", &faults(Fault::Dropout, "share = 0.5"))));
    let lost = lossy.rounds[0].rejected.len();
    assert!((1..4).contains(&lost), "{lost} of four chains are lost; choose another seed");
    let of = |log: &Log| log.states[0]["particles"].clone();
    let d = of(&clean).len() / 4;
    let same = of(&clean).chunks(d).zip(of(&lossy).chunks(d)).filter(|(a, b)| a == b).count();
    assert_eq!(same, 4 - lost);
}

#[test]
fn a_worker_that_takes_a_lost_ones_place_takes_its_chain() {
    let quorum = format!("{}min_replies = 4", faults(Fault::Dropout, "share = 0.4"));
    let log = works(&text("dsgld", &quorum));
    assert!(log.count(EventKind::Substitute) > 0);
    let chains = |state: &BTreeMap<String, Vec<u64>>| {
        let all = state["particles"].clone();
        all.chunks(all.len() / 4).map(<[u64]>::to_vec).collect::<Vec<_>>()
    };
    for (before, after) in log.states.iter().zip(&log.states[1..]) {
        assert!(chains(before).iter().zip(&chains(after)).all(|(a, b)| a != b), "no chain rests");
    }
    assert!(log.rounds.iter().all(|round| round.used.len() == 4));
}

#[test]
fn duplicates_and_another_order_change_nothing() {
    for kind in federated() {
        let clean = works(&text(kind, ""));
        for fault in [Fault::Duplicate, Fault::Reordered] {
            let disturbed = works(&text(kind, &faults(fault, "share = 0.7")));
            assert!(disturbed.count(EventKind::Injected) > 0);
            assert!(disturbed.states == clean.states, "{kind} under {}", fault.word());
            assert_eq!(disturbed.used(), clean.used());
        }
    }
}

#[test]
fn the_same_seed_has_the_same_faults_and_another_seed_has_others() {
    let disturbed = |seed: u64| {
        let kinds = "[faults]\nkinds = [\"dropout\", \"nan\", \"sign-flip\", \"replay\"]\nprobability = 0.5";
        let log = works(&text("fedavg", kinds).replace("seed = 5", &format!("seed = {seed}")));
        log.events().cloned().collect::<Vec<Event>>()
    };
    assert_eq!(disturbed(1), disturbed(1));
    assert_ne!(disturbed(1), disturbed(2));
}

// ------------------------------------------------------------------------------------------------------ the rules

/// All ten clients in every round.
fn all(rounds: usize, more: &str) -> String {
    text("fedavg", more)
        .replace("schedule = { clients = 5 }", "schedule = { clients = 10 }")
        .replace("rounds = 5", &format!("rounds = {rounds}"))
}

#[test]
fn a_client_with_repeated_bad_replies_is_quarantined_for_longer_each_time() {
    let log = works(&all(16, "[faults]\nkinds = [\"nan\"]\nshare = 0.1"));
    let refused: Vec<usize> = log.rounds.iter().filter(|r| r.rejected.len() == 1).map(|r| r.round).collect();
    // The client fails in 1 and is asked again in 2; then it is skipped for 1, 2, 4 and 8 rounds.
    assert_eq!(refused, [1, 2, 4, 7, 12]);
    let skipped = log.events().filter(|event| event.kind == EventKind::Skipped).map(|event| event.round);
    assert_eq!(skipped.collect::<Vec<usize>>(), [3, 5, 6, 8, 9, 10, 11, 13, 14, 15, 16]);
    let rests: Vec<f64> =
        log.events().filter(|event| event.kind == EventKind::Quarantined).filter_map(|event| event.value).collect();
    assert_eq!(rests, [1.0, 2.0, 4.0, 8.0], "the first bad reply is no quarantine");
    assert!(log.rounds.iter().all(|round| round.used.len() == 9 && round.attempts == 1));
}

#[test]
fn under_a_round_robin_of_one_client_another_takes_the_turn_of_a_bad_one() {
    let log = works(&text("dsvgd", "[faults]\nkinds = [\"inf\"]\nshare = 0.1"));
    let bad = log.events().find(|event| event.kind == EventKind::Injected).unwrap().client;
    for round in &log.rounds {
        let chosen = round.selection.clients[0];
        let expected = if chosen == bad { (bad + 1) % K } else { chosen };
        assert_eq!(round.used, [expected], "{round:?}");
        assert_eq!(round.attempts, 1 + usize::from(chosen == bad));
    }
}

#[test]
fn a_round_with_too_few_replies_is_repeated_with_others_and_keeps_the_good_ones() {
    let more = "[faults]\nkinds = [\"dropout\"]\nshare = 0.3\n[federation]\nmin_replies = 5";
    let log = works(&text("fedavg", more));
    let repeated: Vec<&Round> = log.rounds.iter().filter(|round| round.attempts > 1).collect();
    assert!(!repeated.is_empty());
    for round in &log.rounds {
        assert_eq!(round.used.len(), 5, "a quorum of five: {round:?}");
        let answered: Vec<ClientId> =
            round.selection.clients.iter().copied().filter(|client| round.used.contains(client)).collect();
        assert_eq!(round.used[..answered.len()], answered, "first those of the selection, in its order");
    }
    // No client that had answered was asked again: five replies were sent.
    assert!(repeated.iter().all(|round| round.uplink_bytes == log.rounds[0].uplink_bytes));
    let (without, end) = serve(&text("fedavg", ""), Some(log.used()));
    end.unwrap();
    assert!(log.states == without.states);
}

#[test]
fn a_missing_quorum_ends_the_run_with_the_last_good_state() {
    let more =
        "[faults]\nkinds = [\"nan\"]\nshare = 0.6\nprobability = 0.4\n[federation]\nmin_replies = 9\nrepeats = 1";
    let (log, end) = serve(&all(40, more), None);
    let error = end.unwrap_err();
    assert_eq!(error.exit_code(), 1);
    let failed = log.rounds.len() + 1;
    for words in [&format!("round {failed}: "), "it takes 9 (federation.min_replies)", "is not finite at element"] {
        assert!(error.to_string().contains(words), "{error}");
    }
    assert!(failed > 1 && !log.failed.is_empty() && log.failed.iter().all(|event| event.round == failed));
    log.assert_finite("the state before");
}

#[test]
fn a_straggler_counts_only_before_the_deadline() {
    let late = |deadline: usize| {
        works(&all(3, &format!("[faults]\nkinds = [\"straggler\"]\ndelay = 60\n[federation]\ndeadline = {deadline}")))
    };
    let (clean, patient, strict) = (works(&all(3, "")), late(61), late(59));
    assert!(patient.states == clean.states && patient.count(EventKind::Late) == 0);
    assert_eq!(strict.count(EventKind::Late), 9);
    assert!(strict.states != clean.states);
    assert_eq!(strict.count(EventKind::Skipped) + strict.count(EventKind::Quarantined), 0, "late is not bad");
}

#[test]
fn the_states_of_the_server_and_the_injector_are_saved_and_restored() {
    let log = works(&all(4, "[faults]\nkinds = [\"nan\"]\n[federation]\nrobust = \"norm-clip\""));
    let saved = &log.rounds[3].policy.save();
    let text = serde_json::to_string(saved).unwrap();
    let mut policy = FaultPolicy::default();
    policy.restore(serde_json::from_str::<ClientReliability>(&text).unwrap());
    assert_eq!(serde_json::to_string(&policy.save()).unwrap(), text);
    assert_ne!(saved, &ClientReliability::default());
}

#[test]
fn an_injector_saves_what_it_replays_and_without_faults_there_is_no_injector() {
    let planned = |text: &str| {
        let config = experiment(text).config;
        config.fault_plan(config.algorithm.capabilities(), K, Streams::new(1))
    };
    let injector =
        || Faulty::new(InProcess::new(Vec::new(), AnyBackend::of::<Flex>()), planned(&text_of_replays()).unwrap());
    let message = State::default().with_part("scalars", State::default().with_numbers("seen", [1.0]));
    let remembered = State::default().with_counts("clients", [3]).with_part("3", message);
    let fleet = injector();
    fleet.restore_own(&remembered).unwrap();
    assert_eq!(fleet.save_own(), remembered);
    assert!(injector().save_own().is_empty() && planned(&text("fedavg", "")).is_none());
}

fn text_of_replays() -> String {
    text("fedavg", "[faults]\nkinds = [\"replay\"]")
}

// --------------------------------------------------------------------------------------------- poisoned but finite

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn robust_rules_keep_huge_updates_from_moving_the_server() {
    for kind in ["fedavg", "scaffold", "pfedbayes", "fedper", "fedwba"] {
        let run = |more: &str| {
            let attack = "[faults]\nkinds = [\"huge-norm\"]\nshare = 0.2";
            let text = text(kind, &more.replace("ATTACK", attack));
            works(&text.replace("clients = 5 }", "clients = 10 }").replace("rounds = 5", "rounds = 3")).last()
        };
        let clean = run("");
        let none = distance(&run("ATTACK"), &clean);
        for rule in ["norm-clip", "median", "trimmed"] {
            let robust = distance(&run(&format!("ATTACK\n[federation]\nrobust = \"{rule}\"")), &clean);
            println!("{kind}, {rule}: {robust}, and {none} without");
            assert!(robust < 0.5 * none, "{kind}, {rule}: {robust}, and {none} without");
        }
    }
}

#[test]
fn a_single_poisoned_reply_is_clipped_by_the_lengths_of_earlier_ones() {
    let attack = "[faults]\nkinds = [\"huge-norm\"]\nshare = 0.1";
    // Of the default relay, whose sites pull Θ back. DSVGD's factors keep a part of what a clipped reply did.
    let clean = works(&text("newton-dsvgd", "")).last();
    let none = distance(&works(&text("newton-dsvgd", attack)).last(), &clean);
    let clipped = works(&text("newton-dsvgd", &format!("{attack}\n[federation]\nrobust = \"norm-clip\"")));
    assert!(clipped.count(EventKind::Clipped) > 0);
    let clipped = distance(&clipped.last(), &clean);
    assert!(clipped < 0.5 * none, "{clipped}, and {none} without");
}

/// The score and the curvature of a client are sums over its rows, and its score does not vanish where clients differ. A rule
/// that shortens them by their lengths would change the posterior: the distance would be 1.77.
#[test]
fn clipping_leaves_the_posterior_of_honest_clients_with_unlike_rows() {
    let run = |more: &str| {
        works(&format!(
            "name = \"unlike\"\nrounds = 80\ndata = {{ kind = \"ringnorm\", rows = 2000 }}\n\
             partition = {{ kind = \"dirichlet\", clients = 10, alpha = 0.2 }}\nmodel = {{ kind = \"blr\" }}\n\
             schedule = {{ clients = 10 }}\noptimizer = {{ lr = 0.05 }}\n\
             lr_schedule = {{ kind = \"cosine\", rounds = 150, end = 0.01 }}\n\
             algorithm = {{ kind = \"newton-dsvgd\", particles = 5, local_steps = 50, batch = 2000 }}\n{more}"
        ))
    };
    let (clean, clipped) = (run(""), run("[federation]\nrobust = \"norm-clip\""));
    assert!(clipped.count(EventKind::Clipped) > 0);
    // The particles' distance from their mean is 0.51.
    let apart = distance(&clipped.last(), &clean.last());
    assert!(apart < 0.3, "{apart}");
}

/// In a client's first visit the replies have arrays that no request had.
#[test]
fn a_poisoned_reply_of_newton_factors_is_clipped_where_many_visit_at_once() {
    let run = |more: &str| {
        let text = text("newton-dsvgd", more).replace("schedule = { clients = 1 }", "schedule = { clients = 10 }");
        works(&text.replace("rounds = 21", "rounds = 6"))
    };
    let attack = "[faults]\nkinds = [\"huge-norm\"]\nshare = 0.1";
    let (clean, poisoned) = (run("").last(), run(attack).last());
    let clipped = run(&format!("{attack}\n[federation]\nrobust = \"norm-clip\""));
    let (none, clipped) = (distance(&poisoned, &clean), distance(&clipped.last(), &clean));
    assert!(clipped < 0.2 * none, "{clipped}, and {none} without");
}

#[test]
fn the_outlier_score_of_a_huge_update_stands_out() {
    let more = "[faults]\nkinds = [\"huge-norm\"]\nshare = 0.1\n[federation]\noutlier_scores = true";
    for kind in ["fedavg", "fedwba", "pfedbayes", "dsvgd"] {
        let log = works(&text(kind, more).replace("clients = 5 }", "clients = 10 }"));
        let injected: Vec<(usize, ClientId)> = log
            .events()
            .filter(|event| event.kind == EventKind::Injected)
            .map(|event| (event.round, event.client))
            .collect();
        let scores: Vec<(bool, f64)> = log
            .events()
            .filter(|event| event.kind == EventKind::Scored)
            .filter_map(|event| Some((injected.contains(&(event.round, event.client)), event.value?)))
            .collect();
        let of = |bad: bool| scores.iter().filter(move |(is, _)| *is == bad).map(|(_, score)| *score);
        let (least, most) = (of(true).fold(f64::INFINITY, f64::min), of(false).fold(0.0, f64::max));
        assert!(least.is_finite() && least > 2.0 * most, "{kind}: {least} of the bad, {most} of the good");
    }
}

// ---------------------------------------------------------------------------------------------------- config, files

fn refused(text: &str) -> String {
    match Config::load(Source { name: "e.toml", text }, &Overrides::default()) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn invalid_rules_are_refused_by_name() {
    for (kind, more, words) in [
        ("dsvgd", "robust = \"median\"", "one client a round replaces the global particles"),
        ("u-dsvgd", "robust = \"trimmed\"", "one client a round replaces the global particles"),
        ("p-dsvgd", "robust = \"median\"", "every reply is the factor of other rows"),
        ("pvi", "robust = \"trimmed\"", "every reply is the factor of other rows"),
        ("dsgld", "robust = \"median\"", "every reply is other chains"),
        ("svgd", "robust = \"norm-clip\"", "all rows in one place"),
        ("pvi", "robust = \"norm-clip\"", "a client keeps the factor that it sent"),
        ("fedavg", "min_replies = 6", "only `schedule.clients` = 5 clients"),
        ("fedavg", "robust = \"trimmed\"\nrobust_trim = 0.1", "is not even one"),
    ] {
        let message = refused(&text(kind, &format!("[federation]\n{more}")));
        assert!(message.contains(words), "{kind}, {more}: {message}");
    }
    let two = text("fedavg", "[federation]\nrobust = \"median\"").replace("clients = 5 }", "clients = 2 }");
    assert!(refused(&two).contains("`schedule.clients` must be at least 3"));
    let message = refused("[faults]\nkinds = [\"drop-out\"]");
    assert!(
        message.contains("`faults.kinds` has \"drop-out\"") && message.contains("did you mean `dropout`?"),
        "{message}"
    );
    assert!(refused("[faults]\nkinds = [\"straggler\"]").contains("federation.deadline"));
}

#[test]
fn the_files_of_a_run_record_the_faults_at_any_number_of_threads() {
    let place = tempfile::TempDir::new().unwrap();
    let kinds =
        "[faults]\nkinds = [\"nan\", \"dropout\", \"duplicate\", \"sign-flip\"]\n[federation]\noutlier_scores = true";
    // Long enough for a client with two bad replies in a row.
    let long = text("fedwba", kinds).replace("rounds = 5", "rounds = 20");
    std::fs::write(place.path().join("run.toml"), long).unwrap();
    let run = |threads: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fedstein"));
        command.args(["train", "run.toml", "--quiet", "--out", threads]).env("RAYON_NUM_THREADS", threads);
        let output = command.current_dir(place.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let read = |name: &str| std::fs::read(place.path().join(threads).join(name)).unwrap();
        (read("events.jsonl"), read("particles.safetensors"), String::from_utf8(read("rounds.csv")).unwrap())
    };
    let (events, particles, rounds) = run("1");
    let two = run("2");
    assert!(events == two.0 && particles == two.1);

    let events: Vec<Value> =
        String::from_utf8(events).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let count = |round: usize, words: &[&str]| {
        let of = |event: &&Value| event["round"] == round && words.iter().any(|word| event["event"] == **word);
        events.iter().filter(of).count()
    };
    let header: Vec<&str> = rounds.lines().next().unwrap().split(',').collect();
    for (index, line) in rounds.lines().skip(1).enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |name: &str| cells[header.iter().position(|column| *column == name).unwrap()];
        let round = index + 1;
        assert_eq!(cell("rejected"), count(round, &["refused", "unanswered"]).to_string(), "round {round}");
        assert_eq!(cell("ignored"), count(round, &["late", "duplicate", "stale"]).to_string());
        assert_eq!(cell("skipped"), count(round, &["skipped"]).to_string());
        assert_eq!((cell("attempts"), cell("clipped")), ("1", "0"));
        assert!(cell("outlier_score").parse::<f64>().unwrap() > 0.0);
    }
    let words = ["injected", "refused", "quarantined", "scored"];
    assert!(words.iter().all(|word| (1..=20).any(|round| count(round, &[word]) > 0)));
}
