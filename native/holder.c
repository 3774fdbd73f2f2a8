/*
 * Holds one process: starts it, keeps its latest output in memory that no process inside can read, and serves callers. In a Pod it is one
 * of the sandbox's processes; on one machine it is outside, and its attendant grants its memory.
 */
#include "processes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  CLIENTS = 128,
  CROWD = 112,                /* beyond it, `output` and `input` are refused */
  MOST_REQUEST = 4096,
  MOST_INPUT = 64 * 1024,
  PACE_BYTES = 256 * 1024,    /* a pacing reader this far behind stops the program */
  WINDOW_BYTES = 512 * 1024,  /* in flight to a pacing reader */
  TAKEN_BYTES = 64 * 1024,    /* confirmed by each byte from a pacing reader */
  REST_MS = 4,                /* pause between reads, so that a reader catches up */
  FREE_READS = 64,            /* outside: reads without a pause while no reader keeps up */
  LONG_REST_MS = 32,          /* outside: pause after each further read */
  CALM_MS = 1000,             /* without output; resets FREE_READS */
  FIRST_READER_MS = 2000,     /* for a first reader; then output is dropped */
  QUIET_MS = 2000,            /* after the exit: silence that ends the output */
  LAST_WORDS_MS = 10 * 1000,  /* after the exit: limit for more output */
  OUTSIDE_QUIET_MS = 100,     /* no limit of the sandbox slows the holder */
  OUTSIDE_SHUT_MS = 1000,     /* a terminal is then closed */
  OUTSIDE_LAST_WORDS_MS = 1000,
  LAST_BYTES = 1024 * 1024,   /* after the exit; no pipe holds more */
  LAST_READ_BYTES = 64 * 1024, /* final read of pipes and terminals */
  ENDED_MS = 600 * 1000,      /* for which an ended process is known */
  LEAVE_MS = 20 * 1000,       /* for readers to finish afterwards */
  GRANT_MS = 2000,            /* then the oldest output is dropped */
  ASK_AGAIN_MS = 1000,
  MOST_UNITS = 4,             /* in one grant */
  AGAIN_MS = 100,             /* between checks of a killed group */
  HANG_UP_MS = 500,           /* until its processes are killed */
  FOLLOWER_MS = 20 * 1000,    /* for the reader of a bound process to connect */
  GROUP_MS = 5000,            /* for the end of a killed group */
  SILENCE_MS = 5000,
  ASK_MS = 10 * 1000,
  TIMED_OUT = 124,
  KEYS = 64,
  KEY_BYTES = 40,
};

enum state { ASKS, AWAITS_START, READS, PUTS, ATTENDS, AWAITS_END, LEAVES, HAS_LEFT };

struct client {
  int socket;
  enum state state;
  struct call call; /* followed by its input */
  unsigned char head[4];
  size_t got, filled, left; /* of the next length; of request and input; of the current part */
  uint64_t turn; /* in the queue of inputs */
  char *out;
  size_t said, sent, room;
  uint64_t position, until; /* `until`: limit of the window */
  bool follows, paces, attends, is_turned_away;
  long long told;
};

static struct {
  struct holding terms;
  struct child child;
  struct ring ring;
  uint64_t printed, end; /* positions at the exit and at the end */
  int signals;
  struct client *clients[CLIENTS];
  bool begun, failed, exited, over, forgotten, removed, read, rests, timed_out, input_ends, out_of_memory, asked, is_refused, followed;
  int code;
  pid_t inside; /* in the sandbox */
  char report[16];
  size_t reported;
  unsigned granted, free_reads;
  unsigned long long out_of_memory_before;
  long long started_at, exited_at, heard_at, full_at, asked_at, killed_at, forgotten_at;
  char hand[MOST_INPUT]; /* input for the program */
  size_t hand_at, hand_filled;
  uint64_t turns;
  char keys[KEYS][KEY_BYTES]; /* carried out, to ignore repeats */
  size_t next_key;
} held;

static void say(struct client *client, const void *bytes, size_t size) {
  if (client->said + size > client->room) {
    const size_t room = client->said + size;
    char *larger = realloc(client->out, room);
    if (!larger) {
      client->state = LEAVES;
      client->said = client->sent = 0;
      return;
    }
    client->out = larger;
    client->room = room;
  }
  memcpy(client->out + client->said, bytes, size);
  client->said += size;
  client->told = now_ms();
}

