"""Faults of one line in core rules, each with runs that reach it.

A run is the arguments of memtrace; {capture} is a fixture, {trace} what `import` made of it. No run
compares an answer with a stored one: what finds the fault is an assertion or a check of the program.
"""
from collections import namedtuple

Mutation = namedtuple("Mutation", "name file before after runs")

PYTORCH = ["replay", "{capture}", "--policy", "pytorch", "--quiet"]
EXPANDABLE = ["replay", "{capture}", "--policy", "pytorch:expandable_segments:True", "--quiet"]
LIMITED = ["replay", "{capture}", "--policy", "pytorch", "--limit", "1GiB", "--quiet"]
BEST_FIT = ["replay", "{capture}", "--policy", "best-fit", "--quiet"]
BUDDY = ["replay", "{capture}", "--policy", "buddy", "--quiet"]
ASYNC = ["replay", "{capture}", "--policy", "cuda-async", "--quiet"]
PAGED = ["replay", "{capture}", "--policy", "paged", "--quiet"]
RECORDED = ["replay", "{capture}", "--policy", "recorded", "--quiet"]
PLANNED = ["replay", "{capture}", "--policy", "planned", "--quiet"]
IMPORT = ["import", "{capture}", "--quiet", "-o", "{new}"]
# Its times need two bytes; those of the captures need one.
IMPORT_RECORDED = ["import", "fixtures/recorded/mixed.trace.zst", "--quiet", "-o", "{new}"]
READ = ["replay", "{trace}", "--policy", "pytorch", "--quiet"]
RESTORED = ["replay", "fixtures/graph_trees/several.pickle.zst", "--quiet"]
ANALYZE = ["analyze", "{capture}", "--quiet"]
TIMELINE = ["render", "timeline", "{capture}", "--quiet", "-o", "{new}.svg"]
FLEET = ["fleet", "{capture}", "--quiet"]
ICICLE = ["render", "icicle", "{capture}", "--quiet", "-o", "{new}.svg"]

# What every run of the unchanged program must survive.
ALL_RUNS = [PYTORCH, EXPANDABLE, LIMITED, BEST_FIT, BUDDY, ASYNC, PAGED, RECORDED, PLANNED, IMPORT,
            IMPORT_RECORDED, READ, RESTORED, ANALYZE, TIMELINE, FLEET, ICICLE]

ALLOCATORS, REPLAY = "analyzer/allocators/", "analyzer/replay/"

