//! Keys that have no effect, because of what other keys say.

use fedstein_schema::list;

use super::{Config, ModelConfig, RobustRule, is_of_data_set};
use crate::algorithm::{Algorithm, AlgorithmConfig};
use crate::density::KdeMode;
use crate::models::Predictive;
use crate::schedule::{NegativePolicy, ScheduleConfig};

/// Keys of `[faults]` that say how the faults of `faults.kinds` happen.
const OF_FAULTS: &[&str] = &["faults.requests", "faults.share", "faults.probability", "faults.factor", "faults.delay"];

/// Keys of `dsvgd` that say how densities are used.
const OF_DENSITIES: &[&str] =
    &["algorithm.kde_damping", "algorithm.kde_clip", "algorithm.factors", "algorithm.distill_steps"];

/// Whether keys have no effect; the keys, where one that ends in a point is a whole section; and why.
type Rule = (bool, &'static [&'static str], String);

impl Config {
    /// A sentence for each reason why some of these keys have no effect.
    ///
    /// # Arguments
    /// - `changed`: the keys that do not have their default, as `section.key`.
    /// - `own_rows`: whether the program brings the rows.
    pub(super) fn without_effect(&self, changed: &[String], own_rows: bool) -> Vec<String> {
        let sentence = |unused: &[&str], why: &str| {
            let verb = if unused.len() == 1 { "has" } else { "have" };
            (!unused.is_empty()).then(|| format!("{} {verb} no effect: {why}", list(unused)))
        };
        let by_rule = |(_, keys, why): Rule| {
            let is_one =
                |path: &&str| keys.iter().any(|key| path == key || (key.ends_with('.') && path.starts_with(key)));
            sentence(&changed.iter().map(String::as_str).filter(is_one).collect::<Vec<_>>(), &why)
        };
        let of_data_set = |path: &&str| own_rows && is_of_data_set(path);
        let unused: Vec<&str> = changed.iter().map(String::as_str).filter(of_data_set).collect();
        let rules = self.rules().into_iter().filter(|(is_unused, ..)| *is_unused).filter_map(by_rule);
        rules.chain(sentence(&unused, "the rows are the program's own")).collect()
    }

    fn rules(&self) -> Vec<Rule> {
        let (can, name) = (self.algorithm.capabilities(), self.algorithm.name());
        // What a program's own algorithm uses is not known here.
        let is_known = !matches!(self.algorithm, AlgorithmConfig::Own(_));
        let own_steps = is_known && !can.scheduled_steps;
        let interact = !own_steps && can.pairs;
        // A client selection and `evaluation.discrepancy` compare the clients by this kernel's median rule.
        let compares = self.schedule.is_informed() || self.evaluation.discrepancy;
        let alone = interact && self.algorithm.particles() == 1;
        let negative = match &self.schedule {
            ScheduleConfig::Hip(hip) => Some(hip.negative),
            _ => None,
        };
        let robust = self.federation.robust;
        vec![
            (own_steps, &["optimizer."], format!("algorithm kind `{name}` has steps of its own")),
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
            (can.centralised, &["schedule."], format!("algorithm kind `{name}` has all rows in one place")),
            (
                can.chooses_clients,
                &["schedule."],
                format!("algorithm kind `{name}` chooses the clients of a round itself"),
            ),
            (
                matches!(&self.algorithm, AlgorithmConfig::Dsvgd(dsvgd) if dsvgd.density.kde == KdeMode::Off),
                OF_DENSITIES,
                "`algorithm.kde` is \"off\", so that no factor has a score".into(),
            ),
            (
                matches!(&self.model, ModelConfig::Blr(blr) if blr.predictive != Predictive::Probit),
                &["model.probit_lambda"],
                "`model.predictive` is not \"probit\"".into(),
            ),
            (
                negative != Some(NegativePolicy::Softmax),
                &["schedule.softmax_temperature"],
                "`schedule.negative` is not \"softmax\"".into(),
            ),
            (
                robust != RobustRule::NormClip,
                &["federation.robust_clip"],
                "`federation.robust` is not \"norm-clip\"".into(),
            ),
            (
                robust != RobustRule::Trimmed,
                &["federation.robust_trim"],
                "`federation.robust` is not \"trimmed\"".into(),
            ),
            (self.faults.kinds.is_empty(), OF_FAULTS, "`faults.kinds` is empty".into()),
        ]
    }
}
