//! Says to the linker what the shared library is called: with the version that programs need, so that the loader refuses another one.
//!
//! Versions of symbols are not in it: rustc gives the linker a version script of its own, without a name. GNU ld takes no second one
//! beside that, and lld ignores it. `docs/c.md` says how to link the static library into a shared one with `rackmem.map`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        let [major, minor] = ["MAJOR", "MINOR"].map(|part| {
            let name = format!("CARGO_PKG_VERSION_{part}");
            std::env::var(&name).unwrap_or_else(|error| panic!("cargo sets {name}: {error}"))
        });
        // While the major version is 0, a minor one may change everything.
        let version = if major == "0" { format!("0.{minor}") } else { major };
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librackmem_c.so.{version}");
    }
}
