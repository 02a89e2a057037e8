//! A path in backticks leads to a file or folder, and `path.rs::function` to a function that the file defines.
//!
//! Relative to the root, to the page's folder, or, for short ones, to the end of a file's path. `{a,b}` is both, `*` is anything.

use super::links::resolved;
use super::page::Page;
use super::repository::Repository;
use super::tokens::tokens;
use super::{Wrong, assert_all_true};

const ENDS: &[&str] = &[".rs", ".md", ".toml", ".svg", ".json", ".csv", ".h", ".c", ".sh", "/"];
const ROOTS: &[&str] = &["crates/", "tools/", "docs/", "fuzz/"];
/// Of the user's own, or of another program's.
const NOT_OURS: &[&str] =
    &["target/", "out/", "rackmem-up/", "rackmem-", "src/main.rs", "tools/riscv/programs/first.c"];

fn wrong(repository: &Repository, page: &Page) -> Vec<Wrong> {
    let mut all = Vec::new();
    for (line, span) in page.spans() {
        for path in expanded(&span) {
            if let Some(why) = wrong_path(repository, page, &path) {
                all.push((line, format!("`{span}`: {why}")));
            }
        }
    }
    all
}

/// Whether this is a path of ours.
fn looks_like_one(path: &str) -> bool {
    let letters = |letter: char| letter.is_ascii_alphanumeric() || "/._-*".contains(letter);
    path.contains('/')
        && path.chars().all(letters)
        && !path.starts_with(['/', '.', '-'])
        && (ROOTS.iter().any(|root| path.starts_with(root)) || ENDS.iter().any(|end| path.ends_with(end)))
        && !NOT_OURS.iter().any(|other| path.starts_with(other))
}

fn wrong_path(repository: &Repository, page: &Page, span: &str) -> Option<String> {
    let (path, function) =
        span.split_once("::").map_or((span, None), |(path, function)| (path, Some(function)));
    // `file.rs:12`.
    let path =
        path.split_once(':').filter(|(_, line)| line.parse::<u32>().is_ok()).map_or(path, |(path, _)| path);
    if !looks_like_one(path) {
        return None;
    }
    let found = matching(repository, page.folder(), path.trim_end_matches('/'));
    if found.is_empty() {
        return Some(format!("there is no {path}"));
    }
    let function = function?.trim_end_matches("()");
    let defines = |file: &&String| {
        let tokens = tokens(&repository.text(file));
        tokens.windows(2).any(|pair| pair[0].is("fn") && pair[1].is(function))
    };
    (!found.iter().any(defines)).then(|| format!("{path} defines no function {function}"))
}

fn matching<'a>(repository: &'a Repository, folder: &str, path: &str) -> Vec<&'a String> {
    let all = || repository.files.iter().chain(&repository.folders);
    for exact in [path.to_owned(), resolved(folder, path)] {
        let found: Vec<_> = all().filter(|file| fits(&exact, file)).collect();
        if !found.is_empty() {
            return found;
        }
    }
    let ends_so = |file: &&String| file.match_indices('/').any(|(slash, _)| fits(path, &file[slash + 1..]));
    all().filter(ends_so).collect()
}

/// Whether a name is this one, in which `*` is anything but a slash.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            let most = rest.find('/').unwrap_or(rest.len());
            (0..=most).filter(|cut| rest.is_char_boundary(*cut)).any(|cut| fits(after, &rest[cut..]))
        }),
    }
}

/// `a/{b,c}.rs` is two.
fn expanded(text: &str) -> Vec<String> {
    let braces = text.find('{').and_then(|open| Some((open, open + text[open..].find('}')?)));
    let Some((open, close)) = braces else { return vec![text.to_owned()] };
    let (before, after) = (&text[..open], &text[close + 1..]);
    text[open + 1..close]
        .split(',')
        .flat_map(|part| expanded(&format!("{before}{}{after}", part.trim())))
        .collect()
}

#[test]
fn paths_lead_to_files() {
    let repository = Repository::here();
    assert_all_true(&repository, |page| wrong(&repository, page));
}

#[test]
fn a_path_that_leads_nowhere_is_found() {
    let repository = Repository::here();
    let found = |text: &str| wrong(&repository, &Page::new("docs/a.md", &format!("`{text}`"))).len();
    for true_one in [
        "tools/lab-cli/tests/all/documents/paths.rs",
        "documents/{paths,names}.rs",
        "crates/switch",
        "numbers.md",
        "documents/paths.rs::fits",
        "documents/paths.rs:12",
        "docs/explain/read-*.svg",
        "tests/all/documents/",
        "/etc/hosts.toml",
    ] {
        assert_eq!(found(true_one), 0, "{true_one}");
    }
    for false_one in [
        "tools/lab-cli/tests/all/documents/path.rs",
        "documents/{paths,nobody}.rs",
        "crates/switches",
        "documents/paths.rs::nobody",
        "docs/explain/nobody-*.svg",
        "ocuments/paths.rs",
        "nobody/",
    ] {
        assert_eq!(found(false_one), 1, "{false_one}");
    }
}
