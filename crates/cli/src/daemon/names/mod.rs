//! `rackmem names`: what has a name in a rack.
//!
//! | file | |
//! | --- | --- |
//! | `asking.rs` | through which daemon a rack is asked |

pub(super) mod asking;

use std::time::Duration;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use rackmem::NamedInfo;
use rackmem::named::LONGEST_NAME;
use serde::Serialize;
use status::document::Status;

use super::status::find::Which;
use crate::fault::Fault;
use crate::output;
use crate::size::Bytes;

const EXAMPLES: &str = "\
Examples:
  rackmem names                           all names of the rack that runs on this machine
  rackmem names orders/                   those that begin so
  rackmem names --config lab.toml --json  of the rack of a file, for programs";

/// Which names, of which rack.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only names that begin so
    #[arg(value_name = "PREFIX", default_value = "")]
    prefix: String,

    #[command(flatten)]
    which: Which,

    /// Print one JSON document instead of a table. Sizes are in bytes
    #[arg(long)]
    json: bool,
}

/// How long a rack may take to answer.
const MOST_WAIT: Duration = Duration::from_secs(10);

/// The names of a rack.
#[derive(Serialize, Debug)]
struct Names {
    rack: String,
    prefix: String,
    /// Nodes that are not up: what they kept is lost, and not listed. None in a rack with copies, where others keep it.
    down: Vec<u16>,
    names: Vec<Name>,
}

/// A name.
#[derive(Serialize, Debug)]
struct Name {
    name: String,
    discipline: String,
    /// What its elements are, and the version of their layout.
    tag: String,
    version: u32,
    /// Bytes of each, and how many there are.
    bytes: u64,
    count: u64,
    address: String,
    /// The node that has it, or of what has copies the one that does so as long as it is up, or did at first.
    home: u16,
    copies: bool,
    /// Of what is in memory with copies, if the switch has said so.
    kept: Option<Kept>,
    maker: u16,
    /// The incarnation of its home in which it was made, and which of all that were made there then.
    incarnation: u64,
    number: u64,
    opened: u64,
}

/// Which nodes have something with copies.
#[derive(Serialize, Debug)]
struct Kept {
    /// All of it.
    by: Vec<u16>,
    /// As many there are to be.
    of: usize,
    /// Some of it, and more is coming.
    copied_to: Vec<u16>,
}

impl Name {
    /// Where it is, and whether copies of it are missing.
    fn place(&self) -> String {
        let home = self.home;
        match &self.kept {
            Some(Kept { by, of, copied_to }) if by.len() < *of => {
                let to: Vec<_> = copied_to.iter().map(u16::to_string).collect();
                let to = if to.is_empty() {
                    String::new()
                } else {
                    format!(", being copied to {}", to.join(", "))
                };
                format!("{home}, on {} of {of} nodes{to}", by.len())
            }
            _ if self.copies => format!("{home}, with copies"),
            _ => home.to_string(),
        }
    }

    /// One of a rack with so many nodes: memories with copies are numbered behind them.
    fn of(info: &NamedInfo, places: usize, status: Option<&Status>) -> Self {
        let (spec, memory) = (&info.spec, info.addr.home().index());
        let memories = status.filter(|_| memory >= places).map(|status| (status.copies, &status.memories));
        let kept = memories.and_then(|(of, memories)| {
            let kept = memories.iter().find(|kept| usize::from(kept.near) == memory - places)?;
            Some(Kept { by: kept.kept_by.clone(), of, copied_to: kept.copied_to.clone() })
        });
        Self {
            name: info.name.clone(),
            discipline: format!("{:?}", spec.discipline),
            tag: spec.tag.clone(),
            version: spec.version,
            bytes: spec.len,
            count: spec.count,
            address: info.addr.to_string(),
            home: (memory % places) as u16,
            copies: info.copies > 1,
            kept,
            maker: info.maker.0,
            incarnation: info.making >> 31,
            number: info.making & ((1 << 31) - 1),
            opened: info.opened,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let prefix = args.prefix.clone();
    if prefix.len() > LONGEST_NAME || prefix.chars().any(char::is_control) {
        let shown = prefix.chars().take(40).collect::<String>();
        return Err(Fault::usage(format_args!(
            "no name begins with {shown:?} ({} bytes): names are 1 to {LONGEST_NAME} bytes of text without control characters",
            prefix.len()
        )));
    }
    let meant = args.which.meant()?;
    let status = meant.ask().ok();
    let file = meant.file(status.as_ref()).map_err(Fault::failed)?;
    let failed = |why| Fault::failed(format_args!("the names of rack `{}` are not known: {why}", file.name));
    let asked = args.prefix.clone();
    let infos = asking::ask(&file, MOST_WAIT, move |handle| handle.names(&asked)).map_err(failed)?;
    let config = &file.config;
    let without_copies = status.iter().filter(|_| config.copies == 1);
    let down = without_copies.flat_map(|status| &status.nodes).filter(|node| !node.up).map(|node| node.id);
    let (rack, down) = (file.name.clone(), down.collect());
    let names = infos.iter().map(|info| Name::of(info, config.places(), status.as_ref())).collect();
    let names = Names { rack, prefix, down, names };
    output::show(args.json, "names", &names, || text(&names))
}

fn text(names: &Names) -> String {
    let Names { rack, prefix, down, names } = names;
    let mut text = match (names.len(), prefix.as_str()) {
        (0, "") => format!("nothing has a name in rack `{rack}`\n"),
        (0, prefix) => format!("no name in rack `{rack}` begins with {prefix:?}\n"),
        _ => format!("{}\n", table(names)),
    };
    if !down.is_empty() {
        let down = down.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        text.push_str(&format!("not up, and without names that could be listed: node {down}\n"));
    }
    text
}

fn table(names: &[Name]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["name", "discipline", "type", "size", "home", "made by", "incarnation", "opened"]);
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for name in names {
        let tag = match (name.tag.as_str(), name.version) {
            (tag, 0) => tag.to_owned(),
            (tag, version) => format!("{tag}, version {version}"),
        };
        let bytes = Bytes(name.bytes);
        let size = match name.count {
            0 | 1 => bytes.to_string(),
            count => format!("{count} of {bytes}"),
        };
        table.add_row([
            name.name.clone(),
            name.discipline.clone(),
            tag,
            size,
            name.place(),
            name.maker.to_string(),
            format!("{}/{}", name.incarnation, name.number),
            name.opened.to_string(),
        ]);
    }
    table
}
