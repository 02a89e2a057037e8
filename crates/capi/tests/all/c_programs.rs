//! C programs that use the library as their authors would: compiled, as C and as C++, linked with it, run.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rackmem::rack_file::TransportKind;

use crate::compiler::{C, CPP, compiled, crate_dir, folder, library, runs, source};
use crate::places::Places;

/// As C and as C++, with the static library.
fn runs_as_both(name: &str) {
    let library = library("librackmem_c.a");
    for language in [C, CPP] {
        let to = format!("{name}-{}", language[0]);
        if let Some(program) = compiled(&source(name), &to, language, &[library.to_str().unwrap()]) {
            runs(&program);
        }
    }
}

#[test]
fn a_c_program_with_the_static_library_uses_locks_from_all_threads_and_nodes() {
    runs_as_both("locks.c");
}

#[test]
fn every_function_does_what_it_says_and_refuses_what_makes_no_sense() {
    runs_as_both("functions.c");
}

#[test]
fn regions_come_and_go_under_a_lock_and_what_cannot_be_is_refused() {
    runs_as_both("regions.c");
}

#[test]
fn names_are_opened_made_listed_and_removed_and_what_is_no_name_is_refused() {
    runs_as_both("names.c");
}

/// Links with a shared library that the loader finds by the name that programs ask for.
#[cfg(target_os = "linux")]
fn runs_with_shared(shared: &Path, to: &str) -> Option<PathBuf> {
    let folder = folder(&format!("{to}-library"));
    std::fs::copy(shared, folder.join("librackmem_c.so")).unwrap();
    std::os::unix::fs::symlink("librackmem_c.so", folder.join(soname())).unwrap();
    let path = folder.to_str().unwrap();
    let arguments = [format!("-L{path}"), "-lrackmem_c".to_owned(), format!("-Wl,-rpath,{path}")];
    let program = compiled(&source("locks.c"), to, C, &arguments.each_ref().map(String::as_str))?;
    runs(&program);
    // Without that name there is no program: it was linked by it.
    std::fs::remove_file(folder.join(soname())).unwrap();
    assert!(!Command::new(&program).output().unwrap().status.success(), "it asks for {}", soname());
    Some(program)
}

/// The major version; while that is 0, the minor one, too.
#[cfg(target_os = "linux")]
fn soname() -> String {
    let [major, minor] = [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR")];
    let version = if major == "0" { format!("0.{minor}") } else { major.to_owned() };
    format!("librackmem_c.so.{version}")
}

#[test]
#[cfg(target_os = "linux")]
fn a_c_program_with_the_shared_library_asks_for_it_by_its_version() {
    runs_with_shared(&library("librackmem_c.so"), "locks-shared");
}

#[test]
#[cfg(target_os = "linux")]
fn the_static_library_can_be_linked_into_a_shared_one_whose_symbols_have_versions() {
    if Command::new("cc").arg("--version").output().is_err() {
        return println!("SKIPPED: there is no compiler `cc` here");
    }
    let shared = folder("versioned").join("librackmem_c.so");
    let map = format!("-Wl,--version-script={}", crate_dir().join("rackmem.map").display());
    let linked = Command::new("cc")
        .args(["-shared", "-Wl,--whole-archive"])
        .arg(library("librackmem_c.a"))
        .args(["-Wl,--no-whole-archive", "-Wl,--gc-sections", &map])
        .arg(format!("-Wl,-soname,{}", soname()))
        .args(["-pthread", "-lm", "-ldl", "-o"])
        .arg(&shared)
        .output()
        .unwrap();
    assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
    let program = runs_with_shared(&shared, "locks-versioned").expect("there is a compiler");
    let version = soname().replace("librackmem_c.so.", "RACKMEM_");
    let bytes = std::fs::read(program).unwrap();
    assert!(
        bytes.windows(version.len()).any(|part| part == version.as_bytes()),
        "the program needs symbols of {version}: see rackmem.map"
    );
}

/// A process of `processes.c`, which ends with this.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn start(program: &Path, file: &Path, how: &str, node: u16, all: usize, addresses: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.arg(file).args([how, &node.to_string(), &all.to_string()]).args(addresses);
        Self(command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap())
    }

    fn ends_well(mut self, said: &mut impl std::io::Read) {
        let mut all = String::new();
        said.read_to_string(&mut all).unwrap();
        let status = self.0.wait().unwrap();
        assert!(status.success() && all.ends_with("ok\n"), "{status:?} {all}");
    }
}

/// Some of what the processes share outlives nodes.
const COPIES: &str = "copies = 2\n";

/// One process makes everything, the others find it by address; all change it.
fn share(places: &Places, processes: &[(&str, u16)], name: &str) {
    share_by("processes.c", places, processes, name);
}

