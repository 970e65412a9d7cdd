#include "redaction.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "sha256.h"
#include "util.h"

enum { HASH_DIGITS = 12 };

static const char redacted_root[] = "/redacted/";

enum mt_status mt_redaction_init(struct mt_redaction *redaction)
{
    ssize_t got;

    do
        got = getrandom(redaction->salt, sizeof redaction->salt, 0);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof redaction->salt ? MT_OK : MT_ERR_IO;
}

static void add_hash(const struct mt_redaction *redaction, char kind, const char *text,
                     size_t length, struct mt_buf *out)
{
    struct mt_sha256 sha;
    char digits[MT_SHA256_TEXT];

    mt_sha256_init(&sha);
    mt_sha256_add(&sha, redaction->salt, sizeof redaction->salt);
    mt_sha256_add(&sha, &kind, 1);
    mt_sha256_add(&sha, text, length);
    mt_sha256_finish(&sha, digits);
    mt_buf_add(out, digits, HASH_DIGITS);
}

static bool begins_with(const char *text, size_t length, const char *start)
{
    size_t start_length = strlen(start);

    return length >= start_length && !memcmp(text, start, start_length);
}

/* The part after one of these is the same on every machine. The first entry that occurs in a path
 * is used, at its last occurrence. */
static const char *const public_parts[] = {
    "/site-packages/", "/dist-packages/", "/lib/python2",        "/lib/python3",
    "/lib64/python3",  "/torch/nn/",      "/torch/optim/",       "/torch/autograd/",
    "/torch/utils/",   "/torch/amp/",     "/torch/distributed/", "/torch/_",
    "/torch/csrc/",    "/torch/cuda/",    "/aten/src/",          "/c10/",
};

static const char *const system_folders[] = {
    "/redacted/", "/usr/lib/",     "/usr/lib64/", "/lib/",
    "/lib64/",    "/usr/include/", "/usr/share/", "/usr/local/cuda",
};

/* Only files directly in the folder: /dev/shm holds files of users. */
static const char device_folder[] = "/dev/";

static const char *const public_relative[] = {"redacted/", "torch/", "aten/", "c10/"};

static bool begins_with_one(const char *text, size_t length, const char *const *starts,
                            size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (begins_with(text, length, starts[i]))
            return true;
    return false;
}

/* Start of the last public part; `length` if there is none. */
static size_t public_part(const char *text, size_t length)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(public_parts); i++)
        for (size_t at = length; at-- > 0;)
            if (text[at] == '/' && begins_with(text + at, length - at, public_parts[i]))
                return at;
    return length;
}

static bool has_parent(const char *text, size_t length)
{
    for (size_t at = 0; at + 1 < length; at++)
        if (text[at] == '.' && text[at + 1] == '.')
            return true;
    return false;
}

/* Length of the folder, including its last separator. */
static size_t folder_length(const char *text, size_t length)
{
    while (length && text[length - 1] != '/' && text[length - 1] != '\\')
        length--;
    return length;
}

static bool is_public_file(const char *text, size_t length)
{
    size_t folder = folder_length(text, length);

    if (!folder || (folder == sizeof device_folder - 1 && begins_with(text, length, device_folder)))
        return true;
    if (has_parent(text, length) || public_part(text, length) < length)
        return false;
    return begins_with_one(text, length, system_folders, MT_ARRAY_LEN(system_folders)) ||
           begins_with_one(text, length, public_relative, MT_ARRAY_LEN(public_relative));
}

/* /tmp/torchinductor_USER: kernels that PyTorch compiled. */
static const char compiled[] = "torchinductor_";

static bool is_compiled(const char *text, size_t length)
{
    for (size_t at = 0; at < length; at++)
        if ((!at || text[at - 1] == '/') && begins_with(text + at, length - at, compiled))
            return true;
    return false;
}

static void redact_path(const struct mt_redaction *redaction, const char *text, size_t length,
                        struct mt_buf *out)
{
    size_t part = public_part(text, length), folder = folder_length(text, length);

    bool leads_up = has_parent(text, length); /* the part after a public part may be private */

    if (is_public_file(text, length) || (begins_with(text, length, redacted_root) && !leads_up)) {
        mt_buf_add(out, text, length);
    } else if (part < length && !leads_up) {
        mt_buf_add(out, redacted_root, strlen(redacted_root) - 1);
        mt_buf_add(out, text + part, length - part);
    } else {
        mt_buf_add_text(out, *text == '/' ? redacted_root : redacted_root + 1);
        if (is_compiled(text, folder))
            mt_buf_add_text(out, compiled);
        add_hash(redaction, 'f', text, folder, out);
        mt_buf_add_char(out, '/');
        mt_buf_add(out, text + folder, length - folder);
    }
}

