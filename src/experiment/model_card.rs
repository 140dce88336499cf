//! `MODEL_CARD.md` beside the report of a run: what the model is, on what it was trained, how good it is, and what is not
//! known. Its head is that of a model card of Hugging Face. Every number is that of the report's `report.json`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::config::{Config, EvaluationRows};
use super::facts::PARTICLES;
use super::finished::Finished;
use super::provenance::Provenance;
use super::run_dir;
use super::schema::first;
use crate::datasets::Reading;
use crate::error::RunError;
use crate::metrics::{Metric, Over, View};
use crate::report::{PartitionTable, PersonalTable, decimals};

/// The type of rows that the program brought: no data set of fedstein.
const OWN_DATA: &str = "own-data";

/// Up to this number of clients each has a row; of more, only the sizes are summarised.
const LISTED: usize = 30;

/// Below this number of test rows, or of groups of them, the card says that they are few: a share has a 95 % interval of ±10 points.
const FEW_ROWS: u64 = 100;

/// The card of a run, whose report has this `report.json`.
///
/// # Errors
/// The report or the run's configuration cannot be read.
pub(super) fn text(run: &Finished, config: &Config, json: &str) -> Result<String, RunError> {
    let report = serde_json::from_str(json).map_err(|error| RunError::Output(format!("report.json: {error}")))?;
    Card { run, config, report: &report, provenance: run.provenance() }.text()
}

impl Finished {
    /// Where the results come from; `None` in a run of an earlier version.
    fn provenance(&self) -> Option<Provenance> {
        Provenance::read(&self.path.join(run_dir::PROVENANCE))
    }
}

/// Where the rows of a run are.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// In one place.
    Here,
    /// At sites, and the results are the server's.
    Sites,
    /// At sites, and the results are those of one of them.
    Site,
}

struct Card<'a> {
    run: &'a Finished,
    config: &'a Config,
    report: &'a Value,
    provenance: Option<Provenance>,
}

