//! Messages there and back, and bytes that are none.

use transport::{Terms, WIRE_VERSION};
use wire::{BlockSize, Discipline, GlobalAddr, Nanos, NodeId};

use super::message::{
    Answer, MOST_BYTES, Malformed, Operation, Request, Welcome, begin_answers, begin_batch, decode_answers,
    decode_hello, put_changed, put_hello, put_update,
};
use crate::error::Error;
use crate::lock::LockMode;

const ADDR: GlobalAddr = GlobalAddr::from_bits(3 << 48 | 0x1238);

fn operations() -> Vec<Operation<'static>> {
    vec![
        Operation::Read { addr: ADDR, len: 8 },
        Operation::Write { addr: ADDR, bytes: b"written" },
        Operation::Alloc { len: 1 << 33, home: NodeId(63), discipline: Discipline::LockOnly },
        Operation::Free { addr: ADDR },
        Operation::Lock { addr: ADDR, mode: LockMode::Write, once: false },
        Operation::Lock { addr: ADDR, mode: LockMode::Read, once: true },
        Operation::Unlock { lock: 7 },
    ]
}

fn encoded(operations: &[Operation<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    begin_batch(&mut bytes, operations.len());
    operations.iter().for_each(|operation| operation.encode(&mut bytes));
    bytes
}

fn answers() -> Vec<Answer> {
    let block = BlockSize::new(4096).unwrap();
    let errors = [
        Error::Unallocated { addr: ADDR },
        Error::WrongDiscipline { addr: ADDR, needs: Discipline::Coherent },
        Error::NoSuchNode { addr: ADDR, nodes: 3 },
        Error::Unaligned { addr: ADDR },
        Error::CrossesBlocks { addr: ADDR, len: 5000, block },
        Error::OutOfRange { addr: ADDR, len: 1 << 40 },
        Error::BadSize { len: 0, most: 1 << 20 },
        Error::OutOfMemory { len: 64, home: 3 },
        Error::NotAnAllocation { addr: ADDR },
        Error::Lost { addr: ADDR },
        Error::NodeDown { addr: ADDR },
        Error::Fenced,
        Error::TooManyLocks { most: 4 },
        Error::Detached,
        Error::WrongLength { addr: ADDR, len: 9 },
        Error::RegionTooLong { len: 1 << 21, most: 1 << 20 },
        Error::Broken { addr: ADDR },
        Error::OutOfBounds { index: 100, count: 7 },
        Error::HalfWritten { addr: ADDR, index: 5 },
        Error::TooManyClients { most: 1024 },
        Error::QuarantineTooShort { quarantine: Nanos(u64::MAX), least: Nanos(7) },
        Error::TooManyCopies { copies: 3, memories: 2 },
    ];
    let others = [
        Answer::Done,
        Answer::Bytes(vec![1, 2, 3]),
        Answer::Allocated(ADDR),
        Answer::Locked(9),
        Answer::Busy,
    ];
    others.into_iter().chain(errors.map(Answer::Failed)).collect()
}

fn encoded_answers(answers: &[Answer]) -> Vec<u8> {
    let mut bytes = Vec::new();
    begin_answers(&mut bytes, answers.len());
    answers.iter().for_each(|answer| answer.encode(&mut bytes));
    bytes
}

#[test]
fn every_message_comes_back_as_it_was() {
    assert_eq!(Request::decode(&encoded(&operations())), Ok(Request::Batch(operations())));
    let mut update = Vec::new();
    put_update(&mut update, ADDR, 100);
    assert_eq!(Request::decode(&update), Ok(Request::Update { addr: ADDR, len: 100 }));
    let mut changed = Vec::new();
    put_changed(&mut changed, b"new");
    assert_eq!(Request::decode(&changed), Ok(Request::Changed(b"new")));
    assert_eq!(decode_answers(&encoded_answers(&answers())), Ok(answers()));
    let terms = Terms::new([("block", "4 KiB")]);
    let welcome =
        Welcome { node: NodeId(2), nodes: 64, block: BlockSize::MAX, memory: u64::MAX, terms: terms.clone() };
    let mut bytes = Vec::new();
    welcome.encode(&mut bytes);
    assert_eq!(Welcome::decode(&bytes), Ok(Ok(welcome)));
    let mut hello = Vec::new();
    put_hello(&mut hello, &terms);
    assert_eq!(decode_hello(&hello), Ok(Ok(terms)));
    for greeting in [&mut bytes, &mut hello] {
        greeting[7] += 1;
    }
    let next = WIRE_VERSION + 1;
    assert_eq!((Welcome::decode(&bytes), decode_hello(&hello)), (Ok(Err(next)), Ok(Err(next))));
}

#[test]
fn a_message_that_is_cut_or_has_more_behind_it_is_none() {
    let (request, answers) = (encoded(&operations()), encoded_answers(&answers()));
    for len in 0..request.len() {
        assert_eq!(Request::decode(&request[..len]), Err(Malformed), "{len} bytes");
    }
    for len in 0..answers.len() {
        assert_eq!(decode_answers(&answers[..len]), Err(Malformed), "{len} bytes");
    }
    assert_eq!(Request::decode(&[&request[..], &[0]].concat()), Err(Malformed));
    assert_eq!(decode_answers(&[&answers[..], &[0]].concat()), Err(Malformed));
}

#[test]
fn what_asks_for_more_than_a_message_may_carry_is_none() {
    let read = |len| Operation::Read { addr: ADDR, len };
    assert!(Request::decode(&encoded(&[read(MOST_BYTES)])).is_ok());
    assert_eq!(Request::decode(&encoded(&[read(MOST_BYTES + 1)])), Err(Malformed));
    assert_eq!(Request::decode(&encoded(&[read(MOST_BYTES), read(1)])), Err(Malformed), "together");
    let many = vec![Operation::Free { addr: ADDR }; super::message::MOST_OPERATIONS + 1];
    assert!(Request::decode(&encoded(&many[1..])).is_ok());
    assert_eq!(Request::decode(&encoded(&many)), Err(Malformed));
}

#[test]
fn any_byte_may_be_anything() {
    let (request, answers) = (encoded(&operations()), encoded_answers(&answers()));
    for at in 0..request.len().max(answers.len()) {
        for value in 0..=255 {
            for message in [&request, &answers] {
                let mut bytes = message.clone();
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
                // Whatever is accepted can be said again, and is the same.
                if let Ok(Request::Batch(operations)) = Request::decode(&bytes) {
                    assert_eq!(encoded(&operations), bytes);
                }
                if let Ok(answers) = decode_answers(&bytes) {
                    answers.iter().for_each(|answer| drop(format!("{answer:?}")));
                    assert_eq!(decode_answers(&encoded_answers(&answers)), Ok(answers));
                }
            }
        }
    }
}
