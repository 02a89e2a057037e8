//! Figures: which points are measured for one, and what is made of them.
//!
//! A *point* is one run: a system under a load. Points know nothing of each other, and figures share them: a point
//! that several figures ask for is measured once.
//!
//! | file | holds |
//! | --- | --- |
//! | `point`, `measured` | what is run, and what it gave |
//! | `input` | what runs are given, with its source |
//! | `run` | points on all cores |
//! | `chart`, `claim` | what is made of them |
//! | `sensitivity` | which claims change their verdict when an input is moved |
//!
//! What must always hold: a report follows from the results alone, and those from points, sizes and seed alone.

pub mod chart;
pub mod claim;
pub mod input;
pub mod measured;
pub mod point;
pub mod run;
pub mod sensitivity;

use serde::{Deserialize, Serialize};

use chart::Chart;
use claim::Claim;
use measured::Measured;
use point::{Load, Point, Subject};

/// One figure of a paper.
pub trait Figure: Sync {
    /// What one types for it.
    fn name(&self) -> &'static str;

    /// What it is about, in a line.
    fn title(&self) -> &'static str;

    /// What has to be measured.
    fn points(&self) -> Vec<Point>;

    /// What follows from that.
    fn report(&self, results: &Results) -> FigureReport;
}

/// What became of a figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FigureReport {
    /// The figure's name.
    pub figure: String,
    /// What it is about.
    pub title: String,
    /// What there is to say about how it was measured, a paragraph each.
    pub notes: Vec<String>,
    /// What it draws.
    pub charts: Vec<Chart>,
    /// What is better read than drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Table>,
    /// What the paper says, and ours.
    pub claims: Vec<Claim>,
    /// What is to be said about all that, a paragraph each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// Numbers in rows and columns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Table {
    /// What it shows, with the unit.
    pub title: String,
    /// What each column is.
    pub columns: Vec<String>,
    /// What each row is, and its numbers.
    pub rows: Vec<(String, Vec<f64>)>,
}

/// Points with what was measured.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Results(Vec<(Point, Measured)>);

impl Results {
    /// From points and their measurements.
    pub fn new(points: Vec<(Point, Measured)>) -> Self {
        Self(points)
    }

    /// What was measured at a point.
    ///
    /// # Panics
    /// If it was not: a figure asks only for its own points.
    pub fn at(&self, subject: Subject, load: Load) -> &Measured {
        let found = self.0.iter().find(|(point, _)| point.subject == subject && point.load == load);
        &found.unwrap_or_else(|| panic!("{subject:?} was not measured under {load:?}")).1
    }

    /// Whether this point was measured.
    pub fn has(&self, point: &Point) -> bool {
        self.0.iter().any(|(other, _)| other == point)
    }

    /// Those of these points, in their order.
    pub fn of<'a>(&'a self, points: &'a [Point]) -> impl Iterator<Item = (&'a Point, &'a Measured)> {
        points.iter().map(|point| (point, self.at(point.subject, point.load)))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &(Point, Measured)> {
        self.0.iter()
    }

    /// A number that differs, almost surely, between results that differ anywhere.
    pub fn digest(&self) -> u64 {
        run::fnv(&serde_json::to_vec(&self.0).expect("numbers and names can be written"))
    }
}

/// All points of some figures, each once.
pub fn points_of(figures: &[&dyn Figure]) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for point in figures.iter().flat_map(|figure| figure.points()) {
        if !points.contains(&point) {
            points.push(point);
        }
    }
    points
}
