#include "redaction.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "ascii.h"
#include "public_names.h"
#include "sha256.h"

enum { HASH_DIGITS = 12 };

static const char redacted_root[] = "/redacted/", hashed_name[] = "redacted-";

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

/* Length of the separator of folders at `at`, which may be percent-encoded, also twice: "%2F",
 * "%255C". 0 if there is none. */
static size_t separator(const char *text, size_t length, size_t at)
{
    size_t end = at + 1;

    if (text[at] == '/' || text[at] == '\\')
        return 1;
    if (text[at] != '%')
        return 0;
    while (length - end > 2 && text[end] == '2' && text[end + 1] == '5')
        end += 2;
    if (length - end < 2)
        return 0;
    return (text[end] == '2' && (text[end + 1] == 'F' || text[end + 1] == 'f')) ||
                   (text[end] == '5' && (text[end + 1] == 'C' || text[end + 1] == 'c'))
               ? end + 2 - at
               : 0;
}

/* Length of the folder, including its last separator. In "user@host:file", that is ':'. */
static size_t folder_length(const char *text, size_t length)
{
    size_t folder = 0, step;
    bool has_host = false;

    for (size_t at = 0; at < length; at += step ? step : 1) {
        step = separator(text, length, at);
        has_host |= text[at] == '@';
        if (step || (has_host && text[at] == ':'))
            folder = at + (step ? step : 1);
    }
    return folder;
}

static bool is_hash(const char *text, size_t length)
{
    if (length != HASH_DIGITS)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!strchr("0123456789abcdef", text[i]) || !text[i])
            return false;
    return true;
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

/* Whether the path is one of ours: "/redacted/0123456789ab/", and the same without either '/'. */
static bool is_redacted(const char *text, size_t folder)
{
    size_t root = strlen(redacted_root), name = strlen(compiled);

    if (begins_with(text, folder, redacted_root))
        text += root, folder -= root;
    else if (begins_with(text, folder, redacted_root + 1))
        text += root - 1, folder -= root - 1;
    else
        return false;
    if (begins_with(text, folder, compiled))
        text += name, folder -= name;
    return is_hash(text, folder && text[folder - 1] == '/' ? folder - 1 : folder);
}

/* Files directly in /dev: /dev/shm holds files of users. */
static const char device_folder[] = "/dev/";

static bool is_known_file(const char *text, size_t length)
{
    return mt_public_file_name(text, length) || mt_public_name(text, length);
}

/* Replaces the private part of a path. The name of a file stays if `is_file`, or if it is known. */
static void redact_path(const struct mt_redaction *redaction, bool is_file, const char *text,
                        size_t length, struct mt_buf *out)
{
    size_t folder = folder_length(text, length), public;

    if (!is_file && is_redacted(text, length))
        folder = public = length;
    else if (!is_file && folder < length && !is_known_file(text + folder, length - folder))
        folder = public = length; /* the name of a folder */
    else
    public = mt_public_folder(text, folder);
    if (!folder || public == 0 || is_redacted(text, folder) ||
        (folder == strlen(device_folder) && begins_with(text, length, device_folder))) {
        mt_buf_add(out, text, length);
        return;
    }
    if (public < folder) {
        mt_buf_add_text(out, *text == '/' ? "/redacted" : "redacted");
        mt_buf_add(out, text + public, length - public);
        return;
    }
    mt_buf_add_text(out, *text == '/' ? redacted_root : redacted_root + 1);
    if (is_compiled(text, folder))
        mt_buf_add_text(out, compiled);
    add_hash(redaction, 'f', text, folder, out);
    if (is_file || folder < length || separator(text, length, length - 1))
        mt_buf_add_char(out, '/');
    mt_buf_add(out, text + folder, length - folder);
}

/* Characters that end a word. A path goes on behind one of them if a name follows at once. */
static bool ends_word(char c)
{
    return (unsigned char)c <= ' ' || strchr("\"'`()[]{}<>,;|=", c);
}

/* "redacted-0123456789ab", "redacted/0123456789ab" */
static bool begins_redacted(const char *text, size_t length)
{
    size_t name = strlen(hashed_name);

    return length >= name + HASH_DIGITS && begins_with(text, length, "redacted") &&
           (text[name - 1] == '-' || text[name - 1] == '/') && is_hash(text + name, HASH_DIGITS);
}

/* Length of "(...)" if it is part of an element in the path of an operation: "jit(f)/add"; or 0. */
static size_t call_length(const char *text, size_t length)
{
    enum { MAX_CALL = 256 };
    size_t at = 0, depth = 0;

    if (begins_redacted(text + 1, length - 1))
        return 0;
    do {
        depth += text[at] == '(';
        depth -= text[at] == ')';
        if (!mt_is_alnum(text[at]) && (!text[at] || !strchr("()_.<>-", text[at])))
            return 0;
    } while (++at < length && depth && at < MAX_CALL);
    return !depth && at < length && text[at] == '/' ? at : 0;
}

