//! Chains: a key-value store on memory that has only a NIC.
#![allow(unsafe_code)]

use std::ffi::c_void;

use rackmem::{Chains, ChainsConfig, GlobalAddr, Nanos, NodeId};

use crate::handles::{Align1024, Slot, Turn, ask, close, end, kind, with, with_thread};
use crate::pointer::{To, bytes, bytes_mut, shared, values};
use crate::rack::RackmemThread;
use crate::status::{Failure, RackmemStatus};

/// One client of a store of chains. It belongs to the `rackmem_thread` that it was opened through; other threads open the same store by
/// its address.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RackmemChains {
    /// 0: null.
    pub id: u64,
}

/// How a store of chains is created. Zeroes are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RackmemChainsConfig {
    /// The nodes whose memories it has.
    pub homes: *const u16,
    /// How many those are: at least one.
    pub homes_len: usize,
    /// Bytes at each of them for what is stored: a multiple of 64.
    pub bytes: u64,
    /// In how many of these memories each entry is: 1 to 3; 0 is 1.
    pub copies: u32,
    /// The node that has the metadata server. Where there is one copy, the store is lost with it; otherwise others have backups.
    pub server: u16,
    /// Nanoseconds for which a client may use what it knows of a chain; 0 is 400 ms.
    pub lease: u64,
    /// Nanoseconds for which a slot rests before it is used anew; 0 is the shortest that this rack allows.
    pub quarantine: u64,
}

/// An open client. The entry's value is read into `buffer` first, as nobody knows its length.
pub(crate) struct Store {
    client: Chains,
    buffer: Vec<u8>,
}

kind!(Store, 8, Align1024, 1 << 12);

pub(crate) const NO_CHAINS: RackmemChains = RackmemChains { id: 0 };

pub(crate) fn open(turn: &Turn, to: To<RackmemChains>, client: Chains) -> Result<RackmemStatus, Failure> {
    let store = Store { client, buffer: Vec::new() };
    to.set(RackmemChains { id: Slot::open(store, Some(turn.slot()))? });
    Ok(RackmemStatus::Ok)
}

/// Creates a store of chains. The OS thread that uses `thread`.
///
/// # Safety
/// `config` is there, and the homes that it names; `chains` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_chains_create(
    thread: RackmemThread,
    config: *const RackmemChainsConfig,
    chains: *mut RackmemChains,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let (to, config) = unsafe { (To::cleared(chains, "chains", NO_CHAINS)?, shared(config, "config")?) };
        // SAFETY: the caller promises it.
        let homes = unsafe { values(config.homes, config.homes_len, "homes") }?;
        if homes.is_empty() {
            let text = "the store has no homes: name at least one node";
            return Err(Failure::new(RackmemStatus::InvalidArgument, text));
        }
        let default = ChainsConfig::at(NodeId(homes[0]), config.bytes);
        let setup = ChainsConfig {
            homes: homes.iter().copied().map(NodeId).collect(),
            copies: config.copies.max(1) as usize,
            server: NodeId(config.server),
            lease: if config.lease == 0 { default.lease } else { Nanos(config.lease) },
            quarantine: (config.quarantine != 0).then_some(Nanos(config.quarantine)),
            ..default
        };
        let made = turn.handle().chains(&setup)?;
        open(turn, to, made)
    })
}

/// Opens the store at this address, which `rackmem_chains_address` has named, in this or another process. The OS thread that uses
/// `thread`.
///
/// # Safety
/// `chains` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_chains_open(
    thread: RackmemThread,
    address: u64,
    chains: *mut RackmemChains,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(chains, "chains", NO_CHAINS) }?;
        let found = turn.handle().chains_at(GlobalAddr::from_bits(address))?;
        open(turn, to, found)
    })
}

/// Ends this client; the store stays, for others. Closing null does nothing. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_chains_close(chains: RackmemChains) -> RackmemStatus {
    close::<Store>(chains.id, |_, _| Ok(()))
}

/// Ends the store, frees its memory, and closes the handle. Clients that still use it are told that it is not there. If it fails, the
/// handle stays open. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_chains_free(chains: RackmemChains) -> RackmemStatus {
    end::<Store>(chains.id, |turn, store| Ok(store.client.clone().free(turn.handle())?))
}

/// The address of a store, for other threads and processes; 0 if there is no such handle. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_chains_address(chains: RackmemChains) -> u64 {
    ask::<Store, _>(chains.id, |store| store.client.addr().bits())
}

/// The value of a key: `*len` is its length. `RACKMEM_NOT_FOUND`: it has none. `RACKMEM_TOO_LONG`: it does not fit the `capacity` bytes
/// at `into`; `*len` says how many it needs. The OS thread that uses its thread.
///
/// # Safety
/// `capacity` bytes may be written at `into`; `len` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_chains_get(
    chains: RackmemChains,
    key: u64,
    into: *mut c_void,
    capacity: usize,
    len: *mut usize,
) -> RackmemStatus {
    with::<Store>(chains.id, |turn, Store { client, buffer }| {
        // SAFETY: the caller promises it.
        let (to, into) = unsafe { (To::cleared(len, "len", 0)?, bytes_mut(into, capacity, "into")?) };
        if !client.get(turn.handle(), key, buffer)? {
            let text = format_args!("key {key} has no value");
            return Err(Failure::new(RackmemStatus::NotFound, text));
        }
        to.set(buffer.len());
        let Some(into) = into.get_mut(..buffer.len()) else {
            let len = buffer.len();
            let text =
                format_args!("the value has {len} bytes, and the buffer {capacity}: give it a longer one");
            return Err(Failure::new(RackmemStatus::TooLong, text));
        };
        into.copy_from_slice(buffer);
        Ok(RackmemStatus::Ok)
    })
}

/// Stores a value, instead of what was there. The OS thread that uses its thread.
///
/// # Safety
/// There are `len` bytes at `from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_chains_put(
    chains: RackmemChains,
    key: u64,
    from: *const c_void,
    len: usize,
) -> RackmemStatus {
    with::<Store>(chains.id, |turn, store| {
        // SAFETY: the caller promises it.
        store.client.put(turn.handle(), key, unsafe { bytes(from, len, "from") }?)?;
        Ok(RackmemStatus::Ok)
    })
}

/// Removes the key's value, if it has one. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_chains_delete(chains: RackmemChains, key: u64) -> RackmemStatus {
    with::<Store>(chains.id, |turn, store| {
        store.client.delete(turn.handle(), key)?;
        Ok(RackmemStatus::Ok)
    })
}
