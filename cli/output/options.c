/* Parses options with getopt_long and one table for each command. Only this table defines an
 * option: parsing, --help, completion and the test of the manual read it. */
#include <assert.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze.h"
#include "annexes.h"
#include "cards.h"
#include "chart.h"
#include "cli.h"
#include "export_format.h"
#include "foreign_text.h"
#include "import.h"
#include "memory_limit.h"
#include "options.h"
#include "units.h"
#include "util.h"

/* A user waits at the prompt. A small file can still contain many events. */
#define MAX_BYTES (UINT64_C(16) << 20)

enum { MAX_SECONDS = 2 };

struct candidates {
    struct mt_buf out;
    const char *lead; /* "--policy=" where option and value are one word, else "" */
    const char *word; /* what the value must begin with */
    char *const *words;
    int count;
};

static void add(struct candidates *found, const char *value)
{
    if (strncmp(value, found->word, strlen(found->word)) == 0)
        mt_buf_printf(&found->out, "%s%s\n", found->lead, value);
}

static void add_policies(struct candidates *found)
{
    for (size_t i = 0; mt_policies[i]; i++)
        add(found, mt_policies[i]->name);
}

static void add_charts(struct candidates *found)
{
    for (size_t i = 0; mt_charts[i]; i++)
        add(found, mt_charts[i]->name);
    add(found, "policies");
}

static void add_exports(struct candidates *found)
{
    for (size_t i = 0; mt_export_formats[i]; i++)
        add(found, mt_export_formats[i]->name);
}

static void add_cards(struct candidates *found)
{
    for (size_t i = 0; mt_cards[i].name; i++)
        add(found, mt_cards[i].name);
}

static void add_questions(struct candidates *found)
{
    add(found, "list");
    for (size_t i = 0; mt_database_questions[i]; i += 2)
        add(found, mt_database_questions[i]);
}

/* Returns the first word that names a small file, or NULL. "-" would be standard input. */
static const char *trace_of(const struct candidates *found)
{
    struct stat status;

    for (int i = 0; i + 1 < found->count; i++)
        if (found->words[i][0] != '-' && stat(found->words[i], &status) == 0 &&
            S_ISREG(status.st_mode) && (uint64_t)status.st_size <= MAX_BYTES)
            return found->words[i];
    return NULL;
}

static void give_up(int signal_number)
{
    (void)signal_number;
    _exit(MT_EXIT_OK);
}

/* Ends this process if reading a trace takes too long. */
static void limit_time(void)
{
    signal(SIGALRM, give_up);
    alarm(MAX_SECONDS);
}

static void add_phases(struct candidates *found)
{
    const struct mt_analyze_options options = {.no_findings = true};
    const char *path = trace_of(found);
    struct mt_report *report = NULL;
    struct mt_source *source = NULL;
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (path) {
        (void)mt_print_and_release(&found->out); /* give_up would lose it */
        limit_time();
    }
    if (!path || mt_import_open_any(path, &source, &error) != MT_OK)
        return;
    if (mt_analyze(source, &options, &report, &error) == MT_OK)
        for (uint32_t i = 0; i < report->phase_count; i++) {
            struct mt_buf phase = {0};

            mt_buf_printf(&phase, "phase:%s", report->phases[i].path);
            if (mt_foreign_is_shown(phase.data))
                add(found, phase.data);
            mt_buf_release(&phase);
        }
    mt_report_release(report);
    mt_source_close(source);
}

static void add_instants(struct candidates *found)
{
    static const char *const instants[] = {"peak", "reserved-peak", "oom", "end"};

    for (size_t i = 0; i < MT_ARRAY_LEN(instants); i++)
        add(found, instants[i]);
    add_phases(found);
}

struct value_source {
    const char *option;
    const char *command; /* NULL = every command */
    void (*add)(struct candidates *found);
    const char *values; /* instead of `add`: words separated by blanks */
};

