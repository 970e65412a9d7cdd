/* What the numbers of a message prove. Everything is compared in bytes, with what rounding may have
 * taken away: a cause is proved only if it holds for every number that rounds to the printed one.
 */
#include "oom_text.h"

#include "cards.h"
#include "units.h"
#include "util.h"

/* A CUDA context with its libraries takes 0.5 to 1.3 GiB (cards.h). */
#define ORDINARY_OUTSIDE (3 * MT_GIB / 2)
#define LARGE_OUTSIDE    (2 * MT_GIB)
/* More than a desktop or an idle context. */
#define LARGE_OTHERS MT_GIB
/* The driver refuses a request that leaves less free: its pages are large, and it keeps some. */
#define KEPT_FREE  (64 * MT_MIB)
#define FIND_LIMIT "grep -rnE '(set_)?per_process_memory_fraction' ."

enum { LEAST_UNUSED = 32 }; /* fragmentation: 1/32 of what is in use */

/* Bytes of a message with their bounds. */
struct bytes {
    uint64_t least, most, value;
    bool is_known;
};

static struct bytes get(const struct mt_oom_message *message, enum mt_oom_number number)
{
    const struct mt_oom_value *value = &message->numbers[number];

    return (struct bytes){mt_sub_or_0_u64(value->value, value->error),
                          mt_add_most_u64(value->value, value->error), value->value,
                          value->is_known};
}

static struct bytes sum(struct bytes a, struct bytes b)
{
    return (struct bytes){mt_add_most_u64(a.least, b.least), mt_add_most_u64(a.most, b.most),
                          mt_add_most_u64(a.value, b.value), a.is_known || b.is_known};
}

static struct bytes difference(struct bytes a, struct bytes b)
{
    return (struct bytes){mt_sub_or_0_u64(a.least, b.most), mt_sub_or_0_u64(a.most, b.least),
                          mt_sub_or_0_u64(a.value, b.value), a.is_known && b.is_known};
}

/* Returns whether both are at least what the request needs, and what the driver keeps. */
static bool is_enough_with(struct bytes a, struct bytes b, struct bytes request, uint64_t kept)
{
    return mt_add_most_u64(a.least, b.least) >= mt_add_most_u64(request.most, kept);
}

static bool is_surely_less(struct bytes a, struct bytes b)
{
    return a.is_known && b.is_known && a.most < b.least;
}

/* What the message of PyTorch's allocator says about the card. */
struct card {
    struct bytes request, capacity, free, limit;
    struct bytes allocated, pools_unused, unused, reserved;
    struct bytes own;    /* of this process, also outside PyTorch */
    struct bytes others; /* processes that the message lists */
};

/* In a container, the driver has other process numbers than the program, which then lists itself as
 * "Process N". It is listed if the rest of the card is less than what PyTorch reserved, and which
 * one it is is certain if only one holds at least that. */
static void find_own(const struct mt_oom_message *message, struct card *card)
{
    uint64_t total = 0, own = 0;
    size_t candidates = 0;

    for (size_t i = 0; i < message->process_count; i++) {
        if (card->capacity.is_known && message->processes[i] / 2 > card->capacity.most)
            continue; /* Windows does not know */
        total = mt_add_most_u64(total, message->processes[i]);
        if (message->processes[i] >= card->reserved.least) {
            own = message->processes[i];
            candidates++;
        }
    }
    if (!card->own.is_known && candidates == 1 && card->capacity.is_known && card->free.is_known &&
        mt_sub_or_0_u64(card->capacity.most, mt_add_most_u64(card->free.least, total)) <
            card->reserved.least) {
        card->own = (struct bytes){own, own, own, true};
        total -= own;
    }
    if (card->own.is_known)
        card->others =
            (struct bytes){mt_sub_or_0_u64(total, message->processes_error),
                           mt_add_most_u64(total, message->processes_error), total, true};
}

