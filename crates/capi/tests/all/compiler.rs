//! Programs in C and C++ that are compiled, linked with the library and run: for tests of other crates, too, which include this file.

use std::path::{Path, PathBuf};
use std::process::Command;

/// How programs are compiled.
pub(crate) const C: [&str; 2] = ["cc", "-std=c11"];
/// As C++.
pub(crate) const CPP: [&str; 2] = ["c++", "-std=c++17"];

pub(crate) fn crate_dir() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../capi"))
}

/// Where cargo has put the library in this form.
pub(crate) fn library(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let deps = test.parent().unwrap();
    let places = [deps.join(name), deps.parent().unwrap().join(name)];
    places.iter().find(|place| place.exists()).cloned().unwrap_or_else(|| panic!("no {name} in {places:?}"))
}

/// An empty folder of this test's.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The program of a source, compiled with these arguments behind it. None: there is no such compiler.
pub(crate) fn compiled(
    source: &Path,
    name: &str,
    [compiler, standard]: [&str; 2],
    library: &[&str],
) -> Option<PathBuf> {
    if Command::new(compiler).arg("--version").output().is_err() {
        println!("SKIPPED: there is no compiler `{compiler}` here");
        return None;
    }
    let executable = folder(name).join("program");
    let language = if compiler == "c++" { "c++" } else { "c" };
    let compiled = Command::new(compiler)
        .args([standard, "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread", "-I"])
        .arg(crate_dir().join("include"))
        .args(["-x", language])
        .arg(source)
        .args(["-x", "none"])
        .args(library)
        .args(["-lm", "-ldl", "-o"])
        .arg(&executable)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Some(executable)
}

pub(crate) fn source(name: &str) -> PathBuf {
    crate_dir().join("tests/c").join(name)
}

/// Runs a program, which has to say at last that all is well.
pub(crate) fn runs(program: &Path) {
    let ran = Command::new(program).output().unwrap();
    assert!(ran.status.success(), "{}: {}", ran.status, String::from_utf8_lossy(&ran.stderr));
    assert!(ran.stdout.ends_with(b"ok\n"), "{}", String::from_utf8_lossy(&ran.stdout));
}
