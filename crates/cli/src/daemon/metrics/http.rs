//! As much of HTTP/1.1 as it takes to be asked for a page: GET, one request a connection, nothing read from a body.
//!
//! What must always hold: a client costs a bounded time and a bounded memory, whatever it sends or does not send.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

/// One client is served at a time, and for so long at most.
const MOST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_REQUEST: usize = 8 << 10;
/// Between two attempts to accept, where the system has run out of something.
const PAUSE: Duration = Duration::from_millis(100);

/// What to answer.
pub(super) enum Answer {
    /// A page.
    Page { kind: &'static str, text: String },
    /// There is no such page.
    NotFound,
    /// There will be.
    NotYet,
}

impl Answer {
    /// A page of metrics.
    pub(super) fn metrics(text: String) -> Self {
        Self::Page { kind: "application/openmetrics-text; version=1.0.0; charset=utf-8", text }
    }

    /// A document.
    pub(super) fn json(document: &impl Serialize) -> Self {
        match serde_json::to_string(document) {
            Ok(text) => Self::Page { kind: "application/json", text },
            Err(_) => Self::NotYet,
        }
    }
}

/// Answers for as long as this process lives.
pub(super) fn serve(listener: &TcpListener, answer: impl Fn(&str) -> Answer) {
    for connection in listener.incoming() {
        match connection {
            // A client that went away is served.
            Ok(connection) => drop(converse(connection, &answer)),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

fn converse(mut connection: TcpStream, answer: &impl Fn(&str) -> Answer) -> io::Result<()> {
    connection.set_write_timeout(Some(MOST_WAIT))?;
    let request = request(&mut connection)?;
    let (status, kind, text) = match asked(&request) {
        Err(status) => (status, "text/plain", format!("{status}\n")),
        Ok(path) => match answer(path) {
            Answer::Page { kind, text } => ("200 OK", kind, text),
            Answer::NotFound => ("404 Not Found", "text/plain", "there is /metrics\n".to_owned()),
            Answer::NotYet => ("503 Service Unavailable", "text/plain", "only just started\n".to_owned()),
        },
    };
    let length = text.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    connection.write_all(head.as_bytes())?;
    connection.write_all(text.as_bytes())
}

/// What the client sends, to the end of the head, or as much as it may.
fn request(connection: &mut TcpStream) -> io::Result<Vec<u8>> {
    let until = Instant::now() + MOST_WAIT;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") && request.len() < LONGEST_REQUEST {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        connection.set_read_timeout(Some(left))?;
        match connection.read(&mut piece)? {
            0 => break,
            bytes => request.extend_from_slice(&piece[..bytes]),
        }
    }
    Ok(request)
}

/// The path that a request asks for, or the status that it gets instead.
fn asked(request: &[u8]) -> Result<&str, &'static str> {
    let line = request.split(|byte| *byte == b'\r').next().and_then(|line| str::from_utf8(line).ok());
    let mut words = line.unwrap_or_default().split(' ');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some("GET"), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) => {
            Ok(target.split('?').next().unwrap_or_default())
        }
        (Some(_), Some(_), Some("HTTP/1.1" | "HTTP/1.0"), None) => Err("405 Method Not Allowed"),
        _ => Err("400 Bad Request"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_get_is_understood_and_nothing_else_is() {
        for (request, asked_for) in [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", Ok("/metrics")),
            ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", Ok("/metrics")),
            ("POST /metrics HTTP/1.1\r\n\r\n", Err("405 Method Not Allowed")),
            ("GET /metrics\r\n\r\n", Err("400 Bad Request")),
            ("GET /a b HTTP/1.1\r\n\r\n", Err("400 Bad Request")),
            ("", Err("400 Bad Request")),
            ("\r\n\r\n", Err("400 Bad Request")),
        ] {
            assert_eq!(asked(request.as_bytes()), asked_for, "{request:?}");
        }
        assert_eq!(asked(&[0xff, 0xfe, b' ']), Err("400 Bad Request"));
    }
}
