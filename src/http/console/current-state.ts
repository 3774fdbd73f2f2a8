import { Readable } from 'node:stream';
import { parse } from 'yaml';
import type { ApprovalRecord } from '../../model/approvals/approval.ts';
import { Refusal } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';
import { QUOTA_RESOURCES } from '../../model/pools/quota.ts';
import type { Route, RouteRequest } from '../corridor/route.ts';

type Json = Readonly<Record<string, unknown>>;

/**
 * Reads the target's state with the requester's rights, through the API's GET. Undefined without
 * such a GET, or if it is refused.
 */
export const currentState =
  (routes: readonly Route[]) =>
  async (record: ApprovalRecord): Promise<Json | undefined> => {
    const found = pathsOf(record.path).flatMap((path) =>
      routes
        .filter(({ method, media }) => method === 'GET' && !media?.takes && !media?.only)
        .flatMap((row) => {
          const given = paramsOf(row.path, path);
          return given ? [{ row, given }] : [];
        }),
    )[0];
    if (!found || found.row.waits === true) return undefined;
    const { row, given } = found;
    const params = row.params?.schema.safeParse(given);
    const query = row.query?.safeParse({});
    if (params?.success === false || query?.success === false) return undefined;
    try {
      const { body } = await row.handle(askedBy(record, params?.data, query?.data));
      const state = JSON.parse(JSON.stringify(body)) as Json;
      return IN_FIELDS_OF_REQUESTS[row.operationId]?.(state) ?? state;
    } catch (error) {
      if (error instanceof Refusal) return undefined;
      throw error;
    }
  };

/** Templates change under `/admin` but are read outside it. */
const pathsOf = (path: string): readonly string[] => [
  path,
  path.replace(/^\/admin(?=\/sandbox-templates\/)/, ''),
  path.replace(/^(\/sandboxes\/[^/]+)\/(?:state|idle-timeout)$/, '$1'),
];

const limitsIn = ({ items }: Json): Json => {
  const limits = new Map(
    (Array.isArray(items) ? items : [])
      .filter(isObject)
      .map(({ resource, limit }) => [resource, limit]),
  );
  return Object.fromEntries(
    QUOTA_RESOURCES.map((resource) => [resource, limits.get(resource) ?? 'no limit']),
  );
};

const documentIn = ({ template }: Json): Json => {
  if (!isObject(template)) return {};
  const { crdYaml, ...rest } = template;
  return {
    ...rest,
    crdJson: typeof crdYaml === 'string' ? (parse(crdYaml) as unknown) : undefined,
  };
};

const IN_FIELDS_OF_REQUESTS: Readonly<Record<string, (answer: Json) => Json>> = {
  getQuotasOf: limitsIn,
  getTemplate: documentIn,
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
    signal: () => new AbortController().signal,
    room: () => {
      throw new Error('an answer for a page cannot be sent to a client');
    },
    localPool: (name) => name,
    incoming: {
      base: () => '',
      ifMatch: undefined,
      header: () => undefined,
      accepts: (first) => first,
      content: () => Readable.from([]),
    },
    step: undefined,
    waitMs: undefined,
    keyed: undefined,
  };
  return request;
};

/** Undefined if the path does not match. */
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

export interface FieldChange {
  /** `overrides.image` */
  readonly field: string;
  /** As JSON; undefined if unset or unknown. */
  readonly before: string | undefined;
  readonly after: string;
}

/** Only the request shows the rest. */
const MOST_FIELDS = 500;

export interface FieldChanges {
  readonly shown: readonly FieldChange[];
  readonly more: number;
}

/** Fields that a body sets, with their current values. */
export const changesOf = (body: unknown, current: Json | undefined): FieldChanges | undefined => {
  if (!isObject(body)) return undefined;
  const leaves = leavesOf(opened(body), []);
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

/** A template that was sent as text, to list its fields. The page shows the original too. */
const opened = (body: Json): Json => {
  const { crdJson } = body;
  if (typeof crdJson !== 'string') return body;
  try {
    return { ...body, crdJson: JSON.parse(crdJson) as unknown };
  } catch {
    return body;
  }
};

/** They may hold a request's fields under the same names. */
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

/** Undefined if the resource can't have sandboxes. */
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
