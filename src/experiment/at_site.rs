//! A client at its own site: what it answers to a server's messages. Rows and state are on the site's disk, and nothing of
//! a message says where.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::Serialize;

use super::assemble::{check_size, squared_residuals};
use super::client_config;
use super::config::{Config, EvaluationRows};
use super::evaluate::{Predicted, target_scale};
use super::prior_correction;
use super::rotation;
use super::run_dir;
use super::site_results::{self, Kept, SiteResults};
use crate::array::{Array, Values};
use crate::backend::{AnyBackend, BackendError, Session};
use crate::checkpoint::State;
use crate::datasets::{Dataset, Encoding, ModelCard, Rotation, SecondMoment, TrainTest, unit_count};
use crate::error::RunError;
use crate::federation::client_evaluator::ClientEvaluator;
use crate::federation::held_out::{CalibrationRows, HeldOut};
use crate::federation::prior_correction::PriorCorrection;
use crate::models::Model;
use crate::particles::Particles;
use crate::protocol::{Ask, CLIENT_BYTES, ClientHalf, Message, PARTICLES, Predictor, Request, Wire};
use crate::random::Streams;
use crate::remote::{
    Arrays, Content, Identity, MOMENT, Opened, Parcel, ReplyHead, RequestHead, TooLarge, open, seal, seal_failure,
};
use crate::report::files::remove_if_there;
use crate::rows::{Shard, Table};
use crate::site::{
    Deviations, Disk, DiskError, Holder, MEANS, MOST_INDEX, Means, Misfit, NO_PRODUCTS, NO_SUMS, NO_TEXTS, PRODUCTS,
    RESIDUALS, SiteConfig, SiteLimits, SiteRows, Squares, Terms, agreed_form, describe, is_scored, measure,
};

/// A site that answers a server, one message after another.
pub struct SiteClient {
    site: SiteConfig,
    backend: AnyBackend,
    rows: SiteRows,
    /// The run in which it takes part, as far as this process knows.
    run: Option<Part>,
}

/// A site's part in a run.
struct Part {
    run: u64,
    site: SiteConfig,
    terms: Terms,
    config: Config,
    basis: Option<Rotation>,
    disk: Disk,
    half: Box<dyn ClientHalf>,
    /// The state of the half as it was built.
    built: State,
    /// The round at whose end the half has its state; `None` where that is not known.
    at: Option<usize>,
    evaluator: ClientEvaluator,
    /// The rows of the site's own results. The evaluator has them too unless they are too few to be scored for a server.
    test: HeldOut,
    /// The lines in the site's file of the rows that are evaluated.
    test_lines: Option<Vec<u64>>,
    /// Notes on the cells of the site's rows.
    notes: Vec<String>,
    /// The shape of the particles, `[N, d]`.
    shape: [usize; 2],
}

/// What a site answers: a content, with arrays.
type Answer = (Content, Arrays);

/// The answer to the question who the site is, which needs no rows; `None` for any other message.
pub fn answer_without_rows(site: &SiteConfig, parcel: &Parcel) -> Option<Parcel> {
    let Opened { run, number, content: Content::Identify {}, .. } = open(parcel.clone()).ok()? else { return None };
    seal(run, number, Content::Identity(identity(site)), &Arrays::default()).ok()
}

fn identity(site: &SiteConfig) -> Identity {
    Identity { index: site.index, name: site.name.clone() }
}

impl SiteClient {
    /// A site with its rows, on its own backend.
    ///
    /// # Errors
    /// The backend is not compiled in.
    pub fn new(site: SiteConfig, rows: SiteRows) -> Result<Self, BackendError> {
        let backend = AnyBackend::named(&site.backend)?;
        Ok(Self { site, backend, rows, run: None })
    }

    /// The answer to a parcel. What cannot be answered, or panics, has a failure with the reason as its answer.
    pub fn answer(&mut self, parcel: Parcel) -> Parcel {
        let envelope = parcel.envelope.clone();
        let opened = match open(parcel) {
            Ok(opened) => opened,
            Err(reason) => return seal_failure(0, &envelope, reason),
        };
        let (run, number) = (opened.run, opened.number);
        let answered = catch_unwind(AssertUnwindSafe(|| self.respond(opened))).unwrap_or_else(|_| {
            // What the panic has left in memory is undefined: the next message begins with the site's directory. Its words,
            // which may have values of rows, stay at the site: they were printed there.
            self.run = None;
            Err("its computation panicked; what it said is in the output of the site".to_owned())
        });
        let sealed = answered.and_then(|(content, arrays)| seal(run, number, content, &arrays));
        sealed.unwrap_or_else(|reason| seal_failure(run, &envelope, self.site.without_paths(&reason)))
    }