static size_t word_length(const char *text, size_t length)
{
    size_t at = 0;

    while (at < length) {
        size_t call = at && text[at] == '(' ? call_length(text + at, length - at) : 0;
        if (!call && ends_word(text[at]))
            break;
        at += call ? call : 1;
    }
    while (at > 1 && strchr(".:!?", text[at - 1]))
        at--;
    return at;
}

static size_t count_separators(const char *text, size_t length)
{
    size_t count = 0, step;

    for (size_t at = 0; at < length; at += step ? step : 1) {
        step = separator(text, length, at);
        count += step > 0;
    }
    return count;
}

static bool is_symbol_version(const char *text, size_t length)
{
    return (length == 3 && begins_with(text, length, "plt")) ||
           begins_with(text, length, "GLIBC_") || begins_with(text, length, "GLIBCXX_");
}

/* A '~' is a home, except in "~5" and, without a folder, in the destructor "A::~A". An '@' follows
 * a user, except in "f@plt" and "f@GLIBC_2.17". */
static bool has_user(const char *text, size_t length, bool has_folder)
{
    for (size_t at = 0; at + 1 < length; at++) {
        const char *next = text + at + 1;
        bool is_number = *next >= '0' && *next <= '9';
        bool has_name = mt_is_alnum(*next) || *next == '_' || (unsigned char)*next >= 0x80;
        bool is_class = at > 1 && text[at - 1] == ':' && text[at - 2] == ':';

        if (text[at] == '~' && (has_folder || (has_name && !is_number && !is_class)))
            return true;
        if (text[at] == '@' && at && has_name && text[at - 1] != '@' &&
            !is_symbol_version(next, length - at - 1))
            return true;
    }
    return false;
}

/* Whether each element of "a/b/c" begins with a letter, a digit or '_' and ends like a name. */
static bool has_elements(const char *text, size_t length)
{
    for (size_t at = 0; at <= length; at++) {
        bool begins = !at || text[at - 1] == '/', ends = at == length || text[at] == '/';

        if (begins && (ends || (!mt_is_alnum(text[at]) && text[at] != '_')))
            return false;
        if (ends && !mt_is_alnum(text[at - 1]) && !strchr("_)>", text[at - 1]))
            return false;
        if (at < length && (text[at] == '\\' || text[at] == '%'))
            return false;
    }
    return true;
}

static size_t element_length(const char *text, size_t length)
{
    const char *slash = memchr(text, '/', length);

    return slash ? (size_t)(slash - text) : length;
}

static bool is_hashed_element(const char *text, size_t length)
{
    return begins_with(text, length, hashed_name) &&
           is_hash(text + strlen(hashed_name), length - strlen(hashed_name));
}

/* Copies known elements and hashes the others, so that ranges keep their structure. */
static void redact_elements(const struct mt_redaction *redaction, const char *text, size_t length,
                            struct mt_buf *out)
{
    size_t at = 0, end;

    for (; at < length; at = end) {
        end = at + element_length(text + at, length - at);
        if (mt_public_element(text + at, end - at) || is_hashed_element(text + at, end - at)) {
            mt_buf_add(out, text + at, end - at);
        } else {
            mt_buf_add_text(out, hashed_name);
            add_hash(redaction, 'n', text + at, end - at, out);
        }
        if (end < length)
            mt_buf_add_char(out, text[end++]);
    }
}

static bool are_elements_known(const char *text, size_t length)
{
    size_t end;

    for (size_t at = 0; at < length; at = end + 1) {
        end = at + element_length(text + at, length - at);
        if (!mt_public_element(text + at, end - at) && !is_hashed_element(text + at, end - at))
            return false;
    }
    return true;
}

enum word { WORD_PLAIN, WORD_ELEMENTS, WORD_USER, WORD_PATH };

/* Whether it is "operator/" of a class, or has no letters, as the '/' in "a / b". */
static bool is_operator(const char *text, size_t length)
{
    static const char name[] = "operator/";
    size_t tail = strlen(name), at = 0;

    while (at < length && (text[at] == '/' || text[at] == '\\'))
        at++;
    return at == length || (length >= tail && !memcmp(text + length - tail, name, tail) &&
                            (length == tail || text[length - tail - 1] == ':') &&
                            count_separators(text, length) == 1);
}

/* Whether a name follows at once behind one of the marks: "/home/a/lr=0.1,b". */
static bool goes_on(const char *text, size_t length, size_t at, const char *marks)
{
    return at + 1 < length && text[at] && strchr(marks, text[at]) && mt_is_alnum(text[at + 1]) &&
           !begins_redacted(text + at + 1, length - at - 1);
}