static struct card read_card(const struct mt_oom_message *message)
{
    struct card card = {.request = get(message, MT_OOM_REQUEST),
                        .capacity = get(message, MT_OOM_CAPACITY),
                        .free = get(message, MT_OOM_FREE),
                        .limit = get(message, MT_OOM_LIMIT),
                        .allocated = get(message, MT_OOM_ALLOCATED),
                        .pools_unused = get(message, MT_OOM_POOLS_UNUSED),
                        .unused = get(message, MT_OOM_UNUSED),
                        .reserved = get(message, MT_OOM_RESERVED),
                        .own = get(message, MT_OOM_THIS_PROCESS)};

    if (card.reserved.is_known)
        card.unused = difference(card.reserved, card.allocated);
    else
        card.reserved = sum(card.allocated, card.unused);
    if (card.own.value / 2 > card.capacity.most)
        card.own.is_known = false; /* Windows does not know */
    find_own(message, &card);
    if (is_surely_less(card.own, card.reserved)) /* a driver that does not count all */
        card.own.is_known = card.others.is_known = false;
    return card;
}

/* The parts add up to the capacity, because the last one is the rest of it. */
static void add_card_parts(struct mt_oom_verdict *verdict, const struct card *card)
{
    struct bytes known = sum(card->free, card->own.is_known ? card->own : card->reserved);

    if (!card->capacity.is_known || !card->free.is_known)
        return;
    if (card->others.is_known)
        known = sum(known, card->others);
    if (is_surely_less(card->capacity, known)) {
        mt_oom_verdict_unknown(verdict, "more: the parts are larger than the card, as on Windows, "
                                        "whose driver moves memory to the host");
        return;
    }
    verdict->whole = "memory of the card";
    verdict->whole_bytes = card->capacity.value;
    mt_oom_verdict_part(verdict, "allocated by PyTorch",
                        mt_sub_or_0_u64(card->allocated.value, card->pools_unused.value));
    mt_oom_verdict_part(verdict, "unused, kept for private pools (CUDA graphs)",
                        card->pools_unused.value);
    mt_oom_verdict_part(verdict, "unused in PyTorch's cache", card->unused.value);
    if (card->own.is_known) {
        mt_oom_verdict_part(verdict, "this process, outside PyTorch (context, libraries)",
                            mt_sub_or_0_u64(card->own.value, card->reserved.value));
        mt_oom_verdict_part(verdict, "other processes", card->others.value);
    }
    mt_oom_verdict_part(verdict, "free", card->free.value);
    if (difference(card->capacity, known).least) /* not only rounding */
        mt_oom_verdict_part(verdict,
                            card->own.is_known
                                ? "not listed (driver, processes of other containers)"
                                : "outside PyTorch: this process or others",
                            UINT64_MAX);
}

static char *text(char buffer[MT_UNITS_TEXT], struct bytes bytes)
{
    return mt_format_bytes(buffer, bytes.value);
}

/* Where the unused part of the cache would count: under a limit, or on the card. */
struct place {
    const char *words, *left_word;
    struct bytes in_use, left;
    uint64_t kept; /* of what is left, the driver gives no request */
};

/* What is unused in the cache and what is left are enough together, and the unused part is not a
 * trifle of what is in use. */
static bool is_enough(struct bytes unused, const struct card *card, const struct place *place)
{
    return card->unused.is_known &&
           is_enough_with(unused, place->left, card->request, place->kept) &&
           unused.value >= place->in_use.value / LEAST_UNUSED;
}

static void judge_pools(struct mt_oom_verdict *verdict, const struct mt_oom_message *message,
                        const struct card *card, const struct place *place)
{
    char unused[MT_UNITS_TEXT], request[MT_UNITS_TEXT];

    mt_oom_conclude(verdict, MT_OOM_CAUSE_PRIVATE_POOL, !message->is_in_capture);
    mt_buf_printf(&verdict->headline,
                  "Private pools%s: %s in pools of CUDA graphs or MemPool is unused, but may not "
                  "serve %s",
                  place->words, text(unused, card->pools_unused), text(request, card->request));
    if (message->is_in_capture)
        mt_oom_verdict_unknown(verdict, "whether the request was captured: then it may use a pool");
    mt_oom_verdict_unknown(verdict, "which pool ('allocated in private pools' counts free blocks)");
    mt_oom_verdict_record(verdict, message);
}

