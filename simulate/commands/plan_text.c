/* The answer of a plan, as text and as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_text.h"

#include "cli.h"
#include "dry_run_answer.h"
#include "grow.h"
#include "process_memory.h"
#include "sweep_output.h"
#include "text_table.h"
#include "units.h"
#include "util.h"

enum {
    MAX_ROWS = 14,    /* of the table; with more, only the largest point of each card */
    MAX_COMMANDS = 4, /* command lines as text */
    MAX_NOTES = 4     /* combinations that are named */
};

static const struct mt_sweep_run *run_of(const struct mt_plan_answer *answer, size_t combination,
                                         size_t card)
{
    size_t size = answer->search->combinations[combination].best[card];

    return mt_sweep_find_point(answer->points,
                               mt_search_point_of(answer->search, combination, size));
}

void mt_plan_find_front(struct mt_plan_answer *answer)
{
    const struct mt_search *search = answer->search;
    size_t *found = mt_memory_zeroed(search->combination_count, sizeof *found);

    for (size_t card = 0; card < search->card_count; card++) {
        size_t count = mt_search_front(search, card, found);

        for (size_t i = 0; i < count; i++) {
            struct mt_plan_row row = {card, found[i], run_of(answer, found[i], card), {0}};

            row.use = mt_sweep_need_on(&row.run->result, answer->points->card, answer->cards[card]);
            mt_grow_to(&answer->rows, &answer->row_capacity, answer->row_count + 1, sizeof row);
            answer->rows[answer->row_count++] = row;
        }
    }
    free(found);
}

/* Whether a point has the largest size of those on its card; the first of several. */
static bool is_largest_of_card(const struct mt_plan_answer *answer, size_t row)
{
    const struct mt_search_combination *all = answer->search->combinations;
    const struct mt_plan_row *chosen = &answer->rows[row];

    for (size_t i = 0; i < answer->row_count; i++) {
        const struct mt_plan_row *other = &answer->rows[i];
        size_t best = all[other->combination].best[chosen->card];

        if (other->card == chosen->card &&
            (best > all[chosen->combination].best[chosen->card] ||
             (i < row && best == all[chosen->combination].best[chosen->card])))
            return false;
    }
    return true;
}

static bool is_estimate(const struct mt_plan_answer *answer, const struct mt_plan_row *row)
{
    return mt_sweep_is_estimate(&row->use, answer->points->card, answer->cards[row->card]);
}

/* Returns whether the need would be an estimate if the memory of CUDA was that of the card. */
static bool has_other_kernels(const struct mt_plan_answer *answer, const struct mt_plan_row *row)
{
    const struct mt_card_use measured = {.cuda_from = MT_CUDA_TABLE};

    return mt_sweep_is_estimate(&measured, answer->points->card, answer->cards[row->card]);
}

static bool is_exact(const struct mt_plan_answer *answer, const struct mt_plan_row *row)
{
    return answer->search->size_axis == MT_SEARCH_NONE ||
           answer->search->combinations[row->combination].is_exact[row->card];
}

static int largest_role(const struct mt_sweep_result *result)
{
    int largest = 0;

    for (int role = 1; role < MT_ROLE_COUNT; role++)
        if (result->role_bytes[role] > result->role_bytes[largest])
            largest = role;
    return largest;
}

