/* Measures and draws the same requests under several allocators. */
#ifndef MT_CLI_POLICIES_PICTURE_H
#define MT_CLI_POLICIES_PICTURE_H

#include "picture_option.h"
#include "policy_table.h"

struct mt_policies_request {
    const char *path;
    const struct mt_text_list *policies; /* empty: the default selection */
    uint64_t device;                     /* UINT64_MAX: the device that reserves the most */
    uint64_t jobs; /* policies in parallel; 0 = as many as there are processors */
};

/* Measures the policies and draws the results. Sets *device to the device that the picture shows.
 * Prints errors; returns enum mt_exit. Release the drawing in any case. */
int mt_policies_picture(const struct mt_policies_request *request, const struct mt_common *common,
                        const struct mt_picture *picture, struct mt_drawing *drawing,
                        uint16_t *device);

/* Runs `memtrace render policies TRACE`. */
int mt_policies_render(const struct mt_policies_request *request, const struct mt_picture *picture,
                       const struct mt_common *common);

#endif
