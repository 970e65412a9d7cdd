/* Numbers and texts of the pickle protocol 0 (decimal, quoted, escaped) and
 * the little-endian integers of the others. Pure functions; a number that 64
 * bits do not hold becomes MT_PICKLE_BIG. False: not a number. */
#ifndef MT_COLLECTOR_PICKLE_NUMBERS_H
#define MT_COLLECTOR_PICKLE_NUMBERS_H

#include "buf.h"
#include "feed.h"
#include "pickle_value.h"

/* "-12", "12L", with `true_false` also "00" and "01". */
bool mt_pickle_parse_int(const unsigned char *text, size_t length, bool true_false,
                         struct mt_pickle_value *value);

/* "-1.5e3", "inf", "nan"; exact to a few units in the last place. */
bool mt_pickle_parse_float(const unsigned char *text, size_t length, struct mt_pickle_value *value);

/* Two's complement, any length. */
struct mt_pickle_value mt_pickle_long(const unsigned char *bytes, size_t length);

/* Python's repr of a byte string, quotes included -> its bytes. */
bool mt_pickle_unquote(const unsigned char *text, size_t length, struct mt_buf *out);

/* raw-unicode-escape: Latin-1 with \uXXXX and \UXXXXXXXX -> UTF-8. */
bool mt_pickle_unescape(const unsigned char *text, size_t length, struct mt_buf *out);

#endif
