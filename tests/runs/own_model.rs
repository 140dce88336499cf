//! A program's own Burn module: it trains, or the run is refused before its first round with what would be right.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use burn::module::{Module, Param};
use burn::nn::{BatchNorm, BatchNormConfig, Dropout, DropoutConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation};
use fedstein::backend::Flex;
use fedstein::experiment::{
    Artifacts, Config, ConfigLoader, Experiment, Finished, Forecast, Overrides, Quiet, Source, run,
};
use fedstein::models::{
    Architecture, Batch, Forward, LayerInputs, LayerTrace, Layout, Model, Network, ParticleLinear, ParticleModel,
    Prior, PriorTerm, ReplicatedConfig, Task, head,
};
use ndarray::Array2;
use rand::Rng;

/// What stands between the two dense layers.
#[derive(Module, Debug)]
enum Between {
    Nothing(LayerNorm),
    Batch(BatchNorm),
    Random(Dropout),
}

#[derive(Module, Debug)]
struct Net {
    hidden: Linear,
    between: Between,
    out: Linear,
}

impl Forward for Net {
    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        let hidden = self.hidden.forward(inputs);
        let hidden = match &self.between {
            Between::Nothing(norm) => norm.forward(hidden),
            Between::Batch(norm) => norm.forward(hidden.unsqueeze_dim::<3>(2)).squeeze_dim(2),
            Between::Random(dropout) => dropout.forward(hidden),
        };
        self.out.forward(activation::relu(hidden))
    }
}

/// A run on the digits: 64 features and ten classes.
fn trained(
    classes: usize,
    [inputs, outputs]: [usize; 2],
    between: impl Fn(&Device) -> Between + Send + Sync + 'static,
) -> Result<f64, String> {
    let build = move |device: &Device| Net {
        hidden: LinearConfig::new(inputs, 6).init(device),
        between: between(device),
        out: LinearConfig::new(6, outputs).init(device),
    };
    let model = Arc::new(Network::new(ReplicatedConfig::new(classes, build)));
    let outcome = run::<Flex>(&Experiment::new(config(DSVGD), "data").with_model(model), &Quiet, None);
    outcome.map(|outcome| outcome.evaluation.nll.unwrap()).map_err(|error| error.to_string())
}

const DSVGD: &str = "kind = \"dsvgd\", particles = 3, local_steps = 2, distill_steps = 1, batch = 10";

/// Two rounds on some of the digits.
fn text(algorithm: &str) -> String {
    format!(
        "rounds = 2\ndata = {{ kind = \"digits\", train_limit = 200 }}\npartition = {{ clients = 2 }}\n\
         algorithm = {{ {algorithm} }}"
    )
}

fn config(algorithm: &str) -> Config {
    Config::load(Source { name: "own", text: &text(algorithm) }, &Overrides::default()).unwrap().0
}

/// The message with which a model for the digits is refused.
fn refused(model: Arc<dyn Model>) -> String {
    refused_by(DSVGD, model)
}

fn refused_by(algorithm: &str, model: Arc<dyn Model>) -> String {
    let error = run::<Flex>(&Experiment::new(config(algorithm), "data").with_model(model), &Quiet, None).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
    let message = error.to_string();
    assert!(message.contains("the model of Experiment::with_model: "), "{message}");
    message
}

fn normalised(device: &Device) -> Between {
    Between::Nothing(LayerNormConfig::new(6).init(device))
}

#[test]
fn a_module_that_fits_the_data_trains() {
    assert!(trained(10, [64, 10], normalised).unwrap().is_finite());
}

#[test]
fn a_module_of_another_shape_than_the_data_is_refused() {
    for (classes, shape, words) in [
        (10, [63, 10], "it fails on a row of 64 features"),
        (10, [64, 9], "predicts an array of shape [2, 2, 9], not [2, 2, 10]"),
        (9, [64, 9], "and the data have 10 classes"),
    ] {
        let message = trained(classes, shape, normalised).unwrap_err();
        assert!(message.contains(words) && message.contains("with_model"), "{message}");
    }
}

