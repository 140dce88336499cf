//! The personal predictor of one client of a finished run: its state in the checkpoint, over the rows that it trained with.
//!
//! Rows, clients and model are built again from the run's configuration, as for a run that resumes. Of the clients only the
//! one that is asked is built, so that no other has an effect.

use std::path::Path;
use std::sync::Arc;

use super::assemble::first_particles;
use super::assigned::{Assigned, assigned};
use super::checkpoints::{Checkpoints, Digests, blocks_of};
use super::config::{AlgorithmConfig, Config, schema};
use super::finished::{BEST_ROUND, Finished};
use super::run_dir;
use super::schema::{Overrides, Source, first};
use crate::algorithm::kinds_that;
use crate::backend::Session;
use crate::checkpoint::{CheckpointError, rounds};
use crate::datasets::{Dataset, Normalisation};
use crate::error::RunError;
use crate::federation::client_evaluator::{ClientEvaluator, Outputs};
use crate::federation::held_out::{CalibrationRows, HeldOut};
use crate::federation::prior_correction::PriorCorrection;
use crate::metrics::Scale;
use crate::models::Model;
use crate::protocol::{Ask, ClientId, Predictor, Request, Scoring, SharedMessage};
use crate::random::Streams;
use crate::report::ClientNames;
use crate::rows::{Shard, Table};

/// The most clients in a message.
const LISTED: usize = 12;

/// A client of a run, and where the data sets of the run are.
#[derive(Clone, Copy, Debug)]
pub struct AskedClient<'a> {
    /// Its name as in `clients.csv`; its number from 0 where the clients have no names.
    pub name: &'a str,
    /// The directory of the data sets.
    pub data_dir: &'a Path,
}

/// The personal predictor of a client after the last round of a run.
#[allow(missing_debug_implementations)] // A predictor may be a closure.
pub struct ClientPredictor {
    client: ClientId,
    /// The number of clients K.
    clients: usize,
    model: Arc<dyn Model>,
    session: Session,
    /// The request for the client's scores, with what the server has published.
    request: Request,
    predictor: Predictor,
    correction: Option<PriorCorrection>,
    note: Option<String>,
}

impl Finished {
    /// Checks that the run keeps the states of its clients, without a look at its rows.
    ///
    /// # Errors
    /// The clients have no predictors of their own; they are built with rows or by an algorithm that the program brought
    /// ([`Experiment::with_data`](super::Experiment::with_data), `with_algorithm`); or their states are elsewhere, not kept, or
    /// not those of the run's results.
    pub fn check_clients(&self, config: &Config) -> Result<(), RunError> {
        self.states(config).map(drop)
    }

    /// Whether clients may have predictors of their own; where not, all predict with the global particles.
    pub fn has_client_predictors(config: &Config) -> bool {
        let can = config.algorithm.capabilities();
        !can.centralised && (can.personal || config.evaluation.personal)
    }

    /// The predictor of a client, as it is scored in `clients.csv`.
    ///
    /// # Arguments
    /// * `config`: the run's, from [`Finished::config`]; its `backend` computes, and may be another one than the run's
    ///
    /// # Errors
    /// As [`Self::check_clients`]; or the run's rows cannot be read again or are others than in the training, there is no
    /// such client, it has no predictor of its own, or its state cannot be used.
    pub fn client_predictor(&self, config: &Config, asked: AskedClient<'_>) -> Result<ClientPredictor, RunError> {
        let (kept, streams) = (self.states(config)?, Streams::new(config.seed));
        let again = self.rows_of_training(config, asked.data_dir, (&kept, streams))?;
        let Assigned { data, partition, class_weights, mut corrections, .. } = again;
        let names = ClientNames::new(partition.names().to_vec());
        let roster: Vec<usize> = partition.clients().iter().map(Vec::len).collect();
        let client = self.numbered(asked.name, &names, roster.len())?;

        // As in `run`, but for one client.
        let model = self.model(config, &data.train)?;
        let session = Session::named(&config.backend, config.precision)?;
        let train = Table::new(data.train, &data.normalisation).weighted(class_weights.as_deref());
        let shards = (&train, partition.clients());
        let initial = first_particles(&*model, config.algorithm.particles(), shards, streams, &session)?;
        let shard = Shard::new(train.clone(), partition.clients()[client].clone(), session.clone());
        let here = (&roster[..], vec![(client, shard)]);
        let halves = config.algorithm.build(config.setup(&model, here, train.width(), initial, &session))?;
        let (mut server, mut half) = halves.into_pair(client)?;
        kept.restore_one(&mut *server, (client, &mut *half))?;

        let wanted = Ask::Score(Scoring { own: true, ..Scoring::default() });
        let published = SharedMessage::sent(server.publish()?, config.federation.wire);
        let request = Request::new(kept.round(), client, wanted, published);
        let predictor = half.predictor(&request)?;
        let correction = corrections.remove(&client);
        let note = match predictor {
            Predictor::Published if correction.is_some() => None,
            Predictor::Published => {
                let is_feature = self.client_feature(config)?.is_some();
                Some(has_none(config, &names.of(client), is_feature)?)
            }
            Predictor::Own(_) | Predictor::Rows(_) => None,
        };
        Ok(ClientPredictor { client, clients: roster.len(), model, session, request, predictor, correction, note })
    }

