//! Results that cannot be written: what, where, and what to do; and nothing is measured first.

use std::fs;
use std::path::Path;

use crate::shell::{folder, mistake};

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[test]
fn results_of_several_files_want_a_directory_and_say_so_before_anything_is_measured() {
    let folder = folder("lab");
    let file = folder.join("file");
    fs::write(&file, "mine").expect("written");
    for path in [text(&file), "/dev/null"] {
        for args in [&["figure", "concordia-9", "--out", path][..], &["peers", "--out", path]] {
            let said = mistake(args, 2);
            assert!(said.contains(&format!("--out {path}: that is no directory")), "{said}");
            assert!(said.contains("name a directory") && !said.contains("File exists"), "{said}");
        }
        let said = mistake(&["explain", "--svg", path], 2);
        assert!(said.contains(&format!("--svg {path}: that is no directory")), "{said}");
    }
    // Below a file there is no directory to be made.
    let below = file.join("below");
    let said = mistake(&["figure", "concordia-9", "--out", text(&below)], 2);
    assert!(said.contains("cannot be written to: Not a directory"), "{said}");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "mine");
}

#[test]
fn a_page_is_a_file() {
    let folder = folder("page");
    let out = folder.join("out");
    let said = mistake(&["figure", "concordia-9", "--out", text(&out), "--page", text(&folder)], 2);
    assert!(said.contains("that is a directory") && said.contains("page.md"), "{said}");
    assert_eq!(fs::read_dir(&out).expect("it was made").count(), 0, "something is left of finding that out");
}
