//! What an application asks a daemon to do: single operations, as bytes and back.
//!
//! What must always hold: what is accepted can be said again, and is the same; what an answer may carry is known from the
//! operation ([`Operation::answers`]), so that a request can be bounded before anything of it is done.

use live::actor::Wait;
use live::chains::Wanted;
use live::memory::regions::Shape;
use live::networked::verbs::RegionName;
use nic::words::{Operands, Operation as OnWord, Width};
use wire::{Discipline, GlobalAddr, Incarnation, Mode, Nanos, NodeId, SIZED};

use super::bytes::{Bytes, put_addr, put_counted, put_name, put_option, put_u64};
use super::message::{MOST_BYTES, Malformed};
use crate::chains::ChainsConfig;
use crate::drain::{DrainOrder, Rest};
use crate::lock::LockMode;

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation<'a> {
    Read {
        addr: GlobalAddr,
        len: usize,
    },
    Write {
        addr: GlobalAddr,
        bytes: &'a [u8],
    },
    Alloc {
        len: u64,
        home: NodeId,
        discipline: Discipline,
    },
    Free {
        addr: GlobalAddr,
        incarnation: Option<Incarnation>,
    },
    /// Waits until what the daemon's node has written is in all copies.
    Sync,
    /// Takes the lock of a block.
    Lock {
        addr: GlobalAddr,
        mode: LockMode,
        once: bool,
    },
    Unlock {
        lock: u32,
    },
    /// Takes a lock that carries so many bytes.
    Enter {
        addr: GlobalAddr,
        len: usize,
        mode: LockMode,
        wait: Wait,
        /// A header is in front of them, in which a write grant is counted.
        is_headed: bool,
    },
    /// Leaves it; whoever has it to write says what its bytes are.
    Leave {
        lock: u32,
        bytes: Option<&'a [u8]>,
    },
    /// Ends it: it is held to write.
    End {
        lock: u32,
        is_lost: bool,
    },
    /// Allocates a region.
    Begin {
        shape: Shape,
        home: NodeId,
    },
    /// The region at an address.
    Open {
        addr: GlobalAddr,
        needs: Discipline,
    },
    Word(WordOf),
    /// Bytes of words as they are.
    ReadWords {
        region: RegionName,
        at: u64,
        len: usize,
    },
    WriteWords {
        region: RegionName,
        at: u64,
        bytes: &'a [u8],
    },
    ReadObject {
        region: RegionName,
        index: u64,
        len: usize,
    },
    WriteObject {
        region: RegionName,
        index: u64,
        at: usize,
        expected: Option<u64>,
        bytes: &'a [u8],
    },
    /// Creates a store of chains.
    Create(Creation<'a>),
    /// A store.
    OpenStore {
        wanted: Wanted,
    },
    Get {
        store: RegionName,
        key: u64,
    },
    Put {
        store: RegionName,
        key: u64,
        value: &'a [u8],
    },
    Delete {
        store: RegionName,
        key: u64,
    },
    /// The application uses it no more, for now.
    Close {
        store: RegionName,
    },
    FreeStore {
        store: RegionName,
    },
    /// Nothing is done. It says that the daemon's node is in the rack, and another node in this incarnation; and, as busy, that the
    /// lease of the daemon's node does not hold for now.
    Confirm {
        node: Option<(NodeId, Incarnation)>,
    },
    /// Has the daemon's node drain, or stay; and asks how far it has come.
    Drain(DrainOrder),
    /// Something about the names of a node: the words of a request.
    Named {
        home: NodeId,
        request: &'a [u8],
    },
}

/// An operation on a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WordOf {
    pub(super) region: RegionName,
    pub(super) index: u64,
    pub(super) width: Width,
    pub(super) operation: OnWord,
    pub(super) operands: Operands,
}

/// How a store of chains is created: [`ChainsConfig`](crate::ChainsConfig).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Creation<'a> {
    /// Two bytes each.
    pub(super) homes: &'a [u8],
    pub(super) bytes: u64,
    pub(super) copies: u64,
    pub(super) server: NodeId,
    pub(super) lease: Nanos,
    pub(super) quarantine: Option<Nanos>,
}

