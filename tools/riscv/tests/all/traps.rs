//! What a program must not do ends with a trap that says what, where, and with what in the registers; nothing of the instruction
//! has happened.

use riscv::machine::{Console, Failure, Machine, MachineConfig};
use riscv::program::Program;
use riscv::trap::{Access, Cause, Trap};

/// Runs a program that traps on node 1 of 3. It begins with 42 in s1.
fn trap(code: &str) -> (Trap, Machine) {
    let text = format!(
        "li s1, 42; li a7, 1000; ecall; addi a0, a0, -1; bne a0, zero, out
         li a7, 1004; ecall; mv a2, a0; eaddie e12, zero, 1
         {code}
         out: li a7, 93; li a0, 0; ecall"
    );
    let mut machine = Machine::new(Program::assembled(&text).unwrap(), &MachineConfig::nodes(3)).unwrap();
    match machine.run(&mut Console::default()) {
        Err(Failure::Trap(trap)) => (*trap, machine),
        other => panic!("{code}: {other:?}"),
    }
}

#[test]
fn each_mistake_has_its_trap() {
    let heap = trap("ebreak").0.x[12];
    let end = heap / 4096 * 4096 - 4096 - (1 << 20) + (64 << 20);
    let code = 0x8000_0000_u64;
    for (text, cause) in [
        (".word 0", Cause::Illegal),
        (".word 0xffffffff", Cause::Illegal),
        (".word 0x30002573", Cause::Illegal), // csrrs a0, mstatus, zero
        ("csrrw zero, cycle, s1", Cause::Illegal),
        ("ebreak", Cause::Breakpoint),
        ("li a7, 5000; ecall", Cause::UnknownCall(5000)),
        ("li t0, 0x80000002; jalr ra, 0(t0)", Cause::MisalignedTarget(code + 2)),
        ("li t0, 0x10; jalr zero, 0(t0)", Cause::NoCode),
        ("ld a0, 4(a2)", Cause::Misaligned(Access::Load, heap + 4, 8)),
        ("sh a0, 1(a2)", Cause::Misaligned(Access::Store, heap + 1, 2)),
        ("addi t0, a2, 2; amoadd.w a0, a1, (t0)", Cause::Misaligned(Access::Atomic, heap + 2, 4)),
        ("addi t0, a2, 4; lr.d a0, (t0)", Cause::Misaligned(Access::Load, heap + 4, 8)),
        ("lw a0, 0(zero)", Cause::Unmapped(Access::Load, 0, 4)),
        ("li t0, -8; sd a0, 0(t0)", Cause::Unmapped(Access::Store, u64::MAX - 7, 8)),
        ("li t0, 0x80000000; sd a0, 0(t0)", Cause::ReadOnly(Access::Store, code)),
        ("li t0, 0x80000000; amoadd.d a0, a1, (t0)", Cause::ReadOnly(Access::Atomic, code)),
        ("eld a0, 4(a2)", Cause::Misaligned(Access::Load, heap + 4, 8)),
        ("esh a0, 1(a2)", Cause::Misaligned(Access::Store, heap + 1, 2)),
        ("addi a2, a2, 4; eamoadd.d a0, a2, a1", Cause::Misaligned(Access::Atomic, heap + 4, 8)),
        ("li a2, 0; eamocas.w a0, a2, a1", Cause::Unmapped(Access::Atomic, 0, 4)),
        ("li a2, 0x80000000; esd a0, 0(a2)", Cause::ReadOnly(Access::Store, code)),
        ("li a2, 0x80000000; eamoadd.d a0, a2, a1", Cause::ReadOnly(Access::Atomic, code)),
        ("eaddie e12, zero, 4; eld a0, 0(a2)", Cause::UnknownNode(4)),
        ("eaddie e12, zero, -1; eamoadd.d a0, a2, a1", Cause::UnknownNode(u64::MAX)),
        ("eld a0, 0(sp)", Cause::ReservedRegister(2)),
        ("eamoadd.d a0, s1, a1", Cause::ReservedRegister(9)),
        ("eaddie e9, zero, 1", Cause::ReservedRegister(9)),
        ("eaddi a0, e0, 0", Cause::ReservedRegister(0)),
        ("eaddix e10, e5, 0", Cause::ReservedRegister(5)),
        ("erld a0, a2, e3", Cause::ReservedRegister(3)),
        ("ersd a0, a2, e4", Cause::ReservedRegister(4)),
        ("ese e6, 0(a2)", Cause::ReservedRegister(6)),
        ("ele e7, 0(a2)", Cause::ReservedRegister(7)),
        ("erle e8, a2, e12", Cause::ReservedRegister(8)),
    ] {
        let (trap, _) = trap(text);
        assert_eq!(trap.cause, cause, "{text}");
        assert_eq!((trap.node, trap.x[9]), (1, 42), "{text}");
    }
    assert_eq!(trap(&format!("li t0, {end}; lb a0, 0(t0)")).0.cause, Cause::Unmapped(Access::Load, end, 1));
}

