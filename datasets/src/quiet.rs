//! Panics that are expected, of code that is not ours: they become errors, and are not printed.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is an error of its caller, and not printed.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The result of a computation, or what its panic carries, which is not printed. It must not call itself.
pub fn quietly<T>(compute: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(compute));
    QUIET.set(false);
    result
}
