/* One of several processes that share mapped memory, pointers included.
 *
 *     mapped RACK_FILE join NODE HOW_MANY [ADDRESS]
 *     mapped RACK_FILE freed|closed NODE
 *
 * The one without an address allocates the memory, and prints where it is. All of them push their items to one list and count;
 * all see all items in the end. The second form ends with an access that nothing can be done about. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "refused.h"

#define TIMES 200
#define PAGES 16
#define PAGE 4096

struct item {
    struct item *next;
    uint64_t value;
};

/* The first page; items of each process have a page of their own behind it. */
struct shared {
    _Atomic(struct item *) head;
    _Atomic uint64_t pushed;
    _Atomic uint64_t done;
    char text[64];
};

static uint64_t number(const char *text) {
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    CHECK(*text != 0 && *end == 0);
    return value;
}

/* What a process says that must end with this signal, in a child of this one. */
static void says_and_dies(void (*last)(void *), void *at, int signal, const char *says) {
    int ends[2], status;
    char said[512];
    CHECK(pipe(ends) == 0);
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(ends[1], 2);
        last(at);
        _exit(0);
    }
    close(ends[1]);
    size_t len = 0;
    ssize_t got;
    while (len < sizeof said - 1 && (got = read(ends[0], said + len, sizeof said - 1 - len)) > 0) {
        len += (size_t)got;
    }
    said[len] = 0;
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != signal || strstr(said, says) == NULL) {
        fprintf(stderr, "status %x, said: %s\n", status, said);
        exit(1);
    }
}

static void load(void *at) {
    (void)*(volatile char *)at;
}

static void refused(uint64_t address, rackmem_mapping mapping) {
    rackmem_mapping none;
    rackmem_pinned pin, closed;
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_map(rack, address, 8, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_map(rack, address, 0, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_map(rack, address + 4, 8, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_map(rack, address, (size_t)1 << 40, &none));
    WRONG(RACKMEM_UNALLOCATED, rackmem_map(rack, address + (1 << 20), 8, &none));
    WRONG(RACKMEM_CANNOT_OPEN, rackmem_map(rack, address, 8, &none));
    CHECK(none.id == 0 && strstr(rackmem_message(), "mapped in this process already") != NULL);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_touch(mapping, PAGES * PAGE, 1, false));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_touch(mapping, SIZE_MAX, 2, false));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_prefetch(mapping, 8, PAGES * PAGE, true));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_pin(mapping, PAGES * PAGE, 1, true, &pin));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_pin(mapping, 0, 1, true, NULL));
    DO(rackmem_pin(mapping, 0, 1, false, &closed));
    DO(rackmem_unpin(closed));
    rackmem_rack no_rack = {0};
    BAD(rackmem_rack, no_rack, rackmem_map(bad, address, 8, &none));
    BAD_IS_ZERO(rackmem_rack, no_rack, rackmem_address_of(bad, &none));
    BAD_IS_ZERO(rackmem_rack, no_rack, (uintptr_t)rackmem_pointer_to(bad, address));
    rackmem_mapping no_mapping = {0};
    BAD(rackmem_mapping, no_mapping, rackmem_touch(bad, 0, 1, false));
    BAD(rackmem_mapping, no_mapping, rackmem_prefetch(bad, 0, 1, false));
    BAD(rackmem_mapping, no_mapping, rackmem_pin(bad, 0, 1, false, &pin));
    BAD_IS_ZERO(rackmem_mapping, no_mapping, (uintptr_t)rackmem_mapping_data(bad));
    BAD_BUT_NULL(rackmem_pinned, closed, rackmem_unpin(bad));
    rackmem_mapping other = {other_kind(0)};
    WRONG(RACKMEM_BAD_HANDLE, rackmem_unmap(other));
    DO(rackmem_unmap(no_mapping));
}

