//! Programs: what a machine is started with. Read from ELF files, or assembled.
//!
//! What must always hold: what a program cannot change and what it executes is below everything that it can change, so that code
//! is decoded once, for all nodes.

use core::fmt;
use core::ops::Range;

use elf::ElfBytes;
use elf::abi::{ELFMAGIC, EM_RISCV, ET_EXEC, PF_W, PF_X, PT_LOAD, STT_FUNC, STT_NOTYPE};
use elf::endian::LittleEndian;
use elf::file::Class;

use crate::code::Code;
use crate::isa::assemble;

/// Flags of RISC-V ELF files (psABI specification, section 8.1).
const COMPRESSED: u32 = 1;
const FLOAT_ABI: u32 = 0b110;

/// Bytes of code that are decoded at most.
const MOST_CODE: u64 = 1 << 28;

/// Where assembled programs are.
const ASSEMBLED_AT: u64 = 0x8000_0000;

/// A program.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) entry: u64,
    pub(crate) code: Code,
    /// What is loaded: address and bytes.
    pub(crate) segments: Vec<(u64, Vec<u8>)>,
    /// What it cannot change.
    pub(crate) read_only: Range<u64>,
    /// Behind its last segment.
    pub(crate) end: u64,
    /// By address.
    symbols: Vec<(u64, String)>,
    /// What it is called with: its name first.
    pub(crate) arguments: Vec<String>,
}

/// Why a file is no program for this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoadError {
    /// It is no ELF file.
    NotElf,
    /// It is one that is cut off or damaged.
    Damaged(String),
    /// It is for another processor.
    Machine(u16),
    /// It is a 32-bit one.
    Bits32,
    /// It is to be linked first.
    NotLinked,
    /// It has compressed instructions.
    Compressed,
    /// It passes floating-point numbers in registers that this machine does not have.
    Float,
    /// It has nothing to execute.
    NoCode,
    /// It executes what it can change, or that is not below what it can change.
    WritableCode(u64),
    /// Its entry is not in its code.
    Entry(u64),
    /// It reaches beyond the last address, or has more code than is decoded.
    TooLarge,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotElf => f.write_str("this is no ELF file"),
            Self::Damaged(why) => write!(f, "this ELF file is cut off or damaged: {why}"),
            Self::Machine(machine) => {
                let name = match machine {
                    3 => " (x86)",
                    62 => " (x86-64)",
                    40 => " (Arm)",
                    183 => " (AArch64)",
                    _ => "",
                };
                write!(f, "this is for processor {machine}{name}, not for RISC-V ({EM_RISCV})")
            }
            Self::Bits32 => f.write_str("this is a 32-bit program; build it with -march=rv64ima -mabi=lp64"),
            Self::NotLinked => {
                f.write_str("this is no linked program; link it statically, at fixed addresses")
            }
            Self::Compressed => {
                f.write_str("this has compressed instructions; build it with -march=rv64ima -mabi=lp64")
            }
            Self::Float => {
                f.write_str("this uses floating-point registers; build it with -march=rv64ima -mabi=lp64")
            }
            Self::NoCode => f.write_str("this has nothing to execute"),
            Self::WritableCode(address) => write!(
                f,
                "code must not be writable, and be below what is: see {address:#x}; link with riscv's programs/link.ld"
            ),
            Self::Entry(entry) => write!(f, "this begins at {entry:#x}, where it has no code"),
            Self::TooLarge => f.write_str("this has more code or addresses than a node can have"),
        }
    }
}

impl core::error::Error for LoadError {}

