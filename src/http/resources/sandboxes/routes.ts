import { poolNameRequired, invalidArgument } from '../../../model/refusals.ts';
import type { Operations } from '../../../services/operations.ts';
import { refuseAdminFields } from '../../corridor/admin-fields.ts';
import { presentPage } from '../present-page.ts';
import {
  presentSandbox,
  presentSandboxDeletion,
  presentSandboxDetail,
  presentSandboxReadiness,
  presentSandboxRecord,
} from './presenter.ts';
import {
  created,
  DEPRECATED_SINCE,
  ok,
  route,
  versioned,
  type Route,
} from '../../corridor/route.ts';
import {
  SandboxDeletion,
  SandboxDetailEnvelope,
  SandboxEnvelope,
  SandboxListQuery,
  SandboxPage,
  SandboxPath,
  SandboxReadinessReport,
} from './schema.ts';
import { ClaimBody, type ClaimFileBody } from './claim-schema.ts';
import { MOST_FILE_BYTES, type ClaimFile } from '../../../model/claim-terms.ts';
import { filePathOf } from '../../../model/file-path.ts';

export const sandboxRoutes = (operations: Operations): readonly Route[] => [
  claimSandbox(operations),
  listSandboxes(operations),
  getSandbox(operations),
  isReady(operations),
  deleteSandbox(operations),
];

const claimSandbox = (operations: Operations): Route =>
  route({
    operationId: 'claimSandbox',
    method: 'POST',
    path: '/sandboxes',
    access: 'tenant',
    summary: 'Claim an idle instance of a pool',
    body: ClaimBody,
    rules: { also: ({ body: { files = [] } }) => (files.length > 0 ? ['writeFile'] : []) },
    answers: { 201: SandboxEnvelope },
    refusals: [
      'POOL_NOT_FOUND',
      'CLUSTER_NOT_FOUND',
      'CLUSTER_UNAVAILABLE',
      'POOL_NOT_OWNED',
      'CONFLICT',
      'POOL_EXHAUSTED',
      'TOO_MANY_WAITING',
      'QUOTA_EXCEEDED',
      'UNAVAILABLE',
      // Refusals of the claim's files.
      'FILE_NOT_FOUND',
      'FORBIDDEN',
      'NO_SPACE',
      'FEATURE_DISABLED',
      'SANDBOX_NOT_RUNNING',
    ],
    effect: { kind: 'opened', pending: (mark) => operations.pendingClaim(mark) },
    waits: (request) => claimWaitMs(request) > 0,
    handle: async (asked) => {
      const { caller, body, keyed, step, localPool, signal } = asked;
      const { poolName, idleTimeout, env, metadata, files = [], autoResume = false } = body;
      if (!poolName) throw poolNameRequired();
      const waitMs = claimWaitMs(asked);
      const request = {
        poolName: localPool(poolName),
        waitMs,
        idleTimeoutMs: idleTimeout === null ? 0 : idleTimeout,
        autoResume: autoResume || undefined,
        env: env && Object.keys(env).length > 0 ? env : undefined,
        metadata: metadata && Object.keys(metadata).length > 0 ? metadata : undefined,
        files: files.length > 0 ? claimFilesOf(files) : undefined,
        opening: keyed?.opening,
        step,
      };
      return created({
        sandbox: presentSandbox(
          await operations.claimSandbox(caller, request, waitMs > 0 ? signal() : undefined),
        ),
      });
    },
  });

const listSandboxes = (operations: Operations): Route =>
  route({
    operationId: 'listSandboxes',
    method: 'GET',
    path: '/sandboxes',
    access: 'tenant',
    summary: 'List sandboxes, newest claim first',
    query: SandboxListQuery,
    answers: { 200: SandboxPage },
    refusals: ['ADMIN_REQUIRED', 'CLUSTER_NOT_FOUND', 'CLUSTER_UNAVAILABLE'],
    handle: async ({ caller, query, localPool }) => {
      const { limit, offset, poolName, clusterID: _here, ...rest } = query;
      const filter = {
        ...rest,
        ...(poolName === undefined ? {} : { poolName: localPool(poolName) }),
      };
      refuseAdminFields(caller, filter, ['namespace', 'team', 'user', 'all']);
      return ok(
        presentPage(
          await operations.listSandboxes(caller, filter, { limit, offset }),
          presentSandboxRecord,
        ),
      );
    },
  });

