/* Requests are read from /dev/fuse and handed to libfuse, replies written through its custom I/O.
 * On the way a worker notes what libfuse does not hand on (thread-local: it serves one request at a
 * time), and the reply to INIT gets our flags. State of the one mount: INIT not seen, asked
 * (init_unique set), agreed. */
#include "fuse/mount/device.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/fuse.h>

#include "base/clock.h"
#include "base/ino.h"
#include "base/log.h"
#include "cluster/capacity.h"
#include "cluster/placement.h"
#include "fuse/kernel/killed.h"
#include "fuse/kernel/nodeids.h"
#include "fuse/mount/awake.h"
#include "fuse/uring/uring.h"
#include "store/store.h"

/* linux/fuse.h may be older than the kernel. */
#define NOTIFY_INC_EPOCH 8         /* FUSE_NOTIFY_INC_EPOCH */
#define MAPS_DIRECT      (1U << 4) /* FUSE_DIRECT_IO_ALLOW_MMAP, in flags2 */
#define OVER_URING       (1U << 9) /* FUSE_OVER_IO_URING, in flags2 */

/* What is added to the answer to INIT if the kernel knows it: in flags, and in flags2. */
#define ADDED  (FUSE_HANDLE_KILLPRIV_V2 | FUSE_PARALLEL_DIROPS)
#define ADDED2 MAPS_DIRECT

/* The longest request has its two headers before the data. */
#define REQUEST_SIZE (MFS_CAPACITY_REQUEST + 4096U)

#define HANGS MFS_SEC /* a partition that has been silent for so long */

static_assert(sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in) <= 4096,
              "headers find room");

/* One process has one mount. */
static atomic_uint_fast64_t init_unique; /* number of the request INIT, until that is answered */
static atomic_uint known, known2;        /* of ADDED and ADDED2, what the kernel knows … */
static atomic_uint agreed, agreed2;      /* … and what it was answered */
static _Thread_local bool kills;
static pthread_rwlock_t notices = PTHREAD_RWLOCK_INITIALIZER; /* held for reading to write one */
static bool notices_over;                                     /* guarded by it */
static size_t kept;                  /* of a worker's buffer, see device.h; SIZE_MAX: all of it */
static _Thread_local size_t touched; /* of it, by the last request */
static _Thread_local bool admitted;  /* the request that it serves, see fuse/kernel/admission.h */

/* A field of the request that lies `off` bytes behind its header; 0 when it is shorter. */
static uint32_t field(const char *request, size_t len, size_t off)
{
    uint32_t value = 0;

    if (sizeof(struct fuse_in_header) + off + sizeof value <= len)
        memcpy(&value, request + sizeof(struct fuse_in_header) + off, sizeof value);
    return value;
}

static bool asks_to_kill(uint32_t opcode, const char *request, size_t len)
{
    switch (opcode) {
    case FUSE_WRITE:
        return field(request, len, offsetof(struct fuse_write_in, write_flags)) &
               FUSE_WRITE_KILL_SUIDGID;
    case FUSE_OPEN:
        return field(request, len, offsetof(struct fuse_open_in, open_flags)) &
               FUSE_OPEN_KILL_SUIDGID;
    case FUSE_CREATE:
        return field(request, len, offsetof(struct fuse_create_in, open_flags)) &
               FUSE_OPEN_KILL_SUIDGID;
    case FUSE_SETATTR:
        return field(request, len, offsetof(struct fuse_setattr_in, valid)) & FATTR_KILL_SUIDGID;
    default:
        return false;
    }
}

static void note_init(const struct mfs_fuse *m, uint64_t unique, const char *request, size_t len)
{
    uint32_t flags = field(request, len, offsetof(struct fuse_init_in, flags));
    uint32_t more = field(request, len, offsetof(struct fuse_init_in, flags2));
    uint32_t wanted2 = m->uring != NULL ? ADDED2 | OVER_URING : ADDED2;

    atomic_store(&known, flags & ADDED);
    atomic_store(&known2, flags & FUSE_INIT_EXT ? more & wanted2 : 0);
    atomic_store(&init_unique, unique);
}

