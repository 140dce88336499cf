//! Evaluates a round: the published particles on the test rows, here or at the clients that hold them, and the clients'
//! own predictors.

use std::collections::BTreeMap;

use super::evaluate::{Evaluator, Predicted};
use crate::backend::Backend;
use crate::error::RunError;
use crate::federation::client_evaluator::{PUBLISHED_SCORES, TEST_SCORES, VALIDATION_SCORES, no_rows, no_scores};
use crate::federation::event::{Event, EventKind};
use crate::federation::fault_policy::FaultPolicy;
use crate::federation::fleet::Fleet;
use crate::federation::inquiry::{Scores, ask_for_scores};
use crate::metrics::{ClientScores, Evaluation, PersonalScores};
use crate::models::Task;
use crate::particles::Particles;
use crate::protocol::{ClientId, Posterior, Reply, RequestKind, Scoring, ServerHalf};

/// The place of the test rows.
#[derive(Debug)]
pub enum Judge<'a, B: Backend> {
    /// In this process, which predicts them with the server's particles.
    Rows(&'a Evaluator<B>),
    /// At the clients: each scores the published particles on its own test rows and sends sums, which are pooled.
    Clients {
        /// The names of all clients, `[K]`.
        names: Vec<String>,
        /// The number of test rows that each client said it has, `[K]`.
        rows: Vec<usize>,
        /// Sums of scores over no rows, of the kind that every client sends.
        none: Box<ClientScores>,
    },
}

/// A round that has ended.
#[derive(Clone, Copy)]
pub struct Ended<'a, B: Backend> {
    /// The round, from 1.
    pub round: usize,
    /// The clients.
    pub fleet: &'a dyn Fleet,
    /// The rules of requests.
    pub policy: &'a FaultPolicy,
    /// The server after the round.
    pub server: &'a dyn ServerHalf<B>,
    /// Whether it is the last round of the run.
    pub is_last: bool,
}

/// The evaluation of a round.
#[derive(Debug)]
pub struct Judged {
    /// The predictions, or the sums of the clients' scores.
    pub predicted: Predicted,
    /// The metrics of the published particles.
    pub evaluation: Evaluation,
    /// The scores of the clients' own predictors, where these were asked for.
    pub own: Option<OwnScores>,
    /// The number of clients that sent usable scores; `None` where no client was asked.
    pub scored: Option<usize>,
    /// The events of the requests for scores.
    pub events: Vec<Event>,
}

/// The scores of the clients' own predictors in one round. A client without usable scores has sums without rows.
#[derive(Debug)]
pub struct OwnScores {
    /// On the test rows.
    pub test: PersonalScores,
    /// On the validation rows.
    pub validation: PersonalScores,
}

impl<B: Backend> Judge<'_, B> {
    /// A judge for clients that hold the test rows, with their names and numbers of test rows `[K]`, a model of this task and
    /// a number of bins of confidence.
    ///
    /// # Errors
    /// The model is a toy density, which has no rows.
    pub fn clients((names, rows): (Vec<String>, Vec<usize>), task: Task, bins: usize) -> Result<Self, RunError> {
        Ok(Self::Clients { names, rows, none: Box::new(no_scores(task, bins).ok_or_else(no_rows)?) })
    }

    /// Whether the clients are asked for scores, given whether their own predictors are scored.
    pub fn asks(&self, own: bool) -> bool {
        own || matches!(self, Self::Clients { .. })
    }

    /// Evaluates particles of an earlier round on the rows in this process; `None` where these are at the clients.
    ///
    /// # Errors
    /// The device fails, or a prediction is not finite.
    pub fn again(
        &self,
        particles: &Particles<B>,
        posterior: &Posterior,
    ) -> Result<Option<(Predicted, Evaluation)>, RunError> {
        let Self::Rows(evaluator) = self else { return Ok(None) };
        let predicted = evaluator.predict(particles, posterior)?;
        let evaluation = evaluator.evaluate(&predicted)?;
        Ok(Some((predicted, evaluation)))
    }

    /// Evaluates a round. Each of the clients 0 to `clients` − 1 is asked at most once.
    ///
    /// # Arguments
    /// * `own`: whether the clients' own predictors are scored too
    ///
    /// # Errors
    /// Anything fails but a client.
    pub fn evaluate(&self, ended: Ended<'_, B>, clients: usize, own: bool) -> Result<Judged, RunError> {
        match self {
            Self::Rows(evaluator) => {
                let predicted = evaluator.predict(ended.server.particles(), &ended.server.posterior())?;
                let evaluation = evaluator.evaluate(&predicted)?;
                let none = || evaluator.no_scores().ok_or_else(no_rows);
                let wanted = Scoring { own, published: false, is_last: ended.is_last };
                let inquiry = own.then(|| Inquiry::new(ended, clients, wanted, (&none()?, None))).transpose()?;
                Ok(Judged::new(predicted, evaluation, inquiry))
            }
            Self::Clients { names, rows, none } => {
                let wanted = Scoring { own, published: true, is_last: ended.is_last };
                let mut inquiry = Inquiry::new(ended, clients, wanted, (none, Some(rows)))?;
                let scores = inquiry.take(PUBLISHED_SCORES).ok_or_else(no_clients)?;
                let evaluation = Evaluation::of_sums(scores.pooled());
                Ok(Judged::new(Predicted::Pooled { names: names.clone(), scores }, evaluation, Some(inquiry)))
            }
        }
    }
}

