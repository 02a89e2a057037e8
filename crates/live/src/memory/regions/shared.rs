//! Regions in memory that several processes have mapped: the header in front of the words, and what becomes of objects whose
//! writer dies.
//!
//! ```text
//!  word  0      1     2        3      4      5         6      7        8 ..
//!        magic  addr  shape    count  state  suspects  seats  mappers  the words of the region
//!                     discipline in the highest byte, then whether fronts are written last, bytes of an object below
//!        magic above, below the incarnation of the home
//! ```
//!
//! `state` says whether the region lives: every process looks at it with each operation, so all of them see the end at once. The
//! header is one cache line; nothing in it changes while the region is used, but for the end, for those that map it, and for deaths.
//! `suspects` and `mappers` have a bit for each node, `seats` for each application that has mapped it.
//!
//! # A writer that dies inside an object
//! A process may be killed between any two instructions. What it leaves in an object's version decides what becomes of the object:
//!
//! ```text
//!  version, even                 bits 52..0: the number; nobody writes
//!  version, odd   bits 63..57: who writes: 0 the home's process, 1 + n node n's, 65 + s the application in seat s,
//!                              127 nobody: the object is lost
//!                 bits 56..53: how often the home has seen this application here while somebody waited
//! ```
//!
//! So the compare-and-swap that takes an object also says who has it: there is no instant at which it is taken and nobody knows
//! by whom, and it costs no other store and no other word. (A table of who writes what beside the objects would be a second
//! word, written before or after the version: between the two, a death makes it lie. It would also need a place for each *thread* that
//! writes.) Readers need not know: odd is torn. What a death leaves is one of three:
//!
//! | killed | the version says | the object |
//! | --- | --- | --- |
//! | before the compare-and-swap | even, as before | as before |
//! | between that and the last store | odd, by the dead one | any mix of old and new: it gets lost |
//! | after the last store | even, the next | as written |
//!
//! **Lost** is decided by the home, when it is told of the death ([`Region::writer_died`]), or by the next incarnation of that node,
//! before it writes anything ([`Region::map`]). It replaces the dead writer by `nobody` in the version. From then on reads and
//! updates fail with [`Missing::Lost`], until somebody writes the whole object ([`Object::overwrite`](super::Object::overwrite)),
//! which takes it from there to the next even version. If that writer dies, too, the object is lost again.
//!
//! **Front last.** In a region whose objects are written front last ([`Shape::Objects`]) nothing is lost so. What a dead writer has left is
//! what it had stored so far, and its front is of before or, to some word, of after: whoever made the objects has seen to it that each of
//! these is something whole. So the home takes the object to the next even version as it is.
//!
//! **Believed dead is not dead.** A process that was stopped for a while may be declared dead and then go on, in the middle
//! of an object: nothing can keep its stores out of memory that it has mapped. So an object is taken from a writer
//! only when the kernel says that no process of that node has the memory mapped any more ([`SharedMemory::claim`]: a lock that
//! lives as long as the mapping). Until then the node is a *suspect*: readers and writers who find an object in a suspect's
//! hands get [`Missing::Lost`], too, and do not wait. If it goes on and ends its write, the object is whole, and counts. The claim
//! also sees to it that two incarnations of one node never have the memory mapped at a time, so the node's number is enough to say who writes.
//!
//! **Applications** that are no nodes ([`Mapper::Application`]) have seats instead of numbers in the rack, and nobody declares them
//! dead: the home looks every now and then which seats are free whose application may have written
//! ([`Region::look_at_applications`]). As above, a seat is free when the kernel says so, and whoever gets it next looks first. An application that is
//! stopped in an object keeps its seat. Whoever waits for it says so in the header; the home looks through the region then,
//! and counts in the version itself, which the writer's end overwrites. After [`MOST_LOOKS`] nobody waits any more.
//!
//! The home's own process needs no such check: if it dies, the region is gone, and whoever hears of it says so in the header
//! ([`Region::home_died`]). Nobody's access faults: the memory itself stays for as long as somebody has it mapped.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use transport::{Mapper, NotObtained, PeerId, SharedMemory};
use wire::{Discipline, GlobalAddr, Incarnation, NodeId};

use super::held::Held;
use super::region::{ENDED, HOME_DIED, INCARNATIONS};
use super::{Missing, Region, Shape};

