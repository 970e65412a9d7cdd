#include "recorded_roles.h"

#include "event.h"
#include "util.h"

#include <string.h>

/* torch.profiler's (torch/profiler/_memory_profiler.py, Category). What backward makes
 * beside gradients of parameters is its "autograd_detail": here, as everywhere, these
 * are temporaries. */
static const struct {
    const char *word;
    enum mt_role role;
} words[] = {
    {"parameter", MT_ROLE_PARAMETERS},        {"gradient", MT_ROLE_GRADIENTS},
    {"activation", MT_ROLE_ACTIVATIONS},      {"optimizer_state", MT_ROLE_OPTIMIZER_STATE},
    {"temporary", MT_ROLE_TEMPORARIES},       {"input", MT_ROLE_INPUTS},
    {"autograd_detail", MT_ROLE_TEMPORARIES},
};

bool mt_recorded_role(const struct mt_symbols *symbols, uint32_t name, enum mt_role *role)
{
    const char *text;

    if (name == MT_NO_ID)
        return false;
    text = mt_symbols_text(symbols, name);
    for (size_t i = 0; i < MT_ARRAY_LEN(words); i++) {
        if (strcmp(text, words[i].word) == 0) {
            *role = words[i].role;
            return true;
        }
    }
    for (int i = 0; i < MT_ROLE_COUNT; i++) {
        if (strcmp(text, mt_role_name((enum mt_role)i)) == 0) {
            *role = (enum mt_role)i;
            return true;
        }
    }
    return false;
}
