//! How far a run is, on standard error: a bar on a terminal, a line now and then elsewhere.

use std::fmt;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The progress of one phase.
pub struct Progress {
    label: String,
    total: u64,
    start: Instant,
    form: Form,
}

enum Form {
    Bar(ProgressBar),
    Lines { next: Instant },
    Told(Box<dyn Fn(u64)>),
}

impl Progress {
    /// Nothing of `total` is done yet.
    pub fn start(label: String, total: u64) -> Self {
        let start = Instant::now();
        let form = if io::stderr().is_terminal() {
            let style =
                ProgressStyle::with_template("{prefix} [{bar:40}] {percent:>3} %  {rate}  {eta} left")
                    .expect("a valid template")
                    .with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
                        // A progress bar that cannot be drawn is no reason to stop.
                        let _ = write!(out, "{:.0}/s", state.per_sec());
                    })
                    .progress_chars("=> ");
            Form::Bar(ProgressBar::new(total).with_style(style).with_prefix(label.clone()))
        } else {
            Form::Lines { next: start + LINE_EVERY }
        };
        Self { label, total, start, form }
    }

    /// Tells somebody else, who shows it.
    pub fn told(tell: impl Fn(u64) + 'static) -> Self {
        Self { label: String::new(), total: 0, start: Instant::now(), form: Form::Told(Box::new(tell)) }
    }

    /// So much is done.
    pub fn show(&mut self, done: u64) {
        match &mut self.form {
            Form::Bar(bar) => bar.set_position(done),
            Form::Lines { next } if Instant::now() >= *next => {
                say!("{}: {done} of {}, {:.0?} so far", self.label, self.total, self.start.elapsed());
                *next += LINE_EVERY;
            }
            Form::Lines { .. } => {}
            Form::Told(tell) => tell(done),
        }
    }

    /// The phase is over, so far as it came; a line says so.
    pub fn finish(self, done: u64, took: Duration) {
        if let Form::Bar(bar) = &self.form {
            bar.finish_and_clear();
        }
        let rate = done as f64 / took.as_secs_f64().max(1e-9);
        let short = if done < self.total { format!(" of {}", self.total) } else { String::new() };
        say!("{}: {done}{short} in {:.2} s, {rate:.0}/s", self.label, took.as_secs_f64());
    }
}
