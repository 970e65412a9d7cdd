/* A ring: a recording of which only the end is kept, at least a given time of it.
 *
 * The traced process writes its trace in parts. Part n is the file TRACE if n is even, otherwise
 * TRACE.part. When a part has the time of the ring, the next one replaces the part before it, so
 * the last two parts exist, and each begins with what was alive (alive_state.h). The tape's commit
 * names the current part. Until the commit that names a new part, the tape describes the old one,
 * which is complete: a process may die at any moment.
 *
 * When the process has ended, or on request, the last two parts become one trace that begins with
 * what was alive at the beginning of the time that is kept. */
#ifndef MT_COLLECTOR_RING_H
#define MT_COLLECTOR_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alive_state.h"
#include "trace.h"

#define MT_RING_SUFFIX ".part"

/* Sets `path` to the file of a part; false if it is too long. */
bool mt_ring_part_path(const char *trace, uint64_t part, char *path, size_t capacity);

/* Returns true if the file, open as `fd`, is a part of this recording (0: of any). A file whose
 * header was not written or is damaged is one if `had_tape`: its tape was found. */
bool mt_ring_is_part(const char *path, int fd, uint64_t recording_id, bool had_tape);

/* Makes TRACE.part available: removes a part of this user that a recording of this name left.
 * `had_tape`: the recording's tape was found, so a file without contents is such a part. Returns
 * true if there is no file there afterwards. Call it only if no other process can record to this
 * trace. */
bool mt_ring_make_way(const char *trace, bool had_tape);

/* Copies parts to a trace. It begins with the last event at or before `from_t_ns`, or with the
 * state before the first part if there is none; earlier events only change what is alive then.
 * Zeroed memory and these members: */
struct mt_ring_copy {
    struct mt_writer *writer;
    struct mt_alive_state *alive;
    uint64_t from_t_ns;
    struct mt_event held; /* PRIVATE: an event that may be the first; kind 0: none */
    /* results */
    bool begun;
    uint64_t first_t_ns;  /* of the first event that is kept */
    uint64_t covers_t_ns; /* of the first event that was read, initial ones included; 0: none */
    uint64_t next_seq;    /* events in the new trace */
    uint64_t kept;        /* events that are kept; initial ones do not count, here and below */
    uint64_t left_out;    /* events that are not kept */
    uint64_t read;        /* events of the last source */
};

/* Copies a source to its end. Initial events of any but the first source repeat what is known. */
enum mt_status mt_ring_copy_source(struct mt_ring_copy *copy, struct mt_source *source,
                                   bool is_first, struct mt_error *error) MT_MUST_USE;

/* Writes the state if nothing was kept. Call it after the last source. */
enum mt_status mt_ring_copy_end(struct mt_ring_copy *copy, uint64_t t_ns,
                                struct mt_error *error) MT_MUST_USE;

/* Reads the source to its end and rewinds it: its symbols are known. Sets *found to its damage. */
enum mt_status mt_ring_read_symbols(struct mt_source *source, struct mt_integrity *found,
                                    struct mt_error *error) MT_MUST_USE;

/* Returns true if all symbols of `part` have the same ids in `later`, as in parts of one process.
 */
bool mt_ring_same_symbols(const struct mt_symbols *part, const struct mt_symbols *later);

#endif
