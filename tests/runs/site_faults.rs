//! Sites and servers that do what they should not: each is refused with the reason, and nothing is lost.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use fedstein::datasets::Task;
use fedstein::experiment::at_site::SiteClient;
use fedstein::protocol::{Ask, Scoring};
use fedstein::remote::{Arrays, Content, PROTOCOL, Parcel, RequestHead, open, seal};
use fedstein::site::{SiteConfig, SiteRows, Terms};
use tempfile::TempDir;

use crate::faults::harness::K;
use crate::sites::{Seen, configs, federation, federation_of, sites};

/// A federation that has run, and what was sent to its client 0.
struct After {
    dir: TempDir,
    site: SiteConfig,
    /// The messages with their answers, in order.
    sent: Vec<(Parcel, Parcel)>,
}

fn after(kind: &str, more: &str) -> After {
    of_task(kind, more, Task::Classification)
}

fn of_task(kind: &str, more: &str, task: Task) -> After {
    of_config(&configs(kind, more, task)[1], task)
}

fn of_config(text: &str, task: Task) -> After {
    let dir = TempDir::new().unwrap();
    let seen = Seen::default();
    let sites = sites(dir.path(), task);
    federation(text, &sites, &seen).unwrap();
    // The address of client 0 is the last one.
    let all = std::mem::take(&mut *seen.lock().unwrap());
    let sent =
        all.into_iter().filter(|(peer, ..)| *peer == K - 1).map(|(_, parcel, answer)| (parcel, answer)).collect();
    After { dir, site: sites[0].clone(), sent }
}

impl After {
    fn answer(&self, parcel: &Parcel) -> Parcel {
        SiteClient::new(self.site.clone(), SiteRows::read(&self.site).unwrap()).unwrap().answer(parcel.clone())
    }

    fn refusal(&self, parcel: &Parcel) -> String {
        match open(self.answer(parcel)).unwrap().content {
            Content::Failure { reason } => reason,
            other => panic!("{other:?}"),
        }
    }

    /// The requests to train, with their heads and answers.
    fn visits(&self) -> Vec<(RequestHead, Parcel, Parcel)> {
        let visit = |(parcel, answer): &(Parcel, Parcel)| match open(parcel.clone()).unwrap().content {
            Content::Request(head) if head.ask == Ask::Train => Some((head, parcel.clone(), answer.clone())),
            _ => None,
        };
        self.sent.iter().filter_map(visit).collect()
    }

    fn run(&self) -> u64 {
        open(self.sent[0].0.clone()).unwrap().run
    }

    /// The terms that were sent, changed and sent again in a run of another number.
    fn begin(&self, change: impl FnOnce(&mut Terms)) -> Parcel {
        let (parcel, opened) = self
            .sent
            .iter()
            .map(|(parcel, _)| (parcel, open(parcel.clone()).unwrap()))
            .find(|(_, opened)| matches!(opened.content, Content::Begin(_)))
            .unwrap();
        let Content::Begin(mut terms) = opened.content.clone() else { unreachable!() };
        change(&mut terms);
        let message = opened.message(Default::default()).unwrap();
        let arrays = Arrays::of(&message, fedstein::protocol::Wire::Full);
        let sealed = seal(opened.run + 1, 1, Content::Begin(terms), &arrays).unwrap();
        assert_ne!(sealed.envelope, parcel.envelope);
        sealed
    }
}

