//! The bare exchange, yardstick of what passes between processes, and a place of it:
//!
//! ```text
//!   node 0 ── 64 B ──> switch ── 64 B ──> node 1 ── 64 B and a block ──> node 0
//! ```
//!
//! or, of two, the same without the switch. The same transport, packets and waiting as in a miss ([`live::waiting`]), and
//! nothing else: no cache, no directory, no unlock. The requester copies the block out of the message, as whoever wants to keep
//! it must. In the middle is a process that sends on what comes, or the switch of a rack without nodes, which has no entry.

use std::thread;
use std::time::{Duration, Instant};

use live::waiting::{Oversubscription, SpinThenPark, Step, is_all};
use rackmem::dataplane::network;
use rackmem::transport::{Body, Contents, Outgoing, PeerId, Transport};
use rackmem::{BlockSize, Nanos, NodeId};
use serde::{Deserialize, Serialize};
use wire::{BlockTag, Endpoint, GlobalAddr, Packet, PacketKind, RequesterId, Seq, SlotId};

use super::nodes::{Event, How, NODE_0, answer, ask_child, ask_children, assignment_all, spec};
use super::samples::{Recorder, Samples};
use super::stream;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::processes::child::{Never, Reason};
use cli::processes::place::{Assignment, RackSpec};
use cli::processes::taken::Taken;
use cli::processes::{Orders, Teller, TransportKind, Workers};

/// As the switch of a rack sleeps at most.
const LONGEST_SLEEP: Nanos = Nanos::from_millis(50);
/// A request that is not answered so long was lost.
const LOST_AFTER: Nanos = Nanos::from_millis(10);
/// Without an answer for so long there is nobody.
const NOBODY_AFTER: Duration = Duration::from_secs(30);

/// Who answers; all others ask.
const THIRD: NodeId = NodeId(1);

/// So often is a flood repeated of which nothing arrives.
const MOST_FLOODS: usize = 10;
/// Packets of a flood that are acknowledged together, and how many may be on their way.
const BATCH: u64 = 64;
const ON_THEIR_WAY: u64 = 8 * BATCH;

/// What is in the middle.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Middle {
    /// A process that sends on what comes.
    Relay,
    /// The switch of a rack. It has no entry of the block, so it sends requests on to the home.
    Switch,
}

/// What a child is.
#[derive(Serialize, Deserialize)]
pub(crate) struct Task(Assignment, Middle);

