/** What the probe prints: what it tried, and the name of the error or signal, or `ok`. */
export type Answers = Readonly<Record<string, string>>;

/** Calls that lead out. */
export const refusedCalls: Answers = {
  TIOCSTI: 'EPERM',
  'TIOCSTI with high bits': 'EPERM',
  TIOCLINUX: 'EPERM',
  'TIOCLINUX with high bits': 'EPERM',
  TIOCSETD: 'EPERM',
  unshare: 'EPERM',
  clone: 'EPERM',
  clone3: 'ENOSYS',
  setns: 'EPERM',
  mount: 'EPERM',
  umount2: 'EPERM',
  pivot_root: 'EPERM',
  chroot: 'EPERM',
  fsopen: 'ENOSYS',
  fsconfig: 'ENOSYS',
  fsmount: 'ENOSYS',
  fspick: 'ENOSYS',
  open_tree: 'ENOSYS',
  move_mount: 'ENOSYS',
  mount_setattr: 'ENOSYS',
  open_tree_attr: 'ENOSYS',
  'a call newer than the filter': 'ENOSYS',
  setuid: 'EINVAL',
  setgroups: 'EPERM',
  sethostname: 'EPERM',
  keyctl: 'EPERM',
  add_key: 'EPERM',
  request_key: 'EPERM',
  bpf: 'EPERM',
  perf_event_open: 'EPERM',
  userfaultfd: 'EPERM',
  io_uring_setup: 'ENOSYS',
  io_uring_enter: 'ENOSYS',
  io_uring_register: 'ENOSYS',
  io_setup: 'ENOSYS',
  open_by_handle_at: 'EPERM',
  name_to_handle_at: 'EPERM',
  kexec_load: 'EPERM',
  kexec_file_load: 'EPERM',
  init_module: 'EPERM',
  finit_module: 'EPERM',
  delete_module: 'EPERM',
  fanotify_init: 'EPERM',
  swapon: 'EPERM',
  reboot: 'EPERM',
  acct: 'EPERM',
  quotactl: 'EPERM',
  syslog: 'EPERM',
  settimeofday: 'EPERM',
  clock_settime: 'EPERM',
  adjtimex: 'EPERM',
  personality: 'EPERM',
  mbind: 'EPERM',
  move_pages: 'EPERM',
  ptrace: 'EPERM',
  'ptrace of init': 'EPERM',
  process_vm_readv: 'EPERM',
  process_vm_writev: 'EPERM',
  pidfd_getfd: 'EPERM',
  kcmp: 'EPERM',
  vsock: 'EAFNOSUPPORT',
  packet: 'EAFNOSUPPORT',
  alg: 'EAFNOSUPPORT',
  'family with high bits': 'EAFNOSUPPORT',
  'tipc pair': 'EAFNOSUPPORT',
  netfilter: 'EPROTONOSUPPORT',
  xfrm: 'EPROTONOSUPPORT',
  sctp: 'EPROTONOSUPPORT',
  'sctp by type': 'EPROTONOSUPPORT',
  'sctp of ipv6 by type': 'EPROTONOSUPPORT',
  'dccp by type': 'EPROTONOSUPPORT',
  'packet by type': 'EPROTONOSUPPORT',
  raw: 'EPERM',
  'make a device': 'EPERM',
  ...(process.arch === 'x64'
    ? { 'int 0x80': 'SIGSYS', x32: 'SIGSYS', iopl: 'EPERM', modify_ldt: 'EPERM' }
    : {}),
};

/**
 * What ordinary programs need, so that the refusals above aren't those of a filter that refuses
 * all.
 */
export const allowedCalls: Answers = {
  'personality, asked': 'ok',
  route: 'ok',
  tcp: 'ok',
  unix: 'ok',
  'unix packets': 'ok',
};

export const absentOrForbidden = ['ENOENT', 'EACCES', 'EROFS', 'EPERM', 'ETXTBSY'];

export const refusedFiles = [
  'write /proc/sys/kernel/core_pattern',
  'write /proc/sys/vm/drop_caches',
  'write /proc/sys/kernel/hostname',
  'write /proc/sysrq-trigger',
  'write /usr/bin/env',
  'write /.sandpool/launcher',
  'write /probe',
  'write /dev/probe',
  'read /proc/kcore',
  'read /proc/kmsg',
  'read /dev/mem',
  'read /dev/kmsg',
  'read /sys/class',
];

export function parse(shown: string): Answers {
  return JSON.parse(shown.trim()) as Answers;
}

export function pick(answers: Answers, names: Answers): Answers {
  return Object.fromEntries(Object.keys(names).map((name) => [name, answers[name] ?? 'not tried']));
}