MUTATIONS = [
    # ---- allocators ----
    Mutation("split leaves the size of the low end", ALLOCATORS + "block_store.c",
             "    low->size_bytes = low_bytes;\n", "", [PYTORCH]),
    Mutation("split forgets the neighbor above", ALLOCATORS + "block_store.c",
             "        store->blocks[low->next].previous = *high;\n",
             "        store->blocks[low->next].previous = id;\n", [PYTORCH]),
    Mutation("merge loses the bytes of the neighbor", ALLOCATORS + "block_store.c",
             "    block->size_bytes += swallowed->size_bytes;\n",
             "    block->size_bytes += swallowed->size_bytes / 2;\n", [PYTORCH]),
    Mutation("a freed block does not join the one above", ALLOCATORS + "pytorch_pools.c",
             "        *merged_bytes = pytorch_try_merge(policy, id, block->next);\n",
             "        *merged_bytes = 0;\n", [PYTORCH]),
    Mutation("merge across allocated blocks", ALLOCATORS + "heap.c",
             "other == MT_NO_BLOCK || blocks[other].state != MT_BLOCK_FREE ||",
             "other == MT_NO_BLOCK ||", [BEST_FIT]),
    Mutation("best fit takes a block that is too small", ALLOCATORS + "pytorch.c",
             "struct mt_free_cursor at = mt_free_set_find(set, search->size_bytes, 0);",
             "struct mt_free_cursor at = mt_free_set_find(set, search->size_bytes / 2, 0);",
             [PYTORCH]),
    Mutation("split threshold below the size of the request", ALLOCATORS + "pytorch_config.c",
             "    uint64_t remaining = block_bytes - rounded_bytes;\n",
             "    uint64_t remaining = block_bytes - rounded_bytes + MT_PYTORCH_MIN_BLOCK;\n",
             [PYTORCH]),
    Mutation("the block that is handed out stays in its set", ALLOCATORS + "pytorch.c",
             "    mt_free_set_erase(&free_list->free, search->found);\n}\n", "}\n", [PYTORCH]),
    Mutation("a gap of a restore counts as if nothing were left of it",
             ALLOCATORS + "pytorch_restore.c", "block, whole - block->size_bytes, was_split);",
             "block, (whole - block->size_bytes) / 2, was_split);",
             [RESTORED]),
    Mutation("what is left behind a restored block is not filed",
             ALLOCATORS + "pytorch_restore.c",
             "        mt_pytorch_insert(self, right);\n", "        self->place_hint = right;\n",
             [RESTORED]),
    Mutation("a block of a private pool ends twice", REPLAY + "pool_tracks.c",
             "    block->until = tracks->now + 1;\n", "", [RESTORED]),
    Mutation("the rest of a split is not filed", ALLOCATORS + "heap.c",
             "        mt_heap_put(heap, rest);\n", "", [BEST_FIT]),
    Mutation("the free set inserts one place too late", ALLOCATORS + "block_store.c",
             "    return place;\n", "    return place + (place < leaf->count);\n", [PYTORCH]),
    Mutation("removal from the free set leaves the count", ALLOCATORS + "block_store.c",
             "    set->count--;\n", "", [PYTORCH]),
    Mutation("a released segment stays reserved", ALLOCATORS + "pytorch_pools.c",
             "    mt_level_sub(&policy->counters.reserved, block.size_bytes);\n", "",
             [LIMITED, PYTORCH]),
    Mutation("allocated counts what was requested", ALLOCATORS + "heap.c",
             "    mt_level_add(&heap->counters.allocated, block->size_bytes);\n",
             "    mt_level_add(&heap->counters.allocated, requested_bytes);\n", [BEST_FIT]),
    Mutation("a completed free stays active", ALLOCATORS + "block_store.c",
             "    mt_level_sub(&counters->active, size_bytes);\n", "", [PYTORCH]),
    Mutation("inactive_split ignores what a split leaves", ALLOCATORS + "block_store.c",
             "            mt_level_add(&counters->inactive_split, remaining_bytes);\n",
             "            mt_level_add(&counters->inactive_split, remaining_bytes / 2);\n",
             [PYTORCH]),
    Mutation("a buddy of another size merges", ALLOCATORS + "textbook.c",
             "    return other->state == MT_BLOCK_FREE && other->size_bytes == block->size_bytes ? buddy",
             "    return other->state == MT_BLOCK_FREE ? buddy", [BUDDY]),
    Mutation("a page is let go of twice", ALLOCATORS + "cuda_async.c",
             "        page->held_bytes -= (uint32_t)part;\n",
             "        page->held_bytes -= 2 * (uint32_t)part;\n", [ASYNC]),
    Mutation("an expandable segment maps half of what is missing", ALLOCATORS + "pytorch_pools.c",
             "    mt_level_add(&policy->counters.reserved, bytes);\n",
             "    mt_level_add(&policy->counters.reserved, bytes / 2);\n", [EXPANDABLE]),
    Mutation("free pages are used and stay free", ALLOCATORS + "textbook.c",
             "    heap->loose_bytes -= reused;\n", "", [PAGED]),
    Mutation("a live block of the arena is not in order", ALLOCATORS + "planned.c",
             "              self->plan->entries[self->live[middle]].offset < offset);\n",
             "              self->plan->entries[self->live[middle]].offset <= offset);\n", [PLANNED]),
    # ---- replay ----
    Mutation("a free leaves the block in the live table", REPLAY + "live_table.c",
             "    *link = live->next;\n", "", [PYTORCH]),
    Mutation("a free is requested and never completed", REPLAY + "lane.c",
             "        if (status == MT_OK)\n"
             "            status = lane->ops->free_completed(lane->policy, live->handle);\n    }\n"
             "    if (status == MT_OK)\n        mt_live_remove",
             "    }\n    if (status == MT_OK)\n        mt_live_remove", [PYTORCH, BEST_FIT]),
    Mutation("the map leaves a hole in a chain", "base/map.c",
             "        if (((i - home) & map->mask) >= ((i - hole) & map->mask)) {\n",
             "        if (((i - home) & map->mask) > ((i - hole) & map->mask)) {\n", [PYTORCH]),
    # ---- passes ----
    Mutation("a replay answers for a limit that would have been refused",
             "analyzer/replay/one_replay.c",
             "    result->same_until_bytes = device->least_refused_bytes;\n",
             "    result->same_until_bytes = device->limit_bytes;\n", [ANALYZE]),
    Mutation("a pass is not charged for its reading", "analyzer/passes/readings.c",
             "    charge(readings);\n    readings->charged = outer;\n",
             "    readings->charged = outer;\n", [ANALYZE]),
    # ---- pictures ----
    Mutation("a picture's time runs beyond its right edge", "render/charts/time_axis.c",
             "           drawn_width(axis) * mt_timeline_position(timeline, t_ns);\n",
             "           2 * drawn_width(axis) * mt_timeline_position(timeline, t_ns);\n", [TIMELINE]),
    Mutation("a picture's text is wider than its room", "render/draw.c",
             "    width /= FONT_SLACK;\n", "    width *= 4;\n", [ICICLE, TIMELINE]),
    Mutation("a picture's circle is centred on its edge", "render/draw.c",
             "    op->width = radius;\n", "    op->width = x + 1;\n", [TIMELINE]),
    # ---- trace ----
    Mutation("differences are taken to the value before last", "trace/codec_encode.c",
             "        last = value;\n", "        last = value + (i & 1);\n", [IMPORT]),
    Mutation("differences are summed with the wrong sign", "trace/bytes.h",
             "    return value >> 1 ^ (0 - (value & 1));\n",
             "    return value >> 1 ^ (value & 1);\n", [IMPORT]),
    Mutation("a stack gets the index of the one before", "trace/codec_encode.c",
             "        dictionary_add(&encoder->stacks, event->stack)->index;\n",
             "        (uint16_t)(dictionary_add(&encoder->stacks, event->stack)->index / 2);\n",
             [IMPORT]),
    Mutation("the place of a free is one too far back", "trace/codec_encode.c",
             "(uint16_t)(encoder->place_count - 1 - slot->note);",
             "(uint16_t)(encoder->place_count - slot->note);", [IMPORT]),
    Mutation("times lose a bit of their high byte", "trace/codec_encode.c",
             "            at[count + i] = (uint8_t)(value >> 8);\n",
             "            at[count + i] = (uint8_t)(value >> 9);\n", [IMPORT_RECORDED]),
    Mutation("times that do not fit are not escaped", "trace/codec_encode.c",
             "        if (value >= escape) {\n", "        if (value >= 4 * escape) {\n", [IMPORT]),
    Mutation("the index places a frame one byte late", "trace/writer.c",
             "(struct mt_index_entry){.info = {.offset = writer->offset,",
             "(struct mt_index_entry){.info = {.offset = writer->offset + 1,", [IMPORT]),
    Mutation("the writer drops the last event of a block", "trace/writer.c",
             "        status = write_frame(writer, writer->events + done, count, error);\n",
             "        status = write_frame(writer, writer->events + done, count - 1, error);\n",
             [IMPORT]),
    Mutation("a stack remembers the parent of its parent", "trace/symbols.c",
             "parent == MT_NO_ID ? 1 : symbols->stacks[parent].depth + 1};",
             "parent == MT_NO_ID ? 1 : symbols->stacks[parent].depth};", [READ]),
    Mutation("equal texts get new ids", "base/map.c",
             "    if (strings->slots[i]) {\n", "    if (strings->slots[i] && !length) {\n", [READ]),
    # ---- jobs of many ranks ----
    Mutation("leaves of one call path are not added up", "fleet/summary/summarize_leaves.c",
             "            last->bytes += leaf->bytes;\n", "", [FLEET]),
    Mutation("small leaves are left out", "fleet/summary/summarize_leaves.c",
             "        if (node->kind == MT_NODE_BLOCKS && node->bytes)\n",
             "        if (node->kind == MT_NODE_BLOCKS && node->bytes > 4096)\n", [FLEET]),
]
