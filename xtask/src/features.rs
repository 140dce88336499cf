//! Checks that `cargo run`, `cargo test` and the Python package share one compiled Burn.
//!
//! Cargo compiles a crate again where a development dependency, or the Python package, asks for more of its features, or
//! for another optimisation. For a crate below Burn that is every crate above it again, for many minutes.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Failure, cargo, output, read};

/// The Python package's own workspace, with the backends that the root has by default.
const PYTHON: [&str; 6] =
    ["--manifest-path", "python/Cargo.toml", "--features", "ndarray,wgpu", "--edges", "normal,build"];

/// Checks that every dependency of the command has the same features with the dependencies of the tests as without, and
/// those below Burn the same in the Python package too, where they also have the same optimisation.
///
/// # Errors
/// A crate has other features or another optimisation, or `cargo tree` fails.
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
    let (burn, python) = (crates(&["--package", "burn", "--edges", "normal,build"])?, crates(&PYTHON)?);
    let differ: Vec<&str> = burn.difference(&python).map(String::as_str).collect();
    if !differ.is_empty() {
        return Err(format!(
            "these crates and Burn are compiled again for the Python package; name them in [dependencies] with the features that it \
             asks for, as `num-complex` is:\n  {}",
            differ.join("\n  ")
        ));
    }
    same_optimisation()?;
    let (all, shared) = (alone.len(), burn.len());
    println!(
        "features: {all} crates are the same for `cargo run` and `cargo test`, Burn's {shared} also for the Python package"
    );
    Ok(())
}

/// Checks that the Python package's workspace has the lines of the root's profile that are about its crates, and no others.
fn same_optimisation() -> Result<(), Failure> {
    let lock = read("python/Cargo.lock")?;
    let crates: BTreeSet<&str> =
        lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).collect();
    let (root, python) = (read("Cargo.toml")?, read("python/Cargo.toml")?);
    let (mut root, python) = (profile(&root), profile(&python));
    root.retain(|name, _| ["debug", "strip"].contains(name) || crates.contains(name));
    if root == python {
        return Ok(());
    }
    let listed =
        |of: &BTreeMap<&str, &str>| of.iter().map(|(name, value)| format!("\n  {name} = {value}")).collect::<String>();
    let (mut missing, mut more) = (root.clone(), python.clone());
    missing.retain(|name, value| python.get(name) != Some(value));
    more.retain(|name, value| root.get(name) != Some(value));
    Err(format!(
        "[profile.release] of python/Cargo.toml must be that of Cargo.toml for the crates of python/Cargo.lock; it \
         lacks{}\nand has{}",
        listed(&missing),
        listed(&more)
    ))
}

/// The lines of `[profile.release]` and `[profile.release.package]` of a manifest, as names and values.
fn profile(manifest: &str) -> BTreeMap<&str, &str> {
    let tables = ["[profile.release]", "[profile.release.package]"];
    let lines = manifest.lines().skip_while(|line| !tables.contains(line));
    let lines = lines.take_while(|line| !line.starts_with('[') || tables.contains(line));
    lines.filter_map(|line| line.split_once(" = ")).filter(|(name, _)| !name.starts_with('#')).collect()
}

/// The crates of a tree, each as its name, version and features.
fn crates(words: &[&str]) -> Result<BTreeSet<String>, Failure> {
    let mut command = cargo(&["tree", "--locked", "--prefix", "none", "--format", "{p} {f}"]);
    let text = output(command.args(words))?;
    Ok(text.lines().map(|line| line.replace(" (proc-macro)", "").replace(" (*)", "").trim().to_owned()).collect())
}
