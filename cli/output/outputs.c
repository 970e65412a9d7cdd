#include "outputs.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "memory_limit.h"
#include "process_memory.h"
#include "util.h"

/* A variable, because a signal handler has no argument. */
static struct mt_unfinished unfinished;

struct mt_unfinished *mt_outputs_unfinished(void)
{
    return &unfinished;
}

static void die_tidily(int number)
{
    mt_unfinished_unlink(&unfinished);
    (void)signal(number, SIG_DFL);
    /* The signal is pending until the handler returns, then it ends the program. */
    (void)raise(number);
}

void mt_outputs_handle_signals(void)
{
    /* the last three end a process in which another library, such as libdw, fails */
    static const int fatal[] = {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
    struct sigaction tidy = {.sa_handler = die_tidily};
    struct sigaction found;

    for (size_t i = 0; i < MT_ARRAY_LEN(fatal); i++)
        if (sigaction(fatal[i], NULL, &found) == 0 && found.sa_handler == SIG_DFL)
            (void)sigaction(fatal[i], &tidy, NULL); /* ignored signals stay ignored, for nohup */
    (void)signal(SIGXFSZ, SIG_IGN);
}

void mt_outputs_add_input(struct mt_outputs *outputs, const char *path)
{
    if (!path)
        return;
    MT_ASSERT(outputs->input_count < MT_ARRAY_LEN(outputs->inputs));
    outputs->inputs[outputs->input_count++] = path;
}

struct mt_output_rules mt_output_rules_of(const struct mt_outputs *outputs,
                                          const struct mt_file_kind *kind)
{
    return (struct mt_output_rules){
        .force = outputs->force,
        .is_private = kind->is_private,
        .is_durable = kind->is_durable,
        .kind = kind->name,
        .is_own = kind->is_own,
        .inputs = outputs->inputs,
        .input_count = outputs->input_count,
        .unfinished = &unfinished,
    };
}

int mt_report_output_error(const char *path, const struct mt_error *error)
{
    bool is_memory = error->status == MT_ERR_MEMORY;
    char reason[MT_MEMORY_TEXT];
    const char *text = is_memory ? mt_memory_reason(reason) : error->text;

    if (mt_outputs_is_standard(path))
        mt_message("cannot write standard output: %s", text);
    else
        mt_message("cannot write '%s': %s", path, text);
    if (is_memory)
        return MT_EXIT_INPUT;
    return error->status == MT_ERR_USAGE ? MT_EXIT_USAGE : MT_EXIT_OUTPUT;
}

int mt_report_drawing_error(const char *what, const struct mt_error *error)
{
    char reason[MT_MEMORY_TEXT];

    if (error->status == MT_ERR_MEMORY) {
        mt_message("cannot draw '%s': %s", what, mt_memory_reason(reason));
        return MT_EXIT_INPUT;
    }
    mt_message("cannot draw '%s': %s", what, error->text);
    return MT_EXIT_OUTPUT;
}

int mt_output_precheck(const char *path, const struct mt_outputs *outputs,
                       const struct mt_file_kind *kind)
{
    const struct mt_output_rules rules = mt_output_rules_of(outputs, kind);
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (!path || mt_output_check(path, &rules, &error) == MT_OK)
        return MT_EXIT_OK;
    return mt_report_output_error(path, &error);
}

bool mt_outputs_is_standard(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

void mt_outputs_add_path(struct mt_buf *path, const char *folder, const char *name)
{
    size_t length = strlen(folder);

    while (length > 1 && folder[length - 1] == '/')
        length--;
    mt_buf_add(path, folder, length);
    mt_buf_printf(path, "/%s", name);
}

int mt_outputs_write(const char *path, const struct mt_outputs *outputs,
                     const struct mt_file_kind *kind, const struct mt_buf *bytes)
{
    const struct mt_output_rules rules = mt_output_rules_of(outputs, kind);
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (bytes->failed)
        mt_memory_end();
    if (mt_outputs_is_standard(path))
        return mt_print(bytes);
    if (mt_output_write(path, &rules, bytes->data ? bytes->data : "", bytes->length, &error) ==
        MT_OK)
        return MT_EXIT_OK;
    return mt_report_output_error(path, &error);
}
