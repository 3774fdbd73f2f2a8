import { Readable } from 'node:stream';
import type { ApprovalRecord } from '../../model/approvals/approval.ts';
import { Refusal } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';
import type { Route, RouteRequest } from '../router/route.ts';

type Json = Readonly<Record<string, unknown>>;

/**
 * Finds what the API answers, to who asked, for a GET of the path that a request is about: what the
 * request would change. Undefined where there is no such GET, or it is refused.
 */
export const currentState =
  (routes: readonly Route[]) =>
  async (record: ApprovalRecord): Promise<Json | undefined> => {
    const found = routes
      .filter(({ method, bodyAs, onlyAs }) => method === 'GET' && !bodyAs && !onlyAs)
      .flatMap((row) => {
        const given = paramsOf(row.path, record.path);
        return given ? [{ row, given }] : [];
      })[0];
    if (!found || found.row.waits === true) return undefined;
    const { row, given } = found;
    const params = row.params?.schema.safeParse(given);
    const query = row.query?.safeParse({});
    if (params?.success === false || query?.success === false) return undefined;
    try {
      const { body } = await row.handle(askedBy(record, params?.data, query?.data));
      return JSON.parse(JSON.stringify(body)) as Json;
    } catch (error) {
      if (error instanceof Refusal) return undefined;
      throw error;
    }
  };

const askedBy = (
  { principal, namespace }: ApprovalRecord,
  params: unknown,
  query: unknown,
): Parameters<Route['handle']>[0] => {
  const { keyId, team, user, role } = principal;
  const caller: Caller = { keyId, team, user, role, namespace };
  const request: RouteRequest<'tenant', unknown, unknown, unknown> = {
    caller,
    params,
    query,
    session: undefined,
    body: undefined,
    base: () => '',
    signal: () => new AbortController().signal,
    room: () => {
      throw new Error('what is read for a page is no answer to a client');
    },
    localPool: (name) => name,
    ifMatch: undefined,
    header: () => undefined,
    accepts: (first) => first,
    content: () => Readable.from([]),
    step: undefined,
    waitMs: undefined,
    mark: undefined,
    opening: undefined,
    seed: undefined,
  };
  return request;
};

/** Finds what stands in a path for each of a pattern's `{…}`; undefined where it does not fit. */
const paramsOf = (pattern: string, path: string): Record<string, string> | undefined => {
  const [parts, given] = [pattern.split('/'), path.split('/')];
  if (parts.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [at, part] of parts.entries()) {
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    if (name !== undefined) params[name] = decoded(given[at] ?? '');
    else if (part !== given[at]) return undefined;
  }
  return params;
};

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** One field that a request sets. */
export interface FieldChange {
  /** `overrides.image` */
  readonly field: string;
  /** As JSON; undefined where it is not set now, or not known. */
  readonly before: string | undefined;
  readonly after: string;
}

/** Fields of one body that are listed; the rest is in the request alone. */
const MOST_FIELDS = 500;

export interface FieldChanges {
  readonly shown: readonly FieldChange[];
  /** How many fields it sets besides. */
  readonly more: number;
}

/**
 * Lists what a body sets, field by field, with what is there now, of 500 fields at most; undefined
 * for no object.
 */
export const changesOf = (body: unknown, current: Json | undefined): FieldChanges | undefined => {
  if (!isObject(body)) return undefined;
  const leaves = leavesOf(body, []);
  const places = placesOf(current);
  const shown = leaves.slice(0, MOST_FIELDS).map(({ path, value }) => {
    const before = places.map((place) => valueAt(place, path)).find((found) => found !== undefined);
    return {
      field: path.join('.'),
      before: before === undefined ? undefined : JSON.stringify(before),
      after: JSON.stringify(value),
    };
  });
  return { shown, more: leaves.length - shown.length };
};

/** The parts of an answer in which a request's fields may be found under their own names. */
const placesOf = (answer: Json | undefined): readonly Json[] => {
  const inner = Object.entries(answer ?? {}).flatMap(([name, value]) =>
    isObject(value) ? [{ name, value }] : [],
  );
  const all = inner.flatMap(({ value }) =>
    [value, value['spec'], at(value, 'status', 'template')].filter(isObject),
  );
  const editable = inner.filter(({ name }) => name === 'editable').map(({ value }) => value);
  return [...editable, ...all, ...(answer ? [answer] : [])];
};

/** How many sandboxes run in what a path names; undefined where that is nothing that has any. */
export const runningIn = (answer: Json | undefined): number | undefined => {
  for (const value of Object.values(answer ?? {})) {
    if (!isObject(value)) continue;
    const running = at(value, 'status', 'runningReplicas');
    if (typeof running === 'number') return running;
    if (typeof value['status'] === 'string' && typeof value['sandboxId'] === 'string')
      return value['status'] === 'Running' ? 1 : 0;
  }
  return undefined;
};

const leavesOf = (
  value: Json,
  path: readonly string[],
): readonly { readonly path: readonly string[]; readonly value: unknown }[] =>
  Object.entries(value).flatMap(([name, inner]) =>
    isObject(inner) && Object.keys(inner).length > 0 && path.length < 8
      ? leavesOf(inner, [...path, name])
      : [{ path: [...path, name], value: inner }],
  );

const valueAt = (place: Json, path: readonly string[]): unknown => at(place, ...path);

const at = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (inner, name) => (isObject(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined),
    value,
  );

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
