//! Checks what `cargo package` would publish: licences and a README in each crate, and no files without use for a user.

use crate::{Failure, cargo, output, root};
use std::path::Path;

/// Files that every package needs.
const NEEDED: [&str; 4] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Folders and files that a package may have, beside those of [`NEEDED`].
const ALLOWED: [&str; 10] = [
    ".cargo_vcs_info.json",
    "Cargo.lock",
    "Cargo.toml.orig",
    "CHANGELOG.md",
    "benches/",
    "configs/",
    "data/",
    "examples/",
    "src/",
    "tests/",
];

/// Compares the files of every published crate with [`NEEDED`] and [`ALLOWED`].
///
/// # Errors
/// A package lacks a file or has one that is not allowed, or cargo fails.
pub fn check(_: &[String]) -> Result<(), Failure> {
    for name in members()? {
        let listed = output(&mut cargo(&["package", "--list", "--allow-dirty", "--package", &name]))?;
        let files: Vec<&str> = listed.lines().collect();
        let problems = problems(&files);
        if !problems.is_empty() {
            return Err(format!("the package {name}:\n  {}", problems.join("\n  ")));
        }
        println!("package {name}: {} files", files.len());
    }
    Ok(())
}

/// The workspace's crates that are published.
fn members() -> Result<Vec<String>, Failure> {
    let tree = output(&mut cargo(&["tree", "--workspace", "--depth", "0", "--prefix", "none", "--format", "{p}"]))?;
    let mut names = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        // `name v0.1.0 (/path/of/the/crate)`
        let (Some(name), Some((_, path))) = (line.split(' ').next(), line.split_once('(')) else {
            return Err(format!("`cargo tree` says `{line}`"));
        };
        let manifest = Path::new(path.trim_end_matches(')')).join("Cargo.toml");
        let text = std::fs::read_to_string(root().join(&manifest))
            .map_err(|error| format!("{}: {error}", manifest.display()))?;
        if !text.lines().any(|line| line.trim() == "publish = false") {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// One line for each file that a package lacks, and for each that it must not have.
fn problems(files: &[&str]) -> Vec<String> {
    let lacking = NEEDED.iter().filter(|needed| !files.contains(needed)).map(|needed| format!("{needed} is missing"));
    let known = |file: &str| {
        NEEDED.contains(&file)
            || ALLOWED.iter().any(|one| file == *one || (one.ends_with('/') && file.starts_with(one)))
    };
    let more = files.iter().filter(|file| !known(file)).map(|file| format!("{file} has no place in it"));
    lacking.chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_superfluous_files_are_named() {
        let whole = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"];
        assert!(problems(&whole).is_empty());
        assert_eq!(problems(&whole[1..]), ["Cargo.toml is missing"]);
        let more = [&whole[..], &["docs/results.md"]].concat();
        assert_eq!(problems(&more), ["docs/results.md has no place in it"]);
    }
}
