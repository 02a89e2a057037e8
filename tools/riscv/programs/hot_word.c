/* All PEs add to words, HEAT in a hundred of the additions to one, which is PE 0's, and the others to random ones of all PEs. Each
 * addition is one instruction.
 *
 *     hot_word [ROUNDS [HEAT [ELEMENTS]]]
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

/* What is compared is between two marks. Elsewhere there is nothing that notes anything. */
#ifndef RAE_H
#define rae_mark(number) (void)0
#endif

int main(int count, char **arguments) {
    unsigned long rounds = count > 1 ? strtoul(arguments[1], 0, 10) : 1000;
    unsigned long heat = count > 2 ? strtoul(arguments[2], 0, 10) : 100;
    unsigned long elements = count > 3 ? strtoul(arguments[3], 0, 10) : 1024;
    shmem_init();
    unsigned long all = (unsigned long)shmem_n_pes(), state = (unsigned long)shmem_my_pe() + 0x9e3779b97f4a7c15ul;
    unsigned long *word = shmem_calloc(1, sizeof *word), *others = shmem_calloc(elements, sizeof *others);
    if (heat > 100 || elements == 0 || !word || !others) {
        if (shmem_my_pe() == 0)
            puts("hot_word [ROUNDS [HEAT [ELEMENTS]]]: HEAT is a percentage, and the elements fit into the symmetric heap");
        return 2;
    }
    shmem_barrier_all();
    rae_mark(1);
    shmem_barrier_all();
    for (unsigned long i = 0; i < rounds; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        unsigned long draw = state >> 32, which = state & 0xfffffffful;
        if (draw * 100 >> 32 < heat)
            (void)shmem_ulong_atomic_fetch_add(word, 1, 0);
        else
            (void)shmem_ulong_atomic_fetch_add(&others[which / all % elements], 1, (int)(which % all));
    }
    shmem_barrier_all();
    rae_mark(2);
    shmem_barrier_all();
    static unsigned long sum;
    unsigned long here = 0;
    for (unsigned long i = 0; i < elements; i++)
        here += others[i];
    shmem_ulong_atomic_add(&sum, here, 0);
    shmem_barrier_all();
    unsigned long found = shmem_ulong_g(word, 0) + shmem_ulong_g(&sum, 0), expected = rounds * all;
    if (shmem_my_pe() == 0)
        printf("%lu additions of %d PEs, %s %lu\n", expected, shmem_n_pes(), heat == 100 ? "the word is" : "all words are", found);
    shmem_barrier_all();
    /* Not shmem_finalize: Open MPI 4.1 crashes there. */
    shmem_global_exit(found != expected);
}
