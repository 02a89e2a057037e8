//! The claims that the committed pages call met hold at a small scale, too: a change that turns a figure around fails here.
//!
//! Figures without such claims are run at a tiny one. Every figure says something of all its points.
//!
//! What is measured is the same at each run, so nothing here depends on the machine.

use std::fs;
use std::path::Path;

use lab::figure::claim::{Basis, Claim};
use lab::figure::{Figure, points_of};
use lab::output::Document;
use lab::papers::{PAPERS, Paper};
use lab::sizes::Sizes;

use crate::tiny::{self, Shows, says_something};

/// Claims that are met at full scale only, each with what the small one lacks.
const FULL_SCALE_ONLY: &[(&str, &str, &str)] = &[
    (
        "concordia-15",
        "GAM, 4 KiB blocks aborts more with every step of distribution",
        "few rows and few transactions: the last two steps are the same but for chance",
    ),
    (
        "sabres-7",
        "throughput, all sizes: SABRe over remote read, at least (identical)",
        "few operations of the smallest objects: the beginning and the end of a run count",
    ),
    (
        "sabres-8",
        "128 B: the gain over per-line versions falls from no writers to 16",
        "it falls by a hundredth, which few operations do not show",
    ),
    (
        "steering-4",
        "steering rises with every doubling of keys",
        "steps of two hundredths among the coldest keys",
    ),
];

fn committed(figure: &str) -> Document {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/figures/{figure}.json"));
    Document::from_json(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A claim of a paper that is met.
fn is_met(claim: &Claim) -> bool {
    claim.basis == Basis::Paper && claim.met()
}

/// A figure with such claims. The others take as long and can turn nothing around.
pub(crate) fn is_asserted(figure: &dyn Figure) -> bool {
    committed(figure.name()).report.claims.iter().any(is_met)
}

/// What differs from the committed page at a small scale.
fn turned(figures: &[&dyn Figure], shows: Shows) -> Vec<String> {
    let figures: Vec<&dyn Figure> = figures.iter().copied().filter(|it| is_asserted(*it)).collect();
    let results = tiny::run(&Sizes::SMALL, &points_of(&figures), 2, 1);
    let mut turned = Vec::new();
    for figure in figures {
        let (document, report) = (committed(figure.name()), figure.report(&results));
        says_something(&report, shows);
        for (full, small) in document.report.claims.iter().zip(&report.claims) {
            assert_eq!(full.what, small.what, "{}: write the page again", figure.name());
            if !is_met(full) {
                continue;
            }
            let excepted =
                FULL_SCALE_ONLY.iter().any(|(of, what, _)| *of == figure.name() && *what == full.what);
            if excepted == small.met() {
                turned.push(format!(
                    "{}: {}: {} at full scale, {} at the small one ({}), {}",
                    figure.name(),
                    full.what,
                    full.ours_text(),
                    small.ours_text(),
                    small.verdict(),
                    if excepted {
                        "and stands in the list of those that need the full scale"
                    } else {
                        "was met"
                    },
                ));
            }
        }
    }
    turned
}

/// Of each paper, what its figures show, and how small they can be run.
const ALL: [(&Paper, Shows, &Sizes); 5] = [
    (PAPERS[0], crate::figures::shows, &Sizes::TINY),
    (PAPERS[1], crate::gcs::shows, &Sizes::TINY),
    (PAPERS[2], crate::sabres::shows, &Sizes::TINY),
    (PAPERS[3], crate::rae::shows, &Sizes::TINY),
    (PAPERS[4], crate::steering::shows, &crate::steering::SIZES),
];

fn hold(paper: usize) {
    let (paper, shows, _) = ALL[paper];
    let turned = turned(paper.figures, shows);
    assert!(turned.is_empty(), "{}", turned.join("\n"));
}

#[test]
fn claims_of_concordia_that_are_met_hold_at_a_small_scale() {
    hold(0);
}

#[test]
fn claims_of_gcs_that_are_met_hold_at_a_small_scale() {
    hold(1);
}

#[test]
fn claims_of_sabres_that_are_met_hold_at_a_small_scale() {
    hold(2);
}

#[test]
fn claims_of_rae_that_are_met_hold_at_a_small_scale() {
    hold(3);
}

#[test]
fn claims_of_steering_that_are_met_hold_at_a_small_scale() {
    hold(4);
}

#[test]
fn every_figure_without_such_claims_reports_on_all_its_points() {
    let mut run = 0;
    for (paper, shows, sizes) in ALL {
        let others: Vec<&dyn Figure> = paper.figures.iter().copied().filter(|it| !is_asserted(*it)).collect();
        let results = tiny::run(sizes, &points_of(&others), 2, 1);
        for figure in &others {
            says_something(&figure.report(&results), shows);
        }
        run += others.len();
    }
    assert!(run > 0, "no figure is without them");
}
