//! Where the processes of a rack find each other: a directory with a socket for each peer.
//!
//! Next to each socket lies a lock file, locked for as long as the peer lives. The kernel gives the lock back when
//! a process dies, however it dies, so whoever gets the lock knows that the socket beside it is a dead one's. What
//! must always hold: the directory is ours and nobody else can enter it, and one living process at most is a peer.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use rustix::process::geteuid;

use super::error::Error;
use crate::PeerId;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 64;

/// What a peer is called in the directory. Observers are numbered, as there may be a new one before the old one has
/// gone: by process, and within the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Name {
    pub(super) peer: PeerId,
    /// Zeroes for all but observers.
    pub(super) observer: (u32, u32),
}

impl Name {
    /// The name of a new connection of this process to the rack.
    pub(super) fn new(peer: PeerId) -> Self {
        static OBSERVERS: AtomicU32 = AtomicU32::new(0);
        let observer = match peer {
            PeerId::OBSERVER => (std::process::id(), OBSERVERS.fetch_add(1, Relaxed)),
            _ => (0, 0),
        };
        Self { peer, observer }
    }

    fn file(self, ending: &str) -> String {
        match (self.peer.as_node(), self.peer) {
            (Some(node), _) => format!("node-{}.{ending}", node.0),
            (None, PeerId::SWITCH) => format!("switch.{ending}"),
            (None, _) => format!("observer-{}-{}.{ending}", self.observer.0, self.observer.1),
        }
    }

    /// Its socket.
    pub(super) fn socket(self, dir: &Path) -> PathBuf {
        dir.join(self.file("sock"))
    }

    fn lock(self, dir: &Path) -> PathBuf {
        dir.join(self.file("lock"))
    }
}

/// This peer, as others find it. Dropping it takes its files away.
#[derive(Debug)]
pub(super) struct Rendezvous {
    pub(super) dir: PathBuf,
    pub(super) name: Name,
    pub(super) listener: OwnedFd,
    /// Held, not used. Dropped after the files are gone.
    _lock: File,
}

impl Rendezvous {
    /// Makes the directory if there is none, and this peer in it.
    pub(super) fn open(dir: &Path, name: Name) -> Result<Self, Error> {
        prepare(dir)?;
        // A socket that two processes know by different relative names would be two sockets.
        let dir = dir.canonicalize().map_err(|source| system("finding", dir, source))?;
        if name.peer == PeerId::OBSERVER {
            sweep_observers(&dir);
        }
        let lock = lock(&dir, name)?;
        let path = name.socket(&dir);
        // We have the lock: a socket that is there is a dead process's.
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(system("removing", &path, source));
            }
            _ => {}
        }
        let listener = listen_at(&path)?;
        Ok(Self { dir, name, listener, _lock: lock })
    }
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        // A file that cannot be removed is found to be a dead one's by whoever comes next.
        let _ = fs::remove_file(self.name.socket(&self.dir));
        let _ = fs::remove_file(self.name.lock(&self.dir));
    }
}

/// The directory exists, is ours, and nobody else can enter it.
fn prepare(dir: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .or_else(|source| if source.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(source) })
        .map_err(|source| system("creating", dir, source))?;
    let found = fs::symlink_metadata(dir).map_err(|source| system("looking at", dir, source))?;
    let us = geteuid().as_raw();
    if !found.is_dir() {
        return Err(Error::NotADirectory(dir.to_path_buf()));
    }
    if found.uid() != us {
        return Err(Error::Foreign { dir: dir.to_path_buf(), owner: found.uid(), us });
    }
    if found.mode() & 0o077 != 0 {
        return Err(Error::Open { dir: dir.to_path_buf(), mode: found.mode() & 0o777 });
    }
    Ok(())
}

fn lock(dir: &Path, name: Name) -> Result<File, Error> {
    let path = name.lock(dir);
    loop {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|source| system("opening", &path, source))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { peer: name.peer, lock: path }),
            Err(TryLockError::Error(source)) => return Err(system("locking", &path, source)),
        }
        // Its former holder may have removed it between our opening and our locking: then it is not the file that
        // the next one would find, and the lock says nothing.
        let ours = file.metadata().map_err(|source| system("looking at", &path, source))?;
        if fs::metadata(&path).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(file);
        }
    }
}

fn listen_at(path: &Path) -> Result<OwnedFd, Error> {
    let address = SocketAddrUnix::new(path).map_err(|_| Error::TooLong(path.to_path_buf()))?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(|source| system("making a socket for", path, source.into()))?;
    bind(&listener, &address).map_err(|source| system("binding a socket to", path, source.into()))?;
    listen(&listener, BACKLOG).map_err(|source| system("listening at", path, source.into()))?;
    Ok(listener)
}

/// Removes what killed observers have left: nobody else will ever have their names. What cannot be removed stays.
fn sweep_observers(dir: &Path) {
    let Ok(files) = fs::read_dir(dir) else { return };
    for path in files.flatten().map(|file| file.path()) {
        let is_lock = path.extension().is_some_and(|ending| ending == "lock")
            && path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"observer-"));
        if !is_lock {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() {
            let _ = fs::remove_file(path.with_extension("sock"));
            let _ = fs::remove_file(&path);
        }
    }
}

fn system(doing: &'static str, path: &Path, source: io::Error) -> Error {
    Error::System { doing, path: path.to_path_buf(), source }
}
