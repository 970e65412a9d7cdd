/* The kinds of files that memtrace writes, and how it recognizes files that it wrote. Without
 * --force, a file may be replaced only by a file of the same kind:
 *
 *  - Documents and pictures carry the program's name near their beginning: the "schema" of JSON,
 *    "exporter" of speedscope, the tEXt chunk "Software" of PNG, the fixed first line of SVG, the
 *    <title> of the page, the heading of the summary, the name of JUnit's root element.
 *  - CSV has a header line that no other program writes. So has the log of a dry run.
 *  - The summary of a rank begins with the magic of its format.
 *  - Folded stacks have no room for a mark. A file is recognized if every line at its beginning is
 *    a stack and a number.
 *  - An imported trace is recognized. A recording is not, because it cannot be made again.
 */
#ifndef MT_CLI_OWN_FILES_H
#define MT_CLI_OWN_FILES_H

#include <stdbool.h>
#include <stddef.h>

enum mt_file_kind {
    MT_FILE_TRACE,
    MT_FILE_SVG,
    MT_FILE_PNG,
    MT_FILE_PAGE,    /* report.html */
    MT_FILE_REPORT,  /* report.json */
    MT_FILE_SUMMARY, /* summary.md */
    MT_FILE_JUNIT,
    MT_FILE_BASELINE,
    MT_FILE_COUNTERS, /* replay --counters */
    MT_FILE_PLAN,     /* optimal -o */
    MT_FILE_FOLDED,
    MT_FILE_SPEEDSCOPE,
    MT_FILE_SWEEP,         /* dry-run --sweep -o */
    MT_FILE_LOG,           /* log of a run of dry-run --sweep */
    MT_FILE_RANK_SUMMARY,  /* TRACE.mtsum */
    MT_FILE_FLEET,         /* fleet.json */
    MT_FILE_FLEET_PAGE,    /* report.html of fleet */
    MT_FILE_FLEET_SUMMARY, /* summary.md of fleet */
    MT_FILE_KINDS
};

/* The beginning of the log of a run, before the label of the run. */
#define MT_LOG_MARK "# memtrace dry-run: "

struct mt_file_kind_facts {
    const char *name; /* "an SVG picture by memtrace" */
    bool (*is_own)(const void *start, size_t length);
};

/* Indexed by enum mt_file_kind. */
extern const struct mt_file_kind_facts mt_file_kinds[MT_FILE_KINDS];

#endif
