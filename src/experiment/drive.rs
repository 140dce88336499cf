//! The rounds of a run whose halves have been built, wherever its clients are: rounds → metrics → files.

use crate::algorithm::Algorithm;
use crate::backend::Session;
use crate::error::RunError;
use crate::federation::fault_policy::FaultPolicy;
use crate::federation::fleet::Fleet;
use crate::federation::server::{Federation, RoundObserver as _};
use crate::protocol::ServerHalf;
use crate::report::ClientNames;
use crate::schedule::Schedule;

use super::artifact::Artifacts;
use super::calibrate::{Asked, Plan};
use super::config::{Config, Rotate};
use super::outcome::Outcome;
use super::participation;
use super::progress::Observer;
use super::recorder::{RunRecorder, RunResults};
use super::round_evaluator::RoundEvaluator;

/// How many features that move together are worth a note.
const MANY: f64 = 10.0;

/// A note on a method that takes features for uncorrelated, where they are as they are.
///
/// # Arguments
/// - `together`: how many features move together ([`features_together`](crate::datasets::features_together)); `None` where
///   the rows are elsewhere, and nobody knows.
pub(super) fn on_correlation(
    server: &dyn ServerHalf,
    config: &Config,
    together: impl FnOnce() -> Option<f64>,
) -> Result<Option<String>, RunError> {
    if !server.assumes_uncorrelated_features() || config.rotation()?.rotate != Rotate::None {
        return Ok(None);
    }
    let found = match together() {
        Some(together) if together < MANY => return Ok(None),
        Some(together) => format!("up to {together:.0} features move together, and "),
        None => String::new(),
    };
    Ok(Some(format!(
        "{found}this method takes the features of a row for uncorrelated; it may become unstable where they are not, and \
         `data.rotate` = \"principal\" makes them so (docs/algorithms.md, \"newton-dsvgd\")"
    )))
}

/// The line about a run that a user sees at its start.
///
/// # Arguments
/// - `rows`: the numbers of rows and of clients, in words.
pub(super) fn headline(config: &Config, algorithm: &dyn Algorithm, rows: &str) -> String {
    let Config { name, backend, seed, .. } = config;
    let (kind, particles) = (config.algorithm.name(), counted(algorithm.particles(), "particle"));
    format!("{name}: {kind}, {particles}, {rows}, backend {backend}, seed {seed}")
}

/// A number of things, such as "1 client" or "2 clients".
pub(super) fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// A run that is ready for its first round.
pub(super) struct Prepared<'a> {
    pub config: &'a Config,
    pub algorithm: &'a dyn Algorithm,
    pub schedule: Box<dyn Schedule>,
    pub server: Box<dyn ServerHalf>,
    /// The clients, here or elsewhere.
    pub fleet: &'a dyn Fleet,
    /// The number of rows N_k of each client, `[K]`.
    pub roster: &'a [usize],
    /// What the clients are called.
    pub names: ClientNames,
    pub evaluator: RoundEvaluator<'a>,
    /// What is learned from calibration rows after the last round.
    pub calibration: Option<Plan>,
    pub policy: FaultPolicy,
    pub session: Session,
}

impl Prepared<'_> {
    /// Runs the rounds, or those after the checkpoint from which the run resumes, and writes the final files.
    ///
    /// # Errors
    /// A round fails, a file cannot be written, or the user wants the run to end.
    pub fn run(self, observer: &dyn Observer, mut artifacts: Option<&mut Artifacts>) -> Result<Outcome, RunError> {
        let outcome = self.rounds(observer, artifacts.as_deref_mut());
        outcome.map_err(|error| match artifacts {
            Some(artifacts) => artifacts.cause(error),
            None => error,
        })
    }

    fn rounds(self, observer: &dyn Observer, mut artifacts: Option<&mut Artifacts>) -> Result<Outcome, RunError> {
        let Self {
            config,
            algorithm,
            mut schedule,
            mut server,
            fleet,
            roster,
            names,
            evaluator,
            calibration,
            mut policy,
            session,
        } = self;
        observer.clients(&names);
        observer.method(algorithm.capabilities());
        let past = match artifacts.as_deref().and_then(Artifacts::past) {
            Some(past) => Some((past.round(), past.restore(&mut *server, &mut *schedule, fleet, &mut policy)?)),
            None => None,
        };
        let done = past.as_ref().map_or(0, |(round, _)| *round);
        let (advice, can) = (algorithm.one_hot_advice(), algorithm.capabilities());
        let clients = (roster.len(), config.evaluation.personal, &names);
        let mut recorder =
            RunRecorder::new((config, advice, can), evaluator, fleet, clients, observer, artifacts.take());
        let per_round = algorithm.clients_per_round(roster.len()).unwrap_or(config.schedule.clients());
        let planned = participation::planned(config.rounds, per_round, roster.len());
        // With all rows in one place there is nobody to select.
        if !can.centralised {
            planned.iter().for_each(|note| observer.note(note));
            // A round before all clients have had a turn would leave the others out.
            recorder.judges_from(roster.len().div_ceil(per_round.max(1)));
        }
        if let Some((round, state)) = past {
            recorder.restore(&state)?;
            observer.continued(round, config.rounds);
            observer.saved(round);
        }
        let watch = |done, total| observer.step(done, total);
        let (server_half, schedule, diagnosis) = (&mut *server, &mut *schedule, config.diagnosis());
        let mut federation = Federation {
            server: server_half,
            schedule,
            fleet,
            rows: roster,
            diagnosis,
            policy: &mut policy,
            session: session.clone(),
        };
        // A run that resumes after its end has no further round.
        if !recorder.is_over() {
            let served = federation.serve(done + 1..=config.rounds, &watch, &mut recorder);
            served.map_err(|error| error.naming(&names))?;
        }

        // The final files and the results.
        let RunResults { artifacts, mut outcome, ended, participation } =
            recorder.finish(&*server, &policy, &session)?;
        let mut notes = participation.notes(roster, &names);
        if let Some(plan) = &calibration {
            let last = outcome.rounds.last().map_or(config.rounds, |record| record.round);
            let asked = Asked { fleet, policy: &policy, names: &names, clients: roster.len() };
            let rows = (last, &outcome.particles, &outcome.predicted);
            outcome.calibrated = plan.run(config, &asked, rows, &mut notes)?;
        }
        ended.iter().for_each(|note| observer.ended(note));
        notes.iter().for_each(|note| observer.note(note));
        if observer.gives_up() {
            let round = outcome.rounds.last().map_or(0, |record| record.round);
            return Err(RunError::Interrupted { round, rounds: config.rounds });
        }
        if let Some(artifacts) = artifacts {
            ended.into_iter().chain(notes).for_each(|note| artifacts.note(note));
            artifacts.finish(&config.checkpoint, &outcome, &names)?;
        }
        Ok(outcome)
    }
}
