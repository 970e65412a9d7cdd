/* Tapes as files: made by a process for itself, opened by others after its end. */
#ifndef MT_COLLECTOR_TAPE_FILE_H
#define MT_COLLECTOR_TAPE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "status.h"
#include "tape.h"

#define MT_TAPE_SUFFIX ".tape"

enum { MT_TAPE_DEFINITION_BYTES = 64 << 20 }; /* address space; disk as needed */

/* Makes and maps a tape of `slot_count` slots at `path`, which must not exist.
 * Its disk space is there: writing to a slot never fails. The process holds a
 * lock on *fd until it ends or closes it. `slot_count` from 16 to 65536. */
enum mt_status mt_tape_create(const char *path, uint32_t slot_count, struct mt_tape **tape, int *fd,
                              struct mt_error *error) MT_MUST_USE;

/* Disk for the definitions log up to `bytes`; false if there is none. */
bool mt_tape_reserve_definitions(int fd, struct mt_tape *tape, uint64_t bytes);

/* Maps somebody else's tape and checks everything that its reader relies on.
 * MT_ERR_FORMAT if it is no tape or damaged, MT_ERR_USAGE if its process is
 * still running. The mapping is private: nothing is written to the file. */
enum mt_status mt_tape_open(const char *path, struct mt_tape **tape,
                            struct mt_error *error) MT_MUST_USE;

void mt_tape_unmap(struct mt_tape *tape); /* NULL is fine */

#endif
