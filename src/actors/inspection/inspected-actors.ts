import type {
  ActorKind,
  InspectedActor,
  PendingIntent,
  RebuildOutcome,
  ShownFields,
} from '../../model/inspection.ts';
import type { TransitionHistory } from '../runtime/transition-history.ts';

export interface InspectedActors {
  readonly transitions: Pick<
    TransitionHistory<never>,
    'page' | 'counts' | 'current' | 'of' | 'follow' | 'size'
  >;
  /** `namespace` is the default. Undefined if it is not a name. */
  keyOf(text: string, namespace: string): string | undefined;
  ofPool(poolUid: string): { readonly group: string } | { readonly keys: readonly string[] };
  inspect(key: string): InspectedActor | undefined;
  /** An uncached read. Rejects if it fails. */
  durable(key: string): Promise<ShownFields | undefined>;
  pendingOf(key: string): readonly PendingIntent[];
  /** Rejects if the facts can't be read. */
  rebuild(key: string): Promise<RebuildOutcome>;
}

export type InspectedKinds = Readonly<Record<ActorKind, InspectedActors>>;
