import type { ApiKeyRecord } from '../../model/api-key.ts';
import { unavailable } from '../../model/refusals.ts';
import type { ApiKeyMirror } from './api-keys.ts';

export interface Revocation {
  readonly isMeant: (record: ApiKeyRecord) => boolean;
  readonly cascade: boolean;
}

/** A user has no more keys, but an admin's key may have made more. */
export const MOST_REVOKED = 1_000;
const AT_ONCE = 16;
/** Each repeated read finds keys that were made in the meantime. */
const MOST_LOOKS = 5;

/**
 * Keys go before their makers: after a crash or an error, the same call finds the rest. Resolves
 * once the store shows none of them, including keys made during the call. Refuses with UNAVAILABLE
 * if more keys remain than one call revokes.
 */
export const revokeApiKeys = async (
  apiKeys: ApiKeyMirror,
  { isMeant, cascade }: Revocation,
): Promise<number> => {
  const gone = new Set<string>();
  const meant = (record: ApiKeyRecord): boolean =>
    isMeant(record) || (cascade && gone.has(record.createdBy ?? ''));
  let revoked = 0;
  for (let look = 1; look <= MOST_LOOKS; look += 1) {
    const layers = layersOf(await apiKeys.stored(), { isMeant: meant, cascade });
    if (layers.length === 0) return revoked;
    for (const layer of layers.reverse()) {
      for (let next = 0; next < layer.length;) {
        const part = layer.slice(next, next + Math.min(AT_ONCE, MOST_REVOKED - revoked));
        if (part.length === 0) throw unfinished(revoked);
        await Promise.all(part.map((record) => apiKeys.remove(record)));
        for (const { keyId } of part) gone.add(keyId);
        revoked += part.length;
        next += part.length;
      }
    }
  }
  throw unfinished(revoked);
};

const unfinished = (revoked: number): Error =>
  unavailable(`${revoked} keys were revoked and some are left; repeat the request to continue`);

/** The given keys, then the keys that they made, and so on, each once. */
const layersOf = (
  records: readonly ApiKeyRecord[],
  { isMeant, cascade }: Revocation,
): ApiKeyRecord[][] => {
  const madeBy = new Map<string, ApiKeyRecord[]>();
  for (const record of cascade ? records : []) {
    if (record.createdBy === undefined) continue;
    const made = madeBy.get(record.createdBy);
    if (made) made.push(record);
    else madeBy.set(record.createdBy, [record]);
  }
  const depths = new Map<ApiKeyRecord, number>();
  const layers: ApiKeyRecord[][] = [];
  // A given key may be made by another given key: its depth is the largest below any of them.
  for (
    let layer = records.filter(isMeant), depth = 0;
    layer.length > 0 && depth <= records.length;
    depth += 1
  ) {
    for (const record of layer) depths.set(record, depth);
    layer = [...new Set(layer.flatMap(({ keyId }) => madeBy.get(keyId) ?? []))];
  }
  for (const [record, depth] of depths) (layers[depth] ??= []).push(record);
  return layers.filter((layer) => layer.length > 0);
};
