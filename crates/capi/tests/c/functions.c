/* Every function of rackmem.h but those of names.c, once as it is meant and once as it is not. A test compares the names in here with the
 * header. Nothing may crash. */
#include "refused.h"

static const uint64_t nowhere = (uint64_t)99 << 48;

static void status_and_version(void) {
    CHECK(rackmem_version() == RACKMEM_VERSION);
    for (int status = RACKMEM_OK; status <= RACKMEM_OVERLAPS; status++) {
        CHECK(strcmp(rackmem_status_text(status), "no status of rackmem") != 0);
    }
    CHECK(strcmp(rackmem_status_text(-1), "no status of rackmem") == 0);
    CHECK(strcmp(rackmem_status_text(RACKMEM_OVERLAPS + 1), "no status of rackmem") == 0);
    CHECK(rackmem_message() != NULL);
}

static void racks(void) {
    rackmem_rack second, none;
    rackmem_info info;
    rackmem_counters counters;
    rackmem_thread t;
    GOOD(rackmem_open_embedded(2, 1 << 20, &second));
    WRONG(RACKMEM_CANNOT_OPEN, rackmem_open_embedded(0, 1 << 20, &none));
    CHECK(none.id == 0 && strstr(rackmem_message(), "0 nodes") != NULL);
    WRONG(RACKMEM_CANNOT_OPEN, rackmem_open_embedded(65, 1 << 20, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_open_embedded(2, 1 << 20, NULL));
    /* That they succeed is for three processes to show (processes.c). */
    WRONG(RACKMEM_CANNOT_OPEN, rackmem_join("no such file", 0, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_join("\xff", 0, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_join(NULL, 0, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_join("no such file", 0, NULL));
    WRONG(RACKMEM_CANNOT_OPEN, rackmem_attach("no such file", 0, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_attach(NULL, 0, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_attach("no such file", 0, NULL));
    /* That one comes up is for up.c to show. */
    WRONG(RACKMEM_CANNOT_OPEN, rackmem_up(4, "no/such/command", &none));
    CHECK(none.id == 0 && strstr(rackmem_message(), "RACKMEM_COMMAND") != NULL);
    WRONG(RACKMEM_CANNOT_OPEN, rackmem_up(4, "false", &none));
    CHECK(strstr(rackmem_message(), "its command has ended") != NULL);
    WRONG(RACKMEM_CANNOT_OPEN, rackmem_up(1, NULL, &none));
    WRONG(RACKMEM_CANNOT_OPEN, rackmem_up(65, NULL, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_up(4, "\xff", &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_up(4, NULL, NULL));
    GOOD(rackmem_rack_info(second, &info));
    CHECK(info.nodes == 2 && info.is_embedded && !info.is_fenced && info.up == 3 && info.epoch == 0 && info.block_size == 4096 && info.memory == 1 << 20);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rack_info(second, NULL));
    GOOD(rackmem_rack_counters(second, &counters));
    CHECK(counters.allocations == 0);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rack_counters(second, NULL));
    char text[16384];
    size_t len, again;
    WRONG(RACKMEM_TOO_LONG, rackmem_status_json(second, NULL, 0, &len));
    CHECK(len > 1000 && len < sizeof text && strstr(rackmem_message(), "give more") != NULL);
    GOOD(rackmem_status_json(second, text, sizeof text, &again));
    CHECK(strlen(text) == again && strstr(text, "{\"command\":\"status\"") == text);
    CHECK(strstr(text, "\"rack\":\"embedded\"") != NULL && strstr(text, "\"locks\":[],\"locks_unknown\":null}") != NULL);
    /* The zero has no room. */
    WRONG(RACKMEM_TOO_LONG, rackmem_status_json(second, text, again, &len));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_status_json(second, NULL, 8, &len));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_status_json(second, text, sizeof text, NULL));
    GOOD(rackmem_leave(second, 0));
    GOOD(rackmem_thread_open(second, 1, &t));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_thread_open(second, 1, NULL));
    rackmem_thread refused;
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_thread_open(second, 2, &refused));
    CHECK(refused.id == 0 && strstr(rackmem_message(), "nodes 0 to 1") != NULL);
    GOOD(rackmem_close(second));
    /* The thread keeps what it needs. */
    GOOD(rackmem_flush(t));
    GOOD(rackmem_thread_close(t));
    BAD(rackmem_rack, second, rackmem_leave(bad, 0));
    BAD(rackmem_rack, second, rackmem_rack_info(bad, &info));
    BAD(rackmem_rack, second, rackmem_rack_counters(bad, &counters));
    BAD(rackmem_rack, second, rackmem_status_json(bad, text, sizeof text, &len));
    BAD(rackmem_rack, second, rackmem_thread_open(bad, 0, &refused));
    BAD_BUT_NULL(rackmem_rack, second, rackmem_close(bad));
    BAD_BUT_NULL(rackmem_thread, t, rackmem_thread_close(bad));
}

static void coherent_memory(rackmem_thread closed) {
    uint64_t address, none, word;
    char bytes[24] = "twenty-three characters";
    char back[24];
    GOOD(rackmem_alloc(thread, 8192, 1, &address));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_alloc(thread, 8, 1, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_alloc(thread, 0, 1, &none));
    CHECK(none == 0);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_alloc(thread, 8, 99, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_alloc(thread, UINT64_MAX, 1, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_alloc_with_copies(thread, 8, 1, &none)); /* a rack in one process */
    CHECK(none == 0);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_alloc_with_copies(thread, 8, 1, NULL));
    GOOD(rackmem_sync(thread));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_keep_copies(thread, true));
    GOOD(rackmem_keep_copies(thread, false));
    GOOD(rackmem_write(thread, address + 4090, bytes, sizeof bytes));
    GOOD(rackmem_read(thread, address + 4090, back, sizeof back));
    CHECK(memcmp(bytes, back, sizeof back) == 0);
    GOOD(rackmem_write(thread, address, NULL, 0));
    GOOD(rackmem_read(thread, address, NULL, 0));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_write(thread, address, NULL, 8));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_read(thread, address, NULL, 8));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_read(thread, address, back, SIZE_MAX));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_write(thread, nowhere, bytes, 8));
    WRONG(RACKMEM_UNALLOCATED, rackmem_read(thread, address + (1 << 20), back, 8));
    GOOD(rackmem_write_word(thread, address, 42));
    GOOD(rackmem_read_word(thread, address, &word));
    CHECK(word == 42);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_read_word(thread, address, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_read_word(thread, address + 1, &word));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_write_word(thread, address + 1, 1));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_write_word(thread, nowhere, 1));
    BAD(rackmem_thread, closed, rackmem_alloc(bad, 8, 0, &none));
    BAD(rackmem_thread, closed, rackmem_alloc_with_copies(bad, 8, 0, &none));
    BAD(rackmem_thread, closed, rackmem_sync(bad));
    BAD(rackmem_thread, closed, rackmem_keep_copies(bad, false));
    BAD(rackmem_thread, closed, rackmem_read(bad, address, back, 8));
    BAD(rackmem_thread, closed, rackmem_write(bad, address, bytes, 8));
    BAD(rackmem_thread, closed, rackmem_read_word(bad, address, &word));
    BAD(rackmem_thread, closed, rackmem_write_word(bad, address, 1));
    BAD(rackmem_thread, closed, rackmem_free(bad, address));
    BAD(rackmem_thread, closed, rackmem_flush(bad));

    rackmem_thread there;
    rackmem_block_lock lock, other, again;
    GOOD(rackmem_thread_open(rack, 1, &there));
    GOOD(rackmem_block_write(thread, address, &lock));
    WRONG(RACKMEM_BUSY, rackmem_block_tryread(there, address, &other));
    WRONG(RACKMEM_BUSY, rackmem_block_trywrite(there, address, &other));
    CHECK(other.id == 0);
    bool died = true;
    uint16_t node = 7;
    GOOD(rackmem_block_writer_that_died(lock, &died, &node));
    CHECK(!died && node == 0);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_block_writer_that_died(lock, NULL, &node));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_block_writer_that_died(lock, &died, NULL));
    GOOD(rackmem_block_unlock(lock));
    WRONG(RACKMEM_BAD_HANDLE, rackmem_block_writer_that_died(lock, &died, &node));
    GOOD(rackmem_block_read(thread, address, &lock));
    GOOD(rackmem_block_tryread(there, address, &other));
    GOOD(rackmem_block_unlock(other));
    GOOD(rackmem_block_unlock(lock));
    GOOD(rackmem_block_trywrite(there, address, &again));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_block_read(thread, address, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_block_write(thread, nowhere, &lock));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_block_tryread(thread, nowhere, &lock));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_block_trywrite(thread, address, NULL));
    BAD(rackmem_thread, closed, rackmem_block_read(bad, address, &lock));
    BAD(rackmem_thread, closed, rackmem_block_write(bad, address, &lock));
    BAD(rackmem_thread, closed, rackmem_block_tryread(bad, address, &lock));
    BAD(rackmem_thread, closed, rackmem_block_trywrite(bad, address, &lock));
    BAD_BUT_NULL(rackmem_block_lock, other, rackmem_block_unlock(bad));
    BAD(rackmem_block_lock, other, rackmem_block_writer_that_died(bad, &died, &node));
    /* A thread that goes releases what it holds. */
    GOOD(rackmem_thread_close(there));
    WRONG(RACKMEM_BAD_HANDLE, rackmem_block_unlock(again));
    GOOD(rackmem_block_trywrite(thread, address, &lock));
    GOOD(rackmem_block_unlock(lock));

    GOOD(rackmem_free(thread, address));
    WRONG(RACKMEM_UNALLOCATED, rackmem_free(thread, address));
    WRONG(RACKMEM_UNALLOCATED, rackmem_read_word(thread, address, &word));
}

