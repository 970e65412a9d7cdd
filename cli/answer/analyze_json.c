#include "analyze_output.h"
#include "gate_output.h"
#include "heaps.h"
#include "json.h"
#include "replay_json.h"
#include "report_json.h"
#include "report_query.h"

/* The part of `memtrace analyze --json` about programs of XLA. */

/* Adds "xla": null if `xla` is NULL. */
static void json_xla(struct mt_json *json, const struct mt_xla_use *xla)
{
    if (!xla) {
        mt_json_null(json, "xla");
        return;
    }
    mt_json_object_begin(json, "xla");
    mt_json_bool(json, "requests_missing", xla->requests_missing);
    for (struct mt_json_list row = mt_json_lines(json, "arenas", xla->arena_count);
         mt_json_next(&row);) {
        const struct mt_xla_arena *arena = &xla->arenas[row.i];

        mt_json_text(json, "policy", arena->policy);
        mt_json_bool(json, "preallocated", arena->preallocated);
        mt_json_u64(json, "peak_pool_bytes", arena->pool_bytes);
        mt_json_u64(json, "peak_bytes_in_use", arena->in_use_bytes);
        mt_json_u64(json, "num_allocs", arena->requests);
        mt_json_u64(json, "failures", arena->failures);
        mt_json_u64(json, "address_ties", arena->address_ties);
    }
    mt_json_object_end(json);
}

static const char *const why_names[] = {"phase_raised_peak", "phase_left_more", "step_peak_rose"};

static void add_peak(struct mt_json *json, const char *key, const struct mt_report *report,
                     const struct mt_peak *peak)
{
    mt_json_object_begin(json, key);
    mt_json_u64(json, "bytes", peak->bytes);
    mt_json_u64(json, "t_ns", peak->t_ns);
    mt_json_u64(json, "event", peak->event);
    mt_json_step(json, "step", peak->step);
    mt_json_text(json, "phase", mt_json_path_of(report, peak->phase));
    mt_json_bytes(json, "then", &peak->then);
    mt_json_object_end(json);
}

static void add_summary(struct mt_json *json, const struct mt_report *report,
                        const struct mt_device_report *device)
{
    mt_json_object_begin(json, "summary");
    mt_json_u64(json, "events", device->events);
    mt_json_u64(json, "allocations", device->allocations);
    mt_json_u64(json, "frees", device->frees);
    mt_json_u64(json, "segments_peak", device->segments_peak);
    mt_json_u64(json, "ooms", device->ooms);
    mt_json_u64(json, "retries", device->retries);
    mt_json_bool(json, "complete", device->complete);
    add_peak(json, "requested_peak", report, &device->requested_peak);
    add_peak(json, "allocated_peak", report, &device->allocated_peak);
    add_peak(json, "active_peak", report, &device->active_peak);
    add_peak(json, "reserved_peak", report, &device->reserved_peak);
    mt_json_share(json, "fragmentation_at_reserved_peak",
                  mt_unused_share(&device->reserved_peak.then));
    mt_json_u64(json, "worst_unused_bytes", device->worst_unused_bytes);
    mt_json_u64(json, "worst_unused_t_ns", device->worst_unused_t_ns);
    mt_json_u64(json, "frameless_bytes_at_allocated_peak", device->frameless_peak_bytes);
    mt_json_limit(json, &device->replay);
    mt_json_u64_or_null(json, "total_memory_bytes", device->total_memory_bytes,
                        device->total_memory_bytes);
    mt_json_bytes(json, "start", &device->start);
    mt_json_bytes(json, "end", &device->end);
    mt_json_object_end(json);
}

/* The smallest limit of the allocator; null if unknown. */
static void add_need(struct mt_json *json, const struct mt_need *need)
{
    if (!need) {
        mt_json_null(json, "need");
        return;
    }
    mt_json_object_begin(json, "need");
    mt_json_u64(json, "limit_bytes", need->bytes - need->above_limit_bytes);
    mt_json_u64(json, "best_order_bytes", need->low_bytes - need->above_limit_bytes);
    mt_json_u64(json, "above_limit_bytes", need->above_limit_bytes);
    mt_json_u64(json, "address_orders", need->order_count);
    mt_json_bool(json, "other_orders_untried", need->is_one_of_many);
    mt_json_bool(json, "depends_on_memory", need->depends_on_memory);
    mt_json_object_end(json);
}

