/* The options --at, --of and --metric of render and export, and --zoom and --step of render. They
 * select the blocks and the metric of an icicle. */
#ifndef MT_CLI_BLOCKS_OPTION_H
#define MT_CLI_BLOCKS_OPTION_H

#include "analyze_options.h"
#include "cli.h"
#include "icicle.h"
#include "report.h"

struct mt_blocks_option {
    const char *at, *of, *metric, *zoom; /* texts of the options; NULL = not given */
    uint64_t step;                       /* UINT64_MAX = not given */
    /* the parsed values */
    struct mt_question question;
    bool is_population; /* selects the blocks of a population instead of an instant */
    enum mt_population_of population;
    enum mt_weigh weigh;
};

/* Rows for a command's table of options. */
/* clang-format off */
#define MT_BLOCKS_OPTIONS(blocks, prefix)                                                          \
    {"at", 0, MT_OPTION_TEXT, "INSTANT",                                                           \
     (prefix "peak, reserved-peak, oom, end, 1.25s, an event, phase:PATH"), &(blocks).at},         \
    {"of", 0, MT_OPTION_TEXT, "BLOCKS",                                                            \
     (prefix "live, allocated-total, grew (left by steps), kept (by one step)"), &(blocks).of},    \
    {"metric", 0, MT_OPTION_TEXT, "METRIC", (prefix "allocated, requested or count"),              \
     &(blocks).metric}
/* clang-format on */

/* Returns the index of `word` in `names`. If `names` does not have the word, prints a message and
 * returns -1. The message suggests the closest name, or lists all names: "--metric must be one of
 * allocated, requested, count, not 'x'". */
int mt_blocks_option_find_word(const char *what, const char *word, const char *const *names,
                               size_t count);

/* Fills the parsed values. Prints an error and returns false if one is invalid. */
bool mt_blocks_option_read(struct mt_blocks_option *blocks);

/* Returns PATH for "phase:PATH". Other text is a phase as reports print it. */
const char *mt_zoom_option_read(const char *text);

/* Returns the options of an analysis that finds only these blocks. */
struct mt_analyze_options mt_blocks_analysis(const struct mt_blocks_option *blocks,
                                             const char *path);

/* Returns true if `device` has these blocks or is NULL. Otherwise prints why it has none. */
bool mt_blocks_found(const struct mt_blocks_option *blocks, const struct mt_report *report,
                     const struct mt_device_report *device, const char *path);

#endif
