//! Figures 7, 8 and 10: run time, instructions and misses, of whole kernels and of their accesses alone.

use super::{ACCESS, NODES, accesses, at, average, percent, points, report, rows, saved};
use crate::figure::chart::Chart;
use crate::figure::claim::{Claim, number};
use crate::figure::measured::Measured;
use crate::figure::point::{Kernel, Load, Point, Program, Subject};
use crate::figure::{Figure, FigureReport, Results, Table};

/// Figure 7.
pub(super) struct Time;
/// Figure 8.
pub(super) struct Instructions;
/// Figure 10.
pub(super) struct Misses;

/// What runs on the slower network.
const SLOW: [Subject; 2] = [Subject::Rae, Subject::LibraryNear];
const LIBRARIES: [Subject; 2] = [Subject::LibraryNear, Subject::LibraryTcp];
const SUBJECTS: [Subject; 3] = [Subject::Rae, LIBRARIES[0], LIBRARIES[1]];

const IRREGULAR: [Kernel; 10] = [
    Kernel::Rand,
    Kernel::PtrChase,
    Kernel::Sg,
    Kernel::Scatter,
    Kernel::Gather,
    Kernel::Bfs,
    Kernel::Sssp,
    Kernel::Pr,
    Kernel::Cc,
    Kernel::Bc,
];
const REGULAR: [Kernel; 3] = [Kernel::Stride1, Kernel::StrideN, Kernel::Central];

/// Kernels whose accesses are atomics: all but triangles.
const ATOMIC: [Kernel; 13] = [
    Kernel::Rand,
    Kernel::Stride1,
    Kernel::StrideN,
    Kernel::PtrChase,
    Kernel::Central,
    Kernel::Sg,
    Kernel::Scatter,
    Kernel::Gather,
    Kernel::Bfs,
    Kernel::Sssp,
    Kernel::Pr,
    Kernel::Cc,
    Kernel::Bc,
];

const LISTS: &str = "tc fetches lists of neighbours, one library call each, and spends its time \
    comparing them on both paths.";
const SLOWER: &str = "The paper does not say how long a remote access takes. Ours takes some hundred \
    cycles, so a library's hundreds of instructions weigh more. The remark below says how slow it would \
    have to be.";
const TESTED: &str = "Packets take 0.36 us more; this delay was fitted.";
const FETCHED: &str = "A line is let go as soon as nothing waits for it (section III-C), so each \
    request fetches its line unless it joins another.";
const SCALED: &str = "The paper does not give the size of its data; rae-sizes has sizes with as many \
    misses. Here a node's part of a graph's array is 5 KiB, in a cache of 64 KiB, and many atomics of \
    SCATTER, GATHER and SG are in order.";
const ONCE: &str = "One pass over an array misses at each line. The paper's 0.11 % needs an array that \
    fits, and some fifty passes (rae-sizes).";

const fn far(kernel: Kernel) -> Load {
    Load::Far(Program { kernel, nodes: NODES })
}

fn all() -> Vec<Kernel> {
    [Kernel::PATTERNS.as_slice(), Kernel::GRAPH.as_slice()].concat()
}

/// Cycles of all nodes for an access: its own instructions, waiting, and the library's.
fn latency(it: &Measured) -> f64 {
    let all = it.count("waited") + it.count("charged") + ACCESS * accesses(it);
    all as f64 / accesses(it).max(1) as f64
}

/// Instructions of all nodes for accesses.
fn for_accesses(it: &Measured) -> f64 {
    (it.count("charged") + ACCESS * accesses(it)) as f64
}

/// What is saved of something, against both libraries.
fn each_saved(results: &Results, kernel: Kernel, number: fn(&Measured) -> f64) -> Vec<f64> {
    let ours = number(at(results, Subject::Rae, kernel));
    LIBRARIES.map(|library| saved(ours, number(at(results, library, kernel)))).into()
}

/// What is saved, of each kernel and on average.
fn saving(
    results: &Results,
    of: (&str, &str, &str),
    whole: fn(&Measured) -> f64,
    part: fn(&Measured) -> f64,
) -> Chart {
    let columns = ["whole kernel: shared memory", "TCP", "accesses alone: shared memory", "TCP, accesses"];
    let row = |kernel| [each_saved(results, kernel, whole), each_saved(results, kernel, part)].concat();
    let mut all_rows = rows(&all(), row);
    let (_, atomics) = rows(&ATOMIC, row).pop().expect("the last is the average");
    all_rows.push((WITHOUT_LISTS.to_owned(), atomics));
    Chart::bars(of, &columns, all_rows)
}

