#include "analysis.h"
#include "finding.h"
#include "process_memory.h"

#include <stdlib.h>

#include "grow.h"
#include "map.h"
#include "site.h"
#include "sorted.h"

enum { MAX_PARTS = 8 }; /* maximum denominator of the fraction */

/* Blocks that one line left in the steps [begin - 1, end), by step, then allocation. */
struct chain {
    const struct mt_line_life *lives;
    uint32_t count;
    uint32_t frame;
    uint32_t parts; /* bit n: so far, each was longer by 1/n of something */
    bool even;      /* see struct mt_replaced */
};

struct look {
    struct mt_analysis *analysis;
    const struct mt_replaced_question *question;
    struct mt_line_life *lives; /* that end in the step after their own, by line and step */
    uint32_t life_count;
    struct chain chains[MT_MAX_REPLACED];
    uint32_t chain_count;
};

MT_DEFINE_ORDER(by_line, struct mt_line_life, MT_ASCENDING(line) || MT_ASCENDING(life->birth_event))

static void take_lives(struct look *look)
{
    const struct mt_lives *lives = look->question->lives;

    look->lives = mt_memory_zeroed((size_t)lives->count + 1, sizeof *look->lives);
    for (uint32_t i = 0; i < lives->count; i++) {
        const struct mt_life *life = &lives->lives[i];
        const struct mt_line_life link = mt_line_life(look->analysis, lives, life);

        if (mt_lives_step(lives, life->end_event) == link.step + 1 &&
            link.step < look->question->end && life->stack != MT_NO_ID &&
            life->role != MT_ROLE_WORKSPACE)
            look->lives[look->life_count++] = link;
    }
    if (look->life_count)
        qsort(look->lives, look->life_count, sizeof *look->lives, by_line);
}

static uint64_t bytes_of_step(const struct chain *chain, uint32_t step)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < chain->count; i++)
        if (chain->lives[i].step == step)
            bytes += chain->lives[i].life->bytes;
    return bytes;
}

/* In the steps in question, and the one before them. */
static bool rises(const struct look *look, struct chain *chain)
{
    const uint32_t first = look->question->begin - 1;
    uint64_t last = 0, change = 0;
    uint32_t i = 0;

    chain->even = true;
    for (uint32_t step = first; step < look->question->end; step++) {
        uint64_t bytes = 0;
        for (; i < chain->count && chain->lives[i].step <= step; i++)
            bytes += chain->lives[i].step == step ? chain->lives[i].life->bytes : 0;
        if (bytes <= last)
            return false;
        chain->even = chain->even && (step < first + 2 || bytes - last == change);
        change = bytes - last;
        last = bytes;
    }
    return true;
}

static uint64_t growth_of(const struct look *look, const struct chain *chain)
{
    return bytes_of_step(chain, look->question->end - 1) -
           bytes_of_step(chain, look->question->begin - 1);
}

static void add_chain(struct look *look, const struct chain *chain)
{
    uint64_t bytes = growth_of(look, chain);
    uint32_t at = look->chain_count;

    if (at == MT_MAX_REPLACED && growth_of(look, &look->chains[--at]) >= bytes)
        return;
    for (; at > 0 && growth_of(look, &look->chains[at - 1]) < bytes; at--)
        look->chains[at] = look->chains[at - 1];
    look->chains[at] = *chain;
    look->chain_count += look->chain_count < MT_MAX_REPLACED;
}

static void find_chains(struct look *look)
{
    uint32_t begin = 0;

    for (uint32_t i = 1; i <= look->life_count; i++) {
        struct chain chain = {look->lives + begin, i - begin, look->lives[begin].line, UINT32_MAX,
                              false};
        if (i < look->life_count && look->lives[i].line == chain.frame)
            continue;
        if (rises(look, &chain))
            add_chain(look, &chain);
        begin = i;
    }
}

struct live {
    uint64_t addr, requested_bytes;
    uint32_t chain;  /* index + 1 of the chain with its line; 0 = none */
    bool is_of_step; /* allocated in the current step */
};

struct reading {
    struct look *look;
    struct mt_map slots; /* address -> live block */
    struct live *live;   /* unsorted */
    size_t live_count, live_capacity;
    struct mt_map sizes; /* requested bytes -> live blocks of the current step */
    struct mt_map line_sizes[MT_MAX_REPLACED]; /* ... of each line */
    uint32_t next[MT_MAX_REPLACED];            /* next link of each chain */
    uint32_t step;                             /* that begins next */
};

static void one_more(struct mt_map *sizes, uint64_t bytes)
{
    uint32_t count = mt_map_get(sizes, bytes);

    mt_map_put(sizes, bytes, count == MT_MAP_NONE ? 1 : count + 1);
}

static void one_less(struct mt_map *sizes, uint64_t bytes)
{
    uint32_t count = mt_map_take(sizes, bytes);

    if (count != MT_MAP_NONE && count != 1)
        mt_map_put(sizes, bytes, count - 1);
}

static void enter_steps(struct reading *reading, uint64_t event)
{
    const struct mt_lives *lives = reading->look->question->lives;

    if (reading->step == lives->step_count || event < lives->begins[reading->step])
        return;
    while (reading->step < lives->step_count && event >= lives->begins[reading->step])
        reading->step++;
    for (size_t i = 0; i < reading->live_count; i++)
        reading->live[i].is_of_step = false;
    mt_map_release(&reading->sizes);
}

