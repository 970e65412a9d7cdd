/* Whole commands over a hostile file: the first byte chooses the command, the rest
 * is its input. In this process, so the assertions of the program are active. */
#define _GNU_SOURCE /* memfd_create, nftw */
#include <sys/mman.h>

#include "cli.h"
#include "scratch_folder.h"
#include "silence.h"
#include "util.h"

enum { MAX_WORDS = 16, WORD_BYTES = 128 };

/* F is the input, OUT begins a path in a folder for results. */
static const char *const lines[] = {
    "analyze F -a",
    "analyze F --json",
    "analyze F -o OUTd",
    "analyze F --unnamed -a",
    "analyze F --max-peak reserved=1MiB --max-growth 1KiB/step --base F --max-regression 1%",
    "live F",
    "live F --by role --json",
    "live F --at oom",
    "live F --at end",
    "live F --at reserved-peak",
    "lines F",
    "lines F --json",
    "diff F F --json",
    "diff F F -o OUT.svg",
    "render timeline F -o OUT.svg",
    "render timeline F -o OUT.svg --x=events --by stream",
    "render icicle F -o OUT.svg --of allocated-total",
    "render icicle F -o OUT.svg --at oom --by site",
    "render flamechart F -o OUT.svg --whole",
    "render blocks F -o OUT.svg --whole",
    "render trend F -o OUT.svg",
    "render address F -o OUT.svg",
    "export folded F",
    "export speedscope F --blocks",
    "dump F",
    "dump F --json",
    "info F",
    "info F --json",
    "import F -o OUT.trace",
    "replay F -p pytorch --verify",
    "replay F -p pytorch:expandable_segments:True --json",
    "fit F",
    "optimal F --time none",
    "tune F",
};

struct words {
    char text[MAX_WORDS][WORD_BYTES];
    char *argv[MAX_WORDS + 1];
    int argc;
};

static void add_word(struct words *words, const char *word, size_t length, const char *input)
{
    char *to = words->text[words->argc];

    FUZZ_CHECK(words->argc < MAX_WORDS);
    if (length == 1 && *word == 'F')
        snprintf(to, WORD_BYTES, "%s", input);
    else if (length >= 3 && !memcmp(word, "OUT", 3))
        snprintf(to, WORD_BYTES, "%s/o%.*s", scratch_folder(), (int)length - 3, word + 3);
    else
        snprintf(to, WORD_BYTES, "%.*s", (int)length, word);
    words->argv[words->argc++] = to;
}

static void run(const char *line, const char *input)
{
    const struct mt_command *command = mt_commands;
    struct words words = {.argc = 0};

    for (size_t length; *line; line += length + (line[length] == ' ')) {
        length = strcspn(line, " ");
        add_word(&words, line, length, input);
    }
    while (command->name && strcmp(command->name, words.argv[0]) != 0)
        command++;
    FUZZ_CHECK(command->name);
    silence_begin();
    int code = command->run(command, words.argc, words.argv);
    silence_end();
    FUZZ_CHECK(code >= MT_EXIT_OK && code <= MT_EXIT_INCOMPLETE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    char path[40];

    if (size < 1 || fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)size - 1) {
        close(fd);
        return 0;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    run(lines[data[0] % MT_ARRAY_LEN(lines)], path);
    close(fd);
    return 0;
}
