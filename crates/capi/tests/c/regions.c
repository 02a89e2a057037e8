/* Locks over regions, from two nodes: what they are for, and every function once as it is not meant, as in functions.c. */
#include <pthread.h>

#include "refused.h"

#define ROOM 4096
#define MOST 64

static rackmem_thread there;

/* Every region has a version, of which all else follows: how many there are, and how long each is. */
static uint64_t version_of(rackmem_rwlock lock) {
    size_t count, len;
    void *data;
    uint64_t version = 0;
    DO(rackmem_rwlock_regions(lock, &count));
    for (size_t number = 0; number < count; number++) {
        DO(rackmem_rwlock_region(lock, number, &data, &len));
        if (number == 0) {
            version = *(uint64_t *)data;
        }
        CHECK((uintptr_t)data % 8 == 0 && len == 8 * (1 + (version + number) % 13));
        for (size_t word = 0; word < len / 8; word++) {
            CHECK(((uint64_t *)data)[word] == version);
        }
    }
    CHECK(count == (version == 0 ? 0 : 1 + version % 9));
    return version;
}

#define TIMES 100
#define THREADS 4
static uint64_t address;

static void *change(void *number) {
    rackmem_thread mine;
    rackmem_rwlock lock;
    DO(rackmem_thread_open(rack, (uint16_t)((size_t)number % 2), &mine));
    DO(rackmem_rwlock_open_regions(mine, address, ROOM, &lock));
    for (int time = 0; time < TIMES; time++) {
        void *unused, *data;
        const void *seen;
        size_t count, len, made;
        DO(rackmem_rwlock_write(lock, &unused));
        uint64_t next = version_of(lock) + 1;
        DO(rackmem_rwlock_regions(lock, &count));
        for (; count > 1 + next % 9; count--) {
            DO(rackmem_rwlock_region_remove(lock, 0));
        }
        for (; count < 1 + next % 9; count++) {
            DO(rackmem_rwlock_region_add(lock, 8, &made));
            CHECK(made == count);
        }
        for (size_t region = 0; region < count; region++) {
            GOOD(rackmem_rwlock_region_resize(lock, region, 8 * (1 + (next + region) % 13)));
            DO(rackmem_rwlock_region(lock, region, &data, &len));
            for (size_t word = 0; word < len / 8; word++) {
                ((uint64_t *)data)[word] = next;
            }
        }
        DO(rackmem_rwlock_unlock(lock));
        DO(rackmem_rwlock_read(lock, &seen));
        CHECK(version_of(lock) >= next);
        DO(rackmem_rwlock_unlock(lock));
    }
    DO(rackmem_thread_close(mine));
    return NULL;
}

static void nobody_sees_regions_of_two_versions(void) {
    pthread_t threads[THREADS];
    rackmem_rwlock lock;
    const void *seen;
    GOOD(rackmem_rwlock_create_regions(thread, 1, ROOM, &lock));
    CHECK(rackmem_rwlock_len(lock) == ROOM);
    address = rackmem_rwlock_address(lock);
    for (size_t number = 0; number < THREADS; number++) {
        CHECK(pthread_create(&threads[number], NULL, change, (void *)number) == 0);
    }
    for (size_t number = 0; number < THREADS; number++) {
        CHECK(pthread_join(threads[number], NULL) == 0);
    }
    DO(rackmem_rwlock_read(lock, &seen));
    CHECK(version_of(lock) == THREADS * TIMES);
    DO(rackmem_rwlock_unlock(lock));
    DO(rackmem_rwlock_free(lock));
}

/* The last region of a lock that is held. */
static char *last(rackmem_rwlock lock, size_t *len) {
    size_t count;
    void *data;
    DO(rackmem_rwlock_regions(lock, &count));
    DO(rackmem_rwlock_region(lock, count - 1, &data, len));
    return (char *)data;
}

