/* Replaces symbolize.c if memtrace is built without libdw. */
#include "symbolize.h"

bool mt_symbolize_available(void)
{
    return false;
}

enum mt_status mt_code_file_open(const struct mt_code_file_id *id, struct mt_demangler *demangler,
                                 struct mt_code_file **file, enum mt_code_file_state *state)
{
    (void)id;
    (void)demangler;
    *file = NULL;
    *state = MT_CODE_MISSING;
    return MT_OK;
}

void mt_code_file_close(struct mt_code_file *file)
{
    (void)file;
}

size_t mt_code_file_places(struct mt_code_file *file, uint64_t address,
                           struct mt_code_place places[MT_MAX_CODE_PLACES])
{
    (void)file;
    (void)address;
    (void)places;
    return 0;
}
