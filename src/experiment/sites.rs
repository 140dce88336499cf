//! What the server of a federation learns from its sites before the first round, and what all of them agree on.

use std::path::PathBuf;

use super::calibrate::Plan;
use super::checkpoints::Digests;
use super::config::{CalibrationConfig, Config, EvaluationRows};
use super::drive::counted;
use super::questions::Questions;
use super::rows_of_run::RowsOfRun;
use super::{class_weights, prior_correction, rotation};
use crate::checkpoint::digest;
use crate::datasets::columns::{Columns, places};
use crate::datasets::{DataConfig, DataError, DataProperties, Dataset, ModelCard, Rotation, SecondMoment, make_second};
use crate::error::RunError;
use crate::models::Task;
use crate::remote::{Arrays, Content, MOMENT, Opened, Peer};
use crate::report::{ClientNames, PartitionTable};
use crate::site::class_prior::ClassPrior;
use crate::site::{
    Agreement, Description, Holder, NO_PRODUCTS, Squares, TargetDescription, Terms, agree, agreed_form, fits,
    means_for, scale, unlike,
};

/// The server's own test rows.
pub(super) struct PublicRows {
    /// The rows: as cells, or in the form that the model takes.
    pub rows: Dataset,
    /// What the cells are.
    columns: Columns,
    /// The sha256 of their file.
    sha256: String,
    /// Whether one of them has no group, and the config names a column of groups.
    lack_groups: bool,
}

impl PublicRows {
    /// Reads the file of `data.test_path`, in its own units; `None` where there is none.
    ///
    /// # Errors
    /// The file is missing or damaged, has no such column, or does not fit the task.
    pub fn read(config: &Config) -> Result<Option<Self>, RunError> {
        let DataConfig::Sites(data) = config.data()? else { return Ok(None) };
        let Some((rows, columns)) = data.test_rows()? else { return Ok(None) };
        let lack_groups = !data.reading.group_column.is_empty() && rows.groups.is_none();
        let path = PathBuf::from(&data.test_path);
        let sha256 = digest::of_file(&path).map_err(|source| DataError::Io { path, source })?;
        Ok(Some(Self { rows, columns, sha256, lack_groups }))
    }

    /// The rows in the form that the model takes, and notes on their cells.
    ///
    /// # Errors
    /// They do not fit what the sites agree on.
    pub fn prepared(self, card: &ModelCard, basis: Option<&Rotation>) -> Result<(Self, Vec<String>), RunError> {
        let rows = agreed_form(Holder::Server, (&self.rows, &self.columns), "the test rows", card);
        let (rows, mut notes) = rows.map_err(|misfit| RunError::Config(misfit.to_string()))?;
        notes.extend(self.lack_groups.then(|| {
            "not each of the server's test rows has a group (data.group_column): intervals and verdict take them for independent"
                .to_owned()
        }));
        let rows = match basis {
            Some(basis) => rotation::rotated(basis, rows)?,
            None => rows,
        };
        Ok((Self { rows, ..self }, notes))
    }
}

/// The sites of a federation, which agree.
pub(super) struct Sites {
    /// What each client tells, `[K]`.
    told: Vec<Description>,
    /// The address of each client, `[K]`.
    pub peers: Vec<Peer>,
    /// What they agree on.
    pub agreement: Agreement,
}

impl Sites {
    /// Asks every site what it holds.
    ///
    /// # Errors
    /// A site does not answer, they do not agree, or `data.positive` is not one of their two classes.
    pub fn described(questions: &Questions<'_>, config: &Config) -> Result<Self, RunError> {
        let peers: Vec<Peer> = (0..questions.peers()).collect();
        let answers = questions.ask(&peers, &Content::Describe {}, &Arrays::default())?;
        let mut told = Vec::new();
        for (peer, opened) in peers.into_iter().zip(answers) {
            let Content::Description(description) = opened.content else { return Err(questions.other_answer(peer)) };
            description.check().map_err(|problem| questions.of_site(peer, &problem))?;
            told.push((peer, *description));
        }
        let descriptions: Vec<Description> = told.iter().map(|(_, description)| description.clone()).collect();
        let mut agreement = agree(&descriptions).map_err(|problem| RunError::Config(problem.to_string()))?;
        if let DataConfig::Sites(rows) = config.data()? {
            make_second(agreement.classes.as_deref_mut().unwrap_or_default(), &rows.positive)?;
        }
        told.sort_by_key(|(_, description)| description.index);
        let (peers, told) = told.into_iter().unzip();
        Ok(Self { told, peers, agreement })
    }

