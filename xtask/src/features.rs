//! Checks that `cargo run` and `cargo test` share one compiled Burn.
//!
//! Cargo compiles a crate again where a development dependency asks for more of its features. For a crate below Burn that
//! is every crate above it again, for many minutes.

use std::collections::BTreeSet;

use crate::{Failure, cargo, output};

/// Checks that every dependency of the command has the same features with the dependencies of the tests as without.
///
/// # Errors
/// A crate has more features in the tests, or `cargo tree` fails.
pub fn check(_: &[String]) -> Result<(), Failure> {
    let alone = crates(&["--package", "fedstein", "--edges", "normal,build"])?;
    let tested = crates(&["--workspace", "--edges", "normal,build,dev"])?;
    let differ: Vec<&str> = alone.difference(&tested).map(String::as_str).collect();
    if !differ.is_empty() {
        return Err(format!(
            "these crates are compiled twice, for `cargo run` and for `cargo test`; name them in [dependencies] with the \
             features that the tests ask for, as `ciborium` is:\n  {}",
            differ.join("\n  ")
        ));
    }
    println!("features: {} crates are the same for `cargo run` and `cargo test`", alone.len());
    Ok(())
}

/// The crates of a tree, each as its name, version and features.
fn crates(words: &[&str]) -> Result<BTreeSet<String>, Failure> {
    let mut command = cargo(&["tree", "--locked", "--prefix", "none", "--format", "{p} {f}"]);
    let text = output(command.args(words))?;
    Ok(text.lines().map(|line| line.replace(" (proc-macro)", "").replace(" (*)", "").trim().to_owned()).collect())
}
