//! Faults of mapped memory: what is done for threads that wait for their access, or by them.
//!
//! A thread of the node waits for faults, and gets blocks as application threads do. Or whoever has the fault does it in a
//! handler of SIGBUS, if the process has asked for that.
//!
//! What must always hold: a thread that waits in a fault goes on with its access allowed, or its process ends with a line that
//! says why.

use std::cell::RefCell;
use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use node::Access;
use wire::{NodeId, Refusal};

use super::mapped::say;
use super::node::NetworkedNode;
use crate::actor::{Failure, ThreadContext};
use crate::memory::pages::{Faulted, Pages, Run};
use crate::waiting::{SpinThenPark, Step};

/// The longest sleep of the thread that waits for faults: then it looks whether the node is still there.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

impl NetworkedNode {
    /// From now on faults are resolved.
    pub(super) fn begin_mapping(&self) -> JoinHandle<()> {
        let (node, served) = (self.this.clone(), self.memory.pages().map(Arc::clone));
        let served = served.expect("they were made a moment ago");
        if served.are_faults_in_place() {
            let node = node.clone();
            // Its last share keeps the node for as long as something is mapped.
            served.resolve_in_place(move |faulted| {
                if let Some(node) = node.upgrade() {
                    node.resolve_here(faulted);
                }
            });
        } else if served.is_user_mode_only() {
            self.log().on_user_mode_only(self.id);
        }
        // In any case: agents are told by it that a hold is over.
        let thread = std::thread::Builder::new().name(format!("rackmem {} faults", self.id));
        thread.spawn(move || serve(&node, &served)).expect("the system gives a thread")
    }

    /// Does it for this thread, which has the fault and is in the handler of its signal.
    fn resolve_here(&self, faulted: &Faulted) {
        thread_local! {
            /// Of the node that this thread had its last fault on: few processes have more than one.
            static HERE: RefCell<Option<(NodeId, ThreadContext, Run)>> = const { RefCell::new(None) };
        }
        let mut here = HERE.try_with(RefCell::take).ok().flatten().filter(|(id, ..)| *id == self.id);
        let (_, context, run) =
            here.get_or_insert_with(|| (self.id, ThreadContext::new(self.pages().seed()), Run::default()));
        self.resolve(context, run, faulted);
        // A thread that ends has none any more.
        let _ = HERE.try_with(|kept| kept.replace(here));
    }

    /// Gets what several threads wait for at once: whatever comes of it, each of them is looked at afterwards.
    fn bring_together(&self, context: &mut ThreadContext, faulted: &[Faulted]) {
        for access in [Access::Shared, Access::Modified] {
            let wait = |faulted: &&Faulted| faulted.access == access && self.pages().is_mapped(faulted);
            let block = self.memory.cache.block_size();
            let tags: Vec<_> = faulted.iter().filter(wait).map(|faulted| block.tag(faulted.addr)).collect();
            if tags.len() > 1 {
                let _ = self.bring_ahead(context, &tags, access, faulted);
            }
        }
    }

    /// Does what a thread waits for, or ends the process.
    fn resolve(&self, context: &mut ThreadContext, run: &mut Run, faulted: &Faulted) {
        let pages = self.pages();
        // Whoever waits where nothing is mapped any more has been told to try again, and will not wait.
        if pages.is_granted(faulted) || !pages.is_mapped(faulted) {
            return;
        }
        let tag = self.memory.cache.block_size().tag(faulted.addr);
        // What the application has pinned was taken away because the lease had run out.
        while let Some(granted) = pages.grant_kept(faulted) {
            match self.await_lease() {
                Ok(()) if granted => return,
                Ok(()) => crate::scheduling::give_way(),
                Err(why) => return self.give_up(faulted, why),
            }
        }
        let ahead = run.ahead(self.memory.cache.block_size(), faulted.addr);
        pages.count_fault(ahead);
        if ahead > 0 {
            let tags = pages.from(tag, 1 + ahead);
            // Whatever came of it: it is only tried.
            let _ = self.bring_ahead(context, &tags, faulted.access, std::slice::from_ref(faulted));
            if pages.is_granted(faulted) {
                return;
            }
        }
        if let Err(why) = self.bring(context, (tag, faulted.access), Some(faulted)) {
            self.give_up(faulted, why);
        }
    }

    /// Nobody can do what a thread waits for, if it still does.
    fn give_up(&self, faulted: &Faulted, why: Failure) {
        if self.pages().is_mapped(faulted) {
            last_words(faulted, why, self.leaving.load(Acquire));
        }
    }
}

/// Waits for faults, as long as the node is there.
fn serve(node: &Weak<NetworkedNode>, pages: &Pages) {
    let Some(scheduling) = node.upgrade().map(|node| node.scheduling) else { return };
    // Was permitted when the node joined.
    let _ = scheduling.ask();
    let _ends = EndsTheProcess;
    let (mut context, mut run) = (ThreadContext::new(pages.seed()), Run::default());
    // Whoever has had a fault has another one soon, and a wake-up takes longer than all the rest.
    let mut waiting = SpinThenPark::without_spins();
    while let Some(node) = node.upgrade().filter(|node| !node.stop.load(Acquire)) {
        let clock = || node.now();
        let now = waiting.now(clock);
        node.end_holds(&mut context, now);
        let faulted = pages.faulted();
        if !faulted.is_empty() {
            node.bring_together(&mut context, &faulted);
            faulted.iter().for_each(|faulted| node.resolve(&mut context, &mut run, faulted));
            waiting.again();
            continue;
        }
        match waiting.step(now, pages.deadline(), &node.oversubscription) {
            Step::Spin => std::hint::spin_loop(),
            Step::Yield => waiting.give_way(now, &node.oversubscription, clock),
            Step::Sleep(_) => {
                drop(node);
                pages.wait(LONGEST_SLEEP);
            }
        }
    }
}

/// Without the thread that resolves faults, every thread that has one would wait for ever.
struct EndsTheProcess;

impl Drop for EndsTheProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            say(format_args!("the thread that resolves faults of mapped memory has panicked."));
            std::process::abort();
        }
    }
}

/// An access that can never be made ends the process: the program asked for no error.
fn last_words(faulted: &Faulted, why: Failure, leaving: bool) -> ! {
    let cause = match why {
        Failure::Fenced if leaving => "this process has left the rack",
        Failure::Fenced => "the rack has declared this node dead",
        Failure::Refused(Refusal::NodeDown) => "its node is down, and its memory is lost",
        Failure::Refused(Refusal::Unallocated) => "it belongs to no allocation (any more)",
        Failure::Refused(Refusal::WrongDiscipline) => "it is no coherent memory",
        _ => "it cannot be had",
    };
    let does = if faulted.access == Access::Modified { "written" } else { "read" };
    say(format_args!(
        "{} at {:#x}, mapped, cannot be {does}: {cause}. `Mapping::touch` returns an error instead.",
        faulted.addr, faulted.pointer
    ));
    std::process::abort();
}
