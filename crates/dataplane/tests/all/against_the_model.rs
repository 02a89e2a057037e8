//! Random and hostile packets through the model and through the kernel: every verdict, every packet that goes out, every
//! counter and every register array must be the same.

use dataplane::Loaded;
use random::Dice;
use switch::coherence::{Drop, Effect, Switch, SwitchConfig};
use switch::ebpf::{Frames, KernelProgram, Output, verdict};
use wire::packet::HEADER_BYTES;
use wire::{
    AllRules, BlockTag, Copyset, GlobalStatus, NodeId, Packet, PacketKind, Refusal, RequesterId, Rule, Rules,
    Seq, SlotId, Status, SwitchEpoch, Without,
};

/// Where headers begin in the frames of these tests: behind Ethernet, IP and UDP.
const HEADER_AT: usize = 42;

/// A switch with one set, in which numbers, blocks and requesters meet.
fn config(nodes: usize, queue: bool) -> SwitchConfig {
    SwitchConfig { nodes, entries: 7, epoch: SwitchEpoch(3), queue, peeks: true }
}

/// None, and it is said, if this machine lets nobody load programs.
pub(crate) fn loaded(program: &KernelProgram) -> Option<Loaded> {
    match Loaded::load(program) {
        Ok(loaded) => Some(loaded),
        Err(refused) if refused.for_lack_of_rights() => {
            assert!(std::env::var_os("RACKMEM_NEEDS_KERNEL").is_none(), "{refused}");
            eprintln!("not run: {refused}");
            None
        }
        Err(refused) => panic!("{refused}"),
    }
}

fn packet(dice: &mut Dice, nodes: u64) -> Packet {
    let home = dice.below(nodes);
    let tag = BlockTag::from_bits(home << 48 | dice.below(10) << 12);
    let requester = RequesterId {
        node: NodeId(if dice.below(8) > 0 { home } else { dice.below(nodes + 1) } as u16),
        slot: SlotId([0, 1, 2, 63][dice.below(4) as usize]),
    };
    // Many ADDs, so that the ways fill up.
    let kind = match dice.below(12) {
        0..4 => PacketKind::AddToSwitch,
        4 => PacketKind::Peek,
        _ => PacketKind::ALL[dice.below(10) as usize],
    };
    let refused = [Refusal::Locked, Refusal::Outdated, Refusal::Collision][dice.below(3) as usize];
    let states = [GlobalStatus::Unshared, GlobalStatus::Shared, GlobalStatus::Modified];
    let request = Packet {
        in_switch: dice.below(5) > 0,
        status: if dice.below(5) > 0 { Status::Granted } else { Status::Refused(refused) },
        provider: dice.below(4) == 0,
        global_status: states[dice.below(3) as usize],
        copyset: Copyset::from_bits(dice.below(1 << (nodes + 1))),
        repeated: dice.below(5) == 0,
        epoch: SwitchEpoch(if dice.below(30) > 0 { 3 } else { 2 }),
        arg: dice.next(),
        ..Packet::request(kind, tag, requester, Seq(1 + dice.below(6)))
    };
    if dice.below(4) > 0 || kind == PacketKind::Peek {
        request
    } else {
        Packet { kind: PacketKind::Unlock, ..request }
    }
}

/// A packet's bytes, of which some are not what anybody writes.
fn hostile(dice: &mut Dice, bytes: &mut [u8; HEADER_BYTES]) {
    for _ in 0..1 + dice.below(3) {
        let at = dice.below(HEADER_BYTES as u64) as usize;
        bytes[at] = match dice.below(3) {
            0 => bytes[at] ^ 1 << dice.below(8),
            1 => dice.next() as u8,
            _ => [0, 1, 63, 64, 0x7f, 0xff][dice.below(6) as usize],
        };
    }
}

/// The model, which runs a packet through all of its passes.
struct Model<R: Rules> {
    switch: Switch<R>,
    sent: Vec<[u8; HEADER_BYTES]>,
}

impl<R: Rules> Model<R> {
    fn run(&mut self, bytes: &[u8; HEADER_BYTES]) -> u32 {
        self.sent.clear();
        let Some(packet) = Packet::parse_header(bytes).ok().filter(|packet| packet.payload == 0) else {
            return verdict::PASSED;
        };
        let mut effects = Vec::new();
        self.switch.on_packet(&packet, &mut effects);
        while let Some(effect) = effects.pop() {
            match effect {
                Effect::Resubmit(again) => {
                    assert!(effects.is_empty(), "a packet is resubmitted or sent, not both");
                    self.switch.on_resubmit(again, &mut effects);
                }
                Effect::Send(packet) => {
                    let mut bytes = [0; HEADER_BYTES];
                    packet.encode(&mut bytes);
                    self.sent.push(bytes);
                }
            }
        }
        self.sent.reverse();
        verdict::TAKEN
    }
}

