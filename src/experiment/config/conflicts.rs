//! Keys that are valid one by one and conflict with each other.

use fedstein_schema::{ConfigError, did_you_mean, list};

use super::{
    ClassWeights, Config, EvaluationRows, FaultsConfig, FederationConfig, LrScheduleConfig, Own, RobustRule, Rotate,
};
use crate::algorithm::{Algorithm, Capabilities, Replies, kinds_that};
use crate::datasets::{DataProperties, SchemeProperties};
use crate::federation::faults::Fault;
use crate::models::ModelTargets;
use crate::protocol::{RequestKind, Wire};
use crate::statistics::trimmed;

/// The data that a config is checked against.
struct Data {
    properties: DataProperties,
    /// What messages call it, such as "data kind `digits`".
    name: String,
    /// Whether the rows are the program's.
    is_own: bool,
}

impl Config {
    /// Finds keys that are valid one by one and conflict with each other.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`], which names both keys and a valid setting.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_for(&*self.algorithm, Own::default())
    }

    /// As [`Self::check`], for an algorithm that need not be the one in `[algorithm]`, and for what else the program
    /// brings.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(in crate::experiment) fn check_for(&self, algorithm: &dyn Algorithm, own: Own) -> Result<(), ConfigError> {
        let (name, can) = (self.algorithm.name(), algorithm.capabilities());
        let data = match own.data {
            Some(properties) => Data { properties, name: "the program's own data".into(), is_own: true },
            None => {
                let name = format!("data kind `{}`", self.data_kind());
                Data { properties: self.data()?.properties(), name, is_own: false }
            }
        };
        // What `[model]` says does not matter where the program brings a model.
        let of_model = |conflict: Option<String>| conflict.filter(|_| !own.model);
        let scheme = self.partition()?.scheme;
        let conflicts = [
            self.schedule_conflict((name, can), scheme.clients(), own.selection),
            of_model(self.model_conflict(&data)),
            self.toy_conflict(&data),
            self.task_conflict((name, can), &data),
            of_model(self.curvature_conflict(name, can)),
            self.rotation_conflict(&data, own.model)?,
            self.class_weights_conflict((name, can), &data)?,
            self.partition_conflict(&data, scheme.properties()),
            algorithm.check().err(),
            self.optimizer_conflict(name, can),
            self.lr_schedule_conflict(name, can),
            self.federation_conflict(name, can),
            self.wire_conflict(name, can),
            self.faults_conflict(),
            self.evaluation_conflict()?,
            self.unseen_clients_conflict((name, can), data.properties),
            self.personal_conflict(name, can),
            self.prior_correction_conflict((name, can), &data),
            self.stop_conflict((name, can), &data)?,
            self.calibration_conflict((name, can), data.properties)?,
        ];
        match conflicts.into_iter().flatten().next() {
            Some(conflict) => Err(ConfigError::conflict(conflict)),
            None => Ok(()),
        }
    }

    /// As [`Self::check`], for what depends on the target that the sites of a federation have told.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(in crate::experiment) fn check_target(&self, properties: DataProperties) -> Result<(), ConfigError> {
        let (name, can) = (self.algorithm.name(), self.algorithm.capabilities());
        let data = Data { properties, name: "what the sites hold".into(), is_own: false };
        let conflicts = [
            self.model_conflict(&data),
            self.task_conflict((name, can), &data),
            self.class_weights_conflict((name, can), &data)?,
            self.prior_correction_conflict((name, can), &data),
            self.stop_conflict((name, can), &data)?,
            self.calibration_conflict((name, can), properties)?,
        ];
        match conflicts.into_iter().flatten().next() {
            Some(conflict) => Err(ConfigError::conflict(conflict)),
            None => Ok(()),
        }
    }

    /// Checks that a method for classes has classes.
    fn task_conflict(&self, (algorithm, can): (&str, Capabilities), data: &Data) -> Option<String> {
        (can.classifies && data.properties.is_regression()).then(|| {
            format!(
                "algorithm kind `{algorithm}` predicts classes, and the target of {} is a number; choose another `algorithm.kind`",
                data.name
            )
        })
    }

    fn evaluation_conflict(&self) -> Result<Option<String>, ConfigError> {
        // The rows of a federation are held out by its sites.
        let none = self.partition()?.validation == 0.0 && !self.rows_are_at_sites();
        Ok((none && self.evaluation.rows == EvaluationRows::Validation).then(|| {
            "`evaluation.rows` = \"validation\" needs rows that clients hold out; set `partition.validation` to their \
             share, such as 0.1"
                .to_owned()
        }))
    }

    /// Checks that the test rows are scored, and by particles that every client can use.
    fn unseen_clients_conflict(
        &self,
        (algorithm, can): (&str, Capabilities),
        properties: DataProperties,
    ) -> Option<String> {
        if !properties.unseen_clients {
            return None;
        }
        if can.untrained_part {
            return Some(format!(
                "`data.leave_out` scores clients that take no part, and algorithm kind `{algorithm}` has no predictor for them: \
                 a part of its parameters is each client's own; leave it empty"
            ));
        }
        let why = if self.evaluation.rows == EvaluationRows::Validation {
            "`evaluation.rows` = \"validation\" scores rows of the others; it must be \"test\""
        } else if self.evaluation.personal {
            "`evaluation.personal` scores the predictors of the others on test rows of their own, which they then do not have; \
             it must be false"
        } else {
            return None;
        };
        Some(format!("`data.leave_out` names clients whose rows are the test rows, and {why}"))
    }

    /// Checks that there are clients whose predictors can be scored.
    fn personal_conflict(&self, algorithm: &str, can: Capabilities) -> Option<String> {
        (self.evaluation.personal && can.centralised).then(|| {
            format!(
                "`evaluation.personal` scores the predictors of clients, and algorithm kind `{algorithm}` has all rows in one \
                 place; `evaluation.personal` must be false"
            )
        })
    }

    /// Checks that there are predictors of clients, which have the frequencies of all clients' classes.
    fn prior_correction_conflict(
        &self,
        (algorithm, can): (&str, Capabilities),
        Data { properties, name, .. }: &Data,
    ) -> Option<String> {
        if !self.evaluation.prior_correction {
            return None;
        }
        let why = if !self.evaluation.personal {
            return Some(
                "`evaluation.prior_correction` corrects the predictors of the clients; it needs `evaluation.personal` = true"
                    .into(),
            );
        } else if properties.is_toy() || properties.is_regression() {
            format!("{name} has no classes here")
        } else if can.personal {
            format!("the clients of algorithm kind `{algorithm}` learn how frequent their classes are")
        } else {
            return None;
        };
        Some(format!("{why}; `evaluation.prior_correction` must be false"))
    }

    /// Checks that there are validation rows by which a round is the best or the step size becomes smaller.
    fn stop_conflict(
        &self,
        (algorithm, can): (&str, Capabilities),
        Data { properties, name, .. }: &Data,
    ) -> Result<Option<String>, ConfigError> {
        let (metric, Some(key)) = (self.stop.metric, self.validation_key()) else { return Ok(None) };
        if properties.is_toy() {
            return Ok(Some(format!("`{key}` needs validation rows, but {name} is a toy density without any")));
        }
        // The rows of a federation are held out by its sites.
        if self.partition()?.validation == 0.0 && !self.rows_are_at_sites() {
            return Ok(Some(format!(
                "`{key}` needs rows that clients hold out; set `partition.validation` to their share, such as 0.1"
            )));
        }
        if self.evaluation.personal {
            return Ok(Some(format!(
                "`{key}` looks at the global particles, but `evaluation.personal` scores predictors of the clients, whose \
                 states are kept of the last round only; leave one of the two out"
            )));
        }
        if can.untrained_part {
            return Ok(Some(format!(
                "`{key}` looks at the global particles, of which algorithm kind `{algorithm}` leaves a part untrained that each \
                 client has for itself; leave it out"
            )));
        }
        let task = |classes| if classes { "classification" } else { "regression" };
        let is_of = |classes| if classes { properties.is_regression() } else { properties.is_classification() };
        let other = metric.of_classes().filter(|classes| is_of(*classes));
        Ok(other.map(|classes| {
            format!(
                "`stop.metric` = \"{}\" is one of a {}, but the data are a {}; use \"nll\"",
                metric.word(),
                task(classes),
                task(!classes)
            )
        }))
    }

    fn calibration_conflict(
        &self,
        (algorithm, can): (&str, Capabilities),
        data: DataProperties,
    ) -> Result<Option<String>, ConfigError> {
        let has_rows = self.partition()?.calibration > 0.0 || self.rows_are_at_sites();
        if self.partition()?.calibration > 0.0 && can.untrained_part {
            return Ok(Some(format!(
                "`partition.calibration` holds rows out to calibrate the global particles, of which algorithm kind `{algorithm}` \
                 leaves a part untrained; it must be 0"
            )));
        }
        Ok(self.calibration.conflict(data, has_rows))
    }

    fn schedule_conflict(
        &self,
        (algorithm, can): (&str, Capabilities),
        clients: Option<usize>,
        own_selection: bool,
    ) -> Option<String> {
        let (scheduled, schedule) = (self.schedule.clients(), self.schedule.kind().name);
        if can.one_client_per_round && scheduled != 1 {
            return Some(format!(
                "algorithm kind `{algorithm}` moves one client a round, but `schedule.clients` is {scheduled}; it must be 1 \
                 (`p-dsvgd` moves several)"
            ));
        }
        if self.schedule.is_informed() && !can.tilted && !own_selection {
            return Some(format!(
                "schedule kind `{schedule}` compares the clients' tilted densities, which algorithm kind `{algorithm}` does not \
                 have; use {}, or schedule kind `round-robin` or `random`",
                either(&kinds_that(|can| can.tilted))
            ));
        }
        if self.evaluation.discrepancy && !can.tilted {
            return Some(format!(
                "`evaluation.discrepancy` asks for the clients' tilted densities, which algorithm kind `{algorithm}` does not have"
            ));
        }
        let clients = clients?;
        (scheduled > clients).then(|| {
            let (verb, plural) = if clients == 1 { ("is", "") } else { ("are", "s") };
            let there_are = match self.rows_are_at_sites() {
                true => format!("{clients} site{plural}"),
                false => format!("`partition.clients` = {clients} client{plural}"),
            };
            format!("`schedule.clients` is {scheduled}, but there {verb} only {there_are}")
        })
    }

    /// Checks that a step size in an algorithm's own formulas equals the optimiser's.
    fn optimizer_conflict(&self, algorithm: &str, can: Capabilities) -> Option<String> {
        (can.plain_gradient_steps && !self.optimizer.is_plain()).then(|| {
            format!("algorithm kind `{algorithm}` is defined by plain gradient steps; it needs optimizer kind `sgd`")
        })
    }

    /// Checks that the method's steps are those of `[optimizer]`, where their size changes.
    fn lr_schedule_conflict(&self, algorithm: &str, can: Capabilities) -> Option<String> {
        (self.lr_schedule != LrScheduleConfig::Constant && !can.scheduled_steps).then(|| {
            format!(
                "algorithm kind `{algorithm}` has steps of its own, which do not use `optimizer.lr`; it needs `lr_schedule.kind` = \"constant\""
            )
        })
    }

    /// Checks that the robust rule applies to the algorithm and to enough replies, and that a round can have the
    /// quorum.
    fn federation_conflict(&self, algorithm: &str, can: Capabilities) -> Option<String> {
        let FederationConfig { min_replies, robust, robust_trim, .. } = self.federation;
        let scheduled = self.schedule.clients();
        if min_replies > scheduled && !can.centralised && !can.chooses_clients {
            return Some(format!(
                "`federation.min_replies` is {min_replies}, but a round has only `schedule.clients` = {scheduled} clients"
            ));
        }
        if robust == RobustRule::None {
            return None;
        }
        let word = robust.word();
        if can.centralised {
            return Some(format!(
                "`federation.robust` = \"{word}\" protects a server from some of its clients, but algorithm kind `{algorithm}` has \
                 all rows in one place; it must be \"none\""
            ));
        }
        match (robust, can.replies) {
            (RobustRule::NormClip, _) => can.unclipped.map(|why| {
                format!("`federation.robust` = \"{word}\" cannot be used with algorithm kind `{algorithm}`: {why}; it must be \"none\"")
            }),
            (_, Replies::Different(why)) => {
                let others = if can.unclipped.is_some() { "it must be \"none\"" } else { "use \"norm-clip\" or \"none\"" };
                Some(format!(
                    "`federation.robust` = \"{word}\" has no meaning with algorithm kind `{algorithm}`: {why}; {others}"
                ))
            }
            _ if scheduled < 3 => Some(format!(
                "`federation.robust` = \"{word}\" of {scheduled} replies is their mean; `schedule.clients` must be at least 3"
            )),
            (RobustRule::Trimmed, _) if trimmed(robust_trim, scheduled) == 0 => Some(format!(
                "`federation.robust_trim` = {robust_trim} of {scheduled} replies is not even one; it must be at least 1/`schedule.clients`"
            )),
            _ => None,
        }
    }

    /// Checks that the algorithm's messages are sent, and can be rounded.
    fn wire_conflict(&self, algorithm: &str, can: Capabilities) -> Option<String> {
        let (wire, word) = (self.federation.wire, self.federation.wire.word());
        if wire != Wire::Full && can.centralised {
            return Some(format!(
                "`federation.wire` = \"{word}\" rounds what server and clients send, but algorithm kind `{algorithm}` has all \
                 rows in one place; it must be \"full\""
            ));
        }
        (wire.is_half() && can.natural_parameters).then(|| {
            format!(
                "`federation.wire` = \"{word}\" leaves too few digits of the natural parameters that algorithm kind \
                 `{algorithm}` sends, of which clients take differences; it must be \"full\" or \"f32\""
            )
        })
    }

    /// Checks that rotated features are still what the model and the data set need.
    fn rotation_conflict(
        &self,
        Data { properties, name, .. }: &Data,
        own_model: bool,
    ) -> Result<Option<String>, ConfigError> {
        if self.rotation()?.rotate == Rotate::None {
            return Ok(None);
        }
        if properties.is_toy() {
            return Ok(Some(format!("{name} is a toy density without features; `data.rotate` must be \"none\"")));
        }
        let images = !own_model && self.model.reads_images();
        Ok(images.then(|| {
            "`data.rotate` = \"principal\" mixes the pixels of an image, and `model.layers` has convolutions or pools; use \
             dense layers, or `data.rotate` = \"none\""
                .into()
        }))
    }

    /// Checks that there are classes to weigh, and that the method weighs them.
    fn class_weights_conflict(
        &self,
        (algorithm, can): (&str, Capabilities),
        Data { properties, name, .. }: &Data,
    ) -> Result<Option<String>, ConfigError> {
        if self.class_weights()? == ClassWeights::None {
            return Ok(None);
        }
        let why = match (properties.is_toy() || properties.is_regression(), can.weighted_rows) {
            (true, _) => format!("{name} has no classes here"),
            (_, false) => {
                format!("algorithm kind `{algorithm}` has no likelihood in which rows could count differently")
            }
            _ => return Ok(None),
        };
        Ok(Some(format!("{why}; `data.class_weights` must be \"none\"")))
    }

    fn faults_conflict(&self) -> Option<String> {
        let FaultsConfig { kinds, requests, .. } = &self.faults;
        let unknown = unknown_word("faults.kinds", kinds, Fault::WORDS)
            .or_else(|| unknown_word("faults.requests", requests, RequestKind::WORDS));
        if unknown.is_some() {
            return unknown;
        }
        let late = self.faults.kinds.iter().any(|word| word == Fault::Straggler.word());
        (late && self.federation.deadline == 0.0).then(|| {
            "`faults.kinds` has \"straggler\", which has no effect without a `federation.deadline`; it must be greater than 0"
                .into()
        })
    }

    fn curvature_conflict(&self, algorithm: &str, can: Capabilities) -> Option<String> {
        (can.curvature && !self.model.has_curvature()).then(|| {
            format!(
                "algorithm kind `{algorithm}` needs the curvature of the likelihood, which model kind `{}` does not compute; use \
                 algorithm kind `dsvgd`",
                self.model.kind().name
            )
        })
    }

    /// Checks that a toy density is used as one.
    fn toy_conflict(&self, Data { properties, name, .. }: &Data) -> Option<String> {
        if !properties.is_toy() {
            return None;
        }
        if self.evaluation.personal {
            return Some(format!(
                "`evaluation.personal` scores predictions on test rows, but {name} is a toy density without any"
            ));
        }
        ["train_limit", "test_limit"].iter().any(|key| self.limits(key)).then(|| {
            format!(
                "{name} is two likelihoods, and its posterior is that of both; `data.train_limit` and `data.test_limit` must \
                 be 0"
            )
        })
    }

    fn model_conflict(&self, Data { properties, name, .. }: &Data) -> Option<String> {
        let kind = self.model.kind().name;
        let conflict = match self.model.targets() {
            ModelTargets::ToyDensity => (!properties.is_toy()).then(|| {
                format!(
                    "model kind `{kind}` is the density of the data `mixture-1d` and `mixture-2d`; it cannot be fitted to {name}"
                )
            }),
            _ if properties.is_toy() => Some(format!("{name} is a toy density; it needs model kind `mixture`")),
            ModelTargets::TwoClasses if properties.is_regression() => Some(format!(
                "model kind `{kind}` tells two classes apart; data task `regression` needs model kind `bnn`"
            )),
            ModelTargets::TwoClasses => properties.known_classes().filter(|classes| *classes != 2).map(|classes| {
                format!(
                    "model kind `{kind}` tells two classes apart, but {name} has {}; model kind `bnn` takes any number",
                    in_words(classes)
                )
            }),
            ModelTargets::ClassesOrNumbers => None,
        };
        conflict.or_else(|| self.model.check().err())
    }

    fn partition_conflict(
        &self,
        Data { properties: data, name, is_own }: &Data,
        scheme: SchemeProperties,
    ) -> Option<String> {
        let kind = self.partition_kind();
        if scheme.natural_clients && !data.natural_clients {
            return Some(match is_own {
                true => {
                    format!("partition kind `{kind}` needs the client of each row; give {name} `Dataset::with_clients`")
                }
                false => format!(
                    "partition kind `{kind}` needs the client of each row, such as data kind `vehicle`, or `csv` with `data.client_column`, the \
                     column with the client of each row (a program with rows of its own: `ConfigLoader::with_data`)"
                ),
            });
        }
        if scheme.by_class && data.is_regression() {
            return Some(format!(
                "partition kind `{kind}` assigns rows by label, but data task `regression` has none; use `iid`"
            ));
        }
        if scheme.by_class && data.groups {
            let groups = if *is_own { "" } else { " (`data.group_column`)" };
            return Some(format!(
                "partition kind `{kind}` assigns rows by label, and would separate the rows of a group{groups}; use `iid` or \
                 `by-column`"
            ));
        }
        (scheme.superclasses && !data.superclasses).then(|| {
            format!(
                "partition kind `{kind}` needs data kind `cifar100`; {name} has no superclasses, use `labels-per-client`"
            )
        })
    }

    /// Whether `data.<key>` leaves out rows.
    fn limits(&self, key: &str) -> bool {
        self.data.get(key).and_then(toml::Value::as_integer).is_some_and(|limit| limit > 0)
    }
}

/// A number of classes as messages spell it.
fn in_words(classes: usize) -> String {
    match classes {
        10 => "ten".into(),
        100 => "a hundred".into(),
        other => other.to_string(),
    }
}

/// Joins words to a list such as "`a`, `b` or `c`".
fn either(words: &[&str]) -> String {
    match words {
        [rest @ .., last] if !rest.is_empty() => format!("{} or `{last}`", list(rest)),
        _ => list(words),
    }
}

/// The message for a list with a word that is not among `words`.
fn unknown_word(key: &str, given: &[String], words: &[&'static str]) -> Option<String> {
    let word = given.iter().find(|word| !words.contains(&word.as_str()))?;
    let hint = did_you_mean(word, words.iter().copied());
    Some(format!("`{key}` has \"{word}\"; it takes {}{hint}", list(words)))
}
