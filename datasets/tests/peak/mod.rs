//! A counting allocator, for tests that bound the memory of a reader by a multiple of the file's size: it measures by
//! how much the bytes that the calling thread holds increase while a function runs.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator with a counter per thread.
pub struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    /// Bytes this thread has allocated, less those it has freed; below 0 where it freed what others had allocated.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// The maximum of `HELD` since [`peak`] began.
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // `try_with` fails only while the thread ends, when nothing is measured any more.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

// Safety: every call is passed to `System` unchanged, which keeps the contract of `GlobalAlloc`. The counting
// accesses two constant-initialised thread-local cells without a destructor, so it neither allocates nor unwinds, and
// a layout's size fits an `isize` by `Layout`'s own invariant.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // The old and the new block exist at once while the bytes are copied.
        count(new_size as isize);
        count(-(layout.size() as isize));
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The result of `work`, and the largest number of bytes that this thread held during it beyond those it held before.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST.set(before);
    let result = work();
    (result, MOST.get().saturating_sub(before).max(0) as usize)
}
