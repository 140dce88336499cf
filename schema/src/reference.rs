//! Writes the user's reference (`docs/configuration.md`) from a schema.

use std::fmt::Write;

use super::key::{Key, Schema, Section};
use super::suggest::{by_kind, list};
use super::value::{Accepts, Literal};

const INTRODUCTION: &str = "\
# The config

<!-- Written by `fedstein_schema::Schema::reference` from the constants beside the code that reads each key. Do not edit; to write it anew:
     UPDATE_DOCS=1 cargo test --release --test config -->

An experiment is one TOML file. Every key has a default except where it says *required*, so a file holds only what differs.
A run writes its config with every default filled in to `config.toml` in its directory; that file is itself a config that repeats the run.

Where several places name a key, the later one wins: the defaults below, the preset, the file,
`--set section.key=value` (any number of times), `--seed` and `--backend`.

Most sections have a `kind`. A key that the chosen kind does not use is refused, as is a key that does not exist.
When `--set` changes a kind, the file's keys that the new kind does not use are dropped, and those that both kinds use keep the
file's values, also where the new kind has another default; a note names both.

The values of `--set` are TOML (`--set model.hidden=[100,50]`); what is not TOML is text (`--set algorithm.kind=fedavg`),
except that a key of real numbers takes `.5` and `2.` too. `--set 'model={ hidden = [20], activation = \"tanh\" }'`
sets several keys of a section.

K is the number of clients, N that of particles, I that of rounds, L that of local steps, d that of a model's parameters.

[D], [C] and [W] are the papers on DSVGD (Kassab & Simeone), on client selection (Yang et al.) and on FedWBA; the README cites them.
";

impl Schema {
    /// The reference of all keys, in Markdown.
    pub fn reference(&self) -> String {
        let mut text = INTRODUCTION.to_string();
        for section in &self.sections {
            let title =
                if section.name.is_empty() { "Top of the file".to_string() } else { format!("[{}]", section.name) };
            text += &format!("\n## {title}\n\n{}\n", section.about);
            if let Some(default) = section.default_kind {
                text += &format!("\n| `kind` (default `{default}`) | what it is |\n|---|---|\n");
                for kind in &section.kinds {
                    text += &format!("| `\"{}\"` | {} |\n", kind.name, cell(kind.about));
                }
            }
            text += "\n| key | value | default | meaning |\n|---|---|---|---|\n";
            for name in section.key_names() {
                let users: Vec<(&str, &Key)> = section.versions(name).collect();
                if !users.is_empty() {
                    let (value, default, meaning) = (values(&users), default(&users), meaning(section, &users));
                    // Writing to a String cannot fail.
                    let _ = writeln!(text, "| `{name}` | {value} | {default} | {meaning} |");
                }
            }
        }
        text
    }
}

/// What the key accepts, for each kind where kinds differ.
fn values(users: &[(&str, &Key)]) -> String {
    by_kind(users.iter().map(|(kind, key)| (*kind, value(key))), "; ")
}

fn value(key: &Key) -> String {
    match key.accepts {
        Accepts::Choice(words) => words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", "),
        accepts => cell(&accepts.describe()),
    }
}

/// The default, and the kinds and presets with another default.
fn default(users: &[(&str, &Key)]) -> String {
    let values: Vec<Option<Literal>> = users.iter().map(|(_, key)| key.default).collect();
    let most = most_frequent(&values);
    let mut parts: Vec<String> = most.map(code).into_iter().collect();
    let others = users.iter().zip(&values).filter(|(_, value)| **value != most);
    parts.extend(others.map(|((kind, _), value)| match value {
        Some(value) => format!("`{kind}`: {}", code(*value)),
        None => format!("`{kind}`: none"),
    }));
    if parts.is_empty() {
        return "*required*".to_string();
    }
    parts.extend(preset("paper", users, |key| key.paper));
    parts.extend(preset("reference", users, |key| key.reference));
    parts.join("; ")
}

/// What a preset sets, where that is not the default: one text for all kinds with the same value.
fn preset(name: &str, users: &[(&str, &Key)], literal: fn(&Key) -> Option<Literal>) -> Vec<String> {
    let other = |key: &Key| literal(key).filter(|_| literal(key) != key.default);
    let mut values: Vec<Literal> = Vec::new();
    for value in users.iter().filter_map(|(_, key)| other(key)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let text = |value: &Literal| {
        let (with, without): (Vec<_>, Vec<_>) = users.iter().partition(|(_, key)| other(key) == Some(*value));
        let names = |users: Vec<&(&str, &Key)>| list(&users.into_iter().map(|(kind, _)| *kind).collect::<Vec<_>>());
        match without.len() {
            0 => format!("preset `{name}`, {}", code(*value)),
            few if FEW * few <= with.len() => format!("preset `{name}`, {} but for {}", code(*value), names(without)),
            _ => format!("preset `{name}`, {} for {}", code(*value), names(with)),
        }
    };
    values.iter().map(text).collect()
}

/// The value that occurs most often. Of equally frequent values `None` is preferred, then the first one.
fn most_frequent(values: &[Option<Literal>]) -> Option<Literal> {
    let count = |value: &Option<Literal>| values.iter().filter(|other| *other == value).count();
    let most = values.iter().map(count).max()?;
    if count(&None) == most { None } else { *values.iter().find(|value| count(value) == most)? }
}

/// The kinds that do not use a key are listed where they are at most this fraction, 1/[`FEW`], of those that use it.
const FEW: usize = 4;

/// The kinds that use the key, and its meaning for each.
fn meaning(section: &Section, users: &[(&str, &Key)]) -> String {
    let kinds: Vec<&str> = users.iter().map(|(kind, _)| *kind).collect();
    let others: Vec<&str> = section.kinds.iter().map(|kind| kind.name).filter(|kind| !kinds.contains(kind)).collect();
    let only = match others.len() {
        0 => String::new(),
        // The shorter list of two is easier to read.
        few if FEW * few <= kinds.len() => format!("Not {}. ", list(&others)),
        _ => format!("Only {}. ", list(&kinds)),
    };
    only + &by_kind(users.iter().map(|(kind, key)| (*kind, cell(key.doc))), " ")
}

fn code(literal: Literal) -> String {
    format!("`{}`", literal.to_value())
}

/// The text, escaped for a Markdown table. Pages of the manual, `docs/NAME.md`, become links.
fn cell(text: &str) -> String {
    let mut parts = text.split("docs/");
    let mut linked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(".md") {
            Some((page, rest)) if page.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') => {
                linked += &format!("[docs/{page}.md]({page}.md){rest}");
            }
            _ => linked += &format!("docs/{part}"),
        }
    }
    linked.replace('|', "\\|")
}
