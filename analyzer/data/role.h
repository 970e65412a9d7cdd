/* Roles: the purpose of a block. */
#ifndef MT_ANALYZER_ROLE_H
#define MT_ANALYZER_ROLE_H

enum mt_role {
    MT_ROLE_PARAMETERS,
    MT_ROLE_OPTIMIZER_STATE,
    MT_ROLE_GRADIENTS,
    MT_ROLE_ACTIVATIONS,
    MT_ROLE_TEMPORARIES,
    MT_ROLE_WORKSPACE,
    MT_ROLE_INPUTS,
    MT_ROLE_KV_CACHE,
    MT_ROLE_OTHER
};
enum { MT_ROLE_COUNT = MT_ROLE_OTHER + 1 };

/* "parameters", "optimizer state", ... */
const char *mt_role_name(enum mt_role role);

#endif