/* What a program may do to its own memory without knowing what it is. */
static void survives(uint64_t address, rackmem_mapping mapping, char *data) {
    char back[64];
    rackmem_pinned pin;
    char *page = data + (PAGES - 1) * PAGE;
    memcpy(page, "as it was", 10);
    CHECK(madvise(page, PAGE, MADV_DONTNEED) == 0);
    CHECK(strcmp(page, "as it was") == 0);
    CHECK(mprotect(page, PAGE, PROT_READ) == 0 && mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
    memcpy(page, "and again", 10);
    DO(rackmem_read(thread, address + (PAGES - 1) * PAGE, back, 10));
    CHECK(strcmp(back, "and again") == 0);
    /* Buffers of calls, in the block that the call is about. */
    DO(rackmem_write(thread, address + (PAGES - 1) * PAGE + 100, page, 10));
    DO(rackmem_read(thread, address + (PAGES - 1) * PAGE + 100, page + 200, 10));
    CHECK(strcmp(page + 200, "and again") == 0);
    /* System calls into pages that are there, and stay. */
    int zero = open("/dev/zero", O_RDONLY);
    DO(rackmem_pin(mapping, (PAGES - 1) * PAGE, PAGE, true, &pin));
    CHECK(zero >= 0 && read(zero, page, PAGE) == PAGE);
    DO(rackmem_unpin(pin));
    close(zero);
    CHECK(page[0] == 0 && page[200] == 0);
}

int main(int count, char **arguments) {
    rackmem_mapping mapping;
    uint64_t address;
    CHECK(count >= 4);
    uint16_t node = (uint16_t)number(arguments[3]);
    DO(rackmem_join(arguments[1], node, &rack));
    DO(rackmem_thread_open(rack, node, &thread));
    CHECK(rackmem_pointer_to(rack, 4096) != NULL && rackmem_pointer_to(rack, (uint64_t)1 << 40) == NULL);
    if (count < 6) {
        DO(rackmem_alloc(thread, PAGES * PAGE, node, &address));
        /* Without a descriptor left there is no mapping, and with some there is. */
        struct rlimit before, none;
        CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
        none = before;
        none.rlim_cur = 3;
        CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
        WRONG(RACKMEM_CANNOT_OPEN, rackmem_map(rack, address, 8, &mapping));
        CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    } else {
        address = number(arguments[5]);
    }
    DO(rackmem_map(rack, address, PAGES * PAGE, &mapping));
    char *data = (char *)rackmem_mapping_data(mapping);
    CHECK(rackmem_mapping_data(mapping) != NULL && rackmem_pointer_to(rack, address + 100) == data + 100);
    CHECK(rackmem_address_of(rack, data + 5000) == address + 5000 && rackmem_address_of(rack, &data) == 0);
    if (count == 4) {
        data[0] = 1;
        if (strcmp(arguments[2], "closed") == 0) {
            DO(rackmem_unmap(mapping));
        } else {
            DO(rackmem_free(thread, address));
        }
        load(data);
        return 0;
    }
    uint64_t processes = number(arguments[4]);
    struct shared *shared = (struct shared *)data;
    if (count == 5) {
        DO(rackmem_prefetch(mapping, 0, PAGES * PAGE, true));
        DO(rackmem_touch(mapping, 0, PAGES * PAGE, true));
        refused(address, mapping);
        survives(address, mapping, data);
        says_and_dies(load, data, SIGSEGV, "a child does not have its parent's mappings");
        strcpy(shared->text, "written through a pointer");
        printf("%llu\n", (unsigned long long)address);
        fflush(stdout);
    }
    CHECK(strcmp(shared->text, "written through a pointer") == 0);
    struct item *mine = (struct item *)(data + (1 + node) * PAGE);
    for (uint64_t at = 0; at < TIMES; at++) {
        mine[at].value = node * TIMES + at;
        struct item *head = atomic_load(&shared->head);
        do {
            mine[at].next = head;
        } while (!atomic_compare_exchange_weak(&shared->head, &head, &mine[at]));
        atomic_fetch_add(&shared->pushed, 1);
    }
    while (atomic_load(&shared->pushed) < processes * TIMES) {
        usleep(1000);
    }
    uint64_t items = 0, sum = 0;
    for (struct item *item = atomic_load(&shared->head); item != NULL; item = item->next) {
        items++;
        sum += item->value;
    }
    CHECK(items == processes * TIMES);
    CHECK(sum == items * (items - 1) / 2);
    /* The memory's node goes last. */
    atomic_fetch_add(&shared->done, 1);
    while (count == 5 && atomic_load(&shared->done) < processes) {
        usleep(1000);
    }
    DO(rackmem_unmap(mapping));
    DO(rackmem_thread_close(thread));
    DO(rackmem_close(rack));
    printf("ok\n");
    return 0;
}
