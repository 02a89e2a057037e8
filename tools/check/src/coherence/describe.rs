//! What is shown of blocks, to whoever asks why a run failed: who waits for whom, and what everybody says of the block.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use node::Message;
use wire::{BlockTag, Rules};

use super::Blocks;
use super::threads::Doing;
use crate::rack::Control;

/// Blocks that are shown; of the others, only who waits.
const SHOWN: usize = 4;

impl<R: Rules> Blocks<R> {
    /// A page, and the block that most wait for.
    pub(super) fn page(&self, control: &Control) -> (String, Option<u64>) {
        let mut page = String::new();
        let mut waited_for = BTreeMap::<BlockTag, usize>::new();
        for (index, thread) in self.threads.iter().enumerate() {
            if thread.doing != Doing::Idle {
                let _ = writeln!(page, "thread {index} of {}: {:?}", thread.node, thread.doing);
            }
        }
        for (node, _) in self.up(control) {
            let id = node.config().id;
            for pending in node.pending() {
                let tag = pending.tag.map_or_else(String::new, |tag| format!(" {tag:?}"));
                let _ = writeln!(page, "{id} slot {}{tag}: {}", pending.slot.0, pending.what);
                if let Some(tag) = pending.tag {
                    *waited_for.entry(tag).or_default() += 1;
                }
            }
            if let Some(nodes) = node.awaits_reports_of() {
                let _ = writeln!(page, "{id} is a home that waits for reports of {nodes:?}");
            }
            if let Some(copies) = node.unsettled_copies() {
                let _ = writeln!(page, "{id}: {copies}");
            }
        }
        let mut most: Vec<_> = waited_for.into_iter().collect();
        most.sort_by_key(|(_, waiting)| std::cmp::Reverse(*waiting));
        for (tag, _) in most.iter().take(SHOWN) {
            self.show(*tag, control, &mut page);
        }
        (page, most.first().map(|(tag, _)| tag.bits()))
    }

    fn show(&self, tag: BlockTag, control: &Control, page: &mut String) {
        let home = tag.home();
        let entry = self.switch.entry(tag);
        let _ = writeln!(page, "{tag:?}, last written as number {:?}:", self.latest.get(&tag));
        let _ =
            writeln!(page, "  switch: {}", entry.map_or("no entry".to_owned(), |entry| format!("{entry:?}")));
        if let Some(server) = Self::server(control, tag).filter(|server| control.is_up(Some(*server))) {
            let (node, store) = &self.nodes[server.index()];
            let (lost, memory) = (if node.has_lost(tag) { ", lost" } else { "" }, store.home_stamp(tag));
            let _ = writeln!(page, "  home {home}: {:?}, memory {memory}{lost}", node.entry(tag));
        } else {
            let _ = writeln!(page, "  home {home} is down");
        }
        for (node, store) in self.up(control) {
            for frame in store.frames.iter().filter(|frame| frame.published.is_some_and(|(it, _)| it == tag))
            {
                let _ = writeln!(page, "  {}: {frame:?}", node.config().id);
            }
        }
    }
}

/// A packet in a line.
pub(super) fn short(message: &Message) -> String {
    let p = &message.packet;
    format!(
        "{:?}({:?}) {:?} {:?}#{} {:?} -> {:?} {:?} {:?}{:?}{}{} data {:?}",
        p.kind,
        p.event,
        p.tag,
        p.requester,
        p.seq.0,
        p.from,
        p.to,
        p.status,
        p.global_status,
        p.copyset,
        if p.in_switch { " in-switch" } else { "" },
        if p.repeated { " repeated" } else { "" },
        message.data.map(|data| data.0),
    )
}
