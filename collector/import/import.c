#include "import.h"

#include <stddef.h>

const struct mt_importer mt_importers[] = {{NULL, NULL, NULL, NULL}};
