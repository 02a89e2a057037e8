//! Batches of remote atomics: the documented bytes, everything both ways, and bytes that are no batch. No rack runs here. What
//! must hold: what is written is read again; what is cut or damaged is refused with a cause or read as some batch that
//! could have been written, never with a panic.

use proptest::prelude::*;
use wire::roce::Key;
use wire::roce::batch::*;

fn any_entry() -> impl Strategy<Value = Entry> {
    let operation = prop::sample::select(Operation::ALL);
    (operation, 0..ADDRESSES, any::<(bool, bool)>(), any::<u64>(), any::<u64>()).prop_map(
        |(operation, address, (is_wide, fetches), operand, expected)| Entry {
            address,
            operation,
            is_wide,
            fetches,
            operand,
            expected: if operation == Operation::CompareSwap { expected } else { 0 },
        },
    )
}

fn any_entries() -> impl Strategy<Value = Vec<(Key, Entry)>> {
    prop::collection::vec(((0..3u32).prop_map(Key), any_entry()), 1..40)
}

fn written(entries: &[(Key, Entry)]) -> Writer {
    let mut writer = Writer::new(4096);
    for (key, entry) in entries {
        writer.push(*key, entry).expect("there is room");
    }
    writer
}

/// What is accepted says the same when it is written again.
fn is_refused_or_some_batch(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(batch) = Batch::parse(bytes) {
        let entries: Vec<_> = batch.entries().collect();
        prop_assert_eq!(entries.len(), batch.len());
        let again = written(&entries);
        let again = Batch::parse(again.bytes()).expect("it was written");
        prop_assert_eq!(again.entries().collect::<Vec<_>>(), entries);
        prop_assert_eq!(again.answer_bytes(), batch.answer_bytes());
    }
    Ok(())
}

#[test]
fn the_layout_is_the_documented_one() {
    let add = Entry {
        address: 0x1234_5678_9abc,
        operation: Operation::Add,
        is_wide: true,
        fetches: false,
        operand: 0x0102_0304_0506_0708,
        expected: 0,
    };
    let swap =
        Entry { operation: Operation::CompareSwap, is_wide: false, fetches: true, expected: 0xff, ..add };
    let mut writer = Writer::new(100);
    writer.push(Key(0x0a0b_0c0d), &add).unwrap();
    writer.push(Key(0x0a0b_0c0d), &swap).unwrap();
    writer.push(Key(7), &add).unwrap();
    #[rustfmt::skip]
    let expected = [
        0x0a, 0x0b, 0x0c, 0x0d, 0, 2, 0, 0,
        0, 2, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 1, 2, 3, 4, 5, 6, 7, 8,
        6, 1, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0xff,
        0, 0, 0, 7, 0, 1, 0, 0,
        0, 2, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 1, 2, 3, 4, 5, 6, 7, 8,
    ];
    assert_eq!(writer.bytes(), expected);
    assert_eq!((writer.len(), writer.answer_bytes()), (3, 8));
}

#[test]
fn what_does_not_fit_leaves_the_batch_as_it_is() {
    let entry = Entry {
        address: 8,
        operation: Operation::Load,
        is_wide: true,
        fetches: true,
        operand: 0,
        expected: 0,
    };
    let swap = Entry { operation: Operation::CompareSwap, ..entry };
    let mut writer = Writer::new(8 + 16 + 8 + 16);
    writer.push(Key(1), &entry).unwrap();
    let one = writer.bytes().to_vec();
    assert_eq!(writer.push(Key(2), &swap), Err(Full), "one word too long");
    assert_eq!(writer.bytes(), one);
    writer.push(Key(2), &entry).unwrap();
    assert_eq!(writer.push(Key(2), &entry), Err(Full));
    assert_eq!(Batch::parse(writer.bytes()).unwrap().len(), 2);
    writer.clear();
    assert!(writer.is_empty() && writer.bytes().is_empty() && writer.answer_bytes() == 0);
    writer.push(Key(1), &entry).unwrap();
    assert_eq!(writer.bytes(), one, "a new section, although it is the key of the one before");
}

