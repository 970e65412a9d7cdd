/* A trace that replaces another one: written to a temporary file beside it, read back, and
 * renamed only if it is sound. Until then, and after any failure, the old trace is unchanged. */
#ifndef MT_COLLECTOR_REPLACEMENT_H
#define MT_COLLECTOR_REPLACEMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "temporary_file.h"

struct mt_replacement {
    const char *path; /* borrowed: what is replaced */
    struct mt_temporary file;
};

/* Creates an empty file, readable by its owner only, in the folder of `path`. A signal handler
 * can remove the files of `list` (borrowed, may be NULL). */
enum mt_status mt_replacement_begin(struct mt_replacement *self, const char *path,
                                    struct mt_unfinished *list, struct mt_error *error) MT_MUST_USE;

struct mt_replacement_facts {
    const struct stat *old; /* of the file that is replaced; NULL = there is none */
    uint64_t events;        /* number of events that were written, including the end record */
    bool ended;             /* the trace was finished */
};

/* Reads the new trace back and renames it to `path`, with the owner and the mode of the old file.
 * Fails if it does not contain the events that were written, if a frame is damaged, or if `path`
 * has become another file meanwhile. */
enum mt_status mt_replacement_finish(struct mt_replacement *self,
                                     const struct mt_replacement_facts *facts,
                                     struct mt_error *error) MT_MUST_USE;

/* Removes an unfinished file. Accepts zeroed memory with file.fd = -1. */
void mt_replacement_release(struct mt_replacement *self);

#define MT_ANY_COUNT UINT64_MAX

/* Reads the trace that is open as `fd` to its end. Returns MT_OK if nothing is damaged and it has
 * `events` events (MT_ANY_COUNT: any number). `ended` requires an end record and an index. */
enum mt_status mt_trace_read_back(int fd, uint64_t events, bool ended,
                                  struct mt_error *error) MT_MUST_USE;

#endif
