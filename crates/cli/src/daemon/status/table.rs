//! How a rack is, for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use rackmem::Nanos;
use status::document::{Memory, Node, Port, Status, Transport};
use status::locks::Lock;

use crate::size::Bytes;

/// Locks that are shown.
const BUSIEST: usize = 5;

/// The document as text: the rack in a few lines, then a row for each node, and for the busiest locks; with what was known of those so
/// long ago.
pub(super) fn tables(status: &Status, before: Option<(Vec<Lock>, Duration)>) -> String {
    let (switch, membership) = (&status.switch, &status.membership);
    let up = status.nodes.iter().filter(|node| node.up).count();
    let mut text = format!(
        "rack `{}` over {}: {}, {up} of {} nodes up, epoch {}\n",
        status.rack,
        status.transport,
        status.phase,
        status.nodes.len(),
        status.epoch
    );
    let full = 100.0 * switch.entries_used as f64 / switch.entries.max(1) as f64;
    let _ = writeln!(
        text,
        "switch: {} of {} directory entries in use ({full:.1} %); {} coherence packets in, {} out, {} dropped",
        switch.entries_used,
        switch.entries,
        switch.packets_received,
        switch.packets_sent,
        switch.packets_dropped
    );
    if let Some(kernel) = &switch.kernel {
        let did = |counts| shown(counts).unwrap_or_else(|| "nothing yet".to_owned());
        let (blocks, locks) = (did(&kernel.blocks), did(&kernel.locks));
        let ports = ports(&kernel.ports);
        let kept = kernel.kept.as_ref().map_or(String::new(), |kept| format!(", kept in {kept}"));
        let _ = writeln!(text, "  in the kernel at {ports}{kept}; blocks: {blocks}; locks: {locks}");
    }
    let steering = &switch.steering;
    if steering.carried > 0 {
        let _ = writeln!(
            text,
            "  chains: {} packets carried; {} appends steered ({} elsewhere than they asked), {} not; {} refused, {} indeterminate; {} reads sent to the tail ({} before its append was acknowledged), {} again, {} refused after a restart",
            steering.carried,
            steering.steered,
            steering.moved,
            steering.unsteered,
            steering.refused,
            steering.doubted,
            steering.reads,
            steering.reads_ahead,
            steering.reads_turned,
            steering.reads_refused
        );
    }
    let _ = writeln!(text, "  {}", moved(&switch.transport));
    let ended = shown(&membership.ended).unwrap_or_else(|| "none".to_owned());
    let _ = writeln!(text, "lives ended: {ended}; epochs begun here: {}", membership.epochs);
    if !status.memories.is_empty() {
        let _ = writeln!(text, "{}", copies(status));
    }
    let _ = writeln!(text, "{}", nodes(&status.nodes));
    for (id, drain) in status.nodes.iter().filter_map(|node| Some((node.id, node.draining.as_ref()?))) {
        let (memories, staying) = (drain.memories_missing, drain.nodes_staying);
        let _ = match (memories, staying) {
            (0, _) => writeln!(text, "node {id} drains: others have all it keeps"),
            (_, 0) => writeln!(text, "node {id} drains: no node stays that could take what it keeps"),
            _ => writeln!(
                text,
                "node {id} drains: memories that are still to come to others: {memories}; nodes that stay: {staying}"
            ),
        };
    }
    for node in &status.nodes {
        let Some(counts) = &node.counts else { continue };
        let _ = writeln!(text, "node {}: {}", node.id, moved(&counts.transport));
        if counts.nic.sent + counts.nic.received > 0 {
            let nic = &counts.nic;
            let dropped = shown(&nic.dropped).unwrap_or_else(|| "none".to_owned());
            let _ = writeln!(
                text,
                "  its NIC: {} packets out, {} in; {} times sent again, {} connections failed; dropped: {dropped}",
                nic.sent, nic.received, nic.repeated, nic.broken
            );
        }
        let chains = &counts.chains;
        if chains.stores > 0 {
            let _ = writeln!(
                text,
                "  its stores of chains: {}, {} keys, {} of {} given out are free; {} calls, {} appends told, {} clients swept",
                chains.stores,
                chains.keys,
                Bytes(chains.free_bytes),
                Bytes(chains.made_bytes),
                chains.calls,
                chains.appends,
                chains.swept
            );
            if chains.missing > 0 {
                let _ = writeln!(
                    text,
                    "  these stores lack {} copies of parts, or backups of their metadata server: their nodes have died; {} are to be copied",
                    chains.missing,
                    Bytes(chains.missing_bytes)
                );
            }
        }
        if let Some(drops) = shown(&counts.dropped) {
            let _ = writeln!(text, "  packets of no use any more: {drops}");
        }
    }
    if let Some(why) = &status.locks_unknown {
        let _ = writeln!(text, "locks that have names: not known: {why}");
    }
    if !status.locks.is_empty() {
        let shown = status.locks.len().min(BUSIEST);
        let _ = writeln!(
            text,
            "the busiest {shown} of {} locks that have names, by write grants and waits in total",
            status.locks.len()
        );
        let _ = writeln!(text, "{}", locks(&status.locks[..shown], before));
    }
    text
}

