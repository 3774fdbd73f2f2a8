import type { HttpAnswer, HttpAsk, HttpClient } from '../harness/http-client.ts';
import { asRest, sdkRequestOf } from './by-sdk.ts';
import type { Answer, Asked, Call, ClaimAsked, ExecAsked, Moment } from './history.ts';
import { ENV_LABEL } from './stored-objects.ts';

/** Then the answer is unknown. */
const ANSWER_MS = 8_000;

export interface Reached {
  client(user: string): HttpClient;
  /** The port for E2B's SDKs; undefined if the user does not use it. */
  compatible?(user: string): HttpClient | undefined;
}

export class Recorder {
  readonly calls: Call[] = [];
  /** Answers that no replica may give, such as undocumented ones. */
  readonly strange: string[] = [];
  readonly #replicas: readonly Reached[];
  readonly #now: () => Moment;

  constructor(replicas: readonly Reached[], now: () => Moment) {
    [this.#replicas, this.#now] = [replicas, now];
  }

  /** Undefined if the answer is unknown. `headers` belong to the decider's session. */
  async send(
    user: string,
    replica: number,
    asked: Asked,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<HttpAnswer | undefined> {
    const invoked = this.#now();
    const request = isItsTurn(asked, this.calls.length) ? sdkRequestOf(asked) : undefined;
    const client = request && this.#replicas[replica]?.compatible?.(user);
    let answer: HttpAnswer | undefined;
    try {
      const reached = this.#replicas[replica];
      if (!reached) throw new Error(`there is no replica ${replica}`);
      const signal = AbortSignal.timeout(ANSWER_MS);
      answer =
        request && client
          ? asRest(
              asked,
              await client.send(request.method, request.path, { ...request.ask, signal }),
            )
          : await byRest(reached.client(user), asked, { headers, signal });
    } catch (error) {
      if (!isCutOff(error))
        this.strange.push(
          `${JSON.stringify(asked)} at replica ${replica}: ${String(error).slice(0, 1_000)}`,
        );
    }
    this.calls.push({
      user,
      replica,
      asked,
      invoked,
      completed: this.#now(),
      ...(answer ? { answer: answerOf(answer) } : {}),
      bySdk: client ? true : undefined,
    });
    return answer;
  }
}

/** Every second request; repetitions use the same port. */
const isItsTurn = (asked: Asked, count: number): boolean =>
  asked.what === 'claim' && asked.key !== undefined
    ? /[02468ace]$/.test(asked.key)
    : count % 2 === 0;

const byRest = async (
  client: HttpClient,
  asked: Asked,
  { headers, signal }: { readonly headers: HttpAsk['headers']; readonly signal: AbortSignal },
): Promise<HttpAnswer> => {
  const [method, path, ask] = requestOf(asked, signal);
  return await client.send(method, path, { ...ask, headers: { ...ask?.headers, ...headers } });
};

type Request = Parameters<HttpClient['send']>;

const requestOf = (asked: Asked, signal: AbortSignal): Request => {
  switch (asked.what) {
    case 'claim':
      return ['POST', `/sandboxes${waitOf(asked)}`, { ...claimOf(asked), signal }];
    case 'get':
      return ['GET', `/sandboxes/${asked.id}`, { signal }];
    case 'exec':
      return ['POST', `/sandboxes/${asked.id}/exec`, { body: commandOf(asked), signal }];
    case 'delete':
      return ['DELETE', `/sandboxes/${asked.id}${waitOf(asked)}`, { signal }];
    case 'decide':
      return [
        'POST',
        `/approvals/${asked.approval}/decision`,
        { body: { decision: asked.decision }, signal },
      ];
    case 'create-pool':
      return [
        'POST',
        '/sandboxpools',
        {
          body: { name: asked.pool, templateName: POOL_TEMPLATE, replicas: asked.replicas ?? 1 },
          signal,
        },
      ];
    case 'resize-pool':
      return ['PUT', `/sandboxpools/${asked.pool}`, { body: { replicas: asked.replicas }, signal }];
    case 'delete-pool':
      return ['DELETE', `/sandboxpools/${asked.pool}${asked.force ? '?force' : ''}`, { signal }];
    case 'get-pool':
      return ['GET', `/sandboxpools/${asked.pool}`, { signal }];
    case 'create-env':
      return [
        'POST',
        '/envs',
        { body: { name: asked.env, templateRef: { name: POOL_TEMPLATE } }, signal },
      ];
    case 'get-env':
      return ['GET', `/envs/${asked.env}`, { signal }];
    case 'label-env':
      return [
        'PATCH',
        `/envs/${asked.env}`,
        { body: { labels: { [ENV_LABEL]: asked.label } }, signal },
      ];
    case 'delete-env':
      return ['DELETE', `/envs/${asked.env}`, { signal }];
    case 'add-member':
      return [
        'POST',
        `/envs/${asked.env}/sandboxpools`,
        {
          body: { name: asked.pool, minReplicas: asked.least, maxReplicas: MOST_OF_MEMBER },
          signal,
        },
      ];
    case 'size-group':
      return [
        'PUT',
        `/envs/${asked.env}/autoscaling/groups/${asked.pool}`,
        { body: { minReplicas: asked.least }, signal },
      ];
  }
};

const waitOf = ({ approvalSeconds }: { readonly approvalSeconds?: number }): string =>
  approvalSeconds === undefined ? '' : `?waitApprovalSeconds=${approvalSeconds}`;

const claimOf = ({
  pool,
  key,
  waitSeconds,
  idleSeconds,
  name,
}: ClaimAsked): { readonly body: object; readonly headers?: Readonly<Record<string, string>> } => ({
  body: {
    poolName: pool,
    waitTimeoutSeconds: waitSeconds,
    idleTimeout: idleSeconds === undefined ? undefined : `${idleSeconds}s`,
    metadata: name === undefined ? undefined : { name },
  },
  headers: key === undefined ? undefined : { 'Idempotency-Key': key },
});

/** The time limit exceeds what a request may take. */
const commandOf = ({ id, seconds, command = `echo ${id}` }: ExecAsked): object => ({
  command: seconds === undefined ? command : `sleep ${seconds}`,
  timeoutSeconds: 10,
});

export const MOST_OF_MEMBER = 4;

export const POOL_TEMPLATE = 'chaos';

const answerOf = ({ status, json }: HttpAnswer): Answer => {
  const id = json.sandbox?.['sandboxId'];
  const shows = json.sandbox?.['status'] ?? phaseOf(json.template);
  const approval = json.detail?.['approvalId'];
  return {
    status,
    errorCode: json.errorCode,
    approval: typeof approval === 'string' ? approval : undefined,
    id,
    shows,
  };
};

const phaseOf = (template: Readonly<Record<string, unknown>> | undefined): string | undefined => {
  const { status } = (template ?? {}) as { readonly status?: { readonly phase?: string } };
  return status?.phase;
};

/** The link failed, or time ran out. */
const isCutOff = (error: unknown): boolean =>
  error instanceof Error &&
  (error.name === 'AbortError' ||
    error.name === 'TimeoutError' ||
    ('code' in error && typeof error.code === 'string' && /^E[A-Z]+$/.test(error.code)));
