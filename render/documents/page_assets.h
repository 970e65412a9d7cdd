/* Styles and scripts of the pages, which the build embeds in the program (cmake/embed.cmake).
 * render/CMakeLists.txt has the files of each. */
#ifndef MT_RENDER_PAGE_ASSETS_H
#define MT_RENDER_PAGE_ASSETS_H

extern const char mt_page_css[], mt_page_js[];
extern const char mt_notebook_js[];            /* of a page without charts that can be enlarged */
extern const char mt_diff_css[], mt_diff_js[]; /* of the page about two runs */

#endif
