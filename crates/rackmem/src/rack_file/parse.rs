//! The file as a whole: which tables there are, and what `[rack]` says.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wire::{BlockSize, Nanos};

use super::error::{Mistakes, RackFileError};
use super::keys::{NODE, RACK, SWITCH};
use super::placement;
use super::table::Table;
use super::units::{bytes_text, most_bytes_text, span, span_text};
use super::{Placement, RackFile};
use crate::config::{Config, ConfigError, Directory};
use live::scheduling::Scheduling;

/// A heartbeat is an eighth of the timeout: under this, a process that waits for a processor would be given up.
const LEAST_TIMEOUT: Nanos = Nanos::from_millis(50);
const MOST_TIMEOUT: Nanos = Nanos::from_millis(600_000);
const DEFAULT_TIMEOUT: Nanos = Nanos::from_millis(1_000);
/// A Unix socket's path has at most 107 bytes, and the directory has the name in it.
const LONGEST_NAME: usize = 32;

/// The tables of the file.
pub(super) struct Tables<'a> {
    pub(super) rack: Table<'a>,
    /// Racks in shared memory can do without.
    pub(super) switch: Option<Table<'a>>,
    pub(super) nodes: Vec<Table<'a>>,
}

pub(super) fn parse(path: &Path, text: &str) -> Result<RackFile, RackFileError> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut mistakes = Mistakes::new(path, text);
    let place = |error: &toml::de::Error| error.span().map_or(text.len(), |span| span.start);
    // What the rest of such a text says is guesswork: it would be blamed for what it does not say.
    if let Some(first) = errors.iter().min_by_key(|error| place(error)) {
        mistakes.add(place(first), not_toml(first.message()));
    }
    mistakes.into_result()?;
    let mut mistakes = Mistakes::new(path, text);
    let rack =
        tables(document.get_ref(), &mut mistakes).and_then(|tables| read(path, &tables, &mut mistakes));
    mistakes.into_result()?;
    Ok(rack.expect("a file that is refused has a mistake"))
}

fn not_toml(message: &str) -> String {
    match message {
        "duplicate key" => "this key or table is there already: remove one of the two".to_owned(),
        message => format!("this is not TOML: {message}"),
    }
}

/// Sorts out the tables.
fn tables<'a>(document: &'a DeTable<'a>, mistakes: &mut Mistakes<'_>) -> Option<Tables<'a>> {
    for key in document.keys() {
        let (name, at) = (key.get_ref().as_ref(), key.span().start);
        if !["rack", "switch", "node"].contains(&name) {
            let owner =
                [RACK, SWITCH, NODE].into_iter().find(|(_, keys)| keys.iter().any(|key| key.name == name));
            match owner {
                Some((table, _)) => mistakes.add(at, format_args!("`{name}` stands in no table: write it under {table}")),
                None => mistakes.add(
                    at,
                    format_args!("`{name}` is nothing that a rack file has: it has [rack], [switch] and one [[node]] for each node"),
                ),
            }
        }
    }
    let rack = single(document, RACK.0, mistakes);
    let switch = single(document, SWITCH.0, mistakes);
    let nodes = nodes(document, mistakes);
    let (rack, nodes) = (rack?, nodes?);
    rack.refuse_unknown(&[RACK, SWITCH, NODE], mistakes);
    if let Some(switch) = switch {
        switch.refuse_unknown(&[SWITCH, RACK, NODE], mistakes);
    }
    for node in &nodes {
        node.refuse_unknown(&[NODE, RACK, SWITCH], mistakes);
    }
    Some(Tables { rack, switch, nodes })
}

fn single<'a>(
    document: &'a DeTable<'a>,
    name: &'static str,
    mistakes: &mut Mistakes<'_>,
) -> Option<Table<'a>> {
    let value = document.get(name.trim_matches(['[', ']']));
    match value.map(Spanned::get_ref) {
        Some(DeValue::Table(entries)) => Some(Table::new(name, value?.span().start, entries)),
        Some(_) => {
            mistakes.add(
                value?.span().start,
                format_args!("there is one {name}, with single brackets: write {name}"),
            );
            None
        }
        None if name == RACK.0 => {
            mistakes.add(0, "there is no [rack]: write [rack], and under it name = \"...\" and transport = \"udp\" or \"shm\"");
            None
        }
        None => None,
    }
}

