//! The instructions of the kernel's virtual machine, as far as programs use them.

/// A register. 0: results; 1 to 5: arguments, lost in calls; 6 to 9: kept; 10: the stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Register(pub(super) u8);

pub(super) const R0: Register = Register(0);
pub(super) const R1: Register = Register(1);
pub(super) const R2: Register = Register(2);
pub(super) const R3: Register = Register(3);
pub(super) const R4: Register = Register(4);
pub(super) const R5: Register = Register(5);
/// The packet, as the kernel hands it over.
pub(super) const PACKET: Register = Register(6);
/// The scratch memory of this processor.
pub(super) const SCRATCH: Register = Register(7);
/// The switch's state.
pub(super) const STATE: Register = Register(8);
/// Counts through loops.
pub(super) const COUNTER: Register = Register(9);
pub(super) const STACK: Register = Register(10);

/// One instruction: 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// What it does.
    pub code: u8,
    /// The register that it changes.
    pub to: u8,
    /// The register that it takes.
    pub from: u8,
    /// Of an address or a jump.
    pub offset: i16,
    /// A number.
    pub number: i32,
}

impl Instruction {
    /// As the kernel wants it.
    pub const fn to_bytes(self) -> [u8; 8] {
        let ([a, b], [c, d, e, f]) = (self.offset.to_le_bytes(), self.number.to_le_bytes());
        [self.code, self.to | self.from << 4, a, b, c, d, e, f]
    }
}

/// What arithmetic does, in the upper half of an instruction's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Arithmetic {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    Or = 0x40,
    And = 0x50,
    Shl = 0x60,
    Shr = 0x70,
    Xor = 0xa0,
    Move = 0xb0,
}

/// When a jump is taken: the register against a number or another register, both without signs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum If {
    Equal = 0x10,
    Above = 0x20,
    AtLeast = 0x30,
    Different = 0x50,
    Below = 0xa0,
    AtMost = 0xb0,
}

/// Of a load or store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Width {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
    Double = 0x18,
}

impl Width {
    pub(super) const fn of_bytes(bytes: usize) -> Self {
        match bytes {
            1 => Self::Byte,
            2 => Self::Half,
            4 => Self::Word,
            _ => Self::Double,
        }
    }
}

/// Functions of the kernel that programs call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub(super) enum Helper {
    /// The entry of a map.
    LookUp = 1,
    /// Writes bytes into a packet.
    StoreBytes = 9,
    /// Sends a copy of a packet through a device.
    CloneRedirect = 13,
    /// Sends the packet itself through a device, when the program has ended with what this says.
    Redirect = 23,
    /// Reads bytes of a packet.
    LoadBytes = 26,
    /// Takes a spin lock.
    Lock = 93,
    /// Lets it go.
    Unlock = 94,
    /// Reads bytes of a packet that is still the driver's.
    LoadBytesInDriver = 189,
    /// Writes bytes into one.
    StoreBytesInDriver = 190,
}

pub(super) const CLASS_LOAD_WIDE: u8 = 0x18;
pub(super) const CLASS_LOAD: u8 = 0x61;
pub(super) const CLASS_STORE_NUMBER: u8 = 0x62;
pub(super) const CLASS_STORE: u8 = 0x63;
pub(super) const CLASS_JUMP: u8 = 0x05;
pub(super) const CLASS_ARITHMETIC: u8 = 0x07;
/// Adds to 8 bytes of memory.
pub(super) const ATOMIC: u8 = 0xdb;
/// What an atomic addition gives back: what was there.
pub(super) const FETCH: i32 = 1;
pub(super) const CALL: u8 = 0x85;
/// What is called is a function of the program.
pub(super) const OF_PROGRAM: u8 = 1;
pub(super) const EXIT: u8 = 0x95;
/// The second operand is a register, not a number.
pub(super) const BY_REGISTER: u8 = 0x08;
