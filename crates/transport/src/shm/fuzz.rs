//! What a fuzzer does with the parsers of greetings: one function, which takes any bytes. It panics if a parser breaks its
//! word, and returns true if it accepts the bytes.
//!
//! The fuzzer `greeting` under `fuzz/` and the test `shm_fuzz` call this; nothing else does.

use super::asking::Question;
use super::greeting::{Offer, hello, parse_hello, parse_refusal, refusal};

/// What a caller says, or what refuses it: what is accepted, and is of this version, is what would be written.
pub fn greeting(bytes: &[u8]) -> bool {
    let said = parse_hello(bytes);
    if let Some((name, Offer::Terms(terms))) = &said {
        let again = hello(*name, terms);
        // Who is no observer has no number: what stands there is not looked at.
        assert_eq!((&again[..9], &again[17..]), (&bytes[..9], &bytes[17..]));
        assert_eq!(parse_hello(&again), said);
    }
    let refused = parse_refusal(bytes);
    if let Some((peer, Offer::Terms(terms))) = &refused {
        assert_eq!(refusal(*peer, terms), bytes);
    }
    let question = Question::of_bytes(bytes);
    assert!(question.is_none_or(|question| question.to_bytes() == bytes));
    said.is_some() || refused.is_some() || question.is_some()
}