/* Memory goes from one lock to another one, and its bytes with it. */
static void memory_is_guarded_by_one_lock_and_then_by_another(void) {
    rackmem_rwlock first, second, theirs;
    uint64_t memory, blocks;
    void *data;
    size_t len, count, made;
    GOOD(rackmem_alloc_guarded(thread, 100, 1, &memory));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_alloc_guarded(thread, 100, 99, &blocks));
    CHECK(blocks == 0);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_alloc_guarded(thread, 100, 1, NULL));
    DO(rackmem_rwlock_create_regions(thread, 0, ROOM, &first));
    DO(rackmem_rwlock_create_regions(thread, 1, ROOM, &second));
    DO(rackmem_rwlock_write(first, &data));
    GOOD(rackmem_rwlock_guard(first, memory, 100));
    char *bytes = last(first, &len);
    CHECK(len == 100);
    memset(bytes, 'a', len);

    /* What cannot be guarded: then the list is as it was. */
    WRONG(RACKMEM_OVERLAPS, rackmem_rwlock_guard(first, memory, 100));
    WRONG(RACKMEM_OVERLAPS, rackmem_rwlock_guard(first, memory + 96, 8));
    WRONG(RACKMEM_OVERLAPS, rackmem_rwlock_guard(first, rackmem_rwlock_address(first), ROOM));
    WRONG(RACKMEM_OVERLAPS, rackmem_rwlock_guard(first, rackmem_rwlock_address(first) + 32, 8));
    DO(rackmem_alloc(thread, 4096, 1, &blocks));
    WRONG(RACKMEM_UNALLOCATED, rackmem_rwlock_guard(first, blocks, 64));
    DO(rackmem_free(thread, blocks));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_guard(first, memory + 1, 8));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_guard(first, (uint64_t)99 << 48, 8));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_region_resize(first, 0, 8));
    WRONG(RACKMEM_NOT_FOUND, rackmem_rwlock_unguard(first, memory + 8));
    DO(rackmem_rwlock_regions(first, &count));
    CHECK(count == 1);

    GOOD(rackmem_rwlock_unguard(first, memory));
    WRONG(RACKMEM_NOT_FOUND, rackmem_rwlock_unguard(first, memory));
    /* Held, another lock over that memory is waited for by whoever guards it: not by the thread that holds it. */
    DO(rackmem_rwlock_write(second, &data));
    WRONG(RACKMEM_DEADLOCK, rackmem_rwlock_guard(first, rackmem_rwlock_address(second), 8));
    DO(rackmem_rwlock_unlock(first));
    GOOD(rackmem_rwlock_guard(second, memory, 100));
    DO(rackmem_rwlock_unlock(second));

    /* The other node finds it there. Freed while it is guarded, it cannot go back, and the lock keeps the bytes. */
    DO(rackmem_rwlock_open_regions(there, rackmem_rwlock_address(second), ROOM, &theirs));
    DO(rackmem_rwlock_write(theirs, &data));
    bytes = last(theirs, &len);
    CHECK(len == 100 && bytes[0] == 'a' && bytes[99] == 'a');
    GOOD(rackmem_free_guarded(there, memory, 100));
    WRONG(RACKMEM_UNALLOCATED, rackmem_free_guarded(there, memory, 100));
    WRONG(RACKMEM_UNALLOCATED, rackmem_rwlock_unguard(theirs, memory));
    WRONG(RACKMEM_UNALLOCATED, rackmem_rwlock_guard(theirs, memory + 4096 * 8, 100));
    bytes = last(theirs, &len);
    CHECK(len == 100 && bytes[99] == 'a');
    GOOD(rackmem_rwlock_region_remove(theirs, 0));
    GOOD(rackmem_rwlock_region_add(theirs, 1, &made));
    DO(rackmem_rwlock_unlock(theirs));
    DO(rackmem_rwlock_free(theirs));
    DO(rackmem_rwlock_close(second));
    DO(rackmem_rwlock_free(first));
}

/* 65 regions, and too long ones. */
static void a_list_is_bounded(void) {
    rackmem_rwlock lock;
    uint64_t memory;
    void *data;
    size_t made, len;
    DO(rackmem_alloc_guarded(thread, 8, 0, &memory));
    DO(rackmem_rwlock_create_regions(thread, 0, ROOM, &lock));
    DO(rackmem_rwlock_write(lock, &data));
    for (size_t number = 0; number < MOST; number++) {
        DO(rackmem_rwlock_region_add(lock, 8, &made));
        CHECK(made == number);
    }
    WRONG(RACKMEM_TOO_MANY, rackmem_rwlock_region_add(lock, 0, &made));
    WRONG(RACKMEM_TOO_MANY, rackmem_rwlock_guard(lock, memory, 8));
    DO(rackmem_rwlock_region_remove(lock, 63));
    WRONG(RACKMEM_TOO_LONG, rackmem_rwlock_region_add(lock, ROOM, &made));
    WRONG(RACKMEM_TOO_LONG, rackmem_rwlock_region_add(lock, SIZE_MAX, &made));
    WRONG(RACKMEM_TOO_LONG, rackmem_rwlock_region_resize(lock, 62, ROOM));
    WRONG(RACKMEM_TOO_LONG, rackmem_rwlock_region_resize(lock, 62, SIZE_MAX));
    WRONG(RACKMEM_NOT_FOUND, rackmem_rwlock_region_resize(lock, 63, 8));
    WRONG(RACKMEM_NOT_FOUND, rackmem_rwlock_region_remove(lock, 63));
    WRONG(RACKMEM_NOT_FOUND, rackmem_rwlock_region(lock, 63, &data, &len));
    CHECK(data == NULL && len == 0);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_region(lock, 0, NULL, &len));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_region(lock, 0, &data, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_region_add(lock, 0, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_regions(lock, NULL));
    DO(rackmem_rwlock_region(lock, 62, &data, &len));
    CHECK(len == 8);
    DO(rackmem_rwlock_unlock(lock));
    DO(rackmem_rwlock_free(lock));
    DO(rackmem_free_guarded(thread, memory, 8));
}

