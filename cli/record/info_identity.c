/* The parts of `memtrace info` about identity: of a rank and its process, and texts that may
 * identify somebody. */
#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "buf.h"
#include "cli.h"
#include "foreign_text.h"
#include "identity.h"
#include "info_identity.h"
#include "json.h"
#include "process_memory.h"
#include "redaction.h"
#include "source.h"
#include "text_table.h"
#include "units.h"
#include "util.h"

void mt_info_add_label(struct mt_buf *out, const char *label)
{
    mt_buf_printf(out, "  %-12s", label);
}

static void add_fact(struct mt_buf *out, const char *label, const char *value)
{
    if (!*value)
        return;
    mt_info_add_label(out, label);
    mt_buf_add_printable_text(out, value);
    mt_buf_add_char(out, '\n');
}

static void add_rank(struct mt_buf *out, const struct mt_identity *identity)
{
    if (identity->rank < 0)
        return;
    mt_info_add_label(out, "rank");
    mt_buf_printf(out, "%d", identity->rank);
    if (identity->world >= 0)
        mt_buf_printf(out, " of %d", identity->world);
    if (identity->local_rank >= 0)
        mt_buf_printf(out, ", local rank %d", identity->local_rank);
    if (identity->restart > 0)
        mt_buf_printf(out, ", restart %d", identity->restart);
    mt_buf_add_text(out, identity->rank_origin == MT_RANK_OF_NAME ? " (from the name of the file)\n"
                                                                  : "\n");
}

static void add_mesh(struct mt_buf *out, const struct mt_mesh *mesh)
{
    struct mt_buf text = {0};

    mt_mesh_write(mesh, &text);
    if (mesh->count)
        add_fact(out, "mesh", text.data ? text.data : "");
    mt_buf_release(&text);
}

static void add_groups(struct mt_buf *out, const struct mt_identity *identity)
{
    for (uint32_t i = 0; i < identity->group_count; i++) {
        const struct mt_identity_group *group = &identity->groups[i];

        mt_info_add_label(out, i ? "" : "groups");
        mt_buf_add_printable_text(out, group->name);
        mt_buf_printf(out, "  %u rank%s", group->size, group->size == 1 ? "" : "s");
        if (group->stride > 1)
            mt_buf_printf(out, " starting at %u, every %u", group->first, group->stride);
        else if (group->stride)
            mt_buf_printf(out, " starting at %u", group->first);
        mt_buf_add_char(out, '\n');
    }
    if (identity->groups_left_out)
        mt_buf_printf(out, "  %-12s%u more\n", "", identity->groups_left_out);
}

static void add_device_ids(struct mt_buf *out, const struct mt_identity *identity)
{
    for (uint32_t i = 0; i < identity->device_count; i++) {
        const struct mt_identity_device *device = &identity->devices[i];
        const char *const texts[] = {device->uuid, device->pci, device->mig};

        mt_info_add_label(out, i ? "" : "device ids");
        mt_buf_printf(out, "gpu %u", device->index);
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            mt_buf_add_text(out, !*texts[k] ? "" : k == 2 ? "  MIG " : "  ");
            mt_buf_add_printable_text(out, texts[k]);
        }
        mt_buf_add_char(out, '\n');
    }
}

/* Returns false for a value that no version of memtrace writes. Such a value is not printed. */
static bool is_ending(const char *text)
{
    enum mt_ending ending;
    int32_t number;

    return mt_ending_read(text, &ending, &number);
}

static void add_ending(struct mt_buf *out, const struct mt_trace_header *header,
                       const struct mt_identity *identity)
{
    if (!is_ending(header->ended))
        return;
    mt_info_add_label(out, "ended");
    switch (identity->ended) {
    case MT_ENDED_EXIT: mt_buf_printf(out, "exit status %d\n", identity->ended_number); return;
    case MT_ENDED_SIGNAL: mt_buf_printf(out, "signal %d\n", identity->ended_number); return;
    case MT_ENDED_TIMEOUT: mt_buf_add_text(out, "by memtrace, after a timeout\n"); return;
    case MT_ENDED_OOM_KILLED:
        mt_buf_add_text(out, "signal 9; the kernel had killed a process of its control group "
                             "because memory ran out\n");
        return;
    case MT_ENDED_UNKNOWN: break;
    }
    mt_buf_add_text(out, "abnormal; the cause is unknown\n");
}

