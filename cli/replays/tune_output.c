/* The text of tune: the line to paste, how much it saves, and the settings on the Pareto front.
 * Also the document memtrace.tune/1. */
#include "device_model.h"
#include "tune_output.h"

#include <string.h>

#include "cli.h"
#include "foreign_text.h"
#include "json.h"
#include "text_table.h"
#include "units.h"

void mt_tune_add_command(struct mt_buf *out, const char *conf)
{
    if (*conf) {
        mt_buf_add_text(out, "export PYTORCH_CUDA_ALLOC_CONF=");
        mt_buf_add_shell_value(out, conf);
    } else {
        mt_buf_add_text(out, "unset PYTORCH_CUDA_ALLOC_CONF");
    }
}

static uint64_t calls(const struct mt_tune_row *row)
{
    return row->device_allocs + row->device_frees;
}

static const char *spelling(const struct mt_tune_row *row)
{
    return *row->conf ? row->conf : "(defaults)";
}

/* "  reserved at the peak: 1.20 GiB less (13.0%)". Adds nothing if `before` or `after` is not
 * known. */
static void add_change(struct mt_buf *out, const char *what, uint64_t before, uint64_t after)
{
    char bytes[MT_UNITS_TEXT], share[MT_UNITS_TEXT];
    uint64_t change = before > after ? before - after : after - before;

    if (!before || !after)
        return;
    if (!change) {
        mt_buf_printf(out, "  %s: unchanged\n", what);
        return;
    }
    mt_buf_printf(out, "  %s: %s %s (%s)\n", what, mt_format_bytes(bytes, change),
                  before > after ? "less" : "more",
                  mt_format_percent(share, (double)change / (double)before));
}

static void add_calls(struct mt_buf *out, const struct mt_tune_row *before,
                      const struct mt_tune_row *after)
{
    char text[2][MT_UNITS_TEXT];

    mt_buf_printf(out, "  driver calls: %s instead of %s\n", mt_format_count(text[0], calls(after)),
                  mt_format_count(text[1], calls(before)));
}

static void add_recommendation(struct mt_buf *out, const struct mt_tune_answer *answer,
                               const struct mt_style *style)
{
    const struct mt_tune_summary *summary = answer->summary;
    const struct mt_tune_row *best = mt_tune_best(summary);
    char text[MT_UNITS_TEXT];

    if (answer->limit_bytes && !best->serves) {
        mt_buf_printf(out, "%snone of %zu settings makes this run fit in %s%s\n", style->bold,
                      summary->tried, mt_format_bytes(text, answer->limit_bytes), style->reset);
        return;
    }
    if (summary->best == MT_TUNE_CURRENT) {
        mt_buf_printf(out, "%snone of %zu settings beats the setting of the run: %s%s\n",
                      style->bold, summary->tried, spelling(&summary->current), style->reset);
        return;
    }
    mt_buf_add_text(out, style->bold);
    mt_tune_add_command(out, best->conf);
    mt_buf_printf(out, "%s\n", style->reset);
    mt_buf_add_text(out, "compared with ");
    mt_buf_add_printable(out, spelling(&summary->current), strlen(spelling(&summary->current)));
    mt_buf_add_text(out, ", the setting of the run:\n");
    if (answer->limit_bytes && !summary->current.serves)
        mt_buf_printf(out, "  fits in %s, and the setting of the run does not\n",
                      mt_format_bytes(text, answer->limit_bytes));
    add_change(out, "reserved peak", summary->current.reserved_peak_bytes,
               best->reserved_peak_bytes);
    add_change(out, "smallest limit", summary->current.fit_bytes, best->fit_bytes);
    add_calls(out, &summary->current, best);
}

static void add_row(struct mt_table *table, const struct mt_tune_answer *answer, const char *mark,
                    const struct mt_tune_row *row)
{
    MT_CELLS(table, MT_TEXT(mark),
             row->serves ? MT_BYTES(row->reserved_peak_bytes) : MT_TEXT("fails"));
    if (answer->has_fits)
        MT_CELLS(table, row->fit_bytes ? MT_BYTES(row->fit_bytes) : MT_TEXT(""));
    MT_CELLS(table, MT_COUNT(calls(row)));
    if (answer->limit_bytes)
        MT_CELLS(table, MT_COUNT(row->retries));
    MT_CELLS(table, MT_TEXT(spelling(row)));
}

/* Adds the table of settings. A setting is in the last column and never shortened, because users
 * copy it. */
static void add_table(struct mt_buf *out, const struct mt_tune_answer *answer,
                      const struct mt_style *style)
{
    const struct mt_tune_summary *summary = answer->summary;
    struct mt_table table;

    mt_table_begin(&table, "|#reserved peak");
    if (answer->has_fits)
        mt_table_columns(&table, "#smallest limit");
    mt_table_columns(&table, "#driver calls");
    if (answer->limit_bytes)
        mt_table_columns(&table, "#retries");
    mt_table_columns(&table, "!setting");
    add_row(&table, answer, "the run", &summary->current);
    for (size_t i = 0; i < summary->front_count; i++)
        add_row(&table, answer, i == summary->best ? "best" : "", &summary->front[i]);
    mt_text_table_add(out, &table, 0, style);
}