    /// The rows of the training and their clients, as they were.
    fn rows_of_training(
        &self,
        config: &Config,
        data_dir: &Path,
        (kept, streams): (&Checkpoints, Streams),
    ) -> Result<Assigned, RunError> {
        let again = assigned(config, None, data_dir, streams).map_err(|error| {
            RunError::Config(format!(
                "a client's personal predictor is built with the rows of the training, which cannot be read again: \
                 {error}"
            ))
        })?;
        let digests = Digests::of(&again.data, &again.partition);
        let own_model = self.model.as_ref().map(|model| blocks_of(model.layout()));
        kept.must_have(&digests, own_model.as_deref(), config.rounds).map_err(|error| self.of_checkpoint(error))?;
        Ok(again)
    }

    /// The checkpoint with the states of the clients after the last round.
    fn states(&self, config: &Config) -> Result<Checkpoints, RunError> {
        self.must_know_model()?;
        let (run, no) = (self.path.display(), |reason: String| Err(RunError::Config(reason)));
        if config.rows_are_at_sites() {
            return no(format!(
                "the clients of {run} are sites, which keep their states themselves: with \
                 `evaluation.personal` a site's results (`<state>/<run>/results`) predict with its personal predictor; leave --client out \
                 to predict here with the global particles (in a program: `Finished::forecast`)"
            ));
        }
        let during = "a run with `evaluation.personal` = true scores them itself (`Outcome::personal`, clients.csv)";
        if let AlgorithmConfig::Own(own) = &config.algorithm {
            return no(format!(
                "{run} has an algorithm of a program's own, `{}`, which no config describes, and a client's personal predictor is built \
                 by it; {during}",
                own.kind
            ));
        }
        if self.card.own_data {
            return no(format!(
                "{run} has rows of a program's own, which are not in its directory, and a client's personal predictor is built with \
                 them; {during}"
            ));
        }
        let Some(last) = self.summary.rounds.last().map(|record| record.round) else {
            return no(format!(
                "{run} has a site's own results, without the states of clients; leave --client out to predict with the \
                 predictor of these results (in a program: `Finished::forecast`)"
            ));
        };
        if !Self::has_client_predictors(config) {
            return no(format!(
                "algorithm kind `{}` has one predictor for all clients; leave --client out (in a program: `Finished::forecast`), train a \
                 personalised method ({}), or with evaluation.personal, and where clients keep nothing of their own evaluation.prior_correction too",
                config.algorithm.name(),
                kinds_that(|can| can.personal).join(", ")
            ));
        }
        let best = self.summary.facts.iter().find(|(name, _)| name == BEST_ROUND).map(|(_, best)| best);
        if let Some(best) = best.filter(|best| **best != last.to_string()) {
            return no(format!(
                "the results of {run} are those of round {best} (stop.patience), and the states of its clients those of \
                 round {last}; train without `stop.patience`"
            ));
        }
        let dir = self.path.join(run_dir::CHECKPOINT);
        let name = self.path.join(run_dir::CONFIG).display().to_string();
        let resolved = schema().resolve(Source { name: &name, text: &self.config_toml }, &Overrides::default())?;
        let kept = Checkpoints::to_read(&dir, last, &resolved).map_err(|error| self.of_checkpoint(error))?;
        match (kept, rounds(&dir)?.last()) {
            (Some(kept), _) => Ok(kept),
            (None, Some(other)) => no(format!(
                "the results of {run} are those of round {last}, and its checkpoint is of round {other}; `fedstein train \
                 --resume {run}` (in a program: `Artifacts::resume`) ends the run that was begun again"
            )),
            (None, None) => no(format!(
                "{run} has no checkpoint, which would hold the states of its clients; train with `checkpoint.enabled = \
                 true` and `checkpoint.keep = true`"
            )),
        }
    }

