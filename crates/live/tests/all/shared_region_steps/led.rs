//! A process one thread of which is led through its instructions, as a debugger does.
//!
//! Unsafe code: `ptrace`, and `waitpid` for a thread.
#![allow(unsafe_code)]

use std::process::Child;

/// The writing process, one thread of which is led.
pub(crate) struct Led {
    child: Child,
    thread: libc::pid_t,
}

impl Led {
    pub(crate) const fn new(child: Child) -> Self {
        Self { child, thread: 0 }
    }

    /// Stops a thread of the process. False if the system does not let us.
    pub(crate) fn take(&mut self, thread: libc::pid_t) -> bool {
        self.thread = thread;
        if !self.trace(libc::PTRACE_SEIZE) {
            self.thread = 0;
            return false;
        }
        assert!(self.trace(libc::PTRACE_INTERRUPT));
        assert!(self.is_stopped());
        true
    }

    fn trace(&self, request: libc::c_uint) -> bool {
        let nothing = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: these requests write nothing into this process.
        unsafe { libc::ptrace(request, self.thread, nothing, nothing) == 0 }
    }

    /// Waits until it has stopped, or is dead.
    fn is_stopped(&self) -> bool {
        let mut status = 0;
        // SAFETY: the status is a number that lives through the call.
        let of = unsafe { libc::waitpid(self.thread, &raw mut status, libc::__WALL) };
        of == self.thread && libc::WIFSTOPPED(status)
    }

    /// Lets it execute one instruction.
    pub(crate) fn step(&self) {
        assert!(self.trace(libc::PTRACE_SINGLESTEP));
        assert!(self.is_stopped());
    }
}

/// Kills the process, where the thread stands.
impl Drop for Led {
    fn drop(&mut self) {
        let _ = self.child.kill();
        // Whoever leads a thread has to see its end, too.
        while self.thread != 0 && self.is_stopped() {}
        let _ = self.child.wait();
    }
}
