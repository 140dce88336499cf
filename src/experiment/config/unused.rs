//! Keys that have no effect, because of what other keys say.

use fedstein_schema::list;

use super::{Config, RobustRule};
use crate::algorithm::Algorithm;
use crate::schedule::{NegativePolicy, ScheduleConfig};

/// Keys, and why they have no effect.
struct Unused {
    /// A section with its point, for all its keys, or whole keys.
    keys: &'static [&'static str],
    why: String,
}

impl Config {
    /// A sentence for each reason why some of these keys have no effect.
    ///
    /// # Arguments
    /// - `changed`: the keys that do not have their default, as `section.key`.
    pub(super) fn without_effect(&self, changed: &[String]) -> Vec<String> {
        let sentence = |Unused { keys, why }: Unused| {
            let is_unused =
                |path: &&str| keys.iter().any(|key| path == key || (key.ends_with('.') && path.starts_with(key)));
            let unused: Vec<&str> = changed.iter().map(String::as_str).filter(is_unused).collect();
            let verb = if unused.len() == 1 { "has" } else { "have" };
            (!unused.is_empty()).then(|| format!("{} {verb} no effect: {why}", list(&unused)))
        };
        self.unused().into_iter().filter_map(sentence).collect()
    }

    fn unused(&self) -> Vec<Unused> {
        let (can, name) = (self.algorithm.capabilities(), self.algorithm.name());
        let mut unused = Vec::new();
        let mut add = |is_unused: bool, keys, why: &dyn Fn() -> String| {
            if is_unused {
                unused.push(Unused { keys, why: why() });
            }
        };
        let own_steps = !can.scheduled_steps;
        add(own_steps, &["optimizer."], &|| format!("algorithm kind `{name}` has steps of its own"));
        // A client selection and `evaluation.discrepancy` compare the clients by this kernel's median rule.
        let compares = self.schedule.is_informed() || self.evaluation.discrepancy;
        add((own_steps || !can.pairs) && !compares, &["kernel."], &|| {
            format!("no particles of algorithm kind `{name}` interact through it")
        });
        let alone = can.pairs && !own_steps && self.algorithm.particles() == 1;
        add(alone && !compares, &["kernel."], &|| "there is one particle, which has no other to interact with".into());
        add(can.centralised, &["schedule."], &|| format!("algorithm kind `{name}` has all rows in one place"));
        add(can.chooses_clients, &["schedule.clients"], &|| {
            format!("algorithm kind `{name}` sets the number of clients of a round itself")
        });
        let is_softmax = matches!(&self.schedule, ScheduleConfig::Hip(hip) if hip.negative == NegativePolicy::Softmax);
        add(!is_softmax, &["schedule.softmax_temperature"], &|| "`schedule.negative` is not \"softmax\"".into());
        let robust = self.federation.robust;
        add(robust != RobustRule::NormClip, &["federation.robust_clip"], &|| {
            "`federation.robust` is not \"norm-clip\"".into()
        });
        add(robust != RobustRule::Trimmed, &["federation.robust_trim"], &|| {
            "`federation.robust` is not \"trimmed\"".into()
        });
        add(
            self.faults.kinds.is_empty(),
            &["faults.requests", "faults.share", "faults.probability", "faults.factor", "faults.delay"],
            &|| "`faults.kinds` is empty".into(),
        );
        unused
    }
}
