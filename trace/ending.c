#include "ending.h"

#include <stdio.h>
#include <string.h>

#include "decimal.h"

static const char exit_start[] = "exit:", signal_start[] = "signal:";

enum { MAX_EXIT_STATUS = 255, MAX_SIGNAL = 127 };

const char *mt_ending_text(enum mt_ending ending, int32_t number, char text[MT_ENDING_TEXT])
{
    if (ending == MT_ENDED_EXIT && number >= 0 && number <= MAX_EXIT_STATUS)
        snprintf(text, MT_ENDING_TEXT, "%s%d", exit_start, number);
    else if (ending == MT_ENDED_SIGNAL && number > 0 && number <= MAX_SIGNAL)
        snprintf(text, MT_ENDING_TEXT, "%s%d", signal_start, number);
    else
        snprintf(text, MT_ENDING_TEXT, "%s",
                 ending == MT_ENDED_TIMEOUT      ? "timeout"
                 : ending == MT_ENDED_OOM_KILLED ? "oom-killed"
                                                 : "unknown");
    return text;
}

static bool read_number(const char *text, const char *start, uint64_t least, uint64_t most,
                        int32_t *number)
{
    size_t length = strlen(start);
    uint64_t value;

    if (strncmp(text, start, length) ||
        !mt_decimal_read(text + length, strlen(text + length), &value) || value < least ||
        value > most)
        return false;
    *number = (int32_t)value;
    return true;
}

bool mt_ending_read(const char *text, enum mt_ending *ending, int32_t *number)
{
    *ending = MT_ENDED_UNKNOWN;
    *number = 0;
    if (!text)
        return false;
    if (read_number(text, exit_start, 0, MAX_EXIT_STATUS, number))
        *ending = MT_ENDED_EXIT;
    else if (read_number(text, signal_start, 1, MAX_SIGNAL, number))
        *ending = MT_ENDED_SIGNAL;
    else if (!strcmp(text, "timeout"))
        *ending = MT_ENDED_TIMEOUT;
    else if (!strcmp(text, "oom-killed"))
        *ending = MT_ENDED_OOM_KILLED;
    return *ending != MT_ENDED_UNKNOWN || !strcmp(text, "unknown");
}

const char *mt_ending_doubt(enum mt_ending kind, int32_t number)
{
    switch (kind) {
    case MT_ENDED_TIMEOUT: return "a timeout ended the run";
    case MT_ENDED_SIGNAL:
    case MT_ENDED_OOM_KILLED: return "a signal ended the command";
    case MT_ENDED_EXIT: return number ? "the command failed" : NULL;
    case MT_ENDED_UNKNOWN: break;
    }
    return NULL;
}