static void add_device_parts(struct mt_json *json, const struct mt_device_parts *device_parts)
{
    if (!device_parts) {
        mt_json_null(json, "device_parts");
        return;
    }
    mt_json_object_begin(json, "device_parts");
    mt_json_u64(json, "total_bytes", device_parts->total_bytes);
    mt_json_bool(json, "context_is_known", device_parts->context_is_known);
    mt_json_u64_or_null(json, "context_t_ns", device_parts->context_is_known,
                        device_parts->context_t_ns);
    mt_json_u64_or_null(json, "context_event", device_parts->context_is_known,
                        device_parts->context_event);
    mt_json_object_begin(json, "parts");
    for (int i = 0; i < MT_DEVICE_PART_COUNT; i++)
        mt_json_u64(json, mt_device_part_name((enum mt_device_part)i), device_parts->parts[i]);
    mt_json_object_end(json);
    mt_json_u64_or_null(json, "largest_kv_cache_bytes", !device_parts->died,
                        mt_largest_kv_cache(device_parts));
    mt_json_object_end(json);
}

static void add_growth(struct mt_json *json, const struct mt_growth *growth)
{
    mt_json_object_begin(json, "growth");
    mt_json_u64_or_null(json, "bytes_per_step", growth->judged, growth->bytes_per_step);
    mt_json_u64(json, "steps", growth->steps);
    mt_json_object_end(json);
}

static void add_verify(struct mt_json *json, const struct mt_report *report,
                       const struct mt_device_report *device)
{
    const struct mt_replay_verify *verify = &device->replay.verify;
    const struct mt_rule_share *by_rule = &device->replay.by_rule;

    mt_json_object_begin(json, "verify");
    mt_json_text(json, "policy", report->policy);
    mt_json_bool(json, "exact", mt_replay_matches_recording(verify));
    mt_json_u64(json, "pools_inferred", device->replay.pools_inferred);
    mt_json_restores(json, &device->replay.restores);
    mt_json_u64(json, "allocations", verify->allocations);
    mt_json_u64(json, "addresses_exact", verify->addresses_exact);
    mt_json_u64(json, "segment_events", verify->segment_events);
    mt_json_u64(json, "segment_events_exact", verify->segment_events_exact);
    mt_json_u64(json, "ooms", verify->ooms);
    mt_json_u64(json, "ooms_exact", verify->ooms_exact);
    mt_json_covered(json, verify);
    mt_json_text(json, "first_difference",
                 verify->first_difference[0] ? verify->first_difference : NULL);
    mt_json_bool(json, "taken_over", device->replay.is_taken_over);
    mt_json_u64_or_null(json, "addresses_exact_by_rule", by_rule->was_tried,
                        by_rule->addresses_exact);
    mt_json_u64_or_null(json, "segment_events_exact_by_rule", by_rule->was_tried,
                        by_rule->segment_events_exact);
    mt_json_text(json, "pytorch_first_difference", report->pytorch_difference);
    mt_json_u64(json, "failed_requests", device->replay.failed_requests);
    mt_json_u64_or_null(json, "first_failure_event", device->has_failure,
                        device->first_failure.event);
    mt_json_object_end(json);
}

static void add_phases(struct mt_json *json, const struct mt_report *report,
                       const struct mt_device_report *device)
{
    for (struct mt_json_list row = mt_json_lines(json, "phases", report->phase_count);
         mt_json_next(&row);) {
        const struct mt_phase *phase = &report->phases[row.i];
        const struct mt_phase_use *use = &device->phase_uses[row.i];

        mt_json_text(json, "path", phase->path);
        mt_json_text(json, "name", phase->name);
        mt_json_step(json, "step", phase->step);
        mt_json_u64(json, "thread", phase->thread);
        mt_json_u64(json, "begin_ns", phase->begin_t_ns);
        mt_json_u64(json, "end_ns", phase->end_t_ns);
        mt_json_u64(json, "begin_event", phase->begin_event);
        mt_json_u64(json, "end_event", phase->end_event);
        mt_json_bool(json, "cut", phase->cut);
        mt_json_bool(json, "recorded", mt_report_covers(report, device, phase->end_event));
        mt_json_bool(json, "framework", phase->is_plumbing);
        mt_json_text(json, "source", mt_phase_source_name(phase->source));
        mt_json_bytes(json, "enter", &use->enter);
        mt_json_bytes(json, "exit", &use->exit);
        mt_json_bytes(json, "peak", &use->peak);
        mt_json_u64(json, "allocations", use->allocations);
        mt_json_u64(json, "frees", use->frees);
        mt_json_bool(json, "raises_peak", use->raises_peak);
    }
}

