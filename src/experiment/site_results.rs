//! What a site keeps of a run after its last round: the results on its own test rows, as the directory of a finished run,
//! which `fedstein report` and `fedstein predict` read. Nothing of it is sent.

use std::path::Path;

use toml::{Table, Value};

use super::artifact::{lines_csv, to_json, write_bytes, write_predicted};
use super::config::{Config, EvaluationRows, Rotate, RotateFrom, RotationConfig};
use super::evaluate::Predicted;
use super::facts::facts;
use super::finished::{Finished, SCHEMA_VERSION, Summary, to_safetensors};
use super::site_predictor::{OWN, OWN_OF_ROWS, PREDICTOR, PUBLISHED};
use super::{rotation, run_dir, run_report};
use crate::backend::Session;
use crate::checkpoint::digest;
use crate::datasets::{DataConfig, ModelCard, Rotation};
use crate::error::RunError;
use crate::models::Model;
use crate::particles::Particles;
use crate::protocol::ClientId;
use crate::remote::CalibrationTold;
use crate::report::files::{create_private, remove_if_there};
use crate::site::{MOST_ROWS, SiteConfig};

/// The keys of `[data]` of a run with rotated features.
const PRINCIPAL: RotationConfig = RotationConfig { rotate: Rotate::Principal, rotate_from: RotateFrom::AllClients };

/// The results of a run at one site.
pub(super) struct SiteResults<'a> {
    /// The site's own file.
    pub site: &'a SiteConfig,
    /// What the server may set of a configuration.
    pub config: &'a Config,
    /// What all sites agree on.
    pub card: &'a ModelCard,
    /// The number of training rows N_k of each client, `[K]`.
    pub roster: &'a [usize],
    /// The model.
    pub model: &'a dyn Model,
    /// The device.
    pub session: &'a Session,
    /// The basis of the features, of a run with `data.rotate`.
    pub basis: Option<&'a Rotation>,
    /// The last round.
    pub round: usize,
    /// The predictor.
    pub predictor: Kept,
    /// What corrects the predictor's log-probabilities, `[C]`; `None` for nothing.
    pub correction: Option<&'a [f64]>,
    /// The predictions of the site's test rows; `None` where it has none.
    pub predicted: Option<Predicted>,
    /// The lines of these rows in the site's file.
    pub test_lines: Option<&'a [u64]>,
    /// Notes on the cells of the site's rows.
    pub notes: &'a [String],
}

/// What is kept of the predictor of a site's results.
pub(super) enum Kept {
    /// The global particles, which are the predictor; `None` where the server does not publish whole particles.
    Published(Option<Particles>),
    /// The particles of the client's personal predictor.
    Own(Particles),
    /// The global particles. The predictor is the client's own and needs its training rows.
    OwnOfRows(Option<Particles>),
}

impl Kept {
    /// The particles that are kept.
    fn particles(&self) -> Option<&Particles> {
        match self {
            Self::Published(particles) | Self::OwnOfRows(particles) => particles.as_ref(),
            Self::Own(particles) => Some(particles),
        }
    }

    /// The fact about the predictor.
    fn fact(&self) -> &'static str {
        match self {
            Self::Published(_) => PUBLISHED,
            Self::Own(_) => OWN,
            Self::OwnOfRows(_) => OWN_OF_ROWS,
        }
    }
}

/// Adds to the results in a directory what the calibration rows of all sites have given, with what it does on the site's own
/// test rows, and writes the report anew. It is that of the global particles: results of the client's personal predictor stay
/// as they are, and so does a directory without results.
///
/// # Errors
/// The calibration is not valid, or a file cannot be read or written.
pub(super) fn keep_calibration(dir: &Path, client: ClientId, told: &CalibrationTold) -> Result<(), RunError> {
    let CalibrationTold { kept, results } = told;
    kept.check().map_err(|problem| RunError::Config(format!("the server's calibration: {problem}")))?;
    if kept.rows.max(results.rows) > MOST_ROWS {
        return Err(RunError::Config(format!("the server's calibration has more than {MOST_ROWS} rows")));
    }
    if !dir.join(run_dir::MODEL).exists() {
        return Ok(());
    }
    let mut site = Finished::open(dir)?;
    if [OWN, OWN_OF_ROWS].iter().any(|own| site.has_predictor(own)) {
        return Ok(());
    }
    let mut kept = kept.clone();
    if let Some(sets) = &mut kept.conformal {
        sets.client = Some(client);
    }
    site.card.calibration = Some(kept);
    let bins = site.config()?.evaluation.bins;
    let classes = site.card.classes.as_deref().unwrap_or_default();
    site.summary.calibration = Some(match dir.join(run_dir::PREDICTIONS).exists() {
        true => site.recalibrated(None)?.on_rows(results, (&site.test_predictions()?, bins), classes, None)?,
        false => results.clone(),
    });
    write_bytes(&dir.join(run_dir::MODEL), &to_json(&site.card)?)?;
    write_bytes(&dir.join(run_dir::SUMMARY), &to_json(&site.summary)?)?;
    run_report::write_report(dir, &dir.join(run_dir::REPORT)).map(|_| ())
}

