//! The workloads W1 to W8, as `fedstein bench` times them, with the time and the heap allocations of each unit.
//! Reported, not asserted; `docs/performance.md` has figures.
//!
//! `cargo bench --bench workloads` for all, `cargo bench --bench workloads -- W1 W3` for some; on the backend that
//! FEDSTEIN_BENCH_BACKEND names, else on flex.

#[path = "../src/allocator.rs"]
mod allocator;

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use fedstein::backend::{Precision, Session};
use fedstein::bench::{Bench, Ceilings, Settings, Workload, table};
use fedstein::error::RunError;

/// The system's allocator with a count of allocations. It is used only here: the product does not count.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed to the system's allocator unchanged; the counter allocates no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn measure(workloads: Vec<Workload>, backend: &str) -> Result<(), RunError> {
    let settings = Settings { allocations: Some(|| ALLOCATIONS.load(Ordering::Relaxed)), ..Settings::default() };
    let bench = Bench { session: Session::named(backend, Precision::F32)?, settings };
    print!("{}", table::heading(&bench));
    let ceilings = Ceilings::measure(&bench)?;
    print!("{}", table::columns(&ceilings));
    let mut lines = Vec::new();
    for workload in workloads {
        for line in workload.measure(&bench)? {
            print!("{}", table::row(&line, &ceilings));
            lines.push(line);
        }
    }
    print!("{}", table::explanation(&lines));
    Ok(())
}

fn main() -> ExitCode {
    allocator::keep_freed_blocks();
    // `cargo bench` adds the argument `--bench`.
    let words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let result = words.map(|word| word.parse()).collect::<Result<Vec<Workload>, String>>().and_then(|named| {
        let workloads = if named.is_empty() { Workload::ALL.to_vec() } else { named };
        let backend = std::env::var("FEDSTEIN_BENCH_BACKEND").unwrap_or_else(|_| "flex".into());
        measure(workloads, &backend).map_err(|error| error.to_string())
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}
