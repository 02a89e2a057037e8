/* The runtime of programs on a machine with RAE: the environment's calls, OpenSHMEM's names, and the little that kernels print
 * with.
 *
 * What must always hold: all PEs call collective functions in the same order; the symmetric heap has the same layout on each.
 */
#include <stdarg.h>

#include "shmem.h"
#include "stdio.h"
#include "stdlib.h"
#include "string.h"

/* tools/riscv/src/machine/environment.rs */
enum {
    WRITE = 64, EXIT = 93, EXIT_ALL = 94, NODE = 1000, NODES = 1001, CLOCK = 1002, BARRIER = 1003, HEAP = 1004, MARK = 1005
};

struct pair {
    uint64_t first, second;
};

static struct pair call(uint64_t number, uint64_t x, uint64_t y, uint64_t z) {
    register uint64_t a0 __asm__("a0") = x;
    register uint64_t a1 __asm__("a1") = y;
    register uint64_t a2 __asm__("a2") = z;
    register uint64_t a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0), "+r"(a1) : "r"(a2), "r"(a7) : "memory");
    return (struct pair){a0, a1};
}

static int me, all;
static uint64_t heap, heap_end;

void shmem_init(void) {
    me = (int)call(NODE, 0, 0, 0).first;
    all = (int)call(NODES, 0, 0, 0).first;
    struct pair range = call(HEAP, 0, 0, 0);
    heap = range.first;
    heap_end = range.second;
    shmem_barrier_all();
}

void shmem_finalize(void) { shmem_barrier_all(); }

void shmem_global_exit(int code) {
    for (;;)
        call(EXIT_ALL, (uint64_t)code, 0, 0);
}

int shmem_my_pe(void) { return me; }
int shmem_n_pes(void) { return all; }
static void meet(void) { call(BARRIER, 0, 0, 0); }
void rae_mark(int number) { call(MARK, (uint64_t)number, 0, 0); }
void shmem_barrier_all(void) {
    RAE_ROUTINE(BARRIER_ALL);
    meet();
}
uint64_t rae_clock(void) { return call(CLOCK, 0, 0, 0).first; }

/* Aligned to lines, so that what is allocated apart is apart. Nothing is reused. */
void *shmem_malloc(size_t bytes) {
    uint64_t at = heap, end = at + (bytes + 63) / 64 * 64;
    void *found = 0;
    if (end >= at && end <= heap_end) {
        heap = end;
        found = (void *)at;
    }
    shmem_barrier_all();
    return found;
}

/* The heap is zero at the beginning, and never reused. */
void *shmem_calloc(size_t count, size_t bytes) { return shmem_malloc(count * bytes); }

void shmem_free(void *pointer) { (void)pointer; shmem_barrier_all(); }

void shmem_putmem(void *to, const void *from, size_t bytes, int pe) {
    RAE_ROUTINE_OF(PUTMEM, bytes);
    char *remote = to;
    const char *local = from;
    for (; bytes >= 8 && ((uint64_t)remote | (uint64_t)local) % 8 == 0; bytes -= 8, remote += 8, local += 8)
        rae_store_d((int64_t *)remote, *(const int64_t *)local, pe);
    for (; bytes > 0; bytes--, remote++, local++)
        rae_store_b((int8_t *)remote, (int8_t)*local, pe);
}

void shmem_getmem(void *to, const void *from, size_t bytes, int pe) {
    RAE_ROUTINE_OF(GETMEM, bytes);
    char *local = to;
    const char *remote = from;
    for (; bytes >= 8 && ((uint64_t)remote | (uint64_t)local) % 8 == 0; bytes -= 8, remote += 8, local += 8)
        *(int64_t *)local = rae_load_d((const int64_t *)remote, pe);
    for (; bytes > 0; bytes--, remote++, local++)
        *local = (char)rae_load_b((const int8_t *)remote, pe);
}