/* TMPFILE has CREATE's form, question and answer; the name is "/". */
static void look_at(const struct mfs_fuse *m, char *request, size_t len)
{
    struct fuse_in_header in;

    if (len < sizeof in)
        return;
    memcpy(&in, request, sizeof in);
    if (in.opcode == FUSE_TMPFILE) {
        in.opcode = FUSE_CREATE;
        memcpy(request, &in, sizeof in);
    }
    mfs_request_read(request, len);
    kills = asks_to_kill(in.opcode, request, len);
    if (in.opcode == FUSE_INIT)
        note_init(m, in.unique, request, len);
}

/* When a request may have to wait, see fuse/ops.def. */
enum waits { NEVER, ALWAYS };

static const unsigned char waits_of[] = {
#define OP(name, NAME, opcode, waits) [opcode] = (waits),
#include "fuse/ops.def"
#undef OP
};

bool mfs_device_may_wait(const char *request, size_t len)
{
    struct fuse_in_header in;

    if (len < sizeof in)
        return false;
    memcpy(&in, request, sizeof in);
    if (mfs_nodeids_is_inside(in.nodeid))
        return false; /* what tells why requests wait does not wait with them */
    return in.opcode < sizeof waits_of && waits_of[in.opcode] == ALWAYS;
}

bool mfs_device_root_hangs(const struct mfs_fuse *m, uid_t uid)
{
    return m->serve_inside != NULL && (uid == 0 || uid == geteuid()) &&
           mfs_store_hangs(mfs_vfs_store(m->vfs), mfs_ino_home(MFS_ROOT_INO), HANGS);
}

/* What leads to the files that tell why requests wait, and what ends a wait. The look-up of another
 * name than theirs is refused there. */
enum mfs_workers_urgency mfs_device_urgency(void *arg, const char *request, size_t len)
{
    const struct mfs_fuse *m = arg;
    struct fuse_in_header in;

    if (len < sizeof in)
        return MFS_WORKERS_NORMAL;
    memcpy(&in, request, sizeof in);
    if (in.opcode == FUSE_INTERRUPT)
        return MFS_WORKERS_AT_ONCE;
    if (m->serve_inside == NULL)
        return MFS_WORKERS_NORMAL;
    if (in.opcode == FUSE_GETATTR && in.nodeid == FUSE_ROOT_ID) /* may the path be taken? */
        return mfs_device_root_hangs(m, in.uid) ? MFS_WORKERS_AT_ONCE : MFS_WORKERS_BRIEF;
    return m->urgency_inside(request, len);
}

static void give_back(char *buf)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *from = buf + (page - ((uintptr_t)buf + kept) % page) % page + kept;
    size_t bytes = touched > (size_t)(from - buf) ? touched - (size_t)(from - buf) : 0;

    if (bytes >= page)
        madvise(from, bytes / page * page, MADV_DONTNEED);
}

/* One that was deferred, when that which the worker has served makes room for it. */
static size_t ready(void *arg, char *buf)
{
    struct mfs_fuse *m = arg;
    size_t n = admitted ? mfs_admission_next(m->admission, buf) : 0;

    if (n == 0 && touched > kept) { /* the worker may sleep for long now */
        give_back(buf);
        touched = 0;
    }
    return n;
}

static ssize_t read_request(struct mfs_fuse *m, char *buf)
{
    ssize_t n = read(fuse_session_fd(m->se), buf, REQUEST_SIZE);

    if (n >= 0)
        return n < (ssize_t)sizeof(struct fuse_in_header) ? -EIO : n;
    if (errno == ENODEV) /* unmounted */
        return 0;
    return errno == ENOENT || errno == EAGAIN ? -EINTR : -errno; /* its caller waits no more */
}

