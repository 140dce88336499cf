//! The curvatures of Newton factors: the ones that `auto` chooses, their traces and products, their scale.

use fedstein::algorithm::AlgorithmConfig;
use fedstein::experiment::Experiment;
use fedstein::experiment::config::NumberOr;
use fedstein::protocol::Ask;
use tempfile::TempDir;

use crate::common::experiment;
use crate::driven::{Driven, equal_clients, rows_of};
use crate::newton::{CONVOLUTIONS, at_rest, models, regression};

#[test]
fn auto_is_the_curvature_and_the_scale_that_the_documentation_says() {
    let classes = |data: &str, hidden: &str| {
        let (data, hidden) = (data.to_owned(), hidden.to_owned());
        move |keys: &str| {
            let experiment = experiment(&format!(
                "name = \"auto\"\nprecision = \"f64\"\nseed = 3\n[data]\n{data}\n[partition]\nclients = 3\n[model]\n\
                 kind = \"bnn\"\nhidden = {hidden}\n[algorithm]\nkind = \"newton-dsvgd\"\nparticles = 2\nlocal_steps = 2\n\
                 batch = 20\n{keys}"
            ));
            (experiment, tempfile::tempdir().unwrap())
        }
    };
    let (two, three) = ("kind = \"twonorm\"\nrows = 120", "kind = \"waveform\"\nrows = 120");
    let ten = "kind = \"digits\"\ntrain_limit = 90\ntest_limit = 20";
    type Make = Box<dyn Fn(&str) -> (Experiment, TempDir)>;
    let cases: [(Make, &str, f64); 8] = [
        (Box::new(classes(two, "[]")), "kronecker", 1.0),
        (Box::new(classes(two, "[6]")), "kfac", 5.0),
        (Box::new(classes(three, "[6]")), "kfac", 5.0),
        (Box::new(classes(two, "[257]")), "kronecker", 3.0),
        (Box::new(classes(ten, "[6]")), "kronecker", 3.0),
        (Box::new(classes(ten, "[6, 5]")), "kfac", 5.0),
        (Box::new(|keys| regression(&format!("local_steps = 2\n{keys}"), "[5]")), "kfac", 2.0),
        (Box::new(|keys| regression(&format!("local_steps = 2\n{keys}"), "[]")), "kronecker", 1.0),
    ];
    for (case, (make, form, scale)) in cases.iter().enumerate() {
        let sent = |keys: &str| {
            let (experiment, _files) = make(keys);
            let mut driven = Driven::new(&experiment);
            driven.round(1);
            driven.request(2, 1, Ask::Train).message.arrays.clone()
        };
        let explicit = sent(&format!("curvature = \"{form}\"\ncurvature_scale = {scale:.1}"));
        assert!(sent("") == explicit, "case {case}");
        assert!(sent(&format!("curvature_scale = {:.1}", 2.0 * scale)) != explicit, "case {case}");
    }
}