static void say_frame(struct client *client, char type, const void *bytes, size_t size) {
  unsigned char head[5] = {(unsigned char)type};
  put_number(head + 1, size, 4);
  say(client, head, sizeof head);
  if (size > 0) say(client, bytes, size);
}

static void say_piece(struct client *client, char kind, uint64_t at, const void *bytes, size_t size) {
  unsigned char head[5 + PIECE_HEAD] = {'D'};
  put_number(head + 1, PIECE_HEAD + size, 4);
  head[5] = (unsigned char)kind;
  put_number(head + 6, at, 8);
  put_number(head + 14, size, 4);
  say(client, head, sizeof head);
  if (size > 0) say(client, bytes, size);
}

static void say_record(struct client *client) {
  const size_t id = strlen(held.terms.id) + 1, told = strlen(held.terms.program.order.told);
  unsigned char *record = malloc(RECORD_FIXED + id + told);
  if (!record) return;
  record[0] = !held.exited ? 'R' : held.out_of_memory ? 'M' : 'E';
  put_number(record + 1, (uint64_t)held.inside, 4);
  put_number(record + 5, (uint64_t)held.code, 4);
  put_number(record + 9, (uint64_t)((held.exited ? held.exited_at : now_ms()) - held.started_at), 8);
  memcpy(record + RECORD_FIXED, held.terms.id, id);
  memcpy(record + RECORD_FIXED + id, held.terms.program.order.told, told);
  say_piece(client, 'r', 0, record, RECORD_FIXED + id + told);
  free(record);
}

static void answer(struct client *client, enum problem problem) {
  if (problem) say_frame(client, 'X', problem_word(problem), strlen(problem_word(problem)) + 1);
  else say_frame(client, 'E', NULL, 0);
  client->state = LEAVES;
}

static void leave(struct client **place) {
  struct client *client = *place;
  close(client->socket);
  free(client->call.request);
  free(client->out);
  free(client);
  *place = NULL;
}

static struct client *welcome(int socket) {
  for (size_t i = 0; i < CLIENTS; i++) {
    if (held.clients[i]) continue;
    struct client *client = calloc(1, sizeof *client);
    if (!client) break;
    client->socket = socket;
    client->told = now_ms();
    return held.clients[i] = client;
  }
  close(socket);
  return NULL;
}

bool is_own(int socket) {
  struct ucred other;
  socklen_t size = sizeof other;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid();
}

static bool greet(int socket) {
  unsigned char greeting[GREETING_BYTES] = {[1] = 'K', [GREETING_HEAD] = held.exited ? 'E' : 'R'};
  put_number(greeting + 2, GREETING_BYTES - GREETING_HEAD, 4);
  put_number(greeting + GREETING_HEAD + 1, held.exited ? (uint64_t)(now_ms() - held.exited_at) : 0, 8);
  put_number(greeting + GREETING_HEAD + 9, held.ring.total - held.ring.oldest, 8);
  return send(socket, greeting, sizeof greeting, MSG_NOSIGNAL) >= 0;
}

static void accept_client(void) {
  int socket = accept4(held.terms.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) return;
  if (!greet(socket) || !is_own(socket)) close(socket);
  else welcome(socket);
}

static void say_attendants(void (*say_it)(struct client *client)) {
  for (size_t i = 0; i < CLIENTS; i++)
    if (held.clients[i] && held.clients[i]->state == ATTENDS) say_it(held.clients[i]);
}

static bool send_signal(int number) {
  if (held.terms.outside) {
    held.terms.outside->signal(number);
    return true;
  }
  pid_t group = held.terms.program.terminal ? tcgetpgrp(held.child.outputs[0]) : 0;
  return kill(-(group > 1 ? group : held.child.pid), number) == 0 || kill(held.child.pid, number) == 0;
}

static void kill_all(void) {
  if (held.exited) return;
  send_signal(SIGKILL);
  kill(-held.child.pid, SIGKILL);
  kill(held.child.pid, SIGKILL);
  held.killed_at = now_ms();
}

