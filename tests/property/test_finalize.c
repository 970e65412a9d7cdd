/* Finalizing a trace resolves native frames to names, shapes the stacks, and changes nothing else.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include "cmocka_all.h"

#include <sys/stat.h>

#include "finalize.h"
#include "modules.h"
#include "outputs.h"
#include "symbolize.h"
#include "trace_end.h"
#include "trace_maker.h"

static uintptr_t places[8];
static size_t place_count;
static volatile int sink;

__attribute__((noinline)) static void note(void)
{
    places[place_count++] = (uintptr_t)__builtin_return_address(0);
    sink++;
}

__attribute__((noinline)) static void callee(void)
{
    note();
    sink++;
}

__attribute__((noinline)) static void other_callee(void)
{
    note();
    sink++;
}

/* The function by which the frame of an interpreter is recognized. */
__attribute__((noinline)) static void _PyEval_EvalFrameDefault(void)
{
    note();
    sink++;
}

enum { CALLEE, OTHER_CALLEE, INTERPRETER };

static char folder[] = "/tmp/test_finalize_XXXXXX", path[PATH_MAX];

static void write_bytes(const void *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0640);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    assert_int_equal(fchmod(fd, 0640), 0);
    close(fd);
}

static uint8_t *read_bytes(size_t *length)
{
    struct stat info;
    int fd = open(path, O_RDONLY);

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &info), 0);
    *length = (size_t)info.st_size;
    uint8_t *bytes = malloc(*length + 1);
    assert_int_equal(read(fd, bytes, *length), *length);
    close(fd);
    return bytes;
}

/* Nothing but the trace is left in the folder. */
static void expect_alone(void)
{
    char line[PATH_MAX + 64];

    snprintf(line, sizeof line, "test \"$(ls -A '%s')\" = trace", folder);
    assert_int_equal(system(line), 0);
}

/* Writes, finalizes and expects the file to stay byte for byte. */
static void expect_untouched(const void *bytes, size_t length, enum mt_status expected)
{
    struct mt_finalize_result result;
    struct mt_error error = {0};
    size_t after_length;

    write_bytes(bytes, length);
    assert_int_equal(mt_trace_finalize(path, NULL, &result, &error), expected);
    assert_false(result.rewritten);
    uint8_t *after = read_bytes(&after_length);
    assert_int_equal(after_length, length);
    assert_memory_equal(after, bytes, length);
    free(after);
    expect_alone();
}

static uint32_t add_frame(struct mt_symbols *symbols, const char *function, const char *file,
                          uint32_t line)
{
    uint32_t function_id, file_id, id;

    made_ok(mt_symbols_string(symbols, function, strlen(function), &function_id));
    made_ok(mt_symbols_string(symbols, file, strlen(file), &file_id));
    made_ok(mt_symbols_frame(symbols, function_id, file_id, line, &id));
    return id;
}

/* As the collector writes an address of this program (no build id: its age says
 * that it is the one). */
static uint32_t add_address(struct mt_symbols *symbols, uintptr_t address)
{
    static const char self[] = "/proc/self/exe";
    struct {
        struct mt_module_definition definition;
        char path[PATH_MAX];
    } payload = {.definition = {.begin = 1, .end = UINT64_MAX}};
    extern const char __executable_start[];
    struct mt_modules *modules = mt_modules_new();
    struct mt_native_frame frame;
    ssize_t length = readlink(self, payload.path, sizeof payload.path);

    assert_non_null(modules);
    assert_true(length > 0);
    payload.definition.bias = (uintptr_t)__executable_start;
    payload.definition.path_bytes = (uint32_t)length;
    made_ok(mt_modules_add(modules, &payload, sizeof payload.definition + (size_t)length));
    mt_modules_frame(modules, address, &frame);
    uint32_t id = add_frame(symbols, frame.function, frame.file, 0);
    mt_modules_free(modules);
    return id;
}

static void expect_same_text(const struct mt_symbols *a, uint32_t a_id, const struct mt_symbols *b,
                             uint32_t b_id)
{
    assert_int_equal(a_id == MT_NO_ID, b_id == MT_NO_ID);
    if (a_id == MT_NO_ID)
        return;
    assert_int_equal(a->strings.lengths[a_id], b->strings.lengths[b_id]);
    assert_memory_equal(a->strings.texts[a_id], b->strings.texts[b_id], a->strings.lengths[a_id]);
}