#[test]
#[should_panic(expected = "is not an address of 48 bits")]
fn an_address_that_would_reach_into_the_operation_is_not_written() {
    let entry = Entry {
        address: ADDRESSES,
        operation: Operation::Load,
        is_wide: true,
        fetches: true,
        operand: 0,
        expected: 0,
    };
    let _ = Writer::new(100).push(Key(1), &entry);
}

#[test]
fn a_section_that_counts_no_further_is_followed_by_another() {
    let entry = Entry {
        address: 8,
        operation: Operation::Load,
        is_wide: true,
        fetches: false,
        operand: 0,
        expected: 0,
    };
    let mut writer = Writer::new(usize::MAX);
    for _ in 0..=u16::MAX {
        writer.push(Key(1), &entry).unwrap();
    }
    assert_eq!(writer.bytes().len(), 2 * SECTION_BYTES + (1 << 16) * ENTRY_BYTES);
    assert_eq!(Batch::parse(writer.bytes()).unwrap().len(), 1 << 16);
}

#[test]
fn each_cause_is_told_from_the_others() {
    let section = |count: u8| vec![0, 0, 0, 1, 0, count, 0, 0];
    let with = |at: usize, byte: u8| {
        let mut bytes = section(1);
        bytes.extend([0; 16]);
        bytes[at] = byte;
        Batch::parse(&bytes).map(|batch| batch.len())
    };
    assert_eq!(with(0, 0), Ok(1));
    assert_eq!(Batch::parse(&[]), Err(BatchError::Empty));
    assert_eq!(Batch::parse(&section(0)), Err(BatchError::Empty));
    assert_eq!(Batch::parse(&section(1)), Err(BatchError::Truncated));
    assert_eq!(with(5, 2), Err(BatchError::Truncated));
    assert_eq!(with(8, 6), Err(BatchError::Truncated), "a compare-and-swap is longer");
    assert_eq!(with(8, 9), Err(BatchError::Operation));
    assert_eq!(with(9, 4), Err(BatchError::Reserved));
    assert_eq!(with(7, 1), Err(BatchError::Reserved));
    let mut behind = section(1);
    behind.extend([0; 17]);
    assert_eq!(Batch::parse(&behind), Err(BatchError::Truncated), "bytes behind the last entry");
}

#[test]
fn what_words_were_is_read_again() {
    let mut answer = Vec::new();
    for old in [0, 1, u64::MAX] {
        push_answer(&mut answer, old);
    }
    assert_eq!(answers(&answer).collect::<Vec<_>>(), [0, 1, u64::MAX]);
    assert_eq!(answers(&answer[..15]).count(), 1);
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(entries in any_entries()) {
        let writer = written(&entries);
        let batch = Batch::parse(writer.bytes()).expect("a batch");
        prop_assert_eq!(batch.entries().collect::<Vec<_>>(), &entries[..]);
        let fetches = entries.iter().filter(|(_, entry)| entry.fetches).count();
        prop_assert_eq!(batch.answer_bytes(), fetches * ANSWER_BYTES);
        prop_assert_eq!((writer.len(), writer.answer_bytes()), (batch.len(), batch.answer_bytes()));
    }

    #[test]
    fn every_cut_is_refused_or_ends_a_section(entries in any_entries()) {
        let writer = written(&entries);
        for cut in 0..writer.bytes().len() {
            match Batch::parse(&writer.bytes()[..cut]) {
                Ok(batch) => {
                    let count = batch.len();
                    prop_assert!(count < entries.len());
                    prop_assert_ne!(entries[count].0, entries[count - 1].0, "inside of a section");
                    prop_assert_eq!(batch.entries().collect::<Vec<_>>(), &entries[..count]);
                }
                Err(why) => prop_assert_eq!(why, if cut == 0 { BatchError::Empty } else { BatchError::Truncated }),
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_refused_or_read_as_some_batch(entries in any_entries()) {
        let bytes = written(&entries[..entries.len().min(6)]).bytes().to_vec();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            is_refused_or_some_batch(&bytes)?;
        }
    }

    #[test]
    fn bytes_nobody_writes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        is_refused_or_some_batch(&bytes)?;
    }

    #[test]
    fn small_numbers_are_refused_or_read_as_some_batch(bytes in prop::collection::vec(0..3u8, 0..100)) {
        is_refused_or_some_batch(&bytes)?;
    }
}
