import { ApiError, ConnectionFailed } from '../client/api-error.ts';
import { exhaustedHints } from './exhausted-hints.ts';
import { printable } from './printable.ts';

/** `hints` say what to do, one line each. */
export class CliFailure extends Error {
  override readonly name = 'CliFailure';
  readonly hints: readonly string[];

  constructor(message: string, hints: readonly string[] = [], options?: ErrorOptions) {
    super(message, options);
    this.hints = hints;
  }
}

export const START_HINT = 'start a daemon with script/server, or with: sandpool serve';

/** One line about what went wrong, then what to do. */
export const explain = (error: unknown): readonly string[] => {
  if (error instanceof CliFailure) return [error.message, ...error.hints];
  if (error instanceof ConnectionFailed) return [error.message, ...connectionHints(error)];
  if (error instanceof ApiError) return [apiMessage(error), ...apiHints(error)];
  return [error instanceof Error ? error.message : String(error)];
};

const connectionHints = ({ code }: ConnectionFailed): readonly string[] => {
  if (code === 'ECONNREFUSED') return [`no daemon is listening there; ${START_HINT}`];
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return ['check the name in --server or SANDPOOL_SERVER'];
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return ['name the daemon in --server by a name in its certificate'];
  if (/CERT|VERIFY/.test(code))
    return ['if your own authority signed its certificate: NODE_EXTRA_CA_CERTS=CA_FILE sandpool …'];
  if (code === 'DEADLINE') return ['the daemon is busy or stuck; see its log'];
  return [];
};

const apiMessage = (error: ApiError): string => {
  const code = error.errorCode === undefined ? '' : ` (${error.errorCode})`;
  const request =
    error.status >= 500 && error.requestId !== undefined ? `, request ${error.requestId}` : '';
  return `${ownMessage(error) ?? error.message}${code}${request}`;
};

/** The command line speaks of sandboxes, not pods. */
const ownMessage = ({ errorCode, detail }: ApiError): string | undefined => {
  if (errorCode !== 'POOL_EXHAUSTED' && errorCode !== 'POOL_NOT_FOUND') return undefined;
  const name = poolIn(detail);
  const pool = name === undefined ? 'the pool' : `pool ${name}`;
  return errorCode === 'POOL_EXHAUSTED' ? `${pool} has no idle sandbox` : `${pool} not found`;
};

const apiHints = ({ errorCode = '', detail = {} }: ApiError): readonly string[] => {
  if (errorCode === 'POOL_EXHAUSTED') return exhaustedHints(detail);
  const isOfApproval = typeof detail['approvalId'] === 'string';
  if (errorCode === 'APPROVAL_REQUIRED' && isOfApproval) return approvalHints(detail);
  if (errorCode === 'APPROVAL_DENIED' && isOfApproval) return denialHints(detail);
  const names = namesOf(detail['availablePools'] ?? detail['availableTemplates']);
  const pools = namesOf(detail['pools']);
  const hints = [
    ...(pools.length > 0 ? [`its pools: ${pools.join(', ')}`] : []),
    ...(OWN_HINTS[errorCode] ?? []),
    ...(names.length > 0 ? [`available: ${names.join(', ')}`] : []),
    ...(errorCode === 'POOL_NOT_FOUND' ? unknownPoolHints(detail) : []),
    ...failuresOf(detail['failed']),
    ...(errorCode === 'CONFLICT' ? memberHints(detail) : []),
    ...textsOf(detail['message']),
  ];
  return hints.length > 0 ? hints : textsOf(detail['hint']);
};

const textsOf = (value: unknown): readonly string[] => (typeof value === 'string' ? [value] : []);

const unknownPoolHints = (detail: ApiError['detail']): readonly string[] => [
  'list your pools: sandpool pools list',
  `or create it: sandpool pools create ${poolIn(detail) ?? 'NAME'} --template TEMPLATE`,
];

/** Changes of a member's pool go through its env. */
const memberHints = ({ env, member }: Readonly<Record<string, unknown>>): readonly string[] =>
  typeof env !== 'string'
    ? []
    : ['update', 'remove'].map(
        (verb) =>
          `${verb} it there: sandpool envs members ${verb} ${env} ` +
          `${typeof member === 'string' ? member : 'MEMBER'}`,
      );

const approvalHints = ({
  approvalId,
  summary,
  expiresAt,
  clusterID,
}: Readonly<Record<string, unknown>>): readonly string[] => [
  String(summary),
  `an operator can decide until ${String(expiresAt)}, in the console of ` +
    `${typeof clusterID === 'string' ? `the cluster ${clusterID}` : 'the daemon'} at ` +
    `/console/approvals/${String(approvalId)}`,
  'then repeat the command, or wait for the decision with --wait-approval',
];

/** With the operator's reason, if any. */
const denialHints = ({
  approvalId,
  reason,
}: Readonly<Record<string, unknown>>): readonly string[] => [
  ...(typeof reason === 'string' ? [`reason: ${printable(reason)}`] : []),
  `see who denied it: sandpool approvals get ${String(approvalId)}`,
];

const poolIn = (detail: ApiError['detail']): string | undefined =>
  typeof detail?.['poolName'] === 'string' ? printable(detail['poolName']) : undefined;

/** Hints in terms of the command line; the service's own hints name its API. */
const OWN_HINTS: Readonly<Record<string, readonly string[]>> = {
  INVALID_API_KEY: [
    'name another key with --key-file FILE, SANDPOOL_API_KEY_FILE or SANDPOOL_API_KEY',
  ],
  API_KEY_REQUIRED: ['name a key with --key-file FILE, SANDPOOL_API_KEY_FILE or SANDPOOL_API_KEY'],
  ADMIN_REQUIRED: ['use the admin key: --admin, or --key-file FILE'],
  QUOTA_EXCEEDED: [
    'see your usage and limits: sandpool quotas',
    'an admin can raise it: sandpool quotas set TEAM USER --admin',
  ],
  ENV_NOT_FOUND: ['list the envs: sandpool envs list'],
  ENV_MEMBER_NOT_FOUND: ['list the members: sandpool envs members list ENV'],
  AUTOSCALING_GROUP_NOT_FOUND: ['list the groups: sandpool envs groups list ENV'],
  ENV_HAS_RUNNING_SANDBOXES: ['end them too: sandpool envs delete ENV --force'],
  ENV_SYNC_PARTIAL: ['synced members stay synced; sync the others: sandpool envs sync ENV'],
  TEMPLATE_IN_USE: [
    'delete these pools, or give them another template: sandpool pools update POOL ' +
      '--template TEMPLATE',
  ],
  SANDBOX_TEMPLATE_NOT_FOUND: ['list the templates: sandpool templates list'],
  SANDBOX_NOT_FOUND: [
    'list recently finished sandboxes: sandpool sandboxes list --phase Completed',
  ],
  POOL_NOT_OWNED: ['create your own pool: sandpool pools create NAME --template TEMPLATE'],
};

const failuresOf = (failed: unknown): readonly string[] =>
  Array.isArray(failed)
    ? failed.flatMap((one: unknown) =>
        typeof one === 'object' && one !== null && 'member' in one && 'error' in one
          ? [`${String(one.member)}: ${String(one.error)}`]
          : [],
      )
    : [];

const namesOf = (choices: unknown): readonly string[] =>
  Array.isArray(choices)
    ? choices.flatMap((choice: unknown) =>
        typeof choice === 'object' &&
        choice !== null &&
        'name' in choice &&
        typeof choice.name === 'string'
          ? [choice.name]
          : [],
      )
    : [];