static bool is_done_before(const struct client *client) {
  const char *key = asked(&client->call, "key");
  if (!key || strlen(key) >= KEY_BYTES) return false;
  for (size_t i = 0; i < KEYS; i++)
    if (strcmp(held.keys[i], key) == 0) return true;
  return false;
}

static void note_done(const struct client *client) {
  const char *key = asked(&client->call, "key");
  if (key && strlen(key) < KEY_BYTES) strcpy(held.keys[held.next_key++ % KEYS], key);
}

static bool takes_input(void) {
  return held.child.input >= 0 && !held.exited && (held.terms.program.terminal || !held.input_ends);
}

static void close_input(void) {
  if (held.child.input >= 0 && !held.terms.program.terminal) close(held.child.input);
  held.child.input = -1;
  held.hand_at = held.hand_filled = 0;
  for (size_t i = 0; i < CLIENTS; i++)
    if (held.clients[i] && held.clients[i]->state == PUTS) answer(held.clients[i], CLOSED);
}

static struct client *next_put(void) {
  struct client *next = NULL;
  for (size_t i = 0; i < CLIENTS; i++) {
    struct client *each = held.clients[i];
    if (each && each->state == PUTS && (!next || each->turn < next->turn)) next = each;
  }
  return next;
}

/* Each after the program has received everything before it. */
static void take_input(void) {
  struct client *next;
  while (held.child.input >= 0 && held.hand_at == held.hand_filled && (next = next_put()) != NULL) {
    if (!is_done_before(next)) {
      held.hand_at = 0;
      held.hand_filled = next->filled - next->call.length;
      memcpy(held.hand, next->call.request + next->call.length, held.hand_filled);
      note_done(next);
    }
    answer(next, DONE);
  }
  if (held.child.input < 0 || held.hand_at < held.hand_filled || !held.input_ends) return;
  if (!held.terms.program.terminal) return close_input();
  held.hand[0] = 4; /* end of file */
  held.hand_at = 0;
  held.hand_filled = 1;
  held.input_ends = false;
}

static void pass_input(void) {
  ssize_t put = write(held.child.input, held.hand + held.hand_at, held.hand_filled - held.hand_at);
  if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (put < 0) return close_input();
  held.hand_at += (size_t)put;
}

static enum problem end_input(void) {
  if (held.exited || (held.child.input < 0 && !held.input_ends)) return CLOSED;
  held.input_ends = true;
  return DONE;
}

/* A terminal reads each end-of-file as input, so a repeat must not send a second one. */
static enum problem end_input_once(const struct client *client) {
  if (is_done_before(client)) return DONE;
  enum problem problem = end_input();
  if (!problem) note_done(client);
  return problem;
}

static enum problem resize(const struct client *client) {
  unsigned long long columns, rows;
  if (!held.terms.program.terminal) return NO_TERMINAL;
  if (held.exited) return ENDED;
  if (!asked_number(&client->call, "columns", 65535, &columns) || !asked_number(&client->call, "rows", 65535, &rows)) return BROKEN;
  const struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
  return ioctl(held.child.outputs[0], TIOCSWINSZ, &size) < 0 ? BROKEN : DONE;
}

static enum problem signal_it(const struct client *client) {
  unsigned long long number;
  if (!asked_number(&client->call, "number", 64, &number)) return BROKEN;
  if (is_done_before(client)) return DONE;
  if (held.exited || !send_signal((int)number)) return ENDED;
  note_done(client);
  return DONE;
}

static void begin_reading(struct client *client) {
  const char *from = asked(&client->call, "from");
  unsigned long long position;
  client->state = READS;
  client->paces = asked(&client->call, "pace") != NULL;
  held.read = true;
  if (from && strcmp(from, "latest") == 0) client->position = held.ring.total;
  /* Beyond the output: the caller means another process. */
  else if (asked_number(&client->call, "from", UINT64_MAX, &position) && position <= held.ring.total) client->position = position;
  client->until = client->position + WINDOW_BYTES;
  say_frame(client, 'H', NULL, 0);
  say_piece(client, 'a', client->position, NULL, 0);
}

