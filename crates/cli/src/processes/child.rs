//! A child's side: its setup and its orders come on standard input, its events go to standard output.

use std::io::{self, BufRead, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rendezvous::RuntimeDir;
use super::workers::{Said, Told};
use crate::fault::Fault;
use crate::interrupt::Interrupt;

/// What a child is for: what it must know from the start, in a form that processes can tell each other.
pub trait Task: Serialize + DeserializeOwned {
    /// Its name: no two tasks of a command have the same.
    const NAME: &'static str;
}

/// What does a task. Ends only by ending the process, or with a reason.
pub type Place<T, O, E> = fn(T, &Orders<O>, &Teller<E>) -> Result<Never, Reason>;

/// A task that a command's children can be given, and what they do with it.
pub struct Job {
    name: &'static str,
    run: Box<dyn FnOnce(Value, Orders<IgnoredAny>) -> Result<Never, Reason>>,
}

impl Job {
    /// The task that this place takes.
    pub fn of<T: Task + 'static, O: DeserializeOwned + 'static, E: Serialize + 'static>(
        place: Place<T, O, E>,
    ) -> Self {
        let run = move |task, orders: Orders<IgnoredAny>| {
            let task = serde_json::from_value(task)
                .map_err(|error| format!("a task that makes no sense: {error}"))?;
            place(task, &orders.typed(), &Teller(PhantomData))
        };
        Self { name: T::NAME, run: Box::new(run) }
    }
}

/// The first line that a child gets.
#[derive(Serialize, Deserialize)]
pub(super) struct Setup {
    /// To be removed by whoever is left.
    runtime: PathBuf,
    /// The name of the task.
    name: String,
    task: Value,
}

impl Setup {
    pub(super) fn new<T: Task>(runtime: &Path, task: &T) -> Self {
        let task = serde_json::to_value(task).expect("plain values can be written");
        Self { runtime: runtime.to_owned(), name: T::NAME.to_owned(), task }
    }
}

/// Tells the command what has happened. Threads share it.
pub struct Teller<E>(PhantomData<fn(E)>);

impl<E> Clone for Teller<E> {
    fn clone(&self) -> Self {
        Self(PhantomData)
    }
}

impl<E: Serialize> Teller<E> {
    /// Tells it. A command that does not listen any more is about to end this process.
    pub fn tell(&self, event: E) {
        say(&Told::Event(event));
    }
}

fn say<E: Serialize>(told: &Told<E>) {
    let mut line = serde_json::to_vec(told).expect("plain values can be written");
    line.push(b'\n');
    let mut out = io::stdout().lock();
    // If nobody reads this, the end of standard input follows.
    let _ = out.write_all(&line).and_then(|()| out.flush());
}

/// What the command wants, one after the other.
pub struct Orders<O> {
    lines: Receiver<String>,
    /// Set when the command wants what is in flight to stop.
    pub interrupt: Interrupt,
    order: PhantomData<fn() -> O>,
}

impl<O: DeserializeOwned> Orders<O> {
    /// The next order. Waits for it; there always is one, or the process has ended.
    pub fn next(&self) -> O {
        let Ok(line) = self.lines.recv() else {
            // The thread that reads is just ending the process.
            loop {
                thread::park();
            }
        };
        match serde_json::from_str::<Said<O>>(&line) {
            Ok(Said::Order(order)) => order,
            Ok(Said::Stop) | Err(_) => {
                Fault::failed(format_args!("an order that makes no sense: {line}")).report();
                process::exit(1)
            }
        }
    }
}

/// Does what a child is for, which must be among `jobs`. Ends only by ending the process, or with a fault.
pub fn run(jobs: Vec<Job>) -> Result<(), Fault> {
    let mut first = String::new();
    let setup: Option<Setup> = match io::stdin().lock().read_line(&mut first) {
        Ok(1..) => serde_json::from_str(&first).ok(),
        _ => None,
    };
    let setup = setup
        .ok_or_else(|| Fault::usage("`place` is what other commands start: it is of no use by itself"))?;
    // A thread that panics would leave a process that does nothing.
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        process::exit(4);
    }));
    let interrupt = Interrupt::default();
    let (order, lines) = mpsc::channel();
    let (runtime, stop) = (setup.runtime, interrupt.clone());
    thread::Builder::new()
        .name("orders".into())
        .spawn(move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                match serde_json::from_str(&line) {
                    Ok(Said::<IgnoredAny>::Stop) => stop.request(),
                    _ => drop(order.send(line)),
                }
            }
            // The command has ended, or wants us to. If it was killed, nobody else cleans up.
            let _ = RuntimeDir::remove(&runtime);
            let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(last) = last.take() {
                last();
            }
            process::exit(0);
        })
        .map_err(|error| Fault::failed(format_args!("cannot start a thread: {error}")))?;
    let orders = Orders::<IgnoredAny> { lines, interrupt, order: PhantomData };
    let done = match jobs.into_iter().find(|job| job.name == setup.name) {
        Some(job) => (job.run)(setup.task, orders),
        None => Err(format!("no task of this command is called `{}`", setup.name)),
    };
    match done {
        Ok(never) => match never {},
        Err(message) => {
            say(&Told::<()>::Failed(message));
            // The command ends this process when it has read that.
            loop {
                thread::park();
            }
        }
    }
}

impl Orders<IgnoredAny> {
    /// As orders of this kind.
    fn typed<O>(self) -> Orders<O> {
        Orders { lines: self.lines, interrupt: self.interrupt, order: PhantomData }
    }
}

/// What this process does last.
static LAST: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// This is done when the command has ended, or wants this process to end.
pub fn at_end(last: impl FnOnce() + Send + 'static) {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(last));
}

/// Nobody says this: a place works until its process ends.
pub enum Never {}

/// Why a child cannot go on, in words.
pub type Reason = String;

/// Runs a thread that must not end before the process does.
pub fn in_background(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Reason> {
    thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map(drop)
        .map_err(|error| format!("cannot start a thread: {error}"))
}
