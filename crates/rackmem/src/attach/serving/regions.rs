//! Words and objects, as the daemon does them for an application.
//!
//! A question names a region by what everybody calls it. What must always hold: it is done on that region, or not at all; and the
//! daemon keeps no more regions for an application than [`MOST`].

use live::memory::regions::Shape;
use live::networked::verbs::{Opened, RegionName};
use nic::words::Width;
use sorted::Map;
use wire::{Discipline, GlobalAddr, NodeId};

use super::super::answer::Answer;
use super::super::operation::WordOf;
use super::Outcome;
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::objects::{ByteObjects, ReadError, Retry};
use crate::words::{Pending, Words};

/// Regions that are kept for a connection.
const MOST: usize = 256;

/// Regions that the application has used: what they are called by their addresses, and where they are.
#[derive(Default)]
pub(super) struct Known(Map<GlobalAddr, (RegionName, Opened)>);

/// An operation on a word, in flight.
pub(super) enum Begun {
    Word(Pending<u32>),
    Double(Pending<u64>),
}

impl Begun {
    pub(super) fn wait(&self, handle: &mut NodeHandle) -> Answer {
        let was = match self {
            Self::Word(pending) => pending.clone().wait(handle).map(u64::from),
            Self::Double(pending) => pending.clone().wait(handle),
        };
        was.map_or_else(Answer::Failed, Answer::Word)
    }
}

type Answered = Result<Answer, Error>;

/// A number that the other side counted in words of another size, perhaps.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl Known {
    pub(super) fn begin(&mut self, handle: &mut NodeHandle, shape: Shape, home: NodeId) -> Answered {
        let begun = match shape {
            Shape::Objects { len, .. } if len > ByteObjects::LONGEST => {
                return Err(Error::BadSize { len: len as u64, most: ByteObjects::LONGEST as u64 });
            }
            shape => handle.alloc_named(shape, home)?,
        };
        Ok(self.note(handle, begun))
    }

    pub(super) fn open(&mut self, handle: &mut NodeHandle, addr: GlobalAddr, needs: Discipline) -> Answered {
        if !matches!(needs, Discipline::Word | Discipline::Object) {
            return Err(Error::WrongDiscipline { addr, needs });
        }
        handle.region_named(addr, needs).map(|opened| self.note(handle, opened))
    }

    fn note(&mut self, handle: &NodeHandle, (opened, name): (Opened, Option<RegionName>)) -> Answer {
        let name = name.expect("applications are served on racks of processes");
        let shape = opened.shape();
        // With a strict lease every access asks this node.
        let is_shared =
            matches!(&opened, Opened::Near(region) if region.incarnation().is_some()) && !handle.is_strict();
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(name.addr, (name, opened));
        Answer::Region(name, shape, is_shared)
    }

    /// The region that is called so.
    fn find(
        &mut self,
        handle: &mut NodeHandle,
        name: RegionName,
        needs: Discipline,
    ) -> Result<Opened, Error> {
        let addr = name.addr;
        let is_known = self.0.get(&addr).is_some_and(|(known, _)| *known == name);
        if !is_known {
            let opened = handle.region_named(addr, needs)?;
            if opened.1 != Some(name) {
                // Another one, which has the address by now.
                return Err(Error::Unallocated { addr });
            }
            self.note(handle, opened);
        }
        let (_, opened) = &self.0[&addr];
        if opened.shape().discipline() == needs {
            Ok(opened.clone())
        } else {
            Err(Error::WrongDiscipline { addr, needs })
        }
    }

    /// It is about to be freed.
    pub(super) fn forget(&mut self, addr: GlobalAddr) {
        self.0.remove(&addr);
    }

    /// Looks at what came: of a region that has ended, nothing is kept.
    fn came<R>(&mut self, name: RegionName, came: Result<R, Error>) -> Result<R, Error> {
        if matches!(came, Err(Error::Unallocated { .. } | Error::NodeDown { .. })) {
            self.forget(name.addr);
        }
        came
    }

    pub(super) fn word(&mut self, handle: &mut NodeHandle, word: &WordOf) -> Outcome {
        let &WordOf { region, width, operation, operands, .. } = word;
        let at = index(word.index);
        let begun = self.find(handle, region, Discipline::Word).and_then(|opened| match width {
            Width::Word => {
                Words::<u32>::of(opened).post_anyhow(handle, at, operation, operands).map(Begun::Word)
            }
            Width::Double => {
                Words::<u64>::of(opened).post_anyhow(handle, at, operation, operands).map(Begun::Double)
            }
        });
        match self.came(region, begun) {
            Ok(begun) => Outcome::Begun(begun),
            Err(why) => Outcome::Over(Answer::Failed(why)),
        }
    }

    pub(super) fn read_words(
        &mut self,
        handle: &mut NodeHandle,
        region: RegionName,
        at: u64,
        len: usize,
    ) -> Answered {
        let words = Words::<u64>::of(self.find(handle, region, Discipline::Word)?);
        let mut bytes = vec![0; len];
        let read = words.read_bytes(handle, index(at), &mut bytes);
        self.came(region, read).map(|()| Answer::Bytes(bytes))
    }

    pub(super) fn write_words(
        &mut self,
        handle: &mut NodeHandle,
        region: RegionName,
        at: u64,
        bytes: &[u8],
    ) -> Answered {
        let words = Words::<u64>::of(self.find(handle, region, Discipline::Word)?);
        let written = words.write_bytes(handle, index(at), bytes);
        self.came(region, written).map(|()| Answer::Done)
    }

    /// One attempt: whether there is another one is the application's matter.
    pub(super) fn read_object(
        &mut self,
        handle: &mut NodeHandle,
        region: RegionName,
        number: u64,
        len: usize,
    ) -> Answered {
        let objects = ByteObjects::of(self.find(handle, region, Discipline::Object)?);
        let mut bytes = vec![0; len];
        match objects.read(handle, index(number), &mut bytes, Retry::Never) {
            Ok(version) => Ok(Answer::Object(version, bytes)),
            Err(ReadError::Torn { .. }) => Ok(Answer::Busy),
            Err(ReadError::Failed(why)) => self.came(region, Err(why)),
        }
    }

    pub(super) fn write_object(
        &mut self,
        handle: &mut NodeHandle,
        region: RegionName,
        (number, at): (u64, usize),
        expected: Option<u64>,
        bytes: &[u8],
    ) -> Answered {
        let objects = ByteObjects::of(self.find(handle, region, Discipline::Object)?);
        let written = match expected {
            None => objects.write(handle, index(number), at, bytes).map(Some),
            Some(_) if at != 0 => Err(Error::WrongLength { addr: region.addr, len: bytes.len() as u64 }),
            Some(version) => objects.write_if(handle, index(number), version, bytes),
        };
        Ok(self.came(region, written)?.map_or(Answer::Busy, Answer::Word))
    }
}
