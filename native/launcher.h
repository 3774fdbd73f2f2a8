/* The launcher: see README.md for its modes and its orders. */
#ifndef LAUNCHER_H
#define LAUNCHER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Exit codes, as a shell has them. */
enum { EXIT_COULD_NOT = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

/* Where the launcher stands inside a sandbox. */
#define LAUNCHER_INSIDE "/.sandpool/launcher"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* launcher.c */

/* Writes `launcher: WHAT: REASON` (the reason only where `error` isn't 0) to fd 2. */
void complain(const char *what, int error);
/* complain, then exit 125. */
_Noreturn void fail(const char *what, int error);
/* 127 where the program is absent, else 126. */
int exit_code_of_exec(int error);
/* Reads to the end of the file, at most `limit` bytes; the result is NUL-terminated. Fails the launcher. */
char *read_whole(int fd, size_t limit, size_t *length);
/* Takes a line of a file of /proc apart, in its place, into as many fields as there are and may be; returns how many. */
size_t split_line(char *line, const char **fields, size_t most);
/* Closes every descriptor from this one up; fails the launcher where the kernel can't, before Linux 5.9. */
void close_from(int first);
/* A memfd that holds these bytes, its offset at 0. Close-on-exec is not set. */
int memfd_of(const char *name, const void *bytes, size_t length);
/* Of a clock that nobody sets. */
long long now_ms(void);

/* order.c */

struct list {
  char **items; /* ends with NULL */
  size_t count;
};

struct limit {
  int resource;
  struct rlimit value;
};

/* An order, as read. A number of -1 was not given. */
struct order {
  long uid, gid, inside_uid, inside_gid, pid;
  unsigned long long start_time;
  const char *bwrap, *cwd, *output, *told;
  bool bare; /* no bwrap, no namespaces, no filter */
  const char *holder, *process; /* hold: the folder of its socket, and its name */
  bool input, bound;
  long columns, rows, timeout_ms; /* hold: of its terminal; 0: none */
  struct list cgroups, env, args;
  struct list tmpfs; /* a folder and mount options, in turn */
  struct list folders; /* a volume and the path of a folder in it, in turn */
  struct limit limits[8];
  size_t limit_count;
};

/* Reads an order to its end. Exits with 125 where it is malformed or lacks its `go`. */
void read_order(int fd, struct order *order);
/* The same of bytes that are there already, and stay. */
void parse_order(char *bytes, size_t length, struct order *order);
/* A decimal number up to `max`, whole; false otherwise. */
bool parse_number(const char *text, unsigned long long max, unsigned long long *value);

/* process.c */

/* Signals as a fresh process has them, umask 022. */
void reset_process(void);
/* The OOM killer of the host takes sandboxes first. Before the process is made undumpable. */
void prefer_for_oom(void);
/* The calling process, which has one thread, enters each cgroup folder. */
void enter_cgroups(const struct list *cgroups);
/* As far as the own hard limits allow. */
void set_limit(int resource, struct rlimit value);
/* None in any set but the bounding one, and none to be gained: no_new_privs. */
void drop_capabilities(void);
/* A session keyring of its own, so that the daemon's is out of reach; its absence is no failure. */
void leave_keyring(void);
/*
 * A pidfd of the process that has this pid and start time (field 22 of its stat); -1 with errno ESRCH where there is
 * none, so a reused pid is never taken for the process meant.
 */
int open_process(pid_t pid, unsigned long long start_time);
/* The process group that its terminal has in the foreground, 0 without one. */
pid_t foreground_group(pid_t pid);
/* False where there is no such process, or it has ended. */
bool read_kin(pid_t pid, pid_t *parent, pid_t *session);

/* folder.c */

/* A descriptor of the folder at this path of a volume; -1 with errno where a part of the path is not a folder, or leads out. */
int open_beneath(const char *volume, const char *path);

/* listen.c */

/* A Unix socket of this name, which nothing has yet, in the folder, mode 0600, which takes connections; `flags` as socket(2) has them. */
int listen_outside(const char *folder, const char *name, int flags);

/* join.c */

/* Reads what follows as a join's order, and finds the sandbox. Fails the launcher. */
void read_joining(char *bytes, size_t length);
const struct order *joining(void);
/* Has a sealed copy of this file run in its place, as MODE, where the sandbox could write to it. */
void leave_own_file(const char *mode, const char *file);
/* A pidfd of the sandbox's first process. */
int find_sandbox(void);
/* The ends of a terminal or of pipes become the sandbox's. */
void hand_over(const int streams[3]);
/*
 * Starts the order's command in the sandbox, as a child. It says on `report` who it is and whether it could be run, as
 * native/README.md has it. 0 where nothing was started.
 */
pid_t join_sandbox(const int streams[3], int report);
/* To the group in the foreground of its terminal, without one to its own. */
void signal_joined(int number);

/* exec.c */

/* The variables of an order, and the encoding that every sandbox has, unless its image or template names one. */
void take_environment(const struct list *env);

/* home.c */

/* Notes the home of the Pod's sandbox, and has /home/user lead there where it can. */
void find_home(void);
/* As chdir; /home/user is the home where there is no such folder. */
int enter_folder(const char *path);

/* files.c */

/* Serves those who connect; returns once nobody has asked for anything for so long. */
void serve_files(int listener, int idle_ms);

/* seccomp.c */

/* The filter of main processes and joined ones alike. */
const struct sock_fprog *syscall_filter(void);

/* listener.c */

/* To be called before the filter is in place. */
void open_diagnosis(void);
/*
 * Who would take a connection to this port of the loopback address: 0 where that is a socket of the uid, EACCES where it is
 * another's, ECONNREFUSED where nothing listens.
 */
int whose_port(sa_family_t family, unsigned port, uid_t uid);

/* modes */

int run_start(void);
int run_init(char **argv);
int run_join(const char *file);
int run_hold(void);
int run_files(void);
int run_call(void);
int run_exec(const char *length);
int run_terminal(char **argv);
int run_signal(const char *process, const char *number);
int run_end(const char *process, const char *signal_number);
int run_watch(void);
int run_logs(char **argv);
int run_forward(void);

#endif
