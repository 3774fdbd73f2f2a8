/* start: from the host to bubblewrap. init: from bubblewrap to the command. */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORDER_FD = 3, INFO_FD = 4, READY_FD = 5, COMMAND_FD = 6, FIRST_FOLDER_FD = 16, READER_PATIENCE_MS = 5000 };

static size_t command_in(const struct list *args);
static int args_memfd(const char *name, char **items, size_t count);
static void take_place(const struct order *order);
static void take_output(const char *path);
static bool logs_are_kept(const char *path);
static void mount_folders(const struct list *tmpfs);
static void open_folders(const struct list *folders);
static void become(const struct order *order);
_Noreturn static void run_bare(const struct order *order);
_Noreturn static void run_command(char **argv);
_Noreturn static void wait_for_ever(void);

int run_start(void) {
  struct order order;
  read_order(ORDER_FD, &order);
  if (!order.bwrap == !order.bare) fail("the order names no bwrap, or bare besides", 0);
  if (order.args.count == 0) fail("the order names no command", 0);
  size_t command = order.bare ? 0 : command_in(&order.args);
  /* The socket of the order may serve for the answers too. */
  for (int fd = INFO_FD; fd <= READY_FD; fd++)
    if (fcntl(fd, F_GETFD) < 0 && dup2(ORDER_FD, fd) < 0) fail("dup2", errno);
  close(ORDER_FD);
  close_from(COMMAND_FD);

  take_place(&order);
  if (order.output) take_output(order.output);
  mount_folders(&order.tmpfs);
  open_folders(&order.folders);
  if (order.network) make_network();
  become(&order);
  if (order.bare) run_bare(&order);

  /* By descriptor, so that no argument list on the host shows it. */
  int given = args_memfd("command", order.args.items + command, order.args.count - command);
  if (given != COMMAND_FD && (dup2(given, COMMAND_FD) < 0 || close(given) < 0)) fail("dup2", errno);
  int args = args_memfd("args", order.args.items, command - 3);
  const struct sock_fprog *filter = syscall_filter();
  int seccomp = memfd_of("seccomp", filter->filter, filter->len * sizeof *filter->filter);

  char args_text[16], seccomp_text[16];
  snprintf(args_text, sizeof args_text, "%d", args);
  snprintf(seccomp_text, sizeof seccomp_text, "%d", seccomp);
  char *argv[] = {"bwrap", "--args", args_text, "--seccomp", seccomp_text, "--info-fd", "4", "--share-net", "--", LAUNCHER_INSIDE, "init", NULL};
  /* bwrap's --unshare-all would make another network. Only a network of our own making is shared. */
  if (!order.network) memmove(argv + 7, argv + 8, 4 * sizeof *argv);
  char *const no_environment[] = {NULL};
  execve(order.bwrap, argv, no_environment);
  fail("exec bwrap", errno);
}

int run_init(char **argv) {
  if (!argv[0]) {
    size_t length;
    char *bytes = read_whole(COMMAND_FD, 4 * 1024 * 1024, &length);
    size_t count = 0;
    for (size_t at = 0; at < length; at++) count += bytes[at] == 0;
    if (count == 0 && getpid() == 1) wait_for_ever();
    argv = calloc(count + 1, sizeof *argv);
    if (!argv || !count) fail("no command", 0);
    char *item = bytes;
    for (size_t i = 0; i < count; i++, item += strlen(item) + 1) argv[i] = item;
  }
  close(ORDER_FD);
  close(INFO_FD);
  close_from(COMMAND_FD);
  run_command(argv);
}

/*
 * Waits as the namespace's init. It handles no signal, so the kernel drops every signal from inside, even SIGKILL. The kernel reaps its
 * children.
 */
static void wait_for_ever(void) {
  reset_process();
  signal(SIGCHLD, SIG_IGN);
  close_from(ORDER_FD);
  for (;;) pause();
}

/* A failure appears on the ready pipe; success closes it. */
static void run_command(char **argv) {
  fcntl(READY_FD, F_SETFD, FD_CLOEXEC);
  execvp(argv[0], argv);
  int error = errno;
  dprintf(READY_FD, "%s %s\n", strerrorname_np(error), argv[0]);
  complain(argv[0], error);
  _exit(exit_code_of_exec(error));
}

/* The order's args are bwrap's options, then `-- /.sandpool/launcher init`, then the command, if there is one. */
static size_t command_in(const struct list *args) {
  for (size_t i = 0; i + 3 <= args->count; i++) {
    char **at = args->items + i;
    if (strcmp(at[0], "--") == 0 && strcmp(at[1], LAUNCHER_INSIDE) == 0 && strcmp(at[2], "init") == 0) return i + 3;
  }
  fail("the order's args must end with -- " LAUNCHER_INSIDE " init [COMMAND...]", 0);
}

static int args_memfd(const char *name, char **items, size_t count) {
  size_t length = 0;
  for (size_t i = 0; i < count; i++) length += strlen(items[i]) + 1;
  char *bytes = malloc(length + 1), *at = bytes;
  if (!bytes) fail("no memory", 0);
  for (size_t i = 0; i < count; i++) at = stpcpy(at, items[i]) + 1;
  int fd = memfd_of(name, bytes, length);
  free(bytes);
  return fd;
}

