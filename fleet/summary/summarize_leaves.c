/* Holders of the allocated peak, by call path and role: the nodes of the icicle behind flame
 * graphs, so a path has the same names there. Each leaf also has the site that `analyze` shows. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "icicle.h"
#include "rank_set.h"
#include "report.h"
#include "site.h"
#include "sorted.h"
#include "stable_hash.h"
#include "summarize_parts.h"

/* Sites as paths of a set: the frame of the site below the user's own frame, if they differ. */

static uint32_t add_frame(const struct mt_summarizing *work, uint32_t parent, uint32_t frame)
{
    if (frame == MT_NO_ID)
        return parent;
    const char *label = mt_frame_label(work->arena, work->report->symbols, frame);
    return mt_rank_set_path(work->set, parent, label, strlen(label));
}

uint32_t mt_summarize_site(const struct mt_summarizing *work, struct mt_site site)
{
    return add_frame(work, add_frame(work, MT_NO_PATH, site.own), site.frame);
}

/* The leaves that keep their path: each role needs room for a leaf that holds the rest. */
enum { KEPT_LEAVES = MT_RECORD_LEAVES - MT_ROLE_COUNT };

struct leaves {
    struct mt_record_leaf *list;
    uint32_t count;
};

/* The path of each node, by its index. */
static uint32_t *paths_of(const struct mt_summarizing *work, const struct mt_icicle *icicle)
{
    uint32_t *paths = mt_arena_array(work->arena, (size_t)icicle->count + 1, sizeof *paths);

    paths[0] = MT_NO_PATH;
    for (uint32_t i = 1; i < icicle->count; i++) {
        const struct mt_node *node = &icicle->nodes[i];

        paths[i] = paths[node->parent];
        if (node->kind == MT_NODE_BLOCKS)
            continue;
        const char *label = mt_node_label(work->arena, work->report->symbols, node);
        paths[i] = mt_rank_set_path(work->set, paths[i], label, strlen(label));
    }
    return paths;
}

/* The site that a node adds to its caller's: the rule of mt_stack_site, computed from the caller's
 * result. */
struct node_site {
    struct mt_site site;
    enum mt_frame_rank rank;
    uint32_t path; /* of a node that is a site by itself; MT_NO_PATH: `site` says it */
};

static struct node_site site_of_frame(const struct mt_symbols *symbols,
                                      const struct node_site *caller, uint32_t frame)
{
    struct mt_judged judged = mt_judge_frame(symbols, frame);
    struct node_site own = {{frame, MT_NO_ID}, judged.rank, MT_NO_PATH};

    if (caller->site.frame == MT_NO_ID)
        return own;
    if (caller->rank > judged.rank)
        return *caller;
    if (judged.origin != MT_ORIGIN_USER)
        own.site.own = mt_frame_origin(symbols, caller->site.frame) == MT_ORIGIN_USER
                           ? caller->site.frame
                           : caller->site.own;
    return own;
}

/* The site of blocks without a stack is their owner, or the phase of their allocation. */
static uint32_t site_of_words(const struct mt_summarizing *work, const struct mt_node *node)
{
    const char *label = mt_node_label(work->arena, work->report->symbols, node);

    return mt_rank_set_path(work->set, MT_NO_PATH, label, strlen(label));
}

/* The site of each BLOCKS node as a path, by its index. */
static uint32_t *sites_of(const struct mt_summarizing *work, const struct mt_icicle *icicle)
{
    struct node_site *sites = mt_arena_array(work->arena, (size_t)icicle->count + 1, sizeof *sites);
    uint32_t *paths = mt_arena_array(work->arena, (size_t)icicle->count + 1, sizeof *paths);

    sites[0] = (struct node_site){{MT_NO_ID, MT_NO_ID}, MT_RANK_NATIVE_PLUMBING, MT_NO_PATH};
    for (uint32_t i = 1; i < icicle->count; i++) {
        const struct mt_node *node = &icicle->nodes[i];

        sites[i] = sites[node->parent];
        if (node->kind == MT_NODE_FRAME)
            sites[i] = site_of_frame(work->report->symbols, &sites[node->parent], node->frame);
        else if (node->kind != MT_NODE_BLOCKS)
            sites[i].path = site_of_words(work, node);
        else if (sites[i].path != MT_NO_PATH)
            paths[i] = sites[i].path;
        else
            paths[i] = mt_summarize_site(work, sites[i].site);
    }
    return paths;
}

/* Largest first; paths were numbered in the order of the icicle, which depends only on bytes and
 * names. */
MT_DEFINE_ORDER(by_size, struct mt_record_leaf,
                MT_DESCENDING(bytes) || MT_THEN(mt_record_leaf_compare))