static ssize_t wait_for_request(void *arg, char *buf)
{
    struct mfs_fuse *m = arg;
    ssize_t n = read_request(m, buf);

    while (n > 0 && mfs_device_may_wait(buf, (size_t)n) &&
           !mfs_admission_admit(m->admission, buf, (size_t)n)) {
        mfs_workers_deferred(m->workers);
        n = read_request(m, buf);
    }
    return n;
}

void mfs_device_serve(void *arg, char *buf, size_t len)
{
    struct mfs_fuse *m = arg;
    struct fuse_buf request = {.mem = buf, .size = len};

    mfs_awake_request(m->awake);
    if (m->serve_inside != NULL && m->serve_inside(m, buf, len))
        return;
    look_at(m, buf, len);
    fuse_session_process_buf(m->se, &request);
    if (fuse_session_exited(m->se)) /* it could not agree with the kernel */
        mfs_workers_stop(m->workers);
}

static void serve(void *arg, char *buf, size_t len)
{
    if (len > touched)
        touched = len;
    admitted = mfs_device_may_wait(buf, len);
    mfs_device_serve(arg, buf, len);
}

/* The answer goes by no statistics: nothing was served. ENOENT: the kernel waits no more. */
static bool gone(void *arg, const char *request, size_t len)
{
    const struct mfs_fuse *m = arg;
    struct fuse_out_header out;

    if (!mfs_killed(request, len))
        return false;
    out = mfs_killed_answer(request);
    return write(fuse_session_fd(m->se), &out, sizeof out) > 0 || errno == ENOENT;
}

static bool look(void *arg)
{
    struct mfs_fuse *m = arg;

    return mfs_admission_look(m->admission, gone, m);
}

const struct mfs_workers_source mfs_device_source = {.ready = ready,
                                                     .wait = wait_for_request,
                                                     .serve = serve,
                                                     .urgency = mfs_device_urgency,
                                                     .gone = gone,
                                                     .look = look,
                                                     .size = REQUEST_SIZE};

/* libfuse wants one, and does not read. */
static ssize_t refuse_to_read(int fd, void *buf, size_t len, void *userdata)
{
    (void)fd;
    (void)buf;
    (void)len;
    (void)userdata;
    return -ENOSYS;
}

/* The reply to INIT: our flags are added to libfuse's. True: it is that. */
static bool amend_init(const struct iovec *iov, int count)
{
    const struct fuse_out_header *out = iov[0].iov_base;
    struct fuse_init_out *init = count > 1 ? iov[1].iov_base : NULL;

    if (out->unique != atomic_load(&init_unique) || out->error != 0 || init == NULL ||
        iov[1].iov_len < offsetof(struct fuse_init_out, flags2) + sizeof init->flags2)
        return false;
    init->flags |= atomic_load(&known);
    init->flags2 |= atomic_load(&known2);
    if (init->flags2 != 0)
        init->flags |= FUSE_INIT_EXT;
    atomic_store(&init_unique, 0);
    atomic_store(&agreed, atomic_load(&known));
    atomic_store(&agreed2, atomic_load(&known2));
    return true;
}

/* The kernel has the reply to INIT. */
static void begin(struct mfs_fuse *m)
{
    if (m->uring == NULL)
        return;
    if (atomic_load(&agreed2) & OVER_URING) {
        mfs_info("mount", "requests come by io_uring");
        mfs_uring_begin(m->uring);
    } else {
        mfs_warn("mount", "uring: the kernel does not offer it: that takes Linux 6.14 and, before "
                          "the mount, echo Y >/sys/module/fuse/parameters/enable_uring; requests "
                          "come by /dev/fuse");
    }
}

static ssize_t length_of(const struct iovec *iov, int count)
{
    size_t len = 0;

    for (int i = 0; i < count; i++)
        len += iov[i].iov_len;
    return (ssize_t)len;
}

/* The file that the calling thread's reply to OPEN or CREATE opens is to be written in parallel. */
static _Thread_local bool parallel;

void mfs_device_write_in_parallel(void)
{
    parallel = true;
}