static void take_place(const struct order *order) {
  /* Not 0, or the kernel would pass the dump to a host program named by core_pattern. */
  const struct rlimit no_core = {1, 1};
  reset_process();
  setsid(); /* fails for a group leader, which is as good */
  enter_cgroups(&order->cgroups);
  prefer_for_oom();
  set_limit(RLIMIT_CORE, no_core);
  for (size_t i = 0; i < order->limit_count; i++) set_limit(order->limits[i].resource, order->limits[i].value);
  if (chdir("/") < 0) fail("chdir", errno);
}

/*
 * Into a fifo that `launcher logs` reads. It is also open for reading, so a write always finds a reader, and gets its name after it is
 * open, so a fifo without a writer is finished.
 *
 * Others than root may open it only for writing. The launcher waits until `launcher logs` has marked the fifo: otherwise the output of a
 * short-lived sandbox would vanish.
 */
static void take_output(const char *path) {
  char fresh[PATH_MAX];
  if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh) fail("the path for the output is too long", 0);
  umask(0);
  int made = mkfifo(fresh, 0622);
  umask(022);
  int fd = made < 0 ? -1 : open(fresh, O_RDWR | O_CLOEXEC);
  if (fd < 0 || rename(fresh, path) < 0) {
    complain("make the fifo for the output", errno);
    return;
  }
  struct stat now;
  if (logs_are_kept(path))
    for (int ms = 0; ms < READER_PATIENCE_MS && fstat(fd, &now) == 0 && !(now.st_mode & S_ISVTX); ms++) poll(NULL, 0, 1);
  if (dup2(fd, 1) < 0 || dup2(fd, 2) < 0) fail("dup2", errno);
}

/* A `launcher logs` locks the folder above the fifos' folder. */
static bool logs_are_kept(const char *path) {
  char folder[PATH_MAX];
  int length = (int)(strrchr(path, '/') - path);
  if (snprintf(folder, sizeof folder, "%.*s/..", length, path) >= (int)sizeof folder) return false;
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool kept = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
  if (fd >= 0) close(fd);
  return kept;
}

/* bwrap's own have no limit on the number of files. They end with their mount namespace, in which only bwrap starts. */
static void mount_folders(const struct list *tmpfs) {
  if (tmpfs->count == 0) return;
  if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) fail("take a mount namespace", errno);
  for (size_t i = 0; i + 1 < tmpfs->count; i += 2)
    if (mount("tmpfs", tmpfs->items[i], "tmpfs", MS_NOSUID | MS_NODEV, tmpfs->items[i + 1]) < 0) fail("mount a folder of the sandbox", errno);
}

/* For bwrap's `--bind-fd`. Runs in this mount namespace, and while root may still create folders. */
static void open_folders(const struct list *folders) {
  for (size_t i = 0; i + 1 < folders->count; i += 2) {
    int folder = open_beneath(folders->items[i], folders->items[i + 1]), place = FIRST_FOLDER_FD + (int)(i / 2);
    if (folder < 0) {
      dprintf(READY_FD, "the folder %s of the volume: %s\n", folders->items[i + 1], strerror(errno));
      fail("open a folder of the volume", errno);
    }
    if (folder != place && (dup2(folder, place) < 0 || close(folder) < 0)) fail("dup2", errno);
    if (fcntl(place, F_SETFD, 0) < 0) fail("fcntl", errno);
  }
}

static void become(const struct order *order) {
  if (geteuid() != 0) {
    if ((order->uid >= 0 && order->uid != getuid()) || (order->gid >= 0 && order->gid != getgid()))
      fail("only root can take another uid", 0);
  } else {
    if (order->uid <= 0 || order->gid <= 0) fail("a sandbox needs a host uid and gid of its own, not root's", 0);
    uid_t uid = (uid_t)order->uid;
    gid_t gid = (gid_t)order->gid;
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
      fail("take the sandbox's uid", errno);
  }
  leave_keyring();
}

/* Without a sandbox: the command is a child in its own session, reported as bwrap reports its namespace's init. */
static void run_bare(const struct order *order) {
  drop_capabilities();
  /* Like a namespace's init, so that no zombies remain. */
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) fail("prctl", errno);
  pid_t command = fork();
  if (command < 0) fail("fork", errno);
  if (command == 0) {
    close(INFO_FD);
    setsid();
    const char *cwd = order->cwd ? order->cwd : "/";
    if (chdir(cwd) < 0) {
      dprintf(READY_FD, "chdir to %s: %s\n", cwd, strerror(errno));
      fail(cwd, errno);
    }
    char *nothing[] = {NULL};
    environ = order->env.items ? order->env.items : nothing;
    run_command(order->args.items);
  }
  signal(SIGPIPE, SIG_IGN); /* the reader may be gone */
  dprintf(INFO_FD, "{\"child-pid\": %d}\n", (int)command);
  close_from(ORDER_FD);
  int status;
  for (pid_t ended; (ended = wait(&status)) != command;)
    if (ended < 0 && errno != EINTR) fail("wait", errno);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}
