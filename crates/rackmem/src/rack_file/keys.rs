//! The keys of a rack file, and for each of them whether all processes of a rack must have the same value.
//!
//! The parser takes no key that does not stand here, and none can stand here without that decision. What must always hold:
//! a setting is each place's own only if no other place relies on it. Those that must be the same go into every greeting
//! ([`RackFile::terms`]), so a process that has another value is not let in, and told which one it is.

use transport::Terms;

use super::units::{bytes_text, span_text};
use super::{Placement, RackFile};
use crate::config::Directory;

/// A key of a rack file.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Whether all processes must have the same value.
    pub agreement: Agreement,
}

/// Whether all processes of a rack must have the same value of a key.
#[derive(Clone, Copy, Debug)]
pub enum Agreement {
    /// They must, and show each other this value when they meet.
    Same(fn(&RackFile) -> String),
    /// It is each place's own.
    Own,
    /// They must, and never show it: greetings are authenticated with it.
    Secret,
}

const fn same(name: &'static str, value: fn(&RackFile) -> String) -> Setting {
    Setting { name, agreement: Agreement::Same(value) }
}

const fn own(name: &'static str) -> Setting {
    Setting { name, agreement: Agreement::Own }
}

/// A table of the file, and its keys.
pub(super) type Keys = (&'static str, &'static [Setting]);

pub(super) const RACK: Keys = (
    "[rack]",
    &[
        // Whoever has reached another rack has a wrong address, directory or file.
        same("name", |file| format!("\"{}\"", file.name)),
        same("transport", |file| file.transport().name().to_owned()),
        // An address is a block and a place in it; buffers and rings are made for it.
        same("block", |file| bytes_text(file.config.block_size.bytes())),
        // Frames are known to their own node only; a copyset names nodes.
        own("cache"),
        // What a node checks an address against before it asks the home; and allocators ask homes for chunks of a size that
        // follows from it.
        same("memory", |file| bytes_text(file.config.memory)),
        // Who keeps what, and in which memories there is anything.
        same("copies", |file| file.config.copies.to_string()),
        // What comes is asked for by who gets it.
        own("refill"),
        // As `cache`: who has no room fetches again.
        own("lock_copies"),
        // The longest message that a peer takes.
        same("lock_region", |file| bytes_text(file.config.lock_region)),
        // How long the other nodes wait at most.
        same("own_first", |file| file.config.own_first.to_string()),
        // A name is looked for where it is kept.
        same("name_nodes", |file| file.config.name_nodes.map_or("all".to_owned(), |nodes| nodes.to_string())),
        // Copysets and allocators are made for so many. How many there are, the switch says.
        same("most_nodes", |file| file.config.places().to_string()),
        // A lease is as long as the node believes, and the switch counts on it.
        same("timeout", |file| span_text(file.timeout)),
        // A switch without it drops the requests of nodes with it.
        same("peek", |file| file.config.peek.to_string()),
        // How a process looks at its own lease, and runs its own threads.
        own("strict"),
        own("scheduling"),
        Setting { name: "key", agreement: Agreement::Secret },
        // Both ends of a connection between NICs count packets of one size.
        same("mtu", |file| match &file.placement {
            Placement::SharedMemory { .. } => "none".to_owned(),
            Placement::Udp { mtu, .. } => mtu.to_string(),
        }),
        own("runtime"),
    ],
);

pub(super) const SWITCH: Keys = (
    "[switch]",
    &[
        // The same machine may have another address, or name, for each of the others.
        own("listen"),
        own("advertise"),
        // The switch's hash sets, which node 0 shadows.
        same("entries", |file| file.config.switch_entries.to_string()),
        // The switch's alone: for a lock that it has no entry for, it says so, and the home keeps it.
        own("lock_entries"),
        // Clients tell a switch that steers of their connections, and keep what they know for as long as that takes.
        same("steering", |file| file.config.steering.unwrap_or(0).to_string()),
        same("steer_reads", |file| file.config.steer_reads.to_string()),
        same("preload", |file| file.config.preload.to_string()),
        // All nodes must ask the same place for a lock, or two of them get it.
        same("directory", |file| {
            let keeper = match file.config.directory {
                Directory::Auto => "auto",
                Directory::Switch => "switch",
                Directory::Home => "home",
            };
            keeper.to_owned()
        }),
        // Who does not know of the queue takes a lock that was handed over for a lost one.
        same("queue", |file| file.config.queue.to_string()),
        // Where it is in the kernel, packets for it travel in datagrams that the program knows.
        same("data_plane", |file| file.data_plane().name().to_owned()),
        own("ports"),
        own("hook"),
        own("keep"),
        own("metrics"),
    ],
);

pub(super) const NODE: Keys = (
    "[[node]]",
    &[
        // A node that is appended is no difference to places that do not know it.
        own("id"),
        own("listen"),
        own("advertise"),
        own("metrics"),
    ],
);

impl RackFile {
    /// Every key that a rack file can have, with its table.
    pub fn keys() -> impl Iterator<Item = (&'static str, &'static Setting)> {
        [RACK, SWITCH, NODE].into_iter().flat_map(|(table, keys)| keys.iter().map(move |key| (table, key)))
    }

    /// What all processes of this rack must have the same: greetings carry it.
    pub fn terms(&self) -> Terms {
        let same = Self::keys().filter_map(|(_, key)| match key.agreement {
            Agreement::Same(value) => Some((key.name, value(self))),
            Agreement::Own | Agreement::Secret => None,
        });
        Terms::new(same)
    }
}
