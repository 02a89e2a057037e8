/* Every function about names and values, once as it is meant and once as it is not, as in functions.c. */
#include "refused.h"

#define ALL_WRONG(status, call, named)                                                             \
    do {                                                                                           \
        WRONG(status, call);                                                                       \
        CHECK((named).id == 0);                                                                    \
    } while (0)

static const rackmem_type quota = {"quota", 1};
static rackmem_thread there;

/* What is no name is refused with a text, whatever is asked. */
static void what_is_no_name(void) {
    char long_name[301], long_tag[70];
    rackmem_words words;
    rackmem_named named;
    size_t count;
    memset(long_name, 'n', 300);
    long_name[300] = 0;
    memset(long_tag, 't', 65);
    long_tag[65] = 0;
    const rackmem_type too_long = {long_tag, 0}, no_text = {"\xff", 0};
    const char *const names[] = {NULL, "", long_name, "\xff\xfe", "a\nb"};
    const char *const texts[] = {"name is null", "1 to 255 bytes", "1 to 255 bytes", "is not UTF-8", "control characters"};
    for (int which = 0; which < 5; which++) {
        const char *name = names[which];
        for (int mode = RACKMEM_OPEN; mode <= RACKMEM_CREATE_ANEW; mode++) {
            ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_named(thread, name, mode, NULL, 1, &words), words);
            CHECK(strstr(rackmem_message(), texts[which]) != NULL);
        }
        WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_name_info(thread, name, &named));
        WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_name_remove(thread, name));
        if (name != NULL && *name != 0) {
            WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_names(thread, name, NULL, 0, &count));
        }
    }
    long_name[255] = 0;
    GOOD(rackmem_words_named(thread, long_name, RACKMEM_CREATE, NULL, 1, &words));
    GOOD(rackmem_name_info(thread, long_name, &named));
    CHECK(strcmp(named.name, long_name) == 0);
    GOOD(rackmem_name_remove(thread, long_name));
    GOOD(rackmem_words_close(words));
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_named(thread, "w", RACKMEM_CREATE, &too_long, 1, &words), words);
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_named(thread, "w", RACKMEM_CREATE, &no_text, 1, &words), words);
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_named(thread, "w", 0, NULL, 1, &words), words);
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_named(thread, "w", 5, NULL, 1, &words), words);
    WRONG(RACKMEM_NOT_FOUND, rackmem_name_info(thread, "w", &named));
}

