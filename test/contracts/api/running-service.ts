import { randomBytes } from 'node:crypto';
import { eventually, NEVER_COMES_MS } from '../../support/harness/eventually.ts';
import { HttpClient } from '../../support/harness/http-client.ts';
import { clientOf, createdOnce } from '../../support/harness/patient-client.ts';
import { untilAnswered } from '../../support/harness/until-answered.ts';

/**
 * A whole service, of one daemon or of several replicas, that heeds `X-Forwarded-For` of this
 * machine.
 */
export interface RunningService {
  /** Of each daemon. */
  readonly ports: readonly number[];
  /** Data folders of the same. */
  readonly dataDirs: readonly string[];
  readonly adminKey: string;
  /** What templates can name here. */
  readonly image: string;
  /** The key of a new user of the team. */
  keyOf(team: string, user: string): Promise<string>;
  /**
   * The name of a volume that the namespace of this team has, and no other; a team that has a user
   * by then.
   */
  volumeOf(team: string): Promise<string>;
}

/** The longest that an instance may take to start here. */
export const FILLED_MS = NEVER_COMES_MS;

/**
 * Clients of a service, each request by the next daemon's, all closed together; patient with
 * replicas where no other `Client` is given.
 */
export class Clients {
  readonly #service: () => RunningService;
  readonly #Client: typeof HttpClient | undefined;
  readonly #opened = new Map<string, HttpClient>();
  #turn = 0;

  constructor(service: () => RunningService, Client?: typeof HttpClient) {
    this.#service = service;
    this.#Client = Client;
  }

  /** The next daemon's. */
  with(key?: string): HttpClient {
    const service = this.#service();
    const { ports } = service;
    this.#turn += 1;
    const port = ports[this.#turn % ports.length] ?? 0;
    const name = `${port} ${key}`;
    const Client = this.#Client ?? clientOf(service);
    const known = this.#opened.get(name) ?? new Client(port, key);
    this.#opened.set(name, known);
    return known;
  }

  get anyone(): HttpClient {
    return this.with();
  }
  get admin(): HttpClient {
    return this.with(this.#service().adminKey);
  }

  close(): void {
    for (const client of this.#opened.values()) client.close();
    this.#opened.clear();
  }
}

export const aName = (kind: string): string => `${kind}-${randomBytes(5).toString('hex')}`;

export const aTemplateOf = ({ image }: RunningService, more: object = {}): object => ({
  containers: [{ name: 'main', image, resources: { limits: { cpu: '100m', memory: '64Mi' } } }],
  endpoints: [{ name: 'web', port: 8080 }],
  ...more,
});

/** As `crdJson` takes it. */
export const templateDocument = (
  name: string,
  service: RunningService,
  more: object = {},
): string =>
  JSON.stringify({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name },
    spec: { description: 'made over REST', ...aTemplateOf(service), ...more },
  });

const statusOf = async (
  ask: () => HttpClient,
  pool: string,
): Promise<Readonly<Record<string, unknown>>> =>
  ((await ask().get(`/sandboxpools/${pool}`)).json.template?.['status'] ?? {}) as Readonly<
    Record<string, unknown>
  >;

/** Resolves once the pool has so many idle instances. */
export const filled = (ask: () => HttpClient, pool: string, count: number): Promise<void> =>
  eventually(async () => {
    const status = await statusOf(ask, pool);
    return status['idleReplicas'] === count && status['startingReplicas'] === 0;
  }, `${pool} has ${count} idle`);

export const aPoolOf = async (ask: () => HttpClient, pool: string, more: object): Promise<void> => {
  const headers = createdOnce();
  await untilAnswered(201, () => ask().post('/sandboxpools', { name: pool, ...more }, { headers }));
};

export const claimedFrom = async (ask: () => HttpClient, pool: string): Promise<string> => {
  const headers = createdOnce();
  const claim = () => ask().post('/sandboxes', { poolName: pool }, { headers });
  return (await untilAnswered(201, claim)).json.sandbox?.['sandboxId'] ?? '';
};
