//! What a run's files say of its rows and its clients.

use crate::backend::Session;
use crate::datasets::{ModelCard, Partition, TrainTest};
use crate::models::Model;
use crate::report::csv::text_cell;
use crate::report::{ClientNames, PartitionTable};

use super::checkpoints::Digests;
use super::config::{Config, EvaluationRows};
use super::description::Experiment;
use super::own_model;

/// What a client's rows are for, in the words of the file of their lines.
pub(super) const USES: [&str; 3] = ["training", "validation", "calibration"];

/// What a run's files say of its rows and its clients.
pub(super) struct RowsOfRun {
    /// All that predictions need besides particles and configuration.
    pub card: ModelCard,
    /// The digests by which a resumed run recognises its rows.
    pub digests: Digests,
    /// The clients and the numbers of their rows, as a text.
    pub listed: String,
    /// The number of rows of every class at every client, where they are known.
    pub counts: Option<PartitionTable>,
    /// The data and the numbers of rows, for the report.
    pub about: String,
    /// The number of clients and how they came to their rows, for the report.
    pub clients: String,
    /// The lines of the rows that are predicted in the user's own file.
    pub test_lines: Option<Vec<u64>>,
    /// The lines of the other rows in the user's own file, with the client and the use of each, as CSV.
    pub train_lines: Option<String>,
    /// Notes on the rows and the clients, one sentence each.
    pub notes: Vec<String>,
    /// The name of a client selection that the program brings.
    pub own_selection: Option<String>,
}

impl RowsOfRun {
    /// The rows of a run in one process.
    pub fn here(config: &Config, data: &TrainTest, partition: &Partition, notes: Vec<String>) -> Self {
        let mut card = ModelCard::of(&data.train, data.normalisation.clone()).with_encoding(data.encoding.clone());
        card.numbered_columns = data.numbered_columns.clone();
        let clients = 0..partition.clients().len();
        let counts = PartitionTable {
            class_names: card.classes.clone().unwrap_or_default(),
            counts: partition.counts(&data.train.targets),
            validation: clients.clone().map(|client| partition.validation(client).len()).collect(),
            calibration: match partition.calibrating().is_empty() {
                true => Vec::new(),
                false => clients.clone().map(|client| partition.calibration(client).len()).collect(),
            },
            test: clients.map(|client| partition.test(client).len()).collect(),
            clients: ClientNames::new(partition.names().to_vec()),
        };
        Self {
            digests: Digests::of(data, partition),
            listed: partition.table(&data.train.targets),
            counts: Some(counts),
            about: about_rows(&card.data, data, partition, config.evaluation.rows),
            clients: format!("{} ({})", partition.clients().len(), config.partition_kind()),
            test_lines: data.test.lines.clone(),
            train_lines: data.train.lines.as_deref().map(|lines| lines_of_clients(lines, partition)),
            card,
            notes,
            own_selection: None,
        }
    }

    /// The same with what the program brings in the place of its config's.
    pub fn brought_by(mut self, experiment: &Experiment, model: &dyn Model, session: &Session) -> Self {
        (self.card.own_model, self.card.own_data) = (experiment.model.is_some(), experiment.data.is_some());
        if self.card.own_model {
            self.card.own_model_fingerprint = own_model::fingerprint(model, self.card.features, session);
        }
        self.own_selection = experiment.selection.as_ref().map(|own| own.name().to_owned());
        self
    }
}

/// The line of each row that a client trains on or holds out, in the order of the lines.
fn lines_of_clients(lines: &[u64], partition: &Partition) -> String {
    let of_client = |client: usize| {
        let rows = [&partition.clients()[client][..], partition.validation(client), partition.calibration(client)];
        USES.into_iter().zip(rows).flat_map(move |(word, rows)| rows.iter().map(move |row| (lines[*row], client, word)))
    };
    let mut rows: Vec<(u64, usize, &str)> = (0..partition.clients().len()).flat_map(of_client).collect();
    rows.sort_unstable();
    let names: Vec<String> =
        (0..partition.clients().len()).map(|client| text_cell(&partition.name(client)).to_string()).collect();
    let rows = rows.into_iter().map(|(line, client, word)| format!("{line},{},{word}\n", names[client]));
    std::iter::once("line,client,use\n".to_owned()).chain(rows).collect()
}

/// The data set and its numbers of rows, those that are held out from the training by themselves. Where validation rows are
/// evaluated they have the place of the test rows.
fn about_rows(name: &str, data: &TrainTest, partition: &Partition, evaluated: EvaluationRows) -> String {
    let (validation, calibration) = (partition.held_out().len(), partition.calibrating().len());
    let trained = data.train.rows() - validation - calibration;
    let (validation, last) = match evaluated {
        EvaluationRows::Test => (validation, "test"),
        EvaluationRows::Validation => (0, "validation"),
    };
    let held = [(validation, "validation"), (calibration, "calibration")].into_iter().filter(|(rows, _)| *rows > 0);
    let held: String = held.map(|(rows, what)| format!(", {rows} {what}")).collect();
    format!("{name}, {trained} training{held} and {} {last} rows", data.test.rows())
}
