//! The command's side of its children.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::marker::PhantomData;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::child::{Setup, Task};
use super::rendezvous::RuntimeDir;
use super::taken::Taken;
use crate::fault::Fault;
use crate::interrupt::Interrupt;

/// How often a command that waits for its children looks whether it was interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Looks without a word from any child after which it is given up. Looks are counted rather than time taken: a process
/// that was stopped for a while is not stuck.
const STUCK_AFTER: u32 = 1200;

/// How long children have to end by themselves.
const LOOKS_AT_END: u32 = 1000;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// A line to a child.
#[derive(Serialize, Deserialize)]
pub(super) enum Said<O> {
    /// To be done in its turn.
    Order(O),
    /// At once: end what is in flight.
    Stop,
}

/// A line from a child.
#[derive(Serialize, Deserialize)]
pub(super) enum Told<E> {
    /// What has happened.
    Event(E),
    /// Why it cannot go on.
    Failed(String),
}

/// What an interrupt does to a wait for children.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnInterrupt {
    /// It ends.
    End,
    /// The children are told to stop, and their answers awaited.
    Stop,
}

/// A program that one of the children runs under.
pub struct Under<'a> {
    /// Which child, in the order of the tasks.
    pub at: usize,
    /// The program, and its arguments in front of the child's own.
    pub program: &'a [OsString],
}

/// The children of a command, which take orders of one kind and report events of one kind.
pub struct Workers<O, E> {
    members: Vec<Member>,
    heard: Receiver<(usize, u32, Heard)>,
    tell: Sender<(usize, u32, Heard)>,
    interrupt: Interrupt,
    stopped: bool,
    /// Dropped after the children.
    _runtime: RuntimeDir,
    order: PhantomData<fn(O)>,
    event: PhantomData<fn() -> E>,
}

struct Member {
    name: String,
    child: Child,
    /// Closed to end it.
    orders: Option<ChildStdin>,
    /// Which child of this name it is: what the ones before said is not heard any more.
    incarnation: u32,
    /// It was killed on purpose.
    killed: bool,
}

enum Heard {
    Line(String),
    Ended,
}

impl<O: Serialize, E: DeserializeOwned> Workers<O, E> {
    /// Starts one child for each task; each has a name for messages.
    pub fn start<T: Task>(
        tasks: Vec<(String, T)>,
        runtime: RuntimeDir,
        interrupt: &Interrupt,
    ) -> Result<Self, Fault> {
        Self::start_under(tasks, runtime, interrupt, None)
    }

    /// The same, with one of them under another program.
    pub fn start_under<T: Task>(
        tasks: Vec<(String, T)>,
        runtime: RuntimeDir,
        interrupt: &Interrupt,
        under: Option<Under<'_>>,
    ) -> Result<Self, Fault> {
        let (tell, heard) = mpsc::channel();
        let mut workers = Self {
            members: Vec::new(),
            heard,
            tell,
            interrupt: interrupt.clone(),
            stopped: false,
            _runtime: runtime,
            order: PhantomData,
            event: PhantomData,
        };
        for (at, (name, task)) in tasks.into_iter().enumerate() {
            let under = under.as_ref().filter(|under| under.at == at).map_or(&[][..], |under| under.program);
            workers.add_under(name, &task, under)?;
        }
        Ok(workers)
    }

    /// Starts another one.
    pub fn add(&mut self, name: String, task: &impl Task) -> Result<(), Fault> {
        self.add_under(name, task, &[])
    }

    fn add_under(&mut self, name: String, task: &impl Task, under: &[OsString]) -> Result<(), Fault> {
        let at = self.members.len();
        let member = self.spawn(at, name, 0, under)?;
        self.members.push(member);
        self.set_up(at, task)
    }

