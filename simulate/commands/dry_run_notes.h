/* Notes that the Python part and the simulated libraries of a dry run write: how often the program
 * depended on data that does not exist, and how the sizes of workspaces were determined. */
#ifndef MT_CLI_DRY_RUN_NOTES_H
#define MT_CLI_DRY_RUN_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "applied.h"
#include "temporary_folder.h"

/* What a real run may free earlier, so that its peaks may be lower. */
struct mt_undecided {
    uint64_t collectives; /* for which the program did not wait */
    uint64_t blocks;      /* that other streams than their own used */
    uint64_t queries;     /* of events and streams, after which the program did not wait */
};

/* A place of the program, outside of PyTorch, with answers that were made up and on which a peak
 * may depend. */
struct mt_guess_place {
    char *kind, *place;       /* "selection", "/home/u/train.py:37" */
    uint64_t count, size, of; /* the largest size, of how many; 0 = not known */
};

struct mt_dry_run_notes {
    struct mt_temporary_folder folder;
    uint64_t sizes, decisions; /* sums over all processes that left notes */
    uint64_t compiled;         /* functions that Inductor compiled without building kernels */
    uint64_t eager;            /* functions of torch.compile that ran without compilation */
    /* Numbers of workspaces of convolutions, by the source of their sizes: a measurement, the
     * program's cuDNN, a rule that measurements confirm, or a guess. */
    uint64_t measured_workspaces, queried_workspaces, ruled_workspaces, guessed_workspaces;
    uint64_t fake_groups;  /* process groups without NCCL that have collectives */
    bool exchanged_counts; /* ranks exchanged counts, such as those of the tokens of experts */
    struct mt_undecided undecided;
    uint64_t most_unsure_bytes;    /* by which one of these workspaces may be wrong */
    struct mt_guess_place *places; /* of at most MT_MAX_GUESS_PLACES, in no order */
    size_t place_count;
    /* The guess that may have made the command fail, how it failed, and the other outcome of the
     * guess in the words of guesses.py. NULL: none. */
    char *suspect_place, *suspect_error, *suspect_other;
    uint64_t unreadable; /* notes that could not be parsed; 1 if there is no folder for notes */
    uint64_t failures;   /* failures of the Python part itself */
    char *first_failure; /* place and description; NULL: none */
    uint64_t torch_processes;  /* processes that imported PyTorch or tried to */
    uint64_t without_device;   /* those of them that did not get the simulated libraries */
    char *torch_folder;        /* folder of the PyTorch that a process imported; NULL: not known */
    char *other_library;       /* cupy, jax or tensorflow, if a process imported it; NULL: none */
    struct mt_applied applied; /* changes on paper */
    uint64_t *process_ids;     /* ids of the processes that left notes */
    size_t process_count;
    bool folder_was_made;
};

enum { MT_MAX_GUESS_PLACES = 1024 };

/* Creates an empty folder for notes in `cache`, the cache of simulated libraries, and removes
 * folders that killed runs left there. If `cache` is "", creates the folder below $TMPDIR. If that
 * fails, sets `unreadable` to 1; the run then has no notes. */
void mt_dry_run_notes_open(struct mt_dry_run_notes *notes, const char *cache);
/* Returns the value of MEMTRACE_DRY_RUN_NOTES: FOLDER/notes, to which each process appends .PID.
 * Returns NULL if there is no folder. Free the result with free(). */
char *mt_dry_run_notes_path(const struct mt_dry_run_notes *notes);
/* Adds the note of one process, a JSON document. */
void mt_dry_run_notes_add(struct mt_dry_run_notes *notes, const char *text, size_t length);
/* Reads all complete notes, and removes the folder and its files. */
void mt_dry_run_notes_close(struct mt_dry_run_notes *notes);
/* Adds the member "depended_on_timing". */
struct mt_json;
void mt_json_undecided(struct mt_json *json, const struct mt_undecided *undecided);
bool mt_is_undecided(const struct mt_undecided *undecided);
/* Returns the place "FILE:LINE" in a text such as suspect_other. */
const char *mt_guess_place(const char *other);
/* Returns true if the process `process_id` left notes. O(processes). */
bool mt_dry_run_notes_has(const struct mt_dry_run_notes *notes, uint64_t process_id);
void mt_dry_run_notes_release(struct mt_dry_run_notes *notes);

#endif
