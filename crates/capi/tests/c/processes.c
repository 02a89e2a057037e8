/* One of several processes that share locks, words, objects, a store and coherent memory.
 *
 *     processes RACK_FILE join|attach NODE HOW_MANY [ADDRESS...]
 *
 * The one without addresses makes all of it, and prints where it is. All of them count, HOW_MANY processes TIMES times; the one that
 * made it sees that nothing was lost, when all are done. */
#include "check.h"

#define TIMES 300
#define ROOM 1024
#define TEXT "written by everybody"

struct tally {
    uint64_t count;
    uint64_t by_node[64];
};

static uint64_t number(const char *text) {
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    CHECK(*text != 0 && *end == 0);
    return value;
}

/* Counts in one of ten regions, which it makes if it has to. */
static void count_in_a_region(rackmem_rwlock regions, uint64_t time) {
    void *data;
    size_t count, len, made;
    DO(rackmem_rwlock_write(regions, &data));
    DO(rackmem_rwlock_regions(regions, &count));
    if (count < 10) {
        DO(rackmem_rwlock_region_add(regions, 8, &made));
        CHECK(made == count++);
    }
    DO(rackmem_rwlock_region(regions, time % count, &data, &len));
    ++*(uint64_t *)data;
    DO(rackmem_rwlock_unlock(regions));
}

static uint64_t sum_of_regions(rackmem_rwlock regions) {
    const void *seen;
    void *data;
    size_t count, len;
    uint64_t sum = 0;
    DO(rackmem_rwlock_read(regions, &seen));
    DO(rackmem_rwlock_regions(regions, &count));
    for (size_t number = 0; number < count; number++) {
        DO(rackmem_rwlock_region(regions, number, &data, &len));
        sum += *(uint64_t *)data;
    }
    DO(rackmem_rwlock_unlock(regions));
    return sum;
}

