//! How a call reaches the rack.
//!
//! A [`NodeHandle`] is one thread's at a time. Threads of Python come and go, so handles lie in a pool: a call takes one and puts it
//! back.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Once, PoisonError, RwLock, Weak};
use std::time::Duration;

use pyo3::prelude::*;
use rackmem::{GlobalAddr, MapError, Mapping, NodeHandle, Processes, Rack, Region};

use crate::errors::failed;

/// Grows in every forked child.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Between two looks whether Ctrl-C ends a wait.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// This process is a forked child: what its parent has opened is not its.
#[pyfunction]
#[pyo3(name = "_forked")]
pub(crate) fn forked() {
    GENERATION.fetch_add(1, Relaxed);
}

/// A rack that is open, and whatever has to live as long.
pub(crate) struct Open {
    /// In order, and not twice.
    left: Once,
    /// By where they begin: a range is mapped once in a process.
    mappings: Mutex<HashMap<GlobalAddr, Weak<Mapping>>>,
    /// Boxed, as they are large, and each call moves one.
    #[allow(clippy::vec_box, reason = "what is moved is the handle")]
    handles: Mutex<Vec<Box<NodeHandle>>>,
    processes: Option<Processes>,
    pub(crate) rack: Rack,
}

/// A rack of this process, until it is left.
pub(crate) struct Shared {
    open: RwLock<Option<Arc<Open>>>,
    generation: u32,
}

impl Shared {
    pub(crate) fn new(rack: Rack, processes: Option<Processes>) -> Self {
        let open = Open {
            left: Once::new(),
            mappings: Mutex::default(),
            handles: Mutex::default(),
            processes,
            rack,
        };
        Self { open: RwLock::new(Some(Arc::new(open))), generation: GENERATION.load(Relaxed) }
    }

    /// What is open.
    pub(crate) fn open(&self) -> PyResult<Arc<Open>> {
        if self.generation != GENERATION.load(Relaxed) {
            return Err(failed(
                "this process was forked: a child has neither its parent's node nor its mappings; start it with `spawn`, and open the rack in it",
            ));
        }
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or_else(|| failed("the rack was left: open it again"))
    }

    /// Leaves it; what has memory of it mapped keeps it as long.
    pub(crate) fn close(&self) -> Option<Arc<Open>> {
        self.open.write().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Does something that waits for nothing.
    pub(crate) fn at_once<R>(&self, call: impl FnOnce(&mut NodeHandle) -> R) -> PyResult<R> {
        Ok(self.open()?.with_handle(call))
    }

    /// Does something on the rack, while other threads of the interpreter run.
    pub(crate) fn call<R: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut NodeHandle) -> R + Send,
    ) -> PyResult<R> {
        let open = self.open()?;
        Ok(py.detach(|| open.with_handle(call)))
    }

    /// Waits for something, some time in each call, until it is there or so much time has passed. Ctrl-C ends it.
    pub(crate) fn wait<R: Send>(
        &self,
        py: Python<'_>,
        timeout: Option<Duration>,
        mut attempt: impl FnMut(&mut NodeHandle, Duration) -> PyResult<Option<R>> + Send,
    ) -> PyResult<Option<R>> {
        let began = std::time::Instant::now();
        // The same handle each time: a thread that asks again waits since it asked first.
        let open = self.open()?;
        let mut handle = open.take();
        let found = loop {
            let left =
                timeout.map_or(LOOK_EVERY, |most| most.saturating_sub(began.elapsed()).min(LOOK_EVERY));
            match py.detach(|| attempt(&mut handle, left)) {
                Ok(None) if left < LOOK_EVERY => break Ok(None),
                Ok(None) => {}
                found => break found,
            }
            if let Err(interrupt) = py.check_signals() {
                break Err(interrupt);
            }
        };
        open.put_back(handle);
        found
    }
}

/// How long it may take until what only this node has cached is at home.
const LEAVING: Duration = Duration::from_secs(5);

impl Drop for Open {
    fn drop(&mut self) {
        match self.processes.take() {
            // The rack is over: they end first, while this process's node is there for what they send home.
            Some(processes) => drop(processes),
            None => self.leave(),
        }
    }
}

impl Open {
    pub(crate) fn with_handle<R>(&self, call: impl FnOnce(&mut NodeHandle) -> R) -> R {
        let mut handle = self.take();
        let done = call(&mut handle);
        self.put_back(handle);
        done
    }

    /// Leaves it, whoever may still have arrays.
    pub(crate) fn leave_now(&self) {
        if self.processes.is_none() {
            self.leave();
        }
    }

    fn leave(&self) {
        let mut arrived = true;
        self.left.call_once(|| arrived = self.rack.leave(LEAVING));
        if !arrived {
            // There may be no interpreter any more that could raise something.
            let _ = writeln!(
                std::io::stderr(),
                "rackmem: this process has left the rack, and not all that only it had cached has arrived: it is lost."
            );
        }
    }

    /// Maps a region, or shares it with who has mapped it.
    pub(crate) fn map(&self, region: &Region) -> Result<Arc<Mapping>, MapError> {
        let mut mappings = self.mappings.lock().unwrap_or_else(PoisonError::into_inner);
        let there = mappings.get(&region.addr()).and_then(Weak::upgrade);
        if let Some(there) = there.filter(|there| there.len() == region.len()) {
            return Ok(there);
        }
        let mapped = Arc::new(region.map(&self.rack)?);
        mappings.retain(|_, mapping| mapping.strong_count() > 0);
        mappings.insert(region.addr(), Arc::downgrade(&mapped));
        Ok(mapped)
    }

    fn take(&self) -> Box<NodeHandle> {
        let free = self.handles.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.unwrap_or_else(|| Box::new(self.rack.here()))
    }

    fn put_back(&self, handle: Box<NodeHandle>) {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
    }
}
