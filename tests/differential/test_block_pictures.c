/* The charts of single blocks and of addresses, drawn of every capture at hand: in
 * order at every size, small, and true to what PyTorch counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <jansson.h>

#include "../unit/drawing_checks.h"
#include "blocks_model.h"
#include "chart.h"
#include "import.h"
#include "units.h"
#include "util.h"

#define MOST_BLOCKS_SVG (250 * 1024)

static const struct mt_chart_options sizes[] = {
    {.width = 0}, {.width = 830}, {.event_axis = true}, {.width = 500, .height = 330}};

struct loaded {
    struct mt_source *source;
    struct mt_report *report;
};

static struct loaded load(const char *name, const struct mt_window_wish *window)
{
    struct mt_analyze_options options = {.models = MT_MODEL_TIMELINE | MT_MODEL_BLOCKS};
    struct loaded loaded = {NULL, NULL};
    struct mt_error error;
    char path[600];

    if (window)
        options.window = *window;
    snprintf(path, sizeof path, "%s/captures/%s.pickle.zst", MEMTRACE_FIXTURES, name);
    assert_int_equal(mt_open_any(path, NULL, &loaded.source, &error), MT_OK);
    assert_int_equal(mt_analyze(loaded.source, &options, &loaded.report, &error), MT_OK);
    return loaded;
}

static void unload(struct loaded *loaded)
{
    mt_report_release(loaded->report);
    mt_source_close(loaded->source);
}

/* A row of the truth of a capture: the largest value of a counter. */
static uint64_t true_peak(const char *name, const char *counter)
{
    char path[600];
    json_t *truth, *row;
    json_int_t peak = 0;
    size_t i;

    snprintf(path, sizeof path, "%s/captures/%s.truth.json", MEMTRACE_FIXTURES, name);
    truth = json_load_file(path, 0, NULL);
    assert_non_null(truth);
    json_array_foreach(json_object_get(truth, "rows"), i, row)
    {
        json_int_t value = json_integer_value(json_object_get(row, counter));

        peak = value > peak ? value : peak;
    }
    json_decref(truth);
    return (uint64_t)peak;
}

static size_t svg_bytes(const struct mt_drawing *drawing)
{
    struct mt_buf once = {0}, again = {0};
    size_t bytes;

    assert_int_equal(mt_svg_write(drawing, MT_THEME_AUTO, &once, NULL), MT_OK);
    assert_int_equal(mt_svg_write(drawing, MT_THEME_AUTO, &again, NULL), MT_OK);
    assert_string_equal(once.data, again.data);
    bytes = once.length;
    mt_buf_release(&once);
    mt_buf_release(&again);
    return bytes;
}

/* ---- of every capture ---- */

static void with_every_capture(void (*check)(const char *name, const struct loaded *loaded,
                                             const struct mt_device_report *device))
{
    char path[500], name[300];
    struct dirent **entries;
    int count;

    snprintf(path, sizeof path, "%s/captures", MEMTRACE_FIXTURES);
    count = scandir(path, &entries, NULL, alphasort);
    assert_true(count > 40);
    for (int i = 0; i < count; i++) {
        char *end = strstr(entries[i]->d_name, ".pickle.zst");

        if (end) {
            struct loaded loaded;

            *end = '\0';
            snprintf(name, sizeof name, "%s", entries[i]->d_name);
            loaded = load(name, NULL);
            for (uint32_t d = 0; d < loaded.report->device_count; d++)
                check(name, &loaded, &loaded.report->devices[d]);
            unload(&loaded);
        }
        free(entries[i]);
    }
    free(entries);
}

static void check_blocks(const char *name, const struct loaded *loaded,
                         const struct mt_device_report *device)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
        struct mt_drawing drawing;
        const char *fault;
        size_t bytes;

        assert_int_equal(mt_blocks_draw(loaded->report, device, &sizes[i], &drawing, NULL), MT_OK);
        fault = drawing_fault(&drawing);
        if (fault)
            fail_msg("%s, size %zu: %s", name, i, fault);
        bytes = i ? 0 : svg_bytes(&drawing);
        if (bytes > MOST_BLOCKS_SVG)
            fail_msg("%s: %zu bytes of SVG", name, bytes);
        mt_drawing_release(&drawing);
    }
}

static void blocks_of_every_capture_are_in_order(void **state)
{
    (void)state;
    with_every_capture(check_blocks);
}

/* ---- what it shows ---- */

struct scale {
    double base_y, bytes_per_pixel;
};

static struct scale read_scale(const struct mt_drawing *drawing)
{
    struct scale scale = {0, 0};

    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];
        char plain[64];
        uint64_t bytes;
        size_t n = 0;

        if (!drawing_is(op, "tick-y"))
            continue;
        for (const char *at = op->text; *at; at++)
            if (*at != ',')
                plain[n++] = *at;
        plain[n] = '\0';
        assert_int_equal(mt_parse_bytes(plain, &bytes), MT_OK);
        if (!bytes)
            scale.base_y = op->y - 4.5; /* labels are centred on their line */
        else
            scale.bytes_per_pixel = (double)bytes / (scale.base_y + 4.5 - op->y);
    }
    return scale;
}

