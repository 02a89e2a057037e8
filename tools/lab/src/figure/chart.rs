//! What a figure draws: lines over an axis, or bars for things that have names.
//!
//! What must always hold: the points of a line are in the order of their x.

use serde::{Deserialize, Serialize};

/// One drawing, and the table beside it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Chart {
    /// Stem of its files' names.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The label under it.
    pub x: String,
    /// The label beside it.
    pub y: String,
    /// Its lines.
    pub lines: Vec<Line>,
    /// What the paper states in the same axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stated: Vec<Stated>,
    /// Moments to mark: where, and what happens there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<(f64, String)>,
    /// Its values stand for themselves: nothing is drawn between them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dots: bool,
    /// What its x are the numbers of, from 0: then bars are drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Its bars span orders of magnitude.
    #[serde(default, skip_serializing_if = "is_false")]
    pub logarithmic: bool,
}

/// A number or a range that the paper states.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stated {
    /// What it is.
    pub name: String,
    /// x, and from which y to which.
    pub ranges: Vec<(f64, f64, f64)>,
}

/// One line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Whose.
    pub name: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
}

impl Chart {
    /// An empty chart.
    pub fn new(name: &str, title: &str, x: &str, y: &str) -> Self {
        let [name, title, x, y] = [name, title, x, y].map(str::to_owned);
        let (lines, stated, marks, categories) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { name, title, x, y, lines, stated, marks, dots: false, categories, logarithmic: false }
    }

    /// Bars: a group for each row, in which each column has one.
    pub fn bars(
        (name, title, y): (&str, &str, &str),
        columns: &[&str],
        rows: Vec<(String, Vec<f64>)>,
    ) -> Self {
        let mut chart = Self::new(name, title, "", y);
        for (at, column) in columns.iter().enumerate() {
            chart = chart.line(column, rows.iter().enumerate().map(|(x, (_, row))| (x as f64, row[at])));
        }
        chart.categories = rows.into_iter().map(|(category, _)| category).collect();
        chart
    }

    /// Draws bars on a logarithmic scale.
    #[must_use]
    pub fn logarithmic(mut self) -> Self {
        self.logarithmic = true;
        self
    }

    /// How an x is called: by its category, or as it is.
    pub fn called(&self, x: f64) -> String {
        self.categories.get(x as usize).cloned().unwrap_or_else(|| x.to_string())
    }

    /// The value of a line, of a category.
    pub fn of(&self, category: &str, line: usize) -> Option<f64> {
        let at = self.categories.iter().position(|known| known == category)?;
        self.lines.get(line)?.at(at as f64)
    }

    /// Draws values alone.
    #[must_use]
    pub fn dots(mut self) -> Self {
        self.dots = true;
        self
    }

    /// Adds a line; one without points is left out.
    #[must_use]
    pub fn line(mut self, name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points: Vec<_> = points.into_iter().collect();
        debug_assert!(points.is_sorted_by(|(a, _), (b, _)| a <= b), "{name}: points in the order of x");
        if !points.is_empty() {
            self.lines.push(Line { name: name.to_owned(), points });
        }
        self
    }

    /// Adds what the paper states: x, and from which y to which.
    #[must_use]
    pub fn stated(mut self, name: &str, ranges: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        self.stated.push(Stated { name: format!("paper: {name}"), ranges: ranges.into_iter().collect() });
        self
    }

    /// Adds a number that the paper states at one x.
    #[must_use]
    pub fn stated_at(self, name: &str, x: f64, y: f64) -> Self {
        self.stated(name, [(x, y, y)])
    }

    /// Adds a ratio of the paper to a line of this chart: the line times from so much to so much, at these x.
    ///
    /// # Panics
    /// If there is no such line.
    #[must_use]
    pub fn stated_ratio(
        self,
        name: &str,
        to: &str,
        (from, most): (f64, f64),
        xs: impl IntoIterator<Item = f64>,
    ) -> Self {
        let line = self.lines.iter().find(|line| line.name == to).unwrap_or_else(|| panic!("no line {to}"));
        let ranges: Vec<_> =
            xs.into_iter().filter_map(|x| line.at(x).map(|y| (x, y * from, y * most))).collect();
        self.stated(name, ranges)
    }

    /// All x of all lines, once each, in order.
    pub fn abscissae(&self) -> Vec<f64> {
        let mut all: Vec<f64> =
            self.lines.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x)).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Line {
    /// The value at an x that the line has.
    pub fn at(&self, x: f64) -> Option<f64> {
        self.points.iter().find(|(at, _)| *at == x).map(|(_, y)| *y)
    }
}