static void tell_start(struct client *client) {
  say_frame(client, 'H', NULL, 0);
  say_record(client);
  if (client->attends) {
    client->state = ATTENDS;
    say_piece(client, 'a', held.ring.size + held.granted * RING_UNIT, NULL, 0);
    held.asked = held.is_refused = false;
    return;
  }
  if (!client->follows) return answer(client, DONE);
  held.read = true;
  client->state = READS;
  client->until = WINDOW_BYTES;
}

static void await_end(struct client *client) {
  if (held.forgotten) answer(client, DONE);
  else client->state = AWAITS_END;
}

static void remove_it(struct client *client) {
  held.removed = true;
  await_end(client);
  kill_all();
}

static void hang_up(void) {
  if (held.removed) return;
  held.removed = true;
  held.killed_at = now_ms() + HANG_UP_MS - AGAIN_MS;
  if (held.child.input >= 0) close_input();
  for (int which = 0; which < 2; which++) {
    if (held.child.outputs[which] >= 0) close(held.child.outputs[which]);
    held.child.outputs[which] = -1;
  }
}

static bool is_followed(void) {
  for (size_t i = 0; i < CLIENTS; i++)
    if (held.clients[i] && held.clients[i]->follows) return true;
  return !held.followed && now_ms() - held.started_at < FOLLOWER_MS;
}

static bool is_crowded(void) {
  size_t count = 0;
  for (size_t i = 0; i < CLIENTS; i++) count += held.clients[i] != NULL;
  return count > CROWD;
}

static void take_request(struct client *client) {
  const char *what = client->call.request;
  const bool stays = strcmp(what, "output") == 0 || strcmp(what, "input") == 0;
  if (stays && !is_done_before(client) && is_crowded()) {
    client->is_turned_away = true;
    answer(client, BUSY);
  } else if (strcmp(what, "find") == 0 || strcmp(what, "attend") == 0) {
    client->state = AWAITS_START;
    client->attends = *what == 'a';
    client->follows = asked(&client->call, "follow") != NULL;
    held.followed |= client->follows;
    client->paces = asked(&client->call, "pace") != NULL;
    if (held.begun) tell_start(client);
  } else if (strcmp(what, "output") == 0) begin_reading(client);
  else if (strcmp(what, "input") == 0) {
    client->state = PUTS;
    client->turn = held.turns++;
    if (is_done_before(client)) answer(client, DONE);
    else if (!takes_input()) answer(client, CLOSED);
  } else if (strcmp(what, "eof") == 0) answer(client, end_input_once(client));
  else if (strcmp(what, "resize") == 0) answer(client, resize(client));
  else if (strcmp(what, "signal") == 0) answer(client, signal_it(client));
  else if (strcmp(what, "remove-process") == 0) remove_it(client);
  else if (strcmp(what, "hang-up") == 0) {
    await_end(client);
    hang_up();
  }
  else if (strcmp(what, "forget") == 0 && held.exited) {
    held.removed = true;
    answer(client, DONE); /* first: a caller who starts another process need not wait */
  }
  else answer(client, BROKEN);
}

/* 0 ends the input. */
static bool hear_length(struct client *client) {
  struct call *call = &client->call;
  const size_t length = read_number(client->head);
  client->got = 0;
  if (call->length == 0) {
    if (length == 0 || length > MOST_REQUEST) return false;
    call->length = length;
  } else if (length == 0) {
    take_request(client);
    return true;
  } else if (client->filled - call->length + length > MOST_INPUT) return false;
  char *larger = realloc(call->request, client->filled + length);
  if (!larger) return false;
  call->request = larger;
  client->left = length;
  return true;
}

static bool hear_part(struct client *client) {
  const struct call *call = &client->call;
  if (client->filled > call->length) return true;
  if (call->request[call->length - 1] != 0) return false;
  if (strcmp(call->request, "input") != 0) take_request(client);
  return true;
}

/* False if the connection has ended or the request is invalid. */
static bool hear_request(struct client *client) {
  const bool is_length = client->left == 0;
  char *to = is_length ? (char *)client->head + client->got : client->call.request + client->filled;
  ssize_t got = recv(client->socket, to, is_length ? sizeof client->head - client->got : client->left, 0);
  if (got <= 0) return got < 0 && errno == EAGAIN;
  if (is_length) {
    client->got += (size_t)got;
    return client->got < sizeof client->head || hear_length(client);
  }
  client->filled += (size_t)got;
  client->left -= (size_t)got;
  return client->left > 0 || hear_part(client);
}