const MODES: [LockMode; 2] = [LockMode::Read, LockMode::Write];
const ORDERS: [DrainOrder; 4] =
    [DrainOrder::Look, DrainOrder::Begin(Rest::Keep), DrainOrder::Begin(Rest::Lose), DrainOrder::Stop];
const WIDTHS: [Width; 2] = [Width::Word, Width::Double];

fn put_mode(out: &mut Vec<u8>, mode: LockMode) {
    out.push(u8::from(mode == LockMode::Write));
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    // Whoever makes a message keeps within its bounds.
    out.extend((len as u32).to_le_bytes());
}

fn put_wait(out: &mut Vec<u8>, wait: Wait) {
    let (kind, most) = match wait {
        Wait::Forever => (0, 0),
        Wait::Not => (1, 0),
        Wait::Reclaim => (2, 0),
        Wait::AtMost(most) => (3, most.0),
    };
    out.push(kind);
    put_u64(out, most);
}

fn wait_of(bytes: &mut Bytes<'_>) -> Result<Wait, Malformed> {
    Ok(match (bytes.byte()?, bytes.u64()?) {
        (0, 0) => Wait::Forever,
        (1, 0) => Wait::Not,
        (2, 0) => Wait::Reclaim,
        (3, most) => Wait::AtMost(Nanos(most)),
        _ => return Err(Malformed),
    })
}

/// Of words, or of objects: nobody begins others.
pub(super) fn put_shape(out: &mut Vec<u8>, shape: Shape) {
    let (count, len, front_last) = match shape {
        Shape::Objects { count, len, front_last } => (count, len, front_last),
        shape => (shape.count(), 0, false),
    };
    put_u64(out, count as u64);
    put_u64(out, len as u64);
    out.push(u8::from(front_last));
}

pub(super) fn shape_of(bytes: &mut Bytes<'_>) -> Result<Shape, Malformed> {
    Ok(match (bytes.size()?, bytes.size()?, bytes.flag()?) {
        (count, 0, false) => Shape::Words { count },
        (count, len, front_last) if len > 0 && len <= MOST_BYTES => Shape::Objects { count, len, front_last },
        _ => return Err(Malformed),
    })
}