    /// Checks what can be checked before the sites are asked for more: that they tell what `data.rotate` needs, and that the
    /// server's own test rows fit theirs.
    ///
    /// # Errors
    /// The configuration needs something that a site does not tell, or the server's rows do not fit.
    pub fn check(&self, config: &Config, test: Option<&PublicRows>) -> Result<(), RunError> {
        config.check_target(match &self.agreement.classes {
            Some(classes) => DataProperties::classes(classes.len()),
            None => DataProperties::REGRESSION,
        })?;
        let needed = rotation::sources(config, self.told.len())?.unwrap_or(0);
        if let Some(site) = self.told[..needed].iter().find(|site| !site.products) {
            return Err(RunError::Config(format!(
                "{} {NO_PRODUCTS}, which data.rotate = \"principal\" needs; change the site's file, or set data.rotate = \"none\"",
                site.called()
            )));
        }
        if config.evaluation.rows == EvaluationRows::Validation && test.is_some() {
            return Err(RunError::Config(
                "evaluation.rows = \"validation\" scores rows of the sites; leave `data.test_path` empty".into(),
            ));
        }
        let by_rows =
            (config.evaluation.rows == EvaluationRows::Validation).then_some("evaluation.rows = \"validation\"");
        if let Some(key) = by_rows.or(config.validation_key())
            && self.agreement.validation_rows.iter().all(|rows| *rows == 0)
        {
            return Err(RunError::Config(format!(
                "{key}: no site tells of validation rows; set `data.validation_fraction` or `data.validation_path` in the sites' \
                 own files. Of fewer than its `tell.min_rows` a site does not tell"
            )));
        }
        if config.calibration != CalibrationConfig::default()
            && self.agreement.calibration_rows.iter().all(|rows| *rows == 0)
        {
            return Err(RunError::Config(
                "[calibration] is fitted to rows that sites hold out for it, and no site tells of any; set \
                 `data.calibration_fraction` or `data.calibration_path` in the sites' own files. Of fewer than its \
                 `tell.min_rows` a site does not tell"
                    .into(),
            ));
        }
        let fits = test.map_or(Ok(()), |test| fits(Holder::Server, (&test.rows, &test.columns), &self.agreement));
        fits.map_err(|misfit| RunError::Config(misfit.to_string()))
    }

    /// The names of the features and classes, and the scales over the training rows of all sites.
    ///
    /// # Errors
    /// The scale needs sums that a site does not tell, or a site does not answer.
    ///
    /// # Returns
    /// Them, and notes on columns that sites may have in different units.
    pub fn card(&self, questions: &Questions<'_>, config: &Config) -> Result<(ModelCard, Vec<String>), RunError> {
        let (normalise, agreement) = (config.data()?.normalise(), &self.agreement);
        let wrong = |problem: crate::site::ScaleError| RunError::Config(problem.to_string());
        let mut told = Vec::new();
        if let Some(means) = means_for(agreement, normalise).map_err(wrong)? {
            let question = Content::Measure {
                features: agreement.features.clone(),
                means,
                encoding: agreement.encoding.clone().map(Box::new),
            };
            for (client, opened) in self.ask(questions, &question, &Arrays::default())?.into_iter().enumerate() {
                let Content::Deviations(deviations) = opened.content else {
                    return Err(self.other_answer(questions, client));
                };
                told.push(deviations);
            }
        }
        let scale = scale(agreement, &told, normalise).map_err(wrong)?;
        Ok((agreement.card(config.data_kind(), scale), unlike(&self.told, agreement, &told)))
    }

