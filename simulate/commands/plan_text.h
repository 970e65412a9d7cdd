/* The answer of a plan, as text and as JSON. */
#ifndef MT_CLI_PLAN_TEXT_H
#define MT_CLI_PLAN_TEXT_H

#include "search.h"
#include "sweep_plan.h"

/* A point that no other point beats on a card. */
struct mt_plan_row {
    size_t card, combination;
    const struct mt_sweep_run *run; /* its rank that needs the most */
    struct mt_card_use use;         /* on this card */
};

/* What a search found. */
struct mt_plan_answer {
    struct mt_sweep_plan *plan; /* its runs are in the order of the grid */
    const struct mt_search *search;
    const struct mt_sweep *points;      /* mt_sweep_take_points of the plan */
    const struct mt_card *const *cards; /* ascending by memory, like those of the search */
    size_t runs, cached;                /* dry runs of this command, and results of earlier ones */
    bool is_cut;                        /* more runs than allowed would be necessary */
    bool has_files;
    const char *shard;    /* "1/4"; NULL: the whole plan */
    const char *no_cache; /* why there is no cache, if the user does not know; otherwise NULL */
    /* set by mt_plan_find_front; free(rows) */
    struct mt_plan_row *rows; /* the fronts of all cards, by card */
    size_t row_count, row_capacity;
};

/* Finds the rows. Call it before the next two, when the rest is set. */
void mt_plan_find_front(struct mt_plan_answer *answer);

void mt_plan_add_text(struct mt_buf *out, const struct mt_plan_answer *answer);

/* Appends a document "memtrace.plan/1". */
void mt_plan_add_json(struct mt_buf *out, const struct mt_plan_answer *answer);

#endif
