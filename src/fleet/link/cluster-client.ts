import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { Clock } from '../../contracts/clock.ts';
import type { ClusterRoute, FleetLinks } from '../../contracts/fleet/cluster-links.ts';
import { FairSlots } from '../../lib/fair-slots.ts';
import { boundsOf, JsonReader, LoopShare, type JsonBounds } from '../../lib/streams/json-reader.ts';
import { Permits } from '../../lib/permits.ts';
import { ClusterBusy, clusterUnavailable } from '../../model/fleet/cluster-refusals.ts';
import { IDENTITY_HEADER } from '../../model/fleet/identity-header.ts';
import { Refusal, type RefusalCode } from '../../model/refusals.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';
import { LinkAgent, type LinkOptions } from './link-channel.ts';

export interface ClusterRequest {
  readonly clusterId: string;
  readonly caller: Caller;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: object;
  readonly ifMatch?: string;
  readonly isLook?: boolean;
  /** 64 KiB if absent. */
  readonly bounds?: JsonBounds;
}

export interface ClusterAnswer {
  readonly body: unknown;
  readonly tag: string | undefined;
}

export interface ClusterClientDeps {
  readonly links: Pick<FleetLinks, 'find'>;
  readonly clock: Clock;
}

const ANSWER_MS = 10_000;
/** Silence after which the link is probed. */
const SILENT_MS = 1_000;
/** Per cluster, and per tenant there. */
const MOST_OF_CLUSTER = 64;
const MOST_OF_TENANT = 16;
/** Per tenant, in addition. */
const MOST_LOOKS_OF_TENANT = 16;
const MOST_WAITING = 1_024;
const MOST_WAITING_OF_TENANT = 128;
const TURN_MS = 5_000;
const MOST_KEPT = 16;

export class ClusterClient {
  readonly #deps: ClusterClientDeps;
  readonly #agent = new LinkAgent(MOST_KEPT);
  readonly #share = new LoopShare();
  /** Bounded by the number of clusters that have ever joined. */
  readonly #slots = new Map<string, FairSlots>();
  readonly #looks = new Permits({ tenant: MOST_LOOKS_OF_TENANT });

  constructor(deps: ClusterClientDeps) {
    this.#deps = deps;
  }

  stop(): void {
    this.#agent.destroy();
  }

  /**
   * Sends a request once; tenants take turns. Rejects with the cluster's Refusal, with ClusterBusy
   * if no turn comes in 5 s, or with CLUSTER_UNAVAILABLE without a whole answer in 10 s: the
   * outcome is then unknown.
   */
  async ask(request: ClusterRequest): Promise<ClusterAnswer> {
    const { clusterId } = request;
    const release = await this.#turn(request);
    try {
      const route = this.#deps.links.find(clusterId);
      if (!route) throw clusterUnavailable(clusterId, 'is not connected; try again');
      const { answer, body } = await this.#exchange(route, request);
      const { statusCode = 0, headers } = answer;
      if (statusCode >= 400) throw refusalIn(clusterId, body);
      if (statusCode < 200 || statusCode > 299)
        throw clusterUnavailable(clusterId, `answered ${statusCode}`);
      return { body, tag: headers.etag };
    } catch (error) {
      throw error instanceof Refusal
        ? error
        : clusterUnavailable(clusterId, 'did not answer, and the outcome is unknown');
    } finally {
      release();
    }
  }

