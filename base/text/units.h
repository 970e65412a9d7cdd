/* Numbers for people, the same in text and pictures: three
 * significant digits, IEC units, real minus sign, thousands commas, no locale. */
#ifndef MT_BASE_UNITS_H
#define MT_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

/* Large enough for every function below. */
#define MT_UNITS_TEXT 48

/* "6.45 GiB", "774 MiB", "1.00 KiB", "512 B", "0 B". Switches units so that "1000 KiB" never
 * appears. All functions return `text`. */
char *mt_format_bytes(char text[MT_UNITS_TEXT], uint64_t bytes);
/* The same, in the unit that `like_bytes` gets, so that parts and their sum have one unit: "0.13
 * GiB" of 9.22 GiB. At most two decimals; a positive number that they would hide is "<0.01 GiB". */
char *mt_format_bytes_like(char text[MT_UNITS_TEXT], uint64_t bytes, uint64_t like_bytes);
/* Formats two numbers that one sentence compares. If they differ but would look the same, formats
 * both in bytes ("1,234,567 B"). */
void mt_format_bytes_distinct(char one[MT_UNITS_TEXT], uint64_t one_bytes,
                              char other[MT_UNITS_TEXT], uint64_t other_bytes);
/* "1,690 MiB", "57.9 MiB": always MiB, with a decimal below 100. Rounds up, so that the result
 * suffices as a limit. For quantities that a reader compares. */
char *mt_format_mib(char text[MT_UNITS_TEXT], uint64_t bytes);
/* "+458 MiB", "−1.94 GiB" (U+2212), "±0". */
char *mt_format_change(char text[MT_UNITS_TEXT], int64_t bytes);
/* "20,749,221,888" */
char *mt_format_count(char text[MT_UNITS_TEXT], uint64_t value);
/* Returns the ending of a noun: "" for 1, otherwise "s". For a noun apart from its count, and for a
 * count that is not written as above. */
static inline const char *mt_plural_s(uint64_t count)
{
    return count == 1 ? "" : "s";
}
/* A count and its noun: "1 block", "1,234 blocks". `noun` has at most 19 bytes. */
char *mt_format_counted(char text[MT_UNITS_TEXT], uint64_t value, const char *noun);
/* "66.6%", "<0.1%" for tiny positive ones, "0%". share: 0..1 and beyond. */
char *mt_format_percent(char text[MT_UNITS_TEXT], double share);
/* "4.63 s", "26.4 ms", "13 us" with a micro sign, "0 s". */
char *mt_format_duration(char text[MT_UNITS_TEXT], uint64_t ns);

/* True for a unit that these functions write after a number and a space: "GiB", "ms". */
bool mt_units_is_unit(const char *word, size_t length);

/* Returns the length of the unit that `text` begins with, as a whole word: 3 for "GiB, ..."; 0 =
 * none. */
size_t mt_unit_length(const char *text);

/* Reads the digits of a number as mt_format_count writes it, or without commas. Returns the first
 * character after them; NULL if there is no number, or if it is too large. */
const char *mt_parse_count(const char *text, uint64_t *count) MT_MUST_USE;

/* Reads "12GiB", "9,000 MiB", "1.5g", "512" or "20MB" (decimal) into *bytes. Returns MT_ERR_USAGE
 * for any other text, and for a number that is too large. */
enum mt_status mt_parse_bytes(const char *text, uint64_t *bytes) MT_MUST_USE;

#endif
