/* Runs in the sandbox with its user, namespaces, limits and filter. Each connection is one request, in a thread of its own. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_CALLS = 64, STACK_BYTES = 512 * 1024, SILENCE_SECONDS = 600, SHORTAGE_MS = 50, PIPE_BYTES = 1024 * 1024 };

static atomic_int calls;

static void *await_end(void *argument) {
  (void)argument;
  struct pollfd caller = {.fd = 0};
  while (poll(&caller, 1, -1) < 0 && errno == EINTR) continue;
  _exit(0);
}

/* The runtime may keep a pipe without a reader open; the input pipe closes with the caller. */
static void end_with_caller(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, await_end, NULL);
}

static enum problem carry_out(struct call *call) {
  static const struct {
    const char *name;
    enum problem (*carry_out)(struct call *);
  } operations[] = {{"stat", call_stat},     {"read", call_read}, {"write", call_write}, {"list", call_list},
                    {"remove", call_remove}, {"move", call_move}, {"mkdir", call_mkdir}, {"watch", call_watch},
                    {"pack", call_pack},     {"unpack", call_unpack}, {"answer", call_answer},
                    {"start", call_start},   {"processes", call_processes}, {"find", call_process}, {"output", call_process},
                    {"input", call_process}, {"eof", call_process},   {"resize", call_process}, {"signal", call_process},
                    {"remove-process", call_process}};
  if (call->keeps) open_keeper(call);
  if (call->keeps && call->keeper < 0) end_with_caller();
  for (size_t i = 0; i < LENGTH(operations); i++)
    if (strcmp(call->request, operations[i].name) == 0) return operations[i].carry_out(call);
  return BROKEN;
}

static enum problem answer(struct call *call) {
  /* This agent, and no other, carries out the request. */
  const char taken = 0;
  enum problem problem = send_bytes(call, &taken, 1);
  if (!problem) problem = read_request(call);
  if (!problem) problem = carry_out(call);
  if (!problem || problem == GONE) return problem;
  refuse(call, problem);
  await_leave(call);
  return problem;
}

static void *serve(void *argument) {
  struct call *call = argument;
  const struct timeval silence = {.tv_sec = SILENCE_SECONDS};
  setsockopt(call->input, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
  setsockopt(call->input, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof silence);
  answer(call);
  close(call->input);
  free(call->request);
  free(call->body);
  free(call->out);
  free(call);
  atomic_fetch_sub(&calls, 1);
  return NULL;
}

static void turn_away(int socket) {
  const char full = 1;
  if (send(socket, &full, 1, MSG_NOSIGNAL) < 0) errno = 0; /* the caller is gone */
  close(socket);
}

static void welcome(int listener, const pthread_attr_t *attributes) {
  int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  if (socket < 0) {
    /* No descriptor is left: the connection stays queued and would be reported again at once. */
    poll(NULL, 0, SHORTAGE_MS);
    return;
  }
  struct call *call = atomic_load(&calls) < MOST_CALLS ? calloc(1, sizeof *call) : NULL;
  if (!call) return turn_away(socket);
  call->input = call->output = socket;
  call->keeper = -1;
  call->told = time(NULL);
  atomic_fetch_add(&calls, 1);
  pthread_t thread;
  if (pthread_create(&thread, attributes, serve, call) == 0) return;
  atomic_fetch_sub(&calls, 1);
  free(call);
  turn_away(socket);
}

static void prepare(void) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  umask(0);
}

int run_call(void) {
  struct call call = {.input = 0, .output = 1, .keeper = -1, .keeps = true, .told = time(NULL)};
  find_home();
  prepare();
  /* The runtime then reads in larger pieces. */
  fcntl(call.output, F_SETPIPE_SZ, PIPE_BYTES);
  /* All calls of a Pod run this file, so they can lock it. */
  placing_lock = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  enum problem problem = answer(&call);
  /* Unless the caller has confirmed it. */
  if ((problem || !await_leave(&call)) && call.answer) keep_answer(&call);
  return 0;
}

void serve_files(int listener, int idle_ms) {
  pthread_attr_t attributes;
  prepare();
  if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, STACK_BYTES) != 0 ||
      pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) != 0)
    fail("threads", 0);
  if (write(1, "ready\n", 6) != 6) return;
  struct pollfd waiting = {.fd = listener, .events = POLLIN};
  for (;;) {
    int ready = poll(&waiting, 1, idle_ms);
    if (ready < 0 && errno != EINTR) fail("poll", errno);
    if (ready > 0) welcome(listener, &attributes);
    if (ready == 0 && atomic_load(&calls) == 0) return;
  }
}
