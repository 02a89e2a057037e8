/* rackmem for C. docs/c.md of the repository is the page to begin with.
 *
 * Made by cbindgen from crates/capi; do not edit.
 *
 *     rackmem_rack rack;
 *     rackmem_thread thread;
 *     rackmem_rwlock lock;
 *     void *data;
 *     rackmem_join("rack.toml", 1, &rack);             // or rackmem_up(4, NULL, &rack), which starts one
 *     rackmem_thread_open(rack, 1, &thread);           // one for each OS thread
 *     rackmem_rwlock_named(thread, "counts", RACKMEM_OPEN_OR_CREATE, NULL, 128, NULL, &lock);    // 128 bytes, at first zeroes
 *     rackmem_rwlock_write(lock, &data);
 *     ...                                              // nobody else has the bytes at data
 *     rackmem_rwlock_unlock(lock);
 *
 * Errors. Every function that can fail returns a rackmem_status. rackmem_message() says of the last failure on this OS thread what
 * was wrong, where, and what to do.
 *
 * Handles. A handle is a number in a struct. Null ({0}), closed ones and those of another kind are refused. Whatever a function opens
 * is null if it fails. Every handle is to be closed, once, while no other OS thread uses it.
 *
 * Threads. All OS threads may use a rackmem_rack. A rackmem_thread, and all that was opened through it, is used by one OS thread at a
 * time: each opens its own. A second one that comes while a call takes more than a hit is refused (RACKMEM_WRONG_THREAD).
 *
 * Names. What has a name is found by every program of the rack, in whatever language. A lock over sizeof(T) bytes is the same lock as a
 * Locked<T> of a Rust program.
 */

#ifndef RACKMEM_H
#define RACKMEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// The version of this header: RACKMEM_VERSION is one number, to compare.
#define RACKMEM_VERSION_MAJOR 0
#define RACKMEM_VERSION_MINOR 1
#define RACKMEM_VERSION_PATCH 0
#define RACKMEM_VERSION \
  (RACKMEM_VERSION_MAJOR * 1000000 + RACKMEM_VERSION_MINOR * 1000 + RACKMEM_VERSION_PATCH)

// What a call has come to. `rackmem_message` says more about whatever is not `RACKMEM_OK`, and what to do.
typedef enum rackmem_status {
  // Done.
  RACKMEM_OK = 0,
  // Not now: somebody else has it, or the time or the attempts are over.
  RACKMEM_BUSY = 1,
  // The lock was taken, and its data are poisoned: somebody ended while writing. It has to be unlocked like any other.
  RACKMEM_POISONED = 2,
  // An argument is null, or makes no sense.
  RACKMEM_INVALID_ARGUMENT = 3,
  // The node has no memory left.
  RACKMEM_OUT_OF_MEMORY = 4,
  // Nothing of this kind is at the address: never allocated, freed, of another kind or another length.
  RACKMEM_UNALLOCATED = 5,
  // The data died with the node that had them. What had a name is made anew by `RACKMEM_CREATE_ANEW`.
  RACKMEM_LOST = 6,
  // The node whose memory it is in is down.
  RACKMEM_NODE_DOWN = 7,
  // The other nodes take this one for dead. Close everything and join again.
  RACKMEM_FENCED = 8,
  // The lock is not held, or not so.
  RACKMEM_NOT_HELD = 9,
  // This thread holds the lock already, and would wait for itself.
  RACKMEM_DEADLOCK = 10,
  // The rack could not be opened, joined or attached to.
  RACKMEM_CANNOT_OPEN = 11,
  // A mistake in rackmem. What was in flight may have happened or not.
  RACKMEM_INTERNAL = 12,
  // The handle is null, closed, of another kind, or none at all.
  RACKMEM_BAD_HANDLE = 13,
  // Another OS thread is using this `rackmem_thread`.
  RACKMEM_WRONG_THREAD = 14,
  // The object has another version by now.
  RACKMEM_CHANGED = 15,
  // The key has no value, or nothing has this name.
  RACKMEM_NOT_FOUND = 16,
  // The value does not fit the buffer.
  RACKMEM_TOO_LONG = 17,
  // The object's last writer died in it. Write the whole object.
  RACKMEM_HALF_WRITTEN = 18,
  // The connection failed in the middle: nobody knows whether the operation was executed.
  RACKMEM_INDETERMINATE = 19,
  // The daemon has gone that this process was attached to. Close everything and attach again.
  RACKMEM_DETACHED = 20,
  // There are as many as there can be: handles, block locks, clients of chains, threads at a daemon, names,
  // regions of a lock.
  RACKMEM_TOO_MANY = 21,
  // Something has this name, and something new was to be made.
  RACKMEM_EXISTS = 22,
  // What has this name is of another kind, length or type: `rackmem_message` shows both.
  RACKMEM_DIFFERS = 23,
  // The lock guards part of that memory already.
  RACKMEM_OVERLAPS = 24,
} rackmem_status;

// What can have a name.
typedef enum rackmem_kind {
  // A lock and its data.
  RACKMEM_KIND_RWLOCK = 1,
  // A value.
  RACKMEM_KIND_VALUE = 2,
  // Words.
  RACKMEM_KIND_WORDS = 3,
  // Objects.
  RACKMEM_KIND_OBJECTS = 4,
  // A store of chains.
  RACKMEM_KIND_CHAINS = 5,
} rackmem_kind;

// What is done to a word.
typedef enum rackmem_operation {
  // Adds, and wraps around.
  RACKMEM_ADD = 1,
  // Bitwise.
  RACKMEM_AND = 2,
  // Bitwise.
  RACKMEM_OR = 3,
  // Bitwise.
  RACKMEM_XOR = 4,
  // The smaller one, as signed numbers.
  RACKMEM_MIN = 5,
  // The larger one, as signed numbers.
  RACKMEM_MAX = 6,
  // Stores.
  RACKMEM_SWAP = 7,
  // Stores, if the word is what was expected.
  RACKMEM_COMPARE_EXCHANGE = 8,
  // Changes nothing.
  RACKMEM_LOAD = 9,
} rackmem_operation;

// What is to be done with a name.
typedef enum rackmem_name_mode {
  // Opens what is there: if nothing is, `RACKMEM_NOT_FOUND`.
  RACKMEM_OPEN = 1,
  // Makes something new: if something is there, `RACKMEM_EXISTS`.
  RACKMEM_CREATE = 2,
  // Opens what is there, or makes it, in one step: of all who do so at once one makes it, and all others open that.
  RACKMEM_OPEN_OR_CREATE = 3,
  // The same, also if what was there is lost: that is made anew. Handles of what was lost stay lost.
  RACKMEM_CREATE_ANEW = 4,
} rackmem_name_mode;

// A rack in this process, this process's node of a rack of processes, or the use of a daemon's node. All OS threads may use it
// at the same time.
typedef struct rackmem_rack {
  // 0: null.
  uint64_t id;
} rackmem_rack;

