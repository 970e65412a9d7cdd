/* The view without a terminal: what keys select, and what is drawn as cells, on a made report. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "history.h"
#include "phase.h"
#include "screen.h"
#include "util.h"
#include "view_parts.h"

enum { COLUMNS = 200, PEAK = 150, RESERVED = 300, ROWS = 24, WIDTH = 80 };

/* Group 0 has one block from the start, group 1 grows to its peak and shrinks, group 2 lives in the
 * odd columns, with hostile names. */
static struct mt_history_group groups[] = {
    {.site = "init model.py:3", .phase = "", .stack = 1, .role = MT_ROLE_PARAMETERS},
    {.site = "forward model.py:9",
     .phase = "forward",
     .stack = MT_NO_ID,
     .role = MT_ROLE_ACTIVATIONS},
    {.site = "evil\x1b[31m \xe6\xbc\xa2\xe2\x80\xae.py:1",
     .phase = "forward",
     .stack = MT_NO_ID,
     .role = MT_ROLE_TEMPORARIES},
};
enum { GROUPS = MT_ARRAY_LEN(groups) };

struct made {
    struct mt_report report;
    struct mt_device_report devices[2];
    struct mt_history history;
    struct mt_history_column columns[COLUMNS];
    struct mt_history_change changes[COLUMNS * GROUPS];
    struct mt_symbols symbols;
    struct mt_span span;
    struct mt_phase phase;
    struct mt_phase_use use;
    struct mt_view view;
    struct mt_terminal_cell cells[ROWS * WIDTH];
    char text[ROWS][4 * WIDTH + 1]; /* of the last drawing */
};

static uint64_t bytes_at(uint32_t group, uint32_t column)
{
    if (group == 0)
        return 64 * MT_MIB;
    if (group == 1)
        return (column <= PEAK ? column : COLUMNS - column) * MT_MIB;
    return column % 2 ? MT_MIB : 0;
}

static uint64_t allocated_at(uint32_t column)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < GROUPS; i++)
        sum += bytes_at(i, column);
    return sum;
}

static void make_history(struct made *made, bool by_event)
{
    struct mt_history *history = &made->history;

    made->span = (struct mt_span){1000, 1000 + COLUMNS * 1000000};
    *history = (struct mt_history){.by_event = by_event,
                                   .symbols = &made->symbols,
                                   .columns = made->columns,
                                   .column_count = COLUMNS,
                                   .groups = groups,
                                   .group_count = GROUPS,
                                   .changes = made->changes};
    history->axis = (struct mt_timeline){.spans = &made->span, .span_count = 1};
    for (uint32_t i = 0; i < COLUMNS; i++) {
        struct mt_history_column *column = &made->columns[i];

        *column = (struct mt_history_column){.begin_t_ns = 1000 + i * 1000000,
                                             .begin_event = 10 * i,
                                             .t_ns = 1500 + i * 1000000,
                                             .event = 10 * i + 5,
                                             .phase = i < 100 ? 0 : MT_NO_PHASE,
                                             .first_change = history->change_count};
        column->bytes.allocated = allocated_at(i);
        column->bytes.reserved = RESERVED * MT_MIB;
        for (uint32_t group = 0; group < GROUPS; group++) {
            uint64_t now = bytes_at(group, i), before = i ? bytes_at(group, i - 1) : 0;

            if (now != before)
                made->changes[history->change_count++] = (struct mt_history_change){
                    group, (int64_t)(now - before), (now != 0) - (before != 0)};
        }
        column->change_count = history->change_count - column->first_change;
    }
}

static struct made *make(bool by_event)
{
    struct made *made = calloc(1, sizeof *made);
    uint32_t function, frame, stack;

