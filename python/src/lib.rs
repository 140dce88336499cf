//! The module `fedstein._fedstein`: fedstein's library for the Python package, which gives it the form that Python's users
//! know. Nothing is computed here that the library does not compute.
#![forbid(unsafe_code)]

mod arrays;
mod data;
mod errors;
mod finished;
mod interruptible;
mod kept;
mod pool;
mod scored;
mod scores;
mod sites;
mod train;
mod watched;

use std::path::PathBuf;
use std::process::ExitCode;

use pyo3::prelude::*;

/// Carries out the command line; `args` begins with the program's name. Returns the exit code.
///
/// # Errors
/// The pool is in another process, or the command panicked.
#[pyfunction]
fn main(py: Python<'_>, args: Vec<String>, program: Option<PathBuf>) -> PyResult<u8> {
    if let Some(program) = program {
        fedstein::command::set_program(program);
    }
    let code = pool::detached(py, || fedstein::cli::run(args, fedstein::command::execute))?;
    // An exit code has no accessor; these are all that the command has.
    Ok((0..=u8::MAX).find(|byte| ExitCode::from(*byte) == code).unwrap_or(1))
}

#[pymodule]
fn _fedstein(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("MOST_CLASSES", fedstein::datasets::columns::MOST_NUMBERED_CLASSES)?;
    module.add("ConfigError", py.get_type::<errors::ConfigError>())?;
    module.add("DataError", py.get_type::<errors::DataError>())?;
    module.add("RunFailed", py.get_type::<errors::RunFailed>())?;
    module.add("Interrupted", py.get_type::<errors::Interrupted>())?;
    module.add_class::<data::RawRows>()?;
    module.add_class::<data::Rows>()?;
    module.add_class::<finished::Finished>()?;
    module.add_class::<scored::Scored>()?;
    module.add_class::<train::Plan>()?;
    let ends = wrap_pyfunction!(interruptible::interpreter_ends, module)?;
    py.import("atexit")?.call_method1("register", (ends,))?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(train::length, module)?)?;
    module.add_function(wrap_pyfunction!(train::train, module)?)?;
    module.add_function(wrap_pyfunction!(sites::answer, module)?)?;
    module.add_function(wrap_pyfunction!(sites::ask_site, module)?)?;
    module.add_function(wrap_pyfunction!(sites::decline, module)?)?;
    module.add_function(wrap_pyfunction!(sites::serve, module)?)?;
    module.add_function(wrap_pyfunction!(sites::site_answers, module)?)?;
    module.add_function(wrap_pyfunction!(sites::split, module)?)?;
    module.add_function(wrap_pyfunction!(scored::takes_report, module)?)?;
    module.add_function(wrap_pyfunction!(scores::bins, module)?)?;
    module.add_function(wrap_pyfunction!(scores::brier, module)?)?;
    module.add_function(wrap_pyfunction!(scores::brier_parts, module)?)?;
    module.add_function(wrap_pyfunction!(scores::classwise_ece, module)?)?;
    module.add_function(wrap_pyfunction!(scores::coverage, module)?)?;
    module.add_function(wrap_pyfunction!(scores::crps, module)?)?;
    module.add_function(wrap_pyfunction!(scores::nll, module)?)?;
    module.add_function(wrap_pyfunction!(scores::pit, module)?)?;
    Ok(())
}
