//! Newton factors: exactness of the tilted score, one client alone, sizes of messages, the prototype's visits. References are
//! sums over all rows, not the recursions of the code.

use std::fmt::Write;
use std::sync::Arc;

use fedstein::array::{Array, Values};
use fedstein::backend::{Flex, Session};
use fedstein::datasets::{Dataset, FeatureScale, Normalisation, Targets};
use fedstein::experiment::Experiment;
use fedstein::models::{BlrConfig, Model, Network};
use fedstein::particles::Particles;
use fedstein::protocol::{Ask, Halves, Message, Question, Request, Setup, all_here};
use fedstein::random::Streams;
use fedstein::rows::{Rows, Shard, Table};
use fedstein::stein::{Bandwidth, Kernel};
use ndarray::Array2;
use tempfile::TempDir;

use crate::common::{
    Built, assert_close, bits, data, experiment, flat, golden, matrix, outcome, small_digits, with_layout,
};
use crate::driven::{Driven, rows_of, sites};

/// Two convolutions and two dense layers. Blank pixels put all of the first convolution on its biases, which begin at 0: a
/// ReLU there would have another gradient at the 1e-30 to which a step moves a bias.
pub(crate) const CONVOLUTIONS: &str = "[model]\nkind = \"stack\"\nlayers = [\"conv 3 3x3\", \"tanh\", \"max-pool 2\", \"conv 4 2x2\", \
                            \"tanh\", \"dense 5\", \"relu\"]";

/// Configs of models of every kind with each curvature that they have.
pub(crate) fn models() -> Vec<(String, &'static str)> {
    let digits = "[data]\nkind = \"digits\"\ntrain_limit = 90\ntest_limit = 20";
    let two = "[data]\nkind = \"twonorm\"\nrows = 120";
    let network = |hidden: &str| format!("[model]\nkind = \"bnn\"\nhidden = {hidden}");
    let mut all = Vec::new();
    for curvature in ["diagonal", "full", "kronecker", "kfac"] {
        all.push((format!("{two}\n[model]\nkind = \"blr\""), curvature));
        all.push((format!("{two}\n[model]\nkind = \"blr\"\nbias = true"), curvature));
    }
    for curvature in ["diagonal", "kronecker", "kfac"] {
        all.push((format!("{digits}\n{}", network("[6]")), curvature));
        all.push((format!("{digits}\n{}\nactivation = \"tanh\"", network("[6, 5]")), curvature));
        all.push((format!("{digits}\n{}", network("[]")), curvature));
        all.push((format!("{digits}\n[model]\nkind = \"stack\"\nlayers = [\"dense 6\", \"gelu\"]"), curvature));
        all.push((format!("{digits}\n{CONVOLUTIONS}"), curvature));
    }
    all
}

#[test]
fn the_tilted_score_of_clients_that_were_visited_at_theta_is_that_of_all_rows() {
    for (model, curvature) in models() {
        let what = format!("{model}, {curvature}");
        assert_tilted_scores_are_those_of_all_rows(&at_rest(&model, curvature), &what);
    }
}

/// Three clients with this model and curvature in f64, with α = 0.7 and steps that do not move the particles.
pub(crate) fn at_rest(model: &str, curvature: &str) -> Experiment {
    experiment(&format!(
        "name = \"exact\"\nprecision = \"f64\"\nseed = 3\n{model}\n[partition]\nclients = 3\n[algorithm]\n\
         kind = \"newton-dsvgd\"\nparticles = 3\nlocal_steps = 1\nbatch = 20\ncurvature = \"{curvature}\"\n\
         temperature = 0.7\n[optimizer]\nkind = \"sgd\"\nlr = 1e-30"
    ))
}

#[test]
fn the_tilted_score_of_a_regression_is_that_of_all_rows() {
    for curvature in ["diagonal", "kronecker", "kfac"] {
        let (experiment, _files) = regression(&format!("local_steps = 1\ncurvature = \"{curvature}\""), "[5]");
        assert_tilted_scores_are_those_of_all_rows(&experiment, curvature);
    }
}

