/* {"pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}, ...}, ...}: the ranks
 * are text in all versions so far. */
#include "importers.h"

#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "grow.h"
#include "identity.h"
#include "pickle.h"
#include "sorted.h"

enum {
    MAX_LINES_BYTES = 65536, /* limit of a text in a header */
    MAX_MEMBERS = 64         /* limit for the description of a group, which has 3 members */
};

/* Many groups of a hostile pickle can share one long text. */
#define MAX_TEXT_BYTES (UINT64_C(64) << 20)

struct dump {
    const struct mt_pickle *pickle;
    uint64_t text_bytes; /* bytes of texts that were read; a shared text counts each time */
};

struct ranks {
    uint32_t *ranks;
    size_t count, capacity;
};

static enum mt_status refuse(struct mt_error *error, const char *why)
{
    return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "%s", why);
}

/* Returns the value of a key of a dictionary; NULL if there is none. The last of several equal
 * keys wins. */
static const struct mt_pickle_value *member(const struct mt_pickle *pickle,
                                            struct mt_pickle_value dictionary, const char *key)
{
    size_t count = 0, length;
    const struct mt_pickle_value *items =
        dictionary.kind == MT_PICKLE_DICT ? mt_pickle_items(pickle, dictionary, &count) : NULL;

    for (size_t i = count; i >= 2; i -= 2)
        if (items[i - 2].kind == MT_PICKLE_TEXT &&
            !strcmp(mt_pickle_text(pickle, items[i - 2], &length), key))
            return &items[i - 1];
    return NULL;
}

/* Returns "" if it is not a text. */
static const char *text_of(struct dump *dump, const struct mt_pickle_value *value)
{
    const char *text = "";
    size_t length = 0;

    if (value && value->kind == MT_PICKLE_TEXT)
        text = mt_pickle_text(dump->pickle, *value, &length);
    dump->text_bytes += length;
    return text;
}

static const char *text_member(struct dump *dump, struct mt_pickle_value group, const char *key)
{
    return text_of(dump, member(dump->pickle, group, key));
}

static bool is_group(const struct mt_pickle *pickle, const struct mt_pickle_value *pair)
{
    size_t count = 0;

    if (pair[0].kind != MT_PICKLE_TEXT || pair[1].kind != MT_PICKLE_DICT)
        return false;
    (void)mt_pickle_items(pickle, pair[1], &count);
    return count / 2 <= MAX_MEMBERS;
}

/* Reads "[0, 1, 7]". Returns MT_ERR_FORMAT for anything else. */
static enum mt_status read_ranks(const char *text, struct ranks *ranks)
{
    const char *at = text, *end = text + strlen(text);
    uint64_t rank;

    if (*at++ != '[')
        return MT_ERR_FORMAT;
    for (;; at++) {
        at += strspn(at, " ");
        if (!mt_decimal_take(&at, end, &rank) || rank > MT_MAX_RANK)
            return MT_ERR_FORMAT;
        if (mt_grow(&ranks->ranks, &ranks->capacity, ranks->count + 1, sizeof *ranks->ranks))
            return MT_ERR_MEMORY;
        ranks->ranks[ranks->count++] = (uint32_t)rank;
        if (*at != ',')
            return !strcmp(at, "]") ? MT_OK : MT_ERR_FORMAT;
    }
}

static bool differ(const struct ranks *ranks)
{
    for (size_t i = 1; i < ranks->count; i++)
        if (ranks->ranks[i] == ranks->ranks[i - 1])
            return false;
    return true;
}

/* "0:default_pg", or "5" for a group without a description. */
static void add_name(const char *id, const char *description, struct mt_buf *name)
{
    mt_buf_add_text(name, id);
    if (*description && strcmp(description, "undefined") != 0) {
        mt_buf_add_char(name, ':');
        mt_buf_add_text(name, description);
    }
}

static enum mt_status add_group(struct dump *dump, const struct mt_pickle_value *pair,
                                struct mt_buf *lines)
{
    struct ranks ranks = {.ranks = NULL};
    struct mt_buf name = {0};
    enum mt_status status = is_group(dump->pickle, pair)
                                ? read_ranks(text_member(dump, pair[1], "ranks"), &ranks)
                                : MT_ERR_FORMAT;

    if (status == MT_OK) {
        qsort(ranks.ranks, ranks.count, sizeof *ranks.ranks, mt_ascending_u32);
        add_name(text_of(dump, &pair[0]), text_member(dump, pair[1], "desc"), &name);
        if (!differ(&ranks))
            status = MT_ERR_FORMAT;
        else
            mt_process_group_write(name.data ? name.data : "", ranks.ranks, ranks.count, lines);
        lines->failed |= name.failed;
    }
    mt_buf_release(&name);
    free(ranks.ranks);
    return status;
}

static enum mt_status too_much(struct mt_error *error, const char *why)
{
    return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "%s", why);
}

static enum mt_status add_groups(struct dump *dump, struct mt_pickle_value root,
                                 struct mt_buf *lines, struct mt_error *error)
{
    const struct mt_pickle_value *groups = member(dump->pickle, root, "pg_config");
    enum mt_status status = MT_OK;
    size_t count = 0;

    if (!groups || groups->kind != MT_PICKLE_DICT)
        return refuse(error, "not a dump of PyTorch's Flight Recorder: it has no pg_config");
    const struct mt_pickle_value *pairs = mt_pickle_items(dump->pickle, *groups, &count);
    for (size_t i = 0; i + 1 < count && status == MT_OK && !lines->failed; i += 2) {
        status = add_group(dump, &pairs[i], lines);
        if (dump->text_bytes > MAX_TEXT_BYTES)
            return too_much(error, "its process groups have more than 64 MiB of text");
        if (lines->length > MAX_LINES_BYTES)
            return too_much(
                error, "its process groups take more than the 64 KiB that a trace has for them");
    }
    if (status == MT_ERR_MEMORY || lines->failed)
        return mt_fail_memory(error);
    return status == MT_OK
               ? MT_OK
               : refuse(error, "a process group of the Flight Recorder has no list of ranks");
}

enum mt_status mt_flight_recorder_groups(const char *path, struct mt_buf *lines,
                                         struct mt_error *error)
{
    struct mt_pickle *pickle = NULL;
    struct mt_pickle_value root;
    struct mt_feed *feed;
    struct dump dump = {0};
    enum mt_status status = mt_feed_open(path, &feed, error);

    if (status != MT_OK)
        return status;
    status = mt_pickle_read(feed, NULL, &pickle, &root, error);
    dump.pickle = pickle;
    if (status == MT_OK)
        status = add_groups(&dump, root, lines, error);
    mt_pickle_free(pickle);
    mt_feed_close(feed);
    return status;
}