static void expect_same_tables(const struct mt_symbols *a, const struct mt_symbols *b)
{
    assert_int_equal(a->stream_count, b->stream_count);
    assert_memory_equal(a->streams, b->streams, a->stream_count * sizeof *a->streams);
    assert_int_equal(a->pool_count, b->pool_count);
    assert_memory_equal(a->pools, b->pools, a->pool_count * sizeof *a->pools);
    assert_int_equal(a->heap_count, b->heap_count);
    for (uint32_t i = 0; i < a->heap_count; i++)
        expect_same_text(a, a->heaps[i].name, b, b->heaps[i].name);
    assert_int_equal(a->thread_count, b->thread_count);
    for (uint32_t i = 0; i < a->thread_count; i++) {
        expect_same_text(a, a->threads[i].name, b, b->threads[i].name);
        assert_int_equal(a->threads[i].os_id, b->threads[i].os_id);
    }
    assert_int_equal(a->device_count, b->device_count);
    for (uint32_t i = 0; i < a->device_count; i++) {
        expect_same_text(a, a->devices[i].name, b, b->devices[i].name);
        assert_int_equal(a->devices[i].total_memory_bytes, b->devices[i].total_memory_bytes);
    }
}

static bool is_native(const struct mt_symbols *symbols, uint32_t frame)
{
    const char *function = mt_symbols_text(symbols, symbols->frames[frame].function);

    return !strncmp(function, "+0x", 3) || !strncmp(function, "0x", 2);
}

/* Stacks without native frames stay. */
static void expect_same_stack(const struct mt_symbols *a, uint32_t a_id, const struct mt_symbols *b,
                              uint32_t b_id)
{
    for (uint32_t at = a_id; at != MT_NO_ID; at = a->stacks[at].parent)
        if (is_native(a, a->stacks[at].frame))
            return;
    for (; a_id != MT_NO_ID; a_id = a->stacks[a_id].parent, b_id = b->stacks[b_id].parent) {
        const struct mt_frame *x = &a->frames[a->stacks[a_id].frame], *y;
        assert_int_not_equal(b_id, MT_NO_ID);
        y = &b->frames[b->stacks[b_id].frame];
        expect_same_text(a, x->function, b, y->function);
        expect_same_text(a, x->file, b, y->file);
        assert_int_equal(x->line, y->line);
    }
    assert_int_equal(b_id, MT_NO_ID);
}

static void expect_same_event(const struct mt_symbols *a, struct mt_event x,
                              const struct mt_symbols *b, struct mt_event y)
{
    expect_same_text(a, x.name, b, y.name);
    expect_same_stack(a, x.stack, b, y.stack);
    x.name = y.name = x.stack = y.stack = 0;
    assert_memory_equal(&x, &y, sizeof x);
}

static void expect_same_header(const struct mt_trace_header *a, const struct mt_trace_header *b)
{
    assert_string_equal(a->framework, b->framework);
    assert_string_equal(a->allocator_options, b->allocator_options);
    assert_string_equal(a->sources, b->sources);
    assert_string_equal(a->settings, b->settings);
    assert_null(b->host);
    assert_null(b->command);
    assert_int_equal(a->process_id, b->process_id);
    assert_int_equal(a->rank, b->rank);
    assert_int_equal(a->world_size, b->world_size);
    assert_int_equal(a->start_t_ns, b->start_t_ns);
    assert_int_equal(a->memory_limit_bytes, b->memory_limit_bytes);
    assert_int_equal(a->sizes_rounded, b->sizes_rounded);
    assert_int_equal(a->has_stacks, b->has_stacks);
    assert_int_equal(a->has_segments, b->has_segments);
    assert_int_equal(a->never_refused, b->never_refused);
}

/* The next event of a source, in *event. */
static bool next(struct mt_source *source, struct mt_event_batch *batch, struct mt_event *event)
{
    struct mt_error error = {0};

    if (!batch->count && mt_source_next(source, batch, &error) != MT_OK)
        return false;
    *event = *batch->events++;
    batch->count--;
    return true;
}

