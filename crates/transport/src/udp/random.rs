//! Random bytes from the system: for keys, sessions and challenges. Nothing that a protocol decides comes from here.

use std::io;

/// Fills all of `bytes`.
pub(super) fn fill(mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty()) {
            Ok(filled) => bytes = &mut bytes[filled..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A number that nobody else has drawn, and not 0.
pub(super) fn nonce() -> io::Result<u128> {
    loop {
        let mut bytes = [0; 16];
        fill(&mut bytes)?;
        let drawn = u128::from_le_bytes(bytes);
        if drawn != 0 {
            return Ok(drawn);
        }
    }
}
