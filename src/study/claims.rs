//! The claims of a study, such as `newton better than fedavg in nll`.

use super::axes::{Axis, or_near};
use crate::metrics::Direction;
use crate::report::files::quoted;
use crate::reproduce::figure::{Order, known_metric};
use crate::reproduce::judge::better;
use crate::reproduce::verdict::Verdict;

/// The words between two variants, and before the metric.
const BETTER: &str = " better than ";
const IN: &str = " in ";

/// An order of variants that a study is to check.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The claim as it was written.
    pub text: String,
    /// The variants of the compared axis, the best first.
    pub variants: Vec<usize>,
    /// The metric.
    pub metric: String,
    /// The order of its values.
    pub order: Order,
}

impl Claim {
    /// Reads a claim about the compared axis.
    ///
    /// # Errors
    /// It has another form, or a variant or metric that does not exist.
    pub(super) fn parse(axis: &Axis, text: &str) -> Result<Self, String> {
        let form = || "a claim has the form \"A better than B in METRIC\"".to_owned();
        let (order, metric) = text.trim().rsplit_once(IN).ok_or_else(form)?;
        let terms: Vec<&str> = order.split(BETTER).map(str::trim).collect();
        if terms.len() < 2 {
            return Err(form());
        }
        let metric = metric.trim().to_owned();
        known_metric(&metric)?;
        let order = match better(&metric) {
            Some(Direction::HigherIsBetter) => Order::Greater,
            Some(Direction::LowerIsBetter) => Order::Smaller,
            None => return Err(format!("neither small nor large values of `{metric}` are better")),
        };
        let names: Vec<&str> = axis.names().collect();
        let variant = |name: &&str| {
            names.iter().position(|known| known == name).ok_or_else(|| {
                let near = or_near(name, &names);
                format!("[vary.{}] has no variant `{}`{near}", axis.name, quoted(name))
            })
        };
        let variants: Vec<usize> = terms.iter().map(variant).collect::<Result<_, _>>()?;
        if let Some(pair) = variants.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("`{}` is compared with itself", names[pair[0]]));
        }
        Ok(Self { text: text.trim().to_owned(), variants, metric, order })
    }
}

/// Whether a claim holds, in words.
pub fn answer(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Confirmed => "held",
        Verdict::Contradicted => "not held",
        _ => "undecided",
    }
}

/// Why there is no answer; empty where there is one.
pub fn reason(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Confirmed | Verdict::Contradicted => "",
        Verdict::Agrees => "the order is as claimed, within two standard errors",
        Verdict::WithinError => "the order is the opposite, within two standard errors",
        Verdict::FewSeeds { .. } => "fewer than three seeds in common",
        Verdict::NotRun => "a run is missing",
        _ => "a run has no value of this metric",
    }
}
