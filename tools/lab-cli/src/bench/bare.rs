//! The bare exchange, yardstick of what passes between processes, and a place of it:
//!
//! ```text
//!   node 0 ── 64 B ──> switch ── 64 B ──> node 1 ── 64 B and a block ──> node 0
//! ```
//!
//! or, of two, the same without the switch. The same transport, packets and waiting as in a miss ([`live::waiting`]), and nothing else: no cache, no directory, no
//! unlock. The requester copies the block out of the message, as whoever wants to keep it must.

use std::time::{Duration, Instant};

use live::waiting::{Oversubscription, SpinThenPark, Step, is_all};
use rackmem::transport::{Body, Contents, Outgoing, PeerId, Transport};
use rackmem::{BlockSize, Nanos, NodeId};
use serde::{Deserialize, Serialize};
use wire::{BlockTag, Endpoint, GlobalAddr, Packet, PacketKind, RequesterId, Seq, SlotId};

use super::nodes::{Event, How, NODE_0, answer, ask_child, assignment_all, spec};
use super::samples::{Recorder, Samples};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::processes::child::{Never, Reason};
use cli::processes::place::Assignment;
use cli::processes::{Orders, Teller, TransportKind, Workers};

/// As the switch of a rack sleeps at most.
const LONGEST_SLEEP: Nanos = Nanos::from_millis(50);
/// A request that is not answered so long was lost.
const LOST_AFTER: Nanos = Nanos::from_millis(10);
/// Without an answer for so long there is nobody.
const NOBODY_AFTER: Duration = Duration::from_secs(30);

const REQUESTER: NodeId = NodeId(0);
const THIRD: NodeId = NodeId(1);

/// What a child is.
#[derive(Serialize, Deserialize)]
pub(crate) struct Task(Assignment);

/// What the command wants of the requester: so many exchanges, one after the other.
#[derive(Serialize, Deserialize)]
pub(crate) enum Order {
    /// Of three messages.
    OfThree(u64),
    /// Of two: a request and its answer.
    OfTwo(u64),
}

impl cli::processes::Task for Task {
    const NAME: &'static str = "bench pingpong";
}

/// Three processes that exchange messages.
pub(crate) struct Bare(Workers<Order, Event>);

impl Bare {
    /// Starts them, to exchange blocks of this size.
    pub(super) fn start(
        transport: TransportKind,
        block: BlockSize,
        interrupt: &Interrupt,
    ) -> Result<Self, Fault> {
        assignment_all(How::default(), transport, &spec(block), Task, " of the exchange", interrupt).map(Self)
    }

    /// A round of exchanges of three messages.
    pub(super) fn exchange(&mut self, times: u64) -> Result<Samples, Fault> {
        self.round(Order::OfThree(times))
    }

    /// The same of two messages, between two of them.
    pub(super) fn exchange_of_two(&mut self, times: u64) -> Result<Samples, Fault> {
        self.round(Order::OfTwo(times))
    }

    fn round(&mut self, order: Order) -> Result<Samples, Fault> {
        ask_child(&mut self.0, NODE_0, order)
    }
}

struct BarePlace<'a> {
    transport: &'a dyn Transport,
    started: Instant,
    oversubscription: Oversubscription,
    out: Outgoing,
}

