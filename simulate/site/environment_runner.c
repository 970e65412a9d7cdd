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

static const struct runner *find_runner(const char *word)
{
    const char *slash = strrchr(word, '/');

    for (size_t i = 0; i < MT_ARRAY_LEN(runners); i++)
        if (strcmp(slash ? slash + 1 : word, runners[i].name) == 0)
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