/* 0 is a refusal. */
static void hear_grants(const char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    held.granted += bytes[i] > 0 && bytes[i] <= MOST_UNITS ? (unsigned)bytes[i] : 0;
    held.is_refused = held.granted == 0;
  }
}

/* False if the caller is gone. */
static bool hear(struct client *client) {
  char more[64];
  if (client->state == ASKS) return hear_request(client);
  ssize_t got = recv(client->socket, more, sizeof more, 0);
  if (got < 0 && errno == EAGAIN) return true;
  if (got <= 0) return false;
  if (client->state == PUTS) {
    /* A request repeated over two links is taken back on both, or on neither. */
    const bool is_done = is_done_before(client);
    if (!is_done) note_done(client);
    answer(client, is_done ? DONE : TAKEN_BACK);
  }
  if (client->state == ATTENDS) hear_grants(more, (size_t)got);
  client->until += (uint64_t)got * TAKEN_BYTES;
  return true;
}

static bool may_talk(const struct client *client) {
  if (client->state != READS || (client->paces && client->position >= client->until)) return false;
  return client->position < held.ring.total || held.over;
}

/* It needs signs of life. */
static bool is_waiting(const struct client *client) {
  return client->state == AWAITS_START || client->state == READS || client->state == PUTS || client->state == AWAITS_END;
}

static long long patience_ms(const struct client *client) {
  return client->state == ASKS ? ASK_MS : client->state == HAS_LEFT ? ENDED_MS : LLONG_MAX / 2;
}

/* False if the connection should close. */
static bool talk(struct client *client) {
  if (client->said == 0 && may_talk(client)) {
    char stream;
    const char *bytes;
    /* Output of other processes after the end is not sent. */
    const bool is_read = held.over && client->position >= held.end;
    const size_t size = is_read ? 0 : read_ring(&held.ring, &client->position, &stream, &bytes);
    if (size > 0) say_piece(client, stream, client->position, bytes, size);
    client->position += size;
    if (size == 0 && held.over) {
      say_record(client);
      answer(client, DONE);
    }
  }
  if (client->said == 0 && is_waiting(client) && now_ms() - client->told >= SILENCE_MS) say_frame(client, 'K', NULL, 0);
  if (client->sent < client->said) {
    ssize_t sent = send(client->socket, client->out + client->sent, client->said - client->sent, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (sent > 0) client->sent += (size_t)sent;
  }
  if (client->sent < client->said) return true;
  client->sent = client->said = 0;
  if (client->is_turned_away) return false;
  if (client->state == LEAVES) {
    /* Only this side's output: a slow reader still sends confirmations, and a full close would lose the rest. */
    client->state = HAS_LEFT;
    shutdown(client->socket, SHUT_WR);
  }
  return now_ms() - client->told < patience_ms(client);
}

static bool wants_to_talk(const struct client *client) {
  return client->sent < client->said || client->state == LEAVES || may_talk(client);
}

static void ask_for_memory(struct client *client) {
  say_piece(client, 'm', held.ring.size, NULL, 0);
}

/* After a refusal or a timeout, output replaces the oldest. */
static bool has_memory(void) {
  if (!may_grow(&held.ring)) return true;
  if (held.granted > 0 && grow_ring(&held.ring)) {
    held.granted--;
    held.asked = false;
    return true;
  }
  const long long now = now_ms();
  if (!held.asked || (held.is_refused && now - held.asked_at >= ASK_AGAIN_MS)) {
    held.asked = true;
    held.asked_at = now;
    say_attendants(ask_for_memory);
  }
  return held.is_refused || now - held.asked_at >= GRANT_MS;
}

static int rest_ms(void) {
  return !held.terms.outside ? REST_MS : held.free_reads < FREE_READS ? 0 : LONG_REST_MS;
}

static bool may_read(void) {
  if (held.removed) return true;
  held.rests = held.terms.outside != NULL;
  bool is_behind = false;
  for (size_t i = 0; i < CLIENTS; i++) {
    const struct client *each = held.clients[i];
    if (!each || each->state != READS) continue;
    const bool keeps_up = held.ring.total - each->position < PACE_BYTES;
    if (!keeps_up && each->paces) return false;
    if (keeps_up) held.rests = false;
    else is_behind = true;
  }
  if (is_behind) held.rests = true;
  if (held.rests && now_ms() - held.heard_at < rest_ms()) return false;
  if (!has_memory()) return false;
  if (held.terms.outside || held.read || held.ring.oldest > 0 || !is_full(&held.ring)) return true;
  if (held.full_at == 0) held.full_at = now_ms();
  return now_ms() - held.full_at >= FIRST_READER_MS;
}

/* False if there was none. */
static bool read_output(int which) {
  int *fd = &held.child.outputs[which];
  ssize_t got = fill_ring(&held.ring, *fd, which == 0 ? 'o' : 'e');
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got > 0) {
    const long long now = now_ms();
    if (!held.rests || now - held.heard_at >= CALM_MS) held.free_reads = 0;
    else if (held.free_reads < FREE_READS) held.free_reads++;
    held.heard_at = now;
    return true;
  }
  if (held.terms.program.terminal) close_input();
  close(*fd);
  *fd = -1;
  return false;
}

