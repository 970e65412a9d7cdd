/* memtrace view: the timeline and the live blocks, interactively in a terminal. */
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"
#include "question_report.h"
#include "screen.h"
#include "view_parts.h"

/* The context of the screen. */
struct shown {
    struct mt_view view;
    struct mt_terminal_app app;
};

static void draw(void *context, unsigned rows, unsigned columns, struct mt_terminal_cell *cells)
{
    struct shown *shown = context;

    shown->view.unicode = shown->app.has_unicode;
    shown->view.colors = shown->app.has_colors;
    mt_view_draw(&shown->view, rows, columns, cells);
}

static bool press(void *context, uint32_t key)
{
    return mt_view_press(&((struct shown *)context)->view, key);
}

static int show(struct shown *shown)
{
    const char *no_color = getenv("NO_COLOR");
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_buf command = {0};

    shown->app = (struct mt_terminal_app){.context = shown,
                                          .wants_colors = !(no_color && *no_color),
                                          .wants_unicode = mt_stdout_screen().unicode,
                                          .draw = draw,
                                          .press = press,
                                          .note_restore = mt_screen_note_restore};
    if (mt_terminal_run(&shown->app, &error) != MT_OK) {
        mt_message("%s", error.text);
        return MT_EXIT_USAGE;
    }
    mt_view_add_command(&command, &shown->view);
    mt_buf_add_char(&command, '\n');
    return mt_print_and_release(&command);
}

/* Prints why the command cannot run here. Returns false if it can. */
static bool is_refused(const char *path)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_buf line = {0};
    bool is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);

    if (is_terminal && mt_terminal_available(&error))
        return false;
    if (is_terminal)
        mt_buf_printf(&line, "%s; without it use: memtrace live ", error.text);
    else
        mt_buf_add_text(&line, "view needs a terminal; for a file or a pipe use: memtrace live ");
    mt_buf_add_shell_path(&line, path);
    mt_message("%s", line.data);
    mt_buf_release(&line);
    return true;
}

static int view_trace(const char *path, const struct mt_common *common)
{
    const struct mt_analyze_options options = {
        .path = path, .models = MT_MODEL_HISTORY, .no_findings = true};
    struct mt_question_report asked;
    struct shown shown;
    int code = mt_question_run_with(path, common, &options, &asked);

    if (code < 0) {
        if (mt_view_init(&shown.view, asked.report, path))
            code = show(&shown);
        else {
            mt_message("'%s' has no history of memory to show; use: memtrace analyze", path);
            code = MT_EXIT_INPUT;
        }
        mt_view_release(&shown.view);
        code = mt_answer_verdict(code, asked.source, path, common);
    }
    mt_question_close(&asked);
    return code;
}

int mt_cmd_view(const struct mt_command *command, int argc, char **argv)
{
    struct mt_common common = {0};
    const struct mt_option options[] = {
        MT_QUIET_OPTION(common), MT_MAX_MEMORY_OPTION, {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    char **paths;
    int count, code = mt_options_parse(command, options, argc, argv, 1, 1, &paths, &count);

    if (code >= 0)
        return code;
    return is_refused(paths[0]) ? MT_EXIT_USAGE : view_trace(paths[0], &common);
}
