/*
 * Tries ways out of a sandbox by raw system call and prints one JSON object: what was tried, and the name of the error
 * (or of the signal that it died of), or "ok". Called with pairs: read PATH, write PATH, unix PATH, abstract NAME,
 * tcp ADDRESS:PORT.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *separator = "";

static void tell(const char *name, const char *answer) {
  printf("%s\"%s\":\"%s\"", separator, name, answer);
  separator = ",";
}

static void tried(const char *name, long result) { tell(name, result < 0 ? strerrorname_np(errno) : "ok"); }

#define CALL(number, ...) tried(#number, syscall(SYS_##number, __VA_ARGS__))

/* What a child that does this dies of. */
static void in_child(const char *name, long (*attempt)(void)) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    long result = attempt();
    _exit(result < 0 && result > -200 ? (int)-result : result < 0 ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    char text[32];
    snprintf(text, sizeof text, "SIG%s", sigabbrev_np(WTERMSIG(status)));
    tell(name, text);
  } else {
    tell(name, WEXITSTATUS(status) ? strerrorname_np(WEXITSTATUS(status)) : "ok");
  }
}

static long clone_newuser(void) {
  long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  return child < 0 ? -errno : child;
}

static long clone3_newuser(void) {
  struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
  long child = syscall(SYS_clone3, &args, sizeof args);
  if (child == 0) _exit(0);
  return child < 0 ? -errno : child;
}

static long trace_me(void) { return syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0) < 0 ? -errno : 0; }

#if defined(__x86_64__)
static long call_by_int80(void) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20 /* getpid */) : "memory");
  return result;
}

static long call_by_x32(void) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(0x40000000L | SYS_getpid) : "rcx", "r11", "memory");
  return result;
}
#endif

static void try_terminal(void) {
  static const char *const names[] = {"TIOCSTI", "TIOCLINUX"};
  static const unsigned long commands[] = {TIOCSTI, 0x541c};
  char byte = 'x';
  char name[64];
  for (int i = 0; i < 2; i++) {
    tried(names[i], syscall(SYS_ioctl, 0, commands[i], &byte));
    snprintf(name, sizeof name, "%s with high bits", names[i]);
    tried(name, syscall(SYS_ioctl, 0, commands[i] | 0x5a5a00000000UL, &byte));
  }
  int line = 2;
  tried("TIOCSETD", ioctl(0, TIOCSETD, &line));
}

static void try_namespaces(void) {
  CALL(unshare, CLONE_NEWUSER);
  in_child("clone", clone_newuser);
  in_child("clone3", clone3_newuser);
  CALL(setns, 0, CLONE_NEWNET);
  CALL(mount, "tmpfs", "/tmp", "tmpfs", 0, "");
  CALL(umount2, "/proc", 2);
  CALL(pivot_root, "/tmp", "/tmp");
  CALL(chroot, "/tmp");
  CALL(fsopen, "tmpfs", 0);
  CALL(fsconfig, -1, 0, 0, 0, 0);
  CALL(fsmount, -1, 0, 0);
  CALL(fspick, AT_FDCWD, "/", 0);
  CALL(open_tree, AT_FDCWD, "/", 1);
  CALL(move_mount, AT_FDCWD, "/tmp", AT_FDCWD, "/work", 0);
  CALL(mount_setattr, AT_FDCWD, "/", 0, 0, 0);
  tried("open_tree_attr", syscall(467, AT_FDCWD, "/", 1, 0, 0));
  tried("a call newer than the filter", syscall(500));
  CALL(setuid, 0);
  CALL(setgroups, 0, NULL);
  CALL(sethostname, "x", 1);
}

static void try_kernel(void) {
  union bpf_attr bpf = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
  struct perf_event_attr perf = {.type = PERF_TYPE_SOFTWARE, .size = sizeof perf, .exclude_kernel = 1};
  char handle[128] = {8};
  char params[256] = {0};
  CALL(keyctl, 0, -3, 0);
  CALL(add_key, "user", "probe", "x", 1, -2);
  CALL(request_key, "user", "probe", NULL, -2);
  CALL(bpf, BPF_MAP_CREATE, &bpf, sizeof bpf);
  CALL(perf_event_open, &perf, 0, -1, -1, 0);
  CALL(userfaultfd, 1);
  CALL(io_uring_setup, 1, params);
  CALL(io_uring_enter, -1, 0, 0, 0, NULL);
  CALL(io_uring_register, -1, 0, NULL, 0);
  aio_context_t aio = 0;
  CALL(io_setup, 1, &aio);
  CALL(open_by_handle_at, AT_FDCWD, handle, O_RDONLY);
  CALL(name_to_handle_at, AT_FDCWD, "/", handle, params, 0);
  CALL(kexec_load, 0, 0, NULL, 0);
  CALL(kexec_file_load, -1, -1, 0, "", 0);
  CALL(init_module, "", 0, "");
  CALL(finit_module, -1, "", 0);
  CALL(delete_module, "probe", 0);
  CALL(fanotify_init, 0, 0);
  CALL(swapon, "/tmp/x", 0);
  CALL(reboot, 0xfee1dead, 672274793, 0, 0);
  CALL(acct, "/tmp/x");
  CALL(quotactl, 0, "", 0, NULL);
  CALL(syslog, 3, params, sizeof params);
  CALL(settimeofday, NULL, params);
  CALL(clock_settime, 0, params);
  CALL(adjtimex, params);
  CALL(personality, 0x0040000 /* no address randomization */);
  tried("personality, asked", syscall(SYS_personality, 0xffffffff));
  CALL(mbind, 0, 0, 0, NULL, 0, 0);
  CALL(move_pages, 0, 0, NULL, NULL, NULL, 0);
}

