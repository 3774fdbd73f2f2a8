/* See README.md. */
#include "files.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_REQUEST = 32 * 1024, TELL_SECONDS = 5, DRAIN_SECONDS = 10 };

static const char *const words[] = {
    [DONE] = "done",
    [NOT_FOUND] = "not-found",
    [EXISTS] = "exists",
    [CHANGED] = "changed",
    [IS_A_FOLDER] = "is-a-folder",
    [NOT_A_FOLDER] = "not-a-folder",
    [NOT_A_FILE] = "not-a-file",
    [NOT_EMPTY] = "not-empty",
    [DENIED] = "denied",
    [NO_SPACE] = "no-space",
    [CANNOT_MOVE] = "cannot-move",
    [BUSY] = "busy",
    [BAD_PATH] = "bad-path",
    [BAD_RANGE] = "bad-range",
    [BAD_CURSOR] = "bad-cursor",
    [BAD_ARCHIVE] = "bad-archive",
    [NO_METADATA] = "no-metadata",
    [TOO_MANY] = "too-many",
    [ENDED] = "ended",
    [CLOSED] = "closed",
    [FULL] = "full",
    [NO_FOLDER] = "no-folder",
    [NO_TERMINAL] = "no-terminal",
    [TAKEN_BACK] = "taken-back",
    [BROKEN] = "broken",
};

const char *problem_word(enum problem problem) {
  return words[problem];
}

enum problem problem_of(int error) {
  switch (error) {
    case 0: return DONE;
    case ENOENT: return NOT_FOUND;
    case EEXIST: return EXISTS;
    case EISDIR: return IS_A_FOLDER;
    case ENOTDIR: return NOT_A_FOLDER;
    case ENOTEMPTY: return NOT_EMPTY;
    case EACCES:
    case EPERM:
    case EROFS: return DENIED;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return NO_SPACE;
    case EXDEV:
    case EINVAL: return CANNOT_MOVE;
    case EBUSY:
    case ETXTBSY: return BUSY;
    case ENAMETOOLONG:
    case ELOOP: return BAD_PATH;
    case ENXIO:
    case ENODEV: return NOT_A_FILE;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EAGAIN: return TOO_MANY;
    default: return BROKEN;
  }
}

static enum problem receive(struct call *call, char *to, size_t size) {
  for (size_t got = 0; got < size;) {
    ssize_t count = read(call->input, to + got, size - got);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return GONE;
    got += (size_t)count;
  }
  return DONE;
}