static void add_row(struct mt_table *table, const struct mt_plan_answer *answer,
                    const struct mt_plan_row *row)
{
    const struct mt_sweep_result *result = &row->run->result;
    const struct mt_card *card = answer->cards[row->card];
    int role = largest_role(result);
    char text[MT_MAX_SWEEP_VALUE + 64], bytes[MT_UNITS_TEXT];

    MT_CELLS(table, MT_TEXT(card->name));
    for (size_t i = 0; i < answer->plan->axis_count; i++) {
        snprintf(text, sizeof text, "%s%s", row->run->values[i],
                 i == answer->search->size_axis && !is_exact(answer, row) ? " or more" : "");
        MT_CELLS(table, MT_TEXT(text));
    }
    if (answer->plan->sweep.world)
        MT_CELLS(table, MT_COUNT(row->run->rank.world));
    snprintf(text, sizeof text, "%s%s", is_estimate(answer, row) ? "~" : "",
             mt_format_bytes(bytes, row->use.bytes));
    MT_CELLS(table, MT_TEXT(text), MT_BYTES(card->memory_bytes - row->use.bytes));
    snprintf(text, sizeof text, "%s %u%%", mt_role_name((enum mt_role)role),
             (unsigned)((double)result->role_bytes[role] * 100 /
                        (double)mt_max_u64(result->allocated_peak_bytes, 1)));
    MT_CELLS(table, MT_TEXT(text));
}

static void add_table(struct mt_buf *out, const struct mt_plan_answer *answer)
{
    char titles[MT_MAX_SWEEP_NAMES][MT_MAX_SWEEP_WORD + 2];
    struct mt_table table;
    size_t left_out = 0;

    mt_table_begin(&table, "!card");
    for (size_t i = 0; i < answer->plan->axis_count; i++) {
        snprintf(titles[i], sizeof titles[i], "!%s", answer->plan->axes[i].name);
        mt_table_columns(&table, titles[i]);
    }
    if (answer->plan->sweep.world)
        mt_table_columns(&table, "#devices");
    mt_table_columns(&table, "#needs|#to spare|most at the peak");
    for (size_t i = 0; i < answer->row_count; i++)
        if (answer->row_count <= MAX_ROWS || is_largest_of_card(answer, i))
            add_row(&table, answer, &answer->rows[i]);
        else
            left_out++;
    mt_text_table_add(out, &table, 0, mt_stdout_style());
    if (left_out)
        mt_text_table_add_note(out, 0,
                               "%zu more point%s of the fronts %s in the JSON document: those with "
                               "fewer devices, or with values that come first in their lists.",
                               left_out, left_out == 1 ? "" : "s", left_out == 1 ? "is" : "are");
}

/* Names the cards on which nothing fits. */
static void add_empty_cards(struct mt_buf *out, const struct mt_plan_answer *answer)
{
    struct mt_buf names = {0};

    for (size_t card = 0; card < answer->search->card_count; card++) {
        bool has_row = false;

        for (size_t i = 0; i < answer->row_count; i++)
            has_row |= answer->rows[i].card == card;
        if (!has_row)
            mt_buf_printf(&names, "%s%s", names.length ? ", " : "", answer->cards[card]->name);
    }
    mt_buf_add_char(&names, '\0');
    if (names.length > 1)
        mt_text_table_add_note(out, 0, "No point was found that fits on %s.", names.data);
    mt_buf_release(&names);
}

/* "tp=8, ac=full": a combination without the size; "" = there are no other axes. */
static void add_combination(struct mt_buf *out, const struct mt_plan_answer *answer,
                            size_t combination)
{
    const struct mt_sweep_plan *plan = answer->plan;
    const size_t *at = answer->search->combinations[combination].at;
    const char *separator = "";

    for (size_t i = 0; i < plan->axis_count; i++) {
        if (i == answer->search->size_axis)
            continue;
        mt_buf_printf(out, "%s%s=%s", separator, plan->axes[i].name, plan->axes[i].values[at[i]]);
        separator = ", ";
    }
}

/* Adds a note with the names of the combinations that are marked. */
static void add_marked(struct mt_buf *out, const struct mt_plan_answer *answer,
                       bool (*is_marked)(const struct mt_search_combination *), const char *words)
{
    struct mt_buf names = {0};
    size_t count = 0;

    for (size_t i = 0; i < answer->search->combination_count; i++) {
        if (!is_marked(&answer->search->combinations[i]) || count++ >= MAX_NOTES)
            continue;
        mt_buf_add_text(&names, count > 1 ? "; " : "");
        add_combination(&names, answer, i);
    }
    if (count > MAX_NOTES)
        mt_buf_printf(&names, "; and %zu more", count - MAX_NOTES);
    mt_buf_add_char(&names, '\0');
    if (count)
        mt_text_table_add_note(out, 0, "%s%s%s", names.data, names.length > 1 ? ": " : "", words);
    mt_buf_release(&names);
}

