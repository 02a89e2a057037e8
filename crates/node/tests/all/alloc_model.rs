//! Random histories of a small rack: two nodes allocate from two homes, and a model that knows nothing but
//! addresses and lengths watches both halves of the allocator.

use std::collections::{BTreeMap, BTreeSet};

use node::allocator::{Allocator, BlockRange, ChunkSize, ChunkTable, Outcome};
use proptest::prelude::*;
use wire::{BlockSize, BlockTag, Discipline, GlobalAddr, NodeId, SwitchEpoch};

const DISCIPLINES: [Discipline; 2] = [Discipline::Coherent, Discipline::LockOnly];

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A length of about `2^log` bytes.
    Alloc { node: usize, home: usize, discipline: usize, log: u32, fraction: u32 },
    /// The home's answer to the mark of one fresh range arrives.
    Marked { which: usize },
    /// One of the live allocations is freed.
    Free { which: usize },
    /// An address near a live allocation is freed by mistake, or one that was freed before.
    FreeWrongly { which: usize, by: u64, former: bool },
    /// One quarantined range is known to be cached nowhere.
    Reclaim { which: usize },
    /// A node gives back what it can spare.
    GiveBack { node: usize },
    /// A node dies, and another one begins in its place.
    Die { node: usize },
}

fn step(block: BlockSize) -> impl Strategy<Value = Step> {
    let alloc = (0..2usize, 0..2usize, 0..2usize, 0..=block.shift() + 3, any::<u32>()).prop_map(
        |(node, home, discipline, log, fraction)| Step::Alloc { node, home, discipline, log, fraction },
    );
    let which = any::<usize>;
    prop_oneof![
        8 => alloc,
        6 => which().prop_map(|which| Step::Marked { which }),
        6 => which().prop_map(|which| Step::Free { which }),
        2 => (which(), 1..200u64, any::<bool>())
            .prop_map(|(which, by, former)| Step::FreeWrongly { which, by, former }),
        4 => which().prop_map(|which| Step::Reclaim { which }),
        1 => (0..2usize).prop_map(|node| Step::GiveBack { node }),
        1 => (0..2usize).prop_map(|node| Step::Die { node }),
    ]
}

#[derive(Clone, Copy)]
struct Allocation {
    node: usize,
    discipline: Discipline,
    len: u64,
}

struct Rack {
    block: BlockSize,
    chunk: ChunkSize,
    chunks: u64,
    homes: Vec<ChunkTable>,
    nodes: Vec<Allocator>,
    /// What is live, by address.
    live: BTreeMap<u64, Allocation>,
    former: Vec<u64>,
    /// What dead nodes had allocated: it stays for ever.
    left: BTreeMap<u64, Allocation>,
    epoch: SwitchEpoch,
    /// Marks in flight: whose, which blocks.
    marks: Vec<(usize, BlockRange)>,
    quarantine: Vec<(usize, BlockRange)>,
}

impl Rack {
    fn new(block: BlockSize, chunk: ChunkSize, chunks: u64) -> Self {
        // The last chunk of each memory is half a chunk, and then half a block.
        let memory = chunk.bytes() * chunks + chunk.bytes() / 2 + block.bytes() / 2;
        Self {
            block,
            chunk,
            chunks,
            homes: (0..2).map(|home| ChunkTable::new(NodeId(home), memory, block, chunk)).collect(),
            nodes: (0..2).map(|_| Allocator::new(memory, block, chunk)).collect(),
            live: BTreeMap::new(),
            former: Vec::new(),
            left: BTreeMap::new(),
            epoch: SwitchEpoch(1),
            marks: Vec::new(),
            quarantine: Vec::new(),
        }
    }

    fn step(&mut self, step: Step) {
        let block = self.block.bytes();
        match step {
            Step::Alloc { node, home, discipline, log, fraction } => {
                let len = (1 << log) + (u64::from(fraction) << log >> 32);
                self.alloc(node, home, DISCIPLINES[discipline], len);
            }
            Step::Marked { which } if !self.marks.is_empty() => {
                let (node, range) = self.marks.swap_remove(which % self.marks.len());
                self.nodes[node].marked(range);
            }
            Step::Free { which } if !self.live.is_empty() => {
                let addr = *self.live.keys().nth(which % self.live.len()).unwrap();
                self.free(addr);
            }
            Step::FreeWrongly { which, by, former } => {
                let addr = match former {
                    true if !self.former.is_empty() => self.former[which % self.former.len()],
                    false if !self.live.is_empty() => {
                        let near = *self.live.keys().nth(which % self.live.len()).unwrap();
                        // Some bytes on, or some blocks and bytes.
                        near + by / 2 + (by % 2) * block * (by % 7)
                    }
                    _ => return,
                };
                for (index, node) in self.nodes.iter_mut().enumerate() {
                    if self.live.get(&addr).is_none_or(|it| it.node != index) {
                        let before = node.usage();
                        assert!(node.free(GlobalAddr::from_bits(addr)).is_err(), "{addr:#x} at node {index}");
                        assert_eq!(node.usage(), before);
                    }
                }
            }
            Step::Reclaim { which } if !self.quarantine.is_empty() => {
                let (node, range) = self.quarantine.swap_remove(which % self.quarantine.len());
                self.nodes[node].reclaim(range).unwrap();
                assert!(self.nodes[node].reclaim(range).is_err(), "{range:?} is reclaimed already");
            }
            Step::GiveBack { node } => self.give_back(node),
            Step::Die { node } => self.die(node),
            _ => {}
        }
    }

