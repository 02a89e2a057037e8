/* Uses the locks of rackmem from C, from several threads on several nodes. Prints what went wrong, and ends with 1. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rackmem.h"

#define NODES 3
#define THREADS 6
#define TIMES 500
#define WORDS 16

static void check_at(int line, const char *what, int holds) {
    if (!holds) {
        fprintf(stderr, "line %d: %s does not hold: %s\n", line, what, rackmem_message());
        exit(1);
    }
}
#define CHECK(what) check_at(__LINE__, #what, (what))

static rackmem_rack *rack;
static uint64_t address;

/* Counts in all words, and looks whether they are one. */
static void *count(void *number) {
    uint16_t node = (uint16_t)((size_t)number % NODES);
    rackmem_thread *thread;
    rackmem_rwlock *lock;
    CHECK(rackmem_thread_open(rack, node, &thread) == RACKMEM_OK);
    CHECK(rackmem_rwlock_open(thread, address, WORDS * sizeof(uint64_t), &lock) == RACKMEM_OK);
    for (int time = 0; time < TIMES; time++) {
        void *data;
        CHECK(rackmem_rwlock_write(lock, thread, &data) == RACKMEM_OK);
        uint64_t *words = data;
        for (int word = 0; word < WORDS; word++) {
            words[word]++;
        }
        CHECK(rackmem_rwlock_unlock(lock, thread) == RACKMEM_OK);
        const void *seen;
        CHECK(rackmem_rwlock_read(lock, thread, &seen) == RACKMEM_OK);
        const uint64_t *read = seen;
        for (int word = 1; word < WORDS; word++) {
            CHECK(read[word] == read[0]);
        }
        CHECK(rackmem_rwlock_unlock(lock, thread) == RACKMEM_OK);
    }
    rackmem_rwlock_close(lock);
    rackmem_thread_close(thread);
    return NULL;
}

static void counters_miss_no_increment(rackmem_thread *thread) {
    rackmem_rwlock *lock;
    CHECK(rackmem_rwlock_create(thread, 1, WORDS * sizeof(uint64_t), &lock) == RACKMEM_OK);
    CHECK(rackmem_rwlock_len(lock) == WORDS * sizeof(uint64_t));
    address = rackmem_rwlock_address(lock);
    pthread_t threads[THREADS];
    for (size_t number = 0; number < THREADS; number++) {
        CHECK(pthread_create(&threads[number], NULL, count, (void *)number) == 0);
    }
    for (size_t number = 0; number < THREADS; number++) {
        CHECK(pthread_join(threads[number], NULL) == 0);
    }
    const void *data;
    CHECK(rackmem_rwlock_read(lock, thread, &data) == RACKMEM_OK);
    CHECK(*(const uint64_t *)data == THREADS * TIMES);
    CHECK(rackmem_rwlock_unlock(lock, thread) == RACKMEM_OK);
    CHECK(rackmem_rwlock_free(lock, thread) == RACKMEM_OK);
    CHECK(rackmem_rwlock_read(lock, thread, &data) == RACKMEM_NO_SUCH_LOCK);
    CHECK(data == NULL && strlen(rackmem_message()) > 0);
    rackmem_rwlock_close(lock);
}

static void whoever_does_not_wait_is_told(rackmem_thread *first, rackmem_thread *second) {
    rackmem_rwlock *lock;
    void *data;
    const void *seen;
    /* A lock need not guard anything. */
    CHECK(rackmem_rwlock_create(first, 2, 0, &lock) == RACKMEM_OK);
    CHECK(rackmem_rwlock_trywrite(lock, first, &data) == RACKMEM_OK);
    CHECK(rackmem_rwlock_tryread(lock, second, &seen) == RACKMEM_BUSY);
    CHECK(rackmem_rwlock_timedread(lock, second, 1000000, &seen) == RACKMEM_BUSY);
    CHECK(rackmem_rwlock_timedwrite(lock, second, 1000000, &data) == RACKMEM_BUSY);
    CHECK(rackmem_rwlock_unlock(lock, second) == RACKMEM_NOT_HELD);
    CHECK(rackmem_rwlock_write(lock, first, &data) == RACKMEM_DEADLOCK);
    CHECK(rackmem_rwlock_free(lock, first) == RACKMEM_DEADLOCK);
    CHECK(rackmem_rwlock_unlock(lock, first) == RACKMEM_OK);
    CHECK(rackmem_rwlock_read(lock, first, &seen) == RACKMEM_OK);
    CHECK(rackmem_rwlock_read(lock, second, &seen) == RACKMEM_OK);
    CHECK(rackmem_rwlock_trywrite(lock, second, &data) == RACKMEM_DEADLOCK);
    CHECK(rackmem_rwlock_set_poisoned(lock, second, true) == RACKMEM_NOT_HELD);
    CHECK(rackmem_rwlock_unlock(lock, first) == RACKMEM_OK);
    CHECK(rackmem_rwlock_unlock(lock, second) == RACKMEM_OK);
    CHECK(rackmem_rwlock_timedwrite(lock, second, 10000000000, &data) == RACKMEM_OK);
    CHECK(rackmem_rwlock_unlock(lock, second) == RACKMEM_OK);
    CHECK(rackmem_rwlock_free(lock, second) == RACKMEM_OK);
    rackmem_rwlock_close(lock);
}