/// What the command wants of the requester: so many exchanges, one after the other.
#[derive(Serialize, Deserialize)]
pub(crate) enum Order {
    /// Of three messages.
    OfThree(u64),
    /// Of two: a request and its answer.
    OfTwo(u64),
    /// So many requests that are hardly answered, through the middle.
    Flood(u64),
    /// So many bytes of a stream, past the middle, to who else asks.
    Stream(u64),
    /// That stream.
    Receive,
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
        Self::with((Middle::Relay, How::default()), transport, &spec(block), interrupt)
    }

    /// The same with one who asks more, over wires, each packet a datagram with a tag of its own; and with the switch of a rack in
    /// the middle, if its programs are in the kernel with this transport.
    pub(super) fn across(
        wire: TransportKind,
        block: BlockSize,
        interrupt: &Interrupt,
    ) -> Result<Self, Fault> {
        let middle = if wire.in_kernel() { Middle::Switch } else { Middle::Relay };
        let how = How { alone: true, ..How::default() };
        Self::with((middle, how), wire, &RackSpec { nodes: 3, ..spec(block) }, interrupt)
    }

    fn with(
        (middle, how): (Middle, How<'_>),
        transport: TransportKind,
        spec: &RackSpec,
        interrupt: &Interrupt,
    ) -> Result<Self, Fault> {
        let task = |assignment| Task(assignment, middle);
        assignment_all(how, transport, spec, task, " of the exchange", interrupt).map(Self)
    }

    /// Requests a second that arrive of so many, as fast as a thread on each of two nodes sends them. On a machine that is full, whoever
    /// is to take them may have no core meanwhile: a flood of which nothing arrives is repeated.
    pub(super) fn flood(&mut self, count: u64) -> Result<f64, Fault> {
        for _ in 0..MOST_FLOODS {
            let floods = [NODE_0, NODE_0 + 2].map(|child| (child, Order::Flood(count)));
            let rates: Vec<f64> = ask_children(&mut self.0, floods.into())?;
            let rate: f64 = rates.into_iter().sum();
            if rate > 0.0 {
                return Ok(rate);
            }
        }
        Err(Fault::failed(format_args!("of {MOST_FLOODS} floods of {count} requests, nothing has arrived")))
    }

    /// Bytes a second of so many that one who asks sends the other one over TCP.
    pub(super) fn stream(&mut self, bytes: u64) -> Result<f64, Fault> {
        let both = [(NODE_0 + 2, Order::Receive), (NODE_0, Order::Stream(bytes))];
        let answers: Vec<f64> = ask_children(&mut self.0, both.into())?;
        match answers[..] {
            [received, rate] if received == bytes as f64 => Ok(rate),
            _ => {
                Err(Fault::failed(format_args!("of a stream of {bytes} bytes, others arrived: {answers:?}")))
            }
        }
    }

    /// What the processes have taken of the machine.
    pub(super) fn taken(&self) -> Option<Taken> {
        self.0.taken()
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
    me: NodeId,
    transport: &'a dyn Transport,
    started: Instant,
    oversubscription: Oversubscription,
    out: Outgoing,
}

/// Is a place until the process ends.
pub(crate) fn place(
    Task(assignment, middle): Task,
    orders: &Orders<Order>,
    teller: &Teller<Event>,
) -> Result<Never, Reason> {
    if middle == Middle::Switch && assignment.place() == PeerId::SWITCH {
        let _at_work = assignment.take()?;
        teller.tell(Event::Joined);
        loop {
            thread::park();
        }
    }
    let transport = assignment.connect()?;
    let words = vec![0x5a5a_5a5a_5a5a_5a5a_u64; assignment.rack().block().len() / 8];
    let from = assignment.place();
    let mut bare = BarePlace {
        me: from.as_node().unwrap_or(THIRD),
        transport: &*transport,
        started: Instant::now(),
        oversubscription: Oversubscription::default(),
        out: Outgoing::new(),
    };
    // As whoever waits in a rack does.
    rackmem::ask_for_short_slice();
    teller.tell(Event::Joined);
    if from.as_node().is_some_and(|me| me != THIRD) {
        let mut block = vec![0; assignment.rack().block().len()];
        let mut seq = 0;
        // Until each has found the other.
        bare.exchange(&mut seq, &mut block, Endpoint::Switch)?;
        loop {
            let mut exchanges = |times, first| {
                answer(Recorder::timed(times, |_| bare.exchange(&mut seq, &mut block, first))?)
            };
            let answer = match orders.next() {
                Order::OfThree(times) => exchanges(times, Endpoint::Switch),
                Order::OfTwo(times) => exchanges(times, Endpoint::CacheAgent(THIRD)),
                Order::Flood(count) => answer(bare.flood(&mut seq, count)),
                Order::Stream(bytes) => {
                    stream::send(network::address_of(2), bytes).map_err(Into::into).and_then(answer)
                }
                Order::Receive => stream::receive().map_err(Into::into).and_then(answer),
            };
            teller.tell(Event::Answer(answer.map_err(|error| error.to_string())?));
        }
    } else if from == PeerId::SWITCH {
        bare.answer(|request| {
            let on = request.reply(PacketKind::ReadMiss, Endpoint::Switch, Endpoint::CacheAgent(THIRD));
            Some((on, Contents::None))
        })
    } else {
        let payload = assignment.rack().block().bytes() as u32;
        bare.answer(|request| {
            let reply = request.reply(
                PacketKind::Ack,
                Endpoint::CacheAgent(THIRD),
                Endpoint::Requester(request.requester.node),
            );
            match request.requester.slot {
                FLOODS if request.seq.0.is_multiple_of(BATCH) => Some((reply, Contents::None)),
                FLOODS => None,
                _ => Some((Packet { payload, ..reply }, Contents::Own(&words))),
            }
        })
    }
}

/// Who waits for an exchange, and whose requests are a flood.
const WAITS: SlotId = SlotId(0);
const FLOODS: SlotId = SlotId(1);

fn request((node, slot): (NodeId, SlotId), seq: u64) -> Packet {
    let tag = BlockTag::from_bits(GlobalAddr::new(THIRD, 4096).bits());
    Packet::request(PacketKind::ReadMiss, tag, RequesterId { node, slot }, Seq(seq))
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
    fn answer<'a>(
        &mut self,
        with: impl Fn(&Packet) -> Option<(Packet, Contents<'a>)>,
    ) -> Result<Never, Reason> {
        let mut spin_then_park = SpinThenPark::without_spins();
        let transport = self.transport;
        transport.attend();
        loop {
            let now = spin_then_park.now(|| self.now());
            let out = &mut self.out;
            let messages = transport.receive(&mut |_, body| {
                if let Body::Packet(packet, _) = body
                    && let Some((reply, contents)) = with(packet)
                {
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

    /// Sends requests that arrive, and nobody answers but for one of each batch; how many arrived in a second.
    fn flood(&mut self, seq: &mut u64, count: u64) -> f64 {
        *seq = seq.next_multiple_of(BATCH);
        let (first, transport) = (*seq, self.transport);
        // Below this, all have arrived, or were taken for lost. On a machine that is full, some of those arrive all the same.
        let (mut over, mut last, mut arrived) = (first, first, 0);
        let began = Instant::now();
        let mut lost = self.now() + LOST_AFTER;
        while over < first + count {
            while *seq < first + count && *seq < over + ON_THEIR_WAY {
                for _ in 0..BATCH {
                    *seq += 1;
                    let packet = request((self.me, FLOODS), *seq);
                    transport.send(PeerId::SWITCH, Body::Packet(&packet, Contents::None), &mut self.out);
                }
                transport.flush(&mut self.out);
            }
            let before = over;
            transport.receive(&mut |_, body| {
                if let Body::Packet(packet, _) = body
                    && packet.requester.slot == FLOODS
                    && packet.seq.0 > last
                {
                    last = packet.seq.0;
                    over = over.max(last);
                    arrived += BATCH;
                }
            });
            let now = self.now();
            if over > before {
                lost = now + LOST_AFTER;
            } else if now > lost {
                (over, lost) = (*seq, now + LOST_AFTER);
            } else {
                // Who answers may need this core.
                thread::yield_now();
            }
        }
        arrived as f64 / began.elapsed().as_secs_f64()
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
            self.send(&Packet { to: first, ..request((self.me, WAITS), *seq) }, Contents::None);
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
