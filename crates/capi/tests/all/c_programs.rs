//! C programs that use the library as their authors would: compiled with `cc`, linked with it, run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where cargo has put the library in this form.
fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let deps = test.parent().unwrap();
    let places = [deps.join(name), deps.parent().unwrap().join(name)];
    places.iter().find(|place| place.exists()).cloned().unwrap_or_else(|| panic!("no {name} in {places:?}"))
}

/// Compiles a program with these arguments behind it, and runs it.
fn runs(program: &str, name: &str, library_args: &[&str]) {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("SKIPPED: there is no C compiler `cc` here");
        return;
    }
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let executable = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiled = Command::new("cc")
        .args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"])
        .arg("-I")
        .arg(crate_dir.join("include"))
        .arg(crate_dir.join("tests/c").join(program))
        .args(library_args)
        .args(["-lm", "-ldl", "-o"])
        .arg(&executable)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(&executable).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(ran.stdout, b"ok\n");
}

#[test]
fn a_c_program_with_the_static_library_uses_locks_from_all_threads_and_nodes() {
    let library = library("librackmem_c.a");
    runs("locks.c", "locks_static", &[library.to_str().unwrap()]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_c_program_with_the_shared_library_uses_locks_from_all_threads_and_nodes() {
    let library = library("librackmem_c.so");
    let folder = library.parent().unwrap().to_str().unwrap();
    runs("locks.c", "locks_shared", &[library.to_str().unwrap(), &format!("-Wl,-rpath,{folder}")]);
}
