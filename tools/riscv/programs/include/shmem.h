/* OpenSHMEM's names for what RAE and xBGAS instructions do: the part of OpenSHMEM 1.4 that our kernels use. Remote pointers are
 * addresses of the symmetric heap or of static data: all nodes have the same layout.
 */
#ifndef SHMEM_H
#define SHMEM_H

#include <stddef.h>
#include <stdint.h>

#include "rae.h"

/* The software path: with RAE_SOFTWARE every call of OpenSHMEM is the same operation and, before it, a write to a control register
 * of the machine's, which says what routine of a library this is. The machine then charges the instructions that such a routine was
 * counted to execute (tools/riscv/src/library.rs has the same numbers). Without RAE_SOFTWARE nothing of that is there. */
enum {
    RAE_ROUTINE_FETCH_ADD = 1,
    RAE_ROUTINE_COMPARE_SWAP,
    RAE_ROUTINE_ADD,
    RAE_ROUTINE_FETCH,
    RAE_ROUTINE_SET,
    RAE_ROUTINE_SWAP,
    RAE_ROUTINE_FETCH_INC,
    RAE_ROUTINE_INC,
    RAE_ROUTINE_FETCH_AND,
    RAE_ROUTINE_FETCH_OR,
    RAE_ROUTINE_FETCH_XOR,
    RAE_ROUTINE_P,
    RAE_ROUTINE_G,
    RAE_ROUTINE_QUIET,
    RAE_ROUTINE_FENCE,
    RAE_ROUTINE_BARRIER_ALL,
    RAE_ROUTINE_GETMEM,
    RAE_ROUTINE_PUTMEM,
    RAE_ROUTINE_TO_ALL,
};
#ifdef RAE_SOFTWARE
/* csrrwi zero, 0x8c0, ROUTINE: one instruction, which is one of those that are charged. */
#define RAE_ROUTINE(WHICH) __asm__ volatile(".insn i 0x73, 5, x0, x%0, -0x740" ::"i"(RAE_ROUTINE_##WHICH) : "memory")
/* csrrw zero, 0x8c0, register: the routine, and above its 8 bits how many bytes it moves. */
#define RAE_ROUTINE_OF(WHICH, BYTES)                                                                                 \
    __asm__ volatile(".insn i 0x73, 1, x0, %0, -0x740" ::"r"(RAE_ROUTINE_##WHICH | (uint64_t)(BYTES) << 8) : "memory")
#else
#define RAE_ROUTINE(WHICH) (void)0
#define RAE_ROUTINE_OF(WHICH, BYTES) (void)0
#endif

void shmem_init(void);
void shmem_finalize(void);
/* Ends the program on all PEs. */
void shmem_global_exit(int code) __attribute__((noreturn));
int shmem_my_pe(void);
int shmem_n_pes(void);
void *shmem_malloc(size_t bytes);
void *shmem_calloc(size_t count, size_t bytes);
void shmem_free(void *pointer);
void shmem_barrier_all(void);
void shmem_putmem(void *to, const void *from, size_t bytes, int pe);
void shmem_getmem(void *to, const void *from, size_t bytes, int pe);
/* Cycles; not OpenSHMEM's. */
uint64_t rae_clock(void);
/* The machine notes what it has counted so far, under this number; not OpenSHMEM's. */
void rae_mark(int number);

/* Everything that this node has stored is there. */
static inline void shmem_quiet(void) {
    RAE_ROUTINE(QUIET);
    rae_fence();
}
static inline void shmem_fence(void) {
    RAE_ROUTINE(FENCE);
    rae_fence();
}

#define SHMEM_ATOMICS(NAME, TYPE, WORD, SUFFIX)                                                                      \
    static inline TYPE shmem_##NAME##_atomic_fetch_add(TYPE *at, TYPE value, int pe) {                               \
        RAE_ROUTINE(FETCH_ADD);                                                                                      \
        return (TYPE)rae_fetch_add_##SUFFIX((WORD *)at, (WORD)value, pe);                                            \
    }                                                                                                                \
    static inline void shmem_##NAME##_atomic_add(TYPE *at, TYPE value, int pe) {                                     \
        RAE_ROUTINE(ADD);                                                                                            \
        (void)rae_fetch_add_##SUFFIX((WORD *)at, (WORD)value, pe);                                                   \
    }                                                                                                                \
    static inline TYPE shmem_##NAME##_atomic_fetch_inc(TYPE *at, int pe) {                                           \
        RAE_ROUTINE(FETCH_INC);                                                                                      \
        return (TYPE)rae_fetch_add_##SUFFIX((WORD *)at, 1, pe);                                                      \
    }                                                                                                                \
    static inline void shmem_##NAME##_atomic_inc(TYPE *at, int pe) {                                                 \
        RAE_ROUTINE(INC);                                                                                            \
        (void)rae_fetch_add_##SUFFIX((WORD *)at, 1, pe);                                                             \
    }                                                                                                                \
    static inline TYPE shmem_##NAME##_atomic_fetch_and(TYPE *at, TYPE value, int pe) {                               \
        RAE_ROUTINE(FETCH_AND);                                                                                      \
        return (TYPE)rae_fetch_and_##SUFFIX((WORD *)at, (WORD)value, pe);                                            \
    }                                                                                                                \
    static inline TYPE shmem_##NAME##_atomic_fetch_or(TYPE *at, TYPE value, int pe) {                                \
        RAE_ROUTINE(FETCH_OR);                                                                                       \
        return (TYPE)rae_fetch_or_##SUFFIX((WORD *)at, (WORD)value, pe);                                             \
    }                                                                                                                \
    static inline TYPE shmem_##NAME##_atomic_fetch_xor(TYPE *at, TYPE value, int pe) {                               \
        RAE_ROUTINE(FETCH_XOR);                                                                                      \
        return (TYPE)rae_fetch_xor_##SUFFIX((WORD *)at, (WORD)value, pe);                                            \
    }                                                                                                                \
    static inline TYPE shmem_##NAME##_atomic_compare_swap(TYPE *at, TYPE expected, TYPE desired, int pe) {           \
        RAE_ROUTINE(COMPARE_SWAP);                                                                                   \
        return (TYPE)rae_compare_swap_##SUFFIX((WORD *)at, (WORD)expected, (WORD)desired, pe);                       \
    }                                                                                                                \
    static inline TYPE shmem_##NAME##_atomic_fetch(const TYPE *at, int pe) {                                         \
        RAE_ROUTINE(FETCH);                                                                                          \
        return (TYPE)rae_load_##SUFFIX((const WORD *)at, pe);                                                        \
    }                                                                                                                \
    static inline void shmem_##NAME##_atomic_set(TYPE *at, TYPE value, int pe) {                                     \
        RAE_ROUTINE(SET);                                                                                            \
        rae_store_##SUFFIX((WORD *)at, (WORD)value, pe);                                                             \
    }                                                                                                                \
    /* RAE has no swap: compare-and-swap until it succeeds. */                                                       \
    static inline TYPE shmem_##NAME##_atomic_swap(TYPE *at, TYPE value, int pe) {                                    \
        RAE_ROUTINE(SWAP);                                                                                           \
        WORD old = rae_load_##SUFFIX((const WORD *)at, pe);                                                          \
        for (;;) {                                                                                                   \
            WORD found = rae_compare_swap_##SUFFIX((WORD *)at, old, (WORD)value, pe);                                \
            if (found == old)                                                                                        \
                return (TYPE)old;                                                                                    \
            old = found;                                                                                             \
        }                                                                                                            \
    }                                                                                                                \
    static inline void shmem_##NAME##_p(TYPE *at, TYPE value, int pe) {                                              \
        RAE_ROUTINE(P);                                                                                              \
        rae_store_##SUFFIX((WORD *)at, (WORD)value, pe);                                                             \
    }                                                                                                                \
    static inline TYPE shmem_##NAME##_g(const TYPE *at, int pe) {                                                    \
        RAE_ROUTINE(G);                                                                                              \
        return (TYPE)rae_load_##SUFFIX((const WORD *)at, pe);                                                        \
    }