/// Visits the three clients of an experiment with α = 0.7 whose steps do not move the particles, and compares the tilted
/// score of each of them with that of all rows.
fn assert_tilted_scores_are_those_of_all_rows(experiment: &Experiment, what: &str) {
    let mut driven = Driven::new(experiment);
    (1..=3).for_each(|round| drop(driven.round(round)));
    let score = score_of_all_rows(experiment, &driven.built);
    for client in 0..3 {
        let question = Question::LikelihoodScore { kernel: Kernel::Rbf(Bandwidth::default()), rows: Rows::Full };
        let request = driven.request(4, client, Ask::Answer(question));
        let own = driven.built.clients[client].1.answer(&request, &question).unwrap();
        let own = rows_of(&own, "particles");
        let others = rows_of(&request.message, "gradient");
        let size = score.iter().fold(1.0f64, |most, value| most.max(value.abs()));
        for ((own, others), want) in own.iter().zip(&others).zip(&score) {
            let gap = (own + others - want).abs();
            assert!(gap < 1e-10 * size, "{what}, client {client}: {} and not {want}", own + others);
        }
    }
}

/// A regression with these hidden layers over three clients that hold different intervals of a feature, in f64 with
/// α = 0.7 and steps that do not move the particles; `keys` are further ones of `[algorithm]`.
pub(crate) fn regression(keys: &str, hidden: &str) -> (Experiment, TempDir) {
    let rows = (0..45).fold(String::new(), |mut rows, i| {
        let (x, z) = (f64::from(i) / 10.0 - 2.0, f64::from(i * 7 % 11) / 5.0 - 1.0);
        writeln!(rows, "{x},{z},{},s{}", (2.0 * x).sin() + z * z, i / 15).unwrap();
        rows
    });
    let keys = format!(
        "kind = \"newton-dsvgd\"\nparticles = 3\nbatch = 20\ntemperature = 0.7\n{keys}\n[model]\nkind = \"bnn\"\n\
         hidden = {hidden}\nactivation = \"tanh\"\n[optimizer]\nkind = \"sgd\"\nlr = 1e-30"
    );
    sites("x,z,y,site", &rows, "0.5,0.5,1,s0", keys)
}

/// (1/α) Σ ∇ log p(row | θ) over the rows of all clients, as one product over all of them.
fn score_of_all_rows(experiment: &Experiment, built: &Built) -> Vec<f64> {
    let all = data(&experiment.config);
    let model = experiment.config.model(&all.train).unwrap();
    let rows = all.train.rows();
    let table = Table::new(all.train, &all.normalisation);
    let shard = Shard::new(table, (0..rows).collect(), built.session.clone());
    let particles: &Particles = built.server.particles();
    let score = model.likelihood_score(particles.blocks(), &shard.batch(&(0..rows).collect::<Vec<_>>()), 1.0 / 0.7);
    let array: Array = {
        let flat: Vec<Vec<f64>> = score.into_iter().map(|block| block.try_into_vec_as::<f64>().unwrap()).collect();
        let count = particles.count();
        let mut values = Vec::new();
        for n in 0..count {
            for block in &flat {
                let size = block.len() / count;
                values.extend_from_slice(&block[n * size..(n + 1) * size]);
            }
        }
        Array { shape: vec![count, particles.dim()], values: fedstein::array::Values::F64(values) }
    };
    array.values.to_f64()
}

#[test]
fn a_single_client_is_svgd_to_the_bit() {
    let optimizer = "[optimizer]\nlr = 1e-3\nepsilon = 1e-6\nreset = \"never\"\n[partition]\nclients = 1";
    let keys = |kind: &str| {
        format!("{optimizer}\n[algorithm]\nkind = \"{kind}\"\nparticles = 20\nlocal_steps = 20\nbatch = 50")
    };
    let svgd = outcome(&small_digits(10, &keys("svgd")));
    let newton = outcome(&small_digits(10, &keys("newton-dsvgd")));
    assert!(bits(&newton) == bits(&svgd));
}