static void add_site_rows(struct mt_json *json, struct mt_arena *arena,
                          const struct mt_report *report, const char *key,
                          const struct mt_site_use *sites, uint32_t count)
{
    for (struct mt_json_list row = mt_json_lines(json, key, count); mt_json_next(&row);) {
        const struct mt_site_use *site = &sites[row.i];

        mt_json_text(json, "site", site->site);
        mt_json_stack(json, arena, report, site->stack);
        mt_json_u64(json, "bytes", site->bytes);
        mt_json_u64(json, "blocks", site->blocks);
        mt_json_text(json, "phase", *site->phase ? site->phase : NULL);
        mt_json_text(json, "role", mt_role_name(site->role));
    }
}

/* Adds the tags that the program set; no member if there are none. */
static void add_tags(struct mt_json *json, const struct mt_device_report *device)
{
    if (!device->peak_tag_count)
        return;
    for (struct mt_json_list row = mt_json_lines(json, "tags_at_peak", device->peak_tag_count);
         mt_json_next(&row);) {
        const struct mt_tag_use *use = &device->peak_tags[row.i];

        mt_json_text(json, "tag", use->tag);
        mt_json_text(json, "role", use->names_role ? mt_role_name(use->role) : NULL);
        mt_json_u64(json, "bytes", use->bytes);
        mt_json_u64(json, "requested_bytes", use->requested_bytes);
        mt_json_u64(json, "blocks", use->blocks);
    }
}

/* Roles with their evidence, and the bytes of unknown origin. */
static void add_origins(struct mt_json *json, const struct mt_report *report,
                        const struct mt_device_report *device)
{
    const struct mt_role_origins origins = mt_role_origins_of(report, device);

    mt_json_object_begin(json, "roles_known");
    mt_json_u64(json, "recorded_bytes", origins.recorded_bytes);
    mt_json_u64(json, "inferred_bytes", origins.inferred_bytes);
    mt_json_u64(json, "guessed_bytes", origins.guessed_bytes);
    mt_json_object_end(json);
    mt_json_array_begin(json, "roles_at_peak");
    for (int role = 0; role < MT_ROLE_COUNT; role++) {
        if (!device->peak_role_bytes[role])
            continue;
        mt_json_row_begin(json);
        mt_json_text(json, "role", mt_role_name((enum mt_role)role));
        mt_json_u64(json, "bytes", device->peak_role_bytes[role]);
        mt_json_bool(json, "inferred",
                     device->peak_recorded_role_bytes[role] < device->peak_role_bytes[role]);
        mt_json_u64(json, "recorded_bytes", device->peak_recorded_role_bytes[role]);
        mt_json_row_end(json);
    }
    mt_json_array_end(json);
    add_tags(json, device);
    mt_json_object_begin(json, "frameless_at_peak");
    for (int tie = 0; tie < MT_TIE_COUNT; tie++)
        mt_json_u64(json, mt_tie_name((enum mt_tie)tie), device->tie_peak_bytes[tie]);
    mt_json_object_end(json);
    mt_json_u64(json, "unattributed_bytes_at_peak", device->tie_peak_bytes[MT_TIE_NONE]);
}

static void add_steps(struct mt_json *json, const struct mt_report *report,
                      const struct mt_device_report *device)
{
    for (struct mt_json_list row = mt_json_lines(json, "steps", device->step_count);
         mt_json_next(&row);) {
        const struct mt_step_use *step = &device->steps[row.i];

        mt_json_u64(json, "index", row.i);
        mt_json_step(json, "step", step->step);
        if (step->loop != MT_NO_LOOP) {
            mt_json_u64(json, "loop", step->loop);
            mt_json_text(json, "loop_line", report->loops[step->loop].name);
        }
        mt_json_text(json, "source", mt_phase_source_name(report->phases[step->phase].source));
        mt_json_u64(json, "begin_ns", step->begin_t_ns);
        mt_json_u64(json, "end_ns", step->end_t_ns);
        mt_json_bool(json, "recorded", mt_report_covers(report, device, step->end_event));
        mt_json_bytes(json, "enter", &step->enter);
        mt_json_bytes(json, "exit", &step->exit);
        mt_json_bytes(json, "peak", &step->peak);
        mt_json_u64(json, "end_allocated", step->exit.allocated);
        mt_json_u64(json, "peak_t_ns", step->peak_allocated_t_ns);
        mt_json_u64(json, "peak_event", step->peak_allocated_event);
    }
}

