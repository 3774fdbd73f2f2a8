/* By the kernel's socket diagnosis, or else in /proc. */
#include "launcher.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTEN = 10, UNTOLD = -1 };

static int diagnosis = -1;

static int ask_kernel(sa_family_t family, unsigned port, uid_t uid);
static int read_tables(unsigned port, uid_t uid);

/* The filter refuses it. */
void open_diagnosis(void) {
  const struct timeval patience = {.tv_sec = 1};
  diagnosis = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (diagnosis >= 0) setsockopt(diagnosis, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

int whose_port(sa_family_t family, unsigned port, uid_t uid) {
  int told = ask_kernel(family, port, uid);
  return told == UNTOLD ? read_tables(port, uid) : told;
}

/* The kernel's lookup for a connection from an unused port. */
static int ask_kernel(sa_family_t family, unsigned port, uid_t uid) {
  static unsigned sequence;
  struct {
    struct nlmsghdr header;
    struct inet_diag_req_v2 request;
  } question = {
      .header = {.nlmsg_len = sizeof question, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = ++sequence},
      .request = {.sdiag_family = (unsigned char)family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = 1U << LISTEN,
                  .id = {.idiag_sport = htons((in_port_t)port), .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
  };
  struct inet_diag_sockid *id = &question.request.id;
  if (family == AF_INET) id->idiag_src[0] = id->idiag_dst[0] = htonl(INADDR_LOOPBACK);
  else id->idiag_src[3] = id->idiag_dst[3] = htonl(1);
  if (diagnosis < 0 || send(diagnosis, &question, sizeof question, 0) < 0) return UNTOLD;

  union {
    struct nlmsghdr header;
    char bytes[8192];
  } answer;
  for (;;) {
    ssize_t got = recv(diagnosis, &answer, sizeof answer, 0);
    if (got < (ssize_t)sizeof answer.header) return UNTOLD;
    if (answer.header.nlmsg_seq == sequence) break; /* an earlier answer may arrive late */
  }
  if (answer.header.nlmsg_type == NLMSG_ERROR) {
    const struct nlmsgerr *error = NLMSG_DATA(&answer.header);
    return error->error == -ENOENT ? ECONNREFUSED : UNTOLD;
  }
  const struct inet_diag_msg *found = NLMSG_DATA(&answer.header);
  if (answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY || found->idiag_state != LISTEN) return UNTOLD;
  return found->idiag_uid == uid ? 0 : EACCES;
}

/* Slow with many connections. All listeners on the port, on any address, must belong to the sandbox. */
static int read_tables(unsigned port, uid_t uid) {
  static const char *const tables[] = {"/proc/self/net/tcp", "/proc/self/net/tcp6"};
  bool found = false;
  for (size_t i = 0; i < LENGTH(tables); i++) {
    FILE *table = fopen(tables[i], "re");
    if (!table) {
      if (i == 0) return EACCES;
      continue;
    }
    char line[512];
    while (fgets(line, sizeof line, table)) {
      const char *fields[8];
      if (split_line(line, fields, LENGTH(fields)) < LENGTH(fields)) continue;
      const char *local = strchr(fields[1], ':');
      if (!local || strtoul(local + 1, NULL, 16) != port || strtoul(fields[3], NULL, 16) != LISTEN) continue;
      found = true;
      if (strtoul(fields[7], NULL, 10) == uid) continue;
      fclose(table);
      return EACCES;
    }
    fclose(table);
  }
  return found ? 0 : ECONNREFUSED;
}
