//! Notes on defaults, and on values, that do not suit the rest of a config.

use fedstein_schema::{Given, Resolved};

use super::{Config, LrScheduleConfig, Own, Preset};
use crate::algorithm::Replies;
use crate::datasets::{DataConfig, ModelCard, note_on_event};

/// Step sizes below this are slow for a logistic regression.
const SLOW: f64 = 0.01;

impl Config {
    /// A sentence for each default or value that does not suit the rest.
    pub(super) fn unsuited(&self, resolved: &Resolved, own: Own) -> Vec<String> {
        let Resolved { changed, given, .. } = resolved;
        let notes = [
            self.without_constant(own),
            self.early_last_step(changed),
            self.one_client_alone(given, own),
            self.slow_regression(given, own),
        ];
        notes.into_iter().flatten().collect()
    }

    /// A note where the report is about the class without the event, and `data.positive` does not say so. It is known once
    /// the rows have been read.
    pub(in crate::experiment) fn note_on_event(&self, card: &ModelCard) -> Option<String> {
        let is_chosen = match self.data().ok()? {
            DataConfig::Csv(csv) => !csv.positive.is_empty(),
            DataConfig::Sites(sites) => !sites.positive.is_empty(),
            _ => true,
        };
        note_on_event(card.classes.as_deref()?).filter(|_| !is_chosen)
    }

    /// A note where a logistic regression on a user's own rows has no constant term.
    fn without_constant(&self, own: Own) -> Option<String> {
        let is_own = own.data.is_some() || self.data().is_ok_and(|data| data.reading().is_some());
        (is_own && !own.model && !self.model.has_constant()).then(|| {
            format!(
                "`{}` has no constant term, as in the papers: a row whose features are all 0 after scaling gets the probability \
                 0.5, however rare a class is; `model.bias = true` adds one",
                self.model.kind().name
            )
        })
    }

    /// A note where a method that averages several clients has one in each round, and nobody has said so.
    fn one_client_alone(&self, given: &[Given], own: Own) -> Option<String> {
        let can = self.algorithm.capabilities();
        let is_known = !own.selection && self.knows_algorithm();
        let averages = matches!(can.replies, Replies::Estimates | Replies::OwnRule);
        let has_others = self.partition().map_or(true, |partition| partition.scheme.clients() != Some(1));
        let alone = averages && !can.centralised && !can.chooses_clients && self.schedule.clients() == 1 && has_others;
        let is_chosen = self.preset != Preset::Sound || given.iter().any(|key| key.path == "schedule.clients");
        (alone && is_known && !is_chosen).then(|| {
            format!(
                "`schedule.clients` is 1: `{}` then has nothing to average and passes its parameters from client to client, of \
                 which the last ones weigh most. Set it to the number of clients that a round averages, or to 1 to keep this",
                self.algorithm.name()
            )
        })
    }

    /// A note where a logistic regression has the step size of networks, and nobody has said so.
    fn slow_regression(&self, given: &[Given], own: Own) -> Option<String> {
        let is_logistic = self.model.is_logistic_regression() && !own.model;
        let is_chosen = self.preset != Preset::Sound || given.iter().any(|key| key.path == "optimizer.lr");
        let steps = self.algorithm.capabilities().scheduled_steps && self.optimizer.lr() < SLOW;
        (is_logistic && steps && !is_chosen).then(|| {
            format!(
                "`optimizer.lr` = {} is a step size for networks; `{}` may need many more rounds with it than with 0.05, that of \
                 the papers' logistic regressions",
                self.optimizer.lr(),
                self.model.kind().name
            )
        })
    }

    /// A note where the step size falls along a cosine for fewer rounds than there are, and nobody has said for how many.
    fn early_last_step(&self, changed: &[String]) -> Option<String> {
        let LrScheduleConfig::Cosine { rounds, .. } = self.lr_schedule else { return None };
        let is_early = rounds < self.rounds && changed.iter().all(|key| key != "lr_schedule.rounds");
        is_early.then(|| {
            format!(
                "`lr_schedule.rounds` is {rounds} by default: of the {} rounds, those after it have the last and smallest step \
                 size; set it to `rounds` to spread the cosine over all",
                self.rounds
            )
        })
    }
}
