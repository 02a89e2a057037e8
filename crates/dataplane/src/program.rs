//! A program with its maps, loaded.

use std::fmt;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;

use switch::ebpf::memory::{MEMORIES, session};
use switch::ebpf::{
    self, ArrayLayout, Code, Hook, Instruction, KernelProgram, Map, Named, SCRATCH_BYTES, StateLayout,
    datagram,
};
use transport::udp::NodeSession;
use wire::NodeId;

use crate::system::{self, Shared};

/// Why the kernel does not run a program.
#[derive(Debug)]
pub struct Refused {
    /// What was to be done.
    pub step: &'static str,
    /// What the kernel says.
    pub error: io::Error,
    /// The last lines of its verifier.
    pub verifier: String,
}

impl Refused {
    /// True if this process lacks the right: to bpf(2) at all, or to load programs.
    pub fn for_lack_of_rights(&self) -> bool {
        matches!(self.error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS))
            && self.verifier.is_empty()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the kernel does not {}: {}", self.step, self.error)?;
        if self.for_lack_of_rights() {
            write!(f, " (it takes root, or the capabilities CAP_BPF and CAP_NET_ADMIN)")?;
        }
        if !self.verifier.is_empty() {
            write!(f, "; its verifier says:\n{}", self.verifier)?;
        }
        Ok(())
    }
}

impl std::error::Error for Refused {}

/// A program that the kernel has taken, with its state. It goes with this value.
pub struct Loaded {
    program: OwnedFd,
    barrier: OwnedFd,
    layout: StateLayout,
    state: Shared,
    lock_map: OwnedFd,
    state_map: OwnedFd,
}

// The names of what is pinned of a program. Its map for each processor holds nothing from one packet to the next.
const PROGRAM: &str = "program";
const LOCK: &str = "lock";
const STATE: &str = "state";

/// What came of a test run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// [`switch::ebpf::verdict`].
    pub verdict: u32,
    /// Nanoseconds for one run, on average.
    pub nanoseconds: u32,
}

impl Loaded {
    /// The names of what is pinned of it.
    pub(crate) const PARTS: [&str; 3] = [PROGRAM, LOCK, STATE];

    /// Loads a program, with state that is all 0.
    ///
    /// # Errors
    /// If the kernel refuses: [`Refused`] says at which step, and why.
    pub fn load(program: &KernelProgram) -> Result<Self, Refused> {
        let refused = |step| move |error| Refused { step, error, verifier: String::new() };
        let lock = system::lock_map().map_err(refused("make a map with a spin lock"))?;
        let state = system::state_map(program.layout.bytes).map_err(refused("make a map for the state"))?;
        let scratch = system::scratch_map(SCRATCH_BYTES).map_err(refused("make a map for each processor"))?;
        let instructions = with_maps(&program.code, |map| match map {
            Map::Lock => &lock,
            Map::State => &state,
            Map::Scratch => &scratch,
        });
        let loaded = system::load(program.hook, &instructions);
        let loaded =
            loaded.map_err(|(error, verifier)| Refused { step: "take the program", error, verifier })?;
        Self::of(loaded, (lock, state), program)
    }

    /// What [`Loaded::pin`] has kept of the same program, with its state as that is.
    pub(crate) fn pinned(program: &KernelProgram, name: impl Fn(&str) -> PathBuf) -> Result<Self, Refused> {
        let open = |part| {
            let opened = system::pinned(&name(part));
            opened.map_err(|error| Refused { step: "open what is pinned", error, verifier: String::new() })
        };
        Self::of(open(PROGRAM)?, (open(LOCK)?, open(STATE)?), program)
    }

    fn of(
        loaded: OwnedFd,
        (lock, state): (OwnedFd, OwnedFd),
        program: &KernelProgram,
    ) -> Result<Self, Refused> {
        let barrier = datagram::barrier().expect("it is short");
        let barrier = system::load(Hook::TrafficControl, &with_maps(&barrier, |_| &lock));
        let barrier =
            barrier.map_err(|(error, verifier)| Refused { step: "take the barrier", error, verifier })?;
        let shared = Shared::map(&state, program.layout.bytes).map_err(|error| Refused {
            step: "map the state",
            error,
            verifier: String::new(),
        })?;
        Ok(Self {
            program: loaded,
            barrier,
            layout: program.layout.clone(),
            state: shared,
            lock_map: lock,
            state_map: state,
        })
    }