#[test]
fn everything_before_the_instruction_has_happened_and_nothing_of_it() {
    // The load would write t0, the jump would write ra, and the store behind the trap would be seen.
    for code in
        ["ld t0, 1(a2)", "li t2, 0x80000002; jalr ra, 0(t2)", "eamoadd.d t0, sp, a1", "erld t0, a2, e1"]
    {
        let (trap, machine) =
            trap(&format!("li t0, 7; li ra, 8; li t1, 9; sd t1, 0(a2); {code}; sd zero, 0(a2)"));
        assert_eq!((trap.x[5], trap.x[1]), (7, 8), "{code}");
        assert_eq!(machine.memory(1).load::<3>(trap.x[12]), Some(9), "{code}");
        assert_eq!(machine.registers(1), trap.x);
    }
}

#[test]
fn a_trap_in_the_middle_of_a_block_counts_the_instructions_before_it() {
    let (first, _) = trap("ebreak");
    let (later, _) = trap("nop; nop; nop; lw a0, 1(a2)");
    assert_eq!(later.retired, first.retired + 3);
    assert_eq!(later.pc, first.pc + 12);
    let (remote, _) = trap("eamoadd.d a0, a2, zero; lw a0, 1(a2)");
    assert_eq!(remote.retired, first.retired + 1, "a remote atomic is an instruction");
}

#[test]
fn the_message_says_what_where_and_with_what() {
    let text = trap("li a1, -1; eaddie e12, zero, 9; eamoadd.d a5, a2, a1").0.to_string();
    for part in [
        "node 1: extended address 0x9 is of no node (0 is local, 1 to 3 are the nodes)",
        "0eb677eb  eamoadd.d a5, a2, a1",
        "pc 0x8000",
        "s1 000000000000002a",
        "a1 ffffffffffffffff",
        "e12 0000000000000009",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
}

#[test]
fn a_barrier_that_others_never_reach_is_said_to_be_stuck() {
    let text = "li a7, 1000; ecall; beq a0, zero, out; li a7, 1003; ecall; out: li a7, 93; ecall";
    let mut machine = Machine::new(Program::assembled(text).unwrap(), &MachineConfig::nodes(3)).unwrap();
    let failure = machine.run(&mut Console::default()).unwrap_err();
    assert_eq!(failure, Failure::Stuck { waiting: vec![1, 2], exited: vec![0] });
}

#[test]
fn a_program_without_end_is_stopped_at_its_limit() {
    let config = MachineConfig { limit: Some(100_000), ..MachineConfig::nodes(2) };
    let mut machine = Machine::new(Program::assembled("again: j again").unwrap(), &config).unwrap();
    assert_eq!(machine.run(&mut Console::default()), Err(Failure::Limit(100_000)));
}

#[test]
fn a_stack_that_grows_too_far_traps() {
    let text = "again: addi sp, sp, -256; sd ra, 0(sp); j again";
    let mut machine = Machine::new(Program::assembled(text).unwrap(), &MachineConfig::nodes(1)).unwrap();
    let Err(Failure::Trap(trap)) = machine.run(&mut Console::default()) else { panic!("no trap") };
    assert!(matches!(trap.cause, Cause::Unmapped(Access::Store, _, 8)), "{trap}");
}
