//! The kernel's virtual machine, as far as switch programs use it: for where no kernel runs them, and for what it does not say.
//!
//! It is written from what the instructions mean, and shares nothing with the code that emits them. What must always hold: a
//! program that would touch a byte that is not its own, go round for ever, or leave with the lock taken ends with a [`Fault`]
//! that says where.

pub mod fuzz;
pub mod model;
mod replay;

pub use replay::Beside;
pub(crate) use replay::{Made, Replay};

use std::fmt;

use switch::ebpf::{Hook, Instruction, KernelProgram, Map, Named, SCRATCH_BYTES, StateLayout, verdict};

/// More instructions than any packet takes: what runs longer goes round for ever.
const MOST_INSTRUCTIONS: u64 = 1_000_000;
/// Bytes of a function's stack.
const STACK_BYTES: usize = 512;
/// Where the kernel's view of a packet says if it came with the tag of a virtual network.
const VLAN_PRESENT: i16 = 20;
/// What a register has that a call has spoiled: no address.
const SPOILED: u64 = 0xdead << 48;

/// An instruction that must not be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Which one, from the beginning of the program.
    pub at: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instruction {}: {}", self.at, self.what)
    }
}

/// What came of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ran {
    /// [`switch::ebpf::verdict`].
    pub verdict: u32,
    /// Instructions that were executed.
    pub instructions: u64,
    /// Frames that left, and through which devices.
    pub sent: Vec<(u64, Vec<u8>)>,
}

/// Where an address leads: in its upper half. The lower one is an offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
enum Region {
    Stack = 1,
    Scratch = 2,
    State = 3,
    Lock = 4,
    /// The kernel's view of the packet.
    Packet = 5,
    /// The map of scratch memory itself.
    ScratchMap = 6,
}

impl Region {
    const ALL: [Self; 6] =
        [Self::Stack, Self::Scratch, Self::State, Self::Lock, Self::Packet, Self::ScratchMap];

    const fn start(self) -> u64 {
        (self as u64) << 32
    }

    fn of(address: u64) -> Option<(Self, usize)> {
        let region = Self::ALL.into_iter().find(|region| *region as u64 == address >> 32)?;
        Some((region, (address & 0xffff_ffff) as usize))
    }
}

/// A program with its maps.
#[derive(Clone, Debug)]
pub struct Machine {
    code: Vec<Instruction>,
    maps: Vec<(usize, Map, Named)>,
    layout: StateLayout,
    hook: Hook,
    state: Vec<u8>,
    scratch: Vec<u8>,
    longest: u64,
    /// Frames come with the tag of a virtual network, which their device has taken off.
    pub of_virtual_network: bool,
}

/// What one run has on the way.
struct Run {
    registers: [u64; 11],
    /// A stack for each function that has been entered.
    stacks: Vec<[u8; STACK_BYTES]>,
    /// Where to go on, with which kept registers.
    callers: Vec<(usize, [u64; 4])>,
    locked: bool,
    frame: Vec<u8>,
    sent: Vec<(u64, Vec<u8>)>,
    /// Through which device the frame itself leaves, if the program ends with that.
    leaves: Option<u64>,
}

impl Machine {
    /// With maps that are all 0.
    pub fn new(program: &KernelProgram) -> Self {
        let KernelProgram { code, layout, hook, .. } = program;
        Self {
            code: code.instructions.clone(),
            maps: code.maps.clone(),
            layout: layout.clone(),
            hook: *hook,
            state: vec![0; layout.bytes],
            scratch: vec![0; SCRATCH_BYTES],
            longest: 0,
            of_virtual_network: false,
        }
    }

    /// What the program holds: see [`StateLayout`].
    pub fn state(&self) -> &[u8] {
        &self.state
    }

    /// The same, for the control plane.
    pub fn state_mut(&mut self) -> &mut [u8] {
        &mut self.state
    }

    /// Where things are in it.
    pub const fn layout(&self) -> &StateLayout {
        &self.layout
    }

    /// The most instructions that a packet has taken where it was compared.
    pub const fn longest(&self) -> u64 {
        self.longest
    }

