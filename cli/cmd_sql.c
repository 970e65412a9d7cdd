/* memtrace sql: answers questions in SQL about a recording, or about a database of `export
 * sqlite`. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "answer_rows.h"
#include "cli.h"
#include "named_questions.h"
#include "outputs.h"
#include "run_database.h"

enum { DEFAULT_ROWS = 1000, DEFAULT_BYTES = 1000000, DEFAULT_SECONDS = 60, MAX_SECONDS = 1000000 };

struct arguments {
    struct mt_common common;
    const char *path, *sql, *question;
    struct mt_text_list settings;
    struct mt_parameters parameters;
    uint64_t rows, bytes, timeout_s;
    bool csv, markdown;
};

/* Names of tables or columns. A hostile database may have many, and long ones. */
struct known_names {
    const char *names[256];
    size_t count;
    struct mt_arena arena;
};

static bool add_name(void *context, const struct mt_value *values, unsigned count)
{
    struct known_names *known = context;

    (void)count;
    if (values[0].kind == MT_VALUE_TEXT)
        known->names[known->count++] =
            mt_arena_text(&known->arena, values[0].text, values[0].length);
    return known->count < MT_ARRAY_LEN(known->names);
}

static const char tables_sql[] = "SELECT substr(name, 1, 40) FROM sqlite_master WHERE type IN "
                                 "('table', 'view') AND name NOT LIKE 'sqlite%' "
                                 "ORDER BY name LIMIT 60";
static const char columns_sql[] =
    "SELECT DISTINCT substr(c.name, 1, 40) FROM sqlite_master m JOIN pragma_table_info(m.name) c "
    "WHERE m.name NOT LIKE 'sqlite%' ORDER BY 1";

static void find_names(const char *path, const char *sql, struct known_names *known)
{
    const struct mt_database_question question = {.path = path,
                                                  .sql = sql,
                                                  .time_limit_ns = 1000000000u,
                                                  .context = known,
                                                  .on_row = add_name};
    const struct mt_database_library *library = mt_database_library(NULL);

    (void)library->ask(&question, NULL);
}

/* Prints an error about an unknown name, with the nearest one, and a list if there are few. */
static void say_unknown_name(const char *path, const char *sql, const char *text, const char *name,
                             bool lists)
{
    struct known_names known = {.count = 0};
    struct mt_buf line = {0};

    find_names(path, sql, &known);
    const char *near = mt_did_you_mean(name, known.names, known.count);
    mt_buf_add_text(&line, text);
    if (near)
        mt_buf_printf(&line, "; did you mean '%s'?", near);
    for (size_t i = 0; i < known.count && lists; i++)
        mt_buf_printf(&line, "%s%s", i ? ", " : "; the tables are ", known.names[i]);
    mt_message("%s", line.data);
    mt_buf_release(&line);
    mt_arena_release(&known.arena);
}

static int say_failure(const struct mt_run_database *database, const struct mt_error *error,
                       bool is_late)
{
    static const char no_table[] = "no such table: ", no_column[] = "no such column: ";
    const char *text = error->text, *dot = strrchr(text, '.');

    if (error->status == MT_ERR_FORMAT) {
        mt_message("cannot read '%s': %s: %s", database->path, text,
                   database->is_made ? "remove it, then it is made again"
                                     : "export the recording again");
        return MT_EXIT_INPUT;
    }
    if (error->status != MT_ERR_USAGE)
        return mt_report_error(database->path, error);
    if (strncmp(text, no_table, sizeof no_table - 1) == 0)
        say_unknown_name(database->path, tables_sql, text, text + sizeof no_table - 1, true);
    else if (strncmp(text, no_column, sizeof no_column - 1) == 0)
        say_unknown_name(database->path, columns_sql, text,
                         dot ? dot + 1 : text + sizeof no_column - 1, false);
    else
        mt_message("cannot answer: %s%s", text, is_late ? ", the limit of --timeout" : "");
    return MT_EXIT_USAGE;
}

/* A function of SQLite, such as LIKE, can take long without looking at the clock. */
static void give_up(int signal_number)
{
    static const char text[] = "memtrace: cannot answer: one step took longer than --timeout\n";

    (void)signal_number;
    mt_unfinished_unlink(mt_outputs_unfinished());
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(MT_EXIT_USAGE);
}