/* A list is changed by whoever holds the lock for writing, through the handle that holds it, and of locks that have one. */
static void a_list_is_changed_by_its_writer_only(rackmem_thread closed_thread) {
    rackmem_rwlock lock, second, bytes, closed, none;
    uint64_t memory;
    const void *seen;
    void *data;
    size_t made, count, len;
    DO(rackmem_alloc_guarded(thread, 8, 0, &memory));
    DO(rackmem_rwlock_create_regions(thread, 0, ROOM, &lock));
    GOOD(rackmem_rwlock_open_regions(thread, rackmem_rwlock_address(lock), ROOM, &second));
    DO(rackmem_rwlock_create(thread, 0, 64, &bytes));
    DO(rackmem_rwlock_open(thread, rackmem_rwlock_address(bytes), 64, &closed));
    DO(rackmem_rwlock_close(closed));
    for (int how = 0; how < 3; how++) {
        if (how == 1) {
            DO(rackmem_rwlock_write(lock, &data));
            DO(rackmem_rwlock_region_add(lock, 8, &made));
            DO(rackmem_rwlock_unlock(lock));
            DO(rackmem_rwlock_read(lock, &seen));
            GOOD(rackmem_rwlock_regions(lock, &count));
            GOOD(rackmem_rwlock_region(lock, 0, &data, &len));
            CHECK(count == 1 && len == 8);
        }
        rackmem_rwlock through = how == 2 ? second : lock;
        WRONG(RACKMEM_NOT_HELD, rackmem_rwlock_region_add(through, 8, &made));
        WRONG(RACKMEM_NOT_HELD, rackmem_rwlock_region_resize(through, 0, 8));
        WRONG(RACKMEM_NOT_HELD, rackmem_rwlock_region_remove(through, 0));
        WRONG(RACKMEM_NOT_HELD, rackmem_rwlock_guard(through, memory, 8));
        WRONG(RACKMEM_NOT_HELD, rackmem_rwlock_unguard(through, memory));
        if (how != 1) {
            WRONG(RACKMEM_NOT_HELD, rackmem_rwlock_regions(through, &count));
            WRONG(RACKMEM_NOT_HELD, rackmem_rwlock_region(through, 0, &data, &len));
        }
    }
    DO(rackmem_rwlock_unlock(lock));
    /* A lock over bytes has no list, and stays held. */
    DO(rackmem_rwlock_write(bytes, &data));
    WRONG(RACKMEM_INDETERMINATE, rackmem_rwlock_region_add(bytes, 8, &made));
    WRONG(RACKMEM_INDETERMINATE, rackmem_rwlock_guard(bytes, memory, 8));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_map(bytes));
    DO(rackmem_rwlock_unlock(bytes));
    /* Nodes of one process have no addresses of their own. */
    WRONG(RACKMEM_CANNOT_OPEN, rackmem_rwlock_map(lock));
    DO(rackmem_rwlock_read(bytes, &seen));
    WRONG(RACKMEM_INDETERMINATE, rackmem_rwlock_regions(bytes, &count));
    DO(rackmem_rwlock_unlock(bytes));
    /* Nor is one over regions one over bytes. */
    DO(rackmem_rwlock_open(thread, rackmem_rwlock_address(lock), ROOM + 16, &none));
    WRONG(RACKMEM_UNALLOCATED, rackmem_rwlock_write(none, &data));
    DO(rackmem_rwlock_close(none));

    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_create_regions(thread, 99, ROOM, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_create_regions(thread, 0, SIZE_MAX, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_create_regions(thread, 0, ROOM, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_open_regions(thread, 1, ROOM, &none));
    CHECK(none.id == 0);
    BAD(rackmem_thread, closed_thread, rackmem_rwlock_create_regions(bad, 0, ROOM, &none));
    BAD(rackmem_thread, closed_thread, rackmem_rwlock_open_regions(bad, memory, ROOM, &none));
    BAD(rackmem_thread, closed_thread, rackmem_alloc_guarded(bad, 8, 0, &memory));
    BAD(rackmem_thread, closed_thread, rackmem_free_guarded(bad, 4096, 8));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_regions(bad, &count));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_region(bad, 0, &data, &len));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_region_add(bad, 8, &made));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_region_resize(bad, 0, 8));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_region_remove(bad, 0));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_guard(bad, 4096, 8));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_unguard(bad, 4096));
    DO(rackmem_rwlock_free(bytes));
    DO(rackmem_rwlock_free(lock));
    DO(rackmem_rwlock_close(second));
}

