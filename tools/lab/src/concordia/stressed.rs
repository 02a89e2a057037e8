//! Not in the paper: its experiments where the switch has less than it needs, and from a cold start.
//!
//! The paper's switch has an entry for every shared block, so its choice of blocks, the paper's second
//! contribution, never matters. Here it does.

use super::compare::Axis;
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::measured::Measured;
use crate::figure::point::{HotSet, Load, Micro, Point, Stressed, Subject};
use crate::figure::{Figure, FigureReport, Results};

const fn stressed(load: Micro, fewer: u8) -> Load {
    Load::Stressed(Stressed { load, cold: false, fewer, hot: HotSet::None })
}

/// Figures 9 to 12 with too few entries.
pub(super) struct Directory;

/// So many times fewer entries than blocks in the pool.
const FEWER: [u8; 3] = [2, 8, 32];
const SHARING: &[u8] = &[20, 40, 60, 80, 100];
const READS: &[u8] = &[0, 25, 50, 75, 100];
const LOCALITY: &[u8] = &[0, 20, 40, 60, 80];

const fn sharing(value: u8) -> Micro {
    Micro::sharing(value)
}

const fn reads(value: u8) -> Micro {
    Micro { sharing: 60, reads: value, locality: 0 }
}

const fn locality(value: u8) -> Micro {
    Micro { sharing: 20, reads: 50, locality: value }
}

/// One experiment of the paper: name, title, what it varies, and its loads with all entries and with fewer.
struct Experiment {
    part: &'static str,
    title: &'static str,
    x: &'static str,
    y: &'static str,
    number: fn(&Measured) -> f64,
    full: Axis,
    fewer: [Axis; 3],
}

macro_rules! experiment {
    ($part:literal, $title:literal, ($x:literal, $y:literal), $values:ident, $load:ident, $number:expr) => {
        Experiment {
            part: $part,
            title: $title,
            x: $x,
            y: $y,
            number: $number,
            full: Axis { values: $values, load: |value| Load::Micro($load(value)) },
            fewer: [
                Axis { values: $values, load: |value| stressed($load(value), FEWER[0]) },
                Axis { values: $values, load: |value| stressed($load(value), FEWER[1]) },
                Axis { values: $values, load: |value| stressed($load(value), FEWER[2]) },
            ],
        }
    };
}

const HOME_PACKETS: fn(&Measured) -> f64 = |it| it.per_operation(it.home_packets);

static EXPERIMENTS: [Experiment; 4] = [
    experiment!(
        "a",
        "Figure 9 with too few entries",
        ("sharing ratio (%)", "Mops"),
        SHARING,
        sharing,
        Measured::mops
    ),
    experiment!(
        "b",
        "Figure 10 with too few entries",
        ("sharing ratio (%)", "packets of home agents per operation"),
        SHARING,
        sharing,
        HOME_PACKETS
    ),
    experiment!(
        "c",
        "Figure 11 at 60 % sharing with too few entries",
        ("read ratio (%)", "Mops"),
        READS,
        reads,
        Measured::mops
    ),
    experiment!(
        "d",
        "Figure 12 with too few entries",
        ("locality (%)", "Mops"),
        LOCALITY,
        locality,
        Measured::mops
    ),
];

/// Entries against a hot set: how many times too few for the whole pool.
const TOO_FEW: &[u8] = &[1, 2, 8, 32, 128];
const HOT: Micro = Micro::sharing(100);

const fn hot(fewer: u8, hot: HotSet) -> Load {
    Load::Stressed(Stressed { load: HOT, cold: false, fewer, hot })
}

const STILL: Axis = Axis { values: TOO_FEW, load: |fewer| hot(fewer, HotSet::Still) };
const MOVING: Axis = Axis { values: TOO_FEW, load: |fewer| hot(fewer, HotSet::Moving) };
const BOTH: [Subject; 2] = [Subject::Concordia, Subject::HomeOnly];

