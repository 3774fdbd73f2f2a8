import type { IncomingMessage } from 'node:http';
import { badHandshake, foreignOrigin } from './refusals.ts';
import { handshakeProblem, originAllowed, targetOf } from './request.ts';
import { withoutBase } from '../limits/request-head.ts';
import { localName } from '../corridor/local-names.ts';
import { readQuery } from '../corridor/query.ts';
import { check } from '../corridor/validation.ts';
import { OutputQuery, ProcessPath } from '../resources/processes/schema.ts';

export interface ProcessAsk {
  readonly sandboxId: string;
  readonly processId: string;
  readonly from: string | undefined;
  readonly pace: boolean;
}

const PATH = /^\/sandboxes\/([^/]+)\/processes\/([^/]+)\/output$/;

/** Undefined if the path is not a process's output. */
export const processTarget = (
  url: string,
): { readonly sandboxId: string; readonly processId: string } | undefined => {
  const [, sandboxId, processId] = PATH.exec(withoutBase(targetOf(url).path)) ?? [];
  return sandboxId === undefined || processId === undefined
    ? undefined
    : { sandboxId: decoded(sandboxId), processId: decoded(processId) };
};

/** A malformed escape matches no id. */
const decoded = (segment: string): string => {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
};

/** Refuses an invalid handshake, and pages of other origins. */
export const requireHandshake = (
  request: IncomingMessage,
  allowedOrigins: readonly string[],
): void => {
  if (!originAllowed(request, allowedOrigins)) throw foreignOrigin();
  const problem = handshakeProblem(request);
  if (problem !== undefined) throw badHandshake(problem);
};

/** Validates by the rules of `followProcess`. Throws a Refusal. */
export const readProcessRequest = (request: IncomingMessage, clusterId: string): ProcessAsk => {
  const url = request.url ?? '';
  const target = processTarget(url) ?? { sandboxId: '', processId: '' };
  const field = { clusterId, field: 'sandboxId' };
  const local = { ...target, sandboxId: localName('sandbox', target.sandboxId, field) };
  const params = ProcessPath.schema.safeParse(local);
  if (!params.success) throw ProcessPath.otherwise(local);
  const { from, pace = false } = check(
    OutputQuery.pick({ from: true, pace: true }),
    readQuery(targetOf(url).query),
  );
  return { ...params.data, from, pace };
};
