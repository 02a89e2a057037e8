//! The committed page says what the committed data says.

use std::fs;
use std::path::{Path, PathBuf};

use lab::figure::sensitivity::Sensitivity;
use lab::figure::{Figure, Results};
use lab::output::{Document, csv, page};
use lab::papers::paper_of;

/// Pages, and what is on them.
const PAGES: [(&str, &[&dyn Figure]); 5] = [
    ("concordia", &lab::concordia::FIGURES),
    ("gcs", &lab::gcs::FIGURES),
    ("rae-figures", &lab::rae::FIGURES),
    ("sabres", &lab::sabres::FIGURES),
    ("steering", &lab::steering::FIGURES),
];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn documents(figures: &[&dyn Figure]) -> Vec<Document> {
    let read = |name: &str| fs::read_to_string(docs().join("figures").join(format!("{name}.json"))).unwrap();
    figures.iter().map(|figure| Document::from_json(&read(figure.name())).unwrap()).collect()
}

/// What was found about a paper's inputs.
fn sensitivity(figures: &[&dyn Figure]) -> Option<Sensitivity> {
    let paper = paper_of(figures[0].name()).name;
    let text = fs::read_to_string(docs().join("figures").join(format!("{paper}-sensitivity.json"))).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn what_moves_claims_was_found_for_the_inputs_and_claims_that_there_are() {
    for (_, figures) in PAGES {
        let found =
            sensitivity(figures).expect("write it with rackmem-lab figure --scale small --perturb 20");
        let movable = paper_of(figures[0].name()).all_inputs().filter(|input| input.scale.is_some());
        assert_eq!(found.inputs, movable.map(|input| input.name).collect::<Vec<_>>(), "{}", found.paper);
        for figure in figures {
            assert!(found.figures.iter().any(|name| name == figure.name()), "{} is left out", figure.name());
        }
        let documents = documents(figures);
        for moved in &found.moved {
            let of =
                documents.iter().find(|document| document.report.figure == moved.figure).expect("a figure");
            let known = of.report.claims.iter().any(|claim| claim.what == moved.claim);
            assert!(known, "{}: no claim \"{}\"", moved.figure, moved.claim);
        }
    }
}

#[test]
fn each_page_is_that_of_the_data() {
    for (name, figures) in PAGES {
        let committed = fs::read_to_string(docs().join(format!("{name}.md"))).unwrap();
        assert!(
            committed == page::page(&documents(figures), sensitivity(figures).as_ref(), "figures"),
            "docs/{name}.md differs from docs/figures: see its head for the command that writes both"
        );
    }
}

#[test]
fn the_reports_follow_from_the_measurements() {
    for (figure, document) in PAGES.iter().flat_map(|(_, figures)| figures.iter().zip(documents(figures))) {
        let again = figure.report(&Results::new(document.measured));
        assert!(again == document.report, "{}: write it with rackmem-lab figure", figure.name());
    }
}

#[test]
fn every_chart_has_its_drawings_and_its_data() {
    let documents: Vec<Document> = PAGES.iter().flat_map(|(_, figures)| documents(figures)).collect();
    for chart in documents.iter().flat_map(|document| &document.report.charts) {
        for kind in ["svg", "csv"] {
            let path = docs().join("figures").join(format!("{}.{kind}", chart.name));
            assert!(path.is_file(), "{}", path.display());
        }
        let data = fs::read_to_string(docs().join("figures").join(format!("{}.csv", chart.name))).unwrap();
        assert_eq!(data, csv::chart(chart), "{}", chart.name);
    }
}

#[test]
fn a_document_comes_back_from_its_text_as_it_was() {
    for document in PAGES.iter().flat_map(|(_, figures)| documents(figures)) {
        let text = document.to_json().unwrap();
        assert!(Document::from_json(&text).unwrap() == document, "{}", document.report.figure);
    }
}
