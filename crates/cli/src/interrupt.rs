//! Ctrl-C (and a polite kill) as a flag that long runs look at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::fault::Fault;

/// True once somebody asked the run to stop.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for SIGINT and SIGTERM from now on. The first one sets the flag; a second one ends the process
    /// at once, for whoever cannot wait for the last operation.
    pub fn listen() -> Result<Self, Fault> {
        let this = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal must find the flag still clear when it asks whether to end.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&this.0))
                .and_then(|_| flag::register(signal, Arc::clone(&this.0)))
                .map_err(|error| Fault::failed(format_args!("cannot listen for Ctrl-C: {error}")))?;
        }
        Ok(this)
    }

    /// Whether to stop.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, for whoever looks at it without knowing us.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Asks the run to stop, as a signal would.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
