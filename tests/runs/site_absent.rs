//! Sites that do not answer in time, or whose answers the network disturbs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use fedstein::datasets::Task;
use fedstein::experiment::Outcome;
use fedstein::federation::faults::Fault;
use fedstein::protocol::RequestKind;
use fedstein::remote::{Content, Parcel, open};
use tempfile::TempDir;

use crate::common::values;
use crate::faults::harness::K;
use crate::sites::{compare, configs, federation_of, sites};

/// The schedule of the harness.
const PLAIN: &str = "schedule = { clients = 1 }";

/// A federation whose site of client 0 is late with its answers to requests of this kind, at most so often.
fn with_a_late_site(kind: &str, schedule: &str, late: RequestKind, times: usize) -> Outcome {
    with_a_late_site_and(kind, (schedule, ""), late, times)
}

/// The same with more sections, and validation rows at each site.
fn with_a_late_site_and(kind: &str, (schedule, more): (&str, &str), late: RequestKind, times: usize) -> Outcome {
    let dir = TempDir::new().unwrap();
    let (mut sites, left) = (sites(dir.path(), Task::Classification), AtomicUsize::new(times));
    sites.iter_mut().for_each(|site| site.data.validation_fraction = 0.3);
    let sleeps = move |peer: usize, parcel: Parcel, answer: Parcel| {
        let content = open(parcel).unwrap().content;
        // The address of client 0 is the last one.
        let is_late = peer == K - 1 && matches!(content, Content::Request(head) if head.ask.kind() == late);
        if is_late && left.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            sleep(Duration::from_millis(1500));
        }
        answer
    };
    let keys = format!("[federation]\ndeadline = 1.0\nbackoff = 0\n{more}");
    let text = configs(kind, &keys, Task::Classification)[1].clone();
    assert!(text.contains(PLAIN), "{text}");
    federation_of(&text.replace(PLAIN, schedule), &sites, Arc::new(sleeps)).unwrap_or_else(|error| panic!("{error}"))
}

/// The number of clients with scores, by round.
fn scored(outcome: &Outcome) -> Vec<Option<f64>> {
    outcome.rounds.iter().map(|round| round.metric("scored_clients")).collect()
}

#[test]
fn a_site_without_scores_is_left_out_of_them_alone() {
    let outcome = with_a_late_site("dsvgd", PLAIN, RequestKind::Scores, usize::MAX);
    assert!(scored(&outcome).iter().all(|scored| *scored == Some((K - 1) as f64)), "{:?}", scored(&outcome));
    assert!(outcome.rounds.iter().any(|round| round.clients == [0]), "client 0 trains as before");
}

#[test]
fn a_round_without_the_scores_of_a_site_is_compared_over_the_rows_of_all() {
    let nll = |outcome: &Outcome| -> Vec<f64> {
        outcome.rounds.iter().map(|round| round.metric("validation_nll").unwrap()).collect()
    };
    let [calm, late, never] = [0, 1, usize::MAX]
        .map(|times| with_a_late_site_and("dsvgd", (PLAIN, "[stop]\npatience = 9"), RequestKind::Scores, times));
    // The first round is not over the rows of the others, and not the best one for that.
    assert!(scored(&late)[0] == Some((K - 1) as f64) && scored(&late)[1] == Some(K as f64), "{:?}", scored(&late));
    assert!(nll(&calm)[0] != nll(&late)[0] && nll(&calm)[1..] == nll(&late)[1..]);
    let best = (1..nll(&late).len()).min_by(|a, b| nll(&late)[*a].total_cmp(&nll(&late)[*b])).unwrap() + 1;
    assert_eq!(late.best, Some(best), "{:?}", nll(&late));
    // A site that never answers leaves the choice to the others.
    let lowest = nll(&never).into_iter().fold(f64::INFINITY, f64::min);
    assert_eq!(nll(&never)[never.best.unwrap() - 1], lowest);
}

#[test]
fn a_site_that_does_not_answer_a_question_is_not_selected() {
    for schedule in ["ksd", "hip"] {
        let schedule = format!("schedule = {{ kind = \"{schedule}\" }}");
        let outcome = with_a_late_site("dsvgd", &schedule, RequestKind::Question, usize::MAX);
        assert_eq!(outcome.rounds.len(), 2 * K + 1);
        assert!(outcome.rounds.iter().all(|round| !round.clients.contains(&0)), "{schedule}");
        assert!(scored(&outcome).iter().all(|scored| *scored == Some(K as f64)), "{schedule}");
    }
}

#[test]
fn another_site_takes_the_place_of_one_that_is_late() {
    for kind in ["dsvgd", "u-dsvgd"] {
        let [calm, late] = [0, 1].map(|times| with_a_late_site(kind, PLAIN, RequestKind::Training, times));
        let down = |outcome: &Outcome, round: usize| outcome.rounds[round].downlink_bytes;
        assert_eq!(late.rounds.len(), 2 * K + 1, "{kind}");
        assert_eq!(down(&late, 0), 2 * down(&calm, 0), "{kind}: two clients were asked in round 1");
        assert!((1..K).all(|round| down(&late, round) == down(&calm, round)), "{kind}: and one in the others");
        assert!(values(&late.particles).iter().all(|value| value.is_finite()), "{kind}");
    }
}

#[test]
fn injected_faults_have_the_same_effects_over_the_wire_as_in_one_process() {
    let kinds: Vec<String> = Fault::ALL.iter().map(|fault| format!("\"{}\"", fault.word())).collect();
    let faults = format!(
        "[faults]\nkinds = [{}]\nrequests = [\"training\"]\nprobability = 0.4\n[federation]\ndeadline = 30\nrepeats = 9",
        kinds.join(", ")
    );
    for kind in ["dsvgd", "newton-dsvgd", "fedavg", "scaffold", "p-dsvgd"] {
        compare(kind, &faults, Task::Classification);
    }
}
