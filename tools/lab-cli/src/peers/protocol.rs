//! What is said to Redis (RESP, over a string for each record) and to memcached (its text protocol).
//!
//! A read is a GET of the whole record. An update of a field is a SETRANGE in Redis, which writes just that field;
//! memcached has nothing like it, so there the client writes a whole record.

use serde::{Deserialize, Serialize};

/// How to talk to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Protocol {
    Redis,
    Memcached,
}

/// What a server has answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// A record of so many bytes.
    Record(usize),
    /// There is no such record.
    Absent,
    /// It is written.
    Written,
}

impl Protocol {
    /// Asks for a record.
    pub(super) fn get(self, key: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Redis => command(out, &[b"GET", key]),
            Self::Memcached => line(out, &[b"get", key]),
        }
    }

    /// Writes a record.
    pub(super) fn set(self, key: &[u8], record: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Redis => command(out, &[b"SET", key, record]),
            Self::Memcached => {
                line(out, &[b"set", key, b"0", b"0", record.len().to_string().as_bytes()]);
                out.extend_from_slice(record);
                out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Writes a field that starts at `at` of a record.
    pub(super) fn update(self, key: &[u8], at: usize, field: &[u8], record: &mut [u8], out: &mut Vec<u8>) {
        match self {
            Self::Redis => command(out, &[b"SETRANGE", key, at.to_string().as_bytes(), field]),
            Self::Memcached => {
                record[at..at + field.len()].copy_from_slice(field);
                self.set(key, record, out);
            }
        }
    }

    /// The first answer in these bytes, and how many of them it takes. None if it is not all there.
    pub(super) fn answer(self, bytes: &[u8]) -> Result<Option<(Answer, usize)>, String> {
        let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
        let (first, rest) = (&bytes[..end], end + 2);
        let text = || String::from_utf8_lossy(first).into_owned();
        match self {
            Self::Redis => match first.split_first() {
                Some((b'+' | b':', _)) => Ok(Some((Answer::Written, rest))),
                Some((b'$', b"-1")) => Ok(Some((Answer::Absent, rest))),
                Some((b'$', len)) => {
                    let len = number(len).ok_or_else(text)?;
                    let whole = rest + len + 2;
                    Ok((bytes.len() >= whole).then_some((Answer::Record(len), whole)))
                }
                _ => Err(text()),
            },
            Self::Memcached => {
                if first == b"STORED" {
                    return Ok(Some((Answer::Written, rest)));
                }
                if first == b"END" {
                    return Ok(Some((Answer::Absent, rest)));
                }
                let mut words = first.split(|byte| *byte == b' ');
                if words.next() != Some(b"VALUE") {
                    return Err(text());
                }
                let len = words.nth(2).and_then(number).ok_or_else(text)?;
                let whole = rest + len + b"\r\nEND\r\n".len();
                Ok((bytes.len() >= whole).then_some((Answer::Record(len), whole)))
            }
        }
    }
}

/// A RESP array of bulk strings.
pub(super) fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// A line of words.
fn line(out: &mut Vec<u8>, words: &[&[u8]]) {
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(word);
    }
    out.extend_from_slice(b"\r\n");
}

/// A length as digits; no record is longer than a gigabyte.
fn number(digits: &[u8]) -> Option<usize> {
    str::from_utf8(digits).ok()?.parse().ok().filter(|len| *len <= 1 << 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_is_asked_in_arrays_of_strings() {
        let mut out = Vec::new();
        Protocol::Redis.get(b"user1", &mut out);
        Protocol::Redis.update(b"user1", 300, b"xy", &mut [], &mut out);
        assert_eq!(
            out,
            b"*2\r\n$3\r\nGET\r\n$5\r\nuser1\r\n*4\r\n$8\r\nSETRANGE\r\n$5\r\nuser1\r\n$3\r\n300\r\n$2\r\nxy\r\n"
        );
    }

    #[test]
    fn memcached_gets_whole_records() {
        let (mut out, mut record) = (Vec::new(), *b"abcdef");
        Protocol::Memcached.update(b"user1", 2, b"XY", &mut record, &mut out);
        Protocol::Memcached.get(b"user1", &mut out);
        assert_eq!(out, b"set user1 0 0 6\r\nabXYef\r\nget user1\r\n");
    }

    #[test]
    fn answers_are_taken_one_by_one_and_only_when_they_are_whole() {
        for (protocol, bytes, expected) in [
            (Protocol::Redis, &b"$3\r\na\r\n\r\n+OK\r\n"[..], (Answer::Record(3), 9)),
            (Protocol::Redis, b"$-1\r\n", (Answer::Absent, 5)),
            (Protocol::Redis, b":1000\r\n", (Answer::Written, 7)),
            (Protocol::Memcached, b"VALUE k 0 2\r\n\r\n\r\nEND\r\nEND\r\n", (Answer::Record(2), 22)),
            (Protocol::Memcached, b"END\r\n", (Answer::Absent, 5)),
            (Protocol::Memcached, b"STORED\r\n", (Answer::Written, 8)),
        ] {
            assert_eq!(protocol.answer(bytes), Ok(Some(expected)));
            for short in 0..expected.1 {
                assert_eq!(protocol.answer(&bytes[..short]), Ok(None), "{short} bytes of {bytes:?}");
            }
        }
    }

    #[test]
    fn what_a_server_complains_about_is_said() {
        for (protocol, bytes) in [
            (Protocol::Redis, &b"-ERR no\r\n"[..]),
            (Protocol::Redis, b"$99999999999999999999\r\n"),
            (Protocol::Memcached, b"SERVER_ERROR out of memory\r\n"),
            (Protocol::Memcached, b"VALUE k 0\r\n"),
        ] {
            let said = String::from_utf8_lossy(bytes).trim().to_owned();
            assert_eq!(protocol.answer(bytes), Err(said));
        }
    }
}
