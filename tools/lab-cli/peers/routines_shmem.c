/* Calls of OpenSHMEM, one routine after the other, each many times: what callgrind counts is inside counted_calls, once for each
 * line that this prints. Started by `rackmem-lab routines`.
 *
 *     routines_shmem TIMES ROUNDS [barriers]
 *
 * The last process calls and is counted, process 0 has the memory; collective routines are called by all. A line is
 *   routine <name> <size> <calls>
 * where the size is bytes, or of a barrier how many processes there are. With `barriers` nothing else is called, by any number of
 * processes; without, there are two.
 * The routine `nothing` is the loop alone, to be subtracted. Routines whose effect comes later (add, set, put) are followed by one
 * quiet, which is counted by itself with one store before it, less that store.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 13 };

static unsigned long *at;
static char *far_bytes, *near_bytes;
static unsigned long total;
static long sums[MOST / 8], parts[MOST / 8], work[MOST / 8 / 2 + 1 + SHMEM_REDUCE_MIN_WRKDATA_SIZE], sync_of[SHMEM_REDUCE_SYNC_SIZE];

struct call {
    const char *name;
    unsigned long bytes;
    void (*call)(unsigned long bytes);
    int is_collective;
};

/* Each is called through a pointer, as `nothing` is. */
static void nothing(unsigned long bytes) { (void)bytes; }
static void fetch_add(unsigned long bytes) { (void)bytes, total += shmem_ulong_atomic_fetch_add(at, 1, 0); }
static void compare_swap(unsigned long bytes) { (void)bytes, total += shmem_ulong_atomic_compare_swap(at, 0, 0, 0); }
static void add(unsigned long bytes) { (void)bytes, shmem_ulong_atomic_add(at, 1, 0); }
static void fetch(unsigned long bytes) { (void)bytes, total += shmem_ulong_atomic_fetch(at, 0); }
static void set(unsigned long bytes) { (void)bytes, shmem_ulong_atomic_set(at, 1, 0); }
static void swap(unsigned long bytes) { (void)bytes, total += shmem_ulong_atomic_swap(at, 1, 0); }
static void fetch_inc(unsigned long bytes) { (void)bytes, total += shmem_ulong_atomic_fetch_inc(at, 0); }
static void inc(unsigned long bytes) { (void)bytes, shmem_ulong_atomic_inc(at, 0); }
static void fetch_and(unsigned long bytes) { (void)bytes, total += shmem_ulong_atomic_fetch_and(at, 1, 0); }
static void fetch_or(unsigned long bytes) { (void)bytes, total += shmem_ulong_atomic_fetch_or(at, 1, 0); }
static void fetch_xor(unsigned long bytes) { (void)bytes, total += shmem_ulong_atomic_fetch_xor(at, 1, 0); }
static void p(unsigned long bytes) { (void)bytes, shmem_ulong_p(at, 1, 0); }
static void g(unsigned long bytes) { (void)bytes, total += shmem_ulong_g(at, 0); }
static void p_and_quiet(unsigned long bytes) { (void)bytes, shmem_ulong_p(at, 1, 0), shmem_quiet(); }
static void p_and_fence(unsigned long bytes) { (void)bytes, shmem_ulong_p(at, 1, 0), shmem_fence(); }
static void getmem(unsigned long bytes) { shmem_getmem(near_bytes, far_bytes, bytes, 0); }
static void putmem(unsigned long bytes) { shmem_putmem(far_bytes, near_bytes, bytes, 0); }
static void barrier_all(unsigned long bytes) { (void)bytes, shmem_barrier_all(); }
static void to_all(unsigned long bytes) { shmem_long_sum_to_all(sums, parts, (int)(bytes / 8), 0, 0, 2, work, sync_of); }

#define SIZES(NAME)                                                                                                                \
    {#NAME, 0, NAME, 0}, {#NAME, 8, NAME, 0}, {#NAME, 16, NAME, 0}, {#NAME, 32, NAME, 0}, {#NAME, 64, NAME, 0},                    \
        {#NAME, 128, NAME, 0}, {#NAME, 256, NAME, 0}, {#NAME, 512, NAME, 0}, {#NAME, 1024, NAME, 0}, {#NAME, 2048, NAME, 0},       \
        {#NAME, 4096, NAME, 0}, {#NAME, 8192, NAME, 0}

static const struct call calls[] = {
    {"nothing", 0, nothing, 0},
    {"fetch_add", 0, fetch_add, 0},
    {"compare_swap", 0, compare_swap, 0},
    {"add", 0, add, 0},
    {"fetch", 0, fetch, 0},
    {"set", 0, set, 0},
    {"swap", 0, swap, 0},
    {"fetch_inc", 0, fetch_inc, 0},
    {"inc", 0, inc, 0},
    {"fetch_and", 0, fetch_and, 0},
    {"fetch_or", 0, fetch_or, 0},
    {"fetch_xor", 0, fetch_xor, 0},
    {"p", 0, p, 0},
    {"g", 0, g, 0},
    {"p_and_quiet", 0, p_and_quiet, 0},
    {"p_and_fence", 0, p_and_fence, 0},
    {"barrier_all", 0, barrier_all, 1},
    SIZES(getmem),
    SIZES(putmem),
    {"to_all", 8, to_all, 1},
    {"to_all", 64, to_all, 1},
    {"to_all", 1024, to_all, 1},
};

static unsigned long times = 100, rounds = 1;

static int is_barrier(const struct call *of) { return of->call == nothing || of->call == barrier_all; }

void counted_calls(const struct call *of);
__attribute__((noinline)) void counted_calls(const struct call *of) {
    for (unsigned long i = 0; i < times; i++)
        of->call(of->bytes);
}

int main(int argc, char **argv) {
    shmem_init();
    int me = shmem_my_pe(), last = shmem_n_pes() - 1, only_barriers = argc > 3 && strcmp(argv[3], "barriers") == 0;
    if (argc > 1)
        times = strtoul(argv[1], NULL, 10);
    if (argc > 2)
        rounds = strtoul(argv[2], NULL, 10);
    at = shmem_calloc(1, sizeof *at);
    far_bytes = shmem_calloc(1, MOST);
    near_bytes = calloc(1, MOST);
    if (!at || !far_bytes || !near_bytes || times == 0) {
        fprintf(stderr, "no memory, or no calls\n");
        shmem_global_exit(1);
    }
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        sync_of[i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    for (size_t which = 0; which < sizeof calls / sizeof *calls; which++) {
        const struct call *of = &calls[which];
        unsigned long size = of->call == barrier_all ? (unsigned long)shmem_n_pes() : of->bytes;
        if (only_barriers && !is_barrier(of))
            continue;
        /* What is made by the first call, and what earlier ones have left in flight. */
        if (me == last || of->is_collective)
            for (int i = 0; i < 8; i++)
                of->call(of->bytes);
        shmem_quiet();
        shmem_barrier_all();
        for (unsigned long round = 0; round < rounds; round++) {
            if (me == last) {
                counted_calls(of);
                printf("routine %s %lu %lu\n", of->name, size, times);
                fflush(stdout);
            } else if (of->is_collective) {
                for (unsigned long i = 0; i < times; i++)
                    of->call(of->bytes);
            }
        }
        shmem_quiet();
        shmem_barrier_all();
    }
    /* Open MPI 4.1 crashes in shmem_finalize. */
    shmem_global_exit(0);
    return 0;
}
