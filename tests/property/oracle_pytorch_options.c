#include "oracle_pytorch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size,
                                                         const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + length, size - length, format, arguments);
    va_end(arguments);
}

static void set(char *text, size_t size, const char *name, uint64_t value)
{
    append(text, size, "%s%s:%llu", text[0] ? "," : "", name, (unsigned long long)value);
}

/* One number for all sizes, or one for each power of two starting at 1 MiB. */
static void configure_divisions(struct oracle *oracle, struct dice *dice, char *text, size_t size)
{
    uint64_t *divisions = &oracle->setting[DIVISIONS], i;

    divisions[0] = (uint64_t)1 << dice_below(dice, 6);
    for (i = 1; i < DIVISION_STEPS; i++)
        divisions[i] = divisions[0];
    if (dice_one_in(dice, 2)) {
        set(text, size, "roundup_power2_divisions", divisions[0]);
        return;
    }
    append(text, size, "%sroundup_power2_divisions:[1:%llu", text[0] ? "," : "",
           (unsigned long long)divisions[0]);
    for (i = 1; i < DIVISION_STEPS; i++) {
        divisions[i] = (uint64_t)1 << dice_below(dice, 7);
        append(text, size, ",%u:%llu", 1u << i, (unsigned long long)divisions[i]);
    }
    append(text, size, "]");
}

/* If the memory of the GPU is known, it is also a limit. */
static void configure_fraction(struct oracle *oracle, struct dice *dice, char *text, size_t size)
{
    uint64_t eighths = dice_between(dice, 1, 7);

    append(text, size, "%sper_process_memory_fraction:0.%03u", text[0] ? "," : "",
           (unsigned)eighths * 125);
    oracle->device_limit = oracle->limit = oracle->memory * eighths / 8;
}

void oracle_pytorch_configure(struct oracle *oracle, struct dice *dice, char *text, size_t size)
{
    uint64_t *setting = oracle->setting;

    oracle->free_order = dice_one_in(dice, 2) ? MT_FREE_OLDEST_SEGMENT : MT_FREE_LOWEST;
    setting[MAX_SPLIT] = UINT64_MAX;
    setting[LARGE_SEGMENT] = 20;
    if (dice_one_in(dice, 3))
        set(text, size, "large_segment_size_mb",
            setting[LARGE_SEGMENT] = dice_between(dice, 11, 45));
    setting[ROUNDING] = setting[LARGE_SEGMENT];
    if (dice_one_in(dice, 3)) {
        setting[MAX_SPLIT] = dice_between(dice, setting[LARGE_SEGMENT], 80);
        set(text, size, "max_split_size_mb", setting[MAX_SPLIT]);
        setting[MAX_SPLIT] *= MT_MIB;
        if (dice_one_in(dice, 2)) {
            setting[ROUNDING] = dice_between(dice, setting[LARGE_SEGMENT], 100);
            set(text, size, "max_non_split_rounding_mb", setting[ROUNDING]);
        }
    }
    if (setting[MAX_SPLIT] != UINT64_MAX) {
        oracle->edge[0] = setting[MAX_SPLIT];
        oracle->edge[1] = 2 * setting[MAX_SPLIT];
        oracle->edge[2] = setting[MAX_SPLIT] + setting[ROUNDING] * MT_MIB;
    }
    oracle->edge[3] = 10 * MT_MIB;
    setting[LARGE_SEGMENT] *= MT_MIB;
    setting[ROUNDING] *= MT_MIB;
    if (dice_one_in(dice, 3)) {
        setting[GC_PERCENT] =
            dice_one_in(dice, 2) ? 25 * dice_between(dice, 1, 3) : dice_between(dice, 1, 99);
        append(text, size, "%sgarbage_collection_threshold:0.%02u", text[0] ? "," : "",
               (unsigned)setting[GC_PERCENT]);
    }
    if (dice_one_in(dice, 3))
        configure_divisions(oracle, dice, text, size);
    if (oracle->memory && !oracle->device_limit && dice_one_in(dice, 2))
        configure_fraction(oracle, dice, text, size);
    if (dice_one_in(dice, 3)) {
        setting[EXPANDABLE] = 1;
        append(text, size, "%sexpandable_segments:True", text[0] ? "," : "");
        oracle->overshoot = setting[LARGE_SEGMENT];
    }
}

uint64_t oracle_pytorch_rounded(const struct oracle *oracle, uint64_t bytes)
{
    uint64_t divisions, power = 1, step = DIVISIONS;

    for (; 2 * power <= bytes; power *= 2)
        step += power >= MT_MIB && step + 1 < DIVISIONS + DIVISION_STEPS;
    divisions = oracle->setting[step];
    if (divisions <= 1 || bytes <= 512 * divisions)
        return oracle_steps(bytes, 512);
    return oracle_steps(bytes, power / divisions);
}

uint64_t oracle_pytorch_segment(const struct oracle *oracle, uint64_t bytes)
{
    if (bytes <= MT_MIB)
        return CHUNK_SMALL;
    return bytes < 10 * MT_MIB ? oracle->setting[LARGE_SEGMENT] : oracle_steps(bytes, 2 * MT_MIB);
}
