/*
 * In a Pod. Holders listen on abstract sockets, named by their processes, that the Pod's containers share. A call forwards bytes between
 * caller and holder.
 */
#include "processes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

enum {
  MOST_ORDER = 4 * 1024 * 1024,
  MOST_INPUT = 64 * 1024,
  MOST_LIVE = 64,
  MOST_ENDED = 64,
  MOST_FOUND = 512,        /* sockets of holders */
  LOOK_S = 5,              /* for a stopped holder */
  LOOKING_MS = 15 * 1000,  /* for all holders */
  WAITING = 128,
};
/* Ended processes together. */
static const uint64_t MOST_ENDED_BYTES = 16 * 1024 * 1024;
static const char front[] = "sandpool-";

struct found {
  char id[LONGEST_ID + 1];
  bool own, ended;
  int holder;
  uint64_t ended_ms, bytes;
};

static bool is_name(const char *text, size_t most) {
  const size_t length = text ? strlen(text) : 0;
  return length > 0 && length <= most && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == length;
}

static socklen_t address_of(const char *room, const char *id, struct sockaddr_un *address) {
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  const int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "%s%s-%s", front, room, id);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Within one timeout. */
static bool read_greeting(int holder, unsigned char greeting[GREETING_BYTES]) {
  return recv(holder, greeting, GREETING_BYTES, MSG_WAITALL) == GREETING_BYTES;
}

static bool read_all(int fd, void *to, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t got = read(fd, (char *)to + at, size - at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += (size_t)got;
  }
  return true;
}

