/* The file: a process for each device of the run. */
#include "perfetto.h"

#include "identity.h"
#include "perfetto_parts.h"
#include "protobuf.h"
#include "report_query.h"
#include "stable_hash.h"
#include "units.h"
#include "util.h"

/* Numbers of fields. */
enum {
    TRACK_UUID = 1,
    TRACK_PROCESS = 3,
    TRACK_ORDERING = 11,
    TRACK_DESCRIPTION = 14,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    CLOCKS_CLOCK = 1,
    CLOCKS_PRIMARY = 2,
    CLOCK_ID = 1,
    CLOCK_TIME = 2
};

enum { ORDERED = 3 };
enum { REALTIME = 1, MONOTONIC_COARSE = 4 }; /* numbers of clocks */

/* The system gives smaller numbers to its processes. */
enum { MAX_PID = 1 << 22 };

static uint64_t identity_of(const struct mt_report *report, const struct mt_trace_header *header,
                            const struct mt_identity *rank, uint64_t device)
{
    uint64_t hash = mt_stable_hash_text(MT_STABLE_HASH_START, report->name ? report->name : "");

    hash = mt_stable_hash_text(hash, rank->host);
    hash = mt_stable_hash_text(hash, rank->job);
    hash = mt_stable_hash_u64(hash, (uint64_t)rank->rank);
    hash = mt_stable_hash_u64(hash, header->process_id);
    hash = mt_stable_hash_u64(hash, report->first_t_ns);
    hash = mt_stable_hash_u64(hash, report->last_t_ns);
    return mt_stable_hash_u64(hash, device);
}

/* The process's own number, unless other processes of the same file may have it: other devices of
 * the run, or ranks on other hosts. */
static uint32_t pid_of(const struct mt_perfetto_process *process, uint64_t pid, int32_t rank,
                       uint32_t slot)
{
    if (pid && pid < MAX_PID && rank < 0 && slot == 0)
        return (uint32_t)pid;
    return MAX_PID + (uint32_t)((process->identity >> 33) % (INT32_MAX - MAX_PID));
}

static void add_name(struct mt_buf *name, const struct mt_perfetto_process *process, int32_t rank)
{
    mt_buf_add_text(name, process->report->name ? process->report->name : "run");
    if (rank >= 0)
        mt_buf_printf(name, ", rank %d", (int)rank);
    if (process->device)
        mt_buf_printf(name, ", device %u", (unsigned)process->device->device);
}

static void add_exactness(struct mt_buf *text, const struct mt_perfetto_process *process)
{
    const struct mt_perfetto_device *levels = process->levels;
    char events[MT_UNITS_TEXT], columns[MT_UNITS_TEXT];

    if (!levels)
        return;
    mt_format_count(events, levels->events);
    mt_format_count(columns, MT_PERFETTO_COLUMNS);
    if (mt_perfetto_is_exact(levels))
        mt_buf_printf(text, " Exact: the levels after each of %s events.", events);
    else
        mt_buf_printf(
            text,
            " Reduced: %s events in %s columns. A column has its largest level and that of "
            "its fullest instant, at their times, and its last level.",
            events, columns);
}

static void add_limits(struct mt_buf *text, const struct mt_perfetto_process *process,
                       const struct mt_trace_header *header)
{
    const struct mt_report *report = process->report;

    if (process->counts_events)
        mt_buf_add_text(text, " There are no times: one event takes 1 ns, and instants less than "
                              "four events apart share a profile.");
    if (report->starts_in_middle)
        mt_buf_add_text(text, " The recording starts in the middle of the run.");
    if (header->sizes_rounded)
        mt_buf_add_text(text, " Requested sizes were recorded rounded.");
    if (!report->has_segments)
        mt_buf_add_text(text, " Segments were not recorded: reserved is the sum of blocks.");
    if (report->phases_not_recorded)
        mt_buf_add_text(text, " Some phases are missing: they are too many or too deep.");
    if (report->integrity.events_dropped || report->integrity.cut ||
        report->integrity.frames_damaged || report->integrity.events_invalid)
        mt_buf_add_text(text, " Events are missing: the recording is damaged or incomplete.");
}