/* Returns whether the request failed although enough is unused in the cache. */
static bool judge_unused(struct mt_oom_verdict *verdict, const struct mt_oom_message *message,
                         const struct card *card, const struct place *place)
{
    static const char *const settings[] = {
        [MT_OOM_DEVICE_CUDA] = "PYTORCH_CUDA_ALLOC_CONF",
        [MT_OOM_DEVICE_HIP] = "PYTORCH_HIP_ALLOC_CONF",
        [MT_OOM_DEVICE_XPU] = "PYTORCH_ALLOC_CONF",
        [MT_OOM_DEVICE_NPU] = "PYTORCH_NPU_ALLOC_CONF",
    };
    char unused[MT_UNITS_TEXT], left[MT_UNITS_TEXT], request[MT_UNITS_TEXT];

    if (!is_enough(card->unused, card, place)) {
        if (!is_enough(sum(card->unused, card->pools_unused), card, place))
            return false;
        judge_pools(verdict, message, card, place);
        return true;
    }
    mt_oom_conclude(verdict, MT_OOM_CAUSE_FRAGMENTATION, true);
    mt_buf_printf(&verdict->headline, "Fragmentation%s: %s of PyTorch's cache is unused",
                  place->words, text(unused, card->unused));
    text(request, card->request);
    if (card->unused.least >= card->request.most)
        mt_buf_printf(&verdict->headline, ", but no piece of it serves %s", request);
    else
        mt_buf_printf(&verdict->headline, " and %s is %s: enough for %s, but not in one piece",
                      text(left, place->left), place->left_word, request);
    mt_oom_verdict_unknown(verdict, "whether the pieces lie between blocks in use, or belong to "
                                    "another stream");
    mt_buf_printf(&verdict->next, "export %s=expandable_segments:True",
                  settings[message->device_kind]);
    return true;
}

static bool judge_size(struct mt_oom_verdict *verdict, const struct mt_oom_message *message,
                       const struct card *card)
{
    char request[MT_UNITS_TEXT], capacity[MT_UNITS_TEXT];

    if (!is_surely_less(card->capacity, card->request))
        return false;
    mt_oom_conclude(verdict, MT_OOM_CAUSE_IMPOSSIBLE_SIZE, true);
    mt_buf_printf(&verdict->headline, "One request of %s is larger than the card (%s)%s",
                  text(request, card->request), text(capacity, card->capacity),
                  mt_card_exceeds_all(card->request.value)
                      ? " and than any card: its shape is wrong, or it grows with a square"
                      : ": nothing that is freed can make room");
    mt_oom_verdict_record(verdict, message);
    return true;
}

/* The limit decides, so its parts replace those of the card. */
static void add_limit_parts(struct mt_oom_verdict *verdict, const struct card *card)
{
    if (is_surely_less(card->limit, card->reserved))
        return;
    verdict->part_count = 0;
    verdict->whole = "limit of this process";
    verdict->whole_bytes = card->limit.value;
    mt_oom_verdict_part(verdict, "allocated by PyTorch",
                        mt_sub_or_0_u64(card->allocated.value, card->pools_unused.value));
    mt_oom_verdict_part(verdict, "unused, kept for private pools (CUDA graphs)",
                        card->pools_unused.value);
    mt_oom_verdict_part(verdict, "unused in PyTorch's cache",
                        card->unused.is_known ? card->unused.value : 0);
    mt_oom_verdict_part(verdict, "left under the limit", UINT64_MAX);
}

