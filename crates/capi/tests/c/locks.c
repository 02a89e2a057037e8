/* Locks that carry their data, from several threads on several nodes of a rack inside this process. */
#include <pthread.h>

#include "check.h"

#define NODES 3
#define THREADS 6
#define TIMES 500
#define WORDS 16

static rackmem_rack rack;
static uint64_t address;

/* Counts in all words, and looks whether they are one. */
static void *count(void *number) {
    uint16_t node = (uint16_t)((size_t)number % NODES);
    rackmem_thread thread;
    rackmem_rwlock lock;
    DO(rackmem_thread_open(rack, node, &thread));
    DO(rackmem_rwlock_open(thread, address, WORDS * sizeof(uint64_t), &lock));
    for (int time = 0; time < TIMES; time++) {
        void *data;
        DO(rackmem_rwlock_write(lock, &data));
        for (int word = 0; word < WORDS; word++) {
            ((uint64_t *)data)[word]++;
        }
        DO(rackmem_rwlock_unlock(lock));
        const void *seen;
        DO(rackmem_rwlock_read(lock, &seen));
        for (int word = 1; word < WORDS; word++) {
            CHECK(((const uint64_t *)seen)[word] == *(const uint64_t *)seen);
        }
        DO(rackmem_rwlock_unlock(lock));
    }
    DO(rackmem_rwlock_close(lock));
    DO(rackmem_thread_close(thread));
    return NULL;
}

static void counters_miss_no_increment(rackmem_thread thread) {
    rackmem_rwlock lock;
    DO(rackmem_rwlock_create(thread, 1, WORDS * sizeof(uint64_t), &lock));
    CHECK(rackmem_rwlock_len(lock) == WORDS * sizeof(uint64_t));
    address = rackmem_rwlock_address(lock);
    pthread_t threads[THREADS];
    for (size_t number = 0; number < THREADS; number++) {
        CHECK(pthread_create(&threads[number], NULL, count, (void *)number) == 0);
    }
    for (size_t number = 0; number < THREADS; number++) {
        CHECK(pthread_join(threads[number], NULL) == 0);
    }
    void *data;
    uint64_t fence;
    DO(rackmem_rwlock_write(lock, &data));
    CHECK(*(uint64_t *)data == THREADS * TIMES);
    DO(rackmem_rwlock_fence(lock, &fence));
    CHECK(fence >= THREADS * TIMES);
    DO(rackmem_rwlock_unlock(lock));
    rackmem_rwlock other;
    DO(rackmem_rwlock_open(thread, address, WORDS * sizeof(uint64_t), &other));
    DO(rackmem_rwlock_free(lock));
    CHECK(rackmem_rwlock_write(other, &data) == RACKMEM_UNALLOCATED);
    CHECK(data == NULL && strlen(rackmem_message()) > 0);
    DO(rackmem_rwlock_close(other));
}

static void whoever_does_not_wait_is_told(rackmem_thread first, rackmem_thread second) {
    rackmem_rwlock mine, again, theirs;
    void *data;
    const void *seen;
    /* A lock need not guard anything. */
    DO(rackmem_rwlock_create(first, 2, 0, &mine));
    DO(rackmem_rwlock_open(first, rackmem_rwlock_address(mine), 0, &again));
    DO(rackmem_rwlock_open(second, rackmem_rwlock_address(mine), 0, &theirs));
    DO(rackmem_rwlock_trywrite(mine, &data));
    CHECK(rackmem_rwlock_tryread(theirs, &seen) == RACKMEM_BUSY);
    CHECK(rackmem_rwlock_timedread(theirs, 1000000, &seen) == RACKMEM_BUSY);
    CHECK(rackmem_rwlock_timedwrite(theirs, 1000000, &data) == RACKMEM_BUSY);
    CHECK(rackmem_rwlock_unlock(theirs) == RACKMEM_NOT_HELD);
    CHECK(rackmem_rwlock_write(mine, &data) == RACKMEM_DEADLOCK);
    CHECK(rackmem_rwlock_write(again, &data) == RACKMEM_DEADLOCK);
    CHECK(rackmem_rwlock_free(again) == RACKMEM_DEADLOCK);
    CHECK(rackmem_rwlock_unlock(again) == RACKMEM_NOT_HELD);
    DO(rackmem_rwlock_unlock(mine));
    DO(rackmem_rwlock_read(mine, &seen));
    DO(rackmem_rwlock_read(theirs, &seen));
    CHECK(rackmem_rwlock_trywrite(theirs, &data) == RACKMEM_DEADLOCK);
    CHECK(rackmem_rwlock_set_poisoned(theirs, true) == RACKMEM_NOT_HELD);
    DO(rackmem_rwlock_unlock(mine));
    DO(rackmem_rwlock_unlock(theirs));
    DO(rackmem_rwlock_timedwrite(theirs, 10000000000, &data));
    DO(rackmem_rwlock_unlock(theirs));
    DO(rackmem_rwlock_free(theirs));
    DO(rackmem_rwlock_close(again));
    DO(rackmem_rwlock_close(mine));
}

