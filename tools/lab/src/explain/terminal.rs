//! A message sequence as text: one line a message, in the order of sending.
//!
//! ```text
//!   sent us    node 0                 switch                 node 1             handled us
//!      0.00      │─ READ-MISS ────────>│                      │                      1.02
//! ```

use std::fmt::Write as _;

use wire::Nanos;

use super::chart::{Chart, Step, What};

/// Between the middles of two columns.
const WIDTH: usize = 24;
/// Left of the first column's middle.
const MARGIN: usize = 4;
/// Right of the last one's: what happens there needs room to be said.
const RIGHT: usize = 26;

/// Draws the chart.
pub fn draw(chart: &Chart) -> String {
    let mut out = format!("{}\n\n", chart.title);
    let width = MARGIN + WIDTH * (chart.columns.len() - 1) + RIGHT;
    let mut heads = vec![' '; width];
    for (column, name) in chart.columns.iter().enumerate() {
        let half = name.chars().count() / 2;
        write_at(&mut heads, middle(column).saturating_sub(half), name);
    }
    line(&mut out, "sent us", &heads, "handled us");
    for step in &chart.steps {
        let (lane, handled) = lane(chart, step, width);
        line(&mut out, &micros(step.at), &lane, &handled);
    }
    out
}

fn line(out: &mut String, left: &str, lane: &[char], right: &str) {
    let lane: String = lane.iter().collect();
    let text = format!("{left:>9}  {lane}{right:>10}");
    writeln!(out, "{}", text.trim_end()).expect("a string takes everything");
}

fn micros(at: Nanos) -> String {
    format!("{}.{:02}", at.0 / 1000, at.0 % 1000 / 10)
}

const fn middle(column: usize) -> usize {
    MARGIN + column * WIDTH
}

fn write_at(lane: &mut [char], at: usize, text: &str) {
    for (place, letter) in lane.iter_mut().skip(at).zip(text.chars()) {
        *place = letter;
    }
}

/// The line between the two times.
fn lane(chart: &Chart, step: &Step, width: usize) -> (Vec<char>, String) {
    let mut lane = vec![' '; width];
    for column in 0..chart.columns.len() {
        lane[middle(column)] = '│';
    }
    match &step.what {
        What::Note { column, text } => {
            lane[middle(*column)] = '●';
            write_at(&mut lane, middle(*column) + 2, text);
            (lane, String::new())
        }
        What::Message { from, to, handled, label, block } => {
            arrow(&mut lane, *from, *to, label, *block, handled.is_none());
            (lane, handled.map_or_else(|| "lost".into(), micros))
        }
    }
}

fn arrow(lane: &mut [char], from: usize, to: usize, label: &str, block: bool, lost: bool) {
    if from == to {
        // From one agent of a node to another.
        return write_at(lane, middle(from) + 1, &format!("─┐ {label}"));
    }
    let (left, right) = (middle(from.min(to)), middle(from.max(to)));
    let stroke = if block { '═' } else { '─' };
    lane[left + 1..right].fill(stroke);
    match (from < to, lost) {
        (true, false) => lane[right - 1] = '>',
        (false, false) => lane[left + 1] = '<',
        (true, true) => lane[right - 3..right].copy_from_slice(&['x', ' ', ' ']),
        (false, true) => lane[left + 1..left + 4].copy_from_slice(&[' ', ' ', 'x']),
    }
    // The label begins where the message does.
    let text = format!(" {label} ");
    let length = text.chars().count();
    let start = if from < to { left + 2 } else { (right - 1).saturating_sub(length).max(left + 2) };
    write_at(lane, start, &text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(from: usize, to: usize, handled: Option<u64>, block: bool) -> Step {
        let handled = handled.map(Nanos);
        Step { at: Nanos(1500), what: What::Message { from, to, handled, label: "ACK".into(), block } }
    }

    fn lines(steps: Vec<Step>) -> Vec<String> {
        let columns = vec!["node 0".into(), "switch".into(), "node 1".into()];
        let text = draw(&Chart { title: "t".into(), columns, steps });
        text.lines().skip(3).map(String::from).collect()
    }

    #[test]
    fn an_arrow_leads_from_its_sender_to_its_receiver() {
        let drawn = lines(vec![message(0, 1, Some(2500), false), message(2, 0, Some(2500), true)]);
        assert!(drawn[0].contains("│─ ACK ────") && drawn[0].contains(">│"), "{}", drawn[0]);
        assert!(drawn[0].ends_with("2.50") && drawn[0].trim_start().starts_with("1.50"), "{}", drawn[0]);
        assert!(drawn[1].contains("│<═") && drawn[1].contains(" ACK ═│"), "{}", drawn[1]);
    }

    #[test]
    fn a_lost_message_does_not_reach_its_column() {
        let drawn = lines(vec![message(0, 1, None, false)]);
        assert!(drawn[0].contains("x  │") && drawn[0].ends_with("lost"), "{}", drawn[0]);
    }

    #[test]
    fn every_lane_has_the_same_columns() {
        let drawn = lines(vec![message(0, 1, Some(1), false), message(1, 2, Some(1), false)]);
        let third = |line: &str| line.chars().nth(11 + middle(2));
        assert!(drawn.iter().all(|line| third(line) == Some('│')), "{drawn:#?}");
    }
}