    /// Runs the program on a frame.
    ///
    /// # Errors
    /// If it does what it must not.
    pub fn run(&mut self, frame: &[u8]) -> Result<Ran, Fault> {
        let mut run = Run {
            registers: [SPOILED; 11],
            stacks: vec![[0; STACK_BYTES]],
            callers: Vec::new(),
            locked: false,
            frame: frame.to_vec(),
            sent: Vec::new(),
            leaves: None,
        };
        run.registers[1] = Region::Packet.start();
        run.registers[10] = Region::Stack.start() + STACK_BYTES as u64;
        let (mut at, mut instructions) = (0, 0);
        loop {
            instructions += 1;
            let fault = |what: String| Fault { at, what };
            if instructions > MOST_INSTRUCTIONS {
                return Err(fault(format!("more than {MOST_INSTRUCTIONS} instructions")));
            }
            match self.step(&mut run, at).map_err(fault)? {
                Some(next) => at = next,
                None if run.locked => return Err(fault("it ends with the lock taken".to_owned())),
                None => {
                    let verdict = run.registers[0] as u32;
                    if self.hook == Hook::Driver && verdict == verdict::LEAVES {
                        let device = run.leaves.ok_or_else(|| fault("it leaves for nowhere".to_owned()))?;
                        run.sent.push((device, run.frame));
                    }
                    return Ok(Ran { verdict, instructions, sent: run.sent });
                }
            }
        }
    }

