/* What a person or a shell is told about commands and options, all of it from
 * the tables. */
#include <string.h>

#include "cli.h"
#include "util.h"

#define HELP_COLUMN 26

static const struct mt_option help_option = {"help", 'h', MT_OPTION_FLAG, NULL, "print this help",
                                             NULL};

static void add_padding(struct mt_buf *out, size_t from, size_t to)
{
    for (; from < to; from++)
        mt_buf_add_char(out, ' ');
}

/* "  -o, --output FILE      where to write", the help on its own line if the
 * option is too long for the column. */
static void add_option(struct mt_buf *out, const struct mt_option *option)
{
    size_t start = out->length;

    if (option->letter)
        mt_buf_printf(out, "  -%c, --%s", option->letter, option->name);
    else
        mt_buf_printf(out, "      --%s", option->name);
    if (option->value)
        mt_buf_printf(out, " %s", option->value);
    if (out->length - start + 2 > HELP_COLUMN) {
        mt_buf_add_char(out, '\n');
        start = out->length;
    }
    add_padding(out, out->length - start, HELP_COLUMN);
    mt_buf_printf(out, "%s\n", option->help);
}

int mt_print_help(const struct mt_command *command, const struct mt_option *options)
{
    struct mt_buf out = {0};

    mt_buf_printf(&out, "memtrace %s: %s\n\nusage: memtrace %s %s\n\n", command->name,
                  command->summary, command->name, command->arguments);
    if (command->details)
        mt_buf_printf(&out, "%s\n\n", command->details);
    mt_buf_add_text(&out, "options:\n");
    for (; options->name; options++)
        add_option(&out, options);
    add_option(&out, &help_option);
    return mt_print_and_release(&out);
}

int mt_print_completions(const struct mt_option *options)
{
    struct mt_buf out = {0};

    for (; options->name; options++) {
        mt_buf_printf(&out, "--%s%s\n", options->name, options->value ? "=" : "");
        if (options->letter)
            mt_buf_printf(&out, "-%c\n", options->letter);
    }
    mt_buf_add_text(&out, "--help\n-h\n");
    return mt_print_and_release(&out);
}

/* Edits (insert, delete, replace, swap of neighbours) that turn one word into
 * the other; both at most MAX_WORD long. Three rows of the usual table. */
#define MAX_WORD 40

static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][MAX_WORD + 1], *before = rows[0], *above = rows[1], *row = rows[2], *spare, i, j;

    for (j = 0; j <= b_length; j++)
        above[j] = before[j] = j;
    for (i = 1; i <= a_length; i++) {
        row[0] = i;
        for (j = 1; j <= b_length; j++) {
            row[j] = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = mt_min_u64(row[j], mt_min_u64(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = mt_min_u64(row[j], before[j - 2] + 1);
        }
        spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[b_length];
}

const char *mt_did_you_mean(const char *word, const char *const *names, size_t count)
{
    size_t length = strlen(word), allowed = length / 3, best_distance, i;
    const char *best = NULL;

    if (length > MAX_WORD)
        return NULL;
    allowed = allowed < 1 ? 1 : allowed > 2 ? 2 : allowed;
    best_distance = allowed + 1;
    for (i = 0; i < count; i++) {
        size_t name_length = strlen(names[i]), distance;
        if (name_length > MAX_WORD)
            continue;
        distance = edit_distance(word, length, names[i], name_length);
        if (distance < best_distance) {
            best_distance = distance;
            best = names[i];
        }
    }
    return best;
}