    fn alloc(&mut self, node: usize, home: usize, discipline: Discipline, len: u64) {
        let id = NodeId(u16::try_from(node).unwrap());
        let home_id = NodeId(u16::try_from(home).unwrap());
        let mut outcome = self.nodes[node].alloc(len, home_id, discipline);
        if let Outcome::NeedChunk { bytes } = outcome {
            assert!(bytes >= len);
            let Ok(range) = self.homes[home].grant(id, bytes, discipline) else { return };
            assert!(range.bytes(self.block) >= bytes, "a grant has room for what it was asked for");
            self.nodes[node].add_chunk(range, discipline).unwrap();
            assert!(self.nodes[node].add_chunk(range, discipline).is_err(), "an answer counts once");
            outcome = self.nodes[node].alloc(len, home_id, discipline);
        }
        let (addr, fresh) = match outcome {
            Outcome::Done { addr, fresh } => (addr, fresh),
            Outcome::TooBig => return assert!(len > self.nodes[node].most()),
            Outcome::NeedChunk { .. } => panic!("{len} bytes do not fit the chunk that they were asked for"),
        };
        self.assert_well_placed(addr, len, home_id);
        if let Some(range) = fresh {
            for tag in range.tags(self.block) {
                assert_eq!(self.homes[home].discipline_of(tag), None, "{tag:?} was live already");
            }
            self.homes[home].mark(id, range, Some(discipline)).unwrap();
            self.marks.push((node, range));
        } else {
            let tag = self.block.tag(addr);
            assert!(self.marks.iter().all(|(_, range)| range.first != tag), "{tag:?} is not marked yet");
        }
        self.live.insert(addr.bits(), Allocation { node, discipline, len });
    }

    /// No overlap, aligned, in one block or from the start of one, in the memory asked for, never null.
    fn assert_well_placed(&self, addr: GlobalAddr, len: u64, home: NodeId) {
        let (start, end, block) = (addr.bits(), addr.bits() + len, self.block.bytes());
        assert!(start.is_multiple_of(16) && addr.home() == home && addr.offset() >= block, "{addr}");
        if len <= block {
            assert_eq!(start / block, (end - 1) / block, "{len} bytes at {addr} cross a block boundary");
        } else {
            assert!(start.is_multiple_of(block), "{len} bytes at {addr}");
        }
        if let Some((at, it)) = self.live.range(..end).next_back() {
            assert!(at + it.len <= start, "{len} bytes at {addr} overlap {} bytes at {at:#x}", it.len);
        }
        let left = self.blocks_left();
        let mut mine = BlockRange::of_bytes(self.block.tag(addr), len, self.block).tags(self.block);
        assert!(
            !mine.any(|tag| left.contains(&tag)),
            "{len} bytes at {addr} are in a block of a dead node's"
        );
        for (_, range) in &self.quarantine {
            let first = range.first.addr().bits();
            assert!(end <= first || first + range.bytes(self.block) <= start, "{addr} is quarantined");
        }
    }

    fn free(&mut self, bits: u64) {
        let addr = GlobalAddr::from_bits(bits);
        let it = self.live.remove(&bits).unwrap();
        let home = usize::from(addr.home().0);
        let id = NodeId(u16::try_from(it.node).unwrap());
        assert_eq!(self.homes[home].owner_of(addr), Some(id), "the home knows whom to ask");
        assert!(!self.homes[home].is_orphaned(addr, self.epoch), "{addr}");
        let freed = self.nodes[it.node].free(addr).unwrap();
        assert!(freed.size >= it.len, "{} of {} bytes", freed.size, it.len);
        self.former.push(bits);
        let block = self.block;
        let alone = self
            .live
            .range(block.tag(addr).bits()..)
            .next()
            .is_none_or(|(at, _)| block.tag(GlobalAddr::from_bits(*at)) != block.tag(addr));
        assert_eq!(freed.empty.is_some(), alone, "exactly the last allocation of a block empties it");
        if let Some(range) = freed.empty {
            assert_eq!(range, BlockRange::of_bytes(block.tag(addr), it.len, block));
            self.homes[home].mark(id, range, None).unwrap();
            self.marks.retain(|(_, marked)| marked.first != range.first);
            self.quarantine.push((it.node, range));
        }
    }

