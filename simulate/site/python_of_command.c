/* Finds the Python that a command runs, also behind programs that run another program. */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ascii.h"
#include "io.h"
#include "python_of_command.h"
#include "safe_path.h"
#include "status.h"
#include "util.h"

/* `options` are the options whose value is a separate word, from the help of uv 0.13, conda 25,
 * micromamba 2, pixi 0.50, poetry 2, pdm 2 and pipenv 2025. Other options have no value, or include
 * it in their word. */
struct runner {
    const char *name, *options;
};

#define CONDA_OPTIONS " -n --name -p --prefix --cwd "

static const struct runner runners[] = {
    {"uv",
     " --extra --no-extra --group --no-group --only-group --no-editable-package --env-file -w "
     "--with"
     " --with-editable --with-requirements --package --python-platform --index --default-index -i"
     " --index-url --extra-index-url -f --find-links --index-strategy --keyring-provider -P"
     " --upgrade-package --upgrade-group --resolution --prerelease --prerelease-package"
     " --fork-strategy --exclude-newer --exclude-newer-package --no-sources-package"
     " --reinstall-package --link-mode -C --config-setting --config-settings-package"
     " --no-build-isolation-package --no-build-package --no-binary-package --cache-dir"
     " --refresh-package -p --python --color --allow-insecure-host --directory --project"
     " --config-file "},
    {"conda", CONDA_OPTIONS},
    {"mamba", CONDA_OPTIONS "-r --root-prefix -e --env -a --attach --rc-file --label "},
    {"micromamba", CONDA_OPTIONS "-r --root-prefix -e --env -a --attach --rc-file --label "},
    {"pixi", " -e --environment -m --manifest-path --color "},
    {"poetry", " -C --directory -P --project "},
    {"pdm", " -p --project --venv -c --config "},
    {"pipenv", " --python --pypi-mirror "},
};

/* The word after these is a program that is not a Python. */
static const char module_options[] = " -m --module -s --script --gui-script - ";

static bool is_among(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; length && (at = strstr(at, word)); at += length)
        if (at > list && at[-1] == ' ' && at[length] == ' ')
            return true;
    return false;
}

static bool is_named(const char *word, const char *name)
{
    return strcmp(mt_base_name(word), name) == 0;
}

static const struct runner *find_runner(const char *word)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(runners); i++)
        if (is_named(word, runners[i].name))
            return &runners[i];
    return NULL;
}

size_t mt_environment_runner(char *const *words)
{
    const struct runner *runner = words[0] ? find_runner(words[0]) : NULL;
    bool runs = false;

    for (size_t i = 1; runner && words[i]; i++) {
        if (is_among(runner->options, words[i])) {
            if (!words[++i])
                return 0;
        } else if (words[i][0] != '-') {
            if (runs)
                return i;
            if (strcmp(words[i], "run") != 0)
                return 0;
            runs = true;
        } else if (runs && is_among(module_options, words[i])) {
            return i;
        } else if (strcmp(words[i], "--") == 0) {
            return runs && words[i + 1] ? i + 1 : 0;
        }
    }
    return 0;
}

/* `options` as above, from the help of coreutils 9, util-linux 2.40, numactl 2.0 and GNU time 1.9.
 * `others` are the options after which something else than a program follows. `operands` are words
 * before the program that are not options. */
struct launcher {
    const char *name, *options, *others;
    unsigned operands;
    bool has_assignments; /* any number of NAME=VALUE before the program */
};

static const struct launcher launchers[] = {
    {"env", " -u --unset -C --chdir ", " -S --split-string ", 0, true},
    {"nice", " -n --adjustment ", "", 0, false},
    {"nohup", "", "", 0, false},
    {"setsid", "", "", 0, false},
    {"time", " -f --format -o --output ", "", 0, false},
    {"timeout", " -s --signal -k --kill-after ", "", 1, false},
    {"stdbuf", " -i --input -o --output -e --error ", "", 0, false},
    {"ionice", " -c --class -n --classdata ", " -p --pid -P --pgid -u --uid ", 0, false},
    {"chrt", " -T --sched-runtime -P --sched-period -D --sched-deadline ", " -p --pid ", 1, false},
    {"taskset", "", " -p --pid ", 1, false},
    {"numactl",
     " -i --interleave -N --cpunodebind -C --physcpubind -m --membind -p --preferred"
     " -P --preferred-many -w --weighted-interleave ",
     " -s --show -H --hardware -S --shm -f --file ", 0, false},
};

