/* The kinds of files that memtrace writes, and how it recognizes files that it wrote. Without
 * --force, a file may be replaced only by a file of the same kind:
 *
 *  - Documents and pictures carry the program's name near their beginning: the "schema" of JSON,
 *    "exporter" of speedscope, the tEXt chunk "Software" of PNG, the fixed first line of SVG, the
 *    <title> of the page, the heading of the summary, the name of JUnit's root element.
 *  - A database has memtrace's application id in its header.
 *  - A trace of Perfetto begins with a track whose description begins with the program's name.
 *  - CSV has a header line that no other program writes.
 *  - Folded stacks have no room for a mark. A file is recognized if every line at its beginning is
 *    a stack and a number.
 *  - An imported trace is recognized. A recording is not, because it cannot be made again.
 *
 * The annexes have kinds of their own. */
#ifndef MT_CLI_FILE_KINDS_H
#define MT_CLI_FILE_KINDS_H

#include <stdbool.h>
#include <stddef.h>

struct mt_file_kind {
    const char *name; /* "an SVG picture by memtrace" */
    bool (*is_own)(const void *start, size_t length);
    bool is_private; /* contains paths, the host and the command line of the run, or its output */
    bool is_durable; /* its input may be deleted once it is written */
};

extern const struct mt_file_kind mt_file_trace; /* of `import` */
extern const struct mt_file_kind mt_file_svg, mt_file_png;
extern const struct mt_file_kind mt_file_page;    /* report.html */
extern const struct mt_file_kind mt_file_report;  /* report.json */
extern const struct mt_file_kind mt_file_summary; /* summary.md */
extern const struct mt_file_kind mt_file_junit, mt_file_baseline;
extern const struct mt_file_kind mt_file_counters; /* replay --counters */
extern const struct mt_file_kind mt_file_plan;     /* optimal -o */
extern const struct mt_file_kind mt_file_folded, mt_file_speedscope;
extern const struct mt_file_kind mt_file_database; /* of `export sqlite` */
extern const struct mt_file_kind mt_file_perfetto;

/* For `is_own` of other kinds. Returns true if `start` begins with this text. */
bool mt_file_begins(const char *start, size_t length, const char *text);
/* The same for JSON, with any white space between its tokens. */
bool mt_file_begins_json(const char *start, size_t length, const char *text);
/* Returns true if the page has this title: "\n<title>memtrace: ". The title is after the meta
 * elements, in the first kilobytes. */
bool mt_file_has_title(const void *start, size_t length, const char *title);

#endif
