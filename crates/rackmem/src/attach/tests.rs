//! Messages there and back, and bytes that are none.

use live::actor::Wait;
use live::chains::Wanted;
use live::memory::regions::Shape;
use live::networked::Draining;
use live::networked::verbs::RegionName;
use nic::words::{Operands, Operation as OnWord, Width};
use transport::{Terms, WIRE_VERSION};
use wire::roce::Key;
use wire::{BlockSize, Discipline, GlobalAddr, Incarnation, Nanos, NodeId};

use super::answer::{Answer, begin_answers, decode_answers};
use super::message::{
    MOST_BYTES, MOST_OPERATIONS, Malformed, Request, Welcome, begin_batch, decode_hello, put_changed,
    put_full, put_hello, put_update,
};
use super::operation::{Creation, Operation, WordOf};
use crate::drain::{DrainOrder, Rest};
use crate::error::Error;
use crate::lock::LockMode;

const WANTED: Wanted = Wanted { addr: ADDR, life: None, failed_too: false };
const ADDR: GlobalAddr = GlobalAddr::from_bits(3 << 48 | 0x1238);
const NAME: RegionName = RegionName { addr: ADDR, incarnation: Incarnation(5), key: Key(0xffff_ff07) };

fn word(operation: OnWord, width: Width) -> Operation<'static> {
    let operands = Operands { operand: u64::MAX - 1, expected: 3 };
    Operation::Word(WordOf { region: NAME, index: 9, width, operation, operands })
}