#[test]
fn what_a_client_sends_and_what_the_server_keeps_is_what_the_documentation_says() {
    let keys = "[partition]\nclients = 3\n[algorithm]\nkind = \"newton-dsvgd\"\nparticles = 2\nlocal_steps = 1";
    let run = outcome(&small_digits(4, keys));
    // 64-7-10: N·d for Θ and N·d for G, one number an output, and second moments of inputs and of hidden units.
    let (d, outputs, moments) = (64 * 7 + 7 + 7 * 10 + 10, 17, 65 + 2 * 8 * 8);
    let up = 4 * (2 * 2 * d + 2 * outputs + moments) as u64;
    assert_eq!(run.rounds.iter().map(|round| round.uplink_bytes).collect::<Vec<_>>(), [up; 4]);
    let first = 4 * (2 * d) as u64;
    assert_eq!(run.rounds.iter().map(|round| round.downlink_bytes).collect::<Vec<_>>(), [first, up, up, up]);
}

#[test]
fn visits_follow_the_prototype() {
    for case in golden("newton_factors") {
        let number = |key: &str| case.number(key);
        let form = case.input("curvature").as_str().unwrap();
        let config = experiment(&format!(
            "name = \"golden\"\nprecision = \"f64\"\n[data]\nkind = \"twonorm\"\n[model]\nkind = \"blr\"\n[algorithm]\n\
             kind = \"newton-dsvgd\"\nbatch = 1000\nlocal_steps = {}\ncurvature = \"{form}\"\ncurvature_scale = 1.0\n\
             [optimizer]\nkind = \"adagrad\"\nlr = {}\nepsilon = {:e}",
            number("local_steps"),
            number("lr"),
            number("epsilon")
        ))
        .config;
        let session = Session::open::<Flex>(config.precision).unwrap();
        let features = matrix_of_all(case.input("features"));
        let labels: Vec<usize> = flat(case.input("labels")).into_iter().map(|label| label as usize).collect();
        let sizes = case.input("labels").as_array().unwrap().iter().map(|of| of.as_array().unwrap().len());
        let sizes: Vec<usize> = sizes.collect();
        let width = features.ncols();
        let targets = Targets::Classes { labels, names: vec!["0".into(), "1".into()] };
        let rows = Dataset::new("golden", features.mapv(|value| value as f32), targets).unwrap();
        let table = Table::new(rows, &Normalisation { features: FeatureScale::Identity, target: None });
        let model: Arc<dyn Model> =
            Arc::new(Network::new(BlrConfig { gamma_rate: number("gamma_rate"), ..BlrConfig::new(width) }));
        let starts = sizes.iter().scan(0, |end, size| {
            *end += size;
            Some(*end - size..*end)
        });
        let (roster, here) = all_here(starts.map(|rows| Shard::new(table.clone(), rows.collect(), session.clone())));
        let setup = Setup {
            roster,
            here,
            width,
            initial: with_layout(&matrix(case.input("initial")), model.layout(), &session),
            model,
            session: session.clone(),
            streams: Streams::new(1),
            svgd: config.svgd(),
            reset_optimizer: true,
            personal: false,
            robust: None,
        };
        let layout = setup.initial.layout().clone();
        let Halves { server, clients } = config.algorithm.build(setup).unwrap();
        let mut driven = Driven::of(Built { server, clients, layout, session }, 1);
        for (round, expected) in (1..).zip(case.expected("particles").as_array().unwrap()) {
            driven.round(round);
            let got: Vec<f64> = driven.theta().iter().copied().collect();
            let what = format!("{}, visit {round}", case.name());
            assert_close(&got, &flat(expected), case.tolerance(config.precision), &what);
        }
    }
}

/// The rows of several matrices as one.
fn matrix_of_all(value: &serde_json::Value) -> Array2<f64> {
    let parts: Vec<Array2<f64>> = value.as_array().unwrap().iter().map(matrix).collect();
    ndarray::concatenate(ndarray::Axis(0), &parts.iter().map(|part| part.view()).collect::<Vec<_>>()).unwrap()
}

