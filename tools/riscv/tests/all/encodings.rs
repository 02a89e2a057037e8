//! Encodings against words that others have published, and against other decoders.

use std::io::Write;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use raki::{Decode, Isa};
use random::Random;
use riscv::isa::assemble::assemble;
use riscv::isa::{Kind, Operand, TABLE, decode, disassemble};

/// Of the RAE paper's tool chain, and of the xBGAS specification 2.0.0 (where the tool chain's assembler agrees with it).
const GOLDEN: [(u32, &str); 26] = [
    (0x0ef7_77eb, "eamoadd.d a5, a4, a5"),
    (0x0ef7_67eb, "eamoadd.w a5, a4, a5"),
    (0x0ce7_f7eb, "eamocas.d a5, a5, a4"),
    (0x0ae7_f7eb, "eamomax.d a5, a5, a4"),
    (0x08e7_f7eb, "eamomin.d a5, a5, a4"),
    (0x04e7_f7eb, "eamoand.d a5, a5, a4"),
    (0x02e7_f7eb, "eamoxor.d a5, a5, a4"),
    (0x028f_b7f7, "eld a5, 40(t6)"),
    (0x028f_a7f7, "elw a5, 40(t6)"),
    (0x028f_97f7, "elh a5, 40(t6)"),
    (0x028f_87f7, "elb a5, 40(t6)"),
    (0x028f_d7f7, "elhu a5, 40(t6)"),
    (0x028f_c7f7, "elbu a5, 40(t6)"),
    (0x028f_f577, "ele e10, 40(t6)"),
    (0x02ff_b47b, "esd a5, 40(t6)"),
    (0x02ff_a47b, "esw a5, 40(t6)"),
    (0x02ff_947b, "esh a5, 40(t6)"),
    (0x02ff_847b, "esb a5, 40(t6)"),
    (0xaaa8_37b3, "erld a5, a6, e10"),
    (0xaaa8_27b3, "erlw a5, a6, e10"),
    (0xaaa8_17b3, "erlh a5, a6, e10"),
    (0xaaa8_07b3, "erlb a5, a6, e10"),
    (0xaaa8_57b3, "erlhu a5, a6, e10"),
    (0xaaa8_47b3, "erlbu a5, a6, e10"),
    (0xfe05_67fb, "eaddi a5, e10, -32"),
    (0x0205_7a83, "eaddix e21, e10, 32"),
];

#[test]
fn golden_words_are_what_they_are_said_to_be() {
    for (word, text) in GOLDEN {
        assert_eq!(disassemble(word, 0).to_string(), text, "{word:#010x}");
        assert_eq!(assemble(text, 0), Ok(vec![word]));
    }
}

/// The published assembler is older than the specification in three encodings: `ese` and `eaddie` have other bits, and of the raw
/// stores it puts the registers into other places.
#[test]
fn where_the_assembler_and_the_specification_differ_the_specification_holds() {
    for (word, text) in [
        (0x02af_f47b, "ese e10, 40(t6)"),
        (0xfe07_d57b, "eaddie e10, a5, -32"),
        (0x44a7_b5b3, "ersd a5, a0, e11"),
        (0x44b7_f633, "erse e15, a1, e12"),
    ] {
        assert_eq!(disassemble(word, 0).to_string(), text, "{word:#010x}");
    }
}

/// All words of all remote atomics: seven operations in two widths.
#[test]
fn there_are_fourteen_remote_atomics() {
    let atomics: Vec<_> =
        TABLE.iter().filter(|row| row.pattern.bits & 0x7f == 0x6b).map(|row| row.name).collect();
    assert_eq!(atomics.len(), 14, "{atomics:?}");
}

fn is_standard(kind: Kind) -> bool {
    kind < Kind::Elb
}

/// What we decode, the other decoder decodes to the same instruction with the same operands. (It accepts more words than there are
/// instructions, so nothing is said about those.)
fn assert_decoded_alike(word: u32) {
    let Some(row) = decode(word).filter(|row| is_standard(row.kind)) else { return };
    // It has no instruction of its own for `fence.i`, and calls counters by their pseudo-instructions.
    if matches!(row.kind, Kind::FenceI | Kind::Fence) || row.operands.contains(&Operand::Csr) {
        return;
    }
    let other = word.decode(Isa::Rv64).unwrap_or_else(|error| panic!("{}: {error:?}", row.name));
    // Its name of `mulhsu` ends with a comma.
    assert_eq!(other.opc.to_string().trim_end_matches(','), row.name, "{word:#010x}");
    let register = |wanted: &[Operand]| {
        let found = row.operands.iter().find(|operand| wanted.contains(operand))?;
        let found = match found {
            Operand::Near | Operand::NearStore | Operand::At => &Operand::Rs1,
            found => found,
        };
        Some(found.value(word) as usize)
    };
    use Operand::*;
    assert_eq!(other.rd, register(&[Rd]), "{}", row.name);
    assert_eq!(other.rs1, register(&[Rs1, Near, NearStore, At]), "{}", row.name);
    assert_eq!(other.rs2, register(&[Rs2]), "{}", row.name);
    let constants = [Immediate, Near, NearStore, BranchTo, JumpTo, Upper, Shift6, Shift5];
    let constant = row.operands.iter().find(|operand| constants.contains(operand));
    // aq and rl are a constant there; of upper constants it gives the whole word's value or the field, by its release.
    if let Some(operand) = constant {
        let (ours, theirs) = (operand.value(word), other.imm.expect("it has a constant"));
        assert!(ours == theirs || *operand == Upper && ours << 12 == theirs, "{}: {ours} {theirs}", row.name);
    }
}