static void locks(rackmem_thread closed) {
    const uint64_t begin[2] = {7, 8};
    rackmem_rwlock mine, theirs, none;
    rackmem_named named;
    void *data;
    const void *seen;
    ALL_WRONG(RACKMEM_NOT_FOUND, rackmem_rwlock_named(thread, "lock", RACKMEM_OPEN, &quota, 16, NULL, &none), none);
    GOOD(rackmem_rwlock_named(thread, "lock", RACKMEM_OPEN_OR_CREATE, &quota, sizeof begin, begin, &mine));
    GOOD(rackmem_rwlock_named(there, "lock", RACKMEM_OPEN_OR_CREATE, &quota, sizeof begin, NULL, &theirs));
    CHECK(rackmem_rwlock_address(mine) == rackmem_rwlock_address(theirs));
    for (int time = 0; time < 3; time++) {
        GOOD(rackmem_rwlock_write(time % 2 ? mine : theirs, &data));
        CHECK(((uint64_t *)data)[0] == 7 + (uint64_t)time && ((uint64_t *)data)[1] == 8);
        ((uint64_t *)data)[0]++;
        GOOD(rackmem_rwlock_unlock(time % 2 ? mine : theirs));
    }
    GOOD(rackmem_name_info(there, "lock", &named));
    CHECK(named.kind == RACKMEM_KIND_RWLOCK && named.len == 16 && named.count == 1 && named.version == 1);
    CHECK(strcmp(named.name, "lock") == 0 && strcmp(named.tag, "quota") == 0 && named.maker == 0);
    CHECK(named.address == rackmem_rwlock_address(mine) && named.opened == 1 && named.making > 0);
    CHECK(named.home == named.address >> 48);
    /* Whatever differs, both are shown. */
    const rackmem_type other = {"quota", 2};
    rackmem_words words;
    ALL_WRONG(RACKMEM_DIFFERS, rackmem_rwlock_named(there, "lock", RACKMEM_OPEN, &other, 16, NULL, &none), none);
    CHECK(strstr(rackmem_message(), "there is Locked, 16 B, type quota, version 1") != NULL);
    CHECK(strstr(rackmem_message(), "asked for was Locked, 16 B, type quota, version 2") != NULL);
    ALL_WRONG(RACKMEM_DIFFERS, rackmem_rwlock_named(there, "lock", RACKMEM_OPEN_OR_CREATE, &quota, 24, NULL, &none), none);
    ALL_WRONG(RACKMEM_DIFFERS, rackmem_rwlock_named(there, "lock", RACKMEM_CREATE_ANEW, NULL, 16, NULL, &none), none);
    ALL_WRONG(RACKMEM_DIFFERS, rackmem_words_named(there, "lock", RACKMEM_OPEN, &quota, 2, &words), words);
    ALL_WRONG(RACKMEM_EXISTS, rackmem_rwlock_named(there, "lock", RACKMEM_CREATE, &quota, 16, NULL, &none), none);
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_named(there, "big", RACKMEM_CREATE, NULL, 2 << 20, NULL, &none), none);
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_named(there, "big", RACKMEM_CREATE, NULL, SIZE_MAX, NULL, &none), none);
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_named(there, "big", RACKMEM_CREATE, NULL, SIZE_MAX, begin, &none), none);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_rwlock_named(thread, "lock", RACKMEM_OPEN, &quota, 16, NULL, NULL));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_name_info(thread, "lock", NULL));
    BAD(rackmem_thread, closed, rackmem_rwlock_named(bad, "lock", RACKMEM_OPEN, &quota, 16, NULL, &none));
    BAD(rackmem_thread, closed, rackmem_name_info(bad, "lock", &named));
    /* Whoever holds it would wait for itself. */
    GOOD(rackmem_rwlock_read(mine, &seen));
    WRONG(RACKMEM_DEADLOCK, rackmem_name_remove(thread, "lock"));
    GOOD(rackmem_rwlock_unlock(mine));
    GOOD(rackmem_name_remove(there, "lock"));
    WRONG(RACKMEM_NOT_FOUND, rackmem_name_remove(there, "lock"));
    WRONG(RACKMEM_UNALLOCATED, rackmem_rwlock_write(mine, &data));
    BAD(rackmem_thread, closed, rackmem_name_remove(bad, "lock"));
    /* Where it was there is another one by now, perhaps at the same place: it is not the one that was opened. */
    rackmem_rwlock again;
    GOOD(rackmem_rwlock_named(thread, "lock", RACKMEM_CREATE_ANEW, &quota, 16, NULL, &again));
    enum rackmem_status status = rackmem_rwlock_write(theirs, &data);
    CHECK((status == RACKMEM_LOST || status == RACKMEM_UNALLOCATED) && data == NULL);
    CHECK(rackmem_rwlock_unlock(theirs) == RACKMEM_NOT_HELD);
    CHECK(rackmem_rwlock_address(again) == rackmem_rwlock_address(theirs) && status == RACKMEM_LOST);
    /* Poison is seen through every handle. */
    GOOD(rackmem_rwlock_write(again, &data));
    GOOD(rackmem_rwlock_set_poisoned(again, true));
    GOOD(rackmem_rwlock_unlock(again));
    CHECK(rackmem_rwlock_write(again, &data) == RACKMEM_POISONED);
    GOOD(rackmem_rwlock_set_poisoned(again, false));
    GOOD(rackmem_rwlock_unlock(again));
    GOOD(rackmem_rwlock_write(again, &data));
    GOOD(rackmem_rwlock_unlock(again));
    GOOD(rackmem_rwlock_close(again));
    GOOD(rackmem_rwlock_close(mine));
    GOOD(rackmem_rwlock_close(theirs));
    GOOD(rackmem_name_remove(thread, "lock"));
}

