//! The server of a federation, which has no rows: agreement of the sites → the algorithm's server half → rounds → files.
//! [`run()`](super::run()) is the same with all clients in one process.

use crate::array::Array;
use crate::backend::{AnyBackend, Backend};
use crate::datasets::{DataConfig, ModelCard, Rotation};
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{Message, PARTICLES, Wire};
use crate::random::{self, Streams};
use crate::remote::{Arrays, Carrier, Content, Link, Remote, Wait};
use crate::report::ClientNames;
use crate::site::Terms;
use crate::site::class_prior::ClassPrior;

use super::artifact::Artifacts;
use super::assemble::{check_size, drawn_particles, has_noise, with_noise};
use super::client_config;
use super::config::{Config, EvaluationRows};
use super::drive::{Prepared, headline, on_correlation};
use super::evaluate::Evaluator;
use super::outcome::Outcome;
use super::personal::note_on_published;
use super::progress::Observer;
use super::questions::{Questions, listed};
use super::round_evaluator::{RoundEvaluator, RowsAt};
use super::sites::{PublicRows, Sites};
use super::{prior_correction, rotation};

/// Runs the server of a federation on backend B over the sites of a carrier. Files go to `artifacts`, if given, as soon as
/// their content exists.
///
/// # Errors
/// The configuration needs rows at the server or is not the one that `artifacts` describes, or the sites do not agree, which
/// is found before the first round and before a file is written; a round fails; or a file cannot be written.
pub fn serve<B: Backend>(
    config: &Config,
    carrier: &dyn Carrier,
    observer: &dyn Observer,
    artifacts: Option<&mut Artifacts>,
) -> Result<Outcome, RunError> {
    serve_on(AnyBackend::of::<B>(), config, carrier, observer, artifacts)
}

/// As [`serve`], on a backend that is chosen at run time, such as the config's: `AnyBackend::named(&config.backend)?`.
///
/// # Errors
/// As [`serve`].
pub fn serve_on(
    backend: AnyBackend,
    config: &Config,
    carrier: &dyn Carrier,
    observer: &dyn Observer,
    mut artifacts: Option<&mut Artifacts>,
) -> Result<Outcome, RunError> {
    // The backend that was chosen counts, whatever the key says.
    let config = &Config { backend: backend.name().to_owned(), ..config.clone() };
    let (algorithm, streams) = (&*config.algorithm, Streams::new(config.seed));
    let can = algorithm.capabilities();
    check(config)?;
    artifacts.as_deref().map_or(Ok(()), |artifacts| artifacts.must_be_of(config, backend.name()))?;
    let mut policy = config.fault_policy(can, random::nonce());
    if let Some(past) = artifacts.as_deref().and_then(Artifacts::past) {
        // A run that resumes has its own number, by which its sites know it.
        policy.restore(past.reliability()?);
    }
    let questions = Questions::new(Link::new(carrier, policy.number()), config, observer);

    // What the sites hold, and the form in which the model sees it; with the server's own test rows, if it has any.
    let test = PublicRows::read(config)?;
    let sites = Sites::described(&questions, config)?;
    sites.agreement.notes.iter().for_each(|note| observer.note(note));
    sites.check(config, test.as_ref())?;
    sites.note_on_rows(config).iter().for_each(|note| observer.note(note));
    let Agreed { card, basis, test, class_weights, class_prior, notes } = Agreed::on(&sites, &questions, config, test)?;
    notes.iter().for_each(|note| observer.note(note));

    // The model and its initial particles.
    let model = config.model(&card.shape())?;
    check_size(algorithm, &*model)?;
    // Particles of which a part is untrained are not calibrated.
    let calibration = sites.calibration(config, model.task(), &card)?.filter(|_| !can.untrained_part);
    let session = backend.open(config.precision)?;
    let roster = sites.agreement.rows.clone();
    let (card_of_sites, config_of_sites) = (card.clone(), client_config::for_sites(config)?);
    let terms =
        Terms { card: card_of_sites, config: config_of_sites, roster: roster.clone(), class_weights, class_prior };
    let drawn = drawn_particles(&*model, algorithm.particles(), streams);
    let squares = match has_noise(&*model) {
        true => sites.squares(&questions, &terms, (&sent(drawn.clone(), basis.as_ref()), algorithm.particles()))?,
        false => Vec::new(),
    };
    let initial = Particles::from_array(&with_noise(&*model, drawn, &squares), model.layout(), &session)?;
    if observer.gives_up() {
        return Err(RunError::Interrupted { round: 0, rounds: config.rounds });
    }
    if let Some(artifacts) = artifacts.as_deref_mut() {
        let mut rows = sites.rows(config, card.clone(), test.as_ref());
        rows.notes.extend(notes);
        artifacts.open(config, algorithm, rows, basis.as_ref(), &*model, &session)?;
        artifacts.warning().iter().for_each(|warning| observer.note(warning));
    }
    sites.ask(&questions, &Content::Begin(Box::new(terms)), &sent(initial.to_array()?, basis.as_ref()))?;

    // The algorithm's server half, over the clients at their sites.
    let halves = algorithm.build(config.setup(&model, (&roster, Vec::new()), card.features, initial, &session))?;

    // The rounds.
    let scoring = config.scoring(algorithm);
    let own_rows = match test {
        Some(test) => Some(Evaluator::new(model.clone(), session.clone(), test.rows, &card.normalisation, scoring)?),
        None => None,
    };
    let at_sites = |rows| RowsAt::clients(sites.held_out(rows), model.task(), scoring.bins);
    let test = match &own_rows {
        Some(rows) => RowsAt::Here(rows),
        None => at_sites(config.evaluation.rows)?,
    };
    let is_watching = config.validation_key().is_some() && config.evaluation.rows != EvaluationRows::Validation;
    let validation = is_watching.then(|| at_sites(EvaluationRows::Validation)).transpose()?;
    let evaluator = RoundEvaluator::of_sites(test, validation);
    observer.started(config.rounds, &headline(config, algorithm, &sites.in_words()));
    let names = sites.names();
    let ((link, questions), peers) = (questions.split(), sites.peers.clone());
    let waiting = waiting(observer, names.clone());
    let remote = Remote::new(link, sites.peers, policy.rules.deadline, &waiting);
    let fleet = config.fleet(can, remote, roster.len(), streams);
    let (server, fleet) = (halves.server, &*fleet);
    on_correlation(&*server, config, || None)?.iter().for_each(|note| observer.note(note));
    let schedule = config.schedule(algorithm, roster.len(), streams);
    let prepared = Prepared {
        config,
        algorithm,
        schedule,
        server,
        fleet,
        roster: &roster,
        names,
        evaluator,
        calibration,
        policy,
        session,
    };
    let outcome = prepared.run(observer, artifacts)?;
    if let Some(calibrated) = &outcome.calibrated {
        let told = questions.tell_calibration(&peers, calibrated);
        told.iter().for_each(|note| observer.note(note));
    }
    observer.finished();
    Ok(outcome)
}

