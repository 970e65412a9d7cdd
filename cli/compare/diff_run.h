/* Compares two traces at the same instant and draws the difference. Used by diff, render and
 * analyze. */
#ifndef MT_CLI_DIFF_RUN_H
#define MT_CLI_DIFF_RUN_H

#include "picture_option.h"
#include "question_report.h"

struct mt_diff_request {
    const char *a, *b; /* paths */
    const struct mt_question *question;
    uint64_t device; /* device of A, or MT_EVERY_DEVICE */
    unsigned models; /* further data of both reports: enum mt_model_bit */
};

struct mt_diff_run {
    struct mt_question_report a, b;
    struct mt_arena arena;
    struct mt_diff diff;
    bool lacks_device; /* a trace has no events of the requested device */
};

/* Reads both traces and compares them. Returns -1, or the exit code after an error message. Call
 * mt_diff_run_close in either case. */
int mt_diff_run_open(const struct mt_diff_request *request, const struct mt_common *common,
                     struct mt_diff_run *run);
/* Returns `code` if it is not 0, otherwise the exit code for damaged or incomplete inputs
 * (mt_input_verdict). */
int mt_diff_run_verdict(const struct mt_diff_run *run, const struct mt_common *common, int code);
void mt_diff_run_close(struct mt_diff_run *run);

/* Draws the difference on the compared device that reserved the most in B, in the size of `picture`
 * (NULL: the default size). Release the drawing. */
void mt_diff_run_draw(const struct mt_diff_run *run, const struct mt_question *question,
                      const struct mt_picture *picture, struct mt_drawing *drawing);

/* Draws as mt_diff_run_draw does, and writes the picture to a file. Prints errors; returns enum
 * mt_exit. */
int mt_diff_picture(const struct mt_diff_run *run, const struct mt_question *question,
                    const struct mt_picture *picture, const struct mt_common *common);

/* What `memtrace diff -o DIR` writes: diff.html, diff.svg and, if possible, diff.png. */
struct mt_diff_folder {
    const char *directory;
    const struct mt_outputs *outputs; /* which files may be replaced */
};

/* Prints why a file cannot be written, if that is already known. Returns enum mt_exit. */
int mt_diff_folder_precheck(const struct mt_diff_folder *folder);

/* Writes the files about the device that mt_diff_run_draw chooses. The page contains `answer`, the
 * text answer. Appends the names of the files to `names`. Prints errors; returns enum mt_exit. */
int mt_diff_folder_write(const struct mt_diff_folder *folder, const struct mt_diff_run *run,
                         const struct mt_question *question, const char *answer,
                         struct mt_buf *names);

/* Runs `memtrace render diff A B`. */
int mt_diff_render(const struct mt_diff_request *request, const struct mt_picture *picture,
                   const struct mt_common *common);

#endif
