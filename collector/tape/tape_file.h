/* Tapes as files: made by a process for itself, read by others after its end. */
#ifndef MT_COLLECTOR_TAPE_FILE_H
#define MT_COLLECTOR_TAPE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "own_file.h"
#include "status.h"
#include "tape.h"

#define MT_TAPE_SUFFIX ".tape"

enum {
    MT_TAPE_DEFINITION_BYTES = 64 << 20, /* address space; disk as needed */
    MT_TAPE_PAGE_BYTES = 4096,           /* the header's */
    MT_TAPE_MIN_SLOTS = 16,
    MT_TAPE_MAX_SLOTS = 65536
};

/* Makes and maps a tape of `slot_count` slots at `path`, which must not exist and
 * must outlive `file`. Its disk space is there: writing to a slot never fails. The
 * process holds a lock on the file until it ends or unmaps the tape, even if the
 * descriptor is closed. `slot_count` from 16 to 65536. */
enum mt_status mt_tape_create(const char *path, uint32_t slot_count, struct mt_tape **tape,
                              struct mt_own_file *file, struct mt_error *error) MT_MUST_USE;

/* Says which file is the tape's trace. */
void mt_tape_set_trace(struct mt_tape *tape, const struct mt_own_file *trace);

/* Disk for the definitions log up to `bytes`; false if there is none. */
bool mt_tape_reserve_definitions(struct mt_own_file *file, const struct mt_tape *tape,
                                 uint64_t bytes);

/* Reads somebody else's tape into memory of its own (tape_read.c): what the file
 * becomes later does not matter. Everything that a reader relies on is checked.
 * Costs time and memory for what is used of the tape, at most 2.1 GiB; the memory
 * counts in the budget (process_memory.h). MT_ERR_FORMAT if it is no regular file, no
 * tape or damaged, MT_ERR_USAGE if its process is still running, MT_ERR_IO if the
 * system cannot say whether it is. Symbolic links are not followed. */
enum mt_status mt_tape_open(const char *path, struct mt_tape **tape,
                            struct mt_error *error) MT_MUST_USE;

/* Is there a tape at `path` whose process runs, or may run? */
bool mt_tape_is_in_use(const char *path);

/* Removes a tape of this user's whose process has ended, even before it wrote to the tape: then the
 * file is empty, or begins with zeros. False if something else lies at `path`: a tape that is in
 * use, or a file that is no tape. For the process that has just made the trace of that tape:
 * nobody else is making the tape now. */
bool mt_tape_make_way(const char *path);

void mt_tape_unmap(struct mt_tape *tape); /* of either kind; NULL is fine */

#endif
