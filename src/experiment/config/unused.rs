//! Keys that have no effect, because of what other keys say.

use fedstein_schema::{NumberOr, UnusedKeys, list};

use super::{Config, Own, Rotate, SameKde, is_of_data_set};
use crate::algorithm::{Algorithm, AlgorithmConfig};
use crate::datasets::DataConfig;
use crate::federation::faults::Fault;
use crate::protocol::RequestKind;

/// Keys of `[faults]` that say how the faults of `faults.kinds` happen.
const OF_FAULTS: &[&str] = &["faults.requests", "faults.share", "faults.probability", "faults.factor", "faults.delay"];

/// That those of the `changed` keys which are unused have no effect, and why; `None` where there are none.
fn noted(changed: &[String], is_unused: impl Fn(&str) -> bool, why: &str) -> Option<String> {
    let unused: Vec<&str> = changed.iter().map(String::as_str).filter(|path| is_unused(path)).collect();
    let verb = if unused.len() == 1 { "has" } else { "have" };
    (!unused.is_empty()).then(|| format!("{} {verb} no effect: {why}", list(&unused)))
}

/// Whether a key, as `section.key`, is one of these keys of the section.
fn is_of(path: &str, section: &str, keys: &[&str]) -> bool {
    path.split_once('.').is_some_and(|(of, key)| of == section && keys.contains(&key))
}

/// The unused keys of a section, each with the section's name.
fn of_section(section: &'static str, unused: Vec<UnusedKeys>) -> impl Iterator<Item = (&'static str, UnusedKeys)> {
    unused.into_iter().map(move |unused| (section, unused))
}

/// Whether keys have no effect; the keys, where one that ends in a point is a whole section; and why.
type Rule = (bool, &'static [&'static str], String);

impl Config {
    /// A sentence for each reason why some of these keys have no effect.
    ///
    /// # Arguments
    /// - `changed`: the keys that do not have their default, as `section.key`.
    /// - `own`: what the program brings.
    pub(super) fn without_effect(&self, changed: &[String], own: Own) -> Vec<String> {
        let by_rule = |(is_unused, keys, why): Rule| {
            let is_one =
                |path: &str| keys.iter().any(|key| path == *key || (key.ends_with('.') && path.starts_with(*key)));
            noted(changed, |path| is_unused && is_one(path), &why)
        };
        let data = own.data.or_else(|| Some(self.data().ok()?.properties()));
        let is_classification = data.is_some_and(|data| data.is_classification());
        let (by_role, mut of_model) = match own.model {
            true => (Vec::new(), Vec::new()),
            false => (self.unused_by_role(), self.model.unused_keys(is_classification)),
        };
        // One reason for a key.
        of_model.retain(|unused| !unused.keys.iter().all(|key| by_role.iter().any(|(keys, _)| keys.contains(key))));
        let by_role =
            by_role.into_iter().filter_map(|(keys, why)| noted(changed, |path| is_of(path, "model", &keys), &why));
        let by_schedule = if own.selection { Vec::new() } else { self.schedule.unused_keys() };
        // The divergence of a toy's particles has the same bandwidth (`evaluation.kde_bandwidth` = "same").
        let is_toy = data.is_some_and(|data| data.is_toy());
        let follows = matches!(self.evaluation.kde_bandwidth, NumberOr::Rule(SameKde::Same));
        let has_use = |path: &str| is_toy && follows && path == "algorithm.kde_bandwidth";
        let by_keys = |(section, UnusedKeys { keys, why }): (&str, UnusedKeys)| {
            noted(changed, |path| is_of(path, section, keys) && !has_use(path), &why)
        };
        let of_data_set = |path: &str| own.data.is_some() && is_of_data_set(path);
        let of_schedule = |path: &str| own.selection && path.starts_with("schedule.") && path != "schedule.clients";
        let of_algorithm = self.rules_of_algorithm(own).into_iter().filter_map(by_rule);
        of_algorithm
            .chain(of_section("schedule", by_schedule).filter_map(by_keys))
            .chain(of_section("federation", self.federation.unused_keys()).filter_map(by_keys))
            .chain(self.rules(own).into_iter().filter_map(by_rule))
            .chain(by_role)
            .chain(of_section("algorithm", self.algorithm.unused_keys()).filter_map(by_keys))
            .chain(of_section("model", of_model).filter_map(by_keys))
            .chain(noted(changed, of_data_set, "the rows are the program's own"))
            .chain(noted(changed, of_schedule, "the program selects the clients"))
            .collect()
    }