impl SiteResults<'_> {
    /// Writes the files into a directory, which is created if it is missing, in place of those of an earlier call.
    ///
    /// # Errors
    /// A file cannot be written, or the predictions cannot be scored.
    pub fn write(&self, dir: &Path) -> Result<(), RunError> {
        let Self { site, config, card, roster, model, session, predicted, predictor, .. } = self;
        create_private(dir).map_err(|error| RunError::Output(format!("{}: {error}", dir.display())))?;
        let write = |name: &str, bytes: &[u8]| write_bytes(&dir.join(name), bytes);
        // It is written last: a directory without it is not that of a finished run.
        remove_if_there(&dir.join(run_dir::SUMMARY)).map_err(|error| RunError::Output(error.to_string()))?;
        let evaluation = predicted.as_ref().map(|predicted| predicted.evaluate(config.evaluation.bins));
        let evaluation = evaluation.transpose()?.unwrap_or_default();
        let (rows, which) = (evaluation.rows, config.evaluation.rows);
        let config_toml = self.config_of_site(rows)?;
        write(run_dir::CONFIG, config_toml.as_bytes())?;
        let mut card = (*card).clone();
        card.prior_correction = self.correction.map(<[f64]>::to_vec);
        // New rows here are the site's own. What the server's card says of other columns does not count.
        let named = Some(&site.data.name_column).filter(|name| !name.is_empty());
        for column in card.encoding.iter_mut().flat_map(|encoding| &mut encoding.columns) {
            let is_of_name = named.is_some() && column.name.as_ref() == named;
            column.default = is_of_name.then(|| site.name.clone());
        }
        write(run_dir::MODEL, &to_json(&card)?)?;
        if let Some(particles) = predictor.particles() {
            write(run_dir::PARTICLES, &to_safetensors(particles)?)?;
        }
        if let Some(basis) = self.basis {
            write(run_dir::ROTATION, &rotation::to_safetensors(basis)?)?;
        }
        let uncertainty = match predicted {
            Some(predicted) => write_predicted(dir, predicted)?,
            None => None,
        };
        if let Some(lines) = self.test_lines.filter(|_| predicted.is_some()) {
            write(run_dir::TEST_LINES, lines_csv(lines).as_bytes())?;
        }
        let about = format!("{} training and {rows} {} rows of `{}`", roster[site.index], which.word(), site.name);
        let clients = format!("client {} of {}", site.index, roster.len());
        let model = (config.model.kind().name, *model);
        let particles = predictor.particles().map_or(config.algorithm.particles(), Particles::count);
        let mut facts = facts(config, particles, (about, clients), model, session);
        let corrected = "to how frequent the classes are at this site".to_owned();
        facts.extend(self.correction.map(|_| ("probabilities corrected".to_owned(), corrected)));
        facts.extend([(PREDICTOR.into(), predictor.fact().into()), ("rounds".into(), self.round.to_string())]);
        let summary = Summary {
            schema_version: SCHEMA_VERSION,
            name: site.name.clone(),
            at_site: true,
            evaluation,
            uncertainty,
            personal: None,
            notes: self.notes.iter().cloned().chain(which.note(rows)).collect(),
            facts,
            rounds: Vec::new(),
            partition: None,
            scores: None,
            sites: Vec::new(),
            clients: Vec::new(),
            calibration: None,
            own_algorithm: None,
            config_sha256: Some(digest::of_bytes(config_toml.as_bytes())),
        };
        write(run_dir::SUMMARY, &to_json(&summary)?)?;
        run_report::write_report(dir, &dir.join(run_dir::REPORT)).map(|_| ())
    }

    /// The configuration with the site's own rows, of which so many are predicted, as TOML.
    fn config_of_site(&self, rows: usize) -> Result<String, RunError> {
        let wrong = |error: toml::ser::Error| RunError::Output(error.to_string());
        let mut data = Table::try_from(DataConfig::Csv(self.site.data.table())).map_err(wrong)?;
        // The key is not used with these results, and a table in one process cannot be without test rows.
        if self.site.data.test_fraction == 0.0 {
            data.remove("test_fraction");
        }
        if self.basis.is_some() {
            data.extend(Table::try_from(PRINCIPAL).map_err(wrong)?);
        }
        let (name, backend) = (self.site.name.clone(), self.site.backend.clone());
        let mut config = Config { name, backend, data, rounds: self.round, ..self.config.clone() };
        match config.evaluation.rows {
            EvaluationRows::Validation if rows > 0 => {
                // The share that these rows are of those that are not for the test.
                let share = rows as f64 / (rows + self.roster[self.site.index]) as f64;
                config.partition.insert("validation".to_owned(), Value::Float(share));
            }
            _ => config.evaluation.rows = EvaluationRows::Test,
        }
        Ok(Table::try_from(config).map_err(wrong)?.to_string())
    }
}