    fn spawn(&self, at: usize, name: String, incarnation: u32, under: &[OsString]) -> Result<Member, Fault> {
        let failed = |error| Fault::failed(format_args!("cannot start a process: {error}"));
        let executable = std::env::current_exe().map_err(failed)?.into_os_string();
        let line = [under, &[executable, "place".into()]].concat();
        let mut child = Command::new(&line[0])
            .args(&line[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let orders = child.stdin.take();
        let events = child.stdout.take().expect("standard output is a pipe");
        let tell = self.tell.clone();
        thread::Builder::new()
            .name(format!("events of child {at}"))
            .spawn(move || {
                for line in BufReader::new(events).lines().map_while(Result::ok) {
                    if tell.send((at, incarnation, Heard::Line(line))).is_err() {
                        return;
                    }
                }
                // Nobody may be left to hear it.
                let _ = tell.send((at, incarnation, Heard::Ended));
            })
            .map_err(failed)?;
        Ok(Member { name, child, orders, incarnation, killed: false })
    }

    fn set_up(&mut self, at: usize, task: &impl Task) -> Result<(), Fault> {
        let setup = Setup::new(self._runtime.path(), task);
        self.write(at, &setup)
    }

    /// What a child is called.
    pub fn name(&self, at: usize) -> &str {
        &self.members[at].name
    }

    /// The number of its process.
    pub fn process(&self, at: usize) -> u32 {
        self.members[at].child.id()
    }

    /// What all children have taken of the machine until now.
    pub fn taken(&self) -> Option<Taken> {
        Taken::by(self.members.iter().map(|member| member.child.id()))
    }

    /// Kills a child, as the system would, without a word.
    pub fn kill(&mut self, at: usize) {
        let member = &mut self.members[at];
        member.killed = true;
        // It may have ended already.
        let _ = member.child.kill();
        let _ = member.child.wait();
    }

    /// Starts another child in the place of one that was killed.
    pub fn restart(&mut self, at: usize, task: &impl Task) -> Result<(), Fault> {
        assert!(self.members[at].killed, "{} still runs", self.members[at].name);
        let (name, incarnation) = (self.members[at].name.clone(), self.members[at].incarnation + 1);
        self.members[at] = self.spawn(at, name, incarnation, &[])?;
        self.set_up(at, task)
    }

    /// Stops a child where it is, or lets it go on.
    pub fn pause(&mut self, at: usize, stop: bool) -> Result<(), Fault> {
        let signal = if stop { Signal::STOP } else { Signal::CONT };
        kill_process(Pid::from_child(&self.members[at].child), signal).map_err(|error| {
            Fault::failed(format_args!("cannot stop or continue {}: {error}", self.members[at].name))
        })
    }

    /// The next event of any child, if one comes soon enough.
    pub fn hear(&mut self, most: Duration) -> Result<Option<(usize, E)>, Fault> {
        match self.heard.recv_timeout(most) {
            Ok((at, incarnation, heard)) => self.understand(at, incarnation, heard),
            Err(_) => Ok(None),
        }
    }

    /// What a child has said. None: it is another one by now.
    fn understand(&mut self, at: usize, incarnation: u32, heard: Heard) -> Result<Option<(usize, E)>, Fault> {
        if self.members[at].incarnation != incarnation || self.members[at].killed {
            return Ok(None);
        }
        let Heard::Line(line) = heard else { return Err(self.ended(at)) };
        let name = &self.members[at].name;
        match serde_json::from_str(&line) {
            Ok(Told::Event(event)) => Ok(Some((at, event))),
            Ok(Told::Failed(message)) => Err(Fault::failed(format_args!("{name}: {message}"))),
            Err(error) => {
                Err(Fault::failed(format_args!("{name} says what makes no sense ({error}): {line}")))
            }
        }
    }

    /// How many children there are.
    pub fn children(&self) -> usize {
        self.members.len()
    }

    /// Orders a child to do something.
    pub fn order(&mut self, at: usize, order: O) -> Result<(), Fault> {
        self.write(at, &Said::Order(order))
    }

    fn write(&mut self, at: usize, line: &impl Serialize) -> Result<(), Fault> {
        let mut bytes = serde_json::to_vec(line).expect("plain values can be written");
        bytes.push(b'\n');
        let orders = self.members[at].orders.as_mut().expect("it is open until the workers ends");
        if orders.write_all(&bytes).is_err() { Err(self.ended(at)) } else { Ok(()) }
    }

    /// Hears the children until each of `from` has given its answer: `each` picks that out of the events. The answers
    /// come in the order of `from`.
    pub fn answers<T>(
        &mut self,
        from: impl IntoIterator<Item = usize>,
        on_interrupt: OnInterrupt,
        mut each: impl FnMut(usize, E) -> Result<Option<T>, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut answers: Vec<(usize, Option<T>)> = from.into_iter().map(|at| (at, None)).collect();
        let mut silent = 0;
        while answers.iter().any(|(_, answer)| answer.is_none()) {
            if self.interrupt.requested() && !self.stopped {
                if on_interrupt == OnInterrupt::End {
                    return Err(Fault::Interrupted);
                }
                self.stopped = true;
                (0..self.members.len()).try_for_each(|at| self.write(at, &Said::<O>::Stop))?;
            }
            let (at, incarnation, heard) = match self.heard.recv_timeout(LOOK_EVERY) {
                Ok(heard) => heard,
                Err(RecvTimeoutError::Timeout) if silent < STUCK_AFTER => {
                    silent += 1;
                    continue;
                }
                Err(_) => return Err(self.stuck(&answers)),
            };
            silent = 0;
            if let Some((at, event)) = self.understand(at, incarnation, heard)?
                && let Some(answer) = each(at, event)?
                && let Some(slot) = answers.iter_mut().find(|slot| slot.0 == at)
            {
                slot.1 = Some(answer);
            }
        }
        Ok(answers.into_iter().filter_map(|(_, answer)| answer).collect())
    }

    fn stuck<T>(&self, answers: &[(usize, Option<T>)]) -> Fault {
        let silent: Vec<&str> = answers
            .iter()
            .filter(|(_, answer)| answer.is_none())
            .map(|(at, _)| self.members[*at].name.as_str())
            .collect();
        Fault::Stuck(format!("no word for two minutes from {}", silent.join(", ")))
    }

    /// A child that has closed its end.
    fn ended(&mut self, at: usize) -> Fault {
        // Whatever it has told last says more than its exit code.
        for (from, _, heard) in self.heard.try_iter() {
            if let Heard::Line(line) = heard
                && let Ok(Told::<serde::de::IgnoredAny>::Failed(message)) = serde_json::from_str(&line)
            {
                return Fault::failed(format_args!("{}: {message}", self.members[from].name));
            }
        }
        let Member { name, child, .. } = &mut self.members[at];
        match child.wait() {
            Ok(status) => fault_of(name, status),
            Err(error) => Fault::failed(format_args!("{name} has ended, nobody knows how: {error}")),
        }
    }
}

fn fault_of(name: &str, status: ExitStatus) -> Fault {
    match (status.code(), status.signal()) {
        (Some(3), _) => Fault::Stuck(format!("{name} does not get on; it has said why")),
        (Some(4 | 101), _) => Fault::Crashed(format!("the process of {name} panicked; it has said why")),
        (Some(code), _) => Fault::failed(format_args!("the process of {name} ended with exit code {code}")),
        (None, Some(signal)) => {
            Fault::failed(format_args!("the process of {name} was killed by signal {signal}"))
        }
        (None, None) => Fault::failed(format_args!("the process of {name} ended: {status}")),
    }
}

impl<O, E> Drop for Workers<O, E> {
    fn drop(&mut self) {
        // All at once: a place that is alone waits for the others, and they have nothing to save.
        for member in &mut self.members {
            member.orders = None;
        }
        let mut looks = 0;
        for member in &mut self.members {
            while looks < LOOKS_AT_END && matches!(member.child.try_wait(), Ok(None)) {
                looks += 1;
                thread::sleep(BETWEEN_LOOKS);
            }
            // One that does not end by itself is stuck, or stopped. Most have ended, which is no mistake here.
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_child_is_reported_by_how_it_ended() {
        let fault = |raw| fault_of("node 2", ExitStatus::from_raw(raw));
        assert!(matches!(fault(3 << 8), Fault::Stuck(_)));
        assert!(matches!(fault(4 << 8), Fault::Crashed(_)));
        let Fault::Failed(message) = fault(9) else { panic!("it was killed") };
        assert_eq!(message, "the process of node 2 was killed by signal 9");
    }
}