/// Everything below a directory, with its bytes.
fn content(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(content(&path)),
            false => found.push((path.display().to_string(), fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn the_same_request_has_the_same_reply_and_an_old_one_is_refused_and_changes_nothing() {
    let after = after("dsvgd", "");
    let visits = after.visits();
    assert!(visits.len() >= 3, "{}", visits.len());
    let before = content(&after.site.state);
    let (_, parcel, answer) = visits.last().unwrap();
    assert!(after.answer(parcel) == *answer, "the last request has another reply");
    for (head, parcel, _) in &visits[..visits.len() - 2] {
        let reason = after.refusal(parcel);
        assert!(reason.contains("does not go back beyond round"), "round {}: {reason}", head.round);
    }
    assert!(content(&after.site.state) == before, "a message changed the disk");
}

#[test]
fn a_site_that_lost_no_more_than_the_order_of_its_rows_goes_on() {
    for (algorithm, more, goes_on) in
        [("newton-dsvgd", "", true), ("fedavg", "", true), ("fedavg", "reset = \"never\"", true), ("pvi", "", false)]
    {
        let after = after(algorithm, more);
        let (head, parcel, _) = after.visits().pop().unwrap();
        assert!(head.counted > 0 && head.stateful != goes_on, "{algorithm}: {head:?}");
        let run = after.site.state.join(format!("{:016x}", after.run()));
        assert!(run.join("results/summary.json").is_file());
        fs::remove_dir_all(run.join("visits")).unwrap();
        match open(after.answer(&parcel)).unwrap().content {
            Content::Reply(_) => assert!(goes_on, "{algorithm}"),
            other => assert!(!goes_on, "{algorithm}: {other:?}"),
        }
        // So it does with an older copy of its directory, which has the first visit alone.
        if goes_on {
            fs::remove_dir_all(run.join("visits")).unwrap();
            for parcel in [&after.visits()[0].1, &parcel] {
                assert!(matches!(open(after.answer(parcel)).unwrap().content, Content::Reply(_)), "{algorithm}");
            }
        }
        // Where it trains again, its results are those of a former last round.
        assert_eq!(run.join("results/summary.json").exists(), !goes_on, "{algorithm}");
    }
}

#[test]
fn a_site_that_lost_its_state_says_so_unless_it_had_none() {
    let after = after("dsvgd", "");
    let (head, parcel, _) = after.visits().pop().unwrap();
    let run = after.site.state.join(format!("{:016x}", after.run()));
    fs::remove_dir_all(run.join("visits")).unwrap();
    let reason = after.refusal(&parcel);
    let words = format!("has lost its state of round {}", head.counted);
    assert!(reason.contains(&words) && reason.contains("belongs to that state"), "{reason}");
    let opened = open(parcel.clone()).unwrap();
    let message = opened.message(head.numbers.clone()).unwrap();
    let arrays = Arrays::of(&message, head.wire);
    let stateless = seal(after.run(), 1, Content::Request(RequestHead { stateful: false, ..head }), &arrays).unwrap();
    assert!(matches!(open(after.answer(&stateless)).unwrap().content, Content::Reply(_)));
    // What the server publishes, it scores without its state.
    fs::remove_dir_all(run.join("visits")).unwrap();
    let is_score = |content: &Content| matches!(content, Content::Request(head) if matches!(head.ask, Ask::Score(_)));
    let scores = after.sent.iter().rfind(|(parcel, _)| is_score(&open(parcel.clone()).unwrap().content));
    let (parcel_of_scores, answer) = scores.unwrap();
    assert_eq!(after.answer(parcel_of_scores), *answer);
    // Without the terms it does not know the run, and with other rows it is not the same site.
    fs::write(&after.site.data.path, fs::read_to_string(&after.site.data.path).unwrap() + "1,1,1,1,no\n").unwrap();
    assert!(after.refusal(&parcel).contains("the rows of this site have changed since the run began"));
    fs::remove_dir_all(&run).unwrap();
    assert!(after.refusal(&parcel).contains("has no part in run"));
    drop(after.dir);
}

#[test]
fn a_server_cannot_set_what_only_the_site_may_nor_exceed_its_limits() {
    let after = after("fedavg", "");
    let refusal = |change: &dyn Fn(&mut Terms)| after.refusal(&after.begin(|terms| change(terms)));
    let with = |text: &'static str| move |terms: &mut Terms| terms.config += text;
    for (change, word) in [
        (&with("\n[data]\nkind = \"csv\"\npath = \"/etc/passwd\"\n") as &dyn Fn(&mut Terms), "`data`"),
        (&with("\n[checkpoint]\nkeep = false\n"), "`checkpoint`"),
        (
            &|terms| terms.config = terms.config.replace("local_steps = 3", "local_steps = 1000000000"),
            "limits.steps of this site is 1000",
        ),
        (&|terms| terms.config = terms.config.replace("hidden = [3]", "hidden = [4]"), "the server's particles are"),
        (
            &|terms| terms.config = terms.config.replace("hidden = [3]", "hidden = [2000000000, 2000000000]"),
            "parameters",
        ),
        (&|terms| terms.roster[0] += 1, "the server expects"),
        (&|terms| terms.class_weights = Some(vec![0.0, 1.0]), "of class 0 is that of 0 of all"),
        (&|terms| terms.roster.clear(), "the server expects no rows of client 0"),
        (&|terms| terms.card.classes = Some(vec!["maybe".into(), "never".into()]), "not one of the 2 agreed"),
        (&|terms| terms.card.features = 5, "feature_names"),
    ] {
        let reason = refusal(change);
        assert!(reason.contains(word), "{reason}, not {word}");
    }
    // The site of another client refuses its requests, and a message of another protocol says which one it speaks.
    let (head, parcel, _) = after.visits().pop().unwrap();
    let opened = open(parcel.clone()).unwrap();
    let arrays = Arrays::of(&opened.message(head.numbers.clone()).unwrap(), head.wire);
    let other = seal(after.run(), 1, Content::Request(RequestHead { client: 1, ..head }), &arrays).unwrap();
    assert!(after.refusal(&other).contains("this is client 0, and the request is to client 1"));
    let spoken = format!("\"protocol\":{PROTOCOL}");
    let text = String::from_utf8(parcel.envelope.clone()).unwrap().replace(&spoken, "\"protocol\":99");
    let newer = Parcel { envelope: text.into_bytes(), ..parcel };
    assert!(after.refusal(&newer).contains("speaks protocol 99"));
}

#[test]
fn a_site_answers_a_question_about_its_rows_once_and_tells_no_scores_that_were_not_agreed() {
    let after = after("fedavg", "");
    let with = |of: fn(&Content) -> bool| {
        let opened = after.sent.iter().map(|(parcel, _)| open(parcel.clone()).unwrap());
        opened.into_iter().find(|opened| of(&opened.content)).unwrap()
    };
    let sealed = |content: Content, arrays: &Arrays| seal(after.run(), 1, content, arrays).unwrap();
    let measure = with(|content| matches!(content, Content::Measure { .. }));
    let Content::Measure { features, mut means, encoding: None } = measure.content else { unreachable!() };
    let ask =
        |means| sealed(Content::Measure { features: features.clone(), means, encoding: None }, &Arrays::default());
    let again = open(after.answer(&ask(means.clone()))).unwrap();
    assert!(matches!(again.content, Content::Deviations(_)), "{:?}", again.content);
    means.features[0] += 1.0;
    assert!(after.refusal(&ask(means)).contains("has asked this before in this run, with other numbers"));
    let score = with(|content| matches!(content, Content::Request(head) if matches!(head.ask, Ask::Score(_))));
    let Content::Request(head) = score.content.clone() else { unreachable!() };
    let arrays = Arrays::of(&score.message(head.numbers.clone()).unwrap(), head.wire);
    let own = Ask::Score(Scoring { own: true, ..Scoring::default() });
    let reason = after.refusal(&sealed(Content::Request(RequestHead { ask: own, ..head }), &arrays));
    assert!(reason.contains("evaluation.personal is false in this run"), "{reason}");
}

#[test]
fn a_question_about_another_number_of_particles_is_refused_and_the_site_answers_on() {
    let after = after("newton-dsvgd", "[evaluation]\ndiscrepancy = true\n");
    let is_question = |parcel: &Parcel| {
        let content = open(parcel.clone()).unwrap().content;
        matches!(content, Content::Request(head) if matches!(head.ask, Ask::Answer(_)) && head.round > 1)
    };
    let (parcel, answer) = after.sent.iter().rfind(|(parcel, _)| is_question(parcel)).unwrap();
    let opened = open(parcel.clone()).unwrap();
    let Content::Request(head) = opened.content.clone() else { unreachable!() };
    let message = opened.message(head.numbers.clone()).unwrap();
    let cut = |name: &str| {
        let mut message = message.clone();
        let array = message.arrays.get_mut(name).unwrap();
        let rows = array.values.to_f64();
        array.shape[0] -= 1;
        array.values = fedstein::array::Values::F32(
            rows[..array.shape.iter().product()].iter().map(|value| *value as f32).collect(),
        );
        let mut head = head.clone();
        head.state.0 = message.fingerprint();
        seal(after.run(), 1, Content::Request(head.clone()), &Arrays::of(&message, head.wire)).unwrap()
    };
    let mut site = SiteClient::new(after.site.clone(), SiteRows::read(&after.site).unwrap()).unwrap();
    let mut reason = |parcel: Parcel| match open(site.answer(parcel)).unwrap().content {
        Content::Failure { reason } => reason,
        other => panic!("{other:?}"),
    };
    let of_gradient = reason(cut("gradient"));
    assert!(of_gradient.contains("`gradient` is of") && !of_gradient.contains("panicked"), "{of_gradient}");
    let of_particles = reason(cut("particles"));
    assert!(!of_particles.is_empty(), "{of_particles}");
    assert!(site.answer(parcel.clone()) == *answer, "the site has another answer now");
}

#[test]
fn a_site_that_tells_no_sums_tells_none_of_squared_residuals() {
    let mut after = of_task("fedavg", "", Task::Regression);
    let is_residuals = |parcel: &Parcel| matches!(open(parcel.clone()).unwrap().content, Content::Residuals(_));
    let asked = after.sent.iter().find(|(parcel, _)| is_residuals(parcel)).unwrap().0.clone();
    assert!(matches!(open(after.answer(&asked)).unwrap().content, Content::Squares(_)));
    after.site.tell.statistics = false;
    assert!(after.refusal(&asked).contains("tells no sums (tell.statistics, tell.min_rows)"));
}

#[test]
fn a_site_holds_no_more_numbers_than_its_limit() {
    let mut after = after("fedavg", "");
    let begin = after.begin(|_| {});
    // Training and test rows of four features.
    let rows = SiteRows::read(&after.site).unwrap();
    let numbers = 4 * (rows.train.rows() + rows.test.rows() + rows.validation.rows() + rows.calibration.rows());
    after.site.limits.numbers = numbers - 1;
    assert!(after.refusal(&begin).contains("more than limits.numbers of this site"));
}

#[test]
fn a_site_keeps_no_more_numbers_of_curvatures_and_pairs_of_particles_than_its_limit() {
    // So many particles that the numbers of the rows are fewer.
    let config = |kind: &str, keys: &str| {
        let text = configs(kind, "", Task::Classification)[1].clone();
        assert!(text.contains("particles = 4\n"));
        text.replace("particles = 4\n", &format!("particles = 40\n{keys}\n"))
    };
    let mut after = of_config(&config("newton-dsvgd", "curvature = \"kfac\""), Task::Classification);
    let begin = after.begin(|_| {});
    let open_begin = open(begin.clone()).unwrap();
    let particles = open_begin.message(Default::default()).unwrap().arrays["particles"].shape.clone();
    let [count, dim] = particles[..] else { unreachable!() };
    // 4-3-2: G, a matrix over the outputs and the second moments of the inputs of each layer, a diagonal of the first one.
    let kept = count * (dim + 9 + 5 + 4 + 16);
    after.site.limits.numbers = kept - 1;
    let reason = after.refusal(&begin);
    assert!(reason.contains(&format!("holds {kept} numbers")), "{reason}");
    after.site.limits.numbers = kept;
    assert!(matches!(open(after.answer(&begin)).unwrap().content, Content::Ready { .. }));

    let mut after = of_config(&config("dsvgd", ""), Task::Classification);
    let begin = after.begin(|_| {});
    // More than the coordinates of the particles, 40 · 23.
    after.site.limits.numbers = 40 * 40 - 1;
    let reason = after.refusal(&begin);
    assert!(reason.contains("the matrices of 40 particles have 40 times 40 numbers"), "{reason}");
}

#[test]
fn a_site_holds_no_covariance_of_more_rows_than_its_limit() {
    let text = configs("pfedgp", "", Task::Classification)[1].clone();
    let keys = "kind = \"pfedgp\"";
    assert!(text.contains(keys));
    let text = text.replacen(keys, &format!("{keys}\ninducing_rows = 1000000000"), 1);
    let mut after = of_config(&text, Task::Classification);
    let begin = after.begin(|_| {});
    let held = SiteRows::read(&after.site).unwrap().train.rows().pow(2);
    after.site.limits.numbers = held - 1;
    let reason = after.refusal(&begin);
    assert!(reason.contains(&format!("holds {held} numbers")), "{reason}");
    after.site.limits.numbers = held;
    assert!(matches!(open(after.answer(&begin)).unwrap().content, Content::Ready { .. }));
}

/// What a site does to its answers.
type Tamper = fn(Parcel) -> Parcel;

/// The answer with the text of its envelope changed.
fn changed(parcel: Parcel, from: &str, to: &str) -> Parcel {
    let text = String::from_utf8(parcel.envelope).unwrap().replace(from, to);
    Parcel { envelope: text.into_bytes(), arrays: parcel.arrays }
}

#[test]
fn a_site_that_lies_is_left_out_and_the_run_goes_on() {
    let tampers: [(&str, Tamper); 7] = [
        ("it speaks another protocol", |parcel| changed(parcel, "\"protocol\":", "\"protocol\":9")),
        ("it replies as another client", |parcel| changed(parcel, "\"client\":0", "\"client\":1")),
        ("it claims rows", |parcel| changed(parcel, "\"rows\":", "\"rows\":1e12,\"r\":")),
        ("it answers another state", |parcel| changed(parcel, "\"state\":\"", "\"state\":\"0")),
        ("it sends other arrays", |parcel| changed(parcel, "\"name\":\"particles\"", "\"name\":\"particels\"")),
        ("it sends NaN", |parcel| {
            let spoil = |array: &Arc<Vec<u8>>| {
                let mut bytes = array.to_vec();
                if let Some(last) = bytes.last_chunk_mut::<4>() {
                    *last = f32::NAN.to_le_bytes();
                }
                Arc::new(bytes)
            };
            Parcel { arrays: parcel.arrays.iter().map(spoil).collect(), ..parcel }
        }),
        ("it sends nothing that can be read", |_| Parcel { envelope: b"{".to_vec(), arrays: Vec::new() }),
    ];
    for (what, tamper) in tampers {
        let dir = TempDir::new().unwrap();
        let sites = sites(dir.path(), Task::Classification);
        let lies = Arc::new(Mutex::new(0_usize));
        let counted = lies.clone();
        let lie = move |peer: usize, parcel: Parcel, answer: Parcel| {
            let is_visit = matches!(open(parcel).unwrap().content, Content::Request(_));
            match peer == K - 1 && is_visit {
                true => {
                    let lie = tamper(answer.clone());
                    *counted.lock().unwrap() += usize::from(lie != answer);
                    lie
                }
                false => answer,
            }
        };
        let text = &configs("fedavg", "", Task::Classification)[1];
        let outcome = federation_of(text, &sites, Arc::new(lie)).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(*lies.lock().unwrap() > 0, "{what}: no answer was changed");
        assert!(crate::common::values(&outcome.particles).iter().all(|value| value.is_finite()), "{what}");
    }
}

#[test]
fn a_panic_at_a_site_is_answered_as_a_failure_and_the_site_goes_on() {
    let after = after("fedavg", "");
    let (_, visit, reply) = after.visits().pop().unwrap();
    let is_last = |parcel: &Parcel| {
        let content = open(parcel.clone()).unwrap().content;
        matches!(content, Content::Request(head) if matches!(head.ask, Ask::Score(Scoring { is_last: true, .. })))
    };
    let (scores, scored) = after.sent.iter().rfind(|(parcel, _)| is_last(parcel)).unwrap();
    // Test rows with groups, and none of these for any row: no file has such. The site's own results alone need them.
    let mut rows = SiteRows::read(&after.site).unwrap();
    rows.test.groups = Some(Vec::new());
    let mut site = SiteClient::new(after.site.clone(), rows).unwrap();
    assert!(site.answer(visit.clone()) == reply, "the damage shows in a visit");
    match open(site.answer(scores.clone())).unwrap().content {
        Content::Failure { reason } => {
            assert_eq!(reason, "its computation panicked; what it said is in the output of the site")
        }
        other => panic!("{other:?}"),
    }
    // It has let go of the run's directory, which another process may use, and begins there with the next message.
    assert!(after.answer(scores) == *scored, "the directory is locked or damaged");
    assert!(site.answer(visit) == reply, "the site does not go on");
}
