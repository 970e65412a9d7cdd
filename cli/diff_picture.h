/* What changed between two runs, as a picture. */
#ifndef MT_CLI_DIFF_PICTURE_H
#define MT_CLI_DIFF_PICTURE_H

#include "diff_run.h"
#include "picture_option.h"

/* Draws the device of B that reserved most of those that are compared, as large as the
 * picture is to be (NULL: as it likes). Says what is wrong; enum mt_exit. The drawing is
 * to be released in any case. */
int mt_diff_run_draw(const struct mt_diff_run *run, const struct mt_question *question,
                     const struct mt_picture *picture, struct mt_drawing *drawing);

/* And writes it. */
int mt_diff_picture(const struct mt_diff_run *run, const struct mt_question *question,
                    const struct mt_picture *picture, const struct mt_common *common);

/* The whole of `memtrace render diff A B`. */
int mt_diff_render(const struct mt_diff_wish *wish, const struct mt_picture *picture,
                   const struct mt_common *common);

#endif
