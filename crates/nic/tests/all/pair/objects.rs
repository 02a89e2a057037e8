//! Objects at both nodes, with a writer beside the NIC, and what must hold of reads of them: whatever is called whole is one
//! version, from between the post of the read and its end. Every word says which version it is of and where it
//! stands, so a mix of two versions, or of two places, is found whatever it consists of.

use nic::verbs::*;
use wire::Rules;
use wire::roce::Key;

use crate::pair::{Dice, Pair};

const BASE: u64 = 0x20_0000;
/// Words of data of each object.
const SIZES: [u64; 5] = [0, 3, 40, 130, 400];
const BYTES: u64 = 0x2000;

struct Object {
    address: u64,
    words: u64,
    version: u64,
    /// Words of the next version that are written already, if somebody writes.
    written: u64,
}

pub(crate) struct Objects {
    keys: [Key; 2],
    random: Dice,
    objects: [Vec<Object>; 2],
    pub(crate) whole: u64,
    pub(crate) torn: u64,
}

fn word(version: u64, at: u64) -> u64 {
    version << 16 | at
}

impl Objects {
    pub(crate) fn new<R: Rules>(pair: &mut Pair<R>, random: Dice) -> Self {
        let keys = [0, 1].map(|node: usize| {
            let node = &mut pair.nodes[node];
            let key = node.register(BASE, BYTES, Access::REMOTE_READ | Access::LOCAL_WRITE);
            node.memory.objects.insert(key);
            key
        });
        let mut address = BASE;
        let objects = SIZES.map(|words| {
            let at = address;
            address += (1 + words) * 8;
            move || Object { address: at, words, version: 0, written: 0 }
        });
        let objects = [0, 1].map(|_| objects.iter().map(|object| object()).collect::<Vec<_>>());
        assert!(address <= BASE + BYTES);
        for at in 0..2 {
            for object in &objects[at] {
                for number in 0..object.words {
                    let place = object.address + 8 + number * 8;
                    pair.nodes[at].memory.set_word(keys[at], place, word(0, number));
                }
            }
        }
        Self { keys, random, objects, whole: 0, torn: 0 }
    }

    /// Writers go on, or do not.
    pub(crate) fn write<R: Rules>(&mut self, pair: &mut Pair<R>) {
        for at in 0..2 {
            let object = &mut self.objects[at][self.random.below(SIZES.len() as u64) as usize];
            if !self.random.percent(if object.version.is_multiple_of(2) { 12 } else { 60 }) {
                continue;
            }
            let (memory, key) = (&mut pair.nodes[at].memory, self.keys[at]);
            if object.version.is_multiple_of(2) {
                object.version += 1;
                object.written = 0;
                memory.set_word(key, object.address, object.version);
            }
            // Often all at once.
            let left = object.words - object.written;
            let now = if self.random.percent(60) { left } else { self.random.below(left + 1) };
            for number in object.written..object.written + now {
                let place = object.address + 8 + number * 8;
                memory.set_word(key, place, word(object.version + 1, number));
            }
            object.written += now;
            if object.written == object.words {
                object.version += 1;
                memory.set_word(key, object.address, object.version);
            }
        }
    }

    /// A read of an object of the node `home` into `buffer`, and the least version that it may get.
    pub(crate) fn read(&self, home: usize, random: &mut Dice, buffer: Span) -> (Operation, u64) {
        let object = &self.objects[home][random.below(SIZES.len() as u64) as usize];
        let local = Span { len: object.words as u32 * 8, ..buffer };
        let remote = Remote { key: self.keys[home], address: object.address };
        (Operation::ReadObject { local, remote }, object.version.next_multiple_of(2))
    }

    /// Such a read has ended, and `bytes` are there.
    pub(crate) fn judge(
        &mut self,
        home: usize,
        remote: Remote,
        least: u64,
        completion: &Completion,
        bytes: &[u8],
    ) -> Result<(), String> {
        let find = |object: &&Object| object.address == remote.address;
        let most = self.objects[home].iter().find(find).expect("it was read").version;
        let Some(version) = completion.version else {
            if completion.status != Status::Torn || completion.len != 0 {
                return Err(format!("an object without a version: {completion:?}"));
            }
            self.torn += 1;
            return Ok(());
        };
        if completion.status != Status::Success
            || !version.is_multiple_of(2)
            || version < least
            || version > most
        {
            return Err(format!("version {version}, not {least} to {most}: {completion:?}"));
        }
        for (number, read) in bytes.as_chunks::<8>().0.iter().enumerate() {
            let read = u64::from_ne_bytes(*read);
            if read != word(version, number as u64) {
                let of = read >> 16;
                return Err(format!("word {number} of version {version} is of version {of}: {completion:?}"));
            }
        }
        self.whole += 1;
        Ok(())
    }
}