/* The description comes first, because it shows whose file it is. */
static void add_process(struct mt_perfetto_process *process, const char *description, int32_t rank)
{
    struct mt_buf track = {0}, descriptor = {0}, name = {0};

    add_name(&name, process, rank);
    mt_protobuf_add_text(&track, TRACK_DESCRIPTION, description);
    mt_protobuf_add_number(&track, TRACK_UUID, process->first_uuid);
    mt_protobuf_add_number(&track, TRACK_ORDERING, ORDERED);
    mt_protobuf_add_number(&descriptor, PROCESS_PID, process->pid);
    mt_protobuf_add_text(&descriptor, PROCESS_NAME, name.data);
    mt_protobuf_add_message(&track, TRACK_PROCESS, &descriptor);
    mt_packets_add(&process->packets, MT_PACKET_TRACK, &track, MT_PACKET_NO_TIME);
    mt_buf_release(&track);
    mt_buf_release(&descriptor);
    mt_buf_release(&name);
}

/* The clock of profiles is another one (process_dumps.timestamp in profile_packet.proto). Here both
 * have the same time. */
static void add_clocks(struct mt_perfetto_process *process)
{
    static const unsigned clocks[] = {REALTIME, MONOTONIC_COARSE};
    const uint64_t time = process->counts_events ? 0 : process->report->first_t_ns;
    struct mt_buf snapshot = {0};

    for (size_t i = 0; i < MT_ARRAY_LEN(clocks); i++) {
        struct mt_buf clock = {0};

        mt_protobuf_add_number(&clock, CLOCK_ID, clocks[i]);
        mt_protobuf_add_number(&clock, CLOCK_TIME, time);
        mt_protobuf_add_message(&snapshot, CLOCKS_CLOCK, &clock);
        mt_buf_release(&clock);
    }
    mt_protobuf_add_number(&snapshot, CLOCKS_PRIMARY, REALTIME);
    mt_packets_add(&process->packets, MT_PACKET_CLOCKS, &snapshot, time);
    mt_buf_release(&snapshot);
}

static const struct mt_perfetto_device *levels_of(const struct mt_perfetto_levels *levels,
                                                  uint16_t device)
{
    for (uint32_t i = 0; i < levels->device_count; i++)
        if (levels->devices[i]->device == device)
            return levels->devices[i];
    return NULL;
}

/* Phases are those of the run, so they are in its first process only. */
static void add_one(struct mt_perfetto_process *process, const struct mt_trace_header *header,
                    const struct mt_identity *rank, uint32_t slot)
{
    struct mt_buf description = {0}, exactness = {0};

    process->identity =
        identity_of(process->report, header, rank, process->device ? process->device->device : 0);
    process->first_uuid = ((process->identity & ((UINT64_C(1) << 40) - 1)) << 20) + 1;
    process->pid = pid_of(process, header->process_id, rank->rank, slot);
    process->packets.id = mt_perfetto_writer(process, 0);
    add_exactness(&exactness, process);
    mt_buf_add_text(&description, "memtrace:");
    mt_buf_add(&description, exactness.data, exactness.length);
    add_limits(&description, process, header);
    add_process(process, description.data, rank->rank);
    add_clocks(process);
    if (process->levels) {
        mt_perfetto_add_counters(process, exactness.data + 1);
        mt_perfetto_add_instants(process);
    }
    if (slot == 0)
        mt_perfetto_add_phases(process);
    if (process->levels)
        mt_perfetto_add_profiles(process);
    mt_packets_release(&process->packets);
    mt_buf_release(&description);
    mt_buf_release(&exactness);
}

void mt_perfetto_add(struct mt_buf *out, const struct mt_report *report,
                     const struct mt_trace_header *header, const struct mt_perfetto_levels *levels)
{
    struct mt_identity rank;

    mt_identity_read(header, report->path, &rank);
    for (uint32_t i = 0; i == 0 || i < report->device_count; i++) {
        const struct mt_device_report *device = report->device_count ? &report->devices[i] : NULL;
        struct mt_perfetto_process process = {
            .report = report,
            .device = device,
            .levels = device ? levels_of(levels, device->device) : NULL,
            .counts_events = report->is_dry_run || !mt_report_has_times(report),
            .packets = {.out = out, .report = report}};

        add_one(&process, header, &rank, i);
    }
}