    /// The basis of the features that `data.rotate` asks for, from the sums of all clients or of client 0.
    ///
    /// # Errors
    /// A site does not answer as it should, or there are no principal axes.
    pub fn basis(
        &self,
        questions: &Questions<'_>,
        config: &Config,
        card: &ModelCard,
    ) -> Result<Option<Rotation>, RunError> {
        let Some(count) = rotation::sources(config, self.peers.len())? else { return Ok(None) };
        let question = Content::Moment(Box::new(card.clone()));
        let answers = questions.ask(&self.peers[..count], &question, &Arrays::default())?;
        let moment = |(client, opened): (usize, Opened)| {
            let wrong = |reason: String| questions.of_site(self.peers[client], &reason);
            let Content::Products {} = opened.content else { return Err(self.other_answer(questions, client)) };
            let message = opened.message(Default::default()).map_err(wrong)?;
            let upper = message.array(MOMENT).map_err(|error| wrong(error.to_string()))?.values.to_f64();
            let rows = self.agreement.rows[client];
            SecondMoment::from_upper(card.features, rows, upper)
                .map_err(|reason| wrong(format!("its sums of products: {reason}")))
        };
        let moments = answers.into_iter().enumerate().map(moment).collect::<Result<Vec<_>, _>>()?;
        rotation::of_sums(card.features, moments.into_iter()).map(Some)
    }

    /// The clients' sums of squared residuals of the initial particles, of a regression.
    ///
    /// # Errors
    /// As [`Self::ask`], or an answer is not one of sums of squares.
    pub fn squares(
        &self,
        questions: &Questions<'_>,
        terms: &Terms,
        (initial, particles): (&Arrays, usize),
    ) -> Result<Vec<Squares>, RunError> {
        let answers = self.ask(questions, &Content::Residuals(Box::new(terms.clone())), initial)?;
        let of_client = |(client, opened): (usize, Opened)| match opened.content {
            Content::Squares(squares) => {
                let checked = squares.check(particles, self.agreement.rows[client]);
                checked.map_err(|reason| questions.of_site(self.peers[client], &reason))?;
                Ok(squares)
            }
            _ => Err(self.other_answer(questions, client)),
        };
        answers.into_iter().enumerate().map(of_client).collect()
    }

    /// What the clients are called.
    pub fn names(&self) -> ClientNames {
        ClientNames::new(self.told.iter().map(|site| site.name.clone()).collect())
    }

    /// Whether a feature says of each row at which site it is: `data.name_column` of the sites' files.
    pub fn name_is_feature(&self) -> bool {
        let is_named = |site: &Description| {
            let texts = site.columns.iter().filter_map(|told| told.texts.as_ref()).flatten();
            texts.into_iter().any(|texts| texts[..] == [site.name.as_str()])
        };
        self.told.iter().all(is_named)
    }

    /// The names of the clients, and the numbers of their rows of this kind.
    pub fn held_out(&self, rows: EvaluationRows) -> (Vec<String>, Vec<usize>) {
        let Agreement { validation_rows, test_rows, .. } = &self.agreement;
        let rows = match rows {
            EvaluationRows::Test => test_rows,
            EvaluationRows::Validation => validation_rows,
        };
        (self.names().as_slice().to_vec(), rows.clone())
    }

    /// That validation rows are scored in the place of the test rows, where they are.
    pub fn note_on_rows(&self, config: &Config) -> Option<String> {
        config.evaluation.rows.note(self.agreement.validation_rows.iter().sum())
    }