static const struct value_source sources[] = {
    {"policy", NULL, add_policies, NULL},
    {"card", "plan", add_cards, NULL},
    {"device", "dry-run", add_cards, NULL},
    {"limit", NULL, add_cards, NULL},
    {"ask", "sql", add_questions, NULL},
    {"at", NULL, add_instants, NULL},
    {"from", NULL, add_phases, NULL},
    {"to", NULL, add_phases, NULL},
    {"zoom", NULL, add_phases, NULL},
    {"by", "render", NULL, "role phase site stream"},
    {"by", "live", NULL, "site stack role phase size module"},
    {"max-peak", NULL, NULL, "requested= allocated= active= reserved= device="},
    {"theme", NULL, NULL, "auto light dark"},
    {"x", NULL, NULL, "time events"},
    {"stacks", "record", NULL, "auto none python native both"},
    {"follow", "record", NULL, "all none"},
    {"phases", "record", NULL, "nvtx torch autograd"},
};

static void add_words(struct candidates *found, const char *values)
{
    char word[32];

    while (*values) {
        size_t length = strcspn(values, " ");

        if (length < sizeof word) {
            memcpy(word, values, length);
            word[length] = '\0';
            add(found, word);
        }
        values += length + (values[length] == ' ');
    }
}

static void add_values(struct candidates *found, const char *command, const char *option)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(sources); i++) {
        const struct value_source *source = &sources[i];

        if (strcmp(source->option, option) != 0 ||
            (source->command && strcmp(source->command, command) != 0))
            continue;
        if (source->add)
            source->add(found);
        else
            add_words(found, source->values);
        return;
    }
}

/* Returns the option whose value follows `word`, or NULL: "--policy", "-p". */
static const struct mt_option *completion_option_of(const struct mt_option *options,
                                                    const char *word)
{
    if (word[0] != '-' || !word[1])
        return NULL;
    for (; options->name; options++)
        if (options->kind != MT_OPTION_FLAG &&
            (word[1] == '-' ? strcmp(word + 2, options->name) == 0
                            : word[1] == options->letter && !word[2]))
            return options;
    return NULL;
}

static void add_options(struct candidates *found, const struct mt_option *options)
{
    struct mt_buf text = {0};

    for (; options->name; options++) {
        text.length = 0;
        mt_buf_printf(&text, "--%s%s", options->name, options->value ? "=" : "");
        add(found, text.data);
        text.length = 0;
        if (options->letter)
            mt_buf_printf(&text, "-%c", options->letter);
        if (options->letter)
            add(found, text.data);
    }
    mt_buf_release(&text);
    add(found, "--help");
    add(found, "-h");
}

/* "--policy=py" is an option and its value in one word. */
static void add_joined(struct candidates *found, const char *command, const char *word)
{
    const char *equals = strchr(word, '=');
    struct mt_buf name = {0}, lead = {0};

    mt_buf_add(&name, word + 2, (size_t)(equals - word - 2));
    mt_buf_add(&lead, word, (size_t)(equals + 1 - word));
    if (name.data) {
        found->lead = lead.data;
        found->word = equals + 1;
        add_values(found, command, name.data);
    }
    mt_buf_release(&name);
    mt_buf_release(&lead);
}

static void add_candidates(struct candidates *found, const struct mt_command *command,
                           const struct mt_option *options)
{
    const char *word = found->words[found->count - 1];
    const struct mt_option *before =
        found->count > 1 ? completion_option_of(options, found->words[found->count - 2]) : NULL;

    found->word = word;
    if (before)
        add_values(found, command->name, before->name);
    else if (strncmp(word, "--", 2) == 0 && strchr(word, '='))
        add_joined(found, command->name, word);
    else if (word[0] == '-')
        add_options(found, options);
    else if (found->count == 1 && strcmp(command->name, "render") == 0)
        add_charts(found);
    else if (found->count == 1 && strcmp(command->name, "export") == 0)
        add_exports(found);
}

static bool is_after_options(char *const *words, int count)
{
    for (int i = 0; i + 1 < count; i++)
        if (strcmp(words[i], "--") == 0)
            return true;
    return false;
}

