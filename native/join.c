/*
 * A short-lived process enters the namespaces (a pid namespace applies only to children) and forks the command as a child of the parent
 * half, which stays outside. files: the forked process becomes the agent. hold: the parent half is the holder.
 */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORDER_FD = 3, LISTENER_FD = 3, AGENT_IDLE_SECONDS = 60, MOST_IDLE_SECONDS = 3600 };

/* Filled before the first fork. */
static struct {
  struct order order;
  sigset_t signals;
  int target, parent; /* pidfds of the sandbox's init and of the parent half */
  int namespaces;     /* those that differ from ours */
  const int *streams; /* fds 0 to 2 */
  bool terminal;
  bool agent;         /* its listener is fd 3 */
  int idle_ms;
  int report;         /* to the holder, or -1 */
  uid_t host_uid;     /* on the host, if we are root */
  gid_t host_gid;
  volatile pid_t command;
} join;

static const int stdio[3] = {0, 1, 2};

static int join_with(void);
static void read_join_order(void);
static void require_order(void);
_Noreturn static void enter(void);
_Noreturn static void become_command(void);
_Noreturn static void stand_by(void);

int run_join(void) {
  /* Set before the order is read: an order from a caller that died earlier lacks its `go`. */
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0) fail("prctl", errno);
  leave_own_file("join");
  read_join_order();
  close_from(ORDER_FD);
  return join_with();
}

int run_files(void) {
  unsigned long long idle = AGENT_IDLE_SECONDS;
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0) fail("prctl", errno);
  read_join_order();
  const struct list *args = &join.order.args;
  if (args->count < 2 || args->count > 3) fail("the order names no folder and socket", 0);
  if (args->count == 3 && !parse_number(args->items[2], MOST_IDLE_SECONDS, &idle)) fail("the order has a malformed time", 0);
  int listener = listen_outside(args->items[0], args->items[1], 0);
  if (listener != LISTENER_FD && dup2(listener, LISTENER_FD) < 0) fail("dup2", errno);
  close_from(LISTENER_FD + 1);
  join.agent = true;
  join.idle_ms = (int)idle * 1000;
  return join_with();
}

static int join_with(void) {
  reset_process();
  prefer_for_oom();
  /* Processes inside can't inspect this process through /proc: its memory is the caller's, its file the host's. */
  if (prctl(PR_SET_DUMPABLE, 0) < 0) fail("prctl", errno);
  find_sandbox();
  hand_over(stdio);
  sigemptyset(&join.signals);
  sigaddset(&join.signals, SIGCHLD);
  sigaddset(&join.signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &join.signals, NULL);
  if (join_sandbox(stdio, -1) <= 0) _exit(EXIT_COULD_NOT);
  stand_by();
}

pid_t join_sandbox(const int streams[3], int report) {
  join.streams = streams;
  join.report = report;
  /* Namespaces are per task, and not copying memory saves a third of the time. */
  pid_t middle = vfork();
  if (middle < 0) return 0;
  if (middle == 0) enter();
  int status;
  while (waitpid(middle, &status, 0) < 0 && errno == EINTR) continue;
  return join.command;
}

void read_joining(char *bytes, size_t length) {
  parse_order(bytes, length, &join.order);
  require_order();
}

const struct order *joining(void) {
  return &join.order;
}

static void read_join_order(void) {
  read_order(ORDER_FD, &join.order);
  require_order();
}

static void require_order(void) {
  const struct order *order = &join.order;
  if (order->pid <= 0 || order->start_time == 0) fail("the order names no process", 0);
  if (order->inside_uid < 0 || order->inside_gid < 0) fail("the order names no uid inside", 0);
  if (order->bare && geteuid() == 0 && (order->inside_uid == 0 || order->inside_gid == 0)) fail("a bare command can not be root's", 0);
  if (order->args.count == 0) fail("the order names no command", 0);
}

/*
 * Runs a sealed copy unless we are root: a sandbox of the caller's own uid could open this file for writing, through a script whose
 * interpreter is /proc/self/exe.
 */
