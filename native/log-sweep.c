/* In a separate process: a walk through thousands of folders must not delay output. */
#include "launcher.h"
#include "logs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct found {
  char id[ID_LENGTH + 1], owner[OWNER_LENGTH + 1];
  bool live;
  long long bytes, last; /* last write, in seconds */
};

static struct {
  struct found *items;
  size_t count, room;
  long long bytes;
} all;

static void find_logs(int pipes);
static struct found measure(const char *id, int pipes);
static void remove_expired(void);
static void make_room(void);
static void take_from_the_loudest(bool live, long long goal);
static int by_owner(const void *a, const void *b);
static void remove_files(struct found *found, bool but_the_last);
static int oldest_first(const void *a, const void *b);

int begin_sweep(int pipes) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) return -1;
  logs.moved = 0;
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (nice(10) < 0) errno = 0;
    find_logs(pipes);
    remove_expired();
    make_room();
    _exit(write(ends[1], &all.bytes, sizeof all.bytes) != sizeof all.bytes);
  }
  close(ends[1]);
  if (child > 0) return ends[0];
  close(ends[0]);
  return -1;
}

int finish_sweep(int fd) {
  long long bytes;
  if (read(fd, &bytes, sizeof bytes) == sizeof bytes) logs.used = bytes + logs.moved;
  close(fd);
  return -1;
}

static void find_logs(int pipes) {
  int fd = openat(logs.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *folder = fd < 0 ? NULL : fdopendir(fd);
  if (!folder) _exit(1);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    if (!is_id(entry->d_name)) continue;
    if (all.count == all.room) {
      all.room = all.room * 2 + 256;
      all.items = realloc(all.items, all.room * sizeof *all.items);
      if (!all.items) _exit(1);
    }
    all.items[all.count] = measure(entry->d_name, pipes);
    all.bytes += all.items[all.count++].bytes;
  }
  closedir(folder);
  qsort(all.items, all.count, sizeof *all.items, by_owner);
}

static struct found measure(const char *id, int pipes) {
  struct found found = {.live = faccessat(pipes, id, F_OK, AT_SYMLINK_NOFOLLOW) == 0};
  strcpy(found.id, id);
  int fd = openat(logs.folder, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  DIR *folder = fd < 0 ? NULL : fdopendir(fd);
  struct stat stat;
  if (!folder) return found;
  if (fstat(fd, &stat) == 0) found.last = stat.st_mtime;
  ssize_t length = readlinkat(fd, OWNER, found.owner, OWNER_LENGTH);
  found.owner[length > 0 ? length : 0] = '\0';
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    if (fstatat(fd, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(stat.st_mode)) continue;
    found.bytes += stat.st_size;
    if (stat.st_mtime > found.last) found.last = stat.st_mtime;
  }
  closedir(folder);
  return found;
}

static void remove_expired(void) {
  long long limit = time(NULL) - logs.retention;
  for (size_t i = 0; i < all.count; i++) {
    struct found *found = &all.items[i];
    if (found->live || found->last >= limit) continue;
    remove_files(found, false);
    unlinkat(logs.folder, found->id, AT_REMOVEDIR);
  }
}

/* Ended sandboxes first; their empty folders show that a log existed. Then older files of the others. */
static void make_room(void) {
  long long goal = all.bytes < logs.total_bytes ? all.bytes : logs.total_bytes - logs.total_bytes / 10;
  long long spare = spare_bytes();
  if (spare <= 0) goal = goal < all.bytes + spare ? goal : all.bytes + spare - 1;
  take_from_the_loudest(false, goal);
  take_from_the_loudest(true, goal);
}

/* Of the owner with the most bytes, so one owner's flood costs no other a line. */
static void take_from_the_loudest(bool live, long long goal) {
  struct share { size_t next, end; long long bytes; } *shares = calloc(all.count + 1, sizeof *shares);
  size_t owners = 0;
  if (!shares) _exit(1);
  for (size_t i = 0; i < all.count; i++) {
    if (i == 0 || strcmp(all.items[i].owner, all.items[i - 1].owner) != 0) shares[owners++].next = i;
    shares[owners - 1].end = i + 1;
    shares[owners - 1].bytes += all.items[i].bytes;
  }
  while (all.bytes > goal) {
    struct share *loudest = NULL;
    for (struct share *share = shares; share < shares + owners; share++) {
      while (share->next < share->end && (all.items[share->next].live != live || all.items[share->next].bytes == 0)) share->next++;
      if (share->next < share->end && (!loudest || share->bytes > loudest->bytes)) loudest = share;
    }
    if (!loudest) break;
    struct found *oldest = &all.items[loudest->next++];
    long long before = oldest->bytes;
    remove_files(oldest, live);
    loudest->bytes -= before - oldest->bytes;
  }
  free(shares);
}

static void remove_files(struct found *found, bool but_the_last) {
  int fd = openat(logs.folder, found->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  DIR *folder = fd < 0 ? NULL : fdopendir(fd);
  if (!folder) return;
  unsigned long long begins, last = 0;
  for (struct dirent *entry; but_the_last && (entry = readdir(folder)) != NULL;)
    if (parse_number(entry->d_name, LLONG_MAX, &begins) && begins > last) last = begins;
  rewinddir(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    struct stat stat;
    if (!parse_number(entry->d_name, LLONG_MAX, &begins) || (but_the_last && begins >= last)) continue;
    if (fstatat(fd, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) < 0 || unlinkat(fd, entry->d_name, 0) < 0) continue;
    all.bytes -= stat.st_size;
    found->bytes -= stat.st_size;
  }
  if (!but_the_last) unlinkat(fd, OWNER, 0);
  closedir(folder);
}

static int by_owner(const void *a, const void *b) {
  int order = strcmp(((const struct found *)a)->owner, ((const struct found *)b)->owner);
  return order ? order : oldest_first(a, b);
}

static int oldest_first(const void *a, const void *b) {
  long long one = ((const struct found *)a)->last, other = ((const struct found *)b)->last;
  return (one > other) - (one < other);
}
