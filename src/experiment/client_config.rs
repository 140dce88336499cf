//! Which sections of a configuration a server sends to its sites, and how a site reads them.

use fedstein_schema::{Overrides, Source};
use toml::Table;

use super::config::{Config, schema};
use crate::error::RunError;

/// The sections and top-level keys that a server may set at a site.
const SECTIONS: [&str; 7] = ["seed", "precision", "model", "algorithm", "kernel", "optimizer", "evaluation"];
/// The longest text that a site reads.
const LONGEST: usize = 1 << 20;

/// The sections of a configuration that concern a client, as TOML.
///
/// # Errors
/// The configuration cannot be serialised, which does not happen for these types.
pub(super) fn for_sites(config: &Config) -> Result<String, RunError> {
    let mut table = Table::try_from(config).map_err(|error| RunError::Config(error.to_string()))?;
    table.retain(|name, _| SECTIONS.contains(&name));
    Ok(table.to_string())
}

/// The configuration of a text from a server; all that a server may not set has its default.
///
/// # Errors
/// The text sets anything else, or a key has an invalid value. The error names the key.
pub(super) fn at_site(text: &str) -> Result<Config, String> {
    if text.len() > LONGEST {
        return Err(format!("the server's configuration has {} bytes; at most {LONGEST} are read", text.len()));
    }
    let table: Table = text.parse().map_err(|error: toml::de::Error| error.message().to_owned())?;
    if let Some(name) = table.keys().find(|name| !SECTIONS.contains(&name.as_str())) {
        let name = crate::report::quoted(name);
        return Err(format!(
            "the server sets `{name}`, which only this site's own file may; it may set {}",
            SECTIONS.join(", ")
        ));
    }
    let source = Source { name: "the server's configuration", text };
    let resolved = schema().resolve(source, &Overrides::default()).map_err(|error| error.to_string())?;
    let config = Config::from_resolved(&resolved).map_err(|error| error.to_string())?;
    config.algorithm.check().map_err(|problem| format!("the server's configuration: {problem}"))?;
    match config.algorithm.capabilities().centralised {
        true => Err(format!("algorithm kind `{}` needs all rows in one place", config.algorithm.name())),
        false => Ok(config),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{ALGORITHM_KINDS, VisitCost};

    fn config(text: &str) -> Config {
        Config::load(Source { name: "a test", text }, &Overrides::default()).unwrap().0
    }

    #[test]
    fn the_cost_of_a_visit_is_known_of_every_kind_and_has_all_steps_of_the_client() {
        let of = |keys: &str| {
            let config = config(&format!("[algorithm]\n{keys}\n[optimizer]\nkind = \"sgd\""));
            config.algorithm.visit_cost(250)
        };
        for kind in ALGORITHM_KINDS {
            let VisitCost { steps, draws } = of(&format!("kind = \"{}\"", kind.name));
            assert!((1..100_000).contains(&steps) && draws < 1000, "{}", kind.name);
        }
        let steps = |keys: &str| of(keys).steps;
        assert_eq!(steps("kind = \"fedavg\"\nlocal_steps = 7"), 7);
        assert_eq!(steps("kind = \"fedavg\"\nlocal_epochs = 4\nbatch = 100"), 10);
        // Each step of the shared parameters adapts them first, which is another step.
        assert_eq!(steps("kind = \"per-fedavg\"\nlocal_steps = 7"), 14);
        assert_eq!(steps("kind = \"per-fedavg\"\nlocal_epochs = 4\nbatch = 100"), 20);
        assert_eq!(steps("kind = \"pfedme\"\nlocal_steps = 1000000\ninner_steps = 1000000"), 1_000_000_000_000);
        assert_eq!(steps("kind = \"pfedvem\"\nlocal_steps = 30\nhead_steps = 12"), 42);
        assert_eq!(steps("kind = \"dsvgd\"\nlocal_steps = 5\ndistill_steps = 6"), 11);
        // The server's own steps are none of a client's.
        assert_eq!(steps("kind = \"p-dsvgd\"\nlocal_steps = 5\ndistill_steps = 6\nserver_steps = 9999"), 11);
        assert_eq!(of("kind = \"pfedbayes\"\nsamples = 1000000000").draws, 1_000_000_000);
    }

    #[test]
    fn a_site_reads_the_sections_that_concern_it_and_no_other() {
        let text = "seed = 9\nrounds = 3\nname = \"x\"\n[data]\nkind = \"twonorm\"\n[model]\nhidden = [7]\n\
                    [algorithm]\nkind = \"fedavg\"\nlocal_steps = 3\n[evaluation]\nbins = 4\n[schedule]\nclients = 2";
        let whole = config(text);
        let sent = for_sites(&whole).unwrap();
        let config = at_site(&sent).unwrap();
        assert_eq!((config.seed, &config.model, &config.algorithm), (9, &whole.model, &whole.algorithm));
        assert_eq!((&config.kernel, &config.optimizer), (&whole.kernel, &whole.optimizer));
        assert_eq!(config.evaluation.bins, 4);
        assert!(config.name == "run" && !sent.contains("twonorm"));
    }

    #[test]
    fn what_a_server_may_not_set_is_refused_by_name() {
        for (text, word) in [
            ("[data]\npath = \"/etc/passwd\"", "`data`"),
            ("[checkpoint]\nenabled = false", "`checkpoint`"),
            ("backend = \"cuda\"", "`backend`"),
            ("[algorithm]\nkind = \"fedavg\"\npath = \"x\"", "path"),
            ("[algorithm]\nkind = \"svgd\"", "all rows in one place"),
            ("[algorithm", "the server's configuration"),
        ] {
            let error = at_site(text).unwrap_err();
            assert!(error.contains(word) || word == "the server's configuration", "{error}, not {word}");
        }
        assert!(at_site(&" ".repeat(LONGEST + 1)).unwrap_err().contains("at most"));
    }
}