void mt_info_identity_text(struct mt_buf *out, const struct mt_trace_header *header,
                           const char *path)
{
    struct mt_identity identity;
    char bytes[MT_UNITS_TEXT];

    mt_identity_read(header, path, &identity);
    add_fact(out, "job", identity.job);
    add_rank(out, &identity);
    add_mesh(out, &identity.mesh);
    add_groups(out, &identity);
    add_ending(out, header, &identity);
    add_fact(out, "boot", identity.boot_id);
    if (identity.cgroup_limit_bytes)
        add_fact(out, "host limit", mt_format_bytes(bytes, identity.cgroup_limit_bytes));
    add_device_ids(out, &identity);
}

static void json_text(struct mt_json *json, const char *key, const char *text)
{
    mt_json_text(json, key, *text ? text : NULL);
}

static void json_number(struct mt_json *json, const char *key, int32_t number)
{
    mt_json_u64_or_null(json, key, number >= 0, (uint64_t)(number >= 0 ? number : 0));
}

static void json_mesh(struct mt_json *json, const struct mt_mesh *mesh)
{
    mt_json_array_begin(json, "mesh");
    for (uint32_t i = 0; i < mesh->count; i++) {
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "axis", mesh->axes[i].name);
        mt_json_u64(json, "coordinate", mesh->axes[i].coordinate);
        mt_json_u64(json, "size", mesh->axes[i].size);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}