// What a rack is.
typedef struct rackmem_info {
  // How many nodes it began with; those that were added since have higher numbers.
  uint16_t nodes;
  // The node that this process is, or whose daemon it uses; 0 in a rack inside this process.
  uint16_t own_node;
  // All of its nodes are in this process.
  bool is_embedded;
  // The others take this process's node for dead, or the daemon has gone: every call fails from now on.
  bool is_fenced;
  // How often the rack has changed, as far as this process knows: deaths, returns and restarts of the switch. Of an attached
  // process, when it was attached.
  uint32_t epoch;
  // The nodes that are up, as far as this process knows: bit n is node n. An attached one knows of its daemon's only.
  uint64_t up;
  // Bytes of a block: what lies inside one is read and written as a whole.
  uint64_t block_size;
  // Bytes of memory of each node.
  uint64_t memory;
} rackmem_info;

// What the nodes of a rack in this process have counted, together.
typedef struct rackmem_counters {
  // Accesses that needed no message, as far as threads have said: they do when they miss and when they are closed.
  uint64_t hits;
  // Accesses that needed messages.
  uint64_t misses;
  // Copies that were given up because another node wrote.
  uint64_t invalidations;
  // Packets that were sent again.
  uint64_t retransmissions;
  // Blocks of this memory whose only current copy died with another node.
  uint64_t lost_blocks;
  // Deaths, returns and restarts that were heard of.
  uint64_t epochs;
  // Allocations that were made here and are not freed.
  uint64_t allocations;
  // Bytes of memory here in blocks that hold allocations.
  uint64_t memory_used;
  // Messages to other processes; 0 in a rack inside this process.
  uint64_t messages_sent;
  // Messages from them.
  uint64_t messages_received;
} rackmem_counters;

// One thread's access to a rack. One OS thread at a time may use it, and whatever was opened through it.
typedef struct rackmem_thread {
  // 0: null.
  uint64_t id;
} rackmem_thread;

// A block's lock that is held. It belongs to the `rackmem_thread` that has taken it.
typedef struct rackmem_block_lock {
  // 0: null.
  uint64_t id;
} rackmem_block_lock;

// A range of coherent memory that is mapped into this process. All OS threads may use it.
typedef struct rackmem_mapping {
  // 0: null.
  uint64_t id;
} rackmem_mapping;

// Blocks of a mapping that stay where they are.
typedef struct rackmem_pinned {
  // 0: null.
  uint64_t id;
} rackmem_pinned;

// A reader-writer lock and the bytes that it guards, which come with it. It belongs to the `rackmem_thread` that it was opened
// through; other threads open the same lock by its address.
typedef struct rackmem_rwlock {
  // 0: null.
  uint64_t id;
} rackmem_rwlock;

// Words in the memory of one node, 64 bits each or two of 32. They belong to the `rackmem_thread` that they were opened through; other
// threads open the same words by their address.
typedef struct rackmem_words {
  // 0: null.
  uint64_t id;
} rackmem_words;

// An operation in flight. It belongs to the `rackmem_thread` of its words.
typedef struct rackmem_pending {
  // 0: null.
  uint64_t id;
} rackmem_pending;

// Objects of one length in the memory of one node. They belong to the `rackmem_thread` that they were opened through; other threads
// open the same objects by their address.
typedef struct rackmem_objects {
  // 0: null.
  uint64_t id;
} rackmem_objects;

// How a store of chains is created. Zeroes are the defaults.
typedef struct rackmem_chains_config {
  // The nodes whose memories it has.
  const uint16_t *homes;
  // How many those are: at least one.
  size_t homes_len;
  // Bytes at each of them for what is stored: a multiple of 64.
  uint64_t bytes;
  // In how many of these memories each entry is: 1 to 3; 0 is 1.
  uint32_t copies;
  // The node that has the metadata server. Where there is one copy, the store is lost with it; otherwise others have backups.
  uint16_t server;
  // Nanoseconds for which a client may use what it knows of a chain; 0 is 400 ms.
  uint64_t lease;
  // Nanoseconds for which a slot rests before it is used anew; 0 is the shortest that this rack allows.
  uint64_t quarantine;
} rackmem_chains_config;

// One client of a store of chains. It belongs to the `rackmem_thread` that it was opened through; other threads open the same store by
// its address.
typedef struct rackmem_chains {
  // 0: null.
  uint64_t id;
} rackmem_chains;

// A value with a name. It belongs to the `rackmem_thread` that it was opened through; other threads open it by its name.
typedef struct rackmem_value {
  // 0: null.
  uint64_t id;
} rackmem_value;

// What elements are: whoever opens a name has to say the same as its maker did. In Rust: `named(name).tag(tag, version)`.
typedef struct rackmem_type {
  // At most 64 bytes of UTF-8; null is none.
  const char *tag;
  // The version of their layout.
  uint32_t version;
} rackmem_type;

// A name, and what it names.
typedef struct rackmem_named {
  // The name: it ends with a zero.
  char name[256];
  // What the elements are: it ends with a zero.
  char tag[65];
  // The version of their layout.
  uint32_t version;
  // What it is.
  enum rackmem_kind kind;
  // Bytes of each element; of chains, for what is stored.
  uint64_t len;
  // How many elements: of words and objects.
  uint64_t count;
  // Where it is.
  uint64_t address;
  // Which of all that were ever made under this name: later ones have larger numbers.
  uint64_t making;
  // How often it has been opened.
  uint64_t opened;
  // The node on which it was made.
  uint16_t maker;
  // The node that keeps the name, and what it names: with it both are lost. With copies, the memory that outlives nodes: a number that no
  // node has; of chains, the first node of the store.
  uint16_t home;
  // How many nodes have it, as long as all are up; 1: it dies with its node.
  uint16_t copies;
} rackmem_named;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// What the last call of this OS thread that failed had to say. Valid until the thread's next call of rackmem; empty if none has
// failed. Any thread, at any time.
const char *rackmem_message(void);

// What a status means, in a few words that stay where they are; also of numbers that are none. Any thread, at any time.
const char *rackmem_status_text(int32_t status);

// The version of the library that runs: `RACKMEM_VERSION` of the header that it was built with. Programs that were built with a
// header of the same major version (while that is 0: the same minor version) work with it. Any thread, at any time.
uint32_t rackmem_version(void);

// Opens a rack of `nodes` nodes (1 to 64) inside this process, with `memory` bytes on each. Any OS thread.
//
// What has to be kept to:
// `rack` may be written.
enum rackmem_status rackmem_open_embedded(uint16_t nodes,
                                          uint64_t memory,
                                          struct rackmem_rack *rack);

// Joins the rack of processes that the file `rack_toml` describes, as its node `node`. Returns when the rack has begun with
// this node in it; see `rackmem up` and docs/running.md for the switch and the other nodes. Any OS thread.
//
// What has to be kept to:
// `rack_toml` ends with a zero; `rack` may be written.
enum rackmem_status rackmem_join(const char *rack_toml,
                                 uint16_t node,
                                 struct rackmem_rack *rack);

// Attaches to the daemon (`rackmem node`) on this machine that is node `node` of the rack that the file describes. The process has
// no node of its own; what it does takes a round trip to the daemon. Any OS thread.
//
// What has to be kept to:
// `rack_toml` ends with a zero; `rack` may be written.
enum rackmem_status rackmem_attach(const char *rack_toml,
                                   uint16_t node,
                                   struct rackmem_rack *rack);

