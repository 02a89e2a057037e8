//! Redis as a lock service, as its documentation has it for one server: `SET lock token NX PX`, tried again after a random
//! delay up to [`LONGEST_DELAY`] while somebody has it; GET; then the record's SET together with the script that deletes the lock if
//! it is still the client's own. Three round trips, if the lock is free.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use super::{RECORD, Service};
use crate::peers::protocol::{Answer, Protocol, command};
use cli::ycsb::random::Random;

/// The longest that a client waits before it asks for a lock again.
const LONGEST_DELAY: Duration = Duration::from_micros(200);

const RELEASE: &[u8] =
    b"if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

/// A connection to Redis.
pub(crate) struct Redis {
    stream: TcpStream,
    out: Vec<u8>,
    read: Vec<u8>,
}

impl Redis {
    /// A connection.
    pub(crate) fn connect(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Self { stream, out: Vec::new(), read: Vec::new() })
    }

    /// Takes a lock, and says by which token.
    pub(crate) fn take(&mut self, lock: &[u8], random: &mut Random) -> io::Result<[u8; 8]> {
        let token = random.word().to_le_bytes();
        let asks: [&[u8]; 6] = [b"SET", lock, &token, b"NX", b"PX", b"30000"];
        while self.ask(&[&asks])?.0 == Answer::Absent {
            let most = LONGEST_DELAY.as_nanos() as u64;
            thread::sleep(Duration::from_nanos(random.below(most)));
        }
        Ok(token)
    }

    /// A record.
    pub(crate) fn get(&mut self, record: &[u8]) -> io::Result<Vec<u8>> {
        Ok(self.ask(&[&[b"GET", record]])?.1)
    }

    /// Writes a record.
    pub(crate) fn set(&mut self, record: &[u8], bytes: &[u8]) -> io::Result<()> {
        self.ask(&[&[b"SET", record, bytes]]).map(drop)
    }

    /// The same, and releases a lock that was taken by this token.
    pub(crate) fn set_and_release(
        &mut self,
        (record, bytes): (&[u8], &[u8]),
        (lock, token): (&[u8], &[u8]),
    ) -> io::Result<()> {
        self.ask(&[&[b"SET", record, bytes], &[b"EVAL", RELEASE, b"1", lock, token]]).map(drop)
    }

    /// Sends these commands at once, and gives the last answer, with the bytes of a record.
    fn ask(&mut self, commands: &[&[&[u8]]]) -> io::Result<(Answer, Vec<u8>)> {
        self.out.clear();
        commands.iter().for_each(|words| command(&mut self.out, words));
        self.stream.write_all(&self.out)?;
        let mut last = (Answer::Absent, Vec::new());
        for _ in commands {
            last = self.answer()?;
        }
        Ok(last)
    }

    fn answer(&mut self) -> io::Result<(Answer, Vec<u8>)> {
        loop {
            if let Some((answer, len)) = Protocol::Redis.answer(&self.read).map_err(io::Error::other)? {
                let rest = self.read.split_off(len);
                let taken = std::mem::replace(&mut self.read, rest);
                let record = match answer {
                    Answer::Record(bytes) => taken[len - 2 - bytes..len - 2].to_vec(),
                    _ => Vec::new(),
                };
                return Ok((answer, record));
            }
            let mut more = [0; 4096];
            match self.stream.read(&mut more)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => self.read.extend_from_slice(&more[..bytes]),
            }
        }
    }
}

/// The number that a record holds.
fn count_in(record: &[u8]) -> u64 {
    record.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

impl Service for Redis {
    const NAME: &'static str = "Redis";

    fn open(server: SocketAddr) -> io::Result<Self> {
        Self::connect(server)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.set(b"record", &[0; RECORD])
    }

    fn update(&mut self, random: &mut Random) -> io::Result<()> {
        let token = self.take(b"lock", random)?;
        let mut record = self.get(b"record")?;
        record.resize(RECORD, 0);
        let next = count_in(&record) + 1;
        record[..8].copy_from_slice(&next.to_le_bytes());
        self.set_and_release((b"record", &record), (b"lock", &token))
    }

    fn count(&mut self) -> io::Result<u64> {
        Ok(count_in(&self.get(b"record")?))
    }
}
