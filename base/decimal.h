/* Decimal numbers in texts of files and of the environment. */
#ifndef MT_BASE_DECIMAL_H
#define MT_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All of the text: digits and nothing else, at least one. False if it is no uint64_t; *value has
 * no meaning then. */
bool mt_decimal_read(const char *text, size_t length, uint64_t *value);

/* The digits at *at: as above, and *at moves behind them. Stays where it is if this is false. */
bool mt_decimal_take(const char **at, const char *end, uint64_t *value);

#endif