/* The reply to OPEN or CREATE, which ends with the open file. */
static void amend_open(const struct iovec *iov, int count)
{
    const struct fuse_out_header *out = iov[0].iov_base;
    struct fuse_open_out *open;

    if (count == 2 && out->error == 0 && iov[1].iov_len >= sizeof *open) {
        open = (void *)((char *)iov[1].iov_base + iov[1].iov_len - sizeof *open);
        open->open_flags |= FOPEN_PARALLEL_DIRECT_WRITES;
    }
    parallel = false;
}

static ssize_t write_notice(int fd, const struct iovec *iov, int count)
{
    ssize_t n = -1;
    int error = ENODEV;

    pthread_rwlock_rdlock(&notices);
    if (!notices_over) {
        n = writev(fd, iov, count);
        error = errno;
    }
    pthread_rwlock_unlock(&notices);
    errno = error;
    return n;
}

void mfs_device_end_notices(void)
{
    pthread_rwlock_wrlock(&notices);
    notices_over = true;
    pthread_rwlock_unlock(&notices);
}

static ssize_t write_answer(int fd, struct iovec *iov, int count, void *userdata)
{
    struct mfs_fuse *m = userdata;
    const struct fuse_out_header *out = iov[0].iov_base;
    bool init = false;
    ssize_t n;

    if (iov[0].iov_len >= sizeof *out) {
        if (out->unique == 0)
            return write_notice(fd, iov, count);
        if (atomic_load_explicit(&init_unique, memory_order_relaxed) != 0)
            init = amend_init(iov, count);
        if (parallel)
            amend_open(iov, count);
        mfs_request_answer(m->requests, iov, count);
        if (m->uring != NULL && mfs_uring_reply(m->uring, iov, count))
            return length_of(iov, count);
    }
    n = writev(fd, iov, count);
    if (init && n >= 0)
        begin(m);
    return n;
}

void mfs_device_answer(struct mfs_fuse *m, struct iovec *iov, int count)
{
    struct fuse_out_header *out = iov[0].iov_base;

    out->len = (uint32_t)length_of(iov, count);
    write_answer(fuse_session_fd(m->se), iov, count, m);
}

void mfs_device_flush(const struct mfs_fuse *m)
{
    if (m->uring != NULL)
        mfs_uring_flush(m->uring);
}

int mfs_device_attach(struct fuse_session *se, size_t keep)
{
    static const struct fuse_custom_io io = {.read = refuse_to_read, .writev = write_answer};

    kept = keep < MFS_CAPACITY_REQUEST ? keep : SIZE_MAX;
    return fuse_session_custom_io(se, &io, fuse_session_fd(se));
}

bool mfs_device_kills(void)
{
    return kills;
}

bool mfs_device_is_ours(void)
{
    return atomic_load(&agreed) & FUSE_HANDLE_KILLPRIV_V2;
}

bool mfs_device_maps_direct(void)
{
    return atomic_load(&agreed2) & MAPS_DIRECT;
}

int mfs_device_distrust(struct fuse_session *se)
{
    struct fuse_out_header notice = {.len = sizeof notice, .error = NOTIFY_INC_EPOCH};
    const struct iovec iov = {&notice, sizeof notice};

    return write_notice(fuse_session_fd(se), &iov, 1) < 0 ? -errno : 0;
}

/* FUSE_NOTIFY_STORE makes the file longer before it takes the bytes that came with it. There are
 * none: whatever byte we gave might overwrite what a mapping has stored there by now. */
int mfs_device_grow(struct fuse_session *se, uint64_t nodeid, uint64_t end)
{
    struct fuse_notify_store_out store = {.nodeid = nodeid, .offset = end - 1, .size = 1};
    struct fuse_out_header notice = {.len = sizeof notice + sizeof store + store.size,
                                     .error = FUSE_NOTIFY_STORE};
    const struct iovec iov[] = {
        {&notice, sizeof notice}, {&store, sizeof store}, {NULL, store.size}};

    return write_notice(fuse_session_fd(se), iov, 3) < 0 && errno != EFAULT ? -errno : 0;
}
