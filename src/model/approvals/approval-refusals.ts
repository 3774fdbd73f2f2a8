import { Refusal } from '../refusals.ts';

export interface AskedApproval {
  readonly id: string;
  readonly operation: string;
  readonly summary: string;
  readonly expiresAt: number;
}

export const approvalRequired = ({ id, operation, summary, expiresAt }: AskedApproval): Refusal =>
  new Refusal('APPROVAL_REQUIRED', 'a person must approve this request first', {
    detail: {
      approvalId: id,
      operation,
      summary,
      expiresAt: new Date(expiresAt).toISOString(),
      hint: `nothing was done; an operator decides in the console, at /console/approvals; ${THEN}`,
    },
  });

const THEN =
  'once approved, repeat the identical request with the same key, or send it with ' +
  '?waitApprovalSeconds=300 to wait';

/** The console of the forwarding cluster does not know this approval. */
export const decidedThere = (body: object, clusterId: string): object => {
  const { errorCode, detail } = body as Readonly<Record<string, unknown>>;
  if (errorCode !== 'APPROVAL_REQUIRED' && errorCode !== 'APPROVAL_DENIED') return body;
  const isHeld = errorCode === 'APPROVAL_REQUIRED';
  const said = typeof detail === 'object' && detail !== null ? detail : {};
  const hint = isHeld
    ? `nothing was done; a rule of the cluster ${clusterId} holds it: an operator of that ` +
      `cluster decides, in its own console, at /console/approvals; ${THEN}`
    : `a rule of the cluster ${clusterId} denies it`;
  return { ...body, detail: { ...said, clusterID: clusterId, hint } };
};

/** `id` is undefined if a rule denies such requests. */
export const approvalDenied = (
  denied: { readonly id: string; readonly reason: string | undefined } | undefined,
): Refusal =>
  denied
    ? new Refusal('APPROVAL_DENIED', 'this request was denied', {
        detail: {
          approvalId: denied.id,
          ...(denied.reason === undefined ? {} : { reason: denied.reason }),
          hint: 'the request can be sent again later, or changed',
        },
      })
    : new Refusal(
        'APPROVAL_DENIED',
        'the policy of this deployment denies such requests; no approval can allow them',
        { detail: { hint: '`sandpool approvals explain` shows the rule' } },
      );

/** A connection, or a call of another protocol, can't wait. */
export const heldOneByOne = (operation: string): Refusal =>
  new Refusal('APPROVAL_DENIED', `a rule requires a person to approve ${operation}`, {
    detail: { hint: 'a connection cannot wait for approval; send single requests to the REST API' },
  });

export const consoleSessionRequired = (): Refusal =>
  new Refusal(
    'CONSOLE_SESSION_REQUIRED',
    'approvals are decided in a console session, never with an API key',
    { detail: { hint: 'log in at /console as an operator' } },
  );

export const mayNotDecide = (): Refusal =>
  new Refusal('FORBIDDEN', 'this session may not decide approvals; log in as an operator');

export const logInAgain = (): Refusal =>
  new Refusal('FORBIDDEN', 'log in again to decide: it is more than 15 minutes since you did');

export const ownApproval = (): Refusal =>
  new Refusal(
    'FORBIDDEN',
    'you sent this request, with your own key or a key that it created; another operator ' +
      'must decide',
  );

export const alreadyDecided = (status: string): Refusal =>
  new Refusal('ALREADY_DECIDED', 'this approval was decided, and decisions are final', {
    detail: { status },
  });

export const approvalNotFound = (): Refusal =>
  new Refusal('APPROVAL_NOT_FOUND', 'approval not found');

export const tooManyPending = (limit: number): Refusal =>
  new Refusal(
    'RATE_LIMITED',
    `${limit} of your requests wait for approval, which is the maximum; wait for a decision`,
    { retryAfter: 30 },
  );

export const tooManyOpen = (): Refusal =>
  new Refusal('UNAVAILABLE', 'too many requests wait for approval; try again later', {
    retryAfter: 30,
  });

export const tooManyWait = (limit: number): Refusal =>
  new Refusal(
    'TOO_MANY_WAITING',
    `${limit} of your requests are already waiting for a decision; send this one without ` +
      'waitApprovalSeconds',
    { retryAfter: 5 },
  );

export const tooLargeToApprove = (limit: number): Refusal =>
  new Refusal(
    'PAYLOAD_TOO_LARGE',
    `a request that needs approval can have a body of at most ${limit} bytes`,
  );

/** Another object has the approval's name now. */
export const madeAnew = (): Refusal =>
  new Refusal(
    'CONFLICT',
    'the resource was recreated while the request waited for approval; nothing was done. ' +
      'Send the request again',
  );

export const sessionOver = (id: string): Refusal =>
  new Refusal('CONFLICT', 'the approval for this session has ended; send the request again', {
    detail: { approvalId: id },
  });

export class ApprovalUsed extends Refusal {
  constructor(id: string) {
    super(
      'CONFLICT',
      'the approval was just used; check the result before you send the request again',
      { detail: { approvalId: id } },
    );
  }
}

/** The first effect may already have ended. */
export class EffectIsOver extends Refusal {
  constructor() {
    super(
      'CONFLICT',
      'the approved request was carried out, and its result is gone; nothing was done ' +
        'again. Send the request again for a new approval',
      { detail: { outcome: IS_OVER } },
    );
  }
}

export const IS_OVER = 'over';
