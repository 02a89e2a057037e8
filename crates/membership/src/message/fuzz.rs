//! What a fuzzer does with the parsers of control messages: it gives them any bytes.
//!
//! The fuzzer `control` under `fuzz/` and the test `message_fuzz` call this; nothing else does.

use alloc::vec::Vec;

use super::{Contents, Message, encode_dump, encode_roster};

/// A control message, and what a part of a view has in it if it is a whole view: what is accepted is what the encoders
/// write. Returns true if the message is accepted.
///
/// # Panics
/// If a parser breaks its word.
pub fn control(bytes: &[u8]) -> bool {
    let Ok(message) = Message::parse(bytes) else { return false };
    assert_eq!(message.encode(), bytes);
    if let Message::View(part) = message
        && let Ok(contents) = Contents::parse(&part.bytes)
    {
        let mut again = Vec::new();
        encode_roster(&contents.roster, &mut again);
        // A home is only sent the entries of its own blocks.
        let whole = contents.dump.is_none_or(|dump| {
            let home = dump.entries.first().map_or(wire::NodeId(0), |(tag, _)| tag.home());
            again.extend(encode_dump(&dump, home));
            dump.entries.iter().all(|(tag, _)| tag.home() == home)
        });
        assert!(!whole || again == part.bytes);
    }
    true
}
