/* The table of modules as JSON. */
#ifndef MT_CLI_MODULE_JSON_H
#define MT_CLI_MODULE_JSON_H

#include "json.h"
#include "modules_model.h"

/* Adds "kind", "path", "layer", and "roles", which has the bytes of each role that occurs. */
void mt_json_module(struct mt_json *json, const struct mt_module_row *row);

/* Adds "modules" of a device, which is null if the device has none. */
void mt_json_modules(struct mt_json *json, const struct mt_modules *modules);

#endif
