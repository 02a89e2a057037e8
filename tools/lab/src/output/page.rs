//! The page that puts the paper's numbers beside ours.
//!
//! What must always hold: the page follows from the documents alone, so that a committed page can be checked
//! against the committed data.

use std::fmt::Write;

use super::document::Document;
use crate::figure::claim::{Basis, Claim, number};
use crate::figure::input::Declared;
use crate::figure::sensitivity::Sensitivity;
use crate::papers::{Paper, paper_of};
use crate::sizes::Sizes;

/// The page of some figures of one paper. Drawings are looked for in `drawings`, as seen from the page.
pub fn page(documents: &[Document], sensitivity: Option<&Sensitivity>, drawings: &str) -> String {
    let Some(first) = documents.first() else { return String::new() };
    let paper = paper_of(&first.report.figure);
    let mut text = String::from(paper.head) + CLAIMS;
    text += &summary(documents);
    text += &inputs(paper, sensitivity, documents);
    for document in documents {
        figure(&mut text, document, sensitivity, drawings);
    }
    text.push_str("\n## Method\n");
    text.push_str(&(paper.sizes)(&first.sizes, first.seed));
    text.push_str(paper.method);
    wrapped(&text)
}

/// No line of prose is longer.
const COLUMNS: usize = 116;

/// The same with its paragraphs and list items wrapped. Tables, headings, pictures and code stay as they are.
fn wrapped(text: &str) -> String {
    let (mut all, mut prose, mut is_code) = (String::new(), String::new(), false);
    for line in text.lines() {
        let is_fence = line.starts_with("```");
        let stands = is_code || is_fence || line.is_empty() || line.starts_with(['|', '#', '!']);
        if stands || starts_item(line) {
            flush(&mut all, &mut prose);
        }
        if stands {
            all.push_str(line);
            all.push('\n');
        } else {
            prose.push_str(if prose.is_empty() { "" } else { " " });
            prose.push_str(line.trim_start());
        }
        is_code ^= is_fence;
    }
    flush(&mut all, &mut prose);
    all
}

/// A list item begins: `- ` or `1. `.
fn starts_item(line: &str) -> bool {
    let number = line.trim_start_matches(|at: char| at.is_ascii_digit());
    line.starts_with("- ") || (number.len() < line.len() && number.starts_with(". "))
}

/// Writes a paragraph, or an item, in lines.
fn flush(all: &mut String, prose: &mut String) {
    let indent = if starts_item(prose) { prose.find(' ').map_or(0, |space| space + 1) } else { 0 };
    let mut column = 0;
    for word in prose.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > COLUMNS {
            all.push('\n');
            all.push_str(&" ".repeat(indent));
            column = indent;
        } else if column > 0 {
            all.push(' ');
            column += 1;
        }
        all.push_str(word);
        column += length;
    }
    if column > 0 {
        all.push('\n');
    }
    prose.clear();
}

const CLAIMS: &str = "\
Each claim is a sentence of the paper with a number in it, or the trend of one of its plots. *Ratio* is our number over the
paper's, or over the nearer end of its range (1.00 inside it). *Met* says

- *yes* if the direction is right and the size within 25 % (within 10 % where the paper says equal);
- *direction only* if only the direction is right; *no* otherwise; a quantity has no direction, and *differs*;
- *calibrated* if an input was fitted to this number, *by construction* if it could not come out otherwise: neither is a result.

*Moves with* names the inputs (by their number in the table below) that change the verdict when they are moved by 20 %:
`7-` is input 7, a fifth smaller. Where the verdict is another one with as few operations as moved inputs are run with, that stands
there instead. Claims under *ours* are targets of our own.

";

fn summary(documents: &[Document]) -> String {
    let mut text = String::from(
        "| figure | what | claims | met | direction only or differs | no | no result | ours, met of all |\n\
         |---|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for Document { report, .. } in documents {
        let (ours, paper): (Vec<&Claim>, Vec<&Claim>) =
            report.claims.iter().partition(|claim| claim.basis == Basis::Ours);
        let count = |of: &[&str]| paper.iter().filter(|claim| of.contains(&claim.verdict())).count();
        writeln!(
            text,
            "| [{}](#{}) | {} | {} | {} | {} | {} | {} | {} of {} |",
            report.figure,
            report.figure,
            report.title,
            paper.len(),
            count(&["yes"]),
            count(&["direction only", "differs"]),
            count(&["no"]),
            count(&["calibrated", "by construction"]),
            ours.iter().filter(|claim| claim.met()).count(),
            ours.len(),
        )
        .expect("text grows");
    }
    text
}

/// What the figures are given. The numbers are those that claims name.
fn inputs(paper: &Paper, sensitivity: Option<&Sensitivity>, documents: &[Document]) -> String {
    let mut text = String::from(
        "\n## Inputs\nWhat runs are given, with its source. What was fitted, or chosen after results were seen, says so.",
    );
    if let Some(it) = sensitivity {
        let ops = if it.sizes.operations == Sizes::SMALL.operations {
            String::new()
        } else {
            format!(" --ops {}", it.sizes.operations)
        };
        write!(
            text,
            " Each number was moved by {} % both ways at a small scale \
             (`rackmem-lab figure {} --scale small{ops} --perturb {}`).",
            it.percent, paper.name, it.percent
        )
        .expect("text grows");
    }
    text.push_str("\n\n| | input | value | source |\n|---:|---|---:|---|\n");
    for (number, Declared { what, value, source }) in
        (1..).zip(documents.iter().take(1).flat_map(|document| &document.inputs))
    {
        writeln!(text, "| {number} | {what} | {value} | {source} |").expect("text grows");
    }
    text
}

