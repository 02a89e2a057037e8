/* What a program does with signals, files and its own mappings while it has memory of a rack mapped.
 *
 *     mapped_system RACK_FILE signals|direct|moved|shrunk NODE FOLDER
 *
 * The memory is node 0's. The last two forms move pages of the rack, or unmap some, and must not go on: one of them until somebody
 * has written in what it then prints the address of. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096
#define PAGES 8

static rackmem_rack rack;
static rackmem_thread thread;
static rackmem_mapping mapping;
static uint64_t address;
static char *data;

/* Values by which each page is recognized, written by a call: then the next access through a pointer faults. */
static void fill(uint64_t value) {
    for (uint64_t page = 0; page < PAGES; page++) {
        CHECK(madvise(data + page * PAGE, PAGE, MADV_DONTNEED) == 0);
        DO(rackmem_write_word(thread, address + page * PAGE, value + page));
    }
}

static uint64_t word(uint64_t page) {
    return *(volatile uint64_t *)(data + page * PAGE);
}

static sigjmp_buf back;
static volatile sig_atomic_t signals;

static void on_signal(int number) {
    (void)number;
    signals++;
    siglongjmp(back, 1);
}

static void take(int signal) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    CHECK(sigaction(signal, &action, NULL) == 0);
}

/* Reads at an address that has no memory: the program's own handler is called. */
static void faults_at(const char *at) {
    int before = signals;
    if (sigsetjmp(back, 1) == 0) {
        (void)*(volatile const char *)at;
        CHECK(!"it can be read");
    }
    CHECK(signals == before + 1);
}

/* Faults of the program's own: no right to a page, and a page behind the end of a file. */
static void faults_of_its_own(const char *folder) {
    char name[512];
    snprintf(name, sizeof name, "%s/short", folder);
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0);
    char *none = (char *)mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *behind = (char *)mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0);
    CHECK(none != MAP_FAILED && behind != MAP_FAILED);
    faults_at(none);
    faults_at(behind);
    munmap(none, PAGE);
    munmap(behind, PAGE);
    close(file);
}

static void faults_of_the_rack(uint64_t value) {
    int before = signals;
    fill(value);
    for (uint64_t page = 0; page < PAGES; page++) {
        CHECK(word(page) == value + page);
    }
    CHECK(signals == before);
}

/* A stack for signals that has no space for anything, as some runtimes have: faults on mapped memory need none. */
static void take_small_stack(void) {
    static char space[2048];
    stack_t small;
    memset(&small, 0, sizeof small);
    small.ss_sp = space;
    small.ss_size = sizeof space;
    if (sigaltstack(&small, NULL) != 0) {
        CHECK(errno == ENOMEM);
        printf("SKIPPED: this machine's signals do not fit into 2 KiB\n");
    }
}

static void *on_a_small_stack(void *argument) {
    take_small_stack();
    for (uint64_t page = 0; page < PAGES; page++) {
        CHECK(word(page) == 5000 + page);
    }
    return argument;
}

/* Between a file and pinned pages, past the cache of the file system. */
static void direct(const char *folder) {
    char name[512];
    rackmem_pinned pin;
    snprintf(name, sizeof name, "%s/direct", folder);
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
    if (file < 0 && errno == EINVAL) {
        printf("SKIPPED: the file system of %s has no O_DIRECT\n", folder);
        return;
    }
    CHECK(file >= 0);
    fill(7000);
    DO(rackmem_pin(mapping, 0, PAGES * PAGE, true, &pin));
    CHECK(pwrite(file, data, PAGES * PAGE, 0) == PAGES * PAGE);
    memset(data, 1, PAGES * PAGE);
    CHECK(pread(file, data, PAGES / 2 * PAGE, PAGES / 2 * PAGE) == PAGES / 2 * PAGE);
    DO(rackmem_unpin(pin));
    close(file);
    uint64_t got;
    for (uint64_t page = 0; page < PAGES; page++) {
        uint64_t expected = page < PAGES / 2 ? 7000 + PAGES / 2 + page : 0x0101010101010101;
        DO(rackmem_read_word(thread, address + page * PAGE, &got));
        CHECK(word(page) == expected && got == expected);
    }
}

/* Has the rack work while the pages before are moved. */
static void *keep_faulting(void *argument) {
    for (uint64_t page = PAGES / 2; argument == NULL; page = page == PAGES - 1 ? PAGES / 2 : page + 1) {
        CHECK(madvise(data + page * PAGE, PAGE, MADV_DONTNEED) == 0);
        CHECK(word(page) == 5000 + page);
    }
    return NULL;
}

/* Must not be survived by much: what is there does not count any more. */
static void go_on(void) {
    printf("%llu\n", (unsigned long long)(address + (PAGES - 1) * PAGE));
    fflush(stdout);
    sleep(10);
}

int main(int count, char **arguments) {
    CHECK(count == 5);
    const char *how = arguments[2];
    const char *folder = arguments[4];
    uint16_t node = (uint16_t)atoi(arguments[3]);
    DO(rackmem_join(arguments[1], node, &rack));
    DO(rackmem_thread_open(rack, node, &thread));
    DO(rackmem_alloc(thread, PAGES * PAGE, 0, &address));
    if (strcmp(how, "signals") == 0) {
        take(SIGSEGV);
        take(SIGBUS);
    }
    DO(rackmem_map(rack, address, PAGES * PAGE, &mapping));
    data = (char *)rackmem_mapping_data(mapping);
    rackmem_mapping none;
    CHECK(rackmem_map(rack, address, (size_t)1 << 40, &none) == RACKMEM_INVALID_ARGUMENT);
    CHECK(strstr(rackmem_message(), "leave the memory") != NULL);
    fill(5000);
    if (strcmp(how, "signals") == 0) {
        pthread_t other;
        CHECK(pthread_create(&other, NULL, on_a_small_stack, NULL) == 0 && pthread_join(other, NULL) == 0);
        faults_of_the_rack(1000);
        faults_of_its_own(folder);
        take(SIGSEGV);
        take(SIGBUS);
        faults_of_the_rack(2000);
        faults_of_its_own(folder);
    } else if (strcmp(how, "direct") == 0) {
        direct(folder);
    } else if (strcmp(how, "moved") == 0) {
        pthread_t other;
        CHECK(pthread_create(&other, NULL, keep_faulting, NULL) == 0);
        usleep(10000);
        word(0);
        char *to = (char *)mmap(NULL, PAGES / 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(mremap(data, PAGES / 2 * PAGE, PAGES / 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
        go_on();
    } else {
        word(PAGES - 1);
        CHECK(mremap(data, PAGES * PAGE, PAGE, MREMAP_MAYMOVE) == data);
        go_on();
    }
    printf("ok\n");
    return 0;
}
