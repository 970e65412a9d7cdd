#include "cli.h"

const struct mt_command mt_commands[] = {
    {NULL, NULL, NULL, NULL, NULL},
};
