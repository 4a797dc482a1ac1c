#include "stage/remote/libcurl.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct mfs_libcurl functions;
static char why[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t handles;

static void end_handle(void *easy)
{
    functions.cleanup(easy);
}

static void load(void)
{
    static const struct {
        const char *name;
        void *to;
    } names[] = {{"curl_global_init", &functions.global_init},
                 {"curl_easy_init", &functions.init},
                 {"curl_easy_cleanup", &functions.cleanup},
                 {"curl_easy_reset", &functions.reset},
                 {"curl_easy_setopt", &functions.setopt},
                 {"curl_easy_getinfo", &functions.getinfo},
                 {"curl_easy_perform", &functions.perform},
                 {"curl_easy_strerror", &functions.strerror},
                 {"curl_slist_append", &functions.slist_append},
                 {"curl_slist_free_all", &functions.slist_free},
                 {"curl_getdate", &functions.getdate}};
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; library && i < sizeof names / sizeof *names; i++) {
        void *symbol = dlsym(library, names[i].name);

        if (!symbol)
            break;
        memcpy(names[i].to, &symbol, sizeof symbol); /* of data to functions, as dlsym(3) has it */
    }
    if (!library || !functions.getdate)
        snprintf(why, sizeof why, "%s", dlerror());
    else if (functions.global_init(CURL_GLOBAL_DEFAULT) || pthread_key_create(&handles, end_handle))
        snprintf(why, sizeof why, "can't be used");
}

const struct mfs_libcurl *mfs_libcurl(struct mfs_err *err)
{
    pthread_once(&once, load);
    if (!*why)
        return &functions;
    mfs_err_set(err, -ENOTSUP, "libcurl, which is needed for this (package libcurl4): %s", why);
    return NULL;
}

CURL *mfs_libcurl_handle(const struct mfs_libcurl *l)
{
    CURL *easy = pthread_getspecific(handles);

    if (easy) {
        l->reset(easy);
        return easy;
    }
    easy = l->init();
    if (easy)
        pthread_setspecific(handles, easy);
    return easy;
}
