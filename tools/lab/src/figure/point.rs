//! What one run is: a system under a load. Numbers are whole, so that points can be told apart and be found again.
//!
//! What must always hold: a point names all that a run depends on but sizes and seed.

use serde::{Deserialize, Serialize};

/// A memory system that is compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// FlowCC with the hot entries in the switch.
    Concordia,
    /// FlowCC with all entries at home agents (CONCORDIA-base in the paper).
    HomeOnly,
    /// GAM with blocks of its own default size, 512 B, and two background threads for coherence.
    Gam,
    /// GAM with blocks of 4 KiB.
    GamLarge,
    /// GAM with one background thread for coherence, as its public code has it.
    GamOneThread,
    /// Grappa: no cache, operations are sent to where the data is.
    Grappa,
    /// PowerGraph's synchronous engine, over TCP.
    PowerGraph,
    /// An estimate: as `Concordia`, if a graph's gather accessed the memory once for each edge.
    ByEdge,
    /// An estimate: as `Rackmem`, if whoever asks for a block got the words that it asked for at once, before the rest.
    PartFirst,
    /// An estimate: as `Rackmem`, if no block travelled: operations are sent to where it is.
    Shipped,
    /// Locks that carry their data (GCS).
    Gcs,
    /// The same, but locks and data are given up at each release.
    WithoutLocality,
    /// The same, but the lock comes without data, which the coherence protocol then fetches.
    DataApart,
    /// A reader-writer lock layered on coherent memory.
    Layered,
    /// FlowCC with all of our own options: conflicting requests stand in line at the holder, words are read where their block
    /// is if a copy would not be used again, entries move to the switch as soon as they are free, and the cache's hash
    /// spreads neighbouring blocks evenly. Of locks: GCS, with preference for the
    /// holder's own threads.
    Rackmem,
    /// Of objects: a remote read that checks nothing.
    RemoteRead,
    /// A SABRe: checked where the memory is.
    Sabre,
    /// The same, but the version is read before the data.
    VersionFirst,
    /// FaRM's layout: a version in each cache line, compared and stripped by the reader.
    LineVersions,
    /// A lock that the reader takes by a remote compare-and-swap (DrTM).
    LockAndRead,
    /// A checksum that the reader computes again (Pilaf).
    Checksum,
    /// Of chains: Clover without anybody's help. The switch passes packets as they are.
    Clover,
    /// The switch steers appends.
    Steering,
    /// And reads.
    SteeringReads,
    /// As `Steering`, and words are bound to a queue pair.
    SteeringBound,
    /// As `SteeringBound`, and appends become WRITEs where nothing needs to be compared.
    SteeringWrites,
    /// All of it: appends, reads, bound words, WRITEs.
    SteeringAll,
    /// As `Steering`, and when it comes back the metadata server reads all chains to their ends, and tells it the tails.
    SteeringScanned,
    /// Of programs for RISC-V: remote atomics are instructions.
    Rae,
    /// The same, but requests for one line do not wait together: each fetches it.
    RaeUnmerged,
    /// Programs of threads in one address space: the processor's own atomics, and nothing remote.
    OneAddressSpace,
    /// Each access is a call of OpenSHMEM, with the instructions of Open MPI over shared memory.
    LibraryNear,
    /// With those of Open MPI over TCP.
    LibraryTcp,
}

impl Subject {
    /// As in legends.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Concordia => "Concordia",
            Self::HomeOnly => "home-only",
            Self::Gam => "GAM",
            Self::GamLarge => "GAM, 4 KiB blocks",
            Self::GamOneThread => "GAM, one coherence thread",
            Self::Grappa => "Grappa",
            Self::PowerGraph => "PowerGraph",
            Self::ByEdge => "Concordia, an access an edge (estimate)",
            Self::Gcs => "GCS",
            Self::WithoutLocality => "without locality",
            Self::DataApart => "without combined data",
            Self::Layered => "layered lock",
            Self::Rackmem => "rackmem",
            Self::PartFirst => "words first (estimate)",
            Self::Shipped => "operations shipped (estimate)",
            Self::RemoteRead => "remote read",
            Self::Sabre => "SABRe",
            Self::VersionFirst => "SABRe, no speculation",
            Self::LineVersions => "per-line versions",
            Self::LockAndRead => "lock and read",
            Self::Checksum => "checksum",
            Self::Clover => "Clover",
            Self::Steering => "steering",
            Self::SteeringReads => "steering, reads too",
            Self::SteeringBound => "steering, words bound",
            Self::SteeringWrites => "steering, words bound, WRITEs",
            Self::SteeringAll => "steering, all",
            Self::SteeringScanned => "steering, tails scanned",
            Self::Rae => "RAE",
            Self::RaeUnmerged => "RAE, nothing merges",
            Self::OneAddressSpace => "one address space",
            Self::LibraryNear => "OpenSHMEM, shared memory",
            Self::LibraryTcp => "OpenSHMEM, TCP",
        }
    }
}