// Starts a rack of `nodes` nodes (2 to 64) on this machine, over shared memory, and joins it as the last one; the others and the
// switch are processes. `command` is the `rackmem` that starts them; null is what the environment variable `RACKMEM_COMMAND` names, or
// else the one on the `PATH`. What they log goes to standard error. They end when the rack is closed and when this process dies, with
// all that is in their memories. Any OS thread.
//
// What has to be kept to:
// `command` is null, or ends with a zero; `rack` may be written.
enum rackmem_status rackmem_up(uint16_t nodes,
                               const char *command,
                               struct rackmem_rack *rack);

// Closes a rack. Threads that are still open keep what they need of it, but the processes of `rackmem_up` end. Closing null does
// nothing. Any OS thread, while no other one uses this handle.
enum rackmem_status rackmem_close(struct rackmem_rack rack);

// This process's node leaves a rack of processes in order: what only it has cached goes home, then the others go on without it, and
// without its memory. Every call fails from then on. `RACKMEM_BUSY`: that has not all arrived within so many nanoseconds. Nothing to
// do in an embedded rack and in an attached process. Any OS thread.
enum rackmem_status rackmem_leave(struct rackmem_rack rack,
                                  uint64_t nanoseconds);

// What a rack is. Any OS thread.
//
// What has to be kept to:
// `info` may be written.
enum rackmem_status rackmem_rack_info(struct rackmem_rack rack, struct rackmem_info *info);

// What the nodes in this process have counted; all zeroes of an attached process, which has none. Any OS thread.
//
// What has to be kept to:
// `counters` may be written.
enum rackmem_status rackmem_rack_counters(struct rackmem_rack rack,
                                          struct rackmem_counters *counters);

// How the rack is: the JSON document that `rackmem status --json` prints (without line breaks; times in nanoseconds, sizes in bytes), at
// `into`, with a zero behind it. `*len` is its length without that; if it does not fit `capacity` bytes, `RACKMEM_TOO_LONG`: so ask with
// 0 first, and give some more, as counts grow. It has the switch, who is up, what each node has counted as of its last beat, and
// all locks that have names. The switch's process is asked: if it does not answer within two seconds, `RACKMEM_BUSY`. The nodes are
// asked about locks: one that does not answer is waited for until it is declared dead; if none can be asked, `locks_unknown` says why.
// An embedded rack has no processes: its name is `embedded`, its transport `none`. Any OS thread.
//
// What has to be kept to:
// `into` is null, or `capacity` bytes may be written there; `len` may be written.
enum rackmem_status rackmem_status_json(struct rackmem_rack rack,
                                        char *into,
                                        size_t capacity,
                                        size_t *len);

// Opens a thread on a node: in a rack inside this process any of them, else the one that the process is or is attached to. Any OS
// thread; each opens its own.
//
// What has to be kept to:
// `thread` may be written.
enum rackmem_status rackmem_thread_open(struct rackmem_rack rack,
                                        uint16_t node,
                                        struct rackmem_thread *thread);

// Closes a thread, and all that was opened through it. What it holds is released; what it holds for writing is poisoned, as nobody
// knows whether it was done. Pointers to the data of its locks are void. Closing null does nothing. The OS thread that uses it.
enum rackmem_status rackmem_thread_close(struct rackmem_thread thread);

// Allocates `len` bytes of zeroes of coherent memory at node `home`. Up to a block, they lie inside one; they are aligned to at least
// 16 bytes. `*address` is good on all nodes; it is 0 on failure. The OS thread that uses `thread`.
//
// What has to be kept to:
// `address` may be written.
enum rackmem_status rackmem_alloc(struct rackmem_thread thread,
                                  uint64_t len,
                                  uint16_t home,
                                  uint64_t *address);

// The same, of memory that outlives nodes: in a rack with copies, so many nodes keep it, `near` first. When a node dies, a prefix of
// what it wrote there survives: all that it has synced (`rackmem_sync`), all that others have seen, and nothing without what it wrote
// before. `docs/copies.md` says it in full. `RACKMEM_INVALID_ARGUMENT`, too, if the rack has no copies. The OS thread that uses `thread`.
//
// What has to be kept to:
// `address` may be written.
enum rackmem_status rackmem_alloc_with_copies(struct rackmem_thread thread,
                                              uint64_t len,
                                              uint16_t near,
                                              uint64_t *address);

// Waits until all that this node has written to memory with copies survives the node: what any of its threads wrote before the call.
// The OS thread that uses `thread`.
enum rackmem_status rackmem_sync(struct rackmem_thread thread);

// From now on, what this thread allocates of coherent memory has copies, if `keep` is true, or none: that of `rackmem_alloc`, and
// values and regions that it gives names to. So have locks that it makes, with a name or without. `RACKMEM_INVALID_ARGUMENT` if the rack has no copies. The OS thread that uses `thread`.
enum rackmem_status rackmem_keep_copies(struct rackmem_thread thread,
                                        bool keep);

// Gives an allocation of `rackmem_alloc` or `rackmem_alloc_with_copies` back, from whichever node. Words, objects, locks and chains have a function of their own for
// that. The OS thread that uses `thread`.
enum rackmem_status rackmem_free(struct rackmem_thread thread,
                                 uint64_t address);

// Reads bytes of coherent memory, from any address of an allocation. What lies inside one block is read as a whole, longer ranges
// block by block. The OS thread that uses `thread`.
//
// What has to be kept to:
// `len` bytes may be written at `into`.
enum rackmem_status rackmem_read(struct rackmem_thread thread,
                                 uint64_t address,
                                 void *into,
                                 size_t len);

// Writes bytes of coherent memory. What lies inside one block is written as a whole, longer ranges block by block. The OS thread
// that uses `thread`.
//
// What has to be kept to:
// There are `len` bytes at `from`.
enum rackmem_status rackmem_write(struct rackmem_thread thread,
                                  uint64_t address,
                                  const void *from,
                                  size_t len);

// Reads a word of coherent memory: 8 bytes at a multiple of 8. The OS thread that uses `thread`.
//
// What has to be kept to:
// `value` may be written.
enum rackmem_status rackmem_read_word(struct rackmem_thread thread,
                                      uint64_t address,
                                      uint64_t *value);

// Writes a word of coherent memory. The OS thread that uses `thread`.
enum rackmem_status rackmem_write_word(struct rackmem_thread thread,
                                       uint64_t address,
                                       uint64_t value);

// Waits for the lock of the block that the address is in, with other readers. It excludes others who take the lock, not accesses: who
// locks is a convention of the application. A thread that takes a lock twice waits for itself. The OS thread that uses `thread`.
//
// What has to be kept to:
// `lock` may be written.
enum rackmem_status rackmem_block_read(struct rackmem_thread thread,
                                       uint64_t address,
                                       struct rackmem_block_lock *lock);

// Waits for the lock of a block, alone. Otherwise as `rackmem_block_read`.
//
// What has to be kept to:
// `lock` may be written.
enum rackmem_status rackmem_block_write(struct rackmem_thread thread,
                                        uint64_t address,
                                        struct rackmem_block_lock *lock);

