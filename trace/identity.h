/* The identity of a rank: which process of which job on which machine and device made a trace, its
 * position among the others, and how it ended. Plain data, filled from the header of a trace
 * (docs/internals/trace-format.md 2.1), and from the name of the file if the header has no rank.
 *
 * Every input is hostile: a text that is too long or malformed is unknown, and so is a number out
 * of its range. Nothing here points into the trace. */
#ifndef MT_TRACE_IDENTITY_H
#define MT_TRACE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "header.h"
#include "source.h"

/* The rank in the name of a trace's or snapshot's file. */

/* Returns the rank in the name of a file, 0 to MT_MAX_RANK; -1 if there is none, or several that
 * differ. Looks at the last part of the path for "rank" or "r" as a separate word, followed by
 * digits, with an optional '_', '-' or '=' in between. */
int32_t mt_rank_of_name(const char *path);

/* Position of a rank among the others: a coordinate on each axis of the job, as given by the user
 * or the launcher ("pp=1/8,dp=3/32,tp=0/8": coordinate 1 of 8 pipeline stages, ...). */

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

/* The process groups of a rank (PyTorch's) in the header of a trace, one per line: the name, '='
 * and the sorted ranks: "0:default_pg=0-7", "3=0-24:8" (0, 8, 16, 24), "4=1-2,9". */

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

enum {
    MT_IDENTITY_TEXT = 256, /* bytes of a text with its NUL */
    MT_DEVICE_TEXT = 80     /* of a UUID, PCI address or name of a MIG instance */
};

/* Where the number of a rank comes from. */
enum mt_rank_origin {
    MT_RANK_UNKNOWN,  /* rank is -1 */
    MT_RANK_RECORDED, /* from the header */
    MT_RANK_OF_NAME   /* from the name of the file: rank3, rank_003, r3 */
};

/* A device that the process used. Texts are "" if unknown. */
struct mt_identity_device {
    uint32_t index;            /* its number in the trace */
    char uuid[MT_DEVICE_TEXT]; /* "GPU-8f2c..."; for a MIG instance "MIG-..." */
    char pci[MT_DEVICE_TEXT];  /* "0000:65:00.0": domain, bus, device, function; lower case */
    char mig[MT_DEVICE_TEXT];  /* the profile of the instance ("1g.18gb"), or "yes"; "" = none */
};

struct mt_identity {
    char host[MT_IDENTITY_TEXT];    /* "" = unknown, as all texts here */
    char boot_id[MT_IDENTITY_TEXT]; /* of the machine's kernel: equal means the same boot */
    char job[MT_IDENTITY_TEXT];     /* "slurm:1234", "slurm:1234_5", "torchelastic:RUN", ... */
    uint64_t process_id;            /* 0 = unknown */
    int32_t rank;                   /* -1 = unknown, as all of the next four */
    int32_t local_rank;
    int32_t world; /* ranks of the job; unknown unless it is more than `rank` */
    int32_t restart;
    enum mt_rank_origin rank_origin;
    bool is_planned; /* made by `memtrace dry-run`: it did not run on a device */
    uint64_t start_t_ns;
    uint64_t memory_limit_bytes; /* of the allocator; 0 = unknown or none */
    uint64_t cgroup_limit_bytes; /* of host memory; 0 = unknown or none */

    enum mt_ending ended;
    int32_t ended_number; /* exit status or signal, 0 for the others */
    uint64_t ended_t_ns;  /* Unix time, 0 = unknown */

    struct mt_mesh mesh; /* count 0 = unknown */
    struct mt_identity_device devices[MT_IDENTITY_DEVICES];
    uint32_t device_count;
    struct mt_identity_group groups[MT_IDENTITY_GROUPS];
    uint32_t group_count;
    uint32_t groups_left_out; /* malformed, or more than there is room for */
};

/* Fills *identity, about 8 KiB of plain data. Accepts any input. `path` is the name of the trace's
 * file (may be NULL), used if the header has no rank. O(length of the header's texts). */
void mt_identity_read(const struct mt_trace_header *header, const char *path,
                      struct mt_identity *identity);

#endif
