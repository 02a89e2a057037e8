//! What members and the coordinator send each other, and its bytes.
//!
//! Little endian; kind and version first. What must always hold: parsing never panics, whatever the bytes are, and a
//! message that parses encodes to the same bytes again.

mod bytes;
mod contents;
#[doc(hidden)]
pub mod fuzz;

use alloc::vec::Vec;

use wire::{Copyset, Nanos, NodeId, SwitchEpoch};

use crate::roster::{Roster, Session};
use bytes::Reader;
pub(crate) use contents::{Contents, encode_dump, encode_roster, read_roster};

/// Statistics that a BEAT carries, at most, in bytes.
pub const MOST_STATISTICS: usize = 1 << 10;
/// The contents of a VIEW, at most, in bytes. Small, because a part that loses one datagram is lost.
pub const PART: usize = 8 << 10;
/// Parts of a view, at most: 64 MiB, a directory of 3.5 million blocks.
pub const MOST_PARTS: u32 = 8 << 10;
/// A later epoch than this is a lie: epochs count from seconds since some year, one a change.
pub const LAST_EPOCH: SwitchEpoch = SwitchEpoch(u32::MAX - (1 << 20));

const VERSION: u8 = 4;
const BEAT: u8 = 1;
const PULSE: u8 = 2;
const KNOW: u8 = 3;
const VIEW: u8 = 4;

/// A message of membership.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Member to coordinator.
    Beat(Beat),
    /// Coordinator to member.
    Pulse(Pulse),
    /// Member to coordinator.
    Know(Know),
    /// Coordinator to member.
    View(ViewPart),
}

/// "I am here."
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beat {
    /// Which node.
    pub node: NodeId,
    /// Which incarnation of it.
    pub session: Session,
    /// From 1 up: an older one than the last says nothing.
    pub number: u64,
    /// The member's clock when it sent this.
    pub time: Nanos,
    /// The epoch that it is in; 0: it has not been in any.
    pub epoch: SwitchEpoch,
    /// The view that it gathers, and the part that it lacks; epoch 0: none.
    pub wants: (SwitchEpoch, u32),
    /// The last ticket that it got.
    pub ticket: u64,
    /// Its lease was running when it sent this.
    pub leased: bool,
    /// It wants to leave, and has given its lease up.
    pub leaving: bool,
    /// It is about to leave, and others are to get first what it keeps.
    pub draining: bool,
    /// No other process of this node can be running any more.
    pub sole: bool,
    /// The memories with copies that it has whole in this epoch, counted from the first of them.
    pub whole: Copyset,
    /// Whatever the process has to tell whoever asks how the rack is; at most [`MOST_STATISTICS`].
    pub statistics: Vec<u8>,
}

/// The answer to a BEAT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pulse {
    /// Whom it is for.
    pub session: Session,
    /// The time in the BEAT.
    pub echo: Nanos,
    /// The epoch that the switch is in; 0 while the rack forms.
    pub epoch: SwitchEpoch,
    /// To be sent back in BEATs: so the coordinator knows that they were sent after this.
    pub ticket: u64,
    /// What the member is.
    pub standing: Standing,
    /// How far it has come that others get what it keeps, if it drains.
    pub drain: Option<Drain>,
}

/// How far a node that drains has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drain {
    /// The memories with copies that it has and too few of those nodes have that stay, counted from the first of them.
    pub missing: Copyset,
    /// How many nodes stay.
    pub staying: u8,
}

/// What a member is to the coordinator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Not in the rack, or not yet.
    Waiting,
    /// The coordinator is new, and asks for a KNOW.
    Asked,
    /// In the rack, without a lease: others do not know yet, or it is late itself.
    Admitted,
    /// In the rack: a lease runs from the echoed time.
    Alive,
    /// Its incarnation is over.
    Dead,
    /// The switch's list of nodes does not have it.
    Unlisted,
}

/// "This is the last view that I was told."
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Know {
    /// Which node.
    pub node: NodeId,
    /// Which incarnation of it.
    pub session: Session,
    /// The view.
    pub roster: Roster,
}

/// A part of a view, and of what the old switch knew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ViewPart {
    /// Whom it is for.
    pub session: Session,
    /// The epoch that begins.
    pub epoch: SwitchEpoch,
    /// The epoch that the member leaves: what the switch knew at the end of that one goes with the view.
    pub left: SwitchEpoch,
    /// Which part this is, from 0.
    pub part: u32,
    /// How many there are.
    pub of: u32,
    /// Its bytes, at most [`PART`].
    pub bytes: Vec<u8>,
}

/// The bytes are no message of this version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("no message of membership")
    }
}

impl core::error::Error for Malformed {}

