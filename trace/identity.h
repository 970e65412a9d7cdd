/* The identity of a rank: which process of which job on which machine and device made a trace, its
 * position among the others, and how it ended. Plain data, filled from the header of a trace
 * (docs/internals/trace-format.md 2.1), and from the name of the file if the header has no rank.
 *
 * Every input is hostile: a text that is too long or malformed is unknown, and so is a number out
 * of its range. Nothing here points into the trace. */
#ifndef MT_TRACE_IDENTITY_H
#define MT_TRACE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "ending.h"
#include "mesh.h"
#include "process_groups.h"
#include "rank_name.h"
#include "source.h"

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