/// Which bit of the word of the shape says that objects are written front last.
const FRONT_LAST: u32 = 55;
/// Words in front of the region's own: one cache line.
pub(super) const HEADER: usize = 8;
const MAGIC: u64 = u64::from_le_bytes(*b"\0\0\0\0rack");
const AT_MAGIC: usize = 0;
const AT_ADDR: usize = 1;
const AT_SHAPE: usize = 2;
const AT_COUNT: usize = 3;
const AT_STATE: usize = 4;
const AT_SUSPECTS: usize = 5;
const AT_SEATS: usize = 6;
const AT_MAPPERS: usize = 7;

/// Where in an odd version its writer stands.
const WRITER_SHIFT: u32 = 57;
/// Of the application in the first seat.
const SEATED: u64 = 65;
const NOBODY: u64 = 127;
const _: () = assert!(SEATED + Mapper::SEATS as u64 <= NOBODY);
/// How often its home has seen an application there. As often as this: it is not waited for.
const LOOKS_SHIFT: u32 = 53;
const MOST_LOOKS: u64 = 8;
/// The version's number.
const NUMBER: u64 = (1 << LOOKS_SHIFT) - 1;
/// In the word of the seats: somebody waits for an application.
const WAITED_FOR: u64 = 1 << 63;

/// Who writes, as versions say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Writer(u64);

impl Writer {
    /// The home's process, or the only one that there is.
    pub(super) const HOME: Self = Self(0);
    const NOBODY: Self = Self(NOBODY);

    const fn node(node: NodeId) -> Self {
        Self(node.0 as u64 + 1)
    }

    /// Whoever has obtained the memory. None: a place that writes no objects.
    fn mapper(mapper: Mapper) -> Option<Self> {
        match mapper {
            Mapper::Peer(peer) => peer.as_node().map(Self::node),
            Mapper::Application(seat) => Some(Self(SEATED + u64::from(seat))),
        }
    }

    const fn of(version: u64) -> Self {
        Self(version >> WRITER_SHIFT)
    }

    /// The odd version by which this writer takes an object that has `found`: an even version, or that of a lost object.
    #[inline(always)]
    pub(super) const fn takes(self, found: u64) -> u64 {
        found & NUMBER | 1 | self.0 << WRITER_SHIFT
    }

    /// The even version that ends what was taken so.
    #[inline(always)]
    pub(super) const fn ends(taken: u64) -> u64 {
        (taken & NUMBER).wrapping_add(1) & NUMBER
    }
}

/// An object in this version is lost.
pub(super) const fn is_lost(version: u64) -> bool {
    !version.is_multiple_of(2) && Writer::of(version).0 == NOBODY
}

/// What a region has if other processes have it mapped, too.
pub(super) struct Shared {
    pub(super) memory: Arc<SharedMemory>,
    /// Of the home.
    pub(super) incarnation: Incarnation,
    pub(super) writer: Writer,
}

impl Shared {
    fn suspects(&self) -> &AtomicU64 {
        &self.memory.words()[AT_SUSPECTS]
    }

    /// Where it is said that this writer may have written here, and that nobody has looked for its half-written objects since.
    fn may_have_written(&self, writer: Writer) -> (&AtomicU64, u64) {
        let (at, bit) =
            if writer.0 < SEATED { (AT_MAPPERS, writer.0 - 1) } else { (AT_SEATS, writer.0 - SEATED) };
        (&self.memory.words()[at], 1 << bit)
    }

    fn seats(&self) -> &AtomicU64 {
        &self.memory.words()[AT_SEATS]
    }

    /// Whoever has an object in this version is believed to be dead. If an application has it, its home is told that somebody waits.
    pub(super) fn is_suspect(&self, version: u64) -> bool {
        match Writer::of(version).0 {
            number @ 1..SEATED => self.suspects().load(Ordering::SeqCst) >> (number - 1) & 1 == 1,
            SEATED..NOBODY => {
                if self.seats().load(Ordering::Relaxed) & WAITED_FOR == 0 {
                    self.seats().fetch_or(WAITED_FOR, Ordering::SeqCst);
                }
                version >> LOOKS_SHIFT & 15 >= MOST_LOOKS
            }
            _ => false,
        }
    }
}

/// Why memory of another process was not taken for a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotMapped {
    /// It was not obtained.
    NotObtained(NotObtained),
    /// The region has ended meanwhile.
    Ended,
    /// It is no region, or not the one at that address, or not as large as it says.
    NoSuchRegion,
}