#[test]
fn a_layer_that_acts_differently_in_training_is_refused() {
    let batch = |device: &Device| Between::Batch(BatchNormConfig::new(6).init(device));
    let random = |_: &Device| Between::Random(DropoutConfig::new(0.5).init());
    for message in [trained(10, [64, 10], batch), trained(10, [64, 10], random)].map(Result::unwrap_err) {
        assert!(message.contains("`between") && message.contains("use LayerNorm or GroupNorm"), "{message}");
    }
}

/// An ordinary module that computes something else than it should.
#[derive(Module, Debug)]
struct Odd {
    hidden: Linear,
    out: Linear,
    #[module(skip)]
    how: How,
}

#[derive(Clone, Copy, Debug)]
enum How {
    Well,
    /// With another activation, and parameters of the same names and shapes.
    WithRelu,
    /// NaN, and a panic for more rows than are tried and trained on.
    NotANumber,
    PanicsOnManyRows,
    Randomly,
    FromOtherRows,
    Detached,
    WithoutParameters,
}

static CALLS: AtomicUsize = AtomicUsize::new(0);

impl Forward for Odd {
    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        let logits = self.out.forward(activation::tanh(self.hidden.forward(inputs.clone())));
        match self.how {
            How::Well => logits,
            How::WithRelu => self.out.forward(activation::relu(self.hidden.forward(inputs))),
            How::NotANumber => logits * f64::NAN,
            How::PanicsOnManyRows => {
                assert!(inputs.dims()[0] <= 10, "ten rows at most");
                logits
            }
            How::Randomly => logits.add_scalar(0.1) * (CALLS.fetch_add(1, Relaxed) as f64),
            How::FromOtherRows => logits.clone() - logits.mean_dim(0),
            How::Detached => logits.detach(),
            How::WithoutParameters => inputs.narrow(1, 0, 10),
        }
    }
}

fn odd(how: How, device: &Device) -> Odd {
    let layer = |inputs, outputs| LinearConfig::new(inputs, outputs).init(device);
    Odd { hidden: layer(64, 6), out: layer(6, 10), how }
}

fn replicated(build: impl Fn(&Device) -> Odd + Send + Sync + 'static) -> Arc<dyn Model> {
    Arc::new(Network::new(ReplicatedConfig::new(10, build)))
}

#[test]
fn a_forward_pass_that_is_no_function_of_a_row_and_the_parameters_is_refused() {
    for (how, words) in [
        (How::Randomly, "two predictions of the same rows differ"),
        (How::FromOtherRows, "it reads the other rows"),
        (How::NotANumber, "its first particle 0 predicts NaN for training row 0"),
        (How::Detached, "has no gradient in the parameters"),
        (How::WithoutParameters, "has no gradient in the parameters"),
    ] {
        let message = refused(replicated(move |device| odd(how, device)));
        assert!(message.contains(words), "{how:?}: {message}");
    }
}

#[test]
fn a_panic_in_the_evaluation_is_an_error_of_the_run() {
    let model = replicated(|device| odd(How::PanicsOnManyRows, device));
    let error = run::<Flex>(&Experiment::new(config(DSVGD), "data").with_model(model), &Quiet, None).unwrap_err();
    assert!(
        error.to_string().contains("the model panicked when it predicted rows 0 to ")
            && error.to_string().contains("ten rows at most"),
        "{error}"
    );
}

#[test]
fn parameters_that_would_silently_be_drawn_and_trained_are_refused() {
    let frozen = replicated(|device| {
        let mut net = odd(How::Well, device);
        net.hidden = net.hidden.no_grad();
        net
    });
    let message = refused(frozen);
    assert!(message.contains("`hidden.weight` has no gradient (`no_grad`"), "{message}");

    #[derive(Module, Debug)]
    struct Tied {
        first: Linear,
        second: Linear,
    }
    impl Forward for Tied {
        fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
            self.second.forward(self.first.forward(inputs)).narrow(1, 0, 10)
        }
    }
    let tied = ReplicatedConfig::new(10, |device: &Device| {
        let first = LinearConfig::new(64, 64).init(device);
        Tied { second: first.clone(), first }
    });
    let message = refused(Arc::new(Network::new(tied)));
    assert!(message.contains("`second.weight` has the `ParamId` of an earlier one"), "{message}");

    #[derive(Module, Debug)]
    struct Empty;
    impl Forward for Empty {
        fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
            inputs.narrow(1, 0, 10)
        }
    }
    let message = refused(Arc::new(Network::new(ReplicatedConfig::new(10, |_: &Device| Empty))));
    assert!(message.contains("it has no parameters"), "{message}");
}

