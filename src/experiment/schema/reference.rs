//! The table of keys in, the user's reference (`docs/configuration.md`) out.

use std::fmt::Write;

use super::keys::{KEYS, Key, SECTIONS};
use super::list;
use super::value::{Accepts, Literal};

const INTRODUCTION: &str = "\
# The config

<!-- Written by `fedstein::experiment::schema::reference` from the table of keys. Do not edit; to write it anew:
     UPDATE_DOCS=1 cargo test --release --test config -->

An experiment is one TOML file. Every key has a default except where it says *required*, so a file holds only what differs.
A run writes its config with every default filled in to `config.toml` in its directory; that file is itself a config that repeats the run.

Where several places name a key, the later one wins: the defaults below, the preset, the file,
`--set section.key=value` (any number of times), `--seed` and `--backend`.

Most sections have a `kind`. A key that the chosen kind does not use is refused, as is a key that does not exist.
When `--set` changes a kind, the keys that the file wrote for its former kind are dropped, with a note.

The values of `--set` are TOML (`--set model.hidden=[100,50]`); what is not TOML is text (`--set algorithm.kind=fedavg`).

[D], [C] and [W] are the papers on DSVGD (Kassab & Simeone), on client selection (Yang et al.) and on FedWBA; the README cites them.
";

/// The reference of all keys, in Markdown.
pub fn reference() -> String {
    let mut text = INTRODUCTION.to_string();
    for (section, about) in SECTIONS {
        let title = if section.is_empty() { "Top of the file".to_string() } else { format!("[{section}]") };
        text += &format!("\n## {title}\n\n{about}\n\n| key | value | default | meaning |\n|---|---|---|---|\n");
        for key in KEYS.iter().filter(|key| key.section() == *section) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| `{}` | {} | {} | {} |", key.name(), value(key), default(key), meaning(key));
        }
    }
    text
}

fn value(key: &Key) -> String {
    match key.accepts {
        Accepts::Choice(words) => words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", "),
        accepts => cell(&accepts.describe()),
    }
}

fn default(key: &Key) -> String {
    let Some(default) = key.default else { return "*required*".to_string() };
    let mut text = code(default);
    for (kind, value) in key.by_kind {
        text += &format!("; `{kind}`: {}", code(*value));
    }
    for (preset, value) in [("paper", key.paper), ("reference", key.reference)] {
        if let Some(value) = value {
            text += &format!("; preset `{preset}`: {}", code(value));
        }
    }
    for (kind, value) in key.reference_by_kind {
        text += &format!("; preset `reference`, `{kind}`: {}", code(*value));
    }
    text
}

fn meaning(key: &Key) -> String {
    let kinds = match key.kinds {
        [] => String::new(),
        kinds => format!("Only {}. ", list(kinds)),
    };
    kinds + &cell(key.doc)
}

fn code(literal: Literal) -> String {
    format!("`{}`", literal.to_value())
}

/// Text that a Markdown table can hold.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
