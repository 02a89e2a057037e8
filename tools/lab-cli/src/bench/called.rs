//! What a call takes: from Rust, of functions that are not inlined, and from C, of the library's. For `rackmem-lab bench instructions`.
//!
//! What must hold: a call from C takes at most [`MORE`] instructions more than the same call from Rust.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::process::Command;

use rackmem::{Error, GlobalAddr, LockError, Locked, LockedWriteGuard, NodeHandle, Words};

use super::instructions::of_one;
use crate::callgrind::Callgrind;
use crate::peers::installed;
use cli::fault::Fault;

/// So many more are too many, of each call.
const MORE: f64 = 10.0;
/// The program, seen from the repository's folder.
const PROGRAM: &str = "crates/capi/tests/c/cost.c";
const HEADERS: &str = "crates/capi/include";
/// What it does, and in how many calls.
const OPERATIONS: [(&str, f64); 4] =
    [("read-hit", 1.0), ("write-hit", 1.0), ("fetch-add", 1.0), ("lock", 2.0)];

#[inline(never)]
pub(super) fn read_word(node: &mut NodeHandle, addr: GlobalAddr) -> Result<u64, Error> {
    node.read_word(addr)
}

#[inline(never)]
pub(super) fn write_word(node: &mut NodeHandle, addr: GlobalAddr, value: u64) -> Result<(), Error> {
    node.write_word(addr, value)
}

#[inline(never)]
pub(super) fn fetch_add(
    words: &Words<u64>,
    node: &mut NodeHandle,
    index: usize,
    operand: u64,
) -> Result<u64, Error> {
    words.fetch_add(node, index, operand)
}

#[inline(never)]
pub(super) fn lock<'a>(
    value: &'a Locked<[u64; 4]>,
    node: &mut NodeHandle,
) -> Result<LockedWriteGuard<'a, [u64; 4]>, LockError> {
    value.write(node)
}

#[inline(never)]
pub(super) fn unlock(guard: LockedWriteGuard<'_, [u64; 4]>) {
    drop(guard);
}

/// Adds what calls from C take, as `c-NAME`. Returns those that take too much more than `NAME-call`.
pub(super) fn count(
    callgrind: &Callgrind,
    folder: &Path,
    counts: &mut BTreeMap<String, f64>,
) -> Result<Vec<String>, Fault> {
    let compiler =
        installed("cc").ok_or_else(|| Fault::usage("calls from C are counted, and there is no cc"))?;
    let program = folder.join("cost");
    let library = library()?;
    let mut compile = Command::new(compiler);
    compile.args(["-std=c11", "-O2", "-pthread", "-I", HEADERS, PROGRAM]).arg(library);
    succeeds(compile.args(["-lm", "-ldl", "-o"]).arg(&program), PROGRAM)?;
    let mut too_long = Vec::new();
    for (name, calls) in OPERATIONS {
        let counted = format!("counted_{}", name.replace('-', "_"));
        let total = callgrind.around(&counted, |under| {
            let mut run = Command::new(&under[0]);
            succeeds(run.args(&under[1..]).arg(&program).arg(name).stdout(std::process::Stdio::null()), name)
        })?;
        let (from_c, from_rust) = (of_one(total), counts[&format!("{name}-call")]);
        if from_c > from_rust + calls * MORE {
            too_long.push(format!("{name} {from_c} instead of {from_rust}"));
        }
        counts.insert(format!("c-{name}"), from_c);
    }
    Ok(too_long)
}

/// The library, compiled as this command is when it counts.
fn library() -> Result<std::path::PathBuf, Fault> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    succeeds(build.args(["build", "--quiet", "--profile", "counting", "-p", "rackmem-capi"]), "cargo")?;
    let me = env::current_exe().map_err(|error| Fault::failed(format_args!("no file: {error}")))?;
    let target = me.ancestors().nth(2).ok_or_else(|| Fault::failed("this command is in no target folder"))?;
    Ok(target.join("counting/librackmem_c.a"))
}

fn succeeds(command: &mut Command, what: &str) -> Result<(), Fault> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Fault::failed(format_args!("{what}: {status}"))),
        Err(error) => Err(Fault::failed(format_args!("{what}: {error}"))),
    }
}
