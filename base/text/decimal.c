#include "decimal.h"

#include "util.h"

bool mt_decimal_take(const char **at, const char *end, uint64_t *value)
{
    const char *next = *at;

    *value = 0;
    for (; next < end && *next >= '0' && *next <= '9'; next++)
        if (!mt_mul_ok(*value, 10, value) || !mt_add_ok(*value, (uint64_t)(*next - '0'), value))
            return false;
    if (next == *at)
        return false;
    *at = next;
    return true;
}

bool mt_decimal_read(const char *text, size_t length, uint64_t *value)
{
    const char *at = text;

    return mt_decimal_take(&at, text + length, value) && at == text + length;
}
