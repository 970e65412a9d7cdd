/* The rank that a dry run simulates, and its command. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "ascii.h"
#include "cli.h"
#include "python_of_command.h"
#include "rank.h"
#include "util.h"

enum kind {
    VALUE, /* has a value and controls rendezvous, monitoring or logs, which a single rank does not
              need */
    FLAG,
    NODES,
    PER_NODE,
    MODULE,
    NO_PYTHON,
    REFUSED /* changes the meaning of a rank, so it is an error */
};

/* The options of torchrun in PyTorch 2.4 to 2.15. "_" may replace "-". */
static const struct launcher_option {
    const char *name;
    char letter;
    enum kind kind;
} launcher_options[] = {{"nnodes", 0, NODES},
                        {"nproc-per-node", 0, PER_NODE},
                        {"rdzv-backend", 0, VALUE},
                        {"rdzv-endpoint", 0, VALUE},
                        {"rdzv-id", 0, VALUE},
                        {"rdzv-conf", 0, VALUE},
                        {"standalone", 0, FLAG},
                        {"max-restarts", 0, VALUE},
                        {"monitor-interval", 0, VALUE},
                        {"start-method", 0, VALUE},
                        {"event-log-handler", 0, VALUE},
                        {"role", 0, VALUE},
                        {"module", 'm', MODULE},
                        {"no-python", 0, NO_PYTHON},
                        {"run-path", 0, REFUSED},
                        {"log-dir", 0, VALUE},
                        {"redirects", 'r', VALUE},
                        {"tee", 't', VALUE},
                        {"local-ranks-filter", 0, VALUE},
                        {"node-rank", 0, VALUE},
                        {"master-addr", 0, VALUE},
                        {"master-port", 0, VALUE},
                        {"local-addr", 0, VALUE},
                        {"logs-specs", 0, VALUE},
                        {"numa-binding", 0, VALUE},
                        {"signals-to-handle", 0, VALUE},
                        {"virtual-local-rank", 0, REFUSED}};

/* Launchers that start ranks in other ways. */
static const char *const other_launchers[] = {"accelerate", "deepspeed",  "mpirun",    "mpiexec",
                                              "srun",       "horovodrun", "colossalai"};