/* Each PE combines its values into PE 0's `to` by remote atomics, and gets the result from there. */
#define REDUCTION(NAME, TYPE, WORD, SUFFIX, OPERATION)                                                               \
    void shmem_##NAME##_##OPERATION##_to_all(TYPE *to, TYPE *from, int count, int start, int stride, int size,       \
                                             TYPE *work, long *sync) {                                               \
        (void)start, (void)stride, (void)size, (void)work, (void)sync;                                               \
        RAE_ROUTINE_OF(TO_ALL, (size_t)count * sizeof *to);                                                          \
        meet();                                                                                                     \
        if (me == 0)                                                                                                 \
            for (int i = 0; i < count; i++)                                                                          \
                to[i] = from[i];                                                                                     \
        meet();                                                                                                     \
        if (me != 0)                                                                                                 \
            for (int i = 0; i < count; i++)                                                                          \
                (void)rae_fetch_##OPERATION##_##SUFFIX((WORD *)&to[i], (WORD)from[i], 0);                  \
        meet();                                                                                                     \
        if (me != 0)                                                                                                 \
            for (int i = 0; i < count; i++)                                                                          \
                to[i] = (TYPE)rae_load_##SUFFIX((WORD *)&to[i], 0);                                                  \
        meet();                                                                                                     \
    }
#define REDUCTIONS(NAME, TYPE, WORD, SUFFIX)                                                                         \
    REDUCTION(NAME, TYPE, WORD, SUFFIX, sum)                                                                         \
    REDUCTION(NAME, TYPE, WORD, SUFFIX, min)                                                                         \
    REDUCTION(NAME, TYPE, WORD, SUFFIX, max)
#define rae_fetch_sum_w rae_fetch_add_w
#define rae_fetch_sum_d rae_fetch_add_d

REDUCTIONS(int, int, int32_t, w)
REDUCTIONS(long, long, int64_t, d)
REDUCTIONS(longlong, long long, int64_t, d)

void exit(int code) {
    for (;;)
        call(EXIT, (uint64_t)code, 0, 0);
}

void *memcpy(void *to, const void *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        ((char *)to)[i] = ((const char *)from)[i];
    return to;
}

void *memset(void *to, int value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        ((char *)to)[i] = (char)value;
    return to;
}

int strcmp(const char *one, const char *other) {
    while (*one && *one == *other)
        one++, other++;
    return (unsigned char)*one - (unsigned char)*other;
}

unsigned long strtoul(const char *text, char **end, int base) {
    unsigned long value = 0;
    while (*text >= '0' && *text <= '9')
        value = value * (unsigned long)base + (unsigned long)(*text++ - '0');
    if (end)
        *end = (char *)text;
    return value;
}

/* One call is one write: lines of several PEs do not mix. */
struct line {
    char text[256];
    size_t length;
};

static void flush(struct line *line) {
    call(WRITE, 1, (uint64_t)line->text, line->length);
    line->length = 0;
}

static void put(struct line *line, char c) {
    if (line->length == sizeof line->text)
        flush(line);
    line->text[line->length++] = c;
}

static void put_number(struct line *line, uint64_t value, unsigned base, int is_negative, int width, char fill) {
    char digits[24];
    int count = 0;
    do {
        digits[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    for (int i = count + is_negative; i < width; i++)
        put(line, fill);
    if (is_negative)
        put(line, '-');
    while (count)
        put(line, digits[--count]);
}

int printf(const char *format, ...) {
    struct line line = {.length = 0};
    va_list arguments;
    va_start(arguments, format);
    for (; *format; format++) {
        if (*format != '%') {
            put(&line, *format);
            continue;
        }
        char fill = *++format == '0' ? '0' : ' ';
        int width = 0, is_long = 0;
        for (; *format >= '0' && *format <= '9'; format++)
            width = width * 10 + (*format - '0');
        for (; *format == 'l' || *format == 'z'; format++)
            is_long = 1;
        if (*format == 'd' || *format == 'i') {
            int64_t value = is_long ? va_arg(arguments, int64_t) : va_arg(arguments, int);
            put_number(&line, value < 0 ? -(uint64_t)value : (uint64_t)value, 10, value < 0, width, fill);
        } else if (*format == 'u' || *format == 'x') {
            uint64_t value = is_long ? va_arg(arguments, uint64_t) : va_arg(arguments, unsigned);
            put_number(&line, value, *format == 'u' ? 10 : 16, 0, width, fill);
        } else if (*format == 's') {
            for (const char *text = va_arg(arguments, const char *); *text; text++)
                put(&line, *text);
        } else if (*format == 'c') {
            put(&line, (char)va_arg(arguments, int));
        } else if (*format) {
            put(&line, *format);
        } else {
            break;
        }
    }
    va_end(arguments);
    flush(&line);
    return 0;
}

int puts(const char *text) { return printf("%s\n", text); }