static void values(rackmem_thread closed_thread) {
    rackmem_value mine, theirs, closed, none;
    const char begin[6] = "begin", other[6] = "other";
    char is[6];
    static char page[8192];
    GOOD(rackmem_value_named(thread, "value", RACKMEM_CREATE, &quota, sizeof begin, begin, &mine));
    GOOD(rackmem_value_named(there, "value", RACKMEM_OPEN, &quota, sizeof begin, NULL, &theirs));
    CHECK(rackmem_value_len(theirs) == 6);
    GOOD(rackmem_value_get(theirs, is, sizeof is));
    CHECK(strcmp(is, "begin") == 0);
    GOOD(rackmem_value_set(theirs, other, sizeof other));
    WRONG(RACKMEM_CHANGED, rackmem_value_set_if(mine, begin, begin, sizeof begin));
    GOOD(rackmem_value_set_if(mine, other, begin, sizeof begin));
    GOOD(rackmem_value_get(theirs, is, sizeof is));
    CHECK(strcmp(is, "begin") == 0);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_value_get(mine, is, 5));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_value_get(mine, NULL, 6));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_value_set(mine, is, 7));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_value_set(mine, NULL, 6));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_value_set_if(mine, NULL, is, 6));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_value_set_if(mine, is, NULL, 6));
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_value_named(thread, "page", RACKMEM_CREATE, NULL, sizeof page, page, &none), none);
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_value_named(thread, "page", RACKMEM_CREATE, NULL, SIZE_MAX, NULL, &none), none);
    ALL_WRONG(RACKMEM_DIFFERS, rackmem_value_named(thread, "value", RACKMEM_OPEN, &quota, 7, NULL, &none), none);
    GOOD(rackmem_value_named(thread, "value", RACKMEM_OPEN, &quota, 6, NULL, &closed));
    GOOD(rackmem_value_close(closed));
    BAD(rackmem_thread, closed_thread, rackmem_value_named(bad, "value", RACKMEM_OPEN, &quota, 6, NULL, &none));
    BAD(rackmem_value, closed, rackmem_value_get(bad, is, 6));
    BAD(rackmem_value, closed, rackmem_value_set(bad, is, 6));
    BAD(rackmem_value, closed, rackmem_value_set_if(bad, is, is, 6));
    BAD_IS_ZERO(rackmem_value, closed, rackmem_value_len(bad));
    BAD_BUT_NULL(rackmem_value, closed, rackmem_value_close(bad));
    GOOD(rackmem_name_remove(thread, "value"));
    WRONG(RACKMEM_UNALLOCATED, rackmem_value_get(theirs, is, 6));
    /* Left open: the threads close them. */
}

static void words_and_objects(rackmem_thread closed) {
    rackmem_words words, same, none;
    rackmem_objects objects, whatever, no_objects;
    uint64_t old;
    GOOD(rackmem_words_named(thread, "hits", RACKMEM_OPEN_OR_CREATE, NULL, 16, &words));
    GOOD(rackmem_words_named(there, "hits", RACKMEM_OPEN, NULL, 0, &same));
    CHECK(rackmem_words_len(same) == 16);
    GOOD(rackmem_words_fetch_add(words, 3, 5, &old));
    GOOD(rackmem_words_fetch_add(same, 3, 5, &old));
    CHECK(old == 5);
    ALL_WRONG(RACKMEM_DIFFERS, rackmem_words_named(there, "hits", RACKMEM_OPEN_OR_CREATE, NULL, 17, &none), none);
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_named(there, "none", RACKMEM_CREATE, NULL, 0, &none), none);
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_named(there, "none", RACKMEM_CREATE, NULL, SIZE_MAX, &none), none);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_words_named(there, "hits", RACKMEM_OPEN, NULL, 0, NULL));
    BAD(rackmem_thread, closed, rackmem_words_named(bad, "hits", RACKMEM_OPEN, NULL, 0, &none));

    GOOD(rackmem_objects_named(thread, "pages", RACKMEM_OPEN_OR_CREATE, &quota, 10, 100, &objects));
    GOOD(rackmem_objects_named(there, "pages", RACKMEM_OPEN, &quota, 0, 0, &whatever));
    CHECK(rackmem_objects_count(whatever) == 10 && rackmem_objects_len(whatever) == 100);
    ALL_WRONG(RACKMEM_DIFFERS, rackmem_objects_named(there, "pages", RACKMEM_OPEN, &quota, 10, 99, &no_objects), no_objects);
    ALL_WRONG(RACKMEM_DIFFERS, rackmem_objects_named(there, "pages", RACKMEM_OPEN, NULL, 0, 0, &no_objects), no_objects);
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_objects_named(there, "none", RACKMEM_CREATE, NULL, 0, 8, &no_objects), no_objects);
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_objects_named(there, "none", RACKMEM_CREATE, NULL, 8, SIZE_MAX, &no_objects), no_objects);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_objects_named(there, "pages", RACKMEM_OPEN, &quota, 0, 0, NULL));
    BAD(rackmem_thread, closed, rackmem_objects_named(bad, "pages", RACKMEM_OPEN, &quota, 0, 0, &no_objects));
}

