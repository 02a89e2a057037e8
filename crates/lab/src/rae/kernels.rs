//! Figures 7, 8 and 10: run time, instructions and misses, of whole kernels and of their accesses alone.

use super::{ACCESS, accesses, at, average, percent, points, report, rows, saved};
use crate::figure::claim::{Claim, number};
use crate::figure::measured::Measured;
use crate::figure::point::{Kernel, Point, Subject};
use crate::figure::{Figure, Report, Results, Table};

/// Figure 7.
pub(super) struct Time;
/// Figure 8.
pub(super) struct Instructions;
/// Figure 10.
pub(super) struct Misses;

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

const LISTS: &str = "tc fetches lists of neighbours and compares them: six atomics in all. A library is called once for a list, and both paths \
    spend their time on comparing.";
const SLOWER: &str = "The paper does not say what an access takes elsewhere. Ours takes what the sum of its parts says, some hundred cycles, so that \
    a library's hundreds of instructions weigh more than a sixth. The remark below says for how slow an access they would weigh as much as \
    in the paper.";
const FETCHED: &str = "The paper's text lets a line go as soon as nothing waits for it (section III-C), and so does ours: then each request \
    fetches its line but those that meet another one there. Of lines that are kept the table has a column of its own.";
const SCALED: &str = "The paper does not say how large its data is. Graphs here have 4096 vertices: a node's part of an array is 5 KiB, and stays in a \
    cache of 64 KiB that lets nothing go. PTRCHASE runs into a short cycle, as chains in random maps do. RAND, on arrays of \
    eight times the cache, is near the paper's number; of SCATTER and GATHER two atomics in three are in order.";
const ONCE: &str = "A line has eight elements of STRIDE1, and the stride of STRIDEN makes it one or two: an array that is gone through once misses at \
    each line, with any cache. The paper's 0.11 % needs an array that fits and is gone through many times. CENTRAL, which is one word, misses \
    once at all.";

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

fn table(results: &Results, title: &str, whole: fn(&Measured) -> f64, part: fn(&Measured) -> f64) -> Table {
    let columns = ["whole kernel: shared memory", "TCP", "accesses alone: shared memory", "TCP"];
    let row = |kernel| [each_saved(results, kernel, whole), each_saved(results, kernel, part)].concat();
    let mut all_rows = rows(&all(), row);
    let (_, atomics) = rows(&ATOMIC, row).pop().expect("the last is the average");
    all_rows.push(("average without tc".to_owned(), atomics));
    Table { title: title.to_owned(), columns: columns.map(str::to_owned).into(), rows: all_rows }
}

/// The average of a column, of kernels that are about atomics.
fn last(table: &Table, column: usize) -> f64 {
    table.rows.last().map_or(0.0, |(_, row)| row[column])
}

/// The average of a column, of all kernels.
fn of_all(table: &Table, column: usize) -> f64 {
    let row = table.rows.iter().find(|(name, _)| name == "average");
    row.map_or(0.0, |(_, row)| row[column])
}

