//! The committed page says what the committed data says.

use std::fs;
use std::path::{Path, PathBuf};

use lab::concordia::FIGURES;
use lab::figure::Results;
use lab::output::{Document, csv, page};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn documents() -> Vec<Document> {
    let read = |name: &str| fs::read_to_string(docs().join("figures").join(format!("{name}.json"))).unwrap();
    FIGURES.iter().map(|figure| Document::from_json(&read(figure.name())).unwrap()).collect()
}

#[test]
fn the_page_is_that_of_the_data() {
    let committed = fs::read_to_string(docs().join("concordia.md")).unwrap();
    assert!(
        committed == page::page(&documents(), "figures"),
        "docs/concordia.md differs from docs/figures: write both with rackmem lab concordia"
    );
}

#[test]
fn the_reports_follow_from_the_measurements() {
    for (figure, document) in FIGURES.iter().zip(documents()) {
        let again = figure.report(&Results::new(document.measured));
        assert!(again == document.report, "{}: write it with rackmem lab", figure.name());
    }
}

#[test]
fn every_chart_has_its_drawings_and_its_data() {
    for chart in documents().iter().flat_map(|document| &document.report.charts) {
        for kind in ["svg", "png", "csv"] {
            let path = docs().join("figures").join(format!("{}.{kind}", chart.name));
            assert!(path.is_file(), "{}", path.display());
        }
        let data = fs::read_to_string(docs().join("figures").join(format!("{}.csv", chart.name))).unwrap();
        assert_eq!(data, csv::chart(chart), "{}", chart.name);
    }
}

#[test]
fn a_document_comes_back_from_its_text_as_it_was() {
    for document in documents() {
        let text = document.to_json().unwrap();
        assert!(Document::from_json(&text).unwrap() == document, "{}", document.report.figure);
    }
}
