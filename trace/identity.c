/* The identity of a rank: who it is, its position in the mesh of ranks, its process groups, and the
 * rank in the name of a file. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "ascii.h"
#include "buf.h"
#include "header.h"
#include "identity.h"
#include "sha256.h"
#include "source.h"

/* The rank in the name of a file, as launchers and frameworks write it: host-77-rank3.trace.zst,
 * rank_003.pickle, oom_rank-3_x.pickle, snapshot-r3.pickle. */

/* The rank within a node and the rank of a node are not the rank of the job. */
static bool is_other_rank(const char *name, const char *at)
{
    static const char *const others[] = {"local_", "local-", "node_", "node-", "group_", "group-"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t length = strlen(others[i]);
        if ((size_t)(at - name) >= length && !strncasecmp(at - length, others[i], length))
            return true;
    }
    return false;
}

/* Reads `word` and digits at `at`: the number, or -1. */
static int32_t number_at(const char *name, const char *at, const char *word, bool may_part)
{
    const char *end = at + strlen(at), *digits = at + strlen(word);
    uint64_t number;

    if (strncasecmp(at, word, strlen(word)) || (at > name && mt_is_alnum(at[-1])) ||
        is_other_rank(name, at))
        return -1;
    digits += may_part && *digits && strchr("_-=", *digits) ? 1 : 0;
    if (!mt_decimal_take(&digits, end, &number) || number > MT_MAX_RANK || mt_is_alnum(*digits))
        return -1;
    return (int32_t)number;
}

/* -1: none; -2: several that differ. */
static int32_t rank_after(const char *name, const char *word, bool may_part)
{
    int32_t found = -1;

    for (const char *at = name; *at; at++) {
        int32_t number = number_at(name, at, word, may_part);

        if (number >= 0 && found >= 0 && number != found)
            return -2;
        if (number >= 0)
            found = number;
    }
    return found;
}

int32_t mt_rank_of_name(const char *path)
{
    const char *name = mt_base_name(path);
    int32_t rank = rank_after(name, "rank", true);

    if (rank == -1)
        rank = rank_after(name, "r", false);
    return rank < 0 ? -1 : rank;
}

#define MAX_RANKS (UINT64_C(1) << 31)

static const char wrong_form[] =
    "it needs a coordinate and a size for each axis, such as pp=1/8,dp=3/32";
static const char wrong_name[] = "the name of an axis has 1 to 16 of the characters a to z and _";

/* "pp=": returns NULL, or what is wrong. */
static const char *take_name(const char **at, const char *end, struct mt_mesh_axis *axis)
{
    size_t length = 0;

    while (*at + length < end &&
           ((*at)[length] == '_' || ((*at)[length] >= 'a' && (*at)[length] <= 'z')))
        length++;
    if (!length || length >= sizeof axis->name)
        return wrong_name;
    if (*at + length == end || (*at)[length] != '=')
        return *at + length == end || strchr("/,", (*at)[length]) ? wrong_form : wrong_name;
    memcpy(axis->name, *at, length);
    axis->name[length] = '\0';
    *at += length + 1;
    return NULL;
}

/* "1/8" */
static const char *take_place(const char **at, const char *end, struct mt_mesh_axis *axis)
{
    uint64_t coordinate, size;

    if (!mt_decimal_take(at, end, &coordinate) || *at == end || *(*at)++ != '/' ||
        !mt_decimal_take(at, end, &size))
        return wrong_form;
    if (size > MAX_RANKS)
        return "it has more than 2^31 ranks";
    if (coordinate >= size)
        return "a coordinate is not below the size of its axis";
    axis->coordinate = (uint32_t)coordinate;
    axis->size = (uint32_t)size;
    return NULL;
}

static bool is_named(const struct mt_mesh *mesh, const char *name)
{
    for (uint32_t i = 0; i < mesh->count; i++)
        if (!strcmp(mesh->axes[i].name, name))
            return true;
    return false;
}

static const char *take_axis(const char **at, const char *end, struct mt_mesh *mesh,
                             uint64_t *ranks)
{
    struct mt_mesh_axis axis = {.size = 0};
    const char *wrong = take_name(at, end, &axis);

    if (!wrong)
        wrong = take_place(at, end, &axis);
    if (wrong)
        return wrong;
    if (mesh->count == MT_MESH_AXES)
        return "it has more than 8 axes";
    if (is_named(mesh, axis.name))
        return "it has an axis twice";
    *ranks *= axis.size; /* both are at most 2^31 */
    if (*ranks > MAX_RANKS)
        return "it has more than 2^31 ranks";
    mesh->axes[mesh->count++] = axis;
    return NULL;
}

