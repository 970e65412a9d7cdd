/* The charts of a job, on their display lists: every peak is where it belongs, however many ranks
 * there are, nothing covers anything, and text is what it should be. */
#include "job_chart_checks.h"

#include "dice.h"

/* What no text may cover. Hatches of gaps lie in the plot, as all of these do. */
static bool is_mark(const struct mt_op *op)
{
    static const char *const roles[] = {"mark",          "death",     "gap",  "strip:oom",
                                        "strip:missing", "side-line", "lane", "swatch",
                                        "scale",         "level",     "limit"};

    for (size_t i = 0; i < MT_ARRAY_LEN(roles); i++)
        if (drawing_is(op, roles[i]))
            return true;
    return false;
}

static void check_drawing(const struct mt_drawing *drawing)
{
    const char *why = "", *fault = drawing_fault(drawing);

    if (fault)
        fail_msg("%s", fault);
    if (!mt_drawing_is_sound(drawing, &why))
        fail_msg("%s: %s", drawing->id, why);
    if (drawing_covered_mark(drawing, is_mark))
        fail_msg("%s: \"%s\" covers a mark", drawing->id, drawing_covered_mark(drawing, is_mark));
}

/* The largest job, whose charts take most of the time, is drawn at the first ones. */
static const struct mt_job_chart_options sizes[] = {{0},      {480, 320}, {2000, 500}, {1000, 1200},
                                                    {830, 0}, {830, 430}, {500, 330},  {8192, 320}};
enum { SIZES_OF_LARGEST = 4, MANY_RANKS = 1024 };

static void check_charts(const struct mt_job_report *report)
{
    size_t count = report->row_count > MANY_RANKS ? SIZES_OF_LARGEST : MT_ARRAY_LEN(sizes);

    for (size_t i = 0; mt_job_charts[i]; i++)
        for (size_t s = 0; s < count; s++) {
            struct mt_drawing drawing;

            draw(report, mt_job_charts[i]->name, &sizes[s], &drawing);
            check_drawing(&drawing);
            mt_drawing_release(&drawing);
        }
}

/* --- ranks --- */

/* y of a number of bytes, from two lines of the axis. */
static double axis_y(const struct mt_drawing *drawing, uint64_t bytes)
{
    double zero = NAN, last = NAN;
    uint64_t value = 0;

    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];

        if (!drawing_is(op, "tick-y"))
            continue;
        if (!strcmp(op->text, "0")) {
            zero = op->y - 4.5;
        } else {
            assert_int_equal(mt_parse_bytes(op->text, &value), MT_OK);
            last = op->y - 4.5;
        }
    }
    return zero + (last - zero) * (double)bytes / (double)value;
}

static double highest_y(const struct mt_drawing *drawing, const char *role)
{
    double y = HUGE_VAL;

    for (size_t i = 0; i < drawing->op_count; i++)
        if (drawing_is(&drawing->ops[i], role))
            for (uint32_t p = 0; p < drawing->ops[i].point_count; p++)
                y = fmin(y, drawing->ops[i].points[p].y);
    return y;
}

/* y of the upper edge of the bars at x. */
static double edge_y(const struct mt_drawing *drawing, double x)
{
    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];

        if (drawing_is(op, "edge") && op->points[0].x <= x &&
            op->points[op->point_count - 1].x >= x)
            return drawing_y_at(op, x, NAN);
    }
    return NAN;
}

static uint64_t reserved_of(const struct mt_job_report *report, uint32_t row)
{
    return report->rows[row].record->reserved_peak.bytes;
}

/* Rows ascend by rank, and in a simulated job by group: lanes take them one after the other. */
static uint32_t check_lane(const struct mt_drawing *drawing, const struct mt_job_report *report,
                           const struct mt_op *lane, uint32_t first)
{
    uint64_t largest = 0, smallest = UINT64_MAX;
    char n[2][MT_UNITS_TEXT], range[3 * MT_UNITS_TEXT];
    unsigned count = 1;

    if (strstr(lane->title, "missing"))
        return 0;
    if (!strncmp(lane->title, "rank ", 5))
        assert_non_null(strstr(lane->title, mt_format_count(n[0], reserved_of(report, first))));
    else
        assert_int_equal(sscanf(lane->title, "%u ranks", &count), 1);
    for (uint32_t r = first; r < first + count; r++) {
        largest = mt_max_u64(largest, reserved_of(report, r));
        smallest = mt_min_u64(smallest, reserved_of(report, r));
    }
    snprintf(range, sizeof range, "%s B to %s B", mt_format_count(n[0], smallest),
             mt_format_count(n[1], largest));
    assert_true(count == 1 || strstr(lane->title, range));
    check_near(edge_y(drawing, lane->x + lane->width / 2), axis_y(drawing, largest));
    return count;
}