fn share_by(source_of: &str, places: &Places, processes: &[(&str, u16)], name: &str) {
    let library = library("librackmem_c.a");
    let Some(program) = compiled(&source(source_of), name, C, &[library.to_str().unwrap()]) else {
        return;
    };
    let ((how, node), others) = processes.split_first().unwrap();
    let file = places.file();
    let mut first = Process::start(&program, &file, how, *node, processes.len(), &[]);
    let mut said = BufReader::new(first.0.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let addresses: Vec<&str> = line.split_whitespace().collect();
    let others: Vec<_> = others
        .iter()
        .map(|(how, node)| Process::start(&program, &file, how, *node, processes.len(), &addresses))
        .collect();
    first.ends_well(&mut said);
    for mut other in others {
        let mut said = other.0.stdout.take().unwrap();
        other.ends_well(&mut said);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn three_processes_share_everything_over_shared_memory() {
    let places = Places::start_some("c-shm", TransportKind::SharedMemory, COPIES, 0);
    share(&places, &[("join", 0), ("join", 1), ("join", 2)], "processes-shm");
}

#[test]
#[cfg(target_os = "linux")]
fn processes_that_are_attached_to_daemons_share_everything() {
    let mut places = Places::start("c-attached", TransportKind::SharedMemory, COPIES);
    drop(places.attached(rackmem::Rack::attach));
    share(&places, &[("attach", 0), ("attach", 1), ("attach", 1), ("attach", 2)], "processes-attached");
}

#[test]
#[cfg(target_os = "linux")]
fn three_processes_share_everything_over_udp() {
    let places = Places::start_some("c-udp", TransportKind::Udp, COPIES, 0);
    share(&places, &[("join", 0), ("join", 1), ("join", 2)], "processes-udp");
}

#[test]
#[cfg(target_os = "linux")]
fn three_processes_share_pointers_in_mapped_memory() {
    if let Err(why) = rackmem::can_map() {
        return println!("SKIPPED: {why}");
    }
    for (name, transport) in [("mapped-shm", TransportKind::SharedMemory), ("mapped-udp", TransportKind::Udp)]
    {
        let places = Places::start_some(name, transport, "", 0);
        share_by("mapped.c", &places, &[("join", 0), ("join", 1), ("join", 2)], name);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_access_to_memory_that_is_freed_or_not_mapped_any_more_ends_the_process_with_a_line() {
    if let Err(why) = rackmem::can_map() {
        return println!("SKIPPED: {why}");
    }
    use std::os::unix::process::ExitStatusExt as _;
    let library = library("librackmem_c.a");
    let Some(program) = compiled(&source("mapped.c"), "mapped-last", C, &[library.to_str().unwrap()]) else {
        return;
    };
    for (how, signal, says) in
        [("freed", 6, "it belongs to no allocation"), ("closed", 11, "it is not mapped, or not any more")]
    {
        let places = Places::start_some("mapped-last", TransportKind::SharedMemory, "", 2);
        let ran = Command::new(&program).arg(places.file()).args([how, "2"]).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.signal() == Some(signal) && said.contains(says), "{:?}: {said}", ran.status);
        assert!(said.contains("rackmem: 2:0x"), "{said}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn three_processes_share_pointers_in_what_a_lock_guards() {
    for (name, transport, config) in [
        ("guarded-shm", TransportKind::SharedMemory, ""),
        ("guarded-udp", TransportKind::Udp, ""),
        ("guarded-copies", TransportKind::SharedMemory, COPIES),
    ] {
        let places = Places::start_some(name, transport, config, 0);
        share_by("guarded.c", &places, &[("join", 0), ("join", 1), ("join", 2)], name);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_access_to_what_a_lock_guards_that_is_not_held_ends_the_process_with_a_line() {
    use std::os::unix::process::ExitStatusExt as _;
    let library = library("librackmem_c.a");
    let Some(program) = compiled(&source("guarded.c"), "guarded-last", C, &[library.to_str().unwrap()])
    else {
        return;
    };
    for how in ["load", "store"] {
        let places = Places::start_some("guarded-last", TransportKind::SharedMemory, "", 2);
        let ran = Command::new(&program).arg(places.file()).args([how, "2"]).output().unwrap();
        let (lock, said) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        let lock = rackmem::GlobalAddr::from_bits(lock.trim().parse().unwrap());
        assert!(ran.status.signal() == Some(11), "{how}, {:?}: {said}", ran.status);
        assert!(
            said.contains(&format!("it is guarded by the lock at {lock}, which is not held here")),
            "{said}"
        );
    }
}

/// What `mapped_system.c` does in each of these ways, as a node beside two of this process.
#[cfg(target_os = "linux")]
fn system(name: &str, ways: &[&str], ends: impl Fn(&str, std::process::Output)) {
    if let Err(why) = rackmem::can_map() {
        return println!("SKIPPED: {why}");
    }
    let library = library("librackmem_c.a");
    let program = compiled(&source("mapped_system.c"), name, C, &[library.to_str().unwrap()]);
    let Some(program) = program else { return };
    for how in ways {
        let places = Places::start_some(name, TransportKind::SharedMemory, "", 2);
        let mut command = Command::new(&program);
        command.arg(places.file()).args([how, "2"]).arg(program.parent().unwrap());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut said, mut line) = (BufReader::new(process.stdout.take().unwrap()), String::new());
        said.read_line(&mut line).unwrap();
        if let Ok(addr) = line.trim().parse() {
            // It may be lost with that process.
            let _ = places.nodes[0].here().write_word(rackmem::GlobalAddr::from_bits(addr), 1);
        }
        let mut ended = process.wait_with_output().unwrap();
        std::io::Read::read_to_string(&mut said, &mut line).unwrap();
        ended.stdout = line.into_bytes();
        ends(how, ended);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_program_that_has_mapped_memory_keeps_its_signals_and_reads_files_into_it() {
    system("mapped-system", &["signals", "direct"], |how, ended| {
        let (said, errors) =
            (String::from_utf8(ended.stdout).unwrap(), String::from_utf8_lossy(&ended.stderr));
        said.lines().filter(|line| line.starts_with("SKIPPED")).for_each(|line| println!("{line}"));
        assert!(ended.status.success() && said.ends_with("ok\n"), "{how}: {}: {said}{errors}", ended.status);
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_program_that_has_moved_or_unmapped_mapped_pages_ends_with_a_line() {
    use std::os::unix::process::ExitStatusExt as _;
    system("mapped-moved", &["moved", "shrunk"], |how, ended| {
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.signal() == Some(6), "{how}: {:?}: {said}", ended.status);
        assert!(said.starts_with("rackmem: 0:0x") && said.contains("mremap"), "{how}: {said}");
    });
}
