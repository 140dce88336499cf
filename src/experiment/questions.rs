//! The server's questions to its sites outside of the rounds: before the first one, where every site must answer, and after
//! the last.

use std::time::{Duration, Instant};

use super::calibrate::Calibrated;
use super::config::Config;
use super::progress::Observer;
use super::schema::first;
use crate::error::RunError;
use crate::remote::{Answer, Arrays, CalibrationTold, Content, LEAST, Link, Opened, Peer};

/// The times of a run.
const TIMES: Times = Times { least: LEAST, silent: Duration::from_secs(10) };
/// The number of sites that a message names.
const NAMED: usize = 5;

/// How long the server waits.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// [`LEAST`].
    least: Duration,
    /// The time after which the user learns for whom the server waits.
    silent: Duration,
}

/// What asks the sites.
pub(super) struct Questions<'a> {
    link: Link<'a>,
    /// `federation.deadline`, if there is one.
    deadline: Option<Duration>,
    /// The number of rounds of the run.
    rounds: usize,
    times: Times,
    observer: &'a dyn Observer,
}

impl<'a> Questions<'a> {
    /// Questions of this run over a link.
    pub fn new(link: Link<'a>, config: &Config, observer: &'a dyn Observer) -> Self {
        let seconds = config.federation.deadline;
        let deadline = Duration::try_from_secs_f64(seconds).ok().filter(|deadline| !deadline.is_zero());
        Self { link, deadline, rounds: config.rounds, times: TIMES, observer }
    }

    /// The link, for the rounds, and the questions after them.
    pub fn split(self) -> (Link<'a>, Self) {
        let after = self.link.after();
        (self.link, Self { link: after, ..self })
    }

    /// The number of sites.
    pub fn peers(&self) -> usize {
        self.link.carrier().peers()
    }

    /// Sends a message to these sites, and returns their answers in the same order.
    ///
    /// # Errors
    /// A site cannot be reached, says why it does not answer, or is silent until the deadline. The error names it.
    pub fn ask(&self, peers: &[Peer], content: &Content, arrays: &Arrays) -> Result<Vec<Opened>, RunError> {
        let send =
            |peer: &Peer| self.link.send(*peer, content.clone(), arrays).map_err(|reason| self.of_site(*peer, &reason));
        let numbers = peers.iter().map(send).collect::<Result<Vec<_>, _>>()?;
        let time = self.deadline.map(|deadline| deadline.max(self.times.least));
        let mut answers = self.wait(peers, &numbers, time, || self.observer.gives_up())?;
        if let Some(sites) = self.silent(peers, &numbers) {
            return Err(match time.filter(|_| !self.observer.gives_up()) {
                Some(time) => RunError::Silent { sites, seconds: time.as_secs_f64() },
                None => RunError::Interrupted { round: 0, rounds: self.rounds },
            });
        }
        answers.sort_by_key(|answer| answer.number);
        let opened = |answer: Answer| answer.what.map_err(|reason| self.of_site(answer.from, &reason));
        answers.into_iter().map(opened).collect()
    }

    /// Tells every site what the calibration rows have given, for predictions with its own results.
    ///
    /// # Returns
    /// A note for each site that has not taken it.
    pub fn tell_calibration(&self, peers: &[Peer], calibrated: &Calibrated) -> Vec<String> {
        let Calibrated { kept, results } = calibrated.clone();
        let told = Box::new(CalibrationTold { kept, results: results.without_test_rows() });
        let send = |peer: &Peer| self.link.send(*peer, Content::Calibration(told.clone()), &Arrays::default());
        let sent: Vec<Result<u64, String>> = peers.iter().map(send).collect();
        let (asked, numbers): (Vec<Peer>, Vec<u64>) =
            peers.iter().zip(&sent).filter_map(|(peer, sent)| Some((*peer, *sent.as_ref().ok()?))).unzip();
        let (time, observer) = (self.deadline.unwrap_or_default().max(self.times.least), self.observer);
        // A user who stopped the rounds did not know yet that sites are silent: only a later wish to stop ends this wait.
        let stopped = observer.wants_to_stop();
        let ends = || observer.gives_up() || (!stopped && observer.wants_to_stop());
        let answers = self.wait(&asked, &numbers, Some(time), ends).unwrap_or_default();
        let reason = |sent: &Result<u64, String>| match sent {
            Err(reason) => Some(reason.clone()),
            Ok(number) => match answers.iter().find(|answer| answer.number == *number) {
                None => Some("it has not answered in time".to_owned()),
                Some(answer) => answer.what.as_ref().err().cloned(),
            },
        };
        let note = |(peer, sent): (&Peer, &Result<u64, String>)| {
            let error = self.of_site(*peer, &reason(sent)?);
            Some(format!("a site's own results have no calibration: {error}"))
        };
        peers.iter().zip(&sent).filter_map(note).collect()
    }

