/* Decimal numbers in texts of files and of the environment. */
#ifndef MT_BASE_DECIMAL_H
#define MT_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a text that consists of one or more digits only. Returns false if it is not a uint64_t;
 * *value is then undefined. */
bool mt_decimal_read(const char *text, size_t length, uint64_t *value);

/* Reads the digits at *at and moves *at past them. Returns false, with *at unchanged, if there is
 * no uint64_t. */
bool mt_decimal_take(const char **at, const char *end, uint64_t *value);

#endif