static void json_devices(struct mt_json *json, const struct mt_identity *identity)
{
    mt_json_array_begin(json, "devices");
    for (uint32_t i = 0; i < identity->device_count; i++) {
        const struct mt_identity_device *device = &identity->devices[i];

        mt_json_object_begin(json, NULL);
        mt_json_u64(json, "device", device->index);
        json_text(json, "uuid", device->uuid);
        json_text(json, "pci", device->pci);
        json_text(json, "mig", device->mig);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}

static void json_groups(struct mt_json *json, const struct mt_identity *identity)
{
    for (struct mt_json_list row = mt_json_rows(json, "process_groups", identity->group_count);
         mt_json_next(&row);) {
        const struct mt_identity_group *group = &identity->groups[row.i];

        mt_json_text(json, "name", group->name);
        mt_json_u64(json, "size", group->size);
        json_number(json, "position", group->position);
        mt_json_u64(json, "first", group->first);
        mt_json_u64_or_null(json, "stride", group->stride, group->stride);
    }
}

static const char *origin_word(enum mt_rank_origin origin)
{
    return origin == MT_RANK_RECORDED ? "recorded" : origin == MT_RANK_OF_NAME ? "file_name" : NULL;
}

void mt_info_identity_json(struct mt_json *json, const struct mt_trace_header *header,
                           const char *path)
{
    struct mt_identity identity;
    char text[MT_ENDING_TEXT];

    mt_identity_read(header, path, &identity);
    mt_json_object_begin(json, "identity");
    json_text(json, "job", identity.job);
    json_text(json, "host", identity.host);
    json_text(json, "boot_id", identity.boot_id);
    mt_json_u64_or_null(json, "process_id", identity.process_id, identity.process_id);
    json_number(json, "rank", identity.rank);
    mt_json_text(json, "rank_origin", origin_word(identity.rank_origin));
    json_number(json, "local_rank", identity.local_rank);
    json_number(json, "world_size", identity.world);
    json_number(json, "restart", identity.restart);
    mt_json_bool(json, "is_planned", identity.is_planned);
    mt_json_text(json, "ended",
                 is_ending(header->ended)
                     ? mt_ending_text(identity.ended, identity.ended_number, text)
                     : NULL);
    mt_json_u64_or_null(json, "ended_t_ns", identity.ended_t_ns, identity.ended_t_ns);
    mt_json_u64_or_null(json, "cgroup_limit_bytes", identity.cgroup_limit_bytes,
                        identity.cgroup_limit_bytes);
    json_mesh(json, &identity.mesh);
    json_devices(json, &identity);
    json_groups(json, &identity);
    mt_json_u64(json, "process_groups_left_out", identity.groups_left_out);
    mt_json_object_end(json);
}

/* The kind of a text depends on the parts of the trace that refer to it. Texts that redaction.h
 * would change are counted. Texts that redaction.h keeps, but that may identify something, are also
 * listed. */

enum { MAX_EXAMPLES = 3, EXAMPLE_COLUMNS = 60 };

enum kind {
    USERS,
    FILES,
    HOST,
    BOOT,
    JOB,
    DEVICES,
    COMMAND,
    THREADS,
    PATHS,
    FILE_NAMES,
    FUNCTIONS,
    PHASES,
    KIND_COUNT
};

static const struct {
    const char *name, *title;
    bool is_redacted;
} kinds[KIND_COUNT] = {
    {"user_names", "user names", true},
    {"file_paths", "paths of files", true},
    {"host", "host", true},
    {"boot_id", "boot of the host", true},
    {"job", "job", true},
    {"device_uuids", "UUIDs of devices", true},
    {"command", "command line", true},
    {"thread_names", "names of threads", true},
    {"paths_in_names", "paths in names and settings", true},
    {"file_names", "names of files", false},
    {"function_names", "names of functions", false},
    {"phase_names", "names of phases and marks", false},
};

struct secrets {
    struct mt_strings texts[KIND_COUNT]; /* distinct texts of each kind */
};

static void add(struct secrets *secrets, enum kind kind, const char *text, size_t length)
{
    uint32_t id;

    if (length)
        mt_strings_put(&secrets->texts[kind], text, length, &id);
}

/* Adds the name of the user in a path: "alice" in "/home/alice/...". */
static void add_users(struct secrets *secrets, const char *text)
{
    static const char *const folders[] = {"/home/", "/Users/", "\\Users\\"};

    for (size_t i = 0; i < MT_ARRAY_LEN(folders); i++)
        for (const char *at = strstr(text, folders[i]); at; at = strstr(at, folders[i])) {
            at += strlen(folders[i]);
            add(secrets, USERS, at, strcspn(at, "/\\ :\"'"));
        }
}

static void add_if(struct secrets *secrets, enum kind kind, enum mt_text_kind text_kind,
                   const char *text)
{
    if (!text || !mt_text_identifies(text_kind, text, strlen(text)))
        return;
    add(secrets, kind, text, strlen(text));
    add_users(secrets, text);
}

/* Returns true if the file belongs to the user, not to a package or the system. A redacted file
 * counts as the user's. */
static bool is_own_file(const char *file)
{
    return !strstr(file, "site-packages/") && !strstr(file, "dist-packages/") &&
           !strstr(file, "/lib/python") && *file != '<' && *file != '[' &&
           (!strncmp(file, "/redacted/", 10) || !strncmp(file, "redacted/", 9) ||
            !strchr(file, '/') || mt_text_identifies(MT_TEXT_FILE, file, strlen(file)));
}

/* Adds the texts of frames. Sets used[i] for each string that a frame uses, so that it does not
 * count as the name of an event. */
static void add_frames(struct secrets *secrets, const struct mt_symbols *symbols, bool *used)
{
    for (uint32_t i = 0; i < symbols->frame_count; i++) {
        const struct mt_frame *frame = &symbols->frames[i];
        const char *file = frame->file == MT_NO_ID ? "" : mt_symbols_text(symbols, frame->file);
        const char *function =
            frame->function == MT_NO_ID ? "" : mt_symbols_text(symbols, frame->function);

        add_if(secrets, FILES, MT_TEXT_FILE, file);
        add_if(secrets, PATHS, MT_TEXT_WORDS, function);
        if (*file && is_own_file(file)) {
            add(secrets, FILE_NAMES, mt_base_name(file), strlen(mt_base_name(file)));
            add(secrets, FUNCTIONS, function, strlen(function));
        }
        if (frame->file < symbols->strings.count)
            used[frame->file] = true;
        if (frame->function < symbols->strings.count)
            used[frame->function] = true;
    }
}

static void add_thread_names(struct secrets *secrets, const struct mt_symbols *symbols, bool *used)
{
    for (uint32_t i = 0; i < symbols->thread_count; i++) {
        if (symbols->threads[i].name >= symbols->strings.count)
            continue;
        add_if(secrets, THREADS, MT_TEXT_THREAD,
               mt_symbols_text(symbols, symbols->threads[i].name));
        used[symbols->threads[i].name] = true;
    }
    for (uint32_t i = 0; i < symbols->device_count; i++)
        if (symbols->devices[i].name < symbols->strings.count)
            used[symbols->devices[i].name] = true;
    for (uint32_t i = 0; i < symbols->heap_count; i++)
        if (symbols->heaps[i].name < symbols->strings.count)
            used[symbols->heaps[i].name] = true;
}

static void add_header(struct secrets *secrets, const struct mt_trace_header *header)
{
    const char *const words[] = {header->framework,     header->allocator_options, header->sources,
                                 header->driver_calls,  header->not_recorded,      header->settings,
                                 header->not_used,      header->dry_run,           header->mesh,
                                 header->process_groups};

    add_if(secrets, HOST, MT_TEXT_HOST, header->host);
    add_if(secrets, BOOT, MT_TEXT_BOOT, header->boot_id);
    add_if(secrets, JOB, MT_TEXT_JOB, header->job);
    for (size_t i = 0; i < MT_IDENTITY_DEVICES; i++)
        add_if(secrets, DEVICES, MT_TEXT_UUID, header->device_uuid[i]);
    add_if(secrets, COMMAND, MT_TEXT_COMMAND, header->command);
    for (size_t i = 0; i < MT_ARRAY_LEN(words); i++)
        add_if(secrets, PATHS, MT_TEXT_WORDS, words[i]);
}

static void collect(struct secrets *secrets, const struct mt_source *source)
{
    const struct mt_symbols *symbols = &source->symbols;
    bool *used = mt_memory_zeroed((size_t)symbols->strings.count + 1, sizeof *used);

    add_header(secrets, &source->header);
    add_frames(secrets, symbols, used);
    add_thread_names(secrets, symbols, used);
    for (uint32_t i = 0; i < symbols->strings.count; i++) {
        if (used[i])
            continue;
        add(secrets, PHASES, symbols->strings.texts[i], symbols->strings.lengths[i]);
        add_if(secrets, PATHS, MT_TEXT_WORDS, symbols->strings.texts[i]);
    }
    free(used);
}

static void add_row(struct mt_table *table, const struct secrets *secrets, enum kind kind)
{
    const struct mt_strings *texts = &secrets->texts[kind];
    struct mt_buf examples = {0};

    for (uint32_t i = 0; i < texts->count && i < MAX_EXAMPLES; i++) {
        mt_buf_add_text(&examples, i ? ", " : "");
        mt_text_table_add_shortened(&examples, texts->texts[i], EXAMPLE_COLUMNS);
    }
    MT_CELLS(table, MT_TEXT(kinds[kind].title), MT_COUNT(texts->count),
             MT_TEXT(kinds[kind].is_redacted ? "replaced" : "stays"),
             MT_TEXT(examples.data ? examples.data : ""));
    mt_buf_release(&examples);
}

static void add_text(struct mt_buf *out, const struct secrets *secrets, const char *path)
{
    struct mt_table table;

    mt_buf_add_printable(out, path, strlen(path));
    mt_buf_add_text(out, ": data that could identify a person, a machine or a project\n\n");
    mt_table_begin(&table, "what|#distinct|with --redact|~examples");
    for (int i = 0; i < KIND_COUNT; i++)
        add_row(&table, secrets, (enum kind)i);
    mt_text_table_add(out, &table, 2, mt_plain_style());
    mt_buf_add_text(
        out, "\nA trace does not contain data from memory. From the environment it has the options "
             "of the\nallocator and the variables with which launchers describe the job and the "
             "rank. To replace\nnames, write a redacted copy with 'memtrace import --redact'.\n");
}

static void add_json(struct mt_buf *out, const struct secrets *secrets, const char *path)
{
    struct mt_json json;

    mt_json_document(&json, out, "memtrace.secrets/1", false);
    mt_json_text(&json, "path", path);
    mt_json_array_begin(&json, "kinds");
    for (int i = 0; i < KIND_COUNT; i++) {
        const struct mt_strings *texts = &secrets->texts[i];

        mt_json_object_begin(&json, NULL);
        mt_json_text(&json, "name", kinds[i].name);
        mt_json_bool(&json, "redacted", kinds[i].is_redacted);
        mt_json_u64(&json, "distinct", texts->count);
        mt_json_array_begin(&json, "examples");
        for (uint32_t j = 0; j < texts->count && j < MAX_EXAMPLES; j++)
            mt_json_text(&json, NULL, texts->texts[j]);
        mt_json_array_end(&json);
        mt_json_object_end(&json);
    }
    mt_json_array_end(&json);
    mt_json_object_end(&json);
    mt_buf_add_char(out, '\n');
}

void mt_info_secrets(struct mt_buf *out, const struct mt_source *source, const char *path,
                     bool json)
{
    struct secrets secrets = {0};

    collect(&secrets, source);
    if (json)
        add_json(out, &secrets, path);
    else
        add_text(out, &secrets, path);
    for (int i = 0; i < KIND_COUNT; i++)
        mt_strings_release(&secrets.texts[i]);
}
