//! Names: what has one is found by every program of the rack that knows it, in whatever language.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};

use rackmem::{ByteValue, Chains, Discipline, LockedRegions, NameMode, Nameable as _, NamedInfo, NamedSpec};

use crate::chains::{self, RackmemChains, RackmemChainsConfig};
use crate::handles::{Turn, with_thread};
use crate::objects::{self, RackmemObjects};
use crate::pointer::{To, bytes, shared, text};
use crate::rack::RackmemThread;
use crate::regions;
use crate::rwlock::{self, RackmemRwlock};
use crate::status::{Failure, RackmemStatus};
use crate::value::{self, RackmemValue};
use crate::words::{self, RackmemWords};

/// What is to be done with a name.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RackmemNameMode {
    /// Opens what is there: if nothing is, `RACKMEM_NOT_FOUND`.
    Open = 1,
    /// Makes something new: if something is there, `RACKMEM_EXISTS`.
    Create = 2,
    /// Opens what is there, or makes it, in one step: of all who do so at once one makes it, and all others open that.
    OpenOrCreate = 3,
    /// The same, also if what was there is lost: that is made anew. Handles of what was lost stay lost.
    CreateAnew = 4,
}

/// What elements are: whoever opens a name has to say the same as its maker did. In Rust: `named(name).tag(tag, version)`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RackmemType {
    /// At most 64 bytes of UTF-8; null is none.
    pub tag: *const c_char,
    /// The version of their layout.
    pub version: u32,
}

/// What can have a name.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RackmemKind {
    /// A lock and its data.
    Rwlock = 1,
    /// A value.
    Value = 2,
    /// Words.
    Words = 3,
    /// Objects.
    Objects = 4,
    /// A store of chains.
    Chains = 5,
}

/// A name, and what it names.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RackmemNamed {
    /// The name: it ends with a zero.
    pub name: [c_char; 256],
    /// What the elements are: it ends with a zero.
    pub tag: [c_char; 65],
    /// The version of their layout.
    pub version: u32,
    /// What it is.
    pub kind: RackmemKind,
    /// Bytes of each element; of chains, for what is stored.
    pub len: u64,
    /// How many elements: of words and objects.
    pub count: u64,
    /// Where it is.
    pub address: u64,
    /// Which of all that were ever made under this name: later ones have larger numbers.
    pub making: u64,
    /// How often it has been opened.
    pub opened: u64,
    /// The node on which it was made.
    pub maker: u16,
    /// The node that keeps the name, and what it names: with it both are lost. With copies, the memory that outlives nodes: a number that no
    /// node has; of chains, the first node of the store.
    pub home: u16,
    /// How many nodes have it, as long as all are up; 1: it dies with its node.
    pub copies: u16,
}

/// A name as C says it, and what is to be done with it.
#[derive(Clone, Copy)]
struct Asked {
    name: *const c_char,
    mode: i32,
    of: *const RackmemType,
}

fn mode_of(number: i32) -> Result<NameMode, Failure> {
    const ALL: [(RackmemNameMode, NameMode); 4] = [
        (RackmemNameMode::Open, NameMode::Open),
        (RackmemNameMode::Create, NameMode::Create),
        (RackmemNameMode::OpenOrCreate, NameMode::OpenOr),
        (RackmemNameMode::CreateAnew, NameMode::Anew),
    ];
    let found = ALL.iter().find(|(each, _)| *each as i32 == number);
    found.map(|(_, mode)| *mode).ok_or_else(|| {
        let text =
            format_args!("{number} is no rackmem_name_mode: pass RACKMEM_OPEN_OR_CREATE, or another one");
        Failure::new(RackmemStatus::InvalidArgument, text)
    })
}

/// What has the name.
///
/// # Safety
/// Texts end with a zero, and a type that is not null is there.
unsafe fn find(turn: &mut Turn, asked: Asked, spec: NamedSpec, begin: &[u8]) -> Result<NamedInfo, Failure> {
    // SAFETY: the caller promises it.
    let name = unsafe { text(asked.name, "name") }?;
    let mode = mode_of(asked.mode)?;
    // What Rust calls the words that C has.
    let default = if spec.discipline == Discipline::Word { "u64" } else { "" };
    // SAFETY: the caller promises it.
    let (tag, version) = match unsafe { asked.of.as_ref() } {
        None => (default, 0),
        Some(of) if of.tag.is_null() => (default, of.version),
        // SAFETY: the caller promises it.
        Some(of) => (unsafe { text(of.tag, "the type's tag") }?, of.version),
    };
    let spec = NamedSpec { tag: tag.to_owned(), version, ..spec };
    Ok(turn.handle().name_as(name, mode, spec, begin.to_vec())?)
}

/// What something new begins with: nothing is zeroes.
///
/// # Safety
/// It is null, or `len` bytes are there for as long as `'a`.
unsafe fn beginning<'a>(initial: *const c_void, len: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller promises it.
    if initial.is_null() { Ok(&[]) } else { unsafe { bytes(initial, len, "initial") } }
}