/* Prints the candidates that begin with the last word, one per line. After a dash these are
 * options, otherwise values of the option or the argument at the cursor. Without words, prints all
 * options. Values from a trace, such as phases, are read from the first word that is a file of at
 * most 16 MiB. If that takes longer than 2 seconds, the process exits without them. Omits values
 * with characters that a terminal does not show unchanged. Prints nothing after the word "--", and
 * no errors, because the user is typing. Returns the exit code of mt_print. */
static int print_candidates(const struct mt_command *command, const struct mt_option *options,
                            char *const *words, int count)
{
    struct candidates found = {.lead = "", .word = "", .words = words, .count = count};

    if (is_after_options(words, count))
        return MT_EXIT_OK;
    if (count > 0)
        add_candidates(&found, command, options);
    else
        add_options(&found, options);
    return mt_print_and_release(&found.out);
}

/* Generates the text about commands and options from the tables. */

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

/* Prints the text of --help. Returns the exit code of mt_print. */
static int print_help(const struct mt_command *command, const struct mt_option *options)
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
    mt_buf_printf(&out, "\nexit status: %s\n",
                  strstr(command->arguments, "COMMAND")
                      ? "that of COMMAND; else 2 usage, 4 output, 126 or 127 not started"
                      : "0 ok, 1 check failed, 2 usage, 3 input, 4 output, 5 strict, 6 bug");
    return mt_print_and_release(&out);
}

#define MAX_OPTIONS 60

/* Values that getopt_long returns for long options. They are larger than any letter. */
enum { VALUE_OF_FIRST_OPTION = 256, VALUE_OF_HELP = 512 };

struct parser {
    const struct mt_command *command;
    const struct mt_option *options;
    const struct mt_card *limit; /* the card of a limit */
    size_t count;
    struct option longs[MAX_OPTIONS + 3];
    char letters[2 * MAX_OPTIONS + 4];
};

static size_t count_options(const struct mt_option *options)
{
    size_t count = 0;

    while (options[count].name)
        count++;
    assert(count <= MAX_OPTIONS);
    return count;
}

/* "-" keeps the order of argv (and ignores POSIXLY_CORRECT). ":" distinguishes a missing value from
 * an unknown option. */
static void parser_init(struct parser *parser, const struct mt_command *command,
                        const struct mt_option *options)
{
    char *letter = parser->letters;
    size_t i;

    memset(parser, 0, sizeof *parser);
    parser->command = command;
    parser->options = options;
    parser->count = count_options(options);
    *letter++ = '-';
    *letter++ = ':';
    *letter++ = 'h';
    for (i = 0; i < parser->count; i++) {
        bool has_value = options[i].kind != MT_OPTION_FLAG;
        parser->longs[i].name = options[i].name;
        parser->longs[i].has_arg = has_value ? required_argument : no_argument;
        parser->longs[i].val = VALUE_OF_FIRST_OPTION + (int)i;
        if (options[i].letter) {
            *letter++ = options[i].letter;
            if (has_value)
                *letter++ = ':';
        }
    }
    parser->longs[i] = (struct option){"help", no_argument, NULL, VALUE_OF_HELP};
}

/* Returns the option for the `value` of getopt_long, or NULL. */
static const struct mt_option *option_of(const struct parser *parser, int value)
{
    size_t i;

    if (value >= VALUE_OF_FIRST_OPTION) {
        i = (size_t)(value - VALUE_OF_FIRST_OPTION);
        return i < parser->count ? &parser->options[i] : NULL;
    }
    for (i = 0; i < parser->count; i++)
        if (parser->options[i].letter && parser->options[i].letter == value)
            return &parser->options[i];
    return NULL;
}

static int usage_hint(const struct mt_command *command)
{
    mt_message("see 'memtrace %s --help'", command->name);
    return MT_EXIT_USAGE;
}

static int wrong_value(const struct parser *parser, const struct mt_option *option,
                       const char *wanted, const char *value)
{
    mt_message("option '--%s' needs %s, not '%s'", option->name, wanted, value);
    return usage_hint(parser->command);
}

/* Returns the text after "step " or "step#", or `text` itself if it begins with neither. */
static const char *skip_step(const char *text)
{
    return strncmp(text, "step ", 5) == 0 || strncmp(text, "step#", 5) == 0 ? text + 5 : text;
}

