/* PRIVATE to the text of `fleet diff`: shared by the answer (fleet_diff_text.c) and the tables
 * (fleet_diff_tables.c). */
#ifndef MT_CLI_FLEET_DIFF_WORDS_H
#define MT_CLI_FLEET_DIFF_WORDS_H

#include "fleet_diff_output.h"

enum { MT_DIFF_ROWS = 12 }; /* maximum number of rows of a table without --all */

struct mt_diff_text {
    struct mt_buf *out;
    const struct mt_fleet_diff_answer *answer;
    const struct mt_job_diff *diff;
    const struct mt_style *style;
};

/* Returned texts are in the arena of the answer. */
const char *mt_diff_class_name(const struct mt_diff_text *text, uint32_t class);
const char *mt_diff_site_of(const struct mt_diff_text *text, uint32_t line);
/* Returns the noun for what is compared: "rank", "groups", ... */
const char *mt_diff_kind_of(const struct mt_diff_text *text, uint32_t count);
const char *mt_diff_s(uint64_t count); /* returns "" for 1, otherwise "s" */

/* Returns how many of `count` rows a table shows; mt_diff_add_rest appends a note about the
 * others. */
uint32_t mt_diff_shown(const struct mt_diff_text *text, uint32_t count);
void mt_diff_add_rest(const struct mt_diff_text *text, uint32_t count, size_t indent);
void mt_diff_add_heading(const struct mt_diff_text *text, const char *heading);

/* Returns true if a compared class of groups has a different number of ranks in A and in B. */
bool mt_diff_sizes_differ(const struct mt_job_diff *diff);

bool mt_diff_changes(const struct mt_job_change *change);

/* In fleet_diff_tables.c: append tables of the change, and the ranks that ended differently. */
void mt_diff_add_tables(const struct mt_diff_text *text);
void mt_diff_add_outcomes(const struct mt_diff_text *text);

#endif