    /// What is asked about the calibration rows after the last round; `None` where no site has any.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn calibration(&self, config: &Config, task: Task, card: &ModelCard) -> Result<Option<Plan>, RunError> {
        let has_rows = self.agreement.calibration_rows.iter().any(|rows| *rows > 0);
        Ok(Plan::new(config, task, card, true)?.filter(|_| has_rows))
    }

    /// Sends a message to every client, and returns their answers.
    ///
    /// # Errors
    /// A site cannot be reached, or does not answer. The error names it.
    pub fn ask(&self, questions: &Questions<'_>, content: &Content, arrays: &Arrays) -> Result<Vec<Opened>, RunError> {
        questions.ask(&self.peers, content, arrays)
    }

    fn other_answer(&self, questions: &Questions<'_>, client: usize) -> RunError {
        questions.other_answer(self.peers[client])
    }

    /// What the run's files say of the rows.
    pub fn rows(&self, config: &Config, card: ModelCard, test: Option<&PublicRows>) -> RowsOfRun {
        let Agreement { rows, validation_rows, calibration_rows, test_rows, .. } = &self.agreement;
        let calibrates = calibration_rows.iter().any(|rows| *rows > 0);
        let counts = self.counts().map(|counts| PartitionTable {
            class_names: card.classes.clone().unwrap_or_default(),
            counts,
            validation: validation_rows.clone(),
            calibration: if calibrates { calibration_rows.clone() } else { Vec::new() },
            test: test_rows.clone(),
            clients: self.names(),
        });
        let line = |site: &Description| {
            let Description { index, name, rows, validation_rows, calibration_rows, test_rows, .. } = site;
            let calibration = if calibrates { format!(" {calibration_rows}") } else { String::new() };
            format!("{index} {name} {rows} {validation_rows}{calibration} {test_rows}\n")
        };
        let (column, printed) = match calibrates {
            true => (" calibration_rows", format!(" {calibration_rows:?}")),
            false => ("", String::new()),
        };
        let listed: String = self.told.iter().map(line).collect();
        let prints = self.told.iter().map(|site| &site.print).chain(test.map(|test| &test.sha256));
        let prints: String = prints.map(|print| format!("{print}\n")).collect();
        let sum = |counts: &[usize]| counts.iter().sum::<usize>();
        RowsOfRun {
            digests: Digests {
                data: digest::of_bytes(prints.as_bytes()),
                partition: digest::of_bytes(format!("{rows:?} {validation_rows:?} {test_rows:?}{printed}").as_bytes()),
            },
            listed: format!("client site training_rows validation_rows{column} test_rows\n{listed}"),
            counts,
            about: match test {
                Some(test) => {
                    format!("{} training rows at their sites, {} test rows here", sum(rows), test.rows.rows())
                }
                None => format!("{} training and {} test rows at their sites", sum(rows), sum(test_rows)),
            },
            clients: format!("{} ({})", rows.len(), config.data_kind()),
            test_lines: test.and_then(|test| test.rows.lines.clone()),
            train_lines: None,
            notes: self.agreement.notes.iter().cloned().chain(self.note_on_rows(config)).collect(),
            own_selection: None,
            card,
        }
    }

    /// The weights of the classes that `data.class_weights` asks for, and notes about them.
    ///
    /// # Errors
    /// A site does not tell how many rows of each class it has.
    pub fn class_weights(&self, config: &Config) -> Result<Option<class_weights::Weights>, RunError> {
        class_weights::of(
            config,
            || self.all_counts(DATA_CLASS_WEIGHTS),
            self.agreement.classes.as_deref().unwrap_or_default(),
        )
    }

    /// How frequent the classes are, where `evaluation.prior_correction` asks for it, and a note about it.
    ///
    /// # Errors
    /// It is asked for, and a site does not tell how many rows of each class it has.
    pub fn class_prior(
        &self,
        config: &Config,
        weights: Option<&[f64]>,
    ) -> Result<Option<(ClassPrior, String)>, RunError> {
        prior_correction::class_prior(config, || self.all_counts(PRIOR_CORRECTION), weights)
    }

    /// The number of training rows of each site and class, which this setting needs.
    fn all_counts(&self, needed: Needed) -> Result<Vec<Vec<usize>>, RunError> {
        self.told.iter().map(|site| self.counts_of(site).ok_or_else(|| no_counts(site, needed))).collect()
    }

    /// The number of training rows of each site and class; `None` where a site does not tell them, or there are no classes.
    pub fn counts(&self) -> Option<Vec<Vec<usize>>> {
        self.told.iter().map(|site| self.counts_of(site)).collect()
    }

    /// The number of training rows of each agreed class at a site that tells them.
    fn counts_of(&self, site: &Description) -> Option<Vec<usize>> {
        let TargetDescription::Classes { names, counts: Some(counts), .. } = &site.target else { return None };
        let classes = self.agreement.classes.as_ref()?;
        let mut agreed = vec![0; classes.len()];
        for (place, count) in places(names, classes).ok()?.into_iter().zip(counts) {
            agreed[place] += count;
        }
        Some(agreed)
    }

    /// The numbers of rows and of sites.
    pub fn in_words(&self) -> String {
        let rows: usize = self.agreement.rows.iter().sum();
        format!("{rows} rows at {}", counted(self.peers.len(), "site"))
    }
}

/// A setting that needs the number of rows of each class, and the one that does not.
type Needed = [&'static str; 2];

const DATA_CLASS_WEIGHTS: Needed = ["data.class_weights = \"balanced\"", "data.class_weights = \"none\""];
const PRIOR_CORRECTION: Needed = ["evaluation.prior_correction", "evaluation.prior_correction = false"];

fn no_counts(site: &Description, [setting, other]: Needed) -> RunError {
    RunError::Config(format!(
        "{} does not tell how many rows of each class it has (tell.class_counts), which {setting} needs; change the site's \
         file, or set {other}",
        site.called()
    ))
}
