//! `rackmem-lab check coherence`, `rackmem-lab check locks` and `rackmem-lab check joint`: scope by scope, with progress on standard error and a table, or a document, at the end.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use ::check::explore::{Counterexample, Explored, Progress, Protocol, Reached, Verdict};
use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use cli::fault::Fault;
use cli::output;
use cli::{say, say_on_this_line};

/// What is explored, how far, and how it is told.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Explore only this scope; may be given several times
    #[arg(long, value_name = "NAME")]
    scope: Vec<String>,

    /// List the scopes
    #[arg(long)]
    list: bool,

    /// Give up on a scope that has more states than this; the exit code then says that it is incomplete
    #[arg(long, value_name = "N", default_value_t = 20_000_000)]
    states: usize,

    /// Print one JSON document instead of the tables
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run<P: Protocol>(args: &Args) -> Result<(), Fault> {
    let scopes = chosen::<P>(args)?;
    if args.list {
        return list::<P>(&scopes, args.json);
    }
    let mut all = Vec::new();
    for scope in scopes {
        let (start, mut line) = (Instant::now(), Line::new(P::tell(scope).0));
        let explored = P::explore(scope, args.states, |progress| line.show(&progress, start.elapsed()));
        line.clear();
        let took = start.elapsed();
        say!("{}", told(&explored, took));
        let broken = matches!(explored.verdict, Verdict::Broken(_));
        all.push((explored, took));
        if broken {
            break;
        }
    }
    let mut coverage = P::Coverage::default();
    all.iter().for_each(|(explored, _)| coverage.add(&explored.coverage));
    if args.json {
        output::print_json(&document::<P>(&all, &coverage))?;
    } else {
        output::print(&format!("{}\n\n{}\n", scope_table(&all), coverage_table(&coverage)))?;
    }
    conclude(&all)
}

fn chosen<P: Protocol>(args: &Args) -> Result<Vec<&'static P::Scope>, Fault> {
    if args.scope.is_empty() {
        return Ok(P::SCOPES.iter().collect());
    }
    let named = args.scope.iter().map(|name| {
        P::SCOPES.iter().find(|scope| P::tell(scope).0 == name).ok_or_else(|| {
            let protocol = P::NAME;
            Fault::usage(format_args!(
                "there is no scope {name}\n  rackmem-lab check {protocol} --list names them"
            ))
        })
    });
    named.collect()
}

fn list<P: Protocol>(scopes: &[&P::Scope], as_json: bool) -> Result<(), Fault> {
    let scopes = scopes.iter().map(|scope| P::tell(scope));
    if as_json {
        let scopes: Vec<Value> =
            scopes.map(|(name, about)| json!({ "scope": name, "about": about })).collect();
        let command = format!("check {}", P::NAME);
        return output::print_json(&json!({ "command": command, "scopes": scopes }));
    }
    let lines = scopes.map(|(name, about)| format!("{name:28} {about}\n"));
    output::print(&lines.collect::<String>())
}

/// The exit code: what is wrong, what is stuck, or that not every state was looked at.
fn conclude<C>(all: &[(Explored<C>, Duration)]) -> Result<(), Fault> {
    let mut incomplete = Vec::new();
    for (explored, _) in all {
        match &explored.verdict {
            Verdict::Holds => {}
            Verdict::Incomplete => incomplete.push(explored.scope),
            Verdict::Broken(found) => {
                let text = counterexample(explored.scope, found);
                return Err(if found.stuck { Fault::Stuck(text) } else { Fault::Failed(text) });
            }
        }
    }
    if incomplete.is_empty() {
        return Ok(());
    }
    let scopes = incomplete.join(", ");
    Err(Fault::failed(format_args!("incomplete: more states than --states allows in {scopes}")))
}

fn counterexample(scope: &str, found: &Counterexample) -> String {
    let steps = (1..).zip(&found.trace).map(|(at, step): (u32, _)| format!("  {at:3} {step}\n"));
    format!("scope {scope}: {}\n{}", found.what, steps.collect::<String>())
}

fn verdict<C>(explored: &Explored<C>) -> &'static str {
    match &explored.verdict {
        Verdict::Holds => "holds",
        Verdict::Incomplete => "incomplete",
        Verdict::Broken(found) if found.stuck => "stuck",
        Verdict::Broken(_) => "wrong",
    }
}

fn told<C>(explored: &Explored<C>, took: Duration) -> String {
    let seconds = took.as_secs_f64();
    let rate = explored.states as f64 / seconds.max(1e-9);
    let (scope, states) = (explored.scope, explored.states);
    format!("{scope}: {} after {states} states in {seconds:.1} s, {rate:.0}/s", verdict(explored))
}