static bool is_contradicted(const struct mt_search_combination *combination)
{
    return combination->is_contradicted;
}

static bool has_given_up(const struct mt_search_combination *combination)
{
    return combination->gave_up;
}

/* A point that failed neither fits nor is too large. */
static void add_failed(struct mt_buf *out, const struct mt_search *search)
{
    size_t count = 0;

    for (size_t i = 0; i < search->point_count; i++)
        count += search->points[i].state == MT_SEARCH_FAILED;
    if (count)
        mt_text_table_add_note(out, 0, "%zu point%s failed: what %s need%s is not known.", count,
                               count == 1 ? "" : "s", count == 1 ? "it" : "they",
                               count == 1 ? "s" : "");
}

static void add_doubts(struct mt_buf *out, const struct mt_plan_answer *answer)
{
    bool has_others = false, is_unmeasured = false, has_open = false;

    for (size_t i = 0; i < answer->row_count; i++) {
        has_others |= has_other_kernels(answer, &answer->rows[i]);
        is_unmeasured |= answer->rows[i].use.cuda_from != MT_CUDA_TABLE;
        has_open |= !is_exact(answer, &answer->rows[i]);
    }
    add_failed(out, answer->search);
    add_marked(out, answer, is_contradicted,
               "a larger value needed less memory, so every value was tried.");
    add_marked(out, answer, has_given_up, "most runs failed, so the search ended there.");
    if (answer->is_cut)
        mt_text_table_add_note(
            out, 0, "The search ended after %zu dry run%s; for the rest, use --max-runs.",
            answer->runs, answer->runs == 1 ? "" : "s");
    if (has_open)
        mt_text_table_add_note(out, 0, "\"or more\": a larger value was not tried, or failed.");
    if (has_others || is_unmeasured)
        mt_text_table_add_note(out, 0, "~ is an estimate: %s%s%s%s.%s",
                               has_others ? "the runs simulate the kernels of " : "",
                               has_others ? answer->points->card->name : "",
                               has_others && is_unmeasured ? ", or " : "",
                               is_unmeasured ? "the memory of CUDA was not measured for this card"
                                             : "",
                               has_others && answer->search->card_count > 1
                                   ? " Name the card alone with --card to simulate it."
                                   : "");
}

/* Returns the ranks of the runs of a point, "0,4,7". */
static const char *ranks_of(const struct mt_plan_answer *answer, size_t point)
{
    const struct mt_sweep *sweep = &answer->plan->sweep;
    const char *ranks = "";

    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep->runs[i].point == point)
            ranks = mt_arena_printf(&answer->plan->arena, "%s%s%llu", ranks, *ranks ? "," : "",
                                    (unsigned long long)sweep->runs[i].rank.rank);
    return ranks;
}

/* Returns the words of the command of a point as a person types it, in the arena of the plan. A
 * change on paper exists only in a dry run, which needs the ranks. */
