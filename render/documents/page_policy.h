/* The content security policy of report.html. The page loads nothing, and a browser accepts only
 * scripts and style sheets whose hashes are in the policy. So if markup gets into the page in spite
 * of the escapes, it can neither run nor change styles. */
#ifndef MT_RENDER_PAGE_POLICY_H
#define MT_RENDER_PAGE_POLICY_H

#include "buf.h"

enum { MT_PAGE_HASH_BYTES = 54 }; /* size of one hash in the policy */

/* Zeroed memory is a policy that allows nothing. */
struct mt_page_policy {
    struct mt_buf scripts, styles;
};

/* Add the hash of `content` to the policy, unless it already contains the hash. The policy then
 * allows a <script> or <style> element with exactly this content. */
void mt_page_policy_allow_script(struct mt_page_policy *policy, const char *content);
void mt_page_policy_allow_style(struct mt_page_policy *policy, const char *content);
/* Appends the <meta> element. It must come before any style or script, because it applies only to
 * elements after it. */
void mt_add_page_policy(struct mt_buf *out, const struct mt_page_policy *policy);
void mt_page_policy_release(struct mt_page_policy *policy);

#endif