    assert_non_null(made);
    make_history(made, by_event);
    assert_int_equal(mt_symbols_init(&made->symbols), MT_OK);
    assert_int_equal(mt_symbols_string(&made->symbols, "outer\n", 6, &function), MT_OK);
    assert_int_equal(mt_symbols_frame(&made->symbols, function, MT_NO_ID, 0, &frame), MT_OK);
    assert_int_equal(mt_symbols_stack(&made->symbols, MT_NO_ID, frame, &stack), MT_OK);
    assert_int_equal(mt_symbols_string(&made->symbols, "inner", 5, &function), MT_OK);
    assert_int_equal(mt_symbols_frame(&made->symbols, function, MT_NO_ID, 0, &frame), MT_OK);
    assert_int_equal(mt_symbols_stack(&made->symbols, stack, frame, &stack), MT_OK);
    groups[0].stack = stack;
    made->phase = (struct mt_phase){.name = "train",
                                    .path = "train",
                                    .step = MT_NO_STEP,
                                    .parent = MT_NO_PHASE,
                                    .end_event = 1000};
    made->use = (struct mt_phase_use){.peak_allocated_event = 995};
    for (uint16_t i = 0; i < 2; i++)
        made->devices[i] = (struct mt_device_report){
            .device = i,
            .allocated_peak = {.bytes = allocated_at(PEAK - 1), .event = 10 * (PEAK - 1) + 5},
            .reserved_peak = {.bytes = RESERVED * MT_MIB, .event = 5},
            .first_t_ns = 1000,
            .last_t_ns = made->span.end_t_ns,
            .last_event = 10 * COLUMNS - 1,
            .phase_uses = &made->use};
    made->devices[0].history = &made->history;
    made->report = (struct mt_report){.name = "run\x1b]0;title\a",
                                      .has_segments = true,
                                      .symbols = &made->symbols,
                                      .first_t_ns = 1000,
                                      .last_t_ns = made->span.end_t_ns,
                                      .phases = &made->phase,
                                      .phase_count = 1,
                                      .devices = made->devices,
                                      .device_count = 1};
    assert_true(mt_view_init(&made->view, &made->report, "a run.trace"));
    return made;
}

static void release(struct made *made)
{
    mt_view_release(&made->view);
    mt_symbols_release(&made->symbols);
    free(made);
}

/* Draws, checks that each cell has a visible character of one column, and keeps the text. */
static void draw(struct made *made, unsigned rows, unsigned columns)
{
    memset(made->cells, 0, sizeof made->cells);
    mt_view_draw(&made->view, rows, columns, made->cells);
    for (unsigned row = 0; row < rows; row++) {
        struct mt_buf line = {
            .data = made->text[row], .capacity = sizeof made->text[row], .is_fixed = true};

        made->text[row][0] = '\0';
        for (unsigned column = 0; column < columns; column++) {
            uint32_t code = made->cells[row * columns + column].code;

            assert_true(code == 0 || (code >= ' ' && code <= '~') ||
                        (made->view.unicode && code >= 0xA0 && code < 0x2E80 && code != 0x202E));
            mt_buf_add_utf8(&line, code ? code : ' ');
        }
    }
}

static void press(struct made *made, const char *keys)
{
    for (; *keys; keys++)
        assert_true(mt_view_press(&made->view, *keys == '\n'     ? MT_KEY_ENTER
                                               : *keys == '\x1b' ? (uint32_t)MT_KEY_ESCAPE
                                                                 : (unsigned char)*keys));
}

static bool has(const struct made *made, const char *text)
{
    for (unsigned row = 0; row < ROWS; row++)
        if (strstr(made->text[row], text))
            return true;
    return false;
}

static void assert_command(struct made *made, const char *expected)
{
    struct mt_buf command = {0};

    mt_view_add_command(&command, &made->view);
    assert_string_equal(command.data, expected);
    mt_buf_release(&command);
}

