/* Processes: starting them, and recognising them again after a crash of what started them.
 *
 * A pid alone may by then be another process'; a pid with its start time and executable is not. */
#ifndef MFS_HOST_PROC_H
#define MFS_HOST_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MFS_PROC_NAME_MAX 32

struct mfs_proc {
    pid_t pid;                    /* 0: none */
    uint64_t start;               /* clock ticks after boot, /proc/PID/stat field 22 */
    char comm[MFS_PROC_NAME_MAX]; /* the executable's name (base name of argv[0]'s file) or "?" */
};

/* Describes a live process. 0 or -ESRCH (also for a zombie). */
int mfs_proc_identify(pid_t pid, struct mfs_proc *p);

/* Is that very process still alive (a zombie is not)? Yes also when there is one of its pid that
 * can't be looked at (EMFILE, ENOMEM, …): what may live is not taken for dead. */
bool mfs_proc_alive(const struct mfs_proc *p);

/* Has that very process ended but for threads that can't, as they are in an uninterruptible wait?
 * What it had open stays open until then. */
bool mfs_proc_dying(const struct mfs_proc *p);

/* Its state as in proc(5): 'T' for one that a signal has stopped, 'D' for one that cannot be
 * interrupted, …; 0 when it is not alive. */
char mfs_proc_state(const struct mfs_proc *p);

/* Bytes that it has resident and shares with no file; 0 when that can't be told. Pages that a fork
 * shares count in both. */
uint64_t mfs_proc_anonymous(const struct mfs_proc *p);

/* Signals it only if it is still that very process. 0 or -ESRCH or a negative errno, also when that
 * can't be seen. */
int mfs_proc_kill(const struct mfs_proc *p, int sig);

/* Kills it and all that it has forked since: one that mfs_proc_spawn started, which leads a group
 * of its own. As mfs_proc_kill. */
int mfs_proc_kill_group(const struct mfs_proc *p);

/* SIGTERM, waits up to grace nanoseconds, then SIGKILL and waits up to 2 s. Blocks. 0 when it is
 * gone (also when it was), -ETIMEDOUT when not. */
int mfs_proc_end(const struct mfs_proc *p, int64_t grace);

/* Starts argv (argv[0] a path, or a name to look up in PATH) with stdin from /dev/null and both
 * outputs appended to the file log_path (made 0640; NULL: /dev/null), all signals default, no
 * descriptor inherited, own session. Returns the pid or a negative errno, also when exec failed. */
pid_t mfs_proc_spawn(const char *const *argv, const char *log_path);

/* The same for a process that must never be without a record: the program begins when the pid file
 * names its process, and not at all when its starter dies before. *p: the process; only its pid is
 * set when it has ended already (wait for it). 0 or a negative errno. */
int mfs_proc_spawn_noted(const char *const *argv, const char *log_path, const char *pid_file,
                         struct mfs_proc *p);

/* What a process is given that no command line may show: `text` on its standard input (at most a
 * page, then the input ends), and the variable `name` in its environment. */
struct mfs_proc_input {
    const char *text, *name, *value;
};

/* The same, with an input. */
int mfs_proc_spawn_given(const char *const *argv, const char *log_path, const char *pid_file,
                         const struct mfs_proc_input *input, struct mfs_proc *p);

/* As mfs_proc_spawn with both outputs into the open file `output`, and an input or NULL. */
pid_t mfs_proc_spawn_to(const char *const *argv, int output, const struct mfs_proc_input *input);

/* Puts this process before others when processors are short (nice -10, and its session likewise
 * where it leads one: see autogroups in sched(7)), for those that others wait for and that need
 * little. What it spawns afterwards does not have that. Without the right to do so nothing changes.
 * Not thread-safe. */
void mfs_proc_prefer(void);

/* As many open files as this process may have; what it spawns inherits that. */
void mfs_proc_raise_files(void);

/* The process in a pid file ("PID START NAME\n", replaced atomically). Loading does not ask whether
 * it is alive; a file that is no such file gives -EINVAL, one that others may write -EPERM. 0 or a
 * negative errno. */
int mfs_proc_save(const struct mfs_proc *p, const char *path);
int mfs_proc_load(const char *path, struct mfs_proc *p);

/* Finds processes by what they were started as: the executable's name, the first argument (NULL:
 * any) and an option followed by its value. For those whose starter died before it could record
 * them. Stops at the first negative return of `each`. 0 or that, or a negative errno. */
int mfs_proc_search(const char *comm, const char *verb, const char *option, const char *value,
                    int (*each)(void *arg, const struct mfs_proc *p), void *arg);

/* The same by any text in the command line, for processes that change theirs. */
int mfs_proc_search_text(const char *comm, const char *text,
                         int (*each)(void *arg, const struct mfs_proc *p), void *arg);

/* Has this process that capability (CAP_SYS_ADMIN, …; capabilities(7)) just now? */
bool mfs_proc_capable(int capability);

/* The path of `name` beside the running executable. 0 or a negative errno. */
int mfs_proc_sibling(const char *name, char *out, size_t n);

#endif