static void add_idle(struct mt_json *json, const struct mt_report *report,
                     const struct mt_device_report *device)
{
    for (struct mt_json_list row = mt_json_lines(json, "idle", device->idle_count);
         mt_json_next(&row);) {
        const struct mt_idle_use *idle = &device->idle[row.i];

        mt_json_text(json, "phase", mt_json_path_of(report, idle->phase));
        mt_json_text(json, "role", mt_role_name(idle->role));
        mt_json_u64(json, "bytes", idle->bytes);
        mt_json_u64(json, "movable_bytes", idle->movable_bytes);
    }
}

static void add_ooms(struct mt_json *json, struct mt_arena *arena, const struct mt_report *report,
                     const struct mt_device_report *device)
{
    for (struct mt_json_list row = mt_json_lines(json, "ooms", device->oom_count);
         mt_json_next(&row);) {
        const struct mt_oom *oom = &device->oom_list[row.i];

        mt_json_u64(json, "t_ns", oom->t_ns);
        mt_json_u64(json, "event", oom->event);
        mt_json_u64(json, "request_bytes", oom->request_bytes);
        mt_json_u64(json, "device_free_bytes", oom->device_free_bytes);
        mt_json_step(json, "step", oom->step);
        mt_json_text(json, "phase", mt_json_path_of(report, oom->phase));
        mt_json_bool(json, "fatal", oom->fatal);
        mt_json_bytes(json, "then", &oom->then);
        mt_json_stack(json, arena, report, oom->stack);
    }
}

static void add_contributions(struct mt_json *json, const struct mt_explanation *why)
{
    for (struct mt_json_list row = mt_json_lines(json, "contributions", why->contribution_count);
         mt_json_next(&row);) {
        const struct mt_contribution *part = &why->contributions[row.i];

        mt_json_text(json, "site", part->site);
        mt_json_text(json, "phase", *part->phase ? part->phase : NULL);
        mt_json_step(json, "step", part->step);
        mt_json_text(json, "role", part->site ? mt_role_name(part->role) : NULL);
        mt_json_i64(json, "bytes", part->bytes);
        mt_json_i64(json, "blocks", part->blocks);
    }
}

static void add_explanations(struct mt_json *json, const struct mt_report *report,
                             const struct mt_device_report *device)
{
    for (struct mt_json_list row = mt_json_rows(json, "explanations", device->explanation_count);
         mt_json_next(&row);) {
        const struct mt_explanation *why = &device->explanations[row.i];

        mt_json_text(json, "kind", why_names[why->kind]);
        mt_json_text(json, "phase", mt_json_path_of(report, why->phase));
        mt_json_step(json, "step", why->step);
        mt_json_step(json, "other_step", why->other_step);
        mt_json_u64(json, "from_bytes", why->from_bytes);
        mt_json_u64(json, "to_bytes", why->to_bytes);
        add_contributions(json, why);
    }
}

static void add_instants(struct mt_json *json, const struct mt_report *report,
                         const struct mt_device_report *device)
{
    for (struct mt_json_list row = mt_json_lines(json, "instants", device->instant_count);
         mt_json_next(&row);) {
        const struct mt_instant *instant = &device->instants[row.i];

        mt_json_text(json, "kind", mt_instant_name(instant->kind));
        mt_json_u64(json, "t_ns", instant->t_ns);
        mt_json_u64(json, "event", instant->event);
        mt_json_step(json, "step", instant->step);
        mt_json_text(json, "phase", mt_json_path_of(report, instant->phase));
        mt_json_bytes(json, "bytes", &instant->bytes);
    }
}

static void add_level(struct mt_json *json, const char *key, const struct mt_report *report,
                      const struct mt_driver_level *level)
{
    mt_json_object_begin(json, key);
    mt_json_u64(json, "bytes", level->bytes);
    mt_json_u64(json, "framework_bytes", level->framework_bytes);
    mt_json_u64(json, "outside_bytes", level->bytes - level->framework_bytes);
    mt_json_u64(json, "t_ns", level->t_ns);
    mt_json_u64(json, "event", level->event);
    mt_json_text(json, "phase", mt_json_path_of(report, level->phase));
    mt_json_object_end(json);
}

