/* Also what compilers call by themselves. */
#ifndef STRING_H
#define STRING_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int strcmp(const char *one, const char *other);

#endif
