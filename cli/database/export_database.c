/* memtrace export sqlite: a recording as a database. */
#include "export_database.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "annexes.h"
#include "block_stream.h"
#include "buf.h"
#include "card_use.h"
#include "database_writer.h"
#include "layers_model.h"
#include "module_table.h"
#include "question_report.h"
#include "replay_result.h"
#include "report_query.h"
#include "util.h"

const char *mt_database_made_by(void)
{
    return MEMTRACE_VERSION;
}

static void write_stamp(struct mt_database_writer *writer, const struct mt_file_stamp *stamp)
{
    mt_row_setting_number(writer, "input_bytes", stamp->bytes);
    mt_row_setting_number(writer, "input_mtime_ns", stamp->mtime_ns);
    mt_row_setting_number(writer, "input_inode", stamp->inode);
}

static void write_settings(struct mt_database_writer *writer, const struct mt_report *report,
                           const struct mt_trace_header *header)
{
    mt_row_setting_number(writer, "schema", MT_DATABASE_VERSION);
    mt_row_setting(writer, "memtrace", mt_database_made_by());
    mt_row_setting(writer, "input", report->path);
    mt_row_setting(writer, "sha256", *report->sha256 ? report->sha256 : NULL);
    mt_row_setting(writer, "format", report->format);
    mt_row_setting(writer, "framework", report->framework);
    mt_row_setting(writer, "allocator_options", report->options);
    mt_row_setting(writer, "policy", report->policy);
    mt_row_setting(writer, "doubt", report->doubt);
    mt_row_setting(writer, "host", header->host);
    mt_row_setting(writer, "command", header->command);
    mt_row_setting_number(writer, "is_dry_run", report->is_dry_run);
    mt_row_setting_number(writer, "is_driver_level", report->is_driver_level);
    mt_row_setting_number(writer, "starts_in_middle", report->starts_in_middle);
    mt_row_setting_number(writer, "has_stacks", report->has_stacks);
    mt_row_setting_number(writer, "has_segments", report->has_segments);
    mt_row_setting_number(writer, "first_ns", (int64_t)report->first_t_ns);
    mt_row_setting_number(writer, "last_ns", (int64_t)report->last_t_ns);
    mt_row_setting_number(writer, "events_dropped", (int64_t)report->integrity.events_dropped);
    if (header->rank >= 0)
        mt_row_setting_number(writer, "rank", header->rank);
    if (header->world_size >= 0)
        mt_row_setting_number(writer, "world_size", header->world_size);
}

static void write_card(struct mt_database_writer *writer, const struct mt_report *report,
                       const struct mt_device_report *device)
{
    struct mt_card_use use = {0};
    bool is_known = mt_card_use_of(report, device, &use);

    mt_row_u64_or_null(writer, is_known, use.bytes);
    mt_row_u64_or_null(writer, is_known, use.allocator_bytes);
    mt_row_u64_or_null(writer, is_known, use.libraries_bytes);
    mt_row_u64_or_null(writer, is_known, use.cuda_bytes);
    mt_row_text(writer, is_known ? use.why_more : NULL);
}

static void write_device(struct mt_database_writer *writer, const struct mt_report *report,
                         const struct mt_device_report *device)
{
    mt_row_u64(writer, device->device);
    mt_row_text(writer, device->name);
    mt_row_u64_or_null(writer, device->total_memory_bytes, device->total_memory_bytes);
    mt_row_u64(writer, device->first_event);
    mt_row_u64(writer, device->last_event);
    mt_row_u64(writer, device->events);
    mt_row_u64(writer, device->allocations);
    mt_row_u64(writer, device->frees);
    mt_row_u64(writer, device->ooms);
    mt_row_u64(writer, device->retries);
    mt_row_u64(writer, device->complete);
    mt_row_u64(writer, mt_replay_matches_recording(&device->replay.verify));
    write_card(writer, report, device);
    mt_row_end(writer, MT_TABLE_DEVICES);
}