static void end_block(struct reading *reading, uint64_t addr)
{
    uint32_t slot = mt_map_take(&reading->slots, addr);

    if (slot == MT_MAP_NONE)
        return;
    if (reading->live[slot].is_of_step)
        one_less(&reading->sizes, reading->live[slot].requested_bytes);
    if (reading->live[slot].chain)
        one_less(&reading->line_sizes[reading->live[slot].chain - 1],
                 reading->live[slot].requested_bytes);
    if (slot == --reading->live_count)
        return;
    reading->live[slot] = reading->live[reading->live_count];
    mt_map_put(&reading->slots, reading->live[slot].addr, slot);
}

/* Bit n: the block is longer than another of its line by 1/n of something new. */
static uint32_t parts_of(const struct reading *reading, uint32_t chain, uint64_t bytes)
{
    const struct mt_map *line = &reading->line_sizes[chain];
    uint32_t parts = 0;

    for (size_t i = 0; line->slots && i <= line->mask; i++) {
        if (line->slots[i].value == MT_MAP_NONE || line->slots[i].key >= bytes)
            continue;
        for (uint32_t n = 1; n <= MAX_PARTS; n++)
            if (mt_map_get(&reading->sizes, n * (bytes - line->slots[i].key)) != MT_MAP_NONE)
                parts |= 1u << n;
    }
    return parts;
}

/* Number + 1 of the chain with its line, and its link. */
static uint32_t link_of(struct reading *reading, const struct mt_event *event)
{
    struct look *look = reading->look;
    uint32_t frame = mt_site_table_site(&look->analysis->attribution.sites, event->stack), i;

    for (i = 0; i < look->chain_count && look->chains[i].frame != frame; i++)
        ;
    if (i == look->chain_count)
        return 0;
    if (reading->next[i] < look->chains[i].count &&
        look->chains[i].lives[reading->next[i]].life->birth_event == event->seq) {
        if (look->chains[i].lives[reading->next[i]++].step >= look->question->begin)
            look->chains[i].parts &= parts_of(reading, i, event->size_bytes);
    }
    return i + 1;
}

static void on_alloc(struct reading *reading, const struct mt_event *event)
{
    end_block(reading, event->addr); /* its free was lost */
    mt_grow_to(&reading->live, &reading->live_capacity, reading->live_count + 1,
               sizeof *reading->live);
    uint32_t chain = event->stack == MT_NO_ID ? 0 : link_of(reading, event);
    reading->live[reading->live_count] =
        (struct live){event->addr, event->size_bytes, chain, reading->step > 0};
    mt_map_put(&reading->slots, event->addr, (uint32_t)reading->live_count++);
    if (reading->step)
        one_more(&reading->sizes, event->size_bytes);
    if (chain)
        one_more(&reading->line_sizes[chain - 1], event->size_bytes);
}

static enum mt_status on_event(void *context, struct mt_event *event)
{
    struct reading *reading = context;

    enter_steps(reading, event->seq);
    if (event->device != reading->look->question->device->device)
        return MT_OK;
    switch (event->kind) {
    case MT_EVENT_ALLOC: on_alloc(reading, event); return MT_OK;
    case MT_EVENT_FREE_REQUESTED:
    case MT_EVENT_FREE_COMPLETED: end_block(reading, event->addr); return MT_OK;
    default: return MT_OK;
    }
}

static enum mt_status see_how_they_are_made(struct look *look)
{
    struct reading reading = {.look = look};
    enum mt_status status = mt_read_again_events(look->analysis, &reading, on_event);

    mt_map_release(&reading.slots);
    mt_map_release(&reading.sizes);
    for (size_t i = 0; i < MT_MAX_REPLACED; i++)
        mt_map_release(&reading.line_sizes[i]);
    free(reading.live);
    return status;
}

static struct mt_replaced replaced_of(const struct look *look, const struct chain *chain)
{
    struct mt_replaced found = {.frame = chain->frame,
                                .stack = chain->lives[0].life->stack,
                                .first_step = chain->lives[0].step,
                                .even = chain->even,
                                .old_bytes = bytes_of_step(chain, look->question->begin - 1),
                                .new_bytes = bytes_of_step(chain, look->question->end - 1)};
    uint32_t last = MT_NO_ID;

    for (uint32_t i = 0; i < chain->count; i++) {
        const struct mt_line_life *link = &chain->lives[i];
        if (i && link->step > chain->lives[i - 1].step + 1)
            found.first_step = link->step;
        if (link->step != look->question->end - 1)
            continue;
        found.blocks++;
        found.stacks += link->life->stack != last;
        last = link->life->stack;
    }
    return found;
}

enum mt_status mt_replaced_find(struct mt_analysis *analysis,
                                const struct mt_replaced_question *question,
                                struct mt_replaced *lines, uint32_t *count)
{
    struct look look = {.analysis = analysis, .question = question};
    enum mt_status status = MT_OK;
    uint64_t bytes = 0;

    take_lives(&look);
    *count = 0;
    find_chains(&look);
    for (uint32_t i = 0; i < look.chain_count; i++)
        bytes += growth_of(&look, &look.chains[i]);
    if (look.chain_count && bytes >= question->least_bytes) {
        status = see_how_they_are_made(&look);
        for (uint32_t i = 0; status == MT_OK && i < look.chain_count; i++)
            if (look.chains[i].parts)
                lines[(*count)++] = replaced_of(&look, &look.chains[i]);
    }
    free(look.lives);
    return status;
}