impl Judged {
    fn new(predicted: Predicted, evaluation: Evaluation, inquiry: Option<Inquiry>) -> Self {
        let Some(mut inquiry) = inquiry else {
            return Self { predicted, evaluation, own: None, scored: None, events: Vec::new() };
        };
        let own = inquiry.take(TEST_SCORES).zip(inquiry.take(VALIDATION_SCORES));
        let own = own.map(|(test, validation)| OwnScores { test, validation });
        Self { predicted, evaluation, own, scored: Some(inquiry.scored), events: inquiry.events }
    }
}

/// The sums that the clients sent.
struct Inquiry {
    /// The sums of all clients, by the name of the array.
    sums: BTreeMap<&'static str, PersonalScores>,
    scored: usize,
    events: Vec<Event>,
}

impl Inquiry {
    /// Asks all clients, and refuses replies without usable sums of every wanted name.
    ///
    /// # Errors
    /// Anything fails but a client.
    fn new<B: Backend>(
        Ended { round, fleet, policy, server, .. }: Ended<'_, B>,
        clients: usize,
        asked: Scoring,
        (none, rows): (&ClientScores, Option<&Vec<usize>>),
    ) -> Result<Self, RunError> {
        let clients: Vec<ClientId> = (0..clients).collect();
        let Scores { replies, mut events } = ask_for_scores(fleet, policy, server, round, &clients, asked)?;
        let published = asked.published.then_some(PUBLISHED_SCORES);
        let own = asked.own.then_some([TEST_SCORES, VALIDATION_SCORES]);
        let wanted: Vec<&str> = published.into_iter().chain(own.into_iter().flatten()).collect();
        let mut scored = 0;
        let mut all = vec![Vec::with_capacity(clients.len()); wanted.len()];
        for (client, reply) in clients.iter().zip(&replies) {
            let told = rows.and_then(|rows| rows.get(*client).copied());
            let one = |reply: &Reply, name| sums(reply, name, none).and_then(|sums| of_all_rows(sums, name, told));
            let of = |reply: &Reply| wanted.iter().map(|name| one(reply, name)).collect::<Result<Vec<_>, _>>();
            let came = reply.as_ref().map(of).transpose().unwrap_or_else(|reason| {
                let refused = Event::new(round, 1, *client, EventKind::Refused).of_request(RequestKind::Scores);
                events.push(refused.with_detail(reason));
                None
            });
            scored += usize::from(came.is_some());
            // An absent client adds no rows to any sum.
            let came = came.unwrap_or_else(|| vec![none.clone(); wanted.len()]);
            all.iter_mut().zip(came).for_each(|(all, came)| all.push(came));
        }
        let together = |clients| PersonalScores::new(clients).ok_or_else(no_clients);
        let sums = wanted.iter().zip(all).map(|(name, clients)| Ok((*name, together(clients)?)));
        Ok(Self { sums: sums.collect::<Result<_, RunError>>()?, scored, events })
    }

    /// The sums of this name, where they were asked for.
    fn take(&mut self, name: &str) -> Option<PersonalScores> {
        self.sums.remove(name)
    }
}

/// The sums of this name in a reply, of the same kind as `none`.
fn sums(reply: &Reply, name: &str, none: &ClientScores) -> Result<ClientScores, String> {
    let values = reply.message.array(name).map_err(|error| error.to_string())?.values.to_f64();
    none.read(&values).map_err(|error| format!("the reply's \"{name}\" cannot be used: {error}"))
}

/// The sums, where they are over as many test rows as the client has told.
fn of_all_rows(sums: ClientScores, name: &str, told: Option<usize>) -> Result<ClientScores, String> {
    match told.filter(|told| name != VALIDATION_SCORES && *told != sums.rows()) {
        None => Ok(sums),
        Some(told) => Err(format!("the reply's \"{name}\" are of {} rows; the client has told {told}", sums.rows())),
    }
}

fn no_clients() -> RunError {
    RunError::Config("there are no clients to be scored".into())
}
