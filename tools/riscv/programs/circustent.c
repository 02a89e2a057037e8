/* CircusTent's eight patterns of atomics, after its paper's algorithms (CircusTent: a benchmark suite for atomic memory operations).
 *
 *     circustent PATTERN OPERATION FORM [ITERATIONS [ELEMENTS]]
 *
 * PATTERN    rand stride1 striden ptrchase central sg scatter gather
 * OPERATION  add: fetch-and-add of 1. cas: compare-and-swap of 0 for 0, as the public benchmark has it: never changes a word.
 *            update: what compare-and-swap is for: read, and swap for one more until it succeeds.
 * FORM       ring: all atomics of a PE go to the next PE's arrays, as the public benchmark's SHMEM and MPI backends do it; its
 *            CENTRAL is one hot word for each PE. global: one array over all PEs, an element at a time; CENTRAL is one word.
 *            own: the same, but what sg, scatter and gather go through in order is the PE's own: a[b[i]] = c[i], where a is over all
 *            PEs, and b and c are here.
 *
 * Verified: with add and update the sum of all elements (rand, stride1, striden, central); where ptrchase ends; in ring form all
 * elements after sg, scatter and gather against a run in local memory. In the other forms these three have races by design, and with
 * cas they change nothing: then the program says "done", not "right".
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum pattern { RAND, STRIDE1, STRIDEN, PTRCHASE, CENTRAL, SG, SCATTER, GATHER, PATTERNS };
enum operation { ADD, CAS, UPDATE, OPERATIONS };
enum form { RING, GLOBAL, OWN, FORMS };

static const char *const pattern_names[] = {"rand", "stride1", "striden", "ptrchase", "central", "sg", "scatter", "gather"};
static const char *const operation_names[] = {"add", "cas", "update"};
static const char *const form_names[] = {"ring", "global", "own"};
static const int atomics_per_iteration[] = {1, 1, 1, 1, 1, 4, 3, 3};
enum { STRIDE = 8 };

static enum pattern pattern;
static enum operation operation;
static enum form form;
static int me, all, neighbour;
static unsigned long iterations, elements;
/* Symmetric: `elements` of each on every PE. */
static unsigned long *values, *indexes;

static unsigned long count(void) { return form == RING ? elements : elements * (unsigned long)all; }

/* What follows is inlined into loops of their own for each pattern, operation and form: nothing is decided in them. */
#define INLINE static inline __attribute__((always_inline))

/* The operation of the benchmark on a word of a PE's: what it was. */
INLINE unsigned long operate(unsigned long *at, int pe, unsigned long more, enum operation how) {
    if (how == ADD)
        return shmem_ulong_atomic_fetch_add(at, more, pe);
    if (how == CAS)
        return shmem_ulong_atomic_compare_swap(at, 0, 0, pe);
    for (unsigned long old = shmem_ulong_atomic_fetch(at, pe);;) {
        unsigned long found = shmem_ulong_atomic_compare_swap(at, old, old + more, pe);
        if (found == old)
            return old;
        old = found;
    }
}

/* On element i of an array. In ring form it is the next PE's, otherwise PE i modulo their number has it. */
INLINE unsigned long atomic(unsigned long *array, unsigned long i, unsigned long more, enum operation how, enum form where) {
    if (where == RING)
        return operate(&array[i], neighbour, more, how);
    return operate(&array[i / (unsigned long)all], (int)(i % (unsigned long)all), more, how);
}

/* On an element that this PE comes to in order. */
INLINE unsigned long in_order(unsigned long *array, unsigned long i, unsigned long more, enum operation how, enum form where) {
    return where == OWN ? operate(&array[i], me, more, how) : atomic(array, i, more, how, where);
}

static unsigned long mix(unsigned long x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ul;
    x = (x ^ x >> 27) * 0x94d049bb133111ebul;
    return x ^ x >> 31;
}

