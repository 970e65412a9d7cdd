/* The style and the script of report.html: report.css and report.js, which the build
 * makes part of the program (cmake/embed.cmake). */
#ifndef MT_RENDER_PAGE_ASSETS_H
#define MT_RENDER_PAGE_ASSETS_H

extern const char mt_page_css[], mt_page_js[];

#endif
