//! `include/rackmem.h` is what cbindgen makes of the functions here. To write it anew:
//!
//! ```text
//! RACKMEM_WRITE_HEADER=1 cargo test -p rackmem-capi header
//! ```

use std::path::Path;

use cbindgen::{Braces, Builder, Config, EnumConfig, ExportConfig, Language, RenameRule, Style};

const ABOUT: &str = "/* rackmem for C: reader-writer locks that carry their data.
 *
 * Made by cbindgen from crates/capi; do not edit.
 *
 *     rackmem_rack *rack;
 *     rackmem_thread *thread;
 *     rackmem_rwlock *lock;
 *     void *data;
 *     rackmem_join(\"rack.toml\", 1, &rack);             // or rackmem_open_embedded(4, 64 << 20, &rack)
 *     rackmem_thread_open(rack, 1, &thread);           // one for each thread
 *     rackmem_rwlock_create(thread, 1, 128, &lock);    // 128 bytes of zeroes on node 1
 *     rackmem_rwlock_write(lock, thread, &data);
 *     ...                                              // nobody else has the bytes at data
 *     rackmem_rwlock_unlock(lock, thread);
 *
 * A thread may hold any number of locks, each once. The data of a lock are poisoned when a thread is closed while it writes
 * them; a process that dies while it writes loses them (RACKMEM_LOST).
 *
 * A lock over sizeof(T) bytes is the same lock as a Locked<T> of a Rust program in the same rack.
 */";

fn header() -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let names = [
        ("RackmemRack", "rackmem_rack"),
        ("RackmemThread", "rackmem_thread"),
        ("RackmemRwlock", "rackmem_rwlock"),
        ("RackmemStatus", "rackmem_status"),
    ];
    let config = Config {
        language: Language::C,
        header: Some(ABOUT.to_owned()),
        include_guard: Some("RACKMEM_H".to_owned()),
        cpp_compat: true,
        style: Style::Both,
        braces: Braces::SameLine,
        line_length: 100,
        usize_is_size_t: true,
        documentation_style: cbindgen::DocumentationStyle::C99,
        export: ExportConfig {
            rename: names.map(|(from, to)| (from.to_owned(), to.to_owned())).into(),
            ..ExportConfig::default()
        },
        enumeration: EnumConfig {
            rename_variants: RenameRule::QualifiedScreamingSnakeCase,
            ..EnumConfig::default()
        },
        ..Config::default()
    };
    let mut builder = Builder::new().with_config(config);
    for file in ["status.rs", "rack.rs", "rwlock.rs"] {
        builder = builder.with_src(source.join(file));
    }
    let mut text = Vec::new();
    builder.generate().expect("the functions can be written as C").write(&mut text);
    let text = String::from_utf8(text).expect("C is text");
    // As our own enumeration is called what it is, its values need not repeat it.
    text.replace("RACKMEM_STATUS_", "RACKMEM_").replace("// # Safety\n", "// What has to be kept to:\n")
}

#[test]
fn the_header_is_what_the_functions_are() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/rackmem.h");
    let header = header();
    if std::env::var_os("RACKMEM_WRITE_HEADER").is_some() {
        std::fs::write(&path, &header).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == header,
        "include/rackmem.h is out of date; write it anew: RACKMEM_WRITE_HEADER=1 cargo test -p rackmem-capi header"
    );
}
