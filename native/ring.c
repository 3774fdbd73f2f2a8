#include "processes.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool open_ring(struct ring *ring) {
  const size_t runs = MOST_RUNS * sizeof *ring->runs;
  char *memory = mmap(NULL, RING_BYTES + runs, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  *ring = (struct ring){.bytes = memory, .runs = (struct run *)(void *)(memory + RING_BYTES)};
  return true;
}

static struct run *run_at(const struct ring *ring, size_t at) {
  return &ring->runs[(ring->first + at) % MOST_RUNS];
}

static void drop_to(struct ring *ring, uint64_t position) {
  if (position > ring->oldest) ring->oldest = position;
  for (; ring->count > 0 && run_at(ring, 0)->end <= ring->oldest; ring->count--) ring->first = (ring->first + 1) % MOST_RUNS;
}

bool is_full(const struct ring *ring) {
  return ring->total - ring->oldest > KEPT_BYTES || ring->count == MOST_RUNS;
}

ssize_t fill_ring(struct ring *ring, int fd, char stream) {
  const size_t at = ring->total % RING_BYTES, room = RING_BYTES - at;
  if (ring->total - ring->oldest > KEPT_BYTES) drop_to(ring, ring->total - KEPT_BYTES);
  if (ring->count == MOST_RUNS) drop_to(ring, run_at(ring, 0)->end);
  ssize_t got = read(fd, ring->bytes + at, room < MOST_READ ? room : MOST_READ);
  if (got <= 0) return got;
  ring->total += (uint64_t)got;
  if (ring->count == 0 || run_at(ring, ring->count - 1)->stream != stream) *run_at(ring, ring->count++) = (struct run){.stream = stream};
  run_at(ring, ring->count - 1)->end = ring->total;
  return got;
}

size_t read_ring(const struct ring *ring, uint64_t *from, char *stream, const char **bytes) {
  if (*from < ring->oldest) *from = ring->oldest;
  if (*from >= ring->total) return 0;
  size_t low = 0, high = ring->count - 1;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (run_at(ring, middle)->end > *from) high = middle;
    else low = middle + 1;
  }
  const size_t at = *from % RING_BYTES;
  size_t size = run_at(ring, low)->end - *from;
  if (size > RING_BYTES - at) size = RING_BYTES - at;
  *stream = run_at(ring, low)->stream;
  *bytes = ring->bytes + at;
  return size < MOST_READ ? size : MOST_READ;
}
