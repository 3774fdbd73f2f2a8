/*
 * A deny list, so ordinary programs run unchanged; calls newer than this file return ENOSYS. 32-bit arguments are compared as such, so high
 * bits hide nothing.
 */
#include "launcher.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#error "only x86_64 and aarch64"
#endif

#define X32_BIT 0x40000000U

/* The same on all architectures above 423; the C library may be older. */
#define NEWEST_KNOWN_CALL 469 /* file_setattr */
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

static const struct {
  int call, error;
} refused[] = {
    /* Newer calls return ENOSYS, since libmount then tries mount(2). */
    {SYS_clone3, ENOSYS},
    {SYS_unshare, EPERM},
    {SYS_setns, EPERM},
    {SYS_mount, EPERM},
    {SYS_umount2, EPERM},
    {SYS_pivot_root, EPERM},
    {SYS_chroot, EPERM},
    {SYS_fsopen, ENOSYS},
    {SYS_fsconfig, ENOSYS},
    {SYS_fsmount, ENOSYS},
    {SYS_fspick, ENOSYS},
    {SYS_move_mount, ENOSYS},
    {SYS_open_tree, ENOSYS},
    {SYS_open_tree_attr, ENOSYS},
    {SYS_mount_setattr, ENOSYS},
    /* other processes */
    {SYS_ptrace, EPERM},
    {SYS_process_vm_readv, EPERM},
    {SYS_process_vm_writev, EPERM},
    {SYS_pidfd_getfd, EPERM},
    {SYS_kcmp, EPERM},
    /* A large attack surface that a sandbox does not need. */
    {SYS_keyctl, EPERM},
    {SYS_add_key, EPERM},
    {SYS_request_key, EPERM},
    {SYS_bpf, EPERM},
    {SYS_perf_event_open, EPERM},
    {SYS_userfaultfd, EPERM},
    {SYS_io_uring_setup, ENOSYS},
    {SYS_io_uring_enter, ENOSYS},
    {SYS_io_uring_register, ENOSYS},
    {SYS_io_setup, ENOSYS}, /* fs.aio-max-nr is one limit for the whole machine */
    {SYS_fanotify_init, EPERM},
    {SYS_fanotify_mark, EPERM},
    {SYS_memfd_secret, ENOSYS},
    {SYS_open_by_handle_at, EPERM},
    {SYS_name_to_handle_at, EPERM},
    {SYS_mbind, EPERM},
    {SYS_set_mempolicy, EPERM},
    {SYS_set_mempolicy_home_node, EPERM},
    {SYS_migrate_pages, EPERM},
    {SYS_move_pages, EPERM},
    /* the machine */
    {SYS_kexec_load, EPERM},
    {SYS_kexec_file_load, EPERM},
    {SYS_init_module, EPERM},
    {SYS_finit_module, EPERM},
    {SYS_delete_module, EPERM},
    {SYS_reboot, EPERM},
    {SYS_swapon, EPERM},
    {SYS_swapoff, EPERM},
    {SYS_acct, EPERM},
    {SYS_quotactl, EPERM},
    {SYS_quotactl_fd, EPERM},
    {SYS_settimeofday, EPERM},
    {SYS_clock_settime, EPERM},
    {SYS_clock_adjtime, EPERM},
    {SYS_adjtimex, EPERM},
    {SYS_syslog, EPERM},
    {SYS_vhangup, EPERM},
    {SYS_sethostname, EPERM},
    {SYS_setdomainname, EPERM},
    {SYS_nfsservctl, ENOSYS},
    {SYS_lookup_dcookie, EPERM},
#if defined(__x86_64__)
    {SYS_iopl, EPERM},
    {SYS_ioperm, EPERM},
    {SYS_modify_ldt, EPERM},
    {SYS_create_module, ENOSYS},
    {SYS_query_module, ENOSYS},
    {SYS_get_kernel_syms, ENOSYS},
    {SYS__sysctl, ENOSYS},
    {SYS_sysfs, ENOSYS},
    {SYS_uselib, ENOSYS},
    {SYS_ustat, ENOSYS},
#endif
};

struct program {
  struct sock_filter code[512];
  size_t length;
};

static void refuse_by_argument(struct program *program);

static void emit(struct program *program, unsigned code, unsigned k, size_t if_true, size_t if_false) {
  if (program->length == LENGTH(program->code) || if_true > 255 || if_false > 255) fail("the filter is too long", 0);
  program->code[program->length++] =
      (struct sock_filter){(unsigned short)code, (unsigned char)if_true, (unsigned char)if_false, k};
}

static void load(struct program *program, size_t offset) {
  emit(program, BPF_LD | BPF_W | BPF_ABS, (unsigned)offset, 0, 0);
}

