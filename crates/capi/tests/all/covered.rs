//! Every function of the header is called once as it is meant, and once as it is not (`functions.c`, `names.c`,
//! `mapped.c`, `regions.c`).

use std::collections::BTreeSet;

use crate::compiler::{crate_dir, source};

/// What can be called without anything that may be wrong.
const NOTHING_WRONG: [&str; 3] = ["rackmem_message", "rackmem_version", "rackmem_status_text"];

/// The names in front of these characters.
fn names(line: &str, end: char) -> impl Iterator<Item = &str> {
    line.match_indices(end).filter_map(|(at, _)| {
        let before = &line[..at];
        let begin =
            before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '#').map_or(0, |at| at + 1);
        before[begin..].starts_with("rackmem_").then_some(&before[begin..])
    })
}

fn of_header(header: &str) -> BTreeSet<&str> {
    header
        .lines()
        .filter(|line| !line.starts_with("//") && !line.starts_with(" *"))
        .flat_map(|line| names(line, '('))
        .collect()
}

/// What is called in lines with one of these words: a macro's function stands for those of both widths.
fn called(program: &str, words: &[&str]) -> BTreeSet<String> {
    let lines = program.lines().filter(|line| words.iter().any(|word| line.contains(&format!("{word}("))));
    let both = |name: &str| [name.to_owned(), format!("{name}32")];
    let mut all = BTreeSet::new();
    for line in lines {
        for name in names(line, '(') {
            match name.strip_suffix("##suffix") {
                Some(name) => all.extend(both(name)),
                None => {
                    all.insert(name.to_owned());
                }
            }
        }
        if line.contains("FETCHING(") {
            all.extend(names(line, ',').flat_map(both));
        }
    }
    all
}

#[test]
fn every_function_of_the_header_is_called_as_it_is_meant_and_as_it_is_not() {
    let read = |path| std::fs::read_to_string(path).unwrap();
    let header = read(crate_dir().join("include/rackmem.h"));
    let table = ["functions.c", "names.c", "mapped.c", "regions.c"].map(|name| read(source(name))).concat();
    let functions = of_header(&header);
    assert!(functions.len() > 80, "{functions:?}");
    let mut good = called(&table, &["GOOD", "FETCHING"]);
    // Those that take processes; of `up.c`, the tests of the command see to it that it runs.
    good.extend(
        ["processes.c", "up.c", "mapped.c", "guarded.c"]
            .iter()
            .flat_map(|name| called(&read(source(name)), &["DO"])),
    );
    good.extend(called(&table, &["CHECK"]));
    let bad = called(&table, &["WRONG", "BAD", "BAD_BUT_NULL", "BAD_IS_ZERO", "FETCHING"]);
    for function in functions {
        assert!(good.contains(function), "no table calls {function} as it is meant");
        let is_refused = bad.contains(function) || NOTHING_WRONG.contains(&function);
        assert!(is_refused, "no table calls {function} as it is not meant");
    }
}

#[test]
fn a_function_that_nobody_calls_is_found() {
    let header = "// rackmem_no(\nenum rackmem_status rackmem_a(int x);\nvoid rackmem_b32(\n  int x);\n";
    assert_eq!(of_header(header), BTreeSet::from(["rackmem_a", "rackmem_b32"]));
    let table =
        "GOOD(rackmem_b##suffix(1));\nWRONG(2, rackmem_c(1));\nFETCHING(x, rackmem_d, rackmem_e, suffix);\n";
    assert_eq!(called(table, &["GOOD"]), ["rackmem_b", "rackmem_b32"].map(str::to_owned).into());
    assert_eq!(called(table, &["WRONG"]), ["rackmem_c".to_owned()].into());
    assert_eq!(called(table, &["FETCHING"]).len(), 4);
}