void leave_own_file(const char *mode) {
  if (geteuid() == 0) return;
  int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat found;
  if (own < 0 || fstat(own, &found) < 0) fail("open the launcher", errno);
  int seals = fcntl(own, F_GET_SEALS);
  if (seals >= 0 && (seals & F_SEAL_WRITE)) {
    close(own);
    return;
  }
  int copy = memfd_create("launcher", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (copy < 0) fail("memfd_create", errno);
  for (off_t left = found.st_size; left > 0;) {
    ssize_t put = sendfile(copy, own, NULL, (size_t)left);
    if (put <= 0) fail("copy the launcher", errno);
    left -= put;
  }
  if (fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) fail("seal", errno);
  char *const argv[] = {"launcher", (char *)mode, NULL};
  char *const no_environment[] = {NULL};
  fexecve(copy, argv, no_environment);
  fail("exec the launcher's copy", errno);
}

int find_sandbox(void) {
  static const struct {
    const char *name;
    int flag;
  } kinds[] = {{"user", CLONE_NEWUSER}, {"mnt", CLONE_NEWNS}, {"pid", CLONE_NEWPID},      {"net", CLONE_NEWNET},
               {"ipc", CLONE_NEWIPC},   {"uts", CLONE_NEWUTS}, {"cgroup", CLONE_NEWCGROUP}};
  pid_t pid = (pid_t)join.order.pid;
  join.parent = (int)syscall(SYS_pidfd_open, getpid(), 0);
  join.target = open_process(pid, join.order.start_time);
  if (join.parent < 0 || join.target < 0) fail("the sandbox is gone", errno);
  /* It may have made its own namespaces, which nobody else enters. */
  for (size_t i = 0; i < LENGTH(kinds) && !join.order.bare; i++) {
    char theirs[64], ours[64];
    struct stat a, b;
    snprintf(theirs, sizeof theirs, "/proc/%d/ns/%s", (int)pid, kinds[i].name);
    snprintf(ours, sizeof ours, "/proc/self/ns/%s", kinds[i].name);
    if (stat(theirs, &a) < 0 || stat(ours, &b) < 0) fail("look at the sandbox's namespaces", errno);
    if (a.st_ino != b.st_ino || a.st_dev != b.st_dev) join.namespaces |= kinds[i].flag;
  }
  return join.target;
}

/* To the sandbox's host uid, so that the command can open /dev/stderr and the like. */
void hand_over(const int streams[3]) {
  struct stat found;
  join.terminal = isatty(streams[0]);
  if (geteuid() == 0) {
    char path[64];
    struct stat sandbox;
    snprintf(path, sizeof path, "/proc/%d", (int)join.order.pid);
    if (stat(path, &sandbox) < 0) fail("the sandbox is gone", errno);
    if (sandbox.st_uid == 0 || sandbox.st_gid == 0) fail("a sandbox of root's is not joined", 0);
    join.host_uid = sandbox.st_uid;
    join.host_gid = sandbox.st_gid;
    for (int i = 0; i <= 2; i++) {
      const int fd = streams[i];
      if (fstat(fd, &found) == 0 && (S_ISFIFO(found.st_mode) || (S_ISCHR(found.st_mode) && isatty(fd))))
        if (fchown(fd, sandbox.st_uid, sandbox.st_gid) < 0) complain("fchown", errno);
    }
  }
}

static void drop_privileges(void) {
  uid_t uid = (uid_t)join.order.inside_uid;
  gid_t gid = (gid_t)join.order.inside_gid;
  /* Without root a bare process's bounding set can't be dropped, and no_new_privs makes it useless. */
  for (int capability = 0; capability < 64 && !join.order.bare; capability++)
    if (prctl(PR_CAPBSET_DROP, capability) < 0) {
      if (errno == EINVAL) break; /* after the last capability */
      fail("drop the bounding set", errno);
    }
  if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0) fail("take the uid inside", errno);
  /* A change of uid resets the flag to fs.suid_dumpable. */
  if (prctl(PR_SET_DUMPABLE, 0) < 0) fail("prctl", errno);
  drop_capabilities();
}

/* Shares the memory of the parent half, which sleeps until this process ends. */
static void enter(void) {
  enter_cgroups(&join.order.cgroups);
  /* Inside, setgroups is refused. */
  if (geteuid() == 0 && setgroups(0, NULL) < 0) fail("setgroups", errno);
  if (join.namespaces && setns(join.target, join.namespaces) < 0) fail("enter the sandbox", errno);
  /* Before the fork: a process in the sandbox's pid namespace has its uid, and no more rights, from the first moment. */
  drop_privileges();
  long child = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
  if (child < 0) fail("fork in the sandbox", errno);
  if (child == 0) become_command();
  join.command = (pid_t)child;
  _exit(0);
}

