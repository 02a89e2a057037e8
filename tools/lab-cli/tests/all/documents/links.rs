//! A link leads to a file, and to a heading of it. Addresses of the web are not asked.

use super::page::Page;
use super::repository::Repository;
use super::{Wrong, assert_all_true};

fn wrong(repository: &Repository, page: &Page, load: &dyn Fn(&str) -> Page) -> Vec<Wrong> {
    let mut all = Vec::new();
    for (line, link) in page.links() {
        if link.contains("://") || link.starts_with("mailto:") {
            continue;
        }
        let (target, anchor) =
            link.split_once('#').map_or((&*link, None), |(target, anchor)| (target, Some(anchor)));
        let file = if target.is_empty() { page.name.clone() } else { resolved(page.folder(), target) };
        let bare = file.trim_end_matches('/');
        if !repository.files.contains(bare) && !repository.folders.contains(bare) && !bare.is_empty() {
            all.push((line, format!("the link `{link}` leads to no file")));
        } else if let Some(anchor) = anchor.filter(|_| file.ends_with(".md")) {
            let anchors = if target.is_empty() { page.anchors() } else { load(&file).anchors() };
            if !anchors.iter().any(|known| known == anchor) {
                all.push((line, format!("the link `{link}` leads to no heading of {file}")));
            }
        }
    }
    all
}

/// A path relative to a folder, relative to the root.
pub(super) fn resolved(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn links_lead_to_files_and_headings() {
    let repository = Repository::here();
    let load = |file: &str| Page::new(file, &repository.text(file));
    assert_all_true(&repository, |page| wrong(&repository, page, &load));
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let repository = Repository::of(&["README.md", "docs/a.md", "docs/b.svg"]);
    let load = |file: &str| Page::new(file, "# There\n");
    let found = |text: &str| wrong(&repository, &Page::new("docs/a.md", text), &load).len();
    assert_eq!(
        found("# Here\n[1](#here) [2](../README.md#there) ![3](b.svg) [4](https://x.org/y) [5](../docs/)"),
        0
    );
    for false_one in
        ["[1](#there)", "[1](../README.md#here)", "![1](c.svg)", "[1](README.md)", "[a\nb](c.md)"]
    {
        assert_eq!(found(&format!("# Here\n{false_one}")), 1, "{false_one}");
    }
}
