//! What `rackmem-lab figure` writes: data for each figure, drawings, a page.

use std::fs;
use std::path::{Path, PathBuf};

use lab::figure::sensitivity::Sensitivity;
use lab::output::{Document, csv, page};
use lab::papers::paper_of;

use super::Args;
use cli::fault::Fault;
use cli::output;
use cli::say;

/// Finds out, before hours of work, whether anything can be written.
pub(super) fn prepare(args: &Args) -> Result<(), Fault> {
    let parent = args.page.as_deref().and_then(Path::parent).filter(|parent| !parent.as_os_str().is_empty());
    output::prepare_directory("--out", &args.out)?;
    if let Some(parent) = parent {
        output::prepare_directory("--page", parent)?;
    }
    match args.page.as_deref() {
        Some(page) if page.is_dir() => Err(Fault::usage(format_args!(
            "--page {}: that is a directory; name the file to write, for example {}",
            page.display(),
            page.join("page.md").display()
        ))),
        _ => Ok(()),
    }
}

/// What was written for a figure before.
pub(super) fn read(directory: &Path, figure: &str) -> Result<Document, Fault> {
    let path = directory.join(format!("{figure}.json"));
    let text = fs::read_to_string(&path)
        .map_err(|error| Fault::usage(format_args!("cannot read {}: {error}", path.display())))?;
    Document::from_json(&text).map_err(|error| Fault::usage(format_args!("{}: {error}", path.display())))
}

/// Where the sensitivity of a paper's figures is.
fn sensitivity_file(directory: &Path, paper: &str) -> PathBuf {
    directory.join(format!("{paper}-sensitivity.json"))
}

/// Writes which claims move.
pub(super) fn write_sensitivity(args: &Args, found: &Sensitivity) -> Result<(), Fault> {
    let json = serde_json::to_string_pretty(found).map_err(|error| Fault::failed(format_args!("{error}")))?;
    put(sensitivity_file(&args.out, &found.paper), json + "\n")
}

/// What was found before about the figures of this paper, if anything was.
fn sensitivity(directory: &Path, paper: &str) -> Result<Option<Sensitivity>, Fault> {
    let path = sensitivity_file(directory, paper);
    let Ok(text) = fs::read_to_string(&path) else { return Ok(None) };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| Fault::usage(format_args!("{}: {error}", path.display())))
}

/// Writes everything.
pub(super) fn write(args: &Args, documents: &[Document]) -> Result<(), Fault> {
    for document in documents {
        let stem = &document.report.figure;
        let json = document.to_json().map_err(|error| Fault::failed(format_args!("{stem}: {error}")))?;
        put(args.out.join(format!("{stem}.json")), json)?;
        for chart in &document.report.charts {
            put(args.out.join(format!("{}.csv", chart.name)), csv::chart(chart))?;
        }
        draw(args, document)?;
    }
    if let Some(path) = &args.page {
        let paper = documents.first().map_or("", |first| paper_of(&first.report.figure).name);
        let sensitivity = sensitivity(&args.out, paper)?;
        put(path.clone(), page::page(documents, sensitivity.as_ref(), &seen_from(path, &args.out)))?;
    }
    say!("written to {}", args.out.display());
    Ok(())
}

#[cfg(feature = "plots")]
fn draw(args: &Args, document: &Document) -> Result<(), Fault> {
    use lab::output::plot;

    for chart in &document.report.charts {
        put(args.out.join(format!("{}.svg", chart.name)), plot::svg(chart))?;
    }
    Ok(())
}

#[cfg(not(feature = "plots"))]
fn draw(_: &Args, document: &Document) -> Result<(), Fault> {
    say!("{}: no drawings in this build (build with --features plots)", document.report.figure);
    Ok(())
}

fn put(path: PathBuf, contents: impl AsRef<[u8]>) -> Result<(), Fault> {
    fs::write(&path, contents)
        .map_err(|error| Fault::failed(format_args!("cannot write {}: {error}", path.display())))
}

/// How a page names a directory: relative, if the directory is below the page's.
fn seen_from(page: &Path, directory: &Path) -> String {
    let parent = page.parent().unwrap_or(Path::new(""));
    directory.strip_prefix(parent).unwrap_or(directory).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_drawings_below_it_relatively() {
        assert_eq!(seen_from(Path::new("docs/concordia.md"), Path::new("docs/figures")), "figures");
        assert_eq!(seen_from(Path::new("page.md"), Path::new("out")), "out");
        assert_eq!(seen_from(Path::new("docs/page.md"), Path::new("lab-out")), "lab-out");
    }
}
