/* rackmem for C: reader-writer locks that carry their data.
 *
 * Made by cbindgen from crates/capi; do not edit.
 *
 *     rackmem_rack *rack;
 *     rackmem_thread *thread;
 *     rackmem_rwlock *lock;
 *     void *data;
 *     rackmem_join("rack.toml", 1, &rack);             // or rackmem_open_embedded(4, 64 << 20, &rack)
 *     rackmem_thread_open(rack, 1, &thread);           // one for each thread
 *     rackmem_rwlock_create(thread, 1, 128, &lock);    // 128 bytes of zeroes on node 1
 *     rackmem_rwlock_write(lock, thread, &data);
 *     ...                                              // nobody else has the bytes at data
 *     rackmem_rwlock_unlock(lock, thread);
 *
 * A thread may hold any number of locks, each once. The data of a lock are poisoned when a thread is closed while it writes
 * them; a process that dies while it writes loses them (RACKMEM_LOST).
 *
 * A lock over sizeof(T) bytes is the same lock as a Locked<T> of a Rust program in the same rack.
 */

#ifndef RACKMEM_H
#define RACKMEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// What a call has come to. `rackmem_message` says more about whatever is not `RACKMEM_OK`.
typedef enum rackmem_status {
  // Done.
  RACKMEM_OK = 0,
  // The lock was not taken: somebody has it, or the time is over.
  RACKMEM_BUSY = 1,
  // The lock was taken, and its data are poisoned: somebody ended while writing. It has to be unlocked like any other.
  RACKMEM_POISONED = 2,
  // An argument is null, or makes no sense.
  RACKMEM_INVALID_ARGUMENT = 3,
  // The node has no memory left.
  RACKMEM_OUT_OF_MEMORY = 4,
  // There is no such lock: never created, freed, or of another length.
  RACKMEM_NO_SUCH_LOCK = 5,
  // The data died with the node that had them.
  RACKMEM_LOST = 6,
  // The lock's home is down.
  RACKMEM_NODE_DOWN = 7,
  // The other nodes take this one for dead. Close everything and join again.
  RACKMEM_FENCED = 8,
  // This thread does not hold the lock.
  RACKMEM_NOT_HELD = 9,
  // This thread holds the lock already, and would wait for itself.
  RACKMEM_DEADLOCK = 10,
  // The rack could not be opened or joined.
  RACKMEM_CANNOT_OPEN = 11,
  // A mistake in rackmem. What was in flight may have happened or not.
  RACKMEM_INTERNAL = 12,
} rackmem_status;

// A rack in this process, or this process's node of a rack of processes. Threads may share it.
typedef struct rackmem_rack rackmem_rack;

// A reader-writer lock and the bytes that it guards, which come with it. Threads may share it.
typedef struct rackmem_rwlock rackmem_rwlock;

// One thread's access to a rack. Only one thread may use it at a time.
typedef struct rackmem_thread rackmem_thread;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// What the last call of this thread that failed had to say. Valid until the thread's next call of rackmem; empty if none
// has failed.
const char *rackmem_message(void);

// Opens a rack of `nodes` nodes (1 to 64) inside this process, with `memory` bytes on each.
//
// What has to be kept to:
// `rack` may be written. The rack has to be closed with `rackmem_close`.
enum rackmem_status rackmem_open_embedded(uint16_t nodes,
                                          uint64_t memory,
                                          struct rackmem_rack **rack);

// Joins the rack of processes that the file `rack_toml` describes, as its node `node`. Returns when the rack has begun with
// this node in it. (`rackmem switch` has to run, and somebody has to be each of the other nodes.)
//
// What has to be kept to:
// `rack_toml` ends with a zero; `rack` may be written. The rack has to be closed with `rackmem_close`.
enum rackmem_status rackmem_join(const char *rack_toml,
                                 uint16_t node,
                                 struct rackmem_rack **rack);

// Closes a rack. Threads and locks that are still open keep what they need of it. Null is nothing.
//
// What has to be kept to:
// `rack` is null, or comes from `rackmem_open_embedded` or `rackmem_join` and is not used any more.
void rackmem_close(struct rackmem_rack *rack);

// Opens a thread on a node: in a rack inside this process any of them, else the one that the process is.
//
// What has to be kept to:
// `rack` is open; `thread` may be written. The thread has to be closed with `rackmem_thread_close`.
enum rackmem_status rackmem_thread_open(const struct rackmem_rack *rack,
                                        uint16_t node,
                                        struct rackmem_thread **thread);

// Closes a thread. What it still holds is released; what it holds for writing is poisoned, as nobody knows whether it was
// done. Null is nothing.
//
// What has to be kept to:
// `thread` is null, or comes from `rackmem_thread_open` and is not used any more, nor is any data pointer that it got.
void rackmem_thread_close(struct rackmem_thread *thread);

