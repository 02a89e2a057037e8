//! What holds of every command that loads something into a rack and takes seconds for it.

use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use crate::shell::{Temporary, children_of, signal, text, until};

fn start(temporary: &Temporary, args: &[&str], transport: &str) -> Child {
    let mut command = temporary.command(&[args, &["--transport", transport]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Ctrl-C ends it while it loads, in one process and in several, and leaves nothing.
pub(crate) fn ctrl_c_ends_it(name: &str, args: &[&str]) {
    for transport in ["inline", "shm"] {
        let temporary = Temporary::new(&format!("{name}-stop-{transport}"));
        let child = start(&temporary, args, transport);
        // Both the rack's processes, and the file descriptors of one, are there soon; loading takes seconds.
        thread::sleep(Duration::from_millis(700));
        signal("-INT", child.id());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "");
        until("the end of all processes", || temporary.runtime_directories().is_empty());
    }
}

/// A node of two whose process is killed is named.
pub(crate) fn a_dead_node_is_named(name: &str, args: &[&str]) {
    let temporary = Temporary::new(&format!("{name}-dies"));
    let child = start(&temporary, args, "shm");
    until("the start of all processes", || children_of(child.id()).len() == 3);
    signal("-KILL", *children_of(child.id()).iter().max().unwrap());
    let output = child.wait_with_output().unwrap();
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("the process of node ") && told.contains("was killed by signal 9"), "{told}");
    temporary.assert_nothing_left();
}
