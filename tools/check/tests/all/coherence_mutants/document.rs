//! `docs/mutants.md` has a part for each protocol, and each is written by the test that runs those mutants, wherever that is.

/// What the parts begin with, in their order.
const PARTS: [&str; 4] = [
    "# The mutants, and what catches them\n",
    "# The mutants of the locks that carry their data\n",
    "# The mutants of chains\n",
    "# The mutants of steering\n",
];

/// Tests of one program write one after the other.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// The parts of the document as it is; those that are not there are empty.
fn parts_of(text: &str) -> [String; PARTS.len()] {
    let starts = PARTS.map(|head| {
        let at = text.find(head).filter(|at| *at == 0 || text[..*at].ends_with('\n'));
        at.unwrap_or(text.len())
    });
    std::array::from_fn(|part| {
        let end = starts.iter().copied().filter(|start| *start > starts[part]).min();
        text[starts[part]..end.unwrap_or(text.len())].trim_end().to_owned()
    })
}

/// Asserts that this part of the document is so, or makes it so if `RACKMEM_WRITE` is set.
///
/// # Panics
/// If it is not, or cannot be written.
pub(crate) fn says(part: usize, text: &str) {
    assert!(text.starts_with(PARTS[part]), "part {part} begins otherwise");
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // All crates are neighbours.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mutants.md");
    let mut parts = parts_of(&std::fs::read_to_string(path).unwrap_or_default());
    if std::env::var_os("RACKMEM_WRITE").is_some() {
        text.trim_end().clone_into(&mut parts[part]);
        let all: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        return std::fs::write(path, all.join("\n\n") + "\n").expect("docs/mutants.md can be written");
    }
    assert!(
        parts[part] == text.trim_end(),
        "docs/mutants.md is not what the table says: write it with RACKMEM_WRITE=1"
    );
}
