#include "environment_runner.h"

#include "util.h"

#include <stdbool.h>
#include <string.h>

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
    const char *slash = strrchr(word, '/');

    return strcmp(slash ? slash + 1 : word, name) == 0;
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
    size_t i = 1;

    for (; runner && words[i]; i++) {
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