impl<'a> Operation<'a> {
    /// Bytes that its answer may carry.
    pub(super) const fn answers(&self) -> usize {
        match *self {
            Self::Enter { len, .. } => len & !(SIZED as usize),
            Self::Read { len, .. } | Self::ReadWords { len, .. } | Self::ReadObject { len, .. } => len,
            Self::Get { .. } | Self::Named { .. } => MOST_BYTES,
            _ => 0,
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let kind = out.len();
        out.push(0);
        out[kind] = match *self {
            Self::Read { addr, len } => {
                put_addr(out, addr);
                put_len(out, len);
                1
            }
            Self::Write { addr, bytes } => {
                put_addr(out, addr);
                put_counted(out, bytes);
                2
            }
            Self::Alloc { len, home, discipline } => {
                put_u64(out, len);
                out.extend(home.0.to_le_bytes());
                out.push(discipline as u8);
                3
            }
            Self::Free { addr, incarnation } => {
                put_addr(out, addr);
                put_option(out, incarnation, |out, of| out.extend(of.0.to_le_bytes()));
                4
            }
            Self::Lock { addr, mode, once } => {
                put_addr(out, addr);
                put_mode(out, mode);
                out.push(u8::from(once));
                5
            }
            Self::Unlock { lock } => {
                out.extend(lock.to_le_bytes());
                6
            }
            Self::Enter { addr, len, mode, wait, is_headed } => {
                put_addr(out, addr);
                put_len(out, len);
                put_mode(out, mode);
                put_wait(out, wait);
                out.push(u8::from(is_headed));
                7
            }
            Self::Leave { lock, bytes } => {
                out.extend(lock.to_le_bytes());
                put_option(out, bytes, put_counted);
                8
            }
            Self::End { lock, is_lost } => {
                out.extend(lock.to_le_bytes());
                out.push(u8::from(is_lost));
                9
            }
            Self::Begin { shape, home } => {
                put_shape(out, shape);
                out.extend(home.0.to_le_bytes());
                10
            }
            Self::Open { addr, needs } => {
                put_addr(out, addr);
                out.push(needs as u8);
                11
            }
            Self::Word(WordOf { region, index, width, operation, operands }) => {
                put_name(out, &region);
                put_u64(out, index);
                out.push(u8::from(width == Width::Double));
                let number = OnWord::ALL.iter().position(|one| *one == operation);
                out.push(number.expect("it is one of all") as u8);
                put_u64(out, operands.operand);
                put_u64(out, operands.expected);
                12
            }
            Self::ReadWords { region, at, len } => {
                put_name(out, &region);
                put_u64(out, at);
                put_len(out, len);
                13
            }
            Self::WriteWords { region, at, bytes } => {
                put_name(out, &region);
                put_u64(out, at);
                put_counted(out, bytes);
                14
            }
            Self::ReadObject { region, index, len } => {
                put_name(out, &region);
                put_u64(out, index);
                put_len(out, len);
                15
            }
            Self::WriteObject { region, index, at, expected, bytes } => {
                put_name(out, &region);
                put_u64(out, index);
                put_len(out, at);
                put_option(out, expected, put_u64);
                put_counted(out, bytes);
                16
            }
            Self::Create(Creation { homes, bytes, copies, server, lease, quarantine }) => {
                put_counted(out, homes);
                put_u64(out, bytes);
                put_u64(out, copies);
                out.extend(server.0.to_le_bytes());
                put_u64(out, lease.0);
                put_option(out, quarantine, |out, time| put_u64(out, time.0));
                17
            }
            Self::OpenStore { wanted: Wanted { addr, life, failed_too } } => {
                put_addr(out, addr);
                put_option(out, life, |out, life| out.extend(life.0.to_le_bytes()));
                out.push(failed_too.into());
                18
            }
            Self::Get { store, key } => {
                put_name(out, &store);
                put_u64(out, key);
                19
            }
            Self::Put { store, key, value } => {
                put_name(out, &store);
                put_u64(out, key);
                put_counted(out, value);
                20
            }
            Self::Delete { store, key } => {
                put_name(out, &store);
                put_u64(out, key);
                21
            }
            Self::Close { store } => {
                put_name(out, &store);
                22
            }
            Self::FreeStore { store } => {
                put_name(out, &store);
                23
            }
            Self::Named { home, request } => {
                out.extend(home.0.to_le_bytes());
                put_counted(out, request);
                24
            }
            Self::Confirm { node } => {
                put_option(out, node, |out, (node, incarnation)| {
                    out.extend(node.0.to_le_bytes());
                    out.extend(incarnation.0.to_le_bytes());
                });
                25
            }
            Self::Sync => 26,
            Self::Drain(order) => {
                out.push(ORDERS.iter().position(|one| *one == order).expect("it is one of all") as u8);
                27
            }
        };
    }

    pub(super) fn decode(bytes: &mut Bytes<'a>) -> Result<Self, Malformed> {
        let discipline = |bytes: &mut Bytes<'a>| Discipline::from_wire(bytes.byte()?).ok_or(Malformed);
        Ok(match bytes.byte()? {
            1 => Self::Read { addr: bytes.addr()?, len: bytes.len()? },
            2 => Self::Write { addr: bytes.addr()?, bytes: bytes.counted()? },
            3 => Self::Alloc { len: bytes.u64()?, home: bytes.node()?, discipline: discipline(bytes)? },
            4 => Self::Free {
                addr: bytes.addr()?,
                incarnation: bytes.option(|bytes| bytes.u32().map(Incarnation))?,
            },
            5 => Self::Lock { addr: bytes.addr()?, mode: bytes.one_of(&MODES)?, once: bytes.flag()? },
            6 => Self::Unlock { lock: bytes.u32()? },
            7 => Self::Enter {
                addr: bytes.addr()?,
                len: bytes.region_len()?,
                mode: bytes.one_of(&MODES)?,
                wait: wait_of(bytes)?,
                is_headed: bytes.flag()?,
            },
            8 => Self::Leave { lock: bytes.u32()?, bytes: bytes.option(Bytes::counted)? },
            9 => Self::End { lock: bytes.u32()?, is_lost: bytes.flag()? },
            10 => Self::Begin { shape: shape_of(bytes)?, home: bytes.node()? },
            11 => Self::Open { addr: bytes.addr()?, needs: discipline(bytes)? },
            12 => Self::Word(WordOf {
                region: bytes.name()?,
                index: bytes.u64()?,
                width: bytes.one_of(&WIDTHS)?,
                operation: bytes.one_of(&OnWord::ALL)?,
                operands: Operands { operand: bytes.u64()?, expected: bytes.u64()? },
            }),
            13 => Self::ReadWords { region: bytes.name()?, at: bytes.u64()?, len: bytes.len()? },
            14 => Self::WriteWords { region: bytes.name()?, at: bytes.u64()?, bytes: bytes.counted()? },
            15 => Self::ReadObject { region: bytes.name()?, index: bytes.u64()?, len: bytes.len()? },
            16 => Self::WriteObject {
                region: bytes.name()?,
                index: bytes.u64()?,
                at: bytes.len()?,
                expected: bytes.option(Bytes::u64)?,
                bytes: bytes.counted()?,
            },
            17 => Self::Create(Creation {
                homes: bytes.counted()?,
                bytes: bytes.u64()?,
                copies: bytes.u64()?,
                server: bytes.node()?,
                lease: bytes.nanos()?,
                quarantine: bytes.option(Bytes::nanos)?,
            }),
            18 => {
                let (addr, life) = (bytes.addr()?, bytes.option(|bytes| bytes.u32().map(Incarnation))?);
                Self::OpenStore { wanted: Wanted { addr, life, failed_too: bytes.flag()? } }
            }
            19 => Self::Get { store: bytes.name()?, key: bytes.u64()? },
            20 => Self::Put { store: bytes.name()?, key: bytes.u64()?, value: bytes.counted()? },
            21 => Self::Delete { store: bytes.name()?, key: bytes.u64()? },
            22 => Self::Close { store: bytes.name()? },
            23 => Self::FreeStore { store: bytes.name()? },
            24 => Self::Named { home: bytes.node()?, request: bytes.counted()? },
            25 => {
                Self::Confirm { node: bytes.option(|bytes| Ok((bytes.node()?, Incarnation(bytes.u32()?))))? }
            }
            26 => Self::Sync,
            27 => Self::Drain(bytes.one_of(&ORDERS)?),
            _ => return Err(Malformed),
        })
    }
}

/// How a lock is held, as its copy says it.
pub(super) const fn lock_mode(mode: Mode) -> LockMode {
    match mode {
        Mode::Read => LockMode::Read,
        Mode::Write => LockMode::Write,
    }
}

impl Creation<'_> {
    /// None: there cannot be such a one.
    pub(super) fn config(&self) -> Option<ChainsConfig> {
        let Self { homes, bytes, copies, server, lease, quarantine } = *self;
        let (pairs, rest) = homes.as_chunks::<2>();
        let is_time = |time: Nanos| time.0 < u64::MAX / 4;
        if !rest.is_empty() || !is_time(lease) || !quarantine.is_none_or(is_time) {
            return None;
        }
        let homes = pairs.iter().map(|pair| NodeId(u16::from_le_bytes(*pair))).collect();
        let copies = usize::try_from(copies).ok()?;
        Some(ChainsConfig { homes, bytes, copies, server, lease, quarantine })
    }
}
