//! The study that `fedstein init --study` writes beside a config: which model predicts the validation rows best.

use toml::Value;

use super::choice::Choice;
use super::config::{HIDDEN, clients};
use super::length::held_out;

/// The share of validation rows where the config has none.
const SHARE: f64 = 0.2;

/// The names of the models that others are compared with.
const LINEAR: &str = "linear";
const NETWORK: &str = "network";

/// A model that is compared.
struct Variant {
    name: &'static str,
    /// What it is, for a comment.
    about: &'static str,
    /// The keys that make it out of any config that `fedstein init` has written.
    keys: Vec<String>,
}

/// The text of the study.
///
/// # Arguments
/// - `base`: the name of the config's file, which is in the same directory.
pub fn of_config(base: &str, choice: &Choice<'_>) -> String {
    let variants = variants(choice);
    let claims = variants.iter().filter(|variant| variant.name != LINEAR).map(|variant| {
        let other = if variant.name == NETWORK { LINEAR } else { NETWORK };
        Value::String(format!("{} better than {other} in nll", variant.name))
    });
    let share = match held_out(choice, clients(choice)) {
        Some(_) => String::new(),
        None => format!("partition.validation = {SHARE}\n"),
    };
    format!(
        "# Which model? Each is trained with five seeds and scored on validation rows: no run is scored on its test rows.\n\
         # `fedstein study` prints whether each claim holds beyond two standard errors; the means are in\n\
         # studies/NAME-models/table.md. Then put the keys of the best model in the place of those of [model] in the config,\n\
         # and its `optimizer.lr`, if it has one, into [optimizer]. All keys of a study are in docs/study.md.\n\
         \n\
         title = \"Which model?\"\n\
         base = {base}\n\
         seeds = 5\n\
         {metrics}\
         baseline = \"{LINEAR}\"\n\
         claims = {claims}\n\
         \n\
         [set]\n\
         evaluation.rows = \"validation\"\n\
         {share}\
         {sections}",
        base = Value::String(base.to_owned()),
        metrics = choice.metrics_of_study(),
        claims = Value::Array(claims.collect()),
        sections = variants.iter().map(Variant::section).collect::<String>(),
    )
}

/// The models, a linear one first and the config's network second.
fn variants(choice: &Choice<'_>) -> Vec<Variant> {
    let network = |hidden: &str| vec!["model.kind = \"bnn\"".to_owned(), format!("model.hidden = {hidden}")];
    let of_config = || network(&format!("[{HIDDEN}]"));
    let linear = match choice.has_two_classes() {
        true => {
            let keys = ["model.kind = \"blr\"", "model.bias = true", "optimizer.lr = 0.05"];
            Variant { name: LINEAR, about: "A logistic regression.", keys: keys.map(str::to_owned).to_vec() }
        }
        false => Variant { name: LINEAR, about: "A linear model.", keys: network("[]") },
    };
    vec![
        linear,
        Variant { name: NETWORK, about: "The network of the config.", keys: of_config() },
        Variant {
            name: "strong-prior",
            about: "The same, with weights that the prior holds closer to 0.",
            keys: [of_config(), vec!["model.weight_precision = 10.0".to_owned()]].concat(),
        },
        Variant {
            name: "two-layers",
            about: "A larger network.",
            keys: network(&format!("[{}, {HIDDEN}]", 2 * HIDDEN)),
        },
    ]
}

impl Variant {
    /// Its section in the study.
    fn section(&self) -> String {
        format!("\n# {}\n[vary.model.{}]\n{}\n", self.about, self.name, self.keys.join("\n"))
    }
}
