//! Asking a switch's process how its rack is: over its socket on this machine, or else over HTTP, where the rack file
//! says that it answers.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rackmem::RackFile;

use crate::document::Status;

const MOST_WAIT: Duration = Duration::from_secs(2);
/// Who answers over HTTP asks the nodes first, for as long.
const MOST_WAIT_HTTP: Duration = Duration::from_secs(5);
/// 64 nodes take about 100 KiB.
const LONGEST_ANSWER: u64 = 1 << 20;

/// The name of the socket in the runtime directory at which the switch's process answers.
pub const SOCKET: &str = "status.sock";

/// Where the switch's process of a rack answers on its machine.
pub fn socket_of(file: &RackFile) -> PathBuf {
    file.runtime.join(SOCKET)
}

/// Why there is no answer.
#[derive(Debug)]
pub enum AskError {
    /// Nothing answers on this machine, and the rack file names no address for others.
    NotHere {
        /// Where it would.
        socket: PathBuf,
        /// Why it does not.
        error: io::Error,
    },
    /// Nothing answers over HTTP.
    NotThere {
        /// Where it would.
        address: SocketAddr,
        /// Why it does not.
        error: io::Error,
    },
    /// The switch has only just started.
    NotYet,
    /// What answers is no switch of this version.
    Nonsense(String),
}

impl std::error::Error for AskError {}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHere { socket, error } => write!(
                f,
                "nothing answers on this machine ({}: {error}); if it runs on another one, give it `metrics` under [switch]",
                socket.display()
            ),
            Self::NotThere { address, error } => {
                write!(f, "nothing answers at http://{address}/status: {error}")
            }
            Self::NotYet => f.write_str("it has only just started"),
            Self::Nonsense(what) => write!(f, "it says something else: {what}"),
        }
    }
}

/// How the rack is, as far as its switch knows.
///
/// # Errors
/// If nothing answers, or something else does.
pub fn ask(file: &RackFile) -> Result<Status, AskError> {
    match (ask_at(&socket_of(file)), file.switch_metrics) {
        (Err(AskError::NotHere { .. }), Some(address)) => {
            read(&over_http(address).map_err(|error| AskError::NotThere { address, error })?)
        }
        (answer, _) => answer,
    }
}

/// The same of the rack whose switch has this socket.
///
/// # Errors
/// As [`ask`].
pub fn ask_at(socket: &Path) -> Result<Status, AskError> {
    let answer = over_socket(socket);
    read(&answer.map_err(|error| AskError::NotHere { socket: socket.to_owned(), error })?)
}

fn read(answer: &[u8]) -> Result<Status, AskError> {
    if answer.is_empty() {
        return Err(AskError::NotYet);
    }
    serde_json::from_slice(answer).map_err(|error| AskError::Nonsense(error.to_string()))
}

fn over_socket(socket: &Path) -> io::Result<Vec<u8>> {
    let connection = UnixStream::connect(socket)?;
    connection.set_read_timeout(Some(MOST_WAIT))?;
    let mut answer = Vec::new();
    connection.take(LONGEST_ANSWER).read_to_end(&mut answer)?;
    Ok(answer)
}

fn over_http(address: SocketAddr) -> io::Result<Vec<u8>> {
    let mut connection = TcpStream::connect_timeout(&address, MOST_WAIT)?;
    connection.set_read_timeout(Some(MOST_WAIT_HTTP))?;
    connection.set_write_timeout(Some(MOST_WAIT))?;
    write!(connection, "GET /status HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    connection.take(LONGEST_ANSWER).read_to_end(&mut answer)?;
    let other = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    if answer.starts_with(b"HTTP/1.1 503 ") {
        return Ok(Vec::new());
    }
    if !answer.starts_with(b"HTTP/1.1 200 ") {
        return Err(other("not a switch's process"));
    }
    let head =
        answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(|| other("half an answer"))?;
    Ok(answer.split_off(head + 4))
}
