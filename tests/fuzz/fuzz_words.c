/* Any words as the arguments of a command with options of every kind. */
#include "cli.h"
#include "fuzz.h"
#include "silence.h"

enum { MAX_WORDS = 40 };

static int run(const struct mt_command *command, int argc, char **argv)
{
    struct mt_common common = {0};
    struct mt_text_list list = {0};
    uint64_t bytes = 0, count = 0;
    const char *text = NULL;
    char **arguments;
    int code, given = 0;
    const struct mt_option options[] = {
        {"limit", 'l', MT_OPTION_BYTES, "BYTES", "a number of bytes", &bytes},
        {"jobs", 'j', MT_OPTION_COUNT, "N", "a number", &count},
        {"output", 'o', MT_OPTION_TEXT, "FILE", "a text", &text},
        {"policy", 'p', MT_OPTION_LIST, "NAME", "a list", &list},
        MT_COMMON_OPTIONS(common),
        {0}};

    code = mt_options_parse(command, options, argc, argv, 1, 3, &arguments, &given);
    FUZZ_CHECK(code >= -1 && code <= MT_EXIT_USAGE);
    if (code == -1)
        FUZZ_CHECK(given >= 1 && given <= 3 && arguments[given - 1]);
    return code;
}

/* Words are separated by the ends of lines. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mt_command command = {"try", "A [B [C]]", "tries", "", run};
    char *text = fuzz_text(data, size), *at = text, *words[MAX_WORDS + 2], name[] = "try";
    int count = 0;

    words[count++] = name;
    while (*at && count < MAX_WORDS) {
        words[count++] = at;
        at += strcspn(at, "\n");
        if (*at)
            *at++ = '\0';
    }
    words[count] = NULL;
    silence_begin();
    (void)run(&command, count, words);
    silence_end();
    free(text);
    return 0;
}