fn nodes<'a>(document: &'a DeTable<'a>, mistakes: &mut Mistakes<'_>) -> Option<Vec<Table<'a>>> {
    let value = document.get("node");
    let Some(value) = value else {
        mistakes.add(usize::MAX, "there is no [[node]]: write one for each node, with id = 0 for the first");
        return None;
    };
    let items = match value.get_ref() {
        DeValue::Array(items) => items.iter().collect(),
        _ => vec![value],
    };
    let mut nodes = Vec::new();
    for item in items {
        match (value.get_ref(), item.get_ref()) {
            (DeValue::Array(_), DeValue::Table(entries)) => {
                nodes.push(Table::new(NODE.0, item.span().start, entries));
            }
            _ => mistakes.add(
                item.span().start,
                "a node is written as [[node]], with two brackets, one for each node",
            ),
        }
    }
    if nodes.is_empty() && mistakes.is_empty() {
        mistakes.add(
            value.span().start,
            "there is no [[node]]: write one for each node, with id = 0 for the first",
        );
    }
    (!nodes.is_empty()).then_some(nodes)
}

/// Reads what the tables say. There may be mistakes also if it returns something.
fn read(path: &Path, tables: &Tables<'_>, mistakes: &mut Mistakes<'_>) -> Option<RackFile> {
    let name = name(&tables.rack, mistakes);
    let config = config(tables, mistakes);
    let timeout = timeout(&tables.rack, mistakes);
    let strict = tables.rack.flag("strict", mistakes).unwrap_or(false);
    let scheduling = scheduling(&tables.rack, mistakes).unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new(""));
    // Of components, so that `.` goes: a directory cannot be removed under a name that ends so.
    let runtime = tables
        .rack
        .text("runtime", r#""/run/rackmem""#, mistakes)
        .map(|given| folder.join(given.value).components().collect::<PathBuf>());
    let placed = placement::read(folder, tables, mistakes);
    let (name, config, placed) = (name?, config?, placed?);
    let runtime = runtime.unwrap_or_else(|| placement::runtime_directory(&name));
    let placement =
        placed.placement.unwrap_or_else(|| Placement::SharedMemory { directory: runtime.clone() });
    Some(RackFile {
        path: path.to_owned(),
        name,
        config,
        timeout,
        strict,
        scheduling,
        placement,
        runtime,
        switch_metrics: placed.switch_metrics,
        node_metrics: placed.node_metrics,
    })
}

fn scheduling(rack: &Table<'_>, mistakes: &mut Mistakes<'_>) -> Option<Scheduling> {
    let given = rack.text("scheduling", "\"fair\"", mistakes)?;
    let read = match given.value {
        "fair" => Some(Scheduling::Fair),
        "realtime" => Some(Scheduling::Realtime),
        _ => None,
    };
    if read.is_none() {
        mistakes.add(
            given.at,
            format_args!(
                "`{}` is no kind of scheduling: write scheduling = \"fair\" or \"realtime\"",
                given.value
            ),
        );
    }
    read
}

impl RackFile {
    /// True if a rack can be called that.
    pub fn is_name(text: &str) -> bool {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(plain)
    }
}

fn name(rack: &Table<'_>, mistakes: &mut Mistakes<'_>) -> Option<String> {
    const EXAMPLE: &str = "\"lab\"";
    rack.require("name", EXAMPLE, mistakes);
    let name = rack.text("name", EXAMPLE, mistakes)?;
    if !RackFile::is_name(name.value) {
        mistakes.add(
            name.at,
            format_args!(
                "`{}` cannot be a rack's name: write 1 to {LONGEST_NAME} letters, digits and -, for example name = {EXAMPLE}",
                name.value
            ),
        );
        return None;
    }
    Some(name.value.to_owned())
}