/// Is a place until the process ends.
pub(crate) fn place(
    Task(assignment): Task,
    orders: &Orders<Order>,
    teller: &Teller<Event>,
) -> Result<Never, Reason> {
    let transport = assignment.connect()?;
    let words = vec![0x5a5a_5a5a_5a5a_5a5a_u64; assignment.rack().block().len() / 8];
    let mut bare = BarePlace {
        transport: &*transport,
        started: Instant::now(),
        oversubscription: Oversubscription::default(),
        out: Outgoing::new(),
    };
    // As whoever waits in a rack does.
    rackmem::ask_for_short_slice();
    teller.tell(Event::Joined);
    let from = assignment.place();
    if from == PeerId::node(REQUESTER) {
        let mut block = vec![0; assignment.rack().block().len()];
        let mut seq = 0;
        // Until each has found the other.
        bare.exchange(&mut seq, &mut block, Endpoint::Switch)?;
        loop {
            let (times, first) = match orders.next() {
                Order::OfThree(times) => (times, Endpoint::Switch),
                Order::OfTwo(times) => (times, Endpoint::CacheAgent(THIRD)),
            };
            let times = Recorder::timed(times, |_| bare.exchange(&mut seq, &mut block, first))?;
            teller.tell(Event::Answer(answer(times).map_err(|error| error.to_string())?));
        }
    } else if from == PeerId::SWITCH {
        bare.answer(|request| {
            (
                request.reply(PacketKind::ReadMiss, Endpoint::Switch, Endpoint::CacheAgent(THIRD)),
                Contents::None,
            )
        })
    } else {
        let payload = assignment.rack().block().bytes() as u32;
        bare.answer(|request| {
            let reply =
                request.reply(PacketKind::Ack, Endpoint::CacheAgent(THIRD), Endpoint::Requester(REQUESTER));
            (Packet { payload, ..reply }, Contents::Own(&words))
        })
    }
}

fn request(seq: u64) -> Packet {
    let tag = BlockTag::from_bits(GlobalAddr::new(THIRD, 4096).bits());
    Packet::request(PacketKind::ReadMiss, tag, RequesterId { node: REQUESTER, slot: SlotId(0) }, Seq(seq))
}

impl BarePlace<'_> {
    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn send(&mut self, packet: &Packet, contents: Contents<'_>) {
        self.transport.send(PeerId::of(packet.to), Body::Packet(packet, contents), &mut self.out);
        self.transport.flush(&mut self.out);
    }

    /// Answers what comes, as the switch and the nodes of a rack wait for it.
    fn answer<'a>(&mut self, with: impl Fn(&Packet) -> (Packet, Contents<'a>)) -> Result<Never, Reason> {
        let mut spin_then_park = SpinThenPark::without_spins();
        let transport = self.transport;
        transport.attend();
        loop {
            let now = spin_then_park.now(|| self.now());
            let out = &mut self.out;
            let messages = transport.receive(&mut |_, body| {
                if let Body::Packet(packet, _) = body {
                    let (reply, contents) = with(packet);
                    transport.send(PeerId::of(reply.to), Body::Packet(&reply, contents), out);
                }
            });
            if messages > 0 {
                transport.flush(out);
                spin_then_park.again();
                if !is_all(messages) {
                    continue;
                }
            }
            match spin_then_park.step(now, Nanos::MAX, &self.oversubscription) {
                Step::Spin => std::hint::spin_loop(),
                Step::Yield => spin_then_park.give_way(now, &self.oversubscription, || self.now()),
                Step::Sleep(_) => transport.block(LONGEST_SLEEP),
            }
        }
    }

    /// One exchange, as a thread that misses waits for its block; this one is asked first.
    fn exchange(&mut self, seq: &mut u64, block: &mut [u8], first: Endpoint) -> Result<(), Reason> {
        let began = Instant::now();
        let transport = self.transport;
        let mut spin_then_park = SpinThenPark::without_spins();
        transport.attend();
        let mut answered = false;
        while !answered {
            *seq += 1;
            self.send(&Packet { to: first, ..request(*seq) }, Contents::None);
            let lost = self.now() + LOST_AFTER;
            while !answered {
                let now = spin_then_park.now(|| self.now());
                if now >= lost {
                    break;
                }
                let messages = transport.receive(&mut |_, body| {
                    if let Body::Packet(packet, contents) = body
                        && packet.seq == Seq(*seq)
                        && contents.bytes() == block.len()
                    {
                        contents.copy_to(0, block);
                        answered = true;
                    }
                });
                if messages > 0 {
                    spin_then_park.again();
                    continue;
                }
                match spin_then_park.step(now, lost, &self.oversubscription) {
                    Step::Spin => std::hint::spin_loop(),
                    Step::Yield => spin_then_park.give_way(now, &self.oversubscription, || self.now()),
                    Step::Sleep(most) => transport.block(most),
                }
            }
            if began.elapsed() > NOBODY_AFTER {
                return Err("no answer for half a minute".to_owned());
            }
        }
        transport.leave();
        Ok(())
    }
}
