//! What a node does for the names that it keeps: at the home, by the calls that applications make, too.
//!
//! What is asked by threads of this process is done on them. What other nodes ask is answered at once if it changes nothing; else it is
//! queued for a thread that lives as long as there is something to do, and the asker asks again until it is done: whoever receives a
//! message must not wait. What must always hold: one thing at a time is made or taken away, so a name has one maker; what is
//! made is whole before it has its name, and loses its name when it is gone. Both die with this process, and with nobody else: an
//! asker that dies leaves nothing or the finished thing.
//!
//! In a rack with copies, names are kept in its memories with copies (`kept.rs`), by whoever serves these. Then a name outlives this
//! process, and so does what it names, if that has copies, too.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wire::{Discipline, GlobalAddr, NodeId, Refusal};

use super::directory::{Directory, Found, Named};
use super::kept::{Kept, State};
use super::request::{Answer, Request, What};
use super::spec::NamedInfo;
use super::{locks, making};
use crate::error::Error;
use crate::handle::NodeHandle;
use crate::rack::{Inner, Rack};

/// Names that one answer lists.
pub(super) const LISTED: usize = 64;
/// Requests that wait to be done: further ones are not taken, and asked again.
const MOST_WAITING: usize = 1024;
/// An answer that nobody has asked for in this time is dropped: who wanted it has died.
const KEPT: Duration = Duration::from_secs(60);

/// The names that one node keeps, or that are kept in one memory with copies.
pub(crate) struct NameService {
    keeper: NodeId,
    kept: Option<Kept>,
    directory: Mutex<Directory>,
    /// Held by whoever makes something, or takes it away.
    making: Mutex<()>,
    jobs: Mutex<Jobs>,
}

/// What other nodes have asked for.
#[derive(Default)]
struct Jobs {
    waiting: VecDeque<(Asked, Request)>,
    /// None: not done yet.
    answers: BTreeMap<Asked, (Option<Answer>, Instant)>,
    /// A thread does what waits.
    is_served: bool,
}