static bool parse_count(const char *text, uint64_t *count)
{
    uint64_t value = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9'; at++)
        if (!mt_mul_ok(value, 10, &value) || !mt_add_ok(value, (uint64_t)(*at - '0'), &value))
            return false;
    if (at == text || *at)
        return false;
    *count = value;
    return true;
}

static int add_to_list(const struct parser *parser, const struct mt_option *option,
                       const char *value)
{
    struct mt_text_list *list = option->target;

    if (list->count == MT_ARRAY_LEN(list->items)) {
        mt_message("option '--%s' may be given at most %zu times", option->name, list->count);
        return usage_hint(parser->command);
    }
    list->items[list->count++] = value;
    return -1;
}

static int store_memory(const struct parser *parser, const struct mt_option *option,
                        const char *value)
{
    uint64_t bytes;

    if (mt_parse_bytes(value, &bytes) != MT_OK || !bytes)
        return wrong_value(parser, option, "a number of bytes such as 12GiB", value);
    mt_memory_limit_set(bytes);
    return -1;
}

/* "24GB" is a card, because no card of 24 GB has that many bytes. */
static int store_limit(struct parser *parser, const struct mt_option *option, const char *value)
{
    bool has_unit = value[strspn(value, "0123456789,. ")];
    uint64_t *bytes = option->target;
    const char *near = NULL;

    parser->limit = mt_card_of_size(value);
    if (!parser->limit && mt_parse_bytes(value, bytes) == MT_OK && *bytes) {
        if (has_unit || *bytes >= MT_MIB)
            return -1;
        mt_message("option '--limit': '%s' is less than 1 MiB: write a unit as in '24GiB', or a "
                   "card such as 'RTX 4090'",
                   value);
        return usage_hint(parser->command);
    }
    if (!parser->limit)
        parser->limit = mt_card_find(value, &near);
    if (parser->limit) {
        *bytes = parser->limit->memory_bytes;
        return -1;
    }
    if (!near)
        return wrong_value(parser, option, "bytes such as 12GiB, or a card such as 'RTX 4090'",
                           value);
    mt_message("option '--limit' needs bytes or a card, not '%s'; did you mean '%s'?", value, near);
    return usage_hint(parser->command);
}

/* Prints which card a limit was understood as. */
static void say_limit(const struct parser *parser)
{
    char bytes[MT_UNITS_TEXT];

    for (const struct mt_option *option = parser->options; option->name; option++)
        if (strcmp(option->name, "quiet") == 0 && *(bool *)option->target)
            return;
    if (parser->limit)
        mt_message("limit: %s (%s, of which CUDA and libraries take about 1 GiB)",
                   mt_format_bytes(bytes, parser->limit->memory_bytes), parser->limit->name);
}

/* Stores the value at the target in the table. Returns -1 or an exit code. */
static int store(struct parser *parser, const struct mt_option *option, const char *value)
{
    switch (option->kind) {
    case MT_OPTION_FLAG: *(bool *)option->target = true; return -1;
    case MT_OPTION_TEXT: *(const char **)option->target = value; return -1;
    case MT_OPTION_LIST: return add_to_list(parser, option, value);
    case MT_OPTION_BYTES:
        if (mt_parse_bytes(value, option->target) == MT_OK && *(uint64_t *)option->target)
            return -1;
        return wrong_value(parser, option, "a number of bytes such as 12GiB", value);
    case MT_OPTION_LIMIT: return store_limit(parser, option, value);
    case MT_OPTION_MEMORY: return store_memory(parser, option, value);
    case MT_OPTION_COUNT:
        if (parse_count(value, option->target))
            return -1;
        return wrong_value(parser, option, "a whole number", value);
    case MT_OPTION_STEP:
        if (parse_count(skip_step(value), option->target))
            return -1;
        return wrong_value(parser, option, "the number of a step", value);
    case MT_OPTION_POSITIVE:
        if (parse_count(value, option->target) && *(uint64_t *)option->target)
            return -1;
        return wrong_value(parser, option, "a whole number of at least 1", value);
    }
    return -1;
}