impl Program {
    /// Reads an ELF file: 64 bits, RISC-V, linked statically.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn from_elf(bytes: &[u8]) -> Result<Self, LoadError> {
        if !bytes.starts_with(&ELFMAGIC) {
            return Err(LoadError::NotElf);
        }
        let damaged = |error: elf::ParseError| LoadError::Damaged(error.to_string());
        let file = ElfBytes::<LittleEndian>::minimal_parse(bytes).map_err(damaged)?;
        let head = &file.ehdr;
        if head.e_machine != EM_RISCV {
            return Err(LoadError::Machine(head.e_machine));
        }
        if head.class != Class::ELF64 {
            return Err(LoadError::Bits32);
        }
        if head.e_type != ET_EXEC {
            return Err(LoadError::NotLinked);
        }
        if head.e_flags & COMPRESSED != 0 {
            return Err(LoadError::Compressed);
        }
        if head.e_flags & FLOAT_ABI != 0 {
            return Err(LoadError::Float);
        }
        let (mut segments, mut ranges) = (Vec::new(), Vec::new());
        for header in file.segments().into_iter().flat_map(|segments| segments.iter()) {
            if header.p_type != PT_LOAD || header.p_memsz == 0 {
                continue;
            }
            let data = file.segment_data(&header).map_err(damaged)?;
            let end = header.p_vaddr.checked_add(header.p_memsz.max(data.len() as u64));
            let end = end.filter(|end| *end < 1 << 48).ok_or(LoadError::TooLarge)?;
            ranges.push((header.p_vaddr..end, header.p_flags));
            segments.push((header.p_vaddr, data.to_vec()));
        }
        let mut symbols = Vec::new();
        if let Some((table, names)) = file.symbol_table().map_err(damaged)? {
            for symbol in table.iter() {
                let is_place = [STT_FUNC, STT_NOTYPE].contains(&symbol.st_symtype()) && symbol.st_shndx != 0;
                let name = names.get(symbol.st_name as usize).unwrap_or_default();
                // `$x` and the like mark code and data for debuggers.
                if is_place && !name.is_empty() && !name.starts_with(['$', '.']) {
                    symbols.push((symbol.st_value, name.to_owned()));
                }
            }
        }
        Self::new(head.e_entry, segments, &ranges, symbols)
    }

    /// Assembles a program: see [`assemble`](mod@crate::isa::assemble). It begins with its first instruction; behind it is the heap.
    ///
    /// # Errors
    /// The first line that is not understood.
    pub fn assembled(text: &str) -> Result<Self, assemble::Error> {
        Ok(Self::from_words(&assemble::assemble(text, ASSEMBLED_AT)?))
    }

    /// A program of these words, instructions or not, from the first.
    pub fn from_words(words: &[u32]) -> Self {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let end = ASSEMBLED_AT + bytes.len() as u64;
        Self {
            entry: ASSEMBLED_AT,
            code: Code::new(ASSEMBLED_AT, words.to_vec()),
            segments: vec![(ASSEMBLED_AT, bytes)],
            read_only: ASSEMBLED_AT..end,
            end,
            symbols: Vec::new(),
            arguments: vec!["program".into()],
        }
    }

    fn new(
        entry: u64,
        segments: Vec<(u64, Vec<u8>)>,
        ranges: &[(Range<u64>, u32)],
        mut symbols: Vec<(u64, String)>,
    ) -> Result<Self, LoadError> {
        let hull = |wanted: &dyn Fn(u32) -> bool| {
            let wanted = || ranges.iter().filter(|(_, flags)| wanted(*flags)).map(|(range, _)| range);
            let start = wanted().map(|range| range.start).min()?;
            Some(start..wanted().map(|range| range.end).max()?)
        };
        let code = hull(&|flags| flags & PF_X != 0).ok_or(LoadError::NoCode)?;
        let read_only = hull(&|flags| flags & PF_W == 0 || flags & PF_X != 0).ok_or(LoadError::NoCode)?;
        let read_only = read_only.start..read_only.end.next_multiple_of(8);
        for (range, flags) in ranges {
            if flags & PF_W != 0 && range.start < read_only.end {
                return Err(LoadError::WritableCode(range.start));
            }
        }
        if !code.contains(&entry) || !entry.is_multiple_of(4) || !code.start.is_multiple_of(4) {
            return Err(LoadError::Entry(entry));
        }
        if code.end - code.start > MOST_CODE {
            return Err(LoadError::TooLarge);
        }
        let end = ranges.iter().map(|(range, _)| range.end).max().unwrap_or(code.end);
        let mut bytes = vec![0; (code.end - code.start).next_multiple_of(4) as usize];
        for (address, data) in &segments {
            for (address, byte) in (*address..).zip(data) {
                if let Some(at) = address.checked_sub(code.start).and_then(|at| bytes.get_mut(at as usize)) {
                    *at = *byte;
                }
            }
        }
        let words = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        symbols.sort_unstable();
        symbols.dedup_by_key(|(address, _)| *address);
        Ok(Self {
            entry,
            code: Code::new(code.start, words),
            segments,
            read_only,
            end,
            symbols,
            arguments: vec!["program".into()],
        })
    }

    /// With its name and arguments, as `main` gets them.
    #[must_use]
    pub fn with_arguments(self, arguments: Vec<String>) -> Self {
        Self { arguments, ..self }
    }

    /// The symbol at or before an address, and how far behind it the address is.
    pub fn place(&self, address: u64) -> Option<(&str, u64)> {
        let behind = self.symbols.partition_point(|(at, _)| *at <= address);
        let (at, name) = self.symbols.get(behind.checked_sub(1)?)?;
        Some((name, address - at))
    }

    /// Where a symbol is.
    pub fn symbol(&self, name: &str) -> Option<u64> {
        self.symbols.iter().find(|(_, symbol)| symbol == name).map(|(address, _)| *address)
    }

    /// Its code: addresses and words.
    pub fn words(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.code.words()
    }

    /// Where it begins.
    pub const fn entry(&self) -> u64 {
        self.entry
    }
}
