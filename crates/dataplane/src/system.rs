//! bpf(2), and the memory of a map.
//!
//! The kernel reads and writes through addresses in what it is given: each of these functions owns what it points to
//! until the call is over.

use std::ffi::{CString, c_void};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr::NonNull;

use switch::ebpf::{Hook, Instruction};

use crate::ports::Device;

const MAP_CREATE: i32 = 0;
const PROGRAM_LOAD: i32 = 5;
const PIN: i32 = 6;
const GET: i32 = 7;
const TEST_RUN: i32 = 10;
const LINK_CREATE: i32 = 28;
const TYPES_LOAD: i32 = 18;

const ARRAY: u32 = 2;
const ARRAY_PER_PROCESSOR: u32 = 6;
const MAPPABLE: u32 = 1 << 10;
/// Where programs of the traffic control, and of drivers, are attached.
const INGRESS: u32 = 46;
const DRIVER: u32 = 37;

/// What the kernel is given, field by field: a block of bytes that is 0 where nothing is said.
struct Attributes([u8; 144]);

impl Attributes {
    const fn new() -> Self {
        Self([0; 144])
    }

    fn number(mut self, at: usize, value: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn address<T>(mut self, at: usize, of: *const T) -> Self {
        self.0[at..at + 8].copy_from_slice(&(of as u64).to_ne_bytes());
        self
    }

    fn get(&self, at: usize) -> u32 {
        u32::from_ne_bytes(std::array::from_fn(|byte| self.0[at + byte]))
    }

    fn call(&mut self, command: i32) -> io::Result<i64> {
        // SAFETY: the block is as long as is said, and what it points to is the caller's, who waits for the end of the call.
        let done = unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_mut_ptr(), self.0.len()) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(done) }
    }

    fn descriptor(&mut self, command: i32) -> io::Result<OwnedFd> {
        let descriptor = RawFd::try_from(self.call(command)?).expect("descriptors are small");
        // SAFETY: the kernel has just made it for this process, and nobody else knows of it.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }
}

/// A map with one entry of so many bytes, which this process can map.
pub(crate) fn state_map(bytes: usize) -> io::Result<OwnedFd> {
    map_of(ARRAY, bytes).number(16, MAPPABLE).descriptor(MAP_CREATE)
}

/// A map with one entry a processor.
pub(crate) fn scratch_map(bytes: usize) -> io::Result<OwnedFd> {
    map_of(ARRAY_PER_PROCESSOR, bytes).descriptor(MAP_CREATE)
}

/// A map with one entry, which is a lock.
pub(crate) fn lock_map() -> io::Result<OwnedFd> {
    let types = crate::types::of_lock();
    let mut said = Attributes::new().address(0, types.as_ptr()).number(16, types.len() as u32);
    let types = said.descriptor(TYPES_LOAD)?;
    let map = map_of(ARRAY, 4).number(48, types.as_raw_fd() as u32);
    map.number(52, crate::types::KEY).number(56, crate::types::ENTRY).descriptor(MAP_CREATE)
}

fn map_of(kind: u32, bytes: usize) -> Attributes {
    Attributes::new().number(0, kind).number(4, 4).number(8, bytes as u32).number(12, 1)
}

/// Loads a program for a hook. If the kernel refuses it, says what its verifier printed last.
pub(crate) fn load(hook: Hook, instructions: &[Instruction]) -> Result<OwnedFd, (io::Error, String)> {
    let bytes: Vec<u8> = instructions.iter().flat_map(|instruction| instruction.to_bytes()).collect();
    let licence = c"Dual MIT/GPL";
    /// Frames may be longer than a page.
    const FRAGMENTS: u32 = 1 << 5;
    let (kind, flags, attached) = match hook {
        Hook::TrafficControl => (3, 0, 0),
        Hook::Driver => (6, FRAGMENTS, DRIVER),
    };
    let said = |log: &[u8]| {
        let level = u32::from(!log.is_empty());
        Attributes::new()
            .number(0, kind)
            .number(4, instructions.len() as u32)
            .address(8, bytes.as_ptr())
            .address(16, licence.as_ptr())
            .number(24, level)
            .number(28, log.len() as u32)
            .address(32, if log.is_empty() { std::ptr::null() } else { log.as_ptr() })
            .number(44, flags)
            .number(68, attached)
    };
    said(&[]).descriptor(PROGRAM_LOAD).map_err(|error| {
        // Once more, for what the verifier says.
        let log = vec![0; 16 << 20];
        let _ = said(&log).descriptor(PROGRAM_LOAD);
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
        let text = String::from_utf8_lossy(&log[..end]);
        let last: Vec<&str> = text.lines().rev().take(12).collect();
        (error, last.into_iter().rev().collect::<Vec<_>>().join("\n"))
    })
}

/// Attaches a program to a device, where frames come in: a link, which goes with its descriptor.
pub(crate) fn attach(hook: Hook, program: &OwnedFd, device: u32) -> io::Result<OwnedFd> {
    /// The driver runs it itself; the kernel does not do so in its place.
    const NATIVE: u32 = 1 << 2;
    let (at, flags) = match hook {
        Hook::TrafficControl => (INGRESS, 0),
        Hook::Driver => (DRIVER, NATIVE),
    };
    let said = Attributes::new().number(0, program.as_raw_fd() as u32);
    said.number(4, device).number(8, at).number(12, flags).descriptor(LINK_CREATE)
}

/// Gives a map, a program or a link a name in a file system of bpf: it is there as long as the name is.
pub(crate) fn pin(what: &OwnedFd, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    Attributes::new().address(0, path.as_ptr()).number(8, what.as_raw_fd() as u32).call(PIN).map(drop)
}

/// What has that name.
pub(crate) fn pinned(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    Attributes::new().address(0, path.as_ptr()).descriptor(GET)
}