#[test]
fn a_prior_precision_that_is_none_is_refused() {
    for precision in [0.0, -1.0, f64::NAN] {
        let build = |device: &Device| odd(How::Well, device);
        let model = Network::new(ReplicatedConfig::new(10, build).with_weight_precision(precision));
        let message = refused(Arc::new(model));
        assert!(message.contains("its prior: the precision of block 0 (`hidden.weight`) is"), "{message}");
    }
}

/// N logistic regressions `[N, 10, 64]`, with something wrong in one place.
#[derive(Clone, Debug, Default)]
struct Wrong {
    prior: Option<Prior>,
    numbers: Option<usize>,
    /// Shapes of the blocks of the gradient, in the place of autodiff.
    gradient: Option<Vec<[usize; 2]>>,
    is_mean: bool,
    mixes: bool,
}

#[derive(Module, Debug)]
struct Logistic {
    weight: Param<Tensor<3>>,
    #[module(skip)]
    wrong: Wrong,
}

impl Logistic {
    fn log_probs(&self, inputs: Tensor<2>) -> Tensor<3> {
        let weight = self.weight.val();
        let weight = if self.wrong.mixes { weight.clone() + weight.mean_dim(0) } else { weight };
        activation::log_softmax(weight.matmul(inputs.transpose().unsqueeze_dim::<3>(0)), 1).swap_dims(1, 2)
    }
}

impl ParticleModel for Logistic {
    fn log_likelihood(&self, batch: &Batch) -> Tensor<1> {
        let targets = batch.targets.clone().unsqueeze_dim::<3>(0);
        let sum = (self.log_probs(batch.inputs.clone()) * targets).sum_dims_squeeze::<1, _>(&[1, 2]);
        if self.wrong.is_mean { sum.div_scalar(batch.inputs.dims()[0] as f64) } else { sum }
    }

    fn predict(&self, inputs: Tensor<2>) -> Tensor<3> {
        self.log_probs(inputs)
    }
}

impl Architecture for Wrong {
    type Module = Logistic;

    fn module(&self, particles: usize, device: &Device) -> Logistic {
        let weight = Param::from_tensor(Tensor::zeros([particles, 10, 64], device));
        Logistic { weight, wrong: self.clone() }
    }

    fn task(&self) -> Task {
        Task::Classification { classes: 10 }
    }

    fn prior(&self, layout: &Layout) -> Prior {
        self.prior.clone().unwrap_or_else(|| Prior::normal(layout, 1.0))
    }

    fn initial(&self, layout: &Layout, rng: &mut dyn Rng) -> Vec<f64> {
        let mut theta = self.prior(layout).sample(layout, rng);
        theta.resize(self.numbers.unwrap_or(theta.len()), 0.0);
        theta
    }

    fn likelihood_gradient(&self, particles: &[Tensor<2>], _batch: &Batch, _scale: f64) -> Option<Vec<Tensor<2>>> {
        let shapes = self.gradient.as_ref()?;
        Some(shapes.iter().map(|shape| Tensor::zeros(*shape, &particles[0].device())).collect())
    }
}