const char *mt_mesh_read(const char *text, struct mt_mesh *mesh)
{
    const char *end = text ? text + strlen(text) : NULL, *at = text, *wrong = NULL;
    uint64_t ranks = 1;

    memset(mesh, 0, sizeof *mesh);
    while (!wrong && at && at < end) {
        wrong = take_axis(&at, end, mesh, &ranks);
        if (!wrong && at < end && (*at != ',' || ++at == end))
            wrong = wrong_form;
    }
    if (wrong)
        memset(mesh, 0, sizeof *mesh);
    return wrong;
}

void mt_mesh_write(const struct mt_mesh *mesh, struct mt_buf *out)
{
    for (uint32_t i = 0; i < mesh->count; i++)
        mt_buf_printf(out, "%s%s=%u/%u", i ? "," : "", mesh->axes[i].name, mesh->axes[i].coordinate,
                      mesh->axes[i].size);
}

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

/* A text that does not fit is unknown: a truncated one could equal another. */
static void copy_text(char *out, size_t capacity, const char *text)
{
    size_t length = text ? strnlen(text, capacity) : 0;

    if (length < capacity && length)
        memcpy(out, text, length);
    out[length < capacity ? length : 0] = '\0';
}

/* Returns -1 unless the text is a number from 0 to MT_MAX_RANK. */
static int32_t small_number(const char *text)
{
    uint64_t number;

    return text && mt_decimal_read(text, strlen(text), &number) && number <= MT_MAX_RANK
               ? (int32_t)number
               : -1;
}

static void read_rank(const struct mt_trace_header *header, const char *path,
                      struct mt_identity *identity)
{
    identity->rank = header->rank >= 0 && header->rank <= MT_MAX_RANK ? header->rank : -1;
    identity->rank_origin = identity->rank >= 0 ? MT_RANK_RECORDED : MT_RANK_UNKNOWN;
    if (identity->rank < 0 && path) {
        identity->rank = mt_rank_of_name(path);
        identity->rank_origin = identity->rank >= 0 ? MT_RANK_OF_NAME : MT_RANK_UNKNOWN;
    }
    identity->world =
        header->world_size > identity->rank && header->world_size > 0 ? header->world_size : -1;
    identity->local_rank = small_number(header->local_rank);
    identity->restart = small_number(header->restart);
}

static void read_devices(const struct mt_trace_header *header, struct mt_identity *identity)
{
    for (uint32_t i = 0; i < MT_IDENTITY_DEVICES; i++) {
        struct mt_identity_device *device = &identity->devices[identity->device_count];

        if (!header->device_uuid[i] && !header->device_pci[i] && !header->device_mig[i])
            continue;
        device->index = i;
        copy_text(device->uuid, sizeof device->uuid, header->device_uuid[i]);
        copy_text(device->pci, sizeof device->pci, header->device_pci[i]);
        copy_text(device->mig, sizeof device->mig, header->device_mig[i]);
        identity->device_count++;
    }
}

void mt_identity_read(const struct mt_trace_header *header, const char *path,
                      struct mt_identity *identity)
{
    memset(identity, 0, sizeof *identity);
    copy_text(identity->host, sizeof identity->host, header->host);
    copy_text(identity->boot_id, sizeof identity->boot_id, header->boot_id);
    copy_text(identity->job, sizeof identity->job, header->job);
    identity->process_id = header->process_id;
    identity->is_planned = header->dry_run != NULL;
    identity->start_t_ns = header->start_t_ns;
    identity->memory_limit_bytes = header->memory_limit_bytes;
    identity->cgroup_limit_bytes = header->cgroup_limit_bytes;
    identity->ended_t_ns = header->ended_t_ns;
    (void)mt_ending_read(header->ended, &identity->ended, &identity->ended_number);
    (void)mt_mesh_read(header->mesh, &identity->mesh);
    read_rank(header, path, identity);
    read_devices(header, identity);
    mt_process_groups_read(header->process_groups, identity->rank, identity->groups,
                           &identity->group_count, &identity->groups_left_out);
}
