/*
 * forward: to ports of a sandbox. Runs in its network, cgroup and host uid without capabilities, under the filter, but in no other
 * namespace of it, so no process inside sees it.
 */
#include "launcher.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ORDER_FD = 3, MOST_CONNECTIONS = 512, FILES = 4096, CHUNK = 256 * 1024, ROUNDS = 16, PIPES_KEPT = 16 };

/* Spliced through a pipe, without copies in this process. */
struct way {
  int from, to, pipe[2];
  size_t held;
  bool ended, shut;
};

struct connection {
  struct connection *next; /* with more work, or closed */
  int outside, inside;
  bool flowing, waiting, closed;
  sa_family_t family;
  size_t asked; /* bytes of the port number, which comes first */
  unsigned char port[2];
  struct way in, out;
};

static struct {
  struct order order;
  int target, listener, epoll;
  bool shared_network; /* others listen there too */
  uid_t host_uid;
  size_t count;
  struct connection *more, *closed;
  int pipes[PIPES_KEPT][2]; /* empty, for future connections */
  size_t pipes_kept;
} forward;

static void take_place(void);
static void add(int fd, unsigned events, void *data);
static void welcome(void);
static void serve(struct connection *connection, unsigned outside_gone);
static void discard(struct connection *connection);
static void free_closed(void);

/* Their addresses mark descriptors in events. */
static char caller_tag, target_tag, listener_tag;

int run_forward(void) {
  reset_process();
  signal(SIGPIPE, SIG_IGN);
  read_order(ORDER_FD, &forward.order);
  close_from(ORDER_FD);
  const struct order *order = &forward.order;
  if (order->pid <= 0 || order->start_time == 0) fail("the order names no process", 0);
  if (order->args.count != 2) fail("the order names no folder and socket", 0);
  forward.target = open_process((pid_t)order->pid, order->start_time);
  if (forward.target < 0) fail("the sandbox is gone", errno);
  forward.listener = listen_outside(order->args.items[0], order->args.items[1], SOCK_NONBLOCK);
  take_place();

  forward.epoll = epoll_create1(EPOLL_CLOEXEC);
  if (forward.epoll < 0) fail("epoll", errno);
  add(0, EPOLLIN, &caller_tag);
  add(forward.target, EPOLLIN, &target_tag);
  add(forward.listener, EPOLLIN, &listener_tag);
  if (write(1, "ready\n", 6) != 6) return 1;

  for (;;) {
    struct epoll_event events[64];
    int count = epoll_wait(forward.epoll, events, LENGTH(events), forward.more ? 0 : -1);
    if (count < 0 && errno != EINTR) fail("epoll", errno);
    struct connection *more = forward.more;
    forward.more = NULL;
    for (int i = 0; i < count; i++) {
      void *data = events[i].data.ptr;
      if (data == &caller_tag || data == &target_tag) return 0;
      if (data == &listener_tag) {
        welcome();
        continue;
      }
      /* The lowest bit marks the inner end. */
      bool inner = (size_t)data & 1;
      serve((struct connection *)((char *)data - inner), inner ? 0 : events[i].events & EPOLLHUP);
    }
    while (more) {
      struct connection *connection = more;
      more = connection->next;
      connection->waiting = false;
      if (connection->closed) discard(connection);
      else serve(connection, 0);
    }
    free_closed();
  }
}

static int foreign_namespace(const char *name, int flag) {
  char theirs[64], ours[64];
  struct stat a, b;
  snprintf(theirs, sizeof theirs, "/proc/%ld/ns/%s", forward.order.pid, name);
  snprintf(ours, sizeof ours, "/proc/self/ns/%s", name);
  if (stat(theirs, &a) < 0 || stat(ours, &b) < 0) fail("look at the sandbox's namespaces", errno);
  return a.st_ino != b.st_ino || a.st_dev != b.st_dev ? flag : 0;
}

