//! The table of all config keys: the single source of what may be written, what it means and what it is by default.
//!
//! One entry a key, section by section. To change a default, change its entry; checks, resolved configs and
//! `docs/configuration.md` follow. "Kassab & Simeone" is the DSVGD paper (Kassab and Simeone), "the FedWBA paper" FedWBA, "Yang et al." client
//! selection; "reference" is a paper's public code.

use super::value::Accepts::{
    self, Bool, Character, Choice, Column, Float, FloatList, IntList, Name, NumberOr, Text, TextList,
};
use super::value::Interval;
use super::value::Literal::{self, Float as F, Floats, Int as I, Ints, Text as T};

/// One key of the config.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// `section.key`, or `key` at the top of the file.
    pub path: &'static str,
    /// The kinds of its section that use it; empty: every kind.
    pub kinds: &'static [&'static str],
    /// The values it accepts.
    pub accepts: Accepts,
    /// Its default in preset `sound`; `None`: it must be given.
    pub default: Option<Literal>,
    /// Defaults of kinds that differ from `default`.
    pub by_kind: &'static [(&'static str, Literal)],
    /// Its default in preset `paper`, where that differs.
    pub paper: Option<Literal>,
    /// Its default in preset `reference`, where that differs.
    pub reference: Option<Literal>,
    /// Defaults of kinds whose public code differs from `reference`.
    pub reference_by_kind: &'static [(&'static str, Literal)],
    /// What it means, with unit and source.
    pub doc: &'static str,
}

impl Key {
    const fn only(mut self, kinds: &'static [&'static str]) -> Self {
        self.kinds = kinds;
        self
    }

    const fn by_kind(mut self, defaults: &'static [(&'static str, Literal)]) -> Self {
        self.by_kind = defaults;
        self
    }

    const fn paper(mut self, value: Literal) -> Self {
        self.paper = Some(value);
        self
    }

    const fn reference(mut self, value: Literal) -> Self {
        self.reference = Some(value);
        self
    }

    const fn reference_by_kind(mut self, defaults: &'static [(&'static str, Literal)]) -> Self {
        self.reference_by_kind = defaults;
        self
    }
}

const fn key(path: &'static str, accepts: Accepts, default: Literal, doc: &'static str) -> Key {
    Key { default: Some(default), ..required(path, accepts, doc) }
}

const fn required(path: &'static str, accepts: Accepts, doc: &'static str) -> Key {
    Key {
        path,
        kinds: &[],
        accepts,
        default: None,
        by_kind: &[],
        paper: None,
        reference: None,
        reference_by_kind: &[],
        doc,
    }
}

const fn from(min: i64, max: i64) -> Accepts {
    Accepts::Int { min, max }
}

/// A number of things of which there must be one, and a limit that only a slip of the keyboard exceeds.
const COUNT: Accepts = from(1, 1_000_000_000);
const COUNT_OR_ZERO: Accepts = from(0, 1_000_000_000);
const POSITIVE: Accepts = Float(Interval::POSITIVE);

/// The words after `--backend`.
pub const BACKENDS: &[&str] = &["flex", "ndarray", "wgpu", "cuda"];

const BAYESIAN: &[&str] = &[
    "dsvgd",
    "u-dsvgd",
    "p-dsvgd",
    "svgd",
    "sgld",
    "dsgld",
    "pvi",
    "gvi",
    "pmd",
    "npv",
    "fedwba",
    "pfedbayes",
    "pfedvem",
];
const TEMPERED: &[&str] =
    &["dsvgd", "u-dsvgd", "p-dsvgd", "svgd", "sgld", "dsgld", "pvi", "gvi", "pmd", "npv", "fedwba"];
const STEPPING: &[&str] = &[
    "dsvgd",
    "u-dsvgd",
    "p-dsvgd",
    "svgd",
    "sgld",
    "dsgld",
    "pvi",
    "gvi",
    "pmd",
    "npv",
    "fedavg",
    "fedwba",
    "fedprox",
    "scaffold",
    "fedper",
    "per-fedavg",
    "pfedme",
    "pfedbayes",
    "pfedvem",
    "pfedgp",
];
const MINIBATCHED: &[&str] = &[
    "dsvgd",
    "u-dsvgd",
    "p-dsvgd",
    "svgd",
    "sgld",
    "dsgld",
    "pvi",
    "gvi",
    "pmd",
    "fedavg",
    "fedwba",
    "fedprox",
    "scaffold",
    "fedper",
    "per-fedavg",
    "pfedme",
    "pfedbayes",
    "pfedvem",
    "pfedgp",
];
const DENSITIES: &[&str] = &["dsvgd", "u-dsvgd", "p-dsvgd", "fedwba"];
const DISTILLING: &[&str] = &["dsvgd", "p-dsvgd"];
const LANGEVIN: &[&str] = &["sgld", "dsgld"];
const GAUSSIAN: &[&str] = &["pvi", "gvi"];
/// Those whose loss is a mean over a minibatch, as in PFLlib.
const MEAN_LOSS: &[(&str, Literal)] = &[
    ("fedprox", T("mean")),
    ("scaffold", T("mean")),
    ("fedper", T("mean")),
    ("per-fedavg", T("mean")),
    ("pfedme", T("mean")),
    ("pfedvem", T("mean")),
    ("pfedgp", T("mean")),
];
/// Those whose step in PFLlib sees ten rows.
const TEN_ROWS: &[(&str, Literal)] = &[
    ("fedprox", I(10)),
    ("scaffold", I(10)),
    ("fedper", I(10)),
    ("per-fedavg", I(10)),
    ("pfedme", I(10)),
    ("pfedvem", I(10)),
];
const INFORMED: &[&str] = &["ksd", "hip"];
const RADIAL: &[&str] = &["rbf", "imq", "laplacian", "mixture"];
const DOT_PRODUCT: &[&str] = &["polynomial", "sigmoid"];
/// The data without a split of their publisher's.
const UNSPLIT: &[&str] =
    &["digits", "covertype", "csv", "twonorm", "ringnorm", "waveform", "raetsch", "uci-regression", "vehicle"];

