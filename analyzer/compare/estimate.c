#include "estimate.h"

#include <stdlib.h>
#include <string.h>

#include "module_table.h"
#include "near_word.h"
#include "util.h"

const char *mt_estimate_level_name(enum mt_estimate_level level)
{
    static const char *const names[] = {"allocated", "reserved", "card"};

    return names[level];
}

/* Reads an estimate from its file. People write it, so a member that is not known is an error. */

struct reading {
    struct mt_estimate *estimate;
    struct mt_error *error;
    const struct mt_setting *entry;
    unsigned roles; /* those of the rows so far */
    bool has_total;
    uint64_t roles_bytes, modules_bytes; /* the sums of the rows */
};

static enum mt_status fail(const struct reading *reading, const char *name, const char *what)
{
    return mt_fail(reading->error, MT_ERR_FORMAT, MT_NO_OFFSET, "line %u: '%.60s' %s",
                   reading->entry->line, name, what);
}

static bool is_null(const struct mt_setting *entry)
{
    return entry->kind == MT_SETTING_JSON && !strcmp(entry->text, "null");
}

static enum mt_status read_bytes(const struct reading *reading, uint64_t *bytes)
{
    const struct mt_setting *entry = reading->entry;

    if (entry->kind == MT_SETTING_NUMBER && entry->is_whole &&
        entry->number <= MT_MAX_ESTIMATE_BYTES)
        *bytes = entry->number;
    else if (entry->kind == MT_SETTING_NUMBER)
        return mt_fail(reading->error, MT_ERR_FORMAT, MT_NO_OFFSET,
                       "line %u: '%.60s' is %.24s, which is not a whole number of bytes from 0 to "
                       "2^48",
                       entry->line, entry->path, entry->text);
    else
        return fail(reading, entry->path, "is not a number of bytes");
    return MT_OK;
}

static void add_row(struct reading *reading, struct mt_estimate_row row)
{
    struct mt_estimate *estimate = reading->estimate;

    row.name = mt_arena_text(&estimate->arena, row.name, strlen(row.name));
    estimate->rows[estimate->row_count++] = row;
    estimate->module_count += !row.roles;
    *(row.roles ? &reading->roles_bytes : &reading->modules_bytes) += row.bytes;
}

static enum mt_status fail_role(const struct reading *reading, const char *word, size_t length)
{
    const char *names[MT_ROLE_COUNT];

    for (int i = 0; i < MT_ROLE_COUNT; i++)
        names[i] = mt_role_name((enum mt_role)i);
    const char *near = mt_did_you_mean_part(word, length, names, MT_ROLE_COUNT);
    length = mt_min_u64(length, 40);
    if (near)
        return mt_fail(reading->error, MT_ERR_FORMAT, MT_NO_OFFSET,
                       "line %u: '%.*s' is not a role; did you mean '%s'?", reading->entry->line,
                       (int)length, word, near);
    return mt_fail(reading->error, MT_ERR_FORMAT, MT_NO_OFFSET,
                   "line %u: '%.*s' is not a role: write parameters, gradients, optimizer state, "
                   "activations, temporaries, workspace, inputs, KV cache, weight copies or other",
                   reading->entry->line, (int)length, word);
}

/* One of the names in "parameters + gradients". */
static enum mt_status read_role(struct reading *reading, const char *word, size_t length,
                                unsigned *roles)
{
    for (unsigned i = 0; i < MT_ROLE_COUNT; i++) {
        const char *name = mt_role_name((enum mt_role)i);

        if (strlen(name) != length || memcmp(name, word, length) != 0)
            continue;
        if (reading->roles >> i & 1)
            return fail(reading, name, "is in two rows");
        reading->roles |= 1u << i;
        *roles |= 1u << i;
        return MT_OK;
    }
    return fail_role(reading, word, length);
}

static enum mt_status read_role_row(struct reading *reading, const char *name)
{
    struct mt_estimate_row row = {.name = name};
    const char *word = name;
    enum mt_status status;

    do {
        const char *end = strchr(word, '+'), *next = end ? end + 1 : NULL;

        end = end ? end : word + strlen(word);
        for (; *word == ' '; word++)
            ;
        for (; end > word && end[-1] == ' '; end--)
            ;
        status = read_role(reading, word, (size_t)(end - word), &row.roles);
        word = next;
    } while (word && !status);
    if (!status)
        status = read_bytes(reading, &row.bytes);
    if (!status)
        add_row(reading, row);
    return status;
}

