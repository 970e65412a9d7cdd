/* The difference between the live memory of two runs at an instant: by role, by phase of
 * allocation, by site; and between the unused memory, by segment. In each of the four, A's bytes
 * plus all changes equal B's bytes. */
#ifndef MT_ANALYZER_DIFF_H
#define MT_ANALYZER_DIFF_H

#include <stddef.h>
#include <stdint.h>

#include "report.h"

struct mt_diff_row {
    const char *label;   /* a role, phase or site: text from B, or from A if B lacks it */
    const char *label_a; /* SITE: text from A if it differs (the line moved); otherwise NULL */
    const char *phase;   /* SITE: phase of allocation, "" = none */
    enum mt_role role;   /* of its largest blocks */
    bool several_roles;
    bool moved;                                    /* SITE: it moved to another line */
    uint64_t a_bytes, b_bytes, a_blocks, b_blocks; /* 0 blocks in A: new; in B: gone */
};

/* By |change| descending. */
struct mt_diff_rows {
    struct mt_diff_row *rows;
    uint32_t count;
};

struct mt_device_diff {
    const struct mt_device_report *a, *b; /* both answered the question */
    struct mt_diff_rows roles, phases, sites;
    struct mt_diff_rows free_uses; /* unused memory by segment; `blocks` are segments */
};

/* Both reports must have answered a question BY_SITE for that device. Pointers in *diff refer to
 * the arena and the reports. */
void mt_diff_devices(struct mt_arena *arena, const struct mt_report *a, const struct mt_report *b,
                     struct mt_device_diff *diff);

/* A property of the runs that may cause a difference of memory. */
struct mt_run_difference {
    const char *what; /* "the number of steps", "options of the allocator", ... */
    const char *a, *b;
};

#define MT_RUN_DIFFERENCES 16
#define MT_EVERY_DEVICE    UINT64_MAX

struct mt_diff {
    const struct mt_report *a, *b;
    uint64_t only;                  /* the requested device */
    struct mt_device_diff *devices; /* pairs with the same number, or the only devices of both */
    uint32_t device_count;
    struct mt_run_difference runs[MT_RUN_DIFFERENCES];
    uint32_t run_count;
};

/* Both reports must have answered a question BY_SITE. `only`: a device of A, or MT_EVERY_DEVICE.
 * Pointers in *diff refer to the arena and the reports. */
void mt_diff_reports(struct mt_arena *arena, const struct mt_report *a, const struct mt_report *b,
                     uint64_t only, struct mt_diff *diff);

/* A site that the two runs name in different ways, because its line moved. */
struct mt_moved_site {
    const char *phase; /* of allocation, "" = none */
    const char *a;     /* text of A */
    const char *b; /* text of B; NULL: the site is only in A, and B has another site of its name */
};

struct mt_moved_sites {
    struct mt_moved_site *list;
    uint32_t count;
};

/* The sites of the whole histories of both devices, matched by the same rules as those of one
 * instant. Pairs of the instant come first. Sites that are not in the list match if their texts and
 * phases are equal. Pointers in *moved refer to the arena and the reports. */
void mt_diff_moved_sites(struct mt_arena *arena, const struct mt_diff *diff,
                         const struct mt_device_diff *device, struct mt_moved_sites *moved);

static inline int64_t mt_diff_change(const struct mt_diff_row *row)
{
    return (int64_t)(row->b_bytes - row->a_bytes);
}

/* Matches the places of two versions of a program: by functions and files first, then by the order
 * of lines, so a line that moved still matches. Places with equal functions and files are aligned
 * in order; among these alignments, the one with the most equal lines, sizes and numbers of blocks
 * is chosen. */

#define MT_NO_PARTNER SIZE_MAX

struct mt_diff_place {
    const char *key;   /* everything except lines */
    uint32_t lines[2]; /* outer first */
    uint64_t bytes, blocks;
    size_t partner; /* index on the other side, or MT_NO_PARTNER */
};

/* Sets `partner` of both sides, which are sorted and have no equal items. O(n), except for places
 * of one key, which cost the product of their numbers. */
void mt_diff_match_places(struct mt_diff_place *a, size_t a_count, struct mt_diff_place *b,
                          size_t b_count);

#endif