impl Card<'_> {
    fn text(&self) -> Result<String, RunError> {
        let place = match (self.run.summary.at_site, self.config.rows_are_at_sites()) {
            (true, _) => Place::Site,
            (false, true) => Place::Sites,
            (false, false) => Place::Here,
        };
        let mut text = format!("---\n{}---\n\n# {}\n\n", self.head(), plain(&self.run.summary.name));
        self.what(&mut text, place);
        self.data(&mut text, place);
        self.results(&mut text);
        self.calibration(&mut text)?;
        self.limits(&mut text, place);
        self.usage(&mut text, place, self.config.data()?.reading());
        Ok(text)
    }

    fn is_classification(&self) -> bool {
        self.run.card.classes.is_some()
    }

    fn task(&self) -> &'static str {
        match (self.run.card.feature_shape.len() > 1, self.is_classification()) {
            (true, true) => "image-classification",
            (_, true) => "tabular-classification",
            (_, false) => "tabular-regression",
        }
    }

    /// The metrics of the report's cards that have a value: those of the clients' personal predictors over all rows, where
    /// those of the server's particles say nothing.
    fn metrics(&self) -> Vec<(&'static Metric, f64)> {
        let value = |metric: &'static Metric| match self.is_untrained() {
            true => {
                let column = metric.personal.iter().find(|column| column.over == Over::Rows)?;
                self.run.summary.personal.as_ref()?.last.numbers.get(column.key).copied().flatten()
            }
            false => self.report["overall"][metric.key].as_f64(),
        };
        Metric::in_view(View::Card).into_iter().filter_map(|metric| Some((metric, value(metric)?))).collect()
    }

    /// Whether the results are those of the server's particles, of which a part is untrained.
    fn is_untrained(&self) -> bool {
        self.run.not_judged(self.config).is_some()
    }

    /// The head in YAML. A text in quotes of JSON is one of YAML too.
    fn head(&self) -> String {
        let (card, summary) = (&self.run.card, &self.run.summary);
        let mut head = String::from("library_name: fedstein\n");
        let _ = writeln!(head, "pipeline_tag: {}", self.task());
        let _ = writeln!(head, "tags:\n- federated-learning\n- bayesian\n- {}", self.config.algorithm.name());
        if self.metrics().is_empty() {
            return head;
        }
        let _ = writeln!(head, "model-index:\n- name: {}\n  results:", json!(summary.name));
        let _ = writeln!(head, "  - task:\n      type: {}", self.task());
        let _ = writeln!(
            head,
            "    dataset:\n      name: {}\n      type: {}",
            json!(card.data),
            json!(if card.own_data { OWN_DATA } else { self.config.data_kind() })
        );
        head.push_str("    metrics:\n");
        for (metric, value) in self.metrics() {
            let _ =
                writeln!(head, "    - type: {}\n      name: {}\n      value: {value}", metric.key, json!(metric.name));
        }
        head
    }

    fn what(&self, text: &mut String, place: Place) {
        let card = &self.run.card;
        let task = match &card.classes {
            Some(classes) => format!("one of {} classes", classes.len()),
            None => "a number".to_owned(),
        };
        let place = match place {
            Place::Here => "The run was a simulation: one process had the rows of all clients.",
            Place::Sites => "The rows stayed at their sites.",
            Place::Site => "The rows stayed at their sites; these are the results of one of them.",
        };
        let particles = self.run.summary.facts.iter().find(|(name, _)| name == PARTICLES);
        let predictor = match particles.map_or("1", |(_, count)| count) {
            "1" => "One parameter vector predicts".to_owned(),
            count => format!("{count} particles (parameter vectors) predict together"),
        };
        let _ = writeln!(
            text,
            "{predictor} {task} from {} features, with a probability. Trained by `{}` with fedstein. {place}\n",
            card.features,
            self.config.algorithm.name()
        );
        text.push_str("| | |\n|---|---|\n");
        for (name, fact) in &self.run.summary.facts {
            let _ = writeln!(text, "| {} | {} |", plain(name), plain(fact));
        }
        text.push_str("\nAll settings are in `config.toml`.\n\n");
    }

    fn data(&self, text: &mut String, place: Place) {
        text.push_str("## Data\n\n");
        if let Some(fact) = self.fact("data") {
            let _ = writeln!(text, "{}.\n", plain(fact));
        }
        if let Some(classes) = &self.run.card.classes {
            let names: Vec<String> = classes.iter().take(LISTED).map(|name| format!("`{}`", code(name))).collect();
            let more = if classes.len() > LISTED { ", …" } else { "" };
            let _ = writeln!(text, "Classes, in the order of the probabilities: {}{more}.\n", names.join(", "));
        }
        if let Some(partition) = &self.run.summary.partition {
            let at_sites = self.config.rows_are_at_sites();
            sizes(text, partition, at_sites);
        } else if place == Place::Sites && !self.run.summary.sites.is_empty() {
            text.push_str("| site | test rows |\n|---|---|\n");
            for site in &self.run.summary.sites {
                let _ = writeln!(text, "| {} | {} |", plain(&site.name), site.evaluation.rows);
            }
            text.push('\n');
        }
        if let Some(provenance) = &self.provenance {
            let what = match self.run.summary.sites.is_empty() {
                true => "all training and test rows as the model sees them",
                false => "the fingerprints of the sites' files, which are others in every run",
            };
            let _ = writeln!(text, "sha256 of {what}: `{}`.\n", provenance.data_sha256);
        }
    }

    fn results(&self, text: &mut String) {
        if self.is_untrained() {
            text.push_str("## Results\n\n");
            return match &self.run.summary.personal {
                Some(personal) => personal_table(text, &personal.table()),
                None => text.push_str("The clients' personal predictors were not scored (`evaluation.personal`).\n\n"),
            };
        }
        let (rows, clusters) = self.rows_and_clusters();
        let of_clusters = clusters.map_or(String::new(), |clusters| format!(" of {clusters} groups"));
        let which = match self.config.evaluation.rows {
            EvaluationRows::Test => format!("test rows{of_clusters}, which were held out from training"),
            EvaluationRows::Validation => format!(
                "validation rows{of_clusters}, held out from training to choose settings with; no test rows were used"
            ),
        };
        let _ = writeln!(
            text,
            "## Results\n\nOn {rows} {which}.\n\n| metric | value | 95 % interval | meaning |\n|---|---|---|---|"
        );
        for (metric, value) in self.metrics() {
            let interval = &self.report["confidence_intervals"][metric.key];
            let interval = match (interval["lo"].as_f64(), interval["hi"].as_f64()) {
                (Some(lo), Some(hi)) => format!("{} to {}", decimals(lo, 4), decimals(hi, 4)),
                _ => String::new(),
            };
            let meaning = self.report["definitions"][metric.key].as_str().unwrap_or_default();
            let _ = writeln!(text, "| {} | {} | {interval} | {} |", metric.name, decimals(value, 4), plain(meaning));
        }
        text.push('\n');
        let no_skill = &self.report["no_skill"];
        if let (Some(accuracy), Some(nll), Some(brier)) =
            (no_skill["accuracy"].as_f64(), no_skill["nll"].as_f64(), no_skill["brier"].as_f64())
        {
            let _ = writeln!(
                text,
                "Predicting the frequencies of the classes for every row would have an accuracy of {accuracy:.4}, an NLL of {nll:.4} and a Brier score of {brier:.4}.\n"
            );
        }
        if let (Some(rmse), Some(nll), Some(crps)) =
            (no_skill["rmse"].as_f64(), no_skill["nll"].as_f64(), no_skill["crps"].as_f64())
        {
            let _ = writeln!(
                text,
                "Predicting the normal distribution of all targets for every row would have an RMSE of {}, an NLL of {} and a CRPS of {}.\n",
                decimals(rmse, 4),
                decimals(nll, 4),
                decimals(crps, 4)
            );
        }
        if let Some(coverage) = self.report["coverage"].as_array() {
            text.push_str("| central interval | share of targets in it |\n|---|---|\n");
            for row in coverage {
                if let (Some(level), Some(share)) = (row["level"].as_f64(), row["coverage"].as_f64()) {
                    let _ = writeln!(text, "| {:.0} % | {:.1} % |", 100.0 * level, 100.0 * share);
                }
            }
            text.push('\n');
        }
        if let Some(personal) = &self.run.summary.personal {
            personal_table(text, &personal.table());
        }
    }

    fn calibration(&self, text: &mut String) -> Result<(), RunError> {
        text.push_str("## Calibration\n\n");
        if self.is_untrained() {
            text.push_str(
                "What each client's predictions are worth differs: the report has its numbers by client.\n\n",
            );
            return Ok(());
        }
        let verdict = &self.report["verdict"];
        let word = |key: &str| verdict[key].as_str().unwrap_or_default();
        let _ = writeln!(text, "**{}.** {}\n", plain(word("headline")), plain(word("text")));
        let of_calibration_rows = self.run.recalibrated(None)?.notes(false);
        if !of_calibration_rows.is_empty() {
            let _ = writeln!(
                text,
                "On new rows `fedstein predict` does more: {}.\n",
                plain(&of_calibration_rows.join("; "))
            );
        }
        Ok(())
    }

    /// The number of rows of the results, and of the groups to which they belong, where they do.
    fn rows_and_clusters(&self) -> (u64, Option<u64>) {
        let overall = &self.report["overall"];
        (overall["n"].as_u64().unwrap_or_default(), overall["clusters"].as_u64())
    }

    fn limits(&self, text: &mut String, place: Place) {
        text.push_str("## Limits\n\n");
        let mut limit = |sentence: &str| {
            let _ = writeln!(text, "- {sentence}");
        };
        let (rows, clusters) = self.rows_and_clusters();
        match clusters {
            None if rows < FEW_ROWS => limit(&format!("{rows} rows are few: the intervals of these numbers are wide.")),
            Some(clusters) if clusters < FEW_ROWS => limit(&format!(
                "{clusters} groups of rows that belong together are few: the intervals of these numbers are wide."
            )),
            _ => {}
        }
        if self.report["verdict"]["kind"] == "too few rows" {
            limit("There are too few rows to tell whether the probabilities are too high or too low.");
        }
        for note in &self.run.summary.notes {
            limit(&format!("{}.", plain(note).trim_end_matches('.')));
        }
        if self.config.evaluation.rows == EvaluationRows::Validation {
            limit(
                "Settings may have been chosen on the rows of these results, which then are better than on new rows.",
            );
        }
        let data = self.config.data().map(|data| data.properties()).ok();
        limit(match data {
            Some(data) if data.unseen_clients => {
                "The numbers are those of clients that took no part in the training, and of rows like theirs: at the other clients they may be better. Rows of other times or devices were not looked at; `fedstein evaluate` does, where their outcomes are known."
            }
            Some(data) if data.natural_clients => {
                "The numbers are those of rows like the ones above. Rows of other places, times or devices were not looked at; `fedstein evaluate` does, where their outcomes are known, and runs with `data.leave_out` say how well such a model does at a client that takes no part (docs/study.md)."
            }
            _ => {
                "The numbers are those of rows like the ones above. Rows of other places, times or devices were not looked at; `fedstein evaluate` does, where their outcomes are known."
            }
        });
        limit(
            "Nothing here says whether predictions are right for single groups of rows; `fedstein evaluate --by` and the Python package compare groups.",
        );
        if self.run.summary.uncertainty.as_ref().is_some_and(|uncertainty| uncertainty.particles > 1) {
            limit(
                "The particles' spread is not the posterior's, and mostly narrower (docs/concepts.md): mutual information and epistemic deviations say what the particles disagree about.",
            );
        }
        limit(match place {
            Place::Here => {
                "There is no differential privacy: the parameters can say something about the training rows."
            }
            Place::Sites | Place::Site => {
                "Rows stayed at their sites, but what was sent says something about them. There is no differential privacy."
            }
        });
        text.push('\n');
    }

    fn usage(&self, text: &mut String, place: Place, reading: Option<&Reading>) {
        let command = match (self.is_untrained(), place) {
            (true, Place::Here) => "fedstein predict RUN_DIR --input rows.csv --client CLIENT",
            (true, _) => "fedstein predict STATE/RUN/results --input rows.csv    # at a site, with its own predictor",
            (false, _) => "fedstein predict RUN_DIR --input rows.csv",
        };
        let _ = writeln!(
            text,
            "## Use\n\nWith the directory of the run, and rows with the same features:\n\n```sh\n{command}\n```\n"
        );
        if let Some(names) = self.run.card.column_names() {
            let _ = writeln!(text, "The columns are {}.{}\n", columns(&names), ids(reading));
        }
        let version = self.provenance.as_ref().and_then(|of| Some(of.sessions.last()?.version.clone()));
        let version = version.or_else(|| self.fact("fedstein").map(str::to_owned));
        let by = version.map_or_else(String::new, |version| format!(" by fedstein {}", plain(&version)));
        let repeat = match place {
            Place::Here => {
                "`fedstein train config.toml` repeats the run: the same seed, rows, machine and backend give the same bits."
            }
            Place::Sites => {
                "`fedstein train config.toml --sites A/site.toml,B/site.toml,…`, with the file of every site in the order of \
                 their indices, repeats the run: it needs the rows of all sites."
            }
            Place::Site => {
                "`config.toml` is that of these results; only the server, with the rows of all sites, can repeat the run."
            }
        };
        let _ = writeln!(text, "Written{by}. {repeat}");
    }

    fn fact(&self, name: &str) -> Option<&str> {
        self.run.summary.facts.iter().find(|(known, _)| known == name).map(|(_, fact)| fact.as_str())
    }
}