static enum mt_status read_module_row(struct reading *reading, const char *name)
{
    struct mt_estimate_row row = {.name = name};
    enum mt_status status = read_bytes(reading, &row.bytes);

    if (!status)
        add_row(reading, row);
    return status;
}

static enum mt_status read_level(struct reading *reading)
{
    const struct mt_setting *entry = reading->entry;

    for (int level = MT_ESTIMATE_ALLOCATED; level <= MT_ESTIMATE_CARD; level++)
        if (entry->kind == MT_SETTING_TEXT &&
            !strcmp(entry->text, mt_estimate_level_name((enum mt_estimate_level)level))) {
            reading->estimate->compared_with = (enum mt_estimate_level)level;
            return MT_OK;
        }
    return fail(reading, entry->path, "is none of \"allocated\", \"reserved\", \"card\"");
}

static enum mt_status read_source(struct reading *reading)
{
    const struct mt_setting *entry = reading->entry;

    if (entry->kind != MT_SETTING_TEXT)
        return fail(reading, entry->path, "is not a string");
    reading->estimate->source =
        mt_arena_text(&reading->estimate->arena, entry->text, strlen(entry->text));
    return MT_OK;
}

static enum mt_status fail_member(const struct reading *reading)
{
    static const char *const names[] = {"schema",      "source", "compared_with",
                                        "total_bytes", "roles",  "modules"};
    const char *path = reading->entry->path,
               *near = mt_did_you_mean_part(path, strcspn(path, "."), names, MT_ARRAY_LEN(names));

    if (near)
        return mt_fail(reading->error, MT_ERR_FORMAT, MT_NO_OFFSET,
                       "line %u: '%.60s' is not known; did you mean '%s'?", reading->entry->line,
                       path, near);
    return fail(reading, path,
                "is not known: an estimate has source, compared_with, total_bytes, roles and "
                "modules");
}

static enum mt_status read_entry(struct reading *reading)
{
    const struct mt_setting *entry = reading->entry;
    const char *path = entry->path;

    if (is_null(entry) || !strcmp(path, "schema"))
        return MT_OK;
    if (!strcmp(path, "roles") || !strcmp(path, "modules"))
        return entry->kind == MT_SETTING_JSON && *entry->text == '{'
                   ? MT_OK
                   : fail(reading, path, "is not an object");
    if (!strncmp(path, "roles.", strlen("roles.")))
        return read_role_row(reading, path + strlen("roles."));
    if (!strncmp(path, "modules.", strlen("modules.")))
        return read_module_row(reading, path + strlen("modules."));
    if (!strcmp(path, "compared_with"))
        return read_level(reading);
    if (!strcmp(path, "source"))
        return read_source(reading);
    if (!strcmp(path, "total_bytes")) {
        reading->has_total = true;
        return read_bytes(reading, &reading->estimate->total_bytes);
    }
    return fail_member(reading);
}

/* A sum above the total is most often a mistake of units. */
static enum mt_status check_total(const struct reading *reading)
{
    struct mt_estimate *estimate = reading->estimate;
    const uint64_t sum = mt_max_u64(reading->roles_bytes, reading->modules_bytes);

    if (!reading->has_total && !estimate->row_count)
        return mt_fail(reading->error, MT_ERR_FORMAT, MT_NO_OFFSET,
                       "it has no numbers: write 'roles', 'modules' or 'total_bytes'");
    if (!reading->has_total)
        estimate->total_bytes = sum;
    if (estimate->total_bytes < sum)
        return mt_fail(reading->error, MT_ERR_FORMAT, MT_NO_OFFSET,
                       "'total_bytes' is %llu, but its %s sum to %llu",
                       (unsigned long long)estimate->total_bytes,
                       reading->roles_bytes == sum ? "roles" : "modules", (unsigned long long)sum);
    return MT_OK;
}

enum mt_status mt_estimate_read(struct mt_estimate *estimate, const struct mt_settings *settings,
                                struct mt_error *error)
{
    struct reading reading = {.estimate = estimate, .error = error};

    memset(estimate, 0, sizeof *estimate);
    enum mt_status status =
        mt_settings_check_schema(settings, "an estimate", MT_ESTIMATE_SCHEMA, error);
    if (!status)
        estimate->rows = mt_arena_array(&estimate->arena, settings->count, sizeof *estimate->rows);
    for (size_t i = 0; i < settings->count && !status; i++) {
        reading.entry = &settings->entries[i];
        status = read_entry(&reading);
    }
    return status ? status : check_total(&reading);
}

