//! Names whose makers are killed at every step: before each message of a joined maker leaves, after it has left, and when one has come.
//!
//! The test starts its own executable again, as `named` does. The maker counts the steps in a wrapper around its transport, and kills itself
//! at the n-th.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use rackmem::transport::{Body, Counters, Handshakes, Outgoing, PeerId, Sharing, Transport};
use rackmem::{Locked, Nanos, NodeHandle, NodeId, Rack, RackFile, Value, Words};
use rustix::process::{Signal, getpid, kill_process};

use super::named::{MARKS, application, attached, take_whole, told};
use super::rig::{Home, eventually};

/// A transport whose process dies at a step.
struct Deadly {
    inner: Arc<dyn Transport>,
    /// Steps until then; before the maker begins, none are counted.
    left: AtomicU64,
    has_begun: AtomicBool,
    has_sent: AtomicBool,
}

impl Deadly {
    fn step(&self) {
        if self.has_begun.load(SeqCst) && self.left.fetch_sub(1, SeqCst) == 1 {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    }
}

/// Beats come when they come.
fn counts(body: &Body<'_>) -> bool {
    !matches!(body, Body::Control(_))
}

impl Transport for Deadly {
    fn me(&self) -> PeerId {
        self.inner.me()
    }
    fn send(&self, to: PeerId, body: Body<'_>, out: &mut Outgoing) {
        if counts(&body) {
            self.step();
            self.has_sent.store(true, SeqCst);
        }
        self.inner.send(to, body, out);
    }
    fn flush(&self, out: &mut Outgoing) {
        self.inner.flush(out);
        if self.has_sent.swap(false, SeqCst) {
            self.step();
        }
    }
    fn receive(&self, each: &mut dyn FnMut(PeerId, Body<'_>)) -> usize {
        self.inner.receive(&mut |from, body| {
            if counts(&body) {
                self.step();
            }
            each(from, body);
        })
    }
    fn attend(&self) {
        self.inner.attend();
    }
    fn leave(&self) -> bool {
        self.inner.leave()
    }
    fn wait(&self, most: Nanos) {
        self.inner.wait(most);
    }
    fn block(&self, most: Nanos) {
        self.inner.block(most);
    }
    fn interrupt(&self) {
        self.inner.interrupt();
    }
    fn sharing(&self) -> Option<Arc<dyn Sharing>> {
        self.inner.sharing()
    }
    fn one_sided_room(&self) -> usize {
        self.inner.one_sided_room()
    }
    fn handshakes(&self) -> Option<Arc<Handshakes>> {
        self.inner.handshakes()
    }
    fn counters(&self) -> &Counters {
        self.inner.counters()
    }
}

/// Names that node 0 keeps.
fn names(handle: &NodeHandle) -> [String; 3] {
    ["lock", "value", "words"].map(|kind| {
        let mut all = (0..).map(|number| format!("{kind}/{number}"));
        all.find(|name| handle.home_of_name(name) == NodeId(0)).unwrap()
    })
}

fn make_all(file: &RackFile, node: NodeId, steps: u64) {
    let inner = file.open(PeerId::node(node)).unwrap();
    let [has_begun, has_sent] = [const { AtomicBool::new(false) }; 2];
    let transport = Arc::new(Deadly { inner, left: steps.into(), has_begun, has_sent });
    let shared: Arc<dyn Transport> = transport.clone();
    let rack = Rack::join_over(file.config.clone(), node, &file.process(), shared).unwrap();
    let mut here = rack.here();
    let [lock, value, words] = names(&here);
    transport.has_begun.store(true, SeqCst);
    here.named::<Locked<[u64; 64]>>(&lock).open_or(|| MARKS).unwrap();
    here.named::<Value<[u64; 64]>>(&value).open_or(|| MARKS).unwrap();
    here.named::<Words<u64>>(&words).open_or(|| 64).unwrap();
    transport.has_begun.store(false, SeqCst);
}

#[test]
fn whoever_is_killed_at_any_step_of_making_a_name_leaves_nothing_or_the_finished_thing() {
    const TEST: &str =
        "named_steps::whoever_is_killed_at_any_step_of_making_a_name_leaves_nothing_or_the_finished_thing";
    if let Some((file, node, steps)) = told() {
        return make_all(&file, node, steps);
    }
    let home = Home::new("steps");
    let up = home.up(&["--nodes", "3"]);
    let file = RackFile::read(home.rack_file()).unwrap();
    let mut here = attached(&file, NodeId(0));
    let names = names(&here);
    // How many were killed when so many of the three things were made.
    let mut killed = [0_u64; 4];
    for steps in 1.. {
        let ended = application(TEST, &file, 2, steps, Stdio::null()).wait().unwrap();
        let there = names.iter().filter(|name| take_whole_if_there(&mut here, name)).count();
        if ended.success() {
            assert_eq!(there, 3);
            break;
        }
        assert_eq!(ended.signal(), Some(Signal::KILL.as_raw()), "{ended}");
        killed[there] += 1;
    }
    // On a busy machine few die between the last answer and the end.
    assert!(killed[0] > 1 && killed[1..].iter().sum::<u64>() > 1, "by how many things were made: {killed:?}");
    // What the killed ones asked for last may have been done later.
    eventually("nothing is left", || !names.iter().any(|name| take_whole_if_there(&mut here, name)));
    drop(here);
    up.interrupt();
    home.assert_nothing_left();
}

fn take_whole_if_there(here: &mut NodeHandle, name: &str) -> bool {
    match here.name_info(name) {
        Ok(_) => take_whole(here, name).map(|()| true).unwrap(),
        Err(why) => {
            assert!(matches!(why, rackmem::NameError::NotFound { .. }), "{why}");
            false
        }
    }
}
