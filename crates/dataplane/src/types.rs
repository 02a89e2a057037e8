//! The type of the lock's map, as the kernel's debugging information says it (BTF): a spin lock is only one if its type says so.

/// The number of the key's type: 4 bytes without a sign.
pub(crate) const KEY: u32 = 1;
/// That of the entry's type: a structure that holds a lock.
pub(crate) const ENTRY: u32 = 3;

const INTEGER: u32 = 1;
const STRUCTURE: u32 = 4;

/// A description of three types: a number, a lock of the kernel, and an entry that is one.
pub(crate) fn of_lock() -> Vec<u8> {
    let mut names = vec![0];
    let mut name = |text: &str| {
        let at = names.len() as u32;
        names.extend_from_slice(text.as_bytes());
        names.push(0);
        at
    };
    let (number, lock, value, entry, its_lock) =
        (name("unsigned int"), name("bpf_spin_lock"), name("val"), name("entry"), name("lock"));
    let of = |kind: u32, members: u32| kind << 24 | members;
    let types: [u32; 4 + 6 + 6] = [
        // Its name, kind and size, and that all of its 32 bits count.
        number,
        of(INTEGER, 0),
        4,
        32,
        // Name, kind and number of members, size; of the member its name, type and place.
        lock,
        of(STRUCTURE, 1),
        4,
        value,
        KEY,
        0,
        entry,
        of(STRUCTURE, 1),
        4,
        its_lock,
        2,
        0,
    ];
    let types: Vec<u8> = types.into_iter().flat_map(u32::to_le_bytes).collect();
    let (head, types_bytes, names_bytes) = (24, types.len() as u32, names.len() as u32);
    let mut bytes = vec![0x9f, 0xeb, 1, 0];
    for number in [head, 0, types_bytes, types_bytes, names_bytes] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend(types);
    bytes.extend(names);
    bytes
}