// Takes the lock of a block to read, unless somebody holds it to write: then `RACKMEM_BUSY`. Otherwise as `rackmem_block_read`.
//
// What has to be kept to:
// `lock` may be written.
enum rackmem_status rackmem_block_tryread(struct rackmem_thread thread,
                                          uint64_t address,
                                          struct rackmem_block_lock *lock);

// Takes the lock of a block to write, unless somebody holds it: then `RACKMEM_BUSY`. Otherwise as `rackmem_block_read`.
//
// What has to be kept to:
// `lock` may be written.
enum rackmem_status rackmem_block_trywrite(struct rackmem_thread thread,
                                           uint64_t address,
                                           struct rackmem_block_lock *lock);

// Of the lock of a block with copies that is held: whether the writer before has died, or was taken for dead, with its node, before it
// released the lock. `*died` says so until somebody has released it to write, and `*node` which node it was, the last one if there are
// several. A part of what it had written may be there. The OS thread that uses its thread.
//
// What has to be kept to:
// `died` and `node` may be written.
enum rackmem_status rackmem_block_writer_that_died(struct rackmem_block_lock lock,
                                                   bool *died,
                                                   uint16_t *node);

// Releases the lock of a block, and closes its handle. Of null, nothing. The OS thread that uses its thread.
enum rackmem_status rackmem_block_unlock(struct rackmem_block_lock lock);

// Maps `len` bytes of coherent memory (`rackmem_alloc`) from `address` on, a multiple of 8, into this process, which has joined
// the rack. `rackmem_mapping_data` says where: at the same address in every process of the rack. What a program may rely on is in
// docs/mapped.md. Any OS thread.
//
// What has to be kept to:
// `mapping` may be written.
enum rackmem_status rackmem_map(struct rackmem_rack rack,
                                uint64_t address,
                                size_t len,
                                struct rackmem_mapping *mapping);

// Ends a mapping: an access through a pointer into it ends the process from now on. What is pinned of it stays mapped until it is
// unpinned. Of null, nothing. Any OS thread.
enum rackmem_status rackmem_unmap(struct rackmem_mapping mapping);

// Where the bytes of a mapping begin, in every process that maps them; null if the handle is not open. Any OS thread.
void *rackmem_mapping_data(struct rackmem_mapping mapping);

// Gets the blocks of `len` bytes of a mapping from byte `offset` on, to be read, or also written: then accesses that follow at once
// wait for nothing, unless another node has taken a block back meanwhile. Says what would end the process if a pointer were
// followed. Any OS thread.
enum rackmem_status rackmem_touch(struct rackmem_mapping mapping,
                                  size_t offset,
                                  size_t len,
                                  bool write);

// Gets the same together, many at a time, as a hint that they will be used; what cannot be had is left out. Any OS thread.
enum rackmem_status rackmem_prefetch(struct rackmem_mapping mapping,
                                     size_t offset,
                                     size_t len,
                                     bool write);

// Gets the same, and keeps them until `rackmem_unpin`: no other node gets them meanwhile to write, nor any call of this process. For
// system calls that must not be cut short, and for what must be seen as a whole. At most a quarter of what a node caches can be
// pinned. Who pins several ranges can wait for somebody who waits for him. Any OS thread.
//
// What has to be kept to:
// `pin` may be written.
enum rackmem_status rackmem_pin(struct rackmem_mapping mapping,
                                size_t offset,
                                size_t len,
                                bool write,
                                struct rackmem_pinned *pin);

// Lets others have what was pinned. Of null, nothing. Any OS thread.
enum rackmem_status rackmem_unpin(struct rackmem_pinned pin);

// The address of the rack that a pointer into mapped memory stands for, in any process; 0 if it is none. Any OS thread.
uint64_t rackmem_address_of(struct rackmem_rack rack,
                            const void *pointer);

// Where an address of the rack is in every process that maps it; null if this process cannot map memory, or the address is
// further into its node's memory than can be mapped. Any OS thread.
void *rackmem_pointer_to(struct rackmem_rack rack,
                         uint64_t address);

// Creates a lock over `len` bytes of zeroes (0 is possible) in the memory of node `home`. The OS thread that uses `thread`.
//
// What has to be kept to:
// `lock` may be written.
enum rackmem_status rackmem_rwlock_create(struct rackmem_thread thread,
                                          uint16_t home,
                                          size_t len,
                                          struct rackmem_rwlock *lock);

// Opens the lock at this address, which `rackmem_rwlock_address` has named, in this or another process. The length has to be
// the one that it was created with; whether there is such a lock is found out when it is taken. The OS thread that uses `thread`.
//
// What has to be kept to:
// `lock` may be written.
enum rackmem_status rackmem_rwlock_open(struct rackmem_thread thread,
                                        uint64_t address,
                                        size_t len,
                                        struct rackmem_rwlock *lock);

// Forgets a lock here. The lock itself stays, for others. If it is held it is released; if it is held for writing, its data are
// poisoned. Closing null does nothing. The OS thread that uses its thread.
enum rackmem_status rackmem_rwlock_close(struct rackmem_rwlock lock);

// Waits for the lock, gives it and its memory back, and closes the handle. Whoever waits for it, or asks later, gets
// `RACKMEM_UNALLOCATED`. A lost one can be freed, too. If it fails, the handle stays open. The OS thread that uses its thread.
enum rackmem_status rackmem_rwlock_free(struct rackmem_rwlock lock);

// The address of a lock, for other threads and processes; 0 if there is no such handle. The OS thread that uses its thread.
uint64_t rackmem_rwlock_address(struct rackmem_rwlock lock);

// How many bytes a lock guards; of one over regions, its room. 0 if there is no such handle. The OS thread that uses its thread.
size_t rackmem_rwlock_len(struct rackmem_rwlock lock);

// Waits for the lock, to read its data together with others. `*data` is where they are, aligned to 8 bytes, until it is unlocked. With
// `RACKMEM_OK` and with `RACKMEM_POISONED` the lock is held. The OS thread that uses its thread.
//
// What has to be kept to:
// `data` may be written. What it points to is not written, and not used after the unlock.
enum rackmem_status rackmem_rwlock_read(struct rackmem_rwlock lock,
                                        const void **data);

// Waits for the lock, to write its data alone. Otherwise as `rackmem_rwlock_read`.
//
// What has to be kept to:
// `data` may be written. What it points to is not used after the unlock.
enum rackmem_status rackmem_rwlock_write(struct rackmem_rwlock lock, void **data);

// Takes the lock to read, unless somebody writes or waits to: then `RACKMEM_BUSY`. (A message may have to travel.) The OS thread that
// uses its thread.
//
// What has to be kept to:
// As `rackmem_rwlock_read`.
enum rackmem_status rackmem_rwlock_tryread(struct rackmem_rwlock lock,
                                           const void **data);

// Takes the lock to write, unless somebody has it or waits for it: then `RACKMEM_BUSY`. (A message may have to travel.) The OS thread
// that uses its thread.
//
// What has to be kept to:
// As `rackmem_rwlock_write`.
enum rackmem_status rackmem_rwlock_trywrite(struct rackmem_rwlock lock,
                                            void **data);