int main(int count, char **arguments) {
    rackmem_rack rack;
    rackmem_info info;
    rackmem_thread thread;
    rackmem_rwlock lock, regions;
    rackmem_words words;
    rackmem_objects objects;
    rackmem_chains chains;
    uint64_t memory, old;
    CHECK(count == 5 || count == 11);
    uint16_t node = (uint16_t)number(arguments[3]);
    uint64_t processes = number(arguments[4]);
    if (strcmp(arguments[2], "join") == 0) {
        DO(rackmem_join(arguments[1], node, &rack));
    } else {
        DO(rackmem_attach(arguments[1], node, &rack));
    }
    DO(rackmem_rack_info(rack, &info));
    CHECK(info.own_node == node && !info.is_embedded && !info.is_fenced);
    DO(rackmem_thread_open(rack, node, &thread));
    rackmem_thread elsewhere;
    CHECK(rackmem_thread_open(rack, (uint16_t)(node + 1), &elsewhere) == RACKMEM_INVALID_ARGUMENT);
    if (count == 5) {
        const uint16_t home = node;
        rackmem_chains_config config;
        memset(&config, 0, sizeof config);
        config.homes = &home;
        config.homes_len = 1;
        config.server = home;
        config.bytes = 1 << 16;
        DO(rackmem_rwlock_create(thread, node, sizeof(struct tally), &lock));
        DO(rackmem_words_create(thread, node, 4, &words));
        DO(rackmem_objects_create(thread, node, 1, sizeof TEXT, &objects));
        DO(rackmem_chains_create(thread, &config, &chains));
        DO(rackmem_alloc_with_copies(thread, 8, node, &old));
        DO(rackmem_free(thread, old));
        DO(rackmem_keep_copies(thread, true));
        DO(rackmem_alloc(thread, 8, node, &memory));
        DO(rackmem_rwlock_create_regions(thread, node, ROOM, &regions));
        rackmem_rwlock kept;
        rackmem_named named;
        size_t names;
        DO(rackmem_rwlock_named(thread, "kept", RACKMEM_CREATE, NULL, 8, NULL, &kept));
        DO(rackmem_names(thread, "kept", &named, 1, &names));
        CHECK(names == 1 && named.copies == 2);
        DO(rackmem_rwlock_close(kept));
        DO(rackmem_name_remove(thread, "kept"));
        DO(rackmem_keep_copies(thread, false));
        printf("%llu %llu %llu %llu %llu %llu\n", (unsigned long long)rackmem_rwlock_address(lock),
               (unsigned long long)rackmem_words_address(words), (unsigned long long)rackmem_objects_address(objects),
               (unsigned long long)rackmem_chains_address(chains), (unsigned long long)memory,
               (unsigned long long)rackmem_rwlock_address(regions));
        fflush(stdout);
    } else {
        DO(rackmem_rwlock_open(thread, number(arguments[5]), sizeof(struct tally), &lock));
        DO(rackmem_words_open(thread, number(arguments[6]), &words));
        DO(rackmem_objects_open(thread, number(arguments[7]), &objects));
        DO(rackmem_chains_open(thread, number(arguments[8]), &chains));
        memory = number(arguments[9]);
        DO(rackmem_rwlock_open_regions(thread, number(arguments[10]), ROOM, &regions));
    }
    for (uint64_t time = 0; time < TIMES; time++) {
        void *data;
        count_in_a_region(regions, time);
        DO(rackmem_rwlock_write(lock, &data));
        ((struct tally *)data)->count++;
        ((struct tally *)data)->by_node[node]++;
        DO(rackmem_rwlock_unlock(lock));
        DO(rackmem_words_add(words, 0, 1));
        DO(rackmem_words_fetch_add32(words, 2, 1, (uint32_t *)&old));
        rackmem_pending pending;
        DO(rackmem_words_post(words, 2, RACKMEM_ADD, 1, 0, &pending));
        DO(rackmem_pending_wait(pending, &old));
        DO(rackmem_objects_write(objects, 0, 0, TEXT, sizeof TEXT, NULL));
        DO(rackmem_chains_put(chains, time % 5, TEXT, sizeof TEXT));
        rackmem_block_lock block;
        uint64_t word;
        DO(rackmem_block_write(thread, memory, &block));
        DO(rackmem_read_word(thread, memory, &word));
        DO(rackmem_write_word(thread, memory, word + 1));
        DO(rackmem_block_unlock(block));
    }
    DO(rackmem_flush(thread));
    DO(rackmem_sync(thread));
    /* Word 3 says how many are done. */
    DO(rackmem_words_fetch_add(words, 3, 1, &old));
    if (count == 5) {
        uint64_t done, value;
        uint32_t narrow;
        const void *seen;
        char text[sizeof TEXT];
        size_t len;
        do {
            DO(rackmem_words_load(words, 3, &done));
        } while (done < processes);
        DO(rackmem_rwlock_read(lock, &seen));
        CHECK(((const struct tally *)seen)->count == TIMES * processes);
        CHECK(((const struct tally *)seen)->by_node[node] >= TIMES);
        DO(rackmem_rwlock_unlock(lock));
        CHECK(sum_of_regions(regions) == TIMES * processes);
        DO(rackmem_words_load(words, 0, &value));
        CHECK(value == TIMES * processes);
        DO(rackmem_words_load32(words, 2, &narrow));
        CHECK(narrow == TIMES * processes);
        DO(rackmem_words_load(words, 2, &value));
        CHECK(value == TIMES * processes);
        DO(rackmem_read_word(thread, memory, &value));
        CHECK(value == TIMES * processes);
        DO(rackmem_objects_read(objects, 0, text, sizeof text, 0, &value));
        CHECK(strcmp(text, TEXT) == 0 && value == 2 * TIMES * processes);
        DO(rackmem_chains_get(chains, 3, text, sizeof text, &len));
        CHECK(len == sizeof TEXT && strcmp(text, TEXT) == 0);
        rackmem_counters counters;
        DO(rackmem_rack_counters(rack, &counters));
        CHECK(strcmp(arguments[2], "attach") == 0 || (counters.messages_received > 0 && counters.hits > 0));
        /* What a node has goes with it: this one, which has all of it, is the last to leave. */
        DO(rackmem_words_fetch_add(words, 3, 1, &old));
        do {
            DO(rackmem_words_load(words, 3, &done));
        } while (done < 2 * processes);
    } else {
        uint64_t done;
        do {
            DO(rackmem_words_load(words, 3, &done));
        } while (done < processes + 1);
        DO(rackmem_words_fetch_add(words, 3, 1, &old));
    }
    /* A switch in the test's process, which answers nobody. */
    size_t len;
    CHECK(rackmem_status_json(rack, NULL, 0, &len) == RACKMEM_BUSY && strstr(rackmem_message(), "status.sock") != NULL);
    DO(rackmem_thread_close(thread));
    DO(rackmem_leave(rack, 5000000000));
    DO(rackmem_close(rack));
    puts("ok");
    return 0;
}
