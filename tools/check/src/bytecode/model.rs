//! The switch's programs as the model runs them: packets as bytes, all passes of one packet in one step, as in a kernel.

use switch::coherence::{self, Switch};
use switch::ebpf::{Hook, KernelProgram, verdict};
use switch::locks::{self, Directory, SINGLE_BYTES};
use wire::packet::HEADER_BYTES;
use wire::{LockKind, LockPacket, Packet, PacketKind, Refusal, Rules};

use super::Machine;

/// A program of the switch.
pub trait Model {
    /// Bytes of a packet.
    const BYTES: usize;

    /// Runs a packet through all of its passes: what goes out. None: these are no bytes of a packet for the program.
    fn run(&mut self, bytes: &[u8]) -> Option<Vec<Vec<u8>>>;

    /// True if it goes on in a driver, where one packet can leave: more than one may come of it, or none of its kind.
    fn goes_on_in_driver(bytes: &[u8]) -> bool;

    /// The register arrays.
    fn arrays(&self) -> Vec<Vec<u64>>;

    /// In the order of the program's counters.
    fn counters(&self) -> Vec<u64>;
}

/// The bytes of a packet about a block.
pub fn encoded(packet: &Packet) -> Vec<u8> {
    let mut bytes = [0; HEADER_BYTES];
    packet.encode(&mut bytes);
    bytes.to_vec()
}

/// Those of one about a lock, alone in its datagram.
pub fn encoded_lock(packet: &LockPacket) -> Vec<u8> {
    let mut bytes = vec![0; SINGLE_BYTES];
    packet.encode(&mut bytes);
    bytes
}

impl<R: Rules> Model for Switch<R> {
    const BYTES: usize = HEADER_BYTES;

    fn run(&mut self, bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
        let (packet, _) = Packet::parse(bytes).ok()?;
        let (mut effects, mut sent) = (Vec::new(), Vec::new());
        self.on_packet(&packet, &mut effects);
        while let Some(effect) = effects.pop() {
            match effect {
                coherence::Effect::Resubmit(again) => {
                    assert!(effects.is_empty(), "a packet is resubmitted or sent, not both");
                    self.on_resubmit(again, &mut effects);
                }
                coherence::Effect::Send(packet) => sent.push(encoded(&packet)),
            }
        }
        sent.reverse();
        Some(sent)
    }

    fn goes_on_in_driver(bytes: &[u8]) -> bool {
        // Sharers are invalidated; the shadow hears of an ADD.
        use PacketKind::{AddToSwitch, Purge, WriteMiss, WriteShared};
        let kind = Packet::parse(bytes).map(|(packet, _)| packet.kind);
        matches!(kind, Ok(WriteMiss | WriteShared | Purge | AddToSwitch))
    }

    fn arrays(&self) -> Vec<Vec<u64>> {
        self.register_arrays()
    }

    fn counters(&self) -> Vec<u64> {
        let counters = Switch::counters(self);
        let drops = coherence::Drop::ALL.into_iter().map(|cause| counters.drops(cause));
        let refusals = Refusal::ALL.into_iter().map(|why| counters.refusals(why));
        // Refusals are numbered from 1.
        drops.chain([0]).chain(refusals).chain([counters.resubmits]).collect()
    }
}

impl<R: Rules> Model for Directory<R> {
    const BYTES: usize = SINGLE_BYTES;

    fn run(&mut self, bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
        let (packet, _) = LockPacket::parse_head(bytes)?;
        if packet.payload > 0 || matches!(packet.kind, LockKind::Install | LockKind::Remove) {
            return None;
        }
        let (mut effects, mut sent) = (Vec::new(), Vec::new());
        self.on_packet(&packet, &mut effects);
        if let [locks::Effect::Resubmit(again)] = effects[..] {
            effects.clear();
            self.on_resubmit(&again, &mut effects);
        }
        for effect in &effects {
            let locks::Effect::Send(packet) = effect else { panic!("a packet is resubmitted once") };
            let mut out = encoded_lock(packet);
            // Behind its list a single packet has what came in there: nobody looks at it.
            let head = packet.head_bytes();
            out[head..].copy_from_slice(&bytes[head..]);
            sent.push(out);
        }
        Some(sent)
    }

    fn goes_on_in_driver(bytes: &[u8]) -> bool {
        // Readers hear of it: those who wait of a MOVE, which names them; those who have copies of an ACQUIRE.
        let packet = LockPacket::parse_head(bytes).map(|(packet, _)| packet);
        packet.is_none_or(|packet| packet.kind != LockKind::Move || !packet.nodes.is_empty())
    }