    /// Gives it names, so that it outlives this process.
    pub(crate) fn pin(&self, name: impl Fn(&str) -> PathBuf) -> io::Result<()> {
        let parts = [(PROGRAM, &self.program), (LOCK, &self.lock_map), (STATE, &self.state_map)];
        parts.into_iter().try_for_each(|(part, descriptor)| system::pin(descriptor, &name(part)))
    }

    /// The incarnation that it is in; 0: none yet.
    pub(crate) fn epoch(&self) -> u32 {
        self.state.word(self.layout.epoch) as u32
    }

    /// Runs the program on a frame, so many times.
    ///
    /// # Errors
    /// If the kernel does not run it at all: a frame that is shorter than the head of an Ethernet frame, for one.
    pub fn test_run(&self, frame: &[u8], times: u32) -> io::Result<Run> {
        let ran = system::run(&self.program, frame, times)?;
        Ok(Run { verdict: ran.verdict, nanoseconds: ran.nanoseconds })
    }

    /// A copy of the state.
    pub fn state(&self, to: &mut Vec<u8>) {
        self.state.read(to);
    }

    /// Where things are in the state.
    pub const fn layout(&self) -> &StateLayout {
        &self.layout
    }

    /// The switch is in this incarnation from now on: when this returns, no pass of another one is under way, and none begins.
    ///
    /// # Panics
    /// If the kernel does not run a program that it has taken.
    pub fn set_epoch(&mut self, epoch: u32) {
        self.state.write(self.layout.epoch, &u64::from(epoch).to_le_bytes());
        self.barrier();
    }

    /// Everything is forgotten but the counters and what is known of nodes; this node keeps the shadow.
    pub fn clear(&mut self, shadow: u16) {
        self.state.write(self.layout.shadow, &u64::from(shadow).to_le_bytes());
        let arrays = self.layout.arrays.first().map_or(self.layout.bytes, |array| array.at);
        self.state.clear(arrays);
        self.forget_log();
    }

    /// Memories are where this says, each with a number. To be called when no packet is under way that goes by it.
    pub fn set_servers(&mut self, server: impl Fn(usize) -> Option<NodeId>) {
        let byte = |memory| server(memory).and_then(|node| u8::try_from(node.0).ok()).unwrap_or(u8::MAX);
        let bytes: [u8; MEMORIES] = std::array::from_fn(byte);
        self.state.write(self.layout.servers, &bytes);
    }

    /// Sets a register cell: for the control plane, of entries at which no pass looks.
    pub fn set_cell(&mut self, array: usize, index: usize, value: u64) {
        let ArrayLayout { at, cell, entries, .. } = self.layout.arrays[array];
        assert!(index < entries, "cell {index} of an array of {entries}");
        self.state.write(at + index * cell, &value.to_le_bytes()[..cell]);
    }

    /// What is in a register cell.
    pub fn cell(&self, array: usize, index: usize) -> u64 {
        let ArrayLayout { at, cell, entries, .. } = self.layout.arrays[array];
        assert!(index < entries, "cell {index} of an array of {entries}");
        let at = at + index * cell;
        self.state.word(at / 8 * 8) >> (at % 8 * 8) & (u64::MAX >> (64 - 8 * cell))
    }

    /// When this returns, every pass that had begun before is over.
    ///
    /// # Panics
    /// If the kernel does not run a program that it has taken.
    pub fn barrier(&self) {
        let ran = system::run(&self.barrier, &[0; 64], 1);
        ran.unwrap_or_else(|error| panic!("the kernel does not run the barrier: {error}"));
    }

    /// Where datagrams for the switch go.
    pub fn is_at(&mut self, here: SocketAddrV4) {
        let (ip, port) = (here.ip().octets(), here.port().to_be_bytes());
        self.state.write(self.layout.here, &[&ip[..], &port, &[0, 0]].concat());
    }

    /// Attaches the program to a device: as long as the link is there.
    pub(crate) fn attach(&self, device: u32) -> io::Result<OwnedFd> {
        system::attach(Hook::TrafficControl, &self.program, device)
    }