// Creates a lock over `len` bytes of zeroes (0 is possible) in the memory of node `home`.
//
// What has to be kept to:
// `thread` is open and used by no other thread; `lock` may be written.
enum rackmem_status rackmem_rwlock_create(struct rackmem_thread *thread,
                                          uint16_t home,
                                          size_t len,
                                          struct rackmem_rwlock **lock);

// Opens the lock at this address, which `rackmem_rwlock_address` has named, in this or another process. The length has to be
// the one that it was created with; whether there is such a lock is found out when it is taken.
//
// What has to be kept to:
// `thread` is open and used by no other thread; `lock` may be written.
enum rackmem_status rackmem_rwlock_open(struct rackmem_thread *thread,
                                        uint64_t address,
                                        size_t len,
                                        struct rackmem_rwlock **lock);

// Forgets a lock here. The lock itself stays, for others; threads that hold it go on holding it. Null is nothing.
//
// What has to be kept to:
// `lock` is null, or comes from `rackmem_rwlock_create` or `_open` and is not used any more.
void rackmem_rwlock_close(struct rackmem_rwlock *lock);

// Waits for the lock, and gives it and its memory back. Whoever waits for it, or asks later, gets
// `RACKMEM_NO_SUCH_LOCK`. It has to be closed all the same.
//
// What has to be kept to:
// `lock` and `thread` are open, and `thread` is used by no other thread.
enum rackmem_status rackmem_rwlock_free(const struct rackmem_rwlock *lock,
                                        struct rackmem_thread *thread);

// The address of a lock, for other processes; 0 for null.
//
// What has to be kept to:
// `lock` is null or open.
uint64_t rackmem_rwlock_address(const struct rackmem_rwlock *lock);

// How many bytes a lock guards; 0 for null.
//
// What has to be kept to:
// `lock` is null or open.
size_t rackmem_rwlock_len(const struct rackmem_rwlock *lock);

// Waits for the lock, to read its data together with others. `*data` is where they are, aligned to 8 bytes, until it is unlocked. With
// `RACKMEM_OK` and with `RACKMEM_POISONED` the lock is held.
//
// What has to be kept to:
// `lock` and `thread` are open, and `thread` is used by no other thread; `data` may be written. What it points to is not
// written, and not used after the unlock.
enum rackmem_status rackmem_rwlock_read(const struct rackmem_rwlock *lock,
                                        struct rackmem_thread *thread,
                                        const void **data);

// Waits for the lock, to write its data alone. Otherwise as `rackmem_rwlock_read`.
//
// What has to be kept to:
// As `rackmem_rwlock_read`; `len` bytes may be written at `*data`.
enum rackmem_status rackmem_rwlock_write(const struct rackmem_rwlock *lock,
                                         struct rackmem_thread *thread,
                                         void **data);

// Takes the lock to read, unless somebody writes or waits to: then `RACKMEM_BUSY`. (A message may have to travel.)
//
// What has to be kept to:
// As `rackmem_rwlock_read`.
enum rackmem_status rackmem_rwlock_tryread(const struct rackmem_rwlock *lock,
                                           struct rackmem_thread *thread,
                                           const void **data);

// Takes the lock to write, unless somebody has it or waits for it: then `RACKMEM_BUSY`. (A message may have to travel.)
//
// What has to be kept to:
// As `rackmem_rwlock_write`.
enum rackmem_status rackmem_rwlock_trywrite(const struct rackmem_rwlock *lock,
                                            struct rackmem_thread *thread,
                                            void **data);

// Waits for the lock at most so many nanoseconds, to read; then `RACKMEM_BUSY`.
//
// What has to be kept to:
// As `rackmem_rwlock_read`.
enum rackmem_status rackmem_rwlock_timedread(const struct rackmem_rwlock *lock,
                                             struct rackmem_thread *thread,
                                             uint64_t nanoseconds,
                                             const void **data);

// Waits for the lock at most so many nanoseconds, to write; then `RACKMEM_BUSY`.
//
// What has to be kept to:
// As `rackmem_rwlock_write`.
enum rackmem_status rackmem_rwlock_timedwrite(const struct rackmem_rwlock *lock,
                                              struct rackmem_thread *thread,
                                              uint64_t nanoseconds,
                                              void **data);

// Releases the lock. The pointer to its data is void.
//
// What has to be kept to:
// `lock` and `thread` are open, and `thread` is used by no other thread.
enum rackmem_status rackmem_rwlock_unlock(const struct rackmem_rwlock *lock,
                                          struct rackmem_thread *thread);

// Says of a lock that this thread holds for writing whether its data are poisoned: everybody who takes it from then on is
// told. Poison does not go by itself.
//
// What has to be kept to:
// As `rackmem_rwlock_unlock`.
enum rackmem_status rackmem_rwlock_set_poisoned(const struct rackmem_rwlock *lock,
                                                struct rackmem_thread *thread,
                                                bool poisoned);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RACKMEM_H */