/* The bytes of before, and the file of now. */
static void expect_same_but_stacks(const uint8_t *bytes, size_t length)
{
    struct mt_source *before, *after;
    struct mt_event_batch a = {0}, b = {0};
    struct mt_event x, y;
    const struct mt_zstd_frame_info *frames;
    struct mt_error error = {0};
    size_t count;

    made_ok(mt_trace_open_memory(bytes, length, &before, &error));
    made_ok(mt_trace_open(path, &after, &error));
    expect_same_header(&before->header, &after->header);
    while (next(before, &a, &x)) {
        assert_true(next(after, &b, &y));
        expect_same_event(&before->symbols, x, &after->symbols, y);
    }
    assert_false(next(after, &b, &y));
    expect_same_tables(&before->symbols, &after->symbols);
    assert_int_equal(after->integrity.frames_damaged, 0);
    assert_int_equal(before->integrity.events_read, after->integrity.events_read);
    assert_int_equal(before->integrity.closed, after->integrity.closed);
    assert_int_equal(before->integrity.cut, after->integrity.cut);
    made_ok(mt_trace_frames(after, &frames, &count, &error));
    assert_true(count > 0);
    mt_source_close(before);
    mt_source_close(after);
}

static void count_calls(void *context, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    ++*(unsigned *)context;
}

/* Native stacks behind the random ones of the maker, of all that can be found
 * and of what cannot. */
static void add_native_stacks(struct made_trace *made)
{
    struct mt_symbols *symbols = &made->symbols;
    uint32_t frames[8], id, i, from = symbols->stack_count;

    for (i = 0; i < place_count; i++)
        frames[i] = add_address(symbols, places[i]);
    frames[i++] = add_frame(symbols, "+0x10", "/nowhere/libcuda.so.1 (build id 00ff)", 0);
    frames[i++] = add_frame(symbols, "+0x20", "/nowhere/libcupti.so.13", 0);
    frames[i++] = add_frame(symbols, "+0x30", "/nowhere/libother.so", 0);
    frames[i++] = add_frame(symbols, "0x7f0000000000", "", 0);
    while (symbols->stack_count < from + 300)
        made_ok(mt_symbols_stack(
            symbols, random_below(made, 4) ? random_below(made, symbols->stack_count) : MT_NO_ID,
            frames[random_below(made, i)], &id));
    for (i = 0; i < made->count; i++)
        if (random_below(made, 3) == 0)
            made->events[i].stack = from + random_below(made, symbols->stack_count - from);
}

TEST(test_all_but_stacks_stays)
{
    if (!mt_symbolize_available(NULL))
        skip();
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct made_trace made;
        struct mt_finalize_result result;
        unsigned calls = 0;
        const struct mt_finalize_options options = {.progress = count_calls, .context = &calls};
        struct mt_error error = {0};
        struct stat info;
        size_t length, again_length;

        make_trace(&made, seed, (size_t)seed * 700, 20);
        add_native_stacks(&made);
        uint8_t *bytes = written_trace(&made, seed % 3 * 400, seed % 4 > 0, &length);
        write_bytes(bytes, length);
        made_ok(mt_trace_finalize(path, &options, &result, &error));
        assert_true(result.rewritten);
        assert_true(calls > 0);
        assert_int_equal(result.events, made.count + (seed % 4 > 0));
        assert_int_equal(result.native_frames, 7);
        assert_int_equal(result.named_frames, 3);
        assert_int_equal(result.modules, 4);
        assert_int_equal(result.missing_modules, 3);
        assert_int_equal(result.changed_modules, 0);
        assert_int_equal(strncmp(result.example, "/nowhere/", 9), 0);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_mode & 07777, 0640);
        expect_same_but_stacks(bytes, length);
        expect_alone();
        free(bytes);
        bytes = read_bytes(&length); /* a second run gives the same */
        made_ok(mt_trace_finalize(path, NULL, NULL, NULL));
        uint8_t *again = read_bytes(&again_length);
        assert_int_equal(again_length, length);
        assert_memory_equal(again, bytes, length);
        free(again);
        free(bytes);
        unmake_trace(&made);
    }
}

/* "a>b>c", outermost first, of the only event. */
static void read_functions(char *text, size_t size)
{
    struct mt_source *source;
    struct mt_event_batch batch = {0};
    struct mt_error error = {0};
    struct mt_event event = {.stack = MT_NO_ID};
    uint32_t path_frames[64], depth = 0, stack;

    made_ok(mt_trace_open(path, &source, &error));
    assert_true(next(source, &batch, &event));
    for (stack = event.stack; stack != MT_NO_ID; stack = source->symbols.stacks[stack].parent)
        path_frames[depth++] = source->symbols.stacks[stack].frame;
    *text = '\0';
    while (depth--) {
        const struct mt_frame *frame = &source->symbols.frames[path_frames[depth]];
        size_t length = strlen(text);
        snprintf(text + length, size - length, "%s%s", length ? ">" : "",
                 mt_symbols_text(&source->symbols, frame->function));
    }
    mt_source_close(source);
}