    /// Writes down a life of a session with a node, at which the program does not look yet.
    pub fn begin_life(&mut self, node: usize, new: &NodeSession) {
        let life = self.other_life(node);
        let keys =
            [&new.theirs.to_le_bytes()[..], &new.mine.to_le_bytes(), &new.key_in, &new.key_out].concat();
        self.state.write(life + session::THEIRS, &keys);
        // No counter has come, but for 0, which nobody uses; and none has gone.
        for (at, value) in [(session::NEWEST, 0_u64), (session::SEEN, 1), (session::WENT_OUT, 0)] {
            self.state.write(life + at, &value.to_le_bytes());
        }
    }

    /// The program looks at that life from now on.
    pub fn switch_life(&mut self, node: usize) {
        let at = self.layout.sessions + node * session::BYTES + session::WHICH;
        let which = 1 - self.which(node);
        self.state.write(at, &which.to_le_bytes());
    }

    /// Where a node is: at a device, with frames that begin like this.
    pub fn place(&mut self, node: usize, device: u32, template: &[u8; session::TEMPLATE_BYTES]) {
        let at = self.layout.sessions + node * session::BYTES;
        self.state.write(at + session::TEMPLATE, template);
        self.state.write(at + session::DEVICE, &u64::from(device).to_le_bytes());
    }

    fn which(&self, node: usize) -> u64 {
        self.state.word(self.layout.sessions + node * session::BYTES + session::WHICH) & 1
    }

    fn other_life(&self, node: usize) -> usize {
        let other = 1 - self.which(node) as usize;
        self.layout.sessions + node * session::BYTES + session::LIFE + other * session::LIFE_BYTES
    }

    /// Forgets the packets that test runs have written down.
    pub fn forget_log(&mut self) {
        self.state.write(self.layout.log, &0_u64.to_le_bytes());
    }
}

/// A program for drivers.
pub(crate) struct InDriver {
    program: OwnedFd,
}

impl InDriver {
    /// Loads one that runs these in turn, with the states and the locks of others that are loaded.
    pub(crate) fn load(programs: [(&KernelProgram, &Loaded); 2]) -> Result<Self, Refused> {
        let refused = |step| move |error| Refused { step, error, verifier: String::new() };
        let scratch = system::scratch_map(SCRATCH_BYTES).map_err(refused("make a map for each processor"))?;
        let [first, second] = programs.map(|(program, loaded)| {
            with_maps(&program.code, |map| match map {
                Map::Lock => &loaded.lock_map,
                Map::State => &loaded.state_map,
                Map::Scratch => &scratch,
            })
        });
        let program = system::load(Hook::Driver, &ebpf::in_turn([&first, &second]));
        let program = program.map_err(|(error, verifier)| Refused {
            step: "take the program for drivers",
            error,
            verifier,
        })?;
        Ok(Self { program })
    }

    /// Attaches it to a device, whose driver runs it: as long as the link is there.
    pub(crate) fn attach(&self, device: u32) -> io::Result<OwnedFd> {
        system::attach(Hook::Driver, &self.program, device)
    }
}

/// Whether this process may load programs.
pub(crate) fn can_load() -> Result<(), Refused> {
    let refused = |step| move |error| Refused { step, error, verifier: String::new() };
    let lock = system::lock_map().map_err(refused("make a map with a spin lock"))?;
    let barrier = datagram::barrier().expect("it is short");
    let loaded = system::load(Hook::TrafficControl, &with_maps(&barrier, |_| &lock));
    loaded.map(drop).map_err(|(error, verifier)| Refused { step: "take a program", error, verifier })
}

/// The instructions, with the numbers of the maps.
fn with_maps<'a>(code: &Code, of: impl Fn(Map) -> &'a OwnedFd) -> Vec<Instruction> {
    let mut instructions = code.instructions.clone();
    for (at, map, named) in &code.maps {
        let first = &mut instructions[*at];
        first.number = of(*map).as_raw_fd();
        // What kind of number it is: a map's, or the address of its entry.
        first.from = match named {
            Named::Itself => 1,
            Named::Entry => 2,
        };
    }
    instructions
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("program", &self.program).finish_non_exhaustive()
    }
}
