/* The beginning of a page. */
#ifndef MT_RENDER_PAGE_HEAD_H
#define MT_RENDER_PAGE_HEAD_H

#include "buf.h"
#include "report.h"

/* The content security policy of report.html. The page loads nothing, and a browser accepts only
 * scripts and style sheets whose hashes are in the policy. So if markup gets into the page in spite
 * of the escapes, it can neither run nor change styles. */

enum { MT_PAGE_HASH_BYTES = 54 }; /* size of one hash in the policy */

/* Zeroed memory is a policy that allows nothing. */
struct mt_page_policy {
    struct mt_buf scripts, styles;
};

/* Add the hash of `content` to the policy, unless it already contains the hash. The policy then
 * allows a <script> or <style> element with exactly this content. */
void mt_page_policy_allow_script(struct mt_page_policy *policy, const char *content);
void mt_page_policy_allow_style(struct mt_page_policy *policy, const char *content);

void mt_page_policy_release(struct mt_page_policy *policy);

/* Appends the page up to its <meta> elements, which include the policy. The policy must be
 * complete. It comes before any style or script, because it applies only to elements after it. */
void mt_page_add_start(struct mt_buf *out, const struct mt_page_policy *policy);

struct mt_page_head {
    const char *program; /* beginning of the title: "memtrace"; must not be foreign text */
    const char *name;    /* name of the run */
    const char *css;     /* page_assets.h */
};

/* Appends the rest of the head, up to <body>: the title, and the style sheet, which defines the
 * colors of charts as variables. Adds the hash of the sheet to the policy. */
void mt_page_add_head(struct mt_buf *out, const struct mt_page_head *head,
                      struct mt_page_policy *policy);

/* Appends the heading of the page: the name of the run, and facts. */
void mt_page_add_title(struct mt_buf *out, const struct mt_report *report);

/* Appends a link to the bar of the page. `words` are markup. */
void mt_page_add_link(struct mt_buf *nav, const char *id, const char *words);

/* A page has a limit of bytes, and `left` are still free. Takes room for a part; returns false if
 * there is not enough. */
bool mt_page_take_room(size_t *left, size_t bytes);

/* Sentences in report.html. */

/* Appends text of a trace or of the program, escaped and shortened as in mt_page_add_name. Prevents
 * a line break between a number and its unit: "7.47 GiB", "114 ms". */
void mt_page_add_words(struct mt_buf *out, const char *words);

#endif