/// Who has asked, in which call.
type Asked = (NodeId, u64);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl NameService {
    /// The names of a node in this incarnation; whether it has had another one before.
    pub(crate) fn new(node: NodeId, incarnation: u32, returned: bool) -> Self {
        let directory = Mutex::new(Directory::new(incarnation, returned));
        Self { keeper: node, kept: None, directory, making: Mutex::default(), jobs: Mutex::default() }
    }

    /// The names in a memory with copies.
    pub(crate) fn in_memory(memory: NodeId) -> Self {
        Self { kept: Some(Kept::of(memory)), ..Self::new(memory, 0, false) }
    }

    fn serve(&self, rack: &Arc<Inner>, from: NodeId, request: Request) -> Result<Box<[u64]>, Refusal> {
        let answer = match self.known(rack, &request) {
            Some(answer) => answer,
            None => self.queued(rack, from, request).ok_or(Refusal::Locked)?,
        };
        Ok(answer.words().into())
    }

    /// What threads of this process ask.
    pub(super) fn ask(&self, handle: &mut NodeHandle, request: &Request) -> Answer {
        if let Some(answer) = self.known(&handle.inner, request) {
            return answer;
        }
        // What is made is as the request says, whatever else the asker makes with this handle.
        let (from, inner) = (handle.node, Arc::clone(&handle.inner));
        let node = if self.kept.is_some() { from } else { self.keeper };
        self.perform(&mut Rack { inner }.node(node), from, request)
    }

    /// What is asked, if that is known here and nothing changes.
    fn known(&self, rack: &Inner, request: &Request) -> Option<Answer> {
        if request.what == What::Locks {
            return Some(Answer::Locks(locks::told(rack, self.keeper, request.spec.len)));
        }
        let is_read = self.kept.as_ref().is_none_or(|kept| {
            let view = rack.joined().map(|node| node.view());
            view.is_some_and(|view| kept.is_read(view.epoch.0))
        });
        if is_read { self.said(rack, request) } else { None }
    }

    /// What the directory says, if nothing changes.
    fn said(&self, rack: &Inner, request: &Request) -> Option<Answer> {
        let Request { what, name, spec, call, .. } = request;
        let (mut directory, lives) = (locked(&self.directory), lives(rack));
        Some(match what {
            What::Look => found(directory.look(name, &lives)),
            What::Open => {
                let there = directory.find(name, (spec, *call), &lives);
                if matches!(there, Found::There(..)) {
                    directory.opened(name);
                }
                found(there)
            }
            // In the place of a tag: the last name that was listed.
            What::List => Answer::List(directory.list(name, &spec.tag, LISTED, &lives)),
            _ => return None,
        })
    }

    /// Queues a request, or says what came of it.
    fn queued(&self, rack: &Arc<Inner>, from: NodeId, request: Request) -> Option<Answer> {
        let mut jobs = locked(&self.jobs);
        let asked = (from, request.call);
        match jobs.answers.get(&asked) {
            Some((Some(_), _)) => return jobs.answers.remove(&asked)?.0,
            None if jobs.waiting.len() < MOST_WAITING => {
                jobs.answers.retain(|_, (answer, since)| answer.is_none() || since.elapsed() < KEPT);
                jobs.answers.insert(asked, (None, Instant::now()));
                jobs.waiting.push_back((asked, request));
            }
            _ => {}
        }
        if !jobs.is_served && !jobs.waiting.is_empty() {
            let (rack, keeper) = (Arc::clone(rack), self.keeper);
            let work = move || rack.names(keeper).expect("it has asked itself").work(&rack);
            // If the system has no thread now, whoever asks next tries again.
            jobs.is_served = std::thread::Builder::new().name(format!("names {keeper}")).spawn(work).is_ok();
        }
        None
    }

    /// Does what waits.
    fn work(&self, rack: &Arc<Inner>) {
        let node = rack.joined().map_or(self.keeper, |node| node.id());
        let mut handle = Rack { inner: Arc::clone(rack) }.node(node);
        loop {
            let (asked, request) = {
                let mut jobs = locked(&self.jobs);
                match jobs.waiting.pop_front() {
                    Some(job) => job,
                    None => return jobs.is_served = false,
                }
            };
            let answer = match self.perform(&mut handle, asked.0, &request) {
                // This node is over, and not the asker's: whoever keeps the names next does it.
                Answer::Failed(Error::Fenced) => Answer::Busy,
                answer => answer,
            };
            locked(&self.jobs).answers.insert(asked, (Some(answer), Instant::now()));
        }
    }

    /// Makes something, or takes it away, or says what it does not know before it has read the names; on a handle of this node.
    fn perform(&self, handle: &mut NodeHandle, from: NodeId, request: &Request) -> Answer {
        let _alone = locked(&self.making);
        let Some(kept) = &self.kept else {
            return self.decide(handle, from, request).unwrap_or_else(Answer::Failed);
        };
        match kept.enter(handle, &self.directory) {
            Ok(Some(_lock)) => self.decide(handle, from, request).unwrap_or_else(|why| {
                kept.forget();
                Answer::Failed(why)
            }),
            Ok(None) => Answer::Busy,
            Err(why) => Answer::Failed(why),
        }
    }

    fn decide(&self, handle: &mut NodeHandle, from: NodeId, request: &Request) -> Result<Answer, Error> {
        let Request { what, name, spec, call, .. } = request;
        if let Some(said) = self.said(&handle.inner, request) {
            return Ok(said);
        }
        let there = {
            let (directory, lives) = (locked(&self.directory), lives(&handle.inner));
            match what {
                What::Remove => directory.look(name, &lives),
                _ => directory.find(name, (spec, *call), &lives),
            }
        };
        match (there, what) {
            (Found::There(info, _), What::Remove) => self.remove(handle, &info),
            (other, What::Remove) => Ok(found(other)),
            (Found::There(info, true), _) => Ok(Answer::Made(*info)),
            (Found::There(info, false), What::Anew) if making::is_lost(handle, &info) => {
                match self.remove(handle, &info)? {
                    Answer::Removed => self.make(handle, from, request),
                    other => Ok(other),
                }
            }
            (Found::Nothing, _) => self.make(handle, from, request),
            (Found::Lost, What::Anew) => {
                // What had the name is gone with its memory.
                self.set(handle, name, State::Free)?;
                locked(&self.directory).remove(name, 0);
                self.make(handle, from, request)
            }
            (there @ Found::There(..), _) => {
                locked(&self.directory).opened(name);
                Ok(found(there))
            }
            (other, _) => Ok(found(other)),
        }
    }

    fn make(&self, handle: &mut NodeHandle, from: NodeId, request: &Request) -> Result<Answer, Error> {
        let Request { name, spec, call, contents, copies, .. } = request;
        let number = {
            let mut directory = locked(&self.directory);
            if directory.is_full() {
                return Ok(Answer::Full);
            }
            directory.next(handle.inner.epoch())
        };
        if let Some(kept) = &self.kept {
            kept.make_room(handle)?;
        }
        // A store is at nodes, wherever its copies are.
        let home = if *copies && spec.discipline != Discipline::Chain { self.keeper } else { handle.node };
        let life = handle.inner.life_of(home).ok_or(Error::NodeDown { addr: GlobalAddr::new(home, 0) })?;
        let copies = if *copies { handle.inner.config.copies } else { 1 };
        let addr = match making::make(handle, (home, copies), spec, contents, number) {
            Ok(addr) => addr,
            Err(why) => return Ok(Answer::Failed(why)),
        };
        let (name, spec, making, maker) = (name.clone(), spec.clone(), number.0, from);
        let info = NamedInfo { name, spec, addr, making, maker, copies: copies as u8, life, opened: 0 };
        let named = Named { info: info.clone(), call: *call };
        if let Some(kept) = &self.kept {
            let begun = locked(&self.directory).begun();
            kept.put(handle, &named, begun)?;
            // Whoever hears of it may rely on it.
            handle.sync()?;
        }
        locked(&self.directory).insert(named);
        Ok(Answer::Made(info))
    }

    fn remove(&self, handle: &mut NodeHandle, info: &NamedInfo) -> Result<Answer, Error> {
        self.set(handle, &info.name, State::Going)?;
        match making::take_away(handle, info) {
            Ok(Some(fence)) => {
                locked(&self.directory).remove(&info.name, fence);
                self.set(handle, &info.name, State::Free)?;
                Ok(Answer::Removed)
            }
            Ok(None) => {
                self.set(handle, &info.name, State::Used)?;
                Ok(Answer::Busy)
            }
            Err(why) => {
                self.set(handle, &info.name, State::Used)?;
                Ok(Answer::Failed(why))
            }
        }
    }

    /// What becomes of a name where it is kept, for whoever keeps it next.
    fn set(&self, handle: &mut NodeHandle, name: &str, state: State) -> Result<(), Error> {
        let Some(kept) = &self.kept else { return Ok(()) };
        let begun = locked(&self.directory).begun();
        kept.set(handle, name, state, begun)?;
        handle.sync()
    }
}

/// What nodes ask of this one's names, or of those in a memory that it serves. [`Refusal::Locked`]: ask again.
pub(crate) fn serve(rack: &Arc<Inner>, from: NodeId, words: &[u64]) -> Result<Box<[u64]>, Refusal> {
    let request = Request::parse(words).ok_or(Refusal::NotAnAllocation)?;
    let service = rack.names(request.keeper).ok_or(Refusal::NotAnAllocation)?;
    service.serve(rack, from, request)
}

/// Tells whether what has a name is still in the memory that it was made in. Only a store's servers know what it has outlived.
fn lives(rack: &Inner) -> impl Fn(&NamedInfo) -> bool {
    |info| info.is_lasting_store() || rack.life_of(info.addr.home()) == Some(info.life)
}

fn found(found: Found) -> Answer {
    match found {
        Found::There(info, _) => Answer::Opened(*info),
        Found::Differs(info) => Answer::Differs(*info),
        Found::Nothing => Answer::Nothing,
        Found::Lost => Answer::Lost,
    }
}
