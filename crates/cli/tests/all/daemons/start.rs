//! The first page of the documentation: its program, in processes of their own, on a rack of `rackmem up`.
//!
//! The test starts its own executable again, to run the same test; told by the environment, it is the program there.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::str::FromStr;
use std::{env, thread};

use rackmem::{Discipline, NodeId, Rack, RackFile, Up};

use super::rig::Home;

#[path = "../../../../rackmem/examples/start.rs"]
#[allow(dead_code, unreachable_pub, reason = "a program, with a main function")]
mod program;

/// Set in the program: the rack file, and the node.
const ARGUMENTS: &str = "RACKMEM_TEST_START";
const NAME: &str = "daemons::start::three_processes_share_the_counter_of_the_first_page";

/// The program in a process, killed at the latest when the test ends.
struct Program {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(file: &Path, node: u16) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(ARGUMENTS, format!("{}\n{node}", file.display()))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// What stands behind this, in the next line that has it; None if the program has ended.
    fn next<T: FromStr>(&mut self, before: &str) -> Option<T> {
        self.lines.find_map(|line| line.unwrap().split_once(before)?.1.parse().ok())
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn three_processes_share_the_counter_of_the_first_page() {
    if let Ok(arguments) = env::var(ARGUMENTS) {
        let (file, node) = arguments.split_once('\n').unwrap();
        program::count(Path::new(file), node.parse().unwrap()).unwrap();
        return;
    }
    let home = Home::new("start");
    let _up = home.up(&["--nodes", "5", "--seats", "3"]);
    let file = home.rack_file();
    assert_eq!(RackFile::read(&file).unwrap().config.name_nodes, Some(2), "programs keep no names");
    let mut all = [2, 3, 4].map(|node| Program::start(&file, node));
    let places = all.each_mut().map(|program| program.next::<String>(" counts at ").expect("it has joined"));
    assert!(places.iter().all(|place| *place == places[0]), "one counter: {places:?}");
    // Four numbers of each.
    let counted = |(node, program): (usize, &mut Program)| -> Vec<u64> {
        let name = format!("node {}: ", node + 2);
        (0..4).map(|_| program.next(&name).expect("it counts")).collect()
    };
    let mut numbers: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> =
            all.iter_mut().enumerate().map(|each| scope.spawn(move || counted(each))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "a number was given twice: {numbers:?}");
    let last = *numbers.last().unwrap();
    assert!((12..60).contains(&last), "{numbers:?}");
    // Whoever had the last value is among them.
    all.iter_mut().for_each(Program::kill);
    let mut late = Program::start(&file, 3);
    assert_eq!(late.next::<u64>("node 3: "), None, "the value is lost");
    assert!(!late.process.wait().unwrap().success());
    // The rack goes on, and the name is free once the lost counter is taken away.
    let rack = Rack::attach(&RackFile::read(&file).unwrap(), NodeId(0)).unwrap();
    rack.here().remove_name("tally").unwrap();
    let mut anew = Program::start(&file, 4);
    assert_eq!(anew.next("node 4: "), Some(1));
}

#[test]
fn a_program_starts_a_rack_of_the_sizes_that_it_says() {
    let command = Some(Path::new(crate::COMMAND));
    let up = Up { nodes: 2, seats: 1, command, cache: Some(8 << 20), memory: Some(512 << 20), copies: None };
    let (rack, processes) = Rack::up_with(&up).unwrap();
    assert_eq!((rack.config().cache, rack.config().memory), (8 << 20, 512 << 20));
    let there = rack.here().alloc(300 << 20, NodeId(0), Discipline::Coherent).unwrap();
    rack.here().write_word(there + ((300 << 20) - 8), 7).unwrap();
    drop((rack, processes));
    let said = Rack::up_with(&Up { memory: Some(1), ..up }).unwrap_err().to_string();
    assert!(said.contains("memory"), "{said}");
    // Of the one that ran, and of the one that could not.
    let process = std::process::id();
    let left = |number| rackmem::rack_file::runtime_directory(&format!("up-{process}-{number}"));
    assert!((0..2).all(|number| !left(number).exists()), "nothing is left");
}
