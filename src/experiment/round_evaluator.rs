//! Evaluates a round: the global particles on the test rows and on the validation rows, each here or at the clients that
//! hold them, and the clients' personal predictors.

use std::collections::BTreeMap;

use super::evaluate::{Evaluator, Predicted};
use crate::error::RunError;
use crate::federation::client_evaluator::{
    PUBLISHED_SCORES, PUBLISHED_VALIDATION_SCORES, TEST_SCORES, VALIDATION_SCORES, no_rows, no_scores,
};
use crate::federation::event::{Event, EventKind};
use crate::federation::fault_policy::FaultPolicy;
use crate::federation::fleet::Fleet;
use crate::federation::inquiry::{Scores, ask_for_scores};
use crate::metrics::{ClientScores, Evaluation, PersonalScores};
use crate::models::Task;
use crate::particles::Particles;
use crate::protocol::{ClientId, Message, PARTICLES, Posterior, Reply, RequestKind, Scoring, ServerHalf};

/// Evaluates the rounds of a run.
#[derive(Debug)]
pub struct RoundEvaluator<'a> {
    /// The rows of all metrics: test rows, or with `evaluation.rows` the validation rows.
    test: RowsAt<'a>,
    /// The validation rows, where they are others and are to be scored in every evaluated round.
    validation: Option<RowsAt<'a>>,
    /// Whether the clients are at sites of their own, which write files of their own results at the end.
    has_sites: bool,
}

/// The place of some rows.
#[derive(Debug)]
pub enum RowsAt<'a> {
    /// In this process, which predicts them with the server's particles.
    Here(&'a Evaluator),
    /// At the clients: each scores the global particles on its own rows and sends sums, which are pooled.
    Clients(Box<AtClients>),
}

/// Rows at the clients.
#[derive(Debug)]
pub struct AtClients {
    /// The names of all clients, `[K]`.
    names: Vec<String>,
    /// The number of these rows that each client said it has, `[K]`.
    rows: Vec<usize>,
    /// Sums of scores over no rows, of the kind that every client sends.
    none: ClientScores,
}

/// A round that has ended.
#[derive(Clone, Copy)]
pub struct Ended<'a> {
    /// The round, from 1.
    pub round: usize,
    /// The clients.
    pub fleet: &'a dyn Fleet,
    /// The rules of requests.
    pub policy: &'a FaultPolicy,
    /// The server after the round.
    pub server: &'a dyn ServerHalf,
    /// Whether the results of the run are those of this round.
    pub is_last: bool,
}

/// The evaluation of a round.
#[derive(Debug)]
pub struct EvaluatedRound {
    /// The predictions, or the sums of the clients' scores.
    pub predicted: Predicted,
    /// The metrics of the global particles.
    pub evaluation: Evaluation,
    /// What the validation rows say of the global particles, where they are scored apart.
    pub validation: Option<Measured>,
    /// The scores of the clients' personal predictors, where these were asked for.
    pub own: Option<OwnScores>,
    /// The number of clients that sent usable scores; `None` where no client was asked.
    pub scored: Option<usize>,
    /// The events of requests and replies.
    pub events: Vec<Event>,
}

/// The scores of particles on some rows.
#[derive(Debug)]
pub enum Measured {
    /// The metrics of rows in this process.
    Here(Box<Evaluation>),
    /// The sums that the clients sent.
    Clients(Box<PersonalScores>),
}

/// The scores of the clients' personal predictors on their held-out rows, by client.
#[derive(Debug)]
pub struct OwnScores {
    /// On the test rows.
    pub test: PersonalScores,
    /// On the validation rows.
    pub validation: PersonalScores,
}

impl RowsAt<'_> {
    /// Rows at clients with these names and numbers of rows `[K]`, for a model of this task and a number of bins of
    /// confidence.
    ///
    /// # Errors
    /// The model is a toy density, which has no rows.
    pub fn clients((names, rows): (Vec<String>, Vec<usize>), task: Task, bins: usize) -> Result<Self, RunError> {
        Ok(Self::Clients(Box::new(AtClients { names, rows, none: no_scores(task, bins).ok_or_else(no_rows)? })))
    }

    fn at_clients(&self) -> Option<&AtClients> {
        match self {
            Self::Here(_) => None,
            Self::Clients(at) => Some(at),
        }
    }

    /// The sums of scores over no rows.
    fn none(&self) -> Result<ClientScores, RunError> {
        match self {
            Self::Here(evaluator) => evaluator.no_scores().ok_or_else(no_rows),
            Self::Clients(at) => Ok(at.none.clone()),
        }
    }

    fn has_classes(&self) -> bool {
        match self {
            Self::Here(evaluator) => evaluator.has_classes(),
            Self::Clients(at) => at.none.classes().is_some(),
        }
    }
}

