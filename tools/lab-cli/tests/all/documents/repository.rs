//! Which files there are: all of the clone but hidden ones and what is built.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::page::Page;

/// The files of a clone.
pub(super) struct Repository {
    pub(super) root: PathBuf,
    /// Relative to the root.
    pub(super) files: BTreeSet<String>,
    /// Folders, too, without a slash at the end.
    pub(super) folders: BTreeSet<String>,
}

impl Repository {
    /// The clone that this test was built in.
    pub(super) fn here() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("it is there");
        let mut all = Self { root: root.clone(), files: BTreeSet::new(), folders: BTreeSet::new() };
        all.walk(&root);
        all
    }

    #[cfg(test)]
    pub(super) fn of(files: &[&str]) -> Self {
        let files: BTreeSet<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let parents = |file: &String| {
            Path::new(file)
                .ancestors()
                .skip(1)
                .map(|part| part.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let folders = files.iter().flat_map(parents).filter(|folder| !folder.is_empty()).collect();
        Self { root: PathBuf::new(), files, folders }
    }

    fn walk(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).expect("a folder of the clone").flatten() {
            let name = entry.file_name().into_string().expect("our names are UTF-8");
            if name.starts_with('.') || name == "target" {
                continue;
            }
            let path = entry.path();
            let relative =
                path.strip_prefix(&self.root).expect("below the root").to_str().expect("UTF-8").to_owned();
            if path.is_dir() {
                self.folders.insert(relative);
                self.walk(&path);
            } else {
                self.files.insert(relative);
            }
        }
    }

    /// What a file holds.
    pub(super) fn text(&self, file: &str) -> String {
        fs::read_to_string(self.root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    /// The files whose names end so.
    pub(super) fn ending(&self, end: &str) -> impl Iterator<Item = &String> {
        self.files.iter().filter(move |file| file.ends_with(end))
    }

    /// All Markdown files.
    pub(super) fn pages(&self) -> Vec<Page> {
        self.ending(".md").map(|file| Page::new(file, &self.text(file))).collect()
    }
}