static void take_place(void) {
  const struct rlimit no_core = {1, 1}, files = {FILES, FILES};
  bool root = geteuid() == 0;
  char path[64];
  struct stat sandbox;
  snprintf(path, sizeof path, "/proc/%ld", forward.order.pid);
  if (stat(path, &sandbox) < 0) fail("the sandbox is gone", errno);
  prefer_for_oom();
  set_limit(RLIMIT_CORE, no_core);
  set_limit(RLIMIT_NOFILE, files);
  enter_cgroups(&forward.order.cgroups);
  int namespaces = forward.order.bare ? 0 : foreign_namespace("net", CLONE_NEWNET);
  forward.shared_network = namespaces == 0;
  forward.host_uid = sandbox.st_uid;
  /* Without root, the right to enter comes from the sandbox's user namespace. */
  if (namespaces && !root) namespaces |= foreign_namespace("user", CLONE_NEWUSER);
  if (root && setgroups(0, NULL) < 0) fail("setgroups", errno);
  if (namespaces && setns(forward.target, namespaces) < 0) fail("enter the sandbox's network", errno);
  if (root) {
    if (sandbox.st_uid == 0 || sandbox.st_gid == 0) fail("a sandbox of root's is not served", 0);
    for (int capability = 0; capability < 64; capability++)
      if (prctl(PR_CAPBSET_DROP, capability) < 0 && errno != EINVAL) fail("drop the bounding set", errno);
    if (setresgid(sandbox.st_gid, sandbox.st_gid, sandbox.st_gid) < 0 || setresuid(sandbox.st_uid, sandbox.st_uid, sandbox.st_uid) < 0)
      fail("take the sandbox's uid", errno);
  }
  drop_capabilities();
  if (forward.shared_network) open_diagnosis();
  if (prctl(PR_SET_DUMPABLE, 0) < 0) fail("prctl", errno);
  leave_keyring();
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, syscall_filter()) < 0) fail("seccomp", errno);
}

static void add(int fd, unsigned events, void *data) {
  struct epoll_event event = {.events = events, .data.ptr = data};
  if (epoll_ctl(forward.epoll, EPOLL_CTL_ADD, fd, &event) < 0) fail("epoll", errno);
}

