//! The kernel's side of a page fault that user space resolves: userfaultfd(2).
//!
//! The numbers and structures are the kernel's ABI; a test compares them with the kernel that it runs on, as far as that says.
//! (The `userfaultfd` crate lacks continuing with write protection, and wants libclang.)
//!
//! Unsafe code: system calls that neither the standard library nor rustix has.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use super::Refused;

const API: u64 = 0xaa;
/// Needed: write protection, and faults on pages that the file has, for shared memory.
const WP_SHMEM: u64 = 1 << 12;
const MINOR_SHMEM: u64 = 1 << 10;
/// The exact address of a fault, for the last words of a process.
const EXACT_ADDRESS: u64 = 1 << 11;
/// Whoever moves a range with `mremap` waits until it has been heard of.
const EVENT_REMAP: u64 = 1 << 2;
/// Who has it.
const THREAD_ID: u64 = 1 << 8;
/// A signal to the thread that has a fault, in place of a message.
const SIGNALS: (u64, &str) = (1 << 7, "signals in place of messages (Linux 4.14)");
const NEEDED: [(u64, &str); 5] = [
    (EVENT_REMAP, "events of mremap (Linux 4.11)"),
    (THREAD_ID, "the thread of a fault (Linux 4.14)"),
    (WP_SHMEM, "write protection of shared memory (Linux 5.19)"),
    (MINOR_SHMEM, "minor faults of shared memory (Linux 5.14)"),
    (EXACT_ADDRESS, "exact addresses (Linux 5.18)"),
];

const USER_MODE_ONLY: i32 = 1;
const REGISTER_MISSING: u64 = 1 << 0;
const REGISTER_WP: u64 = 1 << 1;
const REGISTER_MINOR: u64 = 1 << 2;
const CONTINUE_WP: u64 = 1 << 1;
const WRITEPROTECT_WP: u64 = 1 << 0;

const EVENT_PAGEFAULT: u8 = 0x12;
const EVENT_MOVED: u8 = 0x14;
const FAULT_WRITE: u64 = 1 << 0;
const FAULT_WP: u64 = 1 << 1;
const FAULT_MINOR: u64 = 1 << 2;

/// So long nobody changes a mapping.
const LONGEST_CHANGE: Duration = Duration::from_secs(1);

/// `_IOC`: direction, size of the argument, type, number.
const fn request(direction: u64, size: usize, number: u64) -> u64 {
    direction << 30 | (size as u64) << 16 | API << 8 | number
}
const READS: u64 = 2;
const BOTH: u64 = 3;

const IOC_API: u64 = request(BOTH, size_of::<Api>(), 0x3f);
const IOC_REGISTER: u64 = request(BOTH, size_of::<Register>(), 0x00);
const IOC_WAKE: u64 = request(READS, size_of::<Range>(), 0x02);
const IOC_WRITEPROTECT: u64 = request(BOTH, size_of::<WriteProtect>(), 0x06);
const IOC_CONTINUE: u64 = request(BOTH, size_of::<Continue>(), 0x07);
/// Of `/dev/userfaultfd`.
const IOC_NEW: u64 = request(0, 0, 0x00);

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Range {
    start: u64,
    len: u64,
}

#[repr(C)]
struct Register {
    range: Range,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct WriteProtect {
    range: Range,
    mode: u64,
}

#[repr(C)]
struct Continue {
    range: Range,
    mode: u64,
    mapped: i64,
}

/// `struct uffd_msg`, of a page fault.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Message {
    event: u8,
    reserved: [u8; 7],
    flags: u64,
    address: u64,
    thread: u64,
}

/// A thread that waits until its access is allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fault {
    /// Where.
    pub(super) address: u64,
    /// It writes.
    pub(super) writes: bool,
    /// The file has no page there.
    pub(super) is_missing: bool,
    /// Its number.
    pub(super) thread: u32,
}

/// A userfaultfd.
pub(super) struct Userfault {
    fd: OwnedFd,
    /// Only faults of instructions are resolved: a system call on an absent page fails.
    pub(super) is_user_mode_only: bool,
}

impl Userfault {
    /// The most that this process may have: one that tells of faults, or that has threads get signals of theirs.
    pub(super) fn open(in_place: bool) -> Result<Self, Refused> {
        let (fd, is_user_mode_only) = match new(0) {
            Ok(fd) => (fd, false),
            Err(why) if why.raw_os_error() == Some(libc::ENOSYS) => return Err(Refused::NoUserfault),
            Err(_) => match of_device() {
                Ok(fd) => (fd, false),
                Err(_) => (new(USER_MODE_ONLY).map_err(Refused::NotPermitted)?, true),
            },
        };
        let this = Self { fd, is_user_mode_only };
        // Asked first what there is: a feature that is asked for and not there fails without saying which.
        let offered = this.api_of_another(is_user_mode_only)?;
        let needed = || NEEDED.iter().chain(in_place.then_some(&SIGNALS));
        if let Some((_, what)) = needed().find(|(feature, _)| offered & feature == 0) {
            return Err(Refused::Lacks(what));
        }
        let features = needed().map(|(feature, _)| feature).sum();
        this.call(IOC_API, &mut Api { api: API, features, ioctls: 0 }).map_err(Refused::Failed)?;
        Ok(this)
    }

    /// A descriptor tells what there is only once, before it is used.
    fn api_of_another(&self, is_user_mode_only: bool) -> Result<u64, Refused> {
        let another = if is_user_mode_only { new(USER_MODE_ONLY) } else { new(0).or_else(|_| of_device()) };
        let another = Self { fd: another.map_err(Refused::Failed)?, ..*self };
        let mut api = Api { api: API, features: 0, ioctls: 0 };
        another.call(IOC_API, &mut api).map_err(Refused::Failed)?;
        Ok(api.features)
    }

