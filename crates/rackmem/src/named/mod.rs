//! Names: what has one is found by every program of the rack that knows it.
//!
//! Each name has a home, found from the name: that node keeps it in a table and has in its memory what it names. So a name takes one
//! round trip, there is one place where two makers of one name meet, and both die together.
//!
//! In a rack with copies the home is a memory with copies, and the node that serves it keeps the name there. Then a name outlives nodes;
//! so does what it names, if it was made with copies ([`Named::with_copies`]).
//!
//! | file | holds |
//! | --- | --- |
//! | `spec.rs` | what a name says of what it names |
//! | `directory.rs` | the names that a node keeps |
//! | `kept.rs` | the names of a memory with copies, as they are in it |
//! | `service.rs` | what a node does for them |
//! | `making.rs` | how things with names are made and taken away |
//! | `request.rs` | what nodes ask of each other, as words |
//! | `kinds.rs` | what can have a name |
//! | `region.rs` | [`Region`]: coherent memory to be mapped |
//! | `value.rs` | [`Value`] and [`ByteValue`]: a coherent value |
//! | `locks.rs` | what nodes count of locks with names |
//! | `error.rs` | what can go wrong |

mod directory;
mod error;
mod kept;
mod kinds;
mod locks;
mod making;
mod region;
mod request;
mod service;
mod spec;
mod value;

use std::marker::PhantomData;
use std::time::Duration;

use live::actor::Failure;
use wire::{NodeId, Refusal};
use zerocopy::IntoBytes as _;

pub use error::NameError;
pub use kinds::Nameable;
pub use region::Region;
pub(crate) use service::{NameService, serve};
pub use spec::{NamedInfo, NamedSpec};
pub use value::{ByteValue, Value};

use crate::copies::can_have_copies;
use crate::error::Error;
use crate::handle::{NodeHandle, failed};
use request::{Answer, Request, What};
use wire::GlobalAddr;

/// The longest name, in bytes.
pub const LONGEST_NAME: usize = 255;
/// Names that one node keeps, at most.
pub const MOST_NAMES: usize = 1 << 16;

/// Between two attempts at what somebody else has in hand.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// What is to be done with a name ([`NodeHandle::name_as`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameMode {
    /// [`Named::open`].
    Open,
    /// [`Named::create`].
    Create,
    /// [`Named::open_or`].
    OpenOr,
    /// [`Named::anew`].
    Anew,
}

/// A name, and the type of what it names or is to name ([`NodeHandle::named`]).
///
/// # When a node dies
/// A name and what it names are on one node ([`NodeHandle::home_of_name`]), and die with it. From then on the name is *lost*: opening it
/// says so ([`NameError::Lost`]) also when the node has come back, and [`Named::open_or`] makes nothing in its place. A node
/// that has come back knows no names of before, so it says that of every name that it keeps and that was not made since.
/// [`Named::anew`] makes such a name anew; of any number of threads and processes that do so at once, one makes it. What was opened
/// before stays lost.
///
/// In a rack with copies ([`Config::copies`](crate::Config::copies)) names outlive their nodes, as long as one is left that has them.
/// What a name names does so if it was made [with copies](Named::with_copies). Otherwise it is on the node that kept the name then,
/// and the name is lost with that node's memory.
#[must_use = "a name does nothing until it is opened"]
pub struct Named<'a, T> {
    handle: &'a mut NodeHandle,
    name: &'a str,
    tag: Option<(&'a str, u32)>,
    copies: bool,
    of: PhantomData<fn() -> T>,
}

