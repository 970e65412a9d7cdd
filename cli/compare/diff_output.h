/* The answer of diff, as text and as JSON: of two runs, and of a run and an estimate. */
#ifndef MT_CLI_DIFF_OUTPUT_H
#define MT_CLI_DIFF_OUTPUT_H

#include <string.h>

#include "analyze_output.h"
#include "diff.h"
#include "units.h"

struct mt_diff_output {
    const struct mt_diff *diff;
    const struct mt_question *question;
    struct mt_arena *arena; /* for texts */
    bool all;               /* no limits (--all) */
};

/* Returns the bytes that are reserved but not active at the instant. */
static inline uint64_t mt_unused_bytes(const struct mt_answer *answer)
{
    return answer->instant.bytes.reserved - answer->instant.bytes.active;
}

/* "+1,234", "−1,234", "0" */
static inline const char *mt_exact_change(char text[MT_UNITS_TEXT + 4], uint64_t a, uint64_t b)
{
    char digits[MT_UNITS_TEXT];

    mt_format_count(digits, b > a ? b - a : a - b);
    strcpy(text, a == b ? "" : b > a ? "+" : "−");
    return strcat(text, digits);
}

/* Runs `memtrace diff RUN --estimate FILE`. */
struct mt_estimate_request {
    const char *run, *estimate;   /* paths */
    const struct mt_question *at; /* the instant; NULL: the peak of what the estimate is about */
    uint64_t device;              /* or MT_EVERY_DEVICE */
};

/* Prints the comparison, or an error. Returns enum mt_exit. */
int mt_estimate_diff(const struct mt_estimate_request *request, const struct mt_common *common);

#endif
