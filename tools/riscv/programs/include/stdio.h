/* What kernels print with: %d %i %u %x %s %c %%, with l, ll, z and a width. */
#ifndef STDIO_H
#define STDIO_H

int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int puts(const char *text);

#endif
