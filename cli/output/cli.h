/* Shared by all commands: tables of options (for parsing, --help and completion), exit codes, and
 * functions that print. Only cli prints. It prints answers to stdout and everything else to
 * stderr. */
#ifndef MT_CLI_CLI_H
#define MT_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "foreign_text.h"
#include "near_word.h"
#include "source.h"

enum mt_exit {
    MT_EXIT_OK = 0,
    MT_EXIT_BUDGET = 1,
    MT_EXIT_USAGE = 2,
    MT_EXIT_INPUT = 3,
    MT_EXIT_OUTPUT = 4,
    MT_EXIT_INCOMPLETE = 5,
    MT_EXIT_INTERNAL = 6 /* a bug in memtrace, not an error in its input */
};

enum mt_option_kind {
    MT_OPTION_FLAG,     /* bool * */
    MT_OPTION_TEXT,     /* const char ** */
    MT_OPTION_LIST,     /* struct mt_text_list *: may be given several times */
    MT_OPTION_BYTES,    /* uint64_t *: "12GiB" */
    MT_OPTION_LIMIT,    /* uint64_t *: bytes, or a card whose memory it is: "RTX 4090" */
    MT_OPTION_COUNT,    /* uint64_t * */
    MT_OPTION_POSITIVE, /* uint64_t *: a count of at least 1; 0 means "not given" */
    MT_OPTION_STEP,     /* uint64_t *: a count; also accepts "step 7" and "step#7" */
    MT_OPTION_MEMORY    /* no target: sets the memory budget (memory_limit.h) */
};

struct mt_text_list {
    const char *items[32];
    size_t count;
};

struct mt_option {
    const char *name; /* "limit" for --limit; NULL ends the table */
    char letter;      /* 'o' for -o, 0 = none */
    enum mt_option_kind kind;
    const char *value; /* placeholder in --help: "BYTES"; NULL for flags */
    const char *help;  /* one line, lower case, no period */
    void *target;
};

/* Options of most commands (MT_COMMON_OPTIONS, MT_STRICT_OPTIONS). */
struct mt_common {
    bool json, quiet, strict;
    bool all; /* MT_ALL_OPTION: no limits on what is printed */
};
/* clang-format off */
#define MT_JSON_OPTION(common, help) {"json", 0, MT_OPTION_FLAG, NULL, help, &(common).json}
#define MT_QUIET_OPTION(common)                                                                    \
    {"quiet", 'q', MT_OPTION_FLAG, NULL, "print no progress and no notes", &(common).quiet}
#define MT_MAX_MEMORY_OPTION                                                                       \
    {"max-memory", 0, MT_OPTION_MEMORY, "BYTES",                                                   \
     "limit for memtrace's own memory (default: half of the machine's)", NULL}
#define MT_COMMON_OPTIONS(common)                                                                  \
    MT_JSON_OPTION(common, "print one JSON document"), MT_QUIET_OPTION(common), MT_MAX_MEMORY_OPTION
/* For commands that check a trace, import it, or print all of it. */
#define MT_STRICT_OPTIONS(common)                                                                  \
    MT_COMMON_OPTIONS_WITH(common, "print one JSON document",                                      \
                           "exit with 5 if the trace is incomplete")
#define MT_COMMON_OPTIONS_WITH(common, json_help, strict_help)                                     \
    MT_JSON_OPTION(common, json_help), MT_QUIET_OPTION(common),                                    \
    {"strict", 0, MT_OPTION_FLAG, NULL, strict_help, &(common).strict}, MT_MAX_MEMORY_OPTION
#define MT_ALL_OPTION(common)                                                                      \
    {"all", 'a', MT_OPTION_FLAG, NULL, "print all rows; with --json: complete stacks and texts",           \
     &(common).all}
#define MT_DEVICE_OPTION(target, help) {"device", 'd', MT_OPTION_COUNT, "N", help, target}
#define MT_LIMIT_OPTION(target, help) {"limit", 'l', MT_OPTION_LIMIT, "BYTES|CARD", help, target}
/* clang-format on */

struct mt_command {
    const char *name;
    const char *arguments; /* "TRACE [options]" */
    const char *summary;   /* one line */
    const char *details;   /* paragraphs and examples for --help */
    /* argv[0] is the command's name. Returns enum mt_exit. */
    int (*run)(const struct mt_command *command, int argc, char **argv);
};

/* All commands; ends with a NULL name. */
extern const struct mt_command mt_commands[];

/* Parses argv with the table `options`. Options may be anywhere; "--" ends them. *arguments becomes
 * the array of positional arguments, which is a part of argv. Their number must be from
 * min_arguments to max_arguments. Returns -1 to continue, 0 after --help, or the exit code after a
 * message about a usage error. */
