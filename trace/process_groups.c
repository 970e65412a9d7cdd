#include "process_groups.h"

#include <string.h>

#include "decimal.h"
#include "sha256.h"

/* Ranks first, first + stride, ..., last. */
struct run {
    uint64_t first, last, stride;
};

/* "5", "0-7", "0-24:8" */
static bool take_run(const char **at, const char *end, struct run *run)
{
    if (!mt_decimal_take(at, end, &run->first))
        return false;
    run->last = run->first;
    run->stride = 1;
    if (*at < end && **at == '-' && (++*at, !mt_decimal_take(at, end, &run->last)))
        return false;
    if (*at < end && **at == ':' && (++*at, !mt_decimal_take(at, end, &run->stride)))
        return false;
    return run->first <= run->last && run->last <= MT_MAX_RANK && run->stride &&
           run->stride <= MT_MAX_RANK && (run->last - run->first) % run->stride == 0;
}

/* Runs are sorted and do not overlap, which bounds their sum. */
static bool take_runs(const char *at, const char *end, int32_t rank,
                      struct mt_identity_group *group)
{
    uint64_t size = 0, next = 0, runs = 0;
    struct run run;

    group->position = -1;
    for (;; at++) {
        if (!take_run(&at, end, &run) || run.first < next)
            return false;
        if (rank >= 0 && (uint64_t)rank >= run.first && (uint64_t)rank <= run.last &&
            ((uint64_t)rank - run.first) % run.stride == 0)
            group->position = (int32_t)(size + ((uint64_t)rank - run.first) / run.stride);
        if (!runs++)
            group->first = (uint32_t)run.first;
        group->stride = runs == 1 ? (uint32_t)run.stride : 0;
        size += (run.last - run.first) / run.stride + 1;
        next = run.last + 1;
        group->size = (uint32_t)size;
        if (at == end || *at != ',')
            return at == end;
    }
}

static uint64_t hash_of(const char *text, size_t length)
{
    struct mt_sha256 sha;
    char digits[MT_SHA256_TEXT];
    uint64_t hash = 0;

    mt_sha256_init(&sha);
    mt_sha256_add(&sha, text, length);
    mt_sha256_finish(&sha, digits);
    for (size_t i = 0; i < 16; i++)
        hash = hash << 4 | (uint64_t)(digits[i] < 'a' ? digits[i] - '0' : digits[i] - 'a' + 10);
    return hash;
}

static bool read_line(const char *line, size_t length, int32_t rank,
                      struct mt_identity_group *group)
{
    const char *equals = memchr(line, '=', length);
    size_t name = equals ? (size_t)(equals - line) : 0;

    memset(group, 0, sizeof *group);
    if (!name || name >= sizeof group->name || name + 1 == length)
        return false;
    memcpy(group->name, line, name);
    group->members_hash = hash_of(equals + 1, length - name - 1);
    return take_runs(equals + 1, line + length, rank, group);
}

void mt_process_groups_read(const char *text, int32_t rank,
                            struct mt_identity_group groups[MT_IDENTITY_GROUPS], uint32_t *count,
                            uint32_t *left_out)
{
    struct mt_identity_group group;

    *count = *left_out = 0;
    while (text && *text) {
        size_t length = strcspn(text, "\n");

        if (*count < MT_IDENTITY_GROUPS && read_line(text, length, rank, &group))
            groups[(*count)++] = group;
        else if (length)
            ++*left_out;
        text += length + (text[length] == '\n');
    }
}

static void add_name(const char *name, struct mt_buf *out)
{
    for (size_t i = 0; name[i] && i < MT_GROUP_TEXT - 1; i++)
        mt_buf_add_char(out, (unsigned char)name[i] < ' ' || name[i] == '=' ? '_' : name[i]);
    if (!*name)
        mt_buf_add_char(out, '_');
}

/* Returns how many ranks at the start are equally far apart. Two ranks are a run only if they are
 * all, or adjacent, so that the same ranks are always written the same way. */
static size_t run_length(const uint32_t *ranks, size_t count)
{
    size_t length = count < 2 ? count : 2;

    while (length >= 2 && length < count &&
           ranks[length] - ranks[length - 1] == ranks[1] - ranks[0])
        length++;
    return length == 2 && count > 2 && ranks[1] - ranks[0] > 1 ? 1 : length;
}

void mt_process_group_write(const char *name, const uint32_t *ranks, size_t count,
                            struct mt_buf *out)
{
    size_t length;

    add_name(name, out);
    mt_buf_add_char(out, '=');
    for (size_t i = 0; i < count; i += length) {
        length = run_length(ranks + i, count - i);
        mt_buf_printf(out, i ? ",%u" : "%u", ranks[i]);
        if (length > 1)
            mt_buf_printf(out, "-%u", ranks[i + length - 1]);
        if (length > 1 && ranks[i + 1] - ranks[i] > 1)
            mt_buf_printf(out, ":%u", ranks[i + 1] - ranks[i]);
    }
    mt_buf_add_char(out, '\n');
}
