#include "rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "util.h"

static int say_wrong(const char *text)
{
    mt_say("option '--ranks' needs ranks such as 0,1,7 or 0-3, or all, not '%s'", text);
    return MT_EXIT_USAGE;
}

static int say_many(const char *text)
{
    mt_say("option '--ranks': '%s' makes more than %d runs; name only ranks that differ, such as "
           "the first, a middle one and the last",
           text, MT_MAX_RANKS);
    return MT_EXIT_USAGE;
}

static bool read_number(const char **at, uint64_t *number)
{
    const char *first = *at;

    for (*number = 0; **at >= '0' && **at <= '9'; (*at)++)
        if (*number < MT_MAX_WORLD) /* avoids overflow; larger numbers are never ranks */
            *number = *number * 10 + (uint64_t)(**at - '0');
    return *at != first;
}

static int add(uint64_t rank, uint64_t world, uint64_t ranks[MT_MAX_RANKS], size_t *count)
{
    if (rank >= world) {
        mt_say("option '--ranks': the last of %llu ranks is rank %llu", (unsigned long long)world,
               (unsigned long long)(world - 1));
        return MT_EXIT_USAGE;
    }
    for (size_t i = 0; i < *count; i++)
        if (ranks[i] == rank) {
            mt_say("option '--ranks' contains rank %llu twice", (unsigned long long)rank);
            return MT_EXIT_USAGE;
        }
    ranks[(*count)++] = rank;
    return -1;
}

int mt_ranks_read(const char *text, uint64_t world, uint64_t ranks[MT_MAX_RANKS], size_t *count)
{
    const char *at = text;
    uint64_t first = 0, last = world - 1;
    bool is_all = !strcmp(text, "all");
    int code = -1;

    *count = 0;
    do {
        if (!is_all && !read_number(&at, &first))
            return say_wrong(text);
        if (!is_all)
            last = first;
        if (!is_all && *at == '-' && (at++, !read_number(&at, &last) || last < first))
            return say_wrong(text);
        if (last - first >= MT_MAX_RANKS - *count)
            return say_many(text);
        for (uint64_t rank = first; code < 0 && rank <= last; rank++)
            code = add(rank, world, ranks, count);
    } while (code < 0 && !is_all && *at++ == ',');
    return code < 0 && !is_all && at[-1] ? say_wrong(text) : code;
}

static bool set(const char *name, uint64_t number)
{
    char text[32];

    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return !setenv(name, text, 1);
}

/* Sets the variables that PyTorch's agent sets for `torchrun script`. */
static bool set_launched(const struct mt_rank *rank)
{
    return !setenv("TORCHELASTIC_RUN_ID", "none", 1) &&
           !setenv("TORCHELASTIC_RESTART_COUNT", "0", 1) &&
           !setenv("TORCHELASTIC_MAX_RESTARTS", "0", 1) && !setenv("ROLE_NAME", "default", 1) &&
           set("ROLE_RANK", rank->rank) && set("ROLE_WORLD_SIZE", rank->world) &&
           (rank->local_world == 1 || !setenv("OMP_NUM_THREADS", "1", 0));
}

bool mt_rank_set_environment(const struct mt_rank *rank)
{
    return set("RANK", rank->rank) && set("WORLD_SIZE", rank->world) &&
           set("LOCAL_RANK", rank->rank % rank->local_world) &&
           set("LOCAL_WORLD_SIZE", rank->local_world) &&
           set("GROUP_RANK", rank->rank / rank->local_world) &&
           set("GROUP_WORLD_SIZE", rank->world / rank->local_world) &&
           !setenv("MASTER_ADDR", "127.0.0.1", 1) && !setenv("MASTER_PORT", "29500", 1) &&
           !setenv("MEMTRACE_DRY_RUN_ALONE", "1", 1) && (!rank->is_launched || set_launched(rank));
}