const getSandbox = (operations: Operations): Route =>
  route({
    operationId: 'getSandbox',
    method: 'GET',
    path: '/sandboxes/{sandboxId}',
    access: 'tenant',
    summary: 'Get a sandbox',
    params: SandboxPath,
    answers: { 200: SandboxDetailEnvelope },
    versioned: true,
    refusals: ['SANDBOX_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ caller, params, incoming: { base } }) => {
      const view = await operations.getSandbox(caller, params.sandboxId);
      return versioned(ok({ sandbox: presentSandboxDetail(view, base()) }), view.revision);
    },
  });

const isReady = (operations: Operations): Route =>
  route({
    operationId: 'isReady',
    method: 'GET',
    path: '/sandboxes/{sandboxId}/is_ready',
    access: 'tenant',
    summary: 'Run the readiness probes of a sandbox',
    params: SandboxPath,
    answers: { 200: SandboxReadinessReport, 503: SandboxReadinessReport },
    refusals: ['SANDBOX_NOT_FOUND'],
    deprecated: { since: DEPRECATED_SINCE, method: 'GET', successor: '/sandboxes/{sandboxId}' },
    handle: async ({ caller, params }) => {
      const body = presentSandboxReadiness(await operations.isReady(caller, params.sandboxId));
      return body.ready ? ok(body) : { status: 503, body };
    },
  });

const deleteSandbox = (operations: Operations): Route =>
  route({
    operationId: 'deleteSandbox',
    method: 'DELETE',
    path: '/sandboxes/{sandboxId}',
    access: 'tenant',
    summary: 'Delete a sandbox',
    params: SandboxPath,
    answers: { 200: SandboxDeletion },
    refusals: ['SANDBOX_NOT_FOUND', 'CONFLICT', 'UNAVAILABLE'],
    effect: { kind: 'repeatable' },
    handle: async ({ caller, params }) =>
      ok(presentSandboxDeletion(await operations.deleteSandbox(caller, params.sandboxId))),
  });

const claimWaitMs = ({
  body: { waitTimeoutSeconds = 0 },
  waitMs = waitTimeoutSeconds * 1_000,
}: {
  readonly body: { readonly waitTimeoutSeconds?: number };
  readonly waitMs: number | undefined;
}): number => waitMs;

/** Refuses, by field, invalid paths and base64, repeated files, and more than 256 KiB in total. */
const claimFilesOf = (given: readonly ClaimFileBody[]): readonly ClaimFile[] => {
  const named = new Map<string, number>();
  let bytes = 0;
  return given.map(({ path: written, content: text, encoding, mode }, index) => {
    const path = filePathOf(`files[${index}].path`, written);
    const name = nameOf(path);
    const other = named.get(name);
    if (other !== undefined)
      throw invalidArgument(`files[${index}].path`, `names the same file as files[${other}].path`);
    named.set(name, index);
    const content = Buffer.from(text, encoding ?? 'utf8');
    if (encoding === 'base64' && content.toString('base64') !== text)
      throw invalidArgument(`files[${index}].content`, 'is not base64');
    bytes += content.length;
    if (bytes > MOST_FILE_BYTES)
      throw invalidArgument('files', `must have at most ${MOST_FILE_BYTES} bytes together`);
    return { path, content, ...(mode === undefined ? {} : { mode }) };
  });
};

/** `/a/./b` and `/a//b` are the same file. */
const nameOf = (path: Buffer): string =>
  path
    .toString('latin1')
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');