static void locks(rackmem_thread closed_thread) {
    rackmem_rwlock lock, second, closed, none;
    void *data;
    const void *seen;
    uint64_t fence;
    bool died;
    uint16_t node;
    GOOD(rackmem_rwlock_create(thread, 1, 40, &lock));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_create(thread, 99, 8, &none));
    CHECK(none.id == 0);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_create(thread, 0, 2 << 20, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_create(thread, 0, SIZE_MAX, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_create(thread, 0, 8, NULL));
    CHECK(rackmem_rwlock_len(lock) == 40);
    uint64_t address = rackmem_rwlock_address(lock);
    CHECK(address != 0 && rackmem_rwlock_address(lock) == address);
    GOOD(rackmem_rwlock_open(thread, address, 40, &second));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_open(thread, address, 40, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_open(thread, address + 1, 40, &none));
    GOOD(rackmem_rwlock_open(thread, address, 80, &none));
    WRONG(RACKMEM_UNALLOCATED, rackmem_rwlock_read(none, &seen));
    GOOD(rackmem_rwlock_close(none));
    GOOD(rackmem_rwlock_write(lock, &data));
    GOOD(rackmem_rwlock_fence(lock, &fence));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_fence(lock, NULL));
    WRONG(RACKMEM_NOT_HELD, rackmem_rwlock_fence(second, &fence));
    GOOD(rackmem_rwlock_writer_that_died(lock, &died, &node));
    CHECK(!died);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_writer_that_died(lock, NULL, &node));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_writer_that_died(lock, &died, NULL));
    WRONG(RACKMEM_NOT_HELD, rackmem_rwlock_writer_that_died(second, &died, &node));
    GOOD(rackmem_rwlock_set_poisoned(lock, true));
    GOOD(rackmem_rwlock_set_poisoned(lock, false));
    WRONG(RACKMEM_NOT_HELD, rackmem_rwlock_set_poisoned(second, true));
    GOOD(rackmem_rwlock_unlock(lock));
    WRONG(RACKMEM_NOT_HELD, rackmem_rwlock_unlock(lock));
    GOOD(rackmem_rwlock_read(lock, &seen));
    GOOD(rackmem_rwlock_unlock(lock));
    GOOD(rackmem_rwlock_tryread(lock, &seen));
    GOOD(rackmem_rwlock_unlock(lock));
    GOOD(rackmem_rwlock_trywrite(lock, &data));
    GOOD(rackmem_rwlock_unlock(lock));
    GOOD(rackmem_rwlock_timedread(lock, 1000, &seen));
    GOOD(rackmem_rwlock_unlock(lock));
    GOOD(rackmem_rwlock_timedwrite(lock, UINT64_MAX, &data));
    GOOD(rackmem_rwlock_unlock(lock));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_read(lock, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_write(lock, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_tryread(lock, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_trywrite(lock, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_timedread(lock, 1, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_timedwrite(lock, 1, NULL));
    closed = second;
    GOOD(rackmem_rwlock_close(second));
    BAD(rackmem_thread, closed_thread, rackmem_rwlock_create(bad, 0, 8, &none));
    BAD(rackmem_thread, closed_thread, rackmem_rwlock_open(bad, address, 40, &none));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_read(bad, &seen));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_write(bad, &data));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_tryread(bad, &seen));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_trywrite(bad, &data));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_timedread(bad, 1, &seen));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_timedwrite(bad, 1, &data));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_unlock(bad));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_set_poisoned(bad, true));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_fence(bad, &fence));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_writer_that_died(bad, &died, &node));
    BAD(rackmem_rwlock, closed, rackmem_rwlock_free(bad));
    BAD_IS_ZERO(rackmem_rwlock, closed, rackmem_rwlock_address(bad));
    BAD_IS_ZERO(rackmem_rwlock, closed, rackmem_rwlock_len(bad));
    BAD_BUT_NULL(rackmem_rwlock, closed, rackmem_rwlock_close(bad));
    GOOD(rackmem_rwlock_free(lock));
}

