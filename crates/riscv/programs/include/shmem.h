/* OpenSHMEM's names for what RAE and xBGAS instructions do: the part of OpenSHMEM 1.4 that our kernels use. Remote pointers are
 * addresses of the symmetric heap or of static data: all nodes have the same layout.
 */
#ifndef SHMEM_H
#define SHMEM_H

#include <stddef.h>
#include <stdint.h>

#include "rae.h"

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

/* Everything that this node has stored is there. */
static inline void shmem_quiet(void) { rae_fence(); }
static inline void shmem_fence(void) { rae_fence(); }

#define SHMEM_ATOMICS(NAME, TYPE, WORD, SUFFIX)                                                                      \
    static inline TYPE shmem_##NAME##_atomic_fetch_add(TYPE *at, TYPE value, int pe) {                               \
        return (TYPE)rae_fetch_add_##SUFFIX((WORD *)at, (WORD)value, pe);                                            \
    }                                                                                                                \
    static inline void shmem_##NAME##_atomic_add(TYPE *at, TYPE value, int pe) {                                     \
        (void)rae_fetch_add_##SUFFIX((WORD *)at, (WORD)value, pe);                                                   \
    }                                                                                                                \
    static inline TYPE shmem_##NAME##_atomic_fetch_inc(TYPE *at, int pe) {                                           \
        return (TYPE)rae_fetch_add_##SUFFIX((WORD *)at, 1, pe);                                                      \
    }                                                                                                                \
    static inline void shmem_##NAME##_atomic_inc(TYPE *at, int pe) {                                                 \
        (void)rae_fetch_add_##SUFFIX((WORD *)at, 1, pe);                                                             \
    }                                                                                                                \
    static inline TYPE shmem_##NAME##_atomic_fetch_and(TYPE *at, TYPE value, int pe) {                               \
        return (TYPE)rae_fetch_and_##SUFFIX((WORD *)at, (WORD)value, pe);                                            \
    }                                                                                                                \
    static inline TYPE shmem_##NAME##_atomic_fetch_or(TYPE *at, TYPE value, int pe) {                                \
        return (TYPE)rae_fetch_or_##SUFFIX((WORD *)at, (WORD)value, pe);                                             \
    }                                                                                                                \
    static inline TYPE shmem_##NAME##_atomic_fetch_xor(TYPE *at, TYPE value, int pe) {                               \
        return (TYPE)rae_fetch_xor_##SUFFIX((WORD *)at, (WORD)value, pe);                                            \
    }                                                                                                                \
    static inline TYPE shmem_##NAME##_atomic_compare_swap(TYPE *at, TYPE expected, TYPE desired, int pe) {           \
        return (TYPE)rae_compare_swap_##SUFFIX((WORD *)at, (WORD)expected, (WORD)desired, pe);                       \
    }                                                                                                                \
    static inline TYPE shmem_##NAME##_atomic_fetch(const TYPE *at, int pe) {                                         \
        return (TYPE)rae_load_##SUFFIX((const WORD *)at, pe);                                                        \
    }                                                                                                                \
    static inline void shmem_##NAME##_atomic_set(TYPE *at, TYPE value, int pe) {                                     \
        rae_store_##SUFFIX((WORD *)at, (WORD)value, pe);                                                             \
    }                                                                                                                \
    /* RAE has no swap: compare-and-swap until it succeeds. */                                                       \
    static inline TYPE shmem_##NAME##_atomic_swap(TYPE *at, TYPE value, int pe) {                                    \
        WORD old = rae_load_##SUFFIX((const WORD *)at, pe);                                                          \
        for (;;) {                                                                                                   \
            WORD found = rae_compare_swap_##SUFFIX((WORD *)at, old, (WORD)value, pe);                                \
            if (found == old)                                                                                        \
                return (TYPE)old;                                                                                    \
            old = found;                                                                                             \
        }                                                                                                            \
    }                                                                                                                \
    static inline void shmem_##NAME##_p(TYPE *at, TYPE value, int pe) {                                              \
        rae_store_##SUFFIX((WORD *)at, (WORD)value, pe);                                                             \
    }                                                                                                                \
    static inline TYPE shmem_##NAME##_g(const TYPE *at, int pe) {                                                    \
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