static void a_thread_that_is_closed_while_it_writes_poisons_the_data(rackmem_thread thread) {
    rackmem_thread other;
    rackmem_rwlock lock, theirs;
    void *data;
    const void *seen;
    DO(rackmem_rwlock_create(thread, 0, 8, &lock));
    DO(rackmem_thread_open(rack, 1, &other));
    DO(rackmem_rwlock_open(other, rackmem_rwlock_address(lock), 8, &theirs));
    DO(rackmem_rwlock_write(theirs, &data));
    *(uint64_t *)data = 7;
    DO(rackmem_thread_close(other));
    CHECK(rackmem_rwlock_unlock(theirs) == RACKMEM_BAD_HANDLE);
    for (int time = 0; time < 2; time++) {
        /* The second time the lock is here already. */
        CHECK(rackmem_rwlock_read(lock, &seen) == RACKMEM_POISONED);
        DO(rackmem_rwlock_unlock(lock));
        CHECK(rackmem_rwlock_write(lock, &data) == RACKMEM_POISONED);
        CHECK(data != NULL && *(uint64_t *)data == 7);
        DO(rackmem_rwlock_unlock(lock));
    }
    CHECK(rackmem_rwlock_write(lock, &data) == RACKMEM_POISONED);
    DO(rackmem_rwlock_set_poisoned(lock, false));
    DO(rackmem_rwlock_unlock(lock));
    DO(rackmem_rwlock_write(lock, &data));
    DO(rackmem_rwlock_unlock(lock));
    DO(rackmem_rwlock_close(lock));
}

static rackmem_thread shared;
static rackmem_rwlock contended;

static void *wait_for_the_lock(void *unused) {
    const void *seen;
    enum rackmem_status status;
    do {
        /* The other one may be inside at this moment: then this one is refused. */
        status = rackmem_rwlock_timedread(contended, 60000000000, &seen);
    } while (status == RACKMEM_WRONG_THREAD);
    CHECK(status == RACKMEM_OK);
    return unused;
}

/* While one OS thread waits in a call, another one that uses the same rackmem_thread is refused. */
static void a_second_os_thread_is_refused(rackmem_thread holder) {
    rackmem_rwlock held, other;
    void *data;
    const void *seen;
    uint64_t word;
    pthread_t waiting;
    DO(rackmem_rwlock_create(holder, 0, 8, &held));
    DO(rackmem_thread_open(rack, 1, &shared));
    DO(rackmem_rwlock_open(shared, rackmem_rwlock_address(held), 8, &contended));
    DO(rackmem_rwlock_create(shared, 1, 8, &other));
    DO(rackmem_rwlock_write(held, &data));
    CHECK(pthread_create(&waiting, NULL, wait_for_the_lock, NULL) == 0);
    enum rackmem_status status;
    do {
        status = rackmem_flush(shared);
    } while (status == RACKMEM_OK);
    CHECK(status == RACKMEM_WRONG_THREAD && strstr(rackmem_message(), "rackmem_thread_open") != NULL);
    CHECK(rackmem_read_word(shared, 4096, &word) == RACKMEM_WRONG_THREAD);
    CHECK(rackmem_rwlock_read(other, &seen) == RACKMEM_WRONG_THREAD);
    CHECK(rackmem_thread_close(shared) == RACKMEM_WRONG_THREAD);
    DO(rackmem_rwlock_unlock(held));
    CHECK(pthread_join(waiting, NULL) == 0);
    /* When it is back, this one may. */
    DO(rackmem_rwlock_unlock(contended));
    DO(rackmem_thread_close(shared));
    DO(rackmem_rwlock_free(held));
}

int main(void) {
    rackmem_thread first, second;
    CHECK(strcmp(rackmem_message(), "") == 0);
    DO(rackmem_open_embedded(NODES, 8 << 20, &rack));
    DO(rackmem_thread_open(rack, 0, &first));
    DO(rackmem_thread_open(rack, 1, &second));
    counters_miss_no_increment(first);
    whoever_does_not_wait_is_told(first, second);
    a_thread_that_is_closed_while_it_writes_poisons_the_data(first);
    a_second_os_thread_is_refused(first);
    DO(rackmem_thread_close(second));
    DO(rackmem_thread_close(first));
    DO(rackmem_close(rack));
    puts("ok");
    return 0;
}
