/* Tapes as files. A traced process creates its own tape; other processes read it after that
 * process has ended. */
#ifndef MT_COLLECTOR_TAPE_FILE_H
#define MT_COLLECTOR_TAPE_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "own_file.h"
#include "status.h"
#include "tape.h"

#define MT_TAPE_SUFFIX ".tape"

enum {
    MT_TAPE_DEFINITION_BYTES = 64 << 20, /* address space; disk space is allocated as needed */
    MT_TAPE_PAGE_BYTES = 4096,           /* of the header, whatever the page size of the system */
    MT_TAPE_MIN_SLOTS = 16,
    MT_TAPE_MAX_SLOTS = 65536
};

/* Creates and maps a tape of `slot_count` slots (16 to 65536) at `path`, which must not exist and
 * must outlive `file`. Its disk space is allocated, so writing to a slot never fails. The process
 * holds a lock on the file until it ends or unmaps the tape, even if the descriptor is closed. */
enum mt_status mt_tape_create(const char *path, uint32_t slot_count, struct mt_tape **tape,
                              struct mt_own_file *file, struct mt_error *error) MT_MUST_USE;

/* Records in the tape which file is its trace. */
void mt_tape_set_trace(struct mt_tape *tape, const struct mt_own_file *trace);

/* Allocates disk space for the first `bytes` bytes of the definitions log. Returns false if there
 * is none. */
bool mt_tape_reserve_definitions(struct mt_own_file *file, const struct mt_tape *tape,
                                 uint64_t bytes);

/* Reads the tape of another process into private memory (tape_file.c), so that later changes of
 * the file do not matter. Checks everything that a reader relies on. Costs time and memory for
 * the used part of the tape, at most 2.1 GiB; the memory counts in the budget (process_memory.h).
 * MT_ERR_FORMAT if it is not a regular file, not a tape or damaged, MT_ERR_USAGE if its process
 * is still running, MT_ERR_IO if the system cannot determine that. Does not follow symbolic
 * links. Sets *file (may be NULL) to the facts of the file, for mt_tape_remove. */
enum mt_status mt_tape_open(const char *path, struct mt_tape **tape, struct stat *file,
                            struct mt_error *error) MT_MUST_USE;

/* Reads the header of the tape of the trace at `trace`, whose process may be running: the last
 * commit is complete. MT_ERR_FORMAT if it is not a tape. */
enum mt_status mt_tape_peek(const char *trace, struct mt_tape *header,
                            struct mt_error *error) MT_MUST_USE;

/* Asks the process that writes the tape of the trace at `trace`. Returns false if that is no tape
 * of this user. */
bool mt_tape_ask(const char *trace, enum mt_tape_ask what);

/* Removes the tape that was opened. Returns false and sets errno on failure, which is ESTALE if
 * another file has its name. */
bool mt_tape_remove(const char *path, const struct stat *file);

/* Returns true if there is a tape at `path` whose process runs or may still run. */
bool mt_tape_is_in_use(const char *path);

/* Returns true if the process of the trace at `trace` runs or may still run, and copies the header
 * of its tape. */
bool mt_tape_is_running(const char *trace, struct mt_tape *header);

/* Makes `path` available for a new tape: removes a tape of this user whose process has ended, even
 * if the process never wrote to it (the file is then empty, or begins with zeros). Returns true if
 * there is no file at `path` afterwards. A tape in use, and a file that is not a tape, stays. Call
 * it only if no other process can create this tape meanwhile. */
bool mt_tape_make_way(const char *path);

void mt_tape_unmap(struct mt_tape *tape); /* created or opened; NULL is fine */

#endif