/// A lock by its name. Something new guards `len` bytes that begin as those at `initial` (null: zeroes). `of` is what they are (null: not
/// said). A `Locked<T>` of a Rust program is the same lock, if both say the same type. The OS thread that uses `thread`.
///
/// # Safety
/// `name` ends with a zero; `of` is null, or there; `initial` is null, or `len` bytes are there; `lock` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_named(
    thread: RackmemThread,
    name: *const c_char,
    mode: i32,
    of: *const RackmemType,
    len: usize,
    initial: *const c_void,
    lock: *mut RackmemRwlock,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises both.
        let (to, initial) =
            unsafe { (To::cleared(lock, "lock", rwlock::NO_LOCK)?, beginning(initial, len)?) };
        let spec = NamedSpec::untyped(Discipline::Locked, len as u64, 1);
        // SAFETY: the caller promises it.
        let info = unsafe { find(turn, Asked { name, mode, of }, spec, initial) }?;
        let bytes = turn.handle().locked_bytes(info.addr, rwlock::whole(len)?)?;
        rwlock::open(turn, to, bytes, len, Some(info.making))
    })
}

/// A lock over regions by its name. Something new has none, and room for `room` bytes; to open, 0 is whatever is there. It is the same as a
/// `LockedRegions` of a Rust program. The OS thread that uses `thread`.
///
/// # Safety
/// `name` ends with a zero; `lock` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_named_regions(
    thread: RackmemThread,
    name: *const c_char,
    mode: i32,
    room: usize,
    lock: *mut RackmemRwlock,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises both.
        let (to, name) = unsafe { (To::cleared(lock, "lock", rwlock::NO_LOCK)?, text(name, "name")?) };
        let is_any = room == 0 && mode == RackmemNameMode::Open as i32;
        let spec = LockedRegions::spec((!is_any).then_some(&room));
        let info = turn.handle().name_as(name, mode_of(mode)?, spec, LockedRegions::contents(&room))?;
        let found = LockedRegions::found(turn.handle(), &info)?;
        regions::open_regions(turn, to, &found, Some(info.making))
    })
}

/// A value by its name. Something new has `len` bytes that begin as those at `initial` (null: zeroes); with 8 bytes in front of it, it
/// fits a block. `of` is what they are (null: not said). It is the same as a `Value<T>` of a Rust program. The OS thread that uses
/// `thread`.
///
/// # Safety
/// As `rackmem_rwlock_named`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_value_named(
    thread: RackmemThread,
    name: *const c_char,
    mode: i32,
    of: *const RackmemType,
    len: usize,
    initial: *const c_void,
    value: *mut RackmemValue,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises both.
        let (to, initial) =
            unsafe { (To::cleared(value, "value", value::NO_VALUE)?, beginning(initial, len)?) };
        let spec = NamedSpec::untyped(Discipline::Coherent, len as u64, 1);
        // SAFETY: the caller promises it.
        let info = unsafe { find(turn, Asked { name, mode, of }, spec, initial) }?;
        value::open(turn, to, ByteValue::found(&info))
    })
}

/// Words by their name. Something new is `count` words of 64 bits, zeroes; to open, 0 is whatever is there. `of` null is `Words<u64>` of a
/// Rust program. The OS thread that uses `thread`.
///
/// # Safety
/// `name` ends with a zero; `of` is null, or there; `words` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_words_named(
    thread: RackmemThread,
    name: *const c_char,
    mode: i32,
    of: *const RackmemType,
    count: usize,
    words: *mut RackmemWords,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(words, "words", words::NO_WORDS) }?;
        let spec = NamedSpec::untyped(Discipline::Word, 8, count as u64);
        // SAFETY: the caller promises it.
        let info = unsafe { find(turn, Asked { name, mode, of }, spec, &[]) }?;
        let found = turn.handle().words_at(info.addr)?;
        words::open(turn, to, found)
    })
}

/// Objects by their name. Something new is `count` objects of `len` bytes of zeroes; to open, 0 is whatever is there. The OS thread that
/// uses `thread`.
///
/// # Safety
/// `name` ends with a zero; `of` is null, or there; `objects` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_objects_named(
    thread: RackmemThread,
    name: *const c_char,
    mode: i32,
    of: *const RackmemType,
    count: usize,
    len: usize,
    objects: *mut RackmemObjects,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(objects, "objects", objects::NO_OBJECTS) }?;
        let spec = NamedSpec::untyped(Discipline::Object, len as u64, count as u64);
        // SAFETY: the caller promises it.
        let info = unsafe { find(turn, Asked { name, mode, of }, spec, &[]) }?;
        let found = turn.handle().byte_objects_at(info.addr)?;
        objects::open(turn, to, found)
    })
}

