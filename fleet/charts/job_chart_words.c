#include "job_chart_words.h"

#include <string.h>

#include "chart_frame.h"
#include "foreign_text.h"
#include "units.h"

#define DASH " \xE2\x80\x94 "

enum { MAX_JOB = 80, MAX_ROW = 80 };

static const char *kept(const char *text)
{
    return text ? text : "";
}

const char *mt_job_words_name(struct mt_drawing *drawing, const char *name, size_t most)
{
    struct mt_buf text = {0};
    const char *copy;

    mt_buf_add_printable_text(&text, mt_chart_frame_short(drawing, name, most));
    copy = mt_arena_text(&drawing->arena, text.data ? text.data : "", text.length);
    mt_buf_release(&text);
    return kept(copy);
}

const char *mt_job_words_row(struct mt_drawing *drawing, const struct mt_job_report *report,
                             uint32_t row)
{
    const char *name = mt_job_row_name(&drawing->arena, report, row);

    return mt_job_words_name(drawing, kept(name), MAX_ROW);
}

const char *mt_job_words_unit(const struct mt_job_report *report)
{
    return report->row_count == report->seen_count ? "rank" : "device";
}

const char *mt_job_words_bytes(struct mt_drawing *drawing, unsigned __int128 bytes)
{
    uint64_t most = bytes > UINT64_MAX ? UINT64_MAX : (uint64_t)bytes;
    char text[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];

    if (bytes < 1000) /* mt_format_bytes is exact for these */
        return kept(mt_arena_printf(&drawing->arena, "%s", mt_format_bytes(text, most)));
    return kept(mt_arena_printf(&drawing->arena, "%s%s (%s B)",
                                bytes > UINT64_MAX ? "more than " : "", mt_format_bytes(text, most),
                                mt_format_count(exact, most)));
}

const char *mt_job_words_describe(struct mt_drawing *drawing, const struct mt_job_report *report,
                                  const char *chart, const char *description)
{
    const char *job = *report->job ? mt_job_words_name(drawing, report->job, MAX_JOB) : "job";
    const char *title = kept(mt_arena_printf(&drawing->arena, "%s" DASH "%s", job, chart));

    mt_drawing_describe(drawing, title, description);
    mt_drawing_metadata(drawing, "Software", "memtrace");
    mt_drawing_metadata(drawing, "memtrace:schema", "memtrace.picture/1");
    return title;
}

void mt_job_words_nothing(struct mt_drawing *drawing, const char *title, const char *text,
                          const char *reason)
{
    drawing->height = 320;
    mt_chart_frame_nothing(drawing, mt_chart_frame_header(drawing, title, "") + 10, text, reason);
}