fn operations() -> Vec<Operation<'static>> {
    vec![
        Operation::Read { addr: ADDR, len: 8 },
        Operation::Write { addr: ADDR, bytes: b"written" },
        Operation::Alloc { len: 1 << 33, home: NodeId(63), discipline: Discipline::LockOnly },
        Operation::Free { addr: ADDR, incarnation: None },
        Operation::Free { addr: ADDR, incarnation: Some(Incarnation(4)) },
        Operation::Lock { addr: ADDR, mode: LockMode::Write, once: false },
        Operation::Lock { addr: ADDR, mode: LockMode::Read, once: true },
        Operation::Unlock { lock: 7 },
        Operation::Enter { addr: ADDR, len: 16, mode: LockMode::Write, wait: Wait::Forever, is_headed: true },
        Operation::Enter { addr: ADDR, len: 0, mode: LockMode::Read, wait: Wait::Not, is_headed: false },
        Operation::Enter { addr: ADDR, len: 8, mode: LockMode::Write, wait: Wait::Reclaim, is_headed: false },
        Operation::Enter {
            addr: ADDR,
            len: 8,
            mode: LockMode::Read,
            wait: Wait::AtMost(Nanos(7)),
            is_headed: false,
        },
        Operation::Leave { lock: 1, bytes: None },
        Operation::Leave { lock: 2, bytes: Some(b"sixteen bytes...") },
        Operation::End { lock: 3, is_lost: true },
        Operation::Begin { shape: Shape::Words { count: 1 << 40 }, home: NodeId(1) },
        Operation::Begin { shape: Shape::objects(3, MOST_BYTES), home: NodeId(1) },
        Operation::Open { addr: ADDR, needs: Discipline::Object },
        word(OnWord::Add, Width::Double),
        word(OnWord::CompareSwap, Width::Word),
        word(OnWord::Load, Width::Double),
        Operation::ReadWords { region: NAME, at: u64::MAX, len: 40 },
        Operation::WriteWords { region: NAME, at: 3, bytes: b"12345" },
        Operation::ReadObject { region: NAME, index: 1, len: 100 },
        Operation::WriteObject { region: NAME, index: 1, at: 5, expected: None, bytes: b"new" },
        Operation::WriteObject { region: NAME, index: 1, at: 0, expected: Some(8), bytes: b"" },
        Operation::Create(Creation {
            homes: &[1, 0, 2, 0],
            bytes: 1 << 20,
            copies: 2,
            server: NodeId(2),
            lease: Nanos(5),
            quarantine: Some(Nanos(9)),
        }),
        Operation::OpenStore { wanted: WANTED },
        Operation::OpenStore {
            wanted: Wanted { life: Some(Incarnation(u32::MAX)), failed_too: true, ..WANTED },
        },
        Operation::Put { store: NAME, key: 7, value: b"seven" },
        Operation::Delete { store: NAME, key: 7 },
        Operation::Close { store: NAME },
        Operation::FreeStore { store: NAME },
        Operation::Sync,
        Operation::Drain(DrainOrder::Look),
        Operation::Drain(DrainOrder::Begin(Rest::Keep)),
        Operation::Drain(DrainOrder::Begin(Rest::Lose)),
        Operation::Drain(DrainOrder::Stop),
        Operation::Confirm { node: None },
        Operation::Confirm { node: Some((NodeId(5), Incarnation(9))) },
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
        Error::PinnedToWrite { addr: ADDR },
        Error::Detached,
        Error::WrongLength { addr: ADDR, len: 9 },
        Error::RegionTooLong { len: 1 << 21, most: 1 << 20 },
        Error::Broken { addr: ADDR },
        Error::OutOfBounds { index: 100, count: 7 },
        Error::HalfWritten { addr: ADDR, index: 5 },
        Error::TooManyClients { most: 1024 },
        Error::QuarantineTooShort { quarantine: Nanos(u64::MAX), least: Nanos(7) },
        Error::TooManyCopies { copies: 3, memories: 2 },
        Error::TooManyAttached { most: 64 },
        Error::NoCopies,
    ];
    let others = [
        Answer::Done,
        Answer::Bytes(vec![1, 2, 3]),
        Answer::Allocated(ADDR),
        Answer::Locked(9, None),
        Answer::Locked(10, Some(NodeId(3))),
        Answer::Busy,
        Answer::Held(4, None, vec![5; 16]),
        Answer::Held(5, Some(NodeId(63)), vec![6; 8]),
        Answer::Region(NAME, Shape::objects(4, 100), true),
        Answer::Region(NAME, Shape::Words { count: 0 }, false),
        Answer::Word(u64::MAX),
        Answer::Object(6, vec![7; 9]),
        Answer::Chained(3, None),
        Answer::Draining(Draining::No),
        Answer::Draining(Draining::Refused { bytes: 1 << 40 }),
        Answer::Draining(Draining::Moving { memories: 3, bytes: 7, staying: None }),
        Answer::Draining(Draining::Moving { memories: 3, bytes: 7, staying: Some(0) }),
        Answer::Draining(Draining::Done { staying: 63 }),
        Answer::Draining(Draining::Left { staying: 2, in_order: true }),
        Answer::Chained(2, Some(Vec::new())),
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
    let welcome = Welcome {
        node: NodeId(2),
        nodes: 64,
        block: BlockSize::MAX,
        memory: u64::MAX,
        session: 77,
        epoch: 5,
        terms: terms.clone(),
    };
    let mut bytes = Vec::new();
    welcome.encode(&mut bytes);
    assert_eq!(Welcome::decode(&bytes), Ok(Ok(Some(welcome))));
    let mut full = Vec::new();
    put_full(&mut full);
    assert_eq!(Welcome::decode(&full), Ok(Ok(None)));
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
    let others = [
        Operation::Enter {
            addr: ADDR,
            len: MOST_BYTES,
            mode: LockMode::Read,
            wait: Wait::Forever,
            is_headed: false,
        },
        Operation::ReadWords { region: NAME, at: 0, len: MOST_BYTES },
        Operation::ReadObject { region: NAME, index: 0, len: MOST_BYTES },
        Operation::Get { store: NAME, key: 1 },
        Operation::Named { home: NodeId(2), request: b"asked" },
    ];
    for other in others {
        assert!(Request::decode(&encoded(&[other])).is_ok());
        assert_eq!(Request::decode(&encoded(&[other, read(1)])), Err(Malformed), "{other:?} and more");
    }
    let many = vec![Operation::OpenStore { wanted: WANTED }; MOST_OPERATIONS + 1];
    assert!(Request::decode(&encoded(&many[1..])).is_ok());
    assert_eq!(Request::decode(&encoded(&many)), Err(Malformed));
}

#[test]
fn a_store_that_cannot_be_is_not_created() {
    let good = Creation {
        homes: &[1, 0],
        bytes: 64,
        copies: 1,
        server: NodeId(1),
        lease: Nanos(1),
        quarantine: None,
    };
    assert_eq!(good.config().map(|config| config.homes), Some(vec![NodeId(1)]));
    assert_eq!(Creation { homes: &[1, 0, 2], ..good }.config(), None, "half a node");
    assert_eq!(Creation { lease: Nanos(u64::MAX), ..good }.config(), None, "times are added to others");
    assert_eq!(Creation { quarantine: Some(Nanos(u64::MAX)), ..good }.config(), None);
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