    /// The answer to a message whose arrays are larger than what the site reads.
    pub fn refuse(&self, large: &TooLarge) -> Parcel {
        let (bytes, most) = (large.bytes, self.site.limits.megabytes);
        let reason =
            format!("the message has {bytes} bytes of arrays: more than limits.megabytes of this site, {most} MiB");
        seal_failure(0, &large.envelope, reason)
    }

    fn respond(&mut self, opened: Opened) -> Result<Answer, String> {
        let run = opened.run;
        let content = match &opened.content {
            Content::Identify {} => Content::Identity(identity(&self.site)),
            Content::Describe {} => {
                // Other rows would change what is asked of all sites next, and each of the others would refuse that.
                if self.run.as_ref().is_none_or(|part| part.run != run) {
                    Disk::check_rows(&self.site.state, run, &self.rows.fingerprint).map_err(in_words)?;
                }
                Content::Description(Box::new(describe(&self.site, &self.rows, run)))
            }
            Content::Measure { features, means, encoding } => {
                Content::Deviations(self.measured(run, features.as_deref(), means, encoding.as_deref())?)
            }
            Content::Moment(card) => return self.moment(run, card),
            Content::Residuals(terms) => {
                if !self.site.tell.sums_of(unit_count(&self.rows.train)) {
                    return Err(format!("this site {NO_SUMS}, which those of squared residuals are"));
                }
                let initial = opened.message(Default::default())?;
                self.only_once(run, RESIDUALS, &(terms, initial.fingerprint()))?;
                Content::Squares(self.squares(terms, &initial).map_err(in_words)?)
            }
            Content::Begin(terms) => {
                let initial = opened.message(Default::default())?;
                self.begin(run, terms, &initial)?
            }
            Content::Calibration(told) => {
                let client = self.site.index;
                let part = self.part_of(run)?;
                site_results::keep_calibration(&part.disk.results(), client, told).map_err(in_words)?;
                Content::Ready { visited: part.disk.visited().map_err(in_words)? }
            }
            Content::Request(head) => return self.request(&opened, head.clone()),
            _ => return Err("this is a site, which such a message does not concern".into()),
        };
        Ok((content, Arrays::default()))
    }

    /// The directory of a run, locked. What holds the lock is the site's own matter.
    fn disk(&self, run: u64) -> Result<Disk, String> {
        Disk::open(&self.site.state, run).map_err(|error| match error {
            DiskError::Busy(_) => "this site is busy with another message of this run".into(),
            error => in_words(error),
        })
    }

    /// Takes part in a run from its beginning, or again.
    fn begin(&mut self, run: u64, terms: &Terms, initial: &Message) -> Result<Content, String> {
        // A run that this process took part in before releases its lock first.
        self.run = None;
        let disk = self.disk(run)?;
        if let Some((kept, _)) = disk.terms(&self.rows.fingerprint).map_err(in_words)?
            && kept != *terms
        {
            return Err("the terms of this run have changed since it began; start the run anew".into());
        }
        let visited = disk.visited().map_err(in_words)?;
        let part = self.part(run, disk, terms, initial).map_err(in_words)?;
        part.disk.keep_terms(terms, initial, &self.rows.fingerprint).map_err(in_words)?;
        // A copy that is quicker to read than the files. Where it cannot be written, or another run at this site is writing it,
        // the files are read again.
        let _ = self.rows.keep(&self.site);
        self.run = Some(part);
        Ok(Content::Ready { visited })
    }

    /// The site's part in a run: as this process knows it, or from the disk.
    fn part_of(&mut self, run: u64) -> Result<&mut Part, String> {
        if self.run.as_ref().is_none_or(|part| part.run != run) {
            self.run = None;
            let disk = self.disk(run)?;
            let Some((terms, initial)) = disk.terms(&self.rows.fingerprint).map_err(in_words)? else {
                return Err(format!(
                    "this site has no part in run {run:016x}: it was not told its terms, or lost them. Stop the run and resume it, \
                     which tells them again"
                ));
            };
            self.run = Some(self.part(run, disk, &terms, &initial).map_err(in_words)?);
        }
        self.run.as_mut().ok_or_else(|| "the run has ended".into())
    }

