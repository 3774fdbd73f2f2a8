import type { Moment, PodState, PoolState, RecordState, Sighting, StoreChange } from './history.ts';
import { idOfPodName } from '../../../src/model/identifiers.ts';

const SIGHT_EVERY_MS = 50;
const ANSWER_MS = 1_000;
/** Of a run of an hour it is a gigabyte. */
const READ_MS = 600_000;

/** etcd over HTTP, as its JSON gateway has it. Its whole history must be there: a legible control plane keeps it. */
export class StoreLog {
  readonly sightings: Sighting[] = [];
  readonly #etcd: string;
  readonly #now: () => Moment;
  #running: Promise<void> | undefined;
  #over = false;

  constructor(etcd: string, now: () => Moment) {
    this.#etcd = etcd;
    this.#now = now;
  }

  /** Looks at the store's revision again and again, so that its changes can be placed in time. */
  start(): void {
    this.#over = false;
    this.#running = this.#sight();
  }

  async stop(): Promise<void> {
    this.#over = true;
    await this.#running;
  }

  /** Every change of what the promises are about, up to this call. */
  async read(): Promise<readonly StoreChange[]> {
    const { header: { revision: last } } = await this.#post('/v3/kv/put', { key: encoded(LAST), value: encoded('') });
    const changes: StoreChange[] = [];
    const body = JSON.stringify({ create_request: { key: encoded(ROOT), range_end: encoded(`${ROOT.slice(0, -1)}0`), start_revision: '1' } });
    const answer = await fetch(`${this.#etcd}/v3/watch`, { method: 'POST', body, signal: AbortSignal.timeout(READ_MS) });
    if (!answer.body) throw new Error('etcd gave no log');
    for await (const line of linesOf(answer.body)) {
      const { result, error } = JSON.parse(line) as WatchLine;
      if (error || result?.canceled) throw new Error(`etcd ended its log: ${line.slice(0, 500)}`);
      for (const event of result?.events ?? []) {
        const key = decoded(event.kv.key);
        if (event.kv.mod_revision === last) return changes;
        const change = changeOf(key, Number(event.kv.mod_revision), event.type === 'DELETE' ? undefined : decoded(event.kv.value ?? ''));
        if (change) changes.push(change);
      }
    }
    throw new Error('the log of etcd ended too early');
  }

  async #sight(): Promise<void> {
    while (!this.#over) {
      const asked = this.#now();
      try {
        const { header } = await this.#post('/v3/kv/range', { key: encoded('-') });
        this.sightings.push({ asked, answered: this.#now(), revision: Number(header.revision) });
      } catch {
        // It is down, or slow: nothing was seen.
      }
      await new Promise((resolve) => { setTimeout(resolve, SIGHT_EVERY_MS); });
    }
  }

  async #post(path: string, body: object): Promise<{ readonly header: { readonly revision: string } }> {
    const answer = await fetch(this.#etcd + path, { method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(ANSWER_MS) });
    if (!answer.ok) throw new Error(`etcd answered ${answer.status}`);
    return await answer.json() as { readonly header: { readonly revision: string } };
  }
}

interface WatchLine {
  readonly error?: unknown;
  readonly result?: {
    readonly canceled?: boolean;
    readonly events?: readonly { readonly type?: string; readonly kv: { readonly key: string; readonly value?: string; readonly mod_revision: string } }[];
  };
}

const ROOT = '/registry/';
/** Where the API server keeps nothing. */
const LAST = `${ROOT}~last`;

const encoded = (text: string): string => Buffer.from(text).toString('base64');
const decoded = (text: string): string => Buffer.from(text, 'base64').toString('utf8');

async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  for await (const chunk of chunks) {
    const [first = '', ...more] = decoder.decode(chunk, { stream: true }).split('\n');
    parts.push(first);
    for (const next of more) {
      const line = parts.join('');
      parts = [next];
      if (line !== '') yield line;
    }
  }
}

interface Meta { readonly uid: string; readonly deletionTimestamp?: string; readonly ownerReferences?: readonly { readonly kind: string; readonly uid: string }[] }
interface Stored<Spec, Status = unknown> { readonly metadata: Meta; readonly spec: Spec; readonly status?: Status }
interface Condition { readonly type: string; readonly status: string }

const changeOf = (key: string, revision: number, text: string | undefined): StoreChange | undefined => {
  const [, , a = '', b = '', c = '', d = ''] = key.split('/');
  if (a === 'sandpool.dev' && b === 'sandboxes') return { kind: 'sandbox', revision, name: idOfPodName(d) ?? d, ...withState(text, recordState) };
  if (a === 'sandpool.dev' && b === 'sandboxpools') return { kind: 'pool', revision, namespace: c, name: d, ...withState(text, (pool) => poolState(c, pool)) };
  if (a === 'pods') return { kind: 'pod', revision, name: idOfPodName(c) ?? c, ...withState(text, podState) };
  if (a === 'minions') return { kind: 'node', revision, name: b, ...withState(text, nodeState) };
  return undefined;
};

const withState = <S>(text: string | undefined, read: (value: unknown) => S): { readonly state?: S } => (text === undefined ? {} : { state: read(JSON.parse(text)) });

const recordState = (value: unknown): RecordState => {
  const { metadata, spec } = value as Stored<{
    readonly poolUid: string; readonly podUid?: string; readonly claim?: { readonly team: string; readonly user: string; readonly claimedAt: string; readonly mark?: string };
  }> & { readonly metadata: { readonly namespace: string } };
  const { claim, podUid } = spec;
  return {
    uid: metadata.uid, poolUid: spec.poolUid, terminating: metadata.deletionTimestamp !== undefined, ...(podUid === undefined ? {} : { podUid }),
    ...(claim ? { claim: { owner: `${metadata.namespace}/${claim.team}/${claim.user}`, claimedAt: claim.claimedAt, ...(claim.mark === undefined ? {} : { mark: claim.mark }) } } : {}),
  };
};

const podState = (value: unknown): PodState => {
  const { metadata, spec, status } = value as Stored<{ readonly nodeName?: string }, { readonly phase?: string; readonly conditions?: readonly Condition[] }>;
  const isReady = status?.phase === 'Running' && holds(status.conditions, 'Ready');
  return {
    uid: metadata.uid, ownerUid: metadata.ownerReferences?.find(({ kind }) => kind === 'Sandbox')?.uid, node: spec.nodeName, terminating: metadata.deletionTimestamp !== undefined,
    vitals: status?.phase === 'Succeeded' || status?.phase === 'Failed' ? 'over' : isReady ? 'ready' : 'starting',
  };
};

const poolState = (namespace: string, value: unknown): PoolState => {
  const { metadata, spec, resolved } = value as Stored<{ readonly replicas: number }> & { readonly resolved?: { readonly uid: string; readonly team: string; readonly user: string; readonly deleting: string } };
  return {
    owner: resolved ? `${namespace}/${resolved.team}/${resolved.user}` : '', replicas: spec.replicas,
    deleting: metadata.deletionTimestamp !== undefined || (resolved !== undefined && resolved.deleting !== 'none'), ...(resolved ? { poolUid: resolved.uid } : {}),
  };
};

const nodeState = (value: unknown): { readonly takesWork: boolean } => {
  const { spec, status } = value as Stored<{ readonly unschedulable?: boolean }, { readonly conditions?: readonly Condition[] }>;
  return { takesWork: spec.unschedulable !== true && holds(status?.conditions, 'Ready') };
};

const holds = (conditions: readonly Condition[] | undefined, type: string): boolean => conditions?.find((condition) => condition.type === type)?.status === 'True';