/* Both widths have the same functions. */
#define FETCHING(number, fetch, plain, suffix, operand, was, is)                                   \
    do {                                                                                           \
        number old, now;                                                                           \
        GOOD(fetch##suffix(words, 0, operand, &old));                                              \
        CHECK(old == (was));                                                                       \
        GOOD(rackmem_words_load##suffix(words, 0, &now));                                          \
        CHECK(now == (is));                                                                        \
        GOOD(plain##suffix(words, 0, operand));                                                    \
        WRONG(RACKMEM_INVALID_ARGUMENT, fetch##suffix(words, 0, operand, NULL));                   \
        WRONG(RACKMEM_INVALID_ARGUMENT, fetch##suffix(words, 1000, operand, &old));                \
        WRONG(RACKMEM_INVALID_ARGUMENT, plain##suffix(words, SIZE_MAX, operand));                  \
        BAD(rackmem_words, closed, fetch##suffix(bad, 0, operand, &old));                          \
        BAD(rackmem_words, closed, plain##suffix(bad, 0, operand));                                \
        GOOD(rackmem_words_store##suffix(words, 0, 12));                                           \
    } while (0)
#define ALL_OF_WIDTH(number, suffix)                                                               \
    do {                                                                                           \
        number old;                                                                                \
        GOOD(rackmem_words_store##suffix(words, 0, 12));                                           \
        FETCHING(number, rackmem_words_fetch_add, rackmem_words_add, suffix, 3, 12, 15);           \
        FETCHING(number, rackmem_words_fetch_and, rackmem_words_and, suffix, 9, 12, 8);            \
        FETCHING(number, rackmem_words_fetch_or, rackmem_words_or, suffix, 3, 12, 15);             \
        FETCHING(number, rackmem_words_fetch_xor, rackmem_words_xor, suffix, 5, 12, 9);            \
        FETCHING(number, rackmem_words_fetch_min, rackmem_words_min, suffix, (number)-1, 12, (number)-1); \
        FETCHING(number, rackmem_words_fetch_max, rackmem_words_max, suffix, (number)-1, 12, 12);  \
        FETCHING(number, rackmem_words_swap, rackmem_words_store, suffix, 7, 12, 7);               \
        GOOD(rackmem_words_compare_exchange##suffix(words, 0, 12, 13, &old));                      \
        CHECK(old == 12);                                                                          \
        GOOD(rackmem_words_compare_exchange##suffix(words, 0, 12, 14, &old));                      \
        CHECK(old == 13);                                                                          \
        GOOD(rackmem_words_compare_store##suffix(words, 0, 13, 12));                               \
        WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_compare_exchange##suffix(words, 0, 1, 2, NULL)); \
        WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_compare_store##suffix(words, 1000, 1, 2));   \
        GOOD(rackmem_words_load##suffix(words, 0, &old));                                          \
        CHECK(old == 12);                                                                          \
        WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_load##suffix(words, 0, NULL));               \
        BAD(rackmem_words, closed, rackmem_words_compare_exchange##suffix(bad, 0, 1, 2, &old));    \
        BAD(rackmem_words, closed, rackmem_words_compare_store##suffix(bad, 0, 1, 2));             \
        BAD(rackmem_words, closed, rackmem_words_load##suffix(bad, 0, &old));                      \
        GOOD(rackmem_words_post##suffix(words, 0, RACKMEM_COMPARE_EXCHANGE, 20, 12, &pending));    \
        GOOD(rackmem_pending_wait(pending, &value));                                               \
        CHECK(value == 12);                                                                        \
        GOOD(rackmem_words_post##suffix(words, 0, RACKMEM_ADD, 1, 0, &pending));                   \
        GOOD(rackmem_pending_poll(pending, &value));                                               \
        CHECK(value == 20);                                                                        \
        WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_post##suffix(words, 0, 0, 1, 0, &pending));  \
        WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_post##suffix(words, 0, 10, 1, 0, &pending)); \
        CHECK(pending.id == 0);                                                                    \
        WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_post##suffix(words, 0, RACKMEM_ADD, 1, 0, NULL)); \
        WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_post##suffix(words, 99, RACKMEM_ADD, 1, 0, &pending)); \
        BAD(rackmem_words, closed, rackmem_words_post##suffix(bad, 0, RACKMEM_ADD, 1, 0, &pending)); \
    } while (0)

static void words_of_both_widths(rackmem_thread closed_thread) {
    rackmem_words words, closed, none;
    rackmem_pending pending, over;
    uint64_t value;
    uint64_t bytes[3] = {1, 2, 3}, back[3];
    GOOD(rackmem_words_create(thread, 1, 8, &words));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_create(thread, 1, 0, &none));
    CHECK(none.id == 0);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_create(thread, 99, 8, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_create(thread, 1, SIZE_MAX, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_create(thread, 1, 8, NULL));
    uint64_t address = rackmem_words_address(words);
    CHECK(address != 0 && rackmem_words_address(words) == address);
    CHECK(rackmem_words_len(words) == 8);
    GOOD(rackmem_words_open(thread, address, &closed));
    WRONG(RACKMEM_UNALLOCATED, rackmem_words_open(thread, address + 8, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_open(thread, nowhere, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_open(thread, address, NULL));
    GOOD(rackmem_words_close(closed));
    ALL_OF_WIDTH(uint64_t, );
    ALL_OF_WIDTH(uint32_t, 32);
    GOOD(rackmem_words_write(words, 5, bytes, sizeof bytes));
    GOOD(rackmem_words_read(words, 5, back, sizeof back));
    CHECK(memcmp(bytes, back, sizeof back) == 0);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_write(words, 6, bytes, sizeof bytes));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_read(words, 6, back, sizeof back));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_write(words, 0, NULL, 8));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_read(words, 0, NULL, 8));
    GOOD(rackmem_words_post(words, 0, RACKMEM_ADD, 1, 0, &pending));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_pending_poll(pending, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_pending_wait(pending, NULL));
    over = pending;
    GOOD(rackmem_pending_close(pending));
    BAD(rackmem_pending, over, rackmem_pending_poll(bad, &value));
    BAD(rackmem_pending, over, rackmem_pending_wait(bad, &value));
    BAD_BUT_NULL(rackmem_pending, over, rackmem_pending_close(bad));
    GOOD(rackmem_flush(thread));
    BAD(rackmem_thread, closed_thread, rackmem_words_create(bad, 0, 8, &none));
    BAD(rackmem_thread, closed_thread, rackmem_words_open(bad, address, &none));
    BAD(rackmem_words, closed, rackmem_words_read(bad, 0, back, 8));
    BAD(rackmem_words, closed, rackmem_words_write(bad, 0, bytes, 8));
    BAD(rackmem_words, closed, rackmem_words_free(bad));
    BAD_IS_ZERO(rackmem_words, closed, rackmem_words_address(bad));
    BAD_IS_ZERO(rackmem_words, closed, rackmem_words_len(bad));
    BAD_BUT_NULL(rackmem_words, closed, rackmem_words_close(bad));
    rackmem_words later;
    GOOD(rackmem_words_open(thread, address, &later));
    GOOD(rackmem_words_free(words));
    WRONG(RACKMEM_UNALLOCATED, rackmem_words_fetch_add(later, 0, 1, &value));
    WRONG(RACKMEM_UNALLOCATED, rackmem_words_free(later));
    GOOD(rackmem_words_close(later));
}

static void objects_read_whole(rackmem_thread closed_thread) {
    rackmem_objects objects, closed, none;
    char page[100] = "a page", back[100];
    uint64_t version, next;
    GOOD(rackmem_objects_create(thread, 1, 10, 100, &objects));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_objects_create(thread, 1, 10, 0, &none));
    CHECK(none.id == 0);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_objects_create(thread, 1, 0, 100, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_objects_create(thread, 1, SIZE_MAX, 100, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_objects_create(thread, 99, 10, 100, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_objects_create(thread, 1, 10, 100, NULL));
    uint64_t address = rackmem_objects_address(objects);
    CHECK(address != 0 && rackmem_objects_address(objects) == address);
    CHECK(rackmem_objects_count(objects) == 10 && rackmem_objects_len(objects) == 100);
    GOOD(rackmem_objects_open(thread, address, &closed));
    WRONG(RACKMEM_UNALLOCATED, rackmem_objects_open(thread, address + 16, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_objects_open(thread, address, NULL));
    GOOD(rackmem_objects_close(closed));
    GOOD(rackmem_objects_write(objects, 3, 0, page, sizeof page, NULL));
    GOOD(rackmem_objects_write(objects, 3, 2, "word", 4, &version));
    GOOD(rackmem_objects_read(objects, 3, back, sizeof back, 0, &next));
    CHECK(strcmp(back, "a word") == 0 && next == version);
    GOOD(rackmem_objects_timedread(objects, 3, back, sizeof back, 1000000, NULL));
    GOOD(rackmem_objects_write_if(objects, 3, version, page, sizeof page, &next));
    CHECK(next > version);
    WRONG(RACKMEM_CHANGED, rackmem_objects_write_if(objects, 3, version, page, sizeof page, NULL));
    WRONG(RACKMEM_UNALLOCATED, rackmem_objects_read(objects, 3, back, 99, 0, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_objects_read(objects, 3, NULL, 100, 0, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_objects_read(objects, 10, back, 100, 0, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_objects_timedread(objects, 10, back, 100, 1, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_objects_write(objects, 3, 97, page, 4, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_objects_write(objects, 3, 0, NULL, 4, NULL));
    WRONG(RACKMEM_UNALLOCATED, rackmem_objects_write_if(objects, 3, 0, page, 4, NULL));
    BAD(rackmem_thread, closed_thread, rackmem_objects_create(bad, 0, 1, 8, &none));
    BAD(rackmem_thread, closed_thread, rackmem_objects_open(bad, address, &none));
    BAD(rackmem_objects, closed, rackmem_objects_read(bad, 0, back, 100, 0, NULL));
    BAD(rackmem_objects, closed, rackmem_objects_timedread(bad, 0, back, 100, 1, NULL));
    BAD(rackmem_objects, closed, rackmem_objects_write(bad, 0, 0, page, 100, NULL));
    BAD(rackmem_objects, closed, rackmem_objects_write_if(bad, 0, 0, page, 100, NULL));
    BAD(rackmem_objects, closed, rackmem_objects_free(bad));
    BAD_IS_ZERO(rackmem_objects, closed, rackmem_objects_address(bad));
    BAD_IS_ZERO(rackmem_objects, closed, rackmem_objects_count(bad));
    BAD_IS_ZERO(rackmem_objects, closed, rackmem_objects_len(bad));
    BAD_BUT_NULL(rackmem_objects, closed, rackmem_objects_close(bad));
    GOOD(rackmem_objects_free(objects));
}

static void chains_of_values(rackmem_thread closed_thread) {
    rackmem_chains chains, closed, none;
    const uint16_t homes[2] = {0, 1};
    rackmem_chains_config config;
    char value[8];
    size_t len;
    memset(&config, 0, sizeof config);
    config.homes = homes;
    config.homes_len = 2;
    config.bytes = 1 << 16;
    GOOD(rackmem_chains_create(thread, &config, &chains));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_create(thread, NULL, &none));
    CHECK(none.id == 0);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_create(thread, &config, NULL));
    rackmem_chains_config wrong = config;
    wrong.homes_len = 0;
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_create(thread, &wrong, &none));
    wrong.homes_len = SIZE_MAX;
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_create(thread, &wrong, &none));
    wrong = config;
    wrong.homes = NULL;
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_create(thread, &wrong, &none));
    wrong = config;
    wrong.copies = 3;
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_create(thread, &wrong, &none));
    wrong = config;
    wrong.server = 99;
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_create(thread, &wrong, &none));
    uint64_t address = rackmem_chains_address(chains);
    CHECK(address != 0 && rackmem_chains_address(chains) == address);
    GOOD(rackmem_chains_open(thread, address, &closed));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_open(thread, nowhere, &none));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_open(thread, address, NULL));
    GOOD(rackmem_chains_put(closed, 7, "seven", 5));
    GOOD(rackmem_chains_close(closed));
    GOOD(rackmem_chains_get(chains, 7, value, sizeof value, &len));
    CHECK(len == 5 && memcmp(value, "seven", 5) == 0);
    WRONG(RACKMEM_TOO_LONG, rackmem_chains_get(chains, 7, value, 4, &len));
    CHECK(len == 5);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_get(chains, 7, value, 8, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_get(chains, 7, NULL, 8, &len));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_put(chains, 7, NULL, 8));
    GOOD(rackmem_chains_delete(chains, 7));
    WRONG(RACKMEM_NOT_FOUND, rackmem_chains_get(chains, 7, value, sizeof value, &len));
    BAD(rackmem_thread, closed_thread, rackmem_chains_create(bad, &config, &none));
    BAD(rackmem_thread, closed_thread, rackmem_chains_open(bad, address, &none));
    BAD(rackmem_chains, closed, rackmem_chains_get(bad, 7, value, 8, &len));
    BAD(rackmem_chains, closed, rackmem_chains_put(bad, 7, value, 8));
    BAD(rackmem_chains, closed, rackmem_chains_delete(bad, 7));
    BAD(rackmem_chains, closed, rackmem_chains_free(bad));
    BAD_IS_ZERO(rackmem_chains, closed, rackmem_chains_address(bad));
    BAD_BUT_NULL(rackmem_chains, closed, rackmem_chains_close(bad));
    GOOD(rackmem_chains_free(chains));
    WRONG(RACKMEM_UNALLOCATED, rackmem_chains_open(thread, address, &none));
}

/* A slot is used again, and the former handle is not the new one's; what a thread has opened goes with it. */
static void handles_have_generations(void) {
    rackmem_thread owner;
    rackmem_words words, again;
    rackmem_objects objects;
    rackmem_rwlock lock;
    rackmem_pending pending;
    uint64_t value;
    GOOD(rackmem_words_create(thread, 0, 1, &words));
    uint64_t address = rackmem_words_address(words);
    for (int time = 0; time < 1000; time++) {
        rackmem_words former = words;
        GOOD(rackmem_words_close(words));
        GOOD(rackmem_words_open(thread, address, &words));
        CHECK(words.id != former.id);
        WRONG(RACKMEM_BAD_HANDLE, rackmem_words_add(former, 0, 1));
        CHECK(strstr(rackmem_message(), "closed") != NULL);
    }
    GOOD(rackmem_thread_open(rack, 1, &owner));
    GOOD(rackmem_words_open(owner, address, &again));
    GOOD(rackmem_objects_create(owner, 0, 1, 8, &objects));
    GOOD(rackmem_rwlock_create(owner, 0, 8, &lock));
    GOOD(rackmem_words_post(again, 0, RACKMEM_ADD, 1, 0, &pending));
    GOOD(rackmem_thread_close(owner));
    WRONG(RACKMEM_BAD_HANDLE, rackmem_words_add(again, 0, 1));
    WRONG(RACKMEM_BAD_HANDLE, rackmem_objects_free(objects));
    WRONG(RACKMEM_BAD_HANDLE, rackmem_rwlock_free(lock));
    WRONG(RACKMEM_BAD_HANDLE, rackmem_pending_wait(pending, &value));
    GOOD(rackmem_words_load(words, 0, &value));
    CHECK(value == 1);
    GOOD(rackmem_words_free(words));
    /* There are not endlessly many. */
    static rackmem_thread all[5000];
    enum rackmem_status status = RACKMEM_OK;
    int opened = 0;
    while (opened < 5000 && status == RACKMEM_OK) {
        status = rackmem_thread_open(rack, 0, &all[opened++]);
    }
    CHECK(status == RACKMEM_TOO_MANY && all[opened - 1].id == 0);
    for (int which = 0; which < opened; which++) {
        GOOD(rackmem_thread_close(all[which]));
    }
}

int main(void) {
    rackmem_thread closed;
    uint64_t word;
    const void *seen;
    /* Before anything was opened. */
    rackmem_thread early = {0};
    rackmem_words early_words = {0};
    rackmem_rwlock early_lock = {0};
    WRONG(RACKMEM_BAD_HANDLE, rackmem_read_word(early, 4096, &word));
    WRONG(RACKMEM_BAD_HANDLE, rackmem_words_fetch_add(early_words, 0, 1, &word));
    WRONG(RACKMEM_BAD_HANDLE, rackmem_rwlock_read(early_lock, &seen));
    GOOD(rackmem_open_embedded(2, 8 << 20, &rack));
    GOOD(rackmem_thread_open(rack, 0, &thread));
    GOOD(rackmem_thread_open(rack, 0, &closed));
    GOOD(rackmem_thread_close(closed));
    status_and_version();
    racks();
    coherent_memory(closed);
    locks(closed);
    words_of_both_widths(closed);
    objects_read_whole(closed);
    chains_of_values(closed);
    handles_have_generations();
    GOOD(rackmem_thread_close(thread));
    GOOD(rackmem_close(rack));
    puts("ok");
    return 0;
}
