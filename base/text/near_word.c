#include "near_word.h"

#include <string.h>

#include "util.h"

/* Edits (insert, delete, replace, swap of neighbors) that turn one word into the other. Both have
 * at most MAX_WORD letters. Three rows of the usual table. */
#define MAX_WORD 40

static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][MAX_WORD + 1], *before = rows[0], *above = rows[1], *row = rows[2];

    for (size_t j = 0; j <= b_length; j++)
        above[j] = before[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = mt_min_u64(row[j], mt_min_u64(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = mt_min_u64(row[j], before[j - 2] + 1);
        }
        size_t *spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[b_length];
}

const char *mt_did_you_mean_part(const char *word, size_t length, const char *const *names,
                                 size_t count)
{
    size_t allowed = length / 3;
    const char *best = NULL;

    if (length > MAX_WORD)
        return NULL;
    allowed = allowed < 1 ? 1 : allowed > 2 ? 2 : allowed;
    size_t best_distance = allowed + 1;
    for (size_t i = 0; i < count; i++) {
        size_t name_length = strlen(names[i]);
        if (name_length > MAX_WORD)
            continue;
        size_t distance = edit_distance(word, length, names[i], name_length);
        if (distance < best_distance) {
            best_distance = distance;
            best = names[i];
        }
    }
    return best;
}

const char *mt_did_you_mean(const char *word, const char *const *names, size_t count)
{
    return mt_did_you_mean_part(word, strlen(word), names, count);
}
