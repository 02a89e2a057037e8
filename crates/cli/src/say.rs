//! Standard error: what the command says to the person who typed it, beside its result.
//!
//! What must always hold: that nobody reads it any more (`rackmem ... 2>&1 | head`) ends nothing, and leaves nothing behind.

/// Says a line on standard error.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // Whoever does not listen misses it.
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

/// The same without an end of the line.
#[macro_export]
macro_rules! say_on_this_line {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($text)*);
    }};
}