/// What the application threads do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// The micro benchmark of section 7.2.
    Micro(Micro),
    /// The same from a cold start, with a directory that is too small, or with a hot set.
    Stressed(Stressed),
    /// The same while the switch stops and comes back (section 7.2.4).
    Failure(Micro),
    /// The key-value store of section 7.3.
    Store(Store),
    /// TPC-C (section 7.4).
    Transactions(Transactions),
    /// PageRank (section 7.5).
    Graph(Graph),
    /// All threads on one block.
    Conflict(Conflict),
    /// The micro benchmark, with a note of where the time of operations goes.
    Budget(Micro),
    /// The key-value store, with the same note.
    StoreBudget(Store),
    /// The i-th thread of each blade takes lock i (GCS, section 5.2).
    Contend(Contend),
    /// A key-value store with a lock for each bucket (GCS, section 5.1).
    Buckets(Buckets),
    /// Whole objects on the soNUMA testbed (SABRes, section 7).
    Objects(Objects),
    /// A store of chains on the testbed of the steering paper (section 4).
    Chains(Chains),
    /// The same while the switch stops and comes back.
    ChainsFailure(Chains),
    /// A program on RISC-V cores, with timing (RAE, section 4).
    Program(Program),
    /// The same, with a note of where requests to node 0 land.
    Landing(Program),
    /// The same, with a network that takes longer.
    Far(Program),
    /// A program on data of another kind or size, with timing.
    Data(Data),
    /// The same without timing, with a note of the lines that its requests are for.
    Requests(Data),
}

/// What clients do with a store of chains.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Chains {
    /// Client threads, on two machines.
    pub threads: u16,
    /// Operations that write, in percent.
    pub writes: u8,
    /// Exponent of the keys' distribution, in hundredths.
    pub zipf: u8,
    /// Keys.
    pub keys: u32,
    /// Keys that the switch has state for.
    pub held: u32,
    /// Nanoseconds between two atomics of different queue pairs at the memory's NIC; 0: as declared.
    pub apart: u16,
}

/// A program on every node of a machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Program {
    /// Which.
    pub kernel: Kernel,
    /// Nodes.
    pub nodes: u8,
}

/// A program, and the data that it has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Data {
    /// Which.
    pub kernel: Kernel,
    /// Of graphs: any two vertices are neighbours with the same probability, not as in a Kronecker graph.
    pub is_uniform: bool,
    /// Of graphs: the logarithm of their vertices at full size. Of patterns: a node's part of an array, in percent of the engine's cache.
    pub size: u16,
    /// How often patterns go through their arrays.
    pub times: u16,
}

/// What a program does: CircusTent's patterns on arrays over all nodes, GAP's kernels on a Kronecker graph over all nodes, or
/// additions to words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Random elements.
    Rand,
    /// One element after the other.
    Stride1,
    /// Every eighth.
    StrideN,
    /// Each says which is next.
    PtrChase,
    /// One word of node 0's.
    Central,
    /// Scatter and gather.
    Sg,
    /// To random places.
    Scatter,
    /// From random places.
    Gather,
    /// Breadth-first search.
    Bfs,
    /// Shortest paths.
    Sssp,
    /// PageRank.
    Pr,
    /// Connected components.
    Cc,
    /// Betweenness centrality.
    Bc,
    /// Triangles.
    Tc,
    /// So many in a hundred additions are to one word, the others to random ones.
    Words(u8),
}