    /// Builds the half of this client and its evaluator.
    fn part(&self, run: u64, disk: Disk, terms: &Terms, initial: &Message) -> Result<Part, RunError> {
        let client = self.site.index;
        let (roster, rows) = (&terms.roster, self.rows.train.rows());
        if roster.get(client) != Some(&rows) {
            let told = roster.get(client).map_or_else(|| "no".to_owned(), ToString::to_string);
            return Err(RunError::Config(format!(
                "the server expects {told} rows of client {client}, which has {rows}"
            )));
        }
        let Ready { config, model, session, train, scored, test, tells_test, notes, basis, initial } =
            self.ready(terms, initial)?;
        let normalisation = &terms.card.normalisation;
        let own = std::iter::once((client, train.targets.counts(0..rows)));
        let corrections = prior_correction::of_clients(own, terms.class_prior.as_ref());
        let table = Table::new(train, normalisation).weighted(terms.class_weights.as_deref());
        let shape = [initial.count(), initial.dim()];
        let shard = Shard::new(table.clone(), (0..rows).collect(), session.clone());
        let width = table.width();
        let setup = config.setup(&model, (roster, vec![(client, shard)]), width, initial, &session);
        let (held, most) = (config.algorithm.held_numbers(&setup), self.site.limits.numbers);
        if held > most {
            return Err(RunError::Config(format!(
                "a client of algorithm kind `{}` holds {held} numbers in memory for this model, besides rows and particles; limits.numbers \
                 of this site is {most}",
                config.algorithm.name()
            )));
        }
        let halves = config.algorithm.build(setup)?;
        let half = halves.into_client(client)?;
        let built = half.save()?;
        let held = |data: Dataset| HeldOut::of_one(data, normalisation, client, roster.len());
        let (test_lines, none) = (test.lines.clone(), test.select(&[]));
        let test = held(test);
        let evaluator = ClientEvaluator {
            model,
            session,
            validation: held(scored.validation),
            calibration: CalibrationRows::new(held(scored.calibration)),
            corrections,
            test: if tells_test { test.clone() } else { held(none) },
            scale: target_scale(normalisation),
            chunk: config.evaluation.chunk,
            bins: config.evaluation.bins,
        };
        let at = (disk.visited().map_err(|error| RunError::Config(error.to_string()))? == 0).then_some(0);
        let (site, terms) = (self.site.clone(), terms.clone());
        Ok(Part { run, site, terms, config, basis, disk, half, built, at, evaluator, test, test_lines, notes, shape })
    }

