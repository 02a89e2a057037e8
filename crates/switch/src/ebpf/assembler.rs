//! Collects instructions, and works out where jumps lead.
//!
//! What must always hold: every jump leads forward but those of [`Assembler::jump`] to a label that is bound already, and
//! whatever is never reached is left out, for the kernel refuses it.

use alloc::vec;
use alloc::vec::Vec;

use super::instruction::{
    ATOMIC, Arithmetic, BY_REGISTER, CALL, CLASS_ARITHMETIC, CLASS_JUMP, CLASS_LOAD, CLASS_LOAD_WIDE,
    CLASS_STORE, CLASS_STORE_NUMBER, EXIT, FETCH, Helper, If, Instruction, OF_PROGRAM, PACKET, R0, R1,
    Register, Width,
};

/// A place in the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label(usize);

/// A map that a program uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Map {
    /// The lock that makes a pass atomic: one entry of 4 bytes.
    Lock,
    /// The register arrays, and what the switch's process tells the program: one entry, which the process maps.
    State,
    /// What a packet needs on its way: one entry a processor.
    Scratch,
}

/// How a program names a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Named {
    /// The map itself, for calls.
    Itself,
    /// The address of its entry.
    Entry,
}

/// A program, but for the maps' numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Code {
    /// The instructions.
    pub instructions: Vec<Instruction>,
    /// Which of them name a map: two instructions each, of which this is the first.
    pub maps: Vec<(usize, Map, Named)>,
}

/// Why there is no code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong {
    /// Instructions that a jump would have to pass over.
    pub jump: usize,
}

impl core::fmt::Display for TooLong {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "a jump over {} instructions is longer than the kernel's virtual machine has", self.jump)
    }
}

impl core::error::Error for TooLong {}

#[derive(Clone, Copy, Debug)]
enum Item {
    Plain(Instruction),
    Jump(Instruction, Label),
    Call(Label),
    /// The number of 64 bits, or the map, is in this and the next instruction.
    Wide {
        to: Register,
        number: u64,
    },
    Map {
        to: Register,
        map: Map,
        named: Named,
    },
    Bind(Label),
}

/// A program under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Assembler {
    items: Vec<Item>,
    labels: usize,
}

impl Assembler {
    pub(super) const fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    pub(super) fn bind(&mut self, label: Label) {
        self.items.push(Item::Bind(label));
    }

    /// Takes away what has been collected since there were so many items, to be put behind something else.
    pub(super) fn cut(&mut self, from: usize) -> Piece {
        Piece(self.items.split_off(from))
    }

    pub(super) fn paste(&mut self, mut piece: Piece) {
        self.items.append(&mut piece.0);
    }

    pub(super) const fn items(&self) -> usize {
        self.items.len()
    }

    fn plain(&mut self, code: u8, to: Register, from: Register, offset: i16, number: i32) {
        self.items.push(Item::Plain(Instruction { code, to: to.0, from: from.0, offset, number }));
    }

    /// `to` becomes a number.
    pub(super) fn number(&mut self, to: Register, number: u64) {
        match i32::try_from(number.cast_signed()) {
            Ok(number) => self.by_number(Arithmetic::Move, to, number),
            Err(_) => self.items.push(Item::Wide { to, number }),
        }
    }

    pub(super) fn by_number(&mut self, what: Arithmetic, to: Register, number: i32) {
        self.plain(CLASS_ARITHMETIC | what as u8, to, Register(0), 0, number);
    }

    pub(super) fn by(&mut self, what: Arithmetic, to: Register, from: Register) {
        self.plain(CLASS_ARITHMETIC | what as u8 | BY_REGISTER, to, from, 0, 0);
    }

    pub(super) fn load(&mut self, width: Width, to: Register, at: Register, offset: i16) {
        self.plain(CLASS_LOAD | width as u8, to, at, offset, 0);
    }

    pub(super) fn store(&mut self, width: Width, at: Register, offset: i16, from: Register) {
        self.plain(CLASS_STORE | width as u8, at, from, offset, 0);
    }

    pub(super) fn store_number(&mut self, width: Width, at: Register, offset: i16, number: i32) {
        self.plain(CLASS_STORE_NUMBER | width as u8, at, Register(0), offset, number);
    }

    /// Adds a register to 8 bytes of memory, as one step.
    pub(super) fn add_to(&mut self, at: Register, offset: i16, from: Register) {
        self.plain(ATOMIC, at, from, offset, 0);
    }

    pub(super) fn map(&mut self, to: Register, map: Map, named: Named) {
        self.items.push(Item::Map { to, map, named });
    }

    pub(super) fn call(&mut self, helper: Helper) {
        self.plain(CALL, Register(0), Register(0), 0, helper as i32);
    }

    /// Calls a function of the program.
    pub(super) fn call_function(&mut self, at: Label) {
        self.items.push(Item::Call(at));
    }

    /// Adds a register to 8 bytes of memory, as one step; the register becomes what they were before.
    pub(super) fn draw(&mut self, at: Register, offset: i16, with: Register) {
        self.plain(ATOMIC, at, with, offset, FETCH);
    }