static void try_processes(void) {
  struct {
    char *base;
    size_t length;
  } vector = {(char[8]){0}, 8};
  in_child("ptrace", trace_me);
  tried("ptrace of init", syscall(SYS_ptrace, PTRACE_SEIZE, 1, 0, 0));
  CALL(process_vm_readv, 1, &vector, 1, &vector, 1, 0);
  CALL(process_vm_writev, 1, &vector, 1, &vector, 1, 0);
  CALL(pidfd_getfd, 0, 0, 0);
  CALL(kcmp, 1, getpid(), 0, 0, 0);
#if defined(__x86_64__)
  in_child("int 0x80", call_by_int80);
  in_child("x32", call_by_x32);
  CALL(iopl, 3);
  CALL(modify_ldt, 0, (char[16]){0}, 16);
#endif
}

static void try_sockets(void) {
  tried("vsock", socket(40, SOCK_STREAM, 0));
  tried("packet", socket(AF_PACKET, SOCK_RAW, 0));
  tried("alg", socket(AF_ALG, SOCK_SEQPACKET, 0));
  tried("family with high bits", syscall(SYS_socket, 0x100000000UL | 40, SOCK_STREAM, 0));
  tried("netfilter", socket(AF_NETLINK, SOCK_RAW, 12));
  tried("xfrm", socket(AF_NETLINK, SOCK_RAW, 6));
  tried("sctp", socket(AF_INET, SOCK_STREAM, 132));
  tried("sctp by type", socket(AF_INET, SOCK_SEQPACKET, 0));
  tried("sctp of ipv6 by type", socket(AF_INET6, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  tried("dccp by type", socket(AF_INET, 6 /* SOCK_DCCP */, 0));
  tried("packet by type", socket(AF_INET, SOCK_PACKET, 0));
  tried("raw", socket(AF_INET, SOCK_RAW, 1));
  tried("tipc pair", socketpair(30, SOCK_STREAM, 0, (int[2]){0}));
  tried("route", socket(AF_NETLINK, SOCK_RAW, 0));
  tried("tcp", socket(AF_INET, SOCK_STREAM, 0));
  tried("unix", socket(AF_UNIX, SOCK_STREAM, 0));
  tried("unix packets", socket(AF_UNIX, SOCK_SEQPACKET, 0));
}

static void try_files(void) {
  static const char *const written[] = {"/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches",
                                        "/proc/sys/kernel/hostname",     "/proc/sysrq-trigger",
                                        "/usr/bin/env",                  "/.sandpool/launcher",
                                        "/probe",                        "/dev/probe"};
  static const char *const read_only[] = {"/proc/kcore", "/proc/kmsg", "/dev/mem", "/dev/kmsg", "/sys/class"};
  char name[128];
  for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
    snprintf(name, sizeof name, "write %s", written[i]);
    tried(name, open(written[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }
  for (size_t i = 0; i < sizeof read_only / sizeof *read_only; i++) {
    snprintf(name, sizeof name, "read %s", read_only[i]);
    tried(name, open(read_only[i], O_RDONLY | O_CLOEXEC));
  }
  tried("make a device", mknod("/tmp/device", S_IFBLK | 0600, 0xfe00));
}

static long connect_to(const void *address, socklen_t length) {
  int fd = socket(((const struct sockaddr *)address)->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return fd < 0 ? -1 : connect(fd, address, length);
}

static void try_named(const char *how, const char *what) {
  struct sockaddr_un local = {.sun_family = AF_UNIX};
  struct sockaddr_in remote = {.sin_family = AF_INET};
  char host[64], name[512];
  int port = 0;
  snprintf(name, sizeof name, "%s %s", how, what);
  if (strcmp(how, "read") == 0) tried(name, open(what, O_RDONLY | O_CLOEXEC));
  if (strcmp(how, "write") == 0) tried(name, open(what, O_WRONLY | O_CLOEXEC));
  if (strcmp(how, "unix") == 0) {
    snprintf(local.sun_path, sizeof local.sun_path, "%s", what);
    tried(name, connect_to(&local, sizeof local));
  }
  if (strcmp(how, "abstract") == 0) {
    size_t length = strlen(what);
    memcpy(local.sun_path + 1, what, length);
    tried(name, connect_to(&local, offsetof(struct sockaddr_un, sun_path) + 1 + length));
  }
  if (strcmp(how, "tcp") == 0 && sscanf(what, "%63[0-9.]:%d", host, &port) == 2) {
    inet_pton(AF_INET, host, &remote.sin_addr);
    remote.sin_port = htons((uint16_t)port);
    tried(name, connect_to(&remote, sizeof remote));
  }
}

/* The names in a folder, sorted, but for those that begin otherwise than `first` to `last`. */
static void list(const char *name, const char *folder, char first, char last) {
  struct dirent **entries;
  char text[2048] = "";
  int count = scandir(folder, &entries, NULL, alphasort);
  for (int i = 0; i < count; i++) {
    const char *entry = entries[i]->d_name;
    if (entry[0] < first || entry[0] > last || strlen(text) + strlen(entry) + 2 > sizeof text) continue;
    if (*text) strcat(text, " ");
    strcat(text, entry);
  }
  tell(name, text);
}

int main(int argc, char **argv) {
  printf("{");
  list("descriptors", "/proc/self/fd", '0', '9');
  list("processes", "/proc", '0', '9');
  list("terminals", "/dev/pts", '!', '~');
  list("interfaces", "/proc/sys/net/ipv4/conf", 'b', 'z');
  try_terminal();
  try_namespaces();
  try_kernel();
  try_processes();
  try_sockets();
  try_files();
  for (int i = 1; i + 1 < argc; i += 2) try_named(argv[i], argv[i + 1]);
  printf("}\n");
  return 0;
}
