//! What tells the threads of a test that it is over, whether it succeeds or not.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets a flag when it is dropped. Threads that work until the flag is set then end also if whoever was to set it panics: without that
/// their scope waits for ever, and nobody hears of the panic.
///
/// ```
/// use check::AtEnd;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// let over = AtomicBool::new(false);
/// let panicked = std::panic::catch_unwind(|| {
///     std::thread::scope(|scope| {
///         let _over = AtEnd(&over);
///         scope.spawn(|| while !over.load(Ordering::Relaxed) {});
///         panic!("this is heard of");
///     })
/// });
/// assert!(panicked.is_err());
/// ```
#[derive(Debug)]
pub struct AtEnd<'a>(pub &'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
