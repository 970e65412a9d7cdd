/* Why: explanations in words, and what was there when memory ran out. */
#include "analyze_output.h"
#include "text_table.h"
#include "units.h"

#include <stdlib.h>

static const char *phase_name(const struct mt_teller *teller, int32_t phase)
{
    return phase == MT_NO_PHASE ? "" : teller->report->phases[phase].name;
}

static const char *subject(const struct mt_teller *teller, const struct mt_explanation *why)
{
    bool is_step = why->phase != MT_NO_PHASE && teller->report->phases[why->phase].is_step;
    long long step = (long long)why->step, other = (long long)why->other_step;

    if (why->kind == MT_WHY_STEP_PEAK_ROSE)
        return mt_arena_printf(teller->arena, "The peak of step %lld is higher than that of step %lld",
                               step, other);
    if (why->kind == MT_WHY_PHASE_LEFT_MORE && is_step)
        return mt_arena_printf(teller->arena,
                               "Memory is higher at the end of step %lld than at the end of step %lld",
                               step, other);
    if (why->kind == MT_WHY_PHASE_LEFT_MORE)
        return mt_arena_printf(teller->arena, "Memory is higher after %s%s than before it",
                               phase_name(teller, why->phase),
                               why->step == MT_NO_STEP
                                   ? ""
                                   : mt_arena_printf(teller->arena, " of step %lld", step));
    if (why->phase == MT_NO_PHASE)
        return "The maximum rises outside of any phase";
    return mt_arena_printf(teller->arena, "The maximum rises in %s",
                           mt_tell_where(teller, why->phase, why->step));
}

static void add_contribution(struct mt_text_table *table, const struct mt_teller *teller,
                             const struct mt_contribution *part)
{
    char text[MT_UNITS_TEXT];
    int64_t blocks = part->blocks;

    mt_table_cell(table, mt_format_change(text, part->bytes));
    mt_table_cell(table, mt_arena_printf(teller->arena, "%s%lld", blocks > 0 ? "+" : "",
                                         (long long)blocks));
    mt_table_cell(table, part->site ? mt_role_name(part->role) : "");
    mt_table_cell(table, part->site ? part->phase : "");
    mt_table_cell(table, part->site ? part->site : "all others together");
}

static void tell_contributions(const struct mt_teller *teller, const struct mt_explanation *why)
{
    static const struct mt_text_column columns[] = {{"bytes", true, false}, {"blocks", true, false},
                                                    {"role", false, false}, {"born in", false, false},
                                                    {"by", false, true},    {NULL, false, false}};
    struct mt_text_table table;

    mt_table_begin(&table, columns, 4);
    for (uint32_t i = 0; i < why->contribution_count; i++)
        add_contribution(&table, teller, &why->contributions[i]);
    mt_table_end(&table, teller->out, teller->style->dim, teller->style->reset);
}

static void tell_explanation(const struct mt_teller *teller, const struct mt_explanation *why)
{
    char change[MT_UNITS_TEXT], from[MT_UNITS_TEXT], to[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];
    struct mt_buf line = {0};

    mt_buf_printf(&line, "%s by %s (%s B), from %s to %s", subject(teller, why),
                  mt_format_bytes(change, why->to_bytes - why->from_bytes),
                  mt_format_count(exact, why->to_bytes - why->from_bytes),
                  mt_format_bytes(from, why->from_bytes), mt_format_bytes(to, why->to_bytes));
    mt_buf_add_text(teller->out, "  ");
    if (line.data)
        mt_add_wrapped(teller->out, line.data, 2, 4);
    mt_buf_add_char(teller->out, '\n');
    tell_contributions(teller, why);
    mt_buf_release(&line);
}

void mt_tell_explanations(const struct mt_teller *teller)
{
    if (!teller->device->explanation_count)
        return;
    mt_tell_heading(teller, "Why");
    for (uint32_t i = 0; i < teller->device->explanation_count; i++)
        tell_explanation(teller, &teller->device->explanations[i]);
}

void mt_tell_ooms(const struct mt_teller *teller)
{
    (void)teller;
}
