//! Reads of whole objects by other means than SABRes: the baselines, live, as layouts over the same memory.
//!
//! Each is made of what every RDMA NIC has, on words of a rack ([`rackmem::Words`]): READ, WRITE, compare-and-swap. Where the words are
//! within reach of loads and stores (an embedded rack, shared memory) those are loads, stores and the processor's own; otherwise
//! they travel on the queue pair to the home.
//!
//! | file | a reader | a writer |
//! | --- | --- | --- |
//! | `lock.rs` ([`LockAndRead`], DrTM) | takes the object's lock, READs it, gives the lock back | takes the lock |
//! | `checksum.rs` ([`Checksum`], Pilaf) | READs the object and its CRC-64, and computes that again | writes data and CRC, in no order |
//! | `lines.rs` ([`Lines`], FaRM) | READs lines with a version in each, compares them, strips them | changes the version of every line before its data |
//! | `plain.rs` ([`Plain`]) | READs, and believes it | writes |
//! | `stamp.rs` | | bytes of which any mix of two versions is recognised |
//!
//! What must always hold: whatever all but `Plain` call whole is one version. A reader is told so by [`apps::objects::Layout::try_read`],
//! and never waits there.
//!
//! A READ reads words in order, each whole; it is all that is relied on. A NIC reads whole lines at once, but in any order: what the
//! layouts need of lines they get from the order of words.

mod checksum;
mod lines;
mod lock;
mod plain;
pub mod stamp;

pub use checksum::Checksum;
pub use lines::Lines;
pub use lock::LockAndRead;
pub use plain::Plain;

use rackmem::{Error, NodeHandle, Words};

/// As much room as a READ needs.
fn room(raw: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if raw.len() < len {
        raw.resize(len, 0);
    }
    &mut raw[..len]
}

/// The words of so many objects must be these.
fn opened(words: Words<u64>, stride: usize, len: usize) -> Result<Words<u64>, Error> {
    if words.len().is_multiple_of(stride) {
        Ok(words)
    } else {
        Err(Error::WrongLength { addr: words.addr(), len: len as u64 })
    }
}

/// An object that somebody else has: let them get on.
fn wait(looks: &mut u32) {
    *looks += 1;
    if looks.is_multiple_of(16) { std::thread::yield_now() } else { std::hint::spin_loop() }
}

/// Takes an object by making its first word odd; what that was before. With a version: only if it has that.
fn take(
    words: &Words<u64>,
    node: &mut NodeHandle,
    at: usize,
    version: Option<u64>,
) -> Result<Option<u64>, Error> {
    let mut found = match version {
        Some(version) => version,
        None => words.load(node, at)?,
    };
    let mut looks = 0;
    loop {
        if found.is_multiple_of(2) {
            match words.compare_exchange(node, at, found, found + 1)? {
                Ok(_) => return Ok(Some(found)),
                Err(other) => found = other,
            }
        } else {
            wait(&mut looks);
            found = words.load(node, at)?;
        }
        if version.is_some() {
            return Ok(None);
        }
    }
}

/// Stores a word, and waits until it is there.
fn store(words: &Words<u64>, node: &mut NodeHandle, at: usize, value: u64) -> Result<(), Error> {
    words.store(node, at, value)?;
    node.flush()
}
