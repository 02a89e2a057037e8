/* All PEs add to one word, which is PE 0's. Each addition is one instruction. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    unsigned long rounds = count > 1 ? strtoul(arguments[1], 0, 10) : 1000;
    shmem_init();
    unsigned long *word = shmem_calloc(1, sizeof *word);
    shmem_barrier_all();
    for (unsigned long i = 0; i < rounds; i++)
        (void)shmem_ulong_atomic_fetch_add(word, 1, 0);
    shmem_barrier_all();
    unsigned long found = shmem_ulong_g(word, 0), expected = rounds * (unsigned long)shmem_n_pes();
    if (shmem_my_pe() == 0)
        printf("%lu additions of %d PEs, the word is %lu\n", expected, shmem_n_pes(), found);
    shmem_barrier_all();
    /* Not shmem_finalize: Open MPI 4.1 crashes there. */
    shmem_global_exit(found != expected);
}
