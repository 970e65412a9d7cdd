/* Generates the text about commands and options from the tables. */
#include <string.h>

#include "cli.h"
#include "util.h"

#define HELP_COLUMN  26
#define MOST_COLUMNS 79

static const struct mt_option help_option = {"help", 'h', MT_OPTION_FLAG, NULL, "print this help",
                                             NULL};

static void add_padding(struct mt_buf *out, size_t from, size_t to)
{
    for (; from < to; from++)
        mt_buf_add_char(out, ' ');
}

/* Adds the help of an option, wrapped at spaces. The width is fixed, so the output is the same in
 * every terminal. */
static void add_help(struct mt_buf *out, const char *help)
{
    size_t column = HELP_COLUMN;

    while (*help) {
        size_t length = strcspn(help, " ");

        if (column > HELP_COLUMN && column + 1 + length > MOST_COLUMNS) {
            mt_buf_add_char(out, '\n');
            add_padding(out, 0, HELP_COLUMN);
            column = HELP_COLUMN;
        } else if (column > HELP_COLUMN) {
            mt_buf_add_char(out, ' ');
            column++;
        }
        mt_buf_add(out, help, length);
        column += length;
        help += length + (help[length] == ' ');
    }
    mt_buf_add_char(out, '\n');
}

/* Adds "  -o, --output FILE      where to write". The help is on its own line if the option is too
 * long for the column. */
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
    add_help(out, option->help);
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
