//! etcd as a lock service: its lock, its store, and its lease, through the gateway that speaks JSON over HTTP
//! (`/v3/lock/lock`, `/v3/kv/range`, `/v3/kv/put`, `/v3/lock/unlock`). Four round trips, if the lock is free; who waits is told by
//! etcd. Its own clients speak gRPC, which spares the server a translation.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::{RECORD, Service};
use cli::ycsb::random::Random;

/// Names, in base64: bytes go through the gateway like that. "lock" and "record".
const LOCK: &str = "bG9jaw==";
const KEY: &str = "cmVjb3Jk";
/// Seconds that a lease lasts: longer than the measurement.
const LEASE: &str = "600";
/// Digits of the number at the beginning of a record.
const DIGITS: usize = 16;

pub(super) struct Etcd {
    stream: BufReader<TcpStream>,
    server: SocketAddr,
    lease: Value,
}

/// A record of [`RECORD`] bytes in base64, which begins with a number: digits are letters of that alphabet, too.
fn record_with(count: u64) -> String {
    let letters = RECORD.div_ceil(3) * 4;
    let padding = (3 - RECORD % 3) % 3;
    format!("{count:0DIGITS$}{}{}", "A".repeat(letters - DIGITS - padding), "=".repeat(padding))
}

impl Etcd {
    /// Calls a method of the server.
    fn call(&mut self, method: &str, body: &Value) -> io::Result<Value> {
        let body = body.to_string();
        let request = format!(
            "POST /v3/{method} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.server,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (mut length, mut line) = (None, String::new());
        let mut status = String::new();
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            if status.is_empty() {
                text.clone_into(&mut status);
            } else if let Some((name, value)) = text.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok();
            }
        }
        let length: usize =
            length.ok_or_else(|| io::Error::other(format!("{method}: no length: {status}")))?;
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        if !status.contains(" 200 ") {
            return Err(io::Error::other(format!("{method}: {status}: {answer}")));
        }
        serde_json::from_str(&answer).map_err(io::Error::other)
    }
}

impl Service for Etcd {
    const NAME: &'static str = "etcd";

    fn open(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut it = Self { stream: BufReader::new(stream), server, lease: Value::Null };
        let granted = it.call("lease/grant", &json!({ "TTL": LEASE }))?;
        it.lease = granted["ID"].clone();
        Ok(it)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.call("kv/put", &json!({ "key": KEY, "value": record_with(0) })).map(drop)
    }

    fn update(&mut self, _: &mut Random) -> io::Result<()> {
        let locked = self.call("lock/lock", &json!({ "name": LOCK, "lease": self.lease }))?;
        let next = self.count()? + 1;
        self.call("kv/put", &json!({ "key": KEY, "value": record_with(next) }))?;
        self.call("lock/unlock", &json!({ "key": locked["key"] })).map(drop)
    }

    fn count(&mut self) -> io::Result<u64> {
        let found = self.call("kv/range", &json!({ "key": KEY }))?;
        let record = found["kvs"][0]["value"].as_str().and_then(|record| record.get(..DIGITS)?.parse().ok());
        record.ok_or_else(|| io::Error::other(format!("no record: {found}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_its_bytes_and_begins_with_its_number() {
        let record = record_with(1234);
        assert_eq!(record.len(), 172, "128 bytes in base64");
        assert!(record.starts_with("0000000000001234A") && record.ends_with("A="));
    }
}
