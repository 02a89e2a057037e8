//! The CRC-32 of Ethernet, which is also that of RoCEv2's ICRC: polynomial 0x04C11DB7, bits reversed.
//!
//! Sixteen bytes a step ("slicing by sixteen"): a software NIC computes it over every byte that it sends and receives.

/// Bytes a step.
const STEP: usize = 16;

/// `TABLES[n][byte]`: what a byte does to the checksum when `n` more bytes of the step follow it.
static TABLES: [[u32; 256]; STEP] = tables();

const fn tables() -> [[u32; 256]; STEP] {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < STEP {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// A CRC-32 in flight.
#[derive(Clone, Copy, Debug)]
pub struct Crc32(u32);

impl Default for Crc32 {
    fn default() -> Self {
        Self::new()
    }
}

impl Crc32 {
    /// Before the first byte.
    pub const fn new() -> Self {
        Self(!0)
    }

    /// After these bytes, too.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        let mut crc = self.0;
        let (steps, rest) = bytes.as_chunks::<STEP>();
        for step in steps {
            let begin = (crc ^ u32::from_le_bytes([step[0], step[1], step[2], step[3]])).to_le_bytes();
            crc = 0;
            for at in 0..STEP {
                let byte = if at < begin.len() { begin[at] } else { step[at] };
                crc ^= TABLES[STEP - 1 - at][usize::from(byte)];
            }
        }
        for &byte in rest {
            crc = (crc >> 8) ^ TABLES[0][((crc ^ u32::from(byte)) & 0xff) as usize];
        }
        Self(crc)
    }

    /// The checksum.
    pub const fn value(self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_crc_32() {
        assert_eq!(Crc32::new().with(b"123456789").value(), 0xcbf4_3926);
    }

    #[test]
    fn bytes_may_come_in_pieces_of_any_length() {
        let bytes: [u8; 100] = core::array::from_fn(|i| (i * 37) as u8);
        let whole = Crc32::new().with(&bytes).value();
        for cut in 0..bytes.len() {
            assert_eq!(Crc32::new().with(&bytes[..cut]).with(&bytes[cut..]).value(), whole, "cut at {cut}");
        }
    }
}