// Waits for the lock at most so many nanoseconds, to read; then `RACKMEM_BUSY`. The OS thread that uses its thread.
//
// What has to be kept to:
// As `rackmem_rwlock_read`.
enum rackmem_status rackmem_rwlock_timedread(struct rackmem_rwlock lock,
                                             uint64_t nanoseconds,
                                             const void **data);

// Waits for the lock at most so many nanoseconds, to write; then `RACKMEM_BUSY`. The OS thread that uses its thread.
//
// What has to be kept to:
// As `rackmem_rwlock_write`.
enum rackmem_status rackmem_rwlock_timedwrite(struct rackmem_rwlock lock,
                                              uint64_t nanoseconds,
                                              void **data);

// Releases the lock. The pointer to its data is void. The OS thread that uses its thread.
enum rackmem_status rackmem_rwlock_unlock(struct rackmem_rwlock lock);

// Says of a lock that is held for writing whether its data are poisoned: everybody who takes it from then on is
// told. Poison does not go by itself. The OS thread that uses its thread.
enum rackmem_status rackmem_rwlock_set_poisoned(struct rackmem_rwlock lock,
                                                bool poisoned);

// The fencing number of a lock that is held for writing: it grows with every write grant, by whomever. A store outside the rack that
// refuses what comes with a smaller number than it has seen is not changed by a holder that was taken for dead. The OS thread that
// uses its thread.
//
// What has to be kept to:
// `fence` may be written.
enum rackmem_status rackmem_rwlock_fence(struct rackmem_rwlock lock,
                                         uint64_t *fence);

// Of a lock with copies that is held: whether the writer before has died, or was taken for dead, with its node, inside. `*died` says so
// until somebody has written, and `*node` which node it was. What it had begun is not there: the data are those of the last unlock. The
// OS thread that uses its thread.
//
// What has to be kept to:
// `died` and `node` may be written.
enum rackmem_status rackmem_rwlock_writer_that_died(struct rackmem_rwlock lock,
                                                    bool *died,
                                                    uint16_t *node);

// Creates a lock over up to 64 regions of bytes, at first none, in the memory of node `home`. There is room for `room` bytes: of all
// regions, in whole words, and 16 more for each. Room that is not used takes memory, and does not travel. It is taken, released, closed
// and freed as other locks; what these write to `data` is of no use: `rackmem_rwlock_region` says where the regions are. The OS thread
// that uses `thread`.
//
// What has to be kept to:
// `lock` may be written.
enum rackmem_status rackmem_rwlock_create_regions(struct rackmem_thread thread,
                                                  uint16_t home,
                                                  size_t room,
                                                  struct rackmem_rwlock *lock);

// Opens the lock over regions at this address, which `rackmem_rwlock_address` has named, in this or another process; with the room that
// it was created with. The OS thread that uses `thread`.
//
// What has to be kept to:
// `lock` may be written.
enum rackmem_status rackmem_rwlock_open_regions(struct rackmem_thread thread,
                                                uint64_t address,
                                                size_t room,
                                                struct rackmem_rwlock *lock);

// How many regions a lock guards that is held, to read or to write. The OS thread that uses its thread.
//
// What has to be kept to:
// `count` may be written.
enum rackmem_status rackmem_rwlock_regions(struct rackmem_rwlock lock,
                                           size_t *count);

// Where the bytes of a region are, by its number, from 0, and how many, while the lock is held: aligned to 8 bytes. All pointers are void
// when the lock is released, or the list changes. The OS thread that uses its thread.
//
// What has to be kept to:
// `data` and `len` may be written. What `data` points to is written only if the lock is held for writing.
enum rackmem_status rackmem_rwlock_region(struct rackmem_rwlock lock,
                                          size_t number,
                                          void **data,
                                          size_t *len);

// One more region, of `len` bytes of zeroes, of a lock that is held for writing. `*number` is its number: the last. Pointers to regions
// are void. `RACKMEM_TOO_MANY`: there are 64. `RACKMEM_TOO_LONG`: it does not fit the room. Then nothing has changed. The OS thread that
// uses its thread.
//
// What has to be kept to:
// `number` may be written.
enum rackmem_status rackmem_rwlock_region_add(struct rackmem_rwlock lock,
                                              size_t len,
                                              size_t *number);

// Makes a region longer, with zeroes, or shorter, of a lock that is held for writing. Not one that `rackmem_rwlock_guard` has taken in.
// Pointers to regions are void. The OS thread that uses its thread.
enum rackmem_status rackmem_rwlock_region_resize(struct rackmem_rwlock lock,
                                                 size_t number,
                                                 size_t len);

// Takes a region away, of a lock that is held for writing: the numbers of those behind it become smaller by one. What it has of memory
// that `rackmem_rwlock_guard` has taken in is forgotten. Pointers to regions are void. The OS thread that uses its thread.
enum rackmem_status rackmem_rwlock_region_remove(struct rackmem_rwlock lock,
                                                 size_t number);

// Takes `len` bytes of memory of `rackmem_alloc_guarded` in, as one more region of a lock over regions that is held for writing: they
// travel with it until `rackmem_rwlock_unguard`, and what is in that memory means nothing meanwhile. The region is the last. Pointers to
// regions are void. Waits while another lock has that memory. `RACKMEM_OVERLAPS`: this lock has part of it. `RACKMEM_TOO_MANY`,
// `RACKMEM_TOO_LONG`: as `rackmem_rwlock_region_add`. `RACKMEM_UNALLOCATED`: that is no such memory, or not any more. If it fails,
// nothing has changed. The OS thread that uses its thread.
enum rackmem_status rackmem_rwlock_guard(struct rackmem_rwlock lock,
                                         uint64_t address,
                                         size_t len);

// Gives the bytes of a region back, as they are now, to the memory at this address that `rackmem_rwlock_guard` has taken them from, and
// takes the region away. The lock is held for writing. Pointers to regions are void. `RACKMEM_NOT_FOUND`: it has taken in nothing
// there. `RACKMEM_UNALLOCATED`: that memory was freed meanwhile; the region stays. The OS thread that uses its thread.
enum rackmem_status rackmem_rwlock_unguard(struct rackmem_rwlock lock,
                                           uint64_t address);

// Maps what a lock over regions has taken in (`rackmem_rwlock_guard`). While the lock is held through this handle,
// `rackmem_rwlock_region` says a pointer that is the same in every process of the rack: `rackmem_pointer_to` of the memory's address. An
// access while the lock is not held, or a store while it is held to read, ends the process with a line that names the lock. That memory
// is whole pages, as a multiple of the rack's block size is; whatever takes the lock says `RACKMEM_INVALID_ARGUMENT` if it is not. The
// mapping ends when the handle is closed. Only processes that have joined map. The OS thread that uses its thread.
enum rackmem_status rackmem_rwlock_map(struct rackmem_rwlock lock);

// Allocates `len` bytes of memory at node `home` that locks over regions take in (`rackmem_rwlock_guard`). What is in it is not
// defined. It is taken in as a whole: all say this length. The OS thread that uses `thread`.
//
// What has to be kept to:
// `address` may be written.
enum rackmem_status rackmem_alloc_guarded(struct rackmem_thread thread,
                                          uint64_t len,
                                          uint16_t home,
                                          uint64_t *address);