static void write_peak(struct mt_database_writer *writer, const struct mt_device_report *device,
                       const char *size, const struct mt_peak *peak)
{
    mt_row_u64(writer, device->device);
    mt_row_text(writer, size);
    mt_row_u64(writer, peak->bytes);
    mt_row_u64(writer, peak->event);
    mt_row_u64(writer, peak->t_ns);
    mt_row_phase(writer, peak->phase);
    mt_row_step(writer, peak->step);
    mt_row_bytes(writer, &peak->then);
    mt_row_end(writer, MT_TABLE_PEAKS);
}

static void write_peaks(struct mt_database_writer *writer, const struct mt_device_report *device)
{
    write_peak(writer, device, "requested", &device->requested_peak);
    write_peak(writer, device, "allocated", &device->allocated_peak);
    write_peak(writer, device, "active", &device->active_peak);
    write_peak(writer, device, "reserved", &device->reserved_peak);
}

static void write_instant(struct mt_database_writer *writer, const struct mt_device_report *device,
                          const char *kind, const struct mt_instant *instant)
{
    mt_row_null(writer); /* numbered by SQLite */
    mt_row_u64(writer, device->device);
    mt_row_text(writer, kind);
    mt_row_u64(writer, instant->event);
    mt_row_u64(writer, instant->t_ns);
    mt_row_phase(writer, instant->phase);
    mt_row_step(writer, instant->step);
    mt_row_bytes(writer, &instant->bytes);
    mt_row_end(writer, MT_TABLE_INSTANTS);
}

static void write_instants(struct mt_database_writer *writer, const struct mt_device_report *device)
{
    const struct mt_instant end = {.event = device->last_event,
                                   .t_ns = device->last_t_ns,
                                   .phase = MT_NO_PHASE,
                                   .step = MT_NO_STEP,
                                   .bytes = device->end};

    for (uint32_t i = 0; i < device->instant_count; i++)
        write_instant(writer, device, mt_instant_name(device->instants[i].kind),
                      &device->instants[i]);
    write_instant(writer, device, "end", &end);
}

static void write_level(struct mt_database_writer *writer, uint16_t device,
                        const struct mt_bin *bin)
{
    mt_row_u64(writer, device);
    mt_row_u64(writer, bin->event);
    mt_row_u64(writer, bin->t_ns);
    mt_row_u64(writer, bin->requested);
    mt_row_u64(writer, bin->allocated);
    mt_row_u64(writer, bin->active);
    mt_row_u64(writer, bin->reserved_max);
    mt_row_u64(writer, bin->allocated_min);
    mt_row_end(writer, MT_TABLE_LEVELS);
}

/* The four peaks in order of their events: rows of `levels` that the bins may not have. */
struct peak_rows {
    const struct mt_peak *peaks[4];
    uint16_t device;
    int next;
    uint64_t last_event; /* of the rows written so far */
};

static int by_event(const void *a, const void *b)
{
    const struct mt_peak *const *x = a, *const *y = b;

    return ((*x)->event > (*y)->event) - ((*x)->event < (*y)->event);
}

static struct peak_rows peak_rows_of(const struct mt_device_report *device)
{
    struct peak_rows rows = {.peaks = {&device->requested_peak, &device->allocated_peak,
                                       &device->active_peak, &device->reserved_peak},
                             .device = device->device,
                             .last_event = UINT64_MAX};

    qsort(rows.peaks, MT_ARRAY_LEN(rows.peaks), sizeof *rows.peaks, by_event);
    return rows;
}

static void write_bin(struct mt_database_writer *writer, struct peak_rows *rows,
                      const struct mt_bin *bin)
{
    write_level(writer, rows->device, bin);
    rows->last_event = bin->event;
}

static void write_peaks_before(struct mt_database_writer *writer, struct peak_rows *rows,
                               uint64_t event)
{
    for (; rows->next < (int)MT_ARRAY_LEN(rows->peaks); rows->next++) {
        const struct mt_peak *peak = rows->peaks[rows->next];
        const struct mt_bin bin = {.event = peak->event,
                                   .t_ns = peak->t_ns,
                                   .requested = peak->then.requested,
                                   .allocated = peak->then.allocated,
                                   .active = peak->then.active,
                                   .reserved_max = peak->then.reserved,
                                   .allocated_min = peak->then.allocated};

        if (peak->event >= event)
            return;
        if (peak->bytes && peak->event != rows->last_event)
            write_bin(writer, rows, &bin);
    }
}