impl Message {
    /// The message in these bytes, all of them.
    ///
    /// # Errors
    /// If they are anything else.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let message = Self::read(&mut reader).ok_or(Malformed)?;
        if reader.is_empty() { Ok(message) } else { Err(Malformed) }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let kind = reader.u8()?;
        if reader.u8()? != VERSION {
            return None;
        }
        Some(match kind {
            BEAT => Self::Beat(read_beat(reader)?),
            PULSE => Self::Pulse(Pulse {
                session: Session(reader.u64()?),
                echo: Nanos(reader.u64()?),
                epoch: reader.epoch()?,
                ticket: reader.u64()?,
                standing: Standing::from_wire(reader.u8()?)?,
                drain: read_drain(reader)?,
            }),
            KNOW => {
                let (node, session) = (reader.node()?, Session(reader.u64()?));
                Self::Know(Know { node, session, roster: read_roster(reader)? })
            }
            VIEW => Self::View(read_part(reader)?),
            _ => return None,
        })
    }

    /// The bytes: at most [`PART`] and a header.
    ///
    /// # Panics
    /// If statistics or the bytes of a part are longer than they may be.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Beat(beat) => encode_beat(beat, &mut out),
            Self::Pulse(pulse) => {
                out.extend([PULSE, VERSION]);
                out.extend(pulse.session.0.to_le_bytes());
                out.extend(pulse.echo.0.to_le_bytes());
                out.extend(pulse.epoch.0.to_le_bytes());
                out.extend(pulse.ticket.to_le_bytes());
                out.push(pulse.standing.to_wire());
                out.push(pulse.drain.is_some().into());
                if let Some(Drain { missing, staying }) = pulse.drain {
                    out.extend(missing.bits().to_le_bytes());
                    out.push(staying);
                }
            }
            Self::Know(know) => {
                out.extend([KNOW, VERSION]);
                out.extend(know.node.0.to_le_bytes());
                out.extend(know.session.0.to_le_bytes());
                encode_roster(&know.roster, &mut out);
            }
            Self::View(view) => {
                assert!(view.bytes.len() <= PART);
                out.extend([VIEW, VERSION]);
                out.extend(view.session.0.to_le_bytes());
                out.extend(view.epoch.0.to_le_bytes());
                out.extend(view.left.0.to_le_bytes());
                out.extend(view.part.to_le_bytes());
                out.extend(view.of.to_le_bytes());
                encode_rest(&view.bytes, &mut out);
            }
        }
        out
    }
}

impl Standing {
    const fn to_wire(self) -> u8 {
        match self {
            Self::Waiting => 0,
            Self::Asked => 1,
            Self::Admitted => 2,
            Self::Alive => 3,
            Self::Dead => 4,
            Self::Unlisted => 5,
        }
    }

    const fn from_wire(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Waiting,
            1 => Self::Asked,
            2 => Self::Admitted,
            3 => Self::Alive,
            4 => Self::Dead,
            5 => Self::Unlisted,
            _ => return None,
        })
    }
}

const LEASED: u8 = 1;
const LEAVING: u8 = 2;
const SOLE: u8 = 4;
const DRAINING: u8 = 8;

fn read_drain(reader: &mut Reader<'_>) -> Option<Option<Drain>> {
    if !reader.bool()? {
        return Some(None);
    }
    Some(Some(Drain { missing: Copyset::from_bits(reader.u64()?), staying: reader.u8()? }))
}

fn read_beat(reader: &mut Reader<'_>) -> Option<Beat> {
    let (node, session) = (reader.node()?, Session(reader.u64()?));
    let (number, time) = (reader.u64()?, Nanos(reader.u64()?));
    let (epoch, wants) = (reader.epoch()?, (reader.epoch()?, reader.u32()?));
    let (ticket, flags) = (reader.u64()?, reader.u8()?);
    let whole = Copyset::from_bits(reader.u64()?);
    let is = |flag: u8| flags & flag != 0;
    if flags > LEASED | LEAVING | SOLE | DRAINING {
        return None;
    }
    let statistics = reader.rest_of(MOST_STATISTICS)?.to_vec();
    let (leased, leaving, draining, sole) = (is(LEASED), is(LEAVING), is(DRAINING), is(SOLE));
    Some(Beat {
        node,
        session,
        number,
        time,
        epoch,
        wants,
        ticket,
        leased,
        leaving,
        draining,
        sole,
        whole,
        statistics,
    })
}

fn encode_beat(beat: &Beat, out: &mut Vec<u8>) {
    assert!(beat.statistics.len() <= MOST_STATISTICS);
    out.extend([BEAT, VERSION]);
    out.extend(beat.node.0.to_le_bytes());
    out.extend(beat.session.0.to_le_bytes());
    out.extend(beat.number.to_le_bytes());
    out.extend(beat.time.0.to_le_bytes());
    out.extend(beat.epoch.0.to_le_bytes());
    out.extend(beat.wants.0.0.to_le_bytes());
    out.extend(beat.wants.1.to_le_bytes());
    out.extend(beat.ticket.to_le_bytes());
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    let flags = flag(beat.leased, LEASED) | flag(beat.leaving, LEAVING) | flag(beat.sole, SOLE);
    out.push(flags | flag(beat.draining, DRAINING));
    out.extend(beat.whole.bits().to_le_bytes());
    encode_rest(&beat.statistics, out);
}

fn read_part(reader: &mut Reader<'_>) -> Option<ViewPart> {
    let session = Session(reader.u64()?);
    let (epoch, left) = (reader.epoch()?, reader.epoch()?);
    let (part, of) = (reader.u32()?, reader.u32()?);
    if left >= epoch || part >= of || of > MOST_PARTS {
        return None;
    }
    Some(ViewPart { session, epoch, left, part, of, bytes: reader.rest_of(PART)?.to_vec() })
}

/// Ends a message: so many bytes, and these.
fn encode_rest(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(u16::try_from(bytes.len()).expect("a part is shorter").to_le_bytes());
    out.extend(bytes);
}

/// A node's number, if a rack can have it.
fn node_of(number: u16) -> Option<NodeId> {
    (usize::from(number) < Copyset::NODES).then_some(NodeId(number))
}
