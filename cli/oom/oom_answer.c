/* The parts of a verdict, and verdicts that need no numbers. */
#include "oom_text.h"

#include <stdarg.h>
#include <string.h>

#include "foreign_text.h"
#include "units.h"
#include "util.h"

enum { MAX_SCRIPT_BYTES = 60 };

const char *mt_oom_cause_name(enum mt_oom_text_cause cause)
{
    static const char *const names[] = {
        [MT_OOM_CAUSE_UNKNOWN] = "unknown",
        [MT_OOM_CAUSE_THIS_PROCESS] = "this_process",
        [MT_OOM_CAUSE_OUTSIDE_PYTORCH] = "this_process_outside",
        [MT_OOM_CAUSE_OTHER_PROCESS] = "other_process",
        [MT_OOM_CAUSE_OWN_LIMIT] = "own_limit",
        [MT_OOM_CAUSE_FRAGMENTATION] = "fragmentation",
        [MT_OOM_CAUSE_PRIVATE_POOL] = "private_pool",
        [MT_OOM_CAUSE_IMPOSSIBLE_SIZE] = "impossible_size",
        [MT_OOM_CAUSE_DEVICE_MEMORY] = "device_memory",
        [MT_OOM_CAUSE_HOST_MEMORY] = "host_memory",
        [MT_OOM_CAUSE_SHARED_MEMORY] = "shared_memory",
        [MT_OOM_CAUSE_ADDRESS_SPACE] = "address_space",
        [MT_OOM_CAUSE_HANDLES] = "handles",
        [MT_OOM_CAUSE_KV_CACHE] = "kv_cache",
        [MT_OOM_CAUSE_LIBRARY] = "library",
        [MT_OOM_CAUSE_KILLED] = "killed",
        [MT_OOM_CAUSE_NOT_MEMORY] = "not_memory",
    };

    return names[cause];
}

void mt_oom_verdict_part(struct mt_oom_verdict *verdict, const char *what, uint64_t bytes)
{
    if (verdict->part_count < MT_OOM_MAX_PARTS)
        verdict->parts[verdict->part_count++] = (struct mt_oom_part){what, bytes};
}

uint64_t mt_oom_verdict_parts(const struct mt_oom_verdict *verdict, uint64_t unit,
                              uint64_t amounts[MT_OOM_MAX_PARTS])
{
    const uint64_t whole = (verdict->whole_bytes + unit / 2) / unit;
    size_t rest = MT_OOM_MAX_PARTS, largest = 0;
    uint64_t sum = 0;

    for (size_t i = 0; i < verdict->part_count; i++) {
        const uint64_t bytes = verdict->parts[i].bytes;

        if (bytes == UINT64_MAX)
            rest = i;
        amounts[i] = bytes == UINT64_MAX ? 0 : (bytes + unit / 2) / unit;
        largest = amounts[i] > amounts[largest] ? i : largest;
        sum = mt_add_most_u64(sum, amounts[i]);
    }
    if (verdict->part_count && sum <= whole)
        amounts[rest < MT_OOM_MAX_PARTS ? rest : largest] += whole - sum;
    while (sum > whole) {
        const uint64_t less = mt_min_u64(amounts[largest], sum - whole);

        amounts[largest] -= less;
        sum -= less;
        for (size_t i = 0; i < verdict->part_count; i++)
            largest = amounts[i] > amounts[largest] ? i : largest;
    }
    return whole;
}

void mt_oom_verdict_unknown(struct mt_oom_verdict *verdict, const char *format, ...)
{
    va_list arguments;

    if (verdict->unknown_count == MT_OOM_MAX_UNKNOWN)
        return;
    va_start(arguments, format);
    mt_buf_vprintf(&verdict->unknown[verdict->unknown_count++], format, arguments);
    va_end(arguments);
}

void mt_oom_conclude(struct mt_oom_verdict *verdict, enum mt_oom_text_cause cause, bool is_proved)
{
    verdict->cause = cause;
    verdict->is_proved = is_proved;
}

void mt_oom_verdict_list(struct mt_oom_verdict *verdict, const struct mt_oom_message *message)
{
    static const char *const commands[] = {
        [MT_OOM_DEVICE_CUDA] = MT_OOM_SMI,
        [MT_OOM_DEVICE_HIP] = "rocm-smi --showpids --showmeminfo vram",
        [MT_OOM_DEVICE_XPU] = "xpu-smi ps",
        [MT_OOM_DEVICE_NPU] = "npu-smi info",
    };

    mt_buf_add_text(&verdict->next, commands[message->device_kind]);
}

void mt_oom_verdict_record(struct mt_oom_verdict *verdict, const struct mt_oom_message *message)
{
    mt_buf_add_text(&verdict->next, "memtrace record -- python ");
    if (message->script.length > 3 && message->script.length < MAX_SCRIPT_BYTES &&
        memcmp(message->script.data + message->script.length - 3, ".py", 3) == 0)
        mt_buf_add_shell_path(&verdict->next, message->script.data);
    else
        mt_buf_add_text(&verdict->next, "train.py");
}

void mt_oom_verdict_release(struct mt_oom_verdict *verdict)
{
    mt_buf_release(&verdict->headline);
    mt_buf_release(&verdict->next);
    for (size_t i = 0; i < MT_OOM_MAX_UNKNOWN; i++)
        mt_buf_release(&verdict->unknown[i]);
}

/* The row has the answer; %s in its headline is the request. */
void mt_oom_judge_fixed(const struct mt_oom_message *message, struct mt_oom_verdict *verdict)
{
    const struct mt_oom_wording *wording = message->wording;
    const struct mt_oom_value *request = &message->numbers[MT_OOM_REQUEST];
    const char *place = strstr(wording->headline, "%s");
    char bytes[MT_UNITS_TEXT];

    mt_oom_conclude(verdict, wording->cause, wording->is_proved);
    if (place) {
        mt_buf_add(&verdict->headline, wording->headline, (size_t)(place - wording->headline));
        mt_buf_add_text(&verdict->headline,
                        request->is_known ? mt_format_bytes(bytes, request->value) : "memory");
        mt_buf_add_text(&verdict->headline, place + 2);
    } else {
        mt_buf_add_text(&verdict->headline, wording->headline);
    }
    if (wording->unknown)
        mt_oom_verdict_unknown(verdict, "%s", wording->unknown);
    if (wording->next[0])
        mt_buf_add_text(&verdict->next, wording->next);
    else
        mt_oom_verdict_record(verdict, message);
}