/// Runs packets through both until they differ. Says how.
fn compare<R: Rules>(
    rules: R,
    of_kernel: &KernelProgram,
    loaded: &mut Loaded,
    config: &SwitchConfig,
    seed: u64,
    packets: usize,
) -> Result<(), String> {
    let mut dice = Dice::new(seed);
    let mut model = Model { switch: Switch::with_rules(rules, config).expect("it fits"), sent: Vec::new() };
    let mut state = Vec::new();
    for at in 0..packets {
        // A new incarnation now and then, so that the switch is not full for ever.
        if at % 400 == 0 {
            model.switch.restart(config.epoch);
            loaded.set_epoch(config.epoch.0);
            loaded.clear(1);
            model.switch.set_shadow(NodeId(1));
        }
        let mut bytes = [0; HEADER_BYTES];
        packet(&mut dice, config.nodes as u64).encode(&mut bytes);
        if dice.below(6) == 0 {
            hostile(&mut dice, &mut bytes);
        }
        let mut frame = vec![0; HEADER_AT];
        frame.extend_from_slice(&bytes);
        let differs = |what: &str, model: &dyn std::fmt::Debug, kernel: &dyn std::fmt::Debug| {
            let packet = Packet::parse_header(&bytes);
            Err(format!(
                "seed {seed}, packet {at}: {what}: {model:?} in the model, {kernel:?} in the kernel; {packet:?}"
            ))
        };

        let expected = model.run(&bytes);
        loaded.forget_log();
        let run = loaded.test_run(&frame, 1).map_err(|error| error.to_string())?;
        loaded.state(&mut state);
        if run.verdict != expected {
            return differs("verdict", &expected, &run.verdict);
        }
        let layout = &of_kernel.layout;
        let sent: Vec<_> = layout.logged(&state, HEADER_BYTES).collect();
        if sent != model.sent {
            let parsed = |bytes: &[u8]| Packet::parse(bytes).map(|(packet, _)| packet);
            let model: Vec<_> = model.sent.iter().map(|bytes| parsed(bytes)).collect();
            return differs("sent", &model, &sent.into_iter().map(parsed).collect::<Vec<_>>());
        }
        for (array, cells) in model.switch.register_arrays().into_iter().enumerate() {
            for (index, cell) in cells.into_iter().enumerate() {
                let kernel = layout.cell(&state, array, index);
                if kernel != cell {
                    return differs(&format!("array {array}, cell {index}"), &cell, &kernel);
                }
            }
        }
        let counters = model.switch.counters();
        let drops = Drop::ALL.map(|cause| counters.drops(cause));
        let refusals = Refusal::ALL.map(|why| counters.refusals(why));
        let kernel = (0..drops.len()).map(|at| layout.counter(&state, at));
        let kernel_refusals = Refusal::ALL.map(|why| layout.counter(&state, drops.len() + why as usize));
        let resubmits = layout.counter(&state, drops.len() + Refusal::ALL.len() + 1);
        let model = (drops.to_vec(), refusals, counters.resubmits);
        let kernel = (kernel.collect::<Vec<_>>(), kernel_refusals, resubmits);
        if model != kernel {
            return differs("counters", &model, &kernel);
        }
    }
    Ok(())
}

fn packets(most: usize) -> usize {
    std::env::var("RACKMEM_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(most)
}

pub(crate) fn seed() -> u64 {
    let given = std::env::var("RACKMEM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given
        .unwrap_or_else(|| std::time::SystemTime::now().elapsed().map_or(1, |_| std::process::id().into()));
    println!("seed {seed}: again with RACKMEM_SEED={seed}");
    seed
}

fn program<R: Rules>(rules: R, config: &SwitchConfig) -> KernelProgram {
    let switch = Switch::with_rules(rules, config).expect("it fits");
    switch.for_kernel(Frames::Bare(HEADER_AT), Output::Log).expect("its jumps are short enough")
}

#[test]
fn the_kernel_does_what_the_model_does() {
    let seed = seed();
    for (nodes, queue) in [(2, false), (3, true), (8, false), (8, true)] {
        let config = config(nodes, queue);
        let program = program(AllRules, &config);
        println!("{nodes} nodes, queue {queue}: {} instructions", program.code.instructions.len());
        let Some(mut loaded) = loaded(&program) else { return };
        compare(AllRules, &program, &mut loaded, &config, seed, packets(20_000))
            .unwrap_or_else(|how| panic!("{how}"));
    }
}

/// What these rules forbid happens between a packet's two passes. Here nothing does: both run under one lock.
const BETWEEN_PASSES: [Rule; 1] = [Rule::ClaimIsMarked];

/// A rule that changes the program must show: its mutant in the kernel is told from the model that keeps the rule.
#[test]
fn every_mutant_of_the_program_is_told_apart() {
    let seed = seed();
    let mut told_apart = Vec::new();
    for queue in [false, true] {
        let config = config(3, queue);
        let whole = program(AllRules, &config);
        for rule in Rule::COHERENCE {
            let mutant = program(Without(*rule), &config);
            if mutant == whole || BETWEEN_PASSES.contains(rule) {
                continue;
            }
            let Some(mut loaded) = loaded(&mutant) else { return };
            let found = compare(AllRules, &mutant, &mut loaded, &config, seed, packets(20_000));
            let Err(how) = found else {
                panic!("seed {seed}: without {rule:?} (queue {queue}) nothing differs")
            };
            println!("{rule:?}: {}", how.lines().next().unwrap_or_default());
            told_apart.push(*rule);
        }
    }
    assert!(told_apart.len() >= 12, "rules that change the program: {told_apart:?}");
}
