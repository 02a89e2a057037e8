/* Operations that take no message, many times, for callgrind: what is inside `counted`. The argument says which. */
#include "check.h"

#define TIMES 4096

static rackmem_thread thread;
static rackmem_words words;
static rackmem_rwlock lock;
static uint64_t block;

#define COUNTED __attribute__((noinline)) void
COUNTED counted_read_hit(void);
COUNTED counted_fetch_add(void);
COUNTED counted_add(void);
COUNTED counted_lock(void);
COUNTED counted_write_hit(void);

COUNTED counted_read_hit(void) {
    uint64_t value;
    for (int time = 0; time < TIMES; time++) {
        if (rackmem_read_word(thread, block, &value) != RACKMEM_OK) {
            abort();
        }
    }
}

COUNTED counted_write_hit(void) {
    for (int time = 0; time < TIMES; time++) {
        if (rackmem_write_word(thread, block, (uint64_t)time) != RACKMEM_OK) {
            abort();
        }
    }
}

COUNTED counted_fetch_add(void) {
    uint64_t old;
    for (int time = 0; time < TIMES; time++) {
        if (rackmem_words_fetch_add(words, 3, 1, &old) != RACKMEM_OK) {
            abort();
        }
    }
}

COUNTED counted_add(void) {
    for (int time = 0; time < TIMES; time++) {
        if (rackmem_words_add(words, 3, 1) != RACKMEM_OK) {
            abort();
        }
    }
}

COUNTED counted_lock(void) {
    void *data;
    for (int time = 0; time < TIMES; time++) {
        if (rackmem_rwlock_write(lock, &data) != RACKMEM_OK) {
            abort();
        }
        ++*(uint64_t *)data;
        if (rackmem_rwlock_unlock(lock) != RACKMEM_OK) {
            abort();
        }
    }
}

int main(int count, char **arguments) {
    rackmem_rack rack;
    void *data;
    CHECK(count == 2);
    DO(rackmem_open_embedded(2, 8 << 20, &rack));
    DO(rackmem_thread_open(rack, 0, &thread));
    DO(rackmem_alloc(thread, 4096, 1, &block));
    DO(rackmem_write_word(thread, block, 1));
    DO(rackmem_words_create(thread, 1, 8, &words));
    DO(rackmem_rwlock_create(thread, 1, 32, &lock));
    DO(rackmem_rwlock_write(lock, &data));
    DO(rackmem_rwlock_unlock(lock));
    const char *which = arguments[1];
    if (strcmp(which, "read-hit") == 0) {
        counted_read_hit();
    } else if (strcmp(which, "write-hit") == 0) {
        counted_write_hit();
    } else if (strcmp(which, "fetch-add") == 0) {
        counted_fetch_add();
    } else if (strcmp(which, "add") == 0) {
        counted_add();
    } else if (strcmp(which, "lock") == 0) {
        counted_lock();
    } else {
        CHECK(!"one of these");
    }
    puts("ok");
    return 0;
}