  async #turn({ clusterId, caller, isLook }: ClusterRequest): Promise<() => void> {
    const { clock } = this.#deps;
    const tenant = tenantKey(caller);
    if (isLook) {
      const key = `${clusterId} ${tenant}`;
      return this.#looks.take({ tenant: key }, () => new ClusterBusy(clusterId));
    }
    const slots = this.#slots.get(clusterId) ?? newSlots();
    this.#slots.set(clusterId, slots);
    return await slots.take(tenant, {
      full: () => new ClusterBusy(clusterId),
      until: (giveUp) => clock.at(clock.now() + TURN_MS, giveUp),
    });
  }

  async #exchange(
    route: ClusterRoute,
    { clusterId, caller, method, path, body, ifMatch, bounds }: ClusterRequest,
  ): Promise<{ readonly answer: IncomingMessage; readonly body: unknown }> {
    const { clock } = this.#deps;
    const bytes = body && Buffer.from(JSON.stringify(body));
    const options: LinkOptions = {
      route,
      agent: this.#agent,
      method,
      path,
      headers: {
        Host: 'worker',
        [IDENTITY_HEADER]: route.identify(caller, {
          method,
          target: path,
          idempotencyKey: undefined,
        }),
        ...(bytes ? { 'Content-Type': 'application/json', 'Content-Length': bytes.length } : {}),
        ...(ifMatch === undefined ? {} : { 'If-Match': ifMatch }),
      },
    };
    const asked = httpRequest(options);
    const leave = (): void => void asked.destroy(new Error('no answer in time'));
    let callOffProbe = (): void => undefined;
    const callOffs = [
      clock.at(clock.now() + SILENT_MS, () => (callOffProbe = route.probe(leave))),
      clock.at(clock.now() + ANSWER_MS, leave),
      () => callOffProbe(),
    ];
    try {
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        asked.once('response', resolve);
        asked.on('error', reject);
        asked.once('close', () => reject(new Error('no answer')));
        asked.end(bytes);
      });
      const reader = new JsonReader(bounds ?? boundsOf(0, 0));
      for await (const chunk of answer as AsyncIterable<Buffer>)
        await this.#share.work(clusterId, () => reader.push(chunk));
      return { answer, body: await reader.value((work) => this.#share.work(clusterId, work)) };
    } finally {
      for (const callOff of callOffs) callOff();
    }
  }
}

const newSlots = (): FairSlots =>
  new FairSlots({
    most: () => MOST_OF_CLUSTER,
    mostOfTenant: () => MOST_OF_TENANT,
    mostWaiting: MOST_WAITING,
    mostWaitingOfTenant: MOST_WAITING_OF_TENANT,
  });

const MOST_WORDS = 1_024;

/** Codes that callers see as the cluster's own. */
const TOLD: ReadonlySet<unknown> = new Set<RefusalCode>([
  'INVALID_ARGUMENT',
  'FORBIDDEN',
  'APPROVAL_REQUIRED',
  'APPROVAL_DENIED',
  'ENV_NOT_FOUND',
  'ENV_MEMBER_NOT_FOUND',
  'AUTOSCALING_GROUP_NOT_FOUND',
  'SANDBOX_TEMPLATE_NOT_FOUND',
  'ALREADY_EXISTS',
  'CONFLICT',
  'ENV_HAS_RUNNING_SANDBOXES',
  'ENV_SYNC_PARTIAL',
  'PRECONDITION_FAILED',
  'PAYLOAD_TOO_LARGE',
  'QUOTA_EXCEEDED',
  'UNAVAILABLE',
  'FEATURE_DISABLED',
]);

const isTold = (code: unknown): code is RefusalCode => TOLD.has(code);

const refusalIn = (clusterId: string, body: unknown): Refusal => {
  const { error, errorCode, detail } = (body ?? {}) as Readonly<Record<string, unknown>>;
  const words = typeof error === 'string' ? error.slice(0, MOST_WORDS) : 'it refused';
  if (errorCode === 'RATE_LIMITED') return new ClusterBusy(clusterId);
  if (!isTold(errorCode)) return clusterUnavailable(clusterId, `failed: ${words}`);
  const field = (detail as { readonly field?: unknown } | null | undefined)?.field;
  return new Refusal(errorCode, `${clusterId}: ${words}`, {
    detail: typeof field === 'string' ? { field: field.slice(0, 128) } : undefined,
  });
};
