//! Checks the licences of all dependencies against the list of deny.toml, as cargo-deny would.

use crate::{Failure, cargo, output, read};

/// Checks that every package in the trees of dependencies has a licence that deny.toml allows. The trees are those of this
/// platform and of default features; `--all` takes every platform and feature, for which cargo may have to download
/// packages.
///
/// # Errors
/// A licence is not allowed or not a valid expression, or cargo fails.
pub fn check(words: &[String]) -> Result<(), Failure> {
    let list = List::parse(&read("deny.toml")?);
    let mut command = cargo(&["tree", "--locked", "--workspace", "--edges", "normal,build,dev", "--prefix", "none"]);
    command.args(["--format", "{p}\t{l}\t"]);
    if words.iter().any(|word| word == "--all") {
        command.args(["--all-features", "--target", "all"]);
    }
    let tree = output(&mut command)?;
    let mut packages: Vec<(&str, &str)> = tree
        .lines()
        .filter_map(|line| {
            let (package, rest) = line.split_once('\t')?;
            Some((package, rest.split('\t').next().unwrap_or("")))
        })
        .collect();
    packages.sort_unstable();
    packages.dedup();
    let refused: Vec<String> =
        packages.iter().filter_map(|(package, licence)| list.refusal(package, licence)).collect();
    if !refused.is_empty() {
        return Err(format!("licences that deny.toml does not allow:\n  {}", refused.join("\n  ")));
    }
    println!("licences: {} packages, all allowed by deny.toml", packages.len());
    Ok(())
}

/// The licences that deny.toml allows, and those it states for packages whose manifests name none.
#[derive(Debug, PartialEq)]
struct List {
    allowed: Vec<String>,
    /// Name of the package and its licence.
    stated: Vec<(String, String)>,
}

impl List {
    /// Reads the two parts of deny.toml that matter here: the array `allow`, and each `crate` with its `expression`.
    fn parse(text: &str) -> Self {
        let lines = || text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
        let quoted = |line: &str| line.split('"').nth(1).map(str::to_owned);
        let allowed = lines().skip_while(|line| *line != "allow = [").skip(1).take_while(|line| *line != "]");
        let value = |key: &str| -> Vec<String> {
            lines()
                .filter(|line| line.split('=').next().is_some_and(|word| word.trim() == key))
                .filter_map(quoted)
                .collect()
        };
        List {
            allowed: allowed.filter_map(quoted).collect(),
            stated: value("crate").into_iter().zip(value("expression")).collect(),
        }
    }

    /// What to say of a package `name v1.2.3` with a licence that is not allowed.
    fn refusal(&self, package: &str, licence: &str) -> Option<String> {
        let name = package.split(' ').next().unwrap_or(package);
        let licence = match self.stated.iter().find(|(stated, _)| stated == name) {
            Some((_, stated)) if licence.is_empty() => stated,
            _ => licence,
        };
        let is_allowed = |one: &str| self.allowed.iter().any(|allowed| allowed == one);
        match holds(licence, &is_allowed) {
            Ok(true) => None,
            Ok(false) => Some(format!("{package}: `{licence}`")),
            Err(problem) => Some(format!("{package}: `{licence}`: {problem}")),
        }
    }
}

/// Whether a licence expression (SPDX, with the older `/` for OR) can be met by allowed licences.
///
/// # Errors
/// An expression that ends too early or has words after its end.
fn holds(expression: &str, is_allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let value = any(&words, &mut at, is_allowed)?;
    if at == words.len() { Ok(value) } else { Err(format!("`{}` was not expected", words[at])) }
}

/// Alternatives, joined by OR.
fn any(words: &[&str], at: &mut usize, is_allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let mut value = all(words, at, is_allowed)?;
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        value |= all(words, at, is_allowed)?;
    }
    Ok(value)
}

/// Licences that all apply, joined by AND.
fn all(words: &[&str], at: &mut usize, is_allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let mut value = one(words, at, is_allowed)?;
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        value &= one(words, at, is_allowed)?;
    }
    Ok(value)
}

/// A licence, perhaps WITH an exception, or an expression in brackets.
fn one(words: &[&str], at: &mut usize, is_allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let word = *words.get(*at).ok_or("no licence is named")?;
    *at += 1;
    if word == "(" {
        let value = any(words, at, is_allowed)?;
        if words.get(*at) != Some(&")") {
            return Err("a bracket is not closed".into());
        }
        *at += 1;
        return Ok(value);
    }
    if words.get(*at) != Some(&"WITH") {
        return Ok(is_allowed(word));
    }
    let exception = words.get(*at + 1).ok_or("no exception is named")?;
    *at += 2;
    Ok(is_allowed(&format!("{word} WITH {exception}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(expression: &str) -> Result<bool, String> {
        holds(expression, &|licence| ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].contains(&licence))
    }

    #[test]
    fn one_alternative_is_enough_and_all_that_apply_are_needed() {
        assert_eq!(met("MIT"), Ok(true));
        assert_eq!(met("Apache-2.0 OR MIT"), Ok(true));
        assert_eq!(met("Unlicense/MIT"), Ok(true));
        assert_eq!(met("MIT AND GPL-3.0"), Ok(false));
        assert_eq!(met("GPL-3.0 OR MIT AND Zlib"), Ok(true));
        assert_eq!(met("(MIT OR Apache-2.0) AND Unicode-3.0"), Ok(false));
        assert_eq!(met("Apache-2.0 WITH LLVM-exception"), Ok(true));
        assert_eq!(met("Apache-2.0"), Ok(false));
    }

    #[test]
    fn an_expression_that_cannot_be_read_is_refused() {
        for text in ["", "MIT OR", "(MIT", "MIT Zlib", "MIT)", "Apache-2.0 WITH"] {
            assert!(met(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_list_is_what_deny_toml_allows_and_states() {
        let text = "[licenses]\nallow = [\n  \"MIT\", # many\n  \"Zlib\",\n]\n[[licenses.clarify]]\ncrate = \"a\"\nexpression = \"MIT\"\n";
        let list = List::parse(text);
        assert_eq!(list.allowed, ["MIT", "Zlib"]);
        assert_eq!(list.stated, [("a".to_owned(), "MIT".to_owned())]);
        assert_eq!(list.refusal("a v1.0.0", ""), None);
        assert_eq!(list.refusal("b v1.0.0", "GPL-3.0"), Some("b v1.0.0: `GPL-3.0`".into()));
        assert!(list.refusal("b v1.0.0", "").is_some());
    }
}