/// A device of this thread's network namespace, by its name.
pub(crate) fn device(name: &str) -> io::Result<Device> {
    let mut asked = named(name)?;
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    let mut ask = |what| {
        // SAFETY: the request is one of a device, and the structure is as long as the kernel expects.
        let done = unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut asked) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(asked.ifr_ifru) }
    };
    // SAFETY: this request fills this field.
    let index = unsafe { ask(libc::SIOCGIFINDEX)?.ifru_ifindex };
    // SAFETY: as above.
    let address = unsafe { ask(libc::SIOCGIFHWADDR)?.ifru_hwaddr.sa_data };
    let address = std::array::from_fn(|byte| address[byte].cast_unsigned());
    // SAFETY: as above.
    let mtu = unsafe { ask(libc::SIOCGIFMTU)?.ifru_mtu };
    Ok(Device { index: index.cast_unsigned(), address, mtu: usize::try_from(mtu).unwrap_or(0) })
}

/// A device merges packets that come in (GRO).
pub(crate) fn merge_received(name: &str) -> io::Result<()> {
    const SET_MERGE: u32 = 0x2c;
    ask_ethernet(name, &mut [SET_MERGE, 1])
}

/// What drives a device.
pub(crate) fn driver_of(name: &str) -> io::Result<String> {
    const GET_DRIVER: u32 = 3;
    /// Of what is told: behind the command, a name of 32 bytes.
    const WORDS: usize = 49;
    let mut told = [0; WORDS];
    told[0] = GET_DRIVER;
    ask_ethernet(name, &mut told)?;
    let bytes: Vec<u8> = told[1..9].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

/// Asks a device's driver; the first word says what, and all of them are as many as that takes.
fn ask_ethernet(name: &str, words: &mut [u32]) -> io::Result<()> {
    const ETHERNET: libc::Ioctl = 0x8946;
    let mut asked = named(name)?;
    asked.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: the request is one of a device; what it points to is as long as its command says, and outlives the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), ETHERNET, &raw mut asked) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A socket for questions to the kernel's families.
pub(crate) fn generic_netlink() -> io::Result<std::fs::File> {
    let (kind, family) = (libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_GENERIC);
    // SAFETY: no memory is involved.
    let descriptor = unsafe { libc::socket(libc::AF_NETLINK, kind, family) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it for this process, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }.into())
}

/// A request about a device.
fn named(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: plain numbers, for which 0 is a value.
    let mut asked: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= asked.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no device has such a name"));
    }
    for (to, byte) in asked.ifr_name.iter_mut().zip(name.bytes()) {
        *to = byte.cast_signed();
    }
    Ok(asked)
}

/// A new network namespace, which is there as long as somebody has it.
pub(crate) fn new_namespace() -> io::Result<OwnedFd> {
    let make = || {
        // SAFETY: only this thread, which ends soon, leaves the network that it was in; it shares nothing else less.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
            return Err(io::Error::last_os_error());
        }
        std::fs::File::open("/proc/thread-self/ns/net").map(OwnedFd::from)
    };
    std::thread::scope(|scope| scope.spawn(make).join().expect("it does not panic"))
}

/// This thread is in that namespace from now on.
pub(crate) fn enter_namespace(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open; which network a thread is in is no matter of memory.
    let done = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What came of a test run.
pub(crate) struct Ran {
    pub(crate) verdict: u32,
    /// The average, in nanoseconds.
    pub(crate) nanoseconds: u32,
}

/// Runs a program on a frame, so many times.
pub(crate) fn run(program: &OwnedFd, frame: &[u8], times: u32) -> io::Result<Ran> {
    let mut said = Attributes::new()
        .number(0, program.as_raw_fd() as u32)
        .number(8, frame.len() as u32)
        .address(16, frame.as_ptr())
        .number(32, times);
    said.call(TEST_RUN)?;
    Ok(Ran { verdict: said.get(4), nanoseconds: said.get(36) })
}

/// The entry of a map, as memory of this process. The kernel's programs write it at any time, so it is read and written
/// by copies only.
pub(crate) struct Shared {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: nothing but copies goes in and out, and nothing of it belongs to a thread.
unsafe impl Send for Shared {}

impl Shared {
    pub(crate) fn map(map: &OwnedFd, bytes: usize) -> io::Result<Self> {
        let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new range, which nothing else in this process is in.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, kind, map.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: NonNull::new(at.cast()).expect("the kernel maps nothing at 0"), bytes })
    }

    /// All of it.
    pub(crate) fn read(&self, to: &mut Vec<u8>) {
        to.resize(self.bytes, 0);
        // SAFETY: both are so long, and `to` is ours alone.
        unsafe { std::ptr::copy_nonoverlapping(self.start.as_ptr(), to.as_mut_ptr(), self.bytes) };
    }

    /// 8 bytes of it.
    pub(crate) fn word(&self, at: usize) -> u64 {
        assert!(at + 8 <= self.bytes && at.is_multiple_of(8));
        // SAFETY: just checked; the kernel's programs do not write what is read so.
        u64::from_le(unsafe { self.start.as_ptr().add(at).cast::<u64>().read_volatile() })
    }

    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.bytes, "{} bytes at {at} of {}", bytes.len(), self.bytes);
        // SAFETY: just checked.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr().add(at), bytes.len()) };
    }

    pub(crate) fn clear(&mut self, from: usize) {
        assert!(from <= self.bytes);
        // SAFETY: within the range.
        unsafe { std::ptr::write_bytes(self.start.as_ptr().add(from), 0, self.bytes - from) };
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nobody has a reference into it.
        unsafe { libc::munmap(self.start.as_ptr().cast::<c_void>(), self.bytes) };
    }
}
