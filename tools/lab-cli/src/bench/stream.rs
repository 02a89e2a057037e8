//! A stream of TCP from a node to another one, over cables: what is not the rack's, and passes the switch's ports all the same.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that are written and read at a time.
const CHUNK: usize = 256 << 10;
/// Whoever receives is there by then.
const NOBODY_AFTER: Duration = Duration::from_secs(10);
const PORT: u16 = 7_500;

/// Receives a stream, and says when all of it is here; its bytes.
pub(super) fn receive() -> io::Result<u64> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    let (mut stream, _) = listener.accept()?;
    let (mut chunk, mut received) = (vec![0; CHUNK], 0);
    loop {
        match stream.read(&mut chunk)? {
            0 => break,
            bytes => received += bytes as u64,
        }
    }
    stream.write_all(&[1])?;
    Ok(received)
}

/// Sends so many bytes to whoever [receives](receive) there; bytes a second, until all of them have arrived.
pub(super) fn send(to: Ipv4Addr, bytes: u64) -> io::Result<f64> {
    let until = Instant::now() + NOBODY_AFTER;
    let mut stream = loop {
        match TcpStream::connect(SocketAddrV4::new(to, PORT)) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && Instant::now() < until => {
                thread::sleep(Duration::from_millis(1));
            }
            connected => break connected?,
        }
    };
    let chunk = vec![0x5a; CHUNK];
    let began = Instant::now();
    let mut left = bytes;
    while left > 0 {
        let now = left.min(CHUNK as u64);
        stream.write_all(&chunk[..now as usize])?;
        left -= now;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    stream.read_exact(&mut [0])?;
    Ok(bytes as f64 / began.elapsed().as_secs_f64())
}
