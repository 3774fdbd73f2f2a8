#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool read_stat(pid_t pid, char *text, size_t room, char **fields);
static const char *field(const char *fields, int number);

void reset_process(void) {
  /* glibc reserves 32 and 33. The kernel refuses SIGKILL and SIGSTOP. */
  const char fresh[64] = {0};
  for (int number = 1; number <= 64; number++) syscall(SYS_rt_sigaction, number, fresh, NULL, 8);
  const unsigned long none = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
  umask(022);
}

void prefer_for_oom(void) {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (write(fd, "500", 3) < 0) complain("oom_score_adj", errno);
  close(fd);
}

void enter_cgroups(const struct list *cgroups) {
  for (size_t i = 0; i < cgroups->count; i++) {
    int folder = open(cgroups->items[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) fail("open the cgroup", errno);
    /* v1's `tasks` moves one thread without the lock of `cgroup.procs`; v2 has no `tasks`. */
    int fd = openat(folder, "tasks", O_WRONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) fd = openat(folder, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1) fail("enter the cgroup", errno);
    close(fd);
    close(folder);
  }
}

void set_limit(int resource, struct rlimit value) {
  if (setrlimit(resource, &value) == 0) return;
  struct rlimit own;
  if (errno != EPERM || getrlimit(resource, &own) < 0) fail("setrlimit", errno);
  if (value.rlim_max > own.rlim_max) value.rlim_max = own.rlim_max;
  if (value.rlim_cur > value.rlim_max) value.rlim_cur = value.rlim_max;
  if (setrlimit(resource, &value) < 0) fail("setrlimit", errno);
}

void drop_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  const struct __user_cap_data_struct none[2] = {0};
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0) fail("drop ambient capabilities", errno);
  if (syscall(SYS_capset, &header, none) < 0) fail("drop capabilities", errno);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail("no_new_privs", errno);
}

void leave_keyring(void) {
  if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0) return;
}

int open_process(pid_t pid, unsigned long long start_time) {
  /* The order is essential: the pidfd is of this or an earlier owner of the pid. */
  int fd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return -1;
  char text[1024], *fields;
  if (read_stat(pid, text, sizeof text, &fields) && strtoull(field(fields, 22), NULL, 10) == start_time) return fd;
  close(fd);
  errno = ESRCH;
  return -1;
}

pid_t foreground_group(pid_t pid) {
  char text[1024], *fields;
  if (!read_stat(pid, text, sizeof text, &fields)) return 0;
  long group = strtol(field(fields, 8), NULL, 10);
  return group > 1 ? (pid_t)group : 0;
}

bool read_kin(pid_t pid, pid_t *parent, pid_t *session) {
  char text[1024], *fields;
  if (!read_stat(pid, text, sizeof text, &fields) || *fields == 'Z' || *fields == 'X') return false;
  *parent = (pid_t)strtol(field(fields, 4), NULL, 10);
  *session = (pid_t)strtol(field(fields, 6), NULL, 10);
  return true;
}

/* Field 3 follows the program's name, which may contain any character. */
static bool read_stat(pid_t pid, char *text, size_t room, char **fields) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t got = read(fd, text, room - 1);
  close(fd);
  if (got <= 0) return false;
  text[got] = 0;
  char *behind = strrchr(text, ')');
  if (!behind || behind[1] != ' ') return false;
  *fields = behind + 2;
  return true;
}

static const char *field(const char *fields, int number) {
  for (int at = 3; at < number; at++) {
    const char *space = strchr(fields, ' ');
    if (!space) return "";
    fields = space + 1;
  }
  return fields;
}
