//! Why a name was not opened, made or removed.

use std::fmt;

use wire::NodeId;

use super::spec::{NamedInfo, NamedSpec};
use super::{LONGEST_NAME, MOST_NAMES};
use crate::Error;

/// Why a name was not opened, made or removed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NameError {
    /// That is no name: it is empty, too long, or has control characters. Or the tag of a type is.
    Unusable {
        /// What was given.
        name: String,
    },
    /// Nothing has this name.
    NotFound {
        /// The name.
        name: String,
    },
    /// Something has this name, and something new was to be made.
    Exists {
        /// What has it.
        there: Box<NamedInfo>,
    },
    /// What has this name is of another discipline, length or type than was asked for.
    Differs {
        /// What has it.
        there: Box<NamedInfo>,
        /// What was asked for.
        asked: Box<NamedSpec>,
    },
    /// The node that kept the name has died, with what it named, if there was anything.
    Lost {
        /// The name.
        name: String,
        /// The node.
        home: NodeId,
    },
    /// The node that would keep the name keeps as many as it can.
    Full {
        /// The name.
        name: String,
        /// The node.
        home: NodeId,
    },
    /// It was to be made [with copies](super::Named::with_copies), and is of a kind that has none: only coherent memory has.
    NoCopies {
        /// The name.
        name: String,
        /// What was asked for.
        spec: Box<NamedSpec>,
    },
    /// The rack's memory failed.
    Failed(Error),
}

impl From<Error> for NameError {
    fn from(why: Error) -> Self {
        Self::Failed(why)
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable { name } => write!(
                f,
                "{:?} is no name: use 1 to {LONGEST_NAME} bytes of text without control characters (of a type's tag at most {})",
                name.chars().take(40).collect::<String>(),
                NamedSpec::LONGEST_TAG
            ),
            Self::NotFound { name } => {
                write!(
                    f,
                    "nothing is named {name:?}: make it with create or open_or; NodeHandle::names lists what there is"
                )
            }
            Self::Exists { there } => write!(
                f,
                "{:?} exists already ({}, made by node {}): open it, remove it, or choose another name",
                there.name, there.spec, there.maker.0
            ),
            Self::Differs { there, asked } => write!(
                f,
                "{:?} is something else: there is {}, and asked for was {asked}",
                there.name, there.spec
            ),
            Self::Lost { name, home } => write!(
                f,
                "the node that had what {name:?} names has died, and that is lost: restore it with anew, once node {}, which keeps the \
                 name, is back",
                home.0
            ),
            Self::Full { name, home } => write!(
                f,
                "node {}, which would keep the name {name:?}, has {MOST_NAMES} names: remove some",
                home.0
            ),
            Self::NoCopies { name, spec } => write!(
                f,
                "{name:?} was to be made with copies, and is {spec}: only coherent memory, locks and stores have some"
            ),
            Self::Failed(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for NameError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(why) => Some(why),
            _ => None,
        }
    }
}
