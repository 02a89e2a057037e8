//! `rackmem-lab dissector`: a program for Wireshark and tshark that shows what a rack sends over UDP.
//!
//! What must always hold: fields lie where the code that encodes them says. So their tables are written from it; by hand are only
//! the datagram's head and its records (`rackmem.lua`).

use std::fmt::Debug;
use std::fmt::Write as _;

use transport::{PeerId, WIRE_VERSION};
use wire::header::Place;
use wire::roce::Opcode;
use wire::{
    Endpoint, GlobalStatus, HeaderField, HeaderFields, LockEnd, LockField, LockKind, PacketKind, Status,
};

use cli::fault::Fault;
use cli::output;

/// What is done with the tables.
const PROGRAM: &str = include_str!("rackmem.lua");

/// Runs the command.
pub(crate) fn run() -> Result<(), Fault> {
    output::print(&text())
}

fn text() -> String {
    let mut text = "-- Written by `rackmem-lab dissector`.\n".to_owned();
    let mut line = |line: String| text.push_str(&(line + "\n"));
    line(format!("local VERSION, SWITCH = {WIRE_VERSION}, {}", PeerId::SWITCH.to_wire()));
    line(format!("local OPCODES = {}", names(Opcode::from_wire)));
    let packet = Header {
        name: "packet",
        title: "About a block",
        bytes: wire::packet::HEADER_BYTES,
        kinds: names(PacketKind::from_wire),
        agents: names(|byte| Endpoint::from_wire(byte, 0)),
        queued: None,
    };
    let values = |field| match field {
        HeaderField::Kind | HeaderField::Event => Some(names(PacketKind::from_wire)),
        HeaderField::Status => Some(names(Status::from_wire)),
        HeaderField::GlobalStatus => Some(names(GlobalStatus::from_wire)),
        _ => None,
    };
    line(format!("local PACKET = {}", packet.table(HeaderField::ALL.map(|field| (field, values(field))))));
    let lock = Header {
        name: "lock",
        title: "About a lock",
        bytes: wire::locks::HEADER_BYTES,
        kinds: names(LockKind::from_wire),
        agents: names(|byte| LockEnd::from_wire(byte, 0)),
        queued: Some(LockField::Queued.place().at),
    };
    let values = |field| match field {
        LockField::Kind => Some(names(LockKind::from_wire)),
        LockField::Status => Some(names(Status::from_wire)),
        _ => None,
    };
    line(format!("local LOCK = {}", lock.table(LockField::ALL.map(|field| (field, values(field))))));
    text + "\n" + PROGRAM
}

/// A header whose fields have a table.
struct Header {
    name: &'static str,
    title: &'static str,
    bytes: usize,
    kinds: String,
    agents: String,
    /// Where the length of a list stands that follows the header.
    queued: Option<usize>,
}

impl Header {
    fn table<F: HeaderFields + Debug, const N: usize>(&self, fields: [(F, Option<String>); N]) -> String {
        let Self { name, title, bytes, kinds, agents, queued } = self;
        let mut table =
            format!("{{\n  name = \"{name}\", title = \"{title}\", bytes = {bytes},\n  fields = {{\n");
        for (field, values) in fields {
            let Place { at, bytes, bit } = field.place();
            let name = format!("{field:?}").to_lowercase();
            // A String takes everything.
            let _ = write!(table, "    {{ name = \"{name}\", at = {at}, bytes = {bytes}");
            let _ = bit.map_or(Ok(()), |bit| write!(table, ", bit = {bit}"));
            let _ = values.map_or(Ok(()), |values| write!(table, ", values = {values}"));
            table.push_str(" },\n");
        }
        let _ = write!(table, "  }},\n  kinds = {kinds},\n  agents = {agents},\n");
        for (name, (node, agent)) in [("from", F::FROM), ("to", F::TO)] {
            let _ = writeln!(table, "  {name} = {{ node = {}, agent = {} }},", node.at, agent.at);
        }
        let _ = queued.map_or(Ok(()), |queued| writeln!(table, "  queued = {queued},"));
        table + "}"
    }
}

/// A table of what bytes mean.
fn names<T: Debug>(of: impl Fn(u8) -> Option<T>) -> String {
    let named = (0..=u8::MAX).filter_map(|byte| {
        let name = format!("{:?}", of(byte)?);
        // What it is, and not with which node: `HomeAgent(NodeId(0))`; but why refused.
        let name = match name.strip_prefix("Refused(") {
            Some(why) => format!("Refused: {}", why.trim_end_matches(')')),
            None => name.split('(').next().unwrap_or_default().to_owned(),
        };
        Some(format!("[{byte}] = \"{name}\""))
    });
    format!("{{ {} }}", named.collect::<Vec<_>>().join(", "))
}