uint32_t read_number(const void *bytes) {
  const unsigned char *at = bytes;
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

enum problem read_request(struct call *call) {
  char size[4];
  if (receive(call, size, sizeof size)) return GONE;
  call->length = read_number(size);
  if (call->length == 0 || call->length > MOST_REQUEST) return GONE;
  call->request = malloc(call->length);
  if (!call->request) return TOO_MANY;
  if (receive(call, call->request, call->length)) return GONE;
  return call->request[call->length - 1] == 0 ? DONE : GONE;
}

const char *asked(const struct call *call, const char *name) {
  const char *end = call->request + call->length;
  const char *at = call->request + strlen(call->request) + 1;
  while (at < end) {
    const char *value = at + strlen(at) + 1;
    if (value >= end) return NULL;
    if (strcmp(at, name) == 0) return value;
    at = value + strlen(value) + 1;
  }
  return NULL;
}

bool asked_number(const struct call *call, const char *name, unsigned long long max, unsigned long long *value) {
  const char *text = asked(call, name);
  return text && parse_number(text, max, value);
}

enum problem send_bytes(struct call *call, const void *bytes, size_t size) {
  for (size_t sent = 0; sent < size;) {
    ssize_t count = write(call->output, (const char *)bytes + sent, size - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return GONE;
    sent += (size_t)count;
  }
  call->told = time(NULL);
  return DONE;
}

enum problem begin_frame(struct call *call, char type, size_t size) {
  unsigned char head[5] = {(unsigned char)type};
  put_number(head + 1, size, 4);
  return send_bytes(call, head, sizeof head);
}

enum problem send_frame(struct call *call, char type, const void *payload, size_t size) {
  unsigned char head[5] = {(unsigned char)type};
  put_number(head + 1, size, 4);
  if (type == 'E' && call->keeper >= 0 && (call->answer = malloc(sizeof head + size))) {
    memcpy(call->answer, head, sizeof head);
    memcpy(call->answer + sizeof head, payload, size);
    call->answered = sizeof head + size;
  }
  struct iovec parts[2] = {{head, sizeof head}, {(void *)payload, size}};
  ssize_t sent;
  do sent = writev(call->output, parts, 2);
  while (sent < 0 && errno == EINTR);
  if (sent < 0) return GONE;
  call->told = time(NULL);
  size_t first = (size_t)sent < sizeof head ? (size_t)sent : sizeof head, rest = (size_t)sent - first;
  enum problem problem = send_bytes(call, head + first, sizeof head - first);
  return problem ? problem : send_bytes(call, (const char *)payload + rest, size - rest);
}

enum problem flush_out(struct call *call) {
  if (call->gathered == 0) return DONE;
  enum problem problem = send_frame(call, 'D', call->out, call->gathered);
  call->gathered = 0;
  return problem;
}

enum problem gather(struct call *call, const void *bytes, size_t size) {
  if (!call->out && !(call->out = malloc(PIECE))) return TOO_MANY;
  while (size > 0) {
    size_t room = PIECE - call->gathered, taken = size < room ? size : room;
    memcpy(call->out + call->gathered, bytes, taken);
    call->gathered += taken;
    bytes = (const char *)bytes + taken;
    size -= taken;
    if (call->gathered < PIECE) continue;
    enum problem problem = flush_out(call);
    if (problem) return problem;
  }
  return DONE;
}

static enum problem refill(struct call *call) {
  if (!call->body && !(call->body = malloc(PIECE))) return TOO_MANY;
  memmove(call->body, call->body + call->at, call->filled - call->at);
  call->filled -= call->at;
  call->at = 0;
  for (;;) {
    ssize_t got = read(call->input, call->body + call->filled, PIECE - call->filled);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return GONE;
    call->filled += (size_t)got;
    return DONE;
  }
}

enum problem next_piece(struct call *call, char **piece, size_t *size) {
  *size = 0;
  while (!call->body_over) {
    size_t there = call->filled - call->at;
    if (call->left > 0 && there > 0) {
      *piece = call->body + call->at;
      *size = there < call->left ? there : call->left;
      call->at += *size;
      call->left -= (uint32_t)*size;
      return DONE;
    }
    if (call->left == 0 && there >= 4) {
      call->left = read_number(call->body + call->at);
      call->at += 4;
      call->body_over = call->left == 0;
      continue;
    }
    enum problem problem = refill(call);
    if (problem) return problem;
  }
  return DONE;
}

enum problem read_body(struct call *call, void *to, uint64_t size) {
  while (size > 0) {
    char *piece;
    size_t got;
    enum problem problem = next_piece(call, &piece, &got);
    if (problem) return problem;
    if (got == 0) return CHANGED;
    if (got > size) { /* the rest belongs to the next frame */
      call->at -= got - size;
      call->left += (uint32_t)(got - size);
      got = size;
    }
    if (to) {
      memcpy(to, piece, got);
      to = (char *)to + got;
    }
    size -= got;
  }
  return DONE;
}

void refuse(struct call *call, enum problem problem) {
  char text[sizeof call->detail + 32];
  int length = snprintf(text, sizeof text, "%s%c%s", words[problem], 0, call->detail);
  if (length < 0 || send_frame(call, 'X', text, (size_t)length)) return;
  if (call->input == call->output) shutdown(call->output, SHUT_WR);
}

bool await_leave(struct call *call) {
  bool heard = false;
  char dropped[16 * 1024];
  struct pollfd caller = {.fd = call->input, .events = POLLIN};
  for (const time_t until = time(NULL) + DRAIN_SECONDS; time(NULL) < until;) {
    int ready = poll(&caller, 1, DRAIN_SECONDS * 1000);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    ssize_t got = read(call->input, dropped, sizeof dropped);
    if (got == 0 || (got < 0 && errno != EINTR)) break;
    heard = true;
  }
  return heard;
}

enum problem still_wanted(struct call *call) {
  if (time(NULL) - call->told < TELL_SECONDS) return DONE;
  struct pollfd caller[2] = {{.fd = call->input, .events = POLLRDHUP}, {.fd = call->output}};
  if (poll(caller, 2, 0) > 0 && ((caller[0].revents | caller[1].revents) & (POLLRDHUP | POLLHUP | POLLERR))) return GONE;
  enum problem problem = flush_out(call);
  return problem ? problem : send_frame(call, 'K', NULL, 0);
}

size_t put_number(unsigned char *to, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) to[i] = (unsigned char)(value >> (8 * (bytes - 1 - i)));
  return bytes;
}

static size_t put_text(unsigned char *to, const char *text, size_t length) {
  put_number(to, length, 2);
  memcpy(to + 2, text, length);
  return 2 + length;
}

size_t put_stat(unsigned char to[STAT_BYTES], const struct stat *found, const char *path, int folder, const char *name) {
  const mode_t mode = found->st_mode;
  char target[PATH_BYTES], metadata[METADATA_BYTES];
  bool link = name && S_ISLNK(mode) && read_link(folder, name, target);
  size_t kept = name && S_ISREG(mode) ? read_metadata(folder, name, metadata) : 0;
  size_t at = 0;
  to[at++] = S_ISREG(mode) ? (kept ? 'F' : 'f') : S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : 'o';
  at += put_number(to + at, mode & 07777, 4);
  at += put_number(to + at, found->st_uid, 4);
  at += put_number(to + at, found->st_gid, 4);
  at += put_number(to + at, (uint64_t)found->st_size, 8);
  at += put_number(to + at, (uint64_t)((int64_t)found->st_mtim.tv_sec * 1000000000 + found->st_mtim.tv_nsec), 8);
  at += put_text(to + at, path, strlen(path));
  at += put_text(to + at, target, link ? strlen(target) : 0);
  if (kept) at += put_text(to + at, metadata, kept);
  return at;
}
