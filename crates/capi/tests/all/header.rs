//! `include/rackmem.h` is what cbindgen makes of the functions here. To write it anew:
//!
//! ```text
//! RACKMEM_WRITE_HEADER=1 cargo test -p rackmem-capi header
//! ```

use std::path::Path;

use cbindgen::{Braces, Builder, Config, EnumConfig, ExportConfig, Language, RenameRule, Style};

const ABOUT: &str = "/* rackmem for C. docs/c.md of the repository is the page to begin with.
 *
 * Made by cbindgen from crates/capi; do not edit.
 *
 *     rackmem_rack rack;
 *     rackmem_thread thread;
 *     rackmem_rwlock lock;
 *     void *data;
 *     rackmem_join(\"rack.toml\", 1, &rack);             // or rackmem_up(4, NULL, &rack), which starts one
 *     rackmem_thread_open(rack, 1, &thread);           // one for each OS thread
 *     rackmem_rwlock_named(thread, \"counts\", RACKMEM_OPEN_OR_CREATE, NULL, 128, NULL, &lock);    // 128 bytes, at first zeroes
 *     rackmem_rwlock_write(lock, &data);
 *     ...                                              // nobody else has the bytes at data
 *     rackmem_rwlock_unlock(lock);
 *
 * Errors. Every function that can fail returns a rackmem_status. rackmem_message() says of the last failure on this OS thread what
 * was wrong, where, and what to do.
 *
 * Handles. A handle is a number in a struct. Null ({0}), closed ones and those of another kind are refused. Whatever a function opens
 * is null if it fails. Every handle is to be closed, once, while no other OS thread uses it.
 *
 * Threads. All OS threads may use a rackmem_rack. A rackmem_thread, and all that was opened through it, is used by one OS thread at a
 * time: each opens its own. A second one that comes while a call takes more than a hit is refused (RACKMEM_WRONG_THREAD).
 *
 * Names. What has a name is found by every program of the rack, in whatever language. A lock over sizeof(T) bytes is the same lock as a
 * Locked<T> of a Rust program.
 */";

/// Behind the includes: for the preprocessor, which cannot ask the library.
fn version() -> String {
    let [major, minor, patch] =
        [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")];
    format!(
        "\n// The version of this header: RACKMEM_VERSION is one number, to compare.\n\
         #define RACKMEM_VERSION_MAJOR {major}\n\
         #define RACKMEM_VERSION_MINOR {minor}\n\
         #define RACKMEM_VERSION_PATCH {patch}\n\
         #define RACKMEM_VERSION \\\n  \
         (RACKMEM_VERSION_MAJOR * 1000000 + RACKMEM_VERSION_MINOR * 1000 + RACKMEM_VERSION_PATCH)"
    )
}

/// The files with functions, in the order of the header. (A file's modules are read with it.)
const FILES: [&str; 11] = [
    "status.rs",
    "rack.rs",
    "blocks.rs",
    "mapping.rs",
    "rwlock.rs",
    "regions.rs",
    "words/mod.rs",
    "objects.rs",
    "chains.rs",
    "value.rs",
    "names.rs",
];

fn header() -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let names = [
        ("RackmemStatus", "rackmem_status"),
        ("RackmemRack", "rackmem_rack"),
        ("RackmemThread", "rackmem_thread"),
        ("RackmemInfo", "rackmem_info"),
        ("RackmemCounters", "rackmem_counters"),
        ("RackmemBlockLock", "rackmem_block_lock"),
        ("RackmemMapping", "rackmem_mapping"),
        ("RackmemPinned", "rackmem_pinned"),
        ("RackmemRwlock", "rackmem_rwlock"),
        ("RackmemWords", "rackmem_words"),
        ("RackmemOperation", "rackmem_operation"),
        ("RackmemPending", "rackmem_pending"),
        ("RackmemObjects", "rackmem_objects"),
        ("RackmemChains", "rackmem_chains"),
        ("RackmemChainsConfig", "rackmem_chains_config"),
        ("RackmemValue", "rackmem_value"),
        ("RackmemNameMode", "rackmem_name_mode"),
        ("RackmemType", "rackmem_type"),
        ("RackmemKind", "rackmem_kind"),
        ("RackmemNamed", "rackmem_named"),
    ];
    let config = Config {
        language: Language::C,
        header: Some(ABOUT.to_owned()),
        include_guard: Some("RACKMEM_H".to_owned()),
        after_includes: Some(version()),
        cpp_compat: true,
        style: Style::Both,
        braces: Braces::SameLine,
        line_length: 100,
        usize_is_size_t: true,
        documentation_style: cbindgen::DocumentationStyle::C99,
        export: ExportConfig {
            include: ["RackmemOperation", "RackmemNameMode"].map(str::to_owned).into(),
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
    for file in FILES {
        builder = builder.with_src(source.join(file));
    }
    let mut text = Vec::new();
    builder.generate().expect("the functions can be written as C").write(&mut text);
    let text = String::from_utf8(text).expect("C is text");
    // Values of our enumerations need not repeat how these are called.
    let text = text.replace("RACKMEM_OPERATION_", "RACKMEM_").replace("RACKMEM_NAME_MODE_", "RACKMEM_");
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