static bool judge_limit(struct mt_oom_verdict *verdict, const struct mt_oom_message *message,
                        const struct card *card)
{
    const struct bytes wanted = sum(card->reserved, card->request);
    const struct place place = {" under this process's own limit", "left", card->reserved,
                                difference(card->limit, card->reserved), 0};
    char limit[MT_UNITS_TEXT], reserved[MT_UNITS_TEXT], request[MT_UNITS_TEXT],
        free_bytes[MT_UNITS_TEXT];

    /* The limit is compared before the driver is asked. */
    if (!card->limit.is_known || wanted.most < card->limit.least ||
        !(card->free.least >= card->request.most || wanted.least > card->limit.most))
        return false;
    add_limit_parts(verdict, card);
    if (judge_unused(verdict, message, card, &place))
        return true;
    mt_oom_conclude(verdict, MT_OOM_CAUSE_OWN_LIMIT, true);
    mt_buf_printf(&verdict->headline,
                  "This process's own limit of %s: %s is reserved, and %s more exceeds it",
                  text(limit, card->limit), text(reserved, card->reserved),
                  text(request, card->request));
    if (card->free.is_known && card->free.least >= card->request.most)
        mt_buf_printf(&verdict->headline, " (the card has %s free)", text(free_bytes, card->free));
    mt_buf_add_text(&verdict->next, FIND_LIMIT);
    return true;
}

/* The driver refused the request, and yet more than that was free when the message was written. */
static bool judge_free(struct mt_oom_verdict *verdict, const struct mt_oom_message *message,
                       const struct card *card)
{
    char free_bytes[MT_UNITS_TEXT], request[MT_UNITS_TEXT];

    if (!card->free.is_known ||
        !is_enough_with(card->free, (struct bytes){0}, card->request, KEPT_FREE))
        return false;
    mt_oom_conclude(verdict, MT_OOM_CAUSE_UNKNOWN, false);
    mt_buf_printf(&verdict->headline,
                  "Not a full card: %s was refused, but %s was free right afterwards",
                  text(request, card->request), text(free_bytes, card->free));
    mt_oom_verdict_unknown(verdict, "which: another process freed memory in between, a limit of a "
                                    "virtual GPU or fraction, or address space");
    mt_oom_verdict_list(verdict, message);
    return true;
}

/* This process holds more outside PyTorch than others hold, and without it the request fits. */
static bool judge_outside(struct mt_oom_verdict *verdict, const struct mt_oom_message *message,
                          const struct card *card)
{
    const struct bytes outside = difference(card->own, card->reserved);
    char text_of_outside[MT_UNITS_TEXT], capacity[MT_UNITS_TEXT];

    if (!outside.is_known || outside.least < LARGE_OUTSIDE || outside.least < card->own.most / 4 ||
        !card->free.is_known || outside.least <= card->others.most ||
        !is_enough_with(card->free, outside, card->request, KEPT_FREE) ||
        sum(card->reserved, card->request).most + ORDINARY_OUTSIDE > card->capacity.least)
        return false;
    mt_oom_conclude(verdict, MT_OOM_CAUSE_OUTSIDE_PYTORCH, true);
    mt_buf_printf(&verdict->headline,
                  "Card full: this process holds %s of %s outside PyTorch, and without that the "
                  "request fits",
                  text(text_of_outside, outside), text(capacity, card->capacity));
    mt_oom_verdict_unknown(verdict, "what holds it: NCCL, another framework, or a library");
    mt_oom_verdict_record(verdict, message);
    return true;
}

/* This process cannot have the request even if nothing else is on the card. */
static void judge_own(struct mt_oom_verdict *verdict, const struct mt_oom_message *message,
                      const struct card *card)
{
    const struct bytes own = card->own.is_known ? card->own : card->reserved;
    char held[MT_UNITS_TEXT], capacity[MT_UNITS_TEXT], request[MT_UNITS_TEXT];

    mt_oom_conclude(verdict, MT_OOM_CAUSE_THIS_PROCESS, true);
    mt_buf_printf(
        &verdict->headline,
        "Card full: this process holds %s%s of %s, and %s more exceeds even an empty card",
        card->own.is_known ? "" : "at least ", text(held, own), text(capacity, card->capacity),
        text(request, card->request));
    mt_oom_verdict_unknown(verdict, "which tensors hold it, and whether they had to be alive");
    mt_oom_verdict_record(verdict, message);
}