    /// From now on faults in this range come here. It must be a shared view of a memfd.
    pub(super) fn register(&self, start: u64, len: u64) -> io::Result<()> {
        let mode = REGISTER_MISSING | REGISTER_WP | REGISTER_MINOR;
        self.call(IOC_REGISTER, &mut Register { range: Range { start, len }, mode, ioctls: 0 })
    }

    /// Lets threads read a range of pages that the file has, and write if they may. False if a page of it was there already.
    pub(super) fn allow(&self, start: u64, len: u64, writes: bool) -> io::Result<bool> {
        let mode = if writes { 0 } else { CONTINUE_WP };
        let mut asked = Continue { range: Range { start, len }, mode, mapped: 0 };
        match self.again(|| self.call(IOC_CONTINUE, &mut asked)) {
            Err(why) if why.raw_os_error() == Some(libc::EEXIST) => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// Forbids threads to write in a range, or lets them again.
    pub(super) fn protect(&self, start: u64, len: u64, protect: bool) -> io::Result<()> {
        let mode = if protect { WRITEPROTECT_WP } else { 0 };
        self.again(|| self.call(IOC_WRITEPROTECT, &mut WriteProtect { range: Range { start, len }, mode }))
    }

    /// Has the threads try again that wait in this range.
    pub(super) fn wake(&self, start: u64, len: u64) -> io::Result<()> {
        self.call(IOC_WAKE, &mut Range { start, len })
    }

    /// Faults that have come, as many as there is space for. None if there are none. Returns where a range began that the program
    /// has moved.
    pub(super) fn read(&self, into: &mut Vec<Fault>) -> io::Result<Option<u64>> {
        let mut messages = [Message::default(); 16];
        // SAFETY: the kernel writes at most that many bytes, which are these messages; every bit pattern is one.
        let read =
            unsafe { libc::read(self.fd.as_raw_fd(), messages.as_mut_ptr().cast(), size_of_val(&messages)) };
        let Ok(read) = usize::try_from(read) else {
            let why = io::Error::last_os_error();
            let nothing = matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            return if nothing { Ok(None) } else { Err(why) };
        };
        let messages = &messages[..read / size_of::<Message>()];
        into.extend(messages.iter().filter(|message| message.event == EVENT_PAGEFAULT).map(|message| {
            Fault {
                address: message.address,
                writes: message.flags & (FAULT_WRITE | FAULT_WP) != 0,
                is_missing: message.flags & (FAULT_WP | FAULT_MINOR) == 0,
                thread: message.thread as u32,
            }
        }));
        // `from` lies where faults have their flags.
        Ok(messages.iter().find(|message| message.event == EVENT_MOVED).map(|message| message.flags))
    }

    /// The kernel says `EAGAIN` while somebody changes the process's mappings. If that does not end, the program moves pages of
    /// the rack, and whoever would hear of it waits for this.
    fn again(&self, mut attempt: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        let mut since = None;
        loop {
            match attempt() {
                Err(why)
                    if why.raw_os_error() == Some(libc::EAGAIN)
                        && since.get_or_insert_with(Instant::now).elapsed() < LONGEST_CHANGE =>
                {
                    std::thread::yield_now();
                }
                done => return done,
            }
        }
    }

    fn call<T>(&self, request: u64, argument: &mut T) -> io::Result<()> {
        // SAFETY: every request here is given the structure whose size is in its number, and the kernel writes no more. What it
        // does to memory is done to ranges that `views` has mapped for it.
        let done = unsafe { libc::ioctl(self.fd.as_raw_fd(), request, std::ptr::from_mut(argument)) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl AsFd for Userfault {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn new(flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes flags alone.
    let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | libc::O_NONBLOCK | flags) };
    owned(fd)
}

/// Whoever may open the device may have all that root may.
fn of_device() -> io::Result<OwnedFd> {
    let device = std::fs::File::open("/dev/userfaultfd")?;
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: this request takes flags in place of an address.
    let fd = unsafe { libc::ioctl(device.as_raw_fd(), IOC_NEW, flags) };
    owned(fd.into())
}

fn owned(fd: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(fd) {
        // SAFETY: the kernel has just made this descriptor for us.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_structures_are_those_of_the_kernel() {
        // As `linux/userfaultfd.h` makes them.
        assert_eq!([IOC_API, IOC_REGISTER, IOC_WAKE], [0xc018_aa3f, 0xc020_aa00, 0x8010_aa02]);
        assert_eq!([IOC_WRITEPROTECT, IOC_CONTINUE, IOC_NEW], [0xc018_aa06, 0xc020_aa07, 0xaa00]);
        assert_eq!(size_of::<Message>(), 32);
    }

    #[test]
    fn the_kernel_that_runs_here_knows_them_or_the_refusal_says_what_it_lacks() {
        match Userfault::open(false) {
            // A page that nobody registered: the request was understood, and refused for its range.
            Ok(fault) => {
                let why = fault.allow(4096, 4096, false).unwrap_err().raw_os_error();
                assert!(matches!(why, Some(libc::ENOENT | libc::EINVAL)), "{why:?}");
                assert_eq!(fault.protect(4096, 4096, true).unwrap_err().raw_os_error(), Some(libc::ENOENT));
                assert_eq!(fault.register(4097, 1).unwrap_err().raw_os_error(), Some(libc::EINVAL));
                let mut faults = Vec::new();
                fault.read(&mut faults).unwrap();
                assert!(faults.is_empty());
            }
            Err(refused) => assert!(refused.to_string().contains("userfaultfd"), "{refused}"),
        }
    }
}
