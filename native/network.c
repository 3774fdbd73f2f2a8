/*
 * The network of a sandbox without access to the host's. A network that bwrap makes belongs to the sandbox's user namespace, whose rights
 * are gone before its settings could be changed. So root makes the network beforehand. It then belongs to the host: no process of the
 * sandbox ever has a right in it.
 */
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Does nothing if the setting is missing or read-only, as in some containers. */
static void set(const char *path, const char *value) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  if (write(file, value, strlen(value)) < 0) errno = 0;
  close(file);
}

void make_network(void) {
  struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
  if (unshare(CLONE_NEWNET) < 0) fail("take a network namespace", errno);
  int socket_for_it = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_for_it < 0 || ioctl(socket_for_it, SIOCSIFFLAGS, &loopback) < 0) fail("begin the loopback", errno);
  close(socket_for_it);
  /* These are settings of this network namespace only. */
  set("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
  set("/proc/sys/net/ipv4/ping_group_range", "0 4294967294");
}