/* Bins with one instant, because nothing was allocated in the later ones, are one row. */
static void write_levels(struct mt_database_writer *writer, const struct mt_device_report *device)
{
    const struct mt_timeline *timeline = device->timeline;
    struct peak_rows rows = peak_rows_of(device);

    for (uint32_t i = 0; timeline && i < timeline->bin_count;) {
        struct mt_bin bin = timeline->event_bins[i++];

        for (; i < timeline->bin_count && timeline->event_bins[i].event == bin.event; i++) {
            bin.reserved_max = mt_max_u64(bin.reserved_max, timeline->event_bins[i].reserved_max);
            bin.allocated_min =
                mt_min_u64(bin.allocated_min, timeline->event_bins[i].allocated_min);
        }
        write_peaks_before(writer, &rows, bin.event);
        write_bin(writer, &rows, &bin);
    }
    write_peaks_before(writer, &rows, UINT64_MAX);
}

static void write_phases(struct mt_database_writer *writer, const struct mt_report *report)
{
    for (uint32_t i = 0; i < report->phase_count; i++) {
        const struct mt_phase *phase = &report->phases[i];

        mt_row_u64(writer, i);
        mt_row_phase(writer, phase->parent);
        mt_row_u64(writer, phase->depth);
        mt_row_text(writer, phase->name);
        mt_row_text(writer, phase->path);
        mt_row_step(writer, phase->step);
        mt_row_u64(writer, phase->is_step);
        mt_row_u64(writer, phase->is_plumbing);
        mt_row_text(writer, mt_phase_source_name(phase->source));
        mt_row_u64(writer, phase->thread);
        mt_row_u64(writer, phase->begin_event);
        mt_row_u64(writer, phase->end_event);
        mt_row_u64(writer, phase->begin_t_ns);
        mt_row_u64(writer, phase->end_t_ns);
        mt_row_end(writer, MT_TABLE_PHASES);
    }
}

static void write_phase_memory(struct mt_database_writer *writer, const struct mt_report *report,
                               const struct mt_device_report *device)
{
    for (uint32_t i = 0; i < report->phase_count; i++) {
        const struct mt_phase_use *use = &device->phase_uses[i];

        mt_row_u64(writer, device->device);
        mt_row_u64(writer, i);
        mt_row_u64(writer, use->enter.allocated);
        mt_row_u64(writer, use->exit.allocated);
        mt_row_bytes(writer, &use->peak);
        mt_row_u64(writer, use->peak_allocated_event);
        mt_row_u64(writer, use->allocations);
        mt_row_u64(writer, use->frees);
        mt_row_end(writer, MT_TABLE_PHASE_MEMORY);
    }
}

static void write_steps(struct mt_database_writer *writer, const struct mt_report *report,
                        const struct mt_device_report *device)
{
    for (uint32_t i = 0; i < device->step_count; i++) {
        const struct mt_step_use *step = &device->steps[i];

        mt_row_u64(writer, device->device);
        mt_row_step(writer, step->step);
        mt_row_text(writer, step->loop == MT_NO_LOOP ? NULL : report->loops[step->loop].name);
        mt_row_phase(writer, step->phase);
        mt_row_u64(writer, step->begin_event);
        mt_row_u64(writer, step->end_event);
        mt_row_u64(writer, step->begin_t_ns);
        mt_row_u64(writer, step->end_t_ns);
        mt_row_u64(writer, step->enter.allocated);
        mt_row_u64(writer, step->exit.allocated);
        mt_row_bytes(writer, &step->peak);
        mt_row_u64(writer, step->peak_allocated_event);
        mt_row_u64(writer, step->peak_allocated_t_ns);
        mt_row_end(writer, MT_TABLE_STEPS);
    }
}