    /// The error of a checkpoint that is another run's, in words that are not about resuming.
    fn of_checkpoint(&self, error: CheckpointError) -> RunError {
        let run = self.path.display();
        match error {
            CheckpointError::Data { what, found, expected } => RunError::Config(format!(
                "the {what} not those that {run} was trained with (sha256 {found:.12} instead of \
                 {expected:.12}); a client's personal predictor is built with these"
            )),
            CheckpointError::Model(message) => RunError::Config(format!("{run}: {message}")),
            CheckpointError::Config(keys) => RunError::Config(format!(
                "{run}/{} is not what the run was trained with:\n  {}",
                run_dir::CONFIG,
                keys.join("\n  ")
            )),
            other => other.into(),
        }
    }

    /// The number of the client with this name.
    pub(super) fn numbered(&self, name: &str, names: &ClientNames, clients: usize) -> Result<ClientId, RunError> {
        let is_asked = |client: &ClientId| match names.as_slice().get(*client) {
            Some(natural) => natural == name,
            None => client.to_string() == name,
        };
        (0..clients).find(is_asked).ok_or_else(|| {
            let there = match names.is_empty() {
                true => format!("are numbered from 0 to {}", clients.saturating_sub(1)),
                false => format!("are {}", listed(names)),
            };
            let run = self.path.display();
            RunError::Config(format!("there is no client `{name}`; those of {run} {there}"))
        })
    }
}

/// The note on a client that predicts with the global particles.
///
/// # Arguments
/// * `client`: what it is called
/// * `is_feature`: whether the client is a feature of its rows
///
/// # Errors
/// The method is not personalised, so that the client adds nothing but as a feature.
fn has_none(config: &Config, client: &str, is_feature: bool) -> Result<String, RunError> {
    let can = config.algorithm.capabilities();
    let what = format!("client {client} has no predictor of its own and predicts with the global particles");
    match can.personal || (can.keeps_upload && config.evaluation.personal) {
        true => Ok(format!("{what}: it has never trained")),
        false if is_feature => Ok(what),
        false => Err(RunError::Config(format!(
            "{what} (algorithm kind `{}`); leave --client out (in a program: `Finished::forecast`), or train with evaluation.prior_correction",
            config.algorithm.name()
        ))),
    }
}

/// The first names of clients.
fn listed(names: &ClientNames) -> String {
    first(LISTED, (0..names.as_slice().len()).map(|client| format!("`{}`", names.of(client))))
}

impl ClientPredictor {
    /// What the user should know of this predictor, in a sentence.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Whether it is the client's own: one that has never trained has none, and what the server has published predicts.
    pub(super) fn is_own(&self) -> bool {
        !matches!(self.predictor, Predictor::Published)
    }

    /// The predictive parameters of rows, in the form that the model takes, by the code that scores the client's own test
    /// rows. `None` where there are no rows.
    ///
    /// # Errors
    /// The device does not answer, or the global particles are missing.
    pub(super) fn outputs(
        &self,
        data: Dataset,
        normalisation: &Normalisation,
        chunk: usize,
    ) -> Result<Option<Outputs>, RunError> {
        let held = |data: Dataset| HeldOut::of_one(data, normalisation, self.client, self.clients);
        let empty = || data.select(&[]);
        let evaluator = ClientEvaluator {
            model: self.model.clone(),
            session: self.session.clone(),
            validation: held(empty()),
            calibration: CalibrationRows::new(held(empty())),
            corrections: self.correction.clone().map(|correction| (self.client, correction)).into_iter().collect(),
            test: held(data),
            scale: Scale::IDENTITY,
            chunk,
            bins: 1,
        };
        evaluator.predicted(&evaluator.test, &self.request, Some(&self.predictor))
    }
}