static void judge_others(struct mt_oom_verdict *verdict, const struct mt_oom_message *message,
                         const struct card *card)
{
    char others[MT_UNITS_TEXT], own[MT_UNITS_TEXT], request[MT_UNITS_TEXT], capacity[MT_UNITS_TEXT];

    mt_oom_conclude(verdict, MT_OOM_CAUSE_OTHER_PROCESS, true);
    mt_buf_printf(&verdict->headline,
                  "Card full, shared: other processes hold %s of %s, this one %s; without them, %s "
                  "more fits",
                  text(others, card->others), text(capacity, card->capacity), text(own, card->own),
                  text(request, card->request));
    mt_oom_verdict_list(verdict, message);
}

/* What is neither free, nor of this process or of listed ones. */
static struct bytes rest_of(const struct card *card, struct bytes own)
{
    const struct bytes others =
        card->others.is_known ? card->others : (struct bytes){.is_known = true};

    return difference(difference(difference(card->capacity, card->free), own), others);
}

/* This process holds at least nine tenths of what is in use. The request would fit without the
 * rest, but no cause is as large as this one. */
static void judge_most(struct mt_oom_verdict *verdict, const struct mt_oom_message *message,
                       const struct card *card, struct bytes own)
{
    char held[MT_UNITS_TEXT], capacity[MT_UNITS_TEXT], request[MT_UNITS_TEXT],
        free_bytes[MT_UNITS_TEXT];

    mt_oom_conclude(verdict, MT_OOM_CAUSE_THIS_PROCESS, true);
    mt_buf_printf(&verdict->headline,
                  "Card full: this process holds %s%s of %s; %s is free, and %s was requested",
                  card->own.is_known ? "" : "at least ", text(held, own),
                  text(capacity, card->capacity), text(free_bytes, card->free),
                  text(request, card->request));
    mt_oom_verdict_unknown(verdict, "which tensors hold it, and whether they had to be alive");
    mt_oom_verdict_record(verdict, message);
}

/* The card is full, and the message does not show whose memory decides. */
static void judge_full(struct mt_oom_verdict *verdict, const struct mt_oom_message *message,
                       const struct card *card, struct bytes own)
{
    const struct bytes rest = rest_of(card, own);
    char held[MT_UNITS_TEXT], others[MT_UNITS_TEXT], free_bytes[MT_UNITS_TEXT],
        request[MT_UNITS_TEXT];

    mt_oom_conclude(verdict, MT_OOM_CAUSE_DEVICE_MEMORY, false);
    mt_buf_printf(&verdict->headline, "Card full: %s is free, %s was requested",
                  text(free_bytes, card->free), text(request, card->request));
    if (own.is_known)
        mt_buf_printf(&verdict->headline, "; this process holds %s%s",
                      card->own.is_known ? "" : "at least ", text(held, own));
    if (rest.is_known)
        mt_oom_verdict_unknown(verdict, "who holds %s of the card: %s", text(others, rest),
                               card->own.is_known ? "no process that the driver lists"
                                                  : "this process outside PyTorch, or another one");
    mt_oom_verdict_list(verdict, message);
}

static void judge_card(struct mt_oom_verdict *verdict, const struct mt_oom_message *message,
                       const struct card *card)
{
    const struct bytes own = card->own.is_known ? card->own : card->reserved;
    char unused[MT_UNITS_TEXT];

    if (card->unused.is_known && card->unused.least >= card->request.most)
        mt_oom_verdict_unknown(verdict,
                               "whether expandable_segments:True serves this request: %s "
                               "of the cache is unused",
                               text(unused, card->unused));
    if (judge_outside(verdict, message, card))
        return;
    if (is_surely_less(card->capacity, sum(own, card->request)))
        judge_own(verdict, message, card);
    else if (card->others.is_known && card->others.least >= LARGE_OTHERS &&
             is_enough_with(card->free, card->others, card->request, KEPT_FREE))
        judge_others(verdict, message, card);
    else if (card->free.is_known &&
             own.least / 9 * 10 >= mt_sub_or_0_u64(card->capacity.most, card->free.least))
        judge_most(verdict, message, card, own);
    else
        judge_full(verdict, message, card, own);
}