static void write_modules(struct mt_database_writer *writer, const struct mt_device_report *device)
{
    for (uint32_t i = 0; device->modules && i < device->modules->row_count; i++) {
        const struct mt_module_row *row = &device->modules->rows[i];

        for (int role = 0; role < MT_ROLE_COUNT; role++) {
            if (!row->role_bytes[role])
                continue;
            mt_row_u64(writer, device->device);
            mt_row_text(writer, row->label);
            mt_row_text(writer, mt_module_kind_name(row->kind));
            mt_row_u64_or_null(writer, row->layer != MT_NO_LAYER, row->layer);
            mt_row_text(writer, mt_role_name((enum mt_role)role));
            mt_row_u64(writer, row->role_bytes[role]);
            mt_row_u64(writer, row->role_requested_bytes[role]);
            mt_row_end(writer, MT_TABLE_MODULES);
        }
    }
}

static void write_finding(struct mt_database_writer *writer, const struct mt_device_report *device,
                          const struct mt_finding *finding)
{
    bool saves = finding->saving != MT_SAVING_UNKNOWN;
    struct mt_buf evidence = {0};

    for (uint32_t i = 0; i < finding->evidence_count; i++)
        mt_buf_printf(&evidence, "%s%s", i ? "\n" : "", finding->evidence[i]);
    mt_row_u64(writer, device->device);
    mt_row_text(writer, finding->id);
    mt_row_text(writer, finding->severity);
    mt_row_u64(writer, finding->bytes);
    mt_row_u64(writer, finding->bytes_per_step);
    mt_row_text(writer, finding->title);
    mt_row_text(writer, finding->advice);
    mt_row_text(writer, finding->cost);
    mt_row_text(writer, saves ? mt_saving_name(finding->saving) : NULL);
    mt_row_u64_or_null(writer, saves, finding->saves_bytes);
    mt_row_text(writer, finding->proved_by);
    mt_row_text(writer, evidence.data);
    mt_row_end(writer, MT_TABLE_FINDINGS);
    mt_buf_release(&evidence);
}

static void write_ooms(struct mt_block_stream *stream, const struct mt_device_report *device)
{
    struct mt_database_writer *writer = stream->writer;

    for (uint32_t i = 0; i < device->oom_count; i++) {
        const struct mt_oom *oom = &device->oom_list[i];

        mt_row_u64(writer, device->device);
        mt_row_u64(writer, oom->event);
        mt_row_u64(writer, oom->t_ns);
        mt_row_u64(writer, oom->request_bytes);
        mt_row_u64(writer, oom->device_free_bytes);
        mt_row_u64(writer, oom->fatal);
        mt_row_phase(writer, oom->phase);
        mt_row_step(writer, oom->step);
        mt_row_id(writer, oom->stack);
        mt_row_bytes(writer, &oom->then);
        mt_row_end(writer, MT_TABLE_OOMS);
        mt_block_stream_use(stream, oom->stack);
    }
}

static void write_driver(struct mt_database_writer *writer, const struct mt_driver_report *driver)
{
    for (uint32_t i = 0; i < driver->owner_count; i++) {
        const struct mt_owner_use *owner = &driver->owners[i];

        mt_row_u64(writer, driver->device);
        mt_row_text(writer, owner->library);
        mt_row_text(writer, owner->what);
        mt_row_text(writer, owner->call);
        mt_row_text(writer, owner->site);
        if (owner->communicator == MT_NO_COMMUNICATOR)
            mt_row_null(writer);
        else
            mt_row_i64(writer, owner->communicator);
        mt_row_u64(writer, owner->bytes);
        mt_row_u64(writer, owner->blocks);
        mt_row_end(writer, MT_TABLE_DRIVER);
    }
}

/* The names of another tool's database as views of this one, so that its queries run on exact
 * sizes: https://github.com/codeasier/pt-snap-cli, docs/en/database.md, layout v1.
 *
 * Their blocks that are older than the recording have negative numbers and no event. */
static const char block_view[] =
    "CREATE VIEW block_%u AS SELECT"
    " CASE WHEN is_initial THEN -block ELSE birth_event END AS id,"
    " address, bytes AS size, requested_bytes AS requestedSize,"
    " CASE WHEN is_initial THEN 1 WHEN completed_event IS NOT NULL THEN -1"
    " WHEN free_event IS NOT NULL THEN 0 ELSE 1 END AS state,"
    " CASE WHEN is_initial THEN -1 ELSE birth_event END AS allocEventId,"
    " ifnull(completed_event, -1) AS freeEventId"
    " FROM block_rows JOIN origins USING(origin) WHERE device = %u;";

