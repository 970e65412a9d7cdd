#include "perfetto_parts.h"

/* An event under construction, on the tracks of one device. */
struct instants {
    struct mt_perfetto_process *process;
    struct mt_buf event;
    uint64_t track;
};

static void begin(struct instants *instants, const char *name)
{
    mt_perfetto_event(&instants->event, MT_PERFETTO_INSTANT, instants->track);
    mt_perfetto_event_name(instants->process, &instants->event, name);
    mt_perfetto_event_category(&instants->event, "memory");
}

static void end(struct instants *instants, uint64_t t_ns, uint64_t event)
{
    mt_perfetto_event_number(&instants->event, "event", event);
    mt_perfetto_event_end(instants->process, &instants->event,
                          mt_perfetto_time(instants->process, t_ns, event));
}

static void add_bytes(struct instants *instants, const struct mt_bytes *bytes)
{
    mt_perfetto_event_number(&instants->event, "requested", bytes->requested);
    mt_perfetto_event_number(&instants->event, "allocated", bytes->allocated);
    mt_perfetto_event_number(&instants->event, "active", bytes->active);
    mt_perfetto_event_number(&instants->event, "reserved", bytes->reserved);
}

static void add_peak(struct instants *instants, const char *name, const struct mt_peak *peak)
{
    begin(instants, name);
    add_bytes(instants, &peak->then);
    end(instants, peak->t_ns, peak->event);
}

/* NULL: it is added as something else. */
static const char *name_of(struct mt_arena *words, const struct mt_report *report,
                           const struct mt_instant *instant)
{
    const char *path = instant->phase == MT_NO_PHASE ? "" : report->phases[instant->phase].path;

    if (instant->kind == MT_INSTANT_STEP_PEAK)
        return mt_arena_printf(words, "peak of step %lld", (long long)instant->step);
    if (instant->kind == MT_INSTANT_PHASE_PEAK)
        return mt_arena_printf(words, "peak of %s", path);
    if (instant->kind == MT_INSTANT_PHASE_END)
        return mt_arena_printf(words, "end of %s", path);
    return NULL;
}

static void add_peaks(struct instants *instants, const struct mt_device_report *device)
{
    const struct mt_report *report = instants->process->report;
    struct mt_arena words = {0};

    add_peak(instants, "peak of requested", &device->requested_peak);
    add_peak(instants, "peak of allocated", &device->allocated_peak);
    add_peak(instants, "peak of active", &device->active_peak);
    add_peak(instants, "peak of reserved", &device->reserved_peak);
    for (uint32_t i = 0; i < device->instant_count; i++) {
        const struct mt_instant *instant = &device->instants[i];
        const char *name = name_of(&words, report, instant);

        if (!name)
            continue;
        begin(instants, name);
        add_bytes(instants, &instant->bytes);
        end(instants, instant->t_ns, instant->event);
    }
    mt_arena_release(&words);
}

static void add_ooms(struct instants *instants, const struct mt_device_report *device)
{
    for (uint32_t i = 0; i < device->oom_count; i++) {
        const struct mt_oom *oom = &device->oom_list[i];

        begin(instants, oom->fatal ? "out of memory, the end" : "out of memory");
        mt_perfetto_event_number(&instants->event, "request_bytes", oom->request_bytes);
        mt_perfetto_event_number(&instants->event, "device_free_bytes", oom->device_free_bytes);
        add_bytes(instants, &oom->then);
        mt_perfetto_event_stack(instants->process, &instants->event, oom->stack);
        end(instants, oom->t_ns, oom->event);
    }
}

static void add_retries(struct instants *instants, const struct mt_device_report *device)
{
    for (uint32_t i = 0; i < device->retry_mark_count; i++) {
        const struct mt_retry_mark *mark = &device->retry_marks[i];

        begin(instants, "retry");
        mt_perfetto_event_number(&instants->event, "retries", mark->retries);
        mt_perfetto_event_stack(instants->process, &instants->event,
                                instants->process->levels->retry_stacks[i]);
        end(instants, mark->t_ns, mark->event);
    }
}

static void add_releases(struct instants *instants, const struct mt_perfetto_device *levels)
{
    for (uint32_t i = 0; i < levels->release_count; i++) {
        const struct mt_perfetto_release *release = &levels->releases[i];

        begin(instants, "empty_cache");
        mt_perfetto_event_number(&instants->event, "calls", release->calls);
        mt_perfetto_event_stack(instants->process, &instants->event, release->stack);
        end(instants, release->t_ns, release->event);
    }
}

void mt_perfetto_add_instants(struct mt_perfetto_process *process)
{
    struct instants instants = {.process = process};

    instants.track = mt_perfetto_add_track(process, &(struct mt_perfetto_track){.name = "peaks"});
    add_peaks(&instants, process->device);
    if (process->device->oom_count || process->device->retry_mark_count ||
        process->levels->release_count)
        instants.track = mt_perfetto_add_track(
            process, &(struct mt_perfetto_track){.name = "events of the allocator"});
    add_ooms(&instants, process->device);
    add_retries(&instants, process->device);
    add_releases(&instants, process->levels);
    mt_buf_release(&instants.event);
}
