#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_DEPTH = 16, MOST_ENTRIES = 10000, MOST_BYTES = 1024 * 1024 };

struct listing {
  struct call *call;
  size_t limit, given, length;
  size_t above, bytes;
  bool more;
  char path[PATH_BYTES];
  char last[PATH_BYTES];
};

static enum problem give(struct listing *listing, int folder, const char *name, const struct stat *found) {
  unsigned char text[STAT_BYTES];
  size_t size = put_stat(text, found, listing->path, folder, name);
  strcpy(listing->last, listing->path);
  listing->given++;
  listing->bytes += listing->above + size - STAT_FIXED;
  return gather(listing->call, text, size);
}

static bool is_full(const struct listing *listing) { return listing->given == listing->limit || listing->bytes > MOST_BYTES; }

/* NULL starts from the beginning. */
static enum problem list_folder(struct listing *listing, int folder, unsigned depth, const char *from) {
  char first[NAME_MAX + 1];
  const char *rest = NULL;
  if (from) {
    size_t length = strcspn(from, "/");
    if (length > NAME_MAX) return BAD_CURSOR;
    memcpy(first, from, length);
    first[length] = 0;
    rest = from[length] ? from + length + 1 : NULL;
  }
  struct names names;
  /* One name that was sent already, and one to show whether there is more. */
  enum problem problem = read_names(folder, from ? first : NULL, listing->limit - listing->given + 2, &names);
  if (problem) return problem;
  size_t own = listing->length;
  for (size_t i = 0; i < names.count && !problem && !listing->more; i++) {
    const char *name = names.items[i];
    struct stat found;
    bool again = from && strcmp(name, first) == 0;
    int length = snprintf(listing->path + own, sizeof listing->path - own, "%s%s", own ? "/" : "", name);
    if ((size_t)length >= sizeof listing->path - own) continue;
    if (fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) < 0) continue;
    if (!again && is_full(listing)) {
      listing->more = true;
      break;
    }
    problem = again ? DONE : give(listing, folder, name, &found);
    if (!problem) problem = still_wanted(listing->call);
    if (problem || depth <= 1 || !S_ISDIR(found.st_mode)) continue;
    int below = open_safely(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, 0);
    if (below < 0) continue; /* listed without its content */
    listing->length = own + (size_t)length;
    problem = list_folder(listing, below, depth - 1, again ? rest : NULL);
    if (problem == NOT_FOUND || problem == DENIED) problem = DONE;
    listing->length = own;
    close(below);
  }
  free_names(&names);
  return problem;
}

enum problem call_list(struct call *call) {
  unsigned long long limit, depth;
  const char *path = asked(call, "path");
  int folder;
  if (!asked_number(call, "limit", MOST_ENTRIES, &limit) || limit == 0) limit = 1000;
  if (!asked_number(call, "depth", MOST_DEPTH, &depth) || depth == 0) depth = 1;
  enum problem problem = open_folder(path ? path : "", &folder);
  if (problem) return problem;
  struct listing *listing = calloc(1, sizeof *listing);
  if (!listing) problem = TOO_MANY;
  else {
    listing->call = call;
    listing->limit = (size_t)limit;
    listing->above = path ? strlen(path) : 0;
    problem = send_frame(call, 'H', NULL, 0);
    if (!problem) problem = list_folder(listing, folder, (unsigned)depth, asked(call, "cursor"));
    if (!problem) problem = flush_out(call);
    if (!problem) problem = send_frame(call, 'E', listing->last, listing->more ? strlen(listing->last) : 0);
    free(listing);
  }
  close(folder);
  return problem;
}
