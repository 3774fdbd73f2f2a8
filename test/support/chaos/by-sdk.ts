import { instanceIdOf } from '../../../src/http/e2b/sandbox-id.ts';
import { idempotencyInFlight, sandboxNotFound, type Refusal } from '../../../src/model/refusals.ts';
import type { HttpAnswer, HttpAsk } from '../harness/http-client.ts';
import type { Asked, ClaimAsked } from './history.ts';

export interface SdkRequest {
  readonly method: string;
  readonly path: string;
  readonly ask: HttpAsk;
}

/** Longer than a run. */
const LIFETIME_SECONDS = 86_400;

/** Undefined if only the REST API has such a request. */
export const sdkRequestOf = (asked: Asked): SdkRequest | undefined => {
  switch (asked.what) {
    case 'claim':
      return isPlain(asked) ? claimOf(asked) : undefined;
    case 'get':
      return { method: 'GET', path: pathOf(asked.id), ask: {} };
    case 'delete':
      return asked.approvalSeconds === undefined
        ? { method: 'DELETE', path: pathOf(asked.id), ask: {} }
        : undefined;
    default:
      return undefined;
  }
};

const isPlain = ({ waitSeconds, idleSeconds, name, approvalSeconds }: ClaimAsked): boolean =>
  [waitSeconds, idleSeconds, name, approvalSeconds].every((said) => said === undefined);

const claimOf = ({ pool, key }: ClaimAsked): SdkRequest => ({
  method: 'POST',
  path: '/v2/sandboxes',
  ask: {
    body: { templateID: pool, timeout: LIFETIME_SECONDS },
    headers: key === undefined ? undefined : { 'Idempotency-Key': key },
  },
});

const pathOf = (id: string): string => `/sandboxes/${id.replaceAll('-', '')}`;

/** That API has the refusals' messages, without codes. */
const REFUSALS: readonly Refusal[] = [sandboxNotFound(), idempotencyInFlight()];
const CODES: readonly (readonly [string, string])[] = [
  ['no idle pods available in pool', 'POOL_EXHAUSTED'],
  ['scale failed', 'QUOTA_EXCEEDED'],
  ...REFUSALS.map(({ message, code }) => [message, code] as const),
];

export const asRest = ({ what }: Asked, answer: HttpAnswer): HttpAnswer => {
  const { sandboxID, message, state } = JSON.parse(answer.text || '{}') as {
    readonly sandboxID?: string;
    readonly message?: string;
    readonly state?: string;
  };
  const id = sandboxID === undefined ? undefined : instanceIdOf(sandboxID);
  const [, errorCode] = CODES.find(([text]) => message?.startsWith(text)) ?? [];
  const isShown = what === 'claim' || state === 'running';
  return {
    ...answer,
    status: answer.status === 204 ? 200 : answer.status,
    json: {
      ...(message === undefined ? {} : { error: message }),
      ...(errorCode === undefined ? {} : { errorCode }),
      ...(id === undefined
        ? {}
        : { sandbox: { sandboxId: id, status: isShown ? 'Running' : 'Paused' } }),
    },
  };
};
