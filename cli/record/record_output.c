#include "record_output.h"

#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "json.h"
#include "next_step.h"
#include "units.h"
#include "util.h"

struct lines {
    struct mt_buf *out;
    const struct mt_trace_end *end;
    const char *before;
};

static void begin_line(const struct lines *lines)
{
    const char *path = mt_short_path(lines->end->path);

    mt_buf_add_text(lines->out, lines->before);
    mt_buf_add_printable(lines->out, path, strlen(path));
    mt_buf_add_text(lines->out, ": ");
}

/* "26,671 events" */
static void add_events(struct mt_buf *out, uint64_t count)
{
    char digits[MT_UNITS_TEXT];

    mt_buf_add_text(out, mt_format_counted(digits, count, "event"));
}

/* "6.95 GiB (PyTorch: 5.90 GiB requested, 6.45 GiB reserved)" */
static void add_peaks(struct mt_buf *out, const struct mt_trace_summary *summary)
{
    char bytes[MT_UNITS_TEXT];
    bool inner = summary->device_known && (summary->blocks_known || summary->reserved_known);

    if (!summary->device_known && !summary->blocks_known && !summary->reserved_known)
        return;
    mt_buf_add_text(out, ", peak ");
    if (summary->device_known)
        mt_buf_add_text(out, mt_format_bytes(bytes, summary->device_peak_bytes));
    if (inner)
        mt_buf_add_text(out, " (PyTorch: ");
    if (summary->blocks_known)
        mt_buf_printf(out, "%s %s", mt_format_bytes(bytes, summary->blocks_peak_bytes),
                      summary->blocks_rounded ? "allocated" : "requested");
    if (summary->blocks_known && summary->reserved_known)
        mt_buf_add_text(out, ", ");
    if (summary->reserved_known)
        mt_buf_printf(out, "%s reserved", mt_format_bytes(bytes, summary->reserved_peak_bytes));
    if (inner)
        mt_buf_add_char(out, ')');
}

static void add_numbers(const struct lines *lines)
{
    const struct mt_trace_summary *summary = &lines->end->summary;
    struct mt_buf *out = lines->out;
    char span[MT_UNITS_TEXT];

    begin_line(lines);
    add_events(out, summary->events);
    if (summary->end_ns > summary->begin_ns) /* a dry run has no times */
        mt_buf_printf(out, " in %s", mt_format_duration(span, summary->end_ns - summary->begin_ns));
    add_peaks(out, summary);
    mt_buf_add_char(out, '\n');
}

static uint64_t recorded_ns(const struct mt_trace_summary *summary)
{
    return summary->end_ns - mt_min_u64(summary->end_ns, summary->ring_began_t_ns);
}

/* "recorded for 3,480 s, kept the last 303 s: 12,345 earlier events are left out" */
static void add_ring(const struct lines *lines)
{
    const struct mt_trace_summary *summary = &lines->end->summary;
    char all[MT_UNITS_TEXT], kept[MT_UNITS_TEXT], digits[MT_UNITS_TEXT];

    if (!summary->ring_left_out)
        return;
    begin_line(lines);
    mt_buf_printf(lines->out, "recorded for %s, kept the last %s: %s earlier event%s left out\n",
                  mt_format_duration(all, recorded_ns(summary)),
                  mt_format_duration(kept, summary->end_ns - summary->begin_ns),
                  mt_format_count(digits, summary->ring_left_out),
                  summary->ring_left_out == 1 ? " is" : "s are");
}

/* Reports a complete trace that lacks the important requests. */
static void add_xla(const struct lines *lines)
{
    if (!lines->end->summary.xla_requests_missing)
        return;
    begin_line(lines);
    mt_buf_add_text(lines->out,
                    "the trace lacks the requests to XLA's arena and has only the memory that the "
                    "arena took from the driver; record with --xla-requests\n");
}

/* Reports events that were recovered after an abnormal end. The next line reports lost events. */
static void add_recovery(const struct lines *lines)
{
    const struct mt_trace_end *end = lines->end;

    begin_line(lines);
    mt_buf_add_text(lines->out, "its process ended abnormally; ");
    add_events(lines->out, end->recovery.events_recovered);
    mt_buf_add_text(lines->out, " recovered from its tape");
    mt_buf_add_text(lines->out, end->summary.dropped ? "\n" : ", nothing lost\n");
}

/* "40,101 events lost: a reason (40,000); another (101)" */
static void add_lost(const struct lines *lines)
{
    const struct mt_trace_summary *summary = &lines->end->summary;
    char digits[MT_UNITS_TEXT];

    if (!summary->lost_count)
        return;
    begin_line(lines);
    add_events(lines->out, summary->dropped);
    mt_buf_add_text(lines->out, " lost: ");
    for (size_t i = 0; i < summary->lost_count; i++) {
        const struct mt_lost_text *lost = &summary->lost[i];
        const char *why = *lost->why ? lost->why : "no reason is recorded";
        mt_buf_add_text(lines->out, i ? "; " : "");
        mt_buf_add_printable(lines->out, why, strlen(why));
        if (summary->lost_count > 1)
            mt_buf_printf(lines->out, " (%s)", mt_format_count(digits, lost->events));
    }
    mt_buf_add_char(lines->out, '\n');
}