#[test]
fn a_site_with_other_numbers_of_rows_is_refused_by_the_server_and_by_a_client() {
    let keys = "[partition]\nclients = 2\n[algorithm]\nkind = \"newton-dsvgd\"\nparticles = 3\nlocal_steps = 1";
    let mut driven = Driven::new(&small_digits(1, keys));
    let request = driven.request(1, 0, Ask::Train);
    let good = driven.built.clients[0].1.handle(&request, &|_, _| {}).unwrap();
    assert_eq!(driven.built.server.check(&request.reply(good.clone())), Ok(()));

    // Each array of the first visit with a row too many, with one row alone, and not there at all.
    let with_rows = |message: &Message, name: &str, rows: usize| {
        let mut message = message.clone();
        let array = message.arrays.get_mut(name).unwrap();
        let row = array.values.to_f64()[..array.shape[1]].to_vec();
        *array = Array {
            shape: vec![rows, array.shape[1]],
            values: Values::F32(row.repeat(rows).iter().map(|x| *x as f32).collect()),
        };
        message
    };
    let names: Vec<String> = good.arrays.keys().filter(|name| *name != "particles").cloned().collect();
    assert!(names.len() >= 3, "{names:?}");
    for name in &names {
        let rows = good.arrays[name].shape[0];
        for wrong in [rows + 1, if rows == 1 { 3 } else { 1 }] {
            let reason = driven.built.server.check(&request.reply(with_rows(&good, name, wrong))).unwrap_err();
            assert!(reason.contains(&format!("\"{name}\"")) && reason.contains(&format!("[{wrong}, ")), "{reason}");
        }
        let mut without = good.clone();
        without.arrays.remove(name);
        let reason = driven.built.server.check(&request.reply(without)).unwrap_err();
        assert!(reason.contains(&format!("no array \"{name}\"")), "{reason}");
    }

    // The same arrays as the cavity in a request to the other client.
    driven.built.server.aggregate(vec![request.reply(good)]).unwrap();
    let request = driven.request(2, 1, Ask::Train);
    let broken = Request { message: with_rows(&request.message, "gradient", 4).into(), ..request };
    let error = driven.built.clients[1].1.handle(&broken, &|_, _| {}).unwrap_err();
    assert!(error.to_string().contains("\"gradient\" is [4, "), "{error}");
}

#[test]
fn a_site_with_negative_sums_of_squares_is_refused_and_one_with_negative_products_is_not() {
    // The site of a first visit with −1 in the place of one element. The layers of 64-7-10 are one block of a curvature
    // each; of a matrix the elements on the diagonal are sums of squares.
    type Element = (&'static str, usize, bool);
    let cases: [(&str, &[Element]); 3] = [
        ("diagonal", &[("curvature", 0, true), ("curvature", 1, true)]),
        (
            "kronecker",
            &[
                ("curvature", 0, true),
                ("curvature", 16, true),
                ("input_moments", 0, true),
                ("input_moments", 64, true),
                ("hidden_moments", 0, true),
                ("hidden_moments", 1, false),
                ("hidden_moments", 9, true),
            ],
        ),
        ("kfac", &[("curvature", 0, true), ("curvature", 1, false), ("curvature", 7, false), ("curvature", 8, true)]),
    ];
    for (curvature, elements) in cases {
        let keys = format!(
            "[partition]\nclients = 2\n[algorithm]\nkind = \"newton-dsvgd\"\nparticles = 3\nlocal_steps = 1\n\
             curvature = \"{curvature}\""
        );
        let mut driven = Driven::new(&small_digits(1, &keys));
        let request = driven.request(1, 0, Ask::Train);
        let sent = driven.built.clients[0].1.handle(&request, &|_, _| {}).unwrap();
        assert_eq!(driven.built.server.check(&request.reply(sent.clone())), Ok(()), "{curvature}");
        for &(name, element, is_refused) in elements {
            let mut message = sent.clone();
            let array = message.arrays.get_mut(name).unwrap();
            let mut numbers: Vec<f32> = array.values.to_f64().iter().map(|value| *value as f32).collect();
            numbers[element] = -1.0;
            array.values = Values::F32(numbers);
            let checked = driven.built.server.check(&request.reply(message));
            let what = format!("{curvature}, element {element} of {name}: {checked:?}");
            match checked {
                Ok(()) => assert!(!is_refused, "{what}"),
                Err(reason) => {
                    assert!(is_refused, "{what}");
                    assert!(reason.contains(&format!("\"{name}\" has negative sums of squares")), "{what}");
                }
            }
        }
    }
}
