/* libcurl's functions, of the library that is loaded at the first use. */
#ifndef MFS_STAGE_REMOTE_LIBCURL_H
#define MFS_STAGE_REMOTE_LIBCURL_H

#include <curl/curl.h>

#include "base/err.h"

#undef curl_easy_setopt /* macros, that check types where the function is called by its name */
#undef curl_easy_getinfo

struct mfs_libcurl {
    CURLcode (*global_init)(long flags);
    CURL *(*init)(void);
    void (*cleanup)(CURL *easy);
    void (*reset)(CURL *easy);
    CURLcode (*setopt)(CURL *easy, CURLoption option, ...);
    CURLcode (*getinfo)(CURL *easy, CURLINFO info, ...);
    CURLcode (*perform)(CURL *easy);
    const char *(*strerror)(CURLcode code);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free)(struct curl_slist *list);
    time_t (*getdate)(const char *text, const time_t *unused);
};

/* NULL with the reason. Any thread. */
const struct mfs_libcurl *mfs_libcurl(struct mfs_err *err);

/* This thread's handle, which keeps its connections and is ended with the thread; as new. NULL: no
 * memory. */
CURL *mfs_libcurl_handle(const struct mfs_libcurl *l);

#endif