    /// What follows from the terms, before an algorithm is built.
    fn ready(&self, terms: &Terms, initial: &Message) -> Result<Ready, RunError> {
        terms.card.check().map_err(|problem| RunError::Config(format!("the server's card of the model: {problem}")))?;
        let in_terms = |problem: String| RunError::Config(format!("the server's terms: {problem}"));
        terms.check_classes().map_err(in_terms)?;
        if terms.roster.len() > MOST_INDEX + 1 {
            return Err(in_terms(format!(
                "they name {} clients; at most {} are read",
                terms.roster.len(),
                MOST_INDEX + 1
            )));
        }
        // Training on texts that a server guesses would say which there are.
        if !self.rows.may_tell_texts(&self.site) {
            return Err(RunError::Config(format!("the site {NO_TEXTS}")));
        }
        let config = client_config::at_site(&terms.config).map_err(RunError::Config)?;
        let SiteLimits { numbers, steps, .. } = self.site.limits;
        let asked = config.algorithm.visit_cost(self.rows.train.rows());
        if asked.steps > steps {
            let asked = asked.steps;
            let text = format!("the server asks for {asked} steps in a visit; limits.steps of this site is {steps}");
            return Err(RunError::Config(text));
        }
        self.rows.must_hold(terms.card.features, self.site.limits).map_err(RunError::Config)?;
        let prepared = self.rows.prepared(self.site.index, &terms.card);
        let in_form = |misfit: Misfit| RunError::Config(misfit.to_string());
        let mut data = prepared.map_err(in_form)?;
        let in_agreed_form = |rows, called| {
            let own = (rows, &self.rows.columns);
            agreed_form(Holder::Client(self.site.index), own, called, &terms.card).map_err(in_form)
        };
        let (mut validation, of_validation) = in_agreed_form(&self.rows.validation, "the validation rows")?;
        let (mut calibration, of_calibration) = in_agreed_form(&self.rows.calibration, "the calibration rows")?;
        data.notes.extend(of_validation.into_iter().chain(of_calibration));
        let basis = initial.arrays.get(rotation::MATRIX).map(rotation::from_array).transpose();
        let basis = basis.map_err(|reason| RunError::Config(format!("the server's rotation: {reason}")))?;
        if let Some(basis) = &basis {
            data = rotation::applied(basis, data)?;
            validation = rotation::rotated(basis, validation)?;
            calibration = rotation::rotated(basis, calibration)?;
        }
        let TrainTest { train, test, notes, .. } = data;
        let own = train.targets.counts(0..train.rows());
        let checked = terms.check_weights(self.site.tell, &own);
        checked.map_err(RunError::Config)?;
        let (test, own) = match config.evaluation.rows {
            EvaluationRows::Test => (test, &self.rows.test),
            EvaluationRows::Validation => (validation.clone(), &self.rows.validation),
        };
        // Of rows that a server is not told of it gets no scores.
        let tells_test = is_scored(self.site.tell, own);
        let scored = |rows: Dataset, own| if is_scored(self.site.tell, own) { rows } else { rows.select(&[]) };
        let scored = Scored {
            validation: scored(validation, &self.rows.validation),
            calibration: scored(calibration, &self.rows.calibration),
        };
        let model = config.model(&train)?;
        check_size(&*config.algorithm, &*model)?;
        let array = initial.array(PARTICLES)?;
        check_particles(array, config.algorithm.particles(), &*model, numbers)?;
        let (samples, dim) = (asked.draws, model.layout().dim());
        if samples.saturating_mul(dim) > numbers {
            return Err(RunError::Config(format!(
                "the server asks for {samples} draws of {dim} numbers in a step; limits.numbers of this site is {numbers}"
            )));
        }
        let session = self.backend.open(config.precision)?;
        let initial = Particles::from_array(array, model.layout(), &session)?;
        Ok(Ready { config, model, session, train, scored, test, tells_test, notes, basis, initial })
    }
}

/// What follows from the terms of a run.
struct Ready {
    config: Config,
    model: Arc<dyn Model>,
    session: Session,
    train: Dataset,
    scored: Scored,
    /// The rows of the site's own results: the test rows, or with `evaluation.rows` the validation rows.
    test: Dataset,
    /// Whether they are scored for a server.
    tells_test: bool,
    /// Notes on the cells of all these rows.
    notes: Vec<String>,
    /// The basis of the features, of a run with `data.rotate`.
    basis: Option<Rotation>,
    initial: Particles,
}

/// The rows that are scored for a server, beside those of the results: those held out, or none of a kind of which the site has
/// too few to tell of them.
struct Scored {
    validation: Dataset,
    calibration: Dataset,
}

impl SiteClient {
    /// Refuses a question about the rows unless it is the first of its kind in this run, or the same again: the answers to
    /// several would tell more about the rows.
    fn only_once(&self, run: u64, file: &str, question: &impl Serialize) -> Result<(), String> {
        // The run that this process takes part in has the lock.
        let opened = match self.run.as_ref().filter(|part| part.run == run) {
            Some(_) => None,
            None => Some(self.disk(run)?),
        };
        let disk = opened.as_ref().or(self.run.as_ref().map(|part| &part.disk)).ok_or("the run has ended")?;
        let question = serde_json::to_string(question).map_err(in_words)?;
        match disk.asked_once(file, &question).map_err(in_words)? {
            true => Ok(()),
            false => {
                Err(
                    "the server has asked this before in this run, with other numbers; a site answers once. Have the rows or \
                     the file of a site changed since the run began? Then begin it anew"
                        .into(),
                )
            }
        }
    }

    /// The sums of squared deviations from the means over all rows.
    fn measured(
        &self,
        run: u64,
        features: Option<&[String]>,
        means: &Means,
        encoding: Option<&Encoding>,
    ) -> Result<Deviations, String> {
        match encoding {
            Some(encoding) => self.only_once(run, MEANS, &(features, means, encoding))?,
            None => self.only_once(run, MEANS, &(features, means))?,
        }
        measure(&self.site, &self.rows, features, means, encoding).map_err(in_words)
    }