static bool ends_path(char c)
{
    return (unsigned char)c <= ' ' || strchr("\"'()[]{},;|", c);
}

/* "<frozen runpy>", "[libcuda.so.1]": text without a path is unchanged. */
static void redact_marked(const struct mt_redaction *redaction, const char *text, size_t length,
                          struct mt_buf *out)
{
    size_t at = 0, end;

    while (at < length) {
        for (end = at; end < length && !ends_path(text[end]) && !strchr("<>", text[end]);)
            end++;
        if (end > at)
            redact_path(redaction, text + at, end - at, out);
        else
            mt_buf_add_char(out, text[end++]);
        at = end;
    }
}

static void redact_file(const struct mt_redaction *redaction, const char *text, size_t length,
                        struct mt_buf *out)
{
    if (length && (*text == '<' || *text == '['))
        redact_marked(redaction, text, length, out);
    else
        redact_path(redaction, text, length, out);
}

/* Whether a path may begin here: not in the middle of a word such as "a/b". */
static bool may_begin_path(const char *text, size_t at)
{
    return text[at] == '/' && (!at || ends_path(text[at - 1]) || strchr("=:<>@", text[at - 1]));
}

static void redact_words(const struct mt_redaction *redaction, const char *text, size_t length,
                         struct mt_buf *out)
{
    size_t at = 0, end;

    while (at < length) {
        for (end = at; end < length && may_begin_path(text, at) && !ends_path(text[end]);)
            end++;
        if (end > at + 1) {
            redact_path(redaction, text + at, end - at, out);
            at = end;
        } else {
            mt_buf_add_char(out, text[at++]);
        }
    }
}

static bool is_common_thread(const char *text, size_t length)
{
    static const char *const starts[] = {"memtrace", "MainThread",        "pt_",
                                         "cuda",     "Thread-",           "ThreadPoolExecutor",
                                         "python",   "QueueFeederThread", "autograd"};

    return !length || begins_with_one(text, length, starts, MT_ARRAY_LEN(starts));
}

/* Names that users choose do not begin like one of ours. */
static bool is_hashed_name(const char *text, size_t length, const char *prefix)
{
    size_t prefix_length = strlen(prefix);

    return length == prefix_length + HASH_DIGITS && begins_with(text, length, prefix) &&
           strspn(text + prefix_length, "0123456789abcdef") >= HASH_DIGITS;
}

static void redact_name(const struct mt_redaction *redaction, const char *prefix, const char *text,
                        size_t length, struct mt_buf *out)
{
    char kind = prefix[strlen("redacted-")];

    if (!length || is_hashed_name(text, length, prefix)) {
        mt_buf_add(out, text, length);
        return;
    }
    mt_buf_add_text(out, prefix);
    add_hash(redaction, kind, text, length, out);
}

void mt_redact(const struct mt_redaction *redaction, enum mt_text_kind kind, const char *text,
               size_t length, struct mt_buf *out)
{
    switch (kind) {
    case MT_TEXT_FILE: redact_file(redaction, text, length, out); return;
    case MT_TEXT_WORDS: redact_words(redaction, text, length, out); return;
    case MT_TEXT_HOST: redact_name(redaction, "redacted-host-", text, length, out); return;
    case MT_TEXT_COMMAND: redact_name(redaction, "redacted-command-", text, length, out); return;
    case MT_TEXT_BOOT: redact_name(redaction, "redacted-boot-", text, length, out); return;
    case MT_TEXT_JOB: redact_name(redaction, "redacted-job-", text, length, out); return;
    case MT_TEXT_UUID: redact_name(redaction, "redacted-uuid-", text, length, out); return;
    case MT_TEXT_THREAD: break;
    }
    if (is_common_thread(text, length))
        redact_words(redaction, text, length, out);
    else
        redact_name(redaction, "redacted-thread-", text, length, out);
}

bool mt_text_identifies(enum mt_text_kind kind, const char *text, size_t length)
{
    static const struct mt_redaction any;
    struct mt_buf out = {0};
    bool differs;

    mt_redact(&any, kind, text, length, &out);
    differs = !out.failed && (out.length != length || (length && memcmp(out.data, text, length)));
    mt_buf_release(&out);
    return differs;
}
