/*
 * Repeats lost answers over an abstract socket: the Pod's containers share it, and it needs no writable folder. Other programs in the
 * sandbox can fake an answer, but only to their own user.
 */
#include "files.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { KEPT_SECONDS = 10, ASKERS = 8, LOOK_MS = 1000, MOST_ANSWER = 64 * 1024 };

/* 0 if the request has no valid id. */
static socklen_t address_of(const struct call *call, struct sockaddr_un *address) {
  static const char front[] = "sandpool-call-";
  const char *id = asked(call, "id");
  size_t length = id ? strlen(id) : 0;
  if (length == 0 || length > 64) return 0;
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  memcpy(address->sun_path + 1, front, sizeof front - 1);
  memcpy(address->sun_path + sizeof front, id, length);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof front + length);
}

void open_keeper(struct call *call) {
  struct sockaddr_un address;
  socklen_t length = address_of(call, &address);
  if (length == 0 || strcmp(call->request, "answer") == 0) return;
  call->keeper = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (call->keeper < 0) return;
  if (bind(call->keeper, (struct sockaddr *)&address, length) == 0 && listen(call->keeper, ASKERS) == 0) return;
  close(call->keeper);
  call->keeper = -1;
}

void keep_answer(struct call *call) {
  struct pollfd asker = {.fd = call->keeper, .events = POLLIN};
  for (const time_t until = time(NULL) + KEPT_SECONDS; time(NULL) < until;) {
    if (poll(&asker, 1, LOOK_MS) <= 0) continue;
    call->output = accept4(call->keeper, NULL, NULL, SOCK_CLOEXEC);
    if (call->output < 0) continue;
    send_bytes(call, call->answer, call->answered);
    close(call->output);
  }
}

/* Waits for the other call's end. NOT_FOUND if no call has the answer. */
enum problem call_answer(struct call *call) {
  struct sockaddr_un address;
  socklen_t length = address_of(call, &address);
  int keeper = length ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
  if (keeper < 0) return NOT_FOUND;
  enum problem problem = connect(keeper, (struct sockaddr *)&address, length) < 0 ? NOT_FOUND : DONE;
  char *answer = problem ? NULL : malloc(MOST_ANSWER);
  size_t got = 0;
  while (!problem && answer) {
    struct pollfd said = {.fd = keeper, .events = POLLIN};
    problem = poll(&said, 1, LOOK_MS) > 0 ? DONE : still_wanted(call);
    if (problem || !said.revents) continue;
    ssize_t count = read(keeper, answer + got, MOST_ANSWER - got);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    got += (size_t)count;
  }
  if (!problem) problem = got == 0 ? NOT_FOUND : send_bytes(call, answer, got);
  free(answer);
  close(keeper);
  return problem;
}