impl fmt::Display for NotMapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotObtained(why) => why.fmt(f),
            Self::Ended => f.write_str("the region has ended"),
            Self::NoSuchRegion => f.write_str("the memory that came is not that region"),
        }
    }
}

impl std::error::Error for NotMapped {}

fn discipline_and_len(shape: Shape) -> u64 {
    let len = match shape {
        Shape::Words { .. } | Shape::Chain { .. } => 8,
        Shape::Objects { len, front_last, .. } => len as u64 | u64::from(front_last) << FRONT_LAST,
    };
    u64::from(shape.discipline() as u8) << 56 | len
}

/// What a header says, if it says anything that can be.
fn shape_of(word: u64, count: u64) -> Option<Shape> {
    let front_last = word >> FRONT_LAST & 1 == 1;
    let (count, len) = (usize::try_from(count).ok()?, usize::try_from(word & ((1 << FRONT_LAST) - 1)).ok()?);
    if count == 0 || len == 0 {
        return None;
    }
    match Discipline::from_wire((word >> 56) as u8)? {
        Discipline::Word if len == 8 && !front_last => Some(Shape::Words { count }),
        Discipline::Object => Some(Shape::Objects { count, len, front_last }),
        _ => None,
    }
}

impl Region {
    /// A region of zeroes in memory of its own, at its home.
    pub(super) fn create(addr: GlobalAddr, shape: Shape, incarnation: Incarnation) -> io::Result<Self> {
        let words = shape.words().and_then(|words| words.checked_add(HEADER));
        let memory = Arc::new(SharedMemory::create(words.ok_or(io::ErrorKind::OutOfMemory)?)?);
        let header = memory.words();
        for (at, value) in [
            (AT_ADDR, addr.bits()),
            (AT_SHAPE, discipline_and_len(shape)),
            (AT_COUNT, shape.count() as u64),
            (AT_STATE, INCARNATIONS),
            (AT_MAGIC, MAGIC | u64::from(incarnation.0)),
        ] {
            header[at].store(value, Ordering::SeqCst);
        }
        Ok(Self::in_shared(memory, incarnation, Writer::HOME, addr, shape))
    }

    /// A region of another process of this machine, of that incarnation of its home, whose memory has been obtained. What the header says is checked,
    /// as the other process may be hostile. Objects that a former incarnation of this node, or whoever had this seat, has left
    /// half-written are lost from now on.
    ///
    /// # Errors
    /// If it is not that region, or has ended.
    pub fn map(
        memory: Arc<SharedMemory>,
        addr: GlobalAddr,
        incarnation: Incarnation,
    ) -> Result<Self, NotMapped> {
        let me = memory.mapper().and_then(Writer::mapper).ok_or(NotMapped::NoSuchRegion)?;
        let Some((header, words)) = memory.words().split_at_checked(HEADER) else {
            return Err(NotMapped::NoSuchRegion);
        };
        // Each is read once: the other process may change them.
        let header: Vec<u64> = header.iter().map(|word| word.load(Ordering::SeqCst)).collect();
        let shape = shape_of(header[AT_SHAPE], header[AT_COUNT]).ok_or(NotMapped::NoSuchRegion)?;
        if header[AT_MAGIC] != MAGIC | u64::from(incarnation.0)
            || header[AT_ADDR] != addr.bits()
            || shape.words().is_none_or(|needed| needed > words.len())
        {
            return Err(NotMapped::NoSuchRegion);
        }
        let region = Self::in_shared(memory, incarnation, me, addr, shape);
        // The claim on the memory is ours now, so no former incarnation of ours has it.
        region.lose_objects_of(me);
        if let Some(shared) = region.shared() {
            let (marks, bit) = shared.may_have_written(me);
            marks.fetch_or(bit, Ordering::SeqCst);
        }
        if region.is_alive() { Ok(region) } else { Err(NotMapped::Ended) }
    }

    fn in_shared(
        memory: Arc<SharedMemory>,
        incarnation: Incarnation,
        writer: Writer,
        addr: GlobalAddr,
        shape: Shape,
    ) -> Self {
        let words = shape.words().expect("it was counted");
        let incarnations = Held::new(Arc::clone(&memory), |memory| &memory.words()[AT_STATE]);
        let first = Held::new(Arc::clone(&memory), move |memory| &memory.words()[HEADER..HEADER + words]);
        Self::of_parts(
            incarnations,
            first,
            Box::default(),
            addr,
            shape,
            Some(Shared { memory, incarnation, writer }),
        )
    }