SHMEM_ATOMICS(int, int, int32_t, w)
SHMEM_ATOMICS(uint, unsigned int, int32_t, w)
SHMEM_ATOMICS(int32, int32_t, int32_t, w)
SHMEM_ATOMICS(uint32, uint32_t, int32_t, w)
SHMEM_ATOMICS(long, long, int64_t, d)
SHMEM_ATOMICS(ulong, unsigned long, int64_t, d)
SHMEM_ATOMICS(longlong, long long, int64_t, d)
SHMEM_ATOMICS(ulonglong, unsigned long long, int64_t, d)
SHMEM_ATOMICS(int64, int64_t, int64_t, d)
SHMEM_ATOMICS(uint64, uint64_t, int64_t, d)
SHMEM_ATOMICS(size, size_t, int64_t, d)

/* Reductions over all PEs, with OpenSHMEM 1.4's arguments: start, stride, size, work and synchronization arrays are not looked at. */
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 1
#define SHMEM_REDUCE_SYNC_SIZE 1
#define SHMEM_SYNC_VALUE 0L

#define SHMEM_REDUCTIONS(NAME, TYPE)                                                                                 \
    void shmem_##NAME##_sum_to_all(TYPE *to, TYPE *from, int count, int start, int stride, int size, TYPE *work,     \
                                   long *sync);                                                                      \
    void shmem_##NAME##_min_to_all(TYPE *to, TYPE *from, int count, int start, int stride, int size, TYPE *work,     \
                                   long *sync);                                                                      \
    void shmem_##NAME##_max_to_all(TYPE *to, TYPE *from, int count, int start, int stride, int size, TYPE *work,     \
                                   long *sync);

SHMEM_REDUCTIONS(int, int)
SHMEM_REDUCTIONS(long, long)
SHMEM_REDUCTIONS(longlong, long long)

#endif