void mt_estimate_release(struct mt_estimate *estimate)
{
    mt_arena_release(&estimate->arena);
    memset(estimate, 0, sizeof *estimate);
}

/* The comparison with an answer. */

static uint64_t distance(const struct mt_estimate_line *line)
{
    return line->measured_bytes > line->estimated_bytes
               ? line->measured_bytes - line->estimated_bytes
               : line->estimated_bytes - line->measured_bytes;
}

static int by_distance(const void *a, const void *b)
{
    const uint64_t of_a = distance(a), of_b = distance(b);

    if (of_a != of_b)
        return of_a > of_b ? -1 : 1;
    return strcmp(((const struct mt_estimate_line *)a)->name,
                  ((const struct mt_estimate_line *)b)->name);
}

static struct mt_estimate_line line_of(const struct mt_estimate_row *row)
{
    return (struct mt_estimate_line){.name = row->name,
                                     .roles = row->roles,
                                     .is_estimated = true,
                                     .estimated_bytes = row->bytes};
}

static void end_table(const struct mt_estimate *estimate, struct mt_estimate_table *table)
{
    table->rest_bytes = estimate->total_bytes;
    for (uint32_t i = 0; i < table->count; i++)
        table->rest_bytes -= table->lines[i].estimated_bytes;
    qsort(table->lines, table->count, sizeof *table->lines, by_distance);
}

void mt_estimate_by_role(struct mt_arena *arena, const struct mt_estimate *estimate,
                         const struct mt_answer *answer, struct mt_estimate_table *table)
{
    struct mt_estimate_line *line_of_role[MT_ROLE_COUNT] = {NULL};

    *table = (struct mt_estimate_table){
        .lines = mt_arena_array(arena, (size_t)estimate->row_count + MT_ROLE_COUNT,
                                sizeof *table->lines)};
    for (uint32_t i = 0; i < estimate->row_count; i++)
        if (estimate->rows[i].roles) {
            table->lines[table->count] = line_of(&estimate->rows[i]);
            for (unsigned role = 0; role < MT_ROLE_COUNT; role++)
                if (estimate->rows[i].roles >> role & 1)
                    line_of_role[role] = &table->lines[table->count];
            table->count++;
        }
    for (uint32_t i = 0; i < answer->instant.holding_count; i++) {
        const struct mt_holding *holding = &answer->instant.holdings[i];
        struct mt_estimate_line **line = &line_of_role[holding->role];

        if (!*line) {
            *line = &table->lines[table->count++];
            **line = (struct mt_estimate_line){.name = mt_role_name(holding->role),
                                               .roles = 1u << holding->role};
        }
        (*line)->measured_bytes += holding->bytes;
    }
    end_table(estimate, table);
}

/* Names of modules come from two sides, so a map from names to lines finds the pairs. */
static struct mt_estimate_line *line_at(struct mt_strings *names, struct mt_estimate_table *table,
                                        const char *name)
{
    uint32_t id = mt_strings_find(names, name, strlen(name));

    return id < names->count ? &table->lines[id] : NULL;
}

void mt_estimate_by_module(struct mt_arena *arena, const struct mt_estimate *estimate,
                           const struct mt_answer *answer, struct mt_estimate_table *table)
{
    struct mt_strings names = {0}; /* ids are indices of the lines of the estimate */

    *table = (struct mt_estimate_table){
        .lines = mt_arena_array(arena, (size_t)estimate->module_count + answer->row_count + 1,
                                sizeof *table->lines)};
    for (uint32_t i = 0; i < estimate->row_count; i++)
        if (!estimate->rows[i].roles) {
            uint32_t id;

            mt_strings_put(&names, estimate->rows[i].name, strlen(estimate->rows[i].name), &id);
            table->lines[table->count++] = line_of(&estimate->rows[i]);
        }
    for (uint32_t i = 0; i < answer->row_count; i++) {
        const struct mt_live_row *row = &answer->rows[i];
        struct mt_estimate_line *line = line_at(&names, table, row->label);

        if (!line)
            line = line_at(&names, table, row->module->path);
        if (!line) {
            line = &table->lines[table->count++];
            line->name = row->label;
        }
        line->measured_bytes += row->bytes;
    }
    mt_strings_release(&names);
    end_table(estimate, table);
}
