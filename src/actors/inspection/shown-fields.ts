import type { Shown, ShownFields } from '../../model/inspection.ts';
import type { Tenant } from '../../model/tenant.ts';

export const fields = (all: Readonly<Record<string, Shown | undefined>>): ShownFields =>
  Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) =>
      value === undefined
        ? []
        : [[name, typeof value === 'string' ? value.slice(0, MOST_TEXT) : value]],
    ),
  );

const MOST_TEXT = 500;

/** As ISO 8601; undefined for never. */
export const moment = (at: number | undefined): string | undefined =>
  at === undefined || at <= 0 || !Number.isFinite(at) ? undefined : new Date(at).toISOString();

export const tenant = ({ namespace, team, user }: Tenant): ShownFields => ({
  namespace,
  team,
  user,
});

export const differences = (
  actor: ShownFields,
  record: ShownFields,
): readonly { readonly field: string; readonly actor: Shown; readonly record: Shown }[] =>
  [...new Set([...Object.keys(actor), ...Object.keys(record)])].sort().flatMap((field) => {
    const [ours, theirs] = [actor[field] ?? null, record[field] ?? null];
    return JSON.stringify(ours) === JSON.stringify(theirs)
      ? []
      : [{ field, actor: ours, record: theirs }];
  });
