#include "reading.h"

#include <stdio.h>
#include <string.h>

#include "units.h"

enum { LINE_BYTES = 64 };

void mt_reading_of_feed(void *context, uint64_t read_bytes, uint64_t size_bytes)
{
    char bytes[MT_UNITS_TEXT], line[LINE_BYTES];

    if (size_bytes) {
        mt_progress_update(context, "reading", (double)read_bytes / (double)size_bytes);
        return;
    }
    snprintf(line, sizeof line, "reading, %s", mt_format_bytes(bytes, read_bytes));
    mt_progress_update(context, line, MT_SHARE_UNKNOWN);
}

static void was_read(void *context, const struct mt_source *source)
{
    struct mt_reading *reading = context;
    const uint64_t pass = source->readings - reading->readings_before;
    char line[LINE_BYTES], digits[MT_UNITS_TEXT];

    if (pass > 1)
        snprintf(line, sizeof line, "%s, pass %s", reading->what, mt_format_count(digits, pass));
    else
        snprintf(line, sizeof line, "%s", reading->what);
    mt_progress_update(&reading->progress, line, mt_source_share(source));
}

void mt_reading_start(struct mt_reading *reading, struct mt_source *source, const char *what,
                      bool quiet)
{
    *reading =
        (struct mt_reading){.source = source, .what = what, .readings_before = source->readings};
    mt_progress_start(&reading->progress, quiet);
    source->watch = (struct mt_source_watch){was_read, reading};
}

void mt_reading_end(struct mt_reading *reading)
{
    if (reading->source)
        memset(&reading->source->watch, 0, sizeof reading->source->watch);
    mt_progress_end(&reading->progress);
    reading->source = NULL;
}
