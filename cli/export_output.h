/* Blocks as other programs read them. */
#ifndef MT_CLI_EXPORT_OUTPUT_H
#define MT_CLI_EXPORT_OUTPUT_H

#include "buf.h"
#include "icicle.h"
#include "own_files.h"
#include "report.h"

struct mt_export {
    const struct mt_report *report;
    const struct mt_icicle *icicle;
    const char *title;    /* "gpt: live at the peak" */
    const char *exporter; /* "memtrace 0.1.0" */
    bool with_blocks;     /* leaves for each size and role */
};

struct mt_export_format {
    const char *name, *summary;
    enum mt_file_kind kind;
    void (*add)(struct mt_buf *out, const struct mt_export *what);
};

/* Ends with a NULL name. */
extern const struct mt_export_format mt_export_formats[];

#endif
