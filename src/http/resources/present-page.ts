import type { Page } from '../../actors/views.ts';

export const presentPage = <T, W>(
  { items, total, limit, offset }: Page<T>,
  present: (item: T) => W,
) => ({
  items: items.map(present),
  total,
  limit,
  offset,
});
