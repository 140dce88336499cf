//! Checks that `cargo run`, `cargo test` and the Python package share what they compile.
//!
//! Cargo compiles a crate again where a development dependency, or the Python package, asks for more of its features. For a
//! crate below Burn that is every crate above it again, for many minutes.

use std::collections::BTreeSet;

use crate::{Failure, cargo, output};

/// Checks that every dependency of the command has the same features with the dependencies of the tests as without, and the
/// same again, as fedstein itself, in the Python package with its feature `full`.
///
/// # Errors
/// A crate has other features, or `cargo tree` fails.
pub fn check(_: &[String]) -> Result<(), Failure> {
    let alone = crates(&["--package", "fedstein", "--edges", "normal,build"])?;
    let others = [
        ("`cargo test`", crates(&["--workspace", "--edges", "normal,build,dev"])?),
        (
            "the Python package",
            crates(&["--package", "fedstein-python", "--features", "full", "--edges", "normal,build"])?,
        ),
    ];
    for (user, crates) in others {
        let differ: Vec<&str> = alone.difference(&crates).map(String::as_str).collect();
        if !differ.is_empty() {
            return Err(format!(
                "these crates are compiled twice, for `cargo run` and for {user}; name them in [dependencies] with the features that \
                 it asks for, as `num-complex` is:\n  {}",
                differ.join("\n  ")
            ));
        }
    }
    println!("features: {} crates are the same for `cargo run`, `cargo test` and the Python package", alone.len());
    Ok(())
}

/// The crates of a tree, each as its name, version and features.
fn crates(words: &[&str]) -> Result<BTreeSet<String>, Failure> {
    let mut command = cargo(&["tree", "--locked", "--prefix", "none", "--format", "{p} {f}"]);
    let text = output(command.args(words))?;
    Ok(text.lines().map(|line| line.replace(" (proc-macro)", "").replace(" (*)", "").trim().to_owned()).collect())
}
