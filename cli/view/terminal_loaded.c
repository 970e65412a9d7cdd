/* Replaces terminal.c in the program: the same functions, from libmemtrace-terminal.so. */
#include <string.h>

#include "module.h"
#include "terminal.h"

static const struct mt_module module = {"libmemtrace-terminal.so",
                                        "this memtrace was built without ncurses",
                                        "ncurses (Debian: libncursesw6)"};

bool mt_terminal_available(struct mt_error *error)
{
    return mt_module_function(&module, "mt_terminal_run", error) != NULL;
}

enum mt_status mt_terminal_run(struct mt_terminal_app *app, struct mt_error *error)
{
    void *symbol = mt_module_function(&module, "mt_terminal_run", error);
    __typeof__(&mt_terminal_run) run;

    if (!symbol)
        return error ? error->status : MT_ERR_UNSUPPORTED;
    memcpy(&run, &symbol, sizeof run);
    mt_module_share_memory_rules(&module);
    return run(app, error);
}
