//! The key of a rack, as its file has it: 64 hexadecimal digits, for the owner's eyes only.
//!
//! What must always hold: the bytes appear in no message and in no `Debug` output.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The key of a rack: whoever has it may talk to the rack's places.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// Reads a key file. The error says what is wrong with it and what to do, without the file's name.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let file = path.display();
        let mut opened = File::open(path).map_err(|error| {
            format!("key file {file}: {error}; write a key with: rackmem key {file}, the same for all places")
        })?;
        let unreadable = |error| format!("key file {file}: {error}");
        let mode = opened.metadata().map_err(unreadable)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(format!(
                "key file {file}: others may open it (mode {mode:03o}); run: chmod 600 {file}"
            ));
        }
        let mut text = Vec::new();
        // Longer than a key, so that a file that is too long is found to be.
        opened.by_ref().take(128).read_to_end(&mut text).map_err(unreadable)?;
        Self::from_digits(text.trim_ascii_end()).ok_or_else(|| {
            format!(
                "key file {file}: it must hold 64 hexadecimal digits and nothing else; \
                 write one with: rackmem key FILE"
            )
        })
    }

    fn from_digits(digits: &[u8]) -> Option<Self> {
        if digits.len() != 64 {
            return None;
        }
        let digit =
            |at: usize| char::from(digits[at]).to_digit(16).and_then(|value| u8::try_from(value).ok());
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = digit(2 * at)? << 4 | digit(2 * at + 1)?;
        }
        Some(Self(bytes))
    }

    /// The key itself, for whoever authenticates with it.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_shown_by_debug() {
        assert_eq!(format!("{:?}", Key([0xab; 32])), "Key(..)");
    }

    #[test]
    fn digits_are_read_in_either_case_and_nothing_else_is() {
        let key = Key::from_digits(&b"0123456789abcdefABCDEF".repeat(3)[..64]).expect("64 digits");
        assert_eq!(key.bytes()[..11], [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xab, 0xcd, 0xef]);
        for wrong in [vec![b'0'; 63], vec![b'0'; 65], vec![b'g'; 64], vec![]] {
            assert_eq!(Key::from_digits(&wrong), None);
        }
    }
}