static const struct launcher *find_launcher(const char *word)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(launchers); i++)
        if (is_named(word, launchers[i].name))
            return &launchers[i];
    return NULL;
}

size_t mt_program_launcher(char *const *words)
{
    const struct launcher *launcher = words[0] ? find_launcher(words[0]) : NULL;
    unsigned operands = launcher ? launcher->operands : 0;
    bool may_be_option = true;

    for (size_t i = 1; launcher && words[i]; i++) {
        const char *word = words[i];

        if (may_be_option && word[0] == '-') {
            may_be_option = strcmp(word, "--") != 0;
            if (is_among(launcher->others, word))
                return 0;
            if (is_among(launcher->options, word) && !words[++i])
                return 0;
            continue;
        }
        may_be_option = false;
        if (operands)
            operands--;
        else if (!launcher->has_assignments || !strchr(word, '='))
            return i;
    }
    return 0;
}

enum { FIRST_BYTES = 4096 };

/* "python", "python3", "python3.12", "python3.13t". */
static bool is_python_name(const char *path)
{
    const char *name = mt_base_name(path);

    if (strncmp(name, "python", 6) != 0)
        return false;
    name += 6;
    name += strspn(name, "0123456789.");
    return !*name || strcmp(name, "t") == 0;
}

static bool is_program(const char *path)
{
    return mt_io_is_file(path) && access(path, X_OK) == 0;
}

static bool copy_path(char path[PATH_MAX], const char *text)
{
    size_t length = strlen(text);

    if (length >= PATH_MAX)
        return false;
    memcpy(path, text, length + 1);
    return true;
}

/* Searches for the program as execvp does. */
static bool find_program(const char *name, char path[PATH_MAX])
{
    const char *at = getenv("PATH");

    if (strchr(name, '/'))
        return is_program(name) && copy_path(path, name);
    for (at = at ? at : "/bin:/usr/bin"; *name; at++) {
        size_t length = strcspn(at, ":");
        int written =
            snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, at, length ? "/" : "", name);
        if (written > 0 && written < PATH_MAX && is_program(path))
            return true;
        at += length;
        if (!*at)
            break;
    }
    return false;
}

/* Reads the next word of a line, without quotes. */
static bool next_word(const char **at, char word[PATH_MAX])
{
    size_t length = 0;

    *at += strspn(*at, " \t\"");
    while (**at && !strchr(" \t\"\n", **at) && length < PATH_MAX - 1)
        word[length++] = *(*at)++;
    word[length] = '\0';
    return length > 0;
}

/* "#!/usr/bin/env -S A=b python3 -u": the first word that is a Python. */
static bool python_of_env_line(const char *at, char path[PATH_MAX])
{
    char word[PATH_MAX];

    while (next_word(&at, word))
        if (is_python_name(word))
            return find_program(word, path);
    return false;
}

/* Handles the second line that installers write if the path is too long for the first line:
 * '''exec' /path/python "$0" "$@" */
static bool python_of_second_line(const char *text, char path[PATH_MAX])
{
    const char *at = strchr(text, '\n');

    return at && strncmp(at + 1, "'''exec' ", 9) == 0 && (at += 10, next_word(&at, path)) &&
           is_python_name(path) && is_program(path);
}

