/* Files that commands write. All of them use base/files/output_file.h: a file appears completely or
 * not at all, and never replaces an input. Without --force, memtrace replaces an existing file only
 * if it wrote that file and both files are of the same kind. Folded stacks have no mark of
 * memtrace, so they replace any file that looks like folded stacks (file_kinds.h). */
#ifndef MT_CLI_OUTPUTS_H
#define MT_CLI_OUTPUTS_H

#include "cli.h"
#include "file_kinds.h"
#include "output_file.h"

/* Part of the arguments of a command. Zeroed memory means no inputs and no --force. */
struct mt_outputs {
    bool force;
    /* files that the command reads; analyze reads a trace, a budget and a base */
    const char *inputs[4];
    size_t input_count;
};

#define MT_FORCE_OPTION(outputs)                                                                   \
    {                                                                                              \
        "force", 0, MT_OPTION_FLAG, NULL, "replace files that memtrace did not write",             \
            &(outputs).force                                                                       \
    }

/* Adds an input and borrows `path`. Ignores NULL. */
void mt_outputs_add_input(struct mt_outputs *outputs, const char *path);

/* Returns the rules for a file of this kind, which borrow `outputs`. */
struct mt_output_rules mt_output_rules_of(const struct mt_outputs *outputs,
                                          const struct mt_file_kind *kind);

/* Prints why the file cannot be written, if that is already known. Call it before the work begins.
 * Returns enum mt_exit; after MT_EXIT_OK, writing can still fail. Accepts a NULL path. */
int mt_output_precheck(const char *path, const struct mt_outputs *outputs,
                       const struct mt_file_kind *kind);

/* Returns true for "-". The output is then the answer, so commands print no messages about it. */
bool mt_outputs_is_standard(const char *path);

/* Appends FOLDER/NAME. Several slashes at the end of the folder count as one. */
void mt_outputs_add_path(struct mt_buf *path, const char *folder, const char *name);

/* Writes a whole file, or to standard output if `path` is "-". Prints errors; returns enum
 * mt_exit. */
int mt_outputs_write(const char *path, const struct mt_outputs *outputs,
                     const struct mt_file_kind *kind, const struct mt_buf *bytes);

/* Prints "memtrace: cannot write 'path': <error>" and returns the exit code for it. */
int mt_report_output_error(const char *path, const struct mt_error *error);

/* Prints "memtrace: cannot draw 'what': <error>" and returns the exit code for it. */
int mt_report_drawing_error(const char *what, const struct mt_error *error);

/* Returns the list of temporary files that a fatal signal removes. */
struct mt_unfinished *mt_outputs_unfinished(void);

/* Installs handlers, so that a fatal signal removes temporary files before it ends the program.
 * Also ignores SIGXFSZ, so that a file that exceeds the size limit causes an error instead of a
 * signal. */
void mt_outputs_handle_signals(void);

#endif
