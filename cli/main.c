/* memtrace: finds the command and runs it. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "annexes.h"
#include "cli.h"
#include "debug.h"
#include "io.h"
#include "memory_limit.h"
#include "next_step.h"
#include "options.h"
#include "outputs.h"

#define MAX_COMMANDS 64

/* docs/skill/SKILL.md: instructions for agents. cmake/embed.cmake makes it. */
extern const char mt_skill[];

/* Opens a placeholder for each standard stream that is closed, so that no other file gets its
 * number. Reading from 0 and writing to 1 still fail, as the caller intended. In child processes,
 * the streams are closed again. */
static void fill_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", (fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
}

static int print_text(const char *text)
{
    struct mt_buf out = {0};

    mt_buf_add_text(&out, text);
    return mt_print_and_release(&out);
}

static int print_overview(void)
{
    struct mt_buf out = {0};

    mt_buf_add_text(&out, "memtrace: shows where GPU memory goes, and why\n\nusage: memtrace "
                          "COMMAND [arguments] [options]\n\ncommands:\n");
    for (const struct mt_command *command = mt_commands; command->name; command++)
        mt_buf_printf(&out, "  %-11s %s\n", command->name, command->summary);
    mt_buf_add_text(
        &out,
        "  help        show what a command does and its options\n\nUse 'memtrace help COMMAND' "
        "for a command, 'memtrace version' for the version,\n'memtrace help skill' for "
        "instructions to agents.\nTRACE is a memtrace "
        "trace, a PyTorch memory snapshot (.pickle), a profile of\ntorch.profiler "
        "(*.pt.trace.json), JAX or TensorFlow (*.xplane.pb), also\ncompressed with zstd or gzip, "
        "or - for standard input.\n");
    return mt_print_and_release(&out);
}

static void add_beginning_with(struct mt_buf *out, const char *name, const char *beginning)
{
    if (strncmp(name, beginning, strlen(beginning)) == 0)
        mt_buf_printf(out, "%s\n", name);
}

/* Prints the names of commands for the completion of a shell (options.h), and `other`. */
static int print_command_names(const char *beginning, const char *other)
{
    struct mt_buf out = {0};

    for (const struct mt_command *command = mt_commands; command->name; command++)
        add_beginning_with(&out, command->name, beginning);
    add_beginning_with(&out, "help", beginning);
    add_beginning_with(&out, other, beginning);
    return mt_print_and_release(&out);
}

static const struct mt_command *find_command(const char *name)
{
    for (const struct mt_command *command = mt_commands; command->name; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

static bool is_absent(const char *word)
{
    for (size_t i = 0; mt_annex_absent[i]; i++)
        if (strcmp(mt_annex_absent[i], word) == 0)
            return true;
    return false;
}

/* `other` is a word that is also possible there. */
static int unknown_command(const char *word, const char *other)
{
    const char *names[MAX_COMMANDS];
    size_t count = 0;

    if (is_absent(word)) {
        mt_message("this build of memtrace leaves out the command '%s'", word);
        return MT_EXIT_USAGE;
    }
    while (mt_commands[count].name && count + 2 < MAX_COMMANDS) {
        names[count] = mt_commands[count].name;
        count++;
    }
    names[count++] = "help";
    names[count++] = other;
    const char *near = mt_did_you_mean(word, names, count);
    if (near)
        mt_message("unknown command '%s'; did you mean '%s'?", word, near);
    else if (strpbrk(word, "./") && access(word, F_OK) != 0)
        mt_message("there is no file and no command '%s'", word);
    else
        mt_message("unknown command '%s'", word);
    mt_message("see 'memtrace --help'");
    return MT_EXIT_USAGE;
}

static int run_help(int argc, char **argv)
{
    char name[] = "help", option[] = "--help", *arguments[] = {name, option, NULL};

    if (argc < 2)
        return print_overview();
    if (strcmp(argv[1], MT_COMPLETION_WORD) == 0)
        return print_command_names(argc > 2 ? argv[2] : "", "skill");
    if (strcmp(argv[1], "skill") == 0)
        return print_text(mt_skill);
    const struct mt_command *command = find_command(argv[1]);
    if (!command)
        return strcmp(argv[1], "help") == 0 ? print_overview() : unknown_command(argv[1], "skill");
    return command->run(command, 2, arguments);
}

static int say_first_steps(void)
{
    struct mt_buf out = {0};

    mt_buf_add_text(&out, "memtrace: no command given. To start:\n");
    mt_next_step_add_first(&out, ".", find_command("dry-run") != NULL);
    (void)!mt_io_write(STDERR_FILENO, out.data, out.length);
    mt_buf_release(&out);
    return MT_EXIT_USAGE;
}

static bool asks_version(const char *word)
{
    return strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 ||
           strcmp(word, "version") == 0;
}

static bool asks_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int run(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;

    if (!word)
        return say_first_steps();
    if ((asks_help(word) || asks_version(word)) && argc > 2 &&
        strcmp(argv[2], MT_COMPLETION_WORD) == 0)
        return MT_EXIT_OK; /* nothing follows these words */
    if (asks_help(word))
        return run_help(argc - 1, argv + 1);
    if (asks_version(word))
        return print_text("memtrace " MEMTRACE_VERSION "\n");
    if (strcmp(word, MT_COMPLETION_WORD) == 0)
        return print_command_names(argc > 2 ? argv[2] : "", "version");
    if (strcmp(word, "help") == 0)
        return run_help(argc - 1, argv + 1);
    const struct mt_command *command = find_command(word);
    if (!command && mt_io_is_file(word)) /* `memtrace FILE` is `memtrace analyze FILE` */
        return find_command("analyze")->run(find_command("analyze"), argc, argv);
    return command ? command->run(command, argc - 1, argv + 1) : unknown_command(word, "version");
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    /* The command that `record` runs would inherit this. Elsewhere, writes fail with EPIPE instead
     * of a signal. */
    if (argc < 2 || strcmp(argv[1], "record") != 0) {
        signal(SIGPIPE, SIG_IGN);
        mt_outputs_handle_signals();
    }
    mt_debug_check();
    int code = mt_memory_limit_start(mt_outputs_unfinished());
    return code >= 0 ? code : run(argc, argv);
}