    /// The answers to the messages of these numbers, one to each of these sites. The wait is over when all have arrived, after
    /// this `time` (`None`: no limit), or as soon as it `ends`.
    ///
    /// # Errors
    /// The carrier delivers nothing any more.
    fn wait(
        &self,
        peers: &[Peer],
        numbers: &[u64],
        time: Option<Duration>,
        ends: impl Fn() -> bool,
    ) -> Result<Vec<Answer>, RunError> {
        let begin = Instant::now();
        let limit = time.map_or_else(String::new, |time| format!(" for {} s at most", time.as_secs_f64()));
        let mut said = false;
        let goes_on = || {
            if !said && begin.elapsed() >= self.times.silent {
                let silent = self.silent(peers, numbers).unwrap_or_default();
                self.observer.note(&format!("waiting{limit} for the answer of {silent}"));
                said = true;
            }
            !ends()
        };
        self.link.collect(numbers, time.and_then(|time| begin.checked_add(time)), goes_on)
    }

    /// The sites without an answer, for a message; `None` if all have answered.
    fn silent(&self, peers: &[Peer], numbers: &[u64]) -> Option<String> {
        let silent = peers.iter().zip(numbers).filter(|(_, number)| self.link.open(&[**number]) > 0);
        let names: Vec<String> = silent.map(|(peer, _)| self.link.carrier().name(*peer)).collect();
        (!names.is_empty()).then(|| listed(names))
    }

    /// An error of a site.
    pub fn of_site(&self, peer: Peer, reason: &str) -> RunError {
        RunError::Config(format!("{}: {reason}", self.link.carrier().name(peer)))
    }

    /// The error of a site that answers another question than it was asked.
    pub fn other_answer(&self, peer: Peer) -> RunError {
        self.of_site(peer, "the site gives another answer than it was asked for")
    }
}

