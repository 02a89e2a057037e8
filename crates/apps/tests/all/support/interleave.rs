//! Runs workers on one thread, and decides from a seed who goes next at every access to memory.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use random::Dice;

/// A worker's task.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// More steps than any of the tests needs: an operation that still goes on then does not end.
const ENDLESS: u64 = 1_000_000;

/// Runs all tasks to their end. Some seeds switch between tasks at nearly every step, others let a task go a
/// long way before another one goes on: races need either.
pub(crate) fn run(seed: u64, mut tasks: Vec<Task>) {
    let mut random = Dice::new(seed);
    let stay = [0, 0, 50, 80, 95][random.pick(5)];
    let mut current = 0;
    for _ in 0..ENDLESS {
        if tasks.is_empty() {
            return;
        }
        if current >= tasks.len() || random.pick(100) >= stay {
            current = random.pick(tasks.len());
        }
        if step(&mut tasks[current]) {
            drop(tasks.swap_remove(current));
        }
    }
    panic!("tasks are still running after {ENDLESS} steps");
}

/// Takes one step of a task. True if that was its last.
pub(crate) fn step(task: &mut Task) -> bool {
    task.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
}

/// Runs a task alone. False if it does not end within so many steps.
pub(crate) fn run_alone(task: &mut Task, steps: u64) -> bool {
    (0..steps).any(|_| step(task))
}