/* Segments that are older than the recording have negative numbers; blocks have no event. Frames
 * are lines, the outermost first. */
static const char trace_view[] =
    "CREATE VIEW trace_entry_%u AS SELECT"
    " CASE WHEN e.event < d.first_event THEN e.event - d.first_event ELSE e.event END AS id,"
    " CASE e.kind WHEN 'segment_map' THEN 0 WHEN 'segment_unmap' THEN 1"
    " WHEN 'segment_alloc' THEN 2 WHEN 'segment_free' THEN 3 WHEN 'alloc' THEN 4"
    " WHEN 'free_requested' THEN 5 ELSE 6 END AS action,"
    " e.address, e.bytes AS size, s.handle AS stream, e.allocated_bytes AS allocated,"
    " e.active_bytes AS active, e.reserved_bytes AS reserved,"
    " (WITH RECURSIVE path(parent, frame, depth) AS ("
    "SELECT parent, frame, 0 FROM stacks WHERE stack = e.stack"
    " UNION ALL SELECT t.parent, t.frame, path.depth + 1"
    " FROM path JOIN stacks t ON t.stack = path.parent)"
    " SELECT group_concat(line, '\n') FROM ("
    "SELECT f.file || ':' || ifnull(f.line, 0) || ' ' || f.function AS line"
    " FROM path JOIN frames f USING(frame) ORDER BY path.depth DESC)) AS callstack"
    " FROM events e JOIN devices d USING(device) JOIN streams s USING(stream)"
    " WHERE e.device = %u AND (e.kind LIKE 'segment%%'"
    " OR e.kind IN ('alloc', 'free_requested', 'free_completed') AND e.event >= d.first_event);"
    /* The tool finds its devices by the names of tables, not of views: an empty one is enough. */
    "CREATE TABLE trace_entry_of_%u(callstack TEXT);";

static const char *const pt_snap_words[][3] = {
    {"trace_entry", "action", "segment_map 0 segment_unmap 1 segment_alloc 2 segment_free 3"},
    {"trace_entry", "action", "alloc 4 free_requested 5 free_completed 6 workspace_snapshot 7"},
    {"block", "state", "inactive -1 active_pending_free 0 active_allocated 1 unknown 99"}};

/* The words are pairs: a name and its number. */
static void add_words(struct mt_buf *sql, const char *const row[3], uint16_t device)
{
    const char *at = row[2];

    while (*at) {
        int name = (int)strcspn(at, " "), number = (int)strcspn(at + name + 1, " ");

        mt_buf_printf(sql, "INSERT INTO dictionary VALUES ('%s_%u', '%s', '%.*s', '%.*s');", row[0],
                      (unsigned)device, row[1], name, at, number, at + name + 1);
        at += name + 1 + number;
        at += *at == ' ';
    }
}

/* Adds the views of one device. trace_entry_N needs the table `events`. */
static void write_pt_snap_views(struct mt_database_writer *writer, uint16_t device,
                                bool with_events)
{
    unsigned n = device;
    struct mt_buf sql = {0};

    mt_buf_printf(&sql, block_view, n, n);
    if (with_events)
        mt_buf_printf(&sql, trace_view, n, n, n);
    for (size_t i = 0; i < MT_ARRAY_LEN(pt_snap_words); i++)
        add_words(&sql, pt_snap_words[i], device);
    mt_database_writer_execute(writer, sql.data);
    mt_buf_release(&sql);
}

static void write_report(struct mt_block_stream *stream, const struct mt_report *report,
                         const struct mt_trace_header *header)
{
    struct mt_database_writer *writer = stream->writer;

    write_settings(writer, report, header);
    write_phases(writer, report);
    for (uint32_t i = 0; i < report->device_count; i++) {
        const struct mt_device_report *device = &report->devices[i];

        write_device(writer, report, device);
        write_peaks(writer, device);
        write_instants(writer, device);
        write_levels(writer, device);
        write_phase_memory(writer, report, device);
        write_steps(writer, report, device);
        write_modules(writer, device);
        for (uint32_t j = 0; j < device->finding_count; j++)
            write_finding(writer, device, &device->findings[j]);
        write_ooms(stream, device);
        write_pt_snap_views(writer, device->device, stream->with_events);
    }
    for (uint32_t i = 0; i < report->driver_count; i++)
        write_driver(writer, &report->drivers[i]);
    mt_block_stream_finish(stream, report);
}

