/* The charts of single blocks and of addresses agree with PyTorch's counters, and their areas with
 * the allocated bytes. */
#include "cmocka_all.h"

#include <dirent.h>

#include "../unit/drawing_checks.h"
#include "address_model.h"
#include "blocks_model.h"
#include "capture.h"
#include "chart.h"
#include "units.h"
#include "util.h"

static struct capture load(const char *name, const struct mt_window_request *window)
{
    struct mt_analyze_options options = {.models = MT_MODEL_TIMELINE | MT_MODEL_BLOCKS |
                                                   MT_MODEL_ADDRESS};

    if (window)
        options.window = *window;
    return capture_analyze(capture_path("captures", name, ".pickle.zst"), &options);
}

static void with_every_capture(void (*check)(const char *name, const struct capture *loaded,
                                             const struct mt_device_report *device))
{
    char path[500], name[300];
    struct dirent **entries;

    snprintf(path, sizeof path, "%s/captures", MEMTRACE_FIXTURES);
    int count = scandir(path, &entries, NULL, alphasort);
    assert_true(count > 40);
    for (int i = 0; i < count; i++) {
        char *end = strstr(entries[i]->d_name, ".pickle.zst");

        if (end) {
            *end = '\0';
            snprintf(name, sizeof name, "%s", entries[i]->d_name);
            struct capture loaded = load(name, NULL);
            for (uint32_t d = 0; d < loaded.report->device_count; d++)
                check(name, &loaded, &loaded.report->devices[d]);
            capture_close(&loaded);
        }
        free(entries[i]);
    }
    free(entries);
}

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
            scale.base_y = op->y - 4.5; /* labels are centered on their line */
        else
            scale.bytes_per_pixel = (double)bytes / (scale.base_y + 4.5 - op->y);
    }
    return scale;
}

/* Bytes of the model's rows in a column: covered, or reserved. */
static double column_sum(const struct mt_address *address, const struct mt_address_axis *axis,
                         uint32_t column, bool reserved)
{
    double unit = (double)address->bytes_per_row / 65535, sum = 0;

    for (uint32_t row = 0; row < address->row_count; row++)
        for (uint32_t i = axis->first_run[row]; i < axis->first_run[row + 1]; i++)
            if (axis->runs[i].begin <= column && column < axis->runs[i].end)
                sum += unit * (reserved ? axis->runs[i].cell.reserved : axis->runs[i].cell.covered);
    return sum;
}

static void check_sums(const char *name, const struct mt_address *address,
                       const struct mt_address_axis *axis)
{
    /* Rounding: half a unit per row, or a whole unit if the row is almost empty. */
    double slack = (double)address->bytes_per_row / 65535 * address->row_count;

    for (uint32_t column = 0; column < axis->column_count; column += 331) {
        const struct mt_mosaic_column *state = &axis->columns[column];
        double covered = column_sum(address, axis, column, false);
        double reserved = column_sum(address, axis, column, true);

        if (fabs(covered - (double)state->allocated) > slack + 0.001 * (double)state->allocated)
            fail_msg("%s, column %u: %.0f bytes lie somewhere, %llu are allocated", name, column,
                     covered, (unsigned long long)state->allocated);
        if (fabs(reserved - (double)state->reserved) > slack)
            fail_msg("%s, column %u: rows for %.0f bytes, %llu are reserved", name, column,
                     reserved, (unsigned long long)state->reserved);
    }
}

/* Area of the cells that cover pixel column x, in bytes; tints count for their share. */
static double painted(const struct mt_drawing *drawing, double x, double bytes_per_pixel,
                      double *highest)
{
    double sum = 0;

    *highest = HUGE_VAL;
    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];
        bool covers = drawing_is(op, "map");

        if (!covers && !drawing_is(op, "map:free"))
            continue;
        for (uint32_t j = 0; j < op->cell_count; j++) {
            double left = op->x + op->cells[j].x * op->unit;

            if (x < left || x >= left + op->cells[j].width * op->unit)
                continue;
            *highest = fmin(*highest, op->y + op->cells[j].y * op->unit);
            sum += covers ? op->cells[j].height * op->unit * (op->paint.tint - 1) / 15 : 0;
        }
    }
    return sum * bytes_per_pixel;
}

