#include "page_policy.h"

#include <string.h>

#include "sha256.h"

enum { HASH_DIGITS = MT_SHA256_TEXT - 1 };

static unsigned digit(const char *hash, size_t i)
{
    if (i >= HASH_DIGITS)
        return 0;
    return (unsigned)(hash[i] <= '9' ? hash[i] - '0' : hash[i] - 'a' + 10);
}

/* Appends a hexadecimal hash in base 64 (RFC 4648), as the policy requires. Three hexadecimal
 * digits are two characters. */
static void add_base64(struct mt_buf *out, const char *hash)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < HASH_DIGITS; i += 3) {
        unsigned bits = digit(hash, i) << 8 | digit(hash, i + 1) << 4 | digit(hash, i + 2);
        mt_buf_add_char(out, letters[bits >> 6]);
        mt_buf_add_char(out, i + 2 < HASH_DIGITS ? letters[bits & 63] : '=');
    }
}

static void allow(struct mt_buf *sources, const char *content)
{
    char text[MT_SHA256_TEXT], room[MT_PAGE_HASH_BYTES + 1];
    struct mt_buf source = {.data = room, .capacity = sizeof room, .is_fixed = true};
    struct mt_sha256 sha;

    mt_sha256_init(&sha);
    mt_sha256_add(&sha, content, strlen(content));
    mt_sha256_finish(&sha, text);
    mt_buf_add_text(&source, " 'sha256-");
    add_base64(&source, text);
    mt_buf_add_char(&source, '\'');
    if (!sources->data || !strstr(sources->data, source.data))
        mt_buf_add_text(sources, source.data);
}

void mt_page_policy_allow_script(struct mt_page_policy *policy, const char *content)
{
    allow(&policy->scripts, content);
}

void mt_page_policy_allow_style(struct mt_page_policy *policy, const char *content)
{
    allow(&policy->styles, content);
}

static void add_sources(struct mt_buf *out, const char *directive, const struct mt_buf *sources)
{
    mt_buf_add_text(out, directive);
    mt_buf_add_text(out, sources->data ? sources->data : " 'none'");
}

void mt_add_page_policy(struct mt_buf *out, const struct mt_page_policy *policy)
{
    mt_buf_add_text(out, "<meta http-equiv=\"Content-Security-Policy\" content=\""
                         "default-src 'none'; base-uri 'none'; form-action 'none'");
    add_sources(out, "; style-src", &policy->styles);
    add_sources(out, "; script-src", &policy->scripts);
    mt_buf_add_text(out, "\">\n");
}

void mt_page_policy_release(struct mt_page_policy *policy)
{
    mt_buf_release(&policy->scripts);
    mt_buf_release(&policy->styles);
}
