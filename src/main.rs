//! The `fedstein` command: parses the arguments, executes the command, and maps an error to an exit code.

#![deny(unsafe_code)]

mod allocator;
mod headless;

use std::io::Write;
use std::process::ExitCode;

use fedstein::command::{STACK, execute};

fn main() -> ExitCode {
    allocator::keep_freed_blocks();
    headless::choose_no_display();
    // The command itself runs on a worker thread: work that it splits then starts at once on this thread, where a call
    // from outside the pool would wake a worker and wait for it, in every step.
    let run = || fedstein::cli::run(std::env::args_os(), execute);
    match rayon::ThreadPoolBuilder::new().stack_size(STACK).build_global() {
        Ok(()) => rayon::scope(|_| run()),
        // Without a pool every parallel computation would panic.
        Err(error) => {
            // A failure is ignored: the stream may be closed.
            let _ = writeln!(
                std::io::stderr(),
                "error: cannot start the threads: {error}; is the number of processes limited? `RAYON_NUM_THREADS=1` starts one"
            );
            ExitCode::FAILURE
        }
    }
}