/* The event axis has no folds: every pixel column is a column of the model. */
static void check_picture(const char *name, const struct capture *loaded,
                          const struct mt_device_report *device)
{
    const struct mt_chart_options options = {.event_axis = true};
    const struct mt_address_axis *axis = &device->address->event;
    struct mt_drawing drawing;

    mt_chart_find("address")->draw(loaded->report, device, &options, &drawing);
    const struct mt_op *grid = drawing_find(&drawing, "map:free");
    grid = grid ? grid : drawing_find(&drawing, "map");
    assert_non_null(grid);
    struct scale scale = read_scale(&drawing);
    uint32_t around = 1 + (uint32_t)(axis->column_count * grid->unit / grid->width);
    for (double share = 0.03; share < 0.98; share += 0.0607) {
        uint32_t column = (uint32_t)(share * axis->column_count), near = column;
        double x = grid->x + share * grid->width, top, area, error = HUGE_VAL;

        area = painted(&drawing, x, scale.bytes_per_pixel, &top);
        /* A pixel shows any one of the columns under it. */
        for (uint32_t i = column - around; i <= column + around; i++)
            if (fabs(area - (double)axis->columns[i].allocated) < error) {
                error = fabs(area - (double)axis->columns[i].allocated);
                near = i;
            }
        if (error > 0.01 * (double)device->reserved_peak.bytes)
            fail_msg("%s at %.2f: %.0f bytes are painted, %llu are allocated", name, share, area,
                     (unsigned long long)axis->columns[near].allocated);
    }
    mt_drawing_release(&drawing);
}

static void check_address(const char *name, const struct capture *loaded,
                          const struct mt_device_report *device)
{
    if (!device->address)
        return;
    check_sums(name, device->address, &device->address->time);
    check_sums(name, device->address, &device->address->event);
    assert_true(device->address->reserved_end == device->end.reserved);
    assert_true(device->address->allocated_end + device->address->outside_bytes >=
                device->end.allocated);
    check_picture(name, loaded, device);
}

/* test_pictures checks the layout of charts at every size. */
TEST(addresses_hold_what_is_allocated)
{
    with_every_capture(check_address);
}

/* Without releases, the upper edge of the map is the reserved bytes. */
TEST(the_upper_edge_is_what_is_reserved)
{
    static const char *const names[] = {"gpt_split64", "seq2seq"};
    const struct mt_chart_options options = {.event_axis = true};

    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++) {
        struct capture loaded = load(names[i], NULL);
        const struct mt_device_report *device = &loaded.report->devices[0];
        const struct mt_address_axis *axis = &device->address->event;
        struct mt_drawing drawing;

        assert_true(device->address->reserved_end == capture_true_peak(names[i], "reserved_peak"));
        mt_chart_find("address")->draw(loaded.report, device, &options, &drawing);
        struct scale scale = read_scale(&drawing);
        const struct mt_op *grid = drawing_find(&drawing, "map:free");
        for (double share = 0.05; share < 1; share += 0.05) {
            double x = grid->x + share * grid->width, top;
            uint32_t column = (uint32_t)(share * axis->column_count);
            bool found = false;

            (void)painted(&drawing, x, 1, &top);
            for (uint32_t j = column - 3; j <= column + 3; j++)
                found |= fabs((scale.base_y - top) * scale.bytes_per_pixel -
                              (double)axis->columns[j].reserved) <= 1.01 * scale.bytes_per_pixel;
            if (!found)
                fail_msg("%s at %.2f: the map ends elsewhere", names[i], share);
        }
        mt_drawing_release(&drawing);
        capture_close(&loaded);
    }
}

