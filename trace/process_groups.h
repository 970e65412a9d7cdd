/* The process groups of a rank (PyTorch's) in the header of a trace, one per line: the name, '='
 * and the sorted ranks: "0:default_pg=0-7", "3=0-24:8" (0, 8, 16, 24), "4=1-2,9". */
#ifndef MT_TRACE_PROCESS_GROUPS_H
#define MT_TRACE_PROCESS_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

enum {
    MT_GROUP_TEXT = 64,      /* of the name of a process group, with its NUL */
    MT_IDENTITY_GROUPS = 32, /* groups that mt_process_groups_read keeps */
    MT_MAX_RANK = INT32_MAX - 1
};

/* Groups with the same members have the same members_hash, on every rank and machine. */
struct mt_identity_group {
    char name[MT_GROUP_TEXT]; /* "0:default_pg", "5" */
    uint32_t size;            /* ranks, at least 1 */
    int32_t position;         /* of this rank in the group; -1 = unknown, or not a member */
    uint32_t first, stride;   /* ranks first, first + stride, ...; stride 0: irregular */
    uint64_t members_hash;
};

/* Fills `groups` and *count in the order of the text. *left_out counts malformed lines, and those
 * for which there was no room. `rank` is as in struct mt_identity. A NULL text has no groups.
 * O(length). */
void mt_process_groups_read(const char *text, int32_t rank,
                            struct mt_identity_group groups[MT_IDENTITY_GROUPS], uint32_t *count,
                            uint32_t *left_out);

/* Appends the line of one group, with a newline. `ranks` are sorted and distinct. '=' and control
 * characters in a name become '_', and a long name is cut. */
void mt_process_group_write(const char *name, const uint32_t *ranks, size_t count,
                            struct mt_buf *out);

#endif