/// The average of all kernels that are about atomics.
const WITHOUT_LISTS: &str = "average without tc";

fn of(chart: &Chart, category: &str, column: usize) -> f64 {
    chart.of(category, column).unwrap_or(0.0)
}

/// The average of a column, of kernels that are about atomics.
fn last(chart: &Chart, column: usize) -> f64 {
    of(chart, WITHOUT_LISTS, column)
}

/// Cycles of an access with which a library's instructions would weigh as much as in the paper, on average of the kernels.
fn as_slow(results: &Results, library: Subject) -> f64 {
    let charged = |kernel| {
        let it = at(results, library, kernel);
        it.count("charged") as f64 / accesses(it).max(1) as f64
    };
    average(all().into_iter().map(charged)) * (1.0 / 0.1761 - 1.0)
}

impl Figure for Time {
    fn name(&self) -> &'static str {
        "rae-7"
    }

    fn title(&self) -> &'static str {
        "Run time that RAE saves against OpenSHMEM"
    }

    fn points(&self) -> Vec<Point> {
        let slow = SLOW.into_iter().flat_map(|subject| ATOMIC.map(|kernel| Point::new(subject, far(kernel))));
        points(&SUBJECTS, &all()).into_iter().chain(slow).collect()
    }

    fn report(&self, results: &Results) -> FigureReport {
        let cycles = |it: &Measured| it.count("cycles") as f64;
        let title = ("rae-7", "Time saved", "% of the time with the library");
        let chart = saving(results, title, cycles, latency);
        let most = all().into_iter().map(|kernel| of(&chart, kernel.name(), 0)).fold(0.0, f64::max);
        let mut claims = vec![
            Claim::over("at least: whole kernels, average, shared memory", 17.61, last(&chart, 0), "%"),
            Claim::over("at least: whole kernels, average, TCP", 17.61, last(&chart, 1), "%"),
            Claim::quantity("whole kernels, average, shared memory", 17.61, last(&chart, 0), "%")
                .because(SLOWER),
            Claim::quantity("whole kernels, the most, shared memory", 23.35, most, "%").because(SLOWER),
            Claim::quantity("accesses alone, average, shared memory", 17.61, last(&chart, 2), "%")
                .because(SLOWER),
        ];
        let slower = rows(&ATOMIC, |kernel| {
            let each = SLOW.map(|subject| results.at(subject, far(kernel)));
            let time = each.map(|it| it.seconds * 1e3);
            [time.to_vec(), each.map(latency).to_vec(), vec![saved(time[0], time[1])]].concat()
        });
        let slow_saved = slower.last().map_or(0.0, |(_, row)| row[4]);
        claims.push(
            Claim::quantity(
                "a slower network: whole kernels, average, shared memory",
                17.61,
                slow_saved,
                "%",
            )
            .calibrated()
            .because(TESTED),
        );
        for kernel in [Kernel::Gather, Kernel::Scatter, Kernel::Stride1, Kernel::StrideN] {
            let what = format!("{}: whole kernel, shared memory", kernel.name());
            claims.push(Claim::over(&what, 20.0, of(&chart, kernel.name(), 0), "%"));
        }
        let kernels = rows(&all(), |kernel| {
            let it = |subject| at(results, subject, kernel);
            let millis = SUBJECTS.map(|subject| it(subject).seconds * 1e3);
            [millis, SUBJECTS.map(|subject| latency(it(subject)))].concat()
        });
        let columns = ["RAE, ms", "shared memory", "TCP", "RAE, cycles an access", "shared memory", "TCP"];
        let slow = format!(
            "A library's instructions would be 17.61 % of an access that took {} cycles by itself \
             (shared memory), or {} (TCP).",
            number(as_slow(results, LIBRARIES[0])),
            number(as_slow(results, LIBRARIES[1]))
        );
        FigureReport {
            charts: vec![chart.stated_at("17.61 % on average", 0.0, 17.61)],
            tables: vec![
                Table {
                    title: "Run time of the kernel, and what an access of shared memory takes".to_owned(),
                    columns: columns.map(str::to_owned).into(),
                    rows: kernels,
                },
                Table {
                    title: "The same on a network whose packets take 720 cycles more (fitted to 17.61 %)"
                        .to_owned(),
                    columns: [
                        "RAE, ms",
                        "shared memory",
                        "RAE, cycles an access",
                        "shared memory",
                        "time saved, %",
                    ]
                    .map(str::to_owned)
                    .into(),
                    rows: slower,
                },
            ],
            claims,
            remarks: vec![slow],
            ..report(self, NOTE)
        }
    }
}

