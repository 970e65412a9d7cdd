/* See run_mesh.h. The program's threads only publish a text. The writer thread records the last
 * one, so two concurrent calls cannot leave the older text in the trace. */
#include "run_mesh.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "collect.h"
#include "identity.h"

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
        mt_collect_say(&said, "memtrace_set_mesh is ignored: %s", wrong);
        return -1;
    }
    atomic_store(&said_by_program, copy);
    return 0;
}

void mt_run_mesh_tell(void)
{
    static bool said;
    const char *text = atomic_load(&said_by_program), *wrong;

    if (!text)
        text = getenv("MEMTRACE_MESH");
    if (!text || !*text)
        return;
    wrong = fault_of(text);
    if (wrong)
        mt_collect_say(&said, "MEMTRACE_MESH is ignored: %s", wrong);
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
