/* The launcher: see README.md for its modes and its orders. */
#ifndef LAUNCHER_H
#define LAUNCHER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Exit codes of a shell. */
enum { EXIT_COULD_NOT = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

/* The launcher's path inside a sandbox. */
#define LAUNCHER_INSIDE "/.sandpool/launcher"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* launcher.c */

/* Writes `launcher: WHAT: REASON` to fd 2. Omits the reason if `error` is 0. */
void complain(const char *what, int error);
/* Complains, then exits with 125. */
_Noreturn void fail(const char *what, int error);
/* Returns 127 if the program does not exist, else 126. */
int exit_code_of_exec(int error);
/* Reads to the end of the file, at most `limit` bytes. NUL-terminates the result. Exits on failure. */
char *read_whole(int fd, size_t limit, size_t *length);
/* Splits a line of a /proc file in place, into at most `most` fields; returns their number. */
size_t split_line(char *line, const char **fields, size_t most);
/* Closes every descriptor from this one up. Exits if the kernel is older than Linux 5.9. */
void close_from(int first);
/* Returns a memfd with these bytes, at offset 0, without close-on-exec. */
int memfd_of(const char *name, const void *bytes, size_t length);
/* Monotonic clock. */
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

/* A parsed order. -1 stands for a number that was not given. */
struct order {
  long uid, gid, inside_uid, inside_gid, pid;
  unsigned long long start_time;
  const char *bwrap, *cwd, *output, *told;
  bool bare; /* no bwrap, no namespaces, no filter */
  bool network; /* start: makes the sandbox's network itself */
  const char *holder, *process; /* hold: folder and name of its socket */
  bool input, bound;
  long columns, rows, timeout_ms; /* hold: size of its terminal; 0 without one */
  struct list cgroups, env, args;
  struct list tmpfs; /* folders and mount options by turns */
  struct list folders; /* volumes and paths of folders by turns */
  struct limit limits[8];
  size_t limit_count;
};

/* Reads an order to its end. Exits with 125 if it is malformed or lacks its `go`. */
void read_order(int fd, struct order *order);
/* Parses an order in memory. The bytes must stay valid. */
void parse_order(char *bytes, size_t length, struct order *order);
/* Parses a whole decimal number up to `max`; returns false on anything else. */
bool parse_number(const char *text, unsigned long long max, unsigned long long *value);

/* process.c */

/* Resets signals and the umask (022) to those of a fresh process. */
void reset_process(void);
/* Makes the host's OOM killer prefer this process. Call it before the process becomes undumpable. */
void prefer_for_oom(void);
/* Moves the calling single-threaded process into each cgroup folder. */
void enter_cgroups(const struct list *cgroups);
/* Sets a limit, capped by the own hard limit. */
void set_limit(int resource, struct rlimit value);
/* Clears all capability sets except the bounding set, and sets no_new_privs. */
void drop_capabilities(void);
/* Joins a new session keyring, so that the daemon's is out of reach. Ignores failures. */
void leave_keyring(void);
/*
 * Opens a pidfd of the process with this pid and start time (field 22 of its stat). Returns -1 with errno ESRCH if it does not exist, so a
 * reused pid is never mistaken for it.
 */
int open_process(pid_t pid, unsigned long long start_time);
/* Returns the foreground process group of the process's terminal; 0 without a terminal. */
pid_t foreground_group(pid_t pid);
/* False if the process does not exist or has ended. */
bool read_kin(pid_t pid, pid_t *parent, pid_t *session);

/* folder.c */

/* Opens the folder at this path of a volume. Returns -1 with errno if a part of the path is not a folder, or leads out. */
int open_beneath(const char *volume, const char *path);

/* network.c */

/* Enters a new network with only a loopback, where every port is free and `ping` works. Needs root. */
void make_network(void);

/* listen.c */

/* Listens on a new Unix socket of this name in the folder, mode 0600. `flags` are those of socket(2). */
int listen_outside(const char *folder, const char *name, int flags);

/* join.c */

/* Parses the bytes as a join's order. Exits on failure. */
void read_joining(char *bytes, size_t length);
const struct order *joining(void);
/* Runs a sealed copy of this file as MODE, if the sandbox could write to the file. */
void leave_own_file(const char *mode);
/* Returns a pidfd of the sandbox's first process. */
int find_sandbox(void);
/* Gives the ends of a terminal or of pipes to the sandbox's user. */
void hand_over(const int streams[3]);
/*
 * Starts the order's command in the sandbox, as a child. Reports its pid and whether it runs on `report`, as in native/README.md. Returns 0
 * if nothing was started.
 */
pid_t join_sandbox(const int streams[3], int report);
/* Signals the terminal's foreground group, or without a terminal the command's group. */
void signal_joined(int number);

/* exec.c */

/* Sets an order's variables, and the default encoding unless the image or template sets one. */
void take_environment(const struct list *env);

/* home.c */

/* Notes the home of the Pod's sandbox, and links /home/user to it if possible. */
void find_home(void);
/* Like chdir, but maps /home/user to the home if it does not exist. */
int enter_folder(const char *path);

/* files.c */

/* Serves connections; returns after `idle_ms` without requests. */
void serve_files(int listener, int idle_ms);

/* seccomp.c */

/* The filter for main processes and joined processes. */
const struct sock_fprog *syscall_filter(void);

/* listener.c */

/* Call it before the filter is installed. */
void open_diagnosis(void);
/*
 * Finds who would take a connection to this port of the loopback address. Returns 0 if the uid owns that socket, EACCES if another uid owns
 * it, ECONNREFUSED if nothing listens.
 */
int whose_port(sa_family_t family, unsigned port, uid_t uid);

/* modes */

int run_start(void);
int run_init(char **argv);
int run_join(void);
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