// Gives memory of `rackmem_alloc_guarded` back, of this length, from whichever node; a lock that has taken it in keeps the bytes. The OS
// thread that uses `thread`.
enum rackmem_status rackmem_free_guarded(struct rackmem_thread thread,
                                         uint64_t address,
                                         size_t len);

// Allocates `count` words of 64 bits, zeroes, in the memory of node `home`. The OS thread that uses `thread`.
//
// What has to be kept to:
// `words` may be written.
enum rackmem_status rackmem_words_create(struct rackmem_thread thread,
                                         uint16_t home,
                                         size_t count,
                                         struct rackmem_words *words);

// Opens the words at this address, which `rackmem_words_address` has named, in this or another process. The OS thread that uses
// `thread`.
//
// What has to be kept to:
// `words` may be written.
enum rackmem_status rackmem_words_open(struct rackmem_thread thread,
                                       uint64_t address,
                                       struct rackmem_words *words);

// Forgets words here; they stay, for others. Closing null does nothing. The OS thread that uses their thread.
enum rackmem_status rackmem_words_close(struct rackmem_words words);

// Gives words back, and closes the handle. Operations on them are refused from then on, through whichever handle. If it fails, the
// handle stays open. The OS thread that uses their thread.
enum rackmem_status rackmem_words_free(struct rackmem_words words);

// The address of words, for other threads and processes; 0 if there is no such handle. The OS thread that uses their thread.
uint64_t rackmem_words_address(struct rackmem_words words);

// How many words of 64 bits there are; 0 if there is no such handle. The OS thread that uses their thread.
size_t rackmem_words_len(struct rackmem_words words);

// Reads bytes of words from word `index` (of 64 bits) on, whoever is writing them: each word is whole, and read behind the one in
// front of it. At most 1 MiB. The OS thread that uses their thread.
//
// What has to be kept to:
// `len` bytes may be written at `into`.
enum rackmem_status rackmem_words_read(struct rackmem_words words,
                                       size_t index,
                                       void *into,
                                       size_t len);

// Writes bytes of words from word `index` (of 64 bits) on: each word behind the one in front of it. At most 1 MiB. The OS thread that
// uses their thread.
//
// What has to be kept to:
// There are `len` bytes at `from`.
enum rackmem_status rackmem_words_write(struct rackmem_words words,
                                        size_t index,
                                        const void *from,
                                        size_t len);

// Adds. `*old` is what the word of 32 bits was. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_fetch_add32(struct rackmem_words words,
                                              size_t index,
                                              uint32_t operand,
                                              uint32_t *old);

// Adds; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_add32(struct rackmem_words words, size_t index, uint32_t operand);

// Keeps the bits that both have. `*old` is what the word of 32 bits was. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_fetch_and32(struct rackmem_words words,
                                              size_t index,
                                              uint32_t operand,
                                              uint32_t *old);

// Keeps the bits that both have; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_and32(struct rackmem_words words,
                                        size_t index,
                                        uint32_t operand);

// Sets bits. `*old` is what the word of 32 bits was. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_fetch_or32(struct rackmem_words words,
                                             size_t index,
                                             uint32_t operand,
                                             uint32_t *old);

// Sets bits; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_or32(struct rackmem_words words, size_t index, uint32_t operand);

// Inverts bits. `*old` is what the word of 32 bits was. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_fetch_xor32(struct rackmem_words words,
                                              size_t index,
                                              uint32_t operand,
                                              uint32_t *old);

// Inverts bits; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_xor32(struct rackmem_words words, size_t index, uint32_t operand);

// Keeps the smaller one, as signed numbers. `*old` is what the word of 32 bits was. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_fetch_min32(struct rackmem_words words,
                                              size_t index,
                                              uint32_t operand,
                                              uint32_t *old);

// Keeps the smaller one, as signed numbers; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_min32(struct rackmem_words words,
                                        size_t index,
                                        uint32_t operand);

// Keeps the larger one, as signed numbers. `*old` is what the word of 32 bits was. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_fetch_max32(struct rackmem_words words,
                                              size_t index,
                                              uint32_t operand,
                                              uint32_t *old);

// Keeps the larger one, as signed numbers; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_max32(struct rackmem_words words,
                                        size_t index,
                                        uint32_t operand);

// Stores. `*old` is what the word of 32 bits was. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_swap32(struct rackmem_words words,
                                         size_t index,
                                         uint32_t operand,
                                         uint32_t *old);

// Stores; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_store32(struct rackmem_words words,
                                          size_t index,
                                          uint32_t operand);

// Stores `desired` if the word is `expected`. `*old` is what it was: `expected`, if it was changed. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_compare_exchange32(struct rackmem_words words,
                                                     size_t index,
                                                     uint32_t expected,
                                                     uint32_t desired,
                                                     uint32_t *old);

// Stores `desired` if the word is `expected`; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_compare_store32(struct rackmem_words words,
                                                  size_t index,
                                                  uint32_t expected,
                                                  uint32_t desired);

// The word. The OS thread that uses its thread.
//
// What has to be kept to:
// `value` may be written.
enum rackmem_status rackmem_words_load32(struct rackmem_words words, size_t index, uint32_t *value);

// Begins one of `rackmem_operation` on a word of 64 bits, and waits for nothing; `expected` counts for
// `RACKMEM_COMPARE_EXCHANGE` only. Thousands may be in flight. `rackmem_pending_wait` or `rackmem_pending_poll` tells what
// the word was. The OS thread that uses its thread.
//
// What has to be kept to:
// `pending` may be written.
enum rackmem_status rackmem_words_post(struct rackmem_words words,
                                       size_t index,
                                       int32_t operation,
                                       uint64_t operand,
                                       uint64_t expected,
                                       struct rackmem_pending *pending);

// The same of a word of 32 bits. The OS thread that uses its thread.
//
// What has to be kept to:
// `pending` may be written.
enum rackmem_status rackmem_words_post32(struct rackmem_words words,
                                         size_t index,
                                         int32_t operation,
                                         uint32_t operand,
                                         uint32_t expected,
                                         struct rackmem_pending *pending);

// What the word was, if that is known already: then the handle is closed. `RACKMEM_BUSY`: not yet. With any other status the
// operation has failed, and the handle is closed, too. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_pending_poll(struct rackmem_pending pending,
                                         uint64_t *old);

// Waits for what the word was, and closes the handle, also if the operation has failed. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_pending_wait(struct rackmem_pending pending,
                                         uint64_t *old);

// Forgets an operation: it is executed all the same, and nobody learns how it ended. Closing null does nothing. The OS thread that
// uses its thread.
enum rackmem_status rackmem_pending_close(struct rackmem_pending pending);

// Waits until every operation on words that was begun through this thread has taken effect. It fails as the first one failed, since
// the last flush, of those that have no result. The OS thread that uses `thread`.
enum rackmem_status rackmem_flush(struct rackmem_thread thread);

// Adds. `*old` is what the word was. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_fetch_add(struct rackmem_words words,
                                            size_t index,
                                            uint64_t operand,
                                            uint64_t *old);

