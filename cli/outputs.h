/* Files that commands write. Every file goes through base/output_file.h: it appears whole or not
 * at all, and never replaces an input. It replaces an existing file only if an earlier memtrace
 * wrote it as a file of the same kind, or with --force. Folded stacks carry no mark of memtrace,
 * so any file that looks like them is replaced (own_files.h). */
#ifndef MT_CLI_OUTPUTS_H
#define MT_CLI_OUTPUTS_H

#include "cli.h"
#include "output_file.h"
#include "own_files.h"

/* In a command's arguments; zeroed = no inputs, no --force. */
struct mt_outputs {
    bool force;
    const char *inputs[4]; /* what the command reads; analyze reads a trace, a budget and a base */
    size_t input_count;
};

#define MT_FORCE_OPTION(outputs)                                                                   \
    {                                                                                              \
        "force", 0, MT_OPTION_FLAG, NULL, "replace files that memtrace did not write",             \
            &(outputs).force                                                                       \
    }

/* Borrows `path`; NULL is ignored. */
void mt_outputs_add_input(struct mt_outputs *outputs, const char *path);

/* Borrows `outputs`. */
struct mt_output_rules mt_output_rules_of(const struct mt_outputs *outputs, enum mt_file_kind kind);

/* Call it before the work begins: prints why the file could not be written. MT_EXIT_OK is no
 * guarantee. Accepts a NULL path. */
int mt_output_precheck(const char *path, const struct mt_outputs *outputs, enum mt_file_kind kind);

/* Returns true for "-": the file is then the answer, and messages about it are left out. */
bool mt_is_standard_output(const char *path);

/* Appends FOLDER/NAME; several slashes at the end of the folder count as one. */
void mt_add_path_in(struct mt_buf *path, const char *folder, const char *name);

/* Writes a whole file; "-" is standard output. Prints errors; returns enum mt_exit. */
int mt_write_file(const char *path, const struct mt_outputs *outputs, enum mt_file_kind kind,
                  const struct mt_buf *bytes);

/* Prints "memtrace: cannot write 'path': <error>" and returns the exit code for it. */
int mt_report_output_error(const char *path, const struct mt_error *error);

/* Prints "memtrace: cannot draw 'what': <error>" and returns the exit code for it. */
int mt_report_drawing_error(const char *what, const struct mt_error *error);

/* The temporary files that a fatal signal removes. */
struct mt_unfinished *mt_outputs_unfinished(void);

/* Afterwards a fatal signal removes temporary files before it ends the program, and a file beyond
 * the limit of its size is an error, not a signal. */
void mt_outputs_handle_signals(void);

#endif