const NOTE: &str = "Six nodes. Whole kernel: from barrier to barrier. Accesses alone: atomics, loads \
    and stores of shared memory, with the library's instructions and waiting. Shared memory and TCP are \
    the paths of Open MPI whose instructions were counted; the network is RAE's in all three. Averages \
    of claims exclude tc, which has hardly any atomics.";

impl Figure for Instructions {
    fn name(&self) -> &'static str {
        "rae-8"
    }

    fn title(&self) -> &'static str {
        "Instructions that RAE saves against OpenSHMEM"
    }

    fn points(&self) -> Vec<Point> {
        points(&SUBJECTS, &all())
    }

    fn report(&self, results: &Results) -> FigureReport {
        let whole = |it: &Measured| it.count("instructions") as f64;
        let title = ("rae-8", "Instructions saved", "% of those with the library");
        let chart = saving(results, title, whole, for_accesses);
        let claim = |what: &str, column| Claim::quantity(what, 89.71, last(&chart, column), "%");
        let with_lists = of(&chart, "average", 0);
        let claims = vec![
            Claim::over("at least: whole kernels, average, shared memory", 89.71, last(&chart, 0), "%"),
            Claim::over("at least: accesses alone, average, shared memory", 89.71, last(&chart, 2), "%"),
            Claim::over("whole kernels with tc, average, shared memory", 89.71, with_lists, "%")
                .because(LISTS),
            claim("whole kernels, average, shared memory", 0),
            claim("whole kernels, average, TCP", 1),
            claim("accesses alone, average, shared memory", 2),
            claim("accesses alone, average, TCP", 3),
        ];
        let kernels =
            rows(&all(), |kernel| SUBJECTS.map(|subject| whole(at(results, subject, kernel)) / 1e3).into());
        FigureReport {
            charts: vec![chart.stated_at("89.71 % on average", 0.0, 89.71)],
            tables: vec![Table {
                title: "Instructions of the whole kernel, all nodes, in thousands".to_owned(),
                columns: SUBJECTS.map(|subject| subject.name().to_owned()).into(),
                rows: kernels,
            }],
            claims,
            ..report(self, NOTE)
        }
    }
}

impl Figure for Misses {
    fn name(&self) -> &'static str {
        "rae-10"
    }

    fn title(&self) -> &'static str {
        "Misses of the engine's cache"
    }

    fn points(&self) -> Vec<Point> {
        points(&[Subject::Rae], &all())
    }

    fn report(&self, results: &Results) -> FigureReport {
        let it = |kernel| at(results, Subject::Rae, kernel);
        let fetched = |kernel| percent(it(kernel).count("fetched"), it(kernel).count("requests"));
        let kept = |kernel| percent(it(kernel).count("misses of kept lines"), accesses(it(kernel)));
        let mean = |kernels: &[Kernel], of: &dyn Fn(Kernel) -> f64| {
            average(kernels.iter().map(|kernel| of(*kernel)))
        };
        let claims = vec![
            Claim::quantity(
                "irregular kernels, lines that are let go",
                85.05,
                mean(&IRREGULAR, &fetched),
                "%",
            ),
            Claim::quantity("irregular kernels, lines that are kept", 85.05, mean(&IRREGULAR, &kept), "%")
                .because(SCALED),
            Claim::quantity("regular kernels, lines that are let go", 0.11, mean(&REGULAR, &fetched), "%")
                .because(FETCHED),
            Claim::quantity("regular kernels, lines that are kept", 0.11, mean(&REGULAR, &kept), "%")
                .because(ONCE),
            Claim::quantity("CENTRAL, lines that are kept", 0.11, kept(Kernel::Central), "%").because(ONCE),
        ];
        FigureReport {
            charts: vec![
                Chart::bars(
                    ("rae-10", "Requests that miss", "%"),
                    &["lines that are let go", "lines that are kept"],
                    rows(&all(), |kernel| vec![fetched(kernel), kept(kernel)]),
                )
                .stated("irregular 85.05 %", [(0.0, 85.05, 85.05)])
                .stated("regular 0.11 %", [(0.0, 0.11, 0.11)]),
            ],
            claims,
            ..report(
                self,
                "Six nodes, RAE. Lines that are let go: as the engine works; joining requests do not \
                 miss. Lines that are kept: a direct-mapped cache of 1024 lines. Irregular: rand, \
                 ptrchase, sg, scatter, gather and the graph kernels but tc. Regular: stride1, striden, \
                 central.",
            )
        }
    }
}