/* Also of a step that does not have the peak of the run. */
TEST(the_peak_of_the_step_is_shown)
{
    const struct mt_window_request window = {.has_step = true, .step = 3};
    struct capture loaded = load("gpt_default", &window);
    const struct mt_device_report *device = &loaded.report->devices[0];
    const struct mt_blocks *blocks = device->blocks;
    const uint64_t peak = device->phase_uses[blocks->phase].peak_allocated_event;

    assert_int_not_equal(peak, device->allocated_peak.event);
    assert_int_equal(blocks->around.begin_event, peak - MT_BLOCKS_AROUND);
    assert_int_equal(blocks->around.end_event, peak + MT_BLOCKS_AROUND);
    capture_close(&loaded);
}

TEST(tiles_show_idle_bytes)
{
    struct capture loaded = load("gpt_split64", NULL);
    const struct mt_address *address = loaded.report->devices[0].address;

    assert_int_equal(address->segments_end, 196);
    assert_int_equal(address->idle_segments, 74);
    assert_true(address->idle_bytes > UINT64_C(15) << 30);
    assert_true(address->once_segments > 20 && address->once_bytes <= address->idle_bytes);
    assert_true(address->used / address->held > 0.15 && address->used / address->held < 0.25);
    capture_close(&loaded);
}

static void check_top(const struct mt_drawing *drawing, uint64_t peak)
{
    struct scale scale = read_scale(drawing);
    const struct mt_op *outline = drawing_find(drawing, "outline");
    char label[80], bytes[MT_UNITS_TEXT];

    assert_non_null(outline);
    struct mt_box box = drawing_op_box(outline);
    if (fabs((scale.base_y - box.y) * scale.bytes_per_pixel - (double)peak) >
        0.5 * scale.bytes_per_pixel)
        fail_msg("the outline ends %f pixels off the peak",
                 (scale.base_y - box.y) - (double)peak / scale.bytes_per_pixel);
    snprintf(label, sizeof label, "step peak %s", mt_format_bytes(bytes, peak));
    assert_non_null(drawing_find(drawing, "label:peak"));
    assert_string_equal(drawing_find(drawing, "label:peak")->text, label);
}

/* Every shape ends on the base line and has a label. In the chart of the longest lives, a block
 * that outlives the window is a straight band. */
static void check_shapes(const struct mt_drawing *drawing, const struct mt_blocks *blocks)
{
    struct scale scale = read_scale(drawing);
    uint32_t shapes = 0, straight = 0, lasting = 0;

    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];

        if (drawing_is(op, "ring:peak"))
            break; /* the inset follows */
        if (!drawing_is(op, "block"))
            continue;
        shapes++;
        struct mt_box box = drawing_op_box(op);
        assert_true(fabs(box.y + box.height - scale.base_y) < 0.6);
        assert_non_null(op->title);
        assert_non_null(strstr(op->title, " B"));
        assert_non_null(strstr(op->title, ", allocated "));
        straight += op->point_count == 4 && strstr(op->title, "\nparameters, ");
    }
    for (uint32_t i = 0; i < blocks->time.block_count; i++) {
        const struct mt_block_shape *block = &blocks->time.blocks[i];

        lasting += block->life.role == MT_ROLE_PARAMETERS &&
                   block->life.birth_event < blocks->time.begin_event &&
                   block->end.event > blocks->time.end_event;
    }
    assert_true(shapes > 20 && shapes <= blocks->time.block_count);
    assert_true(straight > 0 && straight <= lasting);
}

/* The note states how many blocks are drawn, and how many there are. */
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

/* Does an outline, or a straight line, pass through the box? Outlines have horizontal and vertical
 * parts. */
static bool passes(const struct mt_op *line, const struct mt_box *box)
{
    for (uint32_t i = 1; i < line->point_count; i++) {
        struct mt_point from = line->points[i - 1], to = line->points[i];

        if (fmin(from.x, to.x) < box->x + box->width && fmax(from.x, to.x) > box->x &&
            fmin(from.y, to.y) < box->y + box->height && fmax(from.y, to.y) > box->y)
            return true;
    }
    return false;
}