/* The rows sum to the allocated bytes of the column. */
static void assert_sum(const struct made *made)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < made->view.row_count; i++) {
        assert_true(!i || made->view.rows[i].bytes <= made->view.rows[i - 1].bytes);
        sum += made->view.rows[i].bytes;
    }
    assert_int_equal(sum, allocated_at(made->view.selected));
}

TEST(the_peak_comes_first)
{
    struct made *made = make(false);

    assert_int_equal(made->view.selected, PEAK - 1);
    assert_sum(made);
    assert_command(made, "memtrace live 'a run.trace' --at 1495");
    draw(made, ROWS, WIDTH);
    assert_true(has(made, "peak 214 MiB allocated, 300 MiB reserved, device 0"));
    assert_true(has(made, "forward model.py:9"));
    assert_true(has(made, "P parameters  A activations  T temporaries  - reserved"));
    made->report.has_segments = false;
    draw(made, ROWS, WIDTH);
    assert_true(has(made, "peak 214 MiB allocated, device 0"));
    assert_false(has(made, "MiB reserved"));
    release(made);
}

TEST(every_column_is_exact)
{
    struct made *made = make(true);

    draw(made, ROWS, WIDTH);
    press(made, "++"); /* a column of the history for each column of the screen */
    for (unsigned i = 0; i < COLUMNS; i++)
        press(made, "h");
    assert_int_equal(made->view.selected, 0);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        assert_int_equal(made->view.selected, i);
        assert_true(i >= made->view.first && i < made->view.first + made->view.count);
        assert_sum(made);
        press(made, i % 3 == 0 ? "r" : i % 3 == 1 ? "f" : "s");
        assert_sum(made);
        assert_true(mt_view_press(&made->view, MT_KEY_RIGHT));
    }
    assert_int_equal(made->view.selected, COLUMNS - 1);
    release(made);
}

/* In the whole run, a column of the screen selects its fullest column. */
TEST(moves_follow_the_screen)
{
    struct made *made = make(false);
    uint32_t begin, end, steps = 0;

    draw(made, ROWS, WIDTH);
    press(made, "gend\n");
    for (uint32_t last = COLUMNS; made->view.selected < last; steps++) {
        last = made->view.selected;
        press(made, "h");
        assert_sum(made);
    }
    assert_int_equal(steps, mt_view_layout(&made->view).plot_columns);
    mt_view_columns_of(&made->view, 0, &begin, &end);
    assert_int_equal(made->view.selected, mt_view_fullest(&made->view, begin, end));
    press(made, "L");
    mt_view_columns_of(&made->view, 10, &begin, &end);
    assert_int_equal(made->view.selected, mt_view_fullest(&made->view, begin, end));
    release(made);
}

TEST(instants_are_those_of_live)
{
    static const struct {
        const char *keys;
        uint32_t selected;
    } cases[] = {{"gpeak\n", PEAK - 1}, {"gend\n", COLUMNS - 1}, {"greserved-peak\n", 0},
                 {"g0\n", 0},           {"g999\n", 99},          {"gevent 1,000\n", 100},
                 {"gtrain\n", 99},      {"gphase:train\n", 99},  {"g20ms\n", 19},
                 {"g20.5ms\n", 20},     {"p", PEAK - 1}};
    static const struct {
        const char *keys, *message;
    } refused[] = {{"gpeek\n", "did you mean 'peak'"},
                   {"goom\n", "no request ran out of memory"},
                   {"gphase:none\n", "the phase does not exist"},
                   {"g2000\n", "the instant is after the last event"},
                   {"g5s\n", "the instant is after the last event"},
                   {"g18446744073709551615s\n", "unknown instant"}};
    struct made *made = make(false);

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        press(made, cases[i].keys);
        assert_int_equal(made->view.selected, cases[i].selected);
    }
    for (size_t i = 0; i < MT_ARRAY_LEN(refused); i++) {
        press(made, refused[i].keys);
        draw(made, ROWS, WIDTH);
        if (!has(made, refused[i].message))
            fail_msg("%s: %s", refused[i].keys, made->view.message);
        assert_int_equal(made->view.selected, PEAK - 1);
    }
    press(made, "gend\x1b");
    assert_int_equal(made->view.selected, PEAK - 1);
    release(made);
}