/* It may not have answered yet; -1 if it does not exist. */
static int reach_holder(const char *room, const char *id) {
  const struct timeval patience = {.tv_sec = LOOK_S};
  struct sockaddr_un address;
  const socklen_t length = address_of(room, id, &address);
  int holder = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (holder < 0) return -1;
  setsockopt(holder, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(holder, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(holder, (struct sockaddr *)&address, length) == 0) return holder;
  close(holder);
  return -1;
}

/* -1 if it does not exist or does not answer. */
static int open_holder(const char *room, const char *id, unsigned char greeting[GREETING_BYTES]) {
  int holder = reach_holder(room, id);
  if (holder < 0 || read_greeting(holder, greeting)) return holder;
  close(holder);
  return -1;
}

static bool send_part(struct call *to, const char *bytes, size_t size) {
  unsigned char length[4];
  put_number(length, size, sizeof length);
  return !send_bytes(to, length, sizeof length) && !send_bytes(to, bytes, size);
}

static bool send_request(int holder, const char *tokens, size_t length, const char *input, size_t size) {
  struct call to = {.output = holder};
  if (!send_part(&to, tokens, length)) return false;
  if (strcmp(tokens, "input") != 0) return true;
  return (size == 0 || send_part(&to, input, size)) && send_part(&to, NULL, 0);
}

/* From the kernel's list of listening sockets. */
static size_t find_names(const char *room, struct found found[MOST_FOUND]) {
  char line[512], start[sizeof front + LONGEST_ROOM + 2];
  const int length = snprintf(start, sizeof start, "@%s%s-", front, room);
  FILE *list = fopen("/proc/self/net/unix", "re");
  size_t count = 0;
  while (list && count < MOST_FOUND && fgets(line, sizeof line, list)) {
    const char *fields[8];
    if (split_line(line, fields, LENGTH(fields)) < LENGTH(fields)) continue;
    const char *name = fields[7];
    if (!(strtoul(fields[3], NULL, 16) & 0x10000) || strncmp(name, start, (size_t)length) != 0 || !is_name(name + length, LONGEST_ID)) continue;
    found[count] = (struct found){0};
    strcpy(found[count++].id, name + length);
  }
  if (list) fclose(list);
  return count;
}

static uint64_t read_long(const unsigned char *bytes) {
  return (uint64_t)read_number(bytes) << 32 | read_number(bytes + 4);
}

/* A holder that does not answer counts as live. */
static void look_at(struct found *found) {
  unsigned char greeting[GREETING_BYTES];
  if (found->holder < 0) return;
  if (read_greeting(found->holder, greeting)) {
    found->own = is_own(found->holder);
    found->ended = greeting[GREETING_HEAD] == 'E';
    found->ended_ms = read_long(greeting + GREETING_HEAD + 1);
    found->bytes = read_long(greeting + GREETING_HEAD + 9);
  }
  close(found->holder);
}

static void forget(const char *room, const struct found *found) {
  static const char request[] = "forget";
  unsigned char greeting[GREETING_BYTES];
  int holder = open_holder(room, found->id, greeting);
  if (holder < 0) return;
  char end;
  if (send_request(holder, request, sizeof request, NULL, 0) && read(holder, &end, 1) > 0) errno = 0;
  close(holder);
}

/* Counts live processes other than `own`, and drops the earliest ended ones to make room. */
static size_t look_around(const char *room, const char *own) {
  static struct found found[MOST_FOUND];
  const size_t count = find_names(room, found);
  const long long until = now_ms() + LOOKING_MS;
  size_t ended = 0, live = 0;
  uint64_t bytes = 0;
  /* Asks all before reading, so that they answer in parallel. */
  for (size_t i = 0; i < count; i++) {
    const bool is_asked = strcmp(found[i].id, own) != 0 && now_ms() < until;
    found[i].holder = is_asked ? reach_holder(room, found[i].id) : -1;
  }
  for (size_t i = 0; i < count; i++) {
    if (strcmp(found[i].id, own) == 0) continue;
    if (now_ms() < until) look_at(&found[i]);
    else if (found[i].holder >= 0) close(found[i].holder);
    if (!found[i].ended) live++;
    else if (found[i].own) {
      ended++;
      bytes += found[i].bytes;
    }
  }
  while (ended > 0 && (ended >= MOST_ENDED || bytes > MOST_ENDED_BYTES) && now_ms() < until) {
    struct found *oldest = NULL;
    for (size_t i = 0; i < count; i++)
      if (found[i].ended && found[i].own && (!oldest || found[i].ended_ms > oldest->ended_ms)) oldest = &found[i];
    if (!oldest) break;
    forget(room, oldest);
    oldest->own = false;
    ended--;
    bytes -= oldest->bytes;
  }
  return live;
}

/* Until the holder has sent everything. */
static enum problem pass_on(struct call *call, int holder) {
  static char bytes[64 * 1024];
  const struct timeval patient = {0};
  struct call back = {.output = holder};
  struct pollfd both[2] = {{.fd = holder, .events = POLLIN}, {.fd = call->input, .events = POLLIN}};
  setsockopt(holder, SOL_SOCKET, SO_RCVTIMEO, &patient, sizeof patient);
  setsockopt(holder, SOL_SOCKET, SO_SNDTIMEO, &patient, sizeof patient);
  /* Input that was read with the request. */
  if (call->filled > call->at && send_bytes(&back, call->body + call->at, call->filled - call->at)) both[1].fd = -1; /* answered */
  for (;;) {
    if (poll(both, 2, -1) < 0) continue;
    if (both[0].revents) {
      ssize_t got = read(holder, bytes, sizeof bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return DONE;
      if (send_bytes(call, bytes, (size_t)got)) return GONE;
    }
    if (!both[1].revents) continue;
    ssize_t got = read(call->input, bytes, sizeof bytes);
    if (got == 0) return GONE;
    if (got > 0 && send_bytes(&back, bytes, (size_t)got)) both[1].fd = -1;
  }
}

static enum problem names_of(const struct call *call, const char **room, const char **id) {
  *room = asked(call, "room");
  if (!is_name(*room, LONGEST_ROOM)) return BROKEN;
  if (!id) return DONE;
  *id = asked(call, "process");
  return is_name(*id, LONGEST_ID) ? DONE : BROKEN;
}

static enum problem ask(struct call *call, const char *what, const char *input, size_t size) {
  unsigned char greeting[GREETING_BYTES];
  const char *room, *id;
  enum problem problem = names_of(call, &room, &id);
  if (problem) return problem;
  int holder = open_holder(room, id, greeting);
  if (holder < 0) return errno == EAGAIN ? BUSY : NOT_FOUND;
  if (!is_own(holder)) {
    close(holder);
    return NOT_FOUND;
  }
  const size_t first = strlen(call->request) + 1, rest = call->length - first;
  char *request = malloc(strlen(what) + 1 + rest);
  if (!request) return TOO_MANY;
  strcpy(request, what);
  memcpy(request + strlen(what) + 1, call->request + first, rest);
  bool sent = send_request(holder, request, strlen(what) + 1 + rest, input, size);
  free(request);
  problem = sent ? pass_on(call, holder) : BUSY;
  close(holder);
  return problem;
}

static enum problem read_input(struct call *call, char **bytes, size_t *size, size_t most) {
  size_t room = 0;
  *bytes = NULL;
  *size = 0;
  for (;;) {
    char *piece;
    size_t got;
    enum problem problem = next_piece(call, &piece, &got);
    if (problem || got == 0) return problem;
    if (*size + got > most) return TOO_MANY;
    if (*size + got > room && !(*bytes = realloc(*bytes, room = 2 * (*size + got)))) return TOO_MANY;
    memcpy(*bytes + *size, piece, got);
    *size += got;
  }
}

enum problem call_process(struct call *call) {
  char *input = NULL;
  size_t size = 0;
  if (strcmp(call->request, "input") == 0) {
    enum problem problem = read_input(call, &input, &size, MOST_INPUT);
    if (problem) return problem;
  }
  return ask(call, call->request, input, size);
}

/* If it comes in time. */
static enum problem gather_answer(struct call *call, int holder) {
  unsigned char head[5];
  while (read_all(holder, head, sizeof head)) {
    const size_t size = read_number(head + 1);
    if (head[0] == 'E' || head[0] == 'X' || size > MOST_ORDER) return DONE;
    char *payload = malloc(size + 1);
    if (!payload) return TOO_MANY;
    const bool whole = read_all(holder, payload, size);
    enum problem problem = whole && head[0] == 'D' ? gather(call, payload, size) : DONE;
    free(payload);
    if (problem || !whole) return problem;
  }
  return DONE;
}

enum problem call_processes(struct call *call) {
  static struct found found[MOST_FOUND];
  static const char request[] = "find";
  const char *room;
  enum problem problem = names_of(call, &room, NULL);
  if (problem) return problem;
  const size_t count = find_names(room, found);
  const long long until = now_ms() + LOOKING_MS;
  problem = send_frame(call, 'H', NULL, 0);
  for (size_t i = 0; i < count && !problem && now_ms() < until; i++) {
    unsigned char greeting[GREETING_BYTES];
    int holder = open_holder(room, found[i].id, greeting);
    if (holder < 0) continue;
    if (is_own(holder) && send_request(holder, request, sizeof request, NULL, 0)) problem = gather_answer(call, holder);
    close(holder);
  }
  if (!problem) problem = flush_out(call);
  return problem ? problem : send_frame(call, 'E', NULL, 0);
}

/* Keeps nothing of this process. */
_Noreturn static void become_holder(struct holding *holding) {
  int kept[2] = {fcntl(holding->listener, F_DUPFD_CLOEXEC, 64), fcntl(holding->starter, F_DUPFD_CLOEXEC, 64)};
  for (int fd = 3; fd < 64; fd++) close(fd);
  holding->listener = kept[0];
  holding->starter = kept[1];
  fcntl(holding->starter, F_SETFL, O_NONBLOCK);
  hold_process(holding);
}

static enum problem listen_as(const char *room, const char *id, int *listener) {
  struct sockaddr_un address;
  const socklen_t length = address_of(room, id, &address);
  *listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (*listener < 0) return TOO_MANY;
  if (bind(*listener, (struct sockaddr *)&address, length) == 0 && listen(*listener, WAITING) == 0) return DONE;
  const int error = errno;
  close(*listener);
  return error == EADDRINUSE ? EXISTS : TOO_MANY;
}

static void read_terms(const struct call *call, struct holding *holding) {
  unsigned long long columns = 80, rows = 24, timeout = 0;
  holding->program.terminal = asked_number(call, "columns", 65535, &columns) && asked_number(call, "rows", 65535, &rows);
  holding->program.size = (struct winsize){.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
  holding->program.input = asked(call, "stdin") != NULL;
  asked_number(call, "timeout", INT64_MAX / 2, &timeout);
  holding->timeout_ms = (long long)timeout;
  holding->follows = asked(call, "follow") != NULL;
  holding->paces = asked(call, "pace") != NULL;
}

enum problem call_start(struct call *call) {
  struct holding holding = {0};
  const char *room;
  char *order;
  size_t length;
  int ends[2];
  enum problem problem = names_of(call, &room, &holding.id);
  if (!problem) problem = read_input(call, &order, &length, MOST_ORDER);
  if (problem) return problem;
  parse_order(order, length, &holding.program.order);
  if (holding.program.order.args.count == 0 || !holding.program.order.told) return BROKEN;
  read_terms(call, &holding);
  /* Only one call at a time may count and start. */
  problem = begin_placing();
  if (problem) return problem;
  problem = listen_as(room, holding.id, &holding.listener);
  if (!problem && look_around(room, holding.id) >= MOST_LIVE) problem = FULL;
  if (!problem && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) problem = TOO_MANY;
  if (!problem) {
    holding.starter = ends[1];
    const pid_t holder = fork();
    if (holder == 0) become_holder(&holding);
    if (holder < 0) problem = TOO_MANY;
    close(ends[1]);
  }
  if (problem != EXISTS) close(holding.listener);
  end_placing();
  if (problem == EXISTS) return ask(call, "find", NULL, 0);
  return problem ? problem : pass_on(call, ends[0]);
}