/* One row of `levels` for as many events each. */
enum { LEVELS = 16384 };

/* Sets *is_filled. The exit code also says whether the recording is damaged or incomplete. */
static int fill_run(struct mt_database_writer *writer, const struct mt_database_export *wanted,
                    bool *is_filled)
{
    struct mt_analyze_options options = {.path = wanted->input,
                                         .needs = true,
                                         .models = MT_MODEL_TIMELINE | MT_MODEL_MODULES,
                                         .bins = LEVELS};
    struct mt_block_stream stream = {.writer = writer, .with_events = wanted->with_events};
    struct mt_question_report asked;

    mt_block_stream_attach(&stream, &options);
    int code = mt_question_run_with(wanted->input, wanted->common, &options, &asked);
    *is_filled = code < 0;
    if (*is_filled) {
        write_report(&stream, asked.report, &asked.source->header);
        if (wanted->stamp)
            write_stamp(writer, wanted->stamp);
        code = mt_answer_verdict(MT_EXIT_OK, asked.source, wanted->input, wanted->common);
        mt_row_setting_number(writer, "is_damaged", code == MT_EXIT_INPUT);
    }
    mt_block_stream_release(&stream);
    mt_question_close(&asked);
    return code;
}

/* A folder, or a file with ranks of a job. */
static bool is_job(const char *path)
{
    struct stat facts;
    bool is_folder = stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);

    return mt_annex_files && (is_folder || mt_annex_files->is_own(path));
}

static int fill_job(struct mt_database_writer *writer, const struct mt_database_export *wanted,
                    bool *is_filled)
{
    int code = mt_annex_files->fill(writer, wanted->input, wanted->common);

    *is_filled = writer->rows > 0;
    return code;
}

/* Opening a FIFO would wait for its reader. */
static bool is_fifo(const char *path)
{
    struct stat facts;

    return stat(path, &facts) == 0 && S_ISFIFO(facts.st_mode);
}

static int say_no_file(const char *path)
{
    mt_message("cannot write '%s': a database needs a file", path);
    return MT_EXIT_USAGE;
}

static int write_file(const struct mt_database_export *wanted, struct mt_output *output,
                      uint64_t *rows, bool *is_filled)
{
    const bool holds_job = is_job(wanted->input);
    struct mt_database_writer writer;
    struct mt_error error;

    if (!mt_output_path(output))
        return say_no_file(wanted->output);
    if (holds_job && wanted->with_events) {
        mt_message("--events applies to one recording, and '%s' is a job of ranks", wanted->input);
        return MT_EXIT_USAGE;
    }
    if (mt_database_writer_open(&writer, mt_output_path(output),
                                holds_job ? mt_annex_files->schema : &mt_database_of_run, &error))
        return mt_report_output_error(wanted->output, &error);
    int code =
        holds_job ? fill_job(&writer, wanted, is_filled) : fill_run(&writer, wanted, is_filled);
    *rows = writer.rows;
    if (mt_database_writer_close(&writer, &error) && *is_filled) {
        *is_filled = false;
        code = mt_report_output_error(wanted->output, &error);
    }
    return code;
}

int mt_export_database(const struct mt_database_export *wanted, uint64_t *rows)
{
    const struct mt_output_rules rules = mt_output_rules_of(wanted->outputs, &mt_file_database);
    struct mt_output output;
    struct mt_error error;
    bool is_filled = false;

    *rows = 0;
    if (is_fifo(wanted->output))
        return say_no_file(wanted->output);
    if (mt_output_open(&output, wanted->output, &rules, &error))
        return mt_report_output_error(wanted->output, &error);
    int code = write_file(wanted, &output, rows, &is_filled);
    if (is_filled && mt_output_finish(&output, &error)) {
        is_filled = false;
        code = mt_report_output_error(wanted->output, &error);
    }
    if (!is_filled)
        *rows = 0;
    mt_output_abandon(&output);
    return code;
}
