/* Any bytes as what a dry run reads: the lines that a Python prints about its PyTorch, the counts
 * of a cached site, the notes of a program, and the words of a command. The first byte chooses. */
#include "dry_run_notes.h"
#include "fuzz.h"
#include "python_of_command.h"
#include "simulated_site.h"
#include "wheel.h"

enum { MAX_WORDS = 40 };

static void check_line(const char *text, size_t capacity)
{
    FUZZ_CHECK(memchr(text, '\0', capacity) && !strchr(text, '\n'));
}

static void read_wheel(char *text, size_t size)
{
    const struct mt_buf output = {.data = text, .length = size};
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_wheel wheel;
    enum mt_status status = mt_wheel_read(&output, "/usr/bin/python3", &wheel, &error);

    check_line(wheel.python, sizeof wheel.python);
    check_line(wheel.python_version, sizeof wheel.python_version);
    check_line(wheel.folder, sizeof wheel.folder);
    check_line(wheel.torch_version, sizeof wheel.torch_version);
    check_line(wheel.cuda_version, sizeof wheel.cuda_version);
    check_line(wheel.packages, sizeof wheel.packages);
    FUZZ_CHECK(status ? error.text[0] && !strchr(error.text, '\n')
                      : wheel.folder[0] == '/' && wheel.cuda >= 12000 && wheel.cudnn >= 0 &&
                            wheel.nccl >= 0);
}

static void read_facts(const char *text)
{
    struct mt_simulated_site site;

    memset(&site, 0, sizeof site);
    if (mt_site_facts_read(text, &site))
        FUZZ_CHECK(site.library_count < 1000000000 && site.function_count < 1000000000 &&
                   site.simulated_count < 1000000000);
}

static void read_notes(const char *text, size_t size)
{
    struct mt_dry_run_notes notes = {.sizes = UINT64_MAX - 1};

    for (int i = 0; i < 2; i++)
        mt_dry_run_notes_add(&notes, text, size);
    FUZZ_CHECK(notes.sizes >= UINT64_MAX - 1 && notes.process_count <= 2);
    FUZZ_CHECK(notes.without_device <= notes.torch_processes);
    FUZZ_CHECK(notes.torch_processes <= notes.process_count + notes.unreadable);
    FUZZ_CHECK(notes.place_count <= MT_MAX_GUESS_PLACES);
    for (size_t i = 0; i < notes.place_count; i++)
        FUZZ_CHECK(notes.places[i].kind && notes.places[i].place);
    FUZZ_CHECK(!notes.suspect_other ||
               strlen(mt_guess_place(notes.suspect_other)) <= strlen(notes.suspect_other));
    mt_dry_run_notes_release(&notes);
}

/* Words are separated by the ends of lines. */
static void read_words(char *text)
{
    char *words[MAX_WORDS + 1];
    size_t count = 0, skipped;

    while (*text && count < MAX_WORDS) {
        words[count++] = text;
        text += strcspn(text, "\n");
        if (*text)
            *text++ = '\0';
    }
    words[count] = NULL;
    skipped = mt_program_launcher(words);
    FUZZ_CHECK(skipped < count || (!skipped && !count));
    skipped = mt_environment_runner(words);
    FUZZ_CHECK(skipped < count || (!skipped && !count));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    uint64_t kind = fuzz_number(&input, 1) % 4;
    char *text = fuzz_text(input.at, input.left);

    if (kind == 0)
        read_wheel(text, input.left);
    else if (kind == 1)
        read_facts(text);
    else if (kind == 2)
        read_notes(text, input.left);
    else
        read_words(text);
    free(text);
    return 0;
}
