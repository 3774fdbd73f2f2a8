/* By inotify, until the caller or the folder is gone. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { MOST_FOLDERS = 1024, MOST_EVENTS = 256, ALIVE_MS = 5000, TOGETHER_MS = 5 };

static const uint32_t MASK = IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF;

struct watched {
  int descriptor;
  char *path; /* relative; empty for the watched path itself */
};

struct watch {
  struct call *call;
  const char *place;
  int notify;
  dev_t device;
  ino_t inode;
  bool recursive, over, crowded;
  struct watched folders[MOST_FOLDERS];
  size_t count, events;
  char last[PATH_BYTES + 2]; /* to skip repeats */
};

static enum problem say(struct watch *watch, char type, bool folder, const char *path) {
  char event[PATH_BYTES + 4];
  size_t length = strlen(path);
  if (length >= PATH_BYTES) return DONE;
  event[0] = type;
  event[1] = folder ? 1 : 0;
  if (strncmp(watch->last, event, 2) == 0 && strcmp(watch->last + 2, path) == 0) return DONE;
  memcpy(watch->last, event, 2);
  strcpy(watch->last + 2, path);
  put_number((unsigned char *)event + 2, length, 2);
  memcpy(event + 4, path, length);
  enum problem problem = gather(watch->call, event, 4 + length);
  if (problem || ++watch->events < MOST_EVENTS) return problem;
  watch->events = 0;
  return flush_out(watch->call);
}

static enum problem add(struct watch *watch, int folder, const char *path) {
  char own[40];
  if (watch->count == MOST_FOLDERS) {
    watch->crowded = true;
    return DONE;
  }
  snprintf(own, sizeof own, "/proc/self/fd/%d", folder);
  int descriptor = inotify_add_watch(watch->notify, own, MASK | IN_ONLYDIR);
  if (descriptor < 0) {
    if (errno == ENOSPC) watch->crowded = true;
    return errno == ENOSPC || *path ? DONE : problem_of(errno);
  }
  for (size_t i = 0; i < watch->count; i++)
    if (watch->folders[i].descriptor == descriptor) return DONE;
  char *copy = strdup(path);
  if (!copy) return TOO_MANY;
  watch->folders[watch->count++] = (struct watched){descriptor, copy};
  return DONE;
}