#[test]
fn the_kronecker_factors_of_a_visit_have_the_trace_of_its_diagonal_in_every_layer() {
    let visited = |curvature: &str| {
        let experiment = experiment(&format!(
            "name = \"trace\"\nprecision = \"f64\"\nseed = 3\n[data]\nkind = \"digits\"\ntrain_limit = 90\n\
             test_limit = 20\n{CONVOLUTIONS}\n[partition]\nclients = 2\n[algorithm]\nkind = \"newton-dsvgd\"\n\
             particles = 3\nlocal_steps = 1\nbatch = 20\ncurvature = \"{curvature}\"\ncurvature_scale = 1.0\n\
             [optimizer]\nkind = \"sgd\"\nlr = 1e-30"
        ));
        let mut driven = Driven::new(&experiment);
        driven.round(1);
        // What client 1 gets is the factor of client 0, at the same particles and with the same drawn labels.
        (driven.request(2, 1, Ask::Train).message, driven.built.layout.clone())
    };
    let (diagonal, layout) = visited("diagonal");
    let (kronecker, _) = visited("kronecker");
    let diagonal = rows_of(&diagonal, "curvature");
    let factors = rows_of(&kronecker, "curvature");
    let (shared, own) = (rows_of(&kronecker, "input_moments"), rows_of(&kronecker, "hidden_moments"));

    let particles = 3;
    let (outputs, moments) = (factors.len() / particles, own.len() / particles);
    let (mut output, mut moment) = (0, 0);
    let (layers, _) = layout.blocks().as_chunks::<2>();
    for [weight, bias] in layers {
        let inputs = weight.size() / bias.size() + 1;
        let is_first = weight.offset == 0;
        for n in 0..particles {
            let own = &own[n * moments..(n + 1) * moments];
            // The matrix of the images' patches is one for all particles.
            let matrix = if is_first { &shared[..] } else { &own[moment..moment + inputs * inputs] };
            assert_eq!(matrix.len(), inputs * inputs, "{}", weight.name);
            let trace: f64 = (0..inputs).map(|j| matrix[j * inputs + j]).sum();
            let of = &factors[n * outputs + output..][..bias.size()];
            let got = trace * of.iter().sum::<f64>();
            let of = &diagonal[n * layout.dim() + weight.offset..][..weight.size() + bias.size()];
            let want: f64 = of.iter().sum();
            assert!(want > 0.0 && (got / want - 1.0).abs() < 1e-10, "{}, particle {n}: {got}, not {want}", weight.name);
        }
        output += bias.size();
        moment += if is_first { 0 } else { inputs * inputs };
    }
    assert_eq!((layers.len(), output, moment), (4, outputs, moments));
}

#[test]
fn a_matrix_over_outputs_is_the_sum_of_outer_products_whose_squares_are_the_kronecker_numbers() {
    // One client with one row: the matrix of a layer is δ δᵀ up to a factor, of rank one, and its diagonal is that of
    // `kronecker`, with the same drawn label.
    let visited = |curvature: &str, rows: usize| {
        let experiment = experiment(&format!(
            "name = \"outer\"\nprecision = \"f64\"\nseed = 3\n[data]\nkind = \"digits\"\ntrain_limit = {rows}\ntest_limit = 20\n\
             [model]\nkind = \"bnn\"\nhidden = [6, 5]\nactivation = \"tanh\"\n[partition]\nclients = 2\n[algorithm]\n\
             kind = \"newton-dsvgd\"\nparticles = 3\nlocal_steps = 1\nbatch = 20\ncurvature = \"{curvature}\"\n\
             curvature_scale = 1.0\n[optimizer]\nkind = \"sgd\"\nlr = 1e-30"
        ));
        let mut driven = Driven::new(&experiment);
        driven.round(1);
        rows_of(&driven.request(2, 1, Ask::Train).message, "curvature")
    };
    let sizes = [6, 5, 10];
    let (numbers, elements) = (21, 36 + 25 + 100);
    for rows in [2, 60] {
        let (kronecker, kfac) = (visited("kronecker", rows), visited("kfac", rows));
        assert_eq!((kronecker.len(), kfac.len()), (3 * numbers, 3 * elements));
        for n in 0..3 {
            let (mut number, mut element) = (n * numbers, n * elements);
            for size in sizes {
                let d = |i: usize, j: usize| kfac[element + i * size + j];
                let largest = (0..size).map(|i| d(i, i)).fold(0.0, f64::max);
                assert!(largest > 0.0);
                let mut apart = 0.0f64;
                for (i, j) in (0..size).flat_map(|i| (0..size).map(move |j| (i, j))) {
                    assert!((d(i, j) - d(j, i)).abs() < 1e-12 * largest);
                    // Cauchy and Schwarz, with equality for one row.
                    let gap = d(i, i) * d(j, j) - d(i, j) * d(i, j);
                    assert!(gap > -1e-12 * largest * largest);
                    apart = apart.max(gap);
                }
                if rows == 2 {
                    assert!(apart < 1e-12 * largest * largest, "one row a client: {apart:e}");
                } else {
                    assert!(apart > 1e-3 * largest * largest, "thirty rows a client: {apart:e}");
                }
                for i in 0..size {
                    assert!((d(i, i) - kronecker[number + i]).abs() < 1e-12 * largest, "{rows} rows, output {i}");
                }
                (number, element) = (number + size, element + size * size);
            }
        }
    }
}

