import type { ApiClient } from '../../src/k8s/api/api-calls.ts';
import {
  newSandboxObject,
  rewritten,
  storedSandboxOf,
} from '../../src/k8s/sandboxes/sandbox-resource.ts';
import { podNameOf } from '../../src/model/identifiers.ts';
import type { Claim, InstanceRecord } from '../../src/model/sandbox.ts';

/** No replica watches this copy; cluster.ts makes it. */
export const RAW_GROUP = 'bench.sandpool.dev';

interface Entry {
  uid: string;
  record: InstanceRecord;
}

const WRITERS = 16;

/** Claimed and given back by a conditional PUT. */
export class RawRecords {
  readonly #entries: readonly Entry[];
  readonly #namespace: string;
  #next = 0;

  private constructor(namespace: string, entries: readonly Entry[]) {
    this.#namespace = namespace;
    this.#entries = entries;
  }

  static async make(api: ApiClient, namespace: string, count: number): Promise<RawRecords> {
    const path = pathOf(namespace);
    const entries: Entry[] = [];
    await inParallel(count, WRITERS, async (n) => {
      entries[n] = entryOf(await api.create(path, ours(newSandboxObject(birthOf(namespace, n)))));
    });
    return new RawRecords(namespace, entries);
  }

  next(): {
    readonly path: string;
    readonly body: object;
    readonly done: (answer: unknown) => void;
  } {
    const entry = this.#entries[this.#next++];
    if (!entry) throw new Error('there are no more idle records');
    const body = plain(
      ours(
        rewritten(
          { ...entry.record, state: 'claimed', claim: CLAIM(this.#namespace) },
          { uid: entry.uid, podUid: POD_UID },
        ),
      ),
    );
    return {
      path: `${pathOf(this.#namespace)}/${podNameOf(entry.record.id)}`,
      body,
      done: (answer) => {
        Object.assign(entry, entryOf(answer));
      },
    };
  }

  /** By new records: a claimed record stays claimed. */
  async giveBack(api: ApiClient): Promise<void> {
    const path = pathOf(this.#namespace);
    await inParallel(Math.min(this.#next, this.#entries.length), WRITERS, async (n) => {
      const entry = this.#entries[n];
      if (!entry) return;
      await api.remove(`${path}/${podNameOf(entry.record.id)}`, { uid: entry.uid });
      Object.assign(
        entry,
        entryOf(await api.create(path, ours(newSandboxObject(birthOf(this.#namespace, n))))),
      );
    });
    this.#next = 0;
  }
}

const pathOf = (namespace: string): string =>
  `/apis/${RAW_GROUP}/v1alpha1/namespaces/${namespace}/sandboxes`;

const ours = (object: object): object => ({ ...object, apiVersion: `${RAW_GROUP}/v1alpha1` });

/** Spares the API server its comparison of fields and owners. */
const plain = (object: object): object => {
  const {
    metadata: { managedFields: _managedFields, ...metadata },
  } = object as { readonly metadata: { readonly managedFields?: unknown } };
  return { ...object, metadata };
};

const POD_UID = '3b1d5a52-6c1f-4d0e-9c0a-2f6f0f1f7f10';

const CLAIM = (namespace: string): Claim => ({
  owner: { namespace, team: 'bench', user: 'bench' },
  claimedAt: Math.round(performance.timeOrigin + performance.now()),
  idleTimeoutMs: 600_000,
  maxLifetimeMs: 0,
});

const birthOf = (namespace: string, n: number) => ({
  id: `01932d5a-${String(n).padStart(4, '0')}-7a01-8000-0242ac120002`,
  poolUid: '01932d5a-7d81-7a01-8000-0242ac120002',
  poolName: 'bench',
  poolOwner: { namespace, team: 'bench', user: 'bench' },
  createdAt: Math.round(performance.timeOrigin),
  updateRevision: '6b86b273ff34fce1',
  cpu: '10m',
  memory: '16Mi',
  containerImages: { main: 'registry.invalid/sandbox:1' },
  startupTimeoutMs: 60_000,
});

const entryOf = (answer: unknown): Entry => {
  const stored = storedSandboxOf(answer);
  if (!stored) throw new Error('no record came back');
  return { uid: stored.uid, record: stored.record };
};

export const inParallel = async (
  count: number,
  width: number,
  work: (n: number) => Promise<void>,
): Promise<void> => {
  let next = 0;
  await Promise.all(
    Array.from({ length: Math.min(count, width) }, async () => {
      for (let n = next++; n < count; n = next++) await work(n);
    }),
  );
};
