//! Small ELF files, for tests of loaders.

/// Where the code of such a file is.
pub(crate) const CODE: u64 = 0x40_0000;
/// Where its data is: zeros.
pub(crate) const DATA: u64 = 0x50_0000;
/// Bytes of its data.
pub(crate) const DATA_BYTES: u64 = 0x1000;

const PAGE: usize = 0x1000;

/// A linked program of code that is not writable and data that is.
pub(crate) fn elf(code: &[u32]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(b"\x7fELF\x02\x01\x01");
    file.resize(16, 0);
    file.extend(2_u16.to_le_bytes()); // executable
    file.extend(243_u16.to_le_bytes()); // RISC-V
    file.extend(1_u32.to_le_bytes());
    file.extend(CODE.to_le_bytes()); // entry
    file.extend(64_u64.to_le_bytes()); // program headers
    file.extend(0_u64.to_le_bytes()); // no sections
    file.extend(0_u32.to_le_bytes()); // flags
    for half in [64_u16, 56, 2, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    let bytes = code.len() as u64 * 4;
    for (flags, address, offset, in_file, in_memory) in
        [(5_u32, CODE, PAGE as u64, bytes, bytes), (6, DATA, 0, 0, DATA_BYTES)]
    {
        file.extend(1_u32.to_le_bytes());
        file.extend(flags.to_le_bytes());
        for word in [offset, address, address, in_file, in_memory, PAGE as u64] {
            file.extend(word.to_le_bytes());
        }
    }
    file.resize(PAGE, 0);
    file.extend(code.iter().flat_map(|word| word.to_le_bytes()));
    file
}
