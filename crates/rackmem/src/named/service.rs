//! What a node does for the names that it keeps: at the home, by the calls that applications make, too.
//!
//! What is asked by threads of this process is done on them. What other nodes ask is answered at once if it changes nothing; else it is
//! queued for a thread that lives as long as there is something to do, and the asker asks again until it is done: whoever receives a
//! message must not wait. What must always hold: one thing at a time is made or taken away, so a name has one maker; what is
//! made is whole before it has its name, and loses its name when it is gone. Both die with this process, and with nobody else: an
//! asker that dies leaves nothing or the finished thing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wire::{NodeId, Refusal};

use super::directory::{Directory, Found};
use super::request::{Answer, Request, What};
use super::spec::NamedInfo;
use super::{locks, making};
use crate::handle::NodeHandle;
use crate::rack::{Inner, Rack};

/// Names that one answer lists.
pub(super) const LISTED: usize = 64;
/// Requests that wait to be done: further ones are not taken, and asked again.
const MOST_WAITING: usize = 1024;
/// An answer that nobody has asked for in this time is dropped: who wanted it has died.
const KEPT: Duration = Duration::from_secs(60);

/// The names that one node keeps.
pub(crate) struct NameService {
    node: NodeId,
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
        Self { node, directory, making: Mutex::default(), jobs: Mutex::default() }
    }

    /// What other nodes ask. [`Refusal::Locked`]: ask again.
    pub(crate) fn serve(
        &self,
        rack: &Arc<Inner>,
        from: NodeId,
        words: &[u64],
    ) -> Result<Box<[u64]>, Refusal> {
        let request = Request::parse(words).ok_or(Refusal::NotAnAllocation)?;
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
        if handle.node == self.node {
            return self.perform(handle, self.node, request);
        }
        let from = handle.node;
        let mut at_home = Rack { inner: Arc::clone(&handle.inner) }.node(self.node);
        self.perform(&mut at_home, from, request)
    }

    /// What is asked, if nothing changes.
    fn known(&self, rack: &Inner, request: &Request) -> Option<Answer> {
        let Request { what, name, spec, call, .. } = request;
        if *what == What::Locks {
            return Some(Answer::Locks(locks::told(rack, self.node, spec.len)));
        }
        let mut directory = locked(&self.directory);
        Some(match what {
            What::Look => found(directory.look(name)),
            What::Open => {
                let there = directory.find(name, spec, *call);
                if matches!(there, Found::There(..)) {
                    directory.opened(name);
                }
                found(there)
            }
            // In the place of a tag: the last name that was listed.
            What::List => Answer::List(directory.list(name, &spec.tag, LISTED)),
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
            let (rack, index) = (Arc::clone(rack), self.node);
            let work = move || rack.names(index).expect("it has asked itself").work(&rack);
            // If the system has no thread now, whoever asks next tries again.
            jobs.is_served = std::thread::Builder::new().name(format!("names {index}")).spawn(work).is_ok();
        }
        None
    }

    /// Does what waits.
    fn work(&self, rack: &Arc<Inner>) {
        let mut handle = Rack { inner: Arc::clone(rack) }.node(self.node);
        loop {
            let (asked, request) = {
                let mut jobs = locked(&self.jobs);
                match jobs.waiting.pop_front() {
                    Some(job) => job,
                    None => return jobs.is_served = false,
                }
            };
            let answer = self.perform(&mut handle, asked.0, &request);
            locked(&self.jobs).answers.insert(asked, (Some(answer), Instant::now()));
        }
    }

    /// Makes something, or takes it away, on a handle of this node.
    fn perform(&self, handle: &mut NodeHandle, from: NodeId, request: &Request) -> Answer {
        let _alone = locked(&self.making);
        let Request { what, name, spec, call, .. } = request;
        let there = {
            let directory = locked(&self.directory);
            if *what == What::Remove { directory.look(name) } else { directory.find(name, spec, *call) }
        };
        match (there, what) {
            (Found::There(info, _), What::Remove) => self.remove(handle, &info),
            (other, What::Remove) => found(other),
            (Found::There(info, true), _) => Answer::Made(*info),
            (Found::There(info, false), What::Anew) if making::is_lost(handle, &info) => {
                match self.remove(handle, &info) {
                    Answer::Removed => self.make(handle, from, request),
                    other => other,
                }
            }
            (Found::Nothing, _) | (Found::Lost, What::Anew) => self.make(handle, from, request),
            (there @ Found::There(..), _) => {
                locked(&self.directory).opened(name);
                found(there)
            }
            (other, _) => found(other),
        }
    }

    fn make(&self, handle: &mut NodeHandle, from: NodeId, request: &Request) -> Answer {
        let Request { name, spec, call, contents, .. } = request;
        let number = {
            let mut directory = locked(&self.directory);
            if directory.is_full() {
                return Answer::Full;
            }
            directory.next(handle.inner.epoch())
        };
        match making::make(handle, spec, contents, number) {
            Ok(addr) => {
                let made = (addr, number.0);
                Answer::Made(locked(&self.directory).insert(name, spec.clone(), made, (from, *call)))
            }
            Err(why) => Answer::Failed(why),
        }
    }

    fn remove(&self, handle: &mut NodeHandle, info: &NamedInfo) -> Answer {
        match making::take_away(handle, info) {
            Ok(Some(fence)) => {
                locked(&self.directory).remove(&info.name, fence);
                Answer::Removed
            }
            Ok(None) => Answer::Busy,
            Err(why) => Answer::Failed(why),
        }
    }
}

fn found(found: Found) -> Answer {
    match found {
        Found::There(info, _) => Answer::Opened(*info),
        Found::Differs(info) => Answer::Differs(*info),
        Found::Nothing => Answer::Nothing,
        Found::Lost => Answer::Lost,
    }
}
