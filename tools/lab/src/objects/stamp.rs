//! Objects that say which write they are of, in every word: any mix of two versions is recognised.

/// Makes an object that of a write. No two writes of an object may have the same stamp.
pub fn stamp(bytes: &mut [u8], stamp: u64) {
    for piece in bytes.chunks_mut(8) {
        piece.copy_from_slice(&stamp.to_le_bytes()[..piece.len()]);
    }
}

/// Which write an object is of.
///
/// # Errors
/// It is of these two, at least.
pub fn stamp_of(bytes: &[u8]) -> Result<u64, (u64, u64)> {
    let (whole, rest) = bytes.as_chunks::<8>();
    let first = whole.first().map_or(0, |word| u64::from_le_bytes(*word));
    if let Some(other) = whole.iter().map(|word| u64::from_le_bytes(*word)).find(|word| *word != first) {
        return Err((first, other));
    }
    // The last ones are the lower bytes of a stamp.
    if *rest == first.to_le_bytes()[..rest.len()] {
        Ok(first)
    } else {
        let mut other = [0; 8];
        other[..rest.len()].copy_from_slice(rest);
        Err((first, u64::from_le_bytes(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mix_of_two_versions_is_recognised() {
        for len in [8, 64, 100, 129] {
            let (mut old, mut new) = (vec![0; len], vec![0; len]);
            stamp(&mut old, 0x0101);
            stamp(&mut new, 0x0202);
            assert_eq!((stamp_of(&old), stamp_of(&new)), (Ok(0x0101), Ok(0x0202)));
            // Of words, as they change: any one, and any number from either end.
            let words = len.div_ceil(8);
            for word in 0..words {
                let range = word * 8..len.min(word * 8 + 8);
                let (mut one, mut front) = (old.clone(), new.clone());
                one[range.clone()].copy_from_slice(&new[range.clone()]);
                front[..range.end].copy_from_slice(&old[..range.end]);
                assert_eq!(stamp_of(&one).is_err(), words > 1, "word {word} of {len} bytes");
                assert_eq!(stamp_of(&front).is_err(), word + 1 < words, "words to {word} of {len} bytes");
            }
        }
    }
}