    /// The sum of x xᵀ over the training rows, in the form that the model takes.
    fn moment(&self, run: u64, card: &ModelCard) -> Result<Answer, String> {
        let SiteConfig { index, tell, .. } = &self.site;
        if !tell.products_of(unit_count(&self.rows.train)) {
            return Err(format!("this site {NO_PRODUCTS}"));
        }
        if !self.rows.may_tell_texts(&self.site) {
            return Err(format!("this site {NO_TEXTS}"));
        }
        self.rows.must_hold(card.features, self.site.limits)?;
        self.only_once(run, PRODUCTS, card)?;
        let (rows, _) =
            agreed_form(Holder::Client(*index), (&self.rows.train, &self.rows.columns), "", card).map_err(in_words)?;
        let upper = SecondMoment::of(rows.features.view()).upper().to_vec();
        let array = Array { shape: vec![upper.len()], values: Values::F64(upper) };
        let arrays = Arrays::of(&Message::default().with_array(MOMENT, array), Wire::Full);
        Ok((Content::Products {}, arrays))
    }

    /// The squared residuals of the initial particles on some training rows.
    fn squares(&self, terms: &Terms, initial: &Message) -> Result<Squares, RunError> {
        let Ready { config, model, session, train, initial, .. } = self.ready(terms, initial)?;
        let table = Table::new(train, &terms.card.normalisation);
        let rows: Vec<usize> = (0..table.rows()).collect();
        let streams = Streams::new(config.seed);
        squared_residuals(&*model, &initial, &table, (self.site.index, &rows), streams, &session)
    }

    fn request(&mut self, opened: &Opened, head: RequestHead) -> Result<Answer, String> {
        let (keep, stateful) = (head.keep, head.stateful);
        let message = opened.message(head.numbers.clone())?;
        let request = head.request(opened.run, message)?;
        let client = self.site.index;
        if request.client != client {
            return Err(format!("this is client {client}, and the request is to client {}", request.client));
        }
        let part = self.part_of(opened.run)?;
        let message = part.answer(&request, keep, stateful)?;
        let reply = request.reply(message);
        let arrays = Arrays::of(&reply.message, request.reply_wire());
        Ok((Content::Reply(ReplyHead::of(&reply)), arrays))
    }
}

impl Part {
    /// The message of the reply to a request, rounded to the precision in which it is sent.
    fn answer(&mut self, request: &Request, keep: usize, stateful: bool) -> Result<Message, String> {
        // A server may send some of the particles, as DSGLD sends a client its own chains, and some of their blocks, as FedWBA
        // with shared layers. That they are those which the method expects is checked where they are read.
        let [count, dim] = self.shape;
        if let Some(particles) = request.message.arrays.get(PARTICLES)
            && !matches!(particles.shape[..], [rows, columns] if (1..=count).contains(&rows) && columns <= dim)
        {
            return Err(format!(
                "the request has particles {:?}, and this run's are [{count}, {dim}]",
                particles.shape
            ));
        }
        match &request.ask {
            Ask::Train => self.train(request, keep, stateful),
            Ask::Answer(question) => {
                self.go_to(request.counted, stateful)?;
                self.half.answer(request, question).map_err(in_words)
            }
            Ask::Score(wanted) => {
                if wanted.own && !self.config.evaluation.personal {
                    return Err(
                        "evaluation.personal is false in this run: the client's personal predictor is not scored"
                            .into(),
                    );
                }
                // What the server publishes has nothing of the client's state.
                if wanted.own {
                    self.go_to(request.counted, stateful)?;
                }
                if wanted.is_last {
                    let written = self.write_results(request, wanted.own);
                    written.map_err(|error| format!("the site's own results cannot be written: {error}"))?;
                }
                let own = wanted.own.then(|| self.half.predictor(request)).transpose().map_err(in_words)?;
                self.evaluator.score(request, *wanted, own.as_ref()).map_err(in_words)
            }
            Ask::Calibrate(what) => self.evaluator.calibrate(request, what).map_err(in_words),
        }
    }