/// The sections in the order of the file, with what each is about; `""` is the top of the file.
pub const SECTIONS: &[(&str, &str)] = &[
    ("", "The experiment as a whole. These keys stand above the first section."),
    ("data", "Which data, how they are scaled and how many rows are used."),
    (
        "partition",
        "How the training rows are dealt to the clients. Every row goes to exactly one client, except with `fedwba-reference`.",
    ),
    ("model", "The model whose parameters are the particles."),
    ("algorithm", "How clients and server learn together."),
    ("kernel", "The kernel of Stein's method; methods without it ignore this section."),
    ("optimizer", "How a particle moves along its direction (ascent)."),
    (
        "schedule",
        "Which clients take part in a round; methods with all rows in one place, and `dsgld`, ignore this section.",
    ),
    (
        "federation",
        "The server's rules against clients that fail: when a round closes, who is asked again, how replies are combined.",
    ),
    ("faults", "Faults that are injected between server and clients, to study what they do; none by default."),
    ("evaluation", "When and how the test rows are looked at."),
    (
        "checkpoint",
        "What a run leaves behind to go on from with `fedstein train --resume RUN_DIR`; these keys change no result, and `--resume` may change them.",
    ),
];

/// Every key, in the order of a resolved config.
pub const KEYS: &[Key] = &[
    // The top of the file.
    key("name", Name, T("digits-dsvgd-bnn"), "The run's name; without `--out` the run goes to `runs/<name>`."),
    key(
        "preset",
        Choice(&["sound", "paper", "reference"]),
        T("sound"),
        "Sets the defaults of the keys on which the papers' text (`paper`), their public code (`reference`) and a sound method differ; a key that is written down wins over the preset.",
    ),
    key("seed", from(0, i64::MAX), I(1), "All random numbers of the run follow from it, the same on every backend."),
    key("rounds", COUNT, I(10), "Rounds of communication I; with `svgd`, which has none, it multiplies `local_steps`."),
    key(
        "backend",
        Choice(BACKENDS),
        T("flex"),
        "Where tensors live: `flex` and `ndarray` on the CPU, `wgpu` (Vulkan, Metal, DX12) and `cuda` on a GPU; `--backend` overrides it.",
    ),
    key("precision", Choice(&["f32", "f64"]), T("f32"), "Floating point type of the particles; f64 on `flex` and `ndarray` only. Metrics are always f64."),
    // [data]
    key(
        "data.kind",
        Choice(&[
            "mnist", "fashion-mnist", "cifar10", "cifar100", "covertype", "raetsch", "uci-regression", "vehicle", "year-prediction", "digits", "csv", "twonorm",
            "ringnorm", "waveform", "mixture-1d", "mixture-2d",
        ]),
        T("digits"),
        "The data set: `digits` is built in, `twonorm`, `ringnorm`, `waveform` are generated, `mixture-1d`, `mixture-2d` are the toy densities of [D], `csv` is a file of yours, the rest lie in the data directory (`fedstein data list`).",
    ),
    key(
        "data.set",
        Choice(&[
            "banana", "breast-cancer", "diabetis", "flare-solar", "german", "heart", "image", "ringnorm", "splice", "thyroid", "titanic",
            "twonorm", "waveform", "boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine-red", "yacht",
        ]),
        T("image"),
        "Which set: `raetsch` has the first 13, `uci-regression` the last nine (`boston`, whose column B is ethically doubtful, is kept out of headline tables).",
    )
    .only(&["raetsch", "uci-regression"])
    .by_kind(&[("uci-regression", T("kin8nm"))]),
    key(
        "data.distinct",
        Bool,
        Literal::Bool(false),
        "Whether each distinct (features, label) row is kept once, before the split: the sizes of the repackaged `benchmarks.mat`, which [D] quotes (image 2,086, breast cancer 263).",
    )
    .only(&["raetsch"]),
    key(
        "data.split",
        Choice(&["random", "raetsch"]),
        T("random"),
        "`random`: `test_fraction` ([D]: 0.2); `raetsch`: as many training and test rows as in Rätsch's realisations, drawn with `seed`; it needs all rows, so mostly `distinct = false`.",
    )
    .only(&["raetsch"]),
    key("data.test_split", from(-1, 19), I(0), "Standard test split, 0 to 19 (`protein`: 0 to 4); -1: `test_fraction` of the rows, drawn with `seed`.").only(&["uci-regression"]),
    required("data.path", Text { may_be_empty: false }, "The CSV file, seen from the working directory; may be compressed with gzip.").only(&["csv"]),
    required("data.target", Column { may_be_empty: false }, "The column to predict, by name, by number from 0, or from the end: -1 is the last.").only(&["csv"]),
    key("data.task", Choice(&["classification", "regression"]), T("classification"), "What the target is: a label or a number.").only(&["csv"]),
    key("data.header", Choice(&["auto", "yes", "no"]), T("auto"), "Whether the first row names the columns; `auto`: it does if the target is given by name or its features are no numbers.").only(&["csv"]),
    key("data.delimiter", Character, T(","), "What separates two cells, such as `,` or `;` or `tab`.").only(&["csv"]),
    key("data.client_column", Column { may_be_empty: true }, T(""), "The column that tells whose row it is, for partition `by-column`; never a feature. `\"\"`: none.").only(&["csv"]),
    key("data.test_path", Text { may_be_empty: true }, T(""), "A second CSV file with the test rows; `test_fraction` is then ignored. `\"\"`: none.").only(&["csv"]),
    key("data.classes", IntList { min: 0 }, Ints(&[]), "Classes to keep in training and test, not renumbered ([C]: 0 to 8); `[]`: all.").only(&["mnist", "fashion-mnist", "cifar10", "cifar100", "digits"]),
    key("data.rows", from(2, 1_000_000_000), I(7400), "Rows to generate, training and test together (default: Rätsch's sizes).")
        .only(&["twonorm", "ringnorm", "waveform"])
        .by_kind(&[("waveform", I(5000))]),
    key(
        "data.normalise",
        Choice(&["auto", "none", "minmax", "standard", "mnist", "unit", "published"]),
        T("auto"),
        "Scaling of the features, learnt on training rows: `minmax` to [0, 1], `standard` to mean 0 and sd 1, `mnist` = x·0.99/255 + 0.01 ([D], [C]), `unit` = a pixel over its largest possible value, `published` = pixels by the published mean and sd of each channel ([W]; MNIST and CIFAR sets). `auto`: `mnist` for the two MNIST sets, `published` for the two CIFAR sets, `unit` for `digits`, `minmax` for `covertype`, `standard` for `csv`, `waveform`, `uci-regression`, `year-prediction` and raetsch's diabetis, flare-solar, heart, splice; else `none`.",
    ),
    key("data.test_fraction", Float(Interval::INSIDE_UNIT), F(0.2), "Share of the rows held out for the test, drawn with `seed`; of each client's rows with `vehicle`. Ignored by `raetsch` with `split = \"raetsch\"`, and by `uci-regression` unless `test_split` is -1.")
        .only(UNSPLIT)
        .by_kind(&[("uci-regression", F(0.1))]),
    key("data.train_limit", COUNT_OR_ZERO, I(0), "Training rows to use, drawn with `seed` after the split; 0: all."),
    key("data.test_limit", COUNT_OR_ZERO, I(0), "Test rows to use, drawn with `seed` after the split; 0: all."),
    // [partition]
    key(
        "partition.kind",
        Choice(&[
            "iid", "labels-per-client", "superclass-labels", "pfedgp", "fedwba-reference", "cyclic-labels", "label-ratio", "dirichlet",
            "by-column",
        ]),
        T("iid"),
        "`iid`: shuffled, equal shares; `labels-per-client`: each client sees a few labels ([W]: 5); `cyclic-labels`: the same, labels dealt in their order, round and round ([C]); `superclass-labels`: a few of `cifar100`, each of another superclass ([W]: 10); `pfedgp`: a few labels, shared in parts that vary by U(0.4, 0.6), in training and test; `fedwba-reference`: the split of [W]'s code, in which clients with the same labels hold the SAME 10,000 rows; `label-ratio`: two classes in unequal shares; `dirichlet`: each label's shares drawn from Dirichlet(alpha); `by-column`: natural clients, of `vehicle` or by `data.client_column`.",
    ),
    key("partition.clients", COUNT, I(10), "Clients K.").only(&[
        "iid", "labels-per-client", "superclass-labels", "pfedgp", "fedwba-reference", "cyclic-labels", "label-ratio", "dirichlet",
    ]),
    key("partition.labels", COUNT, I(3), "Distinct labels a client holds.")
        .only(&["labels-per-client", "superclass-labels", "pfedgp", "fedwba-reference", "cyclic-labels"])
        .by_kind(&[("superclass-labels", I(10)), ("pfedgp", I(5)), ("fedwba-reference", I(5))]),
    key(
        "partition.cut",
        Choice(&["equal", "random"]),
        T("equal"),
        "How the clients that hold a label share its rows: equally, or cut at random places (pFedVEM).",
    )
    .only(&["labels-per-client"]),
    key(
        "partition.ratio",
        FloatList { each: Interval::NOT_NEGATIVE, length: 2 },
        Floats(&[1.0, 9.0]),
        "Two classes: `[a, b]` mixes them a : b at a client, the other way round at the next ([C]: 1:9); K numbers deal the first class to the clients, read backwards the second ([D] Fig. 5: `[40, 40, 10, 10]`).",
    )
    .only(&["label-ratio"]),
    key("partition.alpha", POSITIVE, F(0.5), "Concentration: small is skewed, large is even.").only(&["dirichlet"]),
    key(
        "partition.validation",
        Float(Interval::DECAY),
        F(0.0),
        "Share of each client's rows, label by label, that is held out from its training; 0: none.",
    ),
    // [model]
    key(
        "model.kind",
        Choice(&["bnn", "stack", "blr", "mixture"]),
        T("bnn"),
        "`bnn`: Bayesian network of dense layers, classification or regression; `stack`: the same with convolutions and pools, layer by layer; `blr`: Bayesian logistic regression, two classes; `mixture`: the toy densities of `mixture-1d` and `mixture-2d` themselves.",
    ),
    key("model.hidden", IntList { min: 1 }, Ints(&[50]), "Units of each hidden layer; `[]`: none, a linear model.").only(&["bnn"]),
    key("model.activation", Choice(&["relu", "tanh", "sigmoid", "gelu", "silu"]), T("relu"), "After each hidden layer.").only(&["bnn"]),
    required(
        "model.layers",
        TextList { example: r#"["conv 16 5x5", "relu", "max-pool 2", "dense 84", "relu"]"# },
        "First to last: `conv OUT KxK [stride S] [pad P | same]`, `max-pool K [stride S]`, `avg-pool K [stride S]` (stride K by default), `global-avg-pool`, `dense OUT`, `relu`, `tanh`, `sigmoid`, `gelu`, `silu`. The first dense layer flattens; the dense layer to the classes, or to the target, is implied.",
    )
    .only(&["stack"]),
    key("model.weight_precision", NumberOr(Interval::POSITIVE, &["learned"]), F(std::f64::consts::E), "Precision λ of the Gaussian prior of weights and biases (default e: [D], log λ = 1); `learned`: log λ is a coordinate of every particle, λ ~ Gamma(`gamma_shape`, `gamma_rate`) (Liu and Wang 2016).").only(&["bnn", "stack"]),
    key("model.gamma_shape", POSITIVE, F(1.0), "Shape of the Gamma prior of a precision: `bnn` and `stack` the noise's (regression), and the weights' where it is learned; `blr` the weights'.").only(&["bnn", "stack", "blr"]),
    key(
        "model.gamma_rate",
        POSITIVE,
        F(0.1),
        "Rate of the same prior; the default of `blr` is [D]'s code, which reads \"Gamma(1, 0.01)\" as scale 0.01, so rate 100.",
    )
    .only(&["bnn", "stack", "blr"])
    .by_kind(&[("blr", F(100.0))]),
    key(
        "model.init",
        Choice(&["scaled-normal", "kaiming-uniform", "xavier-uniform"]),
        T("scaled-normal"),
        "First weights: normal over √(fan-in + 1) ([D]), uniform within √(6/fan-in) ([W], dense networks) or within √(6/(fan-in + fan-out)) ([W], convolutional ones); biases 0.",
    )
    .only(&["bnn", "stack"]),
    key("model.bias", Bool, Literal::Bool(false), "Whether a constant feature is added ([D]: no).").only(&["blr"]),
    key("model.predictive", Choice(&["mean", "probit"]), T("mean"), "Mean over particles of the probability, or with each particle widened to a Gaussian of sd `probit_lambda` ([D] eq. 24).").only(&["blr"]),
    key("model.probit_lambda", POSITIVE, F(0.55), "Standard deviation for `predictive = \"probit\"` ([D]: 0.55); ignored otherwise.").only(&["blr"]),
    key("model.prior", Choice(&["gaussian", "uniform"]), T("gaussian"), "The toy's prior: standard normal, or uniform on [-6, 6].").only(&["mixture"]),
    // [algorithm]
    key(
        "algorithm.kind",
        Choice(&[
            "dsvgd", "u-dsvgd", "p-dsvgd", "svgd", "sgld", "dsgld", "pvi", "gvi", "pmd", "npv", "fedavg", "fedsgd", "fedwba", "fedprox", "scaffold",
            "fedper", "per-fedavg", "pfedme", "pfedbayes", "pfedvem", "pfedgp",
        ]),
        T("dsvgd"),
        "`dsvgd`: distributed Stein variational gradient descent ([D]); `u-dsvgd`: its factors remembered exactly, memory grows; `p-dsvgd`: many clients at once; `pvi`: partitioned variational inference with Gaussians; `dsgld`: Langevin chains that travel; `fedavg`, `fedsgd`: averaging of one parameter vector, or of its gradients. With all rows in one place: `svgd`, `sgld` (Langevin dynamics), `gvi` (Gaussian variational inference), `pmd` (particle mirror descent), `npv` (nonparametric variational inference). Personalised: `fedwba` (particles and Wasserstein barycenters, [W]), `fedper`, `per-fedavg`, `pfedme`, `pfedbayes`, `pfedvem`, `pfedgp`; and `fedprox`, `scaffold` beside `fedavg`.",
    ),
    key("algorithm.particles", from(1, 1_000_000), I(20), "Particles N (chains, mixture components; with `pvi` and `gvi` the draws that predictions are made with; with `pfedvem` 1 is the mean head).").only(BAYESIAN).by_kind(&[("fedwba", I(10)), ("pfedbayes", I(10)), ("pfedvem", I(1))]),
    key("algorithm.local_steps", COUNT, I(200), "Steps L of a client in its round ([D]: 200, [W]'s code on MNIST: 50); with `npv` the most iterations of L-BFGS in a round's sweep.").only(STEPPING).by_kind(&[("npv", I(100)), ("fedwba", I(50))]),
    key("algorithm.distill_steps", COUNT_OR_ZERO, I(200), "Steps L' that move the client's particles onto its new factor ([D]: 200).").only(DISTILLING),
    key("algorithm.server_steps", COUNT, I(200), "Steps L_s of the server towards the product of the factors ([D]: 200).").only(&["p-dsvgd"]),
    key("algorithm.batch", COUNT, I(100), "Rows of a minibatch; a client with fewer uses all it has.").only(MINIBATCHED).by_kind(TEN_ROWS),
    key(
        "algorithm.minibatch",
        Choice(&["epoch-permutation", "sequential-restart", "iid"]),
        T("epoch-permutation"),
        "Order of the rows: a permutation per epoch that goes on over rounds; the first rows anew every round (reference for BNNs); independent draws.",
    )
    .only(MINIBATCHED)
    .reference(T("sequential-restart"))
    .reference_by_kind(&[("fedwba", T("iid"))]),
    key(
        "algorithm.likelihood_scale",
        Choice(&["full", "batch-sum", "mean"]),
        T("full"),
        "Weight of a minibatch of B out of n rows: n/B (unbiased, [D]), 1 ([W]'s code), 1/B.",
    )
    .only(MINIBATCHED)
    .by_kind(MEAN_LOSS)
    .reference_by_kind(&[("fedwba", T("batch-sum"))]),
    key("algorithm.temperature", POSITIVE, F(1.0), "α: the likelihood's score is divided by it; below 1 is colder, more certain.").only(TEMPERED),
    key(
        "algorithm.kde",
        Choice(&["exact", "reference", "off"]),
        T("exact"),
        "Density of a set of particles: log-sum-exp; the public code's, which underflows to nothing beyond some 15 dimensions; no such terms.",
    )
    .only(DENSITIES)
    .reference(T("reference")),
    key(
        "algorithm.kde_bandwidth",
        NumberOr(Interval::POSITIVE, &["median", "scott"]),
        F(0.1),
        "Standard deviation λ of the density's kernel: how fast what other clients said is forgotten ([D], [C], [W]: 0.55, right for toys and for clients alike; 0.1 for clients that differ; networks on many rows want about 4/√rows); or a rule that takes it from the particles.",
    )
    .paper(F(0.55))
    .reference(F(0.55))
    .only(&["dsvgd", "u-dsvgd", "p-dsvgd", "pmd", "fedwba"])
    .by_kind(&[("pmd", T("scott")), ("u-dsvgd", F(0.55)), ("fedwba", F(0.55))]),
    key("algorithm.kde_damping", Float(Interval::FRACTION), F(1.0), "Factor on the difference of the two densities' scores; below 1 tames drift.").only(DENSITIES),
    key("algorithm.kde_clip", Float(Interval::NOT_NEGATIVE), F(0.0), "Longest allowed such difference, in units of √d/λ; 0: any.").only(DENSITIES),
    key(
        "algorithm.factors",
        Choice(&["growing", "shared-prior", "with-prior", "paper"]),
        T("growing"),
        "What a client's factor holds beside its likelihood: 1/K of the prior, so that the product of the factors is the posterior (remembers; for d ≳ 10), with memory that grows with the clients seen (`growing`) or begins in full at Θ^(0) (`shared-prior`); the whole prior (the public code; right for toys of one or two dimensions), or nothing (the text; diverges).",
    )
    .only(DISTILLING)
    .paper(T("paper"))
    .reference(T("with-prior")),
    key("algorithm.step_size", POSITIVE, F(0.01), "a0 of the Langevin step ε_t = a0 (½ + t)^-step_power ([D]: 0.01; MNIST `sgld` 0.001, `dsgld` 0.0005).").only(LANGEVIN),
    key("algorithm.step_power", Float(Interval::NOT_NEGATIVE), F(0.55), "How fast Langevin steps shrink ([D]: 0.55); 0: not.").only(LANGEVIN),
    key("algorithm.noise", Choice(&["correct", "reference"]), T("correct"), "Langevin noise: variance ε_t, anew for every coordinate; or the public code's, one number of sd ε_t²/N for all.").only(LANGEVIN).reference(T("reference")),
    key("algorithm.gradient_scale", Choice(&["corrected", "reference"]), T("corrected"), "A worker's likelihood counts K times, for the rows of the others; or once, as in the public code.").only(&["dsgld"]).reference(T("reference")),
    key("algorithm.chains", Choice(&["ceil", "floor"]), T("ceil"), "Chains a worker gets: ⌈N/K⌉ (the text), or ⌊N/K⌋ and at least 1 (the public code: the rest do not move).").only(&["dsgld"]).reference(T("floor")),
    key("algorithm.family", Choice(&["mean-field", "full"]), T("mean-field"), "Gaussians with independent coordinates, or with any covariance (a few dimensions).").only(GAUSSIAN),
    key("algorithm.damping", Float(Interval::FRACTION), F(0.1), "ρ: the share of the new natural parameters in a step; 1 where expectations are exact, small where they are noisy.").only(GAUSSIAN),
    key("algorithm.samples", COUNT, I(10), "Draws behind an expectation; toys of one or two dimensions use quadrature instead.").only(&["pvi", "gvi", "pfedbayes", "pfedvem"]).by_kind(&[("pfedbayes", I(1)), ("pfedvem", I(5))]),
    key("algorithm.max_step", Float(Interval::FRACTION), F(1.0), "γ_max: the longest mirror step.").only(&["pmd"]),
    key("algorithm.step_decay", POSITIVE, F(5.0), "c: mirror step t is min(γ_max, c/t).").only(&["pmd"]),
    key(
        "algorithm.mix",
        Choice(&["replace", "reference"]),
        T("replace"),
        "A single client's parameters replace the server's, or are mixed in by the client's share of all rows.",
    )
    .only(&["fedavg"])
    .reference(T("reference")),
    key("algorithm.start", Choice(&["global", "own"]), T("global"), "Where a client's particles start in its round: at the global ones, or where it left its own (the text and the public code).").only(&["fedwba"]).paper(T("own")).reference(T("own")),
    key("algorithm.over", Choice(&["sampled", "all"]), T("sampled"), "Whose particles the barycenter is taken over: this round's clients, or all, those that never trained among them (the public code).").only(&["fedwba"]).reference(T("all")),
    key("algorithm.weights", Choice(&["uniform", "data-size"]), T("uniform"), "Weights of the clients in the barycenter.").only(&["fedwba"]),
    key("algorithm.iterate", Choice(&["fixed-point", "one-step"]), T("fixed-point"), "Assignment and average until they agree (at most 100 times: the public code), or once (the text).").only(&["fedwba"]).paper(T("one-step")),
    key("algorithm.eq5", Choice(&["N", "paper"]), T("N"), "Equation (5) with the factor N, or as printed, with 1/N: it shrinks the particles by N².").only(&["fedwba"]),
    key("algorithm.shared_layers", IntList { min: 1 }, Ints(&[]), "Layers, counted from 1 at the input, that carry one value for all particles; the others are Bayesian ([W] Table 7).").only(&["fedwba"]),
    key("algorithm.proximal", POSITIVE, F(0.01), "Weight of the distance from the shared parameters: μ of `fedprox`, λ of `pfedme`.").only(&["fedprox", "pfedme"]).by_kind(&[("pfedme", F(15.0))]),
    key("algorithm.server_lr", POSITIVE, F(1.0), "Step of the server along the mean change.").only(&["scaffold"]),
    key("algorithm.personal_layers", COUNT, I(1), "Layers, counted from the output, that stay at the client.").only(&["fedper", "pfedvem", "pfedgp"]),
    key("algorithm.inner_lr", POSITIVE, F(0.01), "Step size of the adaptation (`per-fedavg`), or of the personal parameters (`pfedme`); `optimizer.lr` is that of what is shared.").only(&["per-fedavg", "pfedme"]),
    key("algorithm.inner_steps", COUNT, I(5), "Personal steps on one minibatch.").only(&["pfedme"]),
    key("algorithm.server_mix", Float(Interval::FRACTION), F(1.0), "β: how much of the clients' mean the server takes.").only(&["pfedme", "pfedbayes"]),
    key("algorithm.kl_weight", POSITIVE, F(10.0), "ζ: weight of KL(personal ‖ shared).").only(&["pfedbayes"]),
    key("algorithm.initial_rho", Float(Interval::FINITE), F(-2.5), "ρ at the start; a standard deviation is ln(1 + e^ρ) (public code: -3).").only(&["pfedbayes"]).reference(F(-3.0)),
    key("algorithm.initial_sd", POSITIVE, F(0.1), "Standard deviation of the means at the start.").only(&["pfedbayes"]),
    key("algorithm.noise_variance", POSITIVE, F(1.0), "Variance of the noise behind a draw, in training and in prediction; 1 is the method, 1e-6 the unofficial public code (sd 0.001): next to a point.").only(&["pfedbayes"]).reference(F(1e-6)),
    key("algorithm.head_steps", COUNT, I(10), "Steps on the Gaussian head, each on all rows.").only(&["pfedvem"]),
    key("algorithm.head_lr", POSITIVE, F(0.001), "Their step size.").only(&["pfedvem"]),
    key("algorithm.head_momentum", Float(Interval::DECAY), F(0.9), "Their momentum.").only(&["pfedvem"]),
    key("algorithm.output_scale", POSITIVE, F(8.0), "Variance of the Gaussian processes.").only(&["pfedgp"]),
    key("algorithm.length_scale", POSITIVE, F(1.0), "Length scale of their kernel, on embeddings of length 1.").only(&["pfedgp"]),
    key("algorithm.inference_steps", COUNT, I(10), "Updates of the Pólya-Gamma variables of a node.").only(&["pfedgp"]),
    key("algorithm.inducing_rows", COUNT, I(500), "Most training rows of a client behind a prediction: the cost is cubic in them.").only(&["pfedgp"]),
    // [kernel]
    key(
        "kernel.kind",
        Choice(&["rbf", "imq", "laplacian", "polynomial", "sigmoid", "mixture"]),
        T("rbf"),
        "exp(-r²/h); (1 + r²/h)^exponent; exp(-r/h); (x·y + offset)^degree; tanh(slope x·y + offset), not positive definite; the mean of three RBF at h/4, h, 4h.",
    ),
    key(
        "kernel.bandwidth",
        NumberOr(Interval::POSITIVE, &["reference", "paper", "pyro", "full-matrix"]),
        T("reference"),
        "h, as a number or a rule on the distances r: `reference` median of all r² / log(N+1), `paper` (median of r, pairs)² / log N, `pyro` median of r², pairs / log(N+1), `full-matrix` (median of all r)² / log N.",
    )
    .only(RADIAL)
    .paper(T("paper")),
    key("kernel.median", Choice(&["mean", "lower"]), T("mean"), "Median of an even count: mean of the middle two (numpy) or the lower one (torch, [W]'s code).").only(RADIAL),
    key("kernel.exponent", Float(Interval::NEGATIVE), F(-0.5), "Exponent of the inverse multiquadric.").only(&["imq"]),
    key("kernel.degree", from(1, 100), I(2), "Degree ([W]: 2).").only(&["polynomial"]),
    key("kernel.slope", Float(Interval::FINITE), F(1.0), "Slope ([W]: 1).").only(&["sigmoid"]),
    key("kernel.offset", Float(Interval::FINITE), F(1.0), "Constant term ([W]: 0 in the sigmoid, not stated in the polynomial).")
        .only(DOT_PRODUCT)
        .by_kind(&[("sigmoid", F(0.0))]),
    key("kernel.gradient", Choice(&["correct", "reference"]), T("correct"), "The kernel's gradient, or the slip for it in [W]'s code.").only(DOT_PRODUCT),
    // [optimizer]
    key(
        "optimizer.kind",
        Choice(&["adagrad", "adagrad-sum", "rmsprop", "adam", "sgd"]),
        T("adagrad"),
        "`adagrad`: with a moving average of squares ([D]); `adagrad-sum`: with their sum ([W] App. G.4); the rest as usual.",
    ),
    key("optimizer.lr", POSITIVE, F(1e-3), "Step size ε ([D]: BNN 1e-3, BLR 0.05)."),
    key("optimizer.epsilon", POSITIVE, F(1e-6), "What is added to the root of the squares ([D]: BNN 1e-6, BLR 1e-9).").only(&["adagrad", "adagrad-sum", "rmsprop", "adam"]),
    key("optimizer.momentum", Float(Interval::DECAY), F(0.9), "Decay of the moving average of squares ([D]: 0.9).").only(&["adagrad", "rmsprop"]),
    key("optimizer.init", Choice(&["g2", "zero"]), T("g2"), "The average begins at the first square ([D]: the first step is ε·sign) or at 0 ([W]'s code).").only(&["adagrad"]),
    key("optimizer.epsilon_place", Choice(&["outside", "inside"]), T("outside"), "φ/(ϵ + √G) (all codes) or φ/√(G + ϵ) ([W]'s text).").only(&["adagrad", "adagrad-sum"]),
    key("optimizer.beta1", Float(Interval::DECAY), F(0.9), "Decay of the average direction.").only(&["adam"]),
    key("optimizer.beta2", Float(Interval::DECAY), F(0.999), "Decay of the average of squares.").only(&["adam"]),
    key("optimizer.reset", Choice(&["per-visit", "never"]), T("per-visit"), "Whether a client forgets its averages between visits (reference: it does)."),
    // [schedule]
    key(
        "schedule.kind",
        Choice(&["round-robin", "random", "ksd", "hip"]),
        T("round-robin"),
        "In turn; drawn without replacement every round; drawn in proportion to the Stein discrepancy between Θ and a client's tilted density, or to the inner product of a client's direction with the mean direction ([C]; for `dsvgd`, `u-dsvgd`, `p-dsvgd`).",
    ),
    key("schedule.first", COUNT_OR_ZERO, I(0), "The client whose turn is first, modulo K (the public code: 1).").only(&["round-robin"]).reference(I(1)),
    key("schedule.clients", COUNT, I(1), "Clients a round; `dsvgd` and `u-dsvgd` are defined for one; `dsgld` decides itself."),
    key("schedule.kernel", Choice(&["rbf", "imq"]), T("rbf"), "Kernel in which clients are compared: exp(-r²/h) or (1 + r²/h)^-½.").only(INFORMED),
    key(
        "schedule.bandwidth",
        NumberOr(Interval::POSITIVE, &["median"]),
        T("median"),
        "Its standard deviation σ, h = 2σ² ([C] may mean 0.55, in which beyond some 50 dimensions particles no longer feel each other); or the median rule with which SVGD moves.",
    )
    .only(INFORMED),
    key("schedule.rows", Choice(&["full", "minibatch"]), T("full"), "The rows behind a client's answer: all, or one minibatch.").only(INFORMED),
    key("schedule.floor", Float(Interval::DECAY), F(0.0), "Share of the draw that is uniform: no client's probability falls below floor/K.").only(INFORMED),
    key("schedule.negative", Choice(&["clip", "shift", "softmax"]), T("clip"), "What makes a distribution of negative inner products: cut to 0, raised by the smallest, or a softmax.").only(&["hip"]),
    key("schedule.softmax_temperature", NumberOr(Interval::POSITIVE, &["sd"]), T("sd"), "Temperature of that softmax; `sd`: the standard deviation of the inner products.").only(&["hip"]),
    // [federation]
    key("federation.deadline", Float(Interval::NOT_NEGATIVE), F(0.0), "Seconds after which a round takes no more replies, nor answers to questions, nor scores; 0: it waits for all. Clients in this process answer at once, but for injected stragglers: nobody waits."),
    key("federation.min_replies", COUNT, I(1), "Fewest usable replies that close a round, at most `schedule.clients`. With fewer the server keeps its state, and the round repeats with others in the place of those that failed."),
    key("federation.repeats", COUNT_OR_ZERO, I(5), "How often a round is repeated before the run fails."),
    key("federation.backoff", COUNT_OR_ZERO, I(1), "Rounds that a client sits out after its second bad reply in a row, twice as many after every further one, at most 64; a usable reply ends it. 0: none. Silence is no bad reply."),
    key(
        "federation.robust",
        Choice(&["none", "norm-clip", "median", "trimmed"]),
        T("none"),
        "What a few poisoned replies are kept from doing: `norm-clip` shortens changes to `robust_clip` times their median length; `median` and `trimmed` take coordinate-wise medians and trimmed means in the place of means, with `fedwba` the Wasserstein median and the barycenter without the outermost sets. The last two need three clients a round or more, and are refused where replies are no estimates of one thing: `dsvgd`, `u-dsvgd`, `p-dsvgd`, `pvi`, `dsgld`.",
    ),
    key("federation.robust_clip", POSITIVE, F(1.0), "Longest change, in median lengths of the round's changes; in a round of one or two replies, of the latest 50 accepted ones, once there are three."),
    key("federation.robust_trim", Float(Interval(std::ops::Bound::Excluded(0.0), std::ops::Bound::Excluded(0.5))), F(0.3), "Share of the replies that is left out at either end (`fedwba`: that is farthest from the median set)."),
    key("federation.outlier_scores", Bool, Literal::Bool(false), "Whether every reply gets an outlier score, its Stein discrepancy from a robust Gaussian of the round: a column of rounds.csv (the largest), and events.jsonl. It decides nothing."),
    // [faults]
    key(
        "faults.kinds",
        TextList { example: r#"["dropout", "nan"]"# },
        Literal::Texts(&[]),
        "What goes wrong with a visit, each as likely: `dropout` (the request is lost), `straggler`, `duplicate`, `reordered`, `stale` (of the round before), `nan`, `inf`, `wrong-shape`, `wrong-dtype`, `wrong-n` (a row too many), `huge-norm` (the change times `factor`), `sign-flip` (of the change), `replay` (an old reply under new stamps), `lost-reply` (the client trains, and the reply does not arrive). `[]`: nothing.",
    ),
    key(
        "faults.requests",
        TextList { example: r#"["training", "question"]"# },
        Literal::Texts(&["training"]),
        "Which requests are disturbed: `training`, `question` (before a selection, or `evaluation.discrepancy`), `scores` (`evaluation.personal`). The last two take `dropout`, `lost-reply`, `straggler`, `duplicate`, `reordered`, `stale`, `nan` and `inf`; the other kinds leave them as they are.",
    ),
    key("faults.share", Float(Interval::FRACTION), F(0.3), "Share of the clients that are ever disturbed, rounded up, drawn with `seed`."),
    key("faults.probability", Float(Interval::FRACTION), F(1.0), "Probability that a request to one of them is, drawn with `seed` by kind of request, round, client and attempt."),
    key("faults.factor", POSITIVE, F(100.0), "What a `huge-norm` change is multiplied with."),
    key("faults.delay", POSITIVE, F(60.0), "Seconds by which a `straggler` is late, in simulated time."),
    // [evaluation]
    key("evaluation.every", COUNT, I(1), "Rounds from one evaluation to the next; the last round is always evaluated."),
    key("evaluation.bins", from(1, 1000), I(15), "Bins of confidence in calibration errors and diagrams (15: Guo et al. 2017)."),
    key("evaluation.chunk", COUNT, I(1000), "Test rows evaluated at once; bounds memory, changes no result beyond its last digits."),
    key(
        "evaluation.kde_bandwidth",
        NumberOr(Interval::POSITIVE, &["same"]),
        T("same"),
        "λ of the density whose divergence from a toy's posterior is reported; `same`: the algorithm's own, 0.55 where it has none.",
    ),
    key(
        "evaluation.discrepancy",
        Bool,
        Literal::Bool(false),
        "Asks every client every round for the Stein discrepancy between Θ and its tilted density, over all its rows; the schedules `ksd` and `hip` have a question of their own, which goes first. The answers count as traffic.",
    ),
    key(
        "evaluation.personal",
        Bool,
        Literal::Bool(false),
        "Also scores every client's own predictor on that client's own test rows: columns `personal_*` of rounds.csv, and `clients.csv`. The clients send sums, never rows; this traffic is not counted.",
    ),
    // [checkpoint]
    key("checkpoint.enabled", Bool, Literal::Bool(true), "Whether there are any. Without them a run that stops starts again."),
    key(
        "checkpoint.every_seconds",
        Float(Interval::NOT_NEGATIVE),
        F(30.0),
        "A round that ends this many seconds after the last checkpoint, or later, is followed by one; 0: every round. So are the last round and a Ctrl-C.",
    ),
    key(
        "checkpoint.keep",
        Bool,
        Literal::Bool(true),
        "Whether the last one stays when the run has ended, so that `--resume` with more `rounds` can add to it.",
    ),
];
