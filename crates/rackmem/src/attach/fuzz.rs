//! What a fuzzer does with the parsers of what applications and daemons say: it gives them any bytes.
//!
//! The fuzzer `attach` under `fuzz/` and the test `attach_fuzz` call this; nothing else does.

use super::answer::{begin_answers, decode_answers};
use super::message::{
    Request, Welcome, begin_batch, decode_hello, put_changed, put_full, put_hello, put_update,
};

/// A greeting, a request of an application, or the answers of a daemon: what is accepted can be said again, and is the same.
/// Returns true if any of them is accepted.
///
/// # Panics
/// If a parser breaks its word.
pub fn attach(bytes: &[u8]) -> bool {
    let mut again = Vec::new();
    let request = Request::decode(bytes);
    match &request {
        Ok(Request::Batch(operations)) => {
            begin_batch(&mut again, operations.len());
            operations.iter().for_each(|operation| operation.encode(&mut again));
        }
        Ok(Request::Update { addr, len }) => put_update(&mut again, *addr, *len),
        Ok(Request::Changed(changed)) => put_changed(&mut again, changed),
        Err(_) => {}
    }
    assert!(request.is_err() || again == bytes);
    let answers = decode_answers(bytes);
    if let Ok(answers) = &answers {
        again.clear();
        begin_answers(&mut again, answers.len());
        answers.iter().for_each(|answer| answer.encode(&mut again));
        assert_eq!(decode_answers(&again).as_ref(), Ok(answers));
        // Errors are shown to people.
        drop(format!("{answers:?}"));
    }
    let hello = decode_hello(bytes);
    if let Ok(Ok(terms)) = &hello {
        again.clear();
        put_hello(&mut again, terms);
        assert_eq!(again, bytes);
    }
    let welcome = Welcome::decode(bytes);
    if let Ok(Ok(welcome)) = &welcome {
        again.clear();
        match welcome {
            Some(welcome) => welcome.encode(&mut again),
            None => put_full(&mut again),
        }
        assert_eq!(again, bytes);
    }
    request.is_ok() || answers.is_ok() || hello.is_ok() || welcome.is_ok()
}