/* Finds the Python in the first lines of a script. */
static bool python_of_script(const char *script, char path[PATH_MAX])
{
    char text[FIRST_BYTES + 1];
    const char *at = text + 2;

    (void)mt_io_read_text(script, text, sizeof text);
    if (text[0] != '#' || text[1] != '!' || !next_word(&at, path))
        return false;
    if (is_python_name(path))
        return is_program(path);
    if (strcmp(mt_base_name(path), "env") == 0)
        return python_of_env_line(at, path);
    return python_of_second_line(text, path);
}

/* Handles a program that is an interpreter or a script. */
static bool python_of_program(const char *word, bool is_first, struct mt_python_choice *choice)
{
    char program[PATH_MAX];

    if (!find_program(word, program))
        return false;
    if (is_python_name(word)) {
        snprintf(choice->from, sizeof choice->from, "%s",
                 is_first ? MT_PYTHON_FROM_COMMAND : "an argument");
        return copy_path(choice->path, program);
    }
    if (!python_of_script(program, choice->path))
        return false;
    snprintf(choice->from, sizeof choice->from, "first line of %.40s", mt_base_name(word));
    return true;
}

/* Returns true if the shell reads the file `word`: "source WORD" or ". WORD", not in a comment. */
static bool is_sourced(const char *text, const char *word)
{
    const char *line = word, *end = word;

    while (line > text && line[-1] != '\n')
        line--;
    while (end > line && strchr(" \t\"'", end[-1]))
        end--;
    if (end == word || memchr(line, '#', (size_t)(end - line)))
        return false;
    return end[-1] == '.' || (end - line >= 6 && memcmp(end - 6, "source", 6) == 0);
}

/* Handles a shell program that activates an environment: "cd x; source venv/bin/activate; ...".
 * Ignores names with variables or blanks. */
static bool python_of_activation(const char *text, char path[PATH_MAX])
{
    static const char file[] = "bin/activate";

    for (const char *at = text; (at = strstr(at, file)); at++) {
        const char *begin = at;
        while (begin > text && !strchr(" \t\n\"'", begin[-1]))
            begin--;
        if (at - begin > PATH_MAX - (int)sizeof "bin/python3" || !is_sourced(text, begin))
            continue;
        snprintf(path, PATH_MAX, "%.*sbin/python3", (int)(at - begin), begin);
        if (is_program(path))
            return true;
    }
    return false;
}

static bool is_shell_name(const char *path)
{
    static const char *const shells[] = {"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"};

    for (size_t i = 0; i < MT_ARRAY_LEN(shells); i++)
        if (strcmp(mt_base_name(path), shells[i]) == 0)
            return true;
    return false;
}

/* Returns the word that a shell runs, and whether it is the program itself (-c) or its file. NULL:
 * it reads its standard input. */
static const char *shell_program(char *const *words, bool *is_text)
{
    static const char *const with_value[] = {"--rcfile", "--init-file"};
    size_t i;

    *is_text = false;
    for (i = 1; words[i] && (words[i][0] == '-' || words[i][0] == '+') && words[i][1]; i++) {
        const char *word = words[i];
        bool is_long = word[1] == '-', has_value = false;

        if (is_long && !word[2])
            return words[i + 1];
        *is_text |= !is_long && word[0] == '-' && strchr(word, 'c');
        for (size_t j = 0; j < MT_ARRAY_LEN(with_value) && is_long; j++)
            has_value |= strcmp(word, with_value[j]) == 0;
        if (!is_long) /* "-euo pipefail" */
            has_value = strchr("oO", word[strlen(word) - 1]) != NULL;
        if (has_value && !words[++i])
            return NULL;
    }
    return words[i];
}

/* Returns true if a shell runs the file that begins so. Without "#!", execvp starts one. */
static bool is_shell_script(const char *text)
{
    char word[PATH_MAX];
    const char *at = text + 2;

    if (strncmp(text, "#!", 2) != 0)
        return strncmp(text, "\177ELF", 4) != 0;
    if (next_word(&at, word) && strcmp(mt_base_name(word), "env") == 0)
        (void)next_word(&at, word);
    return is_shell_name(word);
}