// Adds; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_add(struct rackmem_words words, size_t index, uint64_t operand);

// Keeps the bits that both have. `*old` is what the word was. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_fetch_and(struct rackmem_words words,
                                            size_t index,
                                            uint64_t operand,
                                            uint64_t *old);

// Keeps the bits that both have; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_and(struct rackmem_words words,
                                      size_t index,
                                      uint64_t operand);

// Sets bits. `*old` is what the word was. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_fetch_or(struct rackmem_words words,
                                           size_t index,
                                           uint64_t operand,
                                           uint64_t *old);

// Sets bits; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_or(struct rackmem_words words, size_t index, uint64_t operand);

// Inverts bits. `*old` is what the word was. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_fetch_xor(struct rackmem_words words,
                                            size_t index,
                                            uint64_t operand,
                                            uint64_t *old);

// Inverts bits; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_xor(struct rackmem_words words, size_t index, uint64_t operand);

// Keeps the smaller one, as signed numbers. `*old` is what the word was. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_fetch_min(struct rackmem_words words,
                                            size_t index,
                                            uint64_t operand,
                                            uint64_t *old);

// Keeps the smaller one, as signed numbers; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_min(struct rackmem_words words,
                                      size_t index,
                                      uint64_t operand);

// Keeps the larger one, as signed numbers. `*old` is what the word was. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_fetch_max(struct rackmem_words words,
                                            size_t index,
                                            uint64_t operand,
                                            uint64_t *old);

// Keeps the larger one, as signed numbers; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_max(struct rackmem_words words,
                                      size_t index,
                                      uint64_t operand);

// Stores. `*old` is what the word was. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_swap(struct rackmem_words words,
                                       size_t index,
                                       uint64_t operand,
                                       uint64_t *old);

// Stores; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_store(struct rackmem_words words, size_t index, uint64_t operand);

// Stores `desired` if the word is `expected`. `*old` is what it was: `expected`, if it was changed. The OS thread that uses its thread.
//
// What has to be kept to:
// `old` may be written.
enum rackmem_status rackmem_words_compare_exchange(struct rackmem_words words,
                                                   size_t index,
                                                   uint64_t expected,
                                                   uint64_t desired,
                                                   uint64_t *old);

// Stores `desired` if the word is `expected`; at `rackmem_flush` at the latest. The OS thread that uses its thread.
enum rackmem_status rackmem_words_compare_store(struct rackmem_words words,
                                                size_t index,
                                                uint64_t expected,
                                                uint64_t desired);

// The word. The OS thread that uses its thread.
//
// What has to be kept to:
// `value` may be written.
enum rackmem_status rackmem_words_load(struct rackmem_words words, size_t index, uint64_t *value);

// Allocates `count` objects of `len` bytes of zeroes (at most 1 MiB) in the memory of node `home`. The OS thread that uses `thread`.
//
// What has to be kept to:
// `objects` may be written.
enum rackmem_status rackmem_objects_create(struct rackmem_thread thread,
                                           uint16_t home,
                                           size_t count,
                                           size_t len,
                                           struct rackmem_objects *objects);

// Opens the objects at this address, which `rackmem_objects_address` has named, in this or another process. The OS thread that uses
// `thread`.
//
// What has to be kept to:
// `objects` may be written.
enum rackmem_status rackmem_objects_open(struct rackmem_thread thread,
                                         uint64_t address,
                                         struct rackmem_objects *objects);

// Forgets objects here; they stay, for others. Closing null does nothing. The OS thread that uses their thread.
enum rackmem_status rackmem_objects_close(struct rackmem_objects objects);

// Gives objects back, once those who write them are done, and closes the handle. Operations on them are refused from then on, through
// whichever handle. If it fails, the handle stays open. The OS thread that uses their thread.
enum rackmem_status rackmem_objects_free(struct rackmem_objects objects);

// The address of objects, for other threads and processes; 0 if there is no such handle. The OS thread that uses their thread.
uint64_t rackmem_objects_address(struct rackmem_objects objects);

// How many objects there are; 0 if there is no such handle. The OS thread that uses their thread.
size_t rackmem_objects_count(struct rackmem_objects objects);

// Bytes of each object; 0 if there is no such handle. The OS thread that uses their thread.
size_t rackmem_objects_len(struct rackmem_objects objects);

// Reads an object whole: `len` is its length. A read that a writer comes into is tried again, `attempts` times in all (0: until it
// succeeds); then `RACKMEM_BUSY`. `*version` is its version (null: not wanted). After a failure there may be anything at `into`. The
// OS thread that uses their thread.
//
// What has to be kept to:
// `len` bytes may be written at `into`; `version` is null, or may be written.
enum rackmem_status rackmem_objects_read(struct rackmem_objects objects,
                                         size_t index,
                                         void *into,
                                         size_t len,
                                         uint32_t attempts,
                                         uint64_t *version);

// The same, where no attempt begins more than so many nanoseconds from now. The OS thread that uses their thread.
//
// What has to be kept to:
// As `rackmem_objects_read`.
enum rackmem_status rackmem_objects_timedread(struct rackmem_objects objects,
                                              size_t index,
                                              void *into,
                                              size_t len,
                                              uint64_t nanoseconds,
                                              uint64_t *version);

// Writes `len` bytes of an object from byte `at` on, as a whole for all who read it. `*version` is the version that it has then (null:
// not wanted). The OS thread that uses their thread.
//
// What has to be kept to:
// There are `len` bytes at `from`; `version` is null, or may be written.
enum rackmem_status rackmem_objects_write(struct rackmem_objects objects,
                                          size_t index,
                                          size_t at,
                                          const void *from,
                                          size_t len,
                                          uint64_t *version);

// Writes all of an object (`len` is its length) if it still has the version `expected`, which a read has returned; otherwise, and if
// somebody is writing it, `RACKMEM_CHANGED`: read it again. That is how an object is changed by what is in it. The OS thread that uses
// their thread.
//
// What has to be kept to:
// As `rackmem_objects_write`.
enum rackmem_status rackmem_objects_write_if(struct rackmem_objects objects,
                                             size_t index,
                                             uint64_t expected,
                                             const void *from,
                                             size_t len,
                                             uint64_t *version);

// Creates a store of chains. The OS thread that uses `thread`.
//
// What has to be kept to:
// `config` is there, and the homes that it names; `chains` may be written.
enum rackmem_status rackmem_chains_create(struct rackmem_thread thread,
                                          const struct rackmem_chains_config *config,
                                          struct rackmem_chains *chains);

// Opens the store at this address, which `rackmem_chains_address` has named, in this or another process. The OS thread that uses
// `thread`.
//
// What has to be kept to:
// `chains` may be written.
enum rackmem_status rackmem_chains_open(struct rackmem_thread thread,
                                        uint64_t address,
                                        struct rackmem_chains *chains);

// Ends this client; the store stays, for others. Closing null does nothing. The OS thread that uses its thread.
enum rackmem_status rackmem_chains_close(struct rackmem_chains chains);

// Ends the store, frees its memory, and closes the handle. Clients that still use it are told that it is not there. If it fails, the
// handle stays open. The OS thread that uses its thread.
enum rackmem_status rackmem_chains_free(struct rackmem_chains chains);

