#include "scatter_plan.h"

enum mt_role mt_scatter_main_role(const struct mt_scatter_cell *cell)
{
    enum mt_role role, most = MT_ROLE_OTHER;

    for (role = 0; role < MT_ROLE_COUNT; role++)
        if (cell->role_bytes[role] > cell->role_bytes[most])
            most = role;
    return most;
}