    /// Writes the site's own results after the last round: with its personal predictor, or with the global particles.
    fn write_results(&mut self, request: &Request, is_own: bool) -> Result<(), RunError> {
        let own = is_own.then(|| self.half.predictor(request)).transpose()?;
        let (ClientEvaluator { model, session, scale, corrections, .. }, test) = (&self.evaluator, &self.test);
        let published = request.message.arrays.get(PARTICLES);
        let published = published.map(|array| Particles::from_array(array, model.layout(), session)).transpose()?;
        let predictor = match &own {
            None => Kept::Published(published),
            // A client that never trained, or whose predictions alone are corrected.
            Some(Predictor::Published) => published.map_or(Kept::OwnOfRows(None), Kept::Own),
            Some(Predictor::Own(particles)) => Kept::Own(particles.clone()),
            Some(Predictor::Rows(_)) => Kept::OwnOfRows(published),
        };
        let correction = match &predictor {
            Kept::Own(_) => corrections.get(&request.client).map(PriorCorrection::log_ratios),
            Kept::Published(_) | Kept::OwnOfRows(_) => None,
        };
        // A site without such rows has nothing to report on, and still a model.
        let outputs = self.evaluator.predicted(test, request, own.as_ref())?;
        let clusters = test.clusters(request.client);
        let predicted =
            outputs.map(|of| Predicted::of(&test.targets, (of.components, of.width), of.values, *scale, clusters));
        let predicted = predicted.transpose()?;
        let results = SiteResults {
            site: &self.site,
            config: &self.config,
            card: &self.terms.card,
            roster: &self.terms.roster,
            model: &**model,
            session,
            basis: self.basis.as_ref(),
            round: request.round,
            predictor,
            correction,
            predicted,
            test_lines: self.test_lines.as_deref(),
            notes: &self.notes,
        };
        results.write(&self.disk.results())
    }

    /// Trains, and commits the visit. The same request has the same reply without a step.
    fn train(&mut self, request: &Request, keep: usize, stateful: bool) -> Result<Message, String> {
        if let Some(message) = self.disk.reply(request).map_err(in_words)? {
            return Ok(message);
        }
        self.go_to(request.counted, stateful)?;
        // Results after an earlier last round are those of a finished run no more.
        remove_if_there(&self.disk.results().join(run_dir::SUMMARY)).map_err(in_words)?;
        // A visit that fails leaves the half in an unknown state; the next request reads it from the disk.
        self.at = None;
        let message = self.half.handle(request, &|_, _| {}).map_err(in_words)?;
        let message = message.with_scalar(CLIENT_BYTES, self.half.state_bytes() as f64);
        let message = request.reply(message).message;
        let state = self.half.save().map_err(in_words)?;
        self.disk.commit(request, keep, state, &message).map_err(in_words)?;
        self.at = Some(request.round);
        Ok(message)
    }

    /// Brings the half to its state at the end of the round `counted`.
    fn go_to(&mut self, counted: usize, stateful: bool) -> Result<(), String> {
        if self.at == Some(counted) {
            return Ok(());
        }
        self.at = None;
        let state = match self.disk.state_at(counted) {
            Ok(state) => state,
            // It begins its order of rows anew, whatever an older copy of its directory has.
            Err(DiskError::Lost { .. }) if !stateful => {
                self.disk.begin_anew();
                None
            }
            Err(error) => return Err(error.to_string()),
        };
        let state = state.filter(|state| !state.is_empty()).unwrap_or_else(|| self.built.clone());
        if !state.is_empty() {
            self.half.restore(&state).map_err(in_words)?;
        }
        self.at = Some(counted);
        Ok(())
    }
}

/// Checks the particles of a server before anything is allocated for them.
fn check_particles(array: &Array, count: usize, model: &dyn Model, most: usize) -> Result<(), RunError> {
    let dim = model.layout().dim();
    if array.shape != [count, dim] {
        let found = &array.shape;
        return Err(RunError::Config(format!("the server's particles are {found:?}, not [{count}, {dim}]")));
    }
    if count.saturating_mul(dim) > most {
        return Err(RunError::Config(format!(
            "the server's particles are {count} times {dim} numbers; limits.numbers of this site is {most}"
        )));
    }
    if count.saturating_mul(count) > most {
        return Err(RunError::Config(format!(
            "the matrices of {count} particles have {count} times {count} numbers; limits.numbers of this site is {most}"
        )));
    }
    match array.values.first_non_finite() {
        Some(at) => Err(RunError::Config(format!("the server's particles are not finite at element {at}"))),
        None => Ok(()),
    }
}

fn in_words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