/* Prints one line for each item. */
static void add_not_recorded(const struct lines *lines)
{
    const char *at = lines->end->summary.not_recorded;

    while (*at) {
        size_t length = strcspn(at, "\n");

        begin_line(lines);
        mt_buf_add_text(lines->out, "not recorded: ");
        mt_buf_add_printable(lines->out, at, length);
        mt_buf_add_char(lines->out, '\n');
        at += length + (at[length] != '\0');
    }
}

/* Reports the numbers of events in the trace and on the tape. */
static void add_kept(struct mt_buf *out, const struct mt_trace_end *end)
{
    const struct mt_recovery *recovery = &end->recovery;
    char digits[MT_UNITS_TEXT];

    mt_buf_add_text(out, "; its tape is kept: ");
    if (end->has_trace) {
        add_events(out, recovery->events_written);
        mt_buf_add_text(out, " in the trace, ");
    }
    mt_buf_printf(out, "%s more on the tape, ", mt_format_count(digits, recovery->events_on_tape));
    mt_buf_printf(out, "%s lost", mt_format_count(digits, recovery->events_dropped));
}

static void add_lost_trace(struct mt_buf *out, const struct mt_trace_end *end)
{
    if (end->has_trace) {
        mt_buf_add_text(out, "; it could not be checked, and no tape is left");
        return;
    }
    if (!end->recovery.has_tape) {
        mt_buf_add_text(out, "; lost: the recording of this process");
    } else if (end->recovery.events_written) {
        mt_buf_add_text(out, "; lost: ");
        add_events(out, end->recovery.events_written);
    }
}

/* Reports why a trace could not be completed. */
static void add_failure(const struct lines *lines)
{
    const struct mt_trace_end *end = lines->end;
    const struct mt_recovery *recovery = &end->recovery;
    struct mt_buf *out = lines->out;

    begin_line(lines);
    mt_buf_add_printable(out, end->error.text, strlen(end->error.text));
    if (mt_trace_end_is_lost(end))
        add_lost_trace(out, end);
    if (recovery->has_tape && end->has_tape && end->state == MT_TRACE_FAILED)
        add_kept(out, end);
    if (recovery->has_tape && end->has_tape && end->error.status == MT_ERR_OUTPUT)
        mt_buf_add_text(out, "; to complete the trace later, use 'memtrace recover'");
    mt_buf_add_char(out, '\n');
}

static void add_faults(const struct lines *lines)
{
    const struct mt_trace_end *end = lines->end;
    const struct mt_finalize_result *native = &end->native;
    struct mt_buf *out = lines->out;

    add_lost(lines);
    add_not_recorded(lines);
    if (end->native_error.status != MT_OK) {
        begin_line(lines);
        mt_buf_add_text(out, "native frames are addresses without names: ");
        mt_buf_add_printable(out, end->native_error.text, strlen(end->native_error.text));
        mt_buf_add_char(out, '\n');
    }
    if (native->changed_modules || native->missing_modules) {
        begin_line(lines);
        mt_buf_printf(out, "%u of %u files with native code changed or no longer exist: ",
                      native->changed_modules + native->missing_modules, native->modules);
        mt_buf_add_printable(out, native->example, strlen(native->example));
        mt_buf_add_char(out, '\n');
    }
}

static void add_redaction(const struct lines *lines)
{
    const struct mt_error *error = &lines->end->redaction_error;

    if (error->status == MT_OK)
        return;
    begin_line(lines);
    mt_buf_add_text(lines->out, "not redacted: ");
    mt_buf_add_printable(lines->out, error->text, strlen(error->text));
    mt_buf_add_char(lines->out, '\n');
}

void mt_record_add_trace_end(struct mt_buf *out, const struct mt_trace_end *end, const char *before,
                             bool only_faults)
{
    const struct lines lines = {out, end, before};

    add_redaction(&lines);
    switch (end->state) {
    case MT_TRACE_RUNNING:
        begin_line(&lines);
        mt_buf_add_text(out, end->is_idle
                                 ? "its process still runs; its recording has not begun\n"
                                 : "its process still runs; the trace is complete when the "
                                   "process ends\n");
        return;
    case MT_TRACE_FAILED: add_failure(&lines); return;
    case MT_TRACE_INCOMPLETE:
    case MT_TRACE_WHOLE:
    case MT_TRACE_RECOVERED: break;
    }
    if (end->state == MT_TRACE_INCOMPLETE)
        add_failure(&lines);
    if (!only_faults) {
        add_numbers(&lines);
        add_ring(&lines);
        add_xla(&lines);
    }
    if (end->state == MT_TRACE_RECOVERED && (!only_faults || end->recovery.events_missing))
        add_recovery(&lines);
    add_faults(&lines);
}