/// What sites and server agree on before the model is known.
struct Agreed {
    /// Features, target and their scales.
    card: ModelCard,
    /// The basis of the features, with `data.rotate`.
    basis: Option<Rotation>,
    /// The server's own test rows, if it has any.
    test: Option<PublicRows>,
    /// How often a training row of each class counts, `[C]`, with `data.class_weights`.
    class_weights: Option<Vec<f64>>,
    /// How frequent the classes are at all sites, with `evaluation.prior_correction`.
    class_prior: Option<ClassPrior>,
    /// Notes for the user, one sentence each.
    notes: Vec<String>,
}

impl Agreed {
    /// Asks the sites for what the configuration needs.
    ///
    /// # Errors
    /// A site does not answer or does not tell what is needed, or the server's own rows do not fit theirs.
    fn on(
        sites: &Sites,
        questions: &Questions<'_>,
        config: &Config,
        test: Option<PublicRows>,
    ) -> Result<Self, RunError> {
        let can = config.algorithm.capabilities();
        let (class_weights, weighted) = sites.class_weights(config)?.unzip();
        let (class_prior, corrected) = sites.class_prior(config, class_weights.as_deref())?.unzip();
        let uncorrected = sites
            .counts()
            .and_then(|counts| prior_correction::uncorrected(config, can, &counts, sites.name_is_feature()));
        let (card, units) = sites.card(questions, config)?;
        let weighted = weighted.into_iter().flatten();
        let mut notes: Vec<String> = units.into_iter().chain(weighted).chain(corrected).chain(uncorrected).collect();
        notes.extend(config.note_on_event(&card));
        notes.extend(note_on_published(config, can));
        let basis = sites.basis(questions, config, &card)?;
        let (test, of_test) = test.map(|rows| rows.prepared(&card, basis.as_ref())).transpose()?.unzip();
        notes.extend(of_test.into_iter().flatten());
        notes.extend(card.normalisation.features.coarse_notes(card.feature_names.as_deref()));
        Ok(Self { card, basis, test, class_weights, class_prior, notes })
    }
}

/// Initial particles as the sites receive them: with the basis of the features, if there is one.
fn sent(particles: Array, basis: Option<&Rotation>) -> Arrays {
    let message = Message::default().with_array(PARTICLES, particles);
    let message = match basis {
        Some(basis) => message.with_array(rotation::MATRIX, rotation::to_array(basis)),
        None => message,
    };
    Arrays::of(&message, Wire::Full)
}

/// Tells the user about sites that are silent or were started again while the server waits.
fn waiting(observer: &dyn Observer, names: ClientNames) -> impl Fn(Wait<'_>) + Sync {
    move |wait| match wait {
        // No step of a client: it only lets the user end the wait for scores and answers.
        Wait::GoesOn => observer.step(0, 1),
        Wait::Silent(clients) => {
            let silent = listed(clients.iter().map(|client| names.of(*client)));
            observer.note(&format!("still waiting for the answer of {silent}"));
        }
        Wait::Restarted(client) => {
            observer.note(&format!("the process of {} had ended, and is started again", names.of(client)));
        }
    }
}

/// Checks that nothing in the configuration needs rows at the server.
fn check(config: &Config) -> Result<(), RunError> {
    let refuse = |text: String| Err(RunError::Config(text));
    config.check_values()?;
    if !config.rows_are_at_sites() {
        return refuse(format!(
            "the rows of a federation are at its sites: `data.kind` must be \"{}\", not \"{}\"",
            DataConfig::AT_SITES,
            config.data_kind()
        ));
    }
    let partition = config.partition()?;
    for (share, key) in [(partition.validation, "validation"), (partition.calibration, "calibration")] {
        if share > 0.0 {
            return refuse(format!(
                "`partition.{key}` = {share}: the rows of a federation are held out by its sites; set `data.{key}_fraction` in \
                 their own files, and `partition.{key}` = 0"
            ));
        }
    }
    if config.algorithm.capabilities().centralised {
        return refuse(format!(
            "algorithm kind `{}` needs all rows in one place; in a federation use `newton-dsvgd`, `dsvgd` or `fedavg`",
            config.algorithm.name()
        ));
    }
    Ok(())
}
