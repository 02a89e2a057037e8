//! Handlers of signals that are for some addresses alone: those for others go to whoever had the signal before.
//!
//! Unsafe code: installing handlers, and calling others.
#![allow(unsafe_code)]

use std::sync::Once;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Release},
};

/// A handler that is told what the signal is about.
pub(super) type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// A signal of this process, and who had it before.
pub(super) struct Handled {
    signal: i32,
    once: Once,
    before: AtomicPtr<libc::sigaction>,
}

impl Handled {
    pub(super) const fn new(signal: i32) -> Self {
        Self { signal, once: Once::new(), before: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// From now on this one handles it, for good. Whoever takes the signal later has it.
    pub(super) fn by(&self, handler: Handler, flags: i32) {
        self.once.call_once(|| {
            // SAFETY: zero bytes are a `sigaction`: no flags, an empty mask.
            let (mut action, mut before): (libc::sigaction, libc::sigaction) =
                unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | flags;
            // SAFETY: asks for the handler in place, and writes it to a value that lives through the call.
            if unsafe { libc::sigaction(self.signal, std::ptr::null(), &raw mut before) } == 0 {
                self.before.store(Box::into_raw(Box::new(before)), Release);
                // SAFETY: whoever calls vouches for the handler. That it fails changes nothing.
                unsafe { libc::sigaction(self.signal, &raw const action, std::ptr::null_mut()) };
            }
        });
    }

    /// Lets whoever had the signal before handle it.
    pub(super) fn pass_on(&self, signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        let before = self.before.load(Acquire);
        // SAFETY: it was stored before this handler was installed, and is never freed.
        let Some(before) = (unsafe { before.as_ref() }) else { return default_action(signal) };
        if before.sa_sigaction == libc::SIG_DFL || before.sa_sigaction == libc::SIG_IGN {
            return default_action(signal);
        }
        // SAFETY: whoever had the signal before gave this address as a handler, of the kind that the flag says.
        unsafe {
            if before.sa_flags & libc::SA_SIGINFO != 0 {
                let handler: Handler = std::mem::transmute(before.sa_sigaction);
                handler(signal, info, context);
            } else {
                let handler: extern "C" fn(i32) = std::mem::transmute(before.sa_sigaction);
                handler(signal);
            }
        }
    }
}

/// From now on the signal does what it does without a handler.
pub(super) fn default_action(signal: i32) {
    // SAFETY: zero bytes are the default action.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, &raw const default, std::ptr::null_mut());
    }
}