static const char **words_of(const struct mt_plan_answer *answer, const struct mt_sweep_run *run)
{
    enum { MAX_BEFORE = 9 };
    struct mt_sweep_plan *plan = answer->plan;
    struct mt_sweep_run point = *run;
    const char *apply = mt_sweep_plan_apply(plan, run), **words;
    size_t count = 0, typed_count = 0;

    point.values[plan->axis_count] = NULL; /* the command is that of all ranks */
    char **typed = mt_sweep_plan_typed(plan, &point);
    while (typed[typed_count])
        typed_count++;
    words = mt_arena_array(&plan->arena, MAX_BEFORE + typed_count + 1, sizeof *words);
    if (apply) {
        words[count++] = "memtrace";
        words[count++] = "dry-run";
        words[count++] = "--apply";
        words[count++] = apply;
        if (run->rank.world) {
            words[count++] = "--ranks";
            words[count++] = ranks_of(answer, run->point);
        }
        if (plan->grid->world) {
            words[count++] = "--world";
            words[count++] =
                mt_arena_printf(&plan->arena, "%llu", (unsigned long long)plan->grid->world);
        }
        words[count++] = "--";
    }
    memcpy(words + count, typed, typed_count * sizeof *words);
    return words;
}

static bool is_repeated(const struct mt_plan_answer *answer, size_t row)
{
    for (size_t i = row + 1; i < answer->row_count; i++)
        if (answer->rows[i].run == answer->rows[row].run)
            return true;
    return false;
}

/* The commands of the points, those of the largest cards first. */
static void add_commands(struct mt_buf *out, const struct mt_plan_answer *answer)
{
    size_t count = 0;

    for (size_t i = answer->row_count; i-- > 0;) {
        if (is_repeated(answer, i) || count++ >= MAX_COMMANDS)
            continue;
        mt_buf_printf(out, "%s  ", count == 1 ? "\nCommands\n" : "");
        mt_buf_add_shell_words(out, words_of(answer, answer->rows[i].run));
        mt_buf_add_char(out, '\n');
    }
    if (count > MAX_COMMANDS)
        mt_text_table_add_note(out, 2, "%zu more: --json", count - MAX_COMMANDS);
}

static void add_counts(struct mt_buf *out, const struct mt_plan_answer *answer)
{
    const struct mt_sweep *sweep = &answer->plan->sweep;
    char cached[48] = "";

    if (answer->cached)
        snprintf(cached, sizeof cached, ", and %zu from the cache,", answer->cached);
    mt_text_table_add_note(out, 0, "%zu dry run%s%s for %zu of %zu point%s on a simulated %s",
                           answer->runs, answer->runs == 1 ? "" : "s", cached,
                           answer->points->run_count, answer->search->point_count,
                           answer->search->point_count == 1 ? "" : "s", sweep->card->name);
}

void mt_plan_add_text(struct mt_buf *out, const struct mt_plan_answer *answer)
{
    add_counts(out, answer);
    if (answer->no_cache)
        mt_text_table_add_note(out, 0, "No result is kept for later: %s.", answer->no_cache);
    if (answer->shard)
        mt_text_table_add_note(out, 0,
                               "This is part %s. After all parts, the same command without --shard "
                               "reads their results from the cache.",
                               answer->shard);
    add_table(out, answer);
    add_empty_cards(out, answer);
    add_doubts(out, answer);
    mt_sweep_add_doubts(out, &answer->plan->sweep);
    add_commands(out, answer);
}

static void add_json_point(struct mt_json *json, const struct mt_plan_answer *answer,
                           const struct mt_plan_row *row)
{
    const struct mt_card *card = answer->cards[row->card];
    const char **words = words_of(answer, row->run);

    mt_json_object_begin(json, NULL);
    mt_json_array_begin(json, "values");
    for (size_t i = 0; i < answer->plan->axis_count; i++)
        mt_json_text(json, NULL, row->run->values[i]);
    mt_json_array_end(json);
    mt_json_bool(json, "is_largest", is_exact(answer, row));
    mt_json_u64(json, "devices", mt_max_u64(row->run->rank.world, 1));
    mt_json_u64(json, "need_bytes", row->use.bytes);
    mt_json_bool(json, "is_estimate", is_estimate(answer, row));
    mt_json_u64(json, "spare_bytes", card->memory_bytes - row->use.bytes);
    mt_json_text(json, "largest_role", mt_role_name((enum mt_role)largest_role(&row->run->result)));
    mt_json_array_begin(json, "command");
    for (size_t i = 0; words[i]; i++)
        mt_json_text(json, NULL, words[i]);
    mt_json_array_end(json);
    mt_json_object_end(json);
}