    fn arrays(&self) -> Vec<Vec<u64>> {
        self.register_arrays()
    }

    fn counters(&self) -> Vec<u64> {
        locks::Drop::ALL.map(|cause| self.dropped(cause)).to_vec()
    }
}

/// Where a program runs, as far as its process has to do with it.
pub trait Place {
    /// It is in this incarnation, and holds nothing; this node keeps the shadow.
    fn begin(&mut self, epoch: u32, shadow: u16);

    /// Sets a register cell.
    fn set_cell(&mut self, array: usize, index: usize, value: u64);

    /// Runs it on a frame; its verdict.
    ///
    /// # Errors
    /// If it cannot be run, or does what it must not.
    fn verdict_on(&mut self, frame: &[u8]) -> Result<u32, String>;

    /// A copy of its state.
    fn state(&mut self, to: &mut Vec<u8>);
}

/// Runs a packet through the model and through the program, whose headers begin behind so many bytes.
///
/// # Errors
/// What differs: the verdict, what goes out, a register cell or a counter.
pub fn compare<M: Model>(
    model: &mut M,
    program: &mut dyn Place,
    of_kernel: &KernelProgram,
    (before, bytes): (usize, &[u8]),
    state: &mut Vec<u8>,
) -> Result<(), String> {
    let differs = |what: &str, model: &dyn std::fmt::Debug, found: &dyn std::fmt::Debug| {
        Err(format!("{what}: {model:?} in the model, {found:?} in the program; {bytes:?}"))
    };
    let (layout, hook) = (&of_kernel.layout, of_kernel.hook);
    let goes_on = hook == Hook::Driver && M::goes_on_in_driver(bytes);
    let expected = if goes_on { None } else { model.run(bytes) };
    let frame = [&vec![0; before], bytes].concat();
    let found_verdict = program.verdict_on(&frame)?;
    program.state(state);
    let found: Vec<_> = layout.logged(state, M::BYTES).map(<[u8]>::to_vec).collect();
    let verdict = if expected.is_some() { verdict::taken(hook) } else { verdict::passed(hook) };
    if found_verdict != verdict {
        return differs("verdict", &verdict, &found_verdict);
    }
    let expected = expected.unwrap_or_default();
    if hook == Hook::Driver && expected.len() > 1 {
        return differs("packets of one in a driver", &expected, &found);
    }
    if found != expected {
        return differs("sent", &expected, &found);
    }
    for (array, cells) in model.arrays().into_iter().enumerate() {
        for (index, cell) in cells.into_iter().enumerate() {
            let found = layout.cell(state, array, index);
            if found != cell {
                return differs(&format!("array {array}, cell {index}"), &cell, &found);
            }
        }
    }
    let counters = model.counters();
    let found: Vec<_> = (0..counters.len()).map(|at| layout.counter(state, at)).collect();
    if counters != found {
        return differs("counters", &counters, &found);
    }
    Ok(())
}

impl Place for Machine {
    fn begin(&mut self, epoch: u32, shadow: u16) {
        let layout = &self.layout;
        let (epoch_at, shadow_at, arrays) = (layout.epoch, layout.shadow, layout.arrays[0].at);
        self.write(epoch_at, &u64::from(epoch).to_le_bytes());
        self.write(shadow_at, &u64::from(shadow).to_le_bytes());
        self.state[arrays..].fill(0);
    }

    fn set_cell(&mut self, array: usize, index: usize, value: u64) {
        let switch::ebpf::ArrayLayout { at, cell, .. } = self.layout.arrays[array];
        self.write(at + index * cell, &value.to_le_bytes()[..cell]);
    }

    fn verdict_on(&mut self, frame: &[u8]) -> Result<u32, String> {
        self.write(self.layout.log, &[0; 8]);
        let ran = self.run(frame).map_err(|fault| fault.to_string())?;
        self.longest = self.longest.max(ran.instructions);
        Ok(ran.verdict)
    }

    fn state(&mut self, to: &mut Vec<u8>) {
        to.clear();
        to.extend(&self.state);
    }
}

impl Machine {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        self.state[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Its registers become these, its counters those of the model.
    pub fn take_on<M: Model>(&mut self, model: &M) {
        for (array, cells) in model.arrays().into_iter().enumerate() {
            for (index, cell) in cells.into_iter().enumerate() {
                self.set_cell(array, index, cell);
            }
        }
        for (number, count) in model.counters().into_iter().enumerate() {
            self.write(self.layout.counters + 8 * number, &count.to_le_bytes());
        }
    }
}
