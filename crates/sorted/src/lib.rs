//! Maps and sets in order of their keys, as `BTreeMap` and `BTreeSet` are, compiled once.
//!
//! Each `BTreeMap` of other types is 7,000 lines for the compiler, in every crate that calls generic machines: with some fifty of
//! them that was half of what the product's largest crate took. Keys here are small: numbers, ids and pairs of them, which fit into
//! 128 bits in their own order ([`Key`]). One tree from such bits to a slot in a vector serves all maps.
//!
//! What must always hold: a map cannot be told from a `BTreeMap` by what its methods give, in which order it walks, what it equals
//! and how it hashes. The slots are not seen. `tests/all` says so with sequences of calls by chance.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod index;
mod key;
mod map;
mod set;

pub use key::Key;
pub use map::{Entry, Map};
pub use set::Set;
