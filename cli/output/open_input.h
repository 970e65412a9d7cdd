/* Progress of reading an input: of a file that is opened, and of passes over a source. */
#ifndef MT_CLI_OPEN_INPUT_H
#define MT_CLI_OPEN_INPUT_H

#include "feed.h"
#include "screen.h"
#include "source.h"

/* A command that reads a source one or more times. */
struct mt_reading {
    struct mt_progress progress;
    struct mt_source *source;
    const char *what;         /* "reading" */
    uint64_t readings_before; /* of the source, before the start */
};

/* Shows `what` and the share of the source that is read, until mt_reading_end. Later passes also
 * show their number. Until the end, the struct must not move, and the source must stay open. */
void mt_reading_start(struct mt_reading *reading, struct mt_source *source, const char *what,
                      bool quiet);

/* Removes the line; nothing is shown afterwards. May be called more than once. */
void mt_reading_end(struct mt_reading *reading);

#endif
