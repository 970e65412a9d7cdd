/* Position of a rank among the others: a coordinate on each axis of the job, as given by the user
 * or the launcher ("pp=1/8,dp=3/32,tp=0/8": coordinate 1 of 8 pipeline stages, ...). */
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

/* Axes are in the given order, and their names are unique. The product of their sizes is at most
 * 2^31. */
struct mt_mesh {
    uint32_t count; /* 0 = unknown */
    struct mt_mesh_axis axes[MT_MESH_AXES];
};

/* Fills *mesh and returns NULL, or sets mesh->count to 0 and returns the problem as a lower-case
 * part of a sentence. NULL or "" is an unknown mesh, not an error. O(length). */
const char *mt_mesh_read(const char *text, struct mt_mesh *mesh);

/* Appends the format that mt_mesh_read reads; nothing for an unknown mesh. */
void mt_mesh_write(const struct mt_mesh *mesh, struct mt_buf *out);

#endif
