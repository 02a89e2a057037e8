//! `docs/mutants.md` has a part for each protocol, and each is written by the test that runs those mutants.

/// What the parts begin with.
const PARTS: [&str; 2] =
    ["# The mutants, and what catches them\n", "# The mutants of the locks that carry their data\n"];

/// Asserts that this part of the document is so, or makes it so if `RACKMEM_WRITE` is set.
///
/// # Panics
/// If it is not, or cannot be written.
pub(crate) fn says(part: usize, text: &str) {
    assert!(text.starts_with(PARTS[part]), "part {part} begins otherwise");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mutants.md");
    let now = std::fs::read_to_string(path).unwrap_or_default();
    let second = now.find(PARTS[1]).unwrap_or(now.len());
    let parts = now.split_at(second);
    if std::env::var_os("RACKMEM_WRITE").is_some() {
        let first = if parts.0.is_empty() { String::new() } else { format!("{}\n\n", parts.0.trim_end()) };
        let new = if part == 0 { format!("{text}\n{}", parts.1) } else { format!("{first}{text}") };
        return std::fs::write(path, new.trim_end().to_owned() + "\n")
            .expect("docs/mutants.md can be written");
    }
    let now = [parts.0, parts.1][part];
    assert!(
        now.trim_end() == text.trim_end(),
        "docs/mutants.md is not what the table says: write it with RACKMEM_WRITE=1"
    );
}