// The address of a store, for other threads and processes; 0 if there is no such handle. The OS thread that uses its thread.
uint64_t rackmem_chains_address(struct rackmem_chains chains);

// The value of a key: `*len` is its length. `RACKMEM_NOT_FOUND`: it has none. `RACKMEM_TOO_LONG`: it does not fit the `capacity` bytes
// at `into`; `*len` says how many it needs. The OS thread that uses its thread.
//
// What has to be kept to:
// `capacity` bytes may be written at `into`; `len` may be written.
enum rackmem_status rackmem_chains_get(struct rackmem_chains chains,
                                       uint64_t key,
                                       void *into,
                                       size_t capacity,
                                       size_t *len);

// Stores a value, instead of what was there. The OS thread that uses its thread.
//
// What has to be kept to:
// There are `len` bytes at `from`.
enum rackmem_status rackmem_chains_put(struct rackmem_chains chains,
                                       uint64_t key,
                                       const void *from,
                                       size_t len);

// Removes the key's value, if it has one. The OS thread that uses its thread.
enum rackmem_status rackmem_chains_delete(struct rackmem_chains chains, uint64_t key);

// Forgets a value here; it stays, for others. Closing null does nothing. The OS thread that uses its thread.
enum rackmem_status rackmem_value_close(struct rackmem_value value);

// How many bytes a value has; 0 if there is no such handle. The OS thread that uses its thread.
size_t rackmem_value_len(struct rackmem_value value);

// Reads a value whole: `len` is its length. The OS thread that uses its thread.
//
// What has to be kept to:
// `len` bytes may be written at `into`.
enum rackmem_status rackmem_value_get(struct rackmem_value value, void *into, size_t len);

// Replaces a value: `len` is its length. The OS thread that uses its thread.
//
// What has to be kept to:
// There are `len` bytes at `from`.
enum rackmem_status rackmem_value_set(struct rackmem_value value, const void *from, size_t len);

// Replaces a value if it is what is `expected`, byte for byte; otherwise `RACKMEM_CHANGED`: get it again. That is how a value is changed
// by what it is. The OS thread that uses its thread.
//
// What has to be kept to:
// There are `len` bytes at `expected` and at `from`.
enum rackmem_status rackmem_value_set_if(struct rackmem_value value,
                                         const void *expected,
                                         const void *from,
                                         size_t len);

// A lock by its name. Something new guards `len` bytes that begin as those at `initial` (null: zeroes). `of` is what they are (null: not
// said). A `Locked<T>` of a Rust program is the same lock, if both say the same type. The OS thread that uses `thread`.
//
// What has to be kept to:
// `name` ends with a zero; `of` is null, or there; `initial` is null, or `len` bytes are there; `lock` may be written.
enum rackmem_status rackmem_rwlock_named(struct rackmem_thread thread,
                                         const char *name,
                                         int32_t mode,
                                         const struct rackmem_type *of,
                                         size_t len,
                                         const void *initial,
                                         struct rackmem_rwlock *lock);

// A lock over regions by its name. Something new has none, and room for `room` bytes; to open, 0 is whatever is there. It is the same as a
// `LockedRegions` of a Rust program. The OS thread that uses `thread`.
//
// What has to be kept to:
// `name` ends with a zero; `lock` may be written.
enum rackmem_status rackmem_rwlock_named_regions(struct rackmem_thread thread,
                                                 const char *name,
                                                 int32_t mode,
                                                 size_t room,
                                                 struct rackmem_rwlock *lock);

// A value by its name. Something new has `len` bytes that begin as those at `initial` (null: zeroes); with 8 bytes in front of it, it
// fits a block. `of` is what they are (null: not said). It is the same as a `Value<T>` of a Rust program. The OS thread that uses
// `thread`.
//
// What has to be kept to:
// As `rackmem_rwlock_named`.
enum rackmem_status rackmem_value_named(struct rackmem_thread thread,
                                        const char *name,
                                        int32_t mode,
                                        const struct rackmem_type *of,
                                        size_t len,
                                        const void *initial,
                                        struct rackmem_value *value);

// Words by their name. Something new is `count` words of 64 bits, zeroes; to open, 0 is whatever is there. `of` null is `Words<u64>` of a
// Rust program. The OS thread that uses `thread`.
//
// What has to be kept to:
// `name` ends with a zero; `of` is null, or there; `words` may be written.
enum rackmem_status rackmem_words_named(struct rackmem_thread thread,
                                        const char *name,
                                        int32_t mode,
                                        const struct rackmem_type *of,
                                        size_t count,
                                        struct rackmem_words *words);

// Objects by their name. Something new is `count` objects of `len` bytes of zeroes; to open, 0 is whatever is there. The OS thread that
// uses `thread`.
//
// What has to be kept to:
// `name` ends with a zero; `of` is null, or there; `objects` may be written.
enum rackmem_status rackmem_objects_named(struct rackmem_thread thread,
                                          const char *name,
                                          int32_t mode,
                                          const struct rackmem_type *of,
                                          size_t count,
                                          size_t len,
                                          struct rackmem_objects *objects);

// A store of chains by its name. Of `config` count `bytes`, `lease` and `quarantine`, for something new, and `homes`, `copies` and
// `server` are zeroes: its memory is that of the node that keeps the name; with copies (`rackmem_keep_copies`), of those behind it, too, and
// `bytes` are stored there in all. To open, null is whatever is there. The OS thread that uses `thread`.
//
// What has to be kept to:
// `name` ends with a zero; `of` and `config` are null, or there; `chains` may be written.
enum rackmem_status rackmem_chains_named(struct rackmem_thread thread,
                                         const char *name,
                                         int32_t mode,
                                         const struct rackmem_type *of,
                                         const struct rackmem_chains_config *config,
                                         struct rackmem_chains *chains);

// Takes a name away, and frees what it names, of whatever kind: what has a name is freed so, and not by its handle. Waits while somebody is inside of a lock. Whoever uses it is told
// `RACKMEM_UNALLOCATED`; their handles are to be closed. The OS thread that uses `thread`.
//
// What has to be kept to:
// `name` ends with a zero.
enum rackmem_status rackmem_name_remove(struct rackmem_thread thread,
                                        const char *name);

// What has a name, of whatever kind. The OS thread that uses `thread`.
//
// What has to be kept to:
// `name` ends with a zero; `named` may be written.
enum rackmem_status rackmem_name_info(struct rackmem_thread thread,
                                      const char *name,
                                      struct rackmem_named *named);

// The names that begin with `prefix` (null or empty: all), in their order: the first `capacity` of them at `into`. `*count` is how many
// there are; if that is more, `RACKMEM_TOO_LONG`. Names of nodes that are down are left out. The OS thread that uses `thread`.
//
// What has to be kept to:
// `prefix` is null, or ends with a zero; `capacity` of these structs may be written at `into`; `count` may be written.
enum rackmem_status rackmem_names(struct rackmem_thread thread,
                                  const char *prefix,
                                  struct rackmem_named *into,
                                  size_t capacity,
                                  size_t *count);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RACKMEM_H */
