/* The style and the script of a report, which the build embeds in the program
 * (cmake/embed.cmake): report.css, and page.js followed by report.js. */
#ifndef MT_RENDER_PAGE_ASSETS_H
#define MT_RENDER_PAGE_ASSETS_H

extern const char mt_page_css[], mt_page_js[];
extern const char mt_picture_js[];             /* of pages with charts that can be enlarged */
extern const char mt_diff_css[], mt_diff_js[]; /* of the page about two runs */

#endif