impl NodeHandle {
    /// A name of something of this type.
    ///
    /// ```
    /// use rackmem::{Config, Locked, NodeId, Rack, Words};
    /// # let rack = Rack::embedded(Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() })?;
    /// # let (mut here, mut there) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
    ///
    /// let quotas = here.named::<Locked<[u64; 3]>>("quotas").open_or(|| [10, 20, 30])?;
    /// quotas.write(&mut here)?[0] += 1;
    /// // In another process, at any time:
    /// let same = there.named::<Locked<[u64; 3]>>("quotas").open()?;
    /// assert_eq!(*same.read(&mut there)?, [11, 20, 30]);
    ///
    /// let hits = there.named::<Words<u64>>("hits").open_or(|| 16)?;
    /// hits.add(&mut there, 3, 1)?;
    /// assert_eq!(there.names("")?.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn named<'a, T: Nameable>(&'a mut self, name: &'a str) -> Named<'a, T> {
        let copies = self.keeps_copies && can_have_copies(T::spec(None).discipline);
        Named { handle: self, name, tag: None, copies, of: PhantomData }
    }

    /// What has names that begin so, in the order of their names.
    ///
    /// # Errors
    /// [`NameError::Unusable`] for a prefix that no name has; [`NameError::Failed`]. Names of nodes that are down are left out.
    pub fn names(&mut self, prefix: &str) -> Result<Vec<NamedInfo>, NameError> {
        if !prefix.is_empty() {
            usable(prefix, LONGEST_NAME)?;
        }
        let mut all = Vec::new();
        for home in 0..self.nodes() {
            let keeper = self.keeper_at(home);
            let mut request = Request::about(What::List, prefix, keeper);
            loop {
                let Answer::List(some) = (match self.ask_names(&request) {
                    Err(Error::NodeDown { .. }) => break,
                    answer => answer?,
                }) else {
                    return Err(broken(keeper).into());
                };
                let is_last = some.len() < service::LISTED;
                if let Some(last) = some.last() {
                    request = Request::about(What::List, prefix, keeper);
                    request.spec.tag.clone_from(&last.name);
                }
                all.extend(some);
                if is_last {
                    break;
                }
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// What has this name, of whatever type.
    ///
    /// # Errors
    /// [`NameError::NotFound`], [`NameError::Lost`], [`NameError::Unusable`], [`NameError::Failed`].
    pub fn name_info(&mut self, name: &str) -> Result<NamedInfo, NameError> {
        let request = Request::about(What::Look, name, self.keeper_of(name));
        let answer = self.ask_about(&request)?;
        answered(answer, request)
    }

    /// Takes a name away, and frees what it names, of whatever type. Waits while somebody is inside of a lock. Whoever uses it is
    /// told that it is not there ([`Error::Unallocated`]).
    ///
    /// # Errors
    /// [`NameError::NotFound`], [`NameError::Lost`], [`NameError::Unusable`], [`NameError::Failed`].
    pub fn remove_name(&mut self, name: &str) -> Result<(), NameError> {
        let request = Request::about(What::Remove, name, self.keeper_of(name));
        match self.ask_about(&request)? {
            Answer::Removed => Ok(()),
            Answer::Nothing => Err(NameError::NotFound { name: name.to_owned() }),
            _ => Err(broken(request.keeper).into()),
        }
    }

    /// Opens or makes what has a name, of no type: for bindings, where programs say what they mean. `contents` is what something
    /// new begins with, as [`Nameable::contents`] says; zeroes follow. What can have copies has them, if this handle
    /// [keeps copies](NodeHandle::keep_copies).
    ///
    /// # Errors
    /// [`NameError::NotFound`] of [`NameMode::Open`], [`NameError::Exists`] of [`NameMode::Create`]; [`NameError::Lost`],
    /// [`NameError::Differs`], [`NameError::Full`], [`NameError::Unusable`], [`NameError::Failed`].
    pub fn name_as(
        &mut self,
        name: &str,
        mode: NameMode,
        spec: NamedSpec,
        contents: Vec<u8>,
    ) -> Result<NamedInfo, NameError> {
        let copies = self.keeps_copies && can_have_copies(spec.discipline);
        self.name_with(name, mode, (spec, copies), contents)
    }

    fn name_with(
        &mut self,
        name: &str,
        mode: NameMode,
        (spec, copies): (NamedSpec, bool),
        contents: Vec<u8>,
    ) -> Result<NamedInfo, NameError> {
        if copies && self.inner.config.copies == 1 {
            return Err(Error::NoCopies.into());
        }
        if copies && !can_have_copies(spec.discipline) {
            return Err(NameError::NoCopies { name: name.to_owned(), spec: Box::new(spec) });
        }
        // All of an embedded rack dies at once.
        let copies = copies && self.inner.names_have_copies();
        if !spec.tag.is_empty() {
            usable(&spec.tag, NamedSpec::LONGEST_TAG)?;
        }
        let what = match mode {
            NameMode::Open => What::Open,
            NameMode::Create => What::Create,
            NameMode::OpenOr => What::OpenOr,
            NameMode::Anew => What::Anew,
        };
        let about = Request::about(what, name, self.keeper_of(name));
        let request = Request { copies, spec, contents: trimmed(contents), ..about };
        let answer = self.ask_about(&request)?;
        let is_new = matches!(answer, Answer::Made(_));
        let info = answered(answer, request)?;
        if mode == NameMode::Create && !is_new {
            return Err(NameError::Exists { there: Box::new(info) });
        }
        Ok(info)
    }

    /// The node that keeps a name, and what it names. In a rack with copies: the one that does so as long as it is up.
    pub fn home_of_name(&self, name: &str) -> NodeId {
        // FNV-1a: all programs of the rack, in whatever language, find the same one.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        // Its low bits are no good for short names.
        let keepers = self.inner.config.name_nodes.unwrap_or(self.nodes());
        let index = (hash ^ hash >> 32) % keepers as u64;
        NodeId(u16::try_from(index).expect("at most 64 nodes"))
    }

    /// Who keeps a name: its home, or in a rack with copies the memory that this node serves first.
    fn keeper_of(&self, name: &str) -> NodeId {
        self.keeper_at(self.home_of_name(name).index())
    }

    fn keeper_at(&self, home: usize) -> NodeId {
        let keeper = if self.inner.names_have_copies() { self.inner.config.places() + home } else { home };
        NodeId(u16::try_from(keeper).expect("at most 64 nodes and memories"))
    }

    /// Asks whoever keeps a name about it.
    fn ask_about(&mut self, request: &Request) -> Result<Answer, NameError> {
        let name = &request.name;
        usable(name, LONGEST_NAME)?;
        let lost = |home| NameError::Lost { name: name.clone(), home };
        let home = self.home_of_name(name);
        match self.ask_names(request) {
            Err(Error::NodeDown { .. }) | Ok(Answer::Lost) => Err(lost(home)),
            Ok(Answer::Full) => Err(NameError::Full { name: name.clone(), home }),
            Ok(Answer::Failed(why)) => Err(why.into()),
            answer => Ok(answer?),
        }
    }

    /// Asks about names, until what was asked for is done.
    fn ask_names(&mut self, request: &Request) -> Result<Answer, Error> {
        let mut pause = SHORTEST_PAUSE;
        loop {
            match self.ask_names_once(request)? {
                Answer::Busy => {}
                answer => return Ok(answer),
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The same, once; [`Answer::Busy`] if it is not done yet.
    fn ask_names_once(&mut self, request: &Request) -> Result<Answer, Error> {
        if self.is_attached() {
            let take = |answer: &[u8]| Answer::parse(&request::words_of(answer));
            return self.ask_named(request.keeper, request.words().as_bytes(), take);
        }
        let answer = self.ask_keeper(request)?;
        match &answer {
            Answer::Made(info) | Answer::Opened(info) if request.what != What::Look => self.watch(info),
            Answer::Removed => self.unwatch(&request.name),
            _ => {}
        }
        Ok(answer)
    }

    fn ask_keeper(&mut self, request: &Request) -> Result<Answer, Error> {
        let (inner, keeper) = (std::sync::Arc::clone(&self.inner), request.keeper);
        let at = GlobalAddr::new(keeper, 0);
        let server = inner.server_of(keeper).ok_or(Error::NodeDown { addr: at })?;
        if let Some(service) = inner.names(keeper).filter(|_| server == self.node || inner.is_embedded()) {
            return Ok(service.ask(self, request));
        }
        let joined = inner.joined().expect("an embedded rack has all its nodes here");
        match joined.ask_named(&mut self.context, server, &request.words()) {
            Ok(answer) => Answer::parse(&answer).ok_or_else(|| broken(keeper)),
            Err(Failure::Refused(Refusal::Locked)) => Ok(Answer::Busy),
            // Another node is about to serve the memory.
            Err(Failure::Refused(Refusal::NodeDown)) if inner.names_have_copies() && keeper != server => {
                Ok(Answer::Busy)
            }
            Err(why) => Err(failed(why, at, 0)),
        }
    }

    /// What an attached application asks, and is answered. None: that is no request.
    pub(crate) fn ask_names_for(&mut self, home: NodeId, request: &[u8]) -> Option<Result<Vec<u8>, Error>> {
        let request = Request::parse(&request::words_of(request)).filter(|asked| asked.keeper == home)?;
        let asked = self.inner.in_some_memory(GlobalAddr::new(home, 0));
        let answer = asked.and_then(|()| self.ask_names_once(&request));
        Some(answer.map(|answer| answer.words().as_bytes().to_vec()))
    }
}

impl<'a, T: Nameable> Named<'a, T> {
    /// With another tag than what Rust calls the type, so that programs in other languages can say it; and the version of its layout.
    /// Whoever opens the name has to say the same.
    pub fn tag(self, tag: &'a str, version: u32) -> Self {
        Self { tag: Some((tag, version)), ..self }
    }

    /// What is made has copies: it outlives nodes as all such memory does (`docs/copies.md`). Without effect on what is there. This is so
    /// by itself on a handle that [keeps copies](NodeHandle::keep_copies), of what can have some: [`Value`], [`Region`],
    /// [`Locked`](crate::Locked) and [`Chains`](crate::Chains).
    pub fn with_copies(self) -> Self {
        Self { copies: true, ..self }
    }

    /// Opens what is there.
    ///
    /// # Errors
    /// [`NameError::NotFound`], [`NameError::Lost`], [`NameError::Differs`], [`NameError::Unusable`], [`NameError::Failed`].
    pub fn open(self) -> Result<T, NameError> {
        self.name(NameMode::Open, None)
    }

    /// Makes something new.
    ///
    /// # Errors
    /// [`NameError::Exists`], [`NameError::Differs`], [`NameError::Lost`], [`NameError::Full`], [`NameError::Unusable`],
    /// [`NameError::Failed`].
    pub fn create(self, what: T::Init) -> Result<T, NameError> {
        self.name(NameMode::Create, Some(&what))
    }

    /// Opens what is there, or makes it: in one step, so that of all who do so at once one makes it and all others open that. The
    /// closure runs only if there was nothing.
    ///
    /// # Errors
    /// [`NameError::Lost`], [`NameError::Differs`], [`NameError::Full`], [`NameError::Unusable`], [`NameError::Failed`].
    pub fn open_or(self, make: impl FnOnce() -> T::Init) -> Result<T, NameError> {
        let Self { handle, name, tag, copies, of } = self;
        match (Named::<T> { handle, name, tag, copies, of }).open() {
            Err(NameError::NotFound { .. }) => {}
            opened => return opened,
        }
        Named { handle, name, tag, copies, of }.name(NameMode::OpenOr, Some(&make()))
    }

    /// Makes what was lost anew; opens what is there. In one step, as [`Named::open_or`].
    ///
    /// # Errors
    /// [`NameError::Lost`] while the node is down that keeps the name; [`NameError::Differs`], [`NameError::Full`],
    /// [`NameError::Unusable`], [`NameError::Failed`].
    pub fn anew(self, make: impl FnOnce() -> T::Init) -> Result<T, NameError> {
        self.name(NameMode::Anew, Some(&make()))
    }

    fn name(self, mode: NameMode, init: Option<&T::Init>) -> Result<T, NameError> {
        let Self { handle, name, tag, copies, .. } = self;
        let mut spec = T::spec(init);
        if let Some((tag, version)) = tag {
            (spec.tag, spec.version) = (tag.to_owned(), version);
        }
        let contents = init.map_or_else(Vec::new, T::contents);
        let info = handle.name_with(name, mode, (spec, copies), contents)?;
        match T::found(handle, &info) {
            // Only its servers could tell.
            Err(Error::Lost { .. }) => {
                Err(NameError::Lost { home: handle.home_of_name(&info.name), name: info.name })
            }
            found => Ok(found?),
        }
    }
}

/// A node has answered something else than it was asked.
const fn broken(keeper: NodeId) -> Error {
    Error::Broken { addr: GlobalAddr::new(keeper, 0) }
}

/// What an answer says of a name.
fn answered(answer: Answer, asked: Request) -> Result<NamedInfo, NameError> {
    match answer {
        Answer::Made(info) | Answer::Opened(info) => Ok(info),
        Answer::Differs(there) => {
            Err(NameError::Differs { there: Box::new(there), asked: Box::new(asked.spec) })
        }
        Answer::Nothing => Err(NameError::NotFound { name: asked.name }),
        _ => Err(broken(asked.keeper).into()),
    }
}

/// A text that can be a name, or a tag.
fn is_usable(name: &str, most: usize) -> bool {
    (1..=most).contains(&name.len()) && !name.chars().any(char::is_control)
}

/// It is one.
fn usable(name: &str, most: usize) -> Result<(), NameError> {
    if is_usable(name, most) { Ok(()) } else { Err(NameError::Unusable { name: name.to_owned() }) }
}

/// Contents without the zeroes at their end, which are there anyway.
fn trimmed(mut contents: Vec<u8>) -> Vec<u8> {
    let len = contents.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    contents.truncate(len);
    contents
}