#[test]
fn an_architecture_whose_parts_do_not_fit_together_is_refused() {
    let normal = |block| PriorTerm::Normal { block, precision: 1.0 };
    let of_terms = |terms| Wrong { prior: Some(Prior { terms }), ..Wrong::default() };
    for (wrong, words) in [
        (of_terms(vec![normal(0), normal(1)]), "its prior: there is no block 1; the model has 1"),
        (of_terms(vec![normal(0), normal(0)]), "its prior: block 0 (`weight`) has 2 terms"),
        (of_terms(vec![]), "its prior: block 0 (`weight`) has 0 terms"),
        (of_terms(vec![PriorTerm::Uniform { block: 0, low: 1.0, high: 1.0 }]), "the width of the interval of block 0"),
        (of_terms(vec![PriorTerm::LogGamma { block: 0, shape: 1.0, rate: 1.0 }]), "has 640 numbers, not 1"),
        (Wrong { numbers: Some(639), ..Wrong::default() }, "its first particle has 639 numbers"),
        (Wrong { numbers: Some(641), ..Wrong::default() }, "its first particle has 641 numbers"),
        (Wrong { gradient: Some(vec![]), ..Wrong::default() }, "has blocks of the shapes [], not"),
        (
            Wrong { gradient: Some(vec![[2, 7]]), ..Wrong::default() },
            "shapes [[2, 7]], not those of its parameters, [[2, 640]]",
        ),
        (Wrong { is_mean: true, ..Wrong::default() }, "must be the sum over the rows, not their mean"),
        (Wrong { mixes: true, ..Wrong::default() }, "particles are independent networks"),
    ] {
        let message = refused(Arc::new(Network::new(wrong)));
        assert!(message.contains(words), "no {words:?} in {message}");
    }
    let right = Experiment::new(config(DSVGD), "data").with_model(Arc::new(Network::new(Wrong::default())));
    assert!(run::<Flex>(&right, &Quiet, None).is_ok());
}

#[test]
fn the_default_algorithm_says_what_an_own_model_lacks() {
    let message = refused_by("particles = 3", replicated(|device| odd(How::Well, device)));
    assert!(message.contains("`newton-dsvgd`") && message.contains("`ParticleModel::drawn_gradient`"), "{message}");
    assert!(message.contains("`algorithm.kind` = \"dsvgd\"") && !message.contains("model.kind"), "{message}");
}

#[test]
fn a_model_section_that_does_not_fit_the_data_matters_only_where_it_is_used() {
    let text = format!("{}\nmodel = {{ kind = \"blr\" }}", text(DSVGD));
    let source = || Source { name: "own", text: &text };
    assert!(Config::load(source(), &Overrides::default()).is_err());
    let (config, resolved) = ConfigLoader::default().with_model().load(source(), &Overrides::default()).unwrap();
    let note = "`model.kind` has no effect: the model is the program's own";
    assert!(resolved.notes.iter().any(|found| found == note), "{:?}", resolved.notes);
    let model = replicated(|device| odd(How::Well, device));
    assert!(run::<Flex>(&Experiment::new(config, "data").with_model(model), &Quiet, None).is_ok());
}

/// A finished run in a directory, with a network of its own.
fn finished(dir: &Path) -> Arc<Network<ReplicatedConfig<Odd>>> {
    let model = Arc::new(Network::new(ReplicatedConfig::new(10, |device: &Device| odd(How::Well, device))));
    let (config, resolved) = Config::load(Source { name: "own", text: &text(DSVGD) }, &Overrides::default()).unwrap();
    let mut artifacts = Artifacts::new(dir.to_path_buf(), false, resolved);
    run::<Flex>(&Experiment::new(config, "data").with_model(model.clone()), &Quiet, Some(&mut artifacts)).unwrap();
    model
}