int mt_options_parse(const struct mt_command *command, const struct mt_option *options, int argc,
                     char **argv, int min_arguments, int max_arguments, char ***arguments,
                     int *argument_count);

/* Prints that an argument is missing, and returns the exit code. Used by commands that need the
 * argument only with some options. */
int mt_missing_argument(const struct mt_command *command);

/* Prints "memtrace: <text>\n" to stderr with control characters escaped. Only a message of more
 * than 1,023 bytes allocates, and it is cut if there is no memory. So a short message can report
 * that memory ran out, and a proposed command is not cut. */
void mt_message(const char *format, ...) MT_PRINTF(1, 2);

/* Prints "memtrace: cannot read 'path': <error>" and returns the exit code for the error. Escapes
 * control characters in `path`. */
int mt_report_error(const char *path, const struct mt_error *error);

/* Opens a trace or an importable file. On failure, prints the reason, sets *exit_code and returns
 * NULL. */
struct mt_source *mt_open_input(const char *path, const struct mt_common *common, int *exit_code);

enum { MT_MISSING_TEXT = 128 };
/* Writes a description of integrity.events_dropped to `text` and returns it. For an imported file:
 * "at least 134 events are missing from the history". For a recording: "... were dropped by the
 * recorder". */
const char *mt_missing_events_text(const struct mt_source *source, char text[MT_MISSING_TEXT]);

/* Unless `quiet` is set, prints to stderr what is damaged, truncated or missing. Returns 3 if the
 * input is damaged, 5 if it is incomplete and `strict` is set, otherwise 0. Call it at the end of
 * the input. */
int mt_input_verdict(const struct mt_source *source, const char *path,
                     const struct mt_common *common);

/* Like mt_input_verdict, but returns `code`, the exit code of the answer, if it is not 0. */
int mt_answer_verdict(int code, const struct mt_source *source, const char *path,
                      const struct mt_common *common);

/* Writes `buf` to stdout. If that fails, prints an error and returns exit code 4, or 3 if memory
 * ran out (memory_limit.h). For files, see outputs.h. */
int mt_print(const struct mt_buf *buf);
int mt_print_and_release(struct mt_buf *buf);

/* Like mt_print, for an answer. JSON is always UTF-8. Text is ASCII if the locale is not UTF-8
 * (message.h). */
int mt_print_answer(const struct mt_buf *buf, bool is_json);
int mt_print_answer_and_release(struct mt_buf *buf, bool is_json);

/* Escape sequences of colors. mt_stdout_style has empty strings if stdout is not a terminal, if
 * NO_COLOR is not empty, or if TERM is "dumb" or not set. */
struct mt_style {
    const char *bold, *dim, *red, *green, *yellow, *cyan, *reset;
};
const struct mt_style *mt_stdout_style(void);
const struct mt_style *mt_plain_style(void); /* empty strings, for files */

/* Width of text, in columns, if stdout is not a terminal. */
#define MT_TEXT_COLUMNS 100

/* Properties of standard output. */
struct mt_screen {
    size_t columns; /* width of the terminal; otherwise MT_TEXT_COLUMNS */
    bool is_terminal;
    bool unicode; /* the locale is UTF-8 */
};
struct mt_screen mt_stdout_screen(void);

int mt_cmd_analyze(const struct mt_command *command, int argc, char **argv);
int mt_cmd_replay(const struct mt_command *command, int argc, char **argv);
int mt_cmd_render(const struct mt_command *command, int argc, char **argv);
int mt_cmd_import(const struct mt_command *command, int argc, char **argv);
int mt_cmd_oom(const struct mt_command *command, int argc, char **argv);
int mt_cmd_optimal(const struct mt_command *command, int argc, char **argv);
int mt_cmd_lines(const struct mt_command *command, int argc, char **argv);
int mt_cmd_diff(const struct mt_command *command, int argc, char **argv);
int mt_cmd_live(const struct mt_command *command, int argc, char **argv);
int mt_cmd_info(const struct mt_command *command, int argc, char **argv);
int mt_cmd_dump(const struct mt_command *command, int argc, char **argv);
int mt_cmd_doctor(const struct mt_command *command, int argc, char **argv);
int mt_cmd_record(const struct mt_command *command, int argc, char **argv);
int mt_cmd_recover(const struct mt_command *command, int argc, char **argv);
int mt_cmd_tune(const struct mt_command *command, int argc, char **argv);
int mt_cmd_export(const struct mt_command *command, int argc, char **argv);
int mt_cmd_fit(const struct mt_command *command, int argc, char **argv);
int mt_cmd_sql(const struct mt_command *command, int argc, char **argv);
int mt_cmd_view(const struct mt_command *command, int argc, char **argv);

#endif
