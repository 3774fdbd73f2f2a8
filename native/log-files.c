/*
 * A record is a line in the format of container runtimes (CRI): `2026-01-31T12:00:00.000000000Z stdout F text`. P instead of F: the next
 * record continues the line. Output and errors are one stream.
 */
#include "launcher.h"
#include "logs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum {
  HEAD_BYTES = sizeof "2026-01-31T12:00:00.000000000Z stdout F " - 1,
  KIND_AT = HEAD_BYTES - 2,
  LONGEST_HEAD = 2 * HEAD_BYTES, /* for the compiler */
  DAY = 86400,
  DAYS_OF_400 = 146097,
  MARCH_OF_0_TO_1970 = 719468,
  PART_BYTES = 16 * 1024, /* text of a record */
  TEXT_BYTES = 64 * 1024, /* text formatted at a time */
};

static const long long RESERVE_BYTES = 1024 * 1024 * 1024;

struct logs logs;

static void write_head(char *head);
static void append(struct log *log, const char *bytes, size_t length);
static int open_current(struct log *log, long long *size);
static void keep_owner(const struct log *log);
static bool look_up(struct log *log);
static void rotate(struct log *log, long long size);
static void remove_file(const struct log *log, long long begins);

bool is_id(const char *name) {
  return strlen(name) == ID_LENGTH && strspn(name, "0123456789abcdef-") == ID_LENGTH;
}

bool has_room(void) { return logs.used < logs.total_bytes && spare_bytes() > 0; }

long long spare_bytes(void) {
  struct statvfs disk;
  if (fstatvfs(logs.folder, &disk) < 0) return 0;
  long long size = (long long)disk.f_blocks * (long long)disk.f_frsize, left = (long long)disk.f_bavail * (long long)disk.f_frsize;
  long long reserve = size / 20;
  return left - (reserve < RESERVE_BYTES ? reserve : RESERVE_BYTES);
}

long long write_records(struct log *log, const char *text, size_t length) {
  static char records[TEXT_BYTES * (HEAD_BYTES + 2)];
  char head[LONGEST_HEAD];
  write_head(head);
  long long written = 0;
  while (length > 0) {
    char *to = records;
    for (const char *end = text + (length < TEXT_BYTES ? length : TEXT_BYTES); text < end;) {
      size_t left = (size_t)(end - text), part = left < PART_BYTES ? left : PART_BYTES;
      const char *newline = memchr(text, '\n', part);
      if (newline) part = (size_t)(newline - text);
      to = mempcpy(to, head, HEAD_BYTES);
      to[(int)KIND_AT - (int)HEAD_BYTES] = newline ? 'F' : 'P';
      to = mempcpy(to, text, part);
      *to++ = '\n';
      if (newline) part += 1;
      text += part;
      length -= part;
      log->in_line = !newline;
    }
    append(log, records, (size_t)(to - records));
    written += to - records;
  }
  return written;
}

void close_line(struct log *log) {
  if (log->in_line) write_records(log, "\n", 1);
}

/* By hand: libc's code, with time zones, would add a tenth to the launcher, which must fit into a ConfigMap. */
static void write_head(char *head) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const unsigned second = (unsigned)(now.tv_sec % DAY);
  /* Years begin with March here, so a leap day comes last. */
  const unsigned day = (unsigned)(now.tv_sec / DAY) + MARCH_OF_0_TO_1970, cycle = day / DAYS_OF_400, of_cycle = day % DAYS_OF_400;
  const unsigned year = (of_cycle - of_cycle / 1460 + of_cycle / 36524 - of_cycle / (DAYS_OF_400 - 1)) / 365;
  const unsigned of_year = of_cycle - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
  snprintf(head, LONGEST_HEAD, "%04u-%02u-%02uT%02u:%02u:%02u.%09ldZ stdout F ", (400 * cycle + year + (month >= 10)) % 10000,
           month < 10 ? month + 3 : month - 9, of_year - (153 * month + 2) / 5 + 1, second / 3600, second / 60 % 60, second % 60, now.tv_nsec);
}