/// Ports beside each other where programs see packets at the same place.
fn ports(ports: &[Port]) -> String {
    let groups = ports.chunk_by(|a, b| a.hook == b.hook).map(|group| {
        let devices: Vec<&str> = group.iter().map(|port| port.device.as_str()).collect();
        format!("{} ({})", devices.join(", "), group[0].hook)
    });
    groups.collect::<Vec<_>>().join(", ")
}

/// What memories with copies lack, and who is getting it.
fn copies(status: &Status) -> String {
    let lack: Vec<&Memory> =
        status.memories.iter().filter(|memory| memory.kept_by.len() < status.copies).collect();
    let (of, copies) = (status.memories.len(), status.copies);
    if lack.is_empty() {
        return format!("memories with copies: all {of} are on {copies} nodes");
    }
    let counts = status.nodes.iter().filter_map(|node| node.counts.as_ref());
    let came: u64 = counts.map(|counts| counts.refilled_bytes).sum();
    let list = |nodes: &[u16]| nodes.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    let lines = lack.iter().map(|memory| match (memory.kept_by.as_slice(), memory.copied_to.as_slice()) {
        ([], _) => format!("\n  that near node {}: nowhere", memory.near),
        (have, []) => format!("\n  that near node {}: on {}; there is no node more", memory.near, list(have)),
        (have, to) => {
            format!("\n  that near node {}: on {}; being copied to {}", memory.near, list(have), list(to))
        }
    });
    let (missing, whole) = (status.copies_missing(), of - lack.len());
    format!(
        "memories with copies: {whole} of {of} are on {copies} nodes, {missing} copies are missing ({} have come since nodes began){}",
        Bytes(came),
        lines.collect::<String>()
    )
}

fn locks(locks: &[Lock], before: Option<(Vec<Lock>, Duration)>) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    let rates: &[&str] = if before.is_some() { &["writes/s", "waits/s"] } else { &[] };
    let header = ["lock", "holder", "waiting", "writes", "waits", "p50", "p99", "holds timed", "p50", "p99"];
    table.set_header(header.iter().chain(rates));
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for lock in locks {
        let time = |most: Option<u64>| most.map_or_else(String::new, |most| format!("{}", Nanos(most)));
        let mut row =
            vec![lock.name.clone(), lock.holder(), lock.waiting().to_string(), lock.writes.to_string()];
        for times in [&lock.waits, &lock.holds] {
            row.extend([times.count.to_string(), time(times.p50_ns), time(times.p99_ns)]);
        }
        if let Some((before, long)) = &before {
            let same = before.iter().find(|it| (&it.name, &it.address) == (&lock.name, &lock.address));
            let rate = |now: u64, of: fn(&Lock) -> u64| {
                let more = same.map_or(0, |then| now.saturating_sub(of(then)));
                format!("{:.0}", more as f64 / long.as_secs_f64())
            };
            row.extend([rate(lock.writes, |it| it.writes), rate(lock.waits.count, |it| it.waits.count)]);
        }
        table.add_row(row);
    }
    table
}

fn nodes(nodes: &[Node]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header([
        "node",
        "state",
        "heard",
        "incarnation",
        "hits",
        "misses",
        "hit rate",
        "refused",
        "sent again",
        "provided",
        "lost",
        "memory used",
    ]);
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for node in nodes {
        let heard = node.silence_ns.map_or_else(String::new, |silence| format!("{} ago", Nanos(silence)));
        let incarnation =
            if node.incarnation == 0 { "none yet".to_owned() } else { node.incarnation.to_string() };
        let mut row = vec![node.id.to_string(), state(node).to_owned(), heard, incarnation];
        if let Some(counts) = &node.counts {
            let accesses = counts.hits + counts.misses;
            let rate = match accesses {
                0 => String::new(),
                _ => format!("{:.2} %", 100.0 * counts.hits as f64 / accesses as f64),
            };
            row.extend([counts.hits.to_string(), counts.misses.to_string(), rate]);
            row.extend(
                [counts.refused, counts.retransmissions, counts.provided].map(|count| count.to_string()),
            );
            row.extend([counts.lost_blocks.to_string(), Bytes(counts.memory_live_bytes).to_string()]);
        }
        table.add_row(row);
    }
    table
}

fn state(node: &Node) -> &'static str {
    match (node.up, node.incarnation, node.counts.as_ref().is_some_and(|counts| counts.recovering)) {
        (true, _, true) => "recovering",
        (true, ..) if node.draining.is_some() => "draining",
        (true, ..) => "up",
        (false, 0, _) => "absent",
        (false, ..) => "down",
    }
}

/// What a transport has moved and dropped.
fn moved(transport: &Transport) -> String {
    let dropped = shown(&transport.dropped).unwrap_or_else(|| "none".to_owned());
    format!(
        "{} messages out ({}), {} in ({}), {} wake-ups; dropped: {dropped}",
        transport.sent,
        Bytes(transport.sent_bytes),
        transport.received,
        Bytes(transport.received_bytes),
        transport.wake_ups
    )
}

/// The counts that are not 0.
fn shown(counts: &BTreeMap<String, u64>) -> Option<String> {
    let counts = counts.iter().filter(|(_, count)| **count > 0);
    let shown: Vec<String> =
        counts.map(|(name, count)| format!("{count} {}", name.replace('_', " "))).collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}