fn of(table: &Table, kernel: Kernel, column: usize) -> f64 {
    let row = table.rows.iter().find(|(name, _)| name == kernel.name());
    row.map_or(0.0, |(_, row)| row[column])
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
        points(&SUBJECTS, &all())
    }

    fn report(&self, results: &Results) -> Report {
        let cycles = |it: &Measured| it.count("cycles") as f64;
        let table = table(results, "Time saved, in percent of the library's", cycles, latency);
        let most = all().into_iter().map(|kernel| of(&table, kernel, 0)).fold(0.0, f64::max);
        let mut claims = vec![
            Claim::over("the mark: whole kernels, average, shared memory", 17.61, last(&table, 0), "%"),
            Claim::over("the mark: whole kernels, average, TCP", 17.61, last(&table, 1), "%"),
            Claim::quantity("whole kernels, average, shared memory", 17.61, last(&table, 0), "%")
                .because(SLOWER),
            Claim::quantity("whole kernels, the most, shared memory", 23.35, most, "%").because(SLOWER),
            Claim::quantity("accesses alone, average, shared memory", 17.61, last(&table, 2), "%")
                .because(SLOWER),
        ];
        for kernel in [Kernel::Gather, Kernel::Scatter, Kernel::Stride1, Kernel::StrideN] {
            let what = format!("{}: whole kernel, shared memory", kernel.name());
            claims.push(Claim::over(&what, 20.0, of(&table, kernel, 0), "%"));
        }
        let kernels = rows(&all(), |kernel| {
            let it = |subject| at(results, subject, kernel);
            let millis = SUBJECTS.map(|subject| it(subject).seconds * 1e3);
            [millis, SUBJECTS.map(|subject| latency(it(subject)))].concat()
        });
        let columns = ["RAE, ms", "shared memory", "TCP", "RAE, cycles an access", "shared memory", "TCP"];
        let slow = format!(
            "A library's instructions would be 17.61 % of an access if an access took {} cycles by itself (shared memory), or {} (TCP).",
            number(as_slow(results, LIBRARIES[0])),
            number(as_slow(results, LIBRARIES[1]))
        );
        Report {
            tables: vec![
                table,
                Table {
                    title: "Run time of the kernel, and what an access of shared memory takes".to_owned(),
                    columns: columns.map(str::to_owned).into(),
                    rows: kernels,
                },
            ],
            claims,
            remarks: vec![slow],
            ..report(self, NOTE)
        }
    }
}

const NOTE: &str = "Six nodes. Whole kernel: all that happens between the barriers before and after it. Accesses alone: of atomics, loads and stores \
    of shared memory, with the instructions of the library and what is waited for (the paper's section IV-C1 says that it compares the latency of \
    remote atomic accesses). Shared memory and TCP say which path of Open MPI the instructions were counted on; the \
    network is the same, RAE's, in all three, so that nothing but the instructions differs. Patterns are in the global form: one \
    array over all nodes, with fetch-and-add. Averages of claims are without tc, which has no atomics to speak of; the tables have both.";

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

    fn report(&self, results: &Results) -> Report {
        let whole = |it: &Measured| it.count("instructions") as f64;
        let table =
            table(results, "Instructions saved, in percent of those with the library", whole, for_accesses);
        let claim = |what: &str, column| Claim::quantity(what, 89.71, last(&table, column), "%");
        let with_lists = of_all(&table, 0);
        let claims = vec![
            Claim::over("the mark: whole kernels, average, shared memory", 89.71, last(&table, 0), "%"),
            Claim::over("the mark: accesses alone, average, shared memory", 89.71, last(&table, 2), "%"),
            Claim::over("whole kernels with tc, average, shared memory", 89.71, with_lists, "%")
                .because(LISTS),
            claim("whole kernels, average, shared memory", 0),
            claim("whole kernels, average, TCP", 1),
            claim("accesses alone, average, shared memory", 2),
            claim("accesses alone, average, TCP", 3),
        ];
        let kernels =
            rows(&all(), |kernel| SUBJECTS.map(|subject| whole(at(results, subject, kernel)) / 1e3).into());
        Report {
            tables: vec![
                table,
                Table {
                    title: "Instructions of the whole kernel, all nodes, in thousands".to_owned(),
                    columns: SUBJECTS.map(|subject| subject.name().to_owned()).into(),
                    rows: kernels,
                },
            ],
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

    fn report(&self, results: &Results) -> Report {
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
        Report {
            tables: vec![Table {
                title: "Requests that miss, in percent".to_owned(),
                columns: ["lines that are let go", "lines that are kept"].map(str::to_owned).into(),
                rows: rows(&all(), |kernel| vec![fetched(kernel), kept(kernel)]),
            }],
            claims,
            ..report(
                self,
                "Six nodes, RAE. Lines that are let go: what the engine does; a request that joins others on their line does not miss. Lines \
                 that are kept: the same requests on a direct-mapped cache of 1024 lines that lets none go but for another. Irregular: rand, \
                 ptrchase, sg, scatter, gather and the graph kernels but tc, whose requests are lists. Regular: stride1, striden, central.",
            )
        }
    }
}
