//! Programs that outlive the process that attached them: their names in a file system of bpf.
//!
//! ```text
//!   DIR/owner      whose they are: a random number of that process; the switch's address; which programs they are
//!   DIR/blocks-…   the program for blocks, its lock, its state, and what holds it at each port
//!   DIR/locks-…    the same of the program for locks
//! ```
//!
//! A process that dies leaves them, and packets go on: within the epoch that the programs are in, and as long as nodes have a
//! lease, for nobody renews those. The next process *claims* them: its number takes the place of the former one's, which
//! ends if it is alive, and only then gives up the address that both must have. So whoever has the address and the
//! programs is alone with them. It begins an epoch before it reads what they hold.
//!
//! What must always hold: two processes never write the state of a program; what is there in part, or is of another version or
//! rack, is taken away and made anew.

use std::fs::{self, DirBuilder};
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use switch::ebpf::KernelProgram;
use transport::WIRE_VERSION;

use crate::kernel::Error;
use crate::system::{self, Shared};

/// What says whose they are.
const OWNER_NAME: &str = "owner";
/// What is about to get its name.
const NEW: &str = "new";
/// What the parts of programs are called first.
pub(crate) const PROGRAM_NAMES: [&str; 2] = ["blocks", "locks"];
const OWNER_BYTES: usize = 24;
/// Where it says what.
const OWNER: usize = 0;
const ADDRESS: usize = 8;
const PROGRAMS: usize = 16;

/// Whose the pinned programs are: this process's, until another one comes.
pub struct Claim {
    directory: PathBuf,
    owner: Shared,
    /// The number of this process.
    me: u64,
}

impl Claim {
    /// Claims what is pinned in this directory, which is made if it is not there. A process that had it ends, soon.
    ///
    /// # Errors
    /// If nothing can be pinned there, or what is there is of a switch at another address.
    pub fn make(directory: &Path, here: SocketAddrV4, me: u64) -> Result<Self, Error> {
        let failed = |error| Error::Keep { directory: directory.to_owned(), error };
        let is_new = !directory.exists();
        // Keys of the rack are in what is kept.
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let mut owner = owner(&directory.join(OWNER_NAME)).map_err(|error| {
            if is_new {
                // Of another file system: nothing of ours stays there.
                let _ = fs::remove_dir(directory);
            }
            failed(error)
        })?;
        let (theirs, mine) =
            (owner.word(ADDRESS), u64::from(u32::from(*here.ip())) << 16 | u64::from(here.port()));
        if theirs != 0 && theirs != mine {
            let there = SocketAddrV4::new(((theirs >> 16) as u32).into(), theirs as u16);
            return Err(Error::KeptOfAnother { directory: directory.to_owned(), there });
        }
        owner.write(ADDRESS, &mine.to_le_bytes());
        // Nobody has 0.
        let me = me | 1;
        owner.write(OWNER, &me.to_le_bytes());
        Ok(Self { directory: directory.to_owned(), owner, me })
    }

    /// False: another process has claimed them since.
    pub(crate) fn holds(&self) -> bool {
        self.owner.word(OWNER) == self.me
    }

    /// Where they are.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Something could not be done there.
    pub(crate) fn failed(&self, error: io::Error) -> Error {
        Error::Keep { directory: self.directory.clone(), error }
    }

    /// The name of a part of a program.
    pub(crate) fn name(&self, program: &str, part: &str) -> PathBuf {
        self.directory.join(format!("{program}-{part}"))
    }

    /// True if these very programs are here, whole.
    pub(crate) fn has(&self, programs: [&KernelProgram; 4]) -> bool {
        self.owner.word(PROGRAMS) == digest(programs)
    }

    /// All of them are here by now.
    pub(crate) fn is_whole(&mut self, programs: [&KernelProgram; 4]) {
        self.owner.write(PROGRAMS, &digest(programs).to_le_bytes());
    }

    /// Takes away whatever is here: what is at ports leaves them.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.owner.write(PROGRAMS, &0_u64.to_le_bytes());
        self.clear_but(|_| false)
    }

    /// Takes away what does not belong here.
    pub(crate) fn clear_but(&self, stays: impl Fn(&Path) -> bool) -> io::Result<()> {
        remove_parts(&self.directory, stays)
    }

    /// Pins this in the place of what has the name.
    pub(crate) fn replace(&self, what: &OwnedFd, name: &Path) -> io::Result<()> {
        let new = self.directory.join(NEW);
        let _ = fs::remove_file(&new);
        system::pin(what, &new)?;
        fs::rename(&new, name)
    }

    /// Takes away what switches have pinned in this directory, and the directory if that was all.
    ///
    /// # Errors
    /// If it is not ours to take away.
    pub fn remove(directory: &Path) -> io::Result<()> {
        let owner = directory.join(OWNER_NAME);
        if !owner.exists() {
            return Ok(());
        }
        // Of another file system: no switch has pinned it.
        system::pinned(&owner)?;
        remove_parts(directory, |_| false)?;
        fs::remove_file(owner)?;
        match fs::remove_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(error),
            _ => Ok(()),
        }
    }
}

/// Takes away parts of programs that do not stay; what others have pinned beside them is theirs.
fn remove_parts(directory: &Path, stays: impl Fn(&Path) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_part = |name: &str| name == NEW || PROGRAM_NAMES.iter().any(|of| is_of(name, of));
        if entry.file_name().to_str().is_some_and(is_part) && !stays(&entry.path()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn is_of(name: &str, program: &str) -> bool {
    name.strip_prefix(program).is_some_and(|rest| rest.starts_with('-'))
}

/// What says whose they are; made if it is not there.
fn owner(path: &Path) -> io::Result<Shared> {
    let map = match system::pinned(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let map = system::state_map(OWNER_BYTES)?;
            match system::pin(&map, path) {
                // Somebody else is doing the same.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => system::pinned(path)?,
                pinned => pinned.map(|()| map)?,
            }
        }
        opened => opened?,
    };
    Shared::map(&map, OWNER_BYTES)
}

/// A number that other programs do not have (FNV-1a), nor those of a version whose packets differ.
fn digest(programs: [&KernelProgram; 4]) -> u64 {
    let code = programs.iter().flat_map(|program| &program.code.instructions);
    let bytes = code.flat_map(|instruction| instruction.to_bytes());
    let sizes = programs.iter().flat_map(|program| (program.layout.bytes as u64).to_le_bytes());
    let all = [WIRE_VERSION].into_iter().chain(sizes).chain(bytes);
    all.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        | 1
}
