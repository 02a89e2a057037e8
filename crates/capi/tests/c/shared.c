/* The part in C of two programs of different languages that share a lock, a counter and a table by name.
 *
 *     shared RACK_FILE NODE TIMES
 *
 * It is attached to the daemon of that node. Both programs count TIMES times, write 50 keys of the table, see that nothing was lost,
 * and say in word 1 that they are done. */
#include "check.h"

int main(int count, char **arguments) {
    const rackmem_type type = {"tally", 1};
    const uint64_t begin[2] = {100, 100};
    rackmem_rack rack;
    rackmem_thread thread;
    rackmem_rwlock tally;
    rackmem_words hits;
    rackmem_chains table;
    rackmem_chains_config config;
    uint64_t old, done;
    char value[32], expected[32];
    size_t len;
    CHECK(count == 4);
    uint16_t node = (uint16_t)atoi(arguments[2]);
    uint64_t times = (uint64_t)atoi(arguments[3]);
    memset(&config, 0, sizeof config);
    config.bytes = 1 << 16;
    DO(rackmem_attach(arguments[1], node, &rack));
    DO(rackmem_thread_open(rack, node, &thread));
    DO(rackmem_rwlock_named(thread, "tally", RACKMEM_OPEN_OR_CREATE, &type, sizeof begin, begin, &tally));
    DO(rackmem_words_named(thread, "hits", RACKMEM_OPEN_OR_CREATE, NULL, 2, &hits));
    DO(rackmem_chains_named(thread, "table", RACKMEM_OPEN_OR_CREATE, NULL, &config, &table));
    for (uint64_t time = 0; time < times; time++) {
        void *data;
        DO(rackmem_rwlock_write(tally, &data));
        uint64_t *both = (uint64_t *)data;
        CHECK(both[0] == both[1]);
        both[0]++;
        both[1]++;
        DO(rackmem_rwlock_unlock(tally));
        DO(rackmem_words_add(hits, 0, 1));
        int written = snprintf(value, sizeof value, "c %llu", (unsigned long long)time);
        DO(rackmem_chains_put(table, 2 * (time % 50) + 1, value, (size_t)written));
    }
    DO(rackmem_flush(thread));
    DO(rackmem_words_fetch_add(hits, 1, 1, &old));
    do {
        DO(rackmem_words_load(hits, 1, &done));
    } while (done < 2);
    const void *seen;
    DO(rackmem_rwlock_read(tally, &seen));
    CHECK(((const uint64_t *)seen)[0] == 100 + 2 * times);
    DO(rackmem_rwlock_unlock(tally));
    DO(rackmem_words_load(hits, 0, &done));
    CHECK(done == 2 * times);
    for (uint64_t key = 0; key < 50; key++) {
        snprintf(expected, sizeof expected, "rust %llu", (unsigned long long)(times - 50 + key));
        DO(rackmem_chains_get(table, 2 * key, value, sizeof value, &len));
        CHECK(len == strlen(expected) && memcmp(value, expected, len) == 0);
    }
    DO(rackmem_close(rack));
    puts("ok");
    return 0;
}
