//! All tests of this crate, in one program.

mod agreement;
mod attach_fuzz;
mod attached;
mod block_locks;
mod chains;
mod chains_everywhere;
mod errors;
#[path = "../../../../fuzz/feed.rs"]
mod feed;
mod linearizable_words;
mod locks;
mod locks_everywhere;
mod names;
mod names_everywhere;
mod networked;
mod peeks_everywhere;
mod places;
mod rack_file;
mod regions;
mod regions_everywhere;
mod shared_memory;
#[path = "../../examples/tokio.rs"]
#[allow(unreachable_pub, reason = "a program, with a main function")]
mod tasks;

#[test]
fn the_example_of_tokio_counts_what_its_tasks_did() {
    tasks::main().expect("it works");
}
