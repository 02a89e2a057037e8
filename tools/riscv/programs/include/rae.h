/* Remote atomics and extended addresses as C functions: what rae.h emits are the instructions themselves, by `.insn`, so an
 * unchanged compiler and assembler will do.
 *
 * An extended address is an extension register and an integer register of the same number. Here that is e10 and a0:
 * `eaddie e10, pe, 1` says which node (node + 1; 0 would be this node, without its engine), a0 says where there.
 */
#ifndef RAE_H
#define RAE_H

#include <stdint.h>

#ifndef RAE_LOCAL
/* opcode 0x6b, funct3 6 (.w) or 7 (.d), funct7 by operation */
#define RAE_XOR 1
#define RAE_AND 2
#define RAE_OR 3
#define RAE_MIN 4
#define RAE_MAX 5
#define RAE_CAS 6
#define RAE_ADD 7

#define RAE_STRING(x) #x
#define RAE_NUMBER(x) RAE_STRING(x)

/* rd gets what the word was; .w is sign-extended. */
#define RAE_FETCH(NAME, TYPE, FUNCT3, FUNCT7)                                                                        \
    static inline TYPE rae_fetch_##NAME(TYPE *address, TYPE operand, int pe) {                                       \
        register uint64_t at __asm__("a0") = (uint64_t)address;                                                      \
        TYPE old;                                                                                                    \
        __asm__ volatile(".insn i 0x7b, 5, x10, %2, 1\n\t" /* eaddie e10, pe, 1 */                                   \
                         ".insn r 0x6b, " #FUNCT3 ", " RAE_NUMBER(FUNCT7) ", %0, a0, %3"                             \
                         : "=r"(old)                                                                                 \
                         : "r"(at), "r"((int64_t)pe), "r"(operand)                                                   \
                         : "memory");                                                                                \
        return old;                                                                                                  \
    }

/* cas: rd holds what is expected before, and what the word was afterwards. */
#define RAE_COMPARE(TYPE, SUFFIX, FUNCT3)                                                                            \
    static inline TYPE rae_compare_swap_##SUFFIX(TYPE *address, TYPE expected, TYPE desired, int pe) {               \
        register uint64_t at __asm__("a0") = (uint64_t)address;                                                      \
        TYPE old = expected;                                                                                         \
        __asm__ volatile(".insn i 0x7b, 5, x10, %2, 1\n\t"                                                           \
                         ".insn r 0x6b, " #FUNCT3 ", " RAE_NUMBER(RAE_CAS) ", %0, a0, %3"                            \
                         : "+r"(old)                                                                                 \
                         : "r"(at), "r"((int64_t)pe), "r"(desired)                                                   \
                         : "memory");                                                                                \
        return old;                                                                                                  \
    }

