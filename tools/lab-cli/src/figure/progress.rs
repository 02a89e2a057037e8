//! How far the runs are, on standard error, and whether somebody wants them to end.

use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use lab::figure::run::Watch;

use cli::interrupt::Interrupt;
use cli::say;

/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The progress of all runs together.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    lines: Mutex<Lines>,
    interrupt: Interrupt,
    start: Instant,
}

struct Lines {
    done: u64,
    total: u64,
    next: Instant,
}

impl Progress {
    /// Nothing of so many operations is done.
    pub(super) fn start(total: u64, interrupt: Interrupt) -> Self {
        let style = ProgressStyle::with_template("simulating [{bar:40}] {percent:>3} %  {eta} left")
            .expect("a valid template")
            .progress_chars("=> ");
        let start = Instant::now();
        let bar = io::stderr().is_terminal().then(|| ProgressBar::new(total).with_style(style));
        Self { bar, lines: Mutex::new(Lines { done: 0, total, next: start + LINE_EVERY }), interrupt, start }
    }

    /// All is done.
    pub(super) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
        let done = self.lines.into_inner().expect("nobody panics with it").done;
        say!("{done} operations simulated in {:.1?}", self.start.elapsed());
    }
}

impl Watch for Progress {
    fn advance(&self, operations: u64) -> bool {
        let mut lines = self.lines.lock().expect("nobody panics with it");
        lines.done += operations;
        match &self.bar {
            Some(bar) => bar.set_position(lines.done.min(lines.total)),
            None if Instant::now() >= lines.next => {
                say!("{} of {} operations, {:.0?} so far", lines.done, lines.total, self.start.elapsed());
                lines.next = Instant::now() + LINE_EVERY;
            }
            None => {}
        }
        !self.interrupt.requested()
    }
}