static void regions_with_a_name_are_found(rackmem_thread closed_thread) {
    rackmem_rwlock mine, theirs, none;
    void *data;
    const void *seen;
    size_t made, count;
    WRONG(RACKMEM_NOT_FOUND, rackmem_rwlock_named_regions(thread, "regions", RACKMEM_OPEN, 0, &none));
    GOOD(rackmem_rwlock_named_regions(thread, "regions", RACKMEM_OPEN_OR_CREATE, 1000, &mine));
    WRONG(RACKMEM_EXISTS, rackmem_rwlock_named_regions(there, "regions", RACKMEM_CREATE, 1000, &none));
    WRONG(RACKMEM_DIFFERS, rackmem_rwlock_named_regions(there, "regions", RACKMEM_OPEN, 992, &none));
    WRONG(RACKMEM_DIFFERS, rackmem_rwlock_named(there, "regions", RACKMEM_OPEN, NULL, 1016, NULL, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_named_regions(there, "regions", 9, 0, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_named_regions(there, NULL, RACKMEM_OPEN, 0, &none));
    CHECK(none.id == 0);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_named_regions(there, "regions", RACKMEM_OPEN, 0, NULL));
    BAD(rackmem_thread, closed_thread, rackmem_rwlock_named_regions(bad, "regions", RACKMEM_OPEN, 0, &none));
    GOOD(rackmem_rwlock_named_regions(there, "regions", RACKMEM_OPEN, 0, &theirs));
    CHECK(rackmem_rwlock_len(theirs) == 1000);
    DO(rackmem_rwlock_write(mine, &data));
    DO(rackmem_rwlock_region_add(mine, 8, &made));
    DO(rackmem_rwlock_unlock(mine));
    DO(rackmem_rwlock_read(theirs, &seen));
    DO(rackmem_rwlock_regions(theirs, &count));
    CHECK(count == 1);
    DO(rackmem_rwlock_unlock(theirs));
    DO(rackmem_name_remove(thread, "regions"));
    WRONG(RACKMEM_UNALLOCATED, rackmem_rwlock_read(theirs, &seen));
    DO(rackmem_rwlock_close(mine));
    DO(rackmem_rwlock_close(theirs));
}

/* A thread that is closed while it changes regions poisons them; they can be repaired. */
static void regions_are_poisoned_like_all_data(void) {
    rackmem_thread other;
    rackmem_rwlock lock, theirs;
    void *data;
    size_t made, count;
    DO(rackmem_rwlock_create_regions(thread, 0, ROOM, &lock));
    DO(rackmem_thread_open(rack, 1, &other));
    DO(rackmem_rwlock_open_regions(other, rackmem_rwlock_address(lock), ROOM, &theirs));
    DO(rackmem_rwlock_write(theirs, &data));
    DO(rackmem_rwlock_region_add(theirs, 8, &made));
    DO(rackmem_thread_close(other));
    CHECK(rackmem_rwlock_write(lock, &data) == RACKMEM_POISONED);
    DO(rackmem_rwlock_regions(lock, &count));
    CHECK(count == 1);
    DO(rackmem_rwlock_region_remove(lock, 0));
    DO(rackmem_rwlock_set_poisoned(lock, false));
    DO(rackmem_rwlock_unlock(lock));
    DO(rackmem_rwlock_write(lock, &data));
    DO(rackmem_rwlock_unlock(lock));
    DO(rackmem_rwlock_free(lock));
}

int main(void) {
    rackmem_thread closed;
    DO(rackmem_open_embedded(2, 8 << 20, &rack));
    DO(rackmem_thread_open(rack, 0, &thread));
    DO(rackmem_thread_open(rack, 1, &there));
    DO(rackmem_thread_open(rack, 0, &closed));
    DO(rackmem_thread_close(closed));
    nobody_sees_regions_of_two_versions();
    memory_is_guarded_by_one_lock_and_then_by_another();
    a_list_is_bounded();
    a_list_is_changed_by_its_writer_only(closed);
    regions_with_a_name_are_found(closed);
    regions_are_poisoned_like_all_data();
    DO(rackmem_thread_close(there));
    DO(rackmem_thread_close(thread));
    DO(rackmem_close(rack));
    puts("ok");
    return 0;
}