static void reap(void) {
  struct signalfd_siginfo drained;
  int status;
  if (read(held.signals, &drained, sizeof drained) < 0 && errno != EAGAIN) return;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (held.exited || pid != held.child.pid) continue; /* an orphan may have the same pid by now */
    held.exited = true;
    held.exited_at = held.heard_at = now_ms();
    held.printed = held.ring.total;
    held.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (held.timed_out && held.code >= 128) held.code = TIMED_OUT;
    if (held.terms.outside && held.code == 128 + SIGKILL)
      held.out_of_memory = held.terms.outside->out_of_memory() > held.out_of_memory_before;
    close_input();
    say_attendants(say_record);
  }
}

static void leave_socket(void) {
  if (held.terms.listener < 0) return;
  if (held.terms.outside) held.terms.outside->forget();
  close(held.terms.listener);
  held.terms.listener = -1;
}

/* Its pid inside if that differs, then nothing if the program runs, or an error. */
static void hear_start(void) {
  const char *word = held.report;
  ssize_t got = read(held.child.report, held.report + held.reported, sizeof held.report - held.reported);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) {
    held.reported += (size_t)got;
    return;
  }
  close(held.child.report);
  held.child.report = -1;
  if (held.reported >= 5 && *word == 'p') {
    held.inside = (pid_t)read_number(word + 1);
    word += 5;
  }
  held.failed = word < held.report + held.reported || held.inside == 0;
  const bool is_there = held.inside > 0;
  if (is_there && (!held.failed || *word != 'c')) return;
  leave_socket();
  held.removed = true;
  for (size_t i = 0; i < CLIENTS; i++)
    if (held.clients[i] && held.clients[i]->state == AWAITS_START) answer(held.clients[i], is_there ? NO_FOLDER : NOT_FOUND);
}

static void leave_attendant(struct client *client) {
  answer(client, DONE);
}

static void forget(void) {
  const bool is_gone = kill(-held.child.pid, 0) < 0 || now_ms() - held.exited_at >= GROUP_MS;
  if (held.forgotten || !held.over) return;
  if (held.removed ? held.killed_at != 0 && !is_gone : now_ms() - held.exited_at < ENDED_MS) return;
  held.forgotten = true;
  held.forgotten_at = now_ms();
  leave_socket();
  say_attendants(leave_attendant);
  for (size_t i = 0; i < CLIENTS; i++)
    if (held.clients[i] && held.clients[i]->state == AWAITS_END) answer(held.clients[i], DONE);
}

static int quiet_ms(void) {
  return !held.terms.outside ? QUIET_MS : held.terms.program.terminal ? OUTSIDE_SHUT_MS : OUTSIDE_QUIET_MS;
}

static int last_words_ms(void) {
  return held.terms.outside ? OUTSIDE_LAST_WORDS_MS : LAST_WORDS_MS;
}

/* Other processes may hold the streams open. */
static bool is_output_over(long long now) {
  if (held.child.outputs[0] < 0 && held.child.outputs[1] < 0) return true;
  if (!may_read()) return false;
  if (held.terms.outside && held.ring.total - held.printed > LAST_BYTES) return true;
  return now - held.heard_at >= quiet_ms() || now - held.exited_at >= last_words_ms();
}