static const char *state_word(const struct mt_trace_end *end)
{
    switch (end->state) {
    case MT_TRACE_WHOLE: return "whole";
    case MT_TRACE_RECOVERED: return "recovered";
    case MT_TRACE_INCOMPLETE: return "incomplete";
    case MT_TRACE_RUNNING: return end->is_idle ? "idle" : "running";
    case MT_TRACE_FAILED: break;
    }
    return "failed";
}

static void json_summary(struct mt_json *json, const struct mt_trace_summary *summary)
{
    mt_json_u64(json, "process_id", summary->process_id);
    if (summary->rank >= 0)
        mt_json_i64(json, "rank", summary->rank);
    mt_json_text(json, "sources", summary->sources);
    mt_json_u64(json, "bytes", summary->bytes);
    mt_json_u64(json, "events", summary->events);
    mt_json_u64(json, "duration_ns", summary->end_ns - summary->begin_ns);
    if (summary->ring_ns) {
        mt_json_u64(json, "ring_ns", summary->ring_ns);
        mt_json_u64(json, "recorded_ns", recorded_ns(summary));
        mt_json_u64(json, "events_left_out", summary->ring_left_out);
    }
    mt_json_u64_or_null(json, "device_peak_bytes", summary->device_known,
                        summary->device_peak_bytes);
    mt_json_u64_or_null(json, "requested_peak_bytes",
                        summary->blocks_known && !summary->blocks_rounded,
                        summary->blocks_peak_bytes);
    mt_json_u64_or_null(json, "allocated_peak_bytes",
                        summary->blocks_known && summary->blocks_rounded,
                        summary->blocks_peak_bytes);
    mt_json_u64_or_null(json, "reserved_peak_bytes", summary->reserved_known,
                        summary->reserved_peak_bytes);
    mt_json_bool(json, "xla_requests_missing", summary->xla_requests_missing);
    mt_json_u64(json, "events_dropped", summary->dropped);
}

static void json_lost(struct mt_json *json, const struct mt_trace_summary *summary)
{
    for (struct mt_json_list row = mt_json_rows(json, "dropped", summary->lost_count);
         mt_json_next(&row);) {
        mt_json_u64(json, "events", summary->lost[row.i].events);
        mt_json_text(json, "why", *summary->lost[row.i].why ? summary->lost[row.i].why : NULL);
    }
}

static void json_not_recorded(struct mt_json *json, const char *lines)
{
    char line[sizeof((struct mt_trace_summary *)0)->not_recorded];

    mt_json_array_begin(json, "not_recorded");
    while (*lines) {
        size_t length = strcspn(lines, "\n");

        snprintf(line, sizeof line, "%.*s", (int)length, lines);
        mt_json_text(json, NULL, line);
        lines += length + (lines[length] != '\0');
    }
    mt_json_array_end(json);
}

static void json_readable(struct mt_json *json, const struct mt_trace_end *end)
{
    json_summary(json, &end->summary);
    json_lost(json, &end->summary);
    json_not_recorded(json, end->summary.not_recorded);
    mt_json_u64(json, "events_recovered", end->recovery.events_recovered);
    mt_json_u64(json, "events_missing", end->recovery.events_missing);
    mt_json_u64(json, "native_frames", end->native.native_frames);
    mt_json_u64(json, "native_frames_named", end->native.named_frames);
}

/* Adds the contents of the tape if it could be read. */
static void json_kept(struct mt_json *json, const struct mt_recovery *recovery)
{
    mt_json_u64_or_null(json, "events_written", recovery->has_tape, recovery->events_written);
    mt_json_u64_or_null(json, "events_on_tape", recovery->has_tape, recovery->events_on_tape);
}

void mt_json_trace_end(struct mt_json *json, const struct mt_trace_end *end)
{
    bool failed = end->state == MT_TRACE_FAILED || end->state == MT_TRACE_INCOMPLETE;

    mt_json_object_begin(json, NULL);
    mt_json_text(json, "path", end->path);
    mt_json_text(json, "state", state_word(end));
    mt_json_bool(json, "complete", mt_trace_end_is_complete(end));
    if (end->state == MT_TRACE_FAILED || end->state == MT_TRACE_RUNNING)
        json_kept(json, &end->recovery);
    else
        json_readable(json, end);
    mt_json_text(json, "error", failed ? end->error.text : NULL);
    if (end->redaction_error.status != MT_OK)
        mt_json_text(json, "redaction_error", end->redaction_error.text);
    mt_json_object_end(json);
}
