/* Compares every event of every snapshot with those that snapshot_events.py makes with Python's own
 * pickle: all captures, and the snapshots in the formats of other versions and writers that
 * make_snapshots.py writes. */
#include <dirent.h>
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "heaps.h"
#include "import.h"

#define SCRIPTS MEMTRACE_FIXTURES "/../tests/differential"

static void add_stack(const struct mt_symbols *symbols, uint32_t stack, struct mt_buf *out)
{
    bool first = true;

    for (; stack != MT_NO_ID; stack = symbols->stacks[stack].parent, first = false) {
        const struct mt_frame *frame = &symbols->frames[symbols->stacks[stack].frame];
        mt_buf_printf(out, "%s%s|%s|%u", first ? "" : ";",
                      mt_symbols_text(symbols, frame->function),
                      mt_symbols_text(symbols, frame->file), frame->line);
    }
}

/* In the script's format. `unsized`: the script does not know aux. */
static void spell(const struct mt_source *source, const struct mt_event *event, bool unsized,
                  struct mt_buf *out)
{
    const struct mt_symbols *symbols = &source->symbols;
    const uint64_t *pool = symbols->pools[event->pool].id;
    char aux[32];

    snprintf(aux, sizeof aux, "%llu", (unsigned long long)event->aux_bytes);
    mt_buf_reset(out);
    mt_buf_printf(out, "%s\t%s\t%llu\t%u\t%llu\t%llu\t%s\t%llu\t%llu:%llu\t%u\t%s\t",
                  mt_event_kind_name(event->kind),
                  mt_event_kind_has_heap(event->kind) ? mt_heap_name(symbols, event->heap) : "",
                  (unsigned long long)event->t_ns, event->device, (unsigned long long)event->addr,
                  (unsigned long long)event->size_bytes, unsized ? "?" : aux,
                  (unsigned long long)symbols->streams[event->stream].handle,
                  (unsigned long long)pool[0], (unsigned long long)pool[1],
                  event->flags & ~(unsigned)MT_EVENT_SIZE_DERIVED,
                  event->name == MT_NO_ID ? "" : mt_symbols_text(symbols, event->name));
    add_stack(symbols, event->stack, out);
    mt_buf_add_char(out, '\n');
}

struct reader {
    FILE *script;
    char *line;
    size_t capacity;
    unsigned long number;
};

static void check_event(struct reader *reader, const char *path, const struct mt_source *source,
                        const struct mt_event *event, struct mt_buf *spelled)
{
    if (getline(&reader->line, &reader->capacity, reader->script) < 0)
        fail_msg("%s: more than %lu events", path, reader->number);
    reader->number++;
    bool unsized = strstr(reader->line, "\t?\t") != NULL;
    spell(source, event, unsized, spelled);
    if (strcmp(spelled->data, reader->line) != 0)
        fail_msg("%s: event %lu\n is     %s wanted %s", path, reader->number, spelled->data,
                 reader->line);
    assert_int_equal(event->seq, reader->number - 1);
    assert_true(!unsized || event->aux_bytes >= event->size_bytes);
}

/* What the source states about its stacks instead of ranges, according to an event. */
static void note_use(const struct mt_source *source, const struct mt_event *event, uint8_t *uses)
{
    assert_true(!source->stack_uses ||
                (event->kind != MT_EVENT_PHASE_PUSH && event->kind != MT_EVENT_PHASE_POP));
    if (event->stack == MT_NO_ID || (event->flags & MT_EVENT_INITIAL))
        return;
    if (event->kind == MT_EVENT_ALLOC)
        uses[event->stack] |= MT_STACK_ALLOCATES;
    if (event->kind == MT_EVENT_FREE_REQUESTED)
        uses[event->stack] |= MT_STACK_FREES;
}

static size_t with_uses;

static void check_all(struct reader *reader, const char *path, struct mt_source *source)
{
    struct mt_event_batch batch;
    struct mt_buf spelled = {0};
    struct mt_error error;
    uint64_t last_ns = 0;
    uint8_t *uses = calloc((size_t)source->symbols.stack_count + 1, 1);
    enum mt_status status;

    while ((status = mt_source_next(source, &batch, &error)) == MT_OK) {
        assert_true(batch.count > 0);
        for (size_t i = 0; i < batch.count; i++) {
            check_event(reader, path, source, &batch.events[i], &spelled);
            assert_true(batch.events[i].t_ns >= last_ns);
            last_ns = batch.events[i].t_ns;
            note_use(source, &batch.events[i], uses);
        }
    }
    assert_int_equal(status, MT_END);
    if (source->stack_uses)
        assert_memory_equal(source->stack_uses, uses, source->symbols.stack_count);
    with_uses += source->stack_uses != NULL;
    free(uses);
    mt_buf_release(&spelled);
}

static uint64_t count_events(struct mt_source *source)
{
    struct mt_event_batch batch;
    struct mt_error error;
    uint64_t count = 0;

    while (mt_source_next(source, &batch, &error) == MT_OK)
        count += batch.count;
    return count;
}

static void check_file(struct reader *reader, const char *path)
{
    struct mt_source *source = NULL;
    struct mt_error error = {.text = ""};

    reader->number = 0;
    if (mt_import_open_any(path, &source, &error) != MT_OK)
        fail_msg("%s: %s", path, error.text);
    check_all(reader, path, source);
    if (getline(&reader->line, &reader->capacity, reader->script) < 0 ||
        strcmp(reader->line, "end\n") != 0)
        fail_msg("%s: after %lu events, no %s", path, reader->number, reader->line);
    assert_int_equal(mt_source_rewind(source, &error), MT_OK);
    assert_int_equal(count_events(source), reader->number);
    assert_int_equal(source->integrity.events_read, reader->number);
    mt_source_close(source);
}

struct files {
    char *paths[512];
    size_t count;
};

static void find_files(struct files *files, const char *folder)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;

    assert_non_null(directory);
    while ((entry = readdir(directory))) {
        size_t length = strlen(folder) + strlen(entry->d_name) + 2;
        if (!strstr(entry->d_name, ".pickle") || files->count == 512)
            continue;
        files->paths[files->count] = malloc(length);
        snprintf(files->paths[files->count++], length, "%s/%s", folder, entry->d_name);
    }
    closedir(directory);
}

static size_t check_folder(const char *folder)
{
    struct reader reader = {NULL, NULL, 0, 0};
    struct mt_buf command = {0};
    struct files files = {.count = 0};

    find_files(&files, folder);
    mt_buf_printf(&command, "python3 -B '%s/snapshot_events.py'", SCRIPTS);
    for (size_t i = 0; i < files.count; i++)
        mt_buf_printf(&command, " '%s'", files.paths[i]);
    reader.script = popen(command.data, "r");
    assert_non_null(reader.script);
    for (size_t i = 0; i < files.count; i++) {
        check_file(&reader, files.paths[i]);
        free(files.paths[i]);
    }
    assert_int_equal(pclose(reader.script), 0);
    free(reader.line);
    mt_buf_release(&command);
    return files.count;
}

TEST(test_captures)
{
    assert_true(check_folder(MEMTRACE_FIXTURES "/captures") >= 18);
}

TEST(test_versions)
{
    char folder[] = "/tmp/memtrace-snapshots-XXXXXX", command[1024];

    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "python3 -B '%s/make_snapshots.py' '%s/captures' '%s'",
             SCRIPTS, MEMTRACE_FIXTURES, folder);
    assert_int_equal(system(command), 0);
    assert_true(check_folder(folder) > 90);
    assert_in_range(with_uses, 18, 90);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
