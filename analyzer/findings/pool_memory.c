/* Findings about pools of blocks: the private pools of CUDA graphs, and the blocks of a KV cache.
 */
#include "analysis.h"
#include "finding.h"
#include "frame_judge.h"
#include "report_query.h"
#include "units.h"
#include "util.h"

/* A pool of a CUDA graph keeps its addresses for replays, so no other request can use its memory,
 * even while nothing in it is allocated. */

enum {
    POOL_MIN_SHARE = 10, /* of the reserved peak */
    FREE_MIN_SHARE = 4   /* of the pools, at the end */
};

#define MIN_POOL_BYTES (20 * MT_MIB) /* one large segment */

enum graph_maker { NO_GRAPHS, GRAPHS_BY_HAND, GRAPHS_OF_COMPILE };

/* Entering and leaving a capture, and torch.compile's trees of graphs, request memory. */
static enum graph_maker maker_of(const struct mt_symbols *symbols, uint32_t stack)
{
    enum graph_maker maker = NO_GRAPHS;

    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent) {
        const char *file =
            mt_symbols_text(symbols, symbols->frames[symbols->stacks[stack].frame].file);

        if (mt_path_has(file, "cudagraph_trees.py"))
            return GRAPHS_OF_COMPILE;
        if (mt_path_has(file, "cuda/graphs.py"))
            maker = GRAPHS_BY_HAND;
    }
    return maker;
}

/* A MemPool of the program has an id (0, n), as shared pools of graphs do. If its first stack names
 * no capture, the pool may be either, in a program that captures graphs. */
static bool is_of_graph(const struct mt_pool_use *pool, enum graph_maker maker)
{
    return (pool->id[0] && !pool->id[1]) || (!pool->id[0] && pool->id[1] && maker != NO_GRAPHS);
}

static bool has_captures(const struct mt_symbols *symbols)
{
    return mt_file_is_in_frames(symbols, "cuda/graphs.py") ||
           mt_file_is_in_frames(symbols, "cudagraph_trees.py");
}

static enum mt_status find_graph_pools(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const struct mt_symbols *symbols = &search->analysis->source->symbols;
    enum graph_maker maker = GRAPHS_OF_COMPILE; /* of all pools */
    const bool may_capture = has_captures(symbols);
    bool is_sure = true;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = device->reserved_peak.bytes;
    uint64_t allocated = 0;
    uint32_t count = 0;
    const char *evidence[1];
    char n[3][MT_UNITS_TEXT];
    struct mt_finding finding = {.id = "graph-pools",
                                 .severity = "info",
                                 .saving = MT_SAVING_AT_MOST,
                                 .evidence = evidence,
                                 .evidence_count = 1};

    for (uint32_t i = 0; i < device->pool_count; i++) {
        const enum graph_maker own = maker_of(symbols, device->pools[i].first_stack);
        const bool is_its = is_of_graph(&device->pools[i], own);

        if (!is_its && (!may_capture || device->pools[i].id[0] || !device->pools[i].id[1]))
            continue;
        is_sure = is_sure && is_its;
        maker = own < maker ? own : maker;
        finding.bytes += device->pools[i].reserved_bytes;
        allocated += device->pools[i].allocated_bytes;
        count++;
    }
    if (finding.bytes < MIN_POOL_BYTES || finding.bytes < peak / POOL_MIN_SHARE ||
        finding.bytes - mt_min_u64(allocated, finding.bytes) < finding.bytes / FREE_MIN_SHARE)
        return MT_OK;
    finding.saves_bytes = finding.bytes;
    finding.title = mt_arena_printf(
        arena, "CUDA graphs%s hold %s (%s of the reserved peak) in %s%s",
        is_sure ? "" : " or MemPools", mt_format_bytes(n[0], finding.bytes),
        mt_format_percent(n[1], (double)finding.bytes / (double)peak),
        count == 1 ? "a private pool"
                   : mt_arena_printf(arena, "%s private pools", mt_format_count(n[2], count)),
        maker == GRAPHS_OF_COMPILE ? " (torch.compile)" : "");
    finding.advice =
        maker == GRAPHS_OF_COMPILE
            ? "compile for fewer input shapes (each has graphs of its own: pad the inputs), or "
              "use mode=\"default\", which makes no graphs"
        : count == 1
            ? "capture fewer graphs, or graphs of fewer shapes: what they allocate stays for "
              "replays"
            : "capture fewer graphs, or let graphs that never run at the same time share a pool: "
              "pass pool=torch.cuda.graph_pool_handle() to all of them";
    evidence[0] = mt_arena_printf(
        arena, "%s of it is allocated at the end; other requests cannot use the rest",
        mt_format_bytes(n[0], allocated));
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_graph_pools = {.find = find_graph_pools};

/* A KV cache that is most of the memory: how large it may be. Needs the parts of the whole
 * device. */

enum { CACHE_MIN_SHARE = 2 /* of the peak */ };

static enum mt_status find_kv_cache(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const struct mt_device_parts *parts = device->device_parts;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = device->allocated_peak.bytes,
                   bytes = device->peak_role_bytes[MT_ROLE_KV_CACHE];
    const char *evidence[1];
    char n[3][MT_UNITS_TEXT];
    const struct mt_symbols *symbols = &search->analysis->source->symbols;
    struct mt_finding finding = {.id = "kv-cache",
                                 .severity = "info",
                                 .bytes = bytes,
                                 .evidence = evidence,
                                 .evidence_count = 1};

    if (!parts || parts->died || bytes < peak / CACHE_MIN_SHARE || !mt_finding_matters(bytes, peak))
        return MT_OK;
    bool is_vllm = mt_file_is_in_frames(symbols, "vllm/");
    bool is_sglang = !is_vllm && mt_file_is_in_frames(symbols, "sglang/");
    bool has_room = mt_finding_matters(parts->spare_bytes, parts->total_bytes);
    finding.title =
        !parts->spare_bytes
            ? mt_arena_printf(arena, "The KV cache of %s is as large as it can be",
                              mt_format_bytes(n[0], mt_largest_kv_cache(parts)))
            : mt_arena_printf(
                  arena, "These requests leave room for a KV cache of %s, %s more than it has%s%s",
                  mt_format_bytes(n[0], mt_largest_kv_cache(parts)),
                  mt_format_bytes(n[1], parts->spare_bytes),
                  has_room ? ", if no other process uses the device" : "",
                  parts->context_is_known
                      ? ""
                      : ", minus what CUDA itself takes, which was not sampled");
    finding.advice =
        has_room
            ? mt_arena_printf(arena,
                              "give the cache more blocks%s if requests wait for it, or use a "
                              "smaller card",
                              is_vllm     ? " (gpu_memory_utilization of vLLM)"
                              : is_sglang ? " (mem_fraction_static of SGLang)"
                                          : "")
            : mt_arena_printf(arena,
                              "if requests wait for the cache: keep it in FP8%s, or serve shorter "
                              "or fewer sequences at a time",
                              is_vllm ? " (kv_cache_dtype=\"fp8\" of vLLM)" : "");
    evidence[0] =
        mt_arena_printf(arena, "%s (%s) of the peak: KV cache", mt_format_bytes(n[0], bytes),
                        mt_format_percent(n[1], (double)bytes / (double)peak));
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_kv_cache = {.find = find_kv_cache};