impl Kernel {
    /// CircusTent's.
    pub const PATTERNS: [Self; 8] = [
        Self::Rand,
        Self::Stride1,
        Self::StrideN,
        Self::PtrChase,
        Self::Central,
        Self::Sg,
        Self::Scatter,
        Self::Gather,
    ];
    /// GAP's.
    pub const GRAPH: [Self; 6] = [Self::Bfs, Self::Sssp, Self::Pr, Self::Cc, Self::Bc, Self::Tc];

    /// As the programs call them.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rand => "rand",
            Self::Stride1 => "stride1",
            Self::StrideN => "striden",
            Self::PtrChase => "ptrchase",
            Self::Central => "central",
            Self::Sg => "sg",
            Self::Scatter => "scatter",
            Self::Gather => "gather",
            Self::Bfs => "bfs",
            Self::Sssp => "sssp",
            Self::Pr => "pr",
            Self::Cc => "cc",
            Self::Bc => "bc",
            Self::Tc => "tc",
            Self::Words(_) => "words",
        }
    }
}

/// What readers do with the objects that they read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Use {
    /// Nothing: objects of a large memory are transferred (section 7.1).
    Transfer,
    /// They have clean data of one of 100 objects (section 7.2).
    Clean,
    /// They look keys up in a large memory of the other chip (section 7.3).
    Lookup,
    /// And in their own.
    Local,
}

/// Readers, and writers, of whole objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Objects {
    /// What readers do.
    pub work: Use,
    /// Bytes of data in an object.
    pub bytes: u32,
    /// Reading threads on one chip.
    pub readers: u8,
    /// Operations that each of them has in flight.
    pub outstanding: u8,
    /// Writing threads on the other.
    pub writers: u8,
}

/// What threads do with the locks that they share with one thread of each other blade.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Contend {
    /// Compute blades.
    pub blades: u8,
    /// Threads on each, and locks.
    pub threads: u8,
    /// They take them to write.
    pub write: bool,
    /// They access the data, once.
    pub access: bool,
    /// Nanoseconds that they stay inside besides.
    pub critical: u32,
    /// Bytes that a lock guards.
    pub len: u32,
}

/// The parameters of the key-value store with locks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Buckets {
    /// Compute blades.
    pub blades: u8,
    /// Operations that are GETs, in percent.
    pub gets: u8,
}

/// What all threads do to one block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Conflict {
    /// Nodes of the rack.
    pub nodes: u8,
    /// Operations that read, in percent.
    pub reads: u8,
}

/// The micro benchmark's parameters, in percent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Micro {
    /// Operations on data that all nodes share.
    pub sharing: u8,
    /// Operations that read.
    pub reads: u8,
    /// Operations on the block of the one before.
    pub locality: u8,
}

impl Micro {
    /// The paper's defaults at this sharing ratio: half of the operations read, no locality.
    pub const fn sharing(sharing: u8) -> Self {
        Self { sharing, reads: 50, locality: 0 }
    }
}

/// The micro benchmark where the figures of the paper are kind to the switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Stressed {
    /// The benchmark.
    pub load: Micro,
    /// Caches and directory are empty before the run, and fill by running.
    pub cold: bool,
    /// The switch has so many times fewer entries than there are blocks in the pool that threads share; 0: as many as it has.
    pub fewer: u8,
    /// Which of the places most accesses go to.
    pub hot: HotSet,
}

/// Whether some places are hot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HotSet {
    /// All are as hot.
    #[default]
    None,
    /// Nine accesses in ten go to one place in 64, always the same ones.
    Still,
    /// The same, and these places are others from time to time.
    Moving,
}

impl From<Micro> for Stressed {
    fn from(load: Micro) -> Self {
        Self { load, cold: false, fewer: 0, hot: HotSet::None }
    }
}

/// The key-value store's parameters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Store {
    /// Nodes of the rack.
    pub nodes: u8,
    /// Operations that are GETs, in percent.
    pub gets: u8,
}

/// TPC-C's parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Transactions {
    /// How often another warehouse is meant, in percent.
    pub distribution: u8,
}

/// PageRank's parameters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Graph {
    /// Nodes of the rack.
    pub nodes: u8,
    /// An eighth of the vertices.
    pub is_small: bool,
}

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Whose.
    pub subject: Subject,
    /// Of what.
    pub load: Load,
}

impl Point {
    /// A point.
    pub const fn new(subject: Subject, load: Load) -> Self {
        Self { subject, load }
    }
}