TEST(hostile_names_are_escaped)
{
    struct made *made = make(false);

    for (unsigned unicode = 0; unicode < 2; unicode++) {
        made->view.unicode = unicode;
        press(made, "gend\ns");
        draw(made, ROWS, WIDTH);
        assert_true(has(made, "run\\x1b]0;title\\x07"));
        assert_true(has(made, "evil\\x1b[31m \\u6f22\\u202e"));
        press(made, "g1005\n/EVIL\n\n"); /* an even column has no block of it */
        draw(made, ROWS, WIDTH);
        press(made, "\x1b");
    }
    release(made);
}

TEST(pages_show_stacks_and_keys)
{
    struct made *made = make(false);

    press(made, "s/init\n\n");
    draw(made, ROWS, WIDTH);
    assert_true(strstr(made->text[0], "init model.py:3"));
    assert_true(strstr(made->text[2], "64.0 MiB, 1 block "));
    assert_true(strstr(made->text[3], "    inner"));
    assert_true(strstr(made->text[4], "    outer\\x0a"));
    assert_command(made, "memtrace live 'a run.trace' --at 1495 --by stack");
    press(made, "\x1b?");
    draw(made, ROWS, WIDTH);
    assert_true(has(made, "the allocated peak"));
    press(made, "\x1bn");
    draw(made, ROWS, WIDTH);
    assert_true(has(made, "site"));
    assert_false(mt_view_press(&made->view, 'q'));
    release(made);
}

/* A row of a phase has blocks of several roles, so no role is its title or found in it. */
TEST(rows_of_phases_have_no_role)
{
    struct made *made = make(false);

    press(made, "f\n");
    draw(made, ROWS, WIDTH);
    assert_string_equal(strtok(made->text[0], " "), "forward");
    press(made, "\x1b/other\n");
    assert_string_equal(made->view.message, "no row has this text");
    assert_true(mt_view_press(&made->view, MT_KEY_END));
    press(made, "\n");
    draw(made, ROWS, WIDTH);
    assert_true(strstr(made->text[0], "no phase  "));
    release(made);
}

/* Every size, also one that is too small, while all keys are pressed. */
TEST(sizes_do_no_harm)
{
    static const char keys[] = "hH+lL-0p+++\tsrf?\x1b\n\x1b/a\nn";
    struct made *made = make(true);

    for (unsigned rows = 1; rows <= ROWS; rows++)
        for (unsigned columns = 1; columns <= WIDTH; columns += 3) {
            char one[2] = {keys[(rows + columns) % (sizeof keys - 1)], '\0'};

            press(made, one);
            draw(made, rows, columns);
            made->view.colors = rows % 2;
            made->view.unicode = columns % 2;
            assert_sum(made);
        }
    release(made);
}

TEST(tab_shows_devices_with_a_history)
{
    struct made *made = make(false);

    press(made, "\t");
    assert_string_equal(made->view.message, "no other device");
    made->report.device_count = 2;
    press(made, "\t");
    assert_string_equal(made->view.message, "no other device");
    made->devices[1].history = &made->history;
    press(made, "\t");
    assert_command(made, "memtrace live 'a run.trace' --at 1495 --device 1");
    release(made);
}

static unsigned restored;

static void restore(void)
{
    restored++;
}

/* What the end without memory calls. */
TEST(the_terminal_is_restored_once)
{
    mt_screen_note_restore(restore);
    mt_progress_clear();
    mt_progress_clear();
    assert_int_equal(restored, 1);
    mt_screen_note_restore(restore);
    mt_screen_note_restore(NULL);
    mt_progress_clear();
    assert_int_equal(restored, 1);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
