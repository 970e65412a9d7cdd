#include "fleet_diff_words.h"

#include "wrapped_text.h"

uint32_t mt_diff_shown(const struct mt_diff_text *text, uint32_t count)
{
    return text->answer->all || count < MT_DIFF_ROWS ? count : MT_DIFF_ROWS;
}

const char *mt_diff_s(uint64_t count)
{
    return count == 1 ? "" : "s";
}

const char *mt_diff_class_name(const struct mt_diff_text *text, uint32_t class)
{
    const char *name =
        class == MT_NO_CLASS ? "others" : mt_job_class_name(text->answer->arena, text->diff, class);

    return name ? name : "";
}

const char *mt_diff_site_of(const struct mt_diff_text *text, uint32_t line)
{
    uint32_t path = line == MT_NO_LINE ? MT_NO_PATH : text->diff->lines[line].b_path;
    const char *site = mt_job_diff_site(text->answer->arena, text->diff, path);

    if (line != MT_NO_LINE && path == MT_NO_PATH)
        return "too small to be kept";
    return site ? site : "";
}

void mt_diff_add_heading(const struct mt_diff_text *text, const char *heading)
{
    mt_buf_printf(text->out, "\n%s%s%s\n", text->style->bold, heading, text->style->reset);
}

void mt_diff_add_rest(const struct mt_diff_text *text, uint32_t count, size_t indent)
{
    if (count > mt_diff_shown(text, count))
        mt_add_note(text->out, indent, "and %u more",
                    (unsigned)(count - mt_diff_shown(text, count)));
}

bool mt_diff_changes(const struct mt_job_change *change)
{
    return change->min_bytes || change->max_bytes;
}

const char *mt_diff_kind_of(const struct mt_diff_text *text, uint32_t count)
{
    static const char *const one[] = {"rank", "group", "set of parameters", "job"};
    static const char *const several[] = {"ranks", "groups", "sets of parameters", "jobs"};

    return (count == 1 ? one : several)[text->diff->match];
}

bool mt_diff_sizes_differ(const struct mt_job_diff *diff)
{
    if (diff->match != MT_MATCH_GROUPS && diff->match != MT_MATCH_PARAMETERS)
        return false;
    for (uint32_t i = 0; i < diff->class_count; i++)
        if (diff->classes[i].is_compared && diff->classes[i].a_count != diff->classes[i].b_count)
            return true;
    return false;
}
