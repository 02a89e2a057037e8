//! What a C programmer finds: the page `docs/c.md`, whose examples are programs that run, and `rackmem.pc`.

use std::path::PathBuf;
use std::process::Command;

use crate::compiler::{compiled, crate_dir, folder, library, runs};

/// The blocks of C on the page.
fn blocks() -> Vec<String> {
    let page = std::fs::read_to_string(crate_dir().join("../../docs/c.md")).unwrap();
    let parts = page.split("\n```");
    parts.filter_map(|part| part.strip_prefix("c\n")).map(|block| format!("{block}\n")).collect()
}

/// The page's parts of programs, each as a function of one program, on a rack inside a process.
fn parts_in_one(blocks: &[String]) -> String {
    let parts: String = (0..)
        .zip(blocks)
        .map(|(number, block)| {
            format!("static void part_{number}(rackmem_rack rack, rackmem_thread thread) {{\n(void)rack;\n{block}}}\n")
        })
        .collect();
    let calls: String =
        (0..blocks.len()).map(|number| format!("    part_{number}(rack, thread);\n")).collect();
    format!(
        "#include \"{}/tests/c/check.h\"\n{parts}\nint main(void) {{\n    rackmem_rack rack;\n    rackmem_thread thread;\n    \
         DO(rackmem_open_embedded(2, 8 << 20, &rack));\n    DO(rackmem_thread_open(rack, 0, &thread));\n{calls}    \
         DO(rackmem_thread_close(thread));\n    DO(rackmem_close(rack));\n    puts(\"ok\");\n    return 0;\n}}\n",
        crate_dir().display()
    )
}

/// The page's first program, and all else.
fn programs(name: &str) -> (PathBuf, PathBuf) {
    let (whole, parts): (Vec<_>, Vec<_>) = blocks().into_iter().partition(|block| block.contains("int main"));
    assert!(whole.len() == 1 && parts.len() >= 6, "{} programs, {} parts", whole.len(), parts.len());
    let folder = folder(&format!("{name}-sources"));
    let (first, rest) = (folder.join("first.c"), folder.join("parts.c"));
    std::fs::write(&first, &whole[0]).unwrap();
    std::fs::write(&rest, parts_in_one(&parts)).unwrap();
    (first, rest)
}

#[test]
fn the_examples_of_the_page_compile_as_c_and_as_cpp_and_run() {
    let library = library("librackmem_c.a");
    let (first, rest) = programs("page");
    for (compiler, standard) in [("cc", "-std=c11"), ("c++", "-std=c++17")] {
        for (source, what) in [(&first, "first"), (&rest, "parts")] {
            let name = format!("page-{what}-{compiler}");
            if let Some(program) = compiled(source, &name, [compiler, standard], &[library.to_str().unwrap()])
            {
                runs(&program);
            }
        }
    }
}

#[test]
fn a_program_is_compiled_with_what_pkg_config_says() {
    let prefix = folder("prefix");
    let [include, lib] = ["include", "lib"].map(|name| prefix.join(name));
    std::fs::create_dir_all(lib.join("pkgconfig")).unwrap();
    std::fs::create_dir_all(&include).unwrap();
    std::fs::copy(crate_dir().join("include/rackmem.h"), include.join("rackmem.h")).unwrap();
    std::fs::copy(library("librackmem_c.a"), lib.join("librackmem_c.a")).unwrap();
    let text = std::fs::read_to_string(crate_dir().join("rackmem.pc.in")).unwrap();
    let text =
        text.replace("@prefix@", prefix.to_str().unwrap()).replace("@version@", env!("CARGO_PKG_VERSION"));
    assert!(!text.contains('@'), "the page replaces these two: {text}");
    std::fs::write(lib.join("pkgconfig/rackmem.pc"), text).unwrap();
    let asked = Command::new("pkg-config")
        .args(["--cflags", "--libs", "--static", "rackmem"])
        .env("PKG_CONFIG_PATH", lib.join("pkgconfig"))
        .output();
    let Ok(said) = asked else { return println!("SKIPPED: there is no pkg-config here") };
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let said = String::from_utf8(said.stdout).unwrap();
    let (first, _) = programs("pkg-config");
    let flags: Vec<&str> = said.split_whitespace().collect();
    if let Some(program) = compiled(&first, "pkg-config", ["cc", "-std=c11"], &flags) {
        runs(&program);
    }
}
