//! A file that is written beside the one whose place it takes when it is whole.
//!
//! What must always hold: until then what was there stays, and whatever goes wrong leaves nothing else. (Only who is killed without notice
//! leaves the part that was written, as `.FILE.PID.part`.)

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use apps::snapshot;

use crate::fault::Fault;

/// The file that is being written.
pub(super) struct WholeFile {
    path: PathBuf,
    part: PathBuf,
    file: File,
    is_whole: bool,
}

/// Why a file was not written.
pub(super) fn unwritten(path: &Path, why: &io::Error) -> Fault {
    let instead = match why.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "make room, or name a file elsewhere"
        }
        _ => "name a file in a folder that exists and that you can write to",
    };
    Fault::failed(format_args!(
        "{}: cannot be written: {why}; what was there stays; {instead}",
        path.display()
    ))
}

impl WholeFile {
    /// Begins it, if a snapshot may take the place of what is there.
    pub(super) fn create(path: &Path) -> Result<Self, Fault> {
        let failed = |why: io::Error| unwritten(path, &why);
        let shown = path.display();
        let (path, old) = match fs::metadata(path) {
            Ok(old) if !old.is_file() => {
                return Err(Fault::usage(format_args!(
                    "{shown} is no plain file, and nothing else can be replaced by a snapshot: name another one"
                )));
            }
            Ok(_) if !is_replaceable(path).map_err(failed)? => {
                return Err(Fault::failed(format_args!(
                    "{shown} is something else than a snapshot, and none is written over it: name another file, or remove it"
                )));
            }
            // What a link leads to is what is replaced.
            Ok(old) => (fs::canonicalize(path).map_err(failed)?, Some(old.permissions())),
            Err(why) if why.kind() == ErrorKind::NotFound => (path.to_owned(), None),
            Err(why) => return Err(failed(why)),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let part = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
        // Whatever the rack has in memory, others need not read it.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part).map_err(failed)?;
        let this = Self { path, part, file, is_whole: false };
        if let Some(old) = old {
            this.file.set_permissions(old).map_err(failed)?;
        }
        Ok(this)
    }

    /// Where to write.
    pub(super) fn writer(&self) -> Result<File, Fault> {
        self.file.try_clone().map_err(|why| unwritten(&self.path, &why))
    }

    /// It is whole: it takes the place of what was there.
    pub(super) fn end(mut self) -> Result<(), Fault> {
        let done = self.file.sync_all().and_then(|()| fs::rename(&self.part, &self.path));
        done.map_err(|why| unwritten(&self.path, &why))?;
        self.is_whole = true;
        // So that it has its name also after a loss of power. Not every file system has this.
        if let Some(Ok(folder)) = self.path.parent().map(File::open) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if !self.is_whole
            && let Err(why) = fs::remove_file(&self.part)
        {
            say!("warning: cannot remove {}: {why}", self.part.display());
        }
    }
}

/// True if there is nothing in a file, or a snapshot.
fn is_replaceable(path: &Path) -> io::Result<bool> {
    let mut begins = Vec::new();
    File::open(path)?.take(snapshot::MAGIC.len() as u64).read_to_end(&mut begins)?;
    Ok(begins.is_empty() || begins == snapshot::MAGIC)
}
