/* What all programs here need: a test that ends the program, and says why. C11 and C++17. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rackmem.h"

static void check_at(const char *file, int line, const char *what, int holds) {
    if (!holds) {
        fprintf(stderr, "%s:%d: %s does not hold: %s\n", file, line, what, rackmem_message());
        exit(1);
    }
}
#define CHECK(what) check_at(__FILE__, __LINE__, #what, (what))
/* A call that has to succeed. */
#define DO(call) CHECK((call) == RACKMEM_OK)

#endif
