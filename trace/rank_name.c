/* The rank in the name of a file, as launchers and frameworks write it: host-77-rank3.trace.zst,
 * rank_003.pickle, oom_rank-3_x.pickle, snapshot-r3.pickle. */
#include "rank_name.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "decimal.h"
#include "process_groups.h"

static bool is_word_part(char c)
{
    return isalnum((unsigned char)c) != 0;
}

/* The rank within a node and the rank of a node are not the rank of the job. */
static bool is_other_rank(const char *name, const char *at)
{
    static const char *const others[] = {"local_", "local-", "node_", "node-", "group_", "group-"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t length = strlen(others[i]);
        if ((size_t)(at - name) >= length && !strncasecmp(at - length, others[i], length))
            return true;
    }
    return false;
}

/* Reads `word` and digits at `at`: the number, or -1. */
static int32_t number_at(const char *name, const char *at, const char *word, bool may_part)
{
    const char *end = at + strlen(at), *digits = at + strlen(word);
    uint64_t number;

    if (strncasecmp(at, word, strlen(word)) || (at > name && is_word_part(at[-1])) ||
        is_other_rank(name, at))
        return -1;
    digits += may_part && *digits && strchr("_-=", *digits) ? 1 : 0;
    if (!mt_decimal_take(&digits, end, &number) || number > MT_MAX_RANK || is_word_part(*digits))
        return -1;
    return (int32_t)number;
}

/* -1: none; -2: several that differ. */
static int32_t rank_after(const char *name, const char *word, bool may_part)
{
    int32_t found = -1;

    for (const char *at = name; *at; at++) {
        int32_t number = number_at(name, at, word, may_part);

        if (number >= 0 && found >= 0 && number != found)
            return -2;
        if (number >= 0)
            found = number;
    }
    return found;
}

int32_t mt_rank_of_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int32_t rank = rank_after(name, "rank", true);

    if (rank == -1)
        rank = rank_after(name, "r", false);
    return rank < 0 ? -1 : rank;
}
