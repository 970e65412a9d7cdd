/* Any bytes as a text with an error message about memory. */
#include "fuzz.h"
#include "oom_text.h"

static void check_parts(const struct mt_oom_verdict *verdict, uint64_t unit)
{
    uint64_t amounts[MT_OOM_MAX_PARTS], whole = mt_oom_verdict_parts(verdict, unit, amounts);

    for (size_t i = 0; i < verdict->part_count; i++) {
        FUZZ_CHECK(amounts[i] <= whole);
        whole -= amounts[i];
    }
    FUZZ_CHECK(!verdict->whole || !whole);
}

static void check(const struct mt_oom_message *message)
{
    struct mt_oom_verdict verdict;

    mt_oom_judge(message, &verdict);
    FUZZ_CHECK(verdict.headline.length && verdict.next.length);
    FUZZ_CHECK(mt_oom_cause_name(verdict.cause));
    FUZZ_CHECK(!memchr(verdict.next.data, '\n', verdict.next.length));
    FUZZ_CHECK(message->line > 0 && (message->count > 0 || message->wording->is_echo));
    check_parts(&verdict, 1);
    check_parts(&verdict, 1 << 20);
    mt_oom_verdict_release(&verdict);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct mt_oom_message message;
    size_t length;
    uint8_t *text = fuzz_copy(&input, size, &length);

    if (mt_oom_find((const char *)text, length, &message))
        check(&message);
    mt_oom_message_release(&message);
    free(text);
    return 0;
}