/* Frames by letter: p q Python, m n named code of this program, I its
 * "interpreter", u unnamed code, c CUPTI, t this program's library, d e driver,
 * - nothing. */
static uint32_t frame_by_letter(struct mt_symbols *symbols, char letter)
{
    switch (letter) {
    case 'p': return add_frame(symbols, "p", "p.py", 3);
    case 'q': return add_frame(symbols, "q", "q.py", 7);
    case 'm': return add_address(symbols, places[CALLEE]);
    case 'n': return add_address(symbols, places[OTHER_CALLEE]);
    case 'I': return add_address(symbols, places[INTERPRETER]);
    case 'u': return add_frame(symbols, "+0x1", "/nowhere/libu.so", 0);
    case 'c': return add_frame(symbols, "+0x2", "/nowhere/libcupti.so.13", 0);
    case 't': return add_frame(symbols, "+0x3", "/nowhere/libmemtrace-inject.so", 0);
    case 'd': return add_frame(symbols, "+0x4", "/nowhere/libcuda.so.1", 0);
    case 'e': return add_frame(symbols, "+0x5", "/nowhere/libcuda.so.1", 0);
    default: abort();
    }
}

static void expect_shape(const char *letters, const char *expected)
{
    struct made_trace made = {.count = 1};
    struct mt_event event = {.kind = MT_EVENT_ALLOC, .stack = MT_NO_ID, .name = MT_NO_ID};
    char functions[1024];
    size_t length;

    made_ok(mt_symbols_init(&made.symbols));
    for (; *letters; letters++)
        made_ok(mt_symbols_stack(&made.symbols, event.stack,
                                 frame_by_letter(&made.symbols, *letters), &event.stack));
    made.events = &event;
    uint8_t *bytes = written_trace(&made, 0, 1, &length);
    write_bytes(bytes, length);
    made_ok(mt_trace_finalize(path, NULL, NULL, NULL));
    read_functions(functions, sizeof functions);
    assert_string_equal(functions, expected);
    free(bytes);
    mt_symbols_release(&made.symbols);
}

TEST(test_shapes_of_stacks)
{
    if (!mt_symbolize_available(NULL))
        skip();
    expect_shape("pq", "p>q");
    expect_shape("mn", "callee>other_callee");
    expect_shape("mIn", "callee>_PyEval_EvalFrameDefault>other_callee"); /* no Python frames */
    expect_shape("pqmn", "p>q>callee>other_callee");
    expect_shape("pqmIn", "p>q>other_callee");
    expect_shape("pqmInIu", "p>q>+0x1");
    expect_shape("pqI", "p>q");
    expect_shape("pIudctt", "p>+0x1>+0x4");   /* the call into the driver stays */
    expect_shape("pIudectct", "p>+0x1>+0x4"); /* ... not what the driver called */
    expect_shape("pIuct", "p>+0x1");
    expect_shape("pIudu", "p>+0x1>+0x4>+0x1"); /* the driver called back */
    expect_shape("pIt", "p");
    expect_shape("ct", "");
    expect_shape("ud", "+0x1>+0x4");
}

TEST(test_without_native_frames_nothing_happens)
{
    struct made_trace made;
    size_t length;

    make_trace(&made, 5, 1000, 10);
    uint8_t *bytes = written_trace(&made, 100, 1, &length);
    expect_untouched(bytes, length, MT_OK);
    free(bytes);
    unmake_trace(&made);
}

TEST(test_damaged_traces_stay_as_they_are)
{
    struct made_trace made;
    size_t length;

    if (!mt_symbolize_available(NULL))
        skip();
    make_trace(&made, 6, 3000, 10);
    add_native_stacks(&made);
    uint8_t *bytes = written_trace(&made, 200, 1, &length);
    for (size_t i = 0; i < 16; i++)
        bytes[length / 2 + i] ^= 0x55;
    expect_untouched(bytes, length, MT_ERR_FORMAT);
    expect_untouched("no trace", 8, MT_ERR_FORMAT);
    expect_untouched("", 0, MT_ERR_FORMAT);
    free(bytes);
    unmake_trace(&made);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mt_trace_finalize(path, NULL, NULL, NULL), MT_ERR_IO);
}

