#include "launcher.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Above the kernel's limit for arguments and environment. */
static const size_t ORDER_BYTES = 4 * 1024 * 1024;
static const unsigned long long ID_MAX = 0xfffffffeULL;

struct reader {
  char *at, *end;
};

static void take(struct reader *reader, const char *keyword, struct order *order);
static const char *next(struct reader *reader);
static void append(struct list *list, const char *text);
static long next_id(struct reader *reader, unsigned long long max);
static struct limit next_limit(struct reader *reader);

void read_order(int fd, struct order *order) {
  size_t length;
  char *bytes = read_whole(fd, ORDER_BYTES, &length);
  parse_order(bytes, length, order);
}

void parse_order(char *bytes, size_t length, struct order *order) {
  *order = (struct order){.uid = -1, .gid = -1, .inside_uid = -1, .inside_gid = -1, .pid = -1, .columns = -1, .rows = -1};
  struct reader reader = {bytes, bytes + length};
  for (;;) {
    const char *keyword = next(&reader);
    if (strcmp(keyword, "go") == 0) break;
    take(&reader, keyword, order);
  }
  if (reader.at != reader.end) fail("the order goes on after its go", 0);
}

bool parse_number(const char *text, unsigned long long max, unsigned long long *value) {
  if (*text < '0' || *text > '9') return false;
  char *end;
  errno = 0;
  *value = strtoull(text, &end, 10);
  return errno == 0 && *end == 0 && *value <= max;
}

static void take(struct reader *reader, const char *keyword, struct order *order) {
  unsigned long long number;
  if (strcmp(keyword, "arg") == 0) append(&order->args, next(reader));
  else if (strcmp(keyword, "env") == 0) append(&order->env, next(reader));
  else if (strcmp(keyword, "cgroup") == 0) append(&order->cgroups, next(reader));
  else if (strcmp(keyword, "tmpfs") == 0) {
    append(&order->tmpfs, next(reader));
    append(&order->tmpfs, next(reader));
  }
  else if (strcmp(keyword, "folder") == 0) {
    append(&order->folders, next(reader));
    append(&order->folders, next(reader));
  }
  else if (strcmp(keyword, "uid") == 0) order->uid = next_id(reader, ID_MAX);
  else if (strcmp(keyword, "gid") == 0) order->gid = next_id(reader, ID_MAX);
  else if (strcmp(keyword, "insideuid") == 0) order->inside_uid = next_id(reader, ID_MAX);
  else if (strcmp(keyword, "insidegid") == 0) order->inside_gid = next_id(reader, ID_MAX);
  else if (strcmp(keyword, "pid") == 0) order->pid = next_id(reader, INT_MAX);
  else if (strcmp(keyword, "bwrap") == 0) order->bwrap = next(reader);
  else if (strcmp(keyword, "bare") == 0) order->bare = true;
  else if (strcmp(keyword, "network") == 0) order->network = true;
  else if (strcmp(keyword, "cwd") == 0) order->cwd = next(reader);
  else if (strcmp(keyword, "output") == 0) order->output = next(reader);
  else if (strcmp(keyword, "holder") == 0) {
    order->holder = next(reader);
    order->process = next(reader);
  } else if (strcmp(keyword, "input") == 0) order->input = true;
  else if (strcmp(keyword, "bound") == 0) order->bound = true;
  else if (strcmp(keyword, "columns") == 0) order->columns = next_id(reader, USHRT_MAX);
  else if (strcmp(keyword, "rows") == 0) order->rows = next_id(reader, USHRT_MAX);
  else if (strcmp(keyword, "timeout") == 0) order->timeout_ms = next_id(reader, LONG_MAX / 2);
  else if (strcmp(keyword, "told") == 0) order->told = next(reader);
  else if (strcmp(keyword, "starttime") == 0) {
    if (!parse_number(next(reader), ULLONG_MAX, &number)) fail("the order has a malformed starttime", 0);
    order->start_time = number;
  } else if (strcmp(keyword, "rlimit") == 0) {
    if (order->limit_count == LENGTH(order->limits)) fail("the order has too many rlimits", 0);
    order->limits[order->limit_count++] = next_limit(reader);
  } else fail("the order has an unknown keyword", 0);
}

/* A token without a NUL was cut off: the writer died. */
static const char *next(struct reader *reader) {
  char *token = reader->at;
  char *nul = memchr(token, 0, (size_t)(reader->end - token));
  if (!nul) fail("the order ended before its go", 0);
  reader->at = nul + 1;
  return token;
}

static void append(struct list *list, const char *text) {
  /* Doubles at each power of two. */
  if ((list->count & (list->count - 1)) == 0) {
    list->items = realloc(list->items, (list->count * 2 + 2) * sizeof *list->items);
    if (!list->items) fail("no memory", 0);
  }
  list->items[list->count++] = (char *)text;
  list->items[list->count] = NULL;
}

static long next_id(struct reader *reader, unsigned long long max) {
  unsigned long long number;
  if (!parse_number(next(reader), max, &number)) fail("the order has a malformed id", 0);
  return (long)number;
}

static rlim_t next_amount(struct reader *reader) {
  const char *text = next(reader);
  unsigned long long number;
  if (strcmp(text, "unlimited") == 0) return RLIM_INFINITY;
  if (!parse_number(text, RLIM_INFINITY, &number)) fail("the order has a malformed rlimit", 0);
  return (rlim_t)number;
}

static struct limit next_limit(struct reader *reader) {
  static const struct {
    const char *name;
    int resource;
  } names[] = {{"nproc", RLIMIT_NPROC}, {"nofile", RLIMIT_NOFILE}, {"as", RLIMIT_AS},
               {"core", RLIMIT_CORE},   {"fsize", RLIMIT_FSIZE}};
  const char *name = next(reader);
  for (size_t i = 0; i < LENGTH(names); i++) {
    if (strcmp(name, names[i].name) != 0) continue;
    struct limit limit = {.resource = names[i].resource};
    limit.value.rlim_cur = next_amount(reader);
    limit.value.rlim_max = next_amount(reader);
    return limit;
  }
  fail("the order has an unknown rlimit", 0);
}