/* Output that a stopped holder has not read yet was printed in time. */
static void end_output(void) {
  for (int which = 0; which < 2; which++)
    for (const uint64_t until = held.ring.total + LAST_READ_BYTES; held.ring.total < until;)
      if (held.child.outputs[which] < 0 || !read_output(which)) break;
  held.over = true;
  held.end = held.ring.total;
  for (int which = 0; held.terms.outside && which < 2; which++) {
    if (held.child.outputs[which] >= 0) close(held.child.outputs[which]);
    held.child.outputs[which] = -1;
  }
}

static void end_with_sandbox(void) {
  held.removed = true;
  kill_all();
}

static void go_on(void) {
  const long long now = now_ms();
  if (!held.begun && held.child.report < 0 && (held.exited || !held.failed)) {
    held.begun = true;
    for (size_t i = 0; i < CLIENTS; i++)
      if (held.clients[i] && held.clients[i]->state == AWAITS_START) tell_start(held.clients[i]);
  }
  if (held.terms.timeout_ms > 0 && !held.exited && !held.timed_out && now - held.started_at >= held.terms.timeout_ms) {
    held.timed_out = true;
    kill_all();
  }
  if (held.removed && !held.exited && now - held.killed_at >= AGAIN_MS) kill_all();
  if (held.exited && !held.over && is_output_over(now)) end_output();
  if (held.terms.bound && !is_followed()) hang_up();
  take_input();
  forget();
}

static void sooner(long long *due, long long at) {
  if (at < *due) *due = at;
}

static int pause_ms(void) {
  const long long now = now_ms();
  long long due = now + ENDED_MS;
  if (held.terms.timeout_ms > 0 && !held.exited && !held.timed_out) sooner(&due, held.started_at + held.terms.timeout_ms);
  if (held.full_at != 0 && now < held.full_at + FIRST_READER_MS) sooner(&due, held.full_at + FIRST_READER_MS);
  if (held.exited && !held.over && may_read()) {
    sooner(&due, held.heard_at + quiet_ms());
    sooner(&due, held.exited_at + last_words_ms());
  }
  if (held.rests && now < held.heard_at + rest_ms()) sooner(&due, held.heard_at + rest_ms());
  if (held.asked && !held.is_refused && now < held.asked_at + GRANT_MS) sooner(&due, held.asked_at + GRANT_MS);
  if (held.over && !held.forgotten) sooner(&due, held.exited_at + ENDED_MS);
  if (held.terms.bound && !held.followed) sooner(&due, held.started_at + FOLLOWER_MS);
  if (held.removed && !held.forgotten) sooner(&due, now + AGAIN_MS);
  if (held.forgotten) sooner(&due, held.forgotten_at + LEAVE_MS);
  for (size_t i = 0; i < CLIENTS; i++)
    if (held.clients[i] && held.clients[i]->said == 0) sooner(&due, held.clients[i]->told + (is_waiting(held.clients[i]) ? SILENCE_MS : patience_ms(held.clients[i])));
  return due <= now ? 1 : (int)(due - now);
}

/* Other writers must not die of a broken pipe. */
static void drain(void) {
  struct pollfd outputs[2];
  signal(SIGCHLD, SIG_IGN);
  madvise(held.ring.bytes, held.ring.size, MADV_DONTNEED);
  for (;;) {
    for (int i = 0; i < 2; i++) outputs[i] = (struct pollfd){.fd = held.child.outputs[i], .events = POLLIN};
    if (outputs[0].fd < 0 && outputs[1].fd < 0) _exit(0);
    if (poll(outputs, 2, -1) < 0) continue;
    for (int i = 0; i < 2; i++) {
      if (!outputs[i].revents) continue;
      ssize_t got = read(outputs[i].fd, held.ring.bytes, MOST_READ);
      if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) continue;
      close(held.child.outputs[i]);
      held.child.outputs[i] = -1;
    }
  }
}

static bool is_left(void) {
  for (size_t i = 0; i < CLIENTS; i++)
    if (held.clients[i]) return false;
  return true;
}

