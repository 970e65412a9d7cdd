/* The content security policy of report.html: nothing is loaded, and only scripts and style
 * sheets whose hashes are in the policy are active. Markup that gets into the page in spite of
 * the escapes therefore neither runs nor styles anything. */
#ifndef MT_RENDER_PAGE_POLICY_H
#define MT_RENDER_PAGE_POLICY_H

#include "buf.h"

enum { MT_PAGE_HASH_BYTES = 54 }; /* what one hash adds to the policy */

/* Zeroed memory is a policy that allows nothing. */
struct mt_page_policy {
    struct mt_buf scripts, styles;
};

/* Allow a <script> or <style> element with exactly this content. Content that is already allowed
 * adds nothing. */
void mt_page_policy_allow_script(struct mt_page_policy *policy, const char *content);
void mt_page_policy_allow_style(struct mt_page_policy *policy, const char *content);
/* The <meta> element. It applies only to what follows it, so it must come before any style or
 * script. */
void mt_add_page_policy(struct mt_buf *out, const struct mt_page_policy *policy);
void mt_page_policy_release(struct mt_page_policy *policy);

#endif