static void add_heaps(struct mt_json *json, const struct mt_driver_report *driver)
{
    for (struct mt_json_list row = mt_json_lines(json, "heaps", driver->heap_count);
         mt_json_next(&row);) {
        const struct mt_heap_use *heap = &driver->heaps[row.i];

        mt_json_text(json, "name", heap->name);
        mt_json_bool(json, "is_device_memory", heap->is_device_memory);
        mt_json_u64(json, "allocations", heap->allocations);
        mt_json_u64(json, "frees", heap->frees);
        mt_json_u64(json, "failures", heap->failures);
        mt_json_u64(json, "live_blocks", heap->live_blocks);
        mt_json_u64(json, "live_bytes", heap->live_bytes);
        mt_json_u64(json, "peak_bytes", heap->peak_bytes);
        mt_json_u64(json, "peak_t_ns", heap->peak_t_ns);
        mt_json_u64(json, "peak_event", heap->peak_event);
    }
}

/* null if there are no samples. */
static void add_residual(struct mt_json *json, const struct mt_residual *residual)
{
    if (!residual->samples) {
        mt_json_null(json, "residual");
        return;
    }
    mt_json_object_begin(json, "residual");
    mt_json_text(json, "tracked_from",
                 residual->tracked_from == MT_TRACKED_DRIVER ? "driver" : "segments");
    mt_json_u64(json, "samples", residual->samples);
    mt_json_u64(json, "t_ns", residual->t_ns);
    mt_json_u64(json, "event", residual->event);
    mt_json_u64(json, "used_by_process_bytes", residual->used_bytes);
    mt_json_u64(json, "tracked_bytes", residual->tracked_bytes);
    mt_json_i64(json, "bytes", (int64_t)(residual->used_bytes - residual->tracked_bytes));
    mt_json_i64(json, "least_bytes", residual->least_bytes);
    mt_json_i64(json, "most_bytes", residual->most_bytes);
    mt_json_object_end(json);
}

static void add_failures(struct mt_json *json, struct mt_arena *arena,
                         const struct mt_report *report, const struct mt_driver_report *driver)
{
    mt_json_u64(json, "failure_count", driver->failures_in_all);
    for (struct mt_json_list row = mt_json_lines(json, "failures", driver->failure_count);
         mt_json_next(&row);) {
        const struct mt_driver_failure *failure = &driver->failures[row.i];

        mt_json_u64(json, "t_ns", failure->t_ns);
        mt_json_u64(json, "event", failure->event);
        mt_json_text(json, "heap", mt_heap_name(report->symbols, failure->heap));
        mt_json_u64(json, "request_bytes", failure->request_bytes);
        mt_json_u64(json, "held_bytes", failure->held_bytes);
        mt_json_text(json, "phase", mt_json_path_of(report, failure->phase));
        mt_json_stack(json, arena, report, failure->stack);
    }
}

static void add_owners(struct mt_json *json, const struct mt_driver_report *driver)
{
    for (struct mt_json_list row = mt_json_lines(json, "owners", driver->owner_count);
         mt_json_next(&row);) {
        const struct mt_owner_use *owner = &driver->owners[row.i];

        mt_json_text(json, "library", owner->library);
        mt_json_text(json, "what", owner->what);
        mt_json_text(json, "call", owner->call);
        if (owner->communicator != MT_NO_COMMUNICATOR)
            mt_json_u64(json, "communicator", (uint64_t)owner->communicator);
        else
            mt_json_null(json, "communicator");
        mt_json_text(json, "site", owner->site);
        mt_json_u64(json, "bytes", owner->bytes);
        mt_json_u64(json, "blocks", owner->blocks);
    }
    mt_json_u64(json, "communicator_count", driver->communicator_count);
}

static void add_communicators(struct mt_json *json, const struct mt_driver_report *driver)
{
    if (!driver->told_communicator_count)
        return;
    for (struct mt_json_list row =
             mt_json_lines(json, "communicators", driver->told_communicator_count);
         mt_json_next(&row);) {
        const struct mt_communicator_use *of = &driver->communicators[row.i];

        mt_json_u64_or_null(json, "communicator", of->communicator != MT_NO_COMMUNICATOR,
                            (uint64_t)of->communicator);
        mt_json_communicator(json, of->id, of->rank, of->ranks, of->registered_peak_bytes);
    }
}

