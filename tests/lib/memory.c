/* A program that has little memory left: now this allocation of the library fails and now that one,
 * in all of its threads. Calls end, with -ENOMEM or as ever, and the program goes on; with memory
 * again, all is well. What the library uses keeps its memory: hiredis 0.14 aborts without. The
 * allocator of a sanitizer can't be replaced. ctest: slow leaves timeout=240 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>

#include "lib_check.h"

#define FILES 700

/* ---- the allocator --------------------------------------------------------------------------- */

void *__libc_malloc(size_t n);           /* NOLINT(bugprone-reserved-identifier) */
void *__libc_calloc(size_t k, size_t n); /* NOLINT(bugprone-reserved-identifier) */
void *__libc_realloc(void *p, size_t n); /* NOLINT(bugprone-reserved-identifier) */

static atomic_uint each; /* so many allocations are there for one that fails; 0: none fails */
static atomic_uint asked, failed;
static uintptr_t begin, end; /* of the library's code */

static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    if (strstr(info->dlpi_name, "libmemefs") == NULL)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            end = begin + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

static bool fails(const void *caller)
{
    unsigned n = atomic_load(&each);

    if (n == 0 || (uintptr_t)caller < begin || (uintptr_t)caller >= end ||
        atomic_fetch_add(&asked, 1) % n != 0)
        return false;
    atomic_fetch_add(&failed, 1);
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
}

void *calloc(size_t k, size_t n)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(k, n);
}

void *realloc(void *p, size_t n)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, n);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void call_all(struct memefs *fs, unsigned round)
{
    char name[32], other[64], buf[8];
    struct memefs_file *f;
    struct stat st;

    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "/memory/%u-%d", round, i);
        snprintf(other, sizeof other, "%s-new", name);
        memefs_put(fs, name, "content", 7, 0);
        memefs_stat(fs, name, &st);
        memefs_get(fs, name, buf, sizeof buf);
        if (i % 5 == 0 && memefs_open(fs, name, O_RDWR | O_CREAT, 0644, &f) == 0) {
            memefs_write(f, "written", 7);
            memefs_close(f);
        }
        if (i % 7 == 0)
            memefs_rename(fs, name, other, 0);
        if (i % 11 == 0)
            memefs_unlink(fs, name);
    }
}

int main(void)
{
    static const unsigned rates[] = {1000, 101, 23, 7, 3};
    struct memefs *fs = lib_connect();
    struct stat st;

    alarm(120);
    CHECK(dl_iterate_phdr(find_library, NULL) == 1);
    GOOD(memefs_mkdir(fs, "/memory", 0755));
    GOOD(memefs_put(fs, "/memory/before", "before", 6, 0));
    for (unsigned round = 0; round < sizeof rates / sizeof *rates; round++) {
        atomic_store(&each, rates[round]);
        call_all(fs, round);
    }
    atomic_store(&each, 0);
    CHECK(atomic_load(&failed) > FILES);
    GOOD(memefs_stat(fs, "/memory/before", &st));
    EQUAL(6, st.st_size);
    GOOD(memefs_put(fs, "/memory/after", "after", 5, 0));
    GOOD(memefs_disconnect(fs));
    return 0;
}