#define RAE_ALL(TYPE, SUFFIX, FUNCT3)                                                                                \
    RAE_FETCH(xor_##SUFFIX, TYPE, FUNCT3, RAE_XOR)                                                                   \
    RAE_FETCH(and_##SUFFIX, TYPE, FUNCT3, RAE_AND)                                                                   \
    RAE_FETCH(or_##SUFFIX, TYPE, FUNCT3, RAE_OR)                                                                     \
    RAE_FETCH(min_##SUFFIX, TYPE, FUNCT3, RAE_MIN)                                                                   \
    RAE_FETCH(max_##SUFFIX, TYPE, FUNCT3, RAE_MAX)                                                                   \
    RAE_FETCH(add_##SUFFIX, TYPE, FUNCT3, RAE_ADD)                                                                   \
    RAE_COMPARE(TYPE, SUFFIX, FUNCT3)

RAE_ALL(int32_t, w, 6)
RAE_ALL(int64_t, d, 7)

/* Loads: opcode 0x77, funct3 as of local loads. */
#define RAE_LOAD(SUFFIX, TYPE, FUNCT3)                                                                               \
    static inline TYPE rae_load_##SUFFIX(const TYPE *address, int pe) {                                              \
        register uint64_t at __asm__("a0") = (uint64_t)address;                                                      \
        TYPE value;                                                                                                  \
        __asm__ volatile(".insn i 0x7b, 5, x10, %2, 1\n\t"                                                           \
                         ".insn i 0x77, " #FUNCT3 ", %0, 0(a0)"                                                      \
                         : "=r"(value)                                                                               \
                         : "r"(at), "r"((int64_t)pe)                                                                 \
                         : "memory");                                                                                \
        return value;                                                                                                \
    }

/* Stores: opcode 0x7b. They are posted: only a fence waits for them. */
#define RAE_STORE(SUFFIX, TYPE, FUNCT3)                                                                              \
    static inline void rae_store_##SUFFIX(TYPE *address, TYPE value, int pe) {                                       \
        register uint64_t at __asm__("a0") = (uint64_t)address;                                                      \
        __asm__ volatile(".insn i 0x7b, 5, x10, %1, 1\n\t"                                                           \
                         ".insn s 0x7b, " #FUNCT3 ", %2, 0(a0)"                                                      \
                         :                                                                                           \
                         : "r"(at), "r"((int64_t)pe), "r"(value)                                                     \
                         : "memory");                                                                                \
    }

RAE_LOAD(b, int8_t, 0)
RAE_LOAD(h, int16_t, 1)
RAE_LOAD(w, int32_t, 2)
RAE_LOAD(d, int64_t, 3)
RAE_STORE(b, int8_t, 0)
RAE_STORE(h, int16_t, 1)
RAE_STORE(w, int32_t, 2)
RAE_STORE(d, int64_t, 3)

#else
/* One address space: the same names, and what a program of threads executes for them. There is one node, and nothing is remote. */
#define RAE_SAME(NAME, TYPE, DO)                                                                                     \
    static inline TYPE rae_fetch_##NAME(TYPE *address, TYPE operand, int pe) {                                       \
        (void)pe;                                                                                                    \
        return __atomic_fetch_##DO(address, operand, __ATOMIC_RELAXED);                                              \
    }
/* The compiler has no names for these. */
#define RAE_INSTRUCTION(NAME, TYPE, WHAT)                                                                            \
    static inline TYPE rae_fetch_##NAME(TYPE *address, TYPE operand, int pe) {                                       \
        TYPE old;                                                                                                    \
        (void)pe;                                                                                                    \
        __asm__ volatile(WHAT " %0, %2, %1" : "=r"(old), "+A"(*address) : "r"(operand));                             \
        return old;                                                                                                  \
    }
#define RAE_ALL(TYPE, SUFFIX)                                                                                        \
    RAE_SAME(xor_##SUFFIX, TYPE, xor)                                                                                \
    RAE_SAME(and_##SUFFIX, TYPE, and)                                                                                \
    RAE_SAME(or_##SUFFIX, TYPE, or)                                                                                  \
    RAE_SAME(add_##SUFFIX, TYPE, add)                                                                                \
    RAE_INSTRUCTION(min_##SUFFIX, TYPE, "amomin." #SUFFIX)                                                           \
    RAE_INSTRUCTION(max_##SUFFIX, TYPE, "amomax." #SUFFIX)                                                           \
    static inline TYPE rae_compare_swap_##SUFFIX(TYPE *address, TYPE expected, TYPE desired, int pe) {               \
        (void)pe;                                                                                                    \
        __atomic_compare_exchange_n(address, &expected, desired, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);             \
        return expected;                                                                                             \
    }
#define RAE_ACCESS(SUFFIX, TYPE)                                                                                     \
    static inline TYPE rae_load_##SUFFIX(const TYPE *address, int pe) {                                              \
        (void)pe;                                                                                                    \
        return *(const volatile TYPE *)address;                                                                      \
    }                                                                                                                \
    static inline void rae_store_##SUFFIX(TYPE *address, TYPE value, int pe) {                                       \
        (void)pe;                                                                                                    \
        *(volatile TYPE *)address = value;                                                                           \
    }

RAE_ALL(int32_t, w)
RAE_ALL(int64_t, d)
RAE_ACCESS(b, int8_t)
RAE_ACCESS(h, int16_t)
RAE_ACCESS(w, int32_t)
RAE_ACCESS(d, int64_t)
#endif

static inline void rae_fence(void) { __asm__ volatile("fence rw, rw" ::: "memory"); }

#endif