static void check_lanes(const struct mt_drawing *drawing, const struct mt_job_report *report)
{
    uint32_t row = 0;

    for (size_t i = 0; i < drawing->op_count; i++)
        if (drawing_is(&drawing->ops[i], "lane"))
            row += check_lane(drawing, report, &drawing->ops[i], row);
    assert_int_equal(row, report->row_count);
}

TEST(no_peak_is_lost)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(jobs); i++) {
        const struct simulated_job job = bad_job_of(i);
        struct mt_drawing drawing;
        struct made made;

        add_job(&made, &job);
        for (uint32_t r = 0; r < made.set.record_count; r++) {
            struct mt_rank_record *record = &made.set.records[r];

            record->reserved_peak.bytes += r * UINT64_C(2654435761) % 53 * 64 * MT_MIB;
        }
        report_on(&made);
        draw(made.report, "ranks", &usual, &drawing);
        check_near(highest_y(&drawing, "reserved"), axis_y(&drawing, made.report->reserved.max));
        check_near(highest_y(&drawing, "allocated"), axis_y(&drawing, made.report->allocated.max));
        check_lanes(&drawing, made.report);
        mt_drawing_release(&drawing);
        release(&made);
    }
}

TEST(nothing_overlaps)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(jobs); i++) {
        const struct simulated_job job = bad_job_of(i);
        struct made made;

        add_job(&made, &job);
        report_on(&made);
        check_charts(made.report);
        release(&made);
    }
}

TEST(labels_name_what_matters)
{
    struct simulated_job job = bad_job_of(3);
    struct mt_drawing drawing;
    struct made made;

    add_job(&made, &job);
    report_on(&made);
    draw(made.report, "ranks", &usual, &drawing);
    assert_says(&drawing, "label", "rank 0: 16.7 GiB \xC2\xB7 largest \xC2\xB7 +700 MiB");
    assert_says(&drawing, "label", "rank 1: 16.0 GiB \xC2\xB7 +600 MiB, outside the allocator");
    assert_says(&drawing, "label", "rank 63: 11.8 GiB \xC2\xB7 +1.25 GiB, growth");
    assert_says(&drawing, "label", "rank 61: 10.5 GiB \xC2\xB7 out of memory");
    assert_says(&drawing, "label", "rank 56: 10.5 GiB \xC2\xB7 lowest");
    assert_says(&drawing, "label", "rank 39: 12.0 GiB \xC2\xB7 median");
    assert_says(&drawing, "label", "ranks 21 to 22: missing");
    assert_says(&drawing, "label", "rank 32: missing");
    assert_says(&drawing, "group", "pp 7");
    assert_says(&drawing, "title", "slurm:77 \xE2\x80\x94 reserved peak by rank");
    assert_says(&drawing, "facts", "61 of 64 ranks");
    assert_says(&drawing, "footnote", "off the scale: limit 80.0 GiB");
    assert_says(&drawing, "footnote", "peaks of an incomplete recording are lower bounds");
    mt_drawing_release(&drawing);
    draw(made.report, "steps", &usual, &drawing);
    assert_says(&drawing, "label", "rank 61: out of memory, step 19");
    assert_says(&drawing, "label", "rank 0: highest, 16.7 GiB, step 0");
    mt_drawing_release(&drawing);
    draw(made.report, "times", &usual, &drawing);
    assert_says(&drawing, "label", "rank 61: out of memory, at 60 s");
    mt_drawing_release(&drawing);
    release(&made);
}

/* A limit within reach is a line at its height; one that differs is the smallest. */
TEST(limits_are_lines)
{
    struct simulated_job job = job_of(2);
    struct mt_drawing drawing;
    struct made made;

    add_job(&made, &job);
    for (uint32_t i = 0; i < made.set.record_count; i++) {
        made.set.records[i].identity.memory_limit_bytes = (i == 3 ? 15 : 16) * MT_GIB;
        made.set.records[i].device_bytes = 20 * MT_GIB;
    }
    report_on(&made);
    draw(made.report, "ranks", &usual, &drawing);
    check_drawing(&drawing);
    check_near(nth(&drawing, "limit", 0)->points[0].y, axis_y(&drawing, 15 * MT_GIB));
    check_near(nth(&drawing, "limit", 1)->points[0].y, axis_y(&drawing, 20 * MT_GIB));
    assert_says(&drawing, "label:limit", "smallest limit 15.0 GiB");
    assert_says(&drawing, "label:limit", "device 20.0 GiB");
    mt_drawing_release(&drawing);
    release(&made);
}

