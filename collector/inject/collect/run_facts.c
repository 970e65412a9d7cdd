/* Records the identity of this process: its host, its id, its place in the job and, on request, its
 * command. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect.h"
#include "core.h"
#include "identity.h"
#include "inject_source.h"
#include "io.h"
#include "run_facts.h"
#include "run_identity.h"
#include "run_names.h"
#include "settings.h"

/* The program's threads only publish a text. The writer thread records the last one, so two
 * concurrent calls cannot leave the older text in the trace. */

__attribute__((visibility("default"))) int memtrace_set_mesh(const char *mesh);

static const char *_Atomic said_by_program; /* NULL: none yet */
static const char *told;                    /* used only by the writer thread */

/* Returns NULL if the text is a valid mesh, otherwise the reason why it is not. */
static const char *fault_of(const char *text)
{
    struct mt_mesh mesh;
    const char *wrong = mt_mesh_read(text, &mesh);

    return wrong || mesh.count ? wrong : "it is empty";
}

/* The previous text stays allocated, because the writer thread may be reading it. */
int memtrace_set_mesh(const char *mesh)
{
    static bool said;
    const char *wrong = fault_of(mesh);
    const char *copy = wrong ? NULL : strdup(mesh);

    if (!wrong && !copy)
        wrong = "there is no memory";
    if (wrong) {
        mt_collect_message(&said, "memtrace_set_mesh is ignored: %s", wrong);
        return -1;
    }
    atomic_store(&said_by_program, copy);
    return 0;
}

/* Records the fact `mesh` when the recording begins. */
static void run_mesh_tell(void)
{
    static bool said;
    const char *text = atomic_load(&said_by_program);

    if (!text)
        text = getenv("MEMTRACE_MESH");
    if (!text || !*text)
        return;
    const char *wrong = fault_of(text);
    if (wrong)
        mt_collect_message(&said, "MEMTRACE_MESH is ignored: %s", wrong);
    else
        mt_collect_fact("mesh", text);
}

static void tell_again(void)
{
    const char *text = atomic_load(&said_by_program);

    if (text == told || !mt_collect_enter())
        return;
    mt_collect_fact("mesh", text);
    told = text;
    mt_collect_leave();
}

/* A forked child keeps its parent's place until it sets another one. */
static void forked(void)
{
    told = NULL;
}

const struct mt_inject_source mt_mesh_source = {
    .name = "mesh", .poll = tell_again, .stop = tell_again, .forked = forked};

void mt_run_host(char *out, size_t capacity)
{
    if (gethostname(out, capacity))
        (void)snprintf(out, capacity, "host");
    out[capacity - 1] = '\0';
    for (char *at = out; *at; at++) {
        bool plain = (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') ||
                     (*at >= 'A' && *at <= 'Z') || *at == '-' || *at == '.' || *at == '_';
        if (!plain || (at == out && *at == '.'))
            *at = '_';
    }
    if (!*out)
        (void)snprintf(out, capacity, "host");
}

static void tell_number(const char *key, long number)
{
    char text[32];

    if (number < 0)
        return;
    (void)snprintf(text, sizeof text, "%ld", number);
    mt_collect_fact(key, text);
}

/* Arguments separated by blanks, as in `ps`. */
static void tell_command(void)
{
    char text[2048];
    size_t length = mt_io_read_text("/proc/self/cmdline", text, sizeof text);

    for (size_t i = 0; i + 1 < length; i++)
        if (!text[i])
            text[i] = ' ';
    if (length)
        mt_collect_fact("command", text);
}

static void tell_place(const char *host)
{
    const struct mt_run_ranks place = mt_run_ranks();
    char job[MT_JOB_TEXT];

    tell_number("rank", place.rank);
    tell_number("local_rank", place.local_rank);
    tell_number("world_size", place.world);
    tell_number("restart", mt_run_restart());
    mt_run_job(host, job);
    if (*job)
        mt_collect_fact("job", job);
    run_mesh_tell();
}

void mt_run_facts(void)
{
    char host[256] = "";

    if (gethostname(host, sizeof host) == 0) {
        host[sizeof host - 1] = '\0';
        mt_collect_fact("host", host);
    }
    tell_number("process_id", (long)getpid());
    tell_place(host);
    mt_collect_fact("has_free_requested", "1");
    mt_collect_fact("has_free_completed", "1");
    if (*mt_recorder_settings->dry_run)
        mt_collect_fact("dry_run", mt_recorder_settings->dry_run);
    if (mt_recorder_settings->with_command)
        tell_command();
}