impl<'a> RoundEvaluator<'a> {
    /// An evaluator of clients in this process, by rows at these places.
    pub fn new(test: RowsAt<'a>, validation: Option<RowsAt<'a>>) -> Self {
        Self { test, validation, has_sites: false }
    }

    /// An evaluator of clients at sites of their own.
    pub fn of_sites(test: RowsAt<'a>, validation: Option<RowsAt<'a>>) -> Self {
        Self { test, validation, has_sites: true }
    }

    /// Whether the clients are asked for scores, given whether their personal predictors are scored.
    pub fn asks(&self, own: bool) -> bool {
        own || self.at_clients().iter().any(Option::is_some)
    }

    /// The test rows and the validation rows that are at the clients.
    fn at_clients(&self) -> [Option<&AtClients>; 2] {
        [Some(&self.test), self.validation.as_ref()].map(|place| place.and_then(RowsAt::at_clients))
    }

    /// Whether the sites must be told after the last round which round's results theirs are: it is not known before with
    /// `patience`, and no other request says so where they are asked for no scores.
    pub fn closes_apart(&self, patience: bool, own: bool) -> bool {
        self.has_sites && (patience || !self.asks(own))
    }

    /// Whether the validation rows that are scored apart have classes; `None` where none are.
    pub fn validates_classes(&self) -> Option<bool> {
        self.validation.as_ref().map(RowsAt::has_classes)
    }

    /// The sums over no rows of the kind that clients send of the rows by which a round is the best; `None` where these rows
    /// are here.
    pub fn no_sums(&self) -> Option<&ClientScores> {
        self.validation.as_ref().unwrap_or(&self.test).at_clients().map(|at| &at.none)
    }

    /// Evaluates a round. Each of the clients 0 to `clients` − 1 is asked at most once.
    ///
    /// # Arguments
    /// * `own`: whether the clients' personal predictors are scored too
    ///
    /// # Errors
    /// Anything fails but a client.
    pub fn evaluate(&self, ended: Ended<'_>, clients: usize, own: bool) -> Result<EvaluatedRound, RunError> {
        let [published, validation] = self.at_clients().map(|at| at.is_some());
        let wanted = Scoring { own, published, validation, is_last: ended.is_last };
        let asked = || self.inquire(ended, message(ended.server, wanted)?, clients, wanted);
        let mut inquiry = self.asks(own).then(asked).transpose()?;
        let (particles, posterior) = (ended.server.particles(), ended.server.posterior());
        let validation = match &self.validation {
            None => None,
            Some(RowsAt::Here(evaluator)) => {
                let predicted = evaluator.predict(particles, &posterior)?;
                Some(Measured::Here(Box::new(evaluator.evaluate(&predicted)?)))
            }
            Some(RowsAt::Clients(_)) => {
                let sums = inquiry.as_mut().and_then(|inquiry| inquiry.sums.remove(PUBLISHED_VALIDATION_SCORES));
                sums.map(|sums| Measured::Clients(Box::new(sums)))
            }
        };
        Ok(EvaluatedRound { validation, ..self.evaluated((particles, &posterior), inquiry)? })
    }

    /// Evaluates the results of a run after its end, and lets sites write theirs.
    ///
    /// # Arguments
    /// * `ended`: the round whose results they are
    /// * `best`: the particles after that round, where it is not the last one
    ///
    /// # Errors
    /// Anything fails but a client.
    pub fn close(
        &self,
        ended: Ended<'_>,
        best: Option<(&Particles, &Posterior)>,
        clients: usize,
    ) -> Result<EvaluatedRound, RunError> {
        let published = self.test.at_clients().is_some();
        let wanted = Scoring { published, is_last: true, ..Scoring::default() };
        let message = || match best {
            Some((particles, _)) => Ok(Message::default().with_array(PARTICLES, particles.to_array()?)),
            None => message(ended.server, wanted),
        };
        let asked = || self.inquire(ended, message()?, clients, wanted);
        let inquiry = (self.has_sites || published).then(asked).transpose()?;
        let posterior = ended.server.posterior();
        self.evaluated(best.unwrap_or((ended.server.particles(), &posterior)), inquiry)
    }

    /// The scores of particles on test rows here, or those that the clients sent.
    fn evaluated(
        &self,
        (particles, posterior): (&Particles, &Posterior),
        mut inquiry: Option<Inquiry>,
    ) -> Result<EvaluatedRound, RunError> {
        let mut sent = |name| inquiry.as_mut().and_then(|inquiry| inquiry.sums.remove(name));
        let (predicted, evaluation) = match &self.test {
            RowsAt::Here(evaluator) => {
                let predicted = evaluator.predict(particles, posterior)?;
                let evaluation = evaluator.evaluate(&predicted)?;
                (predicted, evaluation)
            }
            RowsAt::Clients(at) => {
                let scores = sent(PUBLISHED_SCORES).ok_or_else(no_clients)?;
                let evaluation = Evaluation::of_sums(scores.pooled());
                (Predicted::Pooled { names: at.names.clone(), scores }, evaluation)
            }
        };
        let own = sent(TEST_SCORES).zip(sent(VALIDATION_SCORES));
        let own = own.map(|(test, validation)| OwnScores { test, validation });
        let (scored, events) = inquiry.map(|inquiry| (inquiry.scored, inquiry.events)).unzip();
        let events = events.unwrap_or_default();
        Ok(EvaluatedRound { predicted, evaluation, validation: None, own, scored, events })
    }