/* This uid may read the init's limits even if root lacks the capability. */
static void take_limits(void) {
  if (!(join.namespaces & CLONE_NEWPID) && !join.order.bare) return;
  pid_t init = join.order.bare ? (pid_t)join.order.pid : 1;
  for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
    struct rlimit limit;
    if (prlimit(init, resource, NULL, &limit) < 0) fail("the sandbox's limits", errno);
    set_limit(resource, limit);
  }
}

/* The parent half may have died before the prctl. */
static void die_with_parent(void) {
  struct pollfd parent = {.fd = join.parent, .events = POLLIN};
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) fail("prctl", errno);
  if (poll(&parent, 1, 0) != 0) _exit(EXIT_COULD_NOT);
}

/* `p` and the pid inside, or an error. */
static void tell(char what, int number) {
  unsigned char words[5] = {(unsigned char)what};
  if (join.report < 0) return;
  const size_t size = 1 + put_number(words + 1, (uint64_t)number, what == 'p' ? 4 : 1);
  if (write(ORDER_FD, words, size) < 0) return; /* the holder is gone, so this process ends soon */
}

static void take_streams(void) {
  for (int fd = 0; fd <= 2; fd++)
    if (join.streams[fd] != fd && dup2(join.streams[fd], fd) < 0) fail("dup2", errno);
  if (join.report < 0) return;
  if (dup2(join.report, ORDER_FD) < 0 || fcntl(ORDER_FD, F_SETFD, FD_CLOEXEC) < 0) fail("the report", errno);
}

_Noreturn static void fail_in_folder(const char *cwd, int error) {
  char what[256];
  snprintf(what, sizeof what, "the working folder %.200s", cwd);
  fail(what, error);
}

static void become_command(void) {
  if (!join.agent) take_streams();
  tell('p', getpid());
  setsid();
  if (join.terminal && ioctl(0, TIOCSCTTY, 0) < 0) fail("take the terminal", errno);
  take_limits();
  die_with_parent();
  leave_keyring();
  const char *cwd = join.order.cwd ? join.order.cwd : "/";
  if (chdir(join.agent ? "/" : cwd) < 0) {
    int error = errno;
    tell('c', error);
    fail_in_folder(cwd, error);
  }
  close_from(join.agent ? LISTENER_FD + 1 : join.report < 0 ? ORDER_FD : ORDER_FD + 1);
  reset_process();
  if (!join.order.bare && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, syscall_filter()) < 0) fail("seccomp", errno);

  if (join.agent) {
    /* Stays undumpable: it never execs a program of the sandbox, so no process inside may inspect it. */
    if (join.order.bare) bare_home = join.order.cwd;
    serve_files(LISTENER_FD, join.idle_ms);
    _exit(0);
  }
  char *nothing[] = {NULL};
  environ = join.order.env.items ? join.order.env.items : nothing;
  char **argv = join.order.args.items;
  execvp(argv[0], argv);
  int error = errno;
  tell('e', error);
  complain(argv[0], error);
  _exit(exit_code_of_exec(error));
}

/* Our unreaped child's pid can't be reused. */
static void signal_command(int number) {
  /* It may not lead a group yet. */
  if (kill(-join.command, number) < 0 && errno == ESRCH) kill(join.command, number);
}

/* The command chooses the group, whose number may be reused: signals with only the sandbox's rights. */
static void signal_foreground(pid_t group, int number) {
  pid_t session = getsid(group); /* fails if the group's leader is gone; the group may outlive it */
  if (session >= 0 && session != join.command) return;
  pid_t helper = fork();
  if (helper < 0) return complain("fork", errno);
  if (helper > 0) {
    while (waitpid(helper, NULL, 0) < 0 && errno == EINTR) continue;
    return;
  }
  const uid_t uid = join.host_uid;
  const gid_t gid = join.host_gid;
  if (geteuid() == 0 && (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)) _exit(EXIT_COULD_NOT);
  kill(-group, number);
  _exit(0);
}

void signal_joined(int number) {
  pid_t foreground = join.terminal ? foreground_group(join.command) : 0;
  if (foreground > 0 && foreground != join.command) signal_foreground(foreground, number);
  else signal_command(number);
}

static void stand_by(void) {
  close_from(ORDER_FD);
  for (;;) {
    int status;
    if (waitpid(join.command, &status, WNOHANG) == join.command)
      _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    if (sigwaitinfo(&join.signals, NULL) == SIGTERM) signal_command(SIGKILL);
  }
}
