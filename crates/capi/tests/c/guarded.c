/* One of several processes that share what a lock guards, pointers included.
 *
 *     guarded RACK_FILE join NODE HOW_MANY [LOCK]
 *     guarded RACK_FILE load|store NODE
 *
 * The one without a lock makes it, with memory that it takes in, and prints where it is. All of them push their items to one list;
 * all see all items in the end. The second form ends with an access that the lock does not allow. */
#define _GNU_SOURCE
#include <unistd.h>

#include "check.h"

#define TIMES 200
#define PAGES 16
#define PAGE 4096
#define ROOM (PAGES * PAGE - 4096)
#define BYTES (8 * PAGE)

struct item {
    struct item *next;
    uint64_t value;
};

/* What the memory begins with; the items are behind it. */
struct shared {
    struct item *head;
    uint64_t pushed;
    uint64_t done;
    struct item items[];
};

static rackmem_rack rack;
static rackmem_thread thread;

static uint64_t number(const char *text) {
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    CHECK(*text != 0 && *end == 0);
    return value;
}

/* The memory, of a lock that is held: at one address in all processes, and always. */
static struct shared *shown(rackmem_rwlock lock, struct shared *before) {
    void *data;
    size_t len;
    DO(rackmem_rwlock_region(lock, 0, &data, &len));
    CHECK(len == BYTES && (before == NULL || data == before));
    return (struct shared *)data;
}

int main(int count, char **arguments) {
    rackmem_rwlock lock, again;
    uint64_t memory = 0;
    void *unused;
    const void *seen;
    CHECK(count >= 4);
    uint16_t node = (uint16_t)number(arguments[3]);
    DO(rackmem_join(arguments[1], node, &rack));
    DO(rackmem_thread_open(rack, node, &thread));
    if (count < 6) {
        DO(rackmem_rwlock_create_regions(thread, node, ROOM, &lock));
        DO(rackmem_alloc_guarded(thread, BYTES, node, &memory));
        DO(rackmem_rwlock_map(lock));
        DO(rackmem_rwlock_write(lock, &unused));
        DO(rackmem_rwlock_guard(lock, memory, BYTES));
        struct shared *made = shown(lock, NULL);
        CHECK(rackmem_pointer_to(rack, memory) == made && rackmem_address_of(rack, made) == memory);
        memset(made, 0, sizeof *made);
        DO(rackmem_rwlock_unlock(lock));
        printf("%llu\n", (unsigned long long)rackmem_rwlock_address(lock));
        fflush(stdout);
    } else {
        DO(rackmem_rwlock_open_regions(thread, number(arguments[5]), ROOM, &lock));
        DO(rackmem_rwlock_map(lock));
    }
    DO(rackmem_rwlock_map(lock));
    if (count == 4) {
        DO(rackmem_rwlock_read(lock, &seen));
        struct shared *region = shown(lock, NULL);
        CHECK(region->pushed == 0);
        if (strcmp(arguments[2], "load") == 0) {
            DO(rackmem_rwlock_unlock(lock));
            return (int)*(volatile uint64_t *)&region->pushed;
        }
        *(volatile uint64_t *)&region->pushed = 1;
        return 0;
    }
    uint64_t processes = number(arguments[4]);
    struct shared *at = NULL;
    for (uint64_t time = 0; time < TIMES; time++) {
        DO(rackmem_rwlock_write(lock, &unused));
        at = shown(lock, at);
        struct item *mine = &at->items[at->pushed++];
        *mine = (struct item){at->head, node * TIMES + time};
        at->head = mine;
        DO(rackmem_rwlock_unlock(lock));
    }
    /* A handle that maps it while it is held, and one that does not. */
    DO(rackmem_rwlock_open_regions(thread, rackmem_rwlock_address(lock), ROOM, &again));
    for (bool all = false; !all; usleep(1000)) {
        DO(rackmem_rwlock_read(again, &seen));
        struct shared *copy = shown(again, NULL);
        all = copy->pushed == processes * TIMES;
        CHECK(copy != at);
        if (all) {
            DO(rackmem_rwlock_map(again));
            CHECK(shown(again, at)->pushed == processes * TIMES);
        }
        DO(rackmem_rwlock_unlock(again));
    }
    uint64_t items = 0, sum = 0;
    DO(rackmem_rwlock_write(again, &unused));
    for (struct item *item = shown(again, at)->head; item != NULL; item = item->next) {
        items++;
        sum += item->value;
    }
    at->done++;
    CHECK(items == processes * TIMES && sum == items * (items - 1) / 2);
    DO(rackmem_rwlock_unlock(again));
    /* The memory's node goes last. */
    for (bool all = count == 6; !all; usleep(1000)) {
        DO(rackmem_rwlock_read(lock, &seen));
        all = shown(lock, at)->done == processes;
        DO(rackmem_rwlock_unlock(lock));
    }
    if (count == 5) {
        /* Closed while it is held, it is released, and nobody knows whether that was done: the data are as they are. */
        DO(rackmem_rwlock_write(again, &unused));
        shown(again, at)->done = 0;
        DO(rackmem_rwlock_close(again));
        CHECK(rackmem_rwlock_write(lock, &unused) == RACKMEM_POISONED && shown(lock, at)->done == 0);
        DO(rackmem_rwlock_set_poisoned(lock, false));
        /* What goes back is not there any more. */
        DO(rackmem_rwlock_unguard(lock, memory));
        size_t left;
        DO(rackmem_rwlock_regions(lock, &left));
        CHECK(left == 0);
        DO(rackmem_rwlock_unlock(lock));
        DO(rackmem_free_guarded(thread, memory, BYTES));
    }
    DO(rackmem_leave(rack, 5000000000));
    DO(rackmem_thread_close(thread));
    DO(rackmem_close(rack));
    printf("ok\n");
    return 0;
}
