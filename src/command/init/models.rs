//! The study that `fedstein init --study` writes beside a config: which model predicts the validation rows best.

use std::path::{Path, PathBuf};

use toml::Value;

use super::choice::Choice;
use super::config::clients;
use super::length::held_out;
use crate::datasets::Task;

/// The share of validation rows where the config has none.
const SHARE: f64 = 0.2;

/// A model that is compared, with what is said of it.
struct Variant {
    name: &'static str,
    about: &'static str,
    keys: &'static [&'static str],
}

/// A linear model of two classes.
const LOGISTIC: Variant = Variant {
    name: LINEAR,
    about: "A logistic regression.",
    keys: &["model.kind = \"blr\"", "model.bias = true", "optimizer.lr = 0.05"],
};
/// A linear model of any other target.
const WITHOUT_LAYERS: Variant = Variant { name: LINEAR, about: "A linear model.", keys: &["model.hidden = []"] };
/// The networks, the first of which is the config's.
const NETWORKS: [Variant; 3] = [
    Variant { name: NETWORK, about: "The network of the config.", keys: &["model.hidden = [50]"] },
    Variant {
        name: "strong-prior",
        about: "The same, with weights that the prior holds closer to 0.",
        keys: &["model.hidden = [50]", "model.weight_precision = 10.0"],
    },
    Variant { name: "two-layers", about: "A larger network.", keys: &["model.hidden = [100, 50]"] },
];
const LINEAR: &str = "linear";
const NETWORK: &str = "network";

/// Where the study of a config is written: `cases-models.toml` for `cases.toml`.
pub fn path_of(config: &Path) -> PathBuf {
    let stem = config.file_stem().unwrap_or_default().to_string_lossy();
    config.with_file_name(format!("{stem}-models.toml"))
}

/// The text of the study.
///
/// # Arguments
/// - `base`: the name of the config's file, which is in the same directory.
pub fn of_config(base: &str, choice: &Choice<'_>) -> String {
    let linear = match choice.task == Task::Classification && choice.target.distinct() == Some(2) {
        true => LOGISTIC,
        false => WITHOUT_LAYERS,
    };
    let claims = NETWORKS.iter().map(|network| {
        let other = if network.name == NETWORK { LINEAR } else { NETWORK };
        Value::String(format!("{} better than {other} in nll", network.name))
    });
    let share = match held_out(choice, clients(choice)) {
        Some(_) => String::new(),
        None => format!("partition.validation = {SHARE}\n"),
    };
    let variants: String = [linear].iter().chain(&NETWORKS).map(Variant::section).collect();
    format!(
        "# Which model? Each is trained with five seeds and scored on validation rows: the test rows stay unseen.\n\
         # The study prints whether each claim holds beyond two standard errors; the means are in table.md of its directory.\n\
         # Then write the keys of the best model into the config. All keys are in docs/study.md.\n\
         \n\
         title = \"Which model?\"\n\
         base = {base}\n\
         seeds = 5\n\
         baseline = \"{LINEAR}\"\n\
         claims = {claims}\n\
         \n\
         [set]\n\
         evaluation.rows = \"validation\"\n\
         {share}\
         {variants}",
        base = Value::String(base.to_owned()),
        claims = Value::Array(claims.collect()),
    )
}

impl Variant {
    fn section(&self) -> String {
        format!("\n# {}\n[vary.model.{}]\n{}\n", self.about, self.name, self.keys.join("\n"))
    }
}