    pub(super) fn exit(&mut self) {
        self.plain(EXIT, Register(0), Register(0), 0, 0);
    }

    pub(super) fn jump(&mut self, to: Label) {
        let jump = Instruction { code: CLASS_JUMP, to: 0, from: 0, offset: 0, number: 0 };
        self.items.push(Item::Jump(jump, to));
    }

    pub(super) fn jump_if(&mut self, when: If, a: Register, b: Register, to: Label) {
        let code = CLASS_JUMP | when as u8 | BY_REGISTER;
        self.items.push(Item::Jump(Instruction { code, to: a.0, from: b.0, offset: 0, number: 0 }, to));
    }

    pub(super) fn jump_if_number(&mut self, when: If, a: Register, number: i32, to: Label) {
        let code = CLASS_JUMP | when as u8;
        self.items.push(Item::Jump(Instruction { code, to: a.0, from: 0, offset: 0, number }, to));
    }

    /// The program.
    pub(super) fn finish(self) -> Result<Code, TooLong> {
        let reached = self.reached();
        let mut places = vec![0; self.labels];
        let mut place = 0;
        for (item, reached) in self.items.iter().zip(&reached) {
            match item {
                Item::Bind(label) => places[label.0] = place,
                _ if !reached => {}
                Item::Wide { .. } | Item::Map { .. } => place += 2,
                Item::Plain(_) | Item::Jump(..) | Item::Call(_) => place += 1,
            }
        }
        let mut code = Code { instructions: Vec::with_capacity(place), maps: Vec::new() };
        for (item, _) in self.items.iter().zip(&reached).filter(|(_, reached)| **reached) {
            let here = code.instructions.len();
            let wide = |to: Register, number: u64| {
                let (low, high) = (number as u32, (number >> 32) as u32);
                let first = Instruction {
                    code: CLASS_LOAD_WIDE,
                    to: to.0,
                    from: 0,
                    offset: 0,
                    number: low.cast_signed(),
                };
                [first, Instruction { code: 0, to: 0, from: 0, offset: 0, number: high.cast_signed() }]
            };
            match *item {
                Item::Bind(_) => {}
                Item::Plain(instruction) => code.instructions.push(instruction),
                Item::Jump(jump, to) => {
                    let over = places[to.0].cast_signed() - here.cast_signed() - 1;
                    let offset = i16::try_from(over).map_err(|_| TooLong { jump: over.unsigned_abs() })?;
                    code.instructions.push(Instruction { offset, ..jump });
                }
                Item::Call(to) => {
                    let over = places[to.0].cast_signed() - here.cast_signed() - 1;
                    let number = i32::try_from(over).map_err(|_| TooLong { jump: over.unsigned_abs() })?;
                    let call = Instruction { code: CALL, to: 0, from: OF_PROGRAM, offset: 0, number };
                    code.instructions.push(call);
                }
                Item::Wide { to, number } => code.instructions.extend(wide(to, number)),
                Item::Map { to, map, named } => {
                    code.maps.push((here, map, named));
                    code.instructions.extend(wide(to, 0));
                }
            }
        }
        Ok(code)
    }

    /// Which items are ever reached.
    fn reached(&self) -> Vec<bool> {
        let mut places = vec![usize::MAX; self.labels];
        for (at, item) in self.items.iter().enumerate() {
            if let Item::Bind(label) = item {
                places[label.0] = at;
            }
        }
        let mut reached = vec![false; self.items.len()];
        let mut to_look_at = vec![0];
        while let Some(mut at) = to_look_at.pop() {
            while at < self.items.len() && !reached[at] {
                reached[at] = true;
                match self.items[at] {
                    Item::Plain(Instruction { code: EXIT, .. }) => break,
                    Item::Jump(Instruction { code: CLASS_JUMP, .. }, to) => {
                        at = places[to.0];
                        continue;
                    }
                    Item::Jump(_, to) | Item::Call(to) => to_look_at.push(places[to.0]),
                    _ => {}
                }
                at += 1;
            }
        }
        reached
    }
}

/// The beginning of a program that calls the function behind it, which has so many instructions, and the one behind that if the first
/// gives this back.
pub(super) fn calls_in_turn(first: usize, passed: u32) -> Vec<Instruction> {
    let plain = |code, to: Register, from: Register| Instruction {
        code,
        to: to.0,
        from: from.0,
        offset: 0,
        number: 0,
    };
    let copy = |to, from| plain(CLASS_ARITHMETIC | Arithmetic::Move as u8 | BY_REGISTER, to, from);
    let call = |over: usize| Instruction {
        number: i32::try_from(over).expect("programs are shorter"),
        ..plain(CALL, R0, Register(OF_PROGRAM))
    };
    let jump = plain(CLASS_JUMP | If::Different as u8, R0, R0);
    vec![
        copy(PACKET, R1),
        call(4),
        Instruction { offset: 2, number: passed.cast_signed(), ..jump },
        copy(R1, PACKET),
        call(first + 1),
        plain(EXIT, R0, R0),
    ]
}

/// A part of a program.
#[derive(Clone, Debug)]
pub(super) struct Piece(Vec<Item>);