static struct mt_answer_rows rows_of(const struct arguments *arguments, const char *database)
{
    return (struct mt_answer_rows){.form = arguments->common.json ? MT_ROWS_JSON
                                           : arguments->csv       ? MT_ROWS_CSV
                                           : arguments->markdown  ? MT_ROWS_MARKDOWN
                                                                  : MT_ROWS_TEXT,
                                   .max_rows = arguments->rows,
                                   .max_bytes = arguments->bytes,
                                   .path = arguments->path,
                                   .database = database,
                                   .is_terminal = mt_stdout_screen().is_terminal};
}

static enum mt_status ask(const struct arguments *arguments, const char *path,
                          struct mt_answer_rows *rows, bool *reads_events, bool *is_late,
                          struct mt_error *error)
{
    const struct mt_database_question question = {.path = path,
                                                  .sql = arguments->sql,
                                                  .names = arguments->parameters.names,
                                                  .values = arguments->parameters.values,
                                                  .parameter_count = arguments->parameters.count,
                                                  .is_late = is_late,
                                                  .table = "events",
                                                  .reads_table = reads_events,
                                                  .time_limit_ns =
                                                      arguments->timeout_s * 1000000000u,
                                                  .context = rows,
                                                  .on_columns = mt_answer_rows_columns,
                                                  .on_row = mt_answer_rows_add};

    (void)signal(SIGALRM, give_up);
    (void)alarm((unsigned)arguments->timeout_s + 2);
    enum mt_status status = mt_database_library(NULL)->ask(&question, error);
    (void)alarm(0);
    return status;
}

static void note_events(const struct arguments *arguments, const struct mt_run_database *database)
{
    struct known_names known = {.count = 0};

    find_names(database->path, "SELECT 'event' FROM events LIMIT 1", &known);
    if (!known.count && !arguments->common.quiet)
        mt_message("the table 'events' of '%s' is empty: write a database with 'memtrace export "
                   "sqlite --events', and ask that",
                   database->path);
    mt_arena_release(&known.arena);
}

static int answer(const struct arguments *arguments)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_run_database database;
    bool reads_events = false, is_late = false;
    int code = mt_run_database_open(&database, arguments->path, &arguments->common);
    struct mt_answer_rows rows = rows_of(arguments, database.is_temporary ? NULL : database.path);

    if (code == MT_EXIT_OK) {
        enum mt_status status =
            ask(arguments, database.path, &rows, &reads_events, &is_late, &error);
        /* Rows after a limit are only counted. If that fails, the answer is still right. */
        if (status == MT_OK || rows.omitted)
            code =
                mt_answer_rows_print(&rows, status == MT_OK && rows.omitted < MT_MAX_COUNTED_ROWS);
        else
            code = say_failure(&database, &error, is_late);
        if (code == MT_EXIT_OK)
            code = database.verdict;
        if (reads_events && code == MT_EXIT_OK)
            note_events(arguments, &database);
    }
    mt_answer_rows_release(&rows);
    mt_run_database_close(&database);
    return code;
}

static struct mt_value text_value(const struct mt_buf *text)
{
    return (struct mt_value){
        .kind = MT_VALUE_TEXT, .text = text->data ? text->data : "", .length = text->length};
}

static int list_questions(const struct arguments *arguments)
{
    static const char *const names[] = {"question", "parameters", "answer"};
    struct mt_answer_rows rows = rows_of(arguments, NULL);

    mt_answer_rows_columns(&rows, names, MT_ARRAY_LEN(names));
    for (size_t i = 0; i < mt_named_question_count(); i++) {
        const struct mt_named_question question = mt_named_question_at(i);
        struct mt_buf parameters = {0}, description = {0};

        mt_named_question_add_parameters(&parameters, &question);
        mt_named_question_add_description(&description, &question);
        (void)mt_answer_rows_add(
            &rows,
            (const struct mt_value[]){
                {.kind = MT_VALUE_TEXT, .text = question.name, .length = strlen(question.name)},
                text_value(&parameters),
                text_value(&description)},
            MT_ARRAY_LEN(names));
        mt_buf_release(&parameters);
        mt_buf_release(&description);
    }
    int code = mt_answer_rows_print(&rows, true);
    mt_answer_rows_release(&rows);
    return code;
}