/* Adds a paragraph and releases `text`. */
static void add_paragraph(struct mt_buf *out, struct mt_buf *text)
{
    mt_text_table_add_wrapped(out, text->data, 0, 0);
    mt_buf_add_char(out, '\n');
    mt_buf_release(text);
}

static void add_method(struct mt_buf *out, const struct mt_tune_summary *summary)
{
    struct mt_buf text = {0};

    mt_buf_printf(&text, "Replayed %zu settings", summary->tried);
    if (summary->front_count)
        mt_buf_add_text(&text, "; no setting beats the listed ones (below the first row) in both "
                               "peak and driver calls. A driver call stalls the device");
    mt_buf_printf(&text, ".%s",
                  summary->devices > 1 ? " Peaks are those of the fullest device." : "");
    add_paragraph(out, &text);
}

/* Adds a note about failed requests. Settings are replayed without them, because a trace does not
 * show what would have followed if they had succeeded. */
static void add_ooms(struct mt_buf *out, const struct mt_tune_summary *summary)
{
    struct mt_buf text = {0};
    char count[MT_UNITS_TEXT];

    if (!summary->run_ooms)
        return;
    mt_buf_printf(&text,
                  "%s of the run failed; the figures are for the requests that succeeded. "
                  "'memtrace analyze' lists settings with which the last failed request succeeds.",
                  mt_format_counted(count, summary->run_ooms, "request"));
    add_paragraph(out, &text);
}

static void add_orders(struct mt_buf *out, const struct mt_tune_row *best)
{
    char text[MT_UNITS_TEXT], bytes[MT_UNITS_TEXT];
    struct mt_buf note = {0};

    if (!best->serves || !best->reserved_high_bytes)
        return;
    mt_buf_printf(&note,
                  "Addresses decided %s between equal free blocks. Over %d orders of "
                  "addresses, the best setting reserves at most %s.",
                  mt_format_counted(text, best->address_ties, "time"), MT_BASE_ORDERS,
                  mt_format_bytes(bytes, best->reserved_high_bytes));
    add_paragraph(out, &note);
}

static void add_notes(struct mt_buf *out, const struct mt_tune_answer *answer)
{
    mt_buf_add_char(out, '\n');
    add_method(out, answer->summary);
    add_ooms(out, answer->summary);
    add_orders(out, mt_tune_best(answer->summary));
}

void mt_tune_print_text(struct mt_buf *out, const struct mt_tune_answer *answer)
{
    const struct mt_style *style = mt_stdout_style();

    add_recommendation(out, answer, style);
    mt_buf_add_char(out, '\n');
    add_table(out, answer, style);
    add_notes(out, answer);
}

static void add_json_row(struct mt_json *json, const char *key, const struct mt_tune_answer *answer,
                         const struct mt_tune_row *row)
{
    mt_json_object_begin(json, key);
    mt_json_text(json, "conf", row->conf);
    mt_json_bool(json, "serves", row->serves);
    mt_json_u64(json, "reserved_peak_bytes", row->reserved_peak_bytes);
    mt_json_u64_or_null(json, "reserved_high_bytes", row->reserved_high_bytes,
                        row->reserved_high_bytes);
    mt_json_u64_or_null(json, "fit_bytes", answer->has_fits && row->fit_bytes, row->fit_bytes);
    mt_json_u64(json, "device_allocs", row->device_allocs);
    mt_json_u64(json, "device_frees", row->device_frees);
    mt_json_u64(json, "retries", row->retries);
    mt_json_u64(json, "address_ties", row->address_ties);
    mt_json_object_end(json);
}

void mt_tune_print_json(struct mt_buf *out, const struct mt_tune_answer *answer)
{
    const struct mt_tune_summary *summary = answer->summary;
    struct mt_json json;

    mt_json_document(&json, out, "memtrace.tune/1", false);
    mt_json_u64(&json, "settings_tried", summary->tried);
    mt_json_u64_or_null(&json, "limit_bytes", answer->limit_bytes, answer->limit_bytes);
    mt_json_u64(&json, "run_ooms", summary->run_ooms);
    add_json_row(&json, "current", answer, &summary->current);
    mt_json_bool(&json, "current_is_best", summary->best == MT_TUNE_CURRENT);
    add_json_row(&json, "best", answer, mt_tune_best(summary));
    mt_json_array_begin(&json, "front");
    for (size_t i = 0; i < summary->front_count; i++)
        add_json_row(&json, NULL, answer, &summary->front[i]);
    mt_json_array_end(&json);
    mt_json_object_end(&json);
}