/* Deaths and gaps have a mark below their lanes, at any number of ranks. */
TEST(deaths_and_gaps_are_marked)
{
    for (size_t i = 2; i < MT_ARRAY_LEN(jobs); i++) {
        const struct simulated_job job = bad_job_of(i);
        struct mt_drawing drawing;
        struct made made;
        const struct mt_op *last = NULL;

        add_job(&made, &job);
        report_on(&made);
        draw(made.report, "ranks", &usual, &drawing);
        for (size_t n = 0; nth(&drawing, "lane", n); n++)
            last = nth(&drawing, "lane", n);
        assert_non_null(nth(&drawing, "death", 0));
        assert_non_null(nth(&drawing, "strip:missing", 1));
        assert_null(nth(&drawing, "strip:oom", 1));
        /* The third rank from the end: in the last lanes. */
        assert_true(nth(&drawing, "strip:oom", 0)->x + nth(&drawing, "strip:oom", 0)->width >=
                    last->x - 2.5 * last->width - 1);
        assert_true(nth(&drawing, "strip:oom", 0)->width >= 3);
        mt_drawing_release(&drawing);
        release(&made);
    }
}

/* --- jobs of other kinds --- */

TEST(no_steps)
{
    struct simulated_job job = job_of(2);
    struct mt_drawing drawing;
    struct made made;

    job.has_columns = false;
    add_job(&made, &job);
    for (uint32_t r = 0; r < made.set.record_count; r++)
        made.set.records[r].step_count = 0;
    report_on(&made);
    assert_false(chart_named("steps")->called_for(made.report));
    draw(made.report, "steps", &usual, &drawing);
    assert_says(&drawing, "nothing", "No steps were recorded");
    mt_drawing_release(&drawing);
    check_charts(made.report);
    release(&made);
}

TEST(steps_far_apart)
{
    const struct simulated_job job = job_of(2);
    struct made made;

    add_job(&made, &job);
    for (uint32_t r = 0; r < made.set.record_count; r++) {
        made.set.records[r].steps[0].first = made.set.records[r].steps[0].last = INT64_MIN + 1;
        made.set.records[r].steps[SIMULATED_STEPS - 1].first = INT64_MAX - 1;
        made.set.records[r].steps[SIMULATED_STEPS - 1].last = INT64_MAX - 1;
    }
    report_on(&made);
    check_charts(made.report);
    release(&made);
}

TEST(all_are_dead)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(jobs); i++) {
        const struct simulated_job job = job_of(i);
        struct mt_drawing drawing;
        struct made made;

        add_job(&made, &job);
        for (uint32_t r = 0; r < made.set.record_count; r++) {
            struct mt_rank_record *record = &made.set.records[r];

            record->outcome = MT_OUTCOME_OOM;
            record->has_death = true;
            record->death_t_ns = record->begin_t_ns + (1 + r % 50) * SECOND_NS;
        }
        report_on(&made);
        check_charts(made.report);
        draw(made.report, "ranks", &usual, &drawing);
        assert_says(&drawing, "label", "out of memory");
        assert_true(drawing.op_count < 4000);
        mt_drawing_release(&drawing);
        release(&made);
    }
}

TEST(several_devices_a_rank)
{
    const struct simulated_job job = job_of(2);
    struct mt_drawing drawing;
    struct made made;

    add_job(&made, &job);
    for (uint32_t r = 0; r < 8; r++) {
        struct mt_rank_record second = made.set.records[r];

        second.device = (uint16_t)(8 + r);
        second.device_uuid = "GPU-second";
        second.reserved_peak.bytes += 5 * MT_GIB + r * MT_GIB;
        mt_rank_set_add(&made.set, &second);
    }
    report_on(&made);
    assert_int_equal(made.report->row_count, 16);
    check_charts(made.report);
    draw(made.report, "ranks", &usual, &drawing);
    check_near(highest_y(&drawing, "reserved"), axis_y(&drawing, made.report->reserved.max));
    assert_says(&drawing, "label", "device 15: ");
    assert_non_null(nth(&drawing, "lane", 15));
    assert_null(nth(&drawing, "lane", 16));
    mt_drawing_release(&drawing);
    release(&made);
}

TEST(ranks_without_a_number)
{
    static const char *const names[] = {"a.trace", "b.trace", "c.trace"};
    struct simulated_job job = job_of(2);
    struct mt_drawing drawing;
    struct made made;

    job.has_mesh = false;
    add_job(&made, &job);
    for (uint32_t r = 0; r < 3; r++) {
        made.set.records[r].identity.rank = -1;
        made.set.records[r].trace_name = names[r];
    }
    made.set.records[1].reserved_peak.bytes = 30 * MT_GIB;
    report_on(&made);
    check_charts(made.report);
    draw(made.report, "ranks", &usual, &drawing);
    assert_says(&drawing, "label", "b.trace: 30.0 GiB");
    mt_drawing_release(&drawing);
    release(&made);
}