/* Returns the number of labels. */
static unsigned check_labels(const char *name, const struct mt_drawing *drawing)
{
    const double room = 3.75; /* of the halo, and two pixels */
    unsigned count = 0;

    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *label = &drawing->ops[i];
        struct mt_box box = drawing_op_box(label);

        if (!drawing_is(label, "label:peak") && !drawing_is(label, "plate"))
            continue;
        count++;
        if (label->kind == MT_OP_TEXT)
            box = (struct mt_box){box.x - room, box.y - room, box.width + 2 * room,
                                  box.height + 2 * room};
        for (size_t j = 0; j < i; j++) {
            const struct mt_op *op = &drawing->ops[j];

            if ((drawing_is(op, "outline") || drawing_is(op, "curve:reserved") ||
                 (op->kind == MT_OP_LINE && op->paint.stroke == MT_COLOR_LIMIT)) &&
                passes(op, &box))
                fail_msg("%s, %s %dx%d: a label at %d,%d covers %s", name, drawing->id,
                         (int)drawing->width, (int)drawing->height, (int)box.x, (int)box.y,
                         op->role ? op->role : "the limit");
        }
    }
    return count;
}

/* A label is beside the lines of the plot, with its plate or its halo. */
TEST(labels_cover_no_lines)
{
    static const char *const names[] = {"accumulate", "churn", "gpt_split64", "lstm",
                                        "leakval",    "lines", "oom_adam",    "seq2seq_cap"};
    static const char *const charts[] = {"timeline", "blocks"};
    static const struct mt_chart_options sizes[] = {{.width = 600, .height = 400},
                                                    {.width = 800, .height = 500},
                                                    {.width = 1200, .height = 700}};

    unsigned count = 0;

    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++) {
        struct capture loaded = load(names[i], NULL);

        for (size_t j = 0; j < MT_ARRAY_LEN(charts) * MT_ARRAY_LEN(sizes); j++) {
            struct mt_drawing drawing;

            mt_chart_find(charts[j % 2])
                ->draw(loaded.report, &loaded.report->devices[0], &sizes[j / 2], &drawing);
            count += check_labels(names[i], &drawing);
            mt_drawing_release(&drawing);
        }
        capture_close(&loaded);
    }
    assert_true(count > 48); /* low plots have no room for some */
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

TEST(the_peak_is_the_one_that_pytorch_counted)
{
    static const char *const whole[] = {"seq2seq", "gpt_split64", "resnet50_cap1900",
                                        "gpt_expandable"};
    const struct mt_chart_options standard = {.width = 0};

    for (size_t i = 0; i < MT_ARRAY_LEN(whole); i++) {
        struct capture loaded = load(whole[i], NULL);
        const struct mt_blocks *blocks = loaded.report->devices[0].blocks;
        struct mt_drawing drawing;
        uint64_t peak = capture_true_peak(whole[i], "allocated_peak");

        assert_non_null(blocks);
        assert_true(blocks->peak_allocated == peak);
        assert_true(blocks->group_count >= 5 && group_sum(blocks) <= peak);
        mt_chart_find("blocks")->draw(loaded.report, &loaded.report->devices[0], &standard,
                                      &drawing);
        check_top(&drawing, peak);
        check_shapes(&drawing, blocks);
        check_count(&drawing);
        mt_drawing_release(&drawing);
        capture_close(&loaded);
    }
}

/* For any step, and for the whole run: the peak of that part, and its groups. */
TEST(a_window_is_the_requested_part)
{
    struct mt_window_request request = {.has_step = true};

    for (request.step = 0; request.step < 4; request.step++) {
        struct capture loaded = load("gpt_split64", &request);
        const struct mt_device_report *device = &loaded.report->devices[0];

        assert_int_equal(device->blocks->step, request.step);
        assert_true(device->blocks->peak_allocated == device->steps[request.step].peak.allocated);
        assert_true(device->blocks->group_count > 0);
        capture_close(&loaded);
    }
    request = (struct mt_window_request){.whole = true};
    {
        struct capture loaded = load("gpt_split64", &request);
        const struct mt_device_report *device = &loaded.report->devices[0];

        assert_true(device->blocks->step == MT_NO_STEP);
        assert_true(device->blocks->peak_allocated == device->allocated_peak.bytes);
        capture_close(&loaded);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
