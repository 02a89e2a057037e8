//! The hash that places a key: 64 bits, the same on every node and every platform.
//!
//! The bytes are folded in pairs of little-endian words by 64 x 64 -> 128 bit multiplications, as wyhash and
//! rapidhash do. Three independent things are cut from the result: the bucket (from the top, by multiplication),
//! the tag that the bucket keeps beside a record's address (the low 24 bits), and the home of the record.

use rackmem::NodeId;

/// Bits of a hash that a bucket keeps of each key.
pub(super) const TAG_BITS: u32 = 24;

// Digits of pi: odd-looking constants that nobody chose.
const K0: u64 = 0x243f_6a88_85a3_08d3;
const K1: u64 = 0x1319_8a2e_0370_7344;
const K2: u64 = 0xa409_3822_299f_31d0;

/// The hash of a key in one store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeyHash(u64);

impl KeyHash {
    /// Hashes `key` under the store's salt.
    #[inline]
    pub(crate) fn of(key: &[u8], salt: u64) -> Self {
        let mut state = salt ^ K0;
        let (pairs, tail) = key.as_chunks::<16>();
        for pair in pairs {
            state = fold(low(pair) ^ K1, high(pair) ^ state);
        }
        // The tail is padded with zeroes; the length at the end tells padded keys apart.
        let (first, second) = match tail.first_chunk() {
            Some(whole) => (u64::from_le_bytes(*whole), last_word(key)),
            None => (last_word(key), 0),
        };
        state = fold(first ^ K1, second ^ state);
        Self(fold(state ^ K2, K1 ^ key.len() as u64))
    }

    /// All of it.
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// Which of `count` buckets.
    #[inline]
    pub(crate) fn below(self, count: u64) -> u64 {
        reduce(self.0, count)
    }

    /// What a bucket keeps of the hash: never 0.
    #[inline]
    pub(super) fn tag(self) -> u64 {
        (self.0 & ((1 << TAG_BITS) - 1)).max(1)
    }

    /// The node whose memory backs the record, one of `nodes`.
    #[inline]
    pub(super) fn home(self, nodes: usize) -> NodeId {
        let node = reduce(self.0.rotate_left(40).wrapping_mul(K2 | 1), nodes as u64);
        NodeId(u16::try_from(node).expect("a rack has fewer than 2^16 nodes"))
    }
}

/// The bytes of a key that do not fill a whole word, as a word padded with zeroes.
#[inline]
pub(crate) fn last_word(key: &[u8]) -> u64 {
    let loose = key.len() % 8;
    match key.last_chunk() {
        // The last eight bytes, without those that belong to the word before.
        Some(_) if loose == 0 => 0,
        Some(eight) => u64::from_le_bytes(*eight) >> (64 - 8 * loose),
        None => key.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[inline]
fn low(pair: &[u8; 16]) -> u64 {
    u64::from_le_bytes(*pair.first_chunk().expect("16 bytes"))
}

#[inline]
fn high(pair: &[u8; 16]) -> u64 {
    u64::from_le_bytes(*pair.last_chunk().expect("16 bytes"))
}

/// Both halves of the product, added without carry.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the two halves of a 128-bit product are taken apart")]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Maps a uniform word to `0..count` (Lemire's multiplication instead of a division).
#[inline]
fn reduce(word: u64, count: u64) -> u64 {
    ((u128::from(word) * u128::from(count)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> Vec<u8> {
        format!("user{n}").into_bytes()
    }

    #[test]
    fn the_hash_is_the_same_on_every_platform_and_in_every_version() {
        // Stores outlive processes: a changed hash would lose every key of an existing store.
        let hashes = [KeyHash::of(b"", 0).0, KeyHash::of(b"user1", 0).0, KeyHash::of(&[7; 100], 9).0];
        assert_eq!(hashes.map(|h| format!("{h:016x}")), GOLDEN);
    }

    const GOLDEN: [&str; 3] = ["ae7a194aff70eccc", "f3e6b47b4141ce2b", "848c93939ce3823c"];

    #[test]
    fn every_input_bit_changes_about_half_of_the_output_bits() {
        for len in [1, 7, 8, 15, 16, 17, 24, 40] {
            let base: Vec<u8> = (0..len).map(|i| (i * 37 + 11) as u8).collect();
            for bit in 0..len * 8 {
                let mut changed = base.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                let flipped = (KeyHash::of(&base, 5).0 ^ KeyHash::of(&changed, 5).0).count_ones();
                assert!((10..=54).contains(&flipped), "length {len}, bit {bit}: {flipped} bits changed");
            }
        }
    }

    #[test]
    fn keys_that_differ_only_in_trailing_zeroes_differ() {
        let zeroes = [0; 40];
        let mut seen: Vec<u64> = (0..40).map(|n| KeyHash::of(&zeroes[..n], 0).0).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 40);
    }

    #[test]
    fn numbered_keys_spread_evenly_over_buckets_tags_and_homes() {
        let count = 64;
        let keys = 64_000_u64;
        let (mut buckets, mut tags, mut homes) = (vec![0_u64; 64], vec![0_u64; 64], vec![0_u64; 8]);
        for n in 0..keys {
            let hash = KeyHash::of(&key(n), 3);
            buckets[usize::try_from(hash.below(count)).unwrap()] += 1;
            tags[usize::try_from(hash.tag() % 64).unwrap()] += 1;
            homes[hash.home(8).index()] += 1;
        }
        // A thousand expected in each: six standard deviations are 190.
        assert!(buckets.iter().chain(&tags).all(|n| (810..1190).contains(n)), "{buckets:?} {tags:?}");
        assert!(homes.iter().all(|n| (7400..8600).contains(n)), "{homes:?}");
    }

    #[test]
    fn the_keys_that_the_tests_of_collisions_use_do_collide() {
        let tag = |n| KeyHash::of(format!("key {n}").as_bytes(), 0).tag();
        assert_eq!([118_429, 301_398, 385_158].map(tag), [tag(16_208); 3]);
        assert_eq!(KeyHash::of(b"key 26464752", 0).0 & 0xff_ffff, 0);
        assert_eq!(tag(26_464_752), 1);
    }

    #[test]
    fn the_salt_moves_keys_to_other_buckets() {
        let same = (0..1000)
            .filter(|n| KeyHash::of(&key(*n), 1).below(1000) == KeyHash::of(&key(*n), 2).below(1000));
        assert!(same.count() < 20);
    }
}
