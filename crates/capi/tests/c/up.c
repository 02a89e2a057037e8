/* A rack of processes that this program starts: prints a node that it does not need to live, and how the rack is, and waits until somebody kills that one. What
 * was named there is lost then; the rest goes on. */
#include "check.h"

int main(void) {
    rackmem_rack rack;
    rackmem_info info;
    rackmem_thread thread;
    rackmem_rwlock lock, again;
    rackmem_named named;
    void *data;
    char name[16], line[16];
    uint64_t making, address;
    enum rackmem_status status;
    DO(rackmem_up(4, NULL, &rack));
    DO(rackmem_rack_info(rack, &info));
    CHECK(info.nodes == 4 && info.own_node == 3 && info.up == 15 && !info.is_embedded && !info.is_fenced);
    uint32_t epoch = info.epoch;
    DO(rackmem_thread_open(rack, 3, &thread));
    /* A name that another node keeps. */
    int number = 0;
    do {
        snprintf(name, sizeof name, "lock-%d", number++);
        DO(rackmem_rwlock_named(thread, name, RACKMEM_CREATE, NULL, 8, NULL, &lock));
        DO(rackmem_name_info(thread, name, &named));
    } while (named.home == 3);
    making = named.making;
    DO(rackmem_rwlock_write(lock, &data));
    DO(rackmem_rwlock_unlock(lock));
    char text[65536];
    size_t len;
    /* The switch has what it says about itself from a moment ago: maybe from before this node joined. */
    do {
        DO(rackmem_status_json(rack, text, sizeof text, &len));
    } while (strstr(text, "\"up\":false") != NULL);
    printf("%d\n%s\n", named.home, text);
    fflush(stdout);
    CHECK(fgets(line, sizeof line, stdin) != NULL);
    do {
        status = rackmem_rwlock_named(thread, name, RACKMEM_OPEN, NULL, 8, NULL, &again);
        CHECK(status != RACKMEM_OK || rackmem_rwlock_close(again) == RACKMEM_OK);
    } while (status == RACKMEM_OK);
    CHECK(status == RACKMEM_LOST && strstr(rackmem_message(), "RACKMEM_CREATE_ANEW") != NULL);
    CHECK(rackmem_rwlock_named(thread, name, RACKMEM_OPEN_OR_CREATE, NULL, 8, NULL, &again) == RACKMEM_LOST);
    CHECK(rackmem_name_info(thread, name, &named) == RACKMEM_LOST);
    CHECK(rackmem_name_remove(thread, name) == RACKMEM_LOST);
    DO(rackmem_rack_info(rack, &info));
    CHECK(info.up == (15 ^ 1u << named.home) && info.epoch > epoch);
    puts("lost");
    fflush(stdout);
    /* The node comes back, and what it named does not. */
    CHECK(fgets(line, sizeof line, stdin) != NULL);
    do {
        DO(rackmem_rack_info(rack, &info));
    } while (info.up != 15);
    CHECK(rackmem_rwlock_named(thread, name, RACKMEM_OPEN, NULL, 8, NULL, &again) == RACKMEM_LOST);
    DO(rackmem_rwlock_named(thread, name, RACKMEM_CREATE_ANEW, NULL, 8, NULL, &again));
    DO(rackmem_name_info(thread, name, &named));
    CHECK(named.making > making);
    DO(rackmem_rwlock_write(again, &data));
    DO(rackmem_rwlock_unlock(again));
    status = rackmem_rwlock_write(lock, &data);
    CHECK(status != RACKMEM_OK && data == NULL);
    DO(rackmem_alloc(thread, 8, named.home, &address));
    DO(rackmem_thread_close(thread));
    DO(rackmem_close(rack));
    puts("ok");
    return 0;
}