static bool is_name(const char *text, size_t length, const char *name)
{
    if (strlen(name) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if ((text[i] == '_' ? '-' : text[i]) != name[i])
            return false;
    return true;
}

/* Finds the option for a word such as "--nnodes", "--nnodes=2" or "-m". Returns NULL if torchrun
 * has no such option. */
static const struct launcher_option *find_option(const char *word)
{
    const char *name = word + 2;
    size_t length = word[1] == '-' ? strcspn(name, "=") : 0;

    for (size_t i = 0; i < MT_ARRAY_LEN(launcher_options); i++) {
        const struct launcher_option *option = &launcher_options[i];

        if (word[1] == '-' ? is_name(name, length, option->name)
                           : option->letter && word[1] == option->letter && !word[2])
            return option;
    }
    return NULL;
}

/* Returns a whole number from 1 to 2^20, or 0. */
static uint64_t number_of(const char *text)
{
    char *end;
    unsigned long long number = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;

    return number && !*end && number <= (1 << 20) ? number : 0;
}

/* Parses "2" or "1:4". */
static int read_nodes(struct mt_rank_command *read, const char *value)
{
    const char *colon = strchr(value, ':');

    read->nodes = number_of(colon ? colon + 1 : value);
    if (read->nodes)
        return -1;
    mt_message("torchrun's option '--nnodes' needs a number of nodes, not '%s'", value);
    return MT_EXIT_USAGE;
}

static int read_per_node(struct mt_rank_command *read, const char *value)
{
    static const char *const devices[] = {"gpu", "auto"};

    for (size_t i = 0; i < MT_ARRAY_LEN(devices); i++)
        if (!strcmp(value, devices[i]))
            return -1;
    read->local_world = number_of(value);
    if (read->local_world)
        return -1;
    mt_message("torchrun's option '--nproc-per-node' needs a number, gpu or auto, not '%s'", value);
    return MT_EXIT_USAGE;
}

static int say_unknown(const char *word)
{
    mt_message(
        "torchrun's option '%s' is not supported; omit torchrun and give --world, as in --ranks "
        "0,1 --world 8 -- python train.py",
        word);
    return MT_EXIT_USAGE;
}

struct rest {
    char *const *at; /* the first word that does not belong to torchrun */
    bool is_module, is_program;
};

static int read_option(struct mt_rank_command *read, struct rest *rest)
{
    const char *word = *rest->at++, *value = strchr(word, '=');
    const struct launcher_option *option = find_option(word);

    if (!option || option->kind == REFUSED)
        return say_unknown(word);
    rest->is_module |= option->kind == MODULE;
    rest->is_program |= option->kind == NO_PYTHON;
    if (option->kind == FLAG || option->kind == MODULE || option->kind == NO_PYTHON)
        return -1;
    value = value ? value + 1 : *rest->at ? *rest->at++ : NULL;
    if (!value) {
        mt_message("torchrun's option '%s' needs a value", word);
        return MT_EXIT_USAGE;
    }
    return option->kind == NODES      ? read_nodes(read, value)
           : option->kind == PER_NODE ? read_per_node(read, value)
                                      : -1;
}

/* Parses the words before the name of the launcher, which begin with its Python, and the words
 * after the name. */
static int read_launcher(struct mt_rank_command *read, char *const *python, size_t python_count,
                         char *const *options, struct mt_arena *arena)
{
    struct rest rest = {.at = options};
    size_t count = 0, used = 0;
    int code = -1;

    read->is_launched = true;
    while (code < 0 && *rest.at && (*rest.at)[0] == '-')
        code = read_option(read, &rest);
    if (code >= 0)
        return code;
    if (!*rest.at) {
        mt_message("torchrun has no script to run");
        return MT_EXIT_USAGE;
    }
    while (rest.at[count])
        count++;
    read->words = mt_arena_array(arena, python_count + count + 3, sizeof *read->words);
    for (size_t i = 0; i < python_count && !rest.is_program; i++)
        read->words[used++] = python[i];
    if (!rest.is_program)
        read->words[used++] = (char *)"-u"; /* torchrun also adds this option */
    if (rest.is_module)
        read->words[used++] = (char *)"-m";
    memcpy(read->words + used, rest.at, count * sizeof *rest.at);
    return -1;
}

/* Returns the number of words at `command` that run this module; 0 if there are none. Python
 * accepts "-mMODULE" and "-m MODULE". */
static size_t module_words(char *const *command, const char *module)
{
    if (strncmp(command[0], "-m", 2) != 0)
        return 0;
    if (command[0][2])
        return !strcmp(command[0] + 2, module);
    return command[1] && !strcmp(command[1], module) ? 2 : 0;
}

/* Returns the number of words at `command` that run the launcher; 0 if there are none. Examples are
 * "python -u -m torch.distributed.run" and "python /usr/bin/torchrun". Sets *python_count to the
 * number of words before the -m or the script. */
static size_t launcher_words(char *const *command, size_t *python_count)
{
    size_t at = 1;

    if (strncmp(mt_base_name(command[0]), "python", 6) != 0)
        return 0;
    while (command[at] && command[at][0] == '-' && strncmp(command[at], "-m", 2) != 0 &&
           strcmp(command[at], "-c") != 0)
        at += (!strcmp(command[at], "-W") || !strcmp(command[at], "-X")) && command[at + 1] ? 2 : 1;
    *python_count = at;
    if (!command[at])
        return 0;
    if (!strcmp(mt_base_name(command[at]), "torchrun"))
        return at + 1;
    size_t module = module_words(command + at, "torch.distributed.run");
    return module ? at + module : 0;
}

static bool makes_ranks(char *const *command)
{
    const char *name = mt_base_name(command[0]);

    for (size_t i = 0; i < MT_ARRAY_LEN(other_launchers); i++)
        if (!strcmp(name, other_launchers[i]))
            return true;
    for (size_t i = 1; command[i] && i < 8; i++)
        if (module_words(command + i, "torch.distributed.launch"))
            return true;
    return false;
}

/* Parses a command that begins with torchrun. torchrun is a script, so the Python on its first line
 * runs the ranks. */
static int read_torchrun(struct mt_rank_command *read, char *const *command, struct mt_arena *arena)
{
    struct mt_python_choice choice;
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (mt_python_of_command(command, &choice, &error) != MT_OK) {
        mt_message("cannot do a dry run: %s", error.text);
        return MT_EXIT_USAGE;
    }
    char *python = mt_arena_text(arena, choice.path, strlen(choice.path));
    return read_launcher(read, &python, 1, command + 1, arena);
}

int mt_rank_command_read(struct mt_rank_command *read, char *const *command, struct mt_arena *arena)
{
    size_t python_count = 0, launcher = launcher_words(command, &python_count);

    *read = (struct mt_rank_command){.words = (char **)command};
    if (!strcmp(mt_base_name(command[0]), "torchrun"))
        return read_torchrun(read, command, arena);
    if (launcher)
        return read_launcher(read, command, python_count, command + launcher, arena);
    if (makes_ranks(command))
        read->other_launcher = mt_base_name(command[0]);
    return -1;
}

static int say_wrong(const char *text)
{
    mt_message("option '--ranks' needs ranks such as 0,1,7 or 0-3, or all, not '%s'", text);
    return MT_EXIT_USAGE;
}

static int say_many(const char *text)
{
    mt_message(
        "option '--ranks': '%s' makes more than %d runs; name only ranks that differ, such as "
        "the first, a middle one and the last",
        text, MT_MAX_RANKS);
    return MT_EXIT_USAGE;
}

static bool read_number(const char **at, uint64_t *number)
{
    const char *first = *at;

    for (*number = 0; **at >= '0' && **at <= '9'; (*at)++)
        if (*number < MT_MAX_WORLD) /* avoids overflow; larger numbers are never ranks */
            *number = *number * 10 + (uint64_t)(**at - '0');
    return *at != first;
}

static int add(uint64_t rank, uint64_t world, uint64_t ranks[MT_MAX_RANKS], size_t *count)
{
    if (rank >= world) {
        mt_message("option '--ranks': the last of %llu ranks is rank %llu",
                   (unsigned long long)world, (unsigned long long)(world - 1));
        return MT_EXIT_USAGE;
    }
    for (size_t i = 0; i < *count; i++)
        if (ranks[i] == rank) {
            mt_message("option '--ranks' contains rank %llu twice", (unsigned long long)rank);
            return MT_EXIT_USAGE;
        }
    ranks[(*count)++] = rank;
    return -1;
}

int mt_ranks_read(const char *text, uint64_t world, uint64_t ranks[MT_MAX_RANKS], size_t *count)
{
    const char *at = text;
    uint64_t first = 0, last = world - 1;
    bool is_all = !strcmp(text, "all");
    int code = -1;

    *count = 0;
    do {
        if (!is_all && !read_number(&at, &first))
            return say_wrong(text);
        if (!is_all)
            last = first;
        if (!is_all && *at == '-' && (at++, !read_number(&at, &last) || last < first))
            return say_wrong(text);
        if (last - first >= MT_MAX_RANKS - *count)
            return say_many(text);
        for (uint64_t rank = first; code < 0 && rank <= last; rank++)
            code = add(rank, world, ranks, count);
    } while (code < 0 && !is_all && *at++ == ',');
    return code < 0 && !is_all && at[-1] ? say_wrong(text) : code;
}

bool mt_setenv_number(const char *name, uint64_t number)
{
    char text[32];

    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return !setenv(name, text, 1);
}

/* Sets the variables that PyTorch's agent sets for `torchrun script`. */
static bool set_launched(const struct mt_rank *rank)
{
    return !setenv("TORCHELASTIC_RUN_ID", "none", 1) &&
           !setenv("TORCHELASTIC_RESTART_COUNT", "0", 1) &&
           !setenv("TORCHELASTIC_MAX_RESTARTS", "0", 1) && !setenv("ROLE_NAME", "default", 1) &&
           mt_setenv_number("ROLE_RANK", rank->rank) &&
           mt_setenv_number("ROLE_WORLD_SIZE", rank->world) &&
           (rank->local_world == 1 || !setenv("OMP_NUM_THREADS", "1", 0));
}

bool mt_rank_set_environment(const struct mt_rank *rank)
{
    return mt_setenv_number("RANK", rank->rank) && mt_setenv_number("WORLD_SIZE", rank->world) &&
           mt_setenv_number("LOCAL_RANK", rank->rank % rank->local_world) &&
           mt_setenv_number("LOCAL_WORLD_SIZE", rank->local_world) &&
           mt_setenv_number("GROUP_RANK", rank->rank / rank->local_world) &&
           mt_setenv_number("GROUP_WORLD_SIZE", rank->world / rank->local_world) &&
           !setenv("MASTER_ADDR", "127.0.0.1", 1) && !setenv("MASTER_PORT", "29500", 1) &&
           !setenv("MEMTRACE_DRY_RUN_ALONE", "1", 1) &&
           !setenv("MEMTRACE_DRY_RUN_OBJECTS", rank->objects ? rank->objects : "", 1) &&
           !setenv("MEMTRACE_DRY_RUN_RANKS", rank->companions ? rank->companions : "", 1) &&
           (!rank->is_launched || set_launched(rank));
}
