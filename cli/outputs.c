#include "outputs.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "memory_failure.h"
#include "memory_limit.h"
#include "util.h"

/* The one variable of the program that is not constant: a signal handler gets no argument. */
static struct mt_unfinished unfinished;

static void die_tidily(int number)
{
    mt_unfinished_unlink(&unfinished);
    (void)signal(number, SIG_DFL);
    (void)raise(number); /* pends until the handler returns, then ends the program */
}

void mt_outputs_handle_signals(void)
{
    static const int fatal[] = {SIGHUP, SIGINT, SIGTERM, SIGQUIT};
    struct sigaction tidy = {.sa_handler = die_tidily};
    struct sigaction found;

    for (size_t i = 0; i < MT_ARRAY_LEN(fatal); i++)
        if (sigaction(fatal[i], NULL, &found) == 0 && found.sa_handler == SIG_DFL)
            (void)sigaction(fatal[i], &tidy, NULL); /* ignored ones stay so: nohup */
    (void)signal(SIGXFSZ, SIG_IGN);
}

void mt_outputs_add_input(struct mt_outputs *outputs, const char *path)
{
    if (path && outputs->input_count < MT_ARRAY_LEN(outputs->inputs))
        outputs->inputs[outputs->input_count++] = path;
}

struct mt_output_rules mt_output_rules_of(const struct mt_outputs *outputs, enum mt_file_kind kind)
{
    return (struct mt_output_rules){
        .force = outputs->force,
        .is_private = kind == MT_FILE_TRACE, /* paths, host and command line of the run */
        .is_durable = kind == MT_FILE_TRACE, /* the snapshot may be deleted after the import */
        .kind = mt_file_kinds[kind].name,
        .is_own = mt_file_kinds[kind].is_own,
        .inputs = outputs->inputs,
        .input_count = outputs->input_count,
        .unfinished = &unfinished,
    };
}

int mt_report_output_error(const char *path, const struct mt_error *error)
{
    if (mt_is_standard_output(path))
        mt_say("cannot write standard output: %s", error->text);
    else
        mt_say("cannot write '%s': %s", path, error->text);
    return error->status == MT_ERR_USAGE ? MT_EXIT_USAGE : MT_EXIT_OUTPUT;
}

int mt_output_precheck(const char *path, const struct mt_outputs *outputs, enum mt_file_kind kind)
{
    const struct mt_output_rules rules = mt_output_rules_of(outputs, kind);
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (!path || mt_output_check(path, &rules, &error) == MT_OK)
        return MT_EXIT_OK;
    return mt_report_output_error(path, &error);
}

bool mt_is_standard_output(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

/* What was made since an allocation failed may lack a part. */
static void say_no_memory(struct mt_error *error)
{
    char budget[MT_MEMORY_TEXT];
    bool is_budget = mt_memory_limit_text(budget, sizeof budget);

    (void)mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "%s", is_budget ? budget : "out of memory");
}

int mt_write_file(const char *path, const struct mt_outputs *outputs, enum mt_file_kind kind,
                  const struct mt_buf *bytes)
{
    const struct mt_output_rules rules = mt_output_rules_of(outputs, kind);
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (mt_is_standard_output(path))
        return mt_print(bytes);
    if (bytes->failed || mt_memory_has_failed())
        say_no_memory(&error);
    else if (mt_output_write(path, &rules, bytes->data ? bytes->data : "", bytes->length, &error) ==
             MT_OK)
        return MT_EXIT_OK;
    return mt_report_output_error(path, &error);
}
