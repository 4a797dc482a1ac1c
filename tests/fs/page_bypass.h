/* Inside page_bypass: a write through the page cache whose bytes come late. */
#ifndef MFS_TESTS_PAGE_BYPASS_H
#define MFS_TESTS_PAGE_BYPASS_H

/* A directory, by two mounts. */
void late_write(const char *here, const char *elsewhere);

#endif