#[test]
fn a_run_resumes_with_the_model_that_it_began_with() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let model = finished(&path);
    let more = text(DSVGD).replace("rounds = 2", "rounds = 3");
    let resume = |model: Option<Arc<dyn Model>>| {
        let (config, resolved) = Config::load(Source { name: "own", text: &more }, &Overrides::default()).unwrap();
        let mut artifacts = Artifacts::resume(path.clone(), resolved, &mut |_| ()).unwrap();
        let experiment = Experiment { model, ..Experiment::new(config, "data") };
        run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).map(|outcome| outcome.rounds.len())
    };
    let error = resume(None).unwrap_err();
    assert!(error.exit_code() == 2 && error.to_string().contains("has a model of its own"), "{error}");
    let error = resume(Some(Arc::new(Network::new(Wrong::default())))).unwrap_err();
    assert!(error.exit_code() == 2 && error.to_string().contains("was `hidden.weight [64, 6]`"), "{error}");
    let error = resume(Some(replicated(|device| odd(How::WithRelu, device)))).unwrap_err();
    assert!(
        error.exit_code() == 2 && error.to_string().contains("with_model: the model predicts something else"),
        "{error}"
    );
    assert_eq!(resume(Some(model)).unwrap(), 3);
}

#[test]
fn a_finished_run_predicts_with_the_model_that_is_handed_over_and_with_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let network = finished(&path);
    let open = || Finished::open(&path).unwrap();
    let facts = open().summary.facts;
    assert!(facts.contains(&("model".into(), "own model, d = 460".into())), "{facts:?}"); // 64·6 + 6 + 6·10 + 10
    let rows = Array2::from_shape_fn((2, 64), |(row, column)| ((row + column) % 16) as f32);
    let config = open().config().unwrap();
    let error = open().forecast(&config, rows.clone(), "rows").unwrap_err();
    assert!(error.exit_code() == 2 && error.to_string().contains("with `Finished::with_model`"), "{error}");

    let other = open().with_model(replicated(|device| odd(How::WithRelu, device)));
    let error = other.forecast(&config, rows.clone(), "rows").unwrap_err();
    assert!(error.to_string().contains("Finished::with_model: the model predicts something else"), "{error}");
    let written = std::fs::read_to_string(path.join("config.toml")).unwrap();
    assert!(written.contains("[model]\n# The model is the program's own: these keys have no effect."), "{written}");

    let run = open().with_model(network.clone());
    let forecast = run.forecast(&config, rows.clone(), "rows").unwrap();
    let Forecast::Classes { log_probs, .. } = forecast else { panic!("{forecast:?}") };
    // The same from the particles as ordinary modules, on scaled features.
    let mut scaled = rows;
    run.card.normalisation.features.apply(&mut scaled).unwrap();
    let session = fedstein::backend::Session::open::<Flex>(config.precision).unwrap();
    let inputs = session.upload(scaled.iter().copied().collect(), [2, 64]);
    let particles = run.particles(&*network, &session).unwrap();
    let modules = network.module(particles.blocks());
    let mut mean = vec![0.0; 20];
    for n in 0..3 {
        let probs = activation::softmax(modules.particle(n).forward(inputs.clone()), 1);
        let probs = probs.try_into_vec_as::<f64>().unwrap();
        mean.iter_mut().zip(probs).for_each(|(mean, p)| *mean += p / 3.0);
    }
    for (got, want) in log_probs.ensemble().iter().zip(&mean) {
        assert!((got - want).abs() < 1e-5, "{got} {want}");
    }
}

/// In which order a network with layers `input`, `a`, `b` and `out`, declared so, uses the middle two.
#[derive(Clone, Copy, Debug)]
enum Order {
    Declared,
    /// `b` before `a`, which have the same shape.
    Swapped,
    /// The same, where they have not.
    SwappedOfOtherShapes,
}

#[derive(Module, Debug)]
struct Deep {
    input: ParticleLinear,
    a: ParticleLinear,
    b: ParticleLinear,
    out: ParticleLinear,
    #[module(skip)]
    order: Order,
}

impl Deep {
    /// The logits `[N, 10, B]`, of which a trace may see every layer.
    fn forward(&self, inputs: Tensor<2>, mut trace: Option<&mut LayerTrace>) -> Tensor<3> {
        let mut seen = |read: LayerInputs, outputs: Tensor<3>| match &mut trace {
            Some(trace) => trace.dense(read, outputs),
            None => outputs,
        };
        let first = seen(LayerInputs::Shared(inputs.clone()), self.input.forward_shared(inputs));
        let middle = match self.order {
            Order::Declared => [&self.a, &self.b],
            Order::Swapped | Order::SwappedOfOtherShapes => [&self.b, &self.a],
        };
        middle.into_iter().chain([&self.out]).fold(first, |outputs, layer| {
            let hidden = activation::tanh(outputs);
            seen(LayerInputs::Own(hidden.clone()), layer.forward(hidden))
        })
    }
}

