/* What the Python part of a dry run left: how much of the run hung on data that is not there. */
#ifndef MT_CLI_DRY_RUN_NOTES_H
#define MT_CLI_DRY_RUN_NOTES_H

#include <stdint.h>

struct mt_dry_run_notes {
    char *folder;              /* of the notes; NULL = there is none */
    uint64_t sizes, decisions; /* over all processes that left notes */
    uint64_t eager;            /* what torch.compile was to compile, and ran as it is */
    uint64_t unreadable;       /* notes that make no sense; 1 if there is no folder for them */
};

/* Makes an empty folder below $TMPDIR. If it cannot be made, there will be no notes, and
 * `unreadable` says that they are missing. */
void mt_dry_run_notes_open(struct mt_dry_run_notes *notes);
/* For MEMTRACE_DRY_RUN_NOTES: FOLDER/notes, to which each process adds .PID. NULL: no memory or no
 * folder. Release it with free. */
char *mt_dry_run_notes_path(const struct mt_dry_run_notes *notes);
/* Reads what is there, and removes the folder with all in it. */
void mt_dry_run_notes_close(struct mt_dry_run_notes *notes);

#endif