static void check_top(const struct mt_drawing *drawing, uint64_t peak)
{
    struct scale scale = read_scale(drawing);
    const struct mt_op *outline = drawing_find(drawing, "outline");
    char label[80], bytes[MT_UNITS_TEXT];
    struct mt_box box;

    assert_non_null(outline);
    box = drawing_op_box(outline);
    if (fabs((scale.base_y - box.y) * scale.bytes_per_pixel - (double)peak) >
        0.5 * scale.bytes_per_pixel)
        fail_msg("the outline ends %f pixels off the peak",
                 (scale.base_y - box.y) - (double)peak / scale.bytes_per_pixel);
    snprintf(label, sizeof label, "step peak %s", mt_format_bytes(bytes, peak));
    assert_non_null(drawing_find(drawing, "label:peak"));
    assert_string_equal(drawing_find(drawing, "label:peak")->text, label);
}

/* Every shape ends on the base line, and tells what it is; one that lives longer
 * than the window, of what lives longest, is a straight band. */
static void check_shapes(const struct mt_drawing *drawing, const struct mt_blocks *blocks)
{
    struct scale scale = read_scale(drawing);
    uint32_t shapes = 0, straight = 0, lasting = 0;

    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];
        struct mt_box box;

        if (drawing_is(op, "ring:peak"))
            break; /* the inset follows */
        if (!drawing_is(op, "block"))
            continue;
        shapes++;
        box = drawing_op_box(op);
        assert_true(fabs(box.y + box.height - scale.base_y) < 0.6);
        assert_non_null(op->title);
        assert_non_null(strstr(op->title, " B"));
        assert_non_null(strstr(op->title, ", born "));
        straight += op->point_count == 4 && strstr(op->title, "\nparameters, ");
    }
    for (uint32_t i = 0; i < blocks->time.block_count; i++) {
        const struct mt_block_shape *block = &blocks->time.blocks[i];

        lasting += block->role == MT_ROLE_PARAMETERS &&
                   block->birth_event < blocks->time.begin_event &&
                   block->end_event > blocks->time.end_event;
    }
    assert_true(shapes > 20 && shapes <= blocks->time.block_count);
    assert_true(straight > 0 && straight <= lasting);
}

/* How many are drawn, and of how many: said in words. */
static void check_count(const struct mt_drawing *drawing)
{
    const struct mt_op *facts = drawing_find(drawing, "facts");
    char begin[80], count[MT_UNITS_TEXT];
    uint64_t shapes = 0;

    for (size_t i = 0; i < drawing->op_count && !drawing_is(&drawing->ops[i], "ring:peak"); i++)
        shapes += drawing_is(&drawing->ops[i], "block");
    snprintf(begin, sizeof begin, "%s blocks drawn one by one", mt_format_count(count, shapes));
    assert_non_null(facts);
    if (strncmp(facts->text, begin, strlen(begin)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", facts->text, begin);
}

static uint64_t group_sum(const struct mt_blocks *blocks)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < blocks->group_count; i++) {
        assert_true(blocks->groups[i].bytes ==
                    blocks->groups[i].blocks * blocks->groups[i].block_bytes);
        assert_true(i == 0 || blocks->groups[i].bytes <= blocks->groups[i - 1].bytes);
        sum += blocks->groups[i].bytes;
    }
    return sum;
}

static void the_peak_is_the_one_that_pytorch_counted(void **state)
{
    static const char *const whole[] = {"seq2seq", "gpt_split64", "resnet50_cap1900",
                                        "gpt_expandable"};
    const struct mt_chart_options standard = {.width = 0};

    (void)state;
    for (size_t i = 0; i < MT_ARRAY_LEN(whole); i++) {
        struct loaded loaded = load(whole[i], NULL);
        const struct mt_blocks *blocks = loaded.report->devices[0].blocks;
        struct mt_drawing drawing;
        uint64_t peak = true_peak(whole[i], "allocated_peak");

        assert_non_null(blocks);
        assert_true(blocks->peak_allocated == peak);
        assert_true(blocks->group_count >= 5 && group_sum(blocks) <= peak);
        assert_int_equal(
            mt_blocks_draw(loaded.report, &loaded.report->devices[0], &standard, &drawing, NULL),
            MT_OK);
        check_top(&drawing, peak);
        check_shapes(&drawing, blocks);
        check_count(&drawing);
        mt_drawing_release(&drawing);
        unload(&loaded);
    }
}

/* Of any step, and of the whole run: the peak of that part, and its groups. */
static void a_window_is_what_was_asked_for(void **state)
{
    struct mt_window_wish wish = {.has_step = true};

    (void)state;
    for (wish.step = 0; wish.step < 4; wish.step++) {
        struct loaded loaded = load("gpt_split64", &wish);
        const struct mt_device_report *device = &loaded.report->devices[0];

        assert_int_equal(device->blocks->step, wish.step);
        assert_true(device->blocks->peak_allocated == device->steps[wish.step].peak.allocated);
        assert_true(device->blocks->group_count > 0);
        unload(&loaded);
    }
    wish = (struct mt_window_wish){.whole = true};
    {
        struct loaded loaded = load("gpt_split64", &wish);
        const struct mt_device_report *device = &loaded.report->devices[0];

        assert_true(device->blocks->step == MT_NO_STEP);
        assert_true(device->blocks->peak_allocated == device->allocated_peak.bytes);
        check_blocks("gpt_split64, whole", &loaded, device);
        unload(&loaded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_every_capture_are_in_order),
        cmocka_unit_test(the_peak_is_the_one_that_pytorch_counted),
        cmocka_unit_test(a_window_is_what_was_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