/* The message lacks the numbers of the card. */
static void judge_cut(struct mt_oom_verdict *verdict, const struct mt_oom_message *message,
                      const struct card *card)
{
    const struct place cache = {"", "", card->reserved, {.is_known = true}, 0};

    if (card->request.is_known && judge_unused(verdict, message, card, &cache))
        return;
    mt_oom_conclude(verdict, MT_OOM_CAUSE_DEVICE_MEMORY, false);
    mt_buf_add_text(&verdict->headline, "Device memory: a request was refused");
    mt_oom_verdict_unknown(verdict, "why: the message is cut, and its numbers are not there");
    mt_oom_verdict_record(verdict, message);
}

static void judge_pytorch(struct mt_oom_verdict *verdict, const struct mt_oom_message *message)
{
    const struct card card = read_card(message);
    const struct place place = {"", "free", difference(card.capacity, card.free), card.free,
                                mt_min_u64(KEPT_FREE, card.free.least)};

    if (!card.request.is_known || !card.capacity.is_known) {
        judge_cut(verdict, message, &card);
        return;
    }
    add_card_parts(verdict, &card);
    if (judge_size(verdict, message, &card) || judge_limit(verdict, message, &card) ||
        judge_free(verdict, message, &card) || judge_unused(verdict, message, &card, &place))
        return;
    judge_card(verdict, message, &card);
}

/* Without the parts of the card: cudaMallocAsync keeps its cache in the driver. */
static void judge_async(struct mt_oom_verdict *verdict, const struct mt_oom_message *message)
{
    struct card card = read_card(message);

    if (!card.request.is_known || !card.capacity.is_known) {
        judge_pytorch(verdict, message);
        return;
    }
    if (is_surely_less(card.capacity, card.limit))
        card.limit.is_known = false; /* none was set */
    card.unused.is_known = false;
    if (card.free.is_known && !is_surely_less(card.capacity, sum(card.free, card.reserved))) {
        verdict->whole = "memory of the card";
        verdict->whole_bytes = card.capacity.value;
        mt_oom_verdict_part(verdict, "allocated by PyTorch", card.allocated.value);
        mt_oom_verdict_part(verdict, "free", card.free.value);
        mt_oom_verdict_part(verdict, "cache of the driver, context, other processes", UINT64_MAX);
    }
    if (judge_size(verdict, message, &card) || judge_limit(verdict, message, &card) ||
        judge_free(verdict, message, &card))
        return;
    judge_card(verdict, message, &card);
}

void mt_oom_judge(const struct mt_oom_message *message, struct mt_oom_verdict *verdict)
{
    *verdict = (struct mt_oom_verdict){0};
    switch (message->wording->form) {
    case MT_OOM_NO_MESSAGE: break;
    case MT_OOM_FIXED: mt_oom_judge_fixed(message, verdict); break;
    case MT_OOM_PYTORCH: judge_pytorch(verdict, message); break;
    case MT_OOM_ASYNC: judge_async(verdict, message); break;
    case MT_OOM_MPS: mt_oom_judge_mps(message, verdict); break;
    case MT_OOM_BFC:
    case MT_OOM_HBM:
    case MT_OOM_NO_BLOCKS:
    case MT_OOM_SEQUENCE:
    case MT_OOM_NEEDED:
    case MT_OOM_STATIC:
    case MT_OOM_START: mt_oom_judge_serving(message, verdict); break;
    }
    if (!verdict->next.length)
        mt_oom_verdict_record(verdict, message);
    if (message->later_error[0])
        mt_oom_verdict_unknown(verdict,
                               "whether this ended the program: %s is below it in the text",
                               message->later_error);
}
