//! Rounds that a test drives itself, and regressions over clients' rows that a test writes.

use std::fmt::Display;

use fedstein::experiment::Experiment;
use fedstein::protocol::{Ask, ClientId, Message, Predictor, Request, Scoring};
use ndarray::Array2;
use tempfile::TempDir;

use crate::common::{Built, experiment, values};

/// Rounds of the clients in turn, as many a round as the schedule says.
pub struct Driven {
    pub built: Built,
    a_round: usize,
}

impl Driven {
    pub fn new(experiment: &Experiment) -> Self {
        Self::of(Built::new(experiment), experiment.config.schedule.clients())
    }

    /// Rounds of these halves with so many clients each.
    pub fn of(built: Built, a_round: usize) -> Self {
        Self { built, a_round }
    }

    pub fn request(&self, round: usize, client: ClientId, ask: Ask) -> Request {
        let server = &self.built.server;
        let message = server.configure_for(round, client).unwrap();
        Request::new(round, client, ask, message.unwrap_or_else(|| server.configure(round).unwrap()))
    }

    /// Runs a round, from 1; what the clients sent.
    pub fn round(&mut self, round: usize) -> Vec<(ClientId, Message)> {
        let count = self.built.clients.len();
        let asked: Vec<ClientId> = (0..self.a_round).map(|i| ((round - 1) * self.a_round + i) % count).collect();
        self.built.server.begin(round, &asked).unwrap();
        let replies = asked.iter().map(|client| {
            let request = self.request(round, *client, Ask::Train);
            request.reply(self.built.clients[*client].1.handle(&request, &|_, _| {}).unwrap())
        });
        let replies = replies.collect::<Vec<_>>();
        let sent = replies.iter().map(|reply| (reply.client, reply.message.clone())).collect();
        self.built.server.aggregate(replies).unwrap();
        sent
    }

    /// The global particles Θ, `[N, d]`.
    pub fn theta(&self) -> Array2<f64> {
        let particles = self.built.server.particles();
        Array2::from_shape_vec((particles.count(), particles.dim()), values(particles)).unwrap()
    }

    /// The particles of a client's factor, `[N·d]`.
    pub fn factor(&self, client: ClientId) -> Vec<f64> {
        let Built { clients, layout, session, .. } = &self.built;
        values(&clients[client].1.save().unwrap().particles("factor", layout, session).unwrap())
    }

    /// The client's own particles for predictions, `[N·d]`; `None` if it has none.
    pub fn predictor(&mut self, client: ClientId) -> Option<Vec<f64>> {
        let Built { server, clients, .. } = &mut self.built;
        let request = Request::new(1, client, Ask::Score(Scoring::default()), server.publish().unwrap());
        match clients[client].1.predictor(&request).unwrap() {
            Predictor::Own(particles) => Some(values(&particles)),
            _ => None,
        }
    }
}

/// An experiment in f64 on these CSV rows, with a column `site` of the clients and a target `y`; `keys` are those of
/// `[algorithm]` and the sections after it. Test rows have the header of the training rows.
pub fn sites(header: &str, rows: &str, test: &str, keys: impl Display) -> (Experiment, TempDir) {
    sites_of("regression", header, rows, test, keys)
}

/// Two clients with the same twelve rows of two classes, which are in the same order; `keys` as in [`sites`].
pub fn equal_clients(keys: impl Display) -> (Experiment, TempDir) {
    let row = |client: usize, at: usize| {
        let (a, b) = ((at as f64).sin(), (2.0 * at as f64).cos());
        format!("{a},{b},{},s{client}\n", ["no", "yes"][at % 2])
    };
    let rows: String = (0..2).flat_map(|client| (0..12).map(move |at| row(client, at))).collect();
    sites_of("classification", "a,b,y,site", &rows, "0.5,0.5,no,s0\n", keys)
}

/// As [`sites`], for this task.
pub fn sites_of(task: &str, header: &str, rows: &str, test: &str, keys: impl Display) -> (Experiment, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, rows: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("{header}\n{rows}")).unwrap();
        path
    };
    let (path, test) = (file("rows.csv", rows), file("test.csv", test));
    let experiment = experiment(&format!(
        r#"
        name = "sites"
        precision = "f64"
        [data]
        kind = "csv"
        path = {path:?}
        test_path = {test:?}
        target = "y"
        task = "{task}"
        client_column = "site"
        normalise = "none"
        [partition]
        kind = "by-column"
        [algorithm]
        {keys}
        "#
    ));
    (experiment, dir)
}

/// The numbers of an array of a message.
pub(crate) fn rows_of(message: &Message, name: &str) -> Vec<f64> {
    message.arrays[name].values.to_f64()
}
