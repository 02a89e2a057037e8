//! Words at both nodes that batches of atomics of all streams change, and what must hold of them: every operation is executed
//! once, with every other of its batch, and each answer is what its word was.

use nic::verbs::*;
use nic::words::{Operands, Operation, Request, Width};
use wire::Rules;
use wire::roce::Key;
use wire::roce::batch::{Writer, answers};

use crate::pair::{Dice, Pair};

const BASE: u64 = 0x30_0000;
/// Sums of 64 and of 32 bits, exclusive ors, the largest number.
const SUMS: u64 = 4;
const NARROW: u64 = 4;
const XORS: u64 = BASE + SUMS * 8 + NARROW * 4;
const LARGEST: u64 = XORS + 8;
/// One for each stream, which adds one each time.
const OWN: u64 = LARGEST + 8;
const STREAMS: u64 = 4;
const BYTES: u64 = OWN + STREAMS * 8 - BASE;

/// What an answer must be.
#[derive(Clone, Copy)]
enum Expected {
    Anything,
    This(u64),
    /// Nobody else's, of the counter.
    Count,
}

const ANYTHING: u64 = u64::MAX;
const COUNT: u64 = u64::MAX - 1;

impl Expected {
    const fn to_word(self) -> u64 {
        match self {
            Self::Anything => ANYTHING,
            Self::This(word) => word,
            Self::Count => COUNT,
        }
    }
}

/// What the words of a node must be when all is done.
#[derive(Default)]
struct Totals {
    sums: [u64; SUMS as usize],
    narrow: [u32; NARROW as usize],
    xors: u64,
    largest: u64,
    own: [u64; STREAMS as usize],
}

pub(crate) struct Words {
    keys: [Key; 2],
    totals: [Totals; 2],
    pub(crate) executed: u64,
}

impl Words {
    pub(crate) fn new<R: Rules>(pair: &mut Pair<R>) -> Self {
        let access = Access::REMOTE_ATOMIC | Access::LOCAL_WRITE;
        let keys = [0, 1].map(|at: usize| pair.nodes[at].register(BASE, BYTES, access));
        Self { keys, totals: <_>::default(), executed: 0 }
    }

    /// A batch of a stream for the node `home`, and what its answers must be. `counter` counts for all streams.
    pub(crate) fn batch(
        &mut self,
        home: usize,
        stream: usize,
        random: &mut Dice,
        most: usize,
        counter: Remote,
    ) -> (Writer, Vec<u64>) {
        let mut writer = Writer::new(most);
        let mut expected = Vec::new();
        for _ in 0..=random.below(30) {
            let totals = &mut self.totals[home];
            let value = random.next();
            let (sum, narrow) = (random.below(SUMS), random.below(NARROW));
            let fetches = random.percent(50);
            let own = totals.own[stream];
            let kind = random.below(6);
            let (address, operation, operand) = match kind {
                0 => (BASE + sum * 8, Operation::Add, value),
                1 => (BASE + SUMS * 8 + narrow * 4, Operation::Add, value),
                2 => (XORS, Operation::Xor, value),
                3 => (LARGEST, Operation::Max, value >> 1),
                4 => (OWN + stream as u64 * 8, Operation::CompareSwap, own + 1),
                _ => (counter.address, Operation::Add, 1),
            };
            let (fetches, says) = match kind {
                4 => (fetches, Expected::This(own)),
                5 => (true, Expected::Count),
                _ => (fetches, Expected::Anything),
            };
            let width = if kind == 1 { Width::Word } else { Width::Double };
            let operands = Operands { operand, expected: own };
            let request = Request { ticket: 0, address, width, operation, operands };
            let key = if kind == 5 { counter.key } else { self.keys[home] };
            if writer.push(key, &request.to_wire(fetches)).is_err() {
                break;
            }
            match kind {
                0 => totals.sums[sum as usize] = totals.sums[sum as usize].wrapping_add(value),
                1 => {
                    let total = &mut totals.narrow[narrow as usize];
                    *total = total.wrapping_add(value as u32);
                }
                2 => totals.xors ^= value,
                3 => totals.largest = totals.largest.max(value >> 1),
                4 => totals.own[stream] += 1,
                _ => {}
            }
            self.executed += 1;
            if fetches {
                expected.push(says.to_word());
            }
        }
        (writer, expected)
    }

    /// A batch was answered. Returns what the counter was.
    pub(crate) fn judge(
        completion: &Completion,
        expected: &[u64],
        answer: &[u8],
    ) -> Result<Vec<u64>, String> {
        if answers(answer).len() != expected.len() {
            return Err(format!("{} bytes for {} answers", answer.len(), expected.len()));
        }
        let mut counts = Vec::new();
        for (old, &expected) in answers(answer).zip(expected) {
            match expected {
                ANYTHING => {}
                COUNT => counts.push(old),
                _ if old == expected => {}
                _ => return Err(format!("a word was {old}, not {expected}: {completion:?}")),
            }
        }
        Ok(counts)
    }

    /// Every operation was executed once.
    pub(crate) fn at_rest<R: Rules>(&self, pair: &mut Pair<R>) -> Result<(), String> {
        for (at, totals) in self.totals.iter().enumerate() {
            let (memory, key) = (&mut pair.nodes[at].memory, self.keys[at]);
            let all = Span { key, address: BASE, len: BYTES as u32 };
            let found = memory.bytes(all).expect("it is there").to_vec();
            let mut expected = Vec::new();
            expected.extend(totals.sums.iter().flat_map(|sum| sum.to_ne_bytes()));
            expected.extend(totals.narrow.iter().flat_map(|sum| sum.to_ne_bytes()));
            expected.extend([totals.xors, totals.largest].iter().flat_map(|word| word.to_ne_bytes()));
            expected.extend(totals.own.iter().flat_map(|word| word.to_ne_bytes()));
            if found != expected {
                return Err(format!("words of node {at} are not what all operations make of them"));
            }
        }
        Ok(())
    }
}
