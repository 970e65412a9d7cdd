#include "completion.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze.h"
#include "cards.h"
#include "chart.h"
#include "export_format.h"
#include "foreign_text.h"
#include "import.h"
#include "policy.h"
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

/* ---- values of the tables */

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

/* ---- values of a trace */

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

/* ---- which values */

struct value_source {
    const char *option;
    const char *command; /* NULL = every command */
    void (*add)(struct candidates *found);
    const char *values; /* instead of `add`: words separated by blanks */
};

static const struct value_source sources[] = {
    {"policy", NULL, add_policies, NULL},
    {"device", "dry-run", add_cards, NULL},
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
static const struct mt_option *option_of(const struct mt_option *options, const char *word)
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
        found->count > 1 ? option_of(options, found->words[found->count - 2]) : NULL;

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

int mt_print_candidates(const struct mt_command *command, const struct mt_option *options,
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
