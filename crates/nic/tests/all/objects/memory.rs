//! A memory with objects and writers, in steps whose order is drawn.
//!
//! What an engine may rely on (`nic::objects::Mode::Speculative`): the memory tells of a write to a block that it has
//! answered with, before the write takes place, and after that answer. Nothing else is in order.

use std::collections::BTreeMap;

use nic::objects::{Attempt, Effect, Engine, Load, Object, Row};
use wire::Rules;

use random::Dice;

/// What a block holds: which version of its object wrote it last. A header has the version besides.
#[derive(Clone, Copy, Default)]
struct Block {
    stamp: u64,
    version: u64,
    /// The engine was answered with this block, and has not been told of a write since.
    is_watched: bool,
}

/// Something that the memory has read for the engine, and that is on its way.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Block { row: Row, block: u64, index: u32, stamp: u64, version: u64 },
    Version { row: Row, block: u64, version: u64 },
    Lock { row: Row, held: bool },
}

/// A writer in the middle of its work on an object.
struct Writer {
    object: usize,
    version: u64,
    left: Vec<u64>,
}

pub(crate) struct Memory {
    blocks: Vec<Block>,
    objects: Vec<Object>,
    /// Readers that have each object's lock.
    readers: Vec<u32>,
    loads: Vec<Load>,
    answers: Vec<Answer>,
    writers: Vec<Option<Writer>>,
    /// What came to requesters: of which version each block was.
    pub(crate) delivered: BTreeMap<Attempt, BTreeMap<u32, u64>>,
    /// Tells nobody of anything.
    pub(crate) is_mute: bool,
    /// Nobody evicts anything.
    pub(crate) is_large: bool,
}

impl Memory {
    pub(crate) fn new(objects: &[Object], writers: usize) -> Self {
        let end = objects.iter().map(|object| object.first + u64::from(object.blocks)).max().unwrap();
        Self {
            blocks: vec![Block::default(); end as usize],
            objects: objects.to_vec(),
            readers: vec![0; objects.len()],
            loads: Vec::new(),
            answers: Vec::new(),
            writers: (0..writers).map(|_| None).collect(),
            delivered: BTreeMap::new(),
            is_mute: false,
            is_large: false,
        }
    }

    pub(crate) fn ask(&mut self, load: Load) {
        self.loads.push(load);
    }

    /// Nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.loads.is_empty() && self.answers.is_empty()
    }

    pub(crate) fn unlock(&mut self, block: u64) {
        let object = self.with_header(block);
        self.readers[object] = self.readers[object].checked_sub(1).expect("a lock is given back once");
    }

    /// Whether any reader has a lock.
    pub(crate) fn is_locked(&self) -> bool {
        self.readers.iter().any(|readers| *readers > 0)
    }

    fn with_header(&self, block: u64) -> usize {
        let header = |object: &Object| object.first + u64::from(object.header);
        self.objects.iter().position(|object| header(object) == block).expect("a header")
    }

    /// One step of somebody.
    pub(crate) fn step<R: Rules>(
        &mut self,
        random: &mut Dice,
        engine: &mut Engine<R>,
        writing: bool,
        out: &mut Vec<Effect>,
    ) {
        match random.pick(8) {
            0..3 if !self.loads.is_empty() => {
                let load = self.loads.swap_remove(random.pick(self.loads.len()));
                self.serve(load);
            }
            3..6 if !self.answers.is_empty() => {
                let answer = self.answers.swap_remove(random.pick(self.answers.len()));
                self.deliver(answer, engine, out);
            }
            6 if writing && !self.writers.is_empty() => {
                let writer = random.pick(self.writers.len());
                self.write(random, writer, engine, out);
            }
            7 if !self.is_large => {
                // The block leaves the caches, and nothing is written.
                let block = random.pick(self.blocks.len()) as u64;
                self.tell(block, engine, out);
            }
            _ => {}
        }
    }

    fn deliver<R: Rules>(&mut self, answer: Answer, engine: &mut Engine<R>, out: &mut Vec<Effect>) {
        match answer {
            Answer::Block { row, index, stamp, version, .. } => {
                let before = out.len();
                engine.on_block(row, index, version, out);
                for effect in &out[before..] {
                    if let Effect::Reply { attempt, index } = *effect {
                        let twice = self.delivered.entry(attempt).or_default().insert(index, stamp);
                        assert_eq!(twice, None, "block {index} of {attempt:?} goes out once");
                    }
                }
            }
            Answer::Version { row, version, .. } => engine.on_version(row, version, out),
            Answer::Lock { row, held } => engine.on_lock(row, held, out),
        }
    }

    fn serve(&mut self, load: Load) {
        self.answers.push(match load {
            Load::Block { row, block, index } => {
                let it = &mut self.blocks[block as usize];
                it.is_watched = true;
                Answer::Block { row, block, index, stamp: it.stamp, version: it.version }
            }
            Load::Version { row, block } => {
                let it = &mut self.blocks[block as usize];
                it.is_watched = true;
                Answer::Version { row, block, version: it.version }
            }
            Load::Lock { row, block } => {
                let object = self.with_header(block);
                let held = self.blocks[block as usize].version.is_multiple_of(2);
                self.readers[object] += u32::from(held);
                Answer::Lock { row, held }
            }
        });
    }

    /// The engine hears that a block is written or gone, after what the memory answered with it.
    fn tell<R: Rules>(&mut self, block: u64, engine: &mut Engine<R>, out: &mut Vec<Effect>) {
        if self.is_mute || !self.blocks[block as usize].is_watched {
            return;
        }
        self.blocks[block as usize].is_watched = false;
        let is_of_it = |answer: &Answer| match answer {
            Answer::Block { block: of, .. } | Answer::Version { block: of, .. } => *of == block,
            Answer::Lock { .. } => false,
        };
        let (mine, others): (Vec<_>, Vec<_>) = self.answers.drain(..).partition(is_of_it);
        self.answers = others;
        mine.into_iter().for_each(|answer| self.deliver(answer, engine, out));
        engine.on_invalidation(block);
    }

    fn write<R: Rules>(
        &mut self,
        random: &mut Dice,
        number: usize,
        engine: &mut Engine<R>,
        out: &mut Vec<Effect>,
    ) {
        let Some(mut writer) = self.writers[number].take() else {
            // It takes an object by making its version odd, if nobody writes or has it locked.
            let object = random.pick(self.objects.len());
            let Object { first, blocks, header } = self.objects[object];
            let at = first + u64::from(header);
            if !self.blocks[at as usize].version.is_multiple_of(2) || self.readers[object] > 0 {
                return;
            }
            self.tell(at, engine, out);
            self.blocks[at as usize].version += 1;
            let version = self.blocks[at as usize].version + 1;
            let left = (first..first + u64::from(blocks)).collect();
            self.writers[number] = Some(Writer { object, version, left });
            return;
        };
        if writer.left.is_empty() {
            let Object { first, header, .. } = self.objects[writer.object];
            let at = first + u64::from(header);
            self.tell(at, engine, out);
            self.blocks[at as usize].version = writer.version;
            return;
        }
        let block = writer.left.swap_remove(random.pick(writer.left.len()));
        self.tell(block, engine, out);
        self.blocks[block as usize].stamp = writer.version;
        self.writers[number] = Some(writer);
    }
}
