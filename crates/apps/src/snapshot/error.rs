//! Why a name was not saved, or not brought back.

use std::time::Duration;
use std::{fmt, io};

use rackmem::named::NamedInfo;
use rackmem::{NameError, NamedSpec};

use super::format::VERSION;
use crate::kv;

/// Why a name was not saved, or not brought back.
///
/// What says something of the file was found before anything in the rack was changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The name could not be used.
    Name(NameError),
    /// The rack's memory failed, or is full.
    Memory {
        /// The name.
        name: String,
        /// Why.
        why: rackmem::Error,
    },
    /// The store failed.
    Store {
        /// The name.
        name: String,
        /// Why.
        why: kv::Error,
    },
    /// Somebody writes in it all the time, or holds its lock.
    Busy {
        /// The name.
        name: String,
        /// For how long that was waited for.
        waited: Duration,
    },
    /// A thread panicked while it wrote: it may be half changed.
    Poisoned {
        /// The name.
        name: String,
    },
    /// Other memory was taken into these regions: it is not theirs, and has to be given back first.
    HasMemory {
        /// The name.
        name: String,
    },
    /// It was removed, or made anew, meanwhile.
    Changed {
        /// The name.
        name: String,
    },
    /// What has this name cannot be listed, so nobody could say that all of it is in a file.
    Unlistable {
        /// The name.
        name: String,
        /// What it names.
        spec: Box<NamedSpec>,
    },
    /// Something has this name, and is not to be replaced.
    Exists {
        /// What has it.
        there: Box<NamedInfo>,
    },
    /// Something has this name, and is of another kind or shape than what is in the file.
    Differs {
        /// What has it.
        there: Box<NamedInfo>,
        /// What is in the file.
        saved: Box<NamedSpec>,
    },
    /// Bringing back was begun, and failed.
    Partly {
        /// The name.
        name: String,
        /// It was made for this, and could not be taken away again. Otherwise it was there before.
        made: bool,
        /// Why.
        why: Box<Error>,
    },
    /// The file cannot be written.
    Write(io::Error),
    /// The file cannot be read.
    Read(io::Error),
    /// The file is something else.
    NotASnapshot,
    /// The file is of another version than this program knows.
    Version {
        /// That of the file.
        version: u32,
    },
    /// The file ends too early.
    CutShort {
        /// How many bytes there are.
        len: u64,
    },
    /// The file is not as it was written.
    Damaged {
        /// Where it was noticed: the damage is in front of that.
        at: u64,
    },
    /// The file is as it was written, and what was written makes no sense.
    Malformed {
        /// What.
        what: &'static str,
    },
}

impl Error {
    /// True if the file is at fault, and not the rack.
    pub const fn is_of_file(&self) -> bool {
        matches!(
            self,
            Self::Read(_)
                | Self::NotASnapshot
                | Self::Version { .. }
                | Self::CutShort { .. }
                | Self::Damaged { .. }
                | Self::Malformed { .. }
        )
    }
}

impl From<NameError> for Error {
    fn from(why: NameError) -> Self {
        Self::Name(why)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(why) => why.fmt(f),
            Self::Memory { name, why } => write!(f, "the memory of {name:?} failed: {why}"),
            Self::Store { name, why } => write!(f, "the store {name:?} failed: {why}"),
            Self::Busy { name, waited } => write!(
                f,
                "others hold {name:?}, or write it all the time, for {} s now: try again when they are done",
                waited.as_secs_f64()
            ),
            Self::Poisoned { name } => write!(
                f,
                "a thread panicked while it wrote {name:?}, which may be half changed: repair it with write_poisoned and clear_poison, or \
                 bring a snapshot from before back in its place"
            ),
            Self::HasMemory { name } => write!(
                f,
                "other memory was taken into the regions of {name:?}, and would be lost with them: give it back first (give_back)"
            ),
            Self::Changed { name } => {
                write!(f, "{name:?} was removed, or made anew, while it was copied: try again")
            }
            Self::Unlistable { name, spec } => write!(
                f,
                "{name:?} is {spec}, and has no list of what is in it: only a program that knows its keys can save it"
            ),
            Self::Exists { there } => write!(
                f,
                "{:?} exists already ({}): have it replaced, remove it, or choose another name",
                there.name, there.spec
            ),
            Self::Differs { there, saved } => write!(
                f,
                "{:?} is something else than what was saved: there is {}, and in the file is {saved}; remove it, or choose another name",
                there.name, there.spec
            ),
            Self::Partly { name, made: true, why } => write!(
                f,
                "{why}; {name:?} was made for this, and cannot be taken away again now: it has a part of the snapshot"
            ),
            Self::Partly { name, made: false, why } => write!(
                f,
                "{why}; {name:?} has a part of the snapshot now, and a part of what it had before: bring it back again"
            ),
            Self::Write(why) => write!(f, "the snapshot cannot be written: {why}"),
            Self::Read(why) => write!(f, "the snapshot cannot be read: {why}"),
            Self::NotASnapshot => f.write_str("that is no snapshot"),
            Self::Version { version } => write!(
                f,
                "that is a snapshot of version {version}, and this program knows version {VERSION}: use the release of rackmem that wrote it"
            ),
            Self::CutShort { len } => write!(
                f,
                "the snapshot is cut short: it ends after {len} bytes, before its end was written; nothing was changed; use another copy"
            ),
            Self::Damaged { at } => write!(
                f,
                "the snapshot is damaged, before byte {at}: a checksum is wrong; nothing was changed; use another copy"
            ),
            Self::Malformed { what } => write!(f, "the snapshot makes no sense: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Name(why) => Some(why),
            Self::Memory { why, .. } => Some(why),
            Self::Store { why, .. } => Some(why),
            Self::Partly { why, .. } => Some(why),
            Self::Write(why) | Self::Read(why) => Some(why),
            _ => None,
        }
    }
}
