//! Halves that are built in processes of their own: the server where there are no rows, and each client where there are
//! no other client's rows.

use fedstein::backend::{Flex, Precision, Session};
use fedstein::checkpoint::codec;
use fedstein::protocol::{Ask, ClientHalf, ClientId, Halves, Predictor, Request, Scoring};

use crate::common::{SILENT, algorithms, experiment, has_clients, values};
use crate::faults::harness::*;

/// Other branches of what is built from the number of clients and of their rows.
const MORE: [(&str, &str); 6] = [
    ("dsvgd", "factors = \"paper\""),
    ("p-dsvgd", "factors = \"with-prior\""),
    ("dsgld", "chains = \"floor\""),
    ("fedavg", "mix = \"reference\""),
    ("fedwba", "over = \"all\"\nweights = \"data-size\""),
    ("newton-dsvgd", "curvature = \"diagonal\""),
];

/// The config of an algorithm whose ten clients have unequal numbers of rows.
fn unequal(kind: &str, keys: &str) -> String {
    let text = text(kind, &format!("[evaluation]\npersonal = {}", has_clients(kind)));
    let text = text.replace("partition = { clients", "partition = { kind = \"dirichlet\", alpha = 2.0, clients");
    text.replace(&format!("kind = \"{kind}\""), &format!("kind = \"{kind}\"\n{keys}"))
}

/// The halves of a config, each built in a process of its own.
fn apart(text: &str) -> Halves {
    let Halves { server, clients } = halves_of(text, |_| false);
    assert!(clients.is_empty());
    let client = |id: ClientId| {
        let mut here = halves_of(text, |client| client == id).clients;
        assert!(here.len() == 1 && here[0].0 == id);
        here.remove(0)
    };
    Halves { server, clients: (0..rows(&experiment(text).config).len()).map(client).collect() }
}

/// The numbers that a client with this state predicts with, or predicts; `None` if they are those published.
fn predicts(half: &mut dyn ClientHalf, state: &[u8], published: &Request) -> Option<Vec<u64>> {
    half.restore(&codec::decode(state).unwrap()).unwrap();
    let numbers = match half.predictor(published).unwrap() {
        Predictor::Published => return None,
        Predictor::Own(particles) => values(&particles),
        Predictor::Rows(predict) => {
            let row = Session::open::<Flex>(Precision::F32).unwrap().upload(vec![0.3; 20], [1, 20]);
            predict(row).unwrap().try_into_vec_as::<f64>().unwrap()
        }
    };
    Some(numbers.into_iter().map(f64::to_bits).collect())
}

#[test]
fn a_server_and_clients_in_processes_of_their_own_do_what_they_do_in_one() {
    for (kind, keys) in algorithms().into_iter().map(|kind| (kind, "")).chain(MORE) {
        let text = unequal(kind, keys);
        let sizes: Vec<usize> = rows(&experiment(&text).config).iter().map(Vec::len).collect();
        assert!(sizes.len() == 1 || sizes.iter().any(|rows| *rows != sizes[0]), "equal clients test little: {sizes:?}");

        let (together, end) = serve_halves(&text, halves(&text), None, None);
        end.unwrap();
        let (separate, end) = serve_halves(&text, apart(&text), None, None);
        end.unwrap();
        let what = format!("{kind} {keys}");
        for (round, (separate, together)) in separate.states.iter().zip(&together.states).enumerate() {
            assert!(separate == together, "{what}, round {}: the server differs", round + 1);
        }
        assert_eq!(separate.used(), together.used(), "{what}");
        let all = |log: &Log| (0..sizes.len()).all(|client| log.used().concat().contains(&client));
        let moves = together.states[0] != *together.states.last().unwrap();
        assert!(all(&together) && moves == (kind != SILENT), "{what}: nothing to compare");
        for (client, (separate, together)) in separate.clients.iter().zip(&together.clients).enumerate() {
            assert!(separate == together, "{what}: client {client} differs");
        }

        // What follows from the state of a client, and from how it was built.
        let (mut inside, mut outside) = (halves(&text), apart(&text));
        let published = inside.server.publish().unwrap();
        for (client, state) in together.clients.iter().enumerate() {
            let request = Request::new(9, client, Ask::Score(Scoring::default()), published.clone());
            let [inside, outside] = [&mut inside, &mut outside].map(|halves| {
                let half = &mut *halves.clients[client].1;
                predicts(half, state, &request)
            });
            assert!(inside == outside, "{what}: client {client} predicts otherwise");
        }
    }
}
