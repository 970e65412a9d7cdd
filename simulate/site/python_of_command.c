#include "python_of_command.h"

#include "environment_runner.h"
#include "io.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_BYTES = 4096 };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* "python", "python3", "python3.12", "python3.13t". */
static bool is_python_name(const char *path)
{
    const char *name = base_name(path);

    if (strncmp(name, "python", 6) != 0)
        return false;
    name += 6;
    name += strspn(name, "0123456789.");
    return !*name || strcmp(name, "t") == 0;
}

static bool is_program(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
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

static void read_first_bytes(const char *path, char text[FIRST_BYTES + 1])
{
    int fd = mt_io_open(path, O_RDONLY | O_NONBLOCK, 0);
    ssize_t length = fd < 0 ? -1 : mt_io_read_full(fd, text, FIRST_BYTES);

    if (fd >= 0)
        (void)mt_io_close(fd);
    text[length > 0 ? length : 0] = '\0';
}

/* Finds the Python in the first lines of a script. */
static bool python_of_script(const char *script, char path[PATH_MAX])
{
    char text[FIRST_BYTES + 1];
    const char *at = text + 2;

    read_first_bytes(script, text);
    if (text[0] != '#' || text[1] != '!' || !next_word(&at, path))
        return false;
    if (is_python_name(path))
        return is_program(path);
    if (strcmp(base_name(path), "env") == 0)
        return python_of_env_line(at, path);
    return python_of_second_line(text, path);
}

/* Handles a word of the command that may be an interpreter or a script. */
static bool python_of_word(const char *word, bool is_command, struct mt_python_choice *choice)
{
    char program[PATH_MAX];

    if (!find_program(word, program))
        return false;
    if (is_python_name(word)) {
        snprintf(choice->from, sizeof choice->from, "%s",
                 is_command ? MT_PYTHON_FROM_COMMAND : "an argument");
        return copy_path(choice->path, program);
    }
    if (!python_of_script(program, choice->path))
        return false;
    snprintf(choice->from, sizeof choice->from, "first line of %.40s", base_name(word));
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

/* The argument of `sh -c`, or the script that a shell runs, is a shell program. */
static bool python_of_shell(char *const *command, struct mt_python_choice *choice)
{
    char text[FIRST_BYTES + 1], program[PATH_MAX];

    for (size_t i = 0; command[i]; i++) {
        struct stat info;
        bool is_found = python_of_activation(command[i], choice->path);

        if (!is_found && (find_program(command[i], program) ||
                          (stat(command[i], &info) == 0 && S_ISREG(info.st_mode) &&
                           copy_path(program, command[i])))) {
            read_first_bytes(program, text);
            is_found = python_of_activation(text, choice->path);
        }
        if (is_found) {
            snprintf(choice->from, sizeof choice->from,
                     "the environment that the command activates");
            return true;
        }
    }
    return false;
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
    snprintf(choice->from, sizeof choice->from, "%.40s run", base_name(words[0]));
    return true;
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

enum mt_status mt_python_of_command(char *const *command, struct mt_python_choice *choice,
                                    struct mt_error *error)
{
    choice->runner = NULL;
    choice->runner_words = 0;
    choice->runner_python = NULL;
    for (size_t i = 0; command[i]; i++)
        if (python_of_runner(command + i, choice) || python_of_word(command[i], i == 0, choice))
            return MT_OK;
    if (python_of_shell(command, choice))
        return MT_OK;
    if (command[0] && is_python_name(command[0]))
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "the program %.150s does not exist",
                       command[0]);
    if (python_of_variable("VIRTUAL_ENV", choice) || python_of_variable("CONDA_PREFIX", choice))
        return MT_OK;
    snprintf(choice->from, sizeof choice->from, "PATH");
    if (find_program("python3", choice->path) || find_program("python", choice->path))
        return MT_OK;
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                   "found no Python in the command or in PATH; activate the "
                   "environment that has PyTorch");
}