    /// Asks all clients, and refuses replies without usable sums of every wanted name.
    fn inquire(
        &self,
        Ended { round, fleet, policy, .. }: Ended<'_>,
        message: Message,
        clients: usize,
        asked: Scoring,
    ) -> Result<Inquiry, RunError> {
        let clients: Vec<ClientId> = (0..clients).collect();
        let Scores { replies, mut events } = ask_for_scores(fleet, policy, message, round, &clients, asked)?;
        let wanted = self.wanted(asked)?;
        let mut scored = 0;
        let mut all = vec![Vec::with_capacity(clients.len()); wanted.len()];
        for (client, reply) in clients.iter().zip(&replies) {
            let of = |reply: &Reply| wanted.iter().map(|sums| sums.read(reply, *client)).collect::<Result<Vec<_>, _>>();
            let came = reply.as_ref().map(of).transpose().unwrap_or_else(|reason| {
                let refused = Event::new(round, 1, *client, EventKind::Refused).of_request(RequestKind::Scores);
                events.push(refused.with_detail(reason));
                None
            });
            scored += usize::from(came.is_some());
            // An absent client adds no rows to any sum.
            let came = came.unwrap_or_else(|| wanted.iter().map(|sums| sums.none.clone()).collect());
            all.iter_mut().zip(came).for_each(|(all, came)| all.push(came));
        }
        let together = |clients| PersonalScores::new(clients).ok_or_else(no_clients);
        let sums = wanted.iter().zip(all).map(|(sums, clients)| Ok((sums.name, together(clients)?)));
        Ok(Inquiry { sums: sums.collect::<Result<_, RunError>>()?, scored, events })
    }

    /// The sums that replies must have.
    fn wanted(&self, asked: Scoring) -> Result<Vec<WantedSums>, RunError> {
        let [test, validation] = self.at_clients();
        let sums = |name, none, at: Option<&AtClients>| WantedSums { name, none, told: at.map(|at| at.rows.clone()) };
        let mut wanted = Vec::new();
        for (name, at, is_asked) in
            [(PUBLISHED_SCORES, test, asked.published), (PUBLISHED_VALIDATION_SCORES, validation, asked.validation)]
        {
            wanted.extend(at.filter(|_| is_asked).map(|at| sums(name, at.none.clone(), Some(at))));
        }
        if asked.own {
            let none = self.test.none()?;
            wanted.extend([sums(TEST_SCORES, none.clone(), test), sums(VALIDATION_SCORES, none, None)]);
        }
        Ok(wanted)
    }
}

/// The message with which clients score what the server publishes. A method whose clients never share their last layers
/// publishes no whole particles; where these are scored, the message has them as well.
fn message(server: &dyn ServerHalf, wanted: Scoring) -> Result<Message, RunError> {
    let message = server.publish()?;
    let scores_them = wanted.published || wanted.validation || (wanted.is_last && !wanted.own);
    match scores_them && !message.arrays.contains_key(PARTICLES) {
        true => Ok(message.with_array(PARTICLES, server.particles().to_array()?)),
        false => Ok(message),
    }
}

/// The sums that the clients sent.
struct Inquiry {
    /// The sums of all clients, by the name of the array.
    sums: BTreeMap<&'static str, PersonalScores>,
    scored: usize,
    events: Vec<Event>,
}

/// Sums that every reply must have.
struct WantedSums {
    /// The name of their array.
    name: &'static str,
    /// The sums over no rows.
    none: ClientScores,
    /// The number of rows that each client said it has, `[K]`, where it has said so.
    told: Option<Vec<usize>>,
}

impl WantedSums {
    /// The sums in a reply, over as many rows as the client has told.
    fn read(&self, reply: &Reply, client: ClientId) -> Result<ClientScores, String> {
        let name = self.name;
        let values = reply.message.array(name).map_err(|error| error.to_string())?.values.to_f64();
        let sums = self.none.read(&values);
        let sums = sums.map_err(|error| format!("the reply's \"{name}\" cannot be used: {error}"))?;
        match self.told.as_ref().and_then(|told| told.get(client)).filter(|told| **told != sums.rows()) {
            None => Ok(sums),
            Some(told) => {
                Err(format!("the reply's \"{name}\" are of {} rows; the client has told {told}", sums.rows()))
            }
        }
    }
}

fn no_clients() -> RunError {
    RunError::Config("there are no clients to be scored".into())
}
