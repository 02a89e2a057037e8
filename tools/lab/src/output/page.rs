//! The page that puts the paper's numbers beside ours.
//!
//! What must always hold: the page follows from the documents alone, so that a committed page can be checked
//! against the committed data.

use std::fmt::Write;

use super::document::{Constant, Document};
use crate::figure::chart::Chart;
use crate::figure::claim::{Claim, number};
use crate::papers::{Paper, paper_of};

/// The page of some figures of one paper. Drawings are looked for in `drawings`, as seen from the page.
pub fn page(documents: &[Document], drawings: &str) -> String {
    let Some(first) = documents.first() else { return String::new() };
    let paper = paper_of(&first.report.figure);
    let mut text = String::from(paper.head) + CLAIMS;
    text += &summary(documents);
    for document in documents {
        figure(&mut text, document, drawings);
    }
    method(&mut text, paper, first);
    text
}

const CLAIMS: &str = "\
Each claim is a sentence of the paper with a number in it. *Ratio* is our number over the paper's, or over the nearer end
of its range (1.00 inside it). *Met* says *yes* if the direction is right and the size within 25 %; *direction only* if only
the direction is; *no* otherwise. Quantities without a direction *differ* if they are more than 25 % away.

";

fn summary(documents: &[Document]) -> String {
    let mut text = String::from(
        "| figure | what | claims | met | direction only or differs | no |\n|---|---|---:|---:|---:|---:|\n",
    );
    for Document { report, .. } in documents {
        let count = |of: &[&str]| report.claims.iter().filter(|claim| of.contains(&claim.verdict())).count();
        writeln!(
            text,
            "| [{}](#{}) | {} | {} | {} | {} | {} |",
            report.figure,
            report.figure,
            report.title,
            report.claims.len(),
            count(&["yes"]),
            count(&["direction only", "differs"]),
            count(&["no"])
        )
        .expect("text grows");
    }
    text
}

fn figure(text: &mut String, document: &Document, drawings: &str) {
    let report = &document.report;
    write!(text, "\n## {}\n{}.\n", report.figure, report.title).expect("text grows");
    for note in &report.notes {
        write!(text, "\n{note}\n").expect("text grows");
    }
    for chart in &report.charts {
        write!(text, "\n![{}]({drawings}/{}.svg)\n\n", chart.title, chart.name).expect("text grows");
        text.push_str(&chart_table(chart));
    }
    for table in &report.tables {
        write!(
            text,
            "\n{}.\n\n| |{}\n|---|{}\n",
            table.title,
            row(&table.columns),
            "---:|".repeat(table.columns.len())
        )
        .expect("text grows");
        for (name, numbers) in &table.rows {
            let numbers: Vec<String> = numbers.iter().map(|value| number(*value)).collect();
            writeln!(text, "| {name} |{}", row(&numbers)).expect("text grows");
        }
    }
    if !report.claims.is_empty() {
        text.push('\n');
        text.push_str(&claims_table(&report.claims));
    }
    for remark in &report.remarks {
        write!(text, "\n{remark}\n").expect("text grows");
    }
}

fn row(cells: &[String]) -> String {
    cells.iter().map(|cell| format!(" {cell} |")).collect()
}

/// A chart as a table: a row for each x, or for long charts nothing but where the data is.
fn chart_table(chart: &Chart) -> String {
    const LONGEST: usize = 16;
    let rows = chart.abscissae();
    if chart.categories.is_empty() && rows.len() > LONGEST {
        return format!("{} values a line: `{}.csv`.\n", rows.len(), chart.name);
    }
    let mut text = format!("| {} |", chart.x);
    for line in &chart.lines {
        write!(text, " {} |", line.name).expect("text grows");
    }
    let names = if chart.categories.is_empty() { "---:" } else { "---" };
    write!(text, "\n|{names}|{}\n", "---:|".repeat(chart.lines.len())).expect("text grows");
    for x in rows {
        write!(text, "| {} |", chart.called(x)).expect("text grows");
        for line in &chart.lines {
            let value = line.at(x).map(number).unwrap_or_default();
            write!(text, " {value} |").expect("text grows");
        }
        text.push('\n');
    }
    writeln!(text, "\n{}.", chart.y).expect("text grows");
    text
}

/// Claims as a table, with the causes under it.
pub fn claims_table(claims: &[Claim]) -> String {
    let mut text = String::from("| claim | paper | ours | ratio | met |\n|---|---:|---:|---:|---|\n");
    let mut causes: Vec<&str> = Vec::new();
    for claim in claims {
        let mut verdict = claim.verdict().to_owned();
        if let Some(cause) = claim.cause.as_deref() {
            let place = causes.iter().position(|known| *known == cause).unwrap_or_else(|| {
                causes.push(cause);
                causes.len() - 1
            });
            write!(verdict, " ({})", place + 1).expect("text grows");
        }
        let ratio = if claim.size().is_some() { number(claim.to_paper()) } else { String::new() };
        writeln!(
            text,
            "| {} | {} | {} | {ratio} | {verdict} |",
            claim.what,
            claim.paper_text(),
            claim.ours_text()
        )
        .expect("text grows");
    }
    if !causes.is_empty() {
        text.push('\n');
    }
    for (number, cause) in (1..).zip(causes) {
        writeln!(text, "{number}. {cause}").expect("text grows");
    }
    text
}

fn method(text: &mut String, paper: &Paper, document: &Document) {
    text.push_str("\n## Method\n");
    text.push_str(&(paper.sizes)(&document.sizes, document.seed));
    text.push_str(paper.method);
    text.push_str("\n| constant | value | source |\n|---|---:|---|\n");
    for Constant { what, value, source } in &document.constants {
        writeln!(text, "| {what} | {value} | {source} |").expect("text grows");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cause_of_several_claims_is_given_once() {
        let claims = [
            Claim::ratio("a", 2.0, 9.0).because("first"),
            Claim::ratio("b", 2.0, 9.0).because("second"),
            Claim::ratio("c", 2.0, 9.0).because("first"),
            Claim::ratio("d", 2.0, 2.0).because("first"),
        ];
        let text = claims_table(&claims);
        assert!(text.ends_with("\n1. first\n2. second\n"), "{text}");
        assert!(text.contains("| c | 2.00x | 9.00x | 4.50 | direction only (1) |"), "{text}");
        assert!(text.contains("| d | 2.00x | 2.00x | 1.00 | yes |"), "{text}");
    }

    #[test]
    fn a_table_has_gaps_where_a_line_has_no_value() {
        let chart =
            Chart::new("c", "", "x", "Mops").line("a", [(0.0, 1.0), (20.0, 12.5)]).line("b", [(20.0, 133.0)]);
        assert_eq!(
            chart_table(&chart),
            "| x | a | b |\n|---:|---:|---:|\n| 0 | 1.00 |  |\n| 20 | 12.5 | 133 |\n\nMops.\n"
        );
    }
}