static bool python_of_variable(const char *variable, struct mt_python_choice *choice)
{
    const char *folder = getenv(variable);
    int length = !folder || !*folder
                     ? -1
                     : snprintf(choice->path, sizeof choice->path, "%s/bin/python3", folder);

    if (length < 0 || length >= PATH_MAX || !is_program(choice->path))
        return false;
    snprintf(choice->from, sizeof choice->from, "%s", variable);
    return true;
}

/* Returns true if the user has activated the environment of this Python. */
static bool is_activated(const char *path)
{
    struct mt_python_choice own;

    return (python_of_variable("VIRTUAL_ENV", &own) && strcmp(own.path, path) == 0) ||
           (python_of_variable("CONDA_PREFIX", &own) && strcmp(own.path, path) == 0);
}

/* memtrace runs this Python although it does not know whether the command would. So other users
 * must not be able to replace it, except if the user trusts it already. */
static enum mt_status check_guess(const char *path, struct mt_error *error)
{
    struct mt_error reason = {0};
    struct stat info;

    if (is_activated(path))
        return MT_OK;
    int fd = mt_safe_path_open(path, &reason);
    bool is_safe = fd >= 0 && fstat(fd, &info) == 0 && mt_safe_is_closed(&info);
    if (fd >= 0)
        (void)mt_io_close(fd);
    return is_safe ? MT_OK
                   : mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                             "%.70s, which the command activates, is not run: %.70s; activate its "
                             "environment first, or name it in the command",
                             path, fd < 0 ? reason.text : "other users can change it");
}

/* The argument of `sh -c`, and the script that a shell runs, are shell programs. Returns MT_END if
 * the command is none, or activates no environment. */
static enum mt_status python_of_shell(char *const *words, struct mt_python_choice *choice,
                                      struct mt_error *error)
{
    char text[FIRST_BYTES + 1] = "", program[PATH_MAX];
    bool is_shell = words[0] && is_shell_name(words[0]), is_text = false;
    const char *shown = is_shell ? shell_program(words, &is_text) : words[0];

    if (!shown)
        return MT_END;
    if (!is_text && (is_shell ? copy_path(program, shown) : find_program(shown, program)))
        (void)mt_io_read_text(program, text, sizeof text);
    if (!is_text && !is_shell && !is_shell_script(text))
        return MT_END;
    if (!python_of_activation(is_text ? shown : text, choice->path))
        return MT_END;
    snprintf(choice->from, sizeof choice->from, "the environment that the command activates");
    return check_guess(choice->path, error);
}

/* "uv run ..." */
static bool python_of_runner(char *const *words, struct mt_python_choice *choice)
{
    size_t count = mt_environment_runner(words);

    if (!count || !find_program(words[0], choice->path))
        return false;
    choice->runner = words;
    choice->runner_words = count;
    choice->runner_python = is_python_name(words[count]) ? words[count] : "python";
    snprintf(choice->from, sizeof choice->from, "%.40s run", mt_base_name(words[0]));
    return true;
}

enum mt_status mt_python_of_command(char *const *command, struct mt_python_choice *choice,
                                    struct mt_error *error)
{
    char *const *words = command;

    choice->runner = NULL;
    choice->runner_words = 0;
    choice->runner_python = NULL;
    for (size_t count; (count = mt_program_launcher(words)) > 0;)
        words += count;
    if (words[0] &&
        (python_of_runner(words, choice) || python_of_program(words[0], words == command, choice)))
        return MT_OK;
    enum mt_status status = python_of_shell(words, choice, error);
    if (status != MT_END)
        return status;
    if (words[0] && is_python_name(words[0]))
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "the program %.150s does not exist",
                       words[0]);
    if (python_of_variable("VIRTUAL_ENV", choice) || python_of_variable("CONDA_PREFIX", choice))
        return MT_OK;
    snprintf(choice->from, sizeof choice->from, "PATH");
    if (find_program("python3", choice->path) || find_program("python", choice->path))
        return MT_OK;
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                   "found no Python in the command or in PATH; activate the "
                   "environment that has PyTorch");
}
