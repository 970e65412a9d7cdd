/* Where a rank stands among the others: a coordinate on each axis of the job, as the user or the
 * launcher says it ("pp=1/8,dp=3/32,tp=0/8": coordinate 1 of 8 pipeline stages, ...). */
#ifndef MT_TRACE_MESH_H
#define MT_TRACE_MESH_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"

enum { MT_MESH_AXES = 8, MT_AXIS_TEXT = 17 };

struct mt_mesh_axis {
    char name[MT_AXIS_TEXT];   /* [a-z_]{1,16} */
    uint32_t coordinate, size; /* coordinate < size */
};

/* The product of the sizes is at most 2^31; no two axes have one name. In the order in which they
 * were given. */
struct mt_mesh {
    uint32_t count; /* 0 = unknown */
    struct mt_mesh_axis axes[MT_MESH_AXES];
};

/* NULL, and *mesh is filled, or what is wrong, for people: a lower-case part of a sentence, and
 * mesh->count is 0. NULL or "" is an unknown mesh, not a wrong one. O(length). */
const char *mt_mesh_read(const char *text, struct mt_mesh *mesh);

/* Appends what mt_mesh_read reads; nothing for an unknown mesh. */
void mt_mesh_write(const struct mt_mesh *mesh, struct mt_buf *out);

#endif