static void add_json_cards(struct mt_json *json, const struct mt_plan_answer *answer)
{
    for (struct mt_json_list row = mt_json_objects(json, "cards", answer->search->card_count);
         mt_json_next(&row);) {
        struct mt_json_list points;

        mt_json_text(json, "card", answer->cards[row.i]->name);
        mt_json_u64(json, "memory_bytes", answer->cards[row.i]->memory_bytes);
        mt_json_list_begin(&points, json, "front");
        for (size_t i = 0; i < answer->row_count; i++)
            if (answer->rows[i].card == row.i && mt_json_list_takes(&points))
                add_json_point(json, answer, &answer->rows[i]);
        mt_json_list_end(&points);
    }
}

static void add_json_axes(struct mt_json *json, const struct mt_sweep_plan *plan)
{
    mt_json_array_begin(json, "axes");
    for (size_t i = 0; i < plan->axis_count; i++) {
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "name", plan->axes[i].name);
        mt_json_bool(json, "is_searched", plan->axes[i].is_range);
        mt_json_u64(json, "values", plan->axes[i].count);
        mt_json_text(json, "first", plan->axes[i].values[0]);
        mt_json_text(json, "last", plan->axes[i].values[plan->axes[i].count - 1]);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}

/* Combinations whose answer is not that of a search. */
static void add_json_combinations(struct mt_json *json, const struct mt_plan_answer *answer)
{
    struct mt_json_list list;

    mt_json_list_begin(&list, json, "combinations");
    for (size_t i = 0; i < answer->search->combination_count; i++) {
        const struct mt_search_combination *combination = &answer->search->combinations[i];
        struct mt_buf name = {0};

        if ((!combination->is_contradicted && !combination->gave_up) || !mt_json_list_takes(&list))
            continue;
        add_combination(&name, answer, i);
        mt_buf_add_char(&name, '\0');
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "name", name.data);
        mt_json_bool(json, "is_contradicted", combination->is_contradicted);
        mt_json_bool(json, "gave_up", combination->gave_up);
        mt_json_object_end(json);
        mt_buf_release(&name);
    }
    mt_json_list_end(&list);
}

void mt_plan_add_json(struct mt_buf *out, const struct mt_plan_answer *answer)
{
    struct mt_sweep *sweep = &answer->plan->sweep;
    struct mt_json_list runs;
    struct mt_json json;

    mt_json_document(&json, out, "memtrace.plan/1", false);
    mt_json_simulated(&json, sweep->card, sweep->devices, sweep->memory_bytes);
    mt_json_text(&json, "shard", answer->shard);
    mt_json_u64(&json, "points", answer->search->point_count);
    mt_json_u64(&json, "points_known", answer->points->run_count);
    mt_json_u64(&json, "dry_runs", answer->runs);
    mt_json_u64(&json, "from_cache", answer->cached);
    mt_json_bool(&json, "is_complete", !answer->is_cut && !answer->shard);
    add_json_axes(&json, answer->plan);
    add_json_combinations(&json, answer);
    add_json_cards(&json, answer);
    mt_json_array_begin(&json, "names");
    for (size_t i = 0; i < sweep->name_count; i++)
        mt_json_text(&json, NULL, sweep->names[i]);
    mt_json_array_end(&json);
    mt_json_list_begin(&runs, &json, "runs");
    for (size_t i = 0; i < sweep->run_count; i++)
        if (mt_json_list_takes(&runs))
            mt_json_sweep_run(&json, answer->plan, &sweep->runs[i],
                              answer->has_files && !sweep->runs[i].is_cached);
    mt_json_list_end(&runs);
    mt_json_object_end(&json);
}