impl Figure for Directory {
    fn name(&self) -> &'static str {
        "concordia-directory"
    }

    fn title(&self) -> &'static str {
        "Not in the paper: a switch with 2, 8 and 32 times too few entries, and hot sets that move"
    }

    fn points(&self) -> Vec<Point> {
        let of = |it: &Experiment| {
            let fewer = it.fewer.iter().flat_map(|axis| axis.points(&[Subject::Concordia]));
            it.full.points(&BOTH).into_iter().chain(fewer).collect::<Vec<_>>()
        };
        // A directory at the homes does not depend on the switch.
        let homes = [STILL.points(&BOTH[1..])[0], MOVING.points(&BOTH[1..])[0]];
        EXPERIMENTS
            .iter()
            .flat_map(of)
            .chain([STILL, MOVING].iter().flat_map(|axis| axis.points(&BOTH[..1])))
            .chain(homes)
            .collect()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let chart = |it: &Experiment| {
            let mut chart = Chart::new(&format!("{}-{}", self.name(), it.part), it.title, it.x, it.y)
                .line("all entries", it.full.line(results, Subject::Concordia, it.number));
            for (fewer, axis) in FEWER.iter().zip(&it.fewer) {
                chart = chart.line(
                    &format!("{fewer} times too few"),
                    axis.line(results, Subject::Concordia, it.number),
                );
            }
            chart.line(Subject::HomeOnly.name(), it.full.line(results, Subject::HomeOnly, it.number))
        };
        let mut hot = Chart::new(
            &format!("{}-hot", self.name()),
            "Nine accesses in ten to one place in 64, 100 % sharing",
            "times too few entries for all shared blocks",
            "Mops",
        );
        for (axis, what) in [(&STILL, "hot set stays"), (&MOVING, "hot set moves")] {
            hot = hot
                .line(&format!("Concordia, {what}"), axis.line(results, Subject::Concordia, Measured::mops));
            let home = results.at(Subject::HomeOnly, (axis.load)(TOO_FEW[0])).mops();
            hot = hot.line(
                &format!("home-only, {what}"),
                axis.values.iter().map(|fewer| (f64::from(*fewer), home)),
            );
        }
        let over_home = |axis: &Axis, fewer: u8| {
            results.at(Subject::Concordia, (axis.load)(fewer)).mops()
                / results.at(Subject::HomeOnly, (axis.load)(TOO_FEW[0])).mops()
        };
        let uniform = |at: usize| {
            let ours = results.at(Subject::Concordia, (EXPERIMENTS[0].fewer[at].load)(60)).mops();
            ours / results.at(Subject::HomeOnly, Load::Micro(sharing(60))).mops()
        };
        let claims = vec![
            Claim::target("60 % sharing, 2 times too few: Concordia over home-only", 1.0, uniform(0)),
            Claim::target("60 % sharing, 32 times too few: Concordia over home-only", 0.95, uniform(2)),
            Claim::target(
                "hot set that stays, 32 times too few: Concordia over home-only",
                1.0,
                over_home(&STILL, 32),
            ),
            Claim::target(
                "hot set that moves, 32 times too few: Concordia over home-only",
                0.95,
                over_home(&MOVING, 32),
            ),
        ];
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "The paper's switch has more entries than there are shared blocks. Here it has 2, 8 and \
                 32 times fewer; homes choose their hottest blocks for it by epochs. In the last plot \
                 nine accesses in ten go to a hot set, one location in 64; a moving one changes every \
                 500 operations of a thread."
                    .to_owned(),
            ],
            tables: Vec::new(),
            remarks: Vec::new(),
            charts: EXPERIMENTS.iter().map(chart).chain([hot]).collect(),
            claims,
        }
    }
}

/// Figure 9 with nothing in caches and directories.
pub(super) struct Cold;

const WARM: Axis = Axis { values: SHARING, load: |value| Load::Micro(sharing(value)) };
const COLD: Axis = Axis {
    values: SHARING,
    load: |value| Load::Stressed(Stressed { load: sharing(value), cold: true, fewer: 0, hot: HotSet::None }),
};
const STARTED: [Subject; 3] = [Subject::Concordia, Subject::HomeOnly, Subject::Gam];

impl Figure for Cold {
    fn name(&self) -> &'static str {
        "concordia-cold"
    }

    fn title(&self) -> &'static str {
        "Not in the paper: Figure 9 from empty caches and an empty switch"
    }

    fn points(&self) -> Vec<Point> {
        [WARM.points(&STARTED), COLD.points(&STARTED)].concat()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let chart =
            Chart::new(self.name(), "Filled before the run, and by running", "sharing ratio (%)", "Mops");
        let chart = STARTED.iter().fold(chart, |chart, subject| {
            chart
                .line(&format!("{}, filled", subject.name()), WARM.line(results, *subject, Measured::mops))
                .line(
                    &format!("{}, by running", subject.name()),
                    COLD.line(results, *subject, Measured::mops),
                )
        });
        let claim = |subject: Subject, sharing: u8| {
            let mops = |axis: &Axis| results.at(subject, (axis.load)(sharing)).mops();
            let what = format!("{}, {sharing} % sharing: by running over filled (the same)", subject.name());
            Claim::ratio(&what, 1.0, mops(&COLD) / mops(&WARM)).of_ours()
        };
        let entries = |axis: &Axis| results.at(Subject::Concordia, (axis.load)(60)).switch_entries as f64;
        let mut claims: Vec<Claim> = STARTED
            .iter()
            .flat_map(|subject| [20, 60, 100].map(|sharing| claim(*subject, sharing)))
            .collect();
        let what = "60 % sharing: entries in the switch at the end, by running over filled (the same)";
        claims.push(Claim::ratio(what, 1.0, entries(&COLD) / entries(&WARM).max(1.0)).of_ours());
        FigureReport {
            figure: self.name().to_owned(),
            title: self.title().to_owned(),
            notes: vec![
                "Other figures begin with filled caches and directories. Here two operations for each \
                 location of every thread fill them before counting, and entries migrate to the switch \
                 by protocol."
                    .to_owned(),
            ],
            tables: Vec::new(),
            remarks: Vec::new(),
            charts: vec![chart],
            claims,
        }
    }
}