impl ParticleModel for Deep {
    fn log_likelihood(&self, batch: &Batch) -> Tensor<1> {
        head::log_likelihood(self.forward(batch.inputs.clone(), None), None, batch)
    }

    fn predict(&self, inputs: Tensor<2>) -> Tensor<3> {
        head::predict(self.forward(inputs, None), None)
    }

    fn drawn_gradient(
        &self,
        inputs: Tensor<2>,
        uniforms: Tensor<2>,
        trace: &mut LayerTrace,
    ) -> Option<(Tensor<3>, Tensor<3>)> {
        let outputs = self.forward(inputs, Some(trace));
        let gradient = head::drawn_gradient(outputs.clone().without_autodiff(), None, uniforms);
        Some((outputs, gradient))
    }
}

impl Architecture for Order {
    type Module = Deep;

    fn module(&self, particles: usize, device: &Device) -> Deep {
        let layer = |inputs, outputs| ParticleLinear::new(particles, inputs, outputs, device);
        let between = if matches!(self, Self::SwappedOfOtherShapes) { 8 } else { 6 };
        Deep { input: layer(64, 6), a: layer(between, 6), b: layer(6, between), out: layer(6, 10), order: *self }
    }

    fn task(&self) -> Task {
        Task::Classification { classes: 10 }
    }

    fn prior(&self, layout: &Layout) -> Prior {
        Prior::normal(layout, 1.0)
    }
}

#[test]
fn layers_in_another_order_than_their_blocks_are_refused_by_the_curvature_alone() {
    let newton = "particles = 3, local_steps = 2, batch = 10";
    let trains = |algorithm: &str, order: Order| {
        run::<Flex>(&Experiment::new(config(algorithm), "data").with_model(Arc::new(Network::new(order))), &Quiet, None)
    };
    trains(newton, Order::Declared).unwrap();
    trains(DSVGD, Order::Swapped).unwrap();
    trains(DSVGD, Order::SwappedOfOtherShapes).unwrap();
    let message = refused_by(newton, Arc::new(Network::new(Order::SwappedOfOtherShapes)));
    for words in [
        "layer 1 (from 0) that `ParticleModel::drawn_gradient` records has 6 inputs and 8 outputs",
        "its weights, [8, 6], must be block 2 of the layout, and its biases, [8], block 3",
        "block 2 is `a.weight`, [6, 8], and block 3 is `a.bias`, [6, 1]",
    ] {
        assert!(message.contains(words), "no {words:?} in {message}");
    }
    let message = refused_by(newton, Arc::new(Network::new(Order::Swapped)));
    assert!(message.contains("layer 1 (from 0) of its curvature") && message.contains("`a.weight`"), "{message}");
}

#[test]
fn a_prior_with_numbers_that_are_none_is_refused() {
    let unit = |diagonal: f64| (0..640 * 640).map(|i| if i % 641 == 0 { diagonal } else { 0.0 }).collect::<Vec<f64>>();
    let gaussian = |mean: f64, precision: f64| Wrong {
        prior: Some(Prior {
            terms: vec![PriorTerm::Gaussian {
                block: 0,
                mean: vec![mean; 640],
                precision: unit(precision),
                cholesky: unit(1.0),
            }],
        }),
        ..Wrong::default()
    };
    let message = refused(Arc::new(Network::new(gaussian(f64::NAN, 1.0))));
    assert!(message.contains("the mean of block 0 (`weight`) holds NaN"), "{message}");
    let message = refused(Arc::new(Network::new(gaussian(0.0, f64::NAN))));
    assert!(message.contains("the precision matrix of block 0 (`weight`) holds NaN"), "{message}");
}
