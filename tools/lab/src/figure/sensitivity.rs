//! Which claims change their verdict when an input is moved.
//!
//! What must always hold: the run that is compared with has the same sizes and seed, and every point of it that an input
//! can reach is measured again with that input moved.

use serde::{Deserialize, Serialize};

use super::input::{Input, Inputs};
use super::measured::Measured;
use super::point::Point;
use super::run::{Interrupted, measure_all};
use super::{Figure, FigureReport, Results, points_of};
use crate::sizes::Sizes;

/// What moving the inputs of a paper's figures changes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sensitivity {
    /// The paper's name.
    pub paper: String,
    /// The seed of the runs.
    pub seed: u64,
    /// The sizes of the runs.
    pub sizes: Sizes,
    /// By so much inputs were moved, down and up.
    pub percent: u8,
    /// The inputs that were moved.
    pub inputs: Vec<String>,
    /// The figures that were run.
    pub figures: Vec<String>,
    /// The verdicts that changed.
    pub moved: Vec<Moved>,
}

/// A verdict that changed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Moved {
    /// Of which figure.
    pub figure: String,
    /// Of which claim.
    pub claim: String,
    /// The input that was moved.
    pub input: String,
    /// Upwards.
    pub up: bool,
    /// The verdict without that.
    pub from: String,
    /// And with it.
    pub to: String,
}

impl Sensitivity {
    /// The moves that change the verdict of a claim.
    pub fn of<'a>(&'a self, figure: &'a str, claim: &'a str) -> impl Iterator<Item = &'a Moved> {
        self.moved.iter().filter(move |moved| moved.figure == figure && moved.claim == claim)
    }
}

/// Moves each input down and up by `percent`, and reports which verdicts change. `measure` gets a point, the inputs and a
/// seed; `began` hears of each input, and how many there are.
///
/// # Errors
/// [`Interrupted`] if a run was.
pub fn sensitivity(
    (paper, inputs): (&str, &[&Input]),
    figures: &[&dyn Figure],
    (sizes, seed, percent, threads): (Sizes, u64, u8, usize),
    measure: impl Fn(&Point, &Inputs, u64) -> Result<Measured, Interrupted> + Sync,
    mut began: impl FnMut(&str, usize, usize),
) -> Result<Sensitivity, Interrupted> {
    let points = points_of(figures);
    let run = |points: &[Point], inputs: &Inputs| {
        measure_all(points, threads, seed, |point, seed| measure(point, inputs, seed))
    };
    let base = run(&points, &Inputs::declared())?;
    let before: Vec<FigureReport> = figures.iter().map(|figure| figure.report(&base)).collect();
    let mut moved = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let Some(scale) = input.scale else { continue };
        began(input.name, number, inputs.len());
        let (reached, others): (Vec<Point>, Vec<Point>) =
            points.iter().copied().partition(|point| input.reaches(point));
        for (up, by) in [(false, 1.0 - f64::from(percent) / 100.0), (true, 1.0 + f64::from(percent) / 100.0)]
        {
            let mut values = Inputs::declared();
            scale(&mut values, by);
            let again = run(&reached, &values)?;
            let unreached = base.of(&others).map(|(point, measured)| (*point, measured.clone()));
            let results = Results::new(again.iter().cloned().chain(unreached).collect());
            for (figure, report) in figures.iter().zip(&before) {
                moved.extend(changed(report, &figure.report(&results), input.name, up));
            }
        }
    }
    let (inputs, figures) = (
        inputs.iter().filter(|input| input.scale.is_some()).map(|input| input.name.to_owned()).collect(),
        figures.iter().map(|figure| figure.name().to_owned()).collect(),
    );
    Ok(Sensitivity { paper: paper.to_owned(), seed, sizes, percent, inputs, figures, moved })
}

/// The claims whose verdict is another one now.
fn changed(before: &FigureReport, after: &FigureReport, input: &str, up: bool) -> Vec<Moved> {
    let pairs = before.claims.iter().zip(&after.claims);
    pairs
        .filter(|(old, new)| old.verdict() != new.verdict())
        .map(|(old, new)| Moved {
            figure: before.figure.clone(),
            claim: old.what.clone(),
            input: input.to_owned(),
            up,
            from: old.verdict().to_owned(),
            to: new.verdict().to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::claim::Claim;
    use crate::figure::input::{Source, inputs};
    use crate::figure::point::{Load, Micro, Subject};

    const LOAD: Load = Load::Micro(Micro::sharing(20));
    const POINTS: [Point; 2] = [Point::new(Subject::Gam, LOAD), Point::new(Subject::Grappa, LOAD)];

    struct Speed;

    impl Figure for Speed {
        fn name(&self) -> &'static str {
            "speed"
        }

        fn title(&self) -> &'static str {
            "two systems, one input each"
        }

        fn points(&self) -> Vec<Point> {
            POINTS.to_vec()
        }

        fn report(&self, results: &Results) -> FigureReport {
            let [gam, grappa] = POINTS.map(|point| results.at(point.subject, point.load).mops());
            FigureReport {
                figure: self.name().to_owned(),
                title: self.title().to_owned(),
                notes: Vec::new(),
                charts: Vec::new(),
                tables: Vec::new(),
                claims: vec![
                    Claim::ratio("ratio", 1.0, gam / grappa),
                    Claim::ratio("fast", 1.0, gam / grappa / 3.0),
                ],
                remarks: Vec::new(),
            }
        }
    }

    #[test]
    fn a_verdict_that_an_input_turns_is_named_with_the_way_it_was_moved() {
        let inputs = inputs![
            "access": gam.access; Source::Paper("nowhere at all"); |subject| subject == Subject::Gam,
            "idle": gam.step; Source::Paper("nowhere at all"); |_| false,
        ];
        let inputs: Vec<&Input> = inputs.iter().collect();
        let declared = Inputs::declared().gam.access.0;
        let measure = |point: &Point, inputs: &Inputs, _| {
            let operations = if point.subject == Subject::Gam { inputs.gam.access.0 } else { declared };
            Ok(Measured { operations, seconds: 1.0, ..Measured::default() })
        };
        let found =
            sensitivity(("paper", &inputs), &[&Speed], (Sizes::TINY, 1, 20, 1), measure, |_, _, _| {})
                .unwrap();
        let said: Vec<_> =
            found.of("speed", "ratio").map(|it| (it.input.as_str(), it.up, it.to.as_str())).collect();
        assert_eq!(said, [("access", false, "differs"), ("access", true, "differs")]);
        assert_eq!(found.of("speed", "fast").count(), 0);
        assert_eq!(found.inputs, ["access", "idle"]);
    }
}