/* A job with far more ranks than were recorded: those that are there can still be seen. */
TEST(most_are_missing)
{
    const struct simulated_job job = job_of(3);
    struct mt_drawing drawing;
    struct made made;
    double width = 0;

    add_job(&made, &job);
    for (uint32_t r = 0; r < made.set.record_count; r++)
        made.set.records[r].identity.world = INT32_MAX;
    report_on(&made);
    check_charts(made.report);
    draw(made.report, "ranks", &usual, &drawing);
    for (size_t n = 0; nth(&drawing, "lane", n); n++)
        if (!strstr(nth(&drawing, "lane", n)->title, "missing"))
            width += nth(&drawing, "lane", n)->width;
    assert_true(width > 0.4 * nth(&drawing, "gap", 0)->width);
    assert_says(&drawing, "footnote", "a gap is narrower than its missing ranks");
    assert_says(&drawing, "facts", "64 of 2,147,483,647 ranks");
    mt_drawing_release(&drawing);
    release(&made);
}

/* Axes that do not separate, many groups, peaks of 0. */
TEST(odd_jobs)
{
    const struct simulated_job shapes[] = {
        simulated_job_new(1, 64, 1), simulated_job_new(600, 1, 1), simulated_job_new(2, 2, 2)};

    for (size_t i = 0; i < MT_ARRAY_LEN(shapes); i++) {
        struct made made;

        add_job(&made, &shapes[i]);
        for (uint32_t r = 0; i == 2 && r < made.set.record_count; r++) {
            made.set.records[r].reserved_peak.bytes = 0;
            for (uint32_t s = 0; s < SIMULATED_STEPS; s++)
                made.set.records[r].steps[s].reserved_peak_bytes = 0;
        }
        report_on(&made);
        check_charts(made.report);
        release(&made);
    }
}

static void check_texts(const struct mt_drawing *drawing)
{
    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];
        const char *texts[] = {op->kind == MT_OP_TEXT ? op->text : NULL, op->title};

        for (size_t t = 0; t < 2; t++) {
            assert_true(!texts[t] || strlen(texts[t]) < 2000);
            for (const char *c = texts[t]; c && *c; c++)
                assert_true((unsigned char)*c >= ' ' && *c != 0x7f);
        }
    }
}

TEST(hostile_names_stay_text)
{
    static char words[10001], control[10001];
    struct simulated_job job = bad_job_of(3);
    struct made made;

    for (size_t i = 0; i < sizeof words - 1; i++) {
        words[i] = "long </svg> & name "[i % 19];
        control[i] = "\x1b[2J\x01\xff\x7f\x80"[i % 8];
    }
    job.name = words;
    job.has_mesh = true;
    add_job(&made, &job);
    for (uint32_t r = 0; r < made.set.record_count; r++) {
        struct mt_rank_record *record = &made.set.records[r];

        record->device_name = control;
        record->trace_name = r % 2 ? words : control;
        record->identity.host = control;
        record->identity.axes[0].name = control;
        record->owners[0].library = control;
        if (r < 2)
            record->identity.rank = -1;
    }
    report_on(&made);
    check_charts(made.report);
    for (size_t i = 0; mt_job_charts[i]; i++) {
        struct mt_drawing drawing;

        draw(made.report, mt_job_charts[i]->name, &usual, &drawing);
        check_texts(&drawing);
        assert_says(&drawing, "title", "long </svg>");
        mt_drawing_release(&drawing);
    }
    release(&made);
}

/* Jobs in which anything may be. */
TEST(random_jobs)
{
    random_state = 7;
    for (int turn = 0; turn < 24; turn++) {
        struct simulated_job job =
            simulated_job_new(1 + linear_below(9), 1 + linear_below(20), 1 + linear_below(4));
        struct made made;

        job.has_columns = linear_below(2);
        job.has_mesh = linear_below(2);
        job.has_hashes = linear_below(2);
        for (uint32_t m = linear_below(MAX_PLANTED); m; m--)
            job.missing[job.missing_count++] = (int32_t)linear_below(world_of(&job));
        if (job.missing_count >= world_of(&job))
            job.missing_count = 0;
        add_job(&made, &job);
        for (uint32_t r = 0; r < made.set.record_count; r++) {
            struct mt_rank_record *record = &made.set.records[r];

            record->reserved_peak.bytes += linear_below(900) * 20 * MT_MIB;
            record->identity.memory_limit_bytes = linear_below(3) * 15 * MT_GIB;
            record->step_count = linear_below(SIMULATED_STEPS + 1);
            if (!linear_below(12)) {
                record->outcome = MT_OUTCOME_OOM;
                record->has_death = true;
                record->death_t_ns = record->begin_t_ns + linear_below(60) * SECOND_NS;
            }
        }
        report_on(&made);
        check_charts(made.report);
        release(&made);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
