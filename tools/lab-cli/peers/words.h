/* What the programs that measure remote words have in common: clock, choice of words, latencies, what is printed.
 *
 * Process 0 has the words; the others operate on them, all at once. Each prints, for each measurement,
 *   <measurement> <process> <operations> <nanoseconds> <p50> <p99>
 * with nanoseconds of single operations, or 0 where single ones were not timed.
 *
 * Arguments: words, operations in flight, milliseconds for each measurement, and "idle", or "busy" if process 0 computes; or
 * "fetch" or "add", and process 1 does as many operations as may be in flight, on the first word, with nothing timed: inside
 * counted_operations, by whose name callgrind knows where to count.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Between two looks at the clock, where operations are not timed singly. */
#define CHUNK 256
/* For how long a process that computes does nothing else. */
#define SLICE 20000000ull
#define MOST_SAMPLES (1 << 20)

static uint64_t words = 1 << 20, in_flight = 8192, lasts = 300000000ull;
static int is_busy = 0;
static enum { NOT, FETCHES, ADDS } is_counted = NOT;
static int process = 0, processes = 1;

static uint32_t samples[MOST_SAMPLES];
static uint64_t sampled;
static uint64_t state;

static uint64_t nanos(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* A random one of the words, or the first. */
static inline uint64_t choose(int hot) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return hot ? 0 : (uint64_t)(((unsigned __int128)state * words) >> 64);
}

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void sample(uint64_t took) {
    if (sampled < MOST_SAMPLES) {
        samples[sampled++] = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
    }
}

static void report(const char *what, uint64_t operations, uint64_t took) {
    uint64_t p50 = 0, p99 = 0;
    if (sampled > 0) {
        qsort(samples, sampled, sizeof *samples, compare);
        p50 = samples[sampled / 2];
        p99 = samples[sampled - 1 - sampled / 100];
    }
    printf("%s %d %llu %llu %llu %llu\n", what, process, (unsigned long long)operations, (unsigned long long)took,
           (unsigned long long)p50, (unsigned long long)p99);
    fflush(stdout);
    sampled = 0;
}

/* Computes, and asks nothing of any library. */
static void compute(void) {
    static volatile uint64_t sink = 1;
    uint64_t began = nanos();
    while (nanos() - began < SLICE) {
        for (int i = 0; i < 1 << 12; i++) {
            sink = sink * 6364136223846793005ull + 1442695040888963407ull;
        }
    }
}

static void begin(int argc, char **argv) {
    if (argc > 1) words = strtoull(argv[1], NULL, 10);
    if (argc > 2) in_flight = strtoull(argv[2], NULL, 10);
    if (argc > 3) lasts = strtoull(argv[3], NULL, 10) * 1000000ull;
    if (argc > 4) is_busy = strcmp(argv[4], "busy") == 0;
    if (argc > 4) is_counted = strcmp(argv[4], "fetch") == 0 ? FETCHES : strcmp(argv[4], "add") == 0 ? ADDS : NOT;
    state = 0x9e3779b97f4a7c15ull + (uint64_t)process;
}

/* Does `one` for as long as a measurement lasts, in chunks with `wait` behind each; how many there were. */
#define RUN(what, chunk, one, wait)                                                                                                \
    do {                                                                                                                           \
        uint64_t operations = 0, first = nanos(), now = first;                                                                     \
        do {                                                                                                                       \
            for (uint64_t i = 0; i < (chunk); i++) {                                                                               \
                one;                                                                                                               \
            }                                                                                                                      \
            wait;                                                                                                                  \
            operations += (chunk);                                                                                                 \
            now = nanos();                                                                                                         \
        } while (now - first < lasts);                                                                                             \
        report(what, operations, now - first);                                                                                     \
    } while (0)

/* The same, with each timed by itself, for a third of the time. */
#define TIME(what, one)                                                                                                            \
    do {                                                                                                                           \
        uint64_t operations = 0, first = nanos(), last = first, now;                                                               \
        do {                                                                                                                       \
            one;                                                                                                                   \
            now = nanos();                                                                                                         \
            sample(now - last);                                                                                                    \
            last = now;                                                                                                            \
            operations++;                                                                                                          \
        } while (now - first < lasts / 3);                                                                                         \
        report(what, operations, now - first);                                                                                     \
    } while (0)
