/* Calls that have to succeed, and calls that have to be refused: BAD is what a handle must not be, WRONG any other argument. */
#ifndef REFUSED_H
#define REFUSED_H

#include "check.h"

#define GOOD(call) DO(call)
#define WRONG(status, call) CHECK((call) == (status) && strlen(rackmem_message()) > 0)
/* The call with each handle that is not one of this kind: null, closed, of another kind, and none at all. */
#define BAD(kind, closed, call)                                                                    \
    do {                                                                                           \
        uint64_t ids[7] = {0, (closed).id, other_kind((closed).id), 1, UINT64_MAX, 0x4142434445464748, 4096}; \
        for (int which = 0; which < 7; which++) {                                                  \
            kind bad = {ids[which]};                                                               \
            WRONG(RACKMEM_BAD_HANDLE, call);                                                       \
        }                                                                                          \
    } while (0)
/* The same of what may be null. */
#define BAD_BUT_NULL(kind, closed, call)                                                           \
    do {                                                                                           \
        uint64_t ids[5] = {(closed).id, other_kind((closed).id), 1, UINT64_MAX, 0x4142434445464748}; \
        for (int which = 0; which < 5; which++) {                                                  \
            kind bad = {ids[which]};                                                               \
            WRONG(RACKMEM_BAD_HANDLE, call);                                                       \
        }                                                                                          \
        kind bad = {0};                                                                            \
        GOOD(call);                                                                                \
    } while (0)
/* The same of what returns a number: 0. */
#define BAD_IS_ZERO(kind, closed, call)                                                            \
    do {                                                                                           \
        uint64_t ids[5] = {0, (closed).id, other_kind((closed).id), UINT64_MAX, 0x4142434445464748}; \
        for (int which = 0; which < 5; which++) {                                                  \
            kind bad = {ids[which]};                                                               \
            CHECK((call) == 0);                                                                    \
        }                                                                                          \
    } while (0)

static rackmem_rack rack;
static rackmem_thread thread;

/* A handle that is open, of another kind. */
static uint64_t other_kind(uint64_t id) {
    const uint64_t thread_kind = 2;
    return (id & 63) == thread_kind ? rack.id : thread.id;
}

#endif
