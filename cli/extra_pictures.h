/* The pictures of `analyze -o DIR` that take more than the report of the trace. */
#ifndef MT_CLI_EXTRA_PICTURES_H
#define MT_CLI_EXTRA_PICTURES_H

#include "cli.h"
#include "draw.h"
#include "outputs.h"

struct mt_extra_pictures {
    const char *directory, *path; /* where to; the trace */
    const char *base;             /* a trace to compare with, NULL = none */
    bool wants_policies;
    const struct mt_common *common;
    const struct mt_outputs *outputs;
};

/* Before the analysis: says which of them could not be written; enum mt_exit. */
int mt_extra_pictures_precheck(const struct mt_extra_pictures *pictures);

/* Writes them, and their names as the others' are. Says what is wrong; enum mt_exit. */
int mt_extra_pictures_write(const struct mt_extra_pictures *pictures, struct mt_buf *names);

#endif