    /// A sentence for each reason why keys of a program's own algorithm have no effect: what it says of them is known when the
    /// program hands it over, after the config was read.
    pub(in crate::experiment) fn own_without_effect(&self, algorithm: &dyn Algorithm) -> Vec<String> {
        let AlgorithmConfig::Own(own) = &self.algorithm else { return Vec::new() };
        let kind = algorithm.kind();
        let is_changed = |(name, value): &(&String, &toml::Value)| {
            kind.key(name).and_then(|key| key.default).map(|default| default.to_value()).as_ref() != Some(*value)
        };
        let changed: Vec<String> =
            own.keys.iter().filter(is_changed).map(|(name, _)| format!("algorithm.{name}")).collect();
        let of_kind =
            |UnusedKeys { keys, why }: UnusedKeys| noted(&changed, |path| is_of(path, "algorithm", keys), &why);
        algorithm.unused_keys().into_iter().filter_map(of_kind).collect()
    }

    /// The model's keys that say nothing but a prior or initial particles that the algorithm does not use, and why; a key of
    /// both is named once.
    fn unused_by_role(&self) -> Vec<(Vec<&'static str>, String)> {
        if !self.knows_algorithm() {
            return Vec::new();
        }
        let (can, name) = (self.algorithm.capabilities(), self.algorithm.name());
        let [prior, start] = self.model.prior_and_start_keys();
        let roles = [
            (prior, can.model_prior, format!("algorithm kind `{name}` does not use the model's prior")),
            (start, !can.own_start, format!("algorithm kind `{name}` starts at parameters of its own")),
        ];
        let first = |key: &str| roles.iter().position(|(keys, ..)| keys.contains(&key));
        let is_used = |key: &str| roles.iter().any(|(keys, is_used, _)| *is_used && keys.contains(&key));
        let of_role = |(role, (keys, _, why)): (usize, &(&'static [&'static str], bool, String))| {
            let unused = keys.iter().copied().filter(|key| first(key) == Some(role) && !is_used(key));
            (unused.collect(), why.clone())
        };
        roles.iter().enumerate().map(of_role).collect()
    }

    /// Rules that depend on what the algorithm does.
    fn rules_of_algorithm(&self, own: Own) -> Vec<Rule> {
        let (can, name) = (self.algorithm.capabilities(), self.algorithm.name());
        let is_known = self.knows_algorithm();
        let own_steps = is_known && !can.scheduled_steps;
        let interact = !own_steps && can.pairs;
        // By this kernel's median rule.
        let compares = self.compares_clients() || own.selection;
        let alone = interact && self.algorithm.particles() == 1;
        vec![
            (own_steps, &["optimizer."], format!("algorithm kind `{name}` has steps of its own")),
            (
                !own_steps && self.optimizer.is_plain(),
                &["optimizer.reset"],
                "optimizer kind `sgd` has no averages".into(),
            ),
            (
                !own_steps && can.centralised,
                &["optimizer.reset"],
                format!("algorithm kind `{name}` has all rows in one place, and no visits"),
            ),
            (
                is_known && !interact && !compares,
                &["kernel."],
                format!("no particles of algorithm kind `{name}` interact through it"),
            ),
            (
                is_known && alone && !compares,
                &["kernel."],
                "there is one particle, which has no other to interact with".into(),
            ),
            (
                can.centralised,
                &["stop.uplink_mib"],
                format!("algorithm kind `{name}` has all rows in one place: nothing is sent"),
            ),
            (
                can.sends_nothing,
                &["federation.wire", "stop.uplink_mib"],
                format!("server and clients of algorithm kind `{name}` send each other no parameters"),
            ),
            (can.centralised, &["schedule."], format!("algorithm kind `{name}` has all rows in one place")),
            (
                can.chooses_clients,
                &["schedule."],
                format!("algorithm kind `{name}` chooses the clients of a round itself"),
            ),
        ]
    }

    /// The other rules.
    fn rules(&self, own: Own) -> Vec<Rule> {
        let rules: [Rule; 2] = [
            (own.model, &["model."], "the model is the program's own".into()),
            (self.validation_key().is_none(), &["stop.metric"], "nothing looks at the validation rows".into()),
        ];
        rules.into_iter().chain(self.rules_of_rows(own)).chain(self.rules_of_faults()).collect()
    }

    /// Rules that depend on the rows.
    fn rules_of_rows(&self, Own { data: own_rows, .. }: Own) -> Vec<Rule> {
        let (Ok(data), Ok(partition), Ok(rotation)) = (self.data(), self.partition(), self.rotation()) else {
            return Vec::new();
        };
        let (properties, at_sites) =
            (own_rows.unwrap_or(data.properties()), own_rows.is_none() && self.rows_are_at_sites());
        let by_column = partition.scheme.properties().natural_clients;
        let (unused_clients, is_feature) = match &data {
            DataConfig::Csv(csv) if own_rows.is_none() => {
                (!by_column && !csv.splits_by_client(), csv.client_is_feature())
            }
            _ => (false, false),
        };
        let own_test_rows = matches!(&data, DataConfig::Sites(sites) if !sites.test_path.is_empty());
        vec![
            (
                at_sites && !own_test_rows,
                &["data.task"],
                "the sites' own files say it, and `data.test_path` is empty".into(),
            ),
            (
                unused_clients,
                &["data.client_column"],
                format!(
                    "the clients are those of `partition.kind` = \"{}\"{}; `partition.kind` = \"by-column\" makes the values \
                     of the column the clients",
                    self.partition_kind(),
                    if is_feature { "" } else { ", and without this key the column is a feature" }
                ),
            ),
            (
                partition.calibration == 0.0 && !at_sites,
                &["calibration."],
                "no rows are held out for it (`partition.calibration` is 0)".into(),
            ),
            (rotation.rotate == Rotate::None, &["data.rotate_from"], "`data.rotate` is \"none\"".into()),
            (
                !properties.is_toy(),
                &["evaluation.kde_bandwidth"],
                "the divergence from the posterior is known of toy densities alone".into(),
            ),
        ]
    }

    /// Whether faults disturb requests of this kind and no others.
    fn disturbs_alone(&self, kind: RequestKind) -> bool {
        self.faults.requests.iter().all(|request| request == kind.word())
    }

    /// Whether the clients are compared, by a client selection or by `evaluation.discrepancy`.
    fn compares_clients(&self) -> bool {
        self.schedule.is_informed() || self.evaluation.discrepancy
    }

    /// Rules of `[faults]` and of the deadline, which only an injected delay exceeds in one process.
    fn rules_of_faults(&self) -> Vec<Rule> {
        let has = |fault: Fault| self.faults.kinds.iter().any(|kind| kind == fault.word());
        let (late, deadline) = (has(Fault::Straggler), self.federation.deadline);
        let at_sites = self.rows_are_at_sites();
        let why = "clients in this process answer at once (`faults.kinds` has no \"straggler\")";
        let no_delay = |is_unused| -> Rule { (is_unused, &["federation.deadline"], why.into()) };
        if self.faults.kinds.is_empty() {
            return vec![(true, OF_FAULTS, "`faults.kinds` is empty".into()), no_delay(!at_sites)];
        }
        vec![
            no_delay(!at_sites && !late),
            (!late, &["faults.delay"], "`faults.kinds` has no \"straggler\"".into()),
            (
                self.disturbs_alone(RequestKind::Scores) && !self.evaluation.personal,
                &["faults.requests"],
                "no client is asked for scores (`evaluation.personal` is false), and nothing is disturbed".into(),
            ),
            (
                self.disturbs_alone(RequestKind::Question) && !self.compares_clients(),
                &["faults.requests"],
                "no client is asked a question (`schedule.kind` is neither \"ksd\" nor \"hip\", and `evaluation.discrepancy` is \
                 false), and nothing is disturbed"
                    .into(),
            ),
            (!has(Fault::HugeNorm), &["faults.factor"], "`faults.kinds` has no \"huge-norm\"".into()),
            (
                late && !at_sites && self.faults.delay <= deadline,
                &["faults.delay", "federation.deadline"],
                "a delay of `faults.delay` is within `federation.deadline`".into(),
            ),
        ]
    }
}
