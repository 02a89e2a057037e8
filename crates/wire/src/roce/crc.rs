//! The CRC-32 of Ethernet, which is also that of RoCEv2's ICRC: polynomial 0x04C11DB7, bits reversed.
//!
//! Eight bytes a step ("slicing by eight"): a software NIC computes it over every byte that it sends and receives.

const TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
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
    while table < 8 {
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

/// A CRC-32 under way.
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
        let (eights, rest) = bytes.as_chunks::<8>();
        for eight in eights {
            let low = crc ^ u32::from_le_bytes([eight[0], eight[1], eight[2], eight[3]]);
            crc = TABLES[7][(low & 0xff) as usize]
                ^ TABLES[6][(low >> 8 & 0xff) as usize]
                ^ TABLES[5][(low >> 16 & 0xff) as usize]
                ^ TABLES[4][(low >> 24) as usize]
                ^ TABLES[3][usize::from(eight[4])]
                ^ TABLES[2][usize::from(eight[5])]
                ^ TABLES[1][usize::from(eight[6])]
                ^ TABLES[0][usize::from(eight[7])];
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