fn scope_table<C>(all: &[(Explored<C>, Duration)]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["scope", "verdict", "states", "steps", "depth", "at rest", "MiB", "s"]);
    for (explored, took) in all {
        table.add_row([
            explored.scope.to_owned(),
            verdict(explored).to_owned(),
            explored.states.to_string(),
            explored.steps.to_string(),
            explored.depth.to_string(),
            explored.at_rest.to_string(),
            (explored.bytes >> 20).to_string(),
            format!("{:.1}", took.as_secs_f64()),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn coverage_table(coverage: &impl Reached) -> Table {
    let said = |reached| if reached { "yes" } else { "-" };
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["row", "reached in the switch", "at a home"]);
    for (row, switch, home) in coverage.table() {
        table.add_row([row.as_str(), said(switch), said(home)]);
    }
    table
}

fn document<P: Protocol>(all: &[(Explored<P::Coverage>, Duration)], coverage: &P::Coverage) -> Value {
    let scopes = all.iter().map(|(explored, took)| {
        let found = match &explored.verdict {
            Verdict::Broken(found) => json!({ "what": found.what, "trace": found.trace }),
            _ => Value::Null,
        };
        json!({
            "scope": explored.scope,
            "verdict": verdict(explored),
            "states": explored.states,
            "steps": explored.steps,
            "depth": explored.depth,
            "at_rest": explored.at_rest,
            "bytes": explored.bytes,
            "seconds": took.as_secs_f64(),
            "counterexample": found,
        })
    });
    let rows = coverage.table().into_iter().map(
        |(row, switch, home)| json!({ "row": row, "reached_in_switch": switch, "reached_at_home": home }),
    );
    json!({
        "command": format!("check {}", P::NAME),
        "version": env!("CARGO_PKG_VERSION"),
        "scopes": scopes.collect::<Vec<_>>(),
        "coverage": rows.collect::<Vec<_>>(),
    })
}

/// How far a search is, on standard error: a line that changes on a terminal, a line now and then elsewhere.
struct Line {
    scope: &'static str,
    terminal: bool,
    next: Duration,
}

impl Line {
    fn new(scope: &'static str) -> Self {
        Self { scope, terminal: io::stderr().is_terminal(), next: Duration::from_secs(1) }
    }

    fn show(&mut self, progress: &Progress, so_far: Duration) {
        if so_far < self.next {
            return;
        }
        self.next = so_far + Duration::from_secs(if self.terminal { 1 } else { 10 });
        let Progress { states, expanded, depth, bytes } = *progress;
        let rate = states as f64 / so_far.as_secs_f64();
        let (scope, open, size) = (self.scope, states - expanded, bytes >> 20);
        let text =
            format!("{scope}: {states} states, {open} of them open, depth {depth}, {rate:.0}/s, {size} MiB");
        if self.terminal { say_on_this_line!("\r\x1b[2K{text}") } else { say!("{text}") }
    }

    fn clear(&self) {
        if self.terminal {
            say_on_this_line!("\r\x1b[2K");
        }
    }
}

#[cfg(test)]
mod tests {
    use ::check::explore::coherence::{Coverage, FlowCC};
    use ::check::explore::locks::Locks;

    use super::*;

    fn args(scope: &str) -> Args {
        Args { scope: vec![scope.to_owned()], list: false, states: 1000, json: false }
    }

    #[test]
    fn a_scope_that_there_is_not_is_a_mistake_of_the_command_line() {
        let fault = chosen::<FlowCC>(&args("moon")).unwrap_err();
        assert!(matches!(&fault, Fault::Usage(text) if text.contains("moon") && text.contains("--list")));
        assert_eq!(chosen::<FlowCC>(&args("home")).unwrap()[0].name, "home");
        assert!(chosen::<Locks>(&args("home-purge")).is_err(), "each protocol has scopes of its own");
    }

    #[test]
    fn a_search_that_was_not_finished_is_no_success() {
        let scope = FlowCC::scope("home").unwrap();
        let explored = FlowCC::explore(scope, 100, |_| {});
        let all = [(explored, Duration::ZERO)];
        assert!(matches!(conclude(&all), Err(Fault::Failed(text)) if text.contains("incomplete")));
        assert_eq!(document::<FlowCC>(&all, &Coverage::default())["scopes"][0]["verdict"], "incomplete");
    }

    #[test]
    fn what_is_stuck_and_what_is_wrong_end_with_codes_of_their_own() {
        let scope = FlowCC::scope("home").unwrap();
        let mut explored = FlowCC::explore(scope, 100, |_| {});
        for stuck in [true, false] {
            let trace = vec!["node 0 does something".to_owned()];
            explored.verdict = Verdict::Broken(Counterexample { what: "it".into(), stuck, trace });
            match conclude(&[(explored.clone(), Duration::ZERO)]).unwrap_err() {
                Fault::Stuck(text) => assert!(stuck && text.contains("does something")),
                Fault::Failed(text) => assert!(!stuck && text.contains("does something")),
                other => panic!("{other:?}"),
            }
        }
    }
}