/* The target of a link may belong to another user. */
TEST(test_links_are_not_followed)
{
    struct made_trace made;
    struct mt_error error = {0};
    struct stat info;
    char link[PATH_MAX];
    size_t length;

    if (!mt_symbolize_available(NULL))
        skip();
    make_trace(&made, 7, 100, 10);
    add_native_stacks(&made);
    uint8_t *bytes = written_trace(&made, 0, 1, &length);
    write_bytes(bytes, length);
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(symlink("trace", link), 0);
    assert_int_equal(mt_trace_finalize(link, NULL, NULL, &error), MT_ERR_FORMAT);
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(unlink(link), 0);
    free(bytes);
    unmake_trace(&made);
}

/* Replaces libdw's function: runs out of memory, or calls exit, as libdw does in that case. */
static bool libdw_dies, libdw_exits;

struct Dwfl *dwfl_begin(const void *callbacks);
struct Dwfl *dwfl_begin(const void *callbacks)
{
    struct Dwfl *(*real)(const void *callbacks);

    if (libdw_dies)
        abort();
    if (libdw_exits)
        exit(1);
    *(void **)&real = dlsym(RTLD_NEXT, "dwfl_begin");
    return real(callbacks);
}

/* The trace is complete, and a message explains why its frames are addresses. */
TEST(test_a_death_in_libdw_is_survived)
{
    const struct mt_trace_end_options options = {.unfinished = mt_outputs_unfinished()};
    struct mt_trace_end end;
    struct made_trace made;
    size_t length, after_length;

    if (!mt_symbolize_available(NULL))
        skip();
    mt_outputs_handle_signals();
    make_trace(&made, 9, 1000, 10);
    add_native_stacks(&made);
    uint8_t *bytes = written_trace(&made, 0, 1, &length);
    write_bytes(bytes, length);
    libdw_dies = true;
    mt_trace_end(&end, path, &options);
    libdw_dies = false;
    assert_int_equal(end.state, MT_TRACE_WHOLE);
    assert_false(end.native.rewritten);
    assert_string_equal(end.native_error.text,
                        "the process that looks up names was killed (signal 6)");
    uint8_t *after = read_bytes(&after_length);
    assert_int_equal(after_length, length);
    assert_memory_equal(after, bytes, length);
    expect_alone();
    libdw_exits = true;
    mt_trace_end(&end, path, &options);
    libdw_exits = false;
    assert_false(end.native.rewritten);
    assert_string_equal(end.native_error.text, "the process that looks up names ended early; "
                                               "memory may have run out");
    expect_alone();
    mt_trace_end(&end, path, &options);
    assert_int_equal(end.native_error.status, MT_OK);
    assert_int_equal(end.native.named_frames, 3);
    free(after);
    free(bytes);
    unmake_trace(&made);
}

struct killing {
    struct mt_unfinished list;
    char *lent; /* the name of the new file, owned by the handler */
};

static void be_killed(void *context, uint64_t done, uint64_t total)
{
    struct killing *killing = context;

    (void)done;
    (void)total;
    if (!killing->lent)
        killing->lent = atomic_load(&killing->list.paths[0]);
    mt_unfinished_unlink(&killing->list);
}

/* A fatal signal in the middle removes the new file. */
TEST(test_signals_leave_nothing_behind)
{
    struct killing killing = {.lent = NULL};
    const struct mt_finalize_options options = {
        .progress = be_killed, .context = &killing, .unfinished = &killing.list};
    struct made_trace made;
    size_t length, after_length;

    if (!mt_symbolize_available(NULL))
        skip();
    make_trace(&made, 8, 1000, 10);
    add_native_stacks(&made);
    uint8_t *bytes = written_trace(&made, 0, 1, &length);
    write_bytes(bytes, length);
    assert_int_equal(mt_trace_finalize(path, &options, NULL, NULL), MT_ERR_OUTPUT);
    assert_non_null(killing.lent);
    uint8_t *after = read_bytes(&after_length);
    assert_int_equal(after_length, length);
    assert_memory_equal(after, bytes, length);
    expect_alone();
    free(killing.lent);
    free(after);
    free(bytes);
    unmake_trace(&made);
}

static int set_up(void **state)
{
    (void)state;
    callee();
    other_callee();
    _PyEval_EvalFrameDefault();
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/trace", folder);
    return 0;
}

static int tear_down(void **state)
{
    char line[128];

    (void)state;
    snprintf(line, sizeof line, "rm -r '%s'", folder);
    return system(line);
}

int main(void)
{
    return run_tests_of_file(set_up, tear_down);
}
