/* What an annex of the build (simulate, fleet) adds to commands of the core. The core includes and
 * calls no annex: annexes.c and commands.c list what is linked. */
#ifndef MT_CLI_ANNEXES_H
#define MT_CLI_ANNEXES_H

#include "cli.h"
#include "probes.h"

struct mt_database_writer; /* database_writer.h */
struct mt_database_schema;

/* A summary to write. */
struct mt_summary_order {
    const char *trace;        /* its path */
    bool force;               /* replaces also a file that is not a summary */
    struct mt_source *source; /* the events of the trace; NULL: the trace is read */
    /* Called before the file is read: waits until it is complete. NULL: it is. */
    void (*wait)(void *context);
    void *context;
};

/* Files of an annex that are no traces, and messages for commands that read one trace. */
struct mt_annex_files {
    /* Returns true if the file begins like one of the annex. */
    bool (*is_own)(const char *path);
    /* `memtrace info` of such a file. Returns enum mt_exit. */
    int (*info)(const char *path, const struct mt_common *common);
    /* Prints why a command cannot read such a file, a folder or several arguments. */
    void (*say_own)(const char *path);
    void (*say_folder)(const char *path);
    void (*say_several)(char *const *paths, int count);
    /* Fills a database with a job, which is a folder or a file of the annex. Prints errors; returns
     * enum mt_exit: MT_EXIT_INPUT also if the database has rows, but some files cannot be read. */
    int (*fill)(struct mt_database_writer *writer, const char *path,
                const struct mt_common *common);
    const struct mt_database_schema *schema; /* of that database */
    /* Writes a summary beside a trace. */
    enum mt_status (*summarize)(const struct mt_summary_order *order,
                                struct mt_error *error) MT_MUST_USE;
};

/* NULL: no annex of this build has files. */
extern const struct mt_annex_files *const mt_annex_files;

/* More checks of `doctor`; ends with NULL. */
extern const struct mt_probe *const mt_annex_probes[];

/* Commands that this build leaves out; ends with NULL. */
extern const char *const mt_annex_absent[];

#endif