/* Merges leaves of one role and path. */
static void merge(struct leaves *leaves)
{
    uint32_t kept = 0;

    qsort(leaves->list, leaves->count, sizeof *leaves->list, mt_record_leaf_compare);
    for (uint32_t i = 0; i < leaves->count; i++) {
        struct mt_record_leaf *leaf = &leaves->list[i], *last = &leaves->list[kept - !!kept];

        if (!kept || mt_record_leaf_compare(last, leaf) != 0) {
            leaves->list[kept++] = *leaf;
        } else {
            last->bytes += leaf->bytes;
            last->blocks += leaf->blocks;
        }
    }
    leaves->count = kept;
}

/* Removes the paths of the small ones. */
static void prune(struct leaves *leaves)
{
    if (leaves->count <= MT_RECORD_LEAVES)
        return;
    qsort(leaves->list, leaves->count, sizeof *leaves->list, by_size);
    for (uint32_t i = KEPT_LEAVES; i < leaves->count; i++)
        leaves->list[i].path = leaves->list[i].site = MT_NO_PATH;
    merge(leaves);
    MT_ASSERT(leaves->count <= MT_RECORD_LEAVES);
}

static void collect(const struct mt_summarizing *work, const struct mt_icicle *icicle,
                    struct leaves *leaves)
{
    const uint32_t *paths = paths_of(work, icicle), *sites = sites_of(work, icicle);

    leaves->list = mt_arena_array(work->arena, icicle->count, sizeof *leaves->list);
    for (uint32_t i = 1; i < icicle->count; i++) {
        const struct mt_node *node = &icicle->nodes[i];

        if (node->kind == MT_NODE_BLOCKS && node->bytes)
            leaves->list[leaves->count++] = (struct mt_record_leaf){.path = paths[i],
                                                                    .role = node->role,
                                                                    .bytes = node->bytes,
                                                                    .blocks = node->blocks,
                                                                    .site = sites[i]};
    }
    merge(leaves);
    prune(leaves);
}

struct sizes {
    uint64_t block_bytes, blocks;
};

MT_DEFINE_ORDER(by_block_bytes, struct sizes, MT_ASCENDING(block_bytes))

/* Of pairs (bytes of a block, number of blocks of parameters of that size), by size; 0: none. */
static void hash_parameters(const struct mt_summarizing *work, const struct mt_instant *peak)
{
    struct sizes *sizes = mt_arena_array(work->arena, peak->holding_count + 1, sizeof *sizes);
    uint64_t hash = MT_STABLE_HASH_START;
    uint32_t count = 0;

    for (uint32_t i = 0; i < peak->holding_count; i++)
        if (peak->holdings[i].role == MT_ROLE_PARAMETERS)
            sizes[count++] =
                (struct sizes){peak->holdings[i].block_bytes, peak->holdings[i].blocks};
    qsort(sizes, count, sizeof *sizes, by_block_bytes);
    for (uint32_t i = 0; i < count; i++) {
        if (i + 1 < count && sizes[i + 1].block_bytes == sizes[i].block_bytes) {
            sizes[i + 1].blocks += sizes[i].blocks;
            continue;
        }
        hash = mt_stable_hash_u64(hash, sizes[i].block_bytes);
        hash = mt_stable_hash_u64(hash, sizes[i].blocks);
    }
    work->record->parameter_hash = count ? hash : 0;
}

static const struct mt_instant *find_peak(const struct mt_device_report *device)
{
    bool has_peak = device->instant_count && device->instants[0].kind == MT_INSTANT_PEAK_ALLOCATED;

    return has_peak ? &device->instants[0] : NULL;
}

static uint32_t find_growth_site(const struct mt_summarizing *work)
{
    const struct mt_growth *growth = &work->device->growth;
    struct mt_site site = {MT_NO_ID, MT_NO_ID};

    if (growth->bytes_per_step)
        site = mt_stack_site(work->report->symbols, growth->stack);
    return mt_summarize_site(work, site);
}

void mt_summarize_leaves(const struct mt_summarizing *work)
{
    const struct mt_report *report = work->report;
    const struct mt_instant *peak = find_peak(work->device);
    const struct mt_icicle_options options = {.first_event = work->device->first_event};
    struct mt_icicle *icicle = NULL;
    struct leaves leaves = {NULL, 0};

    work->record->growth_site = find_growth_site(work);
    if (!peak || !peak->bytes.allocated)
        return;
    mt_icicle_build(work->arena, peak->holdings, peak->holding_count, report->phases,
                    report->phase_count, report->symbols, &options, &icicle);
    collect(work, icicle, &leaves);
    work->record->leaves = leaves.list;
    work->record->leaf_count = leaves.count;
    hash_parameters(work, peak);
}
