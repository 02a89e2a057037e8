/* Operations on words of process 0 with the one-sided operations of MPI: see words.h. Started by `rackmem-lab peers --words`. */
#include <mpi.h>

#include "words.h"

static MPI_Win window;
static const uint64_t one = 1;
static uint64_t total;

static inline void fetch_add(int hot) {
    uint64_t was;
    MPI_Fetch_and_op(&one, &was, MPI_UINT64_T, 0, (MPI_Aint)choose(hot), MPI_SUM, window);
    MPI_Win_flush(0, window);
    total += was;
}

void counted_operations(void);
__attribute__((noinline)) void counted_operations(void) {
    for (uint64_t i = 0; i < in_flight; i++) {
        if (is_counted == FETCHES) {
            uint64_t was;
            MPI_Fetch_and_op(&one, &was, MPI_UINT64_T, 0, 0, MPI_SUM, window);
            MPI_Win_flush(0, window);
            total += was;
        } else {
            MPI_Accumulate(&one, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, MPI_SUM, window);
        }
    }
    MPI_Win_flush(0, window);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &process);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    begin(argc, argv);
    uint64_t *at = NULL, *was = calloc(in_flight, sizeof *was);
    MPI_Win_allocate((MPI_Aint)(process == 0 ? words * sizeof *at : 0), sizeof *at, MPI_INFO_NULL, MPI_COMM_WORLD, &at, &window);
    if (!was) MPI_Abort(MPI_COMM_WORLD, 1);
    if (process == 0) memset(at, 0, words * sizeof *at);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    if (is_busy) {
        if (process == 0) {
            for (int left = processes - 1; left > 0;) {
                int is_there = 0;
                compute();
                MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
                if (is_there) {
                    MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    left--;
                }
            }
        } else {
            TIME("busy", fetch_add(0));
            MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    if (is_counted && process == 1) {
        /* Connections are made by the first ones. */
        for (int i = 0; i < 64; i++) fetch_add(0);
        counted_operations();
    }
    if (is_counted) MPI_Barrier(MPI_COMM_WORLD);
    for (int hot = 0; hot < 2 && !is_busy && !is_counted; hot++) {
        if (process > 0) RUN(hot ? "blocking-hot" : "blocking", CHUNK, fetch_add(hot), (void)0);
        MPI_Barrier(MPI_COMM_WORLD);
        if (process > 0) TIME(hot ? "timed-hot" : "timed", fetch_add(hot));
        MPI_Barrier(MPI_COMM_WORLD);
        if (process > 0) {
            RUN(hot ? "add-hot" : "add", in_flight,
                MPI_Accumulate(&one, 1, MPI_UINT64_T, 0, (MPI_Aint)choose(hot), 1, MPI_UINT64_T, MPI_SUM, window),
                MPI_Win_flush(0, window));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (process > 0) {
            RUN(hot ? "post-hot" : "post", in_flight,
                MPI_Fetch_and_op(&one, &was[i], MPI_UINT64_T, 0, (MPI_Aint)choose(hot), MPI_SUM, window),
                MPI_Win_flush(0, window));
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