/* "1/8": a comma may follow. */
static bool is_number(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (mt_is_alnum(text[i]) && text[i] > '9')
            return false;
    return are_elements_known(text, length);
}

/* `word` bytes of the `length` bytes of text are the word. */
static enum word classify(const char *text, size_t length, size_t word)
{
    size_t folder = folder_length(text, word);

    if (!count_separators(text, word) || is_operator(text, word))
        return has_user(text, word, false) ? WORD_USER : WORD_PLAIN;
    if (!has_elements(text, word) || has_user(text, word, true) ||
        (!is_number(text, word) && goes_on(text, length, word, "=,[{'")))
        return WORD_PATH;
    if (are_elements_known(text, word))
        return WORD_PLAIN;
    if (is_redacted(text, word) || is_redacted(text, folder) ||
        mt_public_folder(text, folder) < folder ||
        mt_public_file_name(text + folder, word - folder))
        return WORD_PATH;
    return WORD_ELEMENTS;
}

/* Whether a path begins with the word, so that the path before it has ended. */
static bool begins_path(const char *text, size_t length)
{
    return separator(text, length, 0) || *text == '~' || begins_redacted(text, length) ||
           (length > 2 && text[1] == ':') || (length > 3 && !mt_is_alnum(*text) && text[1] == '/');
}

static bool ends_with_file(const char *text, size_t length)
{
    size_t folder = folder_length(text, length);

    return mt_public_file_name(text + folder, length - folder);
}

/* Names of folders may have blanks and commas. So a path ends at the name of a file, or before the
 * last word that has a separator inside. Control characters end it. */
static size_t path_length(const char *text, size_t length)
{
    size_t last = 0, end = word_length(text, length), at = end;

    while (at < length && (unsigned char)text[at] >= ' ') {
        if (at == end && ends_with_file(text + last, end - last))
            break;
        size_t word = ends_word(text[at]) ? 0 : word_length(text + at, length - at);
        if (word && begins_path(text + at, word))
            break;
        if ((word && count_separators(text + at, word)) ||
            (at == end && goes_on(text, length, at, "=,[({'"))) {
            last = at + !word;
            end = at = last + word_length(text + last, length - last);
        } else {
            at += word ? word : 1;
        }
    }
    return end;
}

static void redact_words(const struct mt_redaction *redaction, const char *text, size_t length,
                         struct mt_buf *out)
{
    size_t at = 0, word;

    for (; at < length; at += word) {
        word = word_length(text + at, length - at);
        switch (word ? classify(text + at, length - at, word) : WORD_PLAIN) {
        case WORD_PATH:
            if (!is_redacted(text + at, word) &&
                !is_redacted(text + at, folder_length(text + at, word)))
                word = path_length(text + at, length - at);
            redact_path(redaction, false, text + at, word, out);
            break;
        case WORD_ELEMENTS: redact_elements(redaction, text + at, word, out); break;
        case WORD_USER:
            mt_buf_add_text(out, hashed_name);
            add_hash(redaction, 'n', text + at, word, out);
            break;
        case WORD_PLAIN:
            word = word ? word : 1;
            mt_buf_add(out, text + at, word);
            break;
        }
    }
}

/* "<frozen runpy>", "[libcuda.so.1]": text without a path is unchanged. */
static void redact_file(const struct mt_redaction *redaction, const char *text, size_t length,
                        struct mt_buf *out)
{
    if (length && (*text == '<' || *text == '['))
        redact_words(redaction, text, length, out);
    else
        redact_path(redaction, true, text, length, out);
}

/* The names that Python, PyTorch and CUDA give, such as "Thread-1 (load)": names of functions
 * stay. */
static bool is_common_thread(const char *text, size_t length)
{
    static const char python[] = "Thread-", cuda[] = "cuda";
    const char *call = memchr(text, '(', length);
    size_t at = strlen(cuda);

    if (begins_with(text, length, cuda)) {
        while (at < length && text[at] >= '0' && text[at] <= '9')
            at++;
        if (at == length)
            return true;
    }
    if (begins_with(text, length, python) && call && call[-1] == ' ' && text[length - 1] == ')')
        length = (size_t)(call - text) - 1;
    return !length || mt_public_name(text, length);
}

/* Names that users choose do not begin like one of ours. */
static bool is_hashed_name(const char *text, size_t length, const char *prefix)
{
    size_t prefix_length = strlen(prefix);

    return begins_with(text, length, prefix) &&
           is_hash(text + prefix_length, length - prefix_length);
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

    mt_redact(&any, kind, text, length, &out);
    bool differs =
        !out.failed && (out.length != length || (length && memcmp(out.data, text, length)));
    mt_buf_release(&out);
    return differs;
}
