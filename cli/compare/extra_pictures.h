/* Pictures of `analyze -o DIR` that need more data than the report of the trace. */
#ifndef MT_CLI_EXTRA_PICTURES_H
#define MT_CLI_EXTRA_PICTURES_H

#include "cli.h"
#include "draw.h"
#include "outputs.h"

struct mt_extra_pictures {
    const char *directory, *path; /* directory: for the pictures; path: of the trace */
    const char *base;             /* trace for a comparison; NULL = none */
    const struct mt_common *common;
    const struct mt_outputs *outputs;
};

/* Prints which pictures cannot be written. Call it before the analysis. Returns enum mt_exit. */
int mt_extra_pictures_precheck(const struct mt_extra_pictures *pictures);

/* Writes the pictures and appends their names to `names`. Prints errors; returns enum mt_exit. */
int mt_extra_pictures_write(const struct mt_extra_pictures *pictures, struct mt_buf *names);

#endif
