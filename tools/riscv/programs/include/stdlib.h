/* The little of the standard library that kernels use. */
#ifndef STDLIB_H
#define STDLIB_H

#include <stddef.h>

void exit(int code) __attribute__((noreturn));
unsigned long strtoul(const char *text, char **end, int base);

#endif