#[test]
fn every_standard_instruction_is_decoded_as_another_decoder_does() {
    let mut random = Random::new(7);
    for row in TABLE {
        for _ in 0..3000 {
            assert_decoded_alike(random.bits() as u32 & !row.pattern.mask | row.pattern.bits);
        }
    }
}

proptest! {
    #[test]
    fn whatever_we_decode_another_decoder_decodes_alike(word in any::<u32>()) {
        assert_decoded_alike(word);
    }
}

/// Disassembles words with GNU objdump: one text a word. None if it is not installed.
fn objdump(words: &[u32]) -> Option<Vec<String>> {
    let path = format!("{}/words-{}.bin", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    std::fs::File::create(&path).unwrap().write_all(&bytes).unwrap();
    let output = Command::new("riscv64-unknown-elf-objdump")
        .args(["-D", "-z", "-b", "binary", "-m", "riscv:rv64", "-M", "no-aliases,numeric", &path])
        .stderr(Stdio::null())
        .output();
    std::fs::remove_file(&path).unwrap();
    let Ok(output) = output else {
        assert!(
            std::env::var_os("RACKMEM_RISCV").is_none(),
            "RACKMEM_RISCV is set, and objdump is not installed"
        );
        eprintln!("not done: riscv64-unknown-elf-objdump is not installed");
        return None;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let mut columns = line.split('\t').skip(2);
        Some(columns.next()?.trim().to_owned() + " " + columns.next().unwrap_or_default().trim())
    };
    Some(text.lines().filter(|line| line.contains(":\t")).filter_map(line).collect())
}

/// GNU's decoder is strict: it says what is an instruction, too. It knows extensions that the cores do not have; those are told by
/// their names.
#[test]
fn what_is_a_standard_instruction_and_what_is_not_is_what_gnu_objdump_says() {
    // Words of 32 bits: the lowest two bits are ones, and the next three are not all ones.
    let (mut words, mut random) = (Vec::new(), Random::new(11));
    let opcodes: Vec<u32> =
        TABLE.iter().filter(|row| is_standard(row.kind)).map(|row| row.pattern.bits & 0x7f).collect();
    for index in 0..60_000 {
        words.push(random.bits() as u32 & !0x7f | opcodes[index % opcodes.len()]);
    }
    let Some(texts) = objdump(&words) else { return };
    assert_eq!(texts.len(), words.len());
    let (mut agreed, mut others) = (0, 0);
    for (word, text) in words.iter().zip(&texts) {
        let name = text.split_whitespace().next().unwrap();
        let ours = decode(*word).filter(|row| is_standard(row.kind));
        let known =
            TABLE.iter().any(|row| is_standard(row.kind) && is_named(row.has_order_bits(), row.name, name));
        match ours {
            Some(row) => {
                // objdump leaves words of standard opcodes whose reserved fields are not zero undecoded.
                let reserved = matches!(row.kind, Kind::Fence | Kind::FenceI) && name.starts_with('.');
                let unknown_csr = row.operands.contains(&Operand::Csr);
                let tso = row.kind == Kind::Fence && name == "fence.tso";
                assert!(
                    reserved || unknown_csr || tso || is_named(row.has_order_bits(), row.name, name),
                    "{word:#010x}: {} here, {text} there",
                    row.name
                );
                agreed += 1;
            }
            None => {
                assert!(!known, "{word:#010x}: nothing here, {text} there");
                others += 1;
            }
        }
    }
    assert!(agreed > 20_000 && others > 5_000, "{agreed} {others}");
}

fn is_named(has_order: bool, name: &str, found: &str) -> bool {
    let rest = found.strip_prefix(name);
    rest == Some("") || has_order && matches!(rest, Some(".aq" | ".rl" | ".aqrl"))
}
