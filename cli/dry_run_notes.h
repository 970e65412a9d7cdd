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
    uint64_t eager;            /* functions for torch.compile that ran without compilation */
    /* Numbers of workspaces of convolutions, by how their sizes were found: measured, planned by
     * the program's cuDNN, by a rule that measurements confirm, guessed. */
    uint64_t measured_workspaces, queried_workspaces, ruled_workspaces, guessed_workspaces;
    uint64_t unreadable; /* notes that could not be parsed; 1 if there is no folder for notes */
    uint64_t failures;   /* number of failures of the Python part itself */
    char *first_failure; /* where and what; NULL: none */
    uint64_t torch_processes; /* that imported PyTorch, or tried to */
    uint64_t without_device;  /* number of those that did not get the simulated libraries */
    char *torch_folder;       /* folder of the PyTorch that one of them imported; NULL: not known */
    char *other_library;      /* cupy, jax or tensorflow, if a process imported it; NULL: none */
    uint64_t *process_ids;    /* processes that left notes */
    size_t process_count;
    bool folder_was_made;
    bool failed; /* out of memory: the other fields may be incomplete */
};

/* Creates an empty folder for notes: in `cache`, the cache of simulated libraries, where it also
 * removes the folders of killed runs, or below $TMPDIR if `cache` is "". If the folder cannot be
 * created, there will be no notes, and `unreadable` is 1. */
void mt_dry_run_notes_open(struct mt_dry_run_notes *notes, const char *cache);
/* The value of MEMTRACE_DRY_RUN_NOTES: FOLDER/notes, to which each process appends .PID. NULL: no
 * memory or no folder. Free it with free(). */
char *mt_dry_run_notes_path(const struct mt_dry_run_notes *notes);
/* Reads all complete notes, and removes the folder with its files. */
void mt_dry_run_notes_close(struct mt_dry_run_notes *notes);
/* Returns true if this process left notes. O(processes). */
bool mt_dry_run_notes_has(const struct mt_dry_run_notes *notes, uint64_t process_id);
void mt_dry_run_notes_release(struct mt_dry_run_notes *notes);

#endif