/* Prints what is wrong with the long option `word` ("--lmit=3"), which getopt_long rejected. */
static int unknown_long(const struct parser *parser, const char *word)
{
    const char *names[MAX_OPTIONS + 1];
    size_t length = strcspn(word + 2, "="), count = 0, starting = 0;
    char typed[64];

    for (size_t i = 0; i < parser->count; i++) {
        names[count++] = parser->options[i].name;
        starting += strncmp(parser->options[i].name, word + 2, length) == 0;
    }
    names[count++] = "help";
    if (starting > 1) {
        mt_message("option '--%.*s' is ambiguous", (int)length, word + 2);
        return usage_hint(parser->command);
    }
    length = length < sizeof typed ? length : sizeof typed - 1;
    memcpy(typed, word + 2, length);
    typed[length] = '\0';
    const char *near = mt_did_you_mean(typed, names, count);
    if (near)
        mt_message("unknown option '--%s'; did you mean '--%s'?", typed, near);
    else
        mt_message("unknown option '--%s'", typed);
    return usage_hint(parser->command);
}

/* Reports an option that getopt_long rejected. `value` is optopt, and `word` is the argument that
 * contains the option. */
static int refused(const struct parser *parser, int value, const char *word)
{
    if (value == 0)
        return unknown_long(parser, word);
    if (value >= VALUE_OF_FIRST_OPTION)
        mt_message("option '%.*s' takes no value", (int)strcspn(word, "="), word);
    else
        mt_message("unknown option '-%c'", value);
    return usage_hint(parser->command);
}

static int missing_value(const struct parser *parser, int value)
{
    const struct mt_option *option = option_of(parser, value);

    mt_message("option '--%s' needs a value: %s", option->name, option->value);
    return usage_hint(parser->command);
}

/* Handles one result of getopt_long that is not positional. Returns -1 or an exit code. */
static int handle(struct parser *parser, int value, const char *word)
{
    switch (value) {
    case '?': return refused(parser, optopt, word);
    case ':': return missing_value(parser, optopt);
    case 'h':
    case VALUE_OF_HELP: return print_help(parser->command, parser->options);
    default: return store(parser, option_of(parser, value), optarg);
    }
}

int mt_missing_argument(const struct mt_command *command)
{
    mt_message("%s: missing argument; usage: memtrace %s %s", command->name, command->name,
               command->arguments);
    return usage_hint(command);
}

static int check_argument_count(const struct mt_command *command, int count, int min, int max,
                                char **arguments)
{
    if (count < min)
        return mt_missing_argument(command);
    if (count <= max)
        return -1;
    bool reads_one = max == 1 && strncmp(command->arguments, "TRACE", 5) == 0;
    mt_message("%s: unexpected argument '%s'%s", command->name, arguments[max],
               reads_one ? "; this command reads one trace" : "");
    if (reads_one && mt_annex_files)
        mt_annex_files->say_several(arguments, count);
    return usage_hint(command);
}

int mt_options_parse(const struct mt_command *command, const struct mt_option *options, int argc,
                     char **argv, int min_arguments, int max_arguments, char ***arguments,
                     int *argument_count)
{
    struct parser parser;
    int value, count = 0;

    if (argc > 1 && strcmp(argv[1], MT_COMPLETION_WORD) == 0)
        return print_candidates(command, options, argv + 2, argc - 2);
    parser_init(&parser, command, options);
    optind = 0; /* restart getopt_long after an earlier call */
    opterr = 0;
    while ((value = getopt_long(argc, argv, parser.letters, parser.longs, NULL)) != -1) {
        if (value == 1) { /* getopt_long has read this part of argv */
            argv[++count] = optarg;
            continue;
        }
        int code = handle(&parser, value, argv[optind - 1]);
        if (code >= 0)
            return code;
    }
    while (optind < argc)
        argv[++count] = argv[optind++];
    *arguments = argv + 1;
    *argument_count = count;
    if (count == 1)
        mt_memory_input_set(argv[1]);
    say_limit(&parser);
    return check_argument_count(command, count, min_arguments, max_arguments, *arguments);
}