/// The columns of features in a list.
fn columns(names: &[String]) -> String {
    let place = if names.len() > LISTED { ", in `model.json`" } else { "" };
    first(LISTED, names.iter().map(|name| format!("`{}`", code(name)))) + place
}

/// The columns that predictions are written beside, which their file must have too.
fn ids(reading: Option<&Reading>) -> String {
    let ids = reading.map(|reading| reading.id.as_slice()).unwrap_or_default();
    let listed: Vec<String> = ids.iter().map(|column| format!("`{}`", code(column))).collect();
    match listed.is_empty() {
        true => String::new(),
        false => {
            format!(" The file also needs the columns of `data.id`, {}, whose cells may be blank.", listed.join(", "))
        }
    }
}

/// The number of rows of every client, or a summary of many.
fn sizes(text: &mut String, partition: &PartitionTable, at_sites: bool) {
    let train: Vec<usize> = partition.counts.iter().map(|counts| counts.iter().sum()).collect();
    let of = |rows: &[usize], client: usize| rows.get(client).copied().unwrap_or_default();
    if train.len() <= LISTED {
        let calibrates = !partition.calibration.is_empty();
        let (head, rule) = if calibrates { (" calibration rows |", "---|") } else { ("", "") };
        let _ = writeln!(
            text,
            "| client | training rows | validation rows |{head} own test rows |\n|---|---|---|{rule}---|"
        );
        for (client, rows) in train.iter().enumerate() {
            let (validation, test) = (of(&partition.validation, client), of(&partition.test, client));
            let calibration =
                if calibrates { format!(" {} |", of(&partition.calibration, client)) } else { String::new() };
            let name = plain(&partition.clients.of(client));
            let _ = writeln!(text, "| {name} | {rows} | {validation} |{calibration} {test} |");
        }
        text.push('\n');
        if !at_sites {
            text.push_str("Clients may share test rows, but for those of `by-column`.\n\n");
        }
    } else {
        let mut sorted = train;
        sorted.sort_unstable();
        let (least, median, most) = (sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1]);
        let _ = writeln!(
            text,
            "{} clients have {least} to {most} training rows, the median {median}; `partition.txt` lists them.\n",
            sorted.len()
        );
    }
}

fn personal_table(text: &mut String, table: &PersonalTable) {
    let _ =
        writeln!(text, "Each client's personal predictor on its own test rows, after round {}:\n", table.last_round);
    text.push_str("| metric | value | meaning |\n|---|---|---|\n");
    for row in &table.rows {
        let _ = writeln!(text, "| {} | {} | {} |", plain(&row.name), decimals(row.last, 4), plain(&row.about));
    }
    text.push('\n');
}

/// A text from a file as a part of a line of Markdown: no line breaks, no markup, no end of a cell.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_control() => plain.push(' '),
            '|' | '<' | '`' | '[' | ']' | '\\' => plain.extend(['\\', c]),
            c => plain.push(c),
        }
    }
    plain
}

/// A text from a file between backquotes.
fn code(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().replace('`', "'")
}