fn timeout(rack: &Table<'_>, mistakes: &mut Mistakes<'_>) -> Nanos {
    let Some(timeout) = rack.span("timeout", r#""1 s""#, mistakes) else { return DEFAULT_TIMEOUT };
    if let Err(why) = possible(timeout.value) {
        mistakes.add(timeout.at, format_args!("{why}, for example timeout = \"1 s\""));
    }
    timeout.value
}

fn possible(timeout: Nanos) -> Result<Nanos, String> {
    if (LEAST_TIMEOUT..=MOST_TIMEOUT).contains(&timeout) {
        return Ok(timeout);
    }
    let [it, least, most] = [timeout, LEAST_TIMEOUT, MOST_TIMEOUT].map(span_text);
    Err(format!("a timeout of {it} is not possible: write {least} to {most}"))
}

/// A timeout as people write it, in a rack file and as a flag.
///
/// # Errors
/// If it is none, or none that a rack can have: what to write.
pub fn timeout_of(text: &str) -> Result<Nanos, String> {
    let timeout = span(text).ok_or_else(|| format!("`{text}` is no span of time: write 3s or 400ms"))?;
    possible(timeout)
}

/// The shape of the rack.
fn config(tables: &Tables<'_>, mistakes: &mut Mistakes<'_>) -> Option<Config> {
    let Tables { rack, switch, nodes } = tables;
    let default = Config::default();
    let clean = mistakes.is_empty();
    let block_size = match rack.bytes("block", r#""4 KiB""#, mistakes) {
        None => default.block_size,
        Some(block) => BlockSize::new(block.value).unwrap_or_else(|| {
            let (least, most) = (bytes_text(BlockSize::MIN.bytes()), bytes_text(BlockSize::MAX.bytes()));
            mistakes.add(
                block.at,
                format_args!(
                    "blocks of {} are not possible: write a power of two from {least} to {most}, for example block = \"4 KiB\"",
                    bytes_text(block.value)
                ),
            );
            default.block_size
        }),
    };
    let cache = rack.bytes("cache", r#""64 MiB""#, mistakes).map_or(default.cache, |cache| cache.value);
    let memory = rack.bytes("memory", r#""256 MiB""#, mistakes).map_or(default.memory, |memory| memory.value);
    let lock_copies =
        rack.bytes("lock_copies", r#""8 MiB""#, mistakes).map_or(default.lock_copies, |copies| copies.value);
    let lock_region =
        rack.bytes("lock_region", r#""64 KiB""#, mistakes).map_or(default.lock_region, |region| region.value);
    let copies = rack.number("copies", "2", mistakes);
    let copies = copies.map_or(default.copies, |copies| usize::try_from(copies.value).unwrap_or(usize::MAX));
    let refill = rack.bytes("refill", r#""20 MiB""#, mistakes).map_or(default.refill, |rate| rate.value);
    let own_first = rack.number("own_first", "4", mistakes);
    let own_first =
        own_first.map_or(default.own_first, |threads| u32::try_from(threads.value).unwrap_or(u32::MAX));
    let name_nodes = rack
        .number("name_nodes", "2", mistakes)
        .map(|nodes| usize::try_from(nodes.value).unwrap_or(usize::MAX));
    let most_nodes = rack.number("most_nodes", "16", mistakes);
    let most_nodes = most_nodes.map_or(Config::usual_places(nodes.len(), copies), |nodes| {
        usize::try_from(nodes.value).unwrap_or(usize::MAX)
    });
    let mut entries = |key, example, default| {
        switch
            .and_then(|switch| switch.number(key, example, mistakes))
            .map_or(default, |entries| usize::try_from(entries.value).unwrap_or(usize::MAX))
    };
    let switch_entries = entries("entries", "375000", default.switch_entries);
    let lock_entries = entries("lock_entries", "65536", default.lock_entries);
    let steering = Some(entries("steering", "1000", 0)).filter(|keys| *keys > 0);
    let directory = switch.and_then(|switch| directory(&switch, mistakes)).unwrap_or(default.directory);
    let peek = rack.flag("peek", mistakes).unwrap_or(default.peek);
    let mut flag = |key| switch.and_then(|switch| switch.flag(key, mistakes)).unwrap_or(false);
    let (queue, steer_reads, preload) = (flag("queue"), flag("steer_reads"), flag("preload"));
    let config = Config {
        nodes: nodes.len(),
        most_nodes: Some(most_nodes),
        block_size,
        cache,
        memory,
        copies,
        refill,
        switch_entries,
        directory,
        queue,
        peek,
        lock_copies,
        lock_entries,
        steering,
        steer_reads,
        preload,
        lock_region,
        own_first,
        name_nodes,
        ..default
    };
    // With one value misread, others would be called impossible beside its default.
    if clean
        && mistakes.is_empty()
        && let Err(error) = config.check()
    {
        let (at, what) = impossible(tables, error);
        mistakes.add(at, what);
    }
    Some(config)
}

fn directory(switch: &Table<'_>, mistakes: &mut Mistakes<'_>) -> Option<Directory> {
    const EXAMPLE: &str = "\"auto\"";
    let given = switch.text("directory", EXAMPLE, mistakes)?;
    match given.value {
        "auto" => Some(Directory::Auto),
        "switch" => Some(Directory::Switch),
        "home" => Some(Directory::Home),
        other => {
            mistakes.add(
                given.at,
                format_args!(
                    "`{other}` cannot keep the directory: write directory = {EXAMPLE} (hot blocks in the switch), \"switch\" (all that find room there) or \"home\" (none there)"
                ),
            );
            None
        }
    }
}

/// What is impossible about the rack's shape, in the words of the file.
fn impossible(tables: &Tables<'_>, error: ConfigError) -> (usize, String) {
    let Tables { rack, switch, nodes } = tables;
    match error {
        ConfigError::Nodes { asked } => (
            nodes[crate::MOST_NODES.min(nodes.len() - 1)].at,
            format!(
                "a rack of {asked} nodes is not possible: write at most {} [[node]] tables",
                crate::MOST_NODES
            ),
        ),
        ConfigError::Cache { asked, least, most } => (
            rack.place_of("cache"),
            format!(
                "a cache of {} is not possible with blocks of this size: write {} to {}",
                bytes_text(asked),
                bytes_text(least),
                most_bytes_text(most)
            ),
        ),
        ConfigError::Memory { asked, least, most } => (
            rack.place_of("memory"),
            format!(
                "{} of memory per node is not possible with blocks of this size: write {} to {}",
                bytes_text(asked),
                bytes_text(least),
                most_bytes_text(most)
            ),
        ),
        ConfigError::SwitchEntries { asked, most } => (
            switch.map_or(rack.at, |switch| switch.place_of("entries")),
            format!(
                "{asked} entries are not possible: the switch has room for 1 to {most}, for example entries = 375000; with directory = \"home\" it keeps none"
            ),
        ),
        ConfigError::LockEntries { asked, most } => (
            switch.map_or(rack.at, |switch| switch.place_of("lock_entries")),
            format!(
                "{asked} locks are not possible: the switch has room for 1 to {most}, for example lock_entries = 65536; the homes of others keep theirs"
            ),
        ),
        ConfigError::MostNodes { asked, nodes: begins } => (
            if rack.has("most_nodes") { rack.place_of("most_nodes") } else { nodes[nodes.len() - 1].at },
            format!(
                "{begins} nodes in a rack of at most {asked} are not possible: write most_nodes = {begins} to {}, or leave it out",
                crate::MOST_NODES
            ),
        ),
        ConfigError::Copies { .. } => (rack.place_of("copies"), error.to_string()),
        ConfigError::NotSteered => (
            switch.map_or(rack.at, |switch| switch.place_of("steer_reads")),
            "a switch that does not steer cannot steer reads, or be told tails: write steering = 1000, or another number of keys, too".to_owned(),
        ),
        ConfigError::NameNodes { asked, most } => (
            rack.place_of("name_nodes"),
            format!("{asked} nodes cannot keep names: write 1 to {most}, or leave it out, and all do"),
        ),
        ConfigError::LockRegion { asked, most } => (
            rack.place_of("lock_region"),
            format!(
                "regions of {} are not possible: write a multiple of 8 B up to {}, for example lock_region = \"64 KiB\"",
                bytes_text(asked),
                bytes_text(most)
            ),
        ),
        ConfigError::Refill { asked, least } => (
            rack.place_of("refill"),
            format!(
                "{} a second are too few for copies that are missing: write {} or more, for example refill = \"20 MiB\"",
                bytes_text(asked),
                bytes_text(least)
            ),
        ),
        ConfigError::LockCopies { asked, most } => (
            rack.place_of("lock_copies"),
            format!(
                "copies of {} are not possible: write up to {}",
                bytes_text(asked),
                most_bytes_text(most)
            ),
        ),
        // No file says anything about these.
        _ => (rack.at, error.to_string()),
    }
}