    fn die(&mut self, node: usize) {
        let memory = self.chunk.bytes() * self.chunks + self.chunk.bytes() / 2 + self.block.bytes() / 2;
        self.epoch.0 += 1;
        for home in &mut self.homes {
            home.orphan(NodeId(u16::try_from(node).unwrap()), self.epoch);
        }
        self.nodes[node] = Allocator::new(memory, self.block, self.chunk);
        self.left.extend(self.live.extract_if(.., |_, it| it.node == node));
        self.marks.retain(|(it, _)| *it != node);
        self.quarantine.retain(|(it, _)| *it != node);
    }

    /// The blocks of what dead nodes had allocated.
    fn blocks_left(&self) -> BTreeSet<BlockTag> {
        let of = |(bits, it): (&u64, &Allocation)| {
            BlockRange::of_bytes(self.block.tag(GlobalAddr::from_bits(*bits)), it.len, self.block)
        };
        self.left.iter().map(of).flat_map(|range| range.tags(self.block)).collect()
    }

    fn give_back(&mut self, node: usize) {
        let id = NodeId(u16::try_from(node).unwrap());
        while let Some(range) = self.nodes[node].surplus() {
            self.homes[usize::from(range.home().0)].give_back(id, range).unwrap();
        }
    }

    fn assert_consistent(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            node.assert_invariants();
            let mine = self.live.values().filter(|it| it.node == index);
            assert_eq!(node.usage().live_objects, mine.clone().count() as u64);
            assert!(node.usage().live_bytes >= mine.map(|it| it.len).sum::<u64>());
        }
        for home in &self.homes {
            home.assert_invariants();
        }
        let sum = |of: fn(&Allocator) -> u64| self.nodes.iter().map(of).sum::<u64>();
        let of_homes = |of: fn(&ChunkTable) -> u64| self.homes.iter().map(of).sum::<u64>();
        let left = self.blocks_left().len() as u64 * self.block.bytes();
        assert_eq!(sum(|node| node.usage().live_blocks) + left, of_homes(ChunkTable::live_bytes));
        for (bits, it) in &self.left {
            let (addr, home) = (GlobalAddr::from_bits(*bits), &self.homes[(bits >> 48) as usize]);
            assert!(home.is_orphaned(addr, self.epoch), "{addr}");
            assert_eq!(home.discipline_of(self.block.tag(addr)), Some(it.discipline));
        }
        assert_eq!(sum(|node| node.usage().reserved), of_homes(ChunkTable::granted_bytes));
        for (bits, it) in &self.live {
            let addr = GlobalAddr::from_bits(*bits);
            for tag in BlockRange::of_bytes(self.block.tag(addr), it.len, self.block).tags(self.block) {
                let home = &self.homes[usize::from(tag.home().0)];
                assert_eq!(home.discipline_of(tag), Some(it.discipline), "{tag:?}");
            }
        }
        for tag in self.quarantine.iter().flat_map(|(_, range)| range.tags(self.block)) {
            assert_eq!(self.homes[usize::from(tag.home().0)].discipline_of(tag), None, "{tag:?}");
        }
    }

    /// Frees everything: then all chunks but one for each node, home and discipline go back.
    fn wind_down(&mut self) {
        while let Some(bits) = self.live.keys().next().copied() {
            self.free(bits);
        }
        for (node, range) in std::mem::take(&mut self.quarantine) {
            self.nodes[node].reclaim(range).unwrap();
        }
        self.assert_consistent();
        for node in 0..2 {
            self.give_back(node);
            let usage = self.nodes[node].usage();
            assert_eq!(
                (usage.live_objects, usage.live_bytes, usage.live_blocks, usage.quarantined),
                (0, 0, 0, 0)
            );
            assert!(usage.reserved <= 4 * self.chunk.bytes(), "one chunk for each home and discipline");
        }
        self.assert_consistent();
    }
}

fn history(block: u64, chunk: u64, chunks: u64, steps: &[Step]) {
    let mut rack = Rack::new(BlockSize::new(block).unwrap(), ChunkSize::new(chunk).unwrap(), chunks);
    for step in steps {
        rack.step(*step);
        rack.assert_consistent();
    }
    rack.wind_down();
}

fn steps(block: u64) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(BlockSize::new(block).unwrap()), 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_history_is_sound_with_blocks_of_64_bytes(steps in steps(64)) {
        history(64, 1024, 6, &steps);
    }

    #[test]
    fn any_history_is_sound_with_blocks_of_4_kib(steps in steps(4096)) {
        history(4096, 64 << 10, 6, &steps);
    }

    #[test]
    fn any_history_is_sound_with_blocks_of_1_mib(steps in steps(1 << 20)) {
        history(1 << 20, 4 << 20, 16, &steps);
    }

    #[test]
    fn any_history_is_sound_where_a_chunk_is_one_block(steps in steps(4096)) {
        history(4096, 4096, 40, &steps);
    }
}
