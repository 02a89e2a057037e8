//! The rack's key: 32 bytes that every peer of a rack has, in a file of 64 hexadecimal digits that only its owner
//! can read.
//!
//! What must always hold: the bytes never appear in a message, in an error, or in `Debug` output. All other keys are
//! derived from them ([`Key::derive`]): in counter mode (NIST SP 800-108r1, section 4.1) with AES-256-CMAC as the
//! pseudorandom function, so that knowing one derived key tells nothing about the others.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use aes::Aes256;
use cmac::{Cmac, KeyInit as _, Mac as _};

/// The key of a rack.
#[derive(Clone)]
pub struct Key([u8; 32]);

/// Why a key file was refused.
#[derive(Debug)]
pub enum KeyError {
    /// It could not be read or written.
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Others can read it.
    Exposed {
        /// The file.
        file: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It does not hold 64 hexadecimal digits.
    Digits {
        /// The file.
        file: PathBuf,
    },
}

impl Key {
    /// A key of these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A new key, from the system's random numbers.
    ///
    /// # Errors
    /// If the system has none.
    pub fn generate() -> io::Result<Self> {
        let mut bytes = [0; 32];
        super::random::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// If it cannot be read, others can read it, or it holds anything but 64 hexadecimal digits and a line's end.
    pub fn read(file: &Path) -> Result<Self, KeyError> {
        let io = |error| KeyError::Io { file: file.to_owned(), error };
        let opened = File::open(file).map_err(io)?;
        let mode = opened.metadata().map_err(io)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Exposed { file: file.to_owned(), mode });
        }
        let mut text = Vec::new();
        opened.take(128).read_to_end(&mut text).map_err(io)?;
        Self::from_digits(text.trim_ascii_end()).ok_or_else(|| KeyError::Digits { file: file.to_owned() })
    }

    /// Writes a new key file that only its owner can read.
    ///
    /// # Errors
    /// If it cannot be written, or is there already: a key is never overwritten.
    pub fn create(&self, file: &Path) -> Result<(), KeyError> {
        let io = |error| KeyError::Io { file: file.to_owned(), error };
        let mut created =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(io)?;
        let mut text: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push('\n');
        created.write_all(text.as_bytes()).map_err(|error| {
            // Half a key would be in the way of the next try.
            let _ = std::fs::remove_file(file);
            io(error)
        })
    }

    fn from_digits(digits: &[u8]) -> Option<Self> {
        if digits.len() != 64 {
            return None;
        }
        let digit = |at: usize| char::from(digits[at]).to_digit(16).map(|value| value as u8);
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = digit(2 * at)? << 4 | digit(2 * at + 1)?;
        }
        Some(Self(bytes))
    }

    /// Fills `out` with derived bytes, for one purpose and context.
    pub(super) fn derive(&self, purpose: &[u8], context: &[&[u8]], out: &mut [u8]) {
        let bits = out.len() as u32 * 8;
        for (index, block) in (1_u32..).zip(out.chunks_mut(16)) {
            let mut function = Cmac::<Aes256>::new(&self.0.into());
            function.update(&index.to_be_bytes());
            function.update(purpose);
            function.update(&[0]);
            for part in context {
                function.update(part);
            }
            function.update(&bits.to_be_bytes());
            block.copy_from_slice(&function.finalize().into_bytes()[..block.len()]);
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { file, error } => write!(f, "key file {}: {error}", file.display()),
            Self::Exposed { file, mode } => {
                let file = file.display();
                write!(f, "key file {file}: others may open it (mode {mode:03o}); run: chmod 600 {file}")
            }
            Self::Digits { file } => {
                write!(f, "key file {}: it must hold 64 hexadecimal digits and nothing else", file.display())
            }
        }
    }
}

impl std::error::Error for KeyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::Exposed { .. } | Self::Digits { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn a_key_is_not_shown_by_debug() {
        assert_eq!(format!("{:?}", Key::from_bytes([0xab; 32])), "Key(..)");
    }

    #[test]
    fn digits_are_read_in_either_case_and_nothing_else_is() {
        let key = Key::from_digits(&b"0123456789abcdefABCDEF".repeat(3)[..64]).expect("64 digits");
        assert_eq!(key.0[..11], [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xab, 0xcd, 0xef]);
        assert!(Key::from_digits(&[b'0'; 63]).is_none());
        assert!(Key::from_digits(&[b'0'; 65]).is_none());
        assert!(Key::from_digits(&[b'g'; 64]).is_none());
    }

    #[test]
    fn derived_keys_differ_by_rack_purpose_context_and_length() {
        let derive = |key: u8, purpose: &[u8], context: &[u8], bytes: usize| {
            let mut out = vec![0; bytes];
            Key::from_bytes([key; 32]).derive(purpose, &[context], &mut out);
            out
        };
        let first = derive(1, b"data", b"0", 48);
        assert_eq!(first, derive(1, b"data", b"0", 48));
        let others =
            [derive(2, b"data", b"0", 48), derive(1, b"hello", b"0", 48), derive(1, b"data", b"1", 48)];
        assert!(others.iter().all(|other| other[..16] != first[..16]));
        assert_ne!(
            derive(1, b"data", b"0", 16)[..],
            first[..16],
            "a shorter key is not the start of a longer one"
        );
        assert!(first[..16] != first[16..32] && first[16..32] != first[32..]);
    }
}
