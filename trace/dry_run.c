#include "dry_run.h"

#include <string.h>

#include "decimal.h"
#include "foreign_text.h"

void mt_dry_run_write(const struct mt_dry_run *dry_run, struct mt_buf *out)
{
    mt_buf_printf(out, "version=1;card=%s;devices=", dry_run->card);
    mt_buf_add_u64(out, dry_run->devices);
    mt_buf_add_text(out, ";memory_bytes=");
    mt_buf_add_u64(out, dry_run->memory_bytes);
}

/* Reads digits only; returns 0 for anything else. */
static uint64_t number_of(const char *text, size_t length)
{
    uint64_t number;

    return mt_decimal_read(text, length, &number) ? number : 0;
}

/* "key=value" */
static void read_pair(const char *pair, size_t length, struct mt_dry_run *dry_run)
{
    const char *equals = memchr(pair, '=', length);
    size_t key = equals ? (size_t)(equals - pair) : 0, rest = equals ? length - key - 1 : 0;

    if (key == strlen("card") && !memcmp(pair, "card", key) && rest < sizeof dry_run->card) {
        memcpy(dry_run->card, equals + 1, rest);
        dry_run->card[rest] = '\0';
    } else if (key == strlen("devices") && !memcmp(pair, "devices", key)) {
        dry_run->devices = number_of(equals + 1, rest);
    } else if (key == strlen("memory_bytes") && !memcmp(pair, "memory_bytes", key)) {
        dry_run->memory_bytes = number_of(equals + 1, rest);
    }
}

bool mt_dry_run_read(const char *fact, struct mt_dry_run *dry_run)
{
    *dry_run = (struct mt_dry_run){.card = ""};
    if (!fact)
        return false;
    for (const char *at = fact; *at; at += *at == ';') {
        size_t length = strcspn(at, ";");

        read_pair(at, length, dry_run);
        at += length;
    }
    return true;
}

void mt_add_simulated_card(struct mt_buf *out, const struct mt_dry_run *dry_run)
{
    mt_buf_add_text(out, "simulated ");
    if (*dry_run->card)
        mt_buf_add_printable_text(out, dry_run->card);
    else
        mt_buf_add_text(out, "device");
}
