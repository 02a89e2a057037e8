//! Faults that are resolved by the thread that has them, in a handler of SIGBUS: nobody else has to be woken.
//!
//! The kernel raises the signal in place of a message to the thread that waits for faults. The handler runs on the stack of
//! its thread, in the middle of the instruction that accesses mapped memory, and does what a call does: it takes locks, and
//! allocates. It may: rackmem itself uses the engine's view, so no thread is interrupted in rackmem's own code, nor in the
//! allocator, if that has nothing of its own in mapped memory. A handler of a signal that comes at any time is another matter:
//! it must not access mapped memory in a process that resolves faults so.
//!
//! Unsafe code: a signal handler, which reads what the kernel says of its signal.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use super::signals::Handled;

/// What is done about a fault at an address, of an access that writes or only reads.
pub(super) type Resolve = dyn Fn(usize, bool) + Send + Sync;

static HANDLED: Handled = Handled::new(libc::SIGBUS);
/// Whose addresses are whose. Nobody has a fault who changes it.
static RESOLVERS: RwLock<Vec<(Range<usize>, Arc<Resolve>)>> = RwLock::new(Vec::new());

/// Whether a handler finds out if an access writes.
pub(super) const KNOWN_HERE: bool = cfg!(target_arch = "x86_64");

/// From now on faults of these addresses are resolved so.
pub(super) fn begin(range: Range<usize>, resolve: Arc<Resolve>) {
    // On the thread's own stack: an alternate one may be as small as 2 KiB.
    HANDLED.by(on_signal, 0);
    RESOLVERS.write().unwrap_or_else(PoisonError::into_inner).push((range, resolve));
}

/// No fault comes from there any more.
pub(super) fn end(start: usize) {
    RESOLVERS.write().unwrap_or_else(PoisonError::into_inner).retain(|(range, _)| range.start != start);
}

fn resolver_of(address: usize) -> Option<Arc<Resolve>> {
    let all = RESOLVERS.read().unwrap_or_else(PoisonError::into_inner);
    all.iter().find(|(range, _)| range.contains(&address)).map(|(_, resolve)| Arc::clone(resolve))
}

extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO the signal's information.
    let (address, code) = unsafe { ((*info).si_addr() as usize, (*info).si_code) };
    // Not a page that the machine has lost.
    match resolver_of(address).filter(|_| code == libc::BUS_ADRERR) {
        Some(resolve) => {
            // SAFETY: every thread has an `errno`, at one address for as long as it lives.
            let errno = unsafe { libc::__errno_location() };
            // SAFETY: as above; the interrupted code may look at it next.
            let before = unsafe { *errno };
            resolve(address, writes(context));
            // SAFETY: as above.
            unsafe { *errno = before };
        }
        None => HANDLED.pass_on(signal, info, context),
    }
}

/// Whether the access writes, as the processor has said.
#[cfg(target_arch = "x86_64")]
fn writes(context: *mut libc::c_void) -> bool {
    const WRITES: i64 = 1 << 1;
    // SAFETY: the kernel gives a handler with SA_SIGINFO the state of its thread.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    registers[libc::REG_ERR as usize] & WRITES != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn writes(_: *mut libc::c_void) -> bool {
    unreachable!("refused where that is not known")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};

    /// The test starts itself again: whoever gets such a signal ends.
    #[test]
    fn a_signal_for_other_addresses_ends_the_process_as_ever() {
        const HERE: &str = "RACKMEM_TEST_SIGBUS";
        if std::env::var_os(HERE).is_some() {
            begin(0..4096, Arc::new(|_, _| ()));
            let file = rustix::fs::memfd_create("empty", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
            let (rights, shared) = (rustix::mm::ProtFlags::READ, rustix::mm::MapFlags::SHARED);
            // SAFETY: the kernel chooses the address. The file has no byte there, which is the point.
            unsafe {
                let at = rustix::mm::mmap(std::ptr::null_mut(), 4096, rights, shared, &file, 0).unwrap();
                at.cast::<u8>().read_volatile();
            }
            unreachable!("the file is empty");
        }
        let test = "memory::pages::in_place::tests::a_signal_for_other_addresses_ends_the_process_as_ever";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(HERE, "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // One that comes back to the access for ever is ended by its test's parent.
        let ended = (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            child.try_wait().unwrap()
        });
        let _ = child.kill();
        assert_eq!(ended.expect("it ends").signal(), Some(libc::SIGBUS));
    }
}