/* Whole records, so that each file begins with one. */
static void append(struct log *log, const char *bytes, size_t length) {
  while (length > 0) {
    long long size;
    int fd = open_current(log, &size);
    if (fd < 0) return;
    size_t room = size < logs.file_bytes ? (size_t)(logs.file_bytes - size) : 0, part = length;
    if (part > room) {
      const char *last = memrchr(bytes, '\n', room);
      part = last ? (size_t)(last + 1 - bytes) : 0;
    }
    if (part == 0 && size > 0) {
      close(fd);
      rotate(log, size);
      continue;
    }
    if (part == 0) part = length;
    ssize_t put = write(fd, bytes, part);
    close(fd);
    if (put < 0 && errno != EINTR) return;
    if (put < 0) continue;
    logs.used += put;
    logs.moved += put;
    /* The next record must begin on a new line. */
    if ((size_t)put < part) log->known = false;
    bytes += put;
    length -= (size_t)put;
    if (!log->known) return;
  }
}

static int open_current(struct log *log, long long *size) {
  if (!log->known && !look_up(log)) return -1;
  char path[ID_LENGTH + 32];
  snprintf(path, sizeof path, "%s/%lld", log->id, log->begins);
  int fd = openat(logs.folder, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0 && errno == ENOENT && mkdirat(logs.folder, log->id, 0700) == 0) {
    keep_owner(log);
    fd = openat(logs.folder, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  }
  struct stat found;
  if (fd < 0) return -1;
  if (fstat(fd, &found) < 0) {
    close(fd);
    return -1;
  }
  *size = found.st_size;
  return fd;
}

/* Without this link a log counts as ownerless. */
static void keep_owner(const struct log *log) {
  char path[sizeof PIPES + ID_LENGTH + sizeof OWNER + 1], owner[OWNER_LENGTH + 1];
  snprintf(path, sizeof path, PIPES "/%s." OWNER, log->id);
  ssize_t length = readlinkat(logs.folder, path, owner, sizeof owner);
  if (length != OWNER_LENGTH) return;
  owner[OWNER_LENGTH] = '\0';
  snprintf(path, sizeof path, "%s/" OWNER, log->id);
  if (symlinkat(owner, logs.folder, path) < 0) errno = 0;
}

/* Continues the files of an earlier process. */
static bool look_up(struct log *log) {
  log->begins = 0;
  log->before = -1;
  int fd = openat(logs.folder, log->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return log->known = errno == ENOENT;
  DIR *folder = fdopendir(fd);
  if (!folder) {
    close(fd);
    return false;
  }
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    unsigned long long begins;
    if (!parse_number(entry->d_name, LLONG_MAX, &begins) || (long long)begins <= log->before) continue;
    log->before = (long long)begins;
    if (log->before > log->begins) {
      long long last = log->before;
      log->before = log->begins;
      log->begins = last;
    }
  }
  if (log->before >= log->begins) log->before = -1;
  char name[32], last = '\n';
  snprintf(name, sizeof name, "%lld", log->begins);
  int file = openat(dirfd(folder), name, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  struct stat found;
  bool torn = file >= 0 && fstat(file, &found) == 0 && found.st_size > 0 && pread(file, &last, 1, found.st_size - 1) == 1 && last != '\n';
  log->known = !torn || write(file, "\n", 1) == 1;
  if (file >= 0) close(file);
  closedir(folder);
  return log->known;
}

static void rotate(struct log *log, long long size) {
  if (log->before >= 0) remove_file(log, log->before);
  log->before = log->begins;
  log->begins += size;
}

static void remove_file(const struct log *log, long long begins) {
  char path[ID_LENGTH + 32];
  struct stat found;
  snprintf(path, sizeof path, "%s/%lld", log->id, begins);
  if (fstatat(logs.folder, path, &found, AT_SYMLINK_NOFOLLOW) < 0 || unlinkat(logs.folder, path, 0) < 0) return;
  logs.used -= found.st_size;
  logs.moved -= found.st_size;
}
