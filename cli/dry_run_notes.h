/* Notes of the Python part of a dry run and its simulated libraries: how much of the run depended
 * on data that does not exist, and how workspaces were determined. */
#ifndef MT_CLI_DRY_RUN_NOTES_H
#define MT_CLI_DRY_RUN_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mt_dry_run_notes {
    char *folder;              /* of the notes; NULL = there is none */
    uint64_t sizes, decisions; /* over all processes that left notes */
    uint64_t compiled;         /* functions that Inductor compiled, without building kernels */
    uint64_t eager;            /* what torch.compile was to compile, and ran as it is */
    /* Workspaces of convolutions: measured, planned by the program's cuDNN, by a rule that
     * measurements confirm, guessed. */
    uint64_t measured_workspaces, asked_workspaces, ruled_workspaces, guessed_workspaces;
    uint64_t unreadable;      /* notes that make no sense; 1 if there is no folder for them */
    uint64_t failures;        /* of the Python part itself */
    char *first_failure;      /* where and what; NULL: none */
    uint64_t torch_processes; /* that imported PyTorch, or tried to */
    uint64_t without_device;  /* of those: the simulated libraries were not there */
    char *torch_folder;       /* that one of them imported; NULL: not known */
    char *other_library;      /* cupy, jax, tensorflow: that one of them imported; NULL: none */
    uint64_t *process_ids;    /* that left notes */
    size_t process_count;
    bool folder_was_made;
    bool failed; /* no memory: what is known is not all */
};

/* Creates an empty folder in the cache of sites, and removes those of killed runs; below $TMPDIR
 * if `cache` is empty. If it cannot be created, there will be no notes, and `unreadable` records
 * that. */
void mt_dry_run_notes_open(struct mt_dry_run_notes *notes, const char *cache);
/* The value of MEMTRACE_DRY_RUN_NOTES: FOLDER/notes, to which each process adds .PID. NULL: no
 * memory or no folder. Release it with free. */
char *mt_dry_run_notes_path(const struct mt_dry_run_notes *notes);
/* Reads what is there, and removes the folder with all in it. */
void mt_dry_run_notes_close(struct mt_dry_run_notes *notes);
/* Whether this process left notes. O(processes). */
bool mt_dry_run_notes_has(const struct mt_dry_run_notes *notes, uint64_t process_id);
void mt_dry_run_notes_release(struct mt_dry_run_notes *notes);

#endif