    /// Executes one instruction, and says where it goes on. None: the program has ended.
    fn step(&mut self, run: &mut Run, at: usize) -> Result<Option<usize>, String> {
        let instruction = *self.code.get(at).ok_or("behind the end of the program")?;
        let Instruction { code, to, from, offset, number } = instruction;
        let (to, from) = (usize::from(to), usize::from(from));
        let wide = i64::from(number).cast_unsigned();
        let over = |by: i64| Some((at as i64 + 1 + by) as usize);
        match (code & 7, code) {
            (_, 0x18) => {
                run.registers[to] = match self.maps.iter().find(|(place, ..)| *place == at) {
                    Some((_, Map::Lock, Named::Entry)) => Region::Lock.start(),
                    Some((_, Map::State, Named::Entry)) => Region::State.start(),
                    Some((_, Map::Scratch, Named::Itself)) => Region::ScratchMap.start(),
                    Some(other) => return Err(format!("{other:?} is no way to name a map")),
                    None => {
                        let high = self.code.get(at + 1).ok_or("half of a number")?.number;
                        u64::from(number.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32
                    }
                };
                return Ok(over(1));
            }
            (_, 0x85) if from == 1 => {
                let kept = std::array::from_fn(|kept| run.registers[6 + kept]);
                run.callers.push((at + 1, kept));
                run.stacks.push([0; STACK_BYTES]);
                return Ok(over(number.into()));
            }
            (_, 0x85) => self.call(run, number)?,
            (_, 0x95) => {
                let Some((back, kept)) = run.callers.pop() else { return Ok(None) };
                run.stacks.pop();
                run.registers[6..10].copy_from_slice(&kept);
                run.registers[1..6].fill(SPOILED);
                return Ok(Some(back));
            }
            // Of what the kernel says of a packet, programs ask one thing.
            (1, 0x61) if run.registers[from] == Region::Packet.start() && offset == VLAN_PRESENT => {
                run.registers[to] = self.of_virtual_network.into();
            }
            (1, _) => run.registers[to] = self.load(run, width(code), add(run.registers[from], offset))?,
            (2, _) => self.store(run, width(code), add(run.registers[to], offset), wide)?,
            (3, 0xdb) => {
                let (address, more) = (add(run.registers[to], offset), run.registers[from]);
                let before = self.load(run, 8, address)?;
                self.store(run, 8, address, before.wrapping_add(more))?;
                if number == 1 {
                    run.registers[from] = before;
                }
            }
            (3, _) => self.store(run, width(code), add(run.registers[to], offset), run.registers[from])?,
            (5, _) => {
                let other = if code & 8 == 0 { wide } else { run.registers[from] };
                let is_so = match code & 0xf0 {
                    0x00 => true,
                    0x10 => run.registers[to] == other,
                    0x20 => run.registers[to] > other,
                    0x30 => run.registers[to] >= other,
                    0x50 => run.registers[to] != other,
                    0xa0 => run.registers[to] < other,
                    0xb0 => run.registers[to] <= other,
                    _ => return Err(format!("jump {code:#x}")),
                };
                return Ok(over(if is_so { offset.into() } else { 0 }));
            }
            (7, _) => {
                let other = if code & 8 == 0 { wide } else { run.registers[from] };
                let it = &mut run.registers[to];
                *it = match code & 0xf0 {
                    0x00 => it.wrapping_add(other),
                    0x10 => it.wrapping_sub(other),
                    0x20 => it.wrapping_mul(other),
                    0x40 => *it | other,
                    0x50 => *it & other,
                    0x60 => *it << (other & 63),
                    0x70 => *it >> (other & 63),
                    0xa0 => *it ^ other,
                    0xb0 => other,
                    _ => return Err(format!("arithmetic {code:#x}")),
                };
            }
            _ => return Err(format!("{instruction:?} is no instruction")),
        }
        Ok(over(0))
    }

    /// Programs at one hook have other functions than those at the other one.
    fn is_for(&self, number: i32, at_traffic_control: i32) -> bool {
        (self.hook == Hook::TrafficControl) == (number == at_traffic_control)
    }

    /// A function of the kernel.
    fn call(&mut self, run: &mut Run, number: i32) -> Result<(), String> {
        let [_, a, b, c, d, ..] = run.registers;
        let region = |address: u64| Region::of(address).map(|(region, _)| region);
        let is_packet = region(a) == Some(Region::Packet);
        if run.locked && number != 94 {
            return Err(format!("function {number} is called with the lock taken"));
        }
        let part = || {
            let from = usize::try_from(b).ok()?;
            Some(from..from.checked_add(usize::try_from(d).ok()?)?)
        };
        run.registers[0] = match number {
            1 if region(a) == Some(Region::ScratchMap) && self.load(run, 4, b)? == 0 => {
                Region::Scratch.start()
            }
            26 | 189 if is_packet && self.is_for(number, 26) => {
                match part().and_then(|part| run.frame.get(part)).map(<[u8]>::to_vec) {
                    Some(bytes) => {
                        self.bytes_at(run, c, bytes.len())?.copy_from_slice(&bytes);
                        0
                    }
                    None => u64::MAX,
                }
            }
            9 | 190 if is_packet && self.is_for(number, 9) => {
                let bytes = self.bytes_at(run, c, d as usize)?.to_vec();
                match part().and_then(|part| run.frame.get_mut(part)) {
                    Some(place) => {
                        place.copy_from_slice(&bytes);
                        0
                    }
                    None => u64::MAX,
                }
            }
            13 if is_packet && self.is_for(number, 13) => {
                run.sent.push((b, run.frame.clone()));
                0
            }
            // The frame leaves when the program has ended so.
            23 if self.is_for(number, 0) => {
                run.leaves = Some(a);
                verdict::LEAVES.into()
            }
            93 | 94 if region(a) == Some(Region::Lock) => {
                if run.locked == (number == 93) {
                    return Err(format!("function {number}, and the lock is taken: {}", run.locked));
                }
                run.locked = number == 93;
                0
            }
            _ => return Err(format!("function {number} of {a:#x}, {b:#x}")),
        };
        run.registers[1..6].fill(SPOILED);
        Ok(())
    }

    fn load(&mut self, run: &mut Run, bytes: usize, address: u64) -> Result<u64, String> {
        let found = self.bytes_at(run, address, bytes)?;
        Ok(found.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
    }

    fn store(&mut self, run: &mut Run, bytes: usize, address: u64, value: u64) -> Result<(), String> {
        self.bytes_at(run, address, bytes)?.copy_from_slice(&value.to_le_bytes()[..bytes]);
        Ok(())
    }

    /// So many bytes of the program's own.
    fn bytes_at<'a>(
        &'a mut self,
        run: &'a mut Run,
        address: u64,
        bytes: usize,
    ) -> Result<&'a mut [u8], String> {
        let (region, at) = Region::of(address).ok_or_else(|| format!("{address:#x} is no address"))?;
        let all: &mut [u8] = match region {
            Region::Stack => run.stacks.last_mut().expect("one for the program itself"),
            Region::Scratch => &mut self.scratch,
            Region::State => &mut self.state,
            _ => return Err(format!("a look into {region:?}")),
        };
        let length = all.len();
        let end = at.saturating_add(bytes);
        all.get_mut(at..end).ok_or_else(|| format!("bytes {at}..{end} of {region:?}, which has {length}"))
    }
}

const fn width(code: u8) -> usize {
    match code & 0x18 {
        0x00 => 4,
        0x08 => 2,
        0x10 => 1,
        _ => 8,
    }
}

const fn add(address: u64, offset: i16) -> u64 {
    address.wrapping_add_signed(offset as i64)
}