#[test]
fn the_curvature_of_a_visit_is_proportional_to_its_scale_and_to_one_over_the_temperature() {
    // What the server sends of the factor of client 0: at the same particles, with the same drawn labels.
    let sent = |experiment: &mut Experiment, temperature: f64, c: f64| {
        let AlgorithmConfig::NewtonDsvgd(config) = &mut experiment.config.algorithm else { panic!("newton") };
        (config.temperature, config.curvature_scale) = (temperature, NumberOr::Fixed(c));
        let mut driven = Driven::new(experiment);
        driven.round(1);
        rows_of(&driven.request(2, 1, Ask::Train).message, "curvature")
    };
    let check = |mut experiment: Experiment, what: &str| {
        let once = sent(&mut experiment, 1.0, 1.0);
        assert!(once.iter().any(|value| value.abs() > 0.01), "{what}: no curvature");
        for (temperature, c, ratio) in [(2.5, 1.0, 0.4), (1.0, 3.0, 3.0)] {
            let other = sent(&mut experiment, temperature, c);
            // A few products in f64, each with one rounding.
            let far = once.iter().zip(&other).find(|(once, other)| (*other - ratio * *once).abs() > 1e-12 * once.abs());
            assert!(far.is_none(), "{what}, α = {temperature}, c = {c}: not {ratio} times: {far:?}");
        }
        once
    };
    for (model, curvature) in models().iter().filter(|(model, _)| !model.contains("conv")) {
        check(at_rest(model, curvature), &format!("{model}, {curvature}"));
    }
    for curvature in ["diagonal", "kronecker", "kfac"] {
        let (experiment, _files) = regression(&format!("local_steps = 1\ncurvature = \"{curvature}\""), "[5]");
        let curvature = check(experiment, &format!("regression, {curvature}"));
        // The element of log γ is that of the last coordinate: ½ a row, of which client 0 has fifteen.
        for last in curvature.chunks_exact(curvature.len() / 3).map(|of_particle| of_particle.last().unwrap()) {
            assert!((last - 7.5).abs() < 1e-12, "{last}");
        }
    }
}

#[test]
fn labels_are_drawn_anew_in_every_visit_and_at_every_client() {
    // Both clients have the same rows and get the same Θ, which does not move. Of a logistic regression the expectation
    // over the labels has a closed form.
    for (model, is_drawn) in [("kind = \"bnn\"\nhidden = [6]\nactivation = \"tanh\"", true), ("kind = \"blr\"", false)]
    {
        let (experiment, _files) = equal_clients(format!(
            "kind = \"newton-dsvgd\"\nparticles = 3\nlocal_steps = 1\nbatch = 20\ncurvature = \"diagonal\"\n[model]\n\
             {model}\n[optimizer]\nkind = \"sgd\"\nlr = 1e-30"
        ));
        let mut driven = Driven::new(&experiment);
        let mut visit = |round: usize, client: usize| {
            let request = driven.request(round, client, Ask::Train);
            let sent = driven.built.clients[client].1.handle(&request, &|_, _| {}).unwrap();
            (rows_of(&sent, "gradient"), rows_of(&sent, "curvature"))
        };
        let (gradient, curvature) = visit(1, 0);
        assert!(curvature.iter().any(|value| *value > 0.01), "{model}: no curvature");
        for (what, round, client) in [("another round", 2, 0), ("another client", 1, 1)] {
            let (other_gradient, other_curvature) = visit(round, client);
            assert!(other_gradient == gradient, "{model}, {what}: the gradient is of drawn labels");
            assert_eq!(other_curvature != curvature, is_drawn, "{model}, {what}");
        }
    }
}
