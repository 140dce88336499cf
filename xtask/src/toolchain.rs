//! Checks that the crates are tested with the oldest version of Rust that they promise to compile with.

use crate::{Failure, read};

/// Checks that `channel` of rust-toolchain.toml equals `rust-version` of the workspace.
///
/// # Errors
/// The versions differ, or a file does not state one.
pub fn check(_: &[String]) -> Result<(), Failure> {
    let value = |file: &str, key: &str| -> Result<String, Failure> {
        let text = read(file)?;
        let line = text.lines().find(|line| line.split('=').next().is_some_and(|word| word.trim() == key));
        let value = line.and_then(|line| line.split('"').nth(1));
        value.map(str::to_owned).ok_or_else(|| format!("{file}: no `{key} = \"...\"`"))
    };
    let (tested, promised) = (value("rust-toolchain.toml", "channel")?, value("Cargo.toml", "rust-version")?);
    if tested != promised && tested != format!("{promised}.0") {
        return Err(format!("rust-toolchain.toml has {tested}, Cargo.toml promises rust-version {promised}"));
    }
    println!("toolchain: {tested}, as Cargo.toml promises");
    Ok(())
}
