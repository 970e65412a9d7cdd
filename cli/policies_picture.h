/* The same requests under several allocators, measured and drawn. */
#ifndef MT_CLI_POLICIES_PICTURE_H
#define MT_CLI_POLICIES_PICTURE_H

#include "picture_option.h"
#include "policy_table.h"

struct mt_policies_request {
    const char *path;
    const struct mt_text_list *policies; /* empty: the default selection */
    uint64_t device;                     /* UINT64_MAX: the one that reserves most */
    uint64_t jobs; /* policies in parallel; 0 = as many as there are processors */
};

/* Measures and draws. Prints errors; returns enum mt_exit. Release the drawing in any case.
 * *device is the device that the picture shows. */
int mt_policies_picture(const struct mt_policies_request *request, const struct mt_common *common,
                        const struct mt_picture *picture, struct mt_drawing *drawing,
                        uint16_t *device);

/* The whole of `memtrace render policies TRACE`. */
int mt_policies_render(const struct mt_policies_request *request, const struct mt_picture *picture,
                       const struct mt_common *common);

#endif
