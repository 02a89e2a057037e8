//! What is fuzzed, as plain tests on stable: a target is fed with its corpus (`fuzz/corpus`) and with changed copies of
//! it. `RACKMEM_SEED=N` repeats one seed. Tests of several crates include this file.

use std::path::Path;

use random::Dice;

/// Changed copies for each seed.
const ROUNDS: usize = 4_000;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).expect("a corpus").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("readable")).collect()
}

/// A copy of one input with some changes: bytes, lengths, pieces of others.
fn changed(dice: &mut Dice, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[dice.pick(corpus.len())].clone();
    for _ in 0..dice.pick(4) {
        let (at, length) = (dice.pick(bytes.len().max(1)), bytes.len());
        match dice.pick(6) {
            0 if length > 0 => bytes[at] ^= 1 << dice.pick(8),
            1 if length > 0 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][dice.pick(5)],
            2 => bytes.truncate(at),
            3 => bytes.extend_from_slice(&corpus[dice.pick(corpus.len())]),
            4 => drop(bytes.splice(at..at, vec![0; 8])),
            _ if length >= at + 8 => drop(bytes.drain(at..at + 8)),
            _ => bytes.push(0),
        }
    }
    bytes
}

pub(crate) fn feed(name: &str, target: fn(&[u8]) -> bool) {
    let corpus = corpus(name);
    let accepted = corpus.iter().filter(|bytes| target(bytes)).count();
    assert!(accepted > 0 && accepted < corpus.len(), "{name}: {accepted} of {} are accepted", corpus.len());
    let seed = std::env::var("RACKMEM_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("RACKMEM_SEED={seed} cargo test -p {} fuzz", env!("CARGO_PKG_NAME"));
    let mut dice = Dice::new(seed);
    for _ in 0..ROUNDS {
        target(&changed(&mut dice, &corpus));
    }
}