static void answer(struct program *program, unsigned action) { emit(program, BPF_RET | BPF_K, action, 0, 0); }

static void answer_if(struct program *program, unsigned comparison, unsigned value, unsigned action) {
  emit(program, BPF_JMP | comparison | BPF_K, value, 0, 1);
  answer(program, action);
}

/* Little-endian: the low half comes first. */
static size_t argument(int index) { return offsetof(struct seccomp_data, args) + 8 * (size_t)index; }

static unsigned refusal(int error) { return SECCOMP_RET_ERRNO | ((unsigned)error & SECCOMP_RET_DATA); }

const struct sock_fprog *syscall_filter(void) {
  static struct program program;
  static struct sock_fprog filter;
  if (filter.len) return &filter;

  load(&program, offsetof(struct seccomp_data, arch));
  emit(&program, BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0);
  answer(&program, SECCOMP_RET_KILL_PROCESS);
  load(&program, offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
  answer_if(&program, BPF_JGE, X32_BIT, SECCOMP_RET_KILL_PROCESS);
#endif
  answer_if(&program, BPF_JGT, NEWEST_KNOWN_CALL, refusal(ENOSYS));
  refuse_by_argument(&program);
  for (size_t i = 0; i < LENGTH(refused); i++)
    answer_if(&program, BPF_JEQ, (unsigned)refused[i].call, refusal(refused[i].error));
  answer(&program, SECCOMP_RET_ALLOW);

  filter = (struct sock_fprog){(unsigned short)program.length, program.code};
  return &filter;
}

/* Rules until `end` apply to this call; its number is loaded. */
static size_t begin(struct program *program, int call) {
  emit(program, BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 0);
  return program->length;
}

static void end(struct program *program, size_t began) {
  size_t span = program->length - began;
  if (span > 255) fail("the filter is too long", 0);
  program->code[began - 1].jf = (unsigned char)span;
}

static void refuse_sockets(struct program *program, int call) {
  static const unsigned families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
  /* Without a kernel module of their own: default, ICMP, TCP, UDP, ICMPv6. */
  static const unsigned protocols[] = {0, 1, 6, 17, 58};

  size_t began = begin(program, call);
  load(program, argument(0));
  for (size_t i = 0; i < LENGTH(families); i++)
    emit(program, BPF_JMP | BPF_JEQ | BPF_K, families[i], LENGTH(families) - i, 0);
  answer(program, refusal(EAFNOSUPPORT));
  answer_if(program, BPF_JEQ, AF_UNIX, SECCOMP_RET_ALLOW);
  emit(program, BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 3);
  load(program, argument(2));
  answer_if(program, BPF_JGT, 0 /* NETLINK_ROUTE */, refusal(EPROTONOSUPPORT));
  /* SCTP and DCCP by type, or AF_PACKET in place of the family. Flags are above these bits. */
  load(program, argument(1));
  emit(program, BPF_ALU | BPF_AND | BPF_K, 0xf, 0, 0);
  answer_if(program, BPF_JGT, SOCK_RAW, refusal(EPROTONOSUPPORT));
  load(program, argument(2));
  for (size_t i = 0; i < LENGTH(protocols); i++)
    emit(program, BPF_JMP | BPF_JEQ | BPF_K, protocols[i], LENGTH(protocols) - i, 0);
  answer(program, refusal(EPROTONOSUPPORT));
  answer(program, SECCOMP_RET_ALLOW);
  end(program, began);
}

static void refuse_by_argument(struct program *program) {
  static const unsigned terminal_calls[] = {TIOCSTI, 0x541C /* TIOCLINUX */, TIOCSETD, TIOCCONS};
  const unsigned new_namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                  CLONE_NEWPID | CLONE_NEWNET;

  size_t began = begin(program, SYS_ioctl);
  load(program, argument(1));
  for (size_t i = 0; i < LENGTH(terminal_calls); i++)
    answer_if(program, BPF_JEQ, terminal_calls[i], refusal(EPERM));
  answer(program, SECCOMP_RET_ALLOW);
  end(program, began);

  began = begin(program, SYS_clone);
  load(program, argument(0));
  answer_if(program, BPF_JSET, new_namespaces, refusal(EPERM));
  answer(program, SECCOMP_RET_ALLOW);
  end(program, began);

  refuse_sockets(program, SYS_socket);
  refuse_sockets(program, SYS_socketpair);

  /* A query, and the plain personality. */
  began = begin(program, SYS_personality);
  load(program, argument(0));
  answer_if(program, BPF_JEQ, 0, SECCOMP_RET_ALLOW);
  answer_if(program, BPF_JEQ, 0xffffffffU, SECCOMP_RET_ALLOW);
  answer(program, refusal(EPERM));
  end(program, began);
}
