/* The optimizer's state for each parameter, if it is a large part of the peak. That optimizer needs
 * it; others keep less, and ranks can share it. */
#include "finding.h"

#include "units.h"

enum { MIN_SHARE = 10 }; /* of the peak */

static const struct mt_framework_texts advice = {
    {[MT_FRAMEWORK_UNKNOWN] =
         "an optimizer with less state (Adafactor, Lion, SGD), or shard the state over the devices",
     [MT_FRAMEWORK_TORCH] =
         "an optimizer with less state (8-bit Adam of bitsandbytes, Adafactor, SGD), or shard the "
         "state over the ranks (ZeroRedundancyOptimizer, FSDP)",
     [MT_FRAMEWORK_JAX] = "an optimizer with less state (optax.adafactor, optax.lion, SGD), or "
                          "shard the state over the devices (jax.sharding)",
     [MT_FRAMEWORK_TENSORFLOW] =
         "an optimizer with less state (tf.keras.optimizers.Adafactor, Lion, SGD), or shard the "
         "state over the devices (tf.distribute)"}};

static const struct mt_framework_texts cost = {
    {[MT_FRAMEWORK_UNKNOWN] = "another optimizer changes the results; sharding adds communication",
     [MT_FRAMEWORK_TORCH] = "8-bit state changes the numerics; sharding adds communication"}};

static enum mt_status find(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = device->allocated_peak.bytes,
                   bytes = device->peak_role_bytes[MT_ROLE_OPTIMIZER_STATE],
                   parameters = device->peak_role_bytes[MT_ROLE_PARAMETERS];
    const char *evidence[1];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {.id = "optimizer-state",
                                 .severity = "info",
                                 .bytes = bytes,
                                 .evidence = evidence,
                                 .evidence_count = 1,
                                 .advice = mt_framework_text(search, &advice),
                                 .cost = mt_framework_text(search, &cost)};

    if (!mt_finding_matters(bytes, peak) || bytes < peak / MIN_SHARE)
        return MT_OK;
    finding.title =
        mt_arena_printf(arena, "%s (%s) of the peak: optimizer state", mt_format_bytes(n[0], bytes),
                        mt_format_percent(n[1], (double)bytes / (double)peak));
    evidence[0] = mt_arena_printf(arena, "parameters: %s", mt_format_bytes(n[0], parameters));
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_optimizer_state = {.find = find};