/* The index that PE `pe` has at `i`; everybody can say it, so that results can be verified. */
static unsigned long index_at(int pe, unsigned long i) {
    return mix((unsigned long)pe * 0x9e3779b97f4a7c15ul + i + 1) % count();
}

/* Where PE `pe` finds element i of the indexes. */
static unsigned long index_of(int pe, unsigned long i) {
    return form == RING ? index_at((pe + 1) % all, i) : index_at((int)(i % (unsigned long)all), i / (unsigned long)all);
}

/* What is compared is between these two. Elsewhere there is nothing that notes anything. */
#ifdef RAE_H
enum { BEGIN = 1, END = 2 };
static void mark(int number) { rae_mark(number); }
#else
#define mark(number) (void)0
#endif

INLINE unsigned long loop(enum pattern which, enum operation how, enum form where) {
    unsigned long at = where == RING ? 0 : (unsigned long)me, one = where == GLOBAL ? (unsigned long)me * elements : 0;
    unsigned long all_elements = where == GLOBAL ? count() : elements;
    for (unsigned long i = 0, pick = 0; i < iterations; i++) {
        unsigned long next = one + 1 == all_elements ? 0 : one + 1, source, destination, value;
        switch (which) {
        case RAND:
            atomic(values, indexes[pick], 1, how, where);
            pick = pick + 1 == elements ? 0 : pick + 1;
            break;
        case STRIDE1: atomic(values, one, 1, how, where); break;
        case STRIDEN:
            atomic(values, one, 1, how, where);
            for (next = one + STRIDE; next >= all_elements;)
                next -= all_elements;
            break;
        case PTRCHASE: at = atomic(indexes, at, 0, how, where); break;
        case CENTRAL: atomic(values, 0, 1, how, where); break;
        case SG:
            source = in_order(indexes, one, 0, how, where);
            destination = in_order(indexes, next, 0, how, where);
            value = atomic(values, source, 1, how, where);
            atomic(values, destination, value, how, where);
            break;
        case SCATTER:
            destination = in_order(indexes, next, 0, how, where);
            value = in_order(values, one, 1, how, where);
            atomic(values, destination, value, how, where);
            break;
        case GATHER:
            destination = in_order(indexes, next, 0, how, where);
            value = atomic(values, destination, 1, how, where);
            in_order(values, one, value, how, where);
            break;
        default: break;
        }
        one = next;
    }
    return at;
}

/* Patterns that go through nothing in order beside what they operate on are the same in both forms over all PEs. */
#define IN_FORM(PATTERN, OPERATION)                                                                                  \
    (form == RING                            ? loop(PATTERN, OPERATION, RING)                                        \
     : form == GLOBAL || (PATTERN) <= CENTRAL ? loop(PATTERN, OPERATION, GLOBAL)                                      \
                                             : loop(PATTERN, OPERATION, OWN))
#define LOOPS(PATTERN)                                                                                               \
    case PATTERN:                                                                                                    \
        return operation == ADD   ? IN_FORM(PATTERN, ADD)                                                            \
               : operation == CAS ? IN_FORM(PATTERN, CAS)                                                            \
                                  : IN_FORM(PATTERN, UPDATE);

/* Returns where ptrchase has ended. */
static unsigned long run(void) {
    switch (pattern) {
        LOOPS(RAND)
        LOOPS(STRIDE1)
        LOOPS(STRIDEN)
        LOOPS(PTRCHASE)
        LOOPS(CENTRAL)
        LOOPS(SG)
        LOOPS(SCATTER)
        LOOPS(GATHER)
    default: return 0;
    }
}

/* The same in local memory: what the next PE's values are after this PE's run in ring form. */
static void run_locally(unsigned long *local) {
    for (unsigned long i = 0; i < iterations; i++) {
        unsigned long one = i % elements, next = (i + 1) % elements, value;
        unsigned long source = index_of(me, one), destination = index_of(me, next);
        if (pattern == SG) {
            value = local[source]++;
            local[destination] += value;
        } else if (pattern == SCATTER) {
            value = local[one]++;
            local[destination] += value;
        } else {
            value = local[destination]++;
            local[one] += value;
        }
    }
}