/// The first names of sites, and how many more there are.
pub(super) fn listed(names: impl IntoIterator<Item = String>) -> String {
    first(NAMED, names)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::datasets::Recalibration;
    use crate::experiment::config::ConfigLoader;
    use crate::experiment::{Overrides, Source};
    use crate::remote::{Arrival, Carrier, Limits, Parcel, open, seal};
    use crate::report::CalibrationResults;

    const RUN: u64 = 3;

    /// Sites of which the first few answer at once, and the others never.
    struct Sleeping {
        awake: Peer,
        sites: usize,
        arriving: Mutex<Vec<Arrival>>,
    }

    impl Sleeping {
        fn new(awake: Peer, sites: usize) -> Self {
            Self { awake, sites, arriving: Mutex::default() }
        }
    }

    impl Carrier for Sleeping {
        fn peers(&self) -> usize {
            self.sites
        }

        fn name(&self, peer: Peer) -> String {
            format!("ward-{peer}")
        }

        fn send(&self, to: Peer, parcel: &Parcel, _: Limits) -> Result<(), String> {
            if to < self.awake {
                let number = open(parcel.clone())?.number;
                let what = Ok(seal(RUN, number, Content::Ready { visited: 0 }, &Arrays::default())?);
                self.arriving.lock().unwrap().push(Arrival { from: to, what });
            }
            Ok(())
        }

        fn receive(&self, wait: Duration) -> Vec<Arrival> {
            let arrived = std::mem::take(&mut *self.arriving.lock().unwrap());
            if arrived.is_empty() {
                std::thread::sleep(wait);
            }
            arrived
        }
    }

    /// Keeps the notes, and gives up after a first one if it is impatient. It wants the run to stop from so many notes on.
    #[derive(Default)]
    struct Notes {
        notes: Mutex<Vec<String>>,
        is_impatient: bool,
        stops_from: Option<usize>,
    }

    impl Observer for Notes {
        fn note(&self, note: &str) {
            self.notes.lock().unwrap().push(note.to_owned());
        }

        fn gives_up(&self) -> bool {
            self.is_impatient && !self.notes.lock().unwrap().is_empty()
        }

        fn wants_to_stop(&self) -> bool {
            self.stops_from.is_some_and(|from| self.notes.lock().unwrap().len() >= from)
        }
    }

    /// Questions to these sites, with this deadline in seconds and short times; and all sites.
    fn questions<'a>(
        sites: &'a Sleeping,
        deadline: f64,
        least: Duration,
        notes: &'a Notes,
    ) -> (Questions<'a>, Vec<Peer>) {
        let text = format!("data = {{ kind = \"digits\" }}\nrounds = 9\nfederation = {{ deadline = {deadline:?} }}");
        let source = Source { name: "test", text: &text };
        let (config, _) = ConfigLoader::default().load(source, &Overrides::default()).unwrap();
        let times = Times { least, silent: Duration::from_millis(20) };
        (Questions { times, ..Questions::new(Link::new(sites, RUN), &config, notes) }, (0..sites.sites).collect())
    }

    /// What comes of a question to all of these sites.
    fn asked(sites: &Sleeping, deadline: f64, notes: &Notes) -> Result<usize, RunError> {
        let (questions, peers) = questions(sites, deadline, Duration::from_millis(700), notes);
        questions.ask(&peers, &Content::Describe {}, &Arrays::default()).map(|answers| answers.len())
    }

    /// What comes of telling all of these sites a calibration.
    fn told(sites: &Sleeping, least: Duration, notes: &Notes) -> Vec<String> {
        let (questions, peers) = questions(sites, 0.0, least, notes);
        let kept = Recalibration { rows: 9, temperature: None, vector: None, isotonic: None, conformal: None };
        let results = CalibrationResults { rows: 9, clients: 2, temperature: None, map: None, sets: None };
        questions.tell_calibration(&peers, &Calibrated { kept, results })
    }

    #[test]
    fn sites_that_are_silent_before_the_first_round_are_named_and_end_the_run_at_the_deadline() {
        let notes = Notes::default();
        assert_eq!(asked(&Sleeping::new(3, 3), 0.0, &notes).unwrap(), 3);
        assert!(notes.notes.into_inner().unwrap().is_empty());

        let notes = Notes::default();
        let error = asked(&Sleeping::new(1, 8), 0.01, &notes).unwrap_err();
        let named = "ward-1, ward-2, ward-3, ward-4, ward-5 and 2 more";
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().starts_with(&format!("no answer of {named} within 0.7 s")), "{error}");
        assert_eq!(notes.notes.into_inner().unwrap(), [format!("waiting for 0.7 s at most for the answer of {named}")]);
    }

    #[test]
    fn sites_that_are_silent_after_the_last_round_are_noted_and_nobody_waits_for_them_for_ever() {
        let of =
            |site: usize| format!("a site's own results have no calibration: ward-{site}: it has not answered in time");
        let (short, long) = (Duration::from_millis(60), Duration::from_secs(3600));
        assert_eq!(told(&Sleeping::new(2, 4), short, &Notes::default()), [of(2), of(3)]);
        // Who stopped the rounds still hears the sites that answer; who stops the wait ends it.
        let stopped = Notes { stops_from: Some(0), ..Notes::default() };
        assert!(told(&Sleeping::new(4, 4), long, &stopped).is_empty());
        let stops = Notes { stops_from: Some(1), ..Notes::default() };
        assert_eq!(told(&Sleeping::new(3, 4), long, &stops), [of(3)]);
    }

    #[test]
    fn without_a_deadline_the_server_waits_until_nobody_waits_for_it() {
        let notes = Notes { is_impatient: true, ..Notes::default() };
        let error = asked(&Sleeping::new(1, 2), 0.0, &notes).unwrap_err();
        assert!(matches!(error, RunError::Interrupted { round: 0, rounds: 9 }));
        assert_eq!(notes.notes.into_inner().unwrap(), ["waiting for the answer of ward-1"]);
    }
}
