//! A message sequence as a picture: time runs downwards, a message is a slanted line.

use std::fmt::Write as _;

use wire::Nanos;

use super::chart::{Chart, Step, What};

/// Between two columns, and around them, in pixels.
const COLUMN: u64 = 220;
const LEFT: u64 = 110;
const TOP: u64 = 70;
/// Two things that begin one after the other are at least so far apart, or their labels overlap.
const LEAST_STEP: u64 = 20;
/// A microsecond is so tall where nothing else decides.
const MICROSECOND: u64 = 34;

const STYLE: &str = "text{font:12px sans-serif;fill:#222}.head{font-weight:bold;font-size:13px}\
.time{fill:#888;font-size:10px}.lifeline{stroke:#bbb}.m{stroke:#2166ac;stroke-width:1.4}.b{stroke:#2166ac;stroke-width:3.4}\
.lost{stroke:#b2182b;stroke-width:1.4;stroke-dasharray:5 3}.note{fill:#1b7837}";

/// Draws the chart.
pub fn draw(chart: &Chart) -> String {
    let scale = Scale::new(chart);
    let columns = chart.columns.len() as u64;
    let (width, height) = (LEFT + COLUMN * (columns - 1) + 200, scale.y(chart.end()) + 40);
    let mut out = String::new();
    let mut put = |line: String| {
        out.push_str(&line);
        out.push('\n');
    };
    put(format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">"#
    ));
    put(format!("<style>{STYLE}</style>"));
    put(format!(
        r#"<defs><marker id="a" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto" markerUnits="userSpaceOnUse"><path d="M0,0 L9,4 L0,8 z" fill="{}"/></marker></defs>"#,
        "#2166ac"
    ));
    put(r##"<rect width="100%" height="100%" fill="#fff"/>"##.to_string());
    put(format!(r#"<text class="head" x="12" y="20">{}</text>"#, escaped(&chart.title)));
    for (column, name) in chart.columns.iter().enumerate() {
        let x = x(column);
        put(format!(
            r#"<text class="head" x="{x}" y="{}" text-anchor="middle">{}</text>"#,
            TOP - 18,
            escaped(name)
        ));
        put(format!(r#"<line class="lifeline" x1="{x}" y1="{}" x2="{x}" y2="{}"/>"#, TOP - 8, height - 20));
    }
    for step in &chart.steps {
        let at_once = |other: &Step| other.at == step.at && matches!(other.what, What::Message { .. });
        put(drawn(step, &scale, chart.steps.iter().any(at_once)));
    }
    put("</svg>".into());
    out
}

const fn x(column: usize) -> u64 {
    LEFT + COLUMN * column as u64
}

/// Where moments are: stretched so that labels do not overlap.
struct Scale {
    /// Every moment of the chart with its position, in order.
    positions: Vec<(Nanos, u64)>,
}

impl Scale {
    fn new(chart: &Chart) -> Self {
        let mut moments: Vec<(Nanos, bool)> = Vec::new();
        for step in &chart.steps {
            moments.extend([(step.at, true), (step.end(), false)]);
        }
        moments.sort_unstable();
        let mut positions: Vec<(Nanos, u64)> = Vec::new();
        let mut last_label = None;
        for (at, labelled) in moments {
            let (before, y) = positions.last().copied().unwrap_or((at, TOP));
            let mut y = y + (at.0 - before.0) * MICROSECOND / 1000;
            if labelled {
                y = last_label.map_or(y, |last: u64| y.max(last + LEAST_STEP));
                last_label = Some(y);
            }
            match positions.last_mut() {
                Some(position) if position.0 == at => position.1 = y,
                _ => positions.push((at, y)),
            }
        }
        Self { positions }
    }

    fn y(&self, at: Nanos) -> u64 {
        let after = self.positions.partition_point(|(moment, _)| *moment < at);
        self.positions.get(after).or(self.positions.last()).map_or(TOP, |(_, y)| *y)
    }
}

/// A step. With `crowded`, a message begins at the same time, and needs the position of a note's text.
fn drawn(step: &Step, scale: &Scale, crowded: bool) -> String {
    let y = scale.y(step.at);
    let mut out = String::new();
    match &step.what {
        What::Note { column, text } => {
            let x = x(*column);
            let _ = write!(
                out,
                r##"<circle cx="{x}" cy="{y}" r="4" fill="#1b7837"/><text class="note" x="{}" y="{}">{}</text>"##,
                x + 9,
                if crowded { y + 15 } else { y + 4 },
                escaped(text)
            );
        }
        What::Message { from, to, handled, label, block } => {
            let (x1, x2, y2) = (x(*from), x(*to), scale.y(handled.unwrap_or(step.at)));
            let (class, x2, y2) = match handled {
                None => ("lost", x1.midpoint(x2), y + 10),
                Some(_) if *block => ("b", x2, y2),
                Some(_) => ("m", x2, y2),
            };
            if from == to {
                let _ = write!(
                    out,
                    r#"<path class="{class}" fill="none" marker-end="url(#a)" d="M{x1},{y} h30 V{y2} h-26"/>"#
                );
            } else {
                let mark = if handled.is_some() { r#" marker-end="url(#a)""# } else { "" };
                let _ =
                    write!(out, r#"<line class="{class}" x1="{x1}" y1="{y}" x2="{x2}" y2="{y2}"{mark}/>"#);
            }
            let (anchor, tx) = match (from == to, from < to) {
                (true, _) => ("start", x1 + 36),
                (false, true) => ("start", x1 + 12),
                (false, false) => ("end", x1 - 12),
            };
            // Above the line where it begins.
            let ty = if from == to { y.midpoint(y2) + 4 } else { y - 3 };
            let _ = write!(
                out,
                r#"<text x="{tx}" y="{ty}" text-anchor="{anchor}">{}{}</text>"#,
                escaped(label),
                if handled.is_none() { " (lost)" } else { "" }
            );
        }
    }
    let time = format!("{}.{:02} us", step.at.0 / 1000, step.at.0 % 1000 / 10);
    let _ = write!(out, r#"<text class="time" x="10" y="{}">{time}</text>"#, y + 3);
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let message = |at, handled, label: &str| Step {
            at: Nanos(at),
            what: What::Message { from: 0, to: 1, handled, label: label.into(), block: false },
        };
        Chart {
            title: "A <title> & more".into(),
            columns: vec!["node 0".into(), "switch".into()],
            steps: vec![
                message(0, Some(Nanos(900)), "READ-MISS"),
                message(0, None, "UNLOCK"),
                Step { at: Nanos(900), what: What::Note { column: 1, text: "locked".into() } },
            ],
        }
    }

    #[test]
    fn a_picture_is_well_formed_and_shows_every_step() {
        let svg = draw(&chart());
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("A &lt;title&gt; &amp; more"));
        for text in ["READ-MISS", "UNLOCK (lost)", "locked"] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }

    #[test]
    fn later_things_are_lower_and_labels_keep_apart() {
        let chart = chart();
        let scale = Scale::new(&chart);
        assert!(scale.y(Nanos(900)) >= scale.y(Nanos(0)) + LEAST_STEP);
    }
}
