//! The Unix socket on which a switch's process says how the rack is: whoever connects is given one JSON document.
//!
//! What must always hold: nobody who connects can make the switch wait; the socket goes with the process.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rackmem::RackFile;
use status::ask::socket_of;

use super::super::runtime;
use super::Answers;
use crate::fault::Fault;

/// Who does not take the document in this time gets no more of it.
const MOST_WAIT: Duration = Duration::from_secs(1);
/// Between two attempts to accept, where the system has run out of something.
const PAUSE: Duration = Duration::from_millis(100);

/// The socket in the file system. Dropping this takes it away.
pub(in super::super) struct Bound {
    path: PathBuf,
}

/// Answers on a thread of its own, for as long as this process lives.
pub(in super::super) fn serve(file: &RackFile, answers: Answers) -> Result<Bound, Fault> {
    let path = socket_of(file);
    // This process is the switch of the rack, so whoever made that socket is dead.
    runtime::remove(&path);
    let failed = |error| Fault::failed(format_args!("cannot listen on {}: {error}", path.display()));
    let listener = UnixListener::bind(&path).map_err(failed)?;
    let bound = Bound { path: path.clone() };
    let server = thread::Builder::new().name("status".to_owned()).spawn(move || {
        for connection in listener.incoming() {
            match connection {
                Ok(connection) => tell(connection, &answers),
                Err(_) => thread::sleep(PAUSE),
            }
        }
    });
    server.map_err(failed)?;
    Ok(bound)
}

fn tell(mut connection: UnixStream, answers: &Answers) {
    let text = answers.status().and_then(|status| serde_json::to_vec(&status).ok()).unwrap_or_default();
    // Whoever asked and does not listen has changed their mind.
    let _ = connection.set_write_timeout(Some(MOST_WAIT)).and_then(|()| connection.write_all(&text));
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