static void serve(void) {
  enum { SIGNALS, LISTENER, REPORT, SANDBOX, INPUT, OUTPUTS, FIRST_CLIENT = OUTPUTS + 2 };
  struct pollfd all[FIRST_CLIENT + CLIENTS];
  while (!held.forgotten || !(is_left() || now_ms() - held.forgotten_at >= LEAVE_MS)) {
    const bool reads = may_read(), writes = held.hand_at < held.hand_filled;
    all[SIGNALS] = (struct pollfd){.fd = held.signals, .events = POLLIN};
    all[LISTENER] = (struct pollfd){.fd = held.terms.listener, .events = POLLIN};
    all[REPORT] = (struct pollfd){.fd = held.child.report, .events = POLLIN};
    all[SANDBOX] = (struct pollfd){.fd = held.terms.outside && !held.removed ? held.terms.outside->sandbox : -1, .events = POLLIN};
    all[INPUT] = (struct pollfd){.fd = writes ? held.child.input : -1, .events = POLLOUT};
    for (int i = 0; i < 2; i++) all[OUTPUTS + i] = (struct pollfd){.fd = reads ? held.child.outputs[i] : -1, .events = POLLIN};
    for (size_t i = 0; i < CLIENTS; i++) {
      const struct client *each = held.clients[i];
      all[FIRST_CLIENT + i] = (struct pollfd){.fd = each ? each->socket : -1, .events = POLLIN};
      if (each && wants_to_talk(each)) all[FIRST_CLIENT + i].events |= POLLOUT;
    }
    if (poll(all, LENGTH(all), pause_ms()) < 0) continue;
    if (all[SIGNALS].revents) reap();
    if (all[REPORT].revents) hear_start();
    if (all[SANDBOX].revents) end_with_sandbox();
    if (all[INPUT].revents && held.child.input >= 0) pass_input();
    for (int i = 0; i < 2; i++)
      if (all[OUTPUTS + i].revents) read_output(i);
    go_on();
    for (size_t i = 0; i < CLIENTS; i++) {
      struct client **each = &held.clients[i];
      if (*each && all[FIRST_CLIENT + i].fd == (*each)->socket && all[FIRST_CLIENT + i].revents & (POLLIN | POLLHUP | POLLERR) && !hear(*each)) leave(each);
      if (*each && !talk(*each)) leave(each);
    }
    go_on();
    if (all[LISTENER].revents && held.terms.listener >= 0) accept_client();
  }
}

static void leave_streams(int first, int last) {
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = first; fd <= last; fd++) {
    if (nothing >= 0) dup2(nothing, fd);
    else close(fd);
  }
  if (nothing > 2) close(nothing);
}

static void stand_apart(void) {
  sigset_t children;
  setsid();
  leave_streams(0, held.terms.outside ? 1 : 2);
  signal(SIGHUP, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, NULL);
  held.signals = signalfd(-1, &children, SFD_NONBLOCK | SFD_CLOEXEC);
  /* Processes inside can't inspect the holder. It also reaps its program's orphans. */
  prctl(PR_SET_DUMPABLE, 0);
  if (!held.terms.outside) prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void hold_process(const struct holding *holding) {
  held.terms = *holding;
  stand_apart();
  held.started_at = now_ms();
  struct client *starter = welcome(holding->starter);
  if (!starter) _exit(EXIT_COULD_NOT);
  starter->state = AWAITS_START;
  starter->follows = holding->follows;
  starter->paces = holding->paces;
  const struct outside *outside = holding->outside;
  enum problem problem = held.signals < 0 || !open_ring(&held.ring, outside ? RING_UNIT : RING_BYTES) ? TOO_MANY : DONE;
  if (outside) {
    starter->attends = true;
    if (!greet(starter->socket)) starter->state = LEAVES;
    held.out_of_memory_before = outside->out_of_memory();
  }
  if (!problem) problem = outside ? outside->begin(&held.terms.program, &held.child) : begin_child(&held.terms.program, &held.child);
  if (problem) {
    leave_socket();
    answer(starter, problem);
    talk(starter);
    _exit(EXIT_COULD_NOT);
  }
  if (!outside) held.inside = held.child.pid;
  if (outside) leave_streams(2, 2); /* until here the spawner reads why it fails */
  if (chdir("/") < 0) errno = 0; /* keeping the folder in use does no harm */
  serve();
  if (!outside) drain();
  _exit(0);
}