static void add_driver(struct mt_json *json, struct mt_arena *arena, const struct mt_report *report,
                       const struct mt_driver_report *driver)
{
    mt_json_u64(json, "device", driver->device);
    mt_json_bool(json, "calls_recorded", driver->has_calls);
    add_level(json, "peak", report, &driver->peak);
    if (driver->has_then)
        add_level(json, "at_allocated_peak", report, &driver->then);
    else
        mt_json_null(json, "at_allocated_peak");
    add_site_rows(json, arena, report, "outside_sites", driver->outside_sites,
                  driver->outside_site_count);
    add_owners(json, driver);
    add_communicators(json, driver);
    add_heaps(json, driver);
    add_residual(json, &driver->residual);
    add_failures(json, arena, report, driver);
}

/* Only recorded traces have events outside of a framework. */
static void add_drivers(struct mt_json *json, struct mt_arena *arena,
                        const struct mt_report *report)
{
    if (!report->driver_count)
        return;
    mt_json_text(json, "level", report->is_driver_level ? "driver" : "framework");
    for (struct mt_json_list row = mt_json_objects(json, "driver", report->driver_count);
         mt_json_next(&row);)
        add_driver(json, arena, report, &report->drivers[row.i]);
}

static void add_pools(struct mt_json *json, const struct mt_device_report *device)
{
    for (struct mt_json_list row = mt_json_lines(json, "pools", device->pool_count);
         mt_json_next(&row);) {
        const struct mt_pool_use *pool = &device->pools[row.i];

        mt_json_u64_or_null(json, "id_a", !pool->is_inferred, pool->id[0]);
        mt_json_u64_or_null(json, "id_b", !pool->is_inferred, pool->id[1]);
        mt_json_u64(json, "reserved_bytes", pool->reserved_bytes);
        mt_json_u64(json, "allocated_bytes", pool->allocated_bytes);
        mt_json_u64(json, "reserved_peak_bytes", pool->reserved_peak_bytes);
        mt_json_u64(json, "allocated_peak_bytes", pool->allocated_peak_bytes);
        mt_json_u64(json, "segments", pool->segments);
        mt_json_u64(json, "allocations", pool->allocations);
        mt_json_u64(json, "first_event", pool->first_event);
        mt_json_text(json, "first_site", pool->site);
    }
}

static void add_device(struct mt_json *json, struct mt_arena *arena, const struct mt_report *report,
                       const struct mt_device_report *device)
{
    struct mt_card_use card;

    mt_json_u64(json, "device", device->device);
    mt_json_text(json, "name", device->name);
    add_summary(json, report, device);
    mt_json_card(json, mt_card_use_of(report, device, &card) ? &card : NULL);
    add_need(json, device->need);
    mt_json_peak_orders(json, device->peak_orders);
    json_xla(json, device->xla);
    add_growth(json, &device->growth);
    add_device_parts(json, device->device_parts);
    add_verify(json, report, device);
    add_phases(json, report, device);
    add_site_rows(json, arena, report, "peak_sites", device->peak_sites, device->peak_site_count);
    mt_json_peak_roles(json, device->peak_role_bytes);
    add_origins(json, report, device);
    mt_json_modules(json, device->modules);
    add_pools(json, device);
    add_steps(json, report, device);
    add_idle(json, report, device);
    add_ooms(json, arena, report, device);
    mt_json_oom_answer(json, report, device);
    add_explanations(json, report, device);
    add_instants(json, report, device);
    mt_json_findings(json, device);
    mt_json_text(json, "no_finding", device->no_finding);
}

void mt_analyze_json(struct mt_buf *out, const struct mt_report *report,
                     const struct mt_gates *gates, bool all)
{
    struct mt_arena arena = {0};
    struct mt_json json;

    mt_json_document(&json, out, "memtrace.analyze/1", all);
    mt_json_input(&json, report);
    mt_json_text(&json, "policy", report->policy);
    mt_json_bool(&json, "roles_inferred", report->roles_inferred);
    for (struct mt_json_list row = mt_json_objects(&json, "devices", report->device_count);
         mt_json_next(&row);)
        add_device(&json, &arena, report, &report->devices[row.i]);
    add_drivers(&json, &arena, report);
    mt_json_gates(&json, gates);
    mt_json_object_end(&json);
    if (out->length && out->data[out->length - 1] != '\n')
        mt_buf_add_char(out, '\n');
    mt_arena_release(&arena);
}
