//! The run behind the predictions, as a report shows it.

use serde::{Deserialize, Serialize};

use crate::calibrated::CalibrationResults;
use crate::clients::ClientNames;
use crate::clients_compared::ClientsCompared;
use crate::metrics::{Bin, Evaluation};
use crate::record::{RoundRecord, points};
use crate::site_scores::SiteScores;

/// The run that made the predictions.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RunSummary {
    /// The resolved config, shown as it is.
    pub config_toml: String,
    /// The records of the rounds, in order; `report.json` has their headline metrics.
    #[serde(with = "points")]
    pub rounds: Vec<RoundRecord>,
    /// The number of rows of every class at every client.
    pub partition: Option<PartitionTable>,
    /// Scores of the clients' personal predictors, in a personalised run.
    pub personal: Option<PersonalTable>,
    /// Whether the clients' personal predictors are what the method is for: they then come before the server's particles.
    #[serde(skip)]
    pub personal_first: bool,
    /// Why the predictions are not those that the run is for, a sentence; the report then has no verdict on them.
    #[serde(skip)]
    pub not_judged: Option<String>,
    /// The scores of each site, where the rows are at several sites.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<SiteScores>,
    /// The scores of every client's personal predictor on its own test rows, of a personalised run in one process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<SiteScores>,
    /// Backend, device, seed, seconds, bytes ...: name and value, shown in this order.
    pub facts: Vec<(String, String)>,
    /// Notes on the run, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What was learned from calibration rows, and what it does on test rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationResults>,
    /// Other runs beside this one, at most three in a picture.
    pub compare: Vec<Comparison>,
}

/// Rows of every class at every client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartitionTable {
    /// Names of the classes, `[C]`.
    pub class_names: Vec<String>,
    /// Counts, `[clients][C]`.
    pub counts: Vec<Vec<usize>>,
    /// Rows of each client that are held out from its training, `[clients]`.
    #[serde(default)]
    pub validation: Vec<usize>,
    /// Rows of each client that are held out for calibration, `[clients]`; empty where none are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibration: Vec<usize>,
    /// Rows of each client's own test, `[clients]`; clients may share them.
    #[serde(default)]
    pub test: Vec<usize>,
    /// What the clients are called.
    #[serde(default, skip_serializing_if = "ClientNames::is_empty")]
    pub clients: ClientNames,
}

/// Every client's personal predictor on its own test rows, over all clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PersonalTable {
    /// The last round.
    pub last_round: usize,
    /// The round with the lowest validation NLL; `None` where no validation rows were held out.
    pub best_round: Option<usize>,
    /// Clients that gave scores in the last round, and all clients; `None` where these are equal.
    pub scored: Option<(usize, usize)>,
    /// The numbers.
    pub rows: Vec<PersonalRow>,
}

/// One number of a [`PersonalTable`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PersonalRow {
    /// Its name.
    pub name: String,
    /// Its meaning, in a few words.
    pub about: String,
    /// The value after the last round.
    pub last: f64,
    /// The value after the best round.
    pub best: Option<f64>,
}

/// Another run, scored on the same rows.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The name of the run in legends and tables.
    pub name: String,
    /// Its headline numbers: of its own results, also where these are not those of its last round.
    pub evaluation: Evaluation,
    /// Why these numbers are not those that the run is for, a sentence; the page then does not show them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<String>,
    /// Its equal-width bins for the reliability diagram; empty for a regression.
    pub bins: Vec<Bin>,
    /// The records of its rounds, for its curves; may be empty.
    #[serde(with = "points")]
    pub rounds: Vec<RoundRecord>,
    /// The predictors of the clients in both runs; `None` where these are not known of the same clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<ClientsCompared>,
}