/* Whether there is a result to compare with. */
static int is_known(void) { return pattern <= CENTRAL || (form == RING && operation != CAS); }

static int is_right(unsigned long end) {
    static long sum, total, work[SHMEM_REDUCE_MIN_WRKDATA_SIZE], sync[SHMEM_REDUCE_SYNC_SIZE];
    unsigned long changed = operation == CAS ? 0 : iterations * (unsigned long)all;
    if (pattern == PTRCHASE) {
        unsigned long at = form == RING ? 0 : (unsigned long)me;
        for (unsigned long i = 0; i < iterations; i++)
            at = index_of(me, at);
        return at == end;
    }
    if (pattern < PTRCHASE || pattern == CENTRAL) {
        sum = 0;
        for (unsigned long i = 0; i < elements; i++)
            sum += (long)values[i];
        for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
            sync[i] = SHMEM_SYNC_VALUE;
        shmem_barrier_all();
        shmem_long_sum_to_all(&total, &sum, 1, 0, 0, all, work, sync);
        return (unsigned long)total == changed;
    }
    if (!is_known())
        return 1;
    unsigned long *local = shmem_calloc(elements, sizeof *local);
    run_locally(local);
    for (unsigned long i = 0; i < elements; i++)
        if (shmem_ulong_g(&values[i], (me + 1) % all) != local[i])
            return 0;
    return 1;
}

static int find(const char *name, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

int main(int argc, char **argv) {
    shmem_init();
    me = shmem_my_pe();
    all = shmem_n_pes();
    neighbour = (me + 1) % all;
    int which = argc > 3 ? find(argv[1], pattern_names, PATTERNS) : -1;
    int how = argc > 3 ? find(argv[2], operation_names, OPERATIONS) : -1;
    int where = argc > 3 ? find(argv[3], form_names, FORMS) : -1;
    if (which < 0 || how < 0 || where < 0) {
        if (me == 0)
            puts("circustent rand|stride1|striden|ptrchase|central|sg|scatter|gather add|cas|update "
                 "ring|global|own [ITERATIONS [ELEMENTS]]");
        return 2;
    }
    pattern = (enum pattern)which;
    operation = (enum operation)how;
    form = (enum form)where;
    iterations = argc > 4 ? strtoul(argv[4], 0, 10) : 1000;
    elements = argc > 5 ? strtoul(argv[5], 0, 10) : 1024;
    values = shmem_calloc(elements, sizeof *values);
    indexes = shmem_malloc(elements * sizeof *indexes);
    if (elements == 0 || !values || !indexes) {
        if (me == 0)
            puts("this does not fit into the symmetric heap");
        return 2;
    }
    for (unsigned long i = 0; i < elements; i++)
        indexes[i] = index_at(me, i);
    /* Barriers on both sides: nobody is ahead where something is noted. */
    shmem_barrier_all();
    mark(BEGIN);
    shmem_barrier_all();
    unsigned long end = run();
    shmem_barrier_all();
    mark(END);
    shmem_barrier_all();
    static long wrong;
    shmem_long_atomic_add(&wrong, !is_right(end), 0);
    shmem_barrier_all();
    long verdict = shmem_long_g(&wrong, 0);
    if (me == 0)
        printf("%s %s %s: %d PEs, %lu iterations of %d atomics each: %s\n", argv[1], argv[2], argv[3], all, iterations,
               atomics_per_iteration[pattern], verdict ? "wrong" : is_known() ? "right" : "done");
    shmem_barrier_all();
    /* Not shmem_finalize: Open MPI 4.1 crashes there. */
    shmem_global_exit(verdict != 0);
}
