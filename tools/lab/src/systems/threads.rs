//! One worker on each thread, all run to their ends.

use std::cell::RefCell;
use std::rc::Rc;

use sim::rack::{Ended, Handle, Rack, RackReport, Until};
use sim::system::{System, ThreadId};
use wire::Nanos;

use crate::figure::run::{Interrupted, Watch};

/// Virtual time between two looks at whoever watches.
const STEP: Nanos = Nanos::from_micros(2_000);

/// Puts a worker on every thread and runs them all to their ends; what each returned.
pub(super) fn on_all_threads<S: System + 'static, T: 'static, F: Future<Output = T> + 'static>(
    rack: &mut Rack<S>,
    watch: &dyn Watch,
    mut worker: impl FnMut(Handle<S>, usize) -> F,
) -> Result<(RackReport, Vec<T>), Interrupted> {
    let setup = rack.setup();
    let threads = setup.nodes * setup.threads;
    let found: Rc<RefCell<Vec<Option<T>>>> = Rc::new(RefCell::new((0..threads).map(|_| None).collect()));
    for thread in 0..threads {
        let found = Rc::clone(&found);
        let id = ThreadId(u16::try_from(thread).expect("fewer than 2^16 threads"));
        rack.spawn(id, |handle| {
            let worker = worker(handle, thread);
            async move {
                let result = worker.await;
                found.borrow_mut()[thread] = Some(result);
            }
        });
    }
    // The rack's time stays where it is while no event is due.
    let mut until = rack.now();
    loop {
        until += STEP;
        let report = rack.run(Until::Time(until));
        if !watch.advance(0) {
            return Err(Interrupted);
        }
        match report.ended {
            Ended::WorkersDone => {
                let found = found.take().into_iter().map(|it| it.expect("it has ended")).collect();
                return Ok((report, found));
            }
            Ended::Time => {}
            other => panic!("every thread comes to its end, and not to {other:?}"),
        }
    }
}
