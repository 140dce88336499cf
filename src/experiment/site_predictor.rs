//! Whose predictions the results of a site are.

use super::config::Config;
use super::finished::Finished;
use super::personal::{not_judged, note_on_published};

/// The fact that says whose predictions the results are.
pub(super) const PREDICTOR: &str = "predictor";
pub(super) const OWN: &str = "the client's own particles";
pub(super) const OWN_OF_ROWS: &str = "the client's own";
pub(super) const PUBLISHED: &str = "the global particles";

impl Finished {
    /// Whether these are a site's results, and of this predictor.
    pub(super) fn has_predictor(&self, predictor: &str) -> bool {
        self.summary.facts.iter().any(|(name, value)| name == PREDICTOR && value == predictor)
    }

    /// Why the run's own results are not judged, in a sentence: they are those of the server's particles, of which a part is
    /// untrained. `None` for all others.
    pub(super) fn not_judged(&self, config: &Config) -> Option<String> {
        let are_own = [OWN, OWN_OF_ROWS].iter().any(|own| self.has_predictor(own));
        not_judged(config, self.capabilities(config)).filter(|_| !are_own)
    }

    /// The same of predictions of new rows, by a client's personal predictor where `client` says so.
    pub(super) fn new_rows_not_judged(&self, config: &Config, client: bool) -> Option<String> {
        not_judged(config, self.capabilities(config)).filter(|_| !client && !self.has_predictor(OWN))
    }

    /// That new rows are predicted by another predictor than that of the results, or by one that is not the method's;
    /// `None` where they are not.
    ///
    /// # Arguments
    /// * `config`: the run's, from [`Finished::config`]
    /// * `client`: whether a client's personal predictor predicts
    pub(super) fn note_on_predictor(&self, config: &Config, client: bool) -> Option<String> {
        if client || self.has_predictor(OWN) {
            return None;
        }
        if !self.has_predictor(OWN_OF_ROWS) {
            return note_on_published(config, self.capabilities(config));
        }
        Some(
            "the report in this directory is of the client's personal predictor, which needs its training rows; these predictions are \
             of the global particles, and differ from it (docs/federation.md)"
                .to_owned(),
        )
    }
}
