/* Operations on words of process 0 with OpenSHMEM: see words.h. Started by `rackmem-lab peers --words`.
 *
 * Open MPI 4.1 has OpenSHMEM 1.4: no operation that fetches without blocking. */
#include <shmem.h>

#include "words.h"

/* Those that have ended their last measurement, while process 0 computes. */
static long ended = 0;
/* What process 0 counts up at another one between two slices. */
static long asked = 0;
static unsigned long *at;
static uint64_t total;

static inline void fetch_add(int hot) { total += shmem_ulong_atomic_fetch_add(&at[choose(hot)], 1, 0); }

void counted_operations(void);
__attribute__((noinline)) void counted_operations(void) {
    for (uint64_t i = 0; i < in_flight; i++) {
        if (is_counted == FETCHES)
            total += shmem_ulong_atomic_fetch_add(at, 1, 0);
        else
            shmem_ulong_atomic_add(at, 1, 0);
    }
    shmem_quiet();
}

int main(int argc, char **argv) {
    shmem_init();
    process = shmem_my_pe();
    processes = shmem_n_pes();
    begin(argc, argv);
    at = shmem_calloc(words, sizeof *at);
    if (!at) {
        fprintf(stderr, "no memory for %llu words\n", (unsigned long long)words);
        shmem_global_exit(1);
    }
    shmem_barrier_all();
    if (is_busy) {
        if (process == 0) {
            /* The operations of others are done while this one waits for one of its own. */
            while (*(volatile long *)&ended < processes - 1) {
                compute();
                shmem_long_atomic_add(&asked, 1, 1);
                shmem_quiet();
            }
        } else {
            TIME("busy", fetch_add(0));
            shmem_long_atomic_inc(&ended, 0);
            shmem_quiet();
        }
    }
    if (is_counted && process == 1) {
        /* Connections are made by the first ones. */
        for (int i = 0; i < 64; i++) fetch_add(0);
        counted_operations();
    }
    for (int hot = 0; hot < 2 && !is_busy && !is_counted; hot++) {
        if (process > 0) RUN(hot ? "blocking-hot" : "blocking", CHUNK, fetch_add(hot), (void)0);
        shmem_barrier_all();
        if (process > 0) TIME(hot ? "timed-hot" : "timed", fetch_add(hot));
        shmem_barrier_all();
        if (process > 0) RUN(hot ? "add-hot" : "add", in_flight, shmem_ulong_atomic_add(&at[choose(hot)], 1, 0), shmem_quiet());
        shmem_barrier_all();
    }
    shmem_barrier_all();
    fflush(stdout);
    /* Open MPI 4.1 crashes in shmem_finalize. */
    shmem_global_exit(0);
    return 0;
}