/* The last value of a name counts. */
static int read_settings(struct arguments *arguments)
{
    for (size_t i = arguments->settings.count; i-- > 0;) {
        const char *item = arguments->settings.items[i], *equals = strchr(item, '=');

        item += *item == ':';
        if (!equals || equals <= item) {
            mt_message("option '--set' needs NAME=VALUE, not '%s'", arguments->settings.items[i]);
            return MT_EXIT_USAGE;
        }
        (void)mt_parameters_set(&arguments->parameters, item, (size_t)(equals - item), equals + 1,
                                strlen(equals + 1));
    }
    return MT_EXIT_OK;
}

static int find_question(struct arguments *arguments)
{
    if (!arguments->question)
        return MT_EXIT_OK;
    struct mt_named_question question = mt_named_question_find(arguments->question);
    if (!question.sql)
        return MT_EXIT_USAGE;
    arguments->sql = question.sql;
    mt_named_question_set_defaults(&question, &arguments->parameters);
    return MT_EXIT_OK;
}

static int check(struct arguments *arguments, int count, const struct mt_command *command)
{
    if (arguments->csv + arguments->markdown + arguments->common.json > 1)
        mt_message("--csv, --json and --markdown exclude each other: give one");
    else if (arguments->question && count == 2)
        mt_message("--ask is a question of its own: leave out the statement or --ask");
    else if (!arguments->question && count == 1)
        mt_message("there is no question: add a statement such as \"SELECT * FROM peaks\", or "
                   "--ask NAME; 'memtrace sql --ask list' prints the names");
    else if (count == 0)
        return mt_missing_argument(command);
    else if (arguments->timeout_s > MAX_SECONDS)
        mt_message("option '--timeout' can be at most %d", MAX_SECONDS);
    else
        return read_settings(arguments);
    return MT_EXIT_USAGE;
}

static int run(struct arguments *arguments)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};
    int code = find_question(arguments);

    if (code != MT_EXIT_OK)
        return code;
    if (!mt_database_library(&error)) {
        mt_message("cannot answer questions in SQL: %s", error.text);
        return MT_EXIT_INPUT;
    }
    return answer(arguments);
}

int mt_cmd_sql(const struct mt_command *command, int argc, char **argv)
{
    struct arguments arguments = {
        .rows = DEFAULT_ROWS, .bytes = DEFAULT_BYTES, .timeout_s = DEFAULT_SECONDS};
    const struct mt_option options[] = {
        {"ask", 0, MT_OPTION_TEXT, "NAME", "answer a question by its name; 'list' prints all",
         &arguments.question},
        {"set", 0, MT_OPTION_LIST, "NAME=VALUE",
         "value of the parameter :NAME of the question; repeatable", &arguments.settings},
        {"csv", 0, MT_OPTION_FLAG, NULL, "print CSV", &arguments.csv},
        {"markdown", 0, MT_OPTION_FLAG, NULL, "print a table in Markdown", &arguments.markdown},
        {"rows", 0, MT_OPTION_POSITIVE, "N", "print at most N rows (default: 1000)",
         &arguments.rows},
        {"bytes", 0, MT_OPTION_BYTES, "BYTES", "print at most this much (default: 1MB)",
         &arguments.bytes},
        {"timeout", 0, MT_OPTION_POSITIVE, "SECONDS",
         "end a question that takes longer (default: 60)", &arguments.timeout_s},
        MT_COMMON_OPTIONS(arguments.common),
        {NULL, 0, MT_OPTION_FLAG, NULL, NULL, NULL}};
    char **positional;
    int count;
    int code = mt_options_parse(command, options, argc, argv, 0, 2, &positional, &count);

    if (code >= 0)
        return code;
    if (arguments.question && !strcmp(arguments.question, "list"))
        return list_questions(&arguments);
    code = check(&arguments, count, command);
    if (code == MT_EXIT_OK) {
        arguments.path = positional[0];
        arguments.sql = count == 2 ? positional[1] : NULL;
        code = run(&arguments);
    }
    mt_parameters_release(&arguments.parameters);
    return code;
}
