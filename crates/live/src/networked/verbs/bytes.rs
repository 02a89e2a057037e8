//! Copying between words and the bytes of packets, where both may begin and end anywhere.

use transport::Contents;

/// Copies what came with a packet, `len` bytes of it, to a multiple of 8 bytes into `to`. False if it does not lie in there.
pub(super) fn place(from: Contents<'_>, len: usize, to: &mut [u64], at: usize) -> bool {
    let fits = at.is_multiple_of(8) && at + len <= to.len() * 8 && len <= from.bytes();
    if fits {
        let words = &mut to[at / 8..(at + len).div_ceil(8)];
        match from {
            Contents::None => {}
            Contents::Zeroes(_) => words.fill(0),
            Contents::Own(from) => words.copy_from_slice(&from[..words.len()]),
            Contents::Shared(from) => {
                for (to, from) in words.iter_mut().zip(from) {
                    *to = from.load(std::sync::atomic::Ordering::Relaxed);
                }
            }
        }
    }
    fits
}

/// `len` bytes of words, from a multiple of 8 on: as what a packet brings. None if they are not there.
pub(super) fn part(words: &[u64], at: usize, len: usize) -> Option<Contents<'_>> {
    if !at.is_multiple_of(8) {
        return None;
    }
    words.get(at / 8..(at + len).div_ceil(8)).map(Contents::own)
}