static int open_below(int root, const char *path) {
  return open_safely(root, *path ? path : ".", O_RDONLY | O_DIRECTORY, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

/* Reports entries created before the watch began. */
static enum problem add_inner(struct watch *watch, int folder, const char *path, bool tell) {
  struct names names;
  if (read_names(folder, NULL, 0, &names)) return DONE;
  enum problem problem = DONE;
  for (size_t i = 0; i < names.count && !problem; i++) {
    char below[PATH_BYTES];
    struct stat found;
    if (is_spare_name(names.items[i])) continue;
    if (snprintf(below, sizeof below, "%s%s%s", path, *path ? "/" : "", names.items[i]) >= (int)sizeof below) continue;
    if (fstatat(folder, names.items[i], &found, AT_SYMLINK_NOFOLLOW) < 0) continue;
    problem = tell ? say(watch, 'c', S_ISDIR(found.st_mode), below) : still_wanted(watch->call);
    if (problem || !S_ISDIR(found.st_mode)) continue;
    int inner = open_safely(folder, names.items[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, RESOLVE_NO_XDEV);
    if (inner < 0) continue;
    problem = add(watch, inner, below);
    close(inner);
  }
  free_names(&names);
  return problem;
}

/* Iteratively, at any depth. */
static enum problem add_tree(struct watch *watch, int root, const char *path, bool tell) {
  int folder = open_below(root, path);
  if (folder < 0) return *path ? DONE : problem_of(errno); /* removed again */
  size_t next = watch->count;
  enum problem problem = add(watch, folder, path);
  close(folder);
  for (; watch->recursive && next < watch->count && !problem; next++) {
    folder = open_below(root, watch->folders[next].path);
    if (folder < 0) continue;
    problem = add_inner(watch, folder, watch->folders[next].path, tell);
    close(folder);
  }
  return problem;
}

static void drop(struct watch *watch, size_t at) {
  free(watch->folders[at].path);
  watch->folders[at] = watch->folders[--watch->count];
}

/* A tree that was moved away would report wrong paths. */
static void drop_tree(struct watch *watch, const char *path) {
  size_t length = strlen(path);
  for (size_t i = watch->count; i-- > 0;) {
    const char *other = watch->folders[i].path;
    if (strncmp(other, path, length) != 0 || (other[length] && other[length] != '/')) continue;
    inotify_rm_watch(watch->notify, watch->folders[i].descriptor);
    drop(watch, i);
  }
}

static enum problem entered(struct watch *watch, const char *path) {
  int root;
  struct stat found;
  if (open_folder(watch->place, &root)) return DONE;
  bool same = fstat(root, &found) == 0 && found.st_dev == watch->device && found.st_ino == watch->inode;
  enum problem problem = same ? add_tree(watch, root, path, true) : DONE;
  close(root);
  return problem;
}

/* An open O_TMPFILE file is named by # and its inode number. */
static bool has_no_name(const char *name) {
  return name[0] == '#' && name[1] && !name[1 + strspn(name + 1, "0123456789")];
}

static enum problem take_event(struct watch *watch, const struct inotify_event *event) {
  if (event->mask & IN_Q_OVERFLOW) return say(watch, 'o', false, "");
  size_t at = 0;
  while (at < watch->count && watch->folders[at].descriptor != event->wd) at++;
  if (at == watch->count) return DONE;
  const char *folder = watch->folders[at].path;
  const bool own = !*folder, is_folder = event->mask & IN_ISDIR;
  if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) {
    if (own) {
      watch->over = true;
      return say(watch, 'g', true, "");
    }
    if (event->mask & IN_IGNORED) drop(watch, at);
    return DONE;
  }
  char path[PATH_BYTES];
  const char *name = event->len ? event->name : "";
  if (is_spare_name(name)) return DONE; /* our own temporary name */
  if (snprintf(path, sizeof path, "%s%s%s", folder, own || !*name ? "" : "/", name) >= (int)sizeof path) return DONE;
  if (event->mask & (IN_CREATE | IN_MOVED_TO)) {
    enum problem problem = say(watch, 'c', is_folder, path);
    return problem || !is_folder || !watch->recursive ? problem : entered(watch, path);
  }
  if (event->mask & (IN_DELETE | IN_MOVED_FROM)) {
    if (is_folder && event->mask & IN_MOVED_FROM) drop_tree(watch, path);
    return say(watch, 'r', is_folder, path);
  }
  if (!*name && !own) return DONE; /* the parent folder reports it */
  if (has_no_name(name)) return DONE;
  return say(watch, event->mask & IN_MODIFY ? 'm' : 'a', is_folder, path);
}

static enum problem take_events(struct watch *watch) {
  _Alignas(struct inotify_event) char events[16 * 1024];
  ssize_t got = read(watch->notify, events, sizeof events);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? DONE : problem_of(errno);
  for (char *at = events; at < events + got;) {
    const struct inotify_event *event = (const struct inotify_event *)at;
    enum problem problem = watch->over ? DONE : take_event(watch, event);
    if (problem) return problem;
    at += sizeof *event + event->len;
  }
  if (watch->crowded) {
    watch->crowded = false;
    return say(watch, 'o', false, "");
  }
  return DONE;
}

static enum problem follow(struct watch *watch) {
  struct pollfd both[2] = {{.fd = watch->notify, .events = POLLIN}, {.fd = watch->call->input, .events = POLLIN | POLLRDHUP}};
  while (!watch->over) {
    int ready = poll(both, 2, ALIVE_MS);
    if (ready < 0 && errno != EINTR) return problem_of(errno);
    if (both[1].revents) return GONE; /* the caller is gone */
    enum problem problem = DONE;
    if (both[0].revents) {
      poll(NULL, 0, TOGETHER_MS); /* to send simultaneous events together */
      problem = take_events(watch);
      watch->events = 0;
      watch->last[0] = 0;
      if (!problem) problem = flush_out(watch->call);
    } else problem = still_wanted(watch->call);
    if (problem) return problem;
  }
  return send_frame(watch->call, 'E', NULL, 0);
}

/* An open descriptor of the watched path would hide its removal. */
static enum problem begin(struct watch *watch) {
  struct stat found;
  int root;
  enum problem problem = open_folder(watch->place, &root);
  if (problem) return problem;
  if (fstat(root, &found) < 0) problem = problem_of(errno);
  watch->device = found.st_dev;
  watch->inode = found.st_ino;
  watch->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (watch->notify < 0) problem = TOO_MANY;
  if (!problem) problem = add_tree(watch, root, "", false);
  close(root);
  if (problem || !watch->crowded) return problem;
  snprintf(watch->call->detail, sizeof watch->call->detail, "there are more folders than can be watched at one time (%d)", MOST_FOLDERS);
  return TOO_MANY;
}

enum problem call_watch(struct call *call) {
  const char *path = asked(call, "path");
  struct watch *watch = calloc(1, sizeof *watch);
  if (!watch) return TOO_MANY;
  *watch = (struct watch){.call = call, .place = path ? path : "", .notify = -1, .recursive = asked(call, "recursive") != NULL};
  enum problem problem = begin(watch);
  if (!problem) problem = send_frame(call, 'H', NULL, 0);
  if (!problem) problem = follow(watch);
  while (watch->count > 0) drop(watch, watch->count - 1);
  if (watch->notify >= 0) close(watch->notify);
  free(watch);
  return problem;
}
