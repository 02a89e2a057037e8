//! What the kernel says a device's driver can do with programs, by generic netlink: `dev-get` of the family `netdev`.
//!
//! | bytes of a message | field |
//! | --- | --- |
//! | 0..16 | length, kind (of a family, or an error), flags, sequence, port |
//! | 16..20 | command, version, 0 |
//! | 20.. | attributes: length, kind, value, and filling up to 4 bytes |

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use crate::system;

const HEAD: usize = 20;
/// The kind of a message that says what is wrong, and of one to the family that knows the others.
const ERROR: u16 = 2;
const CONTROL: u16 = 0x10;

/// What a driver can do with programs: bits of what the kernel says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Features(u64);

impl Features {
    /// It can send on what other drivers' programs give it.
    pub(crate) const fn sends_on(self) -> bool {
        const SENDS: u64 = 4;
        self.0 & SENDS != 0
    }
}

/// What the driver of this device can do.
pub(crate) fn features(device: u32) -> io::Result<Features> {
    /// The command that asks for a family by its name, with what comes and goes.
    const GET_FAMILY: (u8, u16, u16) = (3, 2, 1);
    /// The command that asks for a device by its number.
    const GET_DEVICE: (u8, u16, u16) = (1, 1, 3);
    let mut socket = system::generic_netlink()?;
    let family = ask(&mut socket, CONTROL, GET_FAMILY, b"netdev\0")?;
    let family = family.try_into().map(u16::from_ne_bytes).map_err(|_| nonsense())?;
    let features = ask(&mut socket, family, GET_DEVICE, &device.to_ne_bytes())?;
    features.try_into().map(|bytes| Features(u64::from_ne_bytes(bytes))).map_err(|_| nonsense())
}

fn nonsense() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the kernel does not say what the driver can do")
}

/// Asks a family something about one thing; the attribute of the answer that is looked for.
fn ask(
    socket: &mut File,
    family: u16,
    (command, by, wanted): (u8, u16, u16),
    value: &[u8],
) -> io::Result<Vec<u8>> {
    socket.write_all(&request(family, command, by, value))?;
    let mut answer = vec![0; 8 << 10];
    let bytes = socket.read(&mut answer)?;
    attribute(&answer[..bytes], wanted)
}

fn request(family: u16, command: u8, by: u16, value: &[u8]) -> Vec<u8> {
    const REQUEST: u16 = 1;
    let length = HEAD + 4 + value.len().next_multiple_of(4);
    let mut bytes = (length as u32).to_ne_bytes().to_vec();
    bytes.extend([family.to_ne_bytes(), REQUEST.to_ne_bytes()].concat());
    bytes.extend([0; 8]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend([(4 + value.len() as u16).to_ne_bytes(), by.to_ne_bytes()].concat());
    bytes.extend(value);
    bytes.resize(length, 0);
    bytes
}

/// The value of an attribute of a message.
fn attribute(message: &[u8], wanted: u16) -> io::Result<Vec<u8>> {
    let half = |bytes: &[u8], at: usize| {
        let half = bytes.get(at..at + 2).and_then(|half| half.try_into().ok()).map(u16::from_ne_bytes);
        half.ok_or_else(nonsense)
    };
    if half(message, 4)? == ERROR {
        let code = message.get(16..20).and_then(|code| code.try_into().ok()).map_or(0, i32::from_ne_bytes);
        return Err(io::Error::from_raw_os_error(code.saturating_neg()));
    }
    let mut rest = message.get(HEAD..).unwrap_or_default();
    while rest.len() >= 4 {
        let (length, kind) = (usize::from(half(rest, 0)?), half(rest, 2)?);
        let value = rest.get(4..length).ok_or_else(nonsense)?;
        if kind == wanted {
            return Ok(value.to_vec());
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Err(nonsense())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_found_behind_others() {
        // A request has the form of an answer.
        let mut message = request(30, 1, 7, &[1, 2, 3]);
        message.extend(request(30, 1, 3, &9_u64.to_ne_bytes()).split_off(HEAD));
        assert_eq!(attribute(&message, 7).expect("the first"), [1, 2, 3]);
        assert_eq!(attribute(&message, 3).expect("the second"), 9_u64.to_ne_bytes());
        assert_eq!(attribute(&message, 4).expect_err("none").kind(), io::ErrorKind::InvalidData);
        for end in 0..message.len() {
            // Cut short, it is not found, and nothing worse happens.
            assert!(attribute(&message[..end], 3).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn an_error_is_what_the_kernel_says() {
        let mut message = request(ERROR, 0, 0, &[]);
        message[16..20].copy_from_slice(&(-libc::ENODEV).to_ne_bytes());
        assert_eq!(attribute(&message, 3).expect_err("an error").raw_os_error(), Some(libc::ENODEV));
    }
}