/// A store of chains by its name. Of `config` count `bytes`, `lease` and `quarantine`, for something new, and `homes`, `copies` and
/// `server` are zeroes: its memory is that of the node that keeps the name; with copies (`rackmem_keep_copies`), of those behind it, too, and
/// `bytes` are stored there in all. To open, null is whatever is there. The OS thread that uses `thread`.
///
/// # Safety
/// `name` ends with a zero; `of` and `config` are null, or there; `chains` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_chains_named(
    thread: RackmemThread,
    name: *const c_char,
    mode: i32,
    of: *const RackmemType,
    config: *const RackmemChainsConfig,
    chains: *mut RackmemChains,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(chains, "chains", chains::NO_CHAINS) }?;
        let (bytes, times) = if config.is_null() && mode == RackmemNameMode::Open as i32 {
            (0, Vec::new())
        } else {
            // SAFETY: the caller promises it.
            let config = unsafe { shared(config, "config") }?;
            if config.homes_len > 0 || config.copies > 1 || config.server > 0 {
                let text = "homes, copies and server of a store with a name are zeroes: the rack chooses them (copies: rackmem_keep_copies)";
                return Err(Failure::new(RackmemStatus::InvalidArgument, text));
            }
            (config.bytes, [config.lease, config.quarantine].map(u64::to_le_bytes).concat())
        };
        let spec = NamedSpec::untyped(Discipline::Chain, bytes, 1);
        // SAFETY: the caller promises it.
        let info = unsafe { find(turn, Asked { name, mode, of }, spec, &times) }?;
        let found = Chains::found(turn.handle(), &info)?;
        chains::open(turn, to, found)
    })
}

/// Takes a name away, and frees what it names, of whatever kind: what has a name is freed so, and not by its handle. Waits while somebody is inside of a lock. Whoever uses it is told
/// `RACKMEM_UNALLOCATED`; their handles are to be closed. The OS thread that uses `thread`.
///
/// # Safety
/// `name` ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_name_remove(thread: RackmemThread, name: *const c_char) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let name = unsafe { text(name, "name") }?;
        // It would wait for itself.
        let addr = turn.handle().name_info(name)?.addr;
        if rwlock::holds(turn, addr, 0) {
            return Err(Failure::new(
                RackmemStatus::Deadlock,
                "this thread holds the lock of this name: unlock it before it is removed",
            ));
        }
        turn.handle().remove_name(name)?;
        Ok(RackmemStatus::Ok)
    })
}

/// What has a name, of whatever kind. The OS thread that uses `thread`.
///
/// # Safety
/// `name` ends with a zero; `named` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_name_info(
    thread: RackmemThread,
    name: *const c_char,
    named: *mut RackmemNamed,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises both.
        let (to, name) = unsafe { (To::at(named, "named")?, text(name, "name")?) };
        to.set(for_c(&turn.handle().name_info(name)?)?);
        Ok(RackmemStatus::Ok)
    })
}

/// The names that begin with `prefix` (null or empty: all), in their order: the first `capacity` of them at `into`. `*count` is how many
/// there are; if that is more, `RACKMEM_TOO_LONG`. Names of nodes that are down are left out. The OS thread that uses `thread`.
///
/// # Safety
/// `prefix` is null, or ends with a zero; `capacity` of these structs may be written at `into`; `count` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_names(
    thread: RackmemThread,
    prefix: *const c_char,
    into: *mut RackmemNamed,
    capacity: usize,
    count: *mut usize,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(count, "count", 0) }?;
        if into.is_null() && capacity > 0 {
            let text = "into is null, and its capacity is not 0";
            return Err(Failure::new(RackmemStatus::InvalidArgument, text));
        }
        // SAFETY: the caller promises it.
        let prefix = if prefix.is_null() { "" } else { unsafe { text(prefix, "prefix") }? };
        let all = turn.handle().names(prefix)?;
        to.set(all.len());
        for (at, info) in all.iter().take(capacity).enumerate() {
            // SAFETY: the caller promises so many.
            unsafe { into.add(at).write(for_c(info)?) };
        }
        if all.len() > capacity {
            let text = format_args!("there are {} names, and room for {capacity}: give more", all.len());
            return Err(Failure::new(RackmemStatus::TooLong, text));
        }
        Ok(RackmemStatus::Ok)
    })
}

fn for_c(info: &NamedInfo) -> Result<RackmemNamed, Failure> {
    let NamedInfo { spec, addr, making, maker, opened, copies, .. } = info;
    let kind = match spec.discipline {
        Discipline::Locked => RackmemKind::Rwlock,
        Discipline::Coherent => RackmemKind::Value,
        Discipline::Word => RackmemKind::Words,
        Discipline::Object => RackmemKind::Objects,
        Discipline::Chain => RackmemKind::Chains,
        // A later version of rackmem, at another node, may know more.
        other => {
            let text =
                format_args!("{:?} is of a kind that this version does not know: {other:?}", info.name);
            return Err(Failure::new(RackmemStatus::Internal, text));
        }
    };
    Ok(RackmemNamed {
        name: filled(&info.name),
        tag: filled(&spec.tag),
        version: spec.version,
        kind,
        len: spec.value_len(),
        count: spec.count,
        address: addr.bits(),
        making: *making,
        opened: *opened,
        maker: maker.0,
        home: addr.home().0,
        copies: u16::from(*copies),
    })
}

/// A text, and zeroes.
fn filled<const BYTES: usize>(text: &str) -> [c_char; BYTES] {
    let mut all = [0; BYTES];
    for (to, byte) in all[..BYTES - 1].iter_mut().zip(text.bytes()) {
        *to = byte as c_char;
    }
    all
}