fn figure(text: &mut String, document: &Document, sensitivity: Option<&Sensitivity>, drawings: &str) {
    let report = &document.report;
    write!(text, "\n## {}\n{}.\n", report.figure, report.title).expect("text grows");
    for note in &report.notes {
        write!(text, "\n{note}\n").expect("text grows");
    }
    for chart in &report.charts {
        let (title, name) = (&chart.title, &chart.name);
        write!(text, "\n![{title}]({drawings}/{name}.svg)\n\nData: [{name}.csv]({drawings}/{name}.csv).\n")
            .expect("text grows");
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
        let moves = |claim: &Claim| sensitivity.map_or(String::new(), |it| moves(it, document, claim));
        text.push_str(&claims_table(&report.claims, moves));
    }
    for remark in &report.remarks {
        write!(text, "\n{remark}\n").expect("text grows");
    }
}

fn row(cells: &[String]) -> String {
    cells.iter().map(|cell| format!(" {cell} |")).collect()
}

/// The inputs that change a claim's verdict.
fn moves(sensitivity: &Sensitivity, document: &Document, claim: &Claim) -> String {
    let number = |name: &str| document.inputs.iter().position(|input| input.what == name).map(|at| at + 1);
    let of = || sensitivity.of(&document.report.figure, &claim.what);
    if let Some(other) = of().find(|it| it.from != claim.verdict()) {
        return format!("*{}* at that scale", other.from);
    }
    let each = of().filter_map(|it| Some(format!("{}{}", number(&it.input)?, if it.up { "+" } else { "-" })));
    each.collect::<Vec<_>>().join(" ")
}

/// Claims as a table, with the causes under it, and what moves each.
pub fn claims_table(claims: &[Claim], moves: impl Fn(&Claim) -> String) -> String {
    let moved: Vec<String> = claims.iter().map(moves).collect();
    let has_moves = moved.iter().any(|moves| !moves.is_empty());
    let mut text = String::from("| claim | paper | ours | ratio | met |");
    text.push_str(if has_moves {
        " moves with |\n|---|---:|---:|---:|---|---|\n"
    } else {
        "\n|---|---:|---:|---:|---|\n"
    });
    let mut causes: Vec<&str> = Vec::new();
    for (claim, moved) in claims.iter().zip(moved) {
        let mut verdict = claim.verdict().to_owned();
        if let Some(cause) = claim.cause.as_deref() {
            let place = causes.iter().position(|known| *known == cause).unwrap_or_else(|| {
                causes.push(cause);
                causes.len() - 1
            });
            write!(verdict, " ({})", place + 1).expect("text grows");
        }
        let ratio = if claim.size().is_some() { number(claim.to_paper()) } else { String::new() };
        let ours = if claim.basis == Basis::Ours { "ours: " } else { "" };
        let (what, paper, number) = (&claim.what, claim.paper_text(), claim.ours_text());
        write!(text, "| {ours}{what} | {paper} | {number} | {ratio} | {verdict} |").expect("text grows");
        if has_moves {
            write!(text, " {moved} |").expect("text grows");
        }
        text.push('\n');
    }
    if !causes.is_empty() {
        text.push('\n');
    }
    for (number, cause) in (1..).zip(causes) {
        writeln!(text, "{number}. {cause}").expect("text grows");
    }
    text
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
        let text = claims_table(&claims, |_| String::new());
        assert!(text.ends_with("\n1. first\n2. second\n"), "{text}");
        assert!(text.contains("| c | 2.00x | 9.00x | 4.50 | direction only (1) |"), "{text}");
        assert!(text.contains("| d | 2.00x | 2.00x | 1.00 | yes |"), "{text}");
    }

    #[test]
    fn prose_is_wrapped_and_tables_and_code_are_not() {
        let long = "word ".repeat(60);
        let text = wrapped(&format!("{long}\n\n1. {long}\n- a\n  b\n| {long}|\n```sh\n{long}\n```\n"));
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines.iter().filter(|line| line.len() > COLUMNS).all(|line| line.starts_with(['|', 'w'])),
            "{text}"
        );
        assert!(text.contains("\n   word") && text.contains("\n- a b\n"), "{text}");
        assert_eq!(lines.iter().filter(|line| line.len() > COLUMNS).count(), 2, "{text}");
    }

    #[test]
    fn what_moves_a_claim_has_a_column_where_anything_does() {
        let claims = [Claim::ratio("a", 2.0, 2.0), Claim::target("b", 2.0, 3.0)];
        assert!(!claims_table(&claims, |_| String::new()).contains("moves with"));
        let text =
            claims_table(&claims, |claim| if claim.what == "a" { "7-".to_owned() } else { String::new() });
        assert!(text.contains("| a | 2.00x | 2.00x | 1.00 | yes | 7- |"), "{text}");
        assert!(text.contains("| ours: b | > 2.00x | 3.00x |  | yes |  |"), "{text}");
    }
}