static void chains(rackmem_thread closed) {
    rackmem_chains mine, theirs, none;
    rackmem_chains_config config;
    char value[8];
    size_t len;
    memset(&config, 0, sizeof config);
    config.bytes = 1 << 16;
    GOOD(rackmem_chains_named(thread, "table", RACKMEM_OPEN_OR_CREATE, NULL, &config, &mine));
    GOOD(rackmem_chains_named(there, "table", RACKMEM_OPEN, NULL, NULL, &theirs));
    GOOD(rackmem_chains_put(mine, 7, "seven", 5));
    GOOD(rackmem_chains_get(theirs, 7, value, sizeof value, &len));
    CHECK(len == 5);
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_named(there, "table", RACKMEM_OPEN_OR_CREATE, NULL, NULL, &none), none);
    config.bytes = 1 << 17;
    ALL_WRONG(RACKMEM_DIFFERS, rackmem_chains_named(there, "table", RACKMEM_OPEN_OR_CREATE, NULL, &config, &none), none);
    config.copies = 2;
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_named(there, "copies", RACKMEM_CREATE, NULL, &config, &none), none);
    memset(&config, 0, sizeof config);
    ALL_WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_named(there, "empty", RACKMEM_CREATE, NULL, &config, &none), none);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_chains_named(there, "table", RACKMEM_OPEN, NULL, NULL, NULL));
    BAD(rackmem_thread, closed, rackmem_chains_named(bad, "table", RACKMEM_OPEN, NULL, NULL, &none));
}

static void lists(rackmem_thread closed) {
    rackmem_named named[8];
    size_t count;
    GOOD(rackmem_names(thread, NULL, named, 8, &count));
    CHECK(count == 3 && strcmp(named[0].name, "hits") == 0 && strcmp(named[2].name, "table") == 0);
    CHECK(named[0].copies == 1 && named[0].kind == RACKMEM_KIND_WORDS && named[0].len == 8 && named[0].count == 16);
    CHECK(named[1].kind == RACKMEM_KIND_OBJECTS && named[2].kind == RACKMEM_KIND_CHAINS && named[2].len == 1 << 16);
    GOOD(rackmem_names(there, "pag", named, 1, &count));
    CHECK(count == 1 && strcmp(named[0].name, "pages") == 0);
    GOOD(rackmem_names(thread, "nothing", NULL, 0, &count));
    CHECK(count == 0);
    WRONG(RACKMEM_TOO_LONG, rackmem_names(thread, "", NULL, 0, &count));
    CHECK(count == 3);
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_names(thread, NULL, NULL, 8, &count));
    WRONG(RACKMEM_INVALID_ARGUMENT, rackmem_names(thread, NULL, named, 8, NULL));
    BAD(rackmem_thread, closed, rackmem_names(bad, NULL, named, 8, &count));
}

int main(void) {
    rackmem_thread closed;
    GOOD(rackmem_open_embedded(2, 8 << 20, &rack));
    GOOD(rackmem_thread_open(rack, 0, &thread));
    GOOD(rackmem_thread_open(rack, 1, &there));
    GOOD(rackmem_thread_open(rack, 0, &closed));
    GOOD(rackmem_thread_close(closed));
    what_is_no_name();
    locks(closed);
    values(closed);
    words_and_objects(closed);
    chains(closed);
    lists(closed);
    GOOD(rackmem_thread_close(there));
    GOOD(rackmem_thread_close(thread));
    GOOD(rackmem_close(rack));
    puts("ok");
    return 0;
}