static void welcome(void) {
  int outside = accept4(forward.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (outside < 0) return;
  struct connection *connection = forward.count < MOST_CONNECTIONS ? calloc(1, sizeof *connection) : NULL;
  if (!connection) {
    const unsigned char full = EAGAIN;
    if (write(outside, &full, 1) < 0) errno = 0; /* the caller is gone */
    close(outside);
    return;
  }
  *connection = (struct connection){.outside = outside, .inside = -1, .in.pipe = {-1, -1}, .out.pipe = {-1, -1}};
  forward.count++;
  add(outside, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, connection);
}

static bool take_pipe(struct way *way) {
  if (forward.pipes_kept) {
    memcpy(way->pipe, forward.pipes[--forward.pipes_kept], sizeof way->pipe);
    return true;
  }
  if (pipe2(way->pipe, O_CLOEXEC | O_NONBLOCK) < 0) return false;
  /* Best effort: the uid's share of pipe memory bounds the size. */
  fcntl(way->pipe[1], F_SETPIPE_SZ, CHUNK);
  return true;
}

/* A pipe that is not empty would carry one connection's bytes into another. */
static void leave_pipe(const struct way *way) {
  if (way->pipe[0] < 0) return;
  if (way->held == 0 && forward.pipes_kept < PIPES_KEPT) {
    memcpy(forward.pipes[forward.pipes_kept++], way->pipe, sizeof way->pipe);
    return;
  }
  close(way->pipe[0]);
  close(way->pipe[1]);
}

static void close_connection(struct connection *connection) {
  if (connection->closed) return;
  connection->closed = true;
  close(connection->outside);
  if (connection->inside >= 0) close(connection->inside);
  leave_pipe(&connection->in);
  leave_pipe(&connection->out);
  forward.count--;
  if (!connection->waiting) discard(connection); /* a waiting one is discarded on its turn */
}

/* At the end of the round: another event of it may refer to the connection. */
static void discard(struct connection *connection) {
  connection->next = forward.closed;
  forward.closed = connection;
}

static void free_closed(void) {
  while (forward.closed) {
    struct connection *connection = forward.closed;
    forward.closed = connection->next;
    free(connection);
  }
}

/* 0, or an errno. */
static void answer(struct connection *connection, int error) {
  const unsigned char byte = (unsigned char)error;
  if (write(connection->outside, &byte, 1) != 1 || error) close_connection(connection);
}

static unsigned port_of(const struct connection *connection) { return (unsigned)connection->port[0] << 8 | connection->port[1]; }

static void dial(struct connection *connection, sa_family_t family) {
  const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((in_port_t)port_of(connection)), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = v4.sin_port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  const int yes = 1;
  int foreign = forward.shared_network ? whose_port(family, port_of(connection), forward.host_uid) : 0;
  if (foreign == ECONNREFUSED && family == AF_INET) return dial(connection, AF_INET6);
  if (foreign) return answer(connection, foreign);
  if (connection->inside >= 0) close(connection->inside);
  connection->family = family;
  connection->inside = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (connection->inside < 0) return answer(connection, errno);
  setsockopt(connection->inside, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  int done = family == AF_INET ? connect(connection->inside, (const struct sockaddr *)&v4, sizeof v4)
                               : connect(connection->inside, (const struct sockaddr *)&v6, sizeof v6);
  if (done < 0 && errno == ECONNREFUSED && family == AF_INET) return dial(connection, AF_INET6);
  if (done < 0 && errno != EINPROGRESS) return answer(connection, family == AF_INET6 ? ECONNREFUSED : errno);
  add(connection->inside, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, (char *)connection + 1);
}

static void read_port(struct connection *connection) {
  while (connection->asked < sizeof connection->port) {
    ssize_t got = read(connection->outside, connection->port + connection->asked, sizeof connection->port - connection->asked);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return close_connection(connection);
    connection->asked += (size_t)got;
  }
  dial(connection, AF_INET);
}

/* Established, or failed. */
static void begin(struct connection *connection) {
  struct sockaddr_in6 peer;
  socklen_t length = sizeof peer;
  int error = 0;
  socklen_t size = sizeof error;
  if (getpeername(connection->inside, (struct sockaddr *)&peer, &length) < 0) {
    if (getsockopt(connection->inside, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error == 0) return; /* still connecting */
    if (error == ECONNREFUSED && connection->family == AF_INET) return dial(connection, AF_INET6);
    return answer(connection, error);
  }
  /* After the connection: the listener that took it still holds the port. */
  error = forward.shared_network ? whose_port(connection->family, port_of(connection), forward.host_uid) : 0;
  if (error) return answer(connection, error);
  if (!take_pipe(&connection->in) || !take_pipe(&connection->out)) return answer(connection, errno);
  connection->in.from = connection->out.to = connection->outside;
  connection->in.to = connection->out.from = connection->inside;
  connection->flowing = true;
  answer(connection, 0);
}

enum outcome { IDLE, MORE, BROKEN };

static bool blocked(ssize_t moved) { return moved < 0 && (errno == EAGAIN || errno == EINTR); }

/* Edge-triggered: continues until nothing moves, or others get a turn. */
static enum outcome pump(struct way *way) {
  for (int round = 0; round < ROUNDS; round++) {
    bool moved = false;
    if (!way->ended) {
      ssize_t got = splice(way->from, NULL, way->pipe[1], NULL, CHUNK, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
      if (got < 0 && !blocked(got)) return BROKEN;
      if (got == 0) way->ended = true;
      if (got > 0) way->held += (size_t)got;
      moved = got > 0;
    }
    if (way->held) {
      ssize_t put = splice(way->pipe[0], NULL, way->to, NULL, way->held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
      if (put < 0 && !blocked(put)) return BROKEN;
      if (put > 0) way->held -= (size_t)put;
      moved = moved || put > 0;
    }
    if (way->ended && !way->held && !way->shut) {
      shutdown(way->to, SHUT_WR);
      way->shut = true;
    }
    if (!moved) return IDLE;
  }
  return MORE;
}

static void serve(struct connection *connection, unsigned outside_gone) {
  if (connection->closed) return;
  if (outside_gone) return close_connection(connection);
  if (connection->asked < sizeof connection->port) read_port(connection);
  if (connection->closed || connection->inside < 0) return;
  if (!connection->flowing) begin(connection);
  if (connection->closed || !connection->flowing) return;
  enum outcome in = pump(&connection->in), out = pump(&connection->out);
  if (in == BROKEN || out == BROKEN || (connection->in.shut && connection->out.shut)) return close_connection(connection);
  if ((in == MORE || out == MORE) && !connection->waiting) {
    connection->waiting = true;
    connection->next = forward.more;
    forward.more = connection;
  }
}
