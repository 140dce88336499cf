//! The tasks of CONTRIBUTING.md as commands; `cargo xtask help` lists them. There are no dependencies, so that it
//! compiles in a second.
#![forbid(unsafe_code)]

mod features;
mod licences;
mod packages;
mod toolchain;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What can go wrong, as a message for the terminal.
type Failure = String;

/// A task: its name, what it does in a sentence, the function that does it with the words that follow the name.
struct Task {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<(), Failure>,
}

const TASKS: [Task; 10] = [
    Task { name: "test", about: "all tests; words after it go to `cargo test`", run: test },
    Task {
        name: "data",
        about: "all tests on the real data in the directory that is named; missing data fail",
        run: data,
    },
    Task { name: "parity", about: "every backend against flex; a GPU that does not open fails", run: parity },
    Task { name: "style", about: "formatting and lints, without warnings", run: style },
    Task { name: "docs", about: "rewrites docs/configuration.md; rustdoc without warnings", run: docs },
    Task {
        name: "licences",
        about: "every dependency's licence is in deny.toml (--all: of every platform)",
        run: licences::check,
    },
    Task { name: "packages", about: "what `cargo package` would publish of each crate", run: packages::check },
    Task { name: "toolchain", about: "rust-toolchain.toml and `rust-version` name one version", run: toolchain::check },
    Task {
        name: "features",
        about: "`cargo run`, `cargo test` and the Python package compile their dependencies in one way, and once",
        run: features::check,
    },
    Task { name: "check", about: "style, toolchain, features, licences and packages in turn", run: check },
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(task) = words.first().and_then(|name| TASKS.iter().find(|task| task.name == name)) else {
        println!("cargo xtask TASK");
        TASKS.iter().for_each(|task| println!("  {:<10} {}", task.name, task.about));
        return ExitCode::from(if matches!(words.first().map(String::as_str), None | Some("help")) { 0 } else { 2 });
    };
    match (task.run)(&words[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn test(words: &[String]) -> Result<(), Failure> {
    succeed(cargo(&["test", "--release", "--workspace"]).args(words))
}

fn data(words: &[String]) -> Result<(), Failure> {
    let [directory] = words else { return Err("name the directory of the data sets: cargo xtask data DIR".into()) };
    let directory = std::path::absolute(directory).map_err(|error| format!("{directory}: {error}"))?;
    let mut command = cargo(&["test", "--release", "--workspace"]);
    succeed(command.env("FEDSTEIN_DATA", directory).env("FEDSTEIN_REQUIRE_DATA", "1"))
}

fn parity(words: &[String]) -> Result<(), Failure> {
    let mut command = cargo(&["test", "--release", "--test", "parity"]);
    succeed(command.args(words).env("FEDSTEIN_REQUIRE_WGPU", "1"))
}

fn style(_: &[String]) -> Result<(), Failure> {
    succeed(&mut cargo(&["fmt", "--all", "--check"]))?;
    succeed(&mut cargo(&["clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn docs(_: &[String]) -> Result<(), Failure> {
    // The page alone: other tests of the documentation may fail while one is written.
    let page = "the_reference_in_docs_is_that_of_the_table";
    succeed(cargo(&["test", "--release", "--test", "config", page]).env("UPDATE_DOCS", "1"))?;
    succeed(cargo(&["doc", "--release", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

fn check(_: &[String]) -> Result<(), Failure> {
    for task in [style, toolchain::check, features::check, licences::check, packages::check] {
        task(&[])?;
    }
    Ok(())
}

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_owned)
}

/// The text of a file below the root.
fn read(name: &str) -> Result<String, Failure> {
    std::fs::read_to_string(root().join(name)).map_err(|error| format!("{name}: {error}"))
}

/// Cargo with these words, at the root of the workspace.
fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words).current_dir(root());
    command
}

/// Runs a command that shows its output and must end well.
fn succeed(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// What a command prints on standard output; it must end well.
fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{command:?}: {error}"))
}
