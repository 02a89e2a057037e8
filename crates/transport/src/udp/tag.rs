//! The tags that authenticate datagrams. Runs where a datagram leaves and where it arrives, on every one.
//!
//! Data carries a Carter-Wegman tag: POLYVAL of the datagram under a secret point, plus (exclusive or) a pad that is
//! the AES-256 encryption of the datagram's counter. That is the construction of GMAC (NIST SP 800-38D without
//! plaintext) with POLYVAL in the place of GHASH; both are the same polynomial over the same field with the bytes in
//! another order (RFC 8452, appendix A), so the bound on forgeries is the same: at most (blocks of the datagram) /
//! 2^128 for an attempt. Point and pad key are derived for one direction between two sessions
//! ([`super::session`]), and a counter is used once there: so a pad is used once. **That must always hold**: two
//! datagrams under one pad would give the point away.
//!
//! Greetings ([`super::hello`]) are sent under a key that lives as long as the rack's, by processes that know nothing
//! of each other's counters. So they carry AES-256-CMAC (NIST SP 800-38B), which needs no counter. They are rare.
//!
//! Measured before choosing (one core of a 2.5 GHz server with AES and carry-less multiplication, one tag of 64 B /
//! 4 KiB, medians): POLYVAL + AES pad 29 + 26 / 700 + 26 ns; GMAC from `aes-gcm` 99 / 1,241 ns (GHASH has to swap the
//! bytes of every block); Poly1305 1,528 / 2,263 ns (its AVX2 set-up alone is 1 us); keyed BLAKE3, pure Rust 75 /
//! 2,769 ns. Without those instructions `polyval` and `aes` fall back to portable code in constant time.
//! Tags are compared in constant time by `polyval` and `cmac`.

use std::fmt;

use aes::Aes256;
use aes::cipher::BlockCipherEncrypt as _;
use cmac::{Cmac, KeyInit as _, Mac as _};
use polyval::Polyval;
use polyval::universal_hash::UniversalHash as _;

use super::key::Key;

/// Bytes of a tag.
pub(super) const TAG: usize = 16;

/// Bytes of key that [`DataKey::new`] takes.
pub(super) const DATA_KEY: usize = 48;

/// The key of one direction between two sessions.
pub(super) struct DataKey {
    pad: Aes256,
    hash: Polyval,
}

impl DataKey {
    /// The first 32 bytes are for the pad, the others are the point.
    pub(super) fn new(bytes: &[u8; DATA_KEY]) -> Self {
        let (pad, point) = bytes.split_at(32);
        Self {
            pad: Aes256::new_from_slice(pad).expect("AES-256 takes 32 bytes"),
            hash: Polyval::new_from_slice(point).expect("POLYVAL takes 16 bytes"),
        }
    }

    /// The tag of these bytes.
    pub(super) fn tag(&self, counter: u64, bytes: &[u8]) -> [u8; TAG] {
        let mut tag = self.absorb(bytes).finalize();
        for (byte, pad) in tag.iter_mut().zip(self.pad(counter)) {
            *byte ^= pad;
        }
        tag.into()
    }

    /// True if that is their tag.
    pub(super) fn verify(&self, counter: u64, bytes: &[u8], tag: &[u8; TAG]) -> bool {
        let mut hash = *tag;
        for (byte, pad) in hash.iter_mut().zip(self.pad(counter)) {
            *byte ^= pad;
        }
        self.absorb(bytes).verify(&hash.into()).is_ok()
    }

    /// The bytes with zeroes up to a whole block, and a block with their length: no two inputs are the same blocks.
    fn absorb(&self, bytes: &[u8]) -> Polyval {
        let mut hash = self.hash.clone();
        hash.update_padded(bytes);
        let mut length = [0; 16];
        length[..8].copy_from_slice(&(bytes.len() as u64 * 8).to_le_bytes());
        hash.update(&[length.into()]);
        hash
    }

    fn pad(&self, counter: u64) -> [u8; TAG] {
        let mut block = aes::Block::default();
        block[..8].copy_from_slice(&counter.to_le_bytes());
        self.pad.encrypt_block(&mut block);
        block.into()
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey(..)")
    }
}

/// The key of greetings.
pub(super) struct HelloKey(Cmac<Aes256>);

impl HelloKey {
    /// Of this rack.
    pub(super) fn new(rack: &Key) -> Self {
        let mut bytes = [0; 32];
        rack.derive(b"rackmem udp hello", &[], &mut bytes);
        Self(Cmac::new(&bytes.into()))
    }

    /// The tag of these bytes.
    pub(super) fn tag(&self, bytes: &[u8]) -> [u8; TAG] {
        self.0.clone().chain_update(bytes).finalize().into_bytes().into()
    }

    /// True if that is their tag.
    pub(super) fn verify(&self, bytes: &[u8], tag: &[u8; TAG]) -> bool {
        self.0.clone().chain_update(bytes).verify(&(*tag).into()).is_ok()
    }
}

impl fmt::Debug for HelloKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HelloKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::{DATA_KEY, DataKey, HelloKey};
    use crate::udp::key::Key;

    fn key() -> DataKey {
        DataKey::new(&std::array::from_fn(|at| at as u8))
    }

    #[test]
    fn a_tag_is_that_of_its_bytes_counter_and_key_alone() {
        let bytes: Vec<u8> = (0..200).collect();
        let tag = key().tag(7, &bytes);
        assert!(key().verify(7, &bytes, &tag));
        assert!(!key().verify(8, &bytes, &tag));
        assert!(!DataKey::new(&[1; DATA_KEY]).verify(7, &bytes, &tag));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert!(!key().verify(7, &changed, &tag), "byte {at}");
        }
    }

    #[test]
    fn zeroes_at_the_end_count() {
        let tag = key().tag(1, &[0; 24]);
        assert!(!key().verify(1, &[0; 32], &tag));
        assert!(!key().verify(1, &[0; 16], &tag));
    }

    /// RFC 8452, appendix A: the hash of two blocks under a point.
    #[test]
    fn the_hash_is_the_polyval_of_rfc_8452() {
        use polyval::Polyval;
        use polyval::universal_hash::{KeyInit as _, UniversalHash as _};
        let bytes = |hex: &str| -> Vec<u8> {
            (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
                .collect()
        };
        let mut hash = Polyval::new_from_slice(&bytes("25629347589242761d31f826ba4b757b")).expect("16 bytes");
        hash.update_padded(&bytes("4f4f95668c83dfb6401762bb2d01a262d1a24ddd2721d006bbe45f20d3c9f362"));
        assert_eq!(hash.finalize()[..], bytes("f7a3b47b846119fae5b7866cf5e5b77e")[..]);
    }

    #[test]
    fn greetings_of_another_rack_are_refused() {
        let ours = HelloKey::new(&Key::from_bytes([1; 32]));
        let tag = ours.tag(b"hello");
        assert!(ours.verify(b"hello", &tag));
        assert!(!ours.verify(b"hellp", &tag));
        assert!(!HelloKey::new(&Key::from_bytes([2; 32])).verify(b"hello", &tag));
    }
}