    /// Which incarnation of its home it belongs to, if processes share it.
    pub fn incarnation(&self) -> Option<Incarnation> {
        self.shared().map(|shared| shared.incarnation)
    }

    /// At the home: a node is dead. Its half-written objects are lost, if none of its processes has the region mapped any more:
    /// then returns true. Otherwise it is a suspect, and whoever finds an object in its hands does not wait; this has to be called
    /// again until it returns true. Regions that no other process has mapped have nothing to lose.
    ///
    /// To be called before another incarnation of the node is told of the region.
    pub fn writer_died(&self, node: NodeId) -> bool {
        let Some(shared) = self.shared().filter(|shared| shared.memory.is_own()) else { return true };
        if !matches!(self.shape(), Shape::Objects { .. }) {
            return true;
        }
        // If the system cannot tell, it may be mapped.
        if let Ok(Some(_claim)) = shared.memory.claim(PeerId::node(node)) {
            self.lose_objects_of(Writer::node(node));
            true
        } else {
            shared.suspects().fetch_or(1 << node.0, Ordering::SeqCst);
            false
        }
    }

    /// At the home: applications that had it mapped may have died. What they have left half-written is lost, if none has
    /// their seats now. And what somebody waits for is looked at: to be called again after an eighth of the time for which a writer
    /// may be silent.
    pub fn look_at_applications(&self) {
        let Some(shared) = self.shared().filter(|shared| shared.memory.is_own()) else { return };
        let Shape::Objects { count, .. } = self.shape() else { return };
        let seats = shared.seats().load(Ordering::SeqCst);
        if seats & WAITED_FOR != 0 {
            shared.seats().fetch_and(!WAITED_FOR, Ordering::SeqCst);
        }
        for mapper in Mapper::seats() {
            let Some(writer) = Writer::mapper(mapper) else { continue };
            // If the system cannot tell, it may be mapped.
            if seats & shared.may_have_written(writer).1 != 0
                && let Ok(Some(_claim)) = shared.memory.claim(mapper)
            {
                self.lose_objects_of(writer);
            }
        }
        for number in 0..if seats & WAITED_FOR == 0 { 0 } else { count } {
            let version = self.version_of(number);
            let found = version.load(Ordering::SeqCst);
            let (writer, looks) = (Writer::of(found).0, found >> LOOKS_SHIFT & 15);
            if !found.is_multiple_of(2) && (SEATED..NOBODY).contains(&writer) && looks < MOST_LOOKS {
                // Unless the writer is done.
                let more = found + (1 << LOOKS_SHIFT);
                let _ = version.compare_exchange(found, more, Ordering::SeqCst, Ordering::Relaxed);
            }
        }
    }

    /// No process can write here as this writer but this one, and this one does not.
    fn lose_objects_of(&self, writer: Writer) {
        let (Some(shared), Shape::Objects { count, front_last, .. }) = (self.shared(), self.shape()) else {
            return;
        };
        let (marks, bit) = shared.may_have_written(writer);
        let has_mapped = marks.load(Ordering::SeqCst) & bit != 0;
        for number in 0..if has_mapped { count } else { 0 } {
            let version = self.version_of(number);
            let found = version.load(Ordering::SeqCst);
            if !found.is_multiple_of(2) && Writer::of(found) == writer {
                // Nobody else changes it while it is the dead one's.
                let left = if front_last { Writer::ends(found) } else { Writer::NOBODY.takes(found) };
                version.store(left, Ordering::SeqCst);
            }
        }
        // If this process dies before it comes here, whoever is next looks through all of it once more.
        marks.fetch_and(!bit, Ordering::SeqCst);
        if writer.0 < SEATED {
            shared.suspects().fetch_and(!bit, Ordering::SeqCst);
        }
    }

    /// The home is dead, and its memory is no part of the rack any more. All operations on the region fail from now on, in every
    /// process: whoever hears of it first says so.
    pub fn home_died(&self) {
        self.set_state(HOME_DIED);
    }

    /// In memory of its own, nobody has to be waited for: nobody else will be given it.
    pub(super) fn end_shared(&self) {
        self.set_state(ENDED);
    }
}

/// Why an object in an odd version is not waited for; none if it is.
#[cold]
pub(super) fn lost(region: &Region, version: u64) -> Option<Missing> {
    let is_suspect = |shared: &Shared| shared.is_suspect(version);
    (is_lost(version) || region.shared().is_some_and(is_suspect)).then_some(Missing::Lost)
}
