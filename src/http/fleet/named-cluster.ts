import type { NameKind } from '../router/local-names.ts';
import { isDnsLabel } from '../../model/identifiers.ts';

/** The cluster that a name names before it; undefined where it names none. */
export const namedCluster = (kind: NameKind, text: string): string | undefined => {
  if (kind === 'pool' && text.includes('//')) return undefined; // refused as any malformed name is
  const cluster = text.slice(0, Math.max(0, text.indexOf(kind === 'sandbox' ? '.' : '::')));
  return isDnsLabel(cluster) ? cluster : undefined;
};
