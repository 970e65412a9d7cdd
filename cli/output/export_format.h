/* Formats of other programs in which `memtrace export` writes blocks. */
#ifndef MT_CLI_EXPORT_FORMAT_H
#define MT_CLI_EXPORT_FORMAT_H

#include "buf.h"
#include "file_kinds.h"
#include "icicle.h"
#include "report.h"

struct mt_export {
    const struct mt_report *report;
    const struct mt_icicle *icicle;
    /* the blocks of the icicle */
    const struct mt_holding *holdings;
    uint32_t holding_count;
    const struct mt_instant *instant; /* NULL: the blocks are not those of an instant */
    uint64_t first_event;             /* of the device; 0 = no device */
    const char *title;                /* "gpt: live at the peak" */
    const char *exporter;             /* "memtrace 0.1.0" */
    bool with_blocks;                 /* adds a leaf for each size and role */
};

struct mt_export_format {
    const char *name;
    const struct mt_file_kind *kind;
    /* Appends the document. NULL: the whole run, written by another part of the command. */
    void (*add)(struct mt_buf *out, const struct mt_export *what);
    bool has_all_metrics; /* in whole stacks, and is binary: options of the icicle do not apply */
};

/* All formats; ends with a NULL pointer. */
extern const struct mt_export_format *const mt_export_formats[];

/* What is known about a block without a stack of its own, in the words of `memtrace live`: what it
 * belongs to, or why there is none. Below them is the stack of its owner (mt_stack_of_site). NULL:
 * it has a stack. Blocks older than `first_event` are older than the recording. In the arena. */
const char *mt_export_words(struct mt_arena *arena, const struct mt_report *report,
                            uint64_t first_event, const struct mt_holding *holding);

/* In export_formats.c. */
extern const struct mt_export_format mt_export_folded, mt_export_speedscope, mt_export_pprof;

#endif