static void a_thread_that_is_closed_while_it_writes_poisons_the_data(rackmem_thread *thread) {
    rackmem_thread *other;
    rackmem_rwlock *lock;
    void *data;
    CHECK(rackmem_rwlock_create(thread, 0, 8, &lock) == RACKMEM_OK);
    CHECK(rackmem_thread_open(rack, 1, &other) == RACKMEM_OK);
    CHECK(rackmem_rwlock_write(lock, other, &data) == RACKMEM_OK);
    *(uint64_t *)data = 7;
    rackmem_thread_close(other);
    CHECK(rackmem_rwlock_write(lock, thread, &data) == RACKMEM_POISONED);
    CHECK(data != NULL && *(uint64_t *)data == 7);
    CHECK(rackmem_rwlock_set_poisoned(lock, thread, false) == RACKMEM_OK);
    CHECK(rackmem_rwlock_unlock(lock, thread) == RACKMEM_OK);
    CHECK(rackmem_rwlock_write(lock, thread, &data) == RACKMEM_OK);
    CHECK(rackmem_rwlock_unlock(lock, thread) == RACKMEM_OK);
    rackmem_rwlock_close(lock);
}

static void what_makes_no_sense_is_refused(rackmem_thread *thread) {
    rackmem_rack *none;
    rackmem_thread *nobody;
    rackmem_rwlock *lock;
    void *data;
    CHECK(rackmem_open_embedded(0, 1 << 20, &none) == RACKMEM_CANNOT_OPEN && none == NULL);
    CHECK(strstr(rackmem_message(), "0 nodes") != NULL);
    CHECK(rackmem_open_embedded(2, 1 << 20, NULL) == RACKMEM_INVALID_ARGUMENT);
    CHECK(rackmem_join("no such file", 0, &none) == RACKMEM_CANNOT_OPEN);
    CHECK(rackmem_join(NULL, 0, &none) == RACKMEM_INVALID_ARGUMENT);
    CHECK(rackmem_thread_open(rack, NODES, &nobody) == RACKMEM_INVALID_ARGUMENT);
    CHECK(rackmem_rwlock_create(thread, NODES, 8, &lock) == RACKMEM_INVALID_ARGUMENT && lock == NULL);
    CHECK(rackmem_rwlock_create(thread, 0, 2 << 20, &lock) == RACKMEM_INVALID_ARGUMENT);
    CHECK(rackmem_rwlock_create(thread, 0, SIZE_MAX, &lock) == RACKMEM_INVALID_ARGUMENT);
    CHECK(rackmem_rwlock_open(thread, 3, 8, &lock) == RACKMEM_INVALID_ARGUMENT);
    CHECK(rackmem_rwlock_write(NULL, thread, &data) == RACKMEM_INVALID_ARGUMENT);
    CHECK(rackmem_rwlock_unlock(NULL, thread) == RACKMEM_INVALID_ARGUMENT);
    CHECK(rackmem_rwlock_address(NULL) == 0 && rackmem_rwlock_len(NULL) == 0);
    /* Nothing is closed. */
    rackmem_rwlock_close(NULL);
    rackmem_thread_close(NULL);
    rackmem_close(NULL);
}

int main(void) {
    rackmem_thread *first, *second;
    CHECK(strcmp(rackmem_message(), "") == 0);
    CHECK(rackmem_open_embedded(NODES, 8 << 20, &rack) == RACKMEM_OK);
    CHECK(rackmem_thread_open(rack, 0, &first) == RACKMEM_OK);
    CHECK(rackmem_thread_open(rack, 1, &second) == RACKMEM_OK);
    counters_miss_no_increment(first);
    whoever_does_not_wait_is_told(first, second);
    a_thread_that_is_closed_while_it_writes_poisons_the_data(first);
    what_makes_no_sense_is_refused(first);
    rackmem_thread_close(second);
    rackmem_thread_close(first);
    rackmem_close(rack);
    puts("ok");
    return 0;
}
